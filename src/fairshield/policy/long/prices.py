r"""What an intervention is worth long before the end of a window.

Far from the end the four counters matter through one number, the **excess**: by how much the
expected final rates, if nobody is overruled any more, exceed a side of the property (see
:mod:`fairshield.spec.rules`), measured in people of the group whose people weigh most.
Without interventions it is a martingale; overruling somebody of group :math:`g` lessens it by a
known amount :math:`s_g \le 1`.  What remains is a control problem in one dimension.

* The last ``RUNGS`` decisions: its backward induction, a **ladder** of value functions
  :math:`V_m(\varepsilon)`,

  .. math::
      V_m(\varepsilon) = \sum_x \theta(x) \min\bigl( V_{m-1}(\varepsilon + \xi_x),\;
                         c_x + V_{m-1}(\varepsilon + \xi_x - s_{g(x)}) \bigr).

* Before: the price of a unit of excess if all that comes were known.  Requests are overruled in
order of cost per unit; the price :math:`\lambda` of the last one needed is a step function of
the final excess, which is normal around the present one, so that its mean is a sum of normal
tails.  It is solved again from the actual counters at every decision, and so loses little, and
less the longer the window is.
* Properties that must hold at every moment (bounded rates, and those that count by outcome, as
  nobody else may come who counts): three steps.

  - The first ``OPENING`` people, of whom each moves the rates too far for any approximation: the
    **opening**, backward induction over the four counters themselves,

    .. math::
        W(n) = \sum_x \frac{\theta(x)}{\sum \theta} \min\bigl( W(n + x),\; c_x + W(n + \bar x)
               \bigr), \qquad W(n) = \infty \text{ if the property does not hold,}

    from what the ladders below say at its end.  It keeps, for each counters and group, which
    proposals to overrule.
  - After it, while a group has fewer people than make the property bind: a ladder of the excess
    expected when both have enough, times the probability that they ever will.  It ends with what
    the excess then costs.
  - From then on: a ladder in the present excess with the bound at every rung.  At the bound the
    excess drifts by a constant, whatever the rates, as long as people of both groups come as
    often as expected.  Its top, which hardly changes any more, serves all decisions before.

In all of them a request that does not count leaves everything as it is.

Prices decide what a window costs.  Certificates decide whether it ends fair.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import GroupCount
from fairshield.policy.long.price_kernels import (
    ExcessWalk,
    close_opening,
    open_before,
    place_of,
    step_back,
)
from fairshield.policy.long.tables import Floats, Ladders, Tables
from fairshield.spec.rules import ANYTIME, LEAST, Rule

MOST_LEVELS = 32
"""Cost levels that prices tell apart; decisions tell all of them."""
RUNGS = 1024
"""Decisions before the end from which on prices come from a ladder."""
_STEP, _KEPT = 0.25, 2
"""Distance of the points of a ladder while it is worked out; every so many are kept."""
_BELOW, _ABOVE = 6.0, 1.2
"""Standard deviations below the bound, and share of all that can be corrected above it."""
_STEEP = 5.0
"""Each unit above the bound at the end, by the dearest unit that somebody corrects."""
OPENING = 60
"""People whose decisions are worked out one by one, where the bound holds at every moment."""
_NEGLIGIBLE = 1e-15
"""Of the likeliest requests: even in the longest window no more than a few come of such a kind."""
_LARGEST = float(np.finfo(np.float32).max) / 2**20
"""Values above it, of costs above 1e25, are not told apart; room to go on straight from them."""
_DEPTH = 60.0
"""Excess below which a bound that must hold at every moment is out of sight."""


class Side(NamedTuple):
    """Side holds how the excess of one side of a property moves."""

    sizes: tuple[float, float]
    rates: tuple[float, float]
    excess: float


def planned_side(
    side: Floats, totals: Floats, start: tuple[GroupCount[int], ...], horizon: int,
    *, anytime: bool,
) -> Side:  # fmt: skip
    """Where a window is expected to end on this side, after as few corrections as needed.

    Where the property must hold at every moment, what matters is how the excess moves at the bound.
    """
    shares = totals.sum(axis=1)
    seen = [max(c.seen + horizon * s, 1e-6) for c, s in zip(start, shares, strict=True)]
    rates = [
        (c.accepted + horizon * p) / n for c, p, n in zip(start, totals[:, 1], seen, strict=True)
    ]
    weights = [abs(side[g]) / seen[g] for g in (0, 1)]
    unit = max(weights)
    excess = side[0] * rates[0] + side[1] * rates[1] - side[2]
    first = int(np.argmax(weights))
    if excess > 0 or anytime:
        rates[first] = min(max(rates[first] - excess / side[first], 0.0), 1.0)
    sizes = (side[0] / seen[0] / unit, side[1] / seen[1] / unit)
    return Side(sizes, (rates[0], rates[1]), excess / unit)


def few_levels(weights: Floats, costs: Floats) -> tuple[Floats, Floats]:
    """Chances and costs by group and proposal, cheapest first, in at most ``MOST_LEVELS``.

    Neighbouring levels are merged into levels of about equal probability.  People who almost never
    count have costs out of all proportion; these are replaced by the largest cost of the others.
    """
    counts = weights > _NEGLIGIBLE * weights.max()
    costs = np.minimum(costs, costs[counts].max())
    if costs.shape[2] <= MOST_LEVELS:
        return weights, costs
    chances, prices = np.empty((2, 2, MOST_LEVELS)), np.empty((2, 2, MOST_LEVELS))
    for cell in np.ndindex(2, 2):
        below = np.cumsum(weights[cell])
        level = np.minimum((below / below[-1] * MOST_LEVELS).astype(int), MOST_LEVELS - 1)
        chance = np.bincount(level, weights[cell], MOST_LEVELS)
        paid = np.bincount(level, weights[cell] * costs[cell], MOST_LEVELS)
        mean = np.divide(paid, chance, out=np.zeros(MOST_LEVELS), where=chance > 0)
        chances[cell], prices[cell] = np.maximum(chance, 1e-300), np.maximum.accumulate(mean)
    return chances, prices


def make_ladders(
    rule: Rule, weights: Floats, costs: Floats,
    start: tuple[GroupCount[int], ...], horizon: int,
) -> Ladders:  # fmt: skip
    """The ladders of every side; ``weights`` and ``costs`` by group, proposal, sorted level."""
    totals, sides, rungs = weights.sum(axis=2), rule.sides, min(RUNGS, horizon) + 1
    wait, ends = horizon, np.zeros((len(sides), 1), np.float32)
    holding, rates = np.empty((len(sides), 0, 2), np.float32), np.zeros(len(sides))
    if rule.anytime:
        bounds = [planned_side(side, totals, start, horizon, anytime=True) for side in sides]
        _, holding, rates = _climbed([_held(b, weights, costs) for b in bounds], rungs)
        wait = min(_wait(rule, totals, start), horizon)
        ends, rungs = holding[:, min(horizon - wait, RUNGS)], min(RUNGS // 2, 2 * wait)
    bounds = [planned_side(side, totals, start, wait, anytime=False) for side in sides]
    plans = [_approach(b, weights, costs, rungs, e) for b, e in zip(bounds, ends, strict=True)]
    grids, values, _ = _climbed(plans, rungs)
    return Ladders(grids, values, holding, rates)


def _wait(rule: Rule, totals: Floats, start: tuple[GroupCount[int], ...]) -> int:
    """The number of decisions after which both groups are expected to have enough people."""
    least, shares = int(rule.numbers[LEAST]), totals.sum(axis=1)
    needed = [max(least - count.seen, 0) for count in start]
    waits = [n / max(float(share), 1e-9) for n, share in zip(needed, shares, strict=True)]
    return math.ceil(max(waits))


class _Plan(NamedTuple):
    """_Plan holds what a ladder is computed from: walk, first excess and lowest rung.

    ``beyond`` is infinite if there is nothing above the last point, which then is the bound.
    """

    walk: ExcessWalk
    low: float
    terminal: Floats
    beyond: float

    @property
    def points(self) -> int:
        return len(self.terminal)


def _held(side: Side, weights: Floats, costs: Floats) -> _Plan:
    """A ladder in which the bound holds at every rung."""
    walk = _walk(side, weights, costs, drift=False)
    return _Plan(walk, -_DEPTH, np.zeros(int(_DEPTH / _STEP) + 1), math.inf)


def _approach(
    side: Side, weights: Floats, costs: Floats, rungs: int, end: NDArray[np.float32]
) -> _Plan:
    """A ladder in which the bound holds at the lowest rung, where the excess costs ``end``."""
    walk = _walk(side, weights, costs, drift=True)
    sizes, step = np.abs(side.sizes), _STEP * _KEPT
    moves = np.where(walk.pays, walk.totals, 0.0).sum(axis=1)
    noise = float((walk.totals * walk.keep**2).sum()) * _STEP**2
    below = _BELOW * math.sqrt(rungs * noise)
    low = -step * math.ceil((below + 5) / step)
    most = max(_ABOVE * rungs * float((moves * sizes).sum()), below) + 10
    excess = low + _STEP * np.arange(_KEPT * int((most - low) / step) + 1)
    dearest = max(costs[g].max() / sizes[g] for g in (0, 1) if sizes[g] > 0)
    within = np.interp(excess, step * np.arange(1 - len(end), 1), end)
    terminal = np.where(excess > 1e-9, _STEEP * dearest * excess, 0.0) + within
    return _Plan(walk, low, terminal, 0.0)


def _climbed(plans: list[_Plan], rungs: int) -> tuple[Floats, NDArray[np.float32], Floats]:
    """Grids and values of ladders, and the cost per decision at their tops."""
    kept = max((plan.points for plan in plans), default=_KEPT) // _KEPT + 1
    values = np.empty((len(plans), rungs, kept), np.float32)
    rates = [_climb(plan, out) for plan, out in zip(plans, values, strict=True)]
    grids = np.array([[plan.low, _STEP * _KEPT] for plan in plans]).reshape(-1, 2)
    return grids, values, np.array(rates)


def _climb(plan: _Plan, out: NDArray[np.float32]) -> float:
    """Fill the rungs of a ladder, lowest first; returns the cost per decision at its top."""
    points, kept = plan.points, plan.points // _KEPT + 1
    values, spare = np.full((2, points + 1), plan.beyond)
    values[:points] = plan.terminal
    # Beyond the grid a ladder is extrapolated from its last two points.
    more = np.arange(1, out.shape[1] - kept + 1)
    for rung in out:
        rung[:kept] = np.minimum(values[:points:_KEPT], _LARGEST)
        rung[kept:] = rung[kept - 1] + more * (rung[kept - 1] - rung[kept - 2])
        step_back(plan.walk, values, spare, points)
        values, spare = spare, values
    return max(float(values[points - 1] - spare[points - 1]), 0.0)


def _walk(side: Side, weights: Floats, costs: Floats, *, drift: bool) -> ExcessWalk:
    totals = weights.sum(axis=2)
    sizes, rates = np.array(side.sizes), np.array(side.rates)
    idle = 1.0 - float(totals.sum())
    if idle < 1e-9:
        idle = 0.0
    mean = 0.0
    if drift and idle < 1.0:
        mean = float((sizes * (totals[:, 1] - rates * totals.sum(axis=1))).sum())
        # A request that does not count does not shorten the time until both have enough, either.
        mean /= 1.0 - idle
    keep = np.stack([sizes * (y - rates) - mean for y in (0.0, 1.0)], axis=1)
    pays = np.stack([sizes < 0, sizes > 0], axis=1)
    flip = keep - np.abs(sizes)[:, None]
    return ExcessWalk(keep / _STEP, flip / _STEP, weights, costs, totals, pays, idle)


def make_opening(
    tables: Tables, start: tuple[GroupCount[int], ...], horizon: int
) -> NDArray[np.int16]:
    """The codes of the first people, where the property must hold at every moment."""
    seen, counted = start[0].seen + start[1].seen, float(tables.totals.sum())
    people = min(OPENING, seen + math.ceil(counted * horizon))
    if not tables.rule[ANYTIME] or len(tables.sides) == 0 or seen >= people:
        return np.empty((0, 2), np.int16)
    codes = np.zeros((place_of(0, 0, people, 0), 2), np.int16)
    values, spare = np.empty((2, place_of(0, 0, people + 1, 0) - len(codes)))
    left = max(horizon - int((people - seen) / counted), 0)
    close_opening(tables, people, left, values)
    for n in reversed(range(people)):
        open_before(tables, n, values, spare, codes)
        values, spare = spare, values
    return codes
