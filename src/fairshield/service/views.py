"""What is read from logs: bias over time, explanations, what is to be expected.

Nothing here touches a stream in use; it works on entries, and on copies made from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np

from fairshield.counts import Counts, Group, GroupCount
from fairshield.explain import explain
from fairshield.periodic import PeriodicPolicy, PeriodicShield
from fairshield.policy import Policy
from fairshield.runtime.shield import Shield
from fairshield.service.commands import decision_of
from fairshield.service.entries import Decided, Observed, Overridden, Row, entry_of
from fairshield.service.live import AnyPolicy, LiveStream
from fairshield.service.loading import checked_snapshot, first_entry
from fairshield.service.messages import Explanation, Outlook, Series, WhatIf
from fairshield.service.problems import Refusal
from fairshield.service.shelf import Shelf
from fairshield.service.snapshots import Snapshot
from fairshield.service.store import Connection
from fairshield.synthesis import cost_to_go

_POINTS = 2_000
MOST_POINTS = 20_000
"""Decisions in one answer."""


# Bias over time -----------------------------------------------------------------------------


class Running:
    """Counters of a stream with and without its shield, entry by entry."""

    def __init__(self, policy: AnyPolicy, snapshot: Snapshot | None) -> None:
        self.policy = policy
        self._resets = not isinstance(policy, PeriodicPolicy)
        self._index = {group: i for i, group in enumerate(policy.groups)}
        self._made: dict[int, Decided] = {}
        self._window = -1
        self._start()
        if snapshot is not None and snapshot.shield is not None:
            seen = {group: (n, k) for group, n, k in snapshot.shield["counts"]}
            for group, i in self._index.items():
                self.seen[i], self.accepted[i] = seen[group]
                self.proposed[i] += snapshot.tally.proposed[i]

    def _start(self) -> None:
        start = [self.policy.start[group] for group in self.policy.groups]
        self.seen = [count.seen for count in start]
        self.accepted = [count.accepted for count in start]
        self.proposed = [count.accepted for count in start]

    def add(self, row: Row) -> int | None:
        """Count an entry; the decision it is about, if it changed the counters."""
        entry = entry_of(row.line)
        if isinstance(entry, Decided):
            if self._resets and entry.window != self._window:
                self._start()
                self._made.clear()
            self._window = entry.window
            self._made[entry.n] = entry
            if not self.policy.labelled:
                self._count(entry)
                return entry.n
        elif isinstance(entry, Observed):
            if entry.outcome == self.policy.prop.relevant_outcome:
                self._count(self._made[entry.n])
            return entry.n
        elif isinstance(entry, Overridden):
            made = self._made.get(entry.n)
            if made is None:  # of a window that ended while we were reading
                return None
            self._made[entry.n] = msgspec.structs.replace(made, accepted=entry.accepted)
            if not self.policy.labelled:
                self.accepted[self._index[made.group]] += entry.accepted - made.accepted
                return entry.n
        return None

    def _count(self, made: Decided) -> None:
        group = self._index[made.group]
        self.seen[group] += 1
        self.accepted[group] += made.accepted
        self.proposed[group] += made.proposed


def series(
    number: int,
    connection: Connection,
    shelf: Shelf,
    *,
    after: int | None = None,
    last: int = _POINTS,
) -> Series:
    """Bias after each of the last decisions, or since entry ``after``, if that is not too long ago.

    The first points may lie before what was asked for: counting begins where a window does.
    """
    created, _ = first_entry(number, connection)
    policy = shelf.policy(created.policy, connection)
    first = _first_of(number, connection, after, last)
    ended = connection.last_window(number, until=first)
    snapshot = None if ended is None else checked_snapshot(ended, connection)
    running = Running(policy, snapshot)
    places: list[tuple[int, int]] = []
    numbers: list[tuple[int, ...]] = []
    seq = first
    for row in connection.entries(number, after=0 if snapshot is None else snapshot.seq):
        n, seq = running.add(row), row.seq
        if n is not None and row.seq > first:
            places.append((row.seq, n))
            numbers.append((*running.seen, *running.accepted, *running.proposed))
    return _as_series(policy, seq, places, numbers)


def _first_of(number: int, connection: Connection, after: int | None, last: int) -> int:
    """The entry before the first point; ``after`` counts only if it is not too long ago."""
    latest = connection.latest(number, limit=1)
    most = last if after is None else MOST_POINTS
    if not latest or latest[0].n is None or latest[0].n <= most:
        return after or 0
    row = connection.decision(number, latest[0].n - most)
    return max(after or 0, 0 if row is None else row.seq)


def _as_series(
    policy: AnyPolicy, seq: int, places: Sequence[tuple[int, int]], numbers: Sequence[Sequence[int]]
) -> Series:
    if not places:
        return Series(seq, *((),) * 3, ((), ()), *((),) * 3)
    columns = np.array(numbers, dtype=np.int64).T
    (n_a, n_b), accepted, proposed = columns[:2], columns[2:4], columns[4:]
    prop = policy.prop

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
    return tuple(v if math.isfinite(v) else None for v in np.asarray(values, float).tolist())


# Explanations -------------------------------------------------------------------------------


def explanation(number: int, n: int, connection: Connection, shelf: Shelf) -> Explanation:
    """Why decision ``n`` was made: the stream as it was then, decided once more."""
    row = connection.decision(number, n)
    if row is None:
        raise Refusal("not-found", f"there is no decision {n} in this stream")
    live = stream_before(number, row.seq, connection, shelf)
    logged = entry_of(row.line)
    assert isinstance(logged, Decided)
    if isinstance(live.shield, Shield) and not live.shield.remaining:
        live.shield = Shield(live.shield.policy)
    made = live.shield.decide(logged.group, proposed=logged.proposed, cost=logged.cost)
    numbered = made._replace(position=n - 1)  # in the stream, as everywhere else here
    if isinstance(live.shield, PeriodicShield):
        found = live.shield.explain(made)
        costs = found.explanation
        text = str(replace(found, explanation=replace(costs, decision=numbered)))
    else:
        costs = explain(live.shield.policy, made)
        text = str(replace(costs, decision=numbered))
    return Explanation(
        decision=decision_of(row, live.length),
        text=text,
        cost_if_accepted=_finite(costs.if_accepted),
        cost_if_rejected=_finite(costs.if_rejected),
    )


def stream_before(number: int, seq: int, connection: Connection, shelf: Shelf) -> LiveStream:
    """A copy of a stream as it was before entry ``seq``."""
    created, hash = first_entry(number, connection)
    policy = shelf.policy(created.policy, connection)
    ended = connection.last_window(number, until=seq - 1)
    snapshot = None if ended is None else checked_snapshot(ended, connection)
    live = LiveStream(number, created, policy, hash=hash, snapshot=snapshot)
    for row in connection.entries(number, after=live.seq, limit=seq - live.seq - 1):
        live.replay(row)
    return live


# What is to be expected ---------------------------------------------------------------------


class Here(NamedTuple):
    """Where a stream stands, for :func:`outlook`: nothing in it changes any more."""

    seq: int
    policy: Policy | None
    counts: Counts
    decided: int
    pending: bool


def here(live: LiveStream) -> Here:
    """Where a stream stands."""
    shield = live.shield
    if live.finished:
        return Here(live.seq, None, shield.counts, 0, False)
    if isinstance(shield, PeriodicShield):
        shield = shield.current
    elif not shield.remaining and shield.pending is None:
        shield = Shield(shield.policy)
    pending = shield.pending is not None
    return Here(live.seq, shield.policy, shield.counts, shield.decided, pending)


def usual_cost(policy: AnyPolicy) -> float:
    """The cost of overruling that the policy's input model thinks likeliest."""
    length = policy.period if isinstance(policy, PeriodicPolicy) else policy.horizon
    table = policy.inputs.table(length)
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
        expected_cost=_finite(expected),
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


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
