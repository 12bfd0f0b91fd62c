r"""The recursion of the paper, written to be read; every kernel is tested against it.

.. math::
    v_T(s) = 0 \text{ if } s \models \varphi \text{ else } \infty, \qquad
    v_t(s) = \sum_{x=(g,r,c)} \theta(x) \min_y \Bigl[ c\,\mathbf 1\{y \ne r\}
             + \sum_z P(z \mid x)\, v_{t+1}(s \oplus (x, y, z)) \Bigr],

and :math:`v_t(s) = \infty` if some group and some outcome, probable or not, would leave no decision
from which fairness can be guaranteed.  A specification that trusts the support of its input model
asks only about requests and outcomes of positive probability.  With a ceiling C the values at each
checkpoint are replaced, by 0 where they are at most C and by :math:`\infty` elsewhere: what is left
to decide costs afresh.

Where it is infinite, :func:`least_risk` has the best decisions there are: of the least probability
of violation, and among these of the least cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from fairshield.base.counts import At, GroupCount, after
from fairshield.policy.layout import Layout, layer_rows
from fairshield.policy.rows import BARE_WIDTH, RowTable
from fairshield.spec.counting import Gain, after_gain
from fairshield.synthesis.problem import LEAST_WEIGHT, Dearest, Problem, Solution

SAME_RISK = 1e-12
"""Probabilities of violation closer than this are equal but for rounding."""


class Prospect(NamedTuple):
    """Prospect holds risk and cost of the rest of a window under the best decisions.

    ``risk`` is the probability of violation, 0 exactly where fairness can be guaranteed; ``cost``
    the expected cost, up to the violation if there is one.
    """

    risk: float
    cost: float


class BestEffort(NamedTuple):
    """BestEffort holds risk and cost at the start, and decisions where fairness is not certain."""

    start: Prospect
    rows: RowTable


class Position(NamedTuple):
    """Position holds decisions made and counters since the start."""

    t: int
    at: At

    def after(self, group: int, accepted: bool) -> Position:
        """One more decision, on a relevant person."""
        return Position(self.t + 1, after(self.at, group, accepted))

    def gained(self, group: int, gain: Gain) -> Position:
        """One more decision that adds this to the counters of its group."""
        return Position(self.t + 1, after_gain(self.at, group, gain))

    def unchanged(self) -> Position:
        """One more decision, on an irrelevant person."""
        return Position(self.t + 1, self.at)


def start_of(problem: Problem) -> Position:
    """The position before the first decision."""
    return Position(0, (0, 0) * len(problem.start))


def cost_to_go(problem: Problem) -> Callable[[Position], float]:
    """The value function, memoised over counters.

    With a ceiling, checkpoints are entered at cost 0 or not at all, see :func:`costs`.
    """
    if not problem.spec.prop.counting.of_people:
        return _cost_to_go_counted(problem)
    return costs(problem)[0]


def costs(problem: Problem) -> tuple[Callable[[Position], float], Callable[[Position], float]]:
    """The value function, and the expected cost up to the next checkpoint if there is a ceiling.

    Without a ceiling the two are the same.
    """
    ceiling, checkpoints = problem.spec.ceiling, problem.spec.checkpoints

    @cache
    def cost(s: Position) -> float:
        if not is_fair(problem, s):
            return math.inf
        if s.t == problem.horizon:
            return 0.0
        i = s.t if len(problem.weights) > 1 else 0
        rests = v(s.unchanged()) if problem.rests[i] else 0.0
        if rests == math.inf:
            return math.inf
        total = problem.stay[i] * rests
        for g in range(len(problem.start)):
            if not problem.arrives[i, g]:
                continue
            then = v(s.after(g, False)), v(s.after(g, True))
            if min(then) == math.inf:
                return math.inf
            for r, level in product((0, 1), range(problem.n_levels)):
                weight = problem.weights[i, g, r, level]
                # Whoever cannot count, says a trusted model, is not overruled for fairness' sake.
                idle = problem.trusting and problem.relevance[i, g, r, level] == 0.0
                if weight > LEAST_WEIGHT and not idle:
                    total += weight * min(then[r], problem.costs[i, g, r, level] + then[1 - r])
        return float(total)

    def v(s: Position) -> float:
        if ceiling is None or s.t not in checkpoints:
            return cost(s)
        return 0.0 if cost(s) <= ceiling else math.inf

    return v, cost


def _cost_to_go_counted(problem: Problem) -> Callable[[Position], float]:
    """:func:`cost_to_go` where both outcomes of either decision may change the counters."""

    @cache
    def v(s: Position) -> float:
        if not is_fair(problem, s):
            return math.inf
        if s.t == problem.horizon:
            return 0.0
        i, total = s.t if len(problem.weights) > 1 else 0, 0.0
        for g in range(len(problem.start)):
            then = [[v(after) for after in possible(problem, s, g, y)] for y in (False, True)]
            if all(math.inf in ends for ends in then):
                return math.inf
            for r, level in product((0, 1), range(problem.n_levels)):
                weight = problem.weights[i, g, r, level]
                if weight > LEAST_WEIGHT:
                    keep, other = (expected(problem, (i, g, r, level), then[y]) for y in (r, 1 - r))
                    total += weight * min(keep, problem.costs[i, g, r, level] + other)
        return float(total)

    return v


def possible(problem: Problem, s: Position, group: int, accepted: bool) -> list[Position]:
    """Where a decision may lead, whichever outcome is observed."""
    counting = problem.spec.prop.counting
    return [s.gained(group, gain) for gain in counting.possible(bool(accepted))]


def expected(problem: Problem, cell: tuple[int, int, int, int], ends: list[float]) -> float:
    """The expectation of what follows a decision; infinite if an outcome makes it infinite.

    ``cell`` is the request: step, group, proposal and cost level.
    """
    if math.inf in ends:
        return math.inf
    if len(ends) == 1:
        return ends[0]
    z = float(problem.relevance[cell])
    return (1.0 - z) * ends[0] + z * ends[1]


def mask_of(problem: Problem, v: Callable[[Position], float], s: Position, group: int) -> int:
    """Which proposals are worth overruling at which cost levels, see ``policy.counted``."""
    i, mask = s.t if len(problem.costs) > 1 else 0, 0
    then = [[v(after) for after in possible(problem, s, group, y)] for y in (False, True)]
    for r, level in product((0, 1), range(problem.n_levels)):
        cell = i, group, r, level
        keep, other = (expected(problem, cell, then[y]) for y in (r, 1 - r))
        overrule = problem.costs[cell] + problem.tie + other < keep
        mask |= overrule << (r * (problem.n_levels + 1) + level)
    return int(mask)


def cost_to_go_of_traces(problem: Problem) -> float:
    """:func:`cost_to_go` over whole traces instead of counters, in exponential time.

    It uses the input model and the property themselves, not the arrays of :class:`Problem`.  Where
    the support is trusted, traces are those of the paper: of positive probability.
    """
    trusts = problem.spec.trust_support
    table, counting = problem.table, problem.spec.prop.counting
    outcomes = (False, True) if counting.labelled else (None,)

    def count(trace: tuple[tuple[int, bool, bool | None], ...]) -> Position:
        s = start_of(problem)
        for g, accepted, outcome in trace:
            s = s.gained(g, counting.gain(accepted, outcome))
        return s

    def v(trace: tuple[tuple[int, bool, bool | None], ...]) -> float:
        t = len(trace)
        if not is_fair(problem, count(trace)):
            return math.inf
        if t == problem.horizon:
            return 0.0
        i = t if len(table.probs) > 1 else 0
        total = 0.0
        groups = range(len(problem.start))
        for g, r, level in product(groups, (False, True), range(len(table.levels))):
            if trusts and table.probs[i, g, int(r), level] == 0.0:
                continue
            best = math.inf
            for y in (False, True):
                now = table.levels[level] * (y != r)
                later = 0.0
                for z in outcomes:
                    if trusts and _chance(problem, i, g, r, level, z) == 0.0:
                        continue
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
    """Whether the counters, start included, satisfy what is required after ``s.t`` decisions.

    It is true where nothing is required then.
    """
    required = problem.spec.required(s.t)
    if not required:
        return True
    gained = zip(problem.start, s.at[::2], s.at[1::2], strict=True)
    counts = [GroupCount(start.seen + n, start.accepted + k) for start, n, k in gained]
    return all(bool(prop.holds_array(*counts)) for prop in required)


def code_of(problem: Problem, v: Callable[[Position], float], s: Position, group: int) -> int:
    """Cost levels worth overruling: ``+`` accepts, ``-`` rejects."""
    i = s.t if len(problem.costs) > 1 else 0
    reject, accept = v(s.after(group, False)), v(s.after(group, True))
    costs = problem.sorted_costs[i, group]
    if accept > reject:
        return int(sum(c + problem.tie + reject < accept for c in costs[1]))
    return -int(sum(c + problem.tie + accept < reject for c in costs[0]))


def solve(problem: Problem, record: int | None) -> Solution:
    """Cost to go at the start and the policy up to layer ``record``, every row dense."""
    (v, cost), start = costs(problem), start_of(problem)
    dearest = None if problem.spec.ceiling is None else dearest_of(problem, cost)
    if record is None:
        return Solution(v(start), None, dearest)

    def code(s: Position, g: int) -> int:
        return code_of(problem, v, s, g)

    rows = _row_table(problem, record, lambda s: v(s) < math.inf, code)
    return Solution(v(start), rows, dearest)


def dearest_of(problem: Problem, cost: Callable[[Position], float]) -> Dearest:
    """What is expected to be paid from each checkpoint up to the next."""
    ceiling, kept, struck = problem.spec.ceiling, 0.0, math.inf
    attained = {}
    assert ceiling is not None
    for t in problem.spec.checkpoints:
        found = {s.at: cost(s) for row in _rows(t, problem.spec.labelled) for s in row}
        kept = max([kept, *(c for c in found.values() if c <= ceiling)])
        struck = min([struck, *(c for c in found.values() if ceiling < c < math.inf)])
        dearest = [at for at, c in found.items() if problem.attaining <= c <= ceiling]
        attained[t] = np.array(dearest, np.int64).reshape(-1, 4)
    return Dearest(kept, struck, attained)


def least_risk(problem: Problem) -> Callable[[Position], Prospect]:
    r"""Least probability of violation, and among decisions that attain it the least cost.

    .. math::
        (p, c)_T(s) = (0, 0) \text{ if } s \models \varphi \text{ else } (1, 0), \qquad
        (p, c)_t(s) = \sum_{x=(g,r,c')} \theta(x) \operatorname{lexmin}_y \Bigl[
                 (0, c'\,\mathbf 1\{y \ne r\})
                 + \sum_z P(z \mid x)\, (p, c)_{t+1}(s \oplus (x, y, z)) \Bigr],

    and :math:`(1, 0)` at a checkpoint that is violated.  A possible violation of probability zero
    still makes p positive, so that p is 0 exactly where fairness can be guaranteed.  A decision
    that leads to a state with p = 0 is preferred to one that does not, except where fairness cannot
    be guaranteed now and the person cannot count.  Where it can be guaranteed now, it is kept also
    for people who cannot count according to the model, at any cost: the guarantee does not rest on
    the model.  Where the support is trusted, p is 0 exactly where no request or outcome of positive
    probability can bring about a violation, and people who cannot count are not overruled.
    """

    @cache
    def v(s: Position) -> Prospect:
        if not is_fair(problem, s):
            return Prospect(1.0, 0.0)
        if s.t == problem.horizon:
            return Prospect(0.0, 0.0)
        i = s.t if len(problem.weights) > 1 else 0
        rests = v(s.unchanged()) if problem.rests[i] else Prospect(0.0, 0.0)
        after = [(v(s.after(g, False)), v(s.after(g, True))) for g in (0, 1)]
        certain = rests.risk == 0.0 and all(
            min(then).risk == 0.0 or not problem.arrives[i, g] for g, then in enumerate(after)
        )
        risk, cost = problem.stay[i] * rests.risk, problem.stay[i] * rests.cost
        for g, then in enumerate(after):
            code = effort_code(problem, v, s, g, certain=certain)
            overruled = 0 if abs(code) == problem.n_levels + 2 else abs(code)
            for r, level in product((0, 1), range(problem.n_levels)):
                overrule = (code > 0) == r and level < overruled
                taken = then[1 - r if overrule else r]
                weight = problem.sorted_weights[i, g, r, level]
                risk += weight * taken.risk
                cost += weight * (taken.cost + overrule * problem.sorted_costs[i, g, r, level])
        # Products of probabilities near 1e-300 are 0 in floats, so that p could be 0 by rounding.
        risk = 0.0 if certain else min(max(float(risk), LEAST_WEIGHT), 1.0)
        return Prospect(risk, float(cost))

    return v


def least_risk_counted(
    problem: Problem,
) -> tuple[Callable[[Position], Prospect], Callable[[Position, int], int]]:
    """:func:`least_risk` where decisions are counted, and the mask of each state and group.

    A decision after which fairness is guaranteed, whatever the outcome, is preferred to one after
    which it is not, at any cost.
    """

    def choices(s: Position, g: int) -> Iterator[tuple[tuple[int, int], int, float, float]]:
        """By proposal and level: the bits that overrule it, and risk and cost of what is done.

        What is dearer than all levels is overruled as the dearest, if a lesser risk is the reason.
        """
        then = [[v(after) for after in possible(problem, s, g, y)] for y in (False, True)]
        sure = [all(end.risk == 0.0 for end in ends) for ends in then]
        i, dearest = s.t if len(problem.weights) > 1 else 0, problem.n_levels - 1
        for r, level in product((0, 1), range(problem.n_levels)):
            cell = i, g, r, level
            risks, costs = (
                [expected(problem, cell, [end[which] for end in ends]) for ends in then]
                for which in (0, 1)
            )
            price, o, by_cost = problem.costs[cell], 1 - r, False
            if sure[r] != sure[o]:
                overrule = sure[o]
            elif abs(risks[o] - risks[r]) > SAME_RISK:
                overrule = risks[o] < risks[r]
            else:
                by_cost, overrule = True, bool(price + problem.tie + costs[o] < costs[r])
            bits, y = (0, r) if not overrule else (1, o) if by_cost or level < dearest else (3, o)
            yield (r, level), bits, risks[y], costs[y] + overrule * price

    @cache
    def v(s: Position) -> Prospect:
        if not is_fair(problem, s):
            return Prospect(1.0, 0.0)
        if s.t == problem.horizon:
            return Prospect(0.0, 0.0)
        i, groups = s.t if len(problem.weights) > 1 else 0, range(len(problem.start))
        risk, cost = 0.0, 0.0
        certain = all(
            any(
                all(v(after).risk == 0.0 for after in possible(problem, s, g, y))
                for y in (False, True)
            )
            for g in groups
        )
        for g in groups:
            for (r, level), _, lost, paid in choices(s, g):
                weight = problem.weights[i, g, r, level]
                risk += weight * lost
                cost += weight * paid
        # Products of probabilities near 1e-300 are 0 in floats, so that p could be 0 by rounding.
        risk = 0.0 if certain else min(max(float(risk), LEAST_WEIGHT), 1.0)
        return Prospect(risk, float(cost))

    def mask(s: Position, g: int) -> int:
        found = 0
        for (r, level), bits, _, _ in choices(s, g):
            found |= bits << (r * (problem.n_levels + 1) + level)
        return found

    return v, mask


def effort_code(
    problem: Problem, v: Callable[[Position], Prospect], s: Position, group: int, *,
    certain: bool = False,
) -> int:  # fmt: skip
    """:func:`code_of` where risks are equal, else the code that overrules towards the lesser risk.

    Overruled are those whose chance to count makes the risks differ, and all who are cheaper.
    With K cost levels the code is K + 1 if that is everybody, and K + 2 if it is nobody.  It is
    everybody if fairness is ``certain`` now and would not be after the proposal.
    """
    reject, accept = v(s.after(group, False)), v(s.after(group, True))
    gap = abs(accept.risk - reject.risk)
    only_one_is_certain = (reject.risk == 0.0) != (accept.risk == 0.0)
    by_cost = code_of(problem, lambda then: v(then).cost, s, group)
    if gap <= SAME_RISK and not only_one_is_certain:
        return by_cost
    sign = 1 if accept.risk > reject.risk else -1
    i = s.t if len(problem.costs) > 1 else 0
    chances = problem.sorted_relevance[i, group, int(sign > 0)]
    weight = 1.0 if only_one_is_certain else gap
    at_risk = chances * weight > SAME_RISK
    if certain:
        at_risk = chances > 0.0 if problem.trusting else np.ones_like(at_risk)
    if at_risk[-1]:
        return sign * (problem.n_levels + 1)
    by_risk = int(np.flatnonzero([True, *at_risk])[-1])
    return sign * (max(sign * by_cost, by_risk) or problem.n_levels + 2)


def solve_best_effort(problem: Problem) -> BestEffort:
    """Risk and cost at the start, and decisions where fairness cannot be guaranteed.

    Where the support is trusted, decisions are those of all states.
    """
    v = least_risk(problem)

    def code(s: Position, g: int) -> int:
        certain = v(s).risk == 0.0
        return effort_code(problem, v, s, g, certain=certain) if is_fair(problem, s) else 0

    def is_covered(s: Position) -> bool:
        return problem.trusting or v(s).risk > 0.0

    rows = _row_table(problem, problem.horizon, is_covered, code)
    return BestEffort(v(start_of(problem)), rows)


def _row_table(
    problem: Problem,
    record: int,
    is_covered: Callable[[Position], bool],
    code: Callable[[Position, int], int],
) -> RowTable:
    """The table of the states that ``is_covered`` names, with every row dense."""
    layout = Layout(record, problem.spec.labelled)
    cuts = np.zeros((layout.n_rows, BARE_WIDTH), np.uint16)
    dead = int(np.iinfo(np.int16).min)
    starts = np.full(layout.n_rows, -1, np.int64)
    codes: list[int] = []
    for t in range(record + 1):
        for number, row in enumerate(_rows(t, layout.labelled), layout.rows_before(t)):
            covered = [k for k, s in enumerate(row) if is_covered(s)]
            if not covered:
                continue
            lo, hi = covered[0], covered[-1] + 1
            cuts[number] = lo, hi
            starts[number] = len(codes)
            n_a, _, n_b, _ = row[0].at
            for g in (1, 0) if n_a > n_b else (0, 1):
                for s in row[lo:hi]:
                    if not is_covered(s):
                        codes.append(dead)
                    elif t == problem.horizon:
                        codes.append(0)
                    else:
                        codes.append(code(s, g))
    return RowTable(cuts, np.empty(0, np.int64), starts, np.array(codes, np.int16))


def _rows(t: int, labelled: bool) -> Iterator[list[Position]]:
    """The states of each row after ``t`` decisions, in the order of ``policy.layout``."""
    for n_a, n_b, short in zip(*(x.tolist() for x in layer_rows(t, labelled)), strict=True):
        if n_a <= n_b:
            yield [Position(t, (n_a, short, n_b, k_b)) for k_b in range(n_b + 1)]
        else:
            yield [Position(t, (n_a, k_a, n_b, short)) for k_a in range(n_a + 1)]
