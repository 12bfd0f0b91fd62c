"""Journal stores what a sweep has finished: an SQLite file, one transaction per task.

Frames are stored as Parquet.  One process at a time has the file open; the operating system
releases it when that process ends, however it ends.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Self

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import fairshield as fs
from fairshield_experiments.sweep.task import Frames, Task

VERSION = 1
_APPLICATION = 0x46_53_4A_31  # "FSJ1": tells a journal from other people's databases
_SCHEMA = (
    "CREATE TABLE task (key TEXT PRIMARY KEY, title TEXT NOT NULL, seconds REAL NOT NULL)",
    "CREATE TABLE frame (key TEXT NOT NULL, name TEXT NOT NULL, sha256 BLOB NOT NULL, "
    "parquet BLOB NOT NULL, PRIMARY KEY (key, name))",
    "CREATE TABLE failure (key TEXT PRIMARY KEY, title TEXT NOT NULL, error TEXT NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
_BUSY, _NOT_A_DATABASE = 5, 26  # primary result codes of SQLite
_DAMAGED = frozenset({1, 11, 20})  # a table is missing, a page is wrong, a value is of another type


class JournalError(fs.FairshieldError, OSError):
    """JournalError says that a file cannot be used as a journal.

    The message names it, the reason and the remedy.
    """


class FailedTask(NamedTuple):
    """FailedTask is a task that failed when it was last tried, and the text of its error."""

    key: str
    title: str
    error: str


class Journal:
    """Journal is an open journal file, created if there is none; a context manager.

    Raises
    ------
    JournalError
        If the file is not a journal, damaged, of a newer version, or open elsewhere.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with self._explained():
            self._connection = sqlite3.connect(self.path, timeout=0, isolation_level=None)
            try:
                self._open()
            except BaseException:
                self._connection.close()
                raise

    def _open(self) -> None:
        execute = self._connection.execute
        # Held until the connection is closed or its process ends.
        execute("PRAGMA locking_mode = EXCLUSIVE")
        with self._transaction():
            new = self._is_new()
            if not new:
                self._check()
        execute("PRAGMA journal_mode = WAL")
        # FULL: a task costs seconds to hours, flushing its transaction milliseconds; so that not
        # even a power failure loses one.
        execute("PRAGMA synchronous = FULL")
        if new:
            with self._transaction():
                for statement in _SCHEMA:
                    execute(statement)

    def _is_new(self) -> bool:
        """Whether nothing was ever written into it; an error if it is not a journal."""
        application, version = self._pragma("application_id"), self._pragma("user_version")
        tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application == version == tables == 0:
            return True
        if application != _APPLICATION:
            raise JournalError(_not_a_journal(self.path))
        if int(str(version)) > VERSION:
            raise JournalError(
                f"{self.path} was written by a newer fairshield (journal version {version}; this "
                f"one reads up to {VERSION}). Upgrade fairshield, or choose another file."
            )
        return False

    def _check(self) -> None:
        """Read every page once, so that damage is found before hours of work, not after."""
        if (verdict := self._pragma("quick_check")) != "ok":
            raise JournalError(_damaged(self.path, str(verdict)))

    def _pragma(self, name: str) -> object:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, so that other processes can open it."""
        self._connection.close()

    def finished(self) -> frozenset[str]:
        """Keys of all tasks whose frames are here."""
        with self._explained():
            return frozenset(key for (key,) in self._connection.execute("SELECT key FROM task"))

    def failures(self) -> tuple[FailedTask, ...]:
        """Tasks that failed when last tried, by title."""
        query = "SELECT key, title, error FROM failure ORDER BY title, key"
        with self._explained():
            return tuple(FailedTask(*row) for row in self._connection.execute(query))

    def record(self, task: Task, frames: Frames, seconds: float) -> None:
        """Store the frames of a task, and delete the record of an earlier failure."""
        rows = [(task.key, name, *_packed(task, name, frame)) for name, frame in frames.items()]
        with self._explained(), self._transaction():
            execute = self._connection.execute
            for table in ("task", "frame", "failure"):
                execute(f"DELETE FROM {table} WHERE key = ?", (task.key,))
            execute("INSERT INTO task VALUES (?, ?, ?)", (task.key, task.title, seconds))
            self._connection.executemany("INSERT INTO frame VALUES (?, ?, ?, ?)", rows)

    def record_failure(self, task: Task, error: str) -> None:
        """Store why a task failed; the task stays unfinished."""
        with self._explained(), self._transaction():
            row = (task.key, task.title, error)
            self._connection.execute("INSERT OR REPLACE INTO failure VALUES (?, ?, ?)", row)

    def collect(self, name: str, keys: Iterable[str] | None = None) -> pd.DataFrame:
        """All frames of a name in one, in the order of the keys.

        Thus the result does not depend on the order in which tasks finished.  Tasks that left no
        frame of that name are passed over.

        Parameters
        ----------
        keys
            Of finished tasks; all of them, in the order of their keys, by default.
        """
        finished = self.finished()
        keys = sorted(finished) if keys is None else list(keys)
        if missing := [key for key in keys if key not in finished]:
            raise fs.InvalidValueError(
                f"{self.path} has no result of {len(missing)} of {len(keys)} tasks (the first: "
                f"{missing[0]}). Run the sweep to its end, or collect finished() alone."
            )
        with self._explained():
            found = [frame for key in keys if (frame := self._frame(name, key)) is not None]
        return pd.concat(found, ignore_index=True) if found else pd.DataFrame()

    def _frame(self, name: str, key: str) -> pd.DataFrame | None:
        query = "SELECT sha256, parquet FROM frame WHERE key = ? AND name = ?"
        row = self._connection.execute(query, (key, name)).fetchone()
        if row is None:
            return None
        sha256, parquet = row
        if hashlib.sha256(parquet).digest() != sha256:
            raise JournalError(_damaged(self.path, f"frame {name!r} of task {key} has changed"))
        return pq.ParquetFile(pa.BufferReader(parquet)).read().to_pandas()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN EXCLUSIVE")
        with self._connection:  # commits, or rolls back if an error passes
            yield

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of SQLite as sentences."""
        try:
            yield
        except sqlite3.Error as error:
            raise JournalError(_explanation(self.path, error)) from error


def _explanation(path: str, error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == _BUSY:
        return (
            f"{path} is open in another process, and only one sweep at a time writes a journal. "
            "Wait for it to end, stop it, or choose another file."
        )
    if code == _NOT_A_DATABASE:
        return _not_a_journal(path)
    if code in _DAMAGED:
        return _damaged(path, str(error))
    return (
        f"the journal {path} cannot be used: {error}. "
        "Check that its folder exists, is writable and has space left."
    )


def _not_a_journal(path: str) -> str:
    return f"{path} is not the journal of a sweep, or its beginning is lost. Choose another file."


def _damaged(path: str, reason: str) -> str:
    return (
        f"the journal {path} is damaged ({reason}). "
        "Restore a copy, or delete it and let the sweep begin anew."
    )


def _packed(task: Task, name: str, frame: pd.DataFrame) -> tuple[bytes, bytes]:
    """SHA-256 and Parquet of a frame."""
    if not isinstance(frame, pd.DataFrame):
        raise fs.InvalidValueError(
            f"task {task.title!r} left {name!r} as {type(frame).__name__}, not as a data frame"
        )
    sink = pa.BufferOutputStream()
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        pq.write_table(table, sink, compression="zstd")
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise fs.InvalidValueError(
            f"frame {name!r} of task {task.title!r} has no Parquet form: {error}"
        ) from error
    parquet = sink.getvalue().to_pybytes()
    return hashlib.sha256(parquet).digest(), parquet
