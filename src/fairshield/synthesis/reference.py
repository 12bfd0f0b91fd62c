r"""The recursion of the paper, written to be read.  The oracle of every kernel.

.. math::
    v_T(s) = 0 \text{ if } s \models \varphi \text{ else } \infty, \qquad
    v_t(s) = \sum_{x=(g,r,c)} \theta(x) \min_y \Bigl[ c\,\mathbf 1\{y \ne r\}
             + \sum_z P(z \mid x)\, v_{t+1}(s \oplus (x, y, z)) \Bigr],

and :math:`v_t(s) = \infty` if some group and some outcome, probable or not, would leave no decision
from which fairness can be guaranteed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from fairshield.counts import GroupCount
from fairshield.layout import Layout, layer_rows
from fairshield.rows import BARE_WIDTH, RowTable
from fairshield.synthesis.problem import LEAST_WEIGHT, Problem


class Position(NamedTuple):
    """Decisions made and counters since the start."""

    t: int
    n_a: int
    k_a: int
    n_b: int
    k_b: int

    def after(self, group: int, accepted: bool) -> Position:
        """One more decision, on a relevant person."""
        taken = int(accepted)
        if group == 0:
            return self._replace(t=self.t + 1, n_a=self.n_a + 1, k_a=self.k_a + taken)
        return self._replace(t=self.t + 1, n_b=self.n_b + 1, k_b=self.k_b + taken)

    def unchanged(self) -> Position:
        """One more decision, on an irrelevant person."""
        return self._replace(t=self.t + 1)


def cost_to_go(problem: Problem) -> Callable[[Position], float]:
    """The value function, memoised over counters."""
    horizon, labelled = problem.layout.horizon, problem.layout.labelled

    @cache
    def v(s: Position) -> float:
        if s.t in problem.checkpoints and not is_fair(problem, s):
            return math.inf
        if s.t == horizon:
            return 0.0 if is_fair(problem, s) else math.inf
        rests = v(s.unchanged()) if labelled else 0.0
        if rests == math.inf:
            return math.inf
        i = s.t if len(problem.weights) > 1 else 0
        total = problem.stay[i] * rests
        for g in (0, 1):
            after = v(s.after(g, False)), v(s.after(g, True))
            if min(after) == math.inf:
                return math.inf
            for r, level in product((0, 1), range(problem.n_levels)):
                weight = problem.weights[i, g, r, level]
                if weight > LEAST_WEIGHT:
                    total += weight * min(after[r], problem.costs[i, g, r, level] + after[1 - r])
        return float(total)

    return v


def cost_to_go_of_traces(problem: Problem) -> float:
    """The same over whole traces instead of counters: exponential, for the smallest horizons.

    Everything is looked up afresh in the definition: probabilities, outcomes, the property.
    """
    table, prop, horizon = problem.table, problem.prop, problem.layout.horizon
    checkpoints = {*problem.checkpoints, horizon}
    relevant = prop.relevant_outcome
    outcomes = (False, True) if relevant is not None else (None,)

    def count(trace: tuple[tuple[int, bool, bool | None], ...]) -> Position:
        s = Position(0, 0, 0, 0, 0)
        for g, accepted, outcome in trace:
            s = s.after(g, accepted) if outcome == relevant else s.unchanged()
        return s

    def v(trace: tuple[tuple[int, bool, bool | None], ...]) -> float:
        t = len(trace)
        if t in checkpoints and not is_fair(problem, count(trace)):
            return math.inf
        if t == horizon:
            return 0.0
        i = t if len(table.probs) > 1 else 0
        total = 0.0
        for g, r, level in product((0, 1), (False, True), range(len(table.levels))):
            best = math.inf
            for y in (False, True):
                now = table.levels[level] * (y != r)
                later = 0.0
                for z in outcomes:
                    future = v((*trace, (g, y, z)))
                    if future == math.inf:
                        later = math.inf
                        break
                    later += _chance(problem, i, g, r, level, z) * future
                best = min(best, now + later)
            if best == math.inf:
                return math.inf
            total += table.probs[i, g, int(r), level] * best
        return total

    return v(())


def _chance(problem: Problem, i: int, g: int, r: bool, level: int, z: bool | None) -> float:
    if z is None:
        return 1.0
    assert problem.table.outcomes is not None
    positive = float(problem.table.outcomes[i, g, int(r), level])
    return positive if z else 1.0 - positive


def is_fair(problem: Problem, s: Position) -> bool:
    """Whether the counters, start included, satisfy the property, at the end the terminal one."""
    a, b = problem.start
    prop = problem.terminal if s.t == problem.layout.horizon else problem.prop
    return bool(
        prop.holds_array(
            GroupCount(s.n_a + a.seen, s.k_a + a.accepted),
            GroupCount(s.n_b + b.seen, s.k_b + b.accepted),
        )
    )


def code_of(problem: Problem, v: Callable[[Position], float], s: Position, group: int) -> int:
    """Cost levels worth overruling: ``+`` accepts, ``-`` rejects."""
    i = s.t if len(problem.costs) > 1 else 0
    reject, accept = v(s.after(group, False)), v(s.after(group, True))
    costs = problem.sorted_costs[i, group]
    if accept > reject:
        return int(sum(c + problem.tie + reject < accept for c in costs[1]))
    return -int(sum(c + problem.tie + accept < reject for c in costs[0]))


def solve(problem: Problem, record: int | None) -> tuple[float, RowTable | None]:
    """Cost to go at the start and the policy up to layer ``record``, every row dense."""
    v = cost_to_go(problem)
    value = v(Position(0, 0, 0, 0, 0))
    if value == math.inf or record is None:
        return value, None
    layout = Layout(record, problem.layout.labelled)
    cuts = np.zeros((layout.n_rows, BARE_WIDTH), np.uint16)
    dead = int(np.iinfo(np.int16).min)
    starts = np.full(layout.n_rows, -1, np.int64)
    codes: list[int] = []
    for t in range(record + 1):
        for number, row in enumerate(_rows(t, layout.labelled), layout.rows_before(t)):
            alive = [k for k, s in enumerate(row) if v(s) < math.inf]
            if not alive:
                continue
            lo, hi = alive[0], alive[-1] + 1
            cuts[number] = lo, hi
            starts[number] = len(codes)
            turned = row[0].n_a > row[0].n_b
            for g in (1, 0) if turned else (0, 1):
                for s in row[lo:hi]:
                    if v(s) == math.inf:
                        codes.append(dead)
                    elif t == problem.layout.horizon:
                        codes.append(0)
                    else:
                        codes.append(code_of(problem, v, s, g))
    return value, RowTable(cuts, np.empty(0, np.int64), starts, np.array(codes, np.int16))


def _rows(t: int, labelled: bool) -> Iterator[list[Position]]:
    """The states of each row after ``t`` decisions, in the order of :mod:`fairshield.layout`."""
    for n_a, n_b, short in zip(*(x.tolist() for x in layer_rows(t, labelled)), strict=True):
        if n_a <= n_b:
            yield [Position(t, n_a, short, n_b, k_b) for k_b in range(n_b + 1)]
        else:
            yield [Position(t, n_a, k_a, n_b, short) for k_a in range(n_a + 1)]
