"""``saving`` computes what a new synthesis for a revised input model would save."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairshield.inputs import Inputs
from fairshield.periodic import PeriodicPolicy
from fairshield.policy import Policy

if TYPE_CHECKING:
    from fairshield.analysis.simulate import Simulation

_WINDOWS = 1000


@dataclass(frozen=True)
class Saving:
    """Saving holds the expected costs of two policies, if requests follow the revised model.

    Attributes
    ----------
    inputs
        The revised model.
    now, then
        With the policy as it is, and with one made for the revised model.
    risk_now, risk_then
        In which share of them the property is violated, 0 where it is guaranteed: best effort may
        pay more to violate it less.
    policy
        The one made for the revised model.
    noun
        Of what these are costs: of a window, or of the first period of a run.
    """

    inputs: Inputs
    now: float
    then: float
    policy: Policy | PeriodicPolicy
    risk_now: float = 0.0
    risk_then: float = 0.0
    noun: str = "window"

    @property
    def saved(self) -> float:
        """How much less is expected to be paid."""
        return self.now - self.then

    def __str__(self) -> str:
        noun = self.noun
        share = self.saved / self.now if self.now else 0.0
        said = (
            f"re-synthesised, {self.then:.4g} instead of {self.now:.4g} is expected per {noun} "
            f"(saves {self.saved:.3g}, {share:.0%})"
        )
        if self.risk_now or self.risk_then:
            said += (
                f", and about {self.risk_then:.3g} instead of {self.risk_now:.3g} of {noun}s are "
                "unfair"
            )
        return said

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        return {
            "now": self.now,
            "then": self.then,
            "saved": self.saved,
            "risk_now": self.risk_now,
            "risk_then": self.risk_then,
            "inputs": self.inputs.to_dict(),
        }


def saving(policy: PeriodicPolicy, inputs: Inputs) -> Saving:
    """Compare ``policy`` with one made for ``inputs``, if requests follow ``inputs``.

    Costs are exact for tables; for long policies they are the mean of a thousand windows, the same
    for both, and so are the risks of all policies that guarantee nothing.
    """
    again = policy.remade(inputs)
    plans = [made.window(made.start, 0).policy for made in (policy, again)]
    now, then = (_expected(plan, inputs) for plan in plans)
    risks = [0.0, 0.0]
    if any(plan.risk for plan in plans):
        risks = [1.0 - float(_windows(plan, inputs).fair.mean()) for plan in plans]
    noun = policy.noun if not policy.goes_on else f"first {policy.noun}"
    return Saving(inputs, now, then, again.artefact, risks[0], risks[1], noun)


def _expected(policy: Policy, inputs: Inputs) -> float:
    from fairshield.runtime.evaluate import evaluate

    if policy.decisions.tabled:
        return evaluate(policy, inputs).expected_cost
    return _windows(policy, inputs).mean_paid


def _windows(policy: Policy, inputs: Inputs) -> Simulation:
    from fairshield.analysis.simulate import simulate

    return simulate(policy, n_windows=_WINDOWS, rng=np.random.default_rng(0), inputs=inputs)
