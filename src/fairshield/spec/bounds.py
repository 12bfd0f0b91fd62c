"""Base classes of properties with one bound, and the shares that they compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Group, GroupCount
from fairshield.spec.base import Count, Undefined
from fairshield.spec.described import Axis
from fairshield.spec.linear import LinearProperty
from fairshield.spec.rationals import Number, exact


@dataclass(frozen=True)
class Bounded(LinearProperty):
    """Bounded is a linear property with one bound."""

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
        """Whether both groups have enough people for the property to bind, and defined rates."""
        least = max(self.min_support, 0 if self.undefined == "rate-0" else 1)
        return (a.seen >= least) & (b.seen >= least)


@dataclass(frozen=True, init=False)
class Gap(Bounded):
    """Gap bounds the distance of two groups, which is a share.

    Charts give it the sign of the group that is ahead.
    """

    def axis(self, groups: Sequence[Group]) -> Axis:
        if len(groups) > 2:
            return replace(super().axis(groups), most=1.0)
        return Axis("bias", self.gap_label(*groups), -self.limit, self.limit, least=-1.0, most=1.0)

    def drawn(self, bias: NDArray[np.float64], *groups: GroupCount[Any]) -> NDArray[np.float64]:
        if len(groups) > 2:
            return bias
        a, b = groups
        both = np.minimum(a.seen, b.seen) > 0
        return np.where(both, np.copysign(bias, self.lead(a, b)), np.nan)


def rate_of(g: Count) -> Any:
    """The share of people accepted; 0 if nobody was seen."""
    return share_of(g.accepted, g.seen)


def share_of(part: Any, whole: Any) -> Any:
    """``part / whole``, and 0 where ``whole`` is 0; single numbers avoid numpy, which is slower."""
    if isinstance(whole, int) and isinstance(part, int | float):
        return part / max(whole, 1)
    return np.asarray(part, dtype=float) / np.maximum(whole, 1)


def where(condition: Any, bias: Any) -> Any:
    """``bias`` where the condition holds, and 0 elsewhere."""
    if isinstance(condition, bool) and isinstance(bias, float):
        return bias if condition else 0.0
    return np.where(condition, bias, 0.0)
