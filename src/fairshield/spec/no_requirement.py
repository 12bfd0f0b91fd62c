"""The property that asks nothing, of policies that do not intervene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairshield.spec.base import Count
from fairshield.spec.finding import Measured
from fairshield.spec.linear import Inequality, LinearProperty
from fairshield.spec.rules import ANYTIME, BOUNDED, KIND, Q, R, Rule, S, make_rule


@dataclass(frozen=True, init=False)
class NoRequirement(LinearProperty, kind="none"):
    """NoRequirement holds for all counters; ``outcome`` limits them to people with this outcome."""

    demands: ClassVar[bool] = False
    offered: ClassVar[bool] = False

    outcome: bool | None

    def __init__(self, outcome: bool | None = None) -> None:
        object.__setattr__(self, "outcome", outcome)
        object.__setattr__(self, "relevant_outcome", outcome)

    def inequalities(self, n_a: Any, n_b: Any) -> tuple[Inequality, ...]:
        return ()

    def fair(self, a: Count, b: Count) -> Any:
        return (a.seen >= 0) & (b.seen >= 0)

    def bias(self, a: Count, b: Count) -> Any:
        return 0.0 * (np.asarray(a.seen) + b.seen)

    def measured(self, a: Count, b: Count) -> Measured:
        return Measured("bias", 0.0, "nothing", 0.0)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "outcome": self.outcome}

    def words(self) -> str:
        return "no requirement"

    @property
    def uncertified(self) -> str | None:
        return None

    def rule(self) -> Rule:
        """The rule of bounded rates with the interval [0, 1], which no decision can leave."""
        return make_rule({KIND: BOUNDED, Q: 1, R: 1, S: 1, ANYTIME: 1}, [], 2**61)
