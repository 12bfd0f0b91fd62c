"""Dynamic shields: a new policy for each period, from the counters at its start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from fairshield.base.counts import Counts
from fairshield.base.errors import InfeasibleError, InvalidValueError
from fairshield.inputs import Inputs
from fairshield.periodic.conditions import Condition, EnoughHistory
from fairshield.periodic.cumulative import (
    NOTHING,
    CumulativePolicy,
    best_effort,
    counters,
    warn_if_vacuous,
)
from fairshield.periodic.policy import WindowPolicy
from fairshield.policy import Policy, Specification
from fairshield.spec import NoRequirement, Property
from fairshield.synthesis import make_policy

Fallback = Literal["best-effort", "inactive"]


@dataclass(frozen=True, eq=False, repr=False)
class Dynamic(CumulativePolicy):
    """Dynamic makes a new policy for each period, from the counters at its start (the paper's).

    Parameters
    ----------
    fallback
        What to do in a period that cannot be guaranteed to end fair.  ``"best-effort"`` minimises
        the probability of a violation, then the cost.  ``"inactive"`` does not intervene, as in the
        paper; it does not intervene either where the paper's condition is not met.
    """

    kind = "dynamic"
    title = "Dynamic"
    order = 3
    variants: ClassVar = {"inactive": {"fallback": "inactive"}}

    fallback: Fallback = "best-effort"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fallback not in ("best-effort", "inactive"):
            raise InvalidValueError(
                f"fallback must be 'best-effort' or 'inactive', got {self.fallback!r}"
            )

    @cached_property
    def condition(self) -> Condition | None:
        difference = self.prop.difference
        return None if difference is None else EnoughHistory(difference, self.period)

    def admits(self, start: Counts) -> bool:
        condition = self.condition
        return condition is None or bool(condition.certain(counters(start), NOTHING, self.period))

    @cached_property
    def _first(self) -> Policy:
        warn_if_vacuous(self)
        return self._planned(self.start)

    def window(self, counts: Counts, completed: int) -> WindowPolicy:
        policy = self._first if counts == self.start else self._planned(counts)
        return WindowPolicy(policy, counts, 0)

    def _planned(self, counts: Counts) -> Policy:
        if self.fallback == "inactive" and not self.admits(counts):
            return inactive(self.prop, self.inputs, self.period, counts)
        return self._best(self.inputs, self.period, counts)

    def mend(self, counts: Counts, left: int) -> Policy:
        return self._best(self.inputs.after(self.period - left, left), left, counts)

    def _best(self, inputs: Inputs, left: int, counts: Counts) -> Policy:
        if self.fallback == "best-effort":
            return best_effort(self.prop, inputs, left, counts)
        try:
            return make_policy(Specification.of(self.prop, inputs, horizon=left, start=counts))
        except InfeasibleError:
            return inactive(self.prop, inputs, left, counts)

    def options(self) -> dict[str, Any]:
        return {"fallback": self.fallback}


def inactive(prop: Property, inputs: Inputs, left: int, counts: Counts) -> Policy:
    """A policy that keeps every proposal."""
    free = NoRequirement.like(prop)
    return make_policy(Specification.of(free, inputs, horizon=left, start=counts))
