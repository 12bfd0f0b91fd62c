"""``run_sweep`` computes the tasks that a journal lacks, and records each when it is done.

However the process ends, at most the tasks that were being computed are lost.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias

import fairshield as fs
from fairshield_experiments.sweep.call import Failure
from fairshield_experiments.sweep.journal import FailedTask, Journal
from fairshield_experiments.sweep.task import Function, Task
from fairshield_experiments.sweep.workers import Result, Workers

Progress: TypeAlias = Callable[[int, int, str, float | None], None]
"""``progress(done, total, title, seconds_left)``: first with what the journal had and an empty
title, then after every task; seconds are ``None`` until there is something to judge by."""


@dataclass(frozen=True, kw_only=True)
class SweepReport:
    """SweepReport says what became of the tasks, in the order in which they were given.

    Attributes
    ----------
    finished
        Keys of the tasks computed now.
    resumed
        Keys of the tasks that the journal had.
    failures
        Tasks that will be tried again by the next sweep.
    """

    finished: tuple[str, ...]
    resumed: tuple[str, ...]
    failures: tuple[FailedTask, ...]


@dataclass
class TimeLeft:
    """TimeLeft estimates the seconds to go from the rate so far, in weight per second.

    ``weight`` leaves out resumed tasks.  The rate is that of the sweep as a whole, whatever the
    number of workers.
    """

    weight: float
    start: float
    done: float = 0.0

    def after(self, weight: float, *, now: float) -> float | None:
        """Seconds to go now that a task of this weight is done; ``None`` if no time has passed."""
        self.done += weight
        if self.done <= 0 or now <= self.start:
            return None
        return max(self.weight - self.done, 0.0) * (now - self.start) / self.done


def run_sweep(
    function: Function,
    tasks: Sequence[Task],
    journal: Journal,
    workers: Workers,
    *,
    progress: Progress | None = None,
) -> SweepReport:
    """Compute the tasks that the journal does not have, heaviest first.

    A task that fails is recorded with its title, and the others go on.  An interrupt stops the
    workers; what is recorded stays.
    """
    _reject_duplicates(tasks)
    had = journal.finished()
    resumed = tuple(task.key for task in tasks if task.key in had)
    # A heavy task at the end would leave all other workers idle.
    todo = sorted((task for task in tasks if task.key not in had), key=lambda task: -task.weight)
    time_left = TimeLeft(sum(task.weight for task in todo), time.monotonic())
    failures: dict[str, FailedTask] = {}
    report = progress or _silent
    report(len(resumed), len(tasks), "", None)
    with closing(workers.results(function, todo)) as results:
        for done, result in enumerate(results, len(resumed) + 1):
            task = result.task
            if (failure := _record(journal, result)) is not None:
                failures[task.key] = FailedTask(task.key, task.title, str(failure))
            seconds = time_left.after(task.weight, now=time.monotonic())
            report(done, len(tasks), task.title, seconds)
    return SweepReport(
        finished=tuple(t.key for t in tasks if t.key not in had and t.key not in failures),
        resumed=resumed,
        failures=tuple(failures[task.key] for task in tasks if task.key in failures),
    )


def _record(journal: Journal, result: Result) -> Failure | None:
    """Record a result in the journal; returns the failure, if it is one."""
    task, outcome, seconds = result
    if not isinstance(outcome, Failure):
        try:
            journal.record(task, outcome, seconds)
        except fs.InvalidValueError as error:  # a frame that cannot be stored
            outcome = Failure(str(error))
        else:
            return None
    journal.record_failure(task, str(outcome))
    return outcome


def _reject_duplicates(tasks: Sequence[Task]) -> None:
    times = Counter(task.key for task in tasks)
    if len(times) < len(tasks):
        twice = [task.title for task in tasks if times[task.key] > 1]
        raise fs.InvalidValueError(
            f"keys of tasks must differ, but these share theirs: {', '.join(map(repr, twice))}. "
            "Put all that tells them apart into the digest."
        )


def _silent(_done: int, _total: int, _title: str, _seconds_left: float | None) -> None:
    pass
