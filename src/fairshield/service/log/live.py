"""LiveStream holds one stream in memory: a run, a ledger, and the end of its log.

Its state follows from the log alone.  :meth:`LiveStream.decide` and the other requests make
entries by deciding; :meth:`LiveStream.replay` checks entries by deciding again.  Both call the same
few methods, so loading a stream also checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from fairshield.base.counts import Group, unknown_group
from fairshield.base.errors import FairshieldError
from fairshield.base.plain import plain_number
from fairshield.periodic import PeriodicPolicy
from fairshield.records import declared
from fairshield.service.log.entries import (
    AnyEntry,
    Closed,
    Created,
    Decided,
    EntryRow,
    Logged,
    Observed,
    Overridden,
    chained,
    columns,
    entry_of,
    follows,
)
from fairshield.service.log.snapshots import Snapshot, WindowRow
from fairshield.service.log.standing import Made, Standing
from fairshield.service.log.tallies import StreamTally
from fairshield.service.log.watching import Watcher
from fairshield.spec.outcomes import ADVICE
from fairshield.wire.messages import (
    BatchItem,
    DecisionRequest,
    OutcomeRequest,
    OverrideRequest,
    StreamMessage,
)
from fairshield.wire.problems import Refusal


class BrokenLogError(Exception):
    """BrokenLogError says that a log does not follow its policy, or that hashes do not match."""


class Author(NamedTuple):
    """Author says who asks, when, and under which idempotency key."""

    at: str
    key: str | None = None
    actor: str | None = None


class LiveStream(Standing):
    """LiveStream applies requests to a stream and returns the entries of its log.

    Not safe for several threads at once.  A method that raises has changed nothing, unless
    :attr:`torn` says so; then the stream must be loaded again.

    Parameters
    ----------
    number
        The stream's number in the store.
    created
        Entry 0 of the log.
    policy
        The policy that entry 0 names.
    snapshot
        Where to begin: right after entry 0, or at the end of a window.
    watcher
        A monitor that is passed every entry from here on; no decision depends on it.
    """

    def __init__(
        self,
        number: int,
        created: Created,
        policy: PeriodicPolicy,
        snapshot: Snapshot,
        *,
        watcher: Watcher | None = None,
    ) -> None:
        try:
            super().__init__(created, policy, snapshot)
        except (FairshieldError, ValueError, LookupError, TypeError) as error:
            raise BrokenLogError(
                f"what is stored of the window of stream {created.stream!r} that ended with entry "
                f"{snapshot.seq} does not fit its policy: {error}"
            ) from error
        self.number, self.seq, self.hash = number, snapshot.seq, bytes.fromhex(snapshot.hash)
        self.ended: list[WindowRow] = []
        self.watcher = watcher
        self.torn = False  # true within a change: what fails then leaves the stream half changed
        self.described: StreamMessage | None = None

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.created.stream

    # Requests: each returns the entries it led to ---------------------------------------------

    def decide(self, items: Sequence[BatchItem | DecisionRequest], by: Author) -> list[Logged]:
        """Decide these people in order; all of them or, on an error, none."""
        self._check_open()
        requests = [self._checked(item, last=item is items[-1]) for item in items]
        pending, capacity = self.run.pending, self.capacity
        if pending is not None:
            raise Refusal(
                "outcome-pending",
                f"decision {self.n} awaits its outcome: POST it to "
                f"/v1/streams/{self.name}/outcomes before the next decision; {ADVICE}",
            )
        if capacity is not None and capacity < len(items):
            raise Refusal(
                "stream-finished",
                f"{len(items)} decision(s) asked for, {capacity} left in stream {self.name!r}",
            )
        made: list[Logged] = []
        size = sum(1 + (outcome is not None) for *_, outcome in requests)
        self.torn = True
        for group, proposed, cost, outcome in requests:
            entry = self._decided(group, proposed, cost, by, size)
            made.append(self._append(entry))
            by, size = by if by.key is None else by._replace(key=None), 1
            if outcome is not None:
                made.append(self._append(self._observed(self.n, outcome, by)))
        self.torn = False
        return made

    def observe(self, request: OutcomeRequest, by: Author) -> list[Logged]:
        """Record the outcome of the decision that awaits it."""
        self._check_open()
        if self.pending != request.decision:
            raise Refusal("unexpected-outcome", self._not_awaited(request.decision))
        self.torn = True
        made = [self._append(self._observed(request.decision, request.outcome, by))]
        self.torn = False
        return made

    def override(self, n: int, request: OverrideRequest, by: Author) -> list[Logged]:
        """Put a person's decision in the place of decision ``n``."""
        self._check_open()
        self._check_overridable(n, request.accepted)
        self.torn = True
        made = [self._append(self._overridden(n, request.accepted, request.note, by))]
        self.torn = False
        return made

    def close(self, by: Author) -> list[Logged]:
        """End the stream; returns no entry if it has ended before."""
        if self.closed:
            return []
        return [self._append(self._closed(by))]

    # Replay ---------------------------------------------------------------------------------

    def replay(self, row: EntryRow) -> AnyEntry:
        """Make a logged entry once more, compare, and return it.

        Raises
        ------
        BrokenLogError
            If the hash does not match, or the entry is not what the policy leads to.
        """
        if row.seq != self.seq + 1:
            raise self._broken(row, f"follows entry {self.seq}: entries are missing")
        if not follows(row, self.hash):
            raise self._broken(row, "does not match its hash: it was changed after the fact")
        self.torn = True
        try:
            logged = entry_of(row.line)
            made = self._again(logged)
        except (MemoryError, OSError):  # not a fault of the log
            raise
        except Exception as error:
            raise self._broken(row, f"cannot be replayed: {error}") from error
        if made != logged:
            raise self._broken(row, f"says {logged}, a replay leads to {made}")
        if (mine := columns(logged)) != row[2:5]:
            raise self._broken(row, f"is indexed as {row[2:5]}, its line says {mine}")
        self.torn = False
        self._follow(logged, row)
        return logged

    def _broken(self, row: EntryRow, why: str) -> BrokenLogError:
        return BrokenLogError(f"entry {row.seq} of stream {self.name!r} {why}")

    def _again(self, logged: AnyEntry) -> AnyEntry:
        by = Author(logged.at, getattr(logged, "key", None), getattr(logged, "actor", None))
        if self.closed:
            raise Refusal("stream-closed", "the stream had been closed")
        match logged:
            case Decided():
                return self._decided(logged.group, logged.proposed, logged.cost, by, logged.size)
            case Observed():
                if self.pending != logged.n:
                    raise Refusal("unexpected-outcome", self._not_awaited(logged.n))
                return self._observed(logged.n, logged.outcome, by)
            case Overridden():
                self._check_overridable(logged.n, logged.accepted)
                return self._overridden(logged.n, logged.accepted, logged.note, by)
            case Closed():
                return self._closed(by)
        raise BrokenLogError("a stream is created once")

    # Entries --------------------------------------------------------------------------------

    def _decided(self, group: Group, proposed: bool, cost: float, by: Author, size: int) -> Decided:
        if self.created.human and (self.ledger.over or not self.ledger.position):
            self.base, self.made = self.snapshot(), []
        decision = self.run.decide(group, proposed=proposed, cost=cost)
        self.n += 1
        made = Made(group, proposed, cost, decision.accepted, decision.accepted)
        if self.created.human:
            self.made.append(made)
        self.count(made)
        return Decided(
            stream=self.name, seq=self.seq + 1, at=by.at, n=self.n, group=group,
            proposed=proposed, cost=cost, accepted=decision.accepted, why=decision.why.value,
            window=decision.window, position=decision.position, guaranteed=decision.guaranteed,
            key=by.key, size=size, actor=by.actor,
        )  # fmt: skip

    def _observed(self, n: int, outcome: bool, by: Author) -> Observed:
        pending = self.run.pending
        assert pending is not None
        self.run.observe(pending, outcome=outcome)
        self.ledger.observe(outcome)
        if self.made:
            self.made[-1].outcome = outcome
        return Observed(
            stream=self.name, seq=self.seq + 1, at=by.at, n=n, outcome=outcome, key=by.key,
            actor=by.actor,
        )  # fmt: skip

    def _overridden(self, n: int, accepted: bool, note: str, by: Author) -> Overridden:
        """Decide the window in progress again, with this one decision replaced.

        This gives its counters, and the verdicts at its checkpoints, after the override.
        """
        self.made[n - self.base.n - 1].accepted = accepted
        self.decide_again()
        return Overridden(
            stream=self.name, seq=self.seq + 1, at=by.at, n=n, accepted=accepted,
            guaranteed=self.guaranteed, note=note, key=by.key, actor=by.actor,
        )  # fmt: skip

    def _closed(self, by: Author) -> Closed:
        self.ledger.settle()
        self.closed = True
        return Closed(stream=self.name, seq=self.seq + 1, at=by.at, actor=by.actor)

    def _append(self, entry: AnyEntry) -> Logged:
        row = chained(entry, self.number, self.hash)
        self._follow(entry, row)
        return Logged(entry, row)

    def _follow(self, entry: AnyEntry, row: EntryRow) -> None:
        """Go on to an entry that has been applied."""
        self.seq, self.hash = row.seq, row.hash
        if self.watcher is not None:
            self.watcher.add(entry, row.hash)
        self._note_end(entry.at)

    def _note_end(self, at: str) -> None:
        """Keep the end of the window, if the last entry ended it."""
        if self.run.position:
            return
        ledger, prop = self.ledger, self.policy.prop
        found = ledger.settle() if ledger.position == self.length else None
        if found is None:
            return
        counts, unshielded, verdict = found.counts, ledger.counts_unshielded, ledger.shielded.now
        row = WindowRow(
            stream=self.number, window=found.window, seq=self.seq, n=self.n, at=at,
            fair=verdict == "fair", bias=plain_number(prop.bias_of(counts)),
            bias_unshielded=plain_number(prop.bias_of(unshielded)),
            overruled=ledger.window_overruled, cost_paid=ledger.window_paid, verdict=verdict,
            measured_bias=plain_number(prop.measured_bias_of(counts)),
            measured_bias_unshielded=plain_number(prop.measured_bias_of(unshielded)),
            snapshot=msgspec.json.encode(self.snapshot()),
        )  # fmt: skip
        self.ended.append(row)

    def snapshot(self) -> Snapshot:
        """The stream as it is; only between windows."""
        goes_on, tally = self.policy.goes_on, StreamTally.of(self.ledger)
        state = self.run.state.to_dict() if self.policy.stands else None
        window = 0 if goes_on else self.run.completed
        return Snapshot(self.seq, self.hash.hex(), self.n, window, tally, state)

    # Checks ---------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self.closed:
            raise Refusal(
                "stream-closed",
                f"stream {self.name!r} is closed: its log can be read, not added to",
            )

    def _checked(
        self, item: BatchItem | DecisionRequest, *, last: bool
    ) -> tuple[Group, bool, float, bool | None]:
        group = item.group
        if group not in self.index:
            group = declared(group, self.policy.groups)
            if group not in self.index:
                raise unknown_group(item.group, self.policy.groups)
        outcome = item.outcome if isinstance(item, BatchItem) else None
        if outcome is not None and not self.labelled:
            raise Refusal(
                "invalid-request", f"{self.policy.prop} does not count by outcome: leave it out"
            )
        if outcome is None and self.labelled and not last:
            raise Refusal(
                "invalid-request",
                f"{self.policy.prop} counts by outcome: every decision of a batch but the last "
                "needs its outcome",
            )
        return group, item.proposed, float(item.cost), outcome

    def _check_overridable(self, n: int, accepted: bool) -> None:
        def refuse(why: str) -> Refusal:
            return Refusal("not-overridable", f"decision {n} of stream {self.name!r} {why}")

        if not 1 <= n <= self.n:
            raise Refusal("not-found", f"stream {self.name!r} has no decision {n}")
        if not self.created.human:
            raise refuse("is final: the stream was made without human = true")
        if n <= self.base.n or self.reported:
            raise refuse("belongs to a window that is over, and has been reported")
        if self.labelled and n != self.pending:
            raise refuse("has been followed by its outcome, so it was carried out")
        made = self.made[n - self.base.n - 1]
        if made.accepted is not made.decided:
            raise refuse("has been overridden, and once is all")
        if made.accepted is accepted:
            raise refuse(f"is {'accepted' if accepted else 'rejected'} already")

    def _not_awaited(self, n: int) -> str:
        if not self.labelled:
            return f"{self.policy.prop} does not count by outcome: no outcomes are recorded"
        if self.pending is None:
            return f"no decision awaits its outcome, decision {n} neither: decide first"
        return f"decision {self.pending} awaits its outcome, not decision {n}"
