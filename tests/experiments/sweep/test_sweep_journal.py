"""What is recorded comes back, or the journal says what is wrong with it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep_work import simulate, simulations

import fairshield as fs
from fairshield_experiments.sweep.journal import Journal, JournalError
from fairshield_experiments.sweep.task import Task

TASKS = simulations(range(8))
KEYS = [task.key for task in TASKS]


def fill(journal: Journal, order: list[Task]) -> None:
    for task in order:
        journal.record(task, simulate(**task.arguments), 0.5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of eight tasks, closed."""
    with Journal(tmp_path / "journal") as journal:
        fill(journal, TASKS)
    return tmp_path / "journal"


@settings(max_examples=examples(10))
@given(st.permutations(TASKS), st.integers(0, 8))
def test_frames_are_collected_in_the_order_of_keys(order: list[Task], reopened: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal")
        with Journal(path) as journal:
            fill(journal, order[:reopened])
        with Journal(path) as journal:
            fill(journal, order[reopened:])
            for keys in (KEYS, KEYS[::-1], KEYS[2:5]):
                expected = [simulate(**TASKS[KEYS.index(key)].arguments) for key in keys]
                for name in ("rows", "even"):
                    frames = [frames[name] for frames in expected if name in frames]
                    whole = pd.concat(frames, ignore_index=True)
                    pd.testing.assert_frame_equal(journal.collect(name, keys), whole)
            everything = journal.collect("rows", sorted(KEYS))
            pd.testing.assert_frame_equal(journal.collect("rows"), everything)


def test_a_name_that_no_task_used_is_an_empty_frame(path: Path) -> None:
    with Journal(path) as journal:
        assert journal.collect("nothing").empty


def test_collecting_what_is_not_finished_is_an_error(path: Path) -> None:
    with Journal(path) as journal, pytest.raises(fs.InvalidValueError, match="1 of 2 tasks"):
        journal.collect("rows", [KEYS[0], "unknown"])


def test_a_task_recorded_again_replaces_what_it_left(path: Path) -> None:
    with Journal(path) as journal:
        journal.record(TASKS[0], {"other": pd.DataFrame({"x": [1]})}, 1.0)
        assert journal.collect("rows", KEYS[:1]).empty
        assert journal.collect("other", KEYS)["x"].tolist() == [1]


def test_success_makes_failure_forgotten(path: Path) -> None:
    task = Task("new", "title", {})
    with Journal(path) as journal:
        journal.record_failure(task, "first")
        journal.record_failure(task, "second")
        assert [(failed.title, failed.error) for failed in journal.failures()] == [
            ("title", "second")
        ]
        assert "new" not in journal.finished()
        journal.record(task, {}, 1.0)
        assert journal.failures() == ()
        assert "new" in journal.finished()


def test_an_empty_file_is_a_new_journal(tmp_path: Path) -> None:
    (tmp_path / "journal").touch()
    with Journal(tmp_path / "journal") as journal:
        assert journal.finished() == frozenset()


# Files that are no journals ------------------------------------------------------------------


def set_version(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 2")
    connection.close()


def truncate(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def overwrite_middle(path: Path) -> None:
    data = path.read_bytes()
    middle = len(data) // 4096 // 2 * 4096
    path.write_bytes(data[:middle] + b"\xff" * 4096 + data[middle + 4096 :])


def drop_table(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE frame")
    connection.close()


def foreign(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE task (key)")
    connection.close()


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda path: path.write_text("no journal\n" * 100), "is not the journal of a sweep"),
        (lambda path: path.write_bytes(b"\0" * 4096), "is not the journal of a sweep"),
        (foreign, "is not the journal of a sweep"),
        (set_version, r"newer fairshield \(journal version 2"),
        (truncate, "is damaged"),
        (overwrite_middle, "is damaged"),
        (drop_table, "is damaged"),
    ],
    ids=["text", "zeros", "foreign", "newer", "truncated", "overwritten", "incomplete"],
)
def test_a_file_that_cannot_be_used_is_named_and_left_as_it_is(
    harm: Callable[[Path], None], reason: str, path: Path
) -> None:
    harm(path)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=reason) as caught, Journal(path) as journal:
        journal.collect("rows")
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


def test_a_frame_that_has_changed_is_noticed(path: Path) -> None:
    data = path.read_bytes()
    # A name inside a frame of "rows": SQLite sees nothing wrong with it.
    path.write_bytes(data.replace(b"condition", b"Condition", 1))
    with Journal(path) as journal, pytest.raises(JournalError, match=r"'rows' of .* has changed"):
        journal.collect("rows")


@pytest.mark.parametrize("name", ["missing/journal", "."])
def test_a_place_where_no_file_can_be_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"cannot be used.*Check that its folder exists"):
        Journal(tmp_path / name)


# One at a time -------------------------------------------------------------------------------


def test_a_second_process_is_refused_until_the_first_has_ended(path: Path) -> None:
    program = (
        "import sys; from fairshield_experiments.sweep.journal import Journal;"
        "journal = Journal(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(JournalError, match="is open in another process"):
            Journal(path)
        other.kill()
    with Journal(path) as journal:
        assert journal.finished() == set(KEYS)


def test_a_second_journal_in_this_process_is_refused_also_while_the_file_is_new(
    tmp_path: Path,
) -> None:
    with Journal(tmp_path / "journal") as first:
        with pytest.raises(JournalError, match="one sweep at a time"):
            Journal(tmp_path / "journal")
        fill(first, TASKS)
        with pytest.raises(JournalError, match="one sweep at a time"):
            Journal(tmp_path / "journal")
        assert first.finished() == set(KEYS)
