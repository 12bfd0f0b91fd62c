"""What a sweep computes, skips, records and reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweep_work import misbehave, misbehaviours, simulate, simulations

import fairshield as fs
from fairshield_experiments.sweep.journal import Journal
from fairshield_experiments.sweep.run import TimeLeft, run_sweep
from fairshield_experiments.sweep.task import Task
from fairshield_experiments.sweep.workers import InProcess

weights = st.floats(0.001, 1000)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


def test_what_is_finished_is_not_computed_again(journal: Journal, tmp_path: Path) -> None:
    log = tmp_path / "log"
    first = run_sweep(simulate, simulations([2, 5], log=str(log)), journal, InProcess())
    tasks = simulations(range(7), log=str(log))
    second = run_sweep(simulate, tasks, journal, InProcess())
    assert sorted(int(line.split()[0]) for line in log.read_text().splitlines()) == list(range(7))
    assert set(second.resumed) == set(first.finished)
    assert second.finished == tuple(tasks[n].key for n in (0, 1, 3, 4, 6))
    assert journal.finished() == {task.key for task in tasks}


def test_failures_are_reported_with_their_titles_and_tried_again(
    journal: Journal, tmp_path: Path
) -> None:
    tasks = misbehaviours("", "raise", "raise", once=str(tmp_path / "tried"))
    report = run_sweep(misbehave, tasks, journal, InProcess())
    assert [failed.title for failed in report.failures] == ["1: raise"]
    assert report.failures == journal.failures()
    assert tasks[1].key not in journal.finished()
    again = run_sweep(misbehave, tasks, journal, InProcess())
    assert again.finished == (tasks[1].key,)
    assert again.failures == journal.failures() == ()


@pytest.mark.parametrize(
    ("how", "reason"), [("list", "as list, not as a data frame"), ("mixed", "has no Parquet form")]
)
def test_what_a_journal_cannot_hold_is_a_failure(how: str, reason: str, journal: Journal) -> None:
    tasks = misbehaviours(how, "")
    report = run_sweep(misbehave, tasks, journal, InProcess())
    assert report.finished == (tasks[1].key,)
    (failed,) = report.failures
    assert reason in failed.error


def test_keys_must_differ(journal: Journal) -> None:
    with pytest.raises(fs.InvalidValueError, match="'simulation 1', 'simulation 1'"):
        run_sweep(simulate, simulations([1, 2, 1]), journal, InProcess())
    assert journal.finished() == frozenset()


def test_progress_counts_what_was_resumed_and_ends_with_no_time_left(journal: Journal) -> None:
    run_sweep(simulate, simulations(range(2)), journal, InProcess())
    calls: list[tuple[int, int, str, float | None]] = []
    tasks = simulations(range(5))
    run_sweep(simulate, tasks, journal, InProcess(), progress=lambda *call: calls.append(call))
    assert [call[:3] for call in calls] == [
        (2, 5, ""),
        (3, 5, "simulation 2"),
        (4, 5, "simulation 3"),
        (5, 5, "simulation 4"),
    ]
    assert calls[0][3] is None
    assert calls[-1][3] == 0


def test_the_heaviest_tasks_come_first(journal: Journal) -> None:
    tasks = [
        Task(str(weight), str(weight), {"number": weight, "size": 1}, weight)
        for weight in (2, 5, 1, 4)
    ]
    titles: list[str] = []
    run_sweep(simulate, tasks, journal, InProcess(), progress=lambda *call: titles.append(call[2]))
    assert titles == ["", "5", "4", "2", "1"]


@given(st.lists(weights, min_size=1, max_size=20), st.floats(0.01, 100))
def test_time_left_is_exact_where_time_is_proportional_to_weight(
    tasks: list[float], seconds: float
) -> None:
    left, now = TimeLeft(sum(tasks), start=7.0), 7.0
    for n, weight in enumerate(tasks, 1):
        now += weight * seconds
        assert left.after(weight, now=now) == pytest.approx(
            seconds * sum(tasks[n:]), rel=1e-6, abs=1e-6 * seconds * sum(tasks)
        )


def test_time_left_is_not_guessed_before_time_has_passed() -> None:
    assert TimeLeft(2.0, start=1.0).after(1.0, now=1.0) is None
