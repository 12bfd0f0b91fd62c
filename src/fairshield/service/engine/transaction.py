"""One transaction of the writing thread, and everything that is answered after it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from fairshield.base.errors import FairshieldError
from fairshield.service.engine.earlier import Earlier, Key, key_reused
from fairshield.service.engine.jobs import (
    Applied,
    Ask,
    BatchHost,
    Job,
    Loaded,
    Slot,
    StreamLook,
    Survey,
    Write,
)
from fairshield.service.log.entries import EntryRow, Logged
from fairshield.service.log.live import Author, BrokenLogError, LiveStream
from fairshield.service.log.snapshots import MonitorRow, WindowRow
from fairshield.service.store import Connection, StoreError
from fairshield.wire.problems import Refusal, refusal

logger = logging.getLogger("fairshield.service")


class Transaction:
    """Transaction carries out waiting jobs in one commit, and then answers them."""

    def __init__(self, engine: BatchHost, jobs: list[Job]) -> None:
        self.engine, self.jobs = engine, jobs
        self.answers: list[tuple[asyncio.Future[Any], Any]] = []
        self.touched: set[str] = set()
        self._after: list[Callable[[], None]] = []
        self._rows: list[EntryRow] = []
        self._windows: list[WindowRow] = []
        self._monitors: dict[int, MonitorRow] = {}
        self._asks: list[tuple[Slot, Ask]] = []
        self._looks: list[tuple[Slot, StreamLook]] = []
        self._done: list[Applied] = []
        self._resumed: list[Ask | StreamLook] = []
        self._earlier = Earlier()
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
                case Ask() | StreamLook():
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
        """Futures of all requests of this batch, which the engine refuses if the batch fails."""
        for job in self.jobs:
            yield job.job.future if isinstance(job, Applied) else job.future
        for waited in self._resumed:
            yield waited.future
        for future, _ in self.answers:  # some waited since earlier batches
            yield future

    # Sorting ----------------------------------------------------------------------------------

    def _route(self, job: Ask | StreamLook) -> None:
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

    def _look(self, slot: Slot, job: StreamLook) -> None:
        live = slot.live
        if slot.broken is not None:
            self._answer(job, slot.broken)
        elif live is None or slot.busy is not None:
            slot.waiting.append(job)
        elif not live.plan_made:
            self.engine.apply_elsewhere(slot, job, None)
        else:
            try:
                self._answer(job, job.look(live))
            except Exception as error:
                self._failed(slot, job, error)

    def _survey(self, job: Survey) -> None:
        """Answer for streams that are in memory and up to date; the others are queried later."""
        known = [slot for name in job.streams if (slot := self.engine.slots.get(name)) is not None]
        lives = {slot.name: slot.live for slot in known if slot.live is not None}
        heads = self._store.ends({live.number for live in lives.values()}) if lives else {}
        found = {}
        for slot in known:
            live = lives.get(slot.name)
            if live is None or heads.get(live.number, live.seq) != live.seq:
                continue
            at_once = slot.busy is None and live.plan_made
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
        elif error is not None:  # the log may be intact: the next request loads it again
            logger.error("stream %s cannot be loaded", slot.name, exc_info=error)
            del self.engine.slots[slot.name]
            for waiting in slot.waiting:
                self._failed(slot, waiting, error)
        else:
            if job.live is not None and job.live.ended:
                self._store_anew(job.live)
            # Routed now: newer requests must not be applied before those that have waited.
            resumed, slot.waiting = slot.waiting, deque()
            self._resumed += resumed
            for waited in resumed:
                self._route(waited)
            self.touched.add(slot.name)

    def _store_anew(self, live: LiveStream) -> None:
        """Replace the stored ends of windows of an earlier version by those of this version."""
        store = self._store
        store.begin()
        store.put_windows(live.ended)
        store.commit()
        live.ended.clear()

    def _give_up(self, slot: Slot) -> None:
        """Refuse a stream whose log is broken, and only that stream."""
        # The error quotes entries, which only those who may audit the database should read.
        logger.error("stream %s: its log does not replay (fairshield audit --db)", slot.name)
        why = f"the log of stream {slot.name!r} does not replay: fairshield audit --db says where"
        slot.live, slot.broken = None, Refusal("log-broken", why)
        for waiting in slot.waiting:
            self._answer(waiting, slot.broken)
        slot.waiting.clear()

    def _resume(self, slot: Slot) -> None:
        """Put requests that have waited for a stream before all newer ones."""
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
        self._earlier.find(store, self._keys())
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
        before = done.logged[0].row.seq - 1 if done.logged else None
        if before is not None and heads.get(live.number, before) != before:
            # Another process has added entries meanwhile: load them, then apply the command again.
            slot.waiting.appendleft(done.job)
            self._reload(slot)
            return
        if done.error is not None:
            self._failed(slot, done.job, done.error)
        elif isinstance(done.job, StreamLook):
            self._answer(done.job, done.result)
        else:
            self._keep(slot, done.job, done.logged)
        if slot.live is not None:
            self._after.append(lambda: self._resume(slot))

    def _catch_up(self) -> None:
        """Replay entries of other processes in streams that queries look at."""
        heads = self._store.ends({s.live.number for s, _ in self._looks if s.live is not None})
        for slot, job in self._looks:
            if self._caught_up(slot, job, heads):
                self._after.append(partial(self._look, slot, job))

    def _caught_up(self, slot: Slot, job: Ask | StreamLook, heads: dict[int, int]) -> bool:
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
        heads[live.number] = live.seq  # entries may have come since ``heads`` was read
        self.touched.add(slot.name)
        return True

    def _keys(self) -> list[Key]:
        return [
            (slot.live.number, ask.key)
            for slot, ask in self._asks
            if slot.live is not None and ask.key is not None
        ]

    def _apply(self, slot: Slot, ask: Ask) -> None:
        live = slot.live
        if live is None or slot.busy is not None:
            # An earlier request of this batch unloaded or occupied the stream.
            slot.waiting.append(ask)
            return
        try:
            earlier = self._earlier.entries(live.number, ask.key, self._store)
        except (BrokenLogError, ValueError):  # the entries were changed in the database
            slot.waiting.append(ask)
            self._give_up(slot)
            return
        if earlier is not None:
            self._repeat(live, ask, earlier)
            return
        by = Author(self._by, ask.key, ask.actor)
        if live.takes_long(ask.command.decisions):
            self.engine.apply_elsewhere(slot, ask, by)
            return
        try:
            logged = ask.command.apply(live, by)
        except Exception as error:
            self._failed(slot, ask, error)
            return
        self._keep(slot, ask, logged)

    def _keep(self, slot: Slot, ask: Ask, logged: list[Logged]) -> None:
        """Add the entries of a command to the transaction, and answer it after the commit."""
        live = slot.live
        assert live is not None
        self._rows += [row for _, row in logged]
        self._windows += live.ended
        live.ended.clear()
        stored = None if live.watcher is None else live.watcher.to_store()
        if stored is not None:
            self._monitors[live.number] = stored
        if logged:
            self._earlier.add(live.number, ask.key, logged)
            self.touched.add(slot.name)
        self._after.append(lambda: self._reply(live, ask, logged))
        if not live.plan_made:
            # Make the next period's plan before a request needs it.
            self._after.append(
                lambda: self._look(slot, StreamLook(None, slot.name, LiveStream.plan))
            )

    def _reply(self, live: LiveStream, ask: Ask, logged: list[Logged]) -> None:
        try:
            self._answer(ask, msgspec.json.encode(ask.command.answer(live, logged)))
        except FairshieldError as error:
            self._answer(ask, refusal(error))

    def _repeat(self, live: LiveStream, ask: Ask, earlier: list[Logged]) -> None:
        """Answer a request that was answered before; refuse another one with its key."""
        self.engine.figures.repeats += 1
        if ask.command.repeats(live, [entry for entry, _ in earlier]):
            self._after.append(lambda: self._reply(live, ask, earlier))
        else:
            self._answer(ask, key_reused(ask, earlier[0].entry))

    def _failed(self, slot: Slot, job: Ask | StreamLook, error: Exception) -> None:
        live = slot.live
        if live is not None and live.torn:
            self._reload(slot)
        if isinstance(error, FairshieldError):
            self._answer(job, refusal(error))
            return
        logger.error("stream %s: a request failed", slot.name, exc_info=error)
        self._answer(job, Refusal("internal", f"nothing was recorded ({type(error).__name__})"))

    def _reload(self, slot: Slot) -> None:
        """Drop a stream from memory, and load it again after this transaction."""
        slot.live = None
        slot.loading = True
        self._after.append(lambda: self.engine.load(slot))

    def _answer(self, job: Job, result: Any) -> None:
        if job.future is not None:
            self.answers.append((job.future, result))


def nothing(live: LiveStream) -> None:
    """Do nothing with a stream: a query with it loads the stream and catches up."""
