r"""Decisions where fairness cannot be guaranteed: least probability of violation, then least cost.

The recursion is :func:`fairshield.synthesis.reference.least_risk`, layer by layer and compiled.  A
layer holds the risk p and the cost c of each of its states, row after row in the order of
:mod:`fairshield.policy.layout`; two layers are kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.compiler import NO_ALLOCATION, inlined, jit
from fairshield.base.types import Progress
from fairshield.policy.jitable import place
from fairshield.policy.layout import Rows, layer_rows
from fairshield.policy.rows import BARE_WIDTH, RowTable, code_type
from fairshield.synthesis.problem import LEAST_WEIGHT, Problem, without_floor
from fairshield.synthesis.reference import SAME_RISK, BestEffort, Prospect

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_jit = jit(**NO_ALLOCATION)
_inline = inlined(**NO_ALLOCATION)


class RiskLayer(NamedTuple):
    """RiskLayer holds risk and cost of all states of a layer.

    ``starts`` has where each row begins, and the end.
    """

    rows: Rows
    starts: Ints
    risk: Floats
    cost: Floats


class RiskStep(NamedTuple):
    """RiskStep holds what arrives at one step, as arrays ``(2, 2, K)``, cheapest first."""

    weights: Floats
    costs: Floats
    relevance: Floats
    arrives: NDArray[np.bool_]
    rests: bool
    trusting: bool
    stay: float
    tie: float
    labelled: bool


def solve(problem: Problem, progress: Progress | None = None) -> BestEffort:
    """Risk and cost at the start, and decisions where fairness cannot be guaranteed.

    ``progress`` is called with the share done.
    """
    layout = problem.layout
    table = _Table(problem)
    after = _layer(problem, layout.horizon)
    after.risk[:] = after.cost[:] = 0.0
    _strike(problem, layout.horizon, after, table.codes(after))
    for t in range(layout.horizon - 1, -1, -1):
        here = _layer(problem, t)
        codes = table.codes(here)
        back_up(here, after, _step(problem, t), codes)
        if problem.spec.required(t):
            _strike(problem, t, here, codes)
        table.add(t, here, codes)
        after = here
        if progress is not None:
            progress(1.0 - (t / layout.horizon) ** (5 if layout.labelled else 4))
    start = Prospect(float(after.risk[0]), without_floor(float(after.cost[0])))
    return BestEffort(start, table.finished())


def _layer(problem: Problem, t: int) -> RiskLayer:
    rows = layer_rows(t, problem.layout.labelled)
    starts = np.concatenate(([0], np.cumsum(rows.states)))
    return RiskLayer(rows, starts, np.empty(starts[-1]), np.empty(starts[-1]))


def _step(problem: Problem, t: int) -> RiskStep:
    i = t if len(problem.weights) > 1 else 0
    return RiskStep(
        problem.sorted_weights[i],
        problem.sorted_costs[i],
        problem.sorted_relevance[i],
        problem.arrives[i].copy(),
        bool(problem.rests[i]),
        problem.trusting,
        float(problem.stay[i]),
        problem.tie,
        problem.layout.labelled,
    )


def _strike(problem: Problem, t: int, layer: RiskLayer, codes: NDArray[Any]) -> None:
    fair = problem.fair_states(problem.spec.required(t), layer.rows, layer.starts[:-1])
    strike(layer, *fair, codes)


class _Table:
    """_Table collects the codes of each layer, beginning with the last layer."""

    def __init__(self, problem: Problem) -> None:
        layout = self.layout = problem.layout
        self.code_type = code_type(problem.n_levels + 2)
        cut_type = np.uint8 if layout.horizon < 254 else np.uint16
        self.cuts = np.zeros((layout.n_rows, BARE_WIDTH), cut_type)
        self.starts = np.full(layout.n_rows, -1, np.int64)
        self.parts: list[NDArray[Any]] = []

    def codes(self, layer: RiskLayer) -> NDArray[Any]:
        """Room for a code per group and state."""
        return np.zeros((2, layer.starts[-1]), self.code_type)

    def add(self, t: int, layer: RiskLayer, codes: NDArray[Any]) -> None:
        """Keep what is decided in the states of a layer."""
        here = slice(*self.layout.layer_starts[t : t + 2])
        packed = np.empty(codes.size, self.code_type)
        used = pack(layer, codes, self.cuts[here], self.starts[here], packed)
        self.parts.append(packed[:used].copy())

    def finished(self) -> RowTable:
        """The table, in row order."""
        before = 0
        for t, part in enumerate(reversed(self.parts)):
            starts = self.starts[slice(*self.layout.layer_starts[t : t + 2])]
            starts[starts >= 0] += before
            before += len(part)
        codes = np.concatenate(self.parts[::-1])
        return RowTable(self.cuts, np.empty(0, np.int64), self.starts, codes)


# Kernels ------------------------------------------------------------------------------------


@_inline
def find(layer: RiskLayer, labelled: bool, n_a: int, k_a: int, n_b: int, k_b: int) -> int:
    """Where a state stands in its layer."""
    row, k = place(0, labelled, n_a, k_a, n_b, k_b)
    return layer.starts[row] + k


@_inline
def successors(
    after: RiskLayer, labelled: bool, n_a: int, k_a: int, n_b: int, k_b: int, group: int
) -> tuple[int, int]:
    """The indices of the states after rejecting and accepting a relevant person of ``group``."""
    m_a, m_b = n_a + 1 - group, n_b + group
    reject = find(after, labelled, m_a, k_a, m_b, k_b)
    return reject, find(after, labelled, m_a, k_a + 1 - group, m_b, k_b + group)


@_inline
def effort_code(
    after: RiskLayer, reject: int, accept: int, step: RiskStep, group: int, certain: bool
) -> int:
    """See :func:`fairshield.synthesis.reference.effort_code`."""
    n_levels = step.costs.shape[2]
    risk, other = after.risk[accept], after.risk[reject]
    by_cost = cost_code(after, reject, accept, step, group)
    only_one_is_certain = (risk == 0.0) != (other == 0.0)
    if abs(risk - other) <= SAME_RISK and not only_one_is_certain:
        return by_cost
    sign = 1 if risk > other else -1
    weight = 1.0 if only_one_is_certain else abs(risk - other)
    overruled = max(sign * by_cost, 0)
    for level in range(n_levels):
        chance = step.relevance[group, np.int64(sign > 0), level]
        at_risk = chance * weight > SAME_RISK
        if certain:
            at_risk = chance > 0.0 or not step.trusting
        if at_risk:
            overruled = max(overruled, level + 1 + np.int64(level + 1 == n_levels))
    return sign * (overruled if overruled else n_levels + 2)


@_inline
def cost_code(after: RiskLayer, reject: int, accept: int, step: RiskStep, group: int) -> int:
    """See :func:`fairshield.synthesis.reference.code_of`."""
    code = 0
    if after.cost[accept] > after.cost[reject]:
        for c in step.costs[group, 1]:
            code += c + step.tie + after.cost[reject] < after.cost[accept]
    else:
        for c in step.costs[group, 0]:
            code -= c + step.tie + after.cost[accept] < after.cost[reject]
    return code


@_inline
def expect(
    after: RiskLayer, reject: int, accept: int, step: RiskStep, group: int, code: int
) -> tuple[float, float]:
    """What arrivals of this group add to risk and cost, if ``code`` decides."""
    risk = cost = 0.0
    nobody = step.costs.shape[2] + 2
    for r in range(2):
        overruled = 0 if abs(code) == nobody or (code > 0) != (r == 1) else abs(code)
        for level in range(step.costs.shape[2]):
            overrule = level < overruled
            taken = accept if (r == 1) != overrule else reject
            price = step.costs[group, r, level] if overrule else 0.0
            weight = step.weights[group, r, level]
            risk += weight * after.risk[taken]
            cost += weight * (after.cost[taken] + price)
    return risk, cost


@_jit
def back_up(here: RiskLayer, after: RiskLayer, step: RiskStep, codes: NDArray[Any]) -> None:
    """``(p, c)_t`` from ``(p, c)_{t+1}``, and the codes where fairness cannot be guaranteed.

    ``codes[0]`` are those of the short group, ``codes[1]`` those of the long one.
    """
    for row in range(len(here.starts) - 1):
        n_a, n_b, short = here.rows.n_a[row], here.rows.n_b[row], here.rows.short[row]
        turned = n_a > n_b
        for s in range(here.starts[row], here.starts[row + 1]):
            long = s - here.starts[row]
            k_a, k_b = (long, short) if turned else (short, long)
            risk = cost = 0.0
            certain = True
            if step.rests:
                rests = find(after, True, n_a, k_a, n_b, k_b)
                risk, cost = step.stay * after.risk[rests], step.stay * after.cost[rests]
                certain = after.risk[rests] == 0.0
            for g in range(2):
                reject, accept = successors(after, step.labelled, n_a, k_a, n_b, k_b, g)
                fair = min(after.risk[reject], after.risk[accept]) == 0.0
                certain = certain and (fair or not step.arrives[g])
            for g in range(2):
                reject, accept = successors(after, step.labelled, n_a, k_a, n_b, k_b, g)
                code = effort_code(after, reject, accept, step, g, certain)
                more_risk, more_cost = expect(after, reject, accept, step, g, code)
                risk, cost = risk + more_risk, cost + more_cost
                codes[np.int64((g == 1) != turned), s] = code
            here.cost[s] = cost
            if certain:
                here.risk[s] = 0.0
                if not step.trusting:
                    codes[0, s] = codes[1, s] = 0
            else:
                here.risk[s] = min(max(risk, LEAST_WEIGHT), 1.0)


@_jit
def strike(
    layer: RiskLayer, lo: Ints, hi: Ints, each: NDArray[np.bool_], codes: NDArray[Any]
) -> None:
    """Where the property must hold now and does not, it is violated, and nothing is worth a cost.

    ``lo``, ``hi`` and ``each`` are those of :meth:`.problem.Problem.fair_states`.
    """
    for row in range(len(lo)):
        for s in range(layer.starts[row], layer.starts[row + 1]):
            k = s - layer.starts[row]
            if not lo[row] <= k < hi[row] or (len(each) and not each[s]):
                layer.risk[s], layer.cost[s] = 1.0, 0.0
                codes[0, s] = codes[1, s] = 0


@_jit
def pack(
    layer: RiskLayer, codes: NDArray[Any], cuts: NDArray[Any], starts: Ints, out: NDArray[Any]
) -> int:
    """Write the rows of a layer as in :class:`fairshield.policy.rows.RowTable`; returns the codes.

    Rows begin and end with a state in which some proposal is overruled; those without are empty.
    """
    used = 0
    for row in range(len(starts)):
        first, end = layer.starts[row], layer.starts[row + 1]
        lo, hi = first, end
        while lo < end and codes[0, lo] == 0 and codes[1, lo] == 0:
            lo += 1
        if lo == end:
            continue
        while codes[0, hi - 1] == 0 and codes[1, hi - 1] == 0:
            hi -= 1
        cuts[row, 0], cuts[row, 1], starts[row] = lo - first, hi - first, used
        for group in range(2):
            for s in range(lo, hi):
                out[used] = codes[group, s]
                used += 1
    return used
