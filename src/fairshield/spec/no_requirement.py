"""The property that asks nothing, of policies that do not intervene."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairshield.spec.base import Count, Property
from fairshield.spec.counting import PEOPLE, Counting, Gain
from fairshield.spec.finding import Measured
from fairshield.spec.linear import Inequality, LinearProperty
from fairshield.spec.rules import ANYTIME, BOUNDED, KIND, Q, R, Rule, S, make_rule

Gains = tuple[Gain, Gain, Gain, Gain]


@dataclass(frozen=True, init=False)
class NoRequirement(LinearProperty, kind="none"):
    """NoRequirement holds for all counters.

    ``outcome`` limits them to people with this outcome; ``counted`` says what counts instead of
    people, as :attr:`fairshield.spec.Counting.gains`.
    """

    demands: ClassVar[bool] = False
    offered: ClassVar[bool] = False

    outcome: bool | None
    counted: Gains | None

    def __init__(self, outcome: bool | None = None, counted: Gains | None = None) -> None:
        object.__setattr__(self, "outcome", outcome)
        object.__setattr__(self, "counted", None if counted is None else _gains(counted))

    @property
    def relevant_outcome(self) -> bool | None:  # type: ignore[override]
        return self.counting.outcome_of_people(self)

    @staticmethod
    def like(prop: Property) -> NoRequirement:
        """No requirement of the counters that ``prop`` reads."""
        counting = prop.counting
        return NoRequirement(counting.outcome, None if counting.of_people else counting.gains)

    @property
    def counting(self) -> Counting:
        if self.counted is None:
            return PEOPLE[self.outcome]
        return Counting(self.counted, self.outcome)

    def inequalities(self, n_a: Any, n_b: Any) -> tuple[Inequality, ...]:
        return ()

    def fair(self, a: Count, b: Count) -> Any:
        return (a.seen >= 0) & (b.seen >= 0)

    def bias(self, a: Count, b: Count) -> Any:
        return 0.0 * (np.asarray(a.seen) + b.seen)

    def measured(self, a: Count, b: Count) -> Measured:
        return Measured("bias", 0.0, "nothing", 0.0)

    def to_dict(self) -> dict[str, Any]:
        counted = {} if self.counted is None else {"counted": [list(g) for g in self.counted]}
        return {"kind": self.kind, "outcome": self.outcome, **counted}

    def words(self) -> str:
        return "no requirement"

    @property
    def uncertified(self) -> str | None:
        return None if self.counted is None else "certificates are of people counted"

    def rule(self) -> Rule:
        """The rule of bounded rates with the interval [0, 1], which no decision can leave."""
        return make_rule({KIND: BOUNDED, Q: 1, R: 1, S: 1, ANYTIME: 1}, [], 2**61)


def _gains(told: Iterable[Iterable[int]]) -> Gains:
    first, second, third, fourth = ((int(seen), int(accepted)) for seen, accepted in told)
    return first, second, third, fourth
