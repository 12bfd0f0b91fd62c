"""Where logs are kept: one file on this machine, or a PostgreSQL database for several services."""

from __future__ import annotations

from fairshield.errors import MissingExtraError
from fairshield.service.store.base import Connection as Connection
from fairshield.service.store.base import Database as Database
from fairshield.service.store.base import KeyRow as KeyRow
from fairshield.service.store.base import PolicyRow as PolicyRow
from fairshield.service.store.base import StoreError as StoreError
from fairshield.service.store.base import UnstorableError as UnstorableError
from fairshield.service.store.sqlite import SqliteDatabase


def open_database(address: str, *, serving: bool = False, read_only: bool = False) -> Database:
    """The database at ``address``: the path of a file, or ``postgresql://…``.

    ``serving`` claims it for this process: a file is then served by nobody else.  A PostgreSQL
    database is served by as many as like.  ``read_only``
    changes nothing in it.
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
