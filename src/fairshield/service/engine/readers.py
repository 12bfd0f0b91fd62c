"""Readers runs threads that read the store, each with a connection of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fairshield.service.log.live import BrokenLogError
from fairshield.service.store import Connection, Database, StoreError
from fairshield.wire.problems import Refusal

T = TypeVar("T")
logger = logging.getLogger("fairshield.service")
_MOST_LONG = 16
"""Explanations and outlooks that may wait at a time; further ones are refused."""


class Readers:
    """Readers keeps a connection for each thread that reads, and threads for the event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pool = ThreadPoolExecutor(4, "fairshield-read")
        self._long_pool = ThreadPoolExecutor(1, "fairshield-long")
        self._long_waiting = 0
        self._local = threading.local()
        self._open: list[Connection] = []

    async def read(self, look: Callable[[Connection], T]) -> T:
        """The result of ``look``, run in another thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._view, look)

    async def read_long(self, look: Callable[[Connection], T]) -> T:
        """:meth:`read`, for what takes long: one at a time, and few may wait."""
        if self._long_waiting >= _MOST_LONG:
            raise Refusal(
                "unavailable", "too many explanations and forecasts are asked for", retry_after=2
            )
        self._long_waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._long_pool, self._view, look
            )
        finally:
            self._long_waiting -= 1

    def _view(self, look: Callable[[Connection], T]) -> T:
        try:
            return self.run(look)
        except BrokenLogError:
            # The cause quotes entries, which only those who may audit the database should read.
            raise Refusal(
                "log-broken",
                "what is stored of this stream does not replay: fairshield audit --db says where",
            ) from None

    def run(self, look: Callable[[Connection], T]) -> T:
        """The result of ``look`` in this thread; tried again on a new connection if one fails."""
        for attempt in (1, 2):
            connection = getattr(self._local, "connection", None)
            try:
                if connection is None:
                    connection = self._local.connection = self._database.connect()
                    self._open.append(connection)
                return look(connection)
            except StoreError as error:
                if connection is not None:
                    connection.close()
                    self._open.remove(connection)
                    self._local.connection = None
                if attempt == 2:
                    logger.error("the store cannot be read: %s", error)
                    raise Refusal(
                        "unavailable", "the store cannot be read", retry_after=1
                    ) from error
        raise AssertionError

    def close(self) -> None:
        """Close the connections once no thread uses them."""
        self._long_pool.shutdown(cancel_futures=True)
        self._pool.shutdown()
        for connection in self._open:
            connection.close()
