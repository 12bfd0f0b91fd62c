"""Perpetual shields: every period is the beginning of a plan that ends with a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fairshield.counts import Counts, is_whole
from fairshield.errors import InfeasibleError, InvalidValueError, called
from fairshield.layout import layout_of
from fairshield.periodic.policy import (
    NOBODY,
    Inputs,
    PeriodicPolicy,
    Window,
    best_effort,
    difference_of_rates,
    repeated,
    so_far,
    warn_if_vacuous,
)
from fairshield.periodic.shield import PeriodicShield, State
from fairshield.policy import Policy
from fairshield.spec import Certificate, Property, Sustained
from fairshield.synthesis import MOST_STATES, make_policy


@dataclass(frozen=True, eq=False, repr=False)
class Perpetual(PeriodicPolicy):
    """Each period as the beginning of a plan that ends with a certificate; no last period.

    Parameters
    ----------
    lookahead
        Periods that a plan covers.
    """

    kind = "perpetual"
    title = "perpetual"

    lookahead: int = 2

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
        """What holds at the end of each plan."""
        return Sustained(self.prop)

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

    def window(self, counts: Counts, completed: int) -> Window:
        try:
            policy = self._first if counts == self.start else self.plan(counts)
        except InfeasibleError:
            if counts == self.start:
                raise
            # Only a person who decided against advice leads here, or a state of no run.
            policy = best_effort(self.prop, self.inputs, self.period, counts)
        return Window(policy, counts, 0)

    def plan(self, counts: Counts, *, recorded: int = 1) -> Policy:
        """The cheapest plan from these counters, with the decisions of its first periods."""
        lookahead = self.lookahead
        if layout_of(lookahead * self.period, self.labelled).n_states > MOST_STATES:
            # The end of a long period says little about where the next one leads.
            lookahead = recorded = 1
        total, horizon = lookahead * self.period, recorded * self.period
        try:
            return make_policy(
                self.prop, repeated(self.inputs, self.period, lookahead), horizon=horizon,
                further=total - horizon, start=counts, terminal=self.sustained,
                checkpoints=range(self.period, total, self.period),
            )  # fmt: skip
        except InfeasibleError:
            raise InfeasibleError(
                f"no plan over {total} decisions keeps {self.prop} at the end of every "
                f"{self.period} and ends with a certificate, starting from {so_far(counts)}: raise "
                f"{called('lookahead')} (now {lookahead}), loosen the bound, set "
                f"{called('min_support')}, or use a "
                "Dynamic shield, which does what can be done from a history that others made"
            ) from None

    def options(self) -> dict[str, Any]:
        return {"lookahead": self.lookahead}


class PerpetualShield(PeriodicShield):
    """Fair at the end of every period, for ever, on every input sequence, with no assumption.

    Each period is the beginning of the cheapest plan over ``lookahead`` periods that ends with a
    certificate: corridors for the two rates that can be kept whoever arrives.

    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> shield = PerpetualShield(fs.DemographicParity("0.1"), inputs, period=4)
    >>> [shield.decide(g, proposed=g == "a").accepted for g in "aabbbbba"]
    [True, True, True, True, True, True, True, True]
    >>> print(shield.guarantee.certificate)
    a in [1, 1], b in [9/10, 1]
    """

    def __init__(
        self,
        prop: Property,
        inputs: Inputs,
        *,
        period: int,
        lookahead: int = 2,
        start: Counts | None = None,
        state: State | None = None,
    ) -> None:
        policy = Perpetual(prop, inputs, period, lookahead=lookahead, start=start or NOBODY)
        super().__init__(policy, state=state)
