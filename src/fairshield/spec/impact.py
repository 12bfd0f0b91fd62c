"""The property that bounds the ratio of rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Group, GroupCount
from fairshield.base.errors import argument
from fairshield.spec.base import Count, Undefined
from fairshield.spec.bounds import Bounded, rate_of, where
from fairshield.spec.described import Axis, any_two_of, exactly, rounded
from fairshield.spec.finding import Measured
from fairshield.spec.intervals import Interval
from fairshield.spec.linear import Inequality
from fairshield.spec.rationals import Number, decimal
from fairshield.spec.rules import (
    ENOUGH,
    FEW,
    KIND,
    ONE_SIDED,
    RATIO,
    SUPPORT,
    P,
    Q,
    Rule,
    make_rule,
)


@dataclass(frozen=True, init=False)
class DisparateImpact(Bounded, kind="disparate-impact"):
    r"""DisparateImpact bounds the ratio of acceptance rates.

    Two-sided (default), ``DisparateImpact("0.8")`` is the four-fifths rule: each rate is at least
    0.8 of the other.  With ``two_sided=False`` it is the paper's ratio,
    :math:`r_a / r_b \le` bound, where the first declared group is ``a`` and the bound may exceed 1.
    Rates that are both zero are fair; a positive rate against a zero one is not.
    """

    shows_ratios: ClassVar[bool] = True

    two_sided: bool

    def __init__(
        self,
        bound: Number,
        *,
        two_sided: bool = True,
        min_support: int = 0,
        undefined: Undefined = "bias-0",
    ) -> None:
        object.__setattr__(self, "two_sided", two_sided)
        super().__init__(bound, min_support=min_support, undefined=undefined)

    def _most(self) -> int | None:
        return 1 if self.two_sided else None

    @property
    def only_two(self) -> str | None:
        if self.two_sided:
            return None
        use = argument("two_sided", True)
        return f"first to second is one ratio; use {use}, which binds every pair"

    def inequalities(self, n_a: Any, n_b: Any) -> tuple[Inequality, ...]:
        p, q = self.bound.as_integer_ratio()
        # Times n_a n_b, the rate in a is k_a n_b and that in b is k_b n_a.
        if self.two_sided:
            return (n_b * p, -n_a * q, 0), (-n_b * q, n_a * p, 0)
        return ((n_b * q, -n_a * p, 0),)

    def bias(self, a: Count, b: Count) -> Any:
        rate_a, rate_b = np.asarray(rate_of(a)), np.asarray(rate_of(b))  # division by 0
        low, high = np.minimum(rate_a, rate_b), np.maximum(rate_a, rate_b)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.two_sided:
                bias = np.where(high > 0, 1.0 - low / high, 0.0)
            else:
                bias = np.where(rate_a > 0, rate_a / rate_b, 0.0)
        return where(self._have_rates(a, b), bias)

    @property
    def limit(self) -> float:
        return float(1 - self.bound) if self.two_sided else float(self.bound)

    def bias_within(self, a: Interval, b: Interval, share: Interval) -> tuple[float, float]:
        if not self.two_sided:
            return _ratio(a.lower, b.upper, 0.0), _ratio(a.upper, b.lower, 0.0)
        # Two rates of 0 are equal.
        least = min(_ratio(a.lower, b.upper, 1.0), _ratio(b.lower, a.upper, 1.0))
        most = min(_ratio(a.upper, b.lower, 1.0), _ratio(b.upper, a.lower, 1.0))
        return max(0.0, 1 - most), 1 - least

    # Words and pictures ---------------------------------------------------------------------

    def words(self) -> str:
        if self.two_sided:
            return f"disparate impact ≥ {self.bound}"
        return f"disparate impact (first to second) ≤ {self.bound}"

    def measured(self, a: Count, b: Count) -> Measured:
        rate_a, rate_b = self._known_rate(a), self._known_rate(b)
        turned = self.two_sided and rate_a > rate_b
        # Rates that are both zero are fair.
        one, other = (rate_b, rate_a) if turned else (rate_a, rate_b)
        ratio = one if math.isnan(one) else _ratio(one, other, float(self.two_sided))
        asked = f"at {'least' if self.two_sided else 'most'} {decimal(self.bound)}"
        return Measured("impact ratio", ratio, asked, float(self.bound), turned, "of {} to {}")

    def requirement(self, groups: Sequence[Group]) -> str:
        share, bound = self._share_accepted(), exactly(self.bound)
        if self.two_sided:
            return (
                f"Of {any_two_of(groups)}, the {share} in each is at least {bound} of the other's."
            )
        a, b = groups
        return f"The {share} in group {a} is at most {bound} times that in group {b}."

    def promise(self, a: str, b: str) -> str:
        bound = rounded(float(self.bound))
        if self.two_sided:
            return f"Acceptance rates of “{a}” and “{b}” are each at least {bound} times the other"
        return f"The acceptance rate of “{a}” is at most {bound} times that of “{b}”"

    def formula(self) -> str:
        a, b, bound = "k_a/n_a", "k_b/n_b", self.bound
        if self.two_sided:
            return f"{a} ≥ {bound} · {b} and {b} ≥ {bound} · {a}"
        return f"{a} ≤ {bound} · {b}"

    def axis(self, groups: Sequence[Group]) -> Axis:
        if not self.two_sided:
            return super().axis(groups)
        of_any = "" if len(groups) == 2 else " of any two groups"
        label = f"impact ratio, the lower rate to the higher{of_any}"
        return Axis("impact ratio", label, float(self.bound), 1.0, most=1.0, whole=True)

    def drawn(self, bias: NDArray[np.float64], *groups: GroupCount[Any]) -> NDArray[np.float64]:
        if not self.two_sided:
            return bias
        two = np.sum([group.seen > 0 for group in groups], axis=0) >= 2
        return np.where(two, 1.0 - bias, np.nan)

    # Theorems -------------------------------------------------------------------------------

    @property
    def uncertified(self) -> str | None:
        equal = None
        if self.two_sided and self.bound == 1:
            equal = "rates that must be equal leave no room for a certificate"
        return self._too_large() or self._binds_nobody() or equal

    def rule(self) -> Rule:
        p, q = self.bound.as_integer_ratio()
        numbers = {KIND: ONE_SIDED, P: p, Q: q, SUPPORT: self.min_support}
        largest = math.isqrt(2**61 // max(p, q) ** 2)
        if not self.two_sided:
            return make_rule(numbers, [[1.0, -p / q, 0.0]], largest)
        few = -(-2 * q * q // (q * q - p * p))
        numbers |= {KIND: RATIO, FEW: few, ENOUGH: -(-few * q // p) if p else 0}
        return make_rule(numbers, [[p / q, -1.0, 0.0], [-1.0, p / q, 0.0]], largest)


def _ratio(one: float, other: float, of_zeros: float) -> float:
    """``one / other``; ``of_zeros`` if both are 0."""
    if other:
        return one / other
    return math.inf if one else of_zeros
