r"""Counters from which a property can be reached by the end of a window, whoever arrives.

The certificate is a set :math:`S_m` of counters for :math:`m` decisions left, such that

* whoever comes next, some decision leads from :math:`S_m` to :math:`S_{m-1}`,
* every counter state in :math:`S_0` is fair.

A shield that never leaves it is fair at the end of the window on every input sequence.  This
module is the definition, in integers of any size; :mod:`fairshield.policy.long.kernels` computes
the same, compiled.  That the set has these two properties is proved in docs/guarantees.md.

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

from fairshield.base.counts import GroupCount
from fairshield.spec import Property, Sustained
from fairshield.spec.corridors import Left, span
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


class Certificates:
    """Certificates says which counters of one property are certified.

    Parameters
    ----------
    goes_on
        Whether the property must stay within reach after the end as well.  Then a group that is
        too small to bind at the end is certified like any other.
    """

    def __init__(self, prop: Property, rule: Rule, *, goes_on: bool = False) -> None:
        self.prop, self.rule = prop, rule
        self.binds_from = 0 if goes_on else prop.min_support
        numbers: list[int] = rule.numbers.tolist()
        self.kind, self.p, self.q = numbers[KIND], numbers[P], numbers[Q]
        self.upper, self.gap = (numbers[R], numbers[S]), numbers[GAP]
        self.least, self.few, self.enough = numbers[LEAST], numbers[FEW], numbers[ENOUGH]
        self.labelled = bool(numbers[LABELLED])
        self.sustained: Sustained | None = None
        if prop.difference is not None:
            self.sustained = prop.difference.binding_from(self.least).sustained

    def certified(self, a: Count, b: Count, left: int) -> bool:
        """Whether the property can be reached from these counters in ``left`` decisions."""
        if self._never_binds(a, b, left):
            return True
        if self.kind == BOUNDED:
            return self._bounded(a) and self._bounded(b)
        if self.kind == ONE_SIDED:
            return self._pushed(a, b, left)
        time = 0 if self.labelled else left
        if self.closed(a, b) and self._pushed(a, b, time) and self._pushed(b, a, time):
            return True
        if self.kind == RATIO:
            return self._accepting(a, b, left) or self._kept_ratio(a, b) or self._kept_ratio(b, a)
        few_a, few_b = a.seen < self.few, b.seen < self.few
        if few_a and few_b:
            return self._both_few(a, b, time)
        if few_a or few_b:
            return self._reaches(a, b, time) if few_a else self._reaches(b, a, time)
        return False

    def _never_binds(self, a: Count, b: Count, left: int) -> bool:
        """Whether a group cannot reach the number of people from which the property binds."""
        return min(a.seen, b.seen) + left < self.binds_from

    def closed(self, a: Count, b: Count) -> bool:
        """Whether both groups are so large that fair counters can be kept fair for ever."""
        p, q = self.p, self.q
        if self.kind == DIFFERENCE:
            return min(a.seen, b.seen) > 0 and q * (a.seen + b.seen) <= 2 * p * a.seen * b.seen
        k_a, k_b = a.accepted, b.accepted
        return min(k_a, k_b) > 0 and q * q * (k_a + k_b) <= (q * q - p * p) * k_a * k_b

    def _pushed(self, high: Count, low: Count, left: int) -> bool:
        """Whether the strongest correction lowers the rate of ``high`` far enough to be fair."""
        only_low = GroupCount(low.seen + left, low.accepted + left)
        only_high = GroupCount(high.seen + left, high.accepted)
        return self._within(high, only_low) and self._within(only_high, low)

    def _within(self, high: Count, low: Count) -> bool:
        """Whether one side of the property holds; it does for groups of which nobody was seen."""
        (n, k), (m, x), p, q = high, low, self.p, self.q
        if self.kind == DIFFERENCE:
            return q * (k * m - x * n) <= p * n * m
        if self.kind == RATIO:
            return p * k * m <= q * x * n
        return q * k * m <= p * x * n

    # Few people, a difference of rates ------------------------------------------------------

    def lefts(self, count: Count) -> tuple[Left, ...]:
        """The corridors that a group of few people leaves the other group."""
        assert self.sustained is not None
        return self.sustained._left(*count)

    def _reaches(self, few: Count, other: Count, left: int) -> bool:
        """Whether the other group can still reach a corridor that the group of few leaves it."""
        spare = self._spare(left - (self.few - few.seen), other)
        seen = other.seen + spare
        return any(self._reaches_one(way, seen, other, spare) for way in self.lefts(few))

    def _spare(self, left: int, other: Count) -> int:
        """How many people the other group may need to reach its corridor."""
        return left if left > 0 and other.seen + left >= self.enough else 0

    def _reaches_one(self, way: Left, seen: int, other: Count, spare: int) -> bool:
        first = max(seen, self.least, 1)
        low, high = span(way.corridor, seen, first)
        return bool(way.gap < first and low <= other.accepted + spare and other.accepted <= high)

    def _both_few(self, a: Count, b: Count, left: int) -> bool:
        assert self.sustained is not None
        # The number of people, at the end, of the group that stops being few first.
        last = left + a.seen + b.seen - self.few
        if last >= self.enough and all(self._has_way(count) for count in (a, b)):
            return True
        return bool(self.sustained.fair(a, b))

    def _has_way(self, count: Count) -> bool:
        return any(way.gap < self.enough for way in self.lefts(count))

    # Few accepted people, a ratio of rates --------------------------------------------------

    def _accepting(self, a: Count, b: Count, left: int) -> bool:
        """Whether groups with few acceptances can go on accepting everybody."""
        few_a, few_b = a.accepted < self.few, b.accepted < self.few
        if few_a and few_b:
            return a.accepted == a.seen and b.accepted == b.seen
        if not few_a and not few_b:
            return False
        few, other = (a, b) if few_a else (b, a)
        if few.accepted < few.seen:
            return False
        spare = self._spare(left - (self.few - few.accepted), other)
        return self.q * (other.accepted + spare) >= self.p * (other.seen + spare)

    def _kept_ratio(self, a: Count, b: Count) -> bool:
        """Whether corridors as wide as one person of each group fit around fair rates."""
        (n, k), (m, x), p, q = a, b, self.p, self.q
        if not (min(n, m) > 0 and p * k * m <= q * x * n and p * x * n <= q * k * m):
            return False
        wide = x * n * (q * q - p * p) >= p * q * m + p * p * n
        return wide and q * k * m >= p * (x + 1) * n

    # Bounded rates --------------------------------------------------------------------------

    def _bounded(self, count: Count) -> bool:
        first, (r, s) = max(count.seen, self.least, 1), self.upper
        low = -(-self.p * first // self.q) - (first - count.seen)
        return self.gap < first and low <= count.accepted <= r * first // s
