"""Optimal periodic shields: the least worst expected cost of a period (the paper's definition)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fairshield.analysis.verify.counterexample import LoggedDecision, decisions_to
from fairshield.base.counts import Counts
from fairshield.base.errors import ArtifactError, InfeasibleError, MemoryLimitError
from fairshield.base.plain import plain_counts
from fairshield.base.types import Progress
from fairshield.inputs import Inputs
from fairshield.periodic.cumulative import warn_if_vacuous
from fairshield.periodic.planned import Planned
from fairshield.policy import Policy, Specification
from fairshield.policy.layout import layout_of
from fairshield.spec import Property
from fairshield.synthesis import MOST_STATES, Options, make_policy
from fairshield.synthesis.ceiling import least_ceiling, part_of, solved
from fairshield.synthesis.exact.making import check_fits
from fairshield.synthesis.problem import make_problem


@dataclass(frozen=True)
class DearestPeriod:
    """DearestPeriod is the period that is expected to cost most, and a history that leads to it.

    Attributes
    ----------
    cost
        What the period is expected to cost, given the history.
    completed
        Periods before it.
    counts
        Counters at its start.
    history
        The requests and decisions before it, in order.
    """

    cost: float
    completed: int
    counts: Counts
    history: tuple[LoggedDecision, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        return {
            "cost": self.cost,
            "completed": self.completed,
            "counts": plain_counts(self.counts),
            "history": [decision.to_dict() for decision in self.history],
        }


@dataclass(frozen=True, eq=False, repr=False)
class OptimalPeriodic(Planned):
    """OptimalPeriodic minimises the worst expected cost of a period; all periods end fair.

    The worst is over everything that can have come before the period: over all sequences of
    requests, whatever the input model thinks of them.  Among the policies that attain it, this one
    decides each period at the least expected cost at which the next ones can keep it as well.

    Parameters
    ----------
    periods
        The number of periods.
    """

    kind = "optimal"
    title = "optimal periodic"
    order = 6
    plans_in_tables = True

    @classmethod
    def compared_by_default(cls, prop: Property) -> bool:
        # Costs of single periods are searched for properties that count people.
        return prop.counting.of_people

    def made(self, progress: Progress | None) -> Policy:
        warn_if_vacuous(self)
        spec = _specification(self.prop, self.inputs, self.period, self.periods, self.start)
        self._check_size(spec)
        ceiling, left = 0.0, 1.0
        for periods in _halved(self.periods):
            # What most periods ask for shows in few already, and then costs one sweep more.
            first = _specification(self.prop, self.inputs, self.period, periods, self.start)
            share, left = left, _share_left(periods / self.periods)
            options = Options(progress=part_of(progress, 1.0 - share, 1.0 - left))
            ceiling = least_ceiling(first, options, at_least=ceiling)
        last = Options(progress=part_of(progress, 1.0 - left, 1.0))
        if ceiling == math.inf:
            raise InfeasibleError("no ceiling can be kept")
        # Counters at the ceiling must not be struck out because another sweep rounds otherwise.
        return make_policy(replace(spec, ceiling=ceiling + make_problem(spec).tie), last)

    def _check_size(self, spec: Specification) -> None:
        check_fits(spec, "cpu")
        states = layout_of(spec.plan_length, spec.labelled).n_states
        if states > MOST_STATES:
            raise MemoryLimitError(
                f"the least worst cost of {self.periods} periods of {self.period} decisions is "
                f"searched in tables of {states:.2g} states, more than the {MOST_STATES:.2g} that "
                "are solved in seconds: plan fewer or shorter periods, or use an exact periodic or "
                "a perpetual shield"
            )

    def check_stored(self) -> None:
        super().check_stored()
        if self.tables.spec.ceiling is None:
            raise ArtifactError(
                "the stored tables have no ceiling on what a period may be expected to cost, which "
                "those of an optimal periodic policy have: synthesise it again"
            )

    @property
    def worst_period_cost(self) -> float:
        """What the dearest period is expected to cost, up to 1e-9 of the largest cost a decision.

        No shield that ends these periods fair on every sequence has a lower worst cost under the
        input model.
        """
        spec = self.tables.spec
        assert spec.ceiling is not None
        return spec.ceiling - make_problem(spec).tie

    @cached_property
    def dearest_period(self) -> DearestPeriod:
        """The certificate of :attr:`worst_period_cost`: a history after which it is expected.

        It is the earliest such period; its requests may have costs that the input model does not
        have.  Finding it solves the periods once more and explores what the policy can reach, which
        for many long periods takes longer than making the policy.
        """
        # Imported here because it loads numba, which nothing else in this module needs.
        from fairshield.analysis.verify.reach import ReachedStates

        spec = self.tables.spec
        found = solved(spec, Options())
        assert found.dearest is not None
        if found.value >= make_problem(spec).attaining:
            return self._dearest(0, self.start, ())
        reach = ReachedStates(self.tables)
        for completed in range(1, self.periods):
            for _ in range(self.period):
                reach.advance()
            for at in map(tuple, found.dearest.attained[reach.t].tolist()):
                if reach.reaches(at):
                    history = tuple(decisions_to(reach, at))
                    return self._dearest(completed, reach.counts(at), history)
        raise AssertionError(f"no history leads to a period that costs {self.worst_period_cost!r}")

    def _dearest(
        self, completed: int, counts: Counts, history: tuple[LoggedDecision, ...]
    ) -> DearestPeriod:
        cost = self.cost_of(self.window(counts, completed))
        assert cost is not None  # its plans are tables
        return DearestPeriod(cost, completed, counts, history)

    @property
    def theorem(self) -> str:
        return "optimal periodic shields are always fair"

    def outlook(self, progress: Progress | None = None) -> tuple[float, int]:
        if "tables" not in self.__dict__:
            self.synthesize(progress)
        return self.tables.expected_cost, 1

    def summary_data(self) -> dict[str, Any]:
        return super().summary_data() | {"worst_period_cost": self.worst_period_cost}

    def lines(self) -> list[tuple[str, str]]:
        worst = f"expected cost {self.worst_period_cost:.6g}, the least possible"
        return [*super().lines(), ("dearest period", worst)]

    def cost_line(self) -> str:
        return f"{super().cost_line()}, at most {self.worst_period_cost:.4f} in any period"


def least_worst_costs(
    prop: Property, inputs: Inputs, *, period: int, periods: int, start: Counts | None = None
) -> tuple[float, ...]:
    """The least worst expected cost of a period, by the number of periods: for 1, 2, … of them.

    It never falls, and is a lower bound for every larger number of periods, and for ever.

    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> costs = least_worst_costs(fs.DemographicParity("0.2"), inputs, period=10, periods=4)
    >>> [round(cost, 4) for cost in costs]
    [1.5651, 1.585, 1.6565, 1.6565]
    """
    found: list[float] = []
    for n in range(1, periods + 1):
        spec = _specification(prop, inputs, period, n, start)
        found.append(least_ceiling(spec, Options(), at_least=found[-1] if found else 0.0))
    return tuple(found)


def _specification(
    prop: Property, inputs: Inputs, period: int, periods: int, start: Counts | None
) -> Specification:
    total = period * periods
    return Specification.of(
        prop, inputs.repeated(period, periods), horizon=total, start=start,
        checkpoints=range(period, total, period),
    )  # fmt: skip


def _halved(periods: int) -> list[int]:
    """1, …, a quarter, half and all of the periods, rounded up."""
    return [periods] if periods == 1 else [*_halved((periods + 1) // 2), periods]


def _share_left(done: float) -> float:
    """Share of the work left after the search for this share of the periods."""
    return 1.0 - 0.95 * done**4
