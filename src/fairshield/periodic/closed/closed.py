"""ClosedSet: counters from which a period can end in the set again, at a bounded cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from fairshield.base.counts import Counts
from fairshield.base.errors import InvalidValueError
from fairshield.inputs import Inputs, inputs_from_dict
from fairshield.periodic.closed.few import Few, closed_few
from fairshield.periodic.closed.region import Region
from fairshield.policy import Specification
from fairshield.records import as_number
from fairshield.spec import (
    Count,
    DifferenceOfRates,
    Measured,
    Property,
    exact,
    property_from_dict,
)
from fairshield.synthesis import least_cost
from fairshield.synthesis.problem import make_problem

if TYPE_CHECKING:
    from fairshield.periodic.closed.kernels import Requests

_MOST_DENOMINATOR = 1_000
"""Products of a few denominators, and of counters of a period, must fit 64 bits."""
_FINEST = 60
"""States beside a rate are as many as its denominator is large; finer rates are left out."""
_CLOSER = 2
"""Rates of a large group that are looked at lie so many to a bound apart."""


@dataclass(frozen=True, eq=False)
class ClosedSet(Property, kind="closed"):
    """ClosedSet requires counters from which every period can end with such counters, at a cost.

    From each of them some shield ends the next period in the set again, on every sequence of
    requests, and expects to pay at most ``cost`` for it.  So a shield that has come into the set
    can go on for ever at that cost.  The proof is in docs/guarantees.md.

    Parameters
    ----------
    of
        A difference of rates: what must hold at the end of every period.
    inputs
        What to expect of a period.
    period
        Decisions of a period.
    cost
        What a period may be expected to cost.
    total
        How many people its counters have at least.
    rates, slope
        Where both groups are many: see :class:`Region`.
    """

    offered: ClassVar[bool] = False

    of: DifferenceOfRates
    inputs: Inputs
    period: int
    cost: float
    total: int
    rates: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1))
    slope: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        given = property_from_dict(self.of) if isinstance(self.of, Mapping) else self.of
        prop = given.difference if isinstance(given, Property) else None
        if prop is None:
            raise InvalidValueError(
                f"{given} is not a difference of rates: closed sets are known for demographic "
                "parity, equal opportunity and predictive equality"
            )
        inputs = inputs_from_dict(self.inputs) if isinstance(self.inputs, Mapping) else self.inputs
        converted = {
            "of": prop, "inputs": inputs, "relevant_outcome": prop.relevant_outcome,
            "rates": tuple(exact(rate, "a rate") for rate in self.rates),
            "slope": exact(self.slope, "slope"),
        }  # fmt: skip
        for name, value in converted.items():
            object.__setattr__(self, name, value)
        super().__post_init__()
        prop.check_groups(len(inputs.groups))
        if not 0.0 <= as_number(self.cost, "cost") < math.inf:
            raise InvalidValueError(f"cost must be a finite cost of at least 0, got {self.cost!r}")
        for number in (prop.bound, self.slope, *self.rates):
            if number.denominator > _MOST_DENOMINATOR:
                raise InvalidValueError(
                    "closed sets are for bounds, rates and slopes with denominators of at most "
                    f"{_MOST_DENOMINATOR:,}, got {number}: round it, or give it as text, as in "
                    "'1/3'"
                )
        if not self.region.fits:
            raise InvalidValueError(
                f"{self.total} people in total are too few for {prop} and periods of "
                f"{self.period}, or the bounds do not fit together: raise total"
            )

    @cached_property
    def region(self) -> Region:
        """The counters of many people of both groups."""
        return Region(self.of, self.period, self.total, self.rates, self.slope)

    @cached_property
    def parts(self) -> tuple[tuple[bool, Few], ...]:
        """The counters of few people of one group, and whether the larger group is the second."""
        if self.region_cost > self.cost:
            raise InvalidValueError(
                f"a period may be expected to cost {self.region_cost:.6g} from counters of many "
                f"people, more than {self.cost!r}: raise cost, or choose other bounds"
            )
        found = []
        requests = requests_of(self.of, self.inputs, self.period)
        for turned, seen in ((False, requests), (True, requests.turned())):
            for rate in self._large_rates:
                few = closed_few(self.region, rate, seen, self.cost)
                if few.kept.any():
                    found.append((turned, few))
        return tuple(found)

    @cached_property
    def region_cost(self) -> float:
        """What a period is expected to cost, at most, from counters of many people."""
        return _region_cost(self.region, self.inputs)

    @cached_property
    def _large_rates(self) -> list[Fraction]:
        """Rates of a large group beside which states of few people are looked for."""
        (lower, upper), bound = self.rates, self.of.bound
        steps = math.ceil(_CLOSER / bound)
        grid = {Fraction(i, steps) for i in range(steps + 1)} | {bound, 1 - bound, lower, upper}
        finer = {rate for rate in grid if rate.denominator > max(steps, _FINEST)}
        return sorted(rate for rate in grid - finer if lower <= rate <= upper)

    # What it promises -----------------------------------------------------------------------

    def cost_from(self, counts: Counts) -> float:
        """The least expected cost of a period from these counters that ends in the set.

        It is computed by the synthesis, for these counters alone; infinite if there is no way.
        From counters in the set it is at most :attr:`cost`.
        """
        return least_cost(
            Specification.of(self.of, self.inputs, horizon=self.period, start=counts, terminal=self)
        )

    # The predicate --------------------------------------------------------------------------

    def fair(self, a: Count, b: Count) -> Any:
        inside = self.region.holds(a, b)
        for turned, few in self.parts:
            inside = inside | (few.holds(b, a) if turned else few.holds(a, b))
        return inside

    # Words ----------------------------------------------------------------------------------

    def bias(self, a: Count, b: Count) -> Any:
        return self.of.bias(a, b)

    def measured(self, a: Count, b: Count) -> Measured:
        return self.of.measured(a, b)

    @property
    def only_two(self) -> str | None:
        return f"closed sets are known for two; use {self.of} itself"

    @property
    def limit(self) -> float:
        return self.of.limit

    @property
    def coefficient(self) -> int:
        numbers = [abs(n) for bound in self.region.bounds for n in bound]
        return max(self.of.coefficient, *numbers, self.of.bound.denominator)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "of": self.of.to_dict(), "inputs": self.inputs.to_dict(),
            "period": self.period, "cost": self.cost, "total": self.total,
            "rates": [str(rate) for rate in self.rates], "slope": str(self.slope),
        }  # fmt: skip

    def words(self) -> str:
        return (
            f"{self.of}, from which periods of {self.period} can end so for ever at an expected "
            f"cost of at most {self.cost:.6g}"
        )


def requests_of(prop: DifferenceOfRates, inputs: Inputs, period: int) -> Requests:
    """What a period is expected to bring."""
    from fairshield.periodic.closed.kernels import Requests

    spec = Specification.of(prop, inputs, horizon=period)
    problem = make_problem(spec)
    weights, costs = problem.weights.copy(), problem.costs.copy()
    return Requests(weights, costs, problem.stay.copy(), spec.labelled)


@lru_cache(256)
def _region_cost(region: Region, inputs: Inputs) -> float:
    return region.cost(requests_of(region.of, inputs, region.period))
