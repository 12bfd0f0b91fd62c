r"""Counters from which a property can be reached by the end of a window, whoever arrives.

The certificate is a set :math:`S_m` of counters for :math:`m` decisions left, such that

* whoever comes next, some decision leads from :math:`S_m` to :math:`S_{m-1}`,
* every counter state in :math:`S_0` is fair.

A shield that never leaves it is fair at the end of the window on every input sequence.  That the
set has these two properties is proved in docs/guarantees.md.

The functions here are plain functions of integers, which also run compiled.  Called as plain
Python, with a ``rule`` of Python integers, they are exact for integers of any size; compiled, in
64 bits, for counters up to :attr:`fairshield.spec.rules.Rule.largest`.

*Closed* counters.  Once both groups are large enough that a fair state can be kept for ever
(:math:`1/n_a + 1/n_b \le 2\kappa` for differences of rates, :math:`1/k_a + 1/k_b \le 1 - \rho^2`
for ratios), a state is in :math:`S_m` iff the strongest correction, reject everybody of the group
with the higher rate and accept everybody of the other, ends fair if only the one or only the
other group arrives.  What happens in between is a convex function of the arrivals, hence never
worse; so on closed counters that bind already the certificate is exact.

*Few* people.  A small group stays in a corridor of rates that can be kept for ever.  The other
group must be able to reach a corridor that this leaves it, with a few decisions to spare.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from fairshield.base.counts import GroupCount
from fairshield.spec import Property, Sustained
from fairshield.spec.corridors import Left
from fairshield.spec.rules import (
    BOUNDED,
    DIFFERENCE,
    ENOUGH,
    FEW,
    GAP,
    KIND,
    LABELLED,
    LEAST,
    ONE_SIDED,
    RATIO,
    P,
    Q,
    R,
    Rule,
    S,
)

Count = GroupCount[int]
Ints = Sequence[int]

_REMEMBERED = 10_000
"""Counters of a few people whose corridors are remembered."""


class Certificates:
    """Certificates says which counters of one property are certified.

    Parameters
    ----------
    goes_on
        Whether the property must stay within reach after the end as well.  Then a group that is
        too small to bind at the end is certified like any other.
    """

    def __init__(self, prop: Property, rule: Rule, *, goes_on: bool = False) -> None:
        self.binds_from = 0 if goes_on else prop.min_support
        self.rule: Ints = rule.numbers.tolist()
        self.few = few_people(self.rule)
        self.sustained: Sustained | None = None
        if prop.difference is not None:
            self.sustained = prop.difference.binding_from(self.rule[LEAST]).sustained
        self.ways = lru_cache(_REMEMBERED)(self._ways)

    def certified(self, a: Count, b: Count, left: int) -> bool:
        """Whether the property can be reached from these counters in ``left`` decisions."""
        if certified_anyway(self.rule, self.binds_from, *a, *b, left):
            return True
        few, other = (a, b) if a.seen < b.seen else (b, a)
        if other.seen < self.few:
            return self._both_few(a, b, left)
        return few.seen < self.few and reaches(self.rule, self.ways(*few), few.seen, *other, left)

    def lefts(self, seen: int, accepted: int) -> tuple[Left, ...]:
        """The corridors that a group of few people leaves the other group."""
        assert self.sustained is not None
        return self.sustained._left(seen, accepted)

    def _ways(self, seen: int, accepted: int) -> list[int]:
        """:meth:`lefts` as :func:`reaches` takes them: those that can ever be kept."""
        return [
            number
            for (lower, upper), gap in self.lefts(seen, accepted)
            if gap < math.inf
            for number in (*lower.as_integer_ratio(), *upper.as_integer_ratio(), int(gap))
        ]

    def _both_few(self, a: Count, b: Count, left: int) -> bool:
        assert self.sustained is not None
        # The number of people, at the end, of the group that stops being few first.
        last = _sure(self.rule, left) + a.seen + b.seen - self.few
        if last >= self.rule[ENOUGH] and self._has_way(a) and self._has_way(b):
            return True
        return bool(self.sustained.fair(a, b))

    def _has_way(self, count: Count) -> bool:
        return any(way.gap < self.rule[ENOUGH] for way in self.lefts(*count))


def certified_anyway(
    rule: Ints, binds_from: int, n_a: int, k_a: int, n_b: int, k_b: int, left: int
) -> bool:
    """Whether counters are certified without regard to what a group of few people leaves."""
    kind = rule[KIND]
    if min(n_a, n_b) + left < binds_from:
        # A group cannot reach the number of people from which the property binds.
        return True
    if kind == BOUNDED:
        return _bounded(rule, n_a, k_a) and _bounded(rule, n_b, k_b)
    if kind == ONE_SIDED:
        return _pushed(rule, n_a, k_a, n_b, k_b, left)
    time = _sure(rule, left)
    if (
        closed(rule, n_a, k_a, n_b, k_b)
        and _pushed(rule, n_a, k_a, n_b, k_b, time)
        and _pushed(rule, n_b, k_b, n_a, k_a, time)
    ):
        return True
    if kind == DIFFERENCE:
        return False
    if k_a <= k_b:
        accepting = _accepting(rule, n_a, k_a, n_b, k_b, left)
    else:
        accepting = _accepting(rule, n_b, k_b, n_a, k_a, left)
    return (
        accepting or _kept_ratio(rule, n_a, k_a, n_b, k_b) or _kept_ratio(rule, n_b, k_b, n_a, k_a)
    )


def closed(rule: Ints, n_a: int, k_a: int, n_b: int, k_b: int) -> bool:
    """Whether both groups are so large that fair counters can be kept fair for ever."""
    p, q = rule[P], rule[Q]
    if rule[KIND] == DIFFERENCE:
        return n_a > 0 and n_b > 0 and q * (n_a + n_b) <= 2 * p * n_a * n_b
    return k_a > 0 and k_b > 0 and q * q * (k_a + k_b) <= (q * q - p * p) * k_a * k_b


def _sure(rule: Ints, left: int) -> int:
    """How many people are certain to count in ``left`` decisions: none if outcomes say who does."""
    return 0 if rule[LABELLED] else left


def _pushed(rule: Ints, n: int, k: int, m: int, x: int, left: int) -> bool:
    """Whether the strongest correction lowers the rate ``k / n`` far enough to be fair."""
    return _within(rule, n, k, m + left, x + left) and _within(rule, n + left, k, m, x)


def _within(rule: Ints, n: int, k: int, m: int, x: int) -> bool:
    """Whether one side of the property holds: ``k / n`` is not too high beside ``x / m``.

    It does for groups of which nobody was seen.
    """
    kind, p, q = rule[KIND], rule[P], rule[Q]
    if kind == DIFFERENCE:
        return q * (k * m - x * n) <= p * n * m
    if kind == RATIO:
        return p * k * m <= q * x * n
    return q * k * m <= p * x * n


# Few people, a difference of rates ----------------------------------------------------------


def few_people(rule: Ints) -> int:
    """A group of fewer people is *few*, and leaves the other group corridors."""
    return rule[FEW] if rule[KIND] == DIFFERENCE else 0


def reaches(rule: Ints, ways: Ints, n: int, m: int, x: int, left: int) -> bool:
    """Whether ``x`` of ``m`` can reach a corridor that ``n`` people of the other group leave.

    ``ways`` has five numbers for each corridor: the fractions of its ends and its last gap.
    """
    spare = _spare(rule, _sure(rule, left) - (rule[FEW] - n), m)
    seen = m + spare
    first = max(seen, rule[LEAST], 1)
    for i in range(0, len(ways), 5):
        low = -(-ways[i] * first // ways[i + 1]) - (first - seen)
        high = ways[i + 2] * first // ways[i + 3]
        if ways[i + 4] < first and low <= x + spare and x <= high:
            return True
    return False


def _spare(rule: Ints, left: int, m: int) -> int:
    """How many people the other group, of ``m``, may need to reach its corridor."""
    return left if left > 0 and m + left >= rule[ENOUGH] else 0


# Few accepted people, a ratio of rates ------------------------------------------------------


def _accepting(rule: Ints, n: int, k: int, m: int, x: int, left: int) -> bool:
    """Whether groups can go on accepting everybody; ``k`` of ``n`` has fewer acceptances."""
    p, q, few = rule[P], rule[Q], rule[FEW]
    if k >= few or k < n:
        return False
    if x < few:
        return x == m
    spare = _spare(rule, left - (few - k), m)
    return q * (x + spare) >= p * (m + spare)


def _kept_ratio(rule: Ints, n: int, k: int, m: int, x: int) -> bool:
    """Whether corridors as wide as one person of each group fit around fair rates."""
    p, q = rule[P], rule[Q]
    if n == 0 or m == 0 or p * k * m > q * x * n or p * x * n > q * k * m:
        return False
    wide = x * n * (q * q - p * p) >= p * q * m + p * p * n
    return wide and q * k * m >= p * (x + 1) * n


# Bounded rates ------------------------------------------------------------------------------


def _bounded(rule: Ints, n: int, k: int) -> bool:
    """Whether the rate ``k / n`` can be kept within its bounds for ever."""
    first = max(n, rule[LEAST], 1)
    low = -(-rule[P] * first // rule[Q]) - (first - n)
    return rule[GAP] < first and low <= k <= rule[R] * first // rule[S]
