"""PostgresDatabase stores logs on a PostgreSQL server, synced at every commit.

Any number of processes may serve it at a time.

Writers of one stream take turns.  Each locks the rows of its streams in the order of their
numbers, so that no two wait for each other, and looks for the ends of the logs and for
idempotency keys in statements of their own after that: under READ COMMITTED every statement sees
what was committed before it began, so these see all that earlier holders of the locks have added.
Unique indexes would refuse a second entry of the same number, should this fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg

from fairshield.service.log.entries import EntryRow
from fairshield.service.store.base import (
    ENTRY,
    Connection,
    Database,
    PolicyRow,
    StoreError,
    UnstorableError,
    as_row,
)

T = TypeVar("T")

OLDEST = 12
"""Earlier major versions are not maintained, and not tested."""
_REACHED_WITHIN = 10.0
"""Seconds to connect in."""
_ANSWERED_WITHIN = 30.0
"""Seconds for one statement, waiting for locks included."""
_SCHEMA_LOCK = 0x6661697273686C64
"""The advisory lock of those who migrate: "fairshld"."""
_SESSION = """
SET synchronous_commit = on;
-- A process that hangs or vanishes in a transaction would keep its locks: the server ends it.
SET idle_in_transaction_session_timeout = '10s';
SET tcp_keepalives_idle = 15;
SET tcp_keepalives_interval = 5;
SET tcp_keepalives_count = 3;
-- Every statement looks up a few rows by an index.  Plans that suit small tables would be kept
-- while the tables grow.
SET plan_cache_mode = force_custom_plan;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET jit = off;
"""
_APPEND = (
    f"INSERT INTO entries ({ENTRY}) SELECT * FROM unnest($1::bigint[], $2::bigint[], "
    "$3::bigint[], $4::integer[], $5::text[], $6::text[], $7::bytea[])"
)
_LOCK = "SELECT id FROM streams WHERE id = ANY($1::bigint[]) ORDER BY id FOR NO KEY UPDATE"
_ENDS = (
    "SELECT id, (SELECT max(seq) FROM entries WHERE stream = id) FROM unnest($1::bigint[]) AS s(id)"
)
_FIND = (
    f"SELECT {ENTRY} FROM unnest($1::bigint[], $2::text[]) AS wanted(s, k) "
    "JOIN entries ON stream = s AND key = k WHERE key IS NOT NULL"
)


class PostgresDatabase(Database):
    """PostgresDatabase is a database on a PostgreSQL server.

    Parameters
    ----------
    address
        ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE``; a part that is missing is taken from
        the environment (``PGPASSWORD`` and its like) or from the user's password file.
    read_only
        Change nothing.
    """

    dialect, shared = "postgres", True

    def __init__(self, address: str, *, read_only: bool = False) -> None:
        self._address, self._read_only = address, read_only
        self.address = without_password(address)

    def connect(self) -> Connection:
        """A new connection."""
        return PostgresConnection(self._address, read_only=self._read_only)

    def close(self) -> None:
        """Do nothing: this object holds no connection."""


class PostgresConnection(Connection):
    """PostgresConnection is a connection to the server.

    It has an event loop of its own, which runs for one statement at a time.
    """

    def __init__(self, address: str, *, read_only: bool = False) -> None:
        self._where = without_password(address)
        self._loop = asyncio.new_event_loop()
        self._lost = False
        try:
            self._db = self._loop.run_until_complete(_connected(address))
        except BaseException as error:
            self._loop.close()
            if isinstance(error, _UNREADABLE):
                # The message is not shown: it may quote a part of a password.
                raise _unreadable() from None
            if not isinstance(error, _TROUBLE):
                raise
            raise StoreError(
                f"PostgreSQL at {self._where} cannot be used: {_said(error, _REACHED_WITHIN)}; "
                "check the address and that the server runs"
            ) from error
        try:
            self.script(_SESSION)
            if read_only:
                self.script("SET default_transaction_read_only = on")
            check_server(self._db.get_server_version().major, self.rows("SHOW fsync")[0][0])
        except BaseException:
            self.close()
            raise

    def _wait(self, ask: Callable[..., Awaitable[T]], *arguments: Any, **options: Any) -> T:
        """Run one call of the driver in the event loop until it returns."""
        if self._lost or self._loop.is_closed():
            raise StoreError(f"the connection to PostgreSQL at {self._where} is closed")
        try:
            return self._loop.run_until_complete(ask(*arguments, **options))
        except asyncpg.DataError as error:
            raise UnstorableError(f"PostgreSQL does not take this: {_said(error)}") from error
        except asyncpg.PostgresError as error:
            raise StoreError(f"PostgreSQL: {_said(error)}") from error
        except BaseException as error:
            # The state of the server is unknown, so this connection is not used again.
            self._lost = True
            if isinstance(error, _TROUBLE):
                raise StoreError(f"PostgreSQL: {_said(error)}") from error
            raise

    def rows(self, sql: str, *arguments: Any) -> list[Any]:
        return [tuple(row) for row in self._wait(self._db.fetch, numbered(sql), *arguments)]

    def run(self, sql: str, *arguments: Any) -> None:
        self._wait(self._db.execute, numbered(sql), *arguments)

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._wait(self._db.executemany, numbered(sql), rows)

    def script(self, sql: str) -> None:
        self._wait(self._db.execute, sql)

    def begin(self) -> None:
        self.script("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")

    def commit(self) -> None:
        # COMMIT of a transaction in which a statement has failed succeeds, as a ROLLBACK.
        if self._wait(self._db.execute, "COMMIT") != "COMMIT":
            raise StoreError("PostgreSQL: the transaction had failed and was rolled back")

    def settle(self) -> None:
        """Do nothing: the server shows no transaction before it is durable."""

    def rollback(self) -> None:
        with contextlib.suppress(StoreError):
            if not self._lost and not self._db.is_closed() and self._db.is_in_transaction():
                self.script("ROLLBACK")

    def close(self) -> None:
        if self._loop.is_closed():
            return
        with contextlib.suppress(Exception):
            self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        if self._lost:
            self._db.terminate()
        else:
            with contextlib.suppress(*_TROUBLE):
                await self._db.close(timeout=1.0)
        # The driver may have begun to cancel a statement.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def ends(self, streams: Iterable[int]) -> dict[int, int]:
        return dict(self.rows(_ENDS, list(streams)))

    def lock(self, streams: Iterable[int]) -> dict[int, int]:
        numbers = list(streams)
        self._wait(self._db.fetch, _LOCK, numbers)
        return self.ends(numbers)

    def lock_schema(self) -> None:
        self.run("SELECT pg_advisory_xact_lock(?)", _SCHEMA_LOCK)

    def find(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], EntryRow]:
        streams, words = zip(*keys, strict=True) if keys else ((), ())
        found = (as_row(*row) for row in self._wait(self._db.fetch, _FIND, streams, words))
        return {(row.stream, str(row.key)): row for row in found}

    def append(self, rows: Sequence[EntryRow]) -> None:
        if not rows:
            return
        stream, seq, n, overruled, key, line, hash = zip(*rows, strict=True)
        lines, flags = [one.decode() for one in line], [int(one) for one in overruled]
        self._wait(self._db.execute, _APPEND, stream, seq, n, flags, key, lines, hash)

    # Nothing is stored under a name that PostgreSQL cannot store.

    def stream(self, name: str) -> int | None:
        return super().stream(name) if _storable(name) else None

    def policy(self, which: str) -> PolicyRow | None:
        return super().policy(which) if _storable(which) else None

    def artifact(self, digest: str) -> bytes | None:
        return super().artifact(digest) if _storable(digest) else None


def check_server(major: int, fsync: str) -> None:
    """Refuse a server that is too old, or that does not wait for its disk."""
    if major < OLDEST:
        raise StoreError(
            f"PostgreSQL {major} is too old; {OLDEST} or later is needed: upgrade the server"
        )
    if fsync != "on":
        raise StoreError(
            f"the PostgreSQL server runs with fsync = {fsync}, so commits can be lost: set "
            "fsync = on in postgresql.conf and reload it"
        )


def without_password(address: str) -> str:
    """The address as it may be shown."""
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
        user = f"{parts.username}@" if parts.username else ""
        return f"postgresql://{user}{parts.hostname or ''}{port}{parts.path}"
    except ValueError:
        return "postgresql://…"


@lru_cache(maxsize=256)
def numbered(sql: str) -> str:
    """A statement with ``$1``, ``$2`` … for its question marks."""
    number = count(1)
    return re.sub(r"\?", lambda _: f"${next(number)}", sql)


async def _connected(address: str) -> Any:
    return await asyncpg.connect(
        address, timeout=_REACHED_WITHIN, command_timeout=_ANSWERED_WITHIN,
        server_settings={"application_name": "fairshield"},
    )  # fmt: skip


_UNREADABLE = (asyncpg.exceptions.ClientConfigurationError, ValueError, KeyError)
_TROUBLE = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,  # timeouts are of this kind
    EOFError,
)


def _unreadable() -> StoreError:
    return StoreError(
        "the address of the database cannot be read: postgresql://USER:PASSWORD@HOST:PORT/DATABASE "
        "is expected, with special characters of the password percent-encoded"
    )


def _said(error: BaseException, seconds: float = _ANSWERED_WITHIN) -> str:
    """The message of an error, without values that the server or the driver may quote."""
    if isinstance(error, asyncpg.PostgresError):
        return str(getattr(error, "message", None) or error)  # the driver's errors have no message
    if isinstance(error, asyncpg.exceptions.DataError):
        return "a value of the wrong type"
    if isinstance(error, TimeoutError) and not str(error):
        return f"no answer within {seconds:g} seconds"
    return str(error).partition("\n")[0] or type(error).__name__


def _storable(text: str) -> bool:
    return "\0" not in text and text.isprintable()
