"""``audit_database`` checks all logs of a database again: chains, replays, fairness.

It trusts nothing but the log, and of the log only what its hashes confirm.  Of every stream it
checks that

1. entries are numbered without gaps, and each continues the chain of hashes from entry 0 on;
2. every entry, derived again from the beginning, is the logged one, and columns agree with lines;
3. the ends of windows that are stored are those which the replay leads to;
4. the property holds at the end of every window and at every checkpoint: it is asked in integers,
   of counters that are counted here, from the lines and without the shield;
5. entries of which a receipt was kept are still there, with this receipt.

Without a kept receipt two changes stay undetected: entries cut off at the end, and a log that was
rewritten as the policy would have decided.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from fairshield.base.errors import FairshieldError, InvalidValueError
from fairshield.base.types import Progress
from fairshield.service.history.findings import DatabaseAudit, StreamAudit
from fairshield.service.history.loading import first_entry
from fairshield.service.history.recounted import Recounted
from fairshield.service.history.stored import StoredWindows
from fairshield.service.log.entries import AnyEntry, Decided, EntryRow, Observed, follows
from fairshield.service.log.live import BrokenLogError, LiveStream
from fairshield.service.store import Connection, open_database
from fairshield.service.store.policies import LoadedPolicies

Receipts = Mapping[int, str]
"""Kept receipts by number of entry."""

_FIRST = -(1 << 62)
_PAGE, _SMALL_PAGE = 4096, 128
_MOST = 100
"""Most findings listed for a stream; further ones are only counted."""


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
    policies: LoadedPolicies,
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
    policies
        Where policies are loaded from.
    names
        Names of streams.
    expected
        Receipts that were given for entries, by stream; a stream named here is audited as well.
    progress
        Called with the share of entries that has been checked.

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

        auditor = _StreamAuditor(connection, policies, name, numbers[name], expected.get(name, {}))
        audits.append(auditor.run(None, on_progress))
        before += sizes[name]
    return DatabaseAudit(streams=tuple(audits), findings=tuple(findings))


def audit_stream(
    connection: Connection, policies: LoadedPolicies, name: str, stop: threading.Event
) -> StreamAudit:
    """Audit a stream with half of a processor, until ``stop`` says so at the latest.

    Raises
    ------
    InvalidValueError
        If there is no such stream.
    """
    number = connection.stream(name)
    if number is None:
        raise InvalidValueError(f"the database has no stream {name!r}")
    return _StreamAuditor(connection, policies, name, number, {}).run(stop, lambda done: None)


def _nameless(connection: Connection) -> Iterator[str]:
    """Sentences about rows that belong to no stream."""
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


class _StreamAuditor:
    """_StreamAuditor audits one stream, read page by page."""

    def __init__(
        self,
        connection: Connection,
        policies: LoadedPolicies,
        name: str,
        number: int,
        expected: Receipts,
    ) -> None:
        self._connection, self._number, self._name = connection, number, name
        self._expected = dict(expected)
        self._receipts = 0
        self._findings: list[str] = []
        self._more = 0
        self._entries = self._decisions = 0
        self._last: EntryRow | None = None
        self._batch: tuple[int, int] | None = None  # first entry of a request, how many are to come
        self._live: LiveStream | None = None
        self._count: Recounted | None = None
        self._head = self._replayed = connection.head(number)
        try:
            created, snapshot = first_entry(number, connection)
            if created.stream != name:
                self._find(f"stream {name!r} was created as {created.stream!r}: it was renamed")
            policy = policies.policy(created.policy, connection)
            self._live = LiveStream(number, created, policy, snapshot)
            self._count = Recounted(policy, human=created.human)
        except (BrokenLogError, FairshieldError, ValueError) as error:
            self._find(f"stream {name!r} cannot be replayed: {error}")
        self._windows = StoredWindows(
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
        """Entries to replay between looks at the clock; one if each may need a plan."""
        return _SMALL_PAGE if self._live is None or not self._live.policy.largest_plan else 1

    @property
    def _named(self) -> str:
        return f"stream {self._name!r}"

    def _find(self, sentence: str) -> None:
        if len(self._findings) < _MOST:
            self._findings.append(sentence)
        else:
            self._more += 1

    # Entries --------------------------------------------------------------------------------

    def _add(self, rows: list[EntryRow]) -> None:
        live, count = self._live, self._count
        for row in rows:
            self._decisions += row.n is not None
            if live is None or count is None or not self._entries:
                self._chain(row)
            else:
                try:
                    self._note(live.replay(row), count)
                except BrokenLogError as error:
                    self._give_up(live, count, row, str(error))
                    live = None
            self._last = row
            self._entries += 1
        if live is not None:
            ended = list({window.window: window for window in live.ended}.values())
            self._windows.compare(live, ended[:-1], self._head)
            live.ended[:] = ended[-1:]  # an override may replace this end
        self._compare_receipts(rows)

    def _chain(self, row: EntryRow) -> None:
        """Check what can be checked without a replay."""
        last, where = self._last, f"entry {row.seq} of {self._named}"
        seq = -1 if last is None else last.seq
        if row.seq != seq + 1:
            after = "comes first" if last is None else f"follows entry {seq}"
            self._find(f"{where} {after}: entries were removed or inserted")
        elif last is not None and not follows(row, last.hash):
            self._find(f"{where} does not match its hash: it was changed after the fact")

    def _note(self, entry: AnyEntry, count: Recounted) -> None:
        """Count what an entry says."""
        for found in count.add(entry):
            self._find(f"{self._named}: {found}")
        if self._batch is not None:
            self._continue_batch(entry, *self._batch)
        elif isinstance(entry, Decided) and entry.size > 1:
            self._batch = (entry.seq, entry.size - 1)

    def _continue_batch(self, entry: AnyEntry, first: int, left: int) -> None:
        """Check an entry after the first of a request; only the first has the key."""
        if not isinstance(entry, Decided | Observed) or entry.key is not None:
            self._find(
                f"entry {entry.seq} of {self._named} interrupts the request of entry {first}, "
                f"which led to {left} more"
            )
            left = 1
        self._batch = (first, left - 1) if left > 1 else None

    def _give_up(self, live: LiveStream, count: Recounted, row: EntryRow, why: str) -> None:
        """Replay no further; windows that ended before are still compared."""
        self._find(f"{why}; of later entries only the hashes are checked")
        self._live = self._batch = None
        for found in count.settle():
            self._find(f"{self._named}: {found}")
        self._replayed = row.seq - 1
        self._windows.compare(live, live.ended, self._replayed)

    def _compare_receipts(self, rows: list[EntryRow]) -> None:
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
        live, count = self._live, self._count
        if live is None or count is None:
            return
        if self._batch is not None:
            first, left = self._batch
            self._find(
                f"entry {first} of {self._named} belongs to a request that led to {left} more "
                f"entries than the log has: its end is missing"
            )
        for found in count.settle():
            self._find(f"{self._named}: {found}")
        ended = live.ledger.shielded
        counted = (count.fair, count.exempt, count.windows)
        replayed = (ended.fair, ended.exempt, ended.windows)
        if counted != replayed:
            ours, theirs = (f"{f} fair and {e} exempt of {w}" for f, e, w in (counted, replayed))
            self._find(
                f"{self._named}: {ours} windows as counted from the log up to entry {live.seq}, "
                f"{theirs} as replayed"
            )
        self._windows.compare(live, live.ended, self._head)
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
        findings, count = list(self._findings), self._count
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
