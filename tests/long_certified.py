"""Which counters are certified, written as docs/guarantees.md says it, lemma by lemma."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import fairshield as fs
from fairshield.spec import NoRequirement, Sustained
from fairshield.spec.corridors import Corridor, last_gap

Count = fs.GroupCount[int]


def certified(prop: fs.Property, a: Count, b: Count, left: int, *, goes_on: bool = False) -> bool:
    """Whether counters are certified, with so many decisions left."""
    if not goes_on and min(a.seen, b.seen) + left < prop.min_support:
        return True
    if isinstance(prop, NoRequirement):
        return True
    if isinstance(prop, fs.BoundedRates):
        bounds, support = Corridor(prop.lower, prop.upper), prop.min_support
        return all(tenable(bounds, n, k, k, support) for n, k in (a, b))
    if isinstance(prop, fs.DisparateImpact):
        if not prop.two_sided:
            return pushable(1, prop.bound, Fraction(0), a, b, left)
        return of_ratio(prop.bound, a, b, left)
    assert prop.difference is not None
    # Where outcomes decide who counts, nobody else may come who does.
    return of_difference(prop.difference, a, b, 0 if prop.relevant_outcome is not None else left)


def pushable(
    one: Fraction | int, other: Fraction | int, most: Fraction, a: Count, b: Count, left: int
) -> bool:
    """Lemma 5: whether rejecting all of a and accepting all of b ends within the bound."""

    def within(n: int, k: int, m: int, x: int) -> bool:
        return not n or not m or one * Fraction(k, n) - other * Fraction(x, m) <= most

    (n, k), (m, x) = a, b
    return within(n, k, m + left, x + left) and within(n + left, k, m, x)


def tenable(corridor: Corridor, seen: int, least: int, most: int, support: int) -> bool:
    """Whether some number of acceptances from ``least`` to ``most`` makes a corridor tenable."""
    first = max(seen, support, 1)
    low, high = ceil(corridor.lower * first), floor(corridor.upper * first)
    reached = max(low, least) <= min(high, most + first - seen)
    return last_gap(corridor) < first and reached


def of_difference(prop: fs.spec.DifferenceOfRates, a: Count, b: Count, left: int) -> bool:
    """Lemmas 6 and 8."""
    bound, support = prop.bound, min(prop.min_support, 50)
    closed = a.seen and b.seen and Fraction(1, a.seen) + Fraction(1, b.seen) <= 2 * bound
    if closed and all(pushable(1, 1, bound, *pair, left) for pair in ((a, b), (b, a))):
        return True
    few, of = max(ceil(1 / bound), support), Sustained(prop.binding_from(support))
    g, h = (a, b) if a.seen < b.seen else (b, a)
    if g.seen >= few:
        return False
    if h.seen >= few:
        spare = max(left - (few - g.seen), 0)
        if bound * (h.seen + spare) < few:
            spare = 0
        n, k = h.seen + spare, h.accepted
        return any(tenable(way.other, n, k, k + spare, support) for way in of._ways(*g))
    if bound * (left + a.seen + b.seen - few) >= few:
        enough = ceil(few / bound)
        if all(any(way.gap < enough for way in of._ways(*count)) for count in (a, b)):
            return True
    return of.holds(fs.Counts({"a": a, "b": b}))


def of_ratio(bound: Fraction, a: Count, b: Count, left: int) -> bool:
    """Lemmas 7 and 9."""
    (n, k), (m, x), apart = a, b, 1 - bound**2
    closed = k and x and Fraction(1, k) + Fraction(1, x) <= apart
    if closed and all(pushable(bound, 1, Fraction(0), *pair, left) for pair in ((a, b), (b, a))):
        return True
    few = ceil(2 / apart)
    g, h = (a, b) if a.accepted < b.accepted else (b, a)
    if h.accepted < few and n == k and m == x:
        return True
    if g.accepted < few <= h.accepted and g.accepted == g.seen:
        spare = max(left - (few - g.accepted), 0)
        if bound * (h.seen + spare) < few:
            spare = 0
        if h.accepted + spare >= bound * (h.seen + spare):
            return True
    return moved_corridors_fit(bound, a, b) or moved_corridors_fit(bound, b, a)


def moved_corridors_fit(bound: Fraction, a: Count, b: Count) -> bool:
    """(1) of Lemma 7 with the corridor of b not moved, multiplied by the bound."""
    if not a.seen or not b.seen:
        return False
    rate_a, rate_b = Fraction(a.accepted, a.seen), Fraction(b.accepted, b.seen)
    wide_a, wide_b = Fraction(1, a.seen), Fraction(1, b.seen)
    spare_b, spare_a = rate_b - bound * rate_a, rate_a - bound * rate_b
    least = max(bound * wide_a - spare_b, Fraction(0))
    most = min(bound * wide_a, bound * (spare_a - bound * wide_b))
    return min(spare_a, spare_b) >= 0 and least <= most
