"""Properties that bound how far the rates of two groups are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from fairshield.base.counts import Group
from fairshield.spec.base import Count, Property
from fairshield.spec.bounds import Gap, rate_of, where
from fairshield.spec.described import any_two_of, exactly, rounded
from fairshield.spec.finding import Measured
from fairshield.spec.intervals import Interval
from fairshield.spec.linear import Inequality
from fairshield.spec.rationals import decimal
from fairshield.spec.rules import (
    ANYTIME,
    DIFFERENCE,
    ENOUGH,
    FEW,
    KIND,
    LABELLED,
    LEAST,
    SUPPORT,
    P,
    Q,
    Rule,
    make_rule,
)
from fairshield.spec.sustained import Sustained

_MOST_LEAST = 50
"""Corridors of so many people are found at once; of hundreds they take seconds."""
_LEAST_BOUND = Fraction(1, 200)


@dataclass(frozen=True, init=False)
class DifferenceOfRates(Gap):
    r"""DifferenceOfRates requires :math:`|k_a/n_a - k_b/n_b| \le \kappa`."""

    def inequalities(self, n_a: Any, n_b: Any) -> tuple[Inequality, ...]:
        p, q = self.bound.as_integer_ratio()
        in_a, in_b, slack = n_b * q, n_a * q, n_a * n_b * p
        return (in_a, -in_b, slack), (-in_a, in_b, slack)

    def bias(self, a: Count, b: Count) -> Any:
        return where(self._have_rates(a, b), abs(rate_of(a) - rate_of(b)))

    def bias_within(self, a: Interval, b: Interval, share: Interval) -> tuple[float, float]:
        nearest = max(0.0, a.lower - b.upper, b.lower - a.upper)
        return nearest, max(a.upper - b.lower, b.upper - a.lower)

    # Words and pictures ---------------------------------------------------------------------

    def measured(self, a: Count, b: Count) -> Measured:
        rate_a, rate_b = self._known_rate(a), self._known_rate(b)
        gap, asked = abs(rate_a - rate_b), f"at most {decimal(self.bound)}"
        return Measured("gap", gap, asked, self.limit, turned=rate_a > rate_b)

    def requirement(self, groups: Sequence[Group]) -> str:
        pair = any_two_of(groups)
        return (
            f"The {self._share_accepted()} differs between {pair} by at most {exactly(self.bound)}."
        )

    def promise(self, a: str, b: str) -> str:
        limit = rounded(100 * self.limit)
        whose = {None: "A", True: "Among people with a good outcome, a",
                 False: "Among people with a bad outcome, a"}  # fmt: skip
        rates = f"cceptance rates of “{a}” and “{b}” differ by at most {limit} percentage points"
        return whose[self.relevant_outcome] + rates

    def formula(self) -> str:
        return f"|k_a/n_a \N{MINUS SIGN} k_b/n_b| ≤ {self.bound}"

    def gap_label(self, a: Group, b: Group) -> str:
        return f"rate of {a} minus rate of {b}"

    # Theorems -------------------------------------------------------------------------------

    @property
    def difference(self) -> DifferenceOfRates | None:
        return self

    @property
    def sustained(self) -> Sustained | None:
        return Sustained(self)

    def implies(self, other: Property) -> bool:
        return super().implies(other) or (
            type(other) is type(self)
            and self.bound <= other.bound
            and self.min_support <= other.min_support
            and (self.undefined == "rate-0" or other.undefined == "bias-0" or other.min_support > 0)
        )

    @property
    def uncertified(self) -> str | None:
        few = f"a bound below {_LEAST_BOUND} leaves too little room for certificates of few people"
        return self._too_large() or (few if self.bound < _LEAST_BOUND else None)

    def rule(self) -> Rule:
        p, q = self.bound.as_integer_ratio()
        least = min(self.min_support, _MOST_LEAST)
        few = max(-(-q // p), least)
        labelled = self.relevant_outcome is not None
        numbers = {KIND: DIFFERENCE, P: p, Q: q, SUPPORT: self.min_support, LEAST: least, FEW: few,
                   ENOUGH: -(-few * q // p), LABELLED: labelled, ANYTIME: labelled}  # fmt: skip
        sides = [[1.0, -1.0, p / q], [-1.0, 1.0, p / q]]
        return make_rule(numbers, sides, math.isqrt(2**61 // max(2 * p, 2 * q)))

    def binding_from(self, least: int) -> DifferenceOfRates:
        """The same bound, binding groups of ``least`` people or more."""
        return replace(self, min_support=least)


@dataclass(frozen=True, init=False)
class DemographicParity(DifferenceOfRates, kind="demographic-parity"):
    """DemographicParity requires that acceptance rates differ by at most ``bound``.

    >>> from fairshield import Counts
    >>> DemographicParity("0.1").holds(Counts({"a": (10, 8), "b": (10, 7)}))
    True
    """


@dataclass(frozen=True, init=False)
class EqualOpportunity(DifferenceOfRates, kind="equal-opportunity"):
    """EqualOpportunity requires that true-positive rates differ by at most ``bound``.

    Only people with outcome 1 count.
    """

    relevant_outcome: ClassVar[bool | None] = True


@dataclass(frozen=True, init=False)
class PredictiveEquality(DifferenceOfRates, kind="predictive-equality"):
    """PredictiveEquality requires that false-positive rates differ by at most ``bound``.

    Only people with outcome 0 count.
    """

    relevant_outcome: ClassVar[bool | None] = False
