"""A whole database checked again: chains, replays, digests, and fairness counted anew.

The log is all that is believed, and of the log only what its hashes vouch for.  Of every stream

1. entries are numbered without gaps, and each continues the chain of hashes from entry 0 on;
2. every entry is made once more from the beginning, and columns say what the lines say;
3. the ends of windows that are stored are those which the replay leads to;
4. the property is asked in integers at the end of every window and at every checkpoint, of
   counters that are counted here, from the lines and without the shield;
5. entries whose receipts somebody has kept are still there, with these receipts.

A chain without a kept receipt shows every change but one: an end that was cut off, or a log that
was rewritten as the policy would have decided.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from fairshield.counts import Counts, Group
from fairshield.errors import FairshieldError, InvalidValueError
from fairshield.outcomes import OutcomeTally
from fairshield.periodic import PeriodicPolicy
from fairshield.service.entries import (
    AnyEntry,
    Decided,
    Observed,
    Overridden,
    Row,
    follows,
)
from fairshield.service.live import AnyPolicy, BrokenLogError, LiveStream
from fairshield.service.loading import first_entry
from fairshield.service.shelf import Shelf
from fairshield.service.snapshots import WindowRow
from fairshield.service.store import Connection, open_database
from fairshield.service.tallies import overall
from fairshield.spec import Verdict

Progress = Callable[[float], None]
Receipts = Mapping[int, str]
"""Kept receipts by number of entry."""

_FIRST = -(1 << 62)
_PAGE, _SMALL_PAGE = 4096, 128
_MOST = 100
"""Findings that are told of a stream; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAudit:
    """What an audit says of one stream.

    ``findings`` are sentences; ``finished`` is false if the audit was stopped before the end.
    ``windows`` have ended: ``fair`` ones, ``unfair`` ones in which the property did not hold when
    it was due, and ``exempt`` ones in which it bound nothing.  ``unfinished`` is the verdict of the
    checkpoints that a window in progress has reached; ``None``: of none.  ``receipts`` that were
    kept are in the log.  ``doubt`` says why the outcomes cannot tell how people were treated.
    """

    stream: str
    entries: int
    decisions: int
    windows: int
    fair: int
    unfair: int
    exempt: int
    receipt: str | None
    findings: tuple[str, ...]
    finished: bool = True
    receipts: int = 0
    doubt: str | None = None
    unfinished: Verdict | None = None

    @property
    def holds(self) -> bool:
        """Whether the log replays, and no window of it is unfair."""
        return not self.findings

    @property
    def verdict(self) -> Verdict:
        """Of all moments at which the property was due: ``"exempt"`` if it bound at none."""
        counted: dict[Verdict, int] = {
            "unfair": self.unfair, "fair": self.fair, "exempt": self.exempt
        }  # fmt: skip
        ended = [verdict for verdict, windows in counted.items() if windows]
        return overall(*ended, *([] if self.unfinished is None else [self.unfinished]))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        return data | {
            "findings": list(self.findings), "holds": self.holds, "verdict": self.verdict
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseAudit:
    """What an audit says of a database; ``findings`` are those that belong to no stream."""

    streams: tuple[StreamAudit, ...]
    findings: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether all logs replay, and no window is unfair."""
        return not self.findings and all(stream.holds for stream in self.streams)

    @property
    def verdict(self) -> Verdict:
        """Of all streams: ``"exempt"`` if nothing bound any of them."""
        return overall(*(stream.verdict for stream in self.streams))

    @property
    def all_findings(self) -> tuple[str, ...]:
        """All findings, stream by stream."""
        return (*self.findings, *(found for stream in self.streams for found in stream.findings))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "holds": self.holds,
            "verdict": self.verdict,
            "findings": list(self.findings),
            "streams": [stream.to_dict() for stream in self.streams],
        }


@contextlib.contextmanager
def open_for_reading(address: str) -> Iterator[Connection]:
    """A connection that changes nothing, to a database that may be in use.

    Raises
    ------
    StoreError
        If there is none, or its schema is not the one of this library.
    """
    database = open_database(address, read_only=True)
    connection = database.connect()
    try:
        connection.check_schema(database.migrations())
        yield connection
    finally:
        connection.close()
        database.close()


def audit_database(
    connection: Connection,
    shelf: Shelf,
    names: Iterable[str] = (),
    *,
    expected: Mapping[str, Receipts] | None = None,
    progress: Progress | None = None,
) -> DatabaseAudit:
    """Audit streams, all of them unless ``names`` says which.

    Others may write meanwhile; each stream is audited up to the entry that was its last when its
    turn came.

    Parameters
    ----------
    connection
        A connection for reading.
    shelf
        Where policies are loaded from.
    names
        Names of streams.
    expected
        Receipts that were given for entries, by stream; a stream named here is audited as well.
    progress
        Told the share of entries that has been checked.

    Raises
    ------
    InvalidValueError
        If there is no stream of a name in ``names``.
    """
    expected = expected or {}
    numbers = {name: number for number, name in connection.streams()}
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        if name not in numbers:
            known = ", ".join(sorted(numbers)[:10]) or "none"
            raise InvalidValueError(f"the database has no stream {name!r}; it has: {known}")
    findings = [
        f"stream {name!r} is missing: there are receipts for its entries"
        for name in expected
        if name not in numbers
    ]
    if chosen:
        chosen += [name for name in expected if name in numbers and name not in chosen]
    else:
        chosen = list(numbers)
        findings += _nameless(connection)
    sizes = {name: connection.head(numbers[name]) + 1 for name in chosen}
    total, before, audits = sum(sizes.values()) or 1, 0, []
    for name in chosen:

        def on_progress(done: int, before: int = before) -> None:
            if progress is not None:
                progress(min((before + done) / total, 1.0))

        auditor = _Auditor(connection, shelf, name, numbers[name], expected.get(name, {}))
        audits.append(auditor.run(None, on_progress))
        before += sizes[name]
    return DatabaseAudit(streams=tuple(audits), findings=tuple(findings))


def audit_stream(
    connection: Connection, shelf: Shelf, name: str, stop: threading.Event
) -> StreamAudit:
    """Audit a stream beside other work: half of the time, and no longer than ``stop`` allows.

    Raises
    ------
    InvalidValueError
        If there is no such stream.
    """
    number = connection.stream(name)
    if number is None:
        raise InvalidValueError(f"the database has no stream {name!r}")
    return _Auditor(connection, shelf, name, number, {}).run(stop, lambda done: None)


def _nameless(connection: Connection) -> Iterator[str]:
    """Rows of streams that do not exist."""
    for table in ("entries", "windows", "monitors"):
        used, last = set(), _next_stream(connection, table, _FIRST)
        while last is not None:
            used.add(last)
            last = _next_stream(connection, table, last)
        for number in sorted(used - {number for number, _ in connection.streams()}):
            yield f"there are {table} of stream number {number}, which does not exist"


def _next_stream(connection: Connection, table: str, after: int) -> int | None:
    found = connection.rows(f"SELECT min(stream) FROM {table} WHERE stream > ?", after)[0][0]
    return None if found is None else int(found)


class _Auditor:
    """One stream, read page by page."""

    def __init__(
        self, connection: Connection, shelf: Shelf, name: str, number: int, expected: Receipts
    ) -> None:
        self._connection, self._number, self._name = connection, number, name
        self._expected = dict(expected)
        self._receipts = 0
        self._findings: list[str] = []
        self._more = 0
        self._entries = self._decisions = 0
        self._last: Row | None = None
        self._batch: tuple[int, int] | None = None  # first entry of a request, how many are to come
        self._live: LiveStream | None = None
        self._head = self._replayed = connection.head(number)
        try:
            created, hash = first_entry(number, connection)
            if created.stream != name:
                self._find(f"stream {name!r} was created as {created.stream!r}: it was renamed")
            policy = shelf.policy(created.policy, connection)
            self._live = LiveStream(number, created, policy, hash=hash)
            self._count = _Count(policy, human=created.human)
        except (BrokenLogError, FairshieldError, ValueError) as error:
            self._find(f"stream {name!r} cannot be replayed: {error}")
        self._windows = _Windows(
            connection, number, lambda found: self._find(f"{self._named}: {found}")
        )

    def run(self, stop: threading.Event | None, progress: Callable[[int], None]) -> StreamAudit:
        """Read to the end, or until told to stop; with ``stop``, half of the time."""
        size, after, finished = _PAGE if stop is None else self._small_page(), _FIRST, False
        while not finished and not (stop is not None and stop.is_set()):
            begun = time.monotonic()
            try:
                rows = self._connection.entries(self._number, after=after, limit=size)
            except UnicodeError as error:
                self._find(f"entries of {self._named} after {after} cannot be read: {error}")
                break
            while rows and rows[-1].seq > self._head:
                rows.pop()
            finished = not rows
            if rows:
                after = rows[-1].seq
                self._add(rows)
                progress(self._entries)
            if stop is not None:
                stop.wait(time.monotonic() - begun)
        if finished:
            self._finish()
        return self._result(finished)

    def _small_page(self) -> int:
        """Entries to look at before looking up; a period may take long, as it is planned."""
        return _SMALL_PAGE if self._live is None or not self._live.periodic else 1

    @property
    def _named(self) -> str:
        return f"stream {self._name!r}"

    def _find(self, sentence: str) -> None:
        if len(self._findings) < _MOST:
            self._findings.append(sentence)
        else:
            self._more += 1

    # Entries --------------------------------------------------------------------------------

    def _add(self, rows: list[Row]) -> None:
        live = self._live
        for row in rows:
            self._decisions += row.n is not None
            if live is None or not self._entries:
                self._chain(row)
            else:
                try:
                    self._note(live.replay(row))
                except BrokenLogError as error:
                    self._give_up(row, str(error))
                    live = None
            self._last = row
            self._entries += 1
        if live is not None:
            ended = list({window.window: window for window in live.ended}.values())
            self._windows.compare(ended[:-1], self._head)
            live.ended[:] = ended[-1:]  # may yet end again
        self._compare_receipts(rows)

    def _chain(self, row: Row) -> None:
        """Check what can be checked without a replay."""
        last, where = self._last, f"entry {row.seq} of {self._named}"
        seq = -1 if last is None else last.seq
        if row.seq != seq + 1:
            after = "comes first" if last is None else f"follows entry {seq}"
            self._find(f"{where} {after}: entries were removed or inserted")
        elif last is not None and not follows(row, last.hash):
            self._find(f"{where} does not match its hash: it was changed after the fact")

    def _note(self, entry: AnyEntry) -> None:
        """Count what an entry says."""
        if found := self._count.add(entry):
            self._find(f"{self._named}: {found}")
        if self._batch is not None:
            self._continue_batch(entry, *self._batch)
        elif isinstance(entry, Decided) and entry.size > 1:
            self._batch = (entry.seq, entry.size - 1)

    def _continue_batch(self, entry: AnyEntry, first: int, left: int) -> None:
        """An entry of a request that led to several; only the first of them bears the key."""
        if not isinstance(entry, Decided | Observed) or entry.key is not None:
            self._find(
                f"entry {entry.seq} of {self._named} interrupts the request of entry {first}, "
                f"which led to {left} more"
            )
            left = 1
        self._batch = (first, left - 1) if left > 1 else None

    def _give_up(self, row: Row, why: str) -> None:
        """Replay no further; windows that ended before are still compared."""
        self._find(f"{why}; of later entries only the hashes are checked")
        live, self._live, self._batch = self._live, None, None
        assert live is not None
        if found := self._count.settle():
            self._find(f"{self._named}: {found}")
        self._replayed = row.seq - 1
        self._windows.compare(live.ended, self._replayed)

    def _compare_receipts(self, rows: list[Row]) -> None:
        wanted = [seq for seq in self._expected if rows[0].seq <= seq <= rows[-1].seq]
        if not wanted:
            return
        hashes = {row.seq: row.hash.hex() for row in rows}
        for seq in wanted:
            hash = hashes.get(seq)
            if hash is None:
                continue
            if hash == self._expected.pop(seq).lower():
                self._receipts += 1
            else:
                self._find(
                    f"entry {seq} of {self._named} has receipt {hash}, another one was given: the "
                    "log was rewritten"
                )

    # The end --------------------------------------------------------------------------------

    def _finish(self) -> None:
        for seq in sorted(self._expected):
            last = "has no entries" if self._last is None else f"ends with entry {self._last.seq}"
            self._find(
                f"entry {seq} of {self._named} is missing: a receipt was given for it, the log "
                f"{last}"
            )
        self._find_repeated_keys()
        live = self._live
        if live is None:
            return
        if self._batch is not None:
            first, left = self._batch
            self._find(
                f"entry {first} of {self._named} belongs to a request that led to {left} more "
                f"entries than the log has: its end is missing"
            )
        if found := self._count.settle():
            self._find(f"{self._named}: {found}")
        count, tally = self._count, live.tally
        counted = (count.fair, count.exempt, count.windows)
        replayed = (tally.fair, tally.exempt, tally.completed)
        if counted != replayed:
            ours, theirs = (f"{f} fair and {e} exempt of {w}" for f, e, w in (counted, replayed))
            self._find(
                f"{self._named}: {ours} windows as counted from the log up to entry {live.seq}, "
                f"{theirs} as replayed"
            )
        self._windows.compare(live.ended, self._head)
        self._windows.finish(self._head)

    def _find_repeated_keys(self) -> None:
        repeated = self._connection.rows(
            "SELECT key, min(seq), max(seq) FROM entries WHERE stream = ? AND key IS NOT NULL "
            "GROUP BY key HAVING count(*) > 1 LIMIT 10",
            self._number,
        )
        for key, first, last in repeated:
            self._find(f"entries {first} and {last} of {self._named} have the same key {key!r}")

    def _result(self, finished: bool) -> StreamAudit:
        findings, count = list(self._findings), getattr(self, "_count", None)
        windows, fair, exempt = (count.windows, count.fair, count.exempt) if count else (0, 0, 0)
        if self._more:
            findings.append(f"{self._named} has {self._more:,} more findings like these")
        return StreamAudit(
            stream=self._name,
            entries=self._entries,
            decisions=self._decisions,
            windows=windows,
            fair=fair,
            unfair=windows - fair - exempt,
            exempt=exempt,
            receipt=None if self._last is None else self._last.hash.hex(),
            findings=tuple(findings),
            finished=finished,
            receipts=self._receipts,
            doubt=count.doubt if count else None,
            unfinished=count.unfinished if count else None,
        )


class _Count:
    """Counters of the window in progress, or of all periods, from the lines alone.

    A point at which the property has to hold is judged when the next decision arrives, or the log
    ends: until then a person may change what it rests on.
    """

    def __init__(self, policy: AnyPolicy, *, human: bool) -> None:
        self.windows = self.fair = self.exempt = self.seq = 0
        self._prop, self._start = policy.prop, policy.start
        self._labelled, self._human = policy.labelled, human
        self._goes_on = isinstance(policy, PeriodicPolicy)
        self._due = {policy.period} if isinstance(policy, PeriodicPolicy) else {*policy.due}
        self._length = max(self._due)
        self._guaranteed = True
        self._pending: list[Any] | None = None
        self._outcomes = OutcomeTally()
        self._begin()

    @property
    def doubt(self) -> str | None:
        """Why the outcomes cannot tell how people were treated; ``None``: nothing speaks for it."""
        relevant = self._prop.relevant_outcome
        return None if relevant is None else self._outcomes.coverage(relevant=relevant).doubt

    def _begin(self) -> None:
        self._decided = 0
        self.unfinished: Verdict | None = None
        self._people: dict[int, list[Any]] = {}  # group and decision by number, in human streams
        if not self._goes_on or not self.windows:
            self._seen = {group: count.seen for group, count in self._start.items()}
            self._accepted = {group: count.accepted for group, count in self._start.items()}

    def add(self, entry: AnyEntry) -> str | None:
        """Count an entry; a sentence if the property did not hold when it had to, before it."""
        found = None
        if isinstance(entry, Decided):
            found = self.settle() if self._decided in self._due else None
            self._decide(entry)
        elif isinstance(entry, Observed):
            pending, self._pending = self._pending, None
            if pending is not None:
                group, accepted = pending
                self._outcomes.know(group, accepted, entry.outcome)
                if entry.outcome == self._prop.relevant_outcome:
                    self._include(group, accepted)
        elif isinstance(entry, Overridden):
            self._override(entry)
        self.seq = entry.seq
        return found

    def _decide(self, entry: Decided) -> None:
        self._decided += 1
        self._guaranteed = entry.guaranteed
        if self._labelled:
            self._pending = [entry.group, entry.accepted]
        else:
            self._include(entry.group, entry.accepted)
            if self._human:
                self._people[entry.n] = [entry.group, entry.accepted]

    def _include(self, group: Group, accepted: bool) -> None:
        self._seen[group] += 1
        self._accepted[group] += accepted

    def _override(self, entry: Overridden) -> None:
        self._guaranteed = entry.guaranteed
        if self._pending is not None:
            self._pending[1] = entry.accepted
            return
        group, accepted = self._people[entry.n]
        self._people[entry.n] = [group, entry.accepted]
        self._accepted[group] += entry.accepted - accepted

    def settle(self) -> str | None:
        """Judge a point that has been reached; a sentence if the property does not hold there."""
        if self._decided not in self._due or self._pending is not None:
            return None
        counts = Counts({group: (self._seen[group], self._accepted[group]) for group in self._seen})
        verdict, window, decided = self._prop.verdict(counts), self.windows, self._decided
        judged = overall(self.unfinished or verdict, verdict)
        if decided == self._length:
            self.windows += 1
            self.fair += judged == "fair"
            self.exempt += judged == "exempt"
            self._begin()
        else:
            self.unfinished = judged
        if verdict != "unfair":
            return None
        promise = "it was guaranteed" if self._guaranteed else "it was not guaranteed any more"
        return (
            f"{self._prop} does not hold after {decided} decisions of window {window}, at entry "
            f"{self.seq}: bias {self._prop.bias_of(counts):.4g}; {promise}"
        )


class _Windows:
    """Ends of windows as they are stored, in order, to be laid beside those of a replay."""

    def __init__(self, connection: Connection, number: int, found: Callable[[str], None]) -> None:
        self._connection, self._number, self._found = connection, number, found
        self._stored = self._pages()
        self._next = next(self._stored, None)

    def _pages(self) -> Iterator[WindowRow]:
        first = _FIRST
        while page := self._connection.windows(self._number, first=first, limit=_PAGE):
            yield from page
            first = page[-1].window + 1

    def compare(self, replayed: Iterable[WindowRow], head: int) -> None:
        """Compare all stored ones up to the last replayed; ``head`` is the end of the replay."""
        for row in replayed:
            while self._next is not None and self._next.window < row.window:
                self._surplus(head)
            if self._next is None or self._next.window > row.window:
                self._found(f"window {row.window} ended with entry {row.seq}, but is not stored")
                continue
            if differences := _differences(self._next, row):
                self._found(
                    f"window {row.window}, which ended with entry {row.seq}, is stored "
                    f"with {differences}"
                )
            self._next = next(self._stored, None)

    def finish(self, head: int) -> None:
        """Compare what is left; nothing should be, but what others have added meanwhile."""
        while self._next is not None:
            self._surplus(head)

    def _surplus(self, head: int) -> None:
        row, self._next = self._next, next(self._stored, None)
        assert row is not None
        if row.seq <= head or row.seq > self._connection.head(self._number):
            self._found(
                f"window {row.window} is stored as ended with entry {row.seq}, the log does not "
                "lead to that"
            )


_UNTOLD = ("fair", "verdict", "measured_bias", "measured_bias_unshielded", "snapshot")
"""What an earlier version has not stored, or not so; the service does when it loads the stream."""


def _differences(stored: WindowRow, replayed: WindowRow) -> str:
    untold = _UNTOLD if stored.verdict is None else ()
    return " and ".join(
        f"{name} = {ours!r} instead of {right!r}"
        for name, ours, right in zip(WindowRow._fields, stored, replayed, strict=True)
        if ours != right and name not in untold
    )
