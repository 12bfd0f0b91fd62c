"""Stores for logs: an SQLite file for one service, or PostgreSQL for several."""

from __future__ import annotations

from fairshield.base.errors import MissingExtraError
from fairshield.service.store.base import Connection as Connection
from fairshield.service.store.base import Database as Database
from fairshield.service.store.base import KeyRow as KeyRow
from fairshield.service.store.base import PolicyRow as PolicyRow
from fairshield.service.store.base import StoreError as StoreError
from fairshield.service.store.base import UnstorableError as UnstorableError
from fairshield.service.store.sqlite import SqliteDatabase


def open_database(address: str, *, serving: bool = False, read_only: bool = False) -> Database:
    """The database at ``address``: the path of a file, or ``postgresql://…``.

    ``serving`` claims a file for this process, so that no other process can serve it; any number of
    processes may serve a PostgreSQL database.  With ``read_only`` the database is not changed.
    """
    if address.startswith(("postgresql://", "postgres://")):
        return _postgres(address, read_only)
    return SqliteDatabase(address, serving=serving, read_only=read_only)


def _postgres(address: str, read_only: bool) -> Database:
    try:
        from fairshield.service.store.postgres import PostgresDatabase
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise MissingExtraError(
            "PostgreSQL needs asyncpg, which is not installed: pip install 'fairshield[postgres]'"
        ) from None
    return PostgresDatabase(address, read_only=read_only)
