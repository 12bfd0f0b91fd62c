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
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, TypeVar

import msgspec

from fairshield.errors import FairshieldError
from fairshield.policy import Policy
from fairshield.service.commands import Command
from fairshield.service.entries import BEGINNING, Created, Row, chained, entry_of
from fairshield.service.live import (
    AnyPolicy,
    Author,
    BrokenLogError,
    LiveStream,
    Snapshot,
    WindowRow,
)
from fairshield.service.messages import StreamRequest
from fairshield.service.policies import Shelf
from fairshield.service.problems import Refusal, refusal
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
_NEWS_EVERY = 0.5
"""Seconds after which those who watch a stream hear of what other processes have added to it."""


def utc_now() -> datetime:
    """The time, for entries; nothing depends on its order."""
    return datetime.now(UTC)


@dataclass(slots=True)
class _Job:
    """Something for the writing thread, and the future that waits for it."""

    future: asyncio.Future[Any] | None


@dataclass(slots=True)
class _Ask(_Job):
    """A command for a stream."""

    stream: str
    command: Command
    key: str | None
    actor: str | None


@dataclass(slots=True)
class _Query(_Job):
    """A look at a stream as it is on disk."""

    stream: str
    look: Callable[[LiveStream], Any]


@dataclass(slots=True)
class _Write(_Job):
    """A transaction of its own."""

    write: Callable[[Connection], Any]


@dataclass(slots=True)
class _Loaded(_Job):
    """A stream that was read from disk in another thread."""

    slot: _Slot
    live: LiveStream | None
    error: Exception | None


@dataclass(slots=True)
class _Applied(_Job):
    """A command that was applied, or a look that was taken, in another thread."""

    slot: _Slot
    job: _Ask | _Query
    rows: list[Row]
    result: Any
    error: Exception | None


@dataclass(slots=True)
class _Slot:
    """A stream's place in memory; ``live`` is ``None`` while it is loaded or cannot be."""

    name: str
    live: LiveStream | None = None
    busy: _Ask | _Query | None = None
    loading: bool = False
    broken: Refusal | None = None
    waiting: deque[_Ask | _Query] = field(default_factory=deque)

    @property
    def ready(self) -> bool:
        return self.live is not None and self.busy is None


@dataclass(slots=True)
class Figures:
    """What the engine has done so far."""

    commits: int = 0
    entries: int = 0
    commit_seconds: float = 0.0
    failures: int = 0
    repeats: int = 0


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
        self._queue: deque[_Job] = deque()
        self._wake = threading.Condition()
        self._stopping = False
        self._slots: dict[str, _Slot] = {}
        self._planners = ThreadPoolExecutor(2, "fairshield-plan")
        self._readers = ThreadPoolExecutor(4, "fairshield-read")
        self._local = threading.local()
        self._open: list[Connection] = []
        self._connection: Connection | None = None
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
            self._put(_Query(None, name, _nothing))
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
        answer: bytes = await self._asked(lambda future: _Ask(future, stream, command, key, actor))
        return answer

    async def query(self, stream: str, look: Callable[[LiveStream], T]) -> T:
        """What ``look`` sees of a stream whose entries are all on disk."""
        seen: T = await self._asked(lambda future: _Query(future, stream, look))
        return seen

    async def write(self, change: Callable[[Connection], T]) -> T:
        """Run ``change`` in a transaction of its own."""
        done: T = await self._asked(lambda future: _Write(future, change))
        return done

    async def read(self, look: Callable[[Connection], T]) -> T:
        """Run ``look`` on a connection that reads, in another thread."""
        assert self._loop is not None
        if self.status == "recovering":  # what can be read may not be on disk yet
            raise self._unavailable()
        return await self._loop.run_in_executor(self._readers, self.reading, look)

    async def create(self, request: StreamRequest, *, actor: str | None = None) -> bool:
        """Create a stream; whether it is new.  One with the same settings is the same stream."""
        created = Created(
            stream=request.name, seq=0, at=self._now(), policy=request.policy,
            windows=request.windows, human=request.human, actor=actor,
        )  # fmt: skip
        return await self.write(lambda connection: _create(connection, created))

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
                    self._put(_Query(None, name, _nothing))

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
        return sum(slot.loading for slot in list(self._slots.values()))

    async def _asked(self, job: Callable[[asyncio.Future[Any]], _Job]) -> Any:
        assert self._loop is not None
        if self.status != "ready" or self._stopping:
            raise self._unavailable()
        if len(self._queue) >= MOST_WAITING:
            raise Refusal("unavailable", f"{len(self._queue)} requests are waiting", retry_after=1)
        future = self._loop.create_future()
        self._put(job(future))
        return await future

    def _unavailable(self) -> Refusal:
        why = "the service is stopping" if self._stopping else self.fault or "it is starting"
        return Refusal("unavailable", f"nothing is known to be recorded: {why}", retry_after=1)

    def _put(self, job: _Job) -> None:
        with self._wake:
            self._queue.append(job)
            self._wake.notify()

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
        self._connection = connection

    def _end_readers(self) -> None:
        """Close connections that read, when nobody uses them any more."""
        self._planners.shutdown(cancel_futures=True)
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
                    raise Refusal(
                        "unavailable", f"the store cannot be read: {error}", retry_after=1
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
                batch = _Batch(self, self._take())
            try:
                batch.run()
            except StoreError as error:
                self._recover(error, batch)
            except Exception as error:  # a mistake of ours: what is on disk is still right
                logger.exception("the writing thread failed")
                self._recover(error, batch)
            else:
                self._tell(batch.answers, batch.touched)
        if self._connection is not None:
            self._connection.close()

    def _idle(self) -> bool:
        return not any(slot.busy or slot.waiting for slot in self._slots.values())

    def _take(self) -> list[_Job]:
        jobs, decisions = [], 0
        while self._queue and decisions < _MOST_AT_ONCE:
            job = self._queue.popleft()
            decisions += job.command.decisions if isinstance(job, _Ask) else 1
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

    def _recover(self, error: Exception, batch: _Batch) -> None:
        """Stop answering, forget everything, and begin again from what is on disk."""
        self.figures.failures += 1
        self.fault = f"the store failed ({error})"
        self.status = "recovering"
        logger.error("the store failed, reading it again: %s", error)
        if self._connection is not None:
            self._connection.rollback()
            self._connection.close()
            self._connection = None
        held = [job for slot in self._slots.values() for job in (*slot.waiting, slot.busy) if job]
        self._slots = {}
        self._refuse([*batch.futures(), *(job.future for job in held)])
        pause = 0.05
        while not self._stopping:
            try:
                self._open_store()
            except Exception as again:
                self.fault = f"the store cannot be opened ({again})"
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
        why = self._unavailable()
        self._tell([(future, why) for future in futures if future is not None], ())

    def _now(self) -> str:
        return self._clock().isoformat(timespec="microseconds").replace("+00:00", "Z")

    # Other threads ----------------------------------------------------------------------------

    def _load(self, slot: _Slot) -> None:
        """Read a stream from disk, in another thread."""
        slot.loading = True
        self._planners.submit(self._loaded, slot)

    def _loaded(self, slot: _Slot) -> None:
        live, error = None, None
        try:
            live = self.reading(lambda connection: load_stream(slot.name, connection, self.shelf))
        except Exception as caught:
            error = caught
        self._put(_Loaded(None, slot, live, error))

    def _apply_elsewhere(self, slot: _Slot, job: _Ask | _Query, by: Author | None) -> None:
        slot.busy = job
        self._planners.submit(self._applied, slot, job, by)

    def _applied(self, slot: _Slot, job: _Ask | _Query, by: Author | None) -> None:
        live, rows, result, error = slot.live, [], None, None
        assert live is not None
        try:
            if isinstance(job, _Query):
                result = job.look(live)
            else:
                assert by is not None
                rows = job.command.apply(live, by)
        except Exception as caught:
            error = caught
        self._put(_Applied(None, slot, job, rows, result, error))


class _Batch:
    """One transaction, and everything that is answered after it."""

    def __init__(self, engine: Engine, jobs: list[_Job]) -> None:
        self.engine, self.jobs = engine, jobs
        self.answers: list[tuple[asyncio.Future[Any], Any]] = []
        self.touched: set[str] = set()
        self._after: list[Callable[[], None]] = []
        self._rows: list[Row] = []
        self._windows: list[WindowRow] = []
        self._asks: list[tuple[_Slot, _Ask]] = []
        self._looks: list[tuple[_Slot, _Query]] = []
        self._done: list[_Applied] = []
        self._known: dict[tuple[int, str], list[Row]] = {}
        self._by = engine._now()

    @property
    def _store(self) -> Connection:
        assert self.engine._connection is not None
        return self.engine._connection

    def run(self) -> None:
        """Sort the jobs, commit what they led to, and make their answers."""
        for job in self.jobs:
            match job:
                case _Write():
                    self._write(job)
                case _Loaded():
                    self._take_in(job)
                case _Applied():
                    self._take_back(job)
                case _Ask() | _Query():
                    self._route(job)
        if self._asks or self._done:
            self._commit()
        if self._looks:
            self._catch_up()
        for step in self._after:
            step()

    def futures(self) -> Iterable[asyncio.Future[Any] | None]:
        """Everybody who would have been answered."""
        for job in self.jobs:
            yield job.job.future if isinstance(job, _Applied) else job.future
        for future, _ in self.answers:  # those of requests that had waited for their stream, too
            yield future

    # Sorting ----------------------------------------------------------------------------------

    def _route(self, job: _Ask | _Query) -> None:
        slots = self.engine._slots
        slot = slots.get(job.stream)
        if slot is None:
            slot = slots[job.stream] = _Slot(job.stream)
            self.engine._load(slot)
        if slot.broken is not None:
            self._answer(job, slot.broken)
        elif not slot.ready:
            slot.waiting.append(job)
        elif isinstance(job, _Ask):
            self._asks.append((slot, job))
        else:
            self._looks.append((slot, job))

    def _look(self, slot: _Slot, job: _Query) -> None:
        live = slot.live
        if slot.broken is not None:
            self._answer(job, slot.broken)
        elif live is None or slot.busy is not None:
            slot.waiting.append(job)
        elif not live.planned:
            self.engine._apply_elsewhere(slot, job, None)
        else:
            try:
                self._answer(job, job.look(live))
            except Exception as error:
                self._failed(slot, job, error)

    def _write(self, job: _Write) -> None:
        store = self._store
        try:
            store.begin()
            result = job.write(store)
            store.commit()
        except StoreError:
            raise
        except FairshieldError as error:
            store.rollback()
            result = refusal(error)
        self._answer(job, result)

    def _take_in(self, job: _Loaded) -> None:
        slot, error = job.slot, job.error
        if self.engine._slots.get(slot.name) is not slot:
            return
        slot.loading = False
        slot.live = job.live
        if isinstance(error, Refusal) and error.kind in ("not-found", "unavailable"):
            del self.engine._slots[slot.name]
            for waiting in slot.waiting:
                self._answer(waiting, error)
        elif error is not None:
            self._give_up(slot, error)
        else:
            self._resume(slot)
            self.touched.add(slot.name)

    def _give_up(self, slot: _Slot, error: Exception) -> None:
        """Refuse a stream whose log is broken, and only that stream."""
        # Not what it says, which quotes entries.
        logger.error("stream %s: its log does not replay (fairshield audit --db)", slot.name)
        slot.live, slot.broken = None, Refusal("log-broken", str(error))
        for waiting in slot.waiting:
            self._answer(waiting, slot.broken)
        slot.waiting.clear()

    def _resume(self, slot: _Slot) -> None:
        """Take up what has waited for a stream, before anything newer."""
        with self.engine._wake:
            self.engine._queue.extendleft(reversed(slot.waiting))
        slot.waiting.clear()

    def _take_back(self, job: _Applied) -> None:
        slot = job.slot
        if self.engine._slots.get(slot.name) is not slot:
            self._answer(job.job, self.engine._unavailable())
            return
        self._done.append(job)

    # The transaction --------------------------------------------------------------------------

    def _commit(self) -> None:
        store, figures = self._store, self.engine.figures
        begun = time.perf_counter()
        store.begin()
        numbers = {slot.live.number for slot, _ in self._asks if slot.live is not None}
        numbers |= {done.slot.live.number for done in self._done if done.slot.live is not None}
        heads = store.lock(sorted(numbers))
        for done in self._done:
            self._store_applied(done, heads)
        self._asks = [(slot, ask) for slot, ask in self._asks if self._caught_up(slot, ask, heads)]
        self._find_repeats()
        for slot, ask in self._asks:
            self._apply(slot, ask)
        if self._rows:
            store.append(self._rows)
            if self._windows:
                store.put_windows(self._windows)
            store.commit()
            figures.commits += 1
            figures.entries += len(self._rows)
            seconds = time.perf_counter() - begun
            figures.commit_seconds += seconds
            requests = len(self._asks) + len(self._done)
            self.engine.committed(len(self._rows), requests, seconds)
        else:
            store.rollback()

    def _store_applied(self, done: _Applied, heads: dict[int, int]) -> None:
        slot, live = done.slot, done.slot.live
        assert live is not None
        slot.busy = None
        if done.rows and heads.get(live.number, done.rows[0].seq - 1) != done.rows[0].seq - 1:
            # Another process has added to the stream meanwhile: apply it to what is there now.
            slot.waiting.appendleft(done.job)
            self._reload(slot)
            return
        if done.error is not None:
            self._failed(slot, done.job, done.error)
        elif isinstance(done.job, _Query):
            self._answer(done.job, done.result)
        else:
            self._keep(slot, done.job, done.rows)
        if slot.live is not None:
            self._after.append(lambda: self._resume(slot))

    def _catch_up(self) -> None:
        """Read what others have added to streams that are looked at."""
        heads = self._store.ends({s.live.number for s, _ in self._looks if s.live is not None})
        for slot, job in self._looks:
            if self._caught_up(slot, job, heads):
                self._after.append(partial(self._look, slot, job))

    def _caught_up(self, slot: _Slot, job: _Ask | _Query, heads: dict[int, int]) -> bool:
        """Whether the stream is as it is on disk, after reading what others have added."""
        live = slot.live
        if slot.broken is not None:
            self._answer(job, slot.broken)
            return False
        if live is None or slot.busy is not None:
            slot.waiting.append(job)
            return False
        head = heads.get(live.number, live.seq)
        if head == live.seq:
            return True
        try:
            if head < live.seq:
                raise BrokenLogError(
                    f"the log of stream {live.name!r} ends at entry {head}, but entry {live.seq} "
                    "has been answered: the database has lost entries"
                )
            for row in self._store.entries(live.number, after=live.seq):
                if live.takes_long():
                    slot.waiting.append(job)
                    self._reload(slot)
                    return False
                live.replay(row)
        except BrokenLogError as error:
            slot.waiting.append(job)
            self._give_up(slot, error)
            return False
        live.ended.clear()
        self.touched.add(slot.name)
        return True

    def _find_repeats(self) -> None:
        keys = [
            (slot.live.number, ask.key)
            for slot, ask in self._asks
            if slot.live is not None and ask.key is not None
        ]
        for found, row in self._store.find(keys).items() if keys else ():
            self._known[found] = [row]

    def _apply(self, slot: _Slot, ask: _Ask) -> None:
        live = slot.live
        if live is None or slot.busy is not None:  # since a request before this one
            slot.waiting.append(ask)
            return
        known = None if ask.key is None else self._known.get((live.number, ask.key))
        if known is not None:
            self._repeat(live, ask, known)
            return
        by = Author(self._by, ask.key, ask.actor)
        if live.takes_long(ask.command.decisions):
            self.engine._apply_elsewhere(slot, ask, by)
            return
        try:
            rows = ask.command.apply(live, by)
        except Exception as error:
            self._failed(slot, ask, error)
            return
        self._keep(slot, ask, rows)

    def _keep(self, slot: _Slot, ask: _Ask, rows: list[Row]) -> None:
        """Store what a command led to, and answer it afterwards."""
        live = slot.live
        assert live is not None
        self._rows += rows
        self._windows += live.ended
        live.ended.clear()
        if ask.key is not None and rows:
            self._known[live.number, ask.key] = rows
        if rows:
            self.touched.add(slot.name)
        self._after.append(lambda: self._reply(live, ask, rows))
        if not live.planned:
            # Before anybody asks: the plan of the next period.
            self._after.append(lambda: self._look(slot, _Query(None, slot.name, _plan)))

    def _reply(self, live: LiveStream, ask: _Ask, rows: list[Row]) -> None:
        try:
            self._answer(ask, msgspec.json.encode(ask.command.answer(live, rows)))
        except FairshieldError as error:
            self._answer(ask, refusal(error))

    def _repeat(self, live: LiveStream, ask: _Ask, rows: list[Row]) -> None:
        """Answer a request that was answered before; refuse another one with its key."""
        self.engine.figures.repeats += 1
        first = entry_of(rows[0].line)
        size = getattr(first, "size", 1)
        if len(rows) < size:
            rows = self._store.entries(live.number, after=first.seq - 1, limit=size)
        if ask.command.repeats(live, [entry_of(row.line) for row in rows]):
            self._after.append(lambda: self._reply(live, ask, rows))
            return
        kind = {"decision": "decided on other people"}.get(
            _kind(first), f"recorded an {_kind(first)}"
        )
        self._answer(
            ask,
            Refusal(
                "key-reused",
                f"the key {ask.key!r} {kind} before (entry {first.seq} of stream {ask.stream!r})",
            ),
        )

    def _failed(self, slot: _Slot, job: _Ask | _Query, error: Exception) -> None:
        live = slot.live
        if live is not None and live.torn:
            self._reload(slot)
        if isinstance(error, FairshieldError):
            self._answer(job, refusal(error))
            return
        logger.error("stream %s: a request failed", slot.name, exc_info=error)
        self._answer(job, Refusal("unavailable", f"nothing was recorded: {type(error).__name__}"))

    def _reload(self, slot: _Slot) -> None:
        """Forget what is in memory; read it again once this transaction is over."""
        slot.live = None
        slot.loading = True
        self._after.append(lambda: self.engine._load(slot))

    def _answer(self, job: _Job, result: Any) -> None:
        if job.future is not None:
            self.answers.append((job.future, result))


def _kind(entry: msgspec.Struct) -> str:
    return str(entry.__struct_config__.tag)


def _nothing(live: LiveStream) -> None:
    """Look at a stream only for it to be loaded, or to catch up."""


def _plan(live: LiveStream) -> None:
    """Make the plan of the period that comes next."""
    _ = live.guaranteed


def _create(connection: Connection, created: Created) -> bool:
    number = connection.insert_stream(created.stream)
    if number is not None:
        connection.append([chained(created, number, BEGINNING)])
        return True
    number = connection.stream(created.stream)
    assert number is not None
    there = entry_of(connection.entries(number, limit=1)[0].line)
    assert isinstance(there, Created)
    settings = ("policy", "windows", "human")
    for setting in settings:
        if getattr(there, setting) != getattr(created, setting):
            raise Refusal(
                "name-taken",
                f"stream {created.stream!r} exists with {setting} = {getattr(there, setting)!r}, "
                f"not {getattr(created, setting)!r}",
            )
    return False


def load_stream(name: str, connection: Connection, shelf: Shelf) -> LiveStream:
    """A stream as its log says: from the end of its last window on, every entry is replayed.

    Raises
    ------
    Refusal
        If there is no such stream.
    BrokenLogError
        If the log does not replay.
    """
    number = connection.stream(name)
    if number is None:
        raise Refusal("not-found", f"there is no stream {name!r}")
    created, hash = first_entry(number, connection)
    policy = shelf.policy(created.policy, connection)
    ended = connection.last_window(number)
    if ended is not None and (created.human or _still_shown(ended, policy, connection)):
        # What a person may still override lies in the last window, even if that is over.
        ended = connection.last_window(number, back=1)
    snapshot = None if ended is None else checked_snapshot(ended, connection)
    live = LiveStream(number, created, policy, hash=hash, snapshot=snapshot)
    for row in connection.entries(number, after=live.seq):
        live.replay(row)
    live.ended.clear()
    return live


def _still_shown(ended: WindowRow, policy: AnyPolicy, connection: Connection) -> bool:
    """Whether a window that is over is the stream's current one, as no other has begun."""
    return isinstance(policy, Policy) and connection.decision(ended.stream, ended.n + 1) is None


def checked_snapshot(ended: WindowRow, connection: Connection) -> Snapshot:
    """The snapshot of a window's end, if the log passes through it."""
    snapshot = msgspec.json.decode(ended.snapshot, type=Snapshot)
    last = connection.entries(ended.stream, after=snapshot.seq - 1, limit=1)
    if not last or last[0].hash.hex() != snapshot.hash:
        raise BrokenLogError(
            f"the end of window {ended.window} of stream number {ended.stream} is not in its log"
        )
    return snapshot


def first_entry(number: int, connection: Connection) -> tuple[Created, bytes]:
    """Entry 0 of a stream, and its hash."""
    first = connection.entries(number, limit=1)
    if not first or first[0].seq != 0:
        raise BrokenLogError(f"stream number {number} has no entry 0")
    created = entry_of(first[0].line)
    expected = chained(created, number, BEGINNING)
    if not isinstance(created, Created) or first[0] != expected:
        raise BrokenLogError(f"entry 0 of stream number {number} does not match its hash")
    return created, first[0].hash
