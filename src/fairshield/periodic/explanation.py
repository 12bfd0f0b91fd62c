"""RunExplanation: why a decision of a run was made, and the plan that it follows."""

from __future__ import annotations

from dataclasses import dataclass

from fairshield.analysis.explain import Explanation, explain
from fairshield.base.renamed import Renamed
from fairshield.periodic.plan import Plan
from fairshield.periodic.policy import PeriodicPolicy
from fairshield.runtime.step import Decision


@dataclass(frozen=True)
class RunExplanation(Explanation):
    """RunExplanation says why a decision was made, and what the plan of its window rests on.

    ``plan`` is empty where windows begin anew.
    """

    noun: str
    plan: str

    explanation = Renamed("the explanation itself", lambda it: it)

    def __str__(self) -> str:
        if not self.plan:
            return super().__str__()
        return (
            f"{self.noun.capitalize()} {self.decision.window + 1}. {super().__str__()} {self.plan}"
        )


def explain_decision(kind: PeriodicPolicy, plan: Plan, decision: Decision) -> RunExplanation:
    """Explain a decision by the expected costs of accepting and rejecting in its plan."""
    found = explain(plan.window.policy, plan.in_policy(decision))
    return RunExplanation(
        decision, found.if_accepted, found.if_rejected, found.planned_cost, kind.noun,
        _grounds(kind, plan) if kind.goes_on else "",
    )  # fmt: skip


def _grounds(kind: PeriodicPolicy, plan: Plan) -> str:
    policy, noun = plan.window.policy, kind.noun
    if not policy.prop.demands:
        return f"The shield is inactive: the {noun} cannot be guaranteed to end fair."
    if policy.risk:
        return (
            f"Fairness at the end of this {noun} could not be guaranteed when it was planned; "
            "the plan makes a violation as improbable as can be."
        )
    if policy.terminal is not None:
        held = kind.certificate(policy.start)
        ahead = (policy.horizon + policy.further) // kind.length
        covered = f"this {noun}" if ahead == 1 else f"{ahead} {noun}s"
        return f"The plan covers {covered} and ends with a certificate; at its start " + (
            "none was in force." if held is None else f"this one was in force: {held}."
        )
    keeps = f"The plan keeps {policy.prop} over {policy.horizon} decisions."
    if policy.spec.ceiling is None:
        return keeps
    return (
        f"{keeps} Costs are those up to the end of the {noun}; what would let a later one be "
        f"expected to cost more than {policy.spec.ceiling:.4g} is ruled out like what is unfair."
    )
