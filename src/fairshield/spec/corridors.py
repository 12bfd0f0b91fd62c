r"""Corridors: intervals that the rate of a group can be kept in for ever.

A corridor :math:`[l, u]` can be kept from a number of people :math:`m` on if every
:math:`[l n, u n]` with :math:`n \ge m` contains an integer.  The narrowest corridors form a
staircase: to each lower end belongs a least upper end :math:`U(l) = \max_{n \ge m} \lceil l n
\rceil / n`, to each upper end a largest lower end :math:`L(u) = \min_{n \ge m} \lfloor u n \rfloor
/ n`, and only the steps that a group's counters can reach matter.  A corridor for one group leaves
the other :math:`[u - \kappa,\, l + \kappa]`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_REMEMBERED = 1 << 16
MANY = 10_000
"""People of a group beyond whom its corridors are not looked for, but those of the smaller one."""


class Corridor(NamedTuple):
    """Corridor is an interval of rates that a group can be kept in for ever."""

    lower: Fraction
    upper: Fraction

    def __str__(self) -> str:
        return f"[{self.lower}, {self.upper}]"


class Way(NamedTuple):
    """Way holds a group's corridor, the one it leaves the other group, and the last gap of that."""

    own: Corridor
    other: Corridor
    gap: float


class Left(NamedTuple):
    """Left is a corridor left to the other group, and its :func:`last_gap`."""

    corridor: Corridor
    gap: float


@lru_cache(_REMEMBERED)
def ways_from(seen: int, accepted: int, first: int, bound: Fraction) -> tuple[Way, ...]:
    """Every way for a group to stay in a corridor, if its rate binds from ``first`` people on."""
    if not bound:
        # With bound 0 both rates must never change, which is possible for the rates 0 and 1 only.
        still = ((Fraction(0), accepted == 0), (Fraction(1), accepted == seen))
        return ways_of([Corridor(rate, rate) for rate, stays in still if stays], bound)
    return ways_of(narrowest(seen, accepted, first), bound)


def ways_of(corridors: Iterable[Corridor], bound: Fraction) -> tuple[Way, ...]:
    """The ways of those corridors that are narrow enough to leave the other group one."""
    ways = []
    for own in corridors:
        if own.upper - own.lower <= 2 * bound:
            other = clipped(own.upper - bound, own.lower + bound)
            ways.append(Way(own, other, last_gap(other)))
    return tuple(ways)


@lru_cache(_REMEMBERED)
def left_by_few(seen: int, accepted: int, first: int, bound: Fraction) -> tuple[Left, ...]:
    """The corridors that a group of fewer than ``first`` people leaves the other group."""
    # It can still reach many corridors: `_blocks` has merged those that overlap.
    begin, end = _reachable(seen, accepted, first)
    found = list(merged(ways_of([_entry(accepted, first, begin)], bound), first))
    for low, high, left in _blocks(first, bound):
        low, high = max(low, begin + 1), min(high, end)
        if low <= high:
            corridor = Corridor(left[low].corridor.lower, left[high].corridor.upper)
            found.append(Left(corridor, left[low].gap))
    return tuple(found)


def merged(ways: Iterable[Way], least: int) -> tuple[Left, ...]:
    """The corridors that the ways leave the other group, with overlapping ones merged.

    Gaps below ``least`` people do not matter.
    """
    found: list[Left] = []
    for way in ways:
        left = Left(way.other, 0 if way.gap < least else way.gap)
        if found and _overlap(found[-1], left):
            left = Left(Corridor(found.pop().corridor.lower, left.corridor.upper), 0)
        found.append(left)
    return tuple(found)


def _overlap(before: Left, after: Left) -> bool:
    """Whether two corridors have no gaps and overlap."""
    return before.gap == after.gap == 0 and after.corridor.lower <= before.corridor.upper


@lru_cache(16)
def _blocks(first: int, bound: Fraction) -> list[tuple[int, int, dict[int, Left]]]:
    """Runs of steps whose corridors for the other group overlap: first, last, corridor by step."""
    blocks: list[tuple[int, int, dict[int, Left]]] = []
    for i, own in enumerate(_staircase(first)):
        for way in ways_of([own], bound):
            left = Left(way.other, 0 if way.gap < first else way.gap)
            low, high, each = blocks[-1] if blocks else (i, -2, {})
            if high == i - 1 and _overlap(each[high], left):
                each[i] = left
                blocks[-1] = (low, i, each)
            else:
                blocks.append((i, i, {i: left}))
    return blocks


@lru_cache(16)
def _staircase(first: int) -> tuple[Corridor, ...]:
    """The staircase of the module's docstring: all narrowest corridors, from [0, 0] to [1, 1]."""
    steps = [Corridor(Fraction(0), Fraction(0))]
    while steps[-1].lower < 1:
        upper = _next_upper(steps[-1].lower, first)
        steps.append(Corridor(_largest_lower(upper, first), upper))
    return tuple(steps)


def narrowest(seen: int, accepted: int, first: int) -> list[Corridor]:
    """Every corridor that these counters can keep and that contains no narrower such corridor."""
    if seen < first:
        begin, end = _reachable(seen, accepted, first)
        return [_entry(accepted, first, begin), *_staircase(first)[begin + 1 : end + 1]]
    # The group's rate binds already: only corridors that contain it matter.
    rate = upper = Fraction(accepted, first)
    found = []
    while True:
        found.append(Corridor(_largest_lower(upper, first), upper))
        if found[-1].lower == rate:
            return found
        upper = _next_upper(found[-1].lower, first)


def _reachable(seen: int, accepted: int, first: int) -> tuple[int, int]:
    """The first and the last step of the staircase that the group's counters can lead to."""
    steps = _staircase(first)
    rate, reach = Fraction(accepted, first), Fraction(accepted + first - seen, first)
    begin = bisect_right(steps, rate, key=lambda step: step.upper) - 1
    return begin, bisect_left(steps, reach, key=lambda step: step.lower)


def _entry(accepted: int, first: int, begin: int) -> Corridor:
    """The first reachable step, with an upper end that admits the people accepted already."""
    return Corridor(_staircase(first)[begin].lower, Fraction(accepted, first))


def _largest_lower(upper: Fraction, first: int) -> Fraction:
    """The minimum of ``floor(upper * n) / n`` over all ``n >= first``."""
    p, q = upper.as_integer_ratio()
    if q == 1:
        return upper
    best, n = upper, first
    # Beyond n, nothing is below upper - 1/n.
    while best > upper - Fraction(1, n):
        numbers = np.arange(n, 2 * n + 1)
        counts = p * numbers // q
        # Fractions of denominators below 10^7 are farther apart than floats are off.
        i = int(np.argmin(counts / numbers))
        best, n = min(best, Fraction(int(counts[i]), int(numbers[i]))), 2 * n + 1
    return best


def _next_upper(lower: Fraction, first: int) -> Fraction:
    """The maximum of ``(floor(lower * n) + 1) / n`` over all ``n >= first``."""
    p, q = lower.as_integer_ratio()
    best, n = lower, first
    # Beyond n, nothing is above lower + 1/n.
    while best < lower + Fraction(1, n):
        numbers = np.arange(n, 2 * n + 1)
        counts = p * numbers // q + 1
        i = int(np.argmax(counts / numbers))
        best, n = max(best, Fraction(int(counts[i]), int(numbers[i]))), 2 * n + 1
    return best


@lru_cache(_REMEMBERED)
def last_gap(corridor: Corridor) -> float:
    """The largest ``n`` for which no ``k / n`` lies in the corridor; 0 if there is none."""
    lower, upper = corridor
    if lower > upper:
        return float("inf")
    if lower == 0 or upper == 1:
        return 0
    if lower == upper:
        return float("inf")
    # From n = 1 / (upper - lower) on, [lower n, upper n] has length 1 and contains an integer.
    # The last gap is mostly just below that n, so the search goes downwards.
    most, n = int(1 / (upper - lower)), 0
    while most and not n:
        numbers = np.arange(max(most - MANY, 0) + 1, most + 1)
        low, high = span(corridor, exact_counters(numbers, corridor, 1), numbers)
        n = int(np.max(numbers, where=np.asarray(low > high, bool), initial=0))
        most = int(numbers[0]) - 1
    return n


def span(corridor: Corridor, seen: Any, first: Any) -> tuple[Any, Any]:
    """Acceptances out of ``seen`` that lead into the corridor once ``first`` have been seen."""
    (p, q), (r, s) = (end.as_integer_ratio() for end in corridor)
    return -(-p * first // q) - (first - seen), r * first // s


def clipped(lower: Fraction, upper: Fraction) -> Corridor:
    """The part of the interval in [0, 1]."""
    return Corridor(max(lower, Fraction(0)), min(upper, Fraction(1)))


def exact_counters(counters: NDArray[Any], corridor: Corridor, least: int) -> NDArray[Any]:
    """``counters`` as integers that multiply with the corridor's ends without wrapping."""
    most = max(end.denominator for end in corridor) * max(int(counters.max(initial=1)), least)
    return counters.astype(np.int64 if most < 2**62 else object)
