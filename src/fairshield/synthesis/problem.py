r"""Problem: weights, costs and fair states of one synthesis, as arrays.

The outcome of a person is unknown when the decision is made.  If :math:`z` is the probability that
the person is relevant to the property, overruling changes the counters with probability :math:`z`
only, so :math:`\min(z v_r,\, c + z v_{1-r}) = z \min(v_r,\, c/z + v_{1-r})`: a labelled problem is
a plain one with weights :math:`\theta z`, costs :math:`c/z`, and a chance
:math:`\omega = \sum \theta (1 - z)` that the counters stay as they are.  Where the counters of both
outcomes depend on the decision, weights and costs are those of the input model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import GroupCount
from fairshield.base.types import Progress
from fairshield.inputs import InputTable
from fairshield.policy.layout import Layout, Rows, layout_of
from fairshield.policy.rows import RowTable
from fairshield.policy.specification import Specification
from fairshield.spec import Property

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FairStates = tuple[Ints, Ints, NDArray[np.bool_]]

LEAST_WEIGHT = 1e-300
"""Stands for probability zero: vanishes in any sum, yet keeps 0 times infinity infinite."""
LEAST_RELEVANCE = 1e-150
"""Stands for relevance zero: such people sway no plan, yet safety may demand overruling them."""
LEAST_COST = 1e-200
"""Costs to go below this one are what :data:`LEAST_WEIGHT` adds, and are 0."""
NEVER = 1e60
"""No gain is worth this cost, which only those of relevance zero have."""
TIE = 1e-9
"""Gains below this share of the largest cost are rounding, not reasons to overrule a person."""
_ROWS_AT_ONCE = 1 << 13
"""Temporary arrays of this size stay in cache."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Problem holds the arrays that backward induction reads.

    It covers the whole plan of ``spec``, the decisions beyond its horizon included.
    ``weights``, ``costs`` and ``relevance``, the chance that somebody counts, are
    ``(steps, groups, 2, K)``: by step (one, or one per decision), group, proposal, cost level.
    ``stay`` is ``(steps,)``.  ``arrives``, ``(steps, groups)``, and ``rests``, ``(steps,)``, say
    whether fairness must also be kept if somebody of a group counts next, or nobody does.  Where
    the property counts decisions instead of people, ``relevance`` alone has outcomes and ``stay``
    is 0.  With more than two groups there is no ``layout``.
    """

    spec: Specification
    table: InputTable
    weights: Floats
    costs: Floats
    relevance: Floats
    stay: Floats
    arrives: NDArray[np.bool_]
    rests: NDArray[np.bool_]

    @property
    def trusting(self) -> bool:
        """Whether fairness need not be kept for what the input model gives probability 0."""
        return self.spec.trusting

    @property
    def horizon(self) -> int:
        """Decisions of the whole plan."""
        return self.spec.plan_length

    @cached_property
    def start(self) -> tuple[GroupCount[int], ...]:
        """Counters before the first decision, by group."""
        return tuple(self.spec.start.values())

    @cached_property
    def layout(self) -> Layout:
        """The numbering of the states of two groups."""
        return layout_of(self.horizon, self.spec.labelled)

    @property
    def n_levels(self) -> int:
        """How many cost levels the input model has."""
        return len(self.table.levels)

    @property
    def tie(self) -> float:
        """The gain below which a proposal is kept."""
        return TIE * (float(self.table.levels.max()) or 1.0)

    @property
    def attaining(self) -> float:
        """The least cost that may be the ceiling's but for ties, one at each decision."""
        spec = self.spec
        assert spec.ceiling is not None
        longest = max(b - a for a, b in pairwise((0, *spec.checkpoints, self.horizon)))
        return spec.ceiling - (longest + 2) * self.tie

    @cached_property
    def sorted_costs(self) -> Floats:
        """Costs of overruling, rising along the last axis."""
        return self._cheapest_first(self.costs)

    @cached_property
    def sorted_weights(self) -> Floats:
        """Weights of the levels in the order of :attr:`sorted_costs`."""
        return self._cheapest_first(self.weights)

    @cached_property
    def sorted_relevance(self) -> Floats:
        """:attr:`relevance` of the levels in the order of :attr:`sorted_costs`."""
        return self._cheapest_first(self.relevance)

    @property
    def ranks(self) -> Ints:
        """Place of each level among the sorted costs."""
        return np.argsort(self._order, axis=3, kind="stable")

    @cached_property
    def _order(self) -> Ints:
        return np.argsort(self.costs, axis=3, kind="stable")

    def _cheapest_first(self, by_level: Floats) -> Floats:
        if self.n_levels == 1:
            return by_level
        return np.take_along_axis(by_level, self._order, axis=3)

    def fair_states(
        self,
        props: tuple[Property, ...],
        rows: Rows,
        at: Ints,
        progress: Progress | None = None,
    ) -> FairStates:
        """Which states of these rows satisfy all of ``props``; ``at`` has the first state of each.

        Returns ``lo`` and ``hi`` of the fair states of each row, and a flag per state, which is
        empty if everything in ``[lo, hi)`` is fair.  Flags outside ``[lo, hi)`` say nothing.
        ``progress`` is called with the share done if a property is evaluated state by state.
        """
        lo, hi, each = self._fair_states(props[0], rows, at, progress)
        for prop in props[1:]:
            first, end, flags = self._fair_states(prop, rows, at, progress)
            lo, hi = np.maximum(lo, first), np.minimum(hi, end)
            each = each & flags if len(each) and len(flags) else each if len(each) else flags
        return np.minimum(lo, hi), hi, each

    def _fair_states(
        self, prop: Property, rows: Rows, at: Ints, progress: Progress | None
    ) -> FairStates:
        a, b = self.start
        lo, hi = np.empty(len(at), np.int64), np.empty(len(at), np.int64)
        for first in range(0, len(at), _ROWS_AT_ONCE):
            here = slice(first, first + _ROWS_AT_ONCE)
            part = Rows(*(x[here] for x in rows))
            known = np.where(part.turned, b.accepted, a.accepted)
            before = np.where(part.turned, a.accepted, b.accepted)
            interval = prop.fair_interval(
                part.n_a + a.seen, part.n_b + b.seen,
                accepted=part.short + known, along=~part.turned,
            )  # fmt: skip
            if interval is None:
                return self._fair_states_with_gaps(prop, rows, at, progress)
            most = part.states
            for out, end in zip((lo, hi), interval, strict=True):
                out[here] = np.minimum(np.maximum(end - before, 0), most)
        return lo, hi, np.empty(0, np.bool_)

    def _fair_states_with_gaps(
        self, prop: Property, rows: Rows, at: Ints, progress: Progress | None
    ) -> FairStates:
        a, b = self.start
        turned = rows.turned
        runs = prop.fair_runs(
            rows.n_a + a.seen, rows.n_b + b.seen,
            accepted=rows.short + np.where(turned, b.accepted, a.accepted), along=~turned,
        )  # fmt: skip
        if runs is None:
            return self._fair_states_one_by_one(prop, rows, at, progress)
        row, low, high = runs
        most, before = rows.states, np.where(turned, a.accepted, b.accepted)
        low = np.minimum(np.maximum(low - before[row], 0), most[row])
        high = np.minimum(np.maximum(high - before[row], 0), most[row])
        lo, hi = most.copy(), np.zeros(len(at), np.int64)
        np.minimum.at(lo, row, low)
        np.maximum.at(hi, row, high)
        if len(row) == np.count_nonzero(np.bincount(row)):
            return np.minimum(lo, hi), hi, np.empty(0, np.bool_)
        # +1 where a run begins and -1 where it ends: their running sum is positive inside.
        ends = np.zeros(int(self.layout.block_starts[-1]) + 1, np.int32)
        np.add.at(ends, at[row] + low, 1)
        np.add.at(ends, at[row] + high, -1)
        return np.minimum(lo, hi), hi, np.cumsum(ends[:-1]) > 0

    def _fair_states_one_by_one(
        self, prop: Property, rows: Rows, at: Ints, progress: Progress | None
    ) -> FairStates:
        """Evaluate the property state by state, at once those with the same people seen."""
        a, b = self.start
        fair = np.zeros(self.layout.block_starts[-1], np.bool_)
        lo, hi = np.empty(len(at), np.int64), np.empty(len(at), np.int64)
        new = (np.diff(rows.n_a, prepend=-1) != 0) | (np.diff(rows.n_b, prepend=-1) != 0)
        edges = [*np.flatnonzero(new).tolist(), len(at)]
        for first, end in pairwise(edges):
            n_a, n_b = int(rows.n_a[first]), int(rows.n_b[first])
            short, long = rows.short[first:end, None], np.arange(max(n_a, n_b) + 1)
            k_a, k_b = (long, short) if n_a > n_b else (short, long)
            # A user's property may rely on arrays of the same shape.
            m_a, l_a, m_b, l_b = np.broadcast_arrays(
                n_a + a.seen, k_a + a.accepted, n_b + b.seen, k_b + b.accepted
            )
            holds = prop.holds_array(GroupCount(m_a, l_a), GroupCount(m_b, l_b))
            fair[at[first:end, None] + long] = holds
            some = holds.any(axis=1)
            lo[first:end] = np.where(some, holds.argmax(axis=1), self.layout.horizon + 1)
            hi[first:end] = np.where(some, len(long) - holds[:, ::-1].argmax(axis=1), 0)
            if progress is not None:
                progress(end / len(at))
        return lo, hi, fair


class Dearest(NamedTuple):
    """Dearest holds what is expected to be paid from checkpoints on, up to the next ones.

    ``kept`` is the largest of these costs that does not exceed the ceiling, ``struck`` the least
    one that does; ``attained`` has, by checkpoint, counters ``(n_a, k_a, n_b, k_b)`` since the
    start from which the ceiling is expected to be paid.
    """

    kept: float
    struck: float
    attained: dict[int, Ints]


class Solution(NamedTuple):
    """Solution holds the cost to go at the start, and the decisions if asked for.

    ``dearest`` is there if there is a ceiling.
    """

    value: float
    rows: RowTable | None
    dearest: Dearest | None = None


def without_floor(value: float) -> float:
    """A cost to go, without what :data:`LEAST_WEIGHT` adds in place of probability zero."""
    return 0.0 if value < LEAST_COST else value


def make_problem(spec: Specification) -> Problem:
    """The numbers of a specification, over the whole plan."""
    table, rise = spec.inputs.table(spec.plan_length), spec.rise
    counting = spec.prop.counting
    probs, relevant = table.probs, table.relevance(counting.outcome)
    prices = np.broadcast_to(table.levels, probs.shape)
    if rise is not None:
        risen = prices * rise[:, None, None, None]
        probs, relevant, prices = np.broadcast_arrays(probs, relevant, risen)
    if not counting.of_people:
        return Problem(
            spec=spec,
            table=table,
            weights=np.maximum(probs, LEAST_WEIGHT),
            costs=np.ascontiguousarray(prices),
            relevance=np.broadcast_to(relevant, prices.shape),
            stay=np.zeros(len(probs)),
            arrives=np.ones(probs.shape[:2], np.bool_),
            rests=np.zeros(len(probs), np.bool_),
        )
    stay = (probs * (1.0 - relevant)).sum(axis=(1, 2, 3))
    costs = prices / np.maximum(relevant, LEAST_RELEVANCE)
    costs = np.where(relevant > 0.0, costs, np.maximum(costs, NEVER))
    arrives = np.ones(probs.shape[:2], np.bool_)
    rests = np.full(len(probs), spec.labelled)
    if spec.trusting:
        arrives = np.broadcast_to(spec.support.arrives, arrives.shape)
        rests = np.broadcast_to(spec.support.rests, rests.shape)
    return Problem(
        spec=spec,
        table=table,
        weights=np.maximum(probs * np.maximum(relevant, LEAST_RELEVANCE), LEAST_WEIGHT),
        costs=np.ascontiguousarray(costs),
        relevance=np.broadcast_to(relevant, costs.shape),
        stay=np.maximum(stay, LEAST_WEIGHT) if spec.labelled else np.zeros(len(probs)),
        arrives=arrives,
        rests=rests,
    )
