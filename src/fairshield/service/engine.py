"""The thread that writes: requests in, group commits, answers out.

All requests that arrive while one commit is under way are the next one.  For each batch:

1. begin a transaction; where others write as well, lock the streams and catch up with them;
2. look for idempotency keys that have been used before: those requests get their old answers;
3. let every other request change its stream in memory, which makes the entries of its log;
4. store the entries and commit.  Only now answer.

If storing fails, nothing is answered but 503, all streams are forgotten, and what is on disk is
read again: a failed sync is never tried a second time, because the system may have dropped the
pages that it failed to write.

A request that needs a plan (the first of a period, say) is applied in another thread while
requests to its stream wait; those to other streams do not.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from fairshield.service.batch import Batch, nothing
from fairshield.service.commands import Command
from fairshield.service.entries import Created
from fairshield.service.jobs import Applied, Ask, Figures, Job, Loaded, Query, Slot, Survey, Write
from fairshield.service.live import Author, LiveStream
from fairshield.service.loading import create_stream, load_stream
from fairshield.service.messages import StreamRequest
from fairshield.service.problems import Refusal
from fairshield.service.shelf import Shelf
from fairshield.service.store import Connection, Database, StoreError

T = TypeVar("T")
Status = Literal["starting", "ready", "recovering", "stopped"]
logger = logging.getLogger("fairshield.service")

MOST_WAITING = 20_000
"""Requests that may wait for their turn; more are refused, so that waiting stays short."""
_MOST_AT_ONCE = 4_000
"""Decisions in one commit."""
_LONGEST_PAUSE = 5.0
"""Seconds between attempts to open the store again."""
_MOST_THOUGHTS = 16
"""Explanations and forecasts that may wait for each other."""
_NEWS_EVERY = 0.5
"""Seconds after which those who watch a stream hear of what other processes have added to it."""


def utc_now() -> datetime:
    """The time, for entries; nothing depends on its order."""
    return datetime.now(UTC)


class Engine:
    """Streams over a database.

    Its coroutines belong to the event loop that called :meth:`start`.

    Parameters
    ----------
    database
        Where logs are kept.
    shelf
        Where policies are loaded from.
    clock
        The time, for entries.
    """

    def __init__(
        self, database: Database, shelf: Shelf, *, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self.database, self.shelf, self.figures = database, shelf, Figures()
        self.status: Status = "starting"
        self.fault: str | None = None
        self.committed: Callable[[int, int, float], None] = lambda entries, requests, seconds: None
        """Called after every commit, in the thread that writes."""
        self._clock = clock
        self._queue: deque[Job] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        self.slots: dict[str, Slot] = {}
        self._planners = ThreadPoolExecutor(2, "fairshield-plan")
        self._loaders = ThreadPoolExecutor(2, "fairshield-load")
        self._thinker = ThreadPoolExecutor(1, "fairshield-think")
        self._thoughts = 0
        self._readers = ThreadPoolExecutor(4, "fairshield-read")
        self._local = threading.local()
        self._open: list[Connection] = []
        self.connection: Connection | None = None
        self._thread = threading.Thread(target=self._run, name="fairshield-write", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watchers: dict[str | None, set[asyncio.Event]] = {}
        self._follower: asyncio.Task[None] | None = None

    # From the event loop ----------------------------------------------------------------------

    async def start(self) -> None:
        """Open the store, bring its schema up to date, and load all streams."""
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._open_store)
        names = await self.read(lambda connection: connection.streams())
        self._thread.start()
        self.status = "ready"
        for _, name in names:
            self._put(Query(None, name, nothing))
        if self.database.shared:
            self._follower = self._loop.create_task(self._follow())

    async def stop(self) -> None:
        """Answer what has arrived, then stop."""
        if self._follower is not None:
            self._follower.cancel()
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)
        self.status = "stopped"
        await asyncio.to_thread(self._end_readers)
        self.database.close()

    async def submit(
        self, stream: str, command: Command, *, key: str | None = None, actor: str | None = None
    ) -> bytes:
        """Apply a command; its answer as JSON, once it is on disk."""
        answer: bytes = await self._asked(lambda future: Ask(future, stream, command, key, actor))
        return answer

    async def query(self, stream: str, look: Callable[[LiveStream], T]) -> T:
        """What ``look`` sees of a stream whose entries are all on disk."""
        seen: T = await self._asked(lambda future: Query(future, stream, look))
        return seen

    async def survey(
        self,
        streams: Sequence[str],
        look: Callable[[LiveStream], T],
        last: Callable[[LiveStream], T | None] = lambda live: None,
    ) -> dict[str, T | Refusal]:
        """:meth:`query` of many streams in one go; of those that cannot be seen, why.

        Of a stream that is busy with a plan ``last`` may say what was seen last.
        """
        found: dict[str, T | Refusal]
        found = await self._asked(lambda future: Survey(future, streams, look, last))
        rest = [name for name in streams if name not in found]
        asked = await asyncio.gather(
            *(self.query(name, look) for name in rest), return_exceptions=True
        )
        for name, seen in zip(rest, asked, strict=True):
            if isinstance(seen, BaseException) and not isinstance(seen, Refusal):
                raise seen
            found[name] = seen
        return found

    async def write(self, change: Callable[[Connection], T]) -> T:
        """Run ``change`` in a transaction of its own."""
        done: T = await self._asked(lambda future: Write(future, change))
        return done

    async def read(self, look: Callable[[Connection], T]) -> T:
        """Run ``look`` on a connection that reads, in another thread."""
        assert self._loop is not None
        if self.status == "recovering":  # what can be read may not be on disk yet
            raise Refusal("unavailable", f"the store cannot be read: {self.fault}", retry_after=1)
        return await self._loop.run_in_executor(self._readers, self.reading, look)

    async def think(self, look: Callable[[Connection], T]) -> T:
        """:meth:`read`, for what takes long: one at a time, and few may wait."""
        assert self._loop is not None
        if self._thoughts >= _MOST_THOUGHTS:
            raise Refusal(
                "unavailable", "too many explanations and forecasts are asked for", retry_after=2
            )
        self._thoughts += 1
        try:
            return await self._loop.run_in_executor(self._thinker, self.reading, look)
        finally:
            self._thoughts -= 1

    async def create(self, request: StreamRequest, *, actor: str | None = None) -> bool:
        """Create a stream; whether it is new.  One with the same settings is the same stream."""
        created = Created(
            stream=request.name, seq=0, at=self.now(), policy=request.policy,
            windows=request.windows, human=request.human, actor=actor,
        )  # fmt: skip
        return await self.write(lambda connection: create_stream(connection, created))

    def watch(self, stream: str | None, event: asyncio.Event) -> Callable[[], None]:
        """Set ``event`` whenever the stream (``None``: any) changes; returns how to end it."""
        watchers = self._watchers.setdefault(stream, set())
        watchers.add(event)
        return lambda: watchers.discard(event)

    async def _follow(self) -> None:
        """Look at streams that are watched, which reads what other processes have added."""
        while True:
            await asyncio.sleep(_NEWS_EVERY)
            watched = {name for name, events in self._watchers.items() if events}
            if None in watched:
                with contextlib.suppress(Refusal):
                    watched |= {name for _, name in await self.read(lambda c: c.streams())}
            for name in watched if self.status == "ready" else ():
                if name is not None:
                    self._put(Query(None, name, nothing))

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop it was started in."""
        assert self._loop is not None
        return self._loop

    @property
    def waiting(self) -> int:
        """Requests that have not been taken up."""
        return len(self._queue)

    @property
    def loading(self) -> int:
        """Streams that are being replayed."""
        return sum(slot.loading for slot in list(self.slots.values()))

    async def _asked(self, job: Callable[[asyncio.Future[Any]], Job]) -> Any:
        assert self._loop is not None
        if self.status != "ready" or self._stopping:
            raise self.unavailable()
        if len(self._queue) >= MOST_WAITING:
            raise Refusal("unavailable", f"{len(self._queue)} requests are waiting", retry_after=1)
        future = self._loop.create_future()
        self._put(job(future))
        return await future

    def unavailable(self) -> Refusal:
        """Why nothing can be answered now."""
        why = "the service is stopping" if self._stopping else self.fault or "it is starting"
        return Refusal("unavailable", f"nothing is known to be recorded: {why}", retry_after=1)

    def _put(self, job: Job) -> None:
        with self._wake:
            self._queue.append(job)
            self._wake.notify()

    def put_first(self, jobs: Sequence[Job]) -> None:
        """Do these before anything else."""
        with self._wake:
            self._queue.extendleft(reversed(jobs))

    # Connections ------------------------------------------------------------------------------

    def _open_store(self) -> None:
        connection = self.database.connect()
        try:
            for migration in connection.migrate(self.database.migrations()):
                logger.info("schema: %s", migration.name)
            connection.settle()
        except BaseException:
            connection.close()
            raise
        self.connection = connection

    def _end_readers(self) -> None:
        """Close connections that read, when nobody uses them any more."""
        for pool in (self._thinker, self._loaders, self._planners):
            pool.shutdown(cancel_futures=True)
        self._readers.shutdown()
        for connection in self._open:
            connection.close()

    def reading(self, look: Callable[[Connection], T]) -> T:
        """Run ``look``; once more with a new connection if the old one is of no use."""
        for attempt in (1, 2):
            connection = getattr(self._local, "connection", None)
            try:
                if connection is None:
                    connection = self._local.connection = self.database.connect()
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

    # The writing thread -----------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._queue and not (self._stopping and self._idle()):
                    self._wake.wait(0.1 if self._stopping else None)
                if not self._queue:
                    break
                batch = Batch(self, self._take())
            try:
                batch.run()
            except StoreError as error:
                self._recover(error, batch)
            except (
                Exception,
                asyncio.CancelledError,
            ) as error:  # a mistake of ours, not the disk's
                logger.exception("the writing thread failed")
                self._recover(error, batch)
            else:
                self._tell(batch.answers, batch.touched)
        if self.connection is not None:
            self.connection.close()

    def _idle(self) -> bool:
        return not any(slot.busy or slot.waiting for slot in self.slots.values())

    def _take(self) -> list[Job]:
        jobs, decisions = [], 0
        while self._queue and decisions < _MOST_AT_ONCE:
            job = self._queue.popleft()
            decisions += job.command.decisions if isinstance(job, Ask) else 1
            jobs.append(job)
        return jobs

    def _tell(self, answers: list[tuple[asyncio.Future[Any], Any]], touched: Iterable[str]) -> None:
        """Hand results to the event loop, all at once."""
        if self._loop is not None and (answers or touched):
            try:
                self._loop.call_soon_threadsafe(self._deliver, answers, set(touched))
            except RuntimeError:  # the loop is closed: nobody waits any more
                logger.debug("answers came too late")

    def _deliver(self, answers: list[tuple[asyncio.Future[Any], Any]], touched: set[str]) -> None:
        for future, result in answers:
            if future.done():
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
        for name in touched:
            for event in self._watchers.get(name, ()):
                event.set()
        if touched:
            for event in self._watchers.get(None, ()):
                event.set()

    def _recover(self, error: BaseException, batch: Batch) -> None:
        """Stop answering, forget everything, and begin again from what is on disk."""
        self.figures.failures += 1
        self.fault = "the store failed, and is being opened again"
        self.status = "recovering"
        logger.error("the store failed, reading it again: %s", error)
        if self.connection is not None:
            self.connection.rollback()
            self.connection.close()
            self.connection = None
        held = [job for slot in self.slots.values() for job in (*slot.waiting, slot.busy) if job]
        self.slots = {}
        self._refuse([*batch.futures(), *(job.future for job in held)])
        pause = 0.05
        while not self._stopping:
            try:
                self._open_store()
            except Exception as again:
                logger.warning("the store cannot be opened yet: %s", again)
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                with self._wake:
                    late = list(self._queue)
                    self._queue.clear()
                self._refuse(job.future for job in late)
                continue
            self.status, self.fault = "ready", None
            logger.info("the store works again")
            return
        with self._wake:
            late = list(self._queue)
            self._queue.clear()
        self._refuse(job.future for job in late)

    def _refuse(self, futures: Iterable[asyncio.Future[Any] | None]) -> None:
        why = self.unavailable()
        self._tell([(future, why) for future in futures if future is not None], ())

    def now(self) -> str:
        """The time, as entries say it."""
        return self._clock().isoformat(timespec="microseconds").replace("+00:00", "Z")

    # Other threads ----------------------------------------------------------------------------

    def load(self, slot: Slot) -> None:
        """Read a stream from disk, in another thread."""
        slot.loading = True
        self._loaders.submit(self._loaded, slot)

    def _loaded(self, slot: Slot) -> None:
        live, error = None, None
        try:
            live = self.reading(lambda connection: load_stream(slot.name, connection, self.shelf))
        except Exception as caught:
            error = caught
        self._put(Loaded(None, slot, live, error))

    def apply_elsewhere(self, slot: Slot, job: Ask | Query, by: Author | None) -> None:
        """Do what may take long in another thread; the stream is busy meanwhile."""
        slot.busy = job
        self._planners.submit(self._applied, slot, job, by)

    def _applied(self, slot: Slot, job: Ask | Query, by: Author | None) -> None:
        live, rows, result, error = slot.live, [], None, None
        assert live is not None
        try:
            if isinstance(job, Query):
                result = job.look(live)
            else:
                assert by is not None
                rows = job.command.apply(live, by)
        except Exception as caught:
            error = caught
        self._put(Applied(None, slot, job, rows, result, error))
