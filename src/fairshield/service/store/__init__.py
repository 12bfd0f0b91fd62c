"""Where logs are kept: one file on this machine, or a PostgreSQL database for several services."""

from __future__ import annotations

from fairshield.service.store.base import Connection as Connection
from fairshield.service.store.base import Database as Database
from fairshield.service.store.base import KeyRow as KeyRow
from fairshield.service.store.base import PolicyRow as PolicyRow
from fairshield.service.store.base import StoreError as StoreError
from fairshield.service.store.sqlite import SqliteDatabase


def open_database(address: str, *, serving: bool = False, read_only: bool = False) -> Database:
    """The database at ``address``: the path of a file.

    ``serving`` claims it for this process: a file is then served by nobody else; ``read_only``
    changes nothing in it.
    """
    return SqliteDatabase(address, serving=serving, read_only=read_only)
