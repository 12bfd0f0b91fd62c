"""Views computed from logs: bias over time, explanations, the outlook.

These functions read entries, and streams replayed from entries.  They never touch a stream that is
in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np

from fairshield.base.counts import Counts, Group, GroupCount
from fairshield.base.plain import plain_number
from fairshield.periodic import PeriodicPolicy
from fairshield.policy import Policy
from fairshield.runtime.ledger import Ledger
from fairshield.runtime.shield import Shield
from fairshield.service.history.loading import begun
from fairshield.service.log.answers import decision_of
from fairshield.service.log.entries import Decided, EntryRow, Observed, Overridden, entry_of, logged
from fairshield.service.log.live import LiveStream
from fairshield.service.log.snapshots import Snapshot
from fairshield.service.store import Connection
from fairshield.service.store.policies import LoadedPolicies
from fairshield.synthesis import cost_to_go
from fairshield.wire.messages import ExplanationMessage, Outlook, Series, WhatIf
from fairshield.wire.problems import Refusal

_POINTS = 2_000
MOST_POINTS = 20_000
"""Most decisions in one answer."""


# Bias over time -----------------------------------------------------------------------------


class Running:
    """Running counts a stream with and without its shield, entry by entry."""

    def __init__(self, policy: PeriodicPolicy, snapshot: Snapshot) -> None:
        self.policy = policy
        self._index = {group: i for i, group in enumerate(policy.groups)}
        self._start = Counts({group: policy.start[group] for group in policy.groups})
        self._made: dict[int, Decided] = {}
        self._window = -1
        self._begin()
        if policy.goes_on and snapshot.tally is not None and snapshot.shield is not None:
            counts = Counts({group: (n, k) for group, n, k in snapshot.shield["counts"]})
            snapshot.tally.resume(self.ledger, snapshot.n, counts)

    def _begin(self) -> None:
        self.ledger = Ledger(self.policy.prop, self._start, goes_on=self.policy.goes_on)

    def people(self, cells: Sequence[Sequence[int]]) -> np.ndarray:
        """``(3, groups, moments)``: people seen, accepted and proposed to be, from ledger cells."""
        start = np.array([(n, k, k) for n, k in self._start.values()])
        people = self.ledger.people_of(np.array(cells, np.int64))
        return np.transpose(people + start, (2, 1, 0))

    def add(self, row: EntryRow) -> int | None:
        """Count an entry; the decision it is about, if it changed the counters."""
        entry = entry_of(row.line)
        if isinstance(entry, Decided):
            if not self.policy.goes_on and entry.window != self._window:
                self._begin()
                self._made.clear()
            self._window = entry.window
            self._made[entry.n] = entry
            self._count(entry, None if self.policy.labelled else True)
            return None if self.policy.labelled else entry.n
        if isinstance(entry, Observed):
            self.ledger.observe(entry.outcome)
            return entry.n
        if isinstance(entry, Overridden) and entry.n in self._made:  # not of an earlier window
            self._override(self._made[entry.n], entry.accepted)
            return None if self.policy.labelled else entry.n
        return None

    def _count(self, made: Decided, relevant: bool | None) -> None:
        group = self._index[made.group]
        self.ledger.add_reviewed(
            group, made.proposed, made.accepted, made.accepted, made.cost, relevant
        )

    def _override(self, made: Decided, accepted: bool) -> None:
        self._made[made.n] = msgspec.structs.replace(made, accepted=accepted)
        self.ledger.override(self._index[made.group], made.proposed, made.accepted)


def series(
    number: int,
    connection: Connection,
    policies: LoadedPolicies,
    *,
    after: int | None = None,
    last: int = _POINTS,
) -> Series:
    """Bias after each of the last decisions, or after entry ``after`` if that is recent enough.

    The first points may lie before what was asked for: counting begins where a window does.
    """
    first = _first_of(number, connection, after, last)
    _, policy, snapshot = begun(number, connection, policies, first)
    running = Running(policy, snapshot)
    places: list[tuple[int, int]] = []
    cells: list[tuple[int, ...]] = []
    seq = first
    for row in connection.entries(number, after=snapshot.seq):
        n, seq = running.add(row), row.seq
        if n is not None and row.seq > first:
            places.append((row.seq, n))
            cells.append(tuple(running.ledger.cells))
    return _as_series(running, seq, places, cells)


def _first_of(number: int, connection: Connection, after: int | None, last: int) -> int:
    """The entry before the first point; ``after`` counts only if it is not too long ago."""
    latest = connection.latest(number, limit=1)
    most = last if after is None else MOST_POINTS
    if not latest or latest[0].n is None or latest[0].n <= most:
        return after or 0
    row = connection.decision(number, latest[0].n - most)
    return max(after or 0, 0 if row is None else row.seq)


def _as_series(
    running: Running, seq: int, places: Sequence[tuple[int, int]], cells: Sequence[Sequence[int]]
) -> Series:
    if not places:
        return Series(seq, *((),) * 3, ((), ()), *((),) * 3)
    (n_a, n_b), accepted, proposed = running.people(cells)
    prop = running.policy.prop

    def biases(of: Callable[..., np.ndarray], k: np.ndarray) -> tuple[float | None, ...]:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = of(GroupCount(n_a, k[0]), GroupCount(n_b, k[1]))
        return _plain(np.broadcast_to(found, n_a.shape))

    with np.errstate(divide="ignore", invalid="ignore"):
        rates = tuple(_plain(k / n) for k, n in zip(accepted, (n_a, n_b), strict=True))
    return Series(
        seq=seq,
        n=tuple(n for _, n in places),
        bias=biases(prop.bias_array, accepted),
        bias_unshielded=biases(prop.bias_array, proposed),
        rates=rates,
        binds=tuple(prop.binds_array(GroupCount(n_a, 0), GroupCount(n_b, 0)).tolist()),
        measured_bias=biases(prop.measured_bias_array, accepted),
        measured_bias_unshielded=biases(prop.measured_bias_array, proposed),
    )


def _plain(values: np.ndarray) -> tuple[float | None, ...]:
    return tuple(map(plain_number, np.asarray(values, float).tolist()))


# Explanations -------------------------------------------------------------------------------


def explanation(
    number: int, n: int, connection: Connection, policies: LoadedPolicies
) -> ExplanationMessage:
    """Why decision ``n`` was made: the stream as it was then, decided once more."""
    row = connection.decision(number, n)
    if row is None:
        raise Refusal("not-found", f"there is no decision {n} in this stream")
    live = stream_before(number, row.seq, connection, policies)
    found = logged(row)
    entry = found.entry
    assert isinstance(entry, Decided)
    made = live.run.decide(entry.group, proposed=entry.proposed, cost=entry.cost)
    numbered = made._replace(position=n - 1)  # counted from the first decision of the stream
    costs = live.run.explain(made)
    text = str(replace(costs, decision=numbered))
    return ExplanationMessage(
        decision=decision_of(found, live.length),
        text=text,
        cost_if_accepted=plain_number(costs.if_accepted),
        cost_if_rejected=plain_number(costs.if_rejected),
    )


def stream_before(
    number: int, seq: int, connection: Connection, policies: LoadedPolicies
) -> LiveStream:
    """A copy of a stream as it was before entry ``seq``."""
    live = LiveStream(number, *begun(number, connection, policies, seq - 1))
    for row in connection.entries(number, after=live.seq, limit=seq - live.seq - 1):
        live.replay(row)
    return live


# Outlook ------------------------------------------------------------------------------------


class Here(NamedTuple):
    """Here holds the state of a stream for :func:`outlook`; none of its values change later."""

    seq: int
    policy: Policy | None
    counts: Counts
    decided: int
    pending: bool


def here(live: LiveStream) -> Here:
    """The state of a stream that :func:`outlook` needs."""
    if live.finished:
        return Here(live.seq, None, live.counts, 0, False)
    shield = live.run.current
    pending = shield.pending is not None
    return Here(live.seq, shield.policy, shield.counts, shield.decided, pending)


def usual_cost(policy: PeriodicPolicy) -> float:
    """The cost of overruling that the policy's input model thinks likeliest."""
    table = policy.inputs.table(policy.length)
    return float(table.levels[int(np.argmax(table.probs.sum(axis=(0, 1, 2))))])


def outlook(at: Here, cost: float, groups: Iterable[Group]) -> Outlook:
    """Expected cost of what is left, and what would be decided on each kind of person."""
    policy = at.policy
    if policy is None or at.pending:
        return Outlook(seq=at.seq, expected_cost=None, what_if=())
    shield = Shield(policy, counts=at.counts, decided=at.decided)
    expected = cost_to_go(policy, at.counts, at.decided)
    cases = [(group, proposed) for group in groups for proposed in (True, False)]
    return Outlook(
        seq=at.seq,
        expected_cost=plain_number(expected),
        what_if=tuple(_what_if(shield, group, proposed, cost) for group, proposed in cases),
    )


def _what_if(shield: Shield, group: Group, proposed: bool, cost: float) -> WhatIf:
    advice = shield.advise(group, proposed=proposed, cost=cost)
    return WhatIf(
        group=group,
        proposed=proposed,
        cost=cost,
        accepted=advice.accepted,
        overruled=advice.overruled,
        why=advice.why.value,
        reason=advice.reason,
    )
