"""Static shields: one policy, begun anew in each period (the paper's static approach)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from fairshield.base.counts import Counts
from fairshield.base.errors import InvalidValueError
from fairshield.periodic import bounds as welfare
from fairshield.periodic.conditions import Balanced, Condition, EqualDenominators, balanced_from
from fairshield.periodic.cumulative import (
    NOTHING,
    CumulativePolicy,
    additive_difference,
    counters,
    difference_of_rates,
)
from fairshield.periodic.policy import WindowPolicy
from fairshield.policy import Policy
from fairshield.spec import BoundedRates, Number, Property, can_bind, exact
from fairshield.synthesis import synthesize

_GROUNDS = "adding up the rates of periods"
Bounds = tuple[Number, Number] | Literal["centred", "cheapest"]


@dataclass(frozen=True, eq=False, repr=False)
class _Static(CumulativePolicy):
    """_Static decides each period by one policy, begun anew."""

    @classmethod
    def compared_by_default(cls, prop: Property) -> bool:
        return prop.difference is not None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_property()

    def check_property(self) -> None:
        """Refuse a property that the theorem says nothing about."""
        difference_of_rates(self.prop, self.title, _GROUNDS)

    @cached_property
    def tables(self) -> Policy:
        """The policy of every period."""
        return synthesize(self.enforced, self.inputs, horizon=self.period)

    @property
    def worst_period_cost(self) -> float | None:
        # What came before changes nothing.
        return self.tables.expected_cost if self.tables.decisions.tabled else None

    @property
    def largest_plan(self) -> int:
        return 0 if "tables" in self.__dict__ else self.period

    @property
    def enforces(self) -> bool:
        return can_bind(self.enforced, Counts.zero(self.groups), [self.period])

    def base(self, start: Counts) -> Counts:
        return Counts.zero(self.groups)

    def admits(self, start: Counts) -> bool:
        # For the theorem, the counters before the first period are one more period.
        if not any(count.seen for count in start.values()):
            return True
        assert self.condition is not None
        as_period = self.condition.certain(NOTHING, counters(start), 0)
        return bool(as_period) and self.enforced.holds(start)

    def window(self, counts: Counts, completed: int) -> WindowPolicy:
        return WindowPolicy(self.tables, self.tables.start, 0)


@dataclass(frozen=True, eq=False, repr=False)
class StaticFair(_Static):
    """StaticFair repeats the cheapest policy for one period (the paper's Static-Fair)."""

    kind = "static-fair"
    title = "Static-Fair"
    order = 1

    @classmethod
    def compared_by_default(cls, prop: Property) -> bool:
        return prop.additive is not None

    def check_property(self) -> None:
        additive_difference(self.prop, self.title, _GROUNDS)

    @cached_property
    def condition(self) -> Condition:
        return EqualDenominators(additive_difference(self.prop, self.title, _GROUNDS))


@dataclass(frozen=True, eq=False, repr=False)
class StaticBounded(_Static):
    """StaticBounded keeps each group's rate between bounds in each period (paper: Static-BW).

    Parameters
    ----------
    bounds
        Two rates at most the property's bound apart; ``"centred"``: around the rate that the
        proposals are expected to have; ``"cheapest"``: those of least expected cost.
    """

    kind = "static-bounded"
    title = "Static-BW"
    order = 2

    bounds: Any = "centred"

    @classmethod
    def compared_by_default(cls, prop: Property) -> bool:
        # Welfare bounds may not be farther apart than the bound, and not equal.
        return prop.difference is not None and prop.difference.bound > 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "bounds", self._checked_bounds())

    def _checked_bounds(self) -> tuple[Fraction, Fraction]:
        prop = difference_of_rates(self.prop, self.title, _GROUNDS)
        if prop.bound == 0:
            raise InvalidValueError(
                f"{prop} leaves no room between welfare bounds: {self.title} needs a bound above 0"
            )
        if self.bounds in ("centred", "cheapest"):
            choose = welfare.centred if self.bounds == "centred" else welfare.cheapest
            return choose(prop, self.inputs, self.period)
        if not isinstance(self.bounds, Sequence) or len(self.bounds) != 2:
            raise InvalidValueError(
                f"bounds must be two rates, as in ('0.3', '0.4'), or 'centred' or 'cheapest', got "
                f"{self.bounds!r}"
            )
        lower, upper = (exact(end, "a welfare bound", most=1) for end in self.bounds)
        if not lower < upper <= lower + prop.bound:
            raise InvalidValueError(
                f"bounds must rise by more than 0 and at most {prop.bound}, so that rates inside "
                f"them satisfy {prop}, got {lower} and {upper}"
            )
        return lower, upper

    @cached_property
    def condition(self) -> Balanced:
        return Balanced(balanced_from(*self.bounds), self.prop.relevant_outcome)

    @property
    def enforced(self) -> Property:
        lower, upper = self.bounds
        least, outcome = self.condition.least, self.prop.relevant_outcome
        return BoundedRates(lower, upper, outcome=outcome, min_support=least)

    def options(self) -> dict[str, Any]:
        return {"bounds": [str(end) for end in self.bounds]}
