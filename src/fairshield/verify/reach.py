"""The states a policy can reach, layer by layer, and which of them violate the property."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Counts, GroupCount
from fairshield.layout import layer_rows
from fairshield.policy import Policy
from fairshield.runtime.compiled import tables, verdict
from fairshield.verify.kernels import expand

_STATES_AT_ONCE = 1 << 20


class Position(NamedTuple):
    """Counters since the start of the window."""

    n_a: int
    k_a: int
    n_b: int
    k_b: int


class _Layer:
    """Rows after ``t`` decisions and where the states of each begin."""

    def __init__(self, t: int, labelled: bool) -> None:
        self.rows = layer_rows(t, labelled)
        self.starts = np.concatenate(([0], np.cumsum(self.rows.states)))

    @property
    def n_states(self) -> int:
        return int(self.starts[-1])

    def positions(self, states: NDArray[np.int64]) -> Any:
        """Counters of states given by number, as four arrays."""
        row = np.searchsorted(self.starts, states, side="right") - 1
        n_a, n_b, short = (column[row] for column in self.rows)
        long = states - self.starts[row]
        turned = n_a > n_b
        return n_a, np.where(turned, long, short), n_b, np.where(turned, short, long)


class Reach:
    """States reachable after ``t`` decisions, and, one bit per state, after all earlier ones."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.t = 0
        self.states, self.transitions = 1, 0
        self.costs = dict(usable_costs(policy.edges.tolist()))
        self._tables = tables(policy)
        self._levels = np.array(list(self.costs), np.int64)
        self._layer = _Layer(0, policy.labelled)
        self._here = np.ones(1, np.uint8)
        self._past: list[NDArray[np.uint8]] = []

    def advance(self) -> None:
        """One more decision, whatever the request and its outcome."""
        layer, here = self._layer, self._here
        after = _Layer(self.t + 1, self.policy.labelled)
        reached = np.zeros(after.n_states, np.uint8)
        self.transitions += expand(
            self._tables, self.t, self._levels, layer.rows, layer.starts, here,
            after.starts, reached,
        )  # fmt: skip
        self._past.append(np.packbits(here))
        self._layer, self._here = after, reached
        self.t += 1
        self.states += int(np.count_nonzero(reached))

    def violation(self) -> Position | None:
        """The first reachable state that violates the property, if any."""
        states = np.flatnonzero(self._here)
        a, b = self.policy.start_counts()
        prop = self.policy.prop
        if self.t == self.policy.horizon and not self.policy.further:
            prop = self.policy.terminal or prop
        for first in range(0, len(states), _STATES_AT_ONCE):
            n_a, k_a, n_b, k_b = self._layer.positions(states[first : first + _STATES_AT_ONCE])
            fair = prop.holds_array(
                GroupCount(n_a + a.seen, k_a + a.accepted),
                GroupCount(n_b + b.seen, k_b + b.accepted),
            )
            bad = np.flatnonzero(~fair)
            if len(bad):
                i = bad[0]
                return Position(int(n_a[i]), int(k_a[i]), int(n_b[i]), int(k_b[i]))
        return None

    def positions(self) -> NDArray[np.int64]:
        """Counters since the start of all states reached, one row ``n_a, k_a, n_b, k_b`` each."""
        return np.stack(self._layer.positions(np.flatnonzero(self._here)), axis=1)

    def reached(self, t: int, at: Position) -> bool:
        """Whether ``at`` is among the states after ``t`` earlier decisions."""
        n_a, k_a, n_b, k_b = at
        if not (0 <= k_a <= n_a and 0 <= k_b <= n_b and n_a + n_b <= t):
            return False
        row, along = self.policy.layout.place(t, *at)
        row -= self.policy.layout.rows_before(t)
        state = int(_Layer(t, self.policy.labelled).starts[row]) + along
        return bool(self._past[t][state >> 3] >> (7 - (state & 7)) & 1)

    def accepts(self, t: int, at: Position, group: int, proposed: bool, level: int) -> bool:
        """What the policy decides."""
        return bool(verdict(self._tables, t, *at, group, proposed, level))

    def counts(self, at: Position) -> Counts:
        """Counters including the policy's start."""
        return self.policy.start.plus(at)


def usable_costs(edges: list[float]) -> list[tuple[int, float]]:
    """Cost levels that some finite cost falls into, each with such a cost.

    One past the last level stands for costs above all edges.
    """
    costs = []
    for level in range(len(edges) + 1):
        below = edges[level - 1] if level else 0.0
        edge = edges[level] if level < len(edges) else math.inf
        cost = edge if edge < math.inf else max(below + 1.0, math.nextafter(below, math.inf))
        if cost < math.inf and bisect_left(edges, cost) == level:
            costs.append((level, cost))
    return costs
