"""worst_cost_for_ever: bounds on the worst expected cost of a period where there is no last one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from fairshield.base.errors import InvalidValueError
from fairshield.inputs import Inputs
from fairshield.periodic.closed.closed import ClosedSet
from fairshield.periodic.closed.region import Region
from fairshield.policy import Specification
from fairshield.records import as_number
from fairshield.spec import DifferenceOfRates, Property
from fairshield.synthesis import Options
from fairshield.synthesis.ceiling import least_ceiling, solved

_SLOPES = (Fraction(1), Fraction(1, 2), Fraction(3, 10), Fraction(1, 4))


@dataclass(frozen=True)
class ForEver:
    """ForEver holds bounds on the least worst expected cost of a period, for runs without end.

    Attributes
    ----------
    lower
        No shield that ends every period fair has a worst period that is expected to cost less.
    upper
        Some shield has none that is expected to cost more.
    closed
        The counters that this shield comes into, and never leaves at the end of a period.
    periods
        After so many periods it has come into them.
    """

    lower: float
    upper: float
    closed: ClosedSet
    periods: int


def worst_cost_for_ever(
    prop: Property, inputs: Inputs, *, period: int, periods: int, within: float = 0.01
) -> ForEver:
    """Bounds on the least worst expected cost of a period, for runs that never end.

    The lower bound is the least worst cost of ``periods`` periods.  The upper bound is a cost at
    which the counters after so many periods can be in a :class:`ClosedSet` of that cost.  It is
    sought by halves, to ``within`` of the lower bound (or of the most that a period can cost, if
    that is 0), with the first of several regions that costs no more.  Both are for runs from nobody
    seen.

    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> found = worst_cost_for_ever(fs.DemographicParity("0.2"), inputs, period=10, periods=12)
    >>> round(found.lower, 4), round(found.upper, 4)
    (1.6565, 1.6565)
    """
    of = _everybody_counts(prop)
    if not as_number(within, "within") > 0.0:
        raise InvalidValueError(f"within must be a share above 0, got {within!r}")
    horizon = period * periods
    spec = Specification.of(
        of, inputs.repeated(period, periods), horizon=horizon,
        checkpoints=range(period, horizon, period),
    )  # fmt: skip
    candidates = list(_regions(of, period, horizon))
    if not candidates:
        raise InvalidValueError(
            f"closed sets for {of} and periods of {period} have counters of more people than the "
            f"{horizon} of {periods} periods: raise periods"
        )
    lower = least_ceiling(spec, Options())
    costs: dict[Region, float] = {}

    def kept(cost: float) -> ClosedSet | None:
        """A closed set in which every run can be after ``periods`` periods at this cost."""
        for region in candidates:
            closed = ClosedSet(of, inputs, period, cost, horizon, region.rates, region.slope)
            if region not in costs:
                costs[region] = closed.region_cost
            if costs[region] <= cost:
                ended = replace(spec, terminal=closed, ceiling=cost)
                return closed if solved(ended, Options()).value <= cost else None
        return None

    closed = kept(lower)
    if closed is not None:
        return ForEver(lower, lower, closed, periods)
    failed, most = lower, period * float(inputs.table(1).levels.max())
    near = within * (lower or most)
    step = near
    while closed is None:
        if failed >= most:
            raise InvalidValueError(
                f"no closed set was found that {periods} periods of {period} can end in: raise "
                "periods"
            )
        upper, step = min(failed + step, most), 2 * step
        closed = kept(upper)
        failed = upper if closed is None else failed
    while upper - failed > near:
        middle = (failed + upper) / 2
        better = kept(middle)
        failed, upper, closed = (
            (middle, upper, closed) if better is None else (failed, middle, better)
        )
    return ForEver(lower, upper, closed, periods)


def _everybody_counts(prop: Property) -> DifferenceOfRates:
    of = prop.difference
    if of is None or of.relevant_outcome is not None:
        raise InvalidValueError(
            f"{prop} is not a demographic parity: where the outcome decides who counts, periods "
            "may pass in which nobody does, and no number of them leads to many people"
        )
    return of


def _regions(of: DifferenceOfRates, period: int, total: int) -> Iterator[Region]:
    """Regions that may be closed, the wider ones first."""
    bound = min(of.bound, Fraction(2, 5))
    for margin in (Fraction(0), bound / 2, bound):
        for slope in _SLOPES if margin else _SLOPES[:1]:
            region = Region(of, period, total, (margin, 1 - margin), slope)
            if region.fits:
                yield region
