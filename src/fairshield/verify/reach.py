"""The states a policy can reach, layer by layer, and which of them violate a property."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.codes import accepts
from fairshield.counts import At, Counts, GroupCount
from fairshield.layout import layer_rows
from fairshield.many import ManyPolicy
from fairshield.many.kernels import look_up
from fairshield.policy import Policy
from fairshield.runtime.compiled import many_tables, tables, verdict
from fairshield.spec import Property
from fairshield.verify.kernels import counters_in, expand, expand_many

_STATES_AT_ONCE = 1 << 20
Ints = NDArray[np.int64]
Flags = NDArray[np.uint8]


class Reach(ABC):
    """States reachable after ``t`` decisions, and, one bit per state, after all earlier ones."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.t = 0
        self.states, self.transitions = 1, 0
        self.costs = dict(usable_costs(policy.edges.tolist()))
        self._levels = np.array(list(self.costs), np.int64)
        self._here = np.ones(1, np.uint8)
        self._past: list[Flags] = []

    @abstractmethod
    def _expand(self, here: Flags) -> tuple[Flags, int]:
        """The states that follow those of layer ``t``, and in how many ways."""

    @abstractmethod
    def _counters(self, states: Ints) -> Ints:
        """``(states, 2 G)``: counters of states of layer ``t`` given by their place in it."""

    @abstractmethod
    def _place(self, t: int, at: At) -> int:
        """The place of a state in its layer."""

    @abstractmethod
    def accepts(self, t: int, at: At, group: int, proposed: bool, level: int) -> bool:
        """What the policy decides."""

    def advance(self) -> None:
        """One more decision, whatever the request and its outcome."""
        after, transitions = self._expand(self._here)
        self._past.append(np.packbits(self._here))
        self._here = after
        self.t += 1
        self.transitions += transitions
        self.states += int(np.count_nonzero(after))

    def violation(self, required: tuple[Property, ...]) -> tuple[At, Property] | None:
        """The first reachable state that violates one of the properties, and which, if any."""
        states = np.flatnonzero(self._here) if required else np.empty(0, np.int64)
        for first in range(0, len(states), _STATES_AT_ONCE):
            at = self._counters(states[first : first + _STATES_AT_ONCE])
            counts = [
                GroupCount(at[:, 2 * g] + of.seen, at[:, 2 * g + 1] + of.accepted)
                for g, of in enumerate(self.policy.start_counts())
            ]
            for prop in required:
                bad = np.flatnonzero(~prop.holds_array(*counts))
                if len(bad):
                    return tuple(at[bad[0]].tolist()), prop
        return None

    def positions(self) -> Ints:
        """Counters since the start of all states reached, one row ``n_a, k_a, …`` each."""
        return self._counters(np.flatnonzero(self._here))

    def reached(self, t: int, at: At) -> bool:
        """Whether ``at`` is among the states after ``t`` earlier decisions."""
        pairs = zip(at[::2], at[1::2], strict=True)
        if not all(0 <= k <= n for n, k in pairs) or sum(at[::2]) > t:
            return False
        state = self._place(t, at)
        return bool(self._past[t][state >> 3] >> (7 - (state & 7)) & 1)

    def counts(self, at: At) -> Counts:
        """Counters including the policy's start."""
        return self.policy.start.plus(at)


def reach_of(policy: Policy) -> Reach:
    """What explores the tables of ``policy``."""
    return ManyReach(policy) if isinstance(policy, ManyPolicy) else TableReach(policy)


class TableReach(Reach):
    """States of two groups, row after row in the order of the policy's rows."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self._tables = tables(policy)
        self._layer = _Layer(0, policy.labelled)

    def _expand(self, here: Flags) -> tuple[Flags, int]:
        layer, after = self._layer, _Layer(self.t + 1, self.policy.labelled)
        reached = np.zeros(after.n_states, np.uint8)
        transitions = expand(
            self._tables, self.t, self._levels, layer.rows, layer.starts, here, after.starts,
            reached,
        )  # fmt: skip
        self._layer = after
        return reached, transitions

    def _counters(self, states: Ints) -> Ints:
        return np.stack(self._layer.positions(states), axis=1)

    def _place(self, t: int, at: At) -> int:
        row, along = self.policy.layout.place(t, *at)
        row -= self.policy.layout.rows_before(t)
        return int(_Layer(t, self.policy.labelled).starts[row]) + along

    def accepts(self, t: int, at: At, group: int, proposed: bool, level: int) -> bool:
        """What the policy decides."""
        return bool(verdict(self._tables, t, *at, group, proposed, level))


class ManyReach(Reach):
    """States of three groups or more, by number."""

    policy: ManyPolicy

    def __init__(self, policy: ManyPolicy) -> None:
        super().__init__(policy)
        self._tables, self._layout = many_tables(policy), policy.layout

    def _expand(self, here: Flags) -> tuple[Flags, int]:
        reached = np.zeros(self._layout.states_of(self.t + 1), np.uint8)
        sums = np.zeros(self._layout.kinds, np.int64)
        at = np.zeros(2 * self._layout.n_groups, np.int64)
        first = self._layout.states_before(self.t + 1)
        found = expand_many(self._tables, self.t, self._levels, here, first, reached, sums, at)
        return reached, int(found)

    def _counters(self, states: Ints) -> Ints:
        found = np.empty((len(states), 2 * self._layout.n_groups), np.int64)
        sums = np.zeros(self._layout.kinds, np.int64)
        counters_in(self._layout.terms, self.t, states, sums, found)
        return found

    def _place(self, t: int, at: At) -> int:
        return self._layout.place(t, at) - self._layout.states_before(t)

    def accepts(self, t: int, at: At, group: int, proposed: bool, level: int) -> bool:
        """What the policy decides."""
        code = look_up(self._tables, t, np.array(at, np.int64), group)
        return bool(accepts(self._tables.ranks, code, t, group, proposed, level))


class _Layer:
    """Rows after ``t`` decisions and where the states of each begin."""

    def __init__(self, t: int, labelled: bool) -> None:
        self.rows = layer_rows(t, labelled)
        self.starts = np.concatenate(([0], np.cumsum(self.rows.states)))

    @property
    def n_states(self) -> int:
        return int(self.starts[-1])

    def positions(self, states: Ints) -> Any:
        """Counters of states given by number, as four arrays."""
        row = np.searchsorted(self.starts, states, side="right") - 1
        n_a, n_b, short = (column[row] for column in self.rows)
        long = states - self.starts[row]
        turned = n_a > n_b
        return n_a, np.where(turned, long, short), n_b, np.where(turned, short, long)


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
