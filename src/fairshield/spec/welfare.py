"""BoundedRates: the property that bounds each group's rate by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fairshield.base.counts import Counts, Group, GroupCount
from fairshield.base.errors import InvalidValueError
from fairshield.spec.base import Count, Undefined
from fairshield.spec.bounds import rate_of
from fairshield.spec.corridors import Corridor, last_gap
from fairshield.spec.described import Axis, all_of, exactly
from fairshield.spec.finding import Finding, Measured
from fairshield.spec.intervals import Interval
from fairshield.spec.linear import Inequality, LinearProperty
from fairshield.spec.rationals import Number, decimal, exact
from fairshield.spec.rules import (
    ANYTIME,
    BOUNDED,
    GAP,
    KIND,
    LABELLED,
    LEAST,
    SUPPORT,
    P,
    Q,
    R,
    Rule,
    S,
    make_rule,
)


@dataclass(frozen=True, init=False)
class BoundedRates(LinearProperty, kind="bounded-rates"):
    r"""BoundedRates keeps each group's acceptance rate in ``[lower, upper]`` (bounded welfare).

    ``min_support`` defaults to the paper's :math:`N = \lceil 1/(u - l) \rceil`, from which on an
    accepted count with a rate inside the interval always exists.  With ``outcome`` only people
    with this outcome count, as they do for equal opportunity (True) or predictive equality (False).
    """

    lower: Fraction
    upper: Fraction
    outcome: bool | None

    def __init__(
        self,
        lower: Number,
        upper: Number,
        *,
        outcome: bool | None = None,
        min_support: int | None = None,
        undefined: Undefined = "bias-0",
    ) -> None:
        if outcome not in (None, False, True):
            raise InvalidValueError(
                f"outcome must be 0 or 1, the outcome of those who count, or none, got {outcome!r}"
            )
        low, high = exact(lower, "lower", most=1), exact(upper, "upper", most=1)
        if not low < high:
            raise InvalidValueError(
                f"lower must be below upper, got [{low}, {high}]: widen the interval"
            )
        support = math.ceil(1 / (high - low)) if min_support is None else min_support
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "outcome", None if outcome is None else bool(outcome))
        object.__setattr__(self, "relevant_outcome", self.outcome)
        object.__setattr__(self, "min_support", support)
        object.__setattr__(self, "undefined", undefined)
        self.__post_init__()

    def inequalities(self, n_a: Any, n_b: Any) -> tuple[Inequality, ...]:
        (p, q), (r, s) = self.lower.as_integer_ratio(), self.upper.as_integer_ratio()
        return (-q, 0, -n_a * p), (s, 0, n_a * r), (0, -q, -n_b * p), (0, s, n_b * r)

    def bias(self, a: Count, b: Count) -> Any:
        support = np.minimum(a.seen, b.seen) >= self.min_support
        outside = np.maximum(self._outside(a), self._outside(b))
        return np.where(support, outside, 0.0)

    def _outside(self, g: Count) -> Any:
        rate = rate_of(g)
        gap = np.maximum(float(self.lower) - rate, rate - float(self.upper))
        seen = np.asarray(g.seen) > (-1 if self.undefined == "rate-0" else 0)
        return np.where(seen, np.maximum(gap, 0.0), 0.0)

    def bias_within(self, a: Interval, b: Interval, share: Interval) -> tuple[float, float]:
        lower, upper = float(self.lower), float(self.upper)
        nearest = max(0.0, *(max(lower - g.upper, g.lower - upper) for g in (a, b)))
        return nearest, max(0.0, *(max(lower - g.lower, g.upper - upper) for g in (a, b)))

    @property
    def coefficient(self) -> int:
        return max(self.lower.denominator, self.upper.denominator)

    # Words and pictures ---------------------------------------------------------------------

    def measured(self, a: Count, b: Count) -> Measured:
        rates = [self._known_rate(g) for g in (a, b)]
        low, high = float(self.lower), float(self.upper)
        beyond = [max(low - rate, rate - high) for rate in rates]
        turned = math.isnan(beyond[0]) or beyond[1] > beyond[0]
        rate = rates[turned]
        limit = low if rate < (low + high) / 2 else high
        asked = f"{decimal(self.lower)} to {decimal(self.upper)}"
        return Measured("rate", rate, asked, limit, turned, "of {}")

    def findings(self, counts: Counts) -> list[Finding]:
        """The worst finding of each group that lies further out than the other of some pair."""
        found: dict[Group, Finding] = {}
        for finding in super().findings(counts):
            found.setdefault(finding.pair[0], finding)
        return list(found.values())

    def words(self) -> str:
        return f"rates in [{self.lower}, {self.upper}]{self._among()}"

    def _among(self) -> str:
        return "" if self.outcome is None else f" among those with outcome {int(self.outcome)}"

    def requirement(self, groups: Sequence[Group]) -> str:
        return (
            f"The {self._share_accepted()} lies, in each of the {all_of(groups)}, between "
            f"{exactly(self.lower)} and {exactly(self.upper)}."
        )

    def promise(self, a: str, b: str) -> str:
        lower, upper = (f"{100 * float(rate):.1f}\N{NO-BREAK SPACE}%" for rate in self._rates())
        return f"Rates in {lower} to {upper}{self._among()}"

    def formula(self) -> str:
        return f"{self.lower} ≤ k_g/n_g ≤ {self.upper} for every group g"

    def axis(self, groups: Sequence[Group]) -> Axis:
        low, high = map(float, self._rates())
        return Axis("rate", "share accepted", low, high, most=1.0, whole=True, by_group=True)

    def lead(self, a: GroupCount[Any], b: GroupCount[Any]) -> Any:
        """Nobody is ahead: each group is compared with an interval, not with the other group."""
        return 0

    # Theorems -------------------------------------------------------------------------------

    @property
    def uncertified(self) -> str | None:
        return self._too_large() or self._binds_nobody()

    def rule(self) -> Rule:
        (p, q), (r, s) = (rate.as_integer_ratio() for rate in self._rates())
        gap = int(last_gap(Corridor(self.lower, self.upper)))
        least, labelled = self.min_support, self.relevant_outcome is not None
        numbers = {KIND: BOUNDED, P: p, Q: q, R: r, S: s, SUPPORT: least, LEAST: least, GAP: gap,
                   LABELLED: labelled, ANYTIME: 1}  # fmt: skip
        low, high = p / q, r / s
        sides = [[1.0, 0.0, high], [-1.0, 0.0, -low], [0.0, 1.0, high], [0.0, -1.0, -low]]
        return make_rule(numbers, sides, 2**61 // max(p, q, r, s))

    def _rates(self) -> tuple[Fraction, Fraction]:
        return self.lower, self.upper
