"""Dynamic shields: a new policy for each period, from the counters at its start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from fairshield.counts import Counts
from fairshield.errors import InfeasibleError, InvalidValueError
from fairshield.periodic.conditions import Condition, EnoughHistory
from fairshield.periodic.policy import (
    NOBODY,
    NOTHING,
    Inputs,
    PeriodicPolicy,
    Window,
    best_effort,
    counters,
    warn_if_vacuous,
)
from fairshield.periodic.shield import PeriodicShield, State
from fairshield.policy import Policy
from fairshield.spec import DifferenceOfRates, NoRequirement, Property
from fairshield.synthesis import make_policy, remaining_inputs

Fallback = Literal["best-effort", "inactive"]


@dataclass(frozen=True, eq=False, repr=False)
class Dynamic(PeriodicPolicy):
    """A new policy for each period, from the counters at its start (the paper's Dynamic).

    Parameters
    ----------
    fallback
        What to do in a period that cannot be guaranteed to end fair: ``"best-effort"`` makes a
        violation as improbable as can be, at the least cost; ``"inactive"`` does not intervene, as
        in the paper, and also wherever the paper's condition is not met.
    """

    kind = "dynamic"
    title = "Dynamic"

    fallback: Fallback = "best-effort"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fallback not in ("best-effort", "inactive"):
            raise InvalidValueError(
                f"fallback must be 'best-effort' or 'inactive', got {self.fallback!r}"
            )

    @cached_property
    def condition(self) -> Condition | None:
        if isinstance(self.prop, DifferenceOfRates):
            return EnoughHistory(self.prop, self.period)
        return None

    def admits(self, start: Counts) -> bool:
        condition = self.condition
        return condition is None or bool(condition.certain(counters(start), NOTHING, self.period))

    @cached_property
    def _first(self) -> Policy:
        warn_if_vacuous(self)
        return self._planned(self.start)

    def window(self, counts: Counts, completed: int) -> Window:
        policy = self._first if counts == self.start else self._planned(counts)
        return Window(policy, counts, 0)

    def _planned(self, counts: Counts) -> Policy:
        if self.fallback == "inactive" and not self.admits(counts):
            return inactive(self.prop, self.inputs, self.period, counts)
        return self._best(self.inputs, self.period, counts)

    def mend(self, counts: Counts, left: int) -> Policy:
        return self._best(remaining_inputs(self.inputs, self.period - left), left, counts)

    def _best(self, inputs: Inputs, left: int, counts: Counts) -> Policy:
        if self.fallback == "best-effort":
            return best_effort(self.prop, inputs, left, counts)
        try:
            return make_policy(self.prop, inputs, horizon=left, start=counts)
        except InfeasibleError:
            return inactive(self.prop, inputs, left, counts)

    def options(self) -> dict[str, Any]:
        return {"fallback": self.fallback}


def inactive(prop: Property, inputs: Inputs, left: int, counts: Counts) -> Policy:
    """A policy that keeps every proposal."""
    free = NoRequirement(prop.relevant_outcome)
    return make_policy(free, inputs, horizon=left, start=counts)


class DynamicShield(PeriodicShield):
    """A new policy for each period, from the counters at its start: the paper's Dynamic shield.

    ``fallback`` says what to do in a period that cannot be guaranteed to end fair:
    ``"best-effort"`` makes a violation as improbable as can be, at the least cost; ``"inactive"``
    keeps all proposals, as the paper does whenever its condition is not met.

    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> shield = DynamicShield(fs.DemographicParity("0.1"), inputs, period=4)
    >>> [shield.decide(g, proposed=g == "a").accepted for g in "aabbbbba"]
    [True, True, True, True, True, True, True, True]
    >>> shield.completed, shield.holds()
    (2, True)
    """

    def __init__(
        self,
        prop: Property,
        inputs: Inputs,
        *,
        period: int,
        fallback: Fallback = "best-effort",
        start: Counts | None = None,
        state: State | None = None,
    ) -> None:
        policy = Dynamic(prop, inputs, period, fallback=fallback, start=start or NOBODY)
        super().__init__(policy, state=state)
