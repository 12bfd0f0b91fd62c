"""RateDifference: a difference of rates with any additive numerator and denominator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fairshield.base.counts import Group, GroupCount
from fairshield.spec.base import Count, Property, Undefined
from fairshield.spec.counting import Counting, Weights, counting_of
from fairshield.spec.described import any_two_of, exactly, rounded
from fairshield.spec.differences import DifferenceOfRates
from fairshield.spec.finding import Measured
from fairshield.spec.rationals import Number
from fairshield.spec.rules import Rule
from fairshield.spec.sustained import Sustained

Weighted = Mapping[Any, int] | str | Weights
"""What is counted, and how often: ``{"accept 1": 1}``, or the text ``"accept 1"``."""


@dataclass(frozen=True, init=False)
class RateDifference(DifferenceOfRates, kind="rate-difference"):
    r"""RateDifference requires that rates differ by at most ``bound``, counted as you say.

    A group's rate is its numerator over its denominator.  Each decision adds a whole number to
    both, which depends on what was decided and on the outcome.  ``"accept 1"`` names people
    accepted with outcome 1, ``"accept"`` all people accepted; ``"accept 1, reject 0"`` names more
    than one, and ``"accept 1=2"`` gives a weight, as the mapping ``{"accept 1": 2}`` does.

    Counters are then the denominator, called ``seen``, and the numerator, called ``accepted``.
    Where the rate is one of acceptances or rejections among everybody or among people with one
    outcome, they are people seen and accepted, as of :class:`DemographicParity`,
    :class:`EqualOpportunity` and :class:`PredictiveEquality`, whose theorems hold.

    Parameters
    ----------
    bound
        How much the rates may differ.
    numerator, denominator
        What is counted.  No weight of the numerator may exceed that of the denominator.

    Examples
    --------
    Predictive parity, on the share of accepted people who turn out well:

    >>> from fairshield import Counts
    >>> parity = RateDifference("0.1", numerator="accept 1", denominator="accept")
    >>> parity.holds(Counts({"a": (10, 8), "b": (10, 6)}))
    False
    """

    numerator: Weights
    denominator: Weights

    def __init__(
        self,
        bound: Number,
        numerator: Weighted,
        denominator: Weighted,
        *,
        min_support: int = 0,
        undefined: Undefined = "bias-0",
    ) -> None:
        object.__setattr__(self, "numerator", Weights.of(numerator, "numerator"))
        object.__setattr__(self, "denominator", Weights.of(denominator, "denominator"))
        counting_of(self.numerator, self.denominator)  # refuses what is no rate
        super().__init__(bound, min_support=min_support, undefined=undefined)

    @cached_property
    def counting(self) -> Counting:
        return counting_of(self.numerator, self.denominator)

    @property
    def relevant_outcome(self) -> bool | None:  # type: ignore[override]
        return self.counting.outcome_of_people(self)

    @property
    def _of_rejections(self) -> bool:
        """Whether people are counted, and the rate is that of the rejected among them."""
        return self.counting.of_people and not any(self.numerator[2:])

    # Words and pictures ---------------------------------------------------------------------

    def measured(self, a: Count, b: Count) -> Measured:
        return super().measured(b, a) if self._of_rejections else super().measured(a, b)

    def lead(self, a: GroupCount[Any], b: GroupCount[Any]) -> Any:
        return super().lead(b, a) if self._of_rejections else super().lead(a, b)

    def words(self) -> str:
        return f"difference of rates ({self.numerator} of {self.denominator}) ≤ {self.bound}"

    def requirement(self, groups: Sequence[Group]) -> str:
        return (
            f"The ratio of {self.numerator.in_words()} to {self.denominator.in_words()} differs "
            f"between {any_two_of(groups)} by at most {exactly(self.bound)}."
        )

    def promise(self, a: str, b: str) -> str:
        limit = rounded(100 * self.limit)
        return (
            f"The ratios of {self.numerator.in_words()} to {self.denominator.in_words()} of “{a}” "
            f"and “{b}” differ by at most {limit} percentage points"
        )

    def to_dict(self) -> dict[str, Any]:
        parts = {"numerator": self.numerator, "denominator": self.denominator}
        return super().to_dict() | {name: part.to_dict() for name, part in parts.items()}

    # Theorems -------------------------------------------------------------------------------

    @property
    def difference(self) -> DifferenceOfRates | None:
        return self if self.counting.of_people else None

    @property
    def additive(self) -> DifferenceOfRates:
        return self

    @property
    def sustained(self) -> Sustained | None:
        return Sustained(self) if self.counting.of_people else None

    def implies(self, other: Property) -> bool:
        return super().implies(other) and (
            not isinstance(other, RateDifference)
            or (self.numerator, self.denominator) == (other.numerator, other.denominator)
        )

    def rule(self) -> Rule:
        return super().rule() if self.counting.of_people else Property.rule(self)

    @property
    def uncertified(self) -> str | None:
        if self.counting.of_people:
            return super().uncertified
        return (
            f"the counters of {self} depend on what is decided, and certificates are known where "
            "they do not"
        )
