r"""Compiled prices of long windows, and the ladders and openings they are read from.

:mod:`fairshield.policy.long.prices` defines these words.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.compiler import NO_ALLOCATION, inlined, jit
from fairshield.policy.long.tables import Floats, Tables
from fairshield.spec.rules import ANYTIME, LEAST, SUPPORT

_jit = jit(**NO_ALLOCATION)
_inline = inlined(**NO_ALLOCATION)

_NEGLIGIBLE = 1e-14
_ROOT_HALF = math.sqrt(0.5)
_ROOT_2PI = math.sqrt(2.0 * math.pi)
OVER_CAPACITY = 3.0
"""A correction beyond everybody who can be overruled costs this many times the dearest one."""
_OPENED = 1 << 14
"""More people than any opening has; places of so many would not fit 64 bits for long."""


# Prices -------------------------------------------------------------------------------------


@_inline
def _tail(x: float) -> float:
    """Probability that a standard normal variable exceeds ``x``."""
    return 0.5 * math.erfc(x * _ROOT_HALF)


@_inline
def _above(excess: float, spread: float) -> tuple[float, float]:
    """Probability that a normal variable is positive, and the mean of its positive part."""
    if spread < 1e-12:
        return (1.0, excess) if excess > 0.0 else (0.0, 0.0)
    z = excess / spread
    chance = _tail(-z)
    return chance, excess * chance + spread * math.exp(-0.5 * z * z) / _ROOT_2PI


@_jit
def hindsight(
    tables: Tables, side: int, left: float, excess: float, spread: float, size_a: float,
    size_b: float,
) -> tuple[float, float]:  # fmt: skip
    """Price of a unit of excess, and expected cost, if all that comes were known beforehand.

    Requests whose correction is cheapest per unit are overruled first; ``size_a`` and ``size_b``
    are the units of excess that overruling a person of group a or b corrects.
    """
    r_a = 1 if tables.sides[side, 0] > 0.0 else 0
    r_b = 1 if tables.sides[side, 1] > 0.0 else 0
    levels = tables.costs.shape[2]
    i = levels if size_a == 0.0 else 0
    j = levels if size_b == 0.0 else 0
    price = paid = last = 0.0
    room = excess
    while True:
        chance, mean = _above(room, spread)
        if chance < _NEGLIGIBLE:
            return price, paid
        next_a = tables.costs[0, r_a, i] / size_a if i < levels else math.inf
        next_b = tables.costs[1, r_b, j] / size_b if j < levels else math.inf
        unit = min(next_a, next_b)
        if unit == math.inf:
            unit = OVER_CAPACITY * last
            return price + (unit - last) * chance, paid + (unit - last) * mean
        price, paid, last = price + (unit - last) * chance, paid + (unit - last) * mean, unit
        if next_a <= next_b:
            room -= left * tables.weights[0, r_a, i] * size_a
            i += 1
        else:
            room -= left * tables.weights[1, r_b, j] * size_b
            j += 1


@_inline
def _value_at(values: Any, place: float) -> float:
    """A ladder's value by linear interpolation, and by extrapolation beyond its ends."""
    i = min(max(np.int64(math.floor(place)), 0), len(values) - 2)
    return values[i] + (place - i) * (values[i + 1] - values[i])


@_jit
def advantage(
    tables: Tables, n_a: int, k_a: int, n_b: int, k_b: int, left: int, group: int
) -> float:
    """What rejecting somebody of ``group`` is expected to save, compared with accepting."""
    if tables.rule[ANYTIME]:
        return _advantage_now(tables, n_a, k_a, n_b, k_b, left, group)
    totals = tables.totals
    share_a, share_b = totals[0, 0] + totals[0, 1], totals[1, 0] + totals[1, 1]
    final_a, final_b = n_a + left * share_a, n_b + left * share_b
    if min(final_a, final_b) < max(1e-6, 0.999 * tables.rule[SUPPORT]):
        return 0.0
    rate_a = (k_a + left * totals[0, 1]) / final_a
    rate_b = (k_b + left * totals[1, 1]) / final_b
    saved = 0.0
    for side in range(len(tables.sides)):
        to_a, to_b, limit, low, step = tables.sides[side]
        unit = max(abs(to_a) / final_a, abs(to_b) / final_b)
        size_a, size_b = to_a / final_a / unit, to_b / final_b / unit
        excess = (to_a * rate_a + to_b * rate_b - limit) / unit
        size = size_b if group else size_a
        if left < tables.ladder.shape[1]:
            drift = -size_a * (totals[0, 1] - rate_a * share_a)
            drift -= size_b * (totals[1, 1] - rate_b * share_b)
            rejected = excess + drift - size * (rate_b if group else rate_a)
            values = tables.ladder[side, left - 1]
            saved += _value_at(values, (rejected + size - low) / step)
            saved -= _value_at(values, (rejected - low) / step)
        else:
            noise = _noise(totals, rate_a, rate_b, size_a, size_b)
            spread = math.sqrt(left * noise)
            price, _ = hindsight(tables, side, left, excess, spread, abs(size_a), abs(size_b))
            saved += size * price
    return saved


@_inline
def _noise(totals: Floats, rate_a: float, rate_b: float, size_a: float, size_b: float) -> float:
    """Variance that one arrival adds to the excess."""
    in_a = totals[0, 1] * (1.0 - rate_a) ** 2 + totals[0, 0] * rate_a**2
    in_b = totals[1, 1] * (1.0 - rate_b) ** 2 + totals[1, 0] * rate_b**2
    return size_a**2 * in_a + size_b**2 * in_b


@_inline
def _advantage_now(
    tables: Tables, n_a: int, k_a: int, n_b: int, k_b: int, left: int, group: int
) -> float:
    """:func:`advantage` where the property must hold at every moment."""
    in_a = 1 - group
    m_a, m_b = n_a + in_a, n_b + group
    accepted = outlook(tables, m_a, k_a + in_a, m_b, k_b + group, left - 1)
    return accepted - outlook(tables, m_a, k_a, m_b, k_b, left - 1)


@_inline
def _dearest(tables: Tables) -> float:
    costs = tables.costs
    in_a, in_b = max(costs[0, 0, -1], costs[0, 1, -1]), max(costs[1, 0, -1], costs[1, 1, -1])
    return max(in_a, in_b)


@_inline
def outlook(tables: Tables, n_a: int, k_a: int, n_b: int, k_b: int, left: int) -> float:
    """Expected cost of the decisions left, where the property must hold at every moment."""
    if min(n_a, n_b) < max(tables.rule[LEAST], 1):
        return _until_support(tables, n_a, k_a, n_b, k_b, left)
    rung = min(left, tables.holding.shape[1] - 1)
    total = 0.0
    for side in range(len(tables.sides)):
        to_a, to_b, limit, _, step = tables.sides[side]
        unit = max(abs(to_a) / n_a, abs(to_b) / n_b)
        excess = (to_a * k_a / n_a + to_b * k_b / n_b - limit) / unit
        values = tables.holding[side, rung]
        total += _value_at(values, len(values) - 1 + min(excess, 0.0) / step)
        if excess > 0.0:
            # The guarantee is lost: everybody whose overruling corrects the excess is overruled.
            total += OVER_CAPACITY * _dearest(tables) * excess
    return total


@_jit
def _until_support(tables: Tables, n_a: int, k_a: int, n_b: int, k_b: int, left: int) -> float:
    """Expected cost of being fair once both groups have enough people, if that ever comes."""
    support, totals = max(tables.rule[LEAST], 1), tables.totals
    chance_a, wait_a = _arrival(support - n_a, totals[0, 0] + totals[0, 1], left)
    chance_b, wait_b = _arrival(support - n_b, totals[1, 0] + totals[1, 1], left)
    chance = chance_a * chance_b
    if chance < _NEGLIGIBLE:
        return 0.0
    return chance * _at_end(tables, n_a, k_a, n_b, k_b, max(wait_a, wait_b))


@_inline
def _arrival(needed: int, share: float, left: int) -> tuple[float, int]:
    """Probability that so many people of a group come, and in how many decisions."""
    if needed <= 0:
        return 1.0, 0
    mean = left * share
    if mean <= 0.0:
        return 0.0, left
    chance = _tail((needed - 0.5 - mean) / math.sqrt(mean * (1.0 - share) + _NEGLIGIBLE))
    return chance, np.int64(min(math.ceil(needed / share), left))


@_jit
def expected(tables: Tables, n_a: int, k_a: int, n_b: int, k_b: int, left: int) -> float:
    """Expected cost of the decisions left, where only the end of the window counts."""
    totals = tables.totals
    final_a = n_a + left * (totals[0, 0] + totals[0, 1])
    final_b = n_b + left * (totals[1, 0] + totals[1, 1])
    if min(final_a, final_b) < max(1e-6, 0.999 * tables.rule[SUPPORT]):
        return 0.0
    return _at_end(tables, n_a, k_a, n_b, k_b, left)


@_jit
def lasting_cost(tables: Tables) -> float:
    """Expected cost of a decision far from both ends of a window.

    By then chance has averaged out, and the rates of the proposals are brought to the bound.
    """
    totals = tables.totals
    share_a, share_b = totals[0, 0] + totals[0, 1], totals[1, 0] + totals[1, 1]
    rate_a, rate_b = totals[0, 1] / share_a, totals[1, 1] / share_b
    total = 0.0
    for side in range(len(tables.sides)):
        to_a, to_b, limit, _, _ = tables.sides[side]
        unit = max(abs(to_a) / share_a, abs(to_b) / share_b)
        size_a, size_b = abs(to_a) / share_a / unit, abs(to_b) / share_b / unit
        excess = (to_a * rate_a + to_b * rate_b - limit) / unit
        total += hindsight(tables, side, 1.0, excess, 0.0, size_a, size_b)[1]
    return total


@_inline
def _at_end(tables: Tables, n_a: int, k_a: int, n_b: int, k_b: int, left: int) -> float:
    """Expected cost of being fair after the decisions left."""
    totals = tables.totals
    final_a = n_a + left * (totals[0, 0] + totals[0, 1])
    final_b = n_b + left * (totals[1, 0] + totals[1, 1])
    rate_a = (k_a + left * totals[0, 1]) / final_a
    rate_b = (k_b + left * totals[1, 1]) / final_b
    total = 0.0
    for side in range(len(tables.sides)):
        to_a, to_b, limit, low, step = tables.sides[side]
        unit = max(abs(to_a) / final_a, abs(to_b) / final_b)
        size_a, size_b = to_a / final_a / unit, to_b / final_b / unit
        excess = (to_a * rate_a + to_b * rate_b - limit) / unit
        if left < tables.ladder.shape[1]:
            total += max(_value_at(tables.ladder[side, left], (excess - low) / step), 0.0)
        else:
            spread = math.sqrt(left * _noise(totals, rate_a, rate_b, size_a, size_b))
            total += hindsight(tables, side, left, excess, spread, abs(size_a), abs(size_b))[1]
    return total


@_inline
def code_of(tables: Tables, saved: float, group: int) -> int:
    """How many cost levels are worth overruling: positive for accepts, negative for rejects."""
    r = 1 if saved > 0.0 else 0
    count = np.searchsorted(tables.levels[group, r], abs(saved) - tables.tie)
    return count if saved > 0.0 else -count


# Openings -----------------------------------------------------------------------------------


@_inline
def place_of(n_a: int, k_a: int, n_b: int, k_b: int) -> int:
    """Number of counters before these, by people seen, then people of a, then acceptances."""
    n = n_a + n_b
    before = n * (n + 1) * (n + 2) * (n + 3) // 24
    return before + n_a * (n_a + 1) * (3 * n + 5 - 2 * n_a) // 6 + k_a * (n_b + 1) + k_b


@_inline
def _holds(tables: Tables, n_a: int, k_a: int, n_b: int, k_b: int) -> bool:
    """Whether the property holds, as far as prices need to know."""
    if min(n_a, n_b) < max(tables.rule[LEAST], 1):
        return True
    for side in range(len(tables.sides)):
        to_a, to_b, limit, _, _ = tables.sides[side]
        if to_a * k_a / n_a + to_b * k_b / n_b > limit + 1e-9:
            return False
    return True


@_jit
def close_opening(tables: Tables, people: int, left: int, values: Floats) -> None:
    """Expected costs after ``people`` have been seen, from the ladders."""
    first = place_of(0, 0, people, 0)
    for n_a in range(people + 1):
        n_b = people - n_a
        for k_a in range(n_a + 1):
            for k_b in range(n_b + 1):
                value = math.inf
                if _holds(tables, n_a, k_a, n_b, k_b):
                    value = outlook(tables, n_a, k_a, n_b, k_b, left)
                values[place_of(n_a, k_a, n_b, k_b) - first] = value


@_jit
def open_before(tables: Tables, people: int, after: Floats, before: Floats, codes: Any) -> None:
    """Expected costs and codes with ``people`` seen, from the costs with one more."""
    first, then = place_of(0, 0, people, 0), place_of(0, 0, people + 1, 0)
    totals = tables.totals
    counted = totals[0, 0] + totals[0, 1] + totals[1, 0] + totals[1, 1]
    for n_a in range(people + 1):
        n_b = people - n_a
        for k_a in range(n_a + 1):
            for k_b in range(n_b + 1):
                place, value = place_of(n_a, k_a, n_b, k_b), 0.0
                for g in range(2):
                    m_a, m_b = n_a + 1 - g, n_b + g
                    reject = after[place_of(m_a, k_a, m_b, k_b) - then]
                    accept = after[place_of(m_a, k_a + 1 - g, m_b, k_b + g) - then]
                    value += _cost_of(tables, g, 0, reject, accept)
                    value += _cost_of(tables, g, 1, accept, reject)
                    if reject == math.inf and accept == math.inf:
                        left = tables.holding.shape[1]
                        saved = _advantage_now(tables, n_a, k_a, n_b, k_b, left, g)
                    else:
                        saved = accept - reject
                    codes[place, g] = code_of(tables, saved, g)
                if not _holds(tables, n_a, k_a, n_b, k_b):
                    value = math.inf
                before[place - first] = value / counted


@_inline
def _cost_of(tables: Tables, g: int, r: int, kept: float, flipped: float) -> float:
    """What the requests of a group with one proposal are expected to cost, by their chance."""
    weight, costs = tables.weights[g, r], tables.costs[g, r]
    value = tables.totals[g, r] * min(kept, flipped) if tables.totals[g, r] > 0.0 else 0.0
    if flipped < kept:
        for level in range(len(costs)):
            value += weight[level] * min(kept - flipped, costs[level])
    return value


@_jit
def code_at(tables: Tables, n_a: int, k_a: int, n_b: int, k_b: int, left: int, group: int) -> int:
    """The code of a request of ``group``."""
    if n_a + n_b < _OPENED:
        place = place_of(n_a, k_a, n_b, k_b)
        if place < len(tables.opening):
            return np.int64(tables.opening[place, group])
    return code_of(tables, advantage(tables, n_a, k_a, n_b, k_b, left, group), group)


# Ladders ------------------------------------------------------------------------------------


class ExcessWalk(NamedTuple):
    """ExcessWalk says how one side's excess moves with a request, in points of its grid."""

    keep: Floats
    """By group and proposal."""
    flip: Floats
    weights: Floats
    costs: Floats
    totals: Floats
    pays: NDArray[np.bool_]
    """Which proposals, if overruled, lessen the excess."""
    idle: float
    """Chance of a request that does not count."""


@_jit
def step_back(walk: ExcessWalk, after: Floats, before: Floats, points: int) -> None:
    """The ladder one decision earlier."""
    for i in range(points):
        value = 0.0
        for g in range(2):
            for r in range(2):
                kept = _ladder(after, i + walk.keep[g, r], points)
                weight = walk.totals[g, r]
                if not walk.pays[g, r]:
                    value += weight * kept
                    continue
                flipped = _ladder(after, i + walk.flip[g, r], points)
                if kept == math.inf:
                    for level in range(walk.costs.shape[2]):
                        value += walk.weights[g, r, level] * (flipped + walk.costs[g, r, level])
                    continue
                value += weight * kept
                for level in range(walk.costs.shape[2]):
                    gain = kept - flipped - walk.costs[g, r, level]
                    if gain <= 0.0:
                        break
                    value -= walk.weights[g, r, level] * gain
        before[i] = value + walk.idle * after[i]


@_inline
def _ladder(values: Floats, place: float, points: int) -> float:
    if place <= 0.0:
        return values[0]
    i = np.int64(place)
    if i >= points - 1:
        if values[points] == math.inf:
            # The last point is the bound itself, and there is nothing beyond it.
            return values[points - 1] if place <= points - 1 + 1e-9 else math.inf
        return values[points - 1] + (place - (points - 1)) * (
            values[points - 1] - values[points - 2]
        )
    return values[i] + (place - i) * (values[i + 1] - values[i])
