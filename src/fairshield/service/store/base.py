"""The operations of a store, written once; dialects say how statements are run.

A :class:`Connection` belongs to one thread at a time.  One of them writes, others read.  Entries
are only ever added.  What a stream has counted is stored only as a summary of its entries
(``windows``), from which a replay may begin.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from fairshield.base.errors import FairshieldError
from fairshield.service.log.entries import EntryRow
from fairshield.service.log.snapshots import MonitorRow, WindowRow


class StoreError(FairshieldError):
    """StoreError says that the database does not work as it must.

    Nothing that was being written counts as written.
    """


class UnstorableError(FairshieldError):
    """UnstorableError says that the database refuses this data; the database itself works."""


class Migration(NamedTuple):
    """Migration is a numbered change of the schema; its checksum shows if it was changed."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the statements."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


class PolicyRow(NamedTuple):
    """PolicyRow is a policy, or the making of one."""

    id: str
    status: str
    progress: float
    digest: str | None
    words: str | None
    verification: str | None
    error: str | None
    size: int | None
    spec: str | None
    created: str


class KeyRow(NamedTuple):
    """KeyRow is an access key; of its secret it has only the hash."""

    id: str
    name: str
    hash: bytes
    scopes: str
    stream: str | None
    created: str
    revoked: str | None


_POLICY = ", ".join(PolicyRow._fields)
_KEY = ", ".join(KeyRow._fields)
ENTRY = "stream, seq, n, overruled, key, line, hash"
_WINDOW = ", ".join(f'"{name}"' for name in WindowRow._fields)  # "window" is a word of SQL
_MONITOR = ", ".join(MonitorRow._fields)
_MIGRATED = "CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, checksum TEXT)"


def _marks(columns: str) -> str:
    return ", ".join("?" for _ in columns.split(","))


class Database(ABC):
    """Database is a place for logs: it makes connections, and knows if others write as well."""

    dialect: str
    address: str
    shared: bool
    """Whether other processes may add to the same streams."""

    @abstractmethod
    def connect(self) -> Connection:
        """A new connection."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what :meth:`connect` does not own."""

    def migrations(self) -> list[Migration]:
        """All changes of the schema, in order."""
        folder = files("fairshield.service.store") / "migrations" / self.dialect
        found = sorted(
            (f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name
        )
        return [Migration(int(f.name[:4]), f.name[:-4], f.read_text("utf-8")) for f in found]


class Connection(ABC):
    """Connection is one connection; its statements use ``?`` for their arguments."""

    # What a dialect defines -----------------------------------------------------------------

    @abstractmethod
    def rows(self, sql: str, *arguments: Any) -> list[Any]:
        """The rows of a query, as tuples."""

    @abstractmethod
    def run(self, sql: str, *arguments: Any) -> None:
        """Run one statement."""

    @abstractmethod
    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for every row."""

    @abstractmethod
    def script(self, sql: str) -> None:
        """Run several statements, without arguments."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction that may write."""

    @abstractmethod
    def commit(self) -> None:
        """Make the transaction durable; when this returns, it is on disk."""

    @abstractmethod
    def rollback(self) -> None:
        """Forget the transaction; does nothing without one, and never raises."""

    @abstractmethod
    def close(self) -> None:
        """End the connection; never raises."""

    @abstractmethod
    def ends(self, streams: Iterable[int]) -> dict[int, int]:
        """The last entries of these streams; where there are no other writers: nothing."""

    @abstractmethod
    def lock(self, streams: Iterable[int]) -> dict[int, int]:
        """Keep other writers off these streams until the transaction ends; their last entries.

        Where there are no other writers: nothing.
        """

    @abstractmethod
    def find(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], EntryRow]:
        """The entries that bear these idempotency keys."""

    @abstractmethod
    def lock_schema(self) -> None:
        """Keep other processes from migrating until the transaction ends."""

    @abstractmethod
    def settle(self) -> None:
        """Make durable what can be read, however it was written.

        A commit that failed, or whose process was killed, may have left entries that can be read
        but would be lost in a power cut.  They must not be sent to a client before this call.
        """

    # Schema ---------------------------------------------------------------------------------

    def migrate(self, migrations: Sequence[Migration]) -> list[Migration]:
        """Bring the schema up to date; returns what was applied.

        Raises
        ------
        StoreError
            If the schema is newer than this library, or is not what its migrations made.
        """
        self.begin()
        try:
            self.lock_schema()
            self.run(_MIGRATED)
            applied = dict(self.rows("SELECT version, checksum FROM migrations ORDER BY version"))
            _check_applied(applied, migrations)
            missing = [m for m in migrations if m.version not in applied]
            for migration in missing:
                self.script(migration.sql)
                self.run(
                    "INSERT INTO migrations (version, checksum) VALUES (?, ?)",
                    migration.version,
                    migration.checksum,
                )
            self.commit()
        except BaseException:
            self.rollback()
            raise
        return missing

    def check_schema(self, migrations: Sequence[Migration]) -> None:
        """Refuse a schema that is not the one of this library, and leave it as it is."""
        try:
            applied = dict(self.rows("SELECT version, checksum FROM migrations ORDER BY version"))
        except StoreError as error:
            raise StoreError(f"this is not a database of fairshield serve: {error}") from error
        _check_applied(applied, migrations)
        if len(applied) < len(migrations):
            raise StoreError(
                f"the database has schema version {max(applied, default=0)}, this library needs "
                f"{migrations[-1].version}: fairshield serve --db brings it up to date when it "
                "starts"
            )

    # Streams and entries --------------------------------------------------------------------

    def insert_stream(self, name: str) -> int | None:
        """Give a new stream its number; ``None`` if the name is taken."""
        found = self.rows(
            "INSERT INTO streams (name) VALUES (?) ON CONFLICT (name) DO NOTHING RETURNING id", name
        )
        return int(found[0][0]) if found else None

    def streams(self) -> list[tuple[int, str]]:
        """Number and name of all streams."""
        return [
            (int(i), str(name)) for i, name in self.rows("SELECT id, name FROM streams ORDER BY id")
        ]

    def stream(self, name: str) -> int | None:
        """The number of a stream."""
        found = self.rows("SELECT id FROM streams WHERE name = ?", name)
        return int(found[0][0]) if found else None

    def append(self, rows: Sequence[EntryRow]) -> None:
        """Add entries."""
        self.run_many(
            f"INSERT INTO entries ({ENTRY}) VALUES ({_marks(ENTRY)})",
            [(*row[:3], int(row.overruled), row.key, row.line.decode(), row.hash) for row in rows],
        )

    def entries(self, stream: int, *, after: int = -1, limit: int = 1 << 62) -> list[EntryRow]:
        """Entries in order, from the one after ``after`` on."""
        found = self.rows(
            f"SELECT {ENTRY} FROM entries WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?",
            stream, after, limit,
        )  # fmt: skip
        return [as_row(*row) for row in found]

    def head(self, stream: int) -> int:
        """The number of the last entry; -1 if there is none."""
        found = self.rows("SELECT max(seq) FROM entries WHERE stream = ?", stream)[0][0]
        return -1 if found is None else int(found)

    def decision(self, stream: int, n: int) -> EntryRow | None:
        """The entry of decision ``n``."""
        found = self.rows(f"SELECT {ENTRY} FROM entries WHERE stream = ? AND n = ?", stream, n)
        return as_row(*found[0]) if found else None

    def latest(
        self, stream: int, *, before: int = 1 << 62, limit: int, only_overruled: bool = False
    ) -> list[EntryRow]:
        """Decisions with ``n`` below ``before``, the latest first."""
        overruled = "AND overruled = 1 " if only_overruled else ""
        found = self.rows(
            f"SELECT {ENTRY} FROM entries WHERE stream = ? AND n < ? {overruled}"
            "ORDER BY n DESC LIMIT ?",
            stream, before, limit,
        )  # fmt: skip
        return [as_row(*row) for row in found]

    def put_windows(self, windows: Iterable[WindowRow]) -> None:
        """Note the ends of windows; one that ended again replaces itself."""
        names = [name for name in WindowRow._fields if name not in ("stream", "window")]
        changes = ", ".join(f"{name} = excluded.{name}" for name in names)
        self.run_many(
            f"INSERT INTO windows ({_WINDOW}) VALUES ({_marks(_WINDOW)}) "
            f'ON CONFLICT (stream, "window") DO UPDATE SET {changes}',
            [(*w[:5], int(w.fair), *w[6:-1], w.snapshot.decode()) for w in windows],
        )

    def windows(self, stream: int, *, first: int = 0, limit: int = 1 << 62) -> list[WindowRow]:
        """Ends of windows in order, from ``first`` on."""
        found = self.rows(
            f'SELECT {_WINDOW} FROM windows WHERE stream = ? AND "window" >= ? '
            'ORDER BY "window" LIMIT ?',
            stream, first, limit,
        )  # fmt: skip
        return [_window_row(*row) for row in found]

    def last_window(self, stream: int, *, back: int = 0, until: int = 1 << 62) -> WindowRow | None:
        """The end of the last window but ``back``, of those that ended by entry ``until``."""
        found = self.rows(
            f"SELECT {_WINDOW} FROM windows WHERE stream = ? AND seq <= ? "
            'ORDER BY "window" DESC LIMIT 1 OFFSET ?',
            stream, until, back,
        )  # fmt: skip
        return _window_row(*found[0]) if found else None

    # Monitors -------------------------------------------------------------------------------

    def put_monitors(self, rows: Iterable[MonitorRow]) -> None:
        """Note where monitors stand, instead of where they stood."""
        self.run_many(
            f"INSERT INTO monitors ({_MONITOR}) VALUES ({_marks(_MONITOR)}) ON CONFLICT (stream) "
            "DO UPDATE SET seq = excluded.seq, hash = excluded.hash, state = excluded.state",
            [(*row[:-1], row.state.decode()) for row in rows],
        )

    def monitor(self, stream: int) -> MonitorRow | None:
        """Where the monitor of a stream stood last."""
        found = self.rows(f"SELECT {_MONITOR} FROM monitors WHERE stream = ?", stream)
        if not found:
            return None
        stream, seq, hash, state = found[0]
        return MonitorRow(stream, seq, hash, state.encode())

    # Policies -------------------------------------------------------------------------------

    def put_policy(self, row: PolicyRow) -> None:
        """Add a policy, or change what is said of one that is not ready yet."""
        changes = ", ".join(f"{name} = excluded.{name}" for name in PolicyRow._fields[1:])
        self.run(
            f"INSERT INTO policies ({_POLICY}) VALUES ({_marks(_POLICY)}) "
            f"ON CONFLICT (id) DO UPDATE SET {changes} WHERE policies.status <> 'ready'",
            *row,
        )

    def put_artifact(self, digest: str, content: bytes) -> None:
        """Keep a policy file."""
        self.run(
            "INSERT INTO artifacts (digest, content) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING",
            digest, content,
        )  # fmt: skip

    def artifact(self, digest: str) -> bytes | None:
        """A policy file."""
        found = self.rows("SELECT content FROM artifacts WHERE digest = ?", digest)
        return bytes(found[0][0]) if found else None

    def policies(self) -> list[PolicyRow]:
        """All policies, oldest first."""
        found = self.rows(f"SELECT {_POLICY} FROM policies ORDER BY created, id")
        return [PolicyRow(*row) for row in found]

    def policy(self, which: str) -> PolicyRow | None:
        """The policy with this id or digest; of several, one that is ready."""
        found = self.rows(
            f"SELECT {_POLICY} FROM policies WHERE id = ? OR digest = ? "
            "ORDER BY CASE status WHEN 'ready' THEN 0 ELSE 1 END, created LIMIT 1",
            which, which,
        )  # fmt: skip
        return PolicyRow(*found[0]) if found else None

    # Access keys ----------------------------------------------------------------------------

    def put_key(self, row: KeyRow) -> None:
        """Add an access key."""
        self.run(f"INSERT INTO access_keys ({_KEY}) VALUES ({_marks(_KEY)})", *row)

    def revoke_key(self, id: str, at: str) -> bool:
        """Make a key useless; whether there was one."""
        sql = "UPDATE access_keys SET revoked = ? WHERE id = ? AND revoked IS NULL RETURNING id"
        return bool(self.rows(sql, at, id))

    def access_keys(self) -> list[KeyRow]:
        """All access keys, oldest first."""
        found = self.rows(f"SELECT {_KEY} FROM access_keys ORDER BY created, id")
        return [KeyRow(id, name, bytes(hash), *rest) for id, name, hash, *rest in found]


def as_row(
    stream: int, seq: int, n: int | None, overruled: int, key: str | None, line: str, hash: bytes
) -> EntryRow:
    """A row of the table of entries."""
    return EntryRow(stream, seq, n, overruled == 1, key, line.encode(), bytes(hash))


def _window_row(*columns: Any) -> WindowRow:
    row = WindowRow(*columns)
    return row._replace(fair=row.fair == 1, snapshot=columns[-1].encode())


def _check_applied(applied: dict[int, str], migrations: Sequence[Migration]) -> None:
    known = {migration.version: migration for migration in migrations}
    for version, checksum in applied.items():
        if version not in known:
            raise StoreError(
                f"the database has schema version {version}, this library knows versions up to "
                f"{max(known)}: serve it with the version of fairshield that wrote it, or a later"
            )
        if known[version].checksum != checksum:
            raise StoreError(
                f"schema version {version} of the database was made by other statements than "
                f"{known[version].name} of this library: restore a backup, or use the version of "
                "fairshield that made it"
            )
