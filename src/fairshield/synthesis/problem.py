r"""The numbers of one synthesis problem: weights, costs and fair states, checked and ready.

The outcome of a person is unknown when the decision is made.  If :math:`z` is the probability that
the person is relevant to the property, overruling changes the counters with probability :math:`z`
only, so :math:`\min(z v_r,\, c + z v_{1-r}) = z \min(v_r,\, c/z + v_{1-r})`: a labelled problem is
a plain one with weights :math:`\theta z`, costs :math:`c/z`, and a chance
:math:`\omega = \sum \theta (1 - z)` that the counters stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Counts, GroupCount
from fairshield.errors import InvalidValueError
from fairshield.inputs import InputModel, InputSchedule, InputTable
from fairshield.layout import Layout
from fairshield.spec import Property

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST_WEIGHT = 1e-300
"""Stands for probability zero: vanishes in any sum, yet keeps 0 times infinity infinite."""
LEAST_RELEVANCE = 1e-150
"""Stands for relevance zero: such people sway no plan, yet safety may demand overruling them."""
NEVER = 1e60
"""No gain is worth this cost, which only those of relevance zero have."""
TIE = 1e-9
"""Gains below this share of the largest cost are rounding, not reasons to overrule a person."""
_ROWS_AT_ONCE, _STATES_AT_ONCE = 1 << 13, 1 << 20
"""Temporary arrays of this size stay in cache, respectively in memory."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything backward induction needs.

    ``weights``, ``costs``, ``sorted_costs``: ``(steps, 2, 2, K)`` by step (one, or one per
    decision), group, proposal, cost level; ``stay``: ``(steps,)``.
    """

    prop: Property
    table: InputTable
    layout: Layout
    start: tuple[GroupCount[int], GroupCount[int]]
    checkpoints: tuple[int, ...]
    weights: Floats
    costs: Floats
    stay: Floats

    @property
    def n_levels(self) -> int:
        """How many cost levels the input model has."""
        return len(self.table.levels)

    @property
    def tie(self) -> float:
        """The gain below which a proposal is kept."""
        return TIE * (float(self.table.levels.max()) or 1.0)

    @property
    def sorted_costs(self) -> Floats:
        """Costs of overruling, rising along the last axis."""
        return np.ascontiguousarray(np.sort(self.costs, axis=3))

    @property
    def ranks(self) -> NDArray[np.int64]:
        """Place of each level among the sorted costs."""
        order = np.argsort(self.costs, axis=3, kind="stable")
        return np.ascontiguousarray(np.argsort(order, axis=3, kind="stable"))

    def fair_states(self, t: int) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """Which states are fair after ``t`` decisions, laid out like the blocks of a layer.

        Returns ``lo`` and ``hi`` of the fair ``k_b`` of each row, and a flag per state, which is
        empty if every ``k_b`` in ``[lo, hi)`` is fair.
        """
        n_a, k_a, n_b = self.layout.stored_rows(t)
        a, b = self.start
        lo, hi = np.empty(len(n_b), np.int64), np.empty(len(n_b), np.int64)
        for first in range(0, len(n_b), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            total_a = GroupCount(n_a[part] + a.seen, k_a[part] + a.accepted)
            interval = self.prop.fair_interval(total_a, n_b[part] + b.seen)
            if interval is None:
                return self._fair_states_one_by_one(n_a, k_a, n_b)
            for out, end in zip((lo, hi), interval, strict=True):
                out[part] = np.clip(end - b.accepted, 0, n_b[part] + 1)
        return lo, hi, np.empty(0, np.bool_)

    def _fair_states_one_by_one(
        self, n_a: Ints, k_a: Ints, n_b: Ints
    ) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        layout, (a, b) = self.layout, self.start
        room = n_b + 1 if layout.labelled else layout.horizon - n_a + 1
        starts = np.concatenate(([0], np.cumsum(room)))
        fair = np.empty(starts[-1], np.bool_)
        lo, hi = np.empty(len(n_b), np.int64), np.empty(len(n_b), np.int64)
        first = 0
        while first < len(n_b):
            reach = int(np.searchsorted(starts, starts[first] + _STATES_AT_ONCE))
            last = min(max(reach, first + 1), len(n_b))
            rows = np.repeat(np.arange(first, last), room[first:last])
            k_b = np.arange(starts[first], starts[last]) - starts[rows]
            taken = np.minimum(k_b, n_b[rows])
            holds = self.prop.holds_array(
                GroupCount(n_a[rows] + a.seen, k_a[rows] + a.accepted),
                GroupCount(n_b[rows] + b.seen, taken + b.accepted),
            )
            part = holds & (k_b <= n_b[rows])
            fair[starts[first] : starts[last]] = part
            cuts = starts[first:last] - starts[first]
            lo[first:last] = np.minimum.reduceat(np.where(part, k_b, layout.horizon + 1), cuts)
            hi[first:last] = np.maximum.reduceat(np.where(part, k_b + 1, 0), cuts)
            first = last
        return lo, hi, fair


def make_problem(
    prop: Property,
    inputs: InputModel | InputSchedule,
    horizon: int,
    start: Counts,
    checkpoints: tuple[int, ...],
    rise: Floats | None = None,
) -> Problem:
    """The numbers of a specification; ``rise`` (one per step) multiplies the costs."""
    table = inputs.table(horizon)
    probs = table.probs
    relevant = _relevance(prop, table)
    prices = np.broadcast_to(table.levels, probs.shape)
    if rise is not None:
        risen = prices * rise[:, None, None, None]
        probs, relevant, prices = np.broadcast_arrays(probs, relevant, risen)
    labelled = prop.relevant_outcome is not None
    stay = (probs * (1.0 - relevant)).sum(axis=(1, 2, 3))
    costs = prices / np.maximum(relevant, LEAST_RELEVANCE)
    costs = np.where(relevant > 0.0, costs, np.maximum(costs, NEVER))
    a, b = inputs.groups
    return Problem(
        prop=prop,
        table=table,
        layout=Layout(horizon, labelled),
        start=(start[a], start[b]),
        checkpoints=checkpoints,
        weights=np.maximum(probs * np.maximum(relevant, LEAST_RELEVANCE), LEAST_WEIGHT),
        costs=np.ascontiguousarray(costs),
        stay=np.maximum(stay, LEAST_WEIGHT) if labelled else np.zeros(len(probs)),
    )


def _relevance(prop: Property, table: InputTable) -> Floats:
    """Probability that a request counts for the property."""
    if prop.relevant_outcome is None:
        return np.ones_like(table.probs)
    if table.outcomes is None:
        raise InvalidValueError(
            f"{prop} counts people by their outcome, and the input model has no outcome "
            "probabilities: give outcomes={group: P(outcome = 1)} or estimate with outcomes"
        )
    return table.outcomes if prop.relevant_outcome else 1.0 - table.outcomes
