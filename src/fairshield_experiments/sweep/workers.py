"""Who computes the tasks: this process, other processes, or (:mod:`.cluster`) other machines.

Workers know nothing of journals.  They answer for every task exactly once, in any order, with its
frames or with what went wrong; a task that raises or whose worker dies does not stop the others.
"""

from __future__ import annotations

import pickle
import signal
from collections import Counter, deque
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import NamedTuple, Protocol

import fairshield as fs
from fairshield_experiments.sweep.call import Failure, attempt, packed, serve
from fairshield_experiments.sweep.task import Frames, Function, Task

DEATHS = 3
"""A task whose worker died this often is a failure."""


class Result(NamedTuple):
    """A task, its frames or its failure, and the seconds it took where it was computed."""

    task: Task
    outcome: Frames | Failure
    seconds: float


Results = Generator[Result, None, None]
"""Closing it stops the workers; what they were computing is lost."""


class Workers(Protocol):
    """Who computes."""

    def results(self, function: Function, tasks: Sequence[Task]) -> Results:
        """Compute all tasks, preferably in the order given; yield them as they finish."""
        ...


@dataclass(frozen=True)
class InProcess:
    """One task after the other, here, on as many threads as this process uses."""

    def results(self, function: Function, tasks: Sequence[Task]) -> Results:
        """Compute one task whenever the next result is asked for."""
        for task in tasks:
            yield Result(task, *attempt(function, task.arguments))


@dataclass(frozen=True)
class Processes:
    """Processes of this machine, one task and one thread each.

    Each has a pipe of its own, so that it is known whose task a dead process was computing: that
    task is given to a new process, up to :data:`DEATHS` times, and the others go on undisturbed.
    Arguments are pickled only when a process is free to take them.
    """

    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise fs.InvalidValueError(
                f"the number of processes must be at least 1, got {self.count}"
            )

    def results(self, function: Function, tasks: Sequence[Task]) -> Results:
        """Keep all processes busy; those still computing are killed when this is closed."""
        waiting, deaths = deque(tasks), Counter[Task]()
        done: list[Result] = []
        with closing(_Crew()) as crew:
            while waiting or crew.busy:
                while waiting and len(crew.busy) < self.count:
                    task = waiting.popleft()
                    try:
                        crew.give(task, packed(function, task.arguments))
                    except Exception as error:  # arguments that cannot travel
                        done.append(Result(task, Failure.of(error), 0.0))
                # Only now, with every process busy, may the reader take its time.
                yield from done
                done.clear()
                for task, outcome, seconds in crew.ended():
                    if isinstance(outcome, _Death):
                        deaths[task] += 1
                        if deaths[task] < DEATHS:
                            waiting.appendleft(task)
                            continue
                        outcome = outcome.failure()
                    done.append(Result(task, outcome, seconds))
            yield from done


@dataclass(frozen=True)
class _Death:
    """How a process ended that should have answered."""

    status: int

    def failure(self) -> Failure:
        end = f"exit status {self.status}"
        if self.status < 0:
            end = f"signal {signal.Signals(-self.status).name}"
        return Failure(
            f"its process died {DEATHS} times without an answer, the last time with {end}. "
            "It may need more memory than there is: use fewer processes."
        )


class _Crew:
    """Processes, started when there is work for them."""

    def __init__(self) -> None:
        self.busy: dict[object, tuple[_Process, Task]] = {}
        self._idle: list[_Process] = []

    def give(self, task: Task, call: bytes) -> None:
        process = self._idle.pop() if self._idle else _Process()
        self.busy[process.connection] = process, task
        process.send(call)

    def ended(self) -> list[tuple[Task, Frames | Failure | _Death, float]]:
        """Wait until a process answers or dies; all that have."""
        connections = [process.connection for process, _ in self.busy.values()]
        return [self._take(*self.busy.pop(connection)) for connection in wait(connections)]

    def _take(self, process: _Process, task: Task) -> tuple[Task, Frames | Failure | _Death, float]:
        try:
            outcome, seconds = pickle.loads(process.connection.recv_bytes())
        except (EOFError, OSError):
            return task, process.death(), 0.0
        self._idle.append(process)
        return task, outcome, seconds

    def close(self) -> None:
        for process in [*self._idle, *(process for process, _ in self.busy.values())]:
            process.kill()


class _Process:
    """A process that serves calls, and this end of its pipe."""

    def __init__(self) -> None:
        context = get_context("spawn")  # a fork would copy locks that other threads hold
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()  # the only other end is the process's: its death closes the pipe

    def send(self, call: bytes) -> None:
        with suppress(OSError):  # it died: reading will say so
            self.connection.send_bytes(call)

    def death(self) -> _Death:
        """How it ended after it closed its end."""
        self._process.join(timeout=1.0)
        self.kill()
        return _Death(self._process.exitcode or 0)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()
