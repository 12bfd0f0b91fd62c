"""SqliteDatabase stores logs in an SQLite file in WAL mode, synced at every commit.

One process at a time serves the file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw
from packaging.version import Version

from fairshield.service.log.entries import EntryRow
from fairshield.service.store.base import (
    ENTRY,
    Connection,
    Database,
    StoreError,
    UnstorableError,
    as_row,
)

T = TypeVar("T")
OLDEST = Version("3.51.3")
"""Earlier ones can lose commits when a WAL is reset while other connections use it."""
_MOST_ROWS = 512
"""Rows in one statement."""
_VALUES = re.compile(r"(?<=VALUES )\([?, ]+\)")
_PATIENCE = 5_000
"""Milliseconds to wait for another connection, such as that of ``fairshield keys``."""


class SqliteDatabase(Database):
    """SqliteDatabase is a database in a file.

    Parameters
    ----------
    path
        The file; made if there is none.
    serving
        Claim it: another process that tries the same is refused until this one ends.
    read_only
        Change nothing: for a look at a database that another process may be serving.
    vfs
        The name of another SQLite VFS.
    """

    dialect, shared = "sqlite", False

    def __init__(
        self,
        path: str | Path,
        *,
        serving: bool = False,
        read_only: bool = False,
        vfs: str | None = None,
    ) -> None:
        check_version(apsw.sqlite_lib_version())
        self.path, self.read_only, self.vfs = Path(path), read_only, vfs
        self.address = str(path)
        if self.path.is_dir() or not self.path.name:
            raise StoreError(f"{self.path} is a folder: name a file in it, as in shield.db")
        if not self.path.parent.is_dir():
            raise StoreError(f"{self.path.parent} is not a folder: create it first")
        if read_only and not self.path.is_file():
            raise StoreError(f"{self.path} does not exist: name the file that is served")
        self._claim = _claimed(self.path) if serving else None

    def connect(self) -> Connection:
        """A new connection."""
        try:
            return SqliteConnection(str(self.path), self.vfs, read_only=self.read_only)
        except apsw.Error as error:
            raise StoreError(f"{self.path} cannot be opened as a database: {error}") from error

    def close(self) -> None:
        """Release the claim, so that another process can serve the file."""
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None


class SqliteConnection(Connection):
    """SqliteConnection is a connection to the file."""

    def __init__(self, path: str, vfs: str | None, *, read_only: bool = False) -> None:
        if not read_only and vfs is None:
            # Logs name groups: only their owner may read them, unless the owner changes that.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        writing = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        flags = apsw.SQLITE_OPEN_READONLY if read_only else writing
        self._db = apsw.Connection(path, flags=flags, vfs=vfs)
        self._db.set_busy_timeout(_PATIENCE)
        try:
            if not read_only:
                self._prepare(path)
        except BaseException:
            self.close()
            raise

    def _prepare(self, path: str) -> None:
        self.script("PRAGMA foreign_keys = ON")
        if self._journal() != "wal":
            raise StoreError(f"{path}: this file system does not allow a write-ahead log")
        # A commit returns when its pages are on disk, not when the system has taken them.
        self.script("PRAGMA synchronous = FULL")

    def _journal(self) -> str:
        """Ask for a write-ahead log; returns the kind of journal that the file has then."""
        until = time.monotonic() + _PATIENCE / 1000
        while True:
            try:
                return str(self.rows("PRAGMA journal_mode = WAL")[0][0])
            except StoreError as error:
                # Of a new file that another connection is writing, SQLite says so without waiting.
                if not isinstance(error.__cause__, apsw.BusyError) or time.monotonic() > until:
                    raise
            time.sleep(0.01)

    def rows(self, sql: str, *arguments: Any) -> list[Any]:
        with _failing():
            return list(self._db.execute(sql, arguments))

    def run(self, sql: str, *arguments: Any) -> None:
        with _failing():
            self._db.execute(sql, arguments)

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        # Every step gives the interpreter to other threads and waits to get it back, so few
        # statements are run.  Their sizes are powers of two, so that few are prepared.
        with _failing():
            for part in _parts(rows):
                one = _VALUES.search(sql)
                assert one is not None
                many = ", ".join([one[0]] * len(part))
                values = [value for row in part for value in row]
                self._db.execute(sql[: one.start()] + many + sql[one.end() :], values)

    def script(self, sql: str) -> None:
        with _failing():
            self._db.execute(sql)

    def begin(self) -> None:
        self.script("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.script("COMMIT")

    def rollback(self) -> None:
        with contextlib.suppress(apsw.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def close(self) -> None:
        with contextlib.suppress(apsw.Error):
            self._db.close()

    def ends(self, streams: Iterable[int]) -> dict[int, int]:
        return {}

    def settle(self) -> None:
        # What was written but not synced lies in the write-ahead log.  To sync that now may do
        # nothing: the system may count pages that it failed to write as written.  Copied into
        # the database they are new pages, and synced as such; the log begins again, so that
        # nothing is written after what may be missing.
        [(busy, _, _)] = self.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy:
            raise StoreError("SQLite: another process has been reading for long; let it end")

    def lock(self, streams: Iterable[int]) -> dict[int, int]:
        return {}

    def lock_schema(self) -> None:
        """Do nothing: BEGIN IMMEDIATE has locked the database."""

    def find(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], EntryRow]:
        columns = ", ".join(f"e.{column}" for column in ENTRY.split(", "))
        found = {}
        for part in _parts(keys):
            asked = ", ".join(["(?, ?)"] * len(part))
            for row in self.rows(
                f"WITH asked (stream, key) AS (VALUES {asked}) SELECT {columns} FROM asked "
                "CROSS JOIN entries AS e ON e.stream = asked.stream AND e.key = asked.key",
                *(value for pair in part for value in pair),
            ):
                entry = as_row(*row)
                found[entry.stream, str(entry.key)] = entry
        return found


def check_version(version: str) -> None:
    """Refuse an SQLite that can lose commits."""
    if Version(version) < OLDEST:
        raise StoreError(
            f"SQLite {version} can lose commits when a write-ahead log is reset; {OLDEST} or later "
            "is needed: pip install --upgrade apsw"
        )


def _parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """The rows in order, in parts whose sizes are powers of two."""
    at, left = 0, len(rows)
    while left:
        size = min(_MOST_ROWS, 1 << (left.bit_length() - 1))
        yield rows[at : at + size]
        at, left = at + size, left - size


@contextlib.contextmanager
def _failing() -> Iterator[None]:
    """Turn errors of the driver into errors of the store."""
    try:
        yield
    except apsw.TooBigError as error:
        raise UnstorableError(f"SQLite does not take this: {error}") from error
    except apsw.Error as error:
        raise StoreError(f"SQLite: {error}") from error


def _claimed(path: Path) -> int:
    """Lock a file beside the database until this process ends; SQLite locks the database."""
    beside = path.with_name(path.name + ".lock")
    handle = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
        os.close(handle)
        raise StoreError(
            f"{path} is being served by process {owner}: stop it first, or choose another file; "
            "to serve one database from several processes, use PostgreSQL"
        ) from None
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return handle
