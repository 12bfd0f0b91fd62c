"""Workers compute tasks: this process, other processes, or (:mod:`.cluster`) machines.

Workers know nothing of journals.  They answer for every task exactly once, in any order, with its
frames or with what went wrong; a task that raises or whose worker dies does not stop the others.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import NamedTuple, Protocol

import fairshield as fs
from fairshield_experiments.sweep.call import Failure, attempt, opened, packed, serve
from fairshield_experiments.sweep.task import Frames, Function, Task

DEATHS = 3
"""A task whose worker died this often is a failure."""


class Result(NamedTuple):
    """Result holds a task, its frames or its failure, and the seconds that it took."""

    task: Task
    outcome: Frames | Failure
    seconds: float


Results = Generator[Result, None, None]
"""Closing it stops the workers; what they were computing is lost."""


class Workers(Protocol):
    """Workers computes tasks and yields their results."""

    def results(self, function: Function, tasks: Sequence[Task]) -> Results:
        """Compute all tasks, preferably in the order given; yield them as they finish."""
        ...


@dataclass(frozen=True)
class InProcess:
    """InProcess computes one task after the other in this process, with all its threads."""

    def results(self, function: Function, tasks: Sequence[Task]) -> Results:
        """Compute one task whenever the next result is asked for."""
        for task in tasks:
            yield Result(task, *attempt(function, task.arguments))


@dataclass(frozen=True)
class Processes:
    """Processes computes tasks in processes of this machine, one thread each.

    Each has a pipe of its own, so that it is known whose task a dead process was computing: that
    task is given to a new process, up to :data:`DEATHS` times, and the others go on undisturbed.
    Arguments are pickled when a process is free to take them.
    """

    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise fs.InvalidValueError(
                f"the number of processes must be at least 1, got {self.count}"
            )

    def results(self, function: Function, tasks: Sequence[Task]) -> Results:
        """Keep all processes busy; those still computing are killed when this is closed."""
        with closing(_ProcessCrew(self.count)) as crew:
            yield from keep_busy(crew, function, tasks)


class Crew(Protocol):
    """Crew takes a limited number of calls at a time, and returns their results."""

    def room(self) -> int:
        """How many more calls the crew can take; at least 1 if it is not busy."""
        ...

    def give(self, task: Task, call: bytes) -> None:
        """Start to compute a packed call."""
        ...

    def busy(self) -> bool:
        """Whether a result is still to come."""
        ...

    def ended(self) -> list[Result]:
        """Wait until some calls end; returns their results, which may be none."""
        ...


def keep_busy(crew: Crew, function: Function, tasks: Sequence[Task]) -> Results:
    """Yield the results of all tasks; arguments are pickled only when the crew has room."""
    waiting, done = iter(tasks), list[Result]()
    while True:
        batch = list(islice(waiting, crew.room()))
        for task in batch:
            try:
                call = packed(function, task.arguments)
            except Exception as error:  # arguments that cannot be pickled
                done.append(Result(task, Failure.of(error), 0.0))
            else:
                crew.give(task, call)
        # Yield only now, when all workers are busy: the consumer may take long.
        yield from done
        done = crew.ended() if crew.busy() else []
        if not (batch or done or crew.busy()):
            return


class _ProcessCrew:
    """_ProcessCrew starts processes when there is work for them."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._idle: list[_Process] = []
        self._busy: dict[object, tuple[_Process, Task, bytes]] = {}
        self._deaths: Counter[Task] = Counter()

    def room(self) -> int:
        return self._count - len(self._busy)

    def busy(self) -> bool:
        return bool(self._busy)

    def give(self, task: Task, call: bytes) -> None:
        process = self._idle.pop() if self._idle else _Process()
        self._busy[process.connection] = process, task, call
        process.send(call)

    def ended(self) -> list[Result]:
        connections = [process.connection for process, _, _ in self._busy.values()]
        results = [self._result(*self._busy.pop(connection)) for connection in wait(connections)]
        return [result for result in results if result is not None]

    def _result(self, process: _Process, task: Task, call: bytes) -> Result | None:
        """The result of a task; ``None`` if its process died and another one tries again."""
        try:
            answered = process.connection.recv_bytes()
        except (EOFError, OSError):
            end = process.end()
            self._deaths[task] += 1
            if self._deaths[task] == DEATHS:
                return Result(task, _died(end), 0.0)
            self.give(task, call)
            return None
        self._idle.append(process)
        return Result(task, *opened(answered))

    def close(self) -> None:
        for process in [*self._idle, *(process for process, _, _ in self._busy.values())]:
            process.kill()


class _Process:
    """_Process is a worker process, and this end of its pipe."""

    def __init__(self) -> None:
        context = get_context("spawn")  # a fork would copy locks that other threads hold
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()  # now the process alone has the other end, so that its death closes the pipe

    def send(self, call: bytes) -> None:
        with suppress(OSError):  # the process died, which the next read reports
            self.connection.send_bytes(call)

    def end(self) -> str:
        """The exit code, in words, of a process that has closed its pipe."""
        self._process.join(timeout=1.0)
        self.kill()
        status = self._process.exitcode or 0
        return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()


def _died(end: str) -> Failure:
    return Failure(
        f"its process died {DEATHS} times without an answer, the last time with {end}. "
        "It may need more memory than there is: use fewer processes."
    )
