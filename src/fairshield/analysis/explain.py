"""``explain`` says in one sentence, with its numbers, why a policy made a decision."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairshield.base.errors import check_kind
from fairshield.policy import Policy
from fairshield.runtime.step import Decision, Why
from fairshield.spec.counting import after_gain
from fairshield.synthesis import cost_to_go


@dataclass(frozen=True)
class Explanation:
    """Explanation holds what accepting and what rejecting was expected to cost from there on.

    Attributes
    ----------
    if_accepted, if_rejected
        Expected cost of the rest of the window, without the price of overruling this one;
        infinite if fairness could not have been guaranteed.
    planned_cost
        The price of overruling that the plan reckoned with: that of the input model's cost level,
        times what ``spread`` adds at this position; infinite above all levels.
    """

    decision: Decision
    if_accepted: float
    if_rejected: float
    planned_cost: float

    def __str__(self) -> str:
        d = self.decision
        did = "accepted" if d.accepted else "rejected"
        head = f"Decision {d.position + 1}, group {d.group}: {did}"
        head += f" although {_noun(d.proposed)} was proposed" if d.overruled else " as proposed"
        return f"{head}, {self._because()}."

    def _because(self) -> str:
        d = self.decision
        did, other = _gerund(d.accepted), _gerund(not d.accepted)
        ours = self.if_accepted if d.accepted else self.if_rejected
        theirs = self.if_rejected if d.accepted else self.if_accepted
        if d.why is Why.HUMAN:
            fate = "still guaranteed" if d.guaranteed else "no longer guaranteed"
            return f"by a person against the shield's advice; fairness is {fate}"
        if d.why is Why.LOST:
            return "because fairness could no longer be guaranteed whatever was decided"
        if theirs == math.inf:
            return (
                f"because after {other} fairness could no longer be guaranteed; "
                f"after {did}, {ours:.4g} more is expected to be paid"
            )
        future = (
            f"{ours:.4g} more is expected to be paid after {did} and {theirs:.4g} after {other}"
        )
        if d.overruled:
            saved = theirs - ours
            return (
                f"because {future}: overruling {self._price()} and is expected to save {saved:.4g}"
            )
        gain = ours - theirs
        if gain <= 0:
            return f"because {future}: overruling would save nothing"
        if self.planned_cost == math.inf:
            return (
                f"because a cost of {d.cost:g} is above every cost level of the input model, and "
                "then only fairness overrules"
            )
        return f"because {future}: overruling {self._price()} and would save only {gain:.4g}"

    def _price(self) -> str:
        d = self.decision
        if math.isclose(self.planned_cost, d.cost):
            return f"costs {d.cost:g}"
        return f"costs {d.cost:g}, planned as {self.planned_cost:.4g},"


def explain(policy: Policy, decision: Decision) -> Explanation:
    """Recompute what either decision was expected to cost from there on.

    Solves the rest of the window from the actual counters, which takes as long as a synthesis of
    that horizon.
    """
    check_kind(policy, Policy, "explain needs the policy that decided")
    check_kind(decision, Decision, "what is explained is a Decision, as decide returned")
    accept, reject = (_after(policy, decision, accepted=y) for y in (True, False))
    return Explanation(decision, accept, reject, _planned_cost(policy, decision))


def _after(policy: Policy, decision: Decision, *, accepted: bool) -> float:
    """Expected further cost after one decision, over both outcomes where they matter."""
    decided = decision.position + 1
    before, group = policy.start.plus(decision.seen_before), policy.groups.index(decision.group)
    nobody = (0, 0) * len(policy.groups)
    ends = [
        cost_to_go(policy, before.plus(after_gain(nobody, group, gain)), decided)
        for gain in reversed(policy.prop.counting.possible(accepted))
    ]
    if len(ends) == 1 or math.inf in ends:
        return max(ends)
    z, (told, untold) = _relevance(policy, decision), ends
    return z * told + (1.0 - z) * untold


def _planned_cost(policy: Policy, decision: Decision) -> float:
    levels = policy.inputs.table(policy.horizon).levels
    level = int(policy.decisions.levels_of(decision.cost))
    if level == len(levels):
        return math.inf
    rise = policy.spec.rise
    return float(levels[level] * (1.0 if rise is None else rise[decision.position]))


def _relevance(policy: Policy, decision: Decision) -> float:
    """The model's probability that this person counts for the property."""
    table = policy.inputs.table(policy.horizon)
    step = decision.position if len(table.probs) > 1 else 0
    level = min(int(policy.decisions.levels_of(decision.cost)), len(policy.edges) - 1)
    group = policy.groups.index(decision.group)
    chance = table.relevance(policy.prop.counting.outcome)
    return float(chance[step, group, int(decision.proposed), level])


def _noun(accepted: bool) -> str:
    return "acceptance" if accepted else "rejection"


def _gerund(accepted: bool) -> str:
    return "accepting" if accepted else "rejecting"
