r"""What an intervention is worth long before the end of a window.

Far from the end the four counters matter through one number, the **excess**: by how much the
expected final rates, if nobody is overruled any more, exceed a side of the property (see
:mod:`fairshield.long.rule`), measured in people of the group whose people weigh most.  Without
interventions it is a martingale; overruling somebody of group :math:`g` lessens it by a known
amount :math:`s_g \le 1`.  What remains is a control problem in one dimension.

* The last ``RUNGS`` decisions: its backward induction, a **ladder** of value functions
  :math:`V_m(\varepsilon)`,

  .. math::
      V_m(\varepsilon) = \sum_x \theta(x) \min\bigl( V_{m-1}(\varepsilon + \xi_x),\;
                         c_x + V_{m-1}(\varepsilon + \xi_x - s_{g(x)}) \bigr).

* Before: the price of a unit of excess if all that comes were known.  Overrule first who corrects
  most for the money; the price :math:`\lambda` of the last one needed is a step function of the
  final excess, which is normal around the present one, so that its mean is a sum of normal tails.
  Solved anew from the actual counters at every decision, this loses little and less the longer
  the window is.
* Properties that must hold at every moment (bounded rates, and those that count by outcome, as
  nobody else may come who counts): a ladder in the present excess with the bound at every rung.
  Its top, which hardly changes any more, serves all decisions before.

Prices decide what a window costs.  Whether it ends fair is for the certificates to say.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import GroupCount
from fairshield.long.kernels import Walk, step_back
from fairshield.long.policy import Ladders
from fairshield.long.rule import Rule

Floats = NDArray[np.float64]

RUNGS = 1024
"""Decisions before the end from which on prices come from a ladder."""
_STEP, _KEPT = 0.25, 2
"""Distance of the points of a ladder while it is worked out; every so many are kept."""
_BELOW, _ABOVE = 6.0, 1.2
"""Standard deviations below the bound, and share of all that can be corrected above it."""
_STEEP = 5.0
"""Each unit above the bound at the end, by the dearest unit that somebody corrects."""
_DEPTH = 60.0
"""Excess below which a bound that must hold at every moment is out of sight."""


class Side(NamedTuple):
    """One side of a property as its excess sees it."""

    sizes: tuple[float, float]
    rates: tuple[float, float]
    excess: float


def planned_side(
    side: Floats, totals: Floats, start: tuple[GroupCount[int], GroupCount[int]], horizon: int,
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


def make_ladders(
    rule: Rule, weights: Floats, costs: Floats,
    start: tuple[GroupCount[int], GroupCount[int]], horizon: int,
) -> Ladders:  # fmt: skip
    """The ladders of every side; ``weights`` and ``costs`` by group, proposal, sorted level."""
    totals = weights.sum(axis=2)
    anytime = rule.anytime
    sides = [planned_side(side, totals, start, horizon, anytime=anytime) for side in rule.sides]
    rungs = min(RUNGS, horizon) + 1
    plans = [_plan(side, weights, costs, rungs, anytime=anytime) for side in sides]
    kept = max((plan.points for plan in plans), default=_KEPT) // _KEPT + 1
    values = np.empty((len(plans), rungs, kept), np.float32)
    rates = [_climb(plan, out) for plan, out in zip(plans, values, strict=True)]
    grids = np.array([[plan.low, _STEP * _KEPT] for plan in plans]).reshape(-1, 2)
    return Ladders(grids, values, np.array(rates) if anytime else np.zeros(len(plans)))


class _Plan(NamedTuple):
    """What a ladder is worked out from: its walk, its first excess, and its lowest rung.

    ``beyond`` is infinite if there is nothing above the last point, which then is the bound.
    """

    walk: Walk
    low: float
    terminal: Floats
    beyond: float

    @property
    def points(self) -> int:
        return len(self.terminal)


def _plan(side: Side, weights: Floats, costs: Floats, rungs: int, *, anytime: bool) -> _Plan:
    walk = _walk(side, weights, costs, drift=not anytime)
    if anytime:
        return _Plan(walk, -_DEPTH, np.zeros(int(_DEPTH / _STEP) + 1), math.inf)
    sizes, step = np.abs(side.sizes), _STEP * _KEPT
    moves = np.where(walk.pays, walk.totals, 0.0).sum(axis=1)
    noise = float((walk.totals * walk.keep**2).sum()) * _STEP**2
    below = _BELOW * math.sqrt(rungs * noise)
    low = -step * math.ceil((below + 5) / step)
    most = max(_ABOVE * rungs * float((moves * sizes).sum()), below) + 10
    excess = low + _STEP * np.arange(_KEPT * int((most - low) / step) + 1)
    dearest = max(costs[g].max() / sizes[g] for g in (0, 1) if sizes[g] > 0)
    return _Plan(walk, low, np.where(excess > 1e-9, _STEEP * dearest * excess, 0.0), 0.0)


def _climb(plan: _Plan, out: NDArray[np.float32]) -> float:
    """Fill the rungs of a ladder, lowest first; returns the cost per decision at its top."""
    points, kept = plan.points, plan.points // _KEPT + 1
    values, spare = np.full((2, points + 1), plan.beyond)
    values[:points] = plan.terminal
    # A ladder goes on straight, so its last two points say what lies beyond them.
    more = np.arange(1, out.shape[1] - kept + 1)
    for rung in out:
        rung[:kept] = values[:points:_KEPT]
        rung[kept:] = rung[kept - 1] + more * (rung[kept - 1] - rung[kept - 2])
        step_back(plan.walk, values, spare, points)
        values, spare = spare, values
    return max(float(values[points - 1] - spare[points - 1]), 0.0)


def _walk(side: Side, weights: Floats, costs: Floats, *, drift: bool) -> Walk:
    totals = weights.sum(axis=2)
    sizes, rates = np.array(side.sizes), np.array(side.rates)
    mean = float((sizes * (totals[:, 1] - rates * totals.sum(axis=1))).sum()) if drift else 0.0
    keep = np.stack([sizes * (y - rates) - mean for y in (0.0, 1.0)], axis=1)
    pays = np.stack([sizes < 0, sizes > 0], axis=1)
    flip = keep - np.abs(sizes)[:, None]
    return Walk(keep / _STEP, flip / _STEP, weights, costs, totals, pays)
