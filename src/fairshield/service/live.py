"""One stream in memory: a shield, the counters beside it, and the end of its log.

Everything here is a replay of the log.  An entry is made by deciding (:meth:`LiveStream.decide`
and its like) and checked by deciding once more (:meth:`LiveStream.replay`): both come down to the
same few methods, so a stream that was loaded is a stream that has been checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from fairshield.counts import Counts, Group, unknown_group
from fairshield.long import LongPolicy
from fairshield.outcomes import ADVICE
from fairshield.periodic import PeriodicPolicy, PeriodicShield
from fairshield.policy import Policy
from fairshield.records import declared
from fairshield.runtime.report import plain_number
from fairshield.runtime.shield import Shield
from fairshield.runtime.step import Decision
from fairshield.service.entries import (
    AnyEntry,
    Closed,
    Created,
    Decided,
    Observed,
    Overridden,
    Row,
    chained,
    columns,
    entry_of,
    follows,
)
from fairshield.service.messages import (
    BatchItem,
    DecisionRequest,
    OutcomeRequest,
    OverrideRequest,
    Status,
    Stream,
)
from fairshield.service.problems import Refusal
from fairshield.service.snapshots import Snapshot, WindowRow
from fairshield.service.tallies import Tally
from fairshield.service.watching import Watcher
from fairshield.stream import AnyPolicy as AnyPolicy


class BrokenLogError(Exception):
    """A log that does not continue as the policy decides, or whose hashes do not match."""


class Author(NamedTuple):
    """Who asks, when, and under which idempotency key."""

    at: str
    key: str | None = None
    actor: str | None = None


class _Made(msgspec.Struct):
    """A decision of the window in progress: the shield's, and how it stands."""

    group: Group
    proposed: bool
    cost: float
    decided: bool
    accepted: bool
    outcome: bool | None = None


class LiveStream:
    """A stream: its settings, its shield, and where its log has got.

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
        Where to begin; default: right after entry 0, whose hash is then ``hash``.
    watcher
        What is told every entry from here on, and steers nothing; default: nobody.
    """

    def __init__(
        self,
        number: int,
        created: Created,
        policy: AnyPolicy,
        *,
        hash: bytes = b"",
        snapshot: Snapshot | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self.number, self.created, self.policy = number, created, policy
        self.watcher = watcher
        self.periodic = isinstance(policy, PeriodicPolicy)
        self.length = policy.period if isinstance(policy, PeriodicPolicy) else policy.horizon
        self._checkpoints = frozenset(policy.due[:-1] if isinstance(policy, Policy) else ())
        self.closed = False
        self.torn = False  # true within a change: what fails then leaves the stream half changed
        self.ended: list[WindowRow] = []
        self.index = {group: i for i, group in enumerate(policy.groups)}
        self._window_log: list[_Made] = []
        self.described: Stream | None = None
        if snapshot is None:
            snapshot = Snapshot(0, hash.hex(), 0, 0, Tally.empty(len(policy.groups)))
        self.seq, self.hash, self.n = snapshot.seq, bytes.fromhex(snapshot.hash), snapshot.n
        self._base = snapshot
        self._restore(snapshot)

    def _restore(self, snapshot: Snapshot) -> None:
        """Shield and counters as they were between two windows."""
        self.window, self.tally = snapshot.window, snapshot.tally.copy()
        self._fresh = True  # nothing decided yet in the window that begins here
        self.shield: Shield | PeriodicShield
        if isinstance(self.policy, PeriodicPolicy):
            self.shield = PeriodicShield(self.policy, state=snapshot.shield)
        else:
            self.shield = Shield(self.policy)

    # Where it stands ------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.created.stream

    @property
    def capacity(self) -> int | None:
        """Decisions that can still be made; ``None``: no end."""
        shield = self.shield
        if isinstance(shield, PeriodicShield):
            last = shield.policy.last
            return None if last is None else last * self.length - shield.decided
        if self.created.windows is None:
            return None
        return (self.created.windows - self.window - 1) * self.length + shield.remaining

    @property
    def pending(self) -> int | None:
        """The decision whose outcome is awaited."""
        return self.n if self.shield.pending is not None else None

    @property
    def finished(self) -> bool:
        """Whether nothing more will be decided."""
        return self.closed or (self.capacity == 0 and self.shield.pending is None)

    @property
    def overridable(self) -> dict[int, bool]:
        """Decisions that a person may override, and how they stand."""
        if self.closed or self._reported:
            return {}
        first = self._base.n + 1
        standing = {
            first + i: made.accepted
            for i, made in enumerate(self._window_log)
            if made.accepted is made.decided
        }
        if self.policy.labelled:
            return {n: accepted for n, accepted in standing.items() if n == self.pending}
        return standing

    @property
    def _reported(self) -> bool:
        """Whether the window of the decisions that a person could override is over."""
        return self._completed() > self._base.tally.completed

    def takes_long(self, decisions: int = 1) -> bool:
        """Whether a request may need a plan to be made, which is not for the thread that writes."""
        shield = self.shield
        if isinstance(shield, PeriodicShield):
            return self.created.human or not shield.planned or decisions > shield.at_once
        return isinstance(shield.policy, LongPolicy) and decisions > shield.planned

    def replay_takes_long(self, row: Row) -> bool:
        """:meth:`takes_long`, for an entry that is there."""
        person = self.created.human and row.n is None
        return not self.planned or (self.periodic and person)

    @property
    def planned(self) -> bool:
        """Whether asking for the state makes no plan."""
        return self.closed or not self.shield.remaining or bool(self.shield.planned)

    # Requests: each returns the entries it led to ---------------------------------------------

    def decide(self, items: Sequence[BatchItem | DecisionRequest], by: Author) -> list[Row]:
        """Decide these people in order; all of them or, on an error, none."""
        self._check_open()
        requests = [self._checked(item, last=item is items[-1]) for item in items]
        pending, capacity = self.shield.pending, self.capacity
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
        rows: list[Row] = []
        size = sum(1 + (outcome is not None) for *_, outcome in requests)
        self.torn = True
        for group, proposed, cost, outcome in requests:
            entry = self._decided(group, proposed, cost, by, size)
            rows.append(self._append(entry))
            by, size = by if by.key is None else by._replace(key=None), 1
            if outcome is not None:
                rows.append(self._append(self._observed(self.n, outcome, by)))
        self.torn = False
        return rows

    def observe(self, request: OutcomeRequest, by: Author) -> list[Row]:
        """Record the outcome of the decision that awaits it."""
        self._check_open()
        if self.pending != request.decision:
            raise Refusal("unexpected-outcome", self._not_awaited(request.decision))
        self.torn = True
        rows = [self._append(self._observed(request.decision, request.outcome, by))]
        self.torn = False
        return rows

    def override(self, n: int, request: OverrideRequest, by: Author) -> list[Row]:
        """Put a person's decision in the place of decision ``n``."""
        self._check_open()
        self._check_overridable(n, request.accepted)
        self.torn = True
        rows = [self._append(self._overridden(n, request.accepted, request.note, by))]
        self.torn = False
        return rows

    def close(self, by: Author) -> list[Row]:
        """End the stream; nothing if it has been closed."""
        if self.closed:
            return []
        return [self._append(self._closed(by))]

    # Replay ---------------------------------------------------------------------------------

    def replay(self, row: Row) -> AnyEntry:
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
        except (MemoryError, OSError):  # nothing is wrong with the log
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

    def _broken(self, row: Row, why: str) -> BrokenLogError:
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
        self._judge_checkpoint()
        self._begin_window()
        decision = self.shield.decide(group, proposed=proposed, cost=cost)
        self.n += 1
        made = _Made(group, proposed, cost, decision.accepted, decision.accepted)
        if self.created.human:
            self._window_log.append(made)
        self._count_decision(made)
        return Decided(
            stream=self.name, seq=self.seq + 1, at=by.at, n=self.n, group=group,
            proposed=proposed, cost=cost, accepted=decision.accepted, why=decision.why.value,
            window=decision.period if self.periodic else self.window,
            position=decision.position, guaranteed=decision.guaranteed, key=by.key, size=size,
            actor=by.actor,
        )  # fmt: skip

    def _observed(self, n: int, outcome: bool, by: Author) -> Observed:
        pending = self.shield.pending
        assert pending is not None
        self._count_outcome(pending, outcome)
        self.shield.observe(pending, outcome=outcome)
        if self._window_log:
            self._window_log[-1].outcome = outcome
        return Observed(
            stream=self.name, seq=self.seq + 1, at=by.at, n=n, outcome=outcome, key=by.key,
            actor=by.actor,
        )  # fmt: skip

    def _overridden(self, n: int, accepted: bool, note: str, by: Author) -> Overridden:
        """Decide the window again as it was, but for this decision; counters follow from that."""
        self._window_log[n - self._base.n - 1].accepted = accepted
        judged = self.tally
        self._restore(self._base)
        self.tally.keep_judged(judged)
        self._fresh = False
        for made in self._window_log:
            advice = self.shield.advise(made.group, proposed=made.proposed, cost=made.cost)
            decision = self.shield.record(advice, final=made.accepted)
            self._count_decision(made)
            if made.outcome is not None:
                self._count_outcome(decision, made.outcome)
                self.shield.observe(decision, outcome=made.outcome)
        return Overridden(
            stream=self.name, seq=self.seq + 1, at=by.at, n=n, accepted=accepted,
            guaranteed=self.guaranteed, note=note, key=by.key, actor=by.actor,
        )  # fmt: skip

    def _closed(self, by: Author) -> Closed:
        self._judge_checkpoint()
        self.closed = True
        return Closed(stream=self.name, seq=self.seq + 1, at=by.at, actor=by.actor)

    def _append(self, entry: AnyEntry) -> Row:
        row = chained(entry, self.number, self.hash)
        self._follow(entry, row)
        return row

    def _follow(self, entry: AnyEntry, row: Row) -> None:
        """Go on to an entry that has been applied."""
        self.seq, self.hash = row.seq, row.hash
        if self.watcher is not None:
            self.watcher.add(entry, row.hash)
        self._note_end(entry.at)

    # Counting -------------------------------------------------------------------------------

    def _begin_window(self) -> None:
        """Begin the next window, if none is in progress."""
        shield = self.shield
        if isinstance(shield, Shield) and not shield.remaining and shield.pending is None:
            self.tally.put_away(shield.counts, self.policy.start)
            self.window, self.shield = self.window + 1, Shield(shield.policy)
            self._fresh = True
        if self._fresh:
            self.tally.begin()
            if self.created.human:
                self._base, self._window_log = self._snapshot(), []
            self._fresh = False

    def _count_decision(self, made: _Made) -> None:
        tally, group = self.tally, self.index[made.group]
        tally.overridden += made.accepted is not made.decided
        if made.decided is not made.proposed:
            tally.overruled += 1
            tally.overruled_by_group[group] += 1
            tally.cost_paid += made.cost
            tally.window_overruled += 1
            tally.window_cost += made.cost
        if not self.policy.labelled:
            tally.proposed[group] += made.proposed

    def _count_outcome(self, decision: Decision, outcome: bool) -> None:
        if outcome == self.policy.prop.relevant_outcome:
            self.tally.proposed[self.index[decision.group]] += decision.proposed

    def _judge_checkpoint(self) -> None:
        """Judge a checkpoint that has been reached: until now a person might have changed it."""
        checkpoints, shield = self._checkpoints, self.shield
        if checkpoints and shield.decided in checkpoints and shield.pending is None:
            self._judge()

    def _note_end(self, at: str) -> None:
        """Count the window, if the last entry ended it."""
        completed = self._completed()
        if completed == self.tally.completed:
            return
        counts, unshielded = self._judge()
        tally, prop = self.tally, self.policy.prop
        tally.end(completed)
        self._fresh = self._fresh or self.periodic
        row = WindowRow(
            stream=self.number, window=completed - 1, seq=self.seq, n=self.n, at=at,
            fair=tally.window_verdict == "fair", bias=plain_number(prop.bias_of(counts)),
            bias_unshielded=plain_number(prop.bias_of(unshielded)),
            overruled=tally.window_overruled, cost_paid=tally.window_cost,
            verdict=tally.window_verdict,
            measured_bias=plain_number(prop.measured_bias_of(counts)),
            measured_bias_unshielded=plain_number(prop.measured_bias_of(unshielded)),
            snapshot=msgspec.json.encode(self._snapshot()),
        )  # fmt: skip
        self.ended.append(row)

    def _judge(self) -> tuple[Counts, Counts]:
        """Note how the stream stands at a moment when the property is due; returns its counters."""
        counts, unshielded = self.shield.counts, self.unshielded
        self.tally.judge(self.policy.prop, counts, unshielded)
        return counts, unshielded

    def _completed(self) -> int:
        """Windows or periods that are over."""
        shield = self.shield
        if isinstance(shield, PeriodicShield):
            return shield.completed
        return self.window + (not shield.remaining and shield.pending is None)

    def _snapshot(self) -> Snapshot:
        """The stream as it is; only between windows."""
        shield, tally, window = self.shield, self.tally.copy(), self.window
        if isinstance(shield, PeriodicShield):
            state = shield.state.to_dict()
            return Snapshot(self.seq, self.hash.hex(), self.n, 0, tally, state)
        if not shield.remaining:
            tally.put_away(shield.counts, self.policy.start)
            window += 1
        return Snapshot(self.seq, self.hash.hex(), self.n, window, tally)

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
        if outcome is not None and not self.policy.labelled:
            raise Refusal(
                "invalid-request", f"{self.policy.prop} does not count by outcome: leave it out"
            )
        if outcome is None and self.policy.labelled and not last:
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
        if n <= self._base.n or self._reported:
            raise refuse("belongs to a window that is over, and has been reported")
        if self.policy.labelled and n != self.pending:
            raise refuse("has been followed by its outcome, so it was carried out")
        made = self._window_log[n - self._base.n - 1]
        if made.accepted is not made.decided:
            raise refuse("has been overridden, and once is all")
        if made.accepted is accepted:
            raise refuse(f"is {'accepted' if accepted else 'rejected'} already")

    def _not_awaited(self, n: int) -> str:
        if not self.policy.labelled:
            return f"{self.policy.prop} does not count by outcome: no outcomes are recorded"
        if self.pending is None:
            return f"no decision awaits its outcome, decision {n} neither: decide first"
        return f"decision {self.pending} awaits its outcome, not decision {n}"

    # What is reported -----------------------------------------------------------------------

    @property
    def guaranteed(self) -> bool:
        """Whether the window or period in progress is certain to end fair.

        Of a closed stream: whether the property binds and holds, as nothing more will come.
        """
        if self.closed:
            return self.policy.prop.verdict(self.shield.counts) == "fair"
        if isinstance(self.shield, PeriodicShield):
            return self.shield.guarantee.guaranteed
        return self.shield.guaranteed

    @property
    def unshielded(self) -> Counts:
        """The counters that the classifier's proposals would have led to."""
        counts, start = self.shield.counts, self.policy.start
        return Counts(
            {
                group: (counts[group].seen, start[group].accepted + self.tally.proposed[i])
                for group, i in self.index.items()
            }
        )

    @property
    def everybody(self) -> dict[Group, tuple[int, int, int]]:
        """Relevant people since the first decision: seen, accepted, and proposed to be."""
        whole, counts, start = self.tally.whole, self.shield.counts, self.policy.start
        assert whole is not None
        return {
            group: (
                whole.seen[i] + counts[group].seen - start[group].seen,
                whole.accepted[i] + counts[group].accepted - start[group].accepted,
                whole.proposed[i] + self.tally.proposed[i],
            )
            for group, i in self.index.items()
        }

    @cached_property
    def can_bind(self) -> bool:
        """Whether the property can ever bind; if not, what is guaranteed means nothing."""
        return self.policy.can_bind

    @property
    def status(self) -> Status:
        """The light on the dashboard."""
        if self.tally.unfair or self.tally.window_verdict == "unfair":
            return "violated"
        if self.finished:
            return "finished"
        if not self.can_bind:
            return "vacuous"
        return "guaranteed" if self.guaranteed else "at-risk"
