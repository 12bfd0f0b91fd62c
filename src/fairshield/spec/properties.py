"""The properties of the paper, and their neighbours, each a few integer inequalities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from fairshield.counts import Counts, Group
from fairshield.errors import InvalidValueError, argument
from fairshield.spec.base import Count, Undefined
from fairshield.spec.finding import Finding, Measured
from fairshield.spec.linear import Inequality, LinearProperty
from fairshield.spec.rationals import Number, decimal, exact


@dataclass(frozen=True)
class _Bounded(LinearProperty):
    """A linear property with one bound."""

    bound: Fraction

    def __init__(
        self, bound: Number, *, min_support: int = 0, undefined: Undefined = "bias-0"
    ) -> None:
        object.__setattr__(self, "bound", exact(bound, "bound", most=self._most()))
        object.__setattr__(self, "min_support", min_support)
        object.__setattr__(self, "undefined", undefined)
        self.__post_init__()

    def _most(self) -> int | None:
        return 1

    @property
    def limit(self) -> float:
        return float(self.bound)

    @property
    def coefficient(self) -> int:
        return max(self.bound.numerator, self.bound.denominator)

    def words(self) -> str:
        return f"{super().words()} ≤ {self.bound}"

    def _have_rates(self, a: Count, b: Count) -> Any:
        """Whether both groups have support, and rates."""
        least = max(self.min_support, 0 if self.undefined == "rate-0" else 1)
        return (a.seen >= least) & (b.seen >= least)


@dataclass(frozen=True, init=False)
class DifferenceOfRates(_Bounded):
    r""":math:`|k_a/n_a - k_b/n_b| \le \kappa`."""

    difference_of_rates: ClassVar[bool] = True

    def inequalities(self, n_a: Any, n_b: Any) -> tuple[Inequality, ...]:
        p, q = self.bound.as_integer_ratio()
        in_a, in_b, slack = n_b * q, n_a * q, n_a * n_b * p
        return (in_a, -in_b, slack), (-in_a, in_b, slack)

    def bias(self, a: Count, b: Count) -> Any:
        return _where(self._have_rates(a, b), abs(_rate(a) - _rate(b)))

    def measured(self, a: Count, b: Count) -> Measured:
        rate_a, rate_b = self._known_rate(a), self._known_rate(b)
        gap, asked = abs(rate_a - rate_b), f"at most {decimal(self.bound)}"
        return Measured("gap", gap, asked, self.limit, turned=rate_a > rate_b)


@dataclass(frozen=True, init=False)
class DemographicParity(DifferenceOfRates, kind="demographic-parity"):
    """Acceptance rates differ by at most ``bound``.

    >>> from fairshield import Counts
    >>> DemographicParity("0.1").holds(Counts({"a": (10, 8), "b": (10, 7)}))
    True
    """


@dataclass(frozen=True, init=False)
class EqualOpportunity(DifferenceOfRates, kind="equal-opportunity"):
    """True-positive rates differ by at most ``bound``: only people with outcome 1 count."""

    relevant_outcome: ClassVar[bool | None] = True


@dataclass(frozen=True, init=False)
class PredictiveEquality(DifferenceOfRates, kind="predictive-equality"):
    """False-positive rates differ by at most ``bound``: only people with outcome 0 count."""

    relevant_outcome: ClassVar[bool | None] = False


@dataclass(frozen=True, init=False)
class ShareParity(_Bounded, kind="share-parity"):
    r"""Accepted people split evenly: :math:`|k_a - k_b| \le \kappa (k_a + k_b)`, for every pair.

    The bilingual team: ``ShareParity("0.1")`` keeps the two languages within a tenth of the team.
    """

    def inequalities(self, n_a: Any, n_b: Any) -> tuple[Inequality, ...]:
        p, q = self.bound.as_integer_ratio()
        return (q - p, -(q + p), 0), (-(q + p), q - p, 0)

    def bias(self, a: Count, b: Count) -> Any:
        # A float first: a difference of unsigned integers would wrap.
        gap, team = abs(1.0 * a.accepted - b.accepted), a.accepted + b.accepted
        support = (a.seen >= self.min_support) & (b.seen >= self.min_support)
        return _where(support, _share(gap, team))

    def measured(self, a: Count, b: Count) -> Measured:
        gap = super().measured(a, b).value
        asked = f"at most {decimal(self.bound)} of those accepted"
        return Measured("gap", gap, asked, self.limit, turned=a.accepted > b.accepted)


@dataclass(frozen=True, init=False)
class DisparateImpact(_Bounded, kind="disparate-impact"):
    r"""The ratio of acceptance rates is bounded.

    Two-sided (default), ``DisparateImpact("0.8")`` is the four-fifths rule: each rate is at least
    0.8 of the other.  With ``two_sided=False`` it is the paper's ratio,
    :math:`r_a / r_b \le` bound, where the first declared group is ``a`` and the bound may exceed 1.
    Rates that are both zero are fair; a positive rate against a zero one is not.
    """

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
        rate_a, rate_b = np.asarray(_rate(a)), np.asarray(_rate(b))  # to divide by 0
        low, high = np.minimum(rate_a, rate_b), np.maximum(rate_a, rate_b)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.two_sided:
                bias = np.where(high > 0, 1.0 - low / high, 0.0)
            else:
                bias = np.where(rate_a > 0, rate_a / rate_b, 0.0)
        return _where(self._have_rates(a, b), bias)

    def measured(self, a: Count, b: Count) -> Measured:
        rate_a, rate_b = self._known_rate(a), self._known_rate(b)
        turned = self.two_sided and rate_a > rate_b
        ratio = self._ratio(rate_b, rate_a) if turned else self._ratio(rate_a, rate_b)
        asked = f"at {'least' if self.two_sided else 'most'} {decimal(self.bound)}"
        return Measured("impact ratio", ratio, asked, float(self.bound), turned, "of {} to {}")

    def _ratio(self, rate: float, to: float) -> float:
        if to:
            return rate / to
        if math.isnan(rate):
            return rate
        # Rates that are both zero are fair.
        return math.inf if rate else float(self.two_sided)

    @property
    def limit(self) -> float:
        return float(1 - self.bound) if self.two_sided else float(self.bound)

    def words(self) -> str:
        if self.two_sided:
            return f"disparate impact ≥ {self.bound}"
        return f"disparate impact (first to second) ≤ {self.bound}"


@dataclass(frozen=True, init=False)
class BoundedRates(LinearProperty, kind="bounded-rates"):
    r"""Each group's acceptance rate lies in ``[lower, upper]`` (bounded welfare).

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
        rate = _rate(g)
        gap = np.maximum(float(self.lower) - rate, rate - float(self.upper))
        seen = np.asarray(g.seen) > (-1 if self.undefined == "rate-0" else 0)
        return np.where(seen, np.maximum(gap, 0.0), 0.0)

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
        """Of every group that is the further one out of a pair, its widest finding."""
        found: dict[Group, Finding] = {}
        for finding in super().findings(counts):
            found.setdefault(finding.pair[0], finding)
        return list(found.values())

    @property
    def coefficient(self) -> int:
        return max(self.lower.denominator, self.upper.denominator)

    def words(self) -> str:
        among = "" if self.outcome is None else f" among those with outcome {int(self.outcome)}"
        return f"rates in [{self.lower}, {self.upper}]{among}"


@dataclass(frozen=True, init=False)
class NoRequirement(LinearProperty, kind="none"):
    """Whatever is decided will do; with ``outcome`` only people with this outcome are counted."""

    outcome: bool | None

    def __init__(self, outcome: bool | None = None) -> None:
        object.__setattr__(self, "outcome", outcome)
        object.__setattr__(self, "relevant_outcome", outcome)

    def inequalities(self, n_a: Any, n_b: Any) -> tuple[Inequality, ...]:
        return ()

    def fair(self, a: Count, b: Count) -> Any:
        return (a.seen >= 0) & (b.seen >= 0)

    def bias(self, a: Count, b: Count) -> Any:
        return 0.0 * (np.asarray(a.seen) + b.seen)

    def measured(self, a: Count, b: Count) -> Measured:
        return Measured("bias", 0.0, "nothing", 0.0)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "outcome": self.outcome}

    def words(self) -> str:
        return "no requirement"


def _rate(g: Count) -> Any:
    return _share(g.accepted, g.seen)


def _share(part: Any, whole: Any) -> Any:
    """How much of the whole, 0 of nobody; of single numbers without numpy, which takes longer."""
    if isinstance(whole, int) and isinstance(part, int | float):
        return part / max(whole, 1)
    return np.asarray(part, dtype=float) / np.maximum(whole, 1)


def _where(condition: Any, bias: Any) -> Any:
    """``bias`` where the condition holds, and 0 elsewhere."""
    if isinstance(condition, bool) and isinstance(bias, float):
        return bias if condition else 0.0
    return np.where(condition, bias, 0.0)
