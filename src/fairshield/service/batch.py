"""One transaction of the writing thread, and everything that is answered after it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from fairshield.errors import FairshieldError
from fairshield.service.entries import AnyEntry, Row, entry_of, follows
from fairshield.service.jobs import Applied, Ask, Figures, Job, Loaded, Query, Slot, Survey, Write
from fairshield.service.live import Author, BrokenLogError, LiveStream
from fairshield.service.problems import Refusal, refusal
from fairshield.service.snapshots import MonitorRow, WindowRow
from fairshield.service.store import Connection, StoreError

logger = logging.getLogger("fairshield.service")


class Desk(Protocol):
    """What the engine lends to a batch."""

    slots: dict[str, Slot]
    connection: Connection | None
    figures: Figures
    committed: Callable[[int, int, float], None]

    def now(self) -> str: ...
    def load(self, slot: Slot) -> None: ...
    def apply_elsewhere(self, slot: Slot, job: Ask | Query, by: Author | None) -> None: ...
    def put_first(self, jobs: Sequence[Job]) -> None: ...
    def unavailable(self) -> Refusal: ...


class Batch:
    """One transaction, and everything that is answered after it."""

    def __init__(self, engine: Desk, jobs: list[Job]) -> None:
        self.engine, self.jobs = engine, jobs
        self.answers: list[tuple[asyncio.Future[Any], Any]] = []
        self.touched: set[str] = set()
        self._after: list[Callable[[], None]] = []
        self._rows: list[Row] = []
        self._windows: list[WindowRow] = []
        self._monitors: dict[int, MonitorRow] = {}
        self._asks: list[tuple[Slot, Ask]] = []
        self._looks: list[tuple[Slot, Query]] = []
        self._done: list[Applied] = []
        self._resumed: list[Ask | Query] = []
        self._known: dict[tuple[int, str], list[Row]] = {}
        self._begun: dict[int, int] = {}
        self._by = engine.now()

    @property
    def _store(self) -> Connection:
        assert self.engine.connection is not None
        return self.engine.connection

    def run(self) -> None:
        """Sort the jobs, commit what they led to, and make their answers."""
        for job in self.jobs:
            match job:
                case Write():
                    self._write(job)
                case Loaded():
                    self._take_in(job)
                case Applied():
                    self._take_back(job)
                case Ask() | Query():
                    self._route(job)
                case Survey():
                    self._after.append(partial(self._survey, job))
        if self._asks or self._done:
            self._commit()
        if self._looks:
            self._catch_up()
        for step in self._after:
            step()

    def futures(self) -> Iterable[asyncio.Future[Any] | None]:
        """Everybody who would have been answered."""
        for job in self.jobs:
            yield job.job.future if isinstance(job, Applied) else job.future
        for waited in self._resumed:
            yield waited.future
        for future, _ in self.answers:  # those of requests that had waited for their stream, too
            yield future

    # Sorting ----------------------------------------------------------------------------------

    def _route(self, job: Ask | Query) -> None:
        slots = self.engine.slots
        slot = slots.get(job.stream)
        if slot is None:
            slot = slots[job.stream] = Slot(job.stream)
            self.engine.load(slot)
        if slot.broken is not None:
            self._answer(job, slot.broken)
        elif not slot.ready:
            slot.waiting.append(job)
        elif isinstance(job, Ask):
            self._asks.append((slot, job))
        else:
            self._looks.append((slot, job))

    def _look(self, slot: Slot, job: Query) -> None:
        live = slot.live
        if slot.broken is not None:
            self._answer(job, slot.broken)
        elif live is None or slot.busy is not None:
            slot.waiting.append(job)
        elif not live.planned:
            self.engine.apply_elsewhere(slot, job, None)
        else:
            try:
                self._answer(job, job.look(live))
            except Exception as error:
                self._failed(slot, job, error)

    def _survey(self, job: Survey) -> None:
        """Answer for those streams that can be seen at once."""
        known = [slot for name in job.streams if (slot := self.engine.slots.get(name)) is not None]
        lives = {slot.name: slot.live for slot in known if slot.live is not None}
        heads = self._store.ends({live.number for live in lives.values()}) if lives else {}
        found = {}
        for slot in known:
            live = lives.get(slot.name)
            if live is None or heads.get(live.number, live.seq) != live.seq:
                continue
            at_once = slot.busy is None and live.planned
            seen = job.look(live) if at_once else job.last(live)
            if seen is not None:
                found[slot.name] = seen
        self._answer(job, found)

    def _write(self, job: Write) -> None:
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

    def _take_in(self, job: Loaded) -> None:
        slot, error = job.slot, job.error
        if self.engine.slots.get(slot.name) is not slot:
            return
        slot.loading = False
        slot.live = job.live
        if isinstance(error, Refusal) and error.kind in ("not-found", "unavailable"):
            del self.engine.slots[slot.name]
            for waiting in slot.waiting:
                self._answer(waiting, error)
        elif isinstance(error, BrokenLogError):
            self._give_up(slot)
        elif error is not None:  # the log may be in order: the next request tries again
            logger.error("stream %s cannot be loaded", slot.name, exc_info=error)
            del self.engine.slots[slot.name]
            for waiting in slot.waiting:
                self._failed(slot, waiting, error)
        else:
            if job.live is not None and job.live.ended:
                self._store_anew(job.live)
            # At once, or what has come since would overtake what has waited.
            resumed, slot.waiting = slot.waiting, deque()
            self._resumed += resumed
            for waited in resumed:
                self._route(waited)
            self.touched.add(slot.name)

    def _store_anew(self, live: LiveStream) -> None:
        """Store the ends of windows that an earlier version had stored."""
        store = self._store
        store.begin()
        store.put_windows(live.ended)
        store.commit()
        live.ended.clear()

    def _give_up(self, slot: Slot) -> None:
        """Refuse a stream whose log is broken, and only that stream."""
        # Not what it says, which quotes entries: that is for those who may audit the database.
        logger.error("stream %s: its log does not replay (fairshield audit --db)", slot.name)
        why = f"the log of stream {slot.name!r} does not replay: fairshield audit --db says where"
        slot.live, slot.broken = None, Refusal("log-broken", why)
        for waiting in slot.waiting:
            self._answer(waiting, slot.broken)
        slot.waiting.clear()

    def _resume(self, slot: Slot) -> None:
        """Take up what has waited for a stream, before anything newer."""
        self.engine.put_first(slot.waiting)
        slot.waiting.clear()

    def _take_back(self, job: Applied) -> None:
        slot = job.slot
        if self.engine.slots.get(slot.name) is not slot:
            self._answer(job.job, self.engine.unavailable())
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
        self._begun = {s.live.number: s.live.seq for s, _ in self._asks if s.live is not None}
        for slot, ask in self._asks:
            self._apply(slot, ask)
        if self._rows:
            store.append(self._rows)
            if self._windows:
                store.put_windows(self._windows)
            if self._monitors:
                store.put_monitors(self._monitors.values())
            store.commit()
            figures.commits += 1
            figures.entries += len(self._rows)
            seconds = time.perf_counter() - begun
            requests = len(self._asks) + len(self._done)
            self.engine.committed(len(self._rows), requests, seconds)
        else:
            store.rollback()

    def _store_applied(self, done: Applied, heads: dict[int, int]) -> None:
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
        elif isinstance(done.job, Query):
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

    def _caught_up(self, slot: Slot, job: Ask | Query, heads: dict[int, int]) -> bool:
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
                if live.replay_takes_long(row):
                    slot.waiting.append(job)
                    self._reload(slot)
                    return False
                live.replay(row)
        except BrokenLogError:
            slot.waiting.append(job)
            self._give_up(slot)
            return False
        live.ended.clear()
        heads[live.number] = live.seq  # perhaps more than was there when it was asked for
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

    def _apply(self, slot: Slot, ask: Ask) -> None:
        live = slot.live
        if live is None or slot.busy is not None:  # since a request before this one
            slot.waiting.append(ask)
            return
        known = None if ask.key is None else self._known.get((live.number, ask.key))
        if known is not None:
            try:
                self._repeat(live, ask, known)
            except (BrokenLogError, ValueError):  # changed since it was answered
                slot.waiting.append(ask)
                self._give_up(slot)
            return
        by = Author(self._by, ask.key, ask.actor)
        if live.takes_long(ask.command.decisions):
            self.engine.apply_elsewhere(slot, ask, by)
            return
        try:
            rows = ask.command.apply(live, by)
        except Exception as error:
            self._failed(slot, ask, error)
            return
        self._keep(slot, ask, rows)

    def _keep(self, slot: Slot, ask: Ask, rows: list[Row]) -> None:
        """Store what a command led to, and answer it afterwards."""
        live = slot.live
        assert live is not None
        self._rows += rows
        self._windows += live.ended
        live.ended.clear()
        stored = None if live.watcher is None else live.watcher.to_store()
        if stored is not None:
            self._monitors[live.number] = stored
        if ask.key is not None and rows:
            self._known[live.number, ask.key] = rows
        if rows:
            self.touched.add(slot.name)
        self._after.append(lambda: self._reply(live, ask, rows))
        if not live.planned:
            # Before anybody asks: the plan of the next period.
            self._after.append(lambda: self._look(slot, Query(None, slot.name, _plan)))

    def _reply(self, live: LiveStream, ask: Ask, rows: list[Row]) -> None:
        try:
            self._answer(ask, msgspec.json.encode(ask.command.answer(live, rows)))
        except FairshieldError as error:
            self._answer(ask, refusal(error))

    def _repeat(self, live: LiveStream, ask: Ask, rows: list[Row]) -> None:
        """Answer a request that was answered before; refuse another one with its key."""
        self.engine.figures.repeats += 1
        first, rows = self._logged(live, rows)
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

    def _logged(self, live: LiveStream, rows: list[Row]) -> tuple[AnyEntry, list[Row]]:
        """What a request led to, as far as the log vouches for it."""
        first = entry_of(rows[0].line)
        size = getattr(first, "size", 1)
        if rows[0].seq > self._begun.get(live.number, live.seq):
            return first, rows  # of this very batch
        before, *found = self._store.entries(live.number, after=first.seq - 2, limit=size + 1)
        for row in found:
            if not follows(row, before.hash):
                raise BrokenLogError(f"entry {row.seq} does not match its hash")
            before = row
        return first, found

    def _failed(self, slot: Slot, job: Ask | Query, error: Exception) -> None:
        live = slot.live
        if live is not None and live.torn:
            self._reload(slot)
        if isinstance(error, FairshieldError):
            self._answer(job, refusal(error))
            return
        logger.error("stream %s: a request failed", slot.name, exc_info=error)
        self._answer(job, Refusal("internal", f"nothing was recorded ({type(error).__name__})"))

    def _reload(self, slot: Slot) -> None:
        """Forget what is in memory; read it again once this transaction is over."""
        slot.live = None
        slot.loading = True
        self._after.append(lambda: self.engine.load(slot))

    def _answer(self, job: Job, result: Any) -> None:
        if job.future is not None:
            self.answers.append((job.future, result))


def _kind(entry: msgspec.Struct) -> str:
    return str(entry.__struct_config__.tag)


def nothing(live: LiveStream) -> None:
    """Look at a stream only for it to be loaded, or to catch up."""


def _plan(live: LiveStream) -> None:
    """Make the plan of the period that comes next."""
    _ = live.guaranteed
