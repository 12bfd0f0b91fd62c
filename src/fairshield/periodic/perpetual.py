"""Perpetual shields: every period is the beginning of a plan that ends with a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fairshield.base.counts import Counts, is_whole, so_far
from fairshield.base.errors import InfeasibleError, InvalidValueError, called
from fairshield.periodic.cumulative import (
    CumulativePolicy,
    best_effort,
    difference_of_rates,
    warn_if_vacuous,
)
from fairshield.periodic.policy import WindowPolicy
from fairshield.policy import Policy, Specification
from fairshield.policy.layout import layout_of
from fairshield.spec import Certificate, Property, Sustained
from fairshield.synthesis import MOST_STATES, make_policy


@dataclass(frozen=True, eq=False, repr=False)
class Perpetual(CumulativePolicy):
    """Perpetual decides each period as the beginning of a plan that ends with a certificate.

    There is no last period.

    Parameters
    ----------
    lookahead
        Periods that a plan covers.
    """

    kind = "perpetual"
    title = "perpetual"
    order = 5

    lookahead: int = 2

    @classmethod
    def compared_by_default(cls, prop: Property) -> bool:
        return prop.difference is not None

    def __post_init__(self) -> None:
        super().__post_init__()
        difference_of_rates(self.prop, self.title, "corridors for the two rates")
        if not is_whole(self.lookahead) or self.lookahead < 1:
            raise InvalidValueError(
                f"lookahead must be a whole number of periods, at least 1, got {self.lookahead!r}"
            )
        object.__setattr__(self, "lookahead", int(self.lookahead))

    @cached_property
    def sustained(self) -> Sustained:
        """The property that holds at the end of each plan: there is a certificate."""
        return Sustained(self.prop)

    @property
    def largest_plan(self) -> int:
        return self.period * self.lookahead

    @property
    def theorem(self) -> str:
        return "perpetual shields are always fair"

    @property
    def unconditional(self) -> bool:
        return True

    def certificate(self, counts: Counts) -> Certificate | None:
        return self.sustained.certificate(counts)

    @cached_property
    def _first(self) -> Policy:
        warn_if_vacuous(self)
        return self.plan(self.start)

    def window(self, counts: Counts, completed: int) -> WindowPolicy:
        try:
            policy = self._first if counts == self.start else self.plan(counts)
        except InfeasibleError:
            if counts == self.start:
                raise
            # Reached only after a person decided against advice, or from a state that no run has.
            policy = best_effort(self.prop, self.inputs, self.period, counts)
        return WindowPolicy(policy, counts, 0)

    def plan(self, counts: Counts, *, recorded: int = 1) -> Policy:
        """The cheapest plan from these counters; decisions of ``recorded`` periods are stored."""
        lookahead = self.lookahead
        if layout_of(lookahead * self.period, self.labelled).n_states > MOST_STATES:
            # One period is enough: the cost of a long one hardly depends on the next.
            lookahead = recorded = 1
        total, horizon = lookahead * self.period, recorded * self.period
        spec = Specification.of(
            self.prop, self.inputs.repeated(self.period, lookahead), horizon=horizon,
            further=total - horizon, start=counts, terminal=self.sustained,
            checkpoints=range(self.period, total, self.period),
        )  # fmt: skip
        try:
            return make_policy(spec)
        except InfeasibleError:
            raise InfeasibleError(
                f"no plan over {total} decisions keeps {self.prop} at the end of every "
                f"{self.period} and ends with a certificate, starting from {so_far(counts)}: raise "
                f"{called('lookahead')} (now {lookahead}), loosen the bound, set "
                f"{called('min_support')}, or use a "
                "Dynamic shield, which does what can be done from a history that others made"
            ) from None

    def whole_plan(self) -> Policy:
        # The certificates at its end cover all later periods.
        return self.plan(self.start, recorded=self.lookahead)

    def options(self) -> dict[str, Any]:
        return {"lookahead": self.lookahead}
