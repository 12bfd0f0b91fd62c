"""Exploration of the states that a policy can reach, layer by layer, for violations."""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from fairshield.analysis.verify.kernels import expand, expand_counted
from fairshield.base.counts import At, Counts, GroupCount
from fairshield.policy import Policy
from fairshield.policy.counted import CountedLayout
from fairshield.policy.many import ManyLayout
from fairshield.policy.many.kernels import Walk, counters_in
from fairshield.runtime.compiled import verdict
from fairshield.spec import Property

_STATES_AT_ONCE = 1 << 20
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class ReachedStates:
    """ReachedStates holds the states that can be reached, one bit for each, layer by layer.

    States are numbered, whatever the tables of the policy are: see
    :mod:`fairshield.policy.many.layout` and :mod:`fairshield.policy.counted.layout`.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.layout: ManyLayout | CountedLayout
        if policy.prop.counting.of_people:
            self.layout = ManyLayout(policy.horizon, len(policy.groups), policy.labelled)
        else:
            counting = policy.prop.counting
            self.layout = CountedLayout(policy.horizon, len(policy.groups), counting)
        self.t = 0
        self.states, self.transitions = 1, 0
        self._support = policy.spec.support if policy.fair_in_support else None
        self.costs = dict(usable_costs(policy.edges.tolist()))
        self._levels = np.array(list(self.costs), np.int64)
        self._here = np.ones(1, np.uint8)
        self._past: list[NDArray[np.uint8]] = []

    def advance(self) -> None:
        """Add the layer of states after one more decision, whatever its request and outcome."""
        layout = self.layout
        after = np.zeros(layout.states_of(self.t + 1), np.uint8)
        tables, walk = self.policy.decisions.tables, Walk.over(layout)
        counted, uncounted = self.possible(self.t)
        if isinstance(layout, ManyLayout):
            transitions = expand(
                tables, self.t, self._levels, counted, bool(uncounted.any()), self._here, after,
                walk,
            )  # fmt: skip
        else:
            before = layout.states_before(self.t + 1)
            transitions = expand_counted(
                tables, self.t, layout.layer(self.t), before, self._levels, counted, self._here,
                after, walk,
            )  # fmt: skip
        self._past.append(np.packbits(self._here))
        self._here = after
        self.t += 1
        self.transitions += int(transitions)
        self.states += int(np.count_nonzero(after))

    def possible(self, t: int) -> tuple[Flags, Flags]:
        """Who may come after ``t`` decisions and count, and who may come and not count.

        ``(groups, proposals, levels)``, the level above all others included: everybody, unless
        the policy promises something only of the support of its input model.
        """
        if self._support is None:
            everybody = np.ones((self.layout.n_groups, 2, len(self.policy.edges) + 1), np.bool_)
            return everybody, everybody & self.policy.labelled
        i = t if len(self._support.counted) > 1 else 0
        return self._support.counted[i].copy(), self._support.uncounted[i].copy()

    def accepts(self, t: int, at: At, group: int, proposed: bool, level: int) -> bool:
        """Whether the policy accepts this request in state ``at`` after ``t`` decisions."""
        tables = self.policy.decisions.tables
        return bool(verdict(tables, t, np.array(at, np.int64), group, proposed, level))

    def _counters(self, states: Ints) -> Ints:
        """``(states, 2 G)``: counters of states of layer ``t`` given by their place in it."""
        found = np.empty((len(states), 2 * self.layout.n_groups), np.int64)
        sums = np.zeros(self.layout.kinds, np.int64)
        counters_in(self.layout.terms, self.layout.layer(self.t), states, sums, found)
        return found

    def violation(self, required: tuple[Property, ...]) -> tuple[At, Property] | None:
        """The first reachable state that violates one of the properties, and which, if any."""
        states = np.flatnonzero(self._here) if required else np.empty(0, np.int64)
        for first in range(0, len(states), _STATES_AT_ONCE):
            at = self._counters(states[first : first + _STATES_AT_ONCE])
            counts = [
                GroupCount(at[:, 2 * g] + of.seen, at[:, 2 * g + 1] + of.accepted)
                for g, of in enumerate(self.policy.start.values())
            ]
            for prop in required:
                bad = np.flatnonzero(~prop.holds_array(*counts))
                if len(bad):
                    return tuple(at[bad[0]].tolist()), prop
        return None

    def binds(self, prop: Property) -> bool:
        """Whether the property bounds something in some state of this layer."""
        at = self.positions()
        counts = [
            GroupCount(at[:, 2 * g] + of.seen, at[:, 2 * g + 1] + of.accepted)
            for g, of in enumerate(self.policy.start.values())
        ]
        return bool(np.any(prop.binds_array(*counts)))

    def positions(self) -> Ints:
        """Counters since the start of all states reached, one row ``n_a, k_a, …`` each."""
        return self._counters(np.flatnonzero(self._here))

    def reached(self, t: int, at: At) -> bool:
        """Whether ``at`` is among the states after ``t`` earlier decisions."""
        pairs = zip(at[::2], at[1::2], strict=True)
        people = self.policy.prop.counting
        fits = sum(at[::2]) <= t if people.of_people else people.fits(sum(at[::2]), t)
        if not fits or not all(0 <= k <= n for n, k in pairs):
            return False
        state = self.layout.place(t, at) - self.layout.states_before(t)
        return bool(self._past[t][state >> 3] >> (7 - (state & 7)) & 1)

    def reaches(self, at: At) -> bool:
        """Whether ``at`` is among the states after ``t`` decisions."""
        return bool(self._here[self.layout.place(self.t, at) - self.layout.states_before(self.t)])

    def counts(self, at: At) -> Counts:
        """Counters including the policy's start."""
        return self.policy.start.plus(at)


def usable_costs(edges: list[float]) -> list[tuple[int, float]]:
    """Cost levels that contain a finite cost, each with such a cost.

    The level after the last one stands for costs above all edges.
    """
    costs = []
    for level in range(len(edges) + 1):
        below = edges[level - 1] if level else 0.0
        edge = edges[level] if level < len(edges) else math.inf
        cost = edge if edge < math.inf else max(below + 1.0, math.nextafter(below, math.inf))
        if cost < math.inf and bisect_left(edges, cost) == level:
            costs.append((level, cost))
    return costs
