"""Engine runs the thread that writes: it takes requests, commits in groups, then answers.

All requests that arrive during one commit are the next batch.  For each batch it does this:

1. begin a transaction; where other processes write as well, lock the streams and replay what
   those processes have added;
2. look for idempotency keys that have been used before: those requests get their old answers;
3. let every other request change its stream in memory, which makes the entries of its log;
4. store the entries and commit.  Only now answer.

If storing fails, all requests of the batch are answered with 503, all streams are dropped from
memory, and the logs are read from disk again.  A failed sync is not repeated, because the operating
system may have dropped the pages that it failed to write.

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

from fairshield.base.words import written
from fairshield.service.engine.commands import Command
from fairshield.service.engine.jobs import (
    Applied,
    Ask,
    Figures,
    Job,
    Loaded,
    Slot,
    StreamLook,
    Survey,
    Write,
)
from fairshield.service.engine.readers import Readers
from fairshield.service.engine.transaction import Transaction, nothing
from fairshield.service.history.loading import create_stream, load_stream
from fairshield.service.log.entries import Created
from fairshield.service.log.live import Author, LiveStream
from fairshield.service.store import Connection, Database, StoreError
from fairshield.service.store.policies import LoadedPolicies
from fairshield.wire.messages import StreamRequest
from fairshield.wire.problems import Refusal

T = TypeVar("T")
Status = Literal["starting", "ready", "recovering", "stopped"]
logger = logging.getLogger("fairshield.service")

MOST_WAITING = 20_000
"""Requests that may wait for their turn; more are refused, so that waiting stays short."""
_MOST_AT_ONCE = 4_000
"""Decisions in one commit."""
_LONGEST_PAUSE = 5.0
"""Seconds between attempts to open the store again."""
_FOLLOW_EVERY = 0.5
"""Seconds between looks for entries that other processes have added to watched streams."""


def utc_now() -> datetime:
    """The time that entries record; the order of entries does not depend on it."""
    return datetime.now(UTC)


class Engine:
    """Engine decides requests to the streams of a database.

    Its coroutines belong to the event loop that called :meth:`start`.

    Parameters
    ----------
    database
        Where logs are kept.
    policies
        Where policies are loaded from.
    clock
        The time, for entries.
    """

    def __init__(
        self,
        database: Database,
        policies: LoadedPolicies,
        *,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.database, self.policies, self.figures = database, policies, Figures()
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
        self.readers = Readers(database)
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
            self._put(StreamLook(None, name, nothing))
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
        await asyncio.to_thread(self._end_threads)
        self.database.close()

    async def submit(
        self, stream: str, command: Command, *, key: str | None = None, actor: str | None = None
    ) -> bytes:
        """Apply a command; returns its answer as JSON once its entries are on disk."""
        answer: bytes = await self._asked(lambda future: Ask(future, stream, command, key, actor))
        return answer

    async def query(self, stream: str, look: Callable[[LiveStream], T]) -> T:
        """Return what ``look`` sees of a stream whose entries are all on disk."""
        seen: T = await self._asked(lambda future: StreamLook(future, stream, look))
        return seen

    async def survey(
        self,
        streams: Sequence[str],
        look: Callable[[LiveStream], T],
        last: Callable[[LiveStream], T | None] = lambda live: None,
    ) -> dict[str, T | Refusal]:
        """:meth:`query` for many streams at once; a refusal for each that cannot be loaded.

        While a stream is busy making a plan, ``last`` may return an earlier result for it.
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
        if self.status == "recovering":  # what can be read may not be on disk yet
            raise Refusal("unavailable", f"the store cannot be read: {self.fault}", retry_after=1)
        return await self.readers.read(look)

    async def create(self, request: StreamRequest, *, actor: str | None = None) -> bool:
        """Create a stream, unless it exists with the same settings; whether it is new."""
        created = Created(
            stream=request.name, seq=0, at=self.now(), policy=request.policy,
            windows=request.windows, human=request.human, actor=actor,
        )  # fmt: skip
        return await self.write(lambda connection: create_stream(connection, created))

    def watch(self, stream: str | None, event: asyncio.Event) -> Callable[[], None]:
        """Set ``event`` when a stream (``None``: any) changes; returns a function to end this."""
        watchers = self._watchers.setdefault(stream, set())
        watchers.add(event)
        return lambda: watchers.discard(event)

    async def _follow(self) -> None:
        """Query watched streams regularly, which replays what other processes have added."""
        while True:
            await asyncio.sleep(_FOLLOW_EVERY)
            watched = {name for name, events in self._watchers.items() if events}
            if None in watched:
                with contextlib.suppress(Refusal):
                    watched |= {name for _, name in await self.read(lambda c: c.streams())}
            for name in watched if self.status == "ready" else ():
                if name is not None:
                    self._put(StreamLook(None, name, nothing))

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
        """Put these jobs at the head of the queue."""
        with self._wake:
            self._queue.extendleft(reversed(jobs))

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

    # The writing thread -----------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._queue and not (self._stopping and self._idle()):
                    self._wake.wait(0.1 if self._stopping else None)
                if not self._queue:
                    break
                batch = Transaction(self, self._take())
            try:
                batch.run()
            except StoreError as error:
                self._recover(error, batch)
            except (Exception, asyncio.CancelledError) as error:
                # A fault of this program, not of the store.
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
            except RuntimeError:  # the loop is closed, and with it all requests
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

    def _recover(self, error: BaseException, batch: Transaction) -> None:
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
                self._refuse_waiting()
                continue
            self.status, self.fault = "ready", None
            logger.info("the store works again")
            return
        self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        with self._wake:
            late = list(self._queue)
            self._queue.clear()
        self._refuse(job.future for job in late)

    def _refuse(self, futures: Iterable[asyncio.Future[Any] | None]) -> None:
        why = self.unavailable()
        self._tell([(future, why) for future in futures if future is not None], ())

    def now(self) -> str:
        """The time as entries record it."""
        return written(self._clock(), "microseconds")

    # Other threads ----------------------------------------------------------------------------

    def _end_threads(self) -> None:
        for pool in (self._loaders, self._planners):
            pool.shutdown(cancel_futures=True)
        self.readers.close()

    def load(self, slot: Slot) -> None:
        """Read a stream from disk, in another thread."""
        slot.loading = True
        self._loaders.submit(self._loaded, slot)

    def _loaded(self, slot: Slot) -> None:
        live, error = None, None
        try:
            live = self.readers.run(lambda c: load_stream(slot.name, c, self.policies))
        except Exception as caught:
            error = caught
        self._put(Loaded(None, slot, live, error))

    def apply_elsewhere(self, slot: Slot, job: Ask | StreamLook, by: Author | None) -> None:
        """Do what may take long in another thread; the stream is busy meanwhile."""
        slot.busy = job
        self._planners.submit(self._applied, slot, job, by)

    def _applied(self, slot: Slot, job: Ask | StreamLook, by: Author | None) -> None:
        live, logged, result, error = slot.live, [], None, None
        assert live is not None
        try:
            if isinstance(job, StreamLook):
                result = job.look(live)
            else:
                assert by is not None
                logged = job.command.apply(live, by)
        except Exception as caught:
            error = caught
        self._put(Applied(None, slot, job, logged, result, error))
