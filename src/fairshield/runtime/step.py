"""The decision rule as pure functions: one request, one decision, no state.

All decisions are made by :func:`verdict`, or by the same rule compiled,
:func:`fairshield.policy.codes.accepts`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from fairshield.base.counts import At, Counts, Group, place_among, unknown_group
from fairshield.base.errors import InvalidValueError, WindowOverError, check_kind
from fairshield.base.renamed import Renamed
from fairshield.policy import Policy
from fairshield.policy.decisions import Decisions
from fairshield.records import as_cost, as_flag
from fairshield.spec.counting import after_gain


class Why(Enum):
    """Why is the reason why the shield decided as it did."""

    CHEAPEST = "cheapest"
    """Both decisions can be guaranteed fair; this one is expected to cost least."""
    FORCED = "forced"
    """The other decision could no longer be guaranteed fair."""
    CEILING = "ceiling"
    """The other decision is ruled out by a policy with a ceiling on what a period may cost.

    It could no longer be guaranteed fair, or could let a later period be expected to cost more.
    """
    LOST = "lost"
    """Fairness cannot be guaranteed from these counters, whatever is decided.

    A policy made with ``best_effort`` takes the least risky decision, any other keeps the proposal;
    a long policy, before its endgame, corrects by its prices.
    """
    HUMAN = "human"
    """A person decided otherwise than advised."""
    UNSEEN = "unseen"
    """The person's group was not declared: the proposal stands, and nobody is counted."""


# Names of their own, because access to a member of an enumeration is slower than a look-up.
_CHEAPEST, _FORCED, _CEILING, LOST = Why.CHEAPEST, Why.FORCED, Why.CEILING, Why.LOST


class Decision(NamedTuple):
    """Decision is the answer to one request.

    ``position`` counts from 0 in the window; ``cost`` is the price of overruling this proposal,
    ``paid`` what was paid; ``guaranteed`` says whether the property is still certain to hold at
    the horizon; ``seen_before`` are the counters ``(n_a, k_a, n_b, k_b, …)`` since the start of the
    window on which the decision rests.  ``window`` counts the windows or periods of a run from 0.
    """

    position: int
    group: Group
    proposed: bool
    cost: float
    accepted: bool
    why: Why
    seen_before: At
    guaranteed: bool = True
    window: int = 0

    @property
    def overruled(self) -> bool:
        """Whether the final decision differs from the proposal."""
        return self.accepted != self.proposed

    @property
    def paid(self) -> float:
        """The cost incurred: ``cost`` if overruled, else 0."""
        return self.cost if self.overruled else 0.0

    @property
    def reason(self) -> str:
        """Why the decision was made, in one sentence."""
        return reason_of(
            self.why, self.group, proposed=self.proposed, accepted=self.accepted, cost=self.cost,
            guaranteed=self.guaranteed,
        )  # fmt: skip


Decision.period = Renamed("window")  # type: ignore[attr-defined]


def reason_of(
    why: Why, group: Group, *, proposed: bool, accepted: bool, cost: float, guaranteed: bool
) -> str:
    """Why a decision was made, in one sentence."""
    overruled = accepted != proposed
    verb = "overruled" if overruled else "kept"
    other = "rejecting" if accepted else "accepting"
    if why is Why.FORCED:
        return f"{verb}: {other} could no longer be guaranteed fair"
    if why is Why.CEILING:
        return f"{verb}: {other} could end a period unfair, or make a later one too dear"
    if why is Why.LOST:
        lost = f"{verb}: fairness can no longer be guaranteed from these counters"
        return f"{lost}, and {other} is riskier or dearer" if overruled else lost
    if why is Why.UNSEEN:
        return f"kept: the policy was not made for group {group!r}, who is not counted"
    if why is Why.HUMAN:
        fate = "still guaranteed" if guaranteed else "no longer guaranteed"
        return f"{verb} by a person, against advice: fairness is {fate}"
    if overruled:
        return f"overruled: at a cost of {cost:g}, {other} would be expected to cost more"
    return "kept: overruling is not expected to pay for itself"


@dataclass(frozen=True, slots=True)
class State:
    """State says how many decisions of a window were made, and the counters they led to."""

    decided: int
    counts: Counts

    @classmethod
    def initial(cls, policy: Policy) -> State:
        """The start of the policy's window."""
        return cls(0, policy.start)


def verdict(
    policy: Policy, t: int, at: At, group: int, proposed: bool, cost: float
) -> tuple[bool, Why]:
    """Whether to accept, and why, after ``t`` decisions with counters ``at`` since the start."""
    decisions = policy.decisions
    can_reject, can_accept, code = decisions.answer(t, at, group)
    if code and decisions.by_level:
        level = bisect_left(decisions.cost_tables[0], cost)
        accepted = proposed is not decisions.overrules(code, proposed, level)
    elif code and (code > 0) == proposed and _rank(decisions, t, group, proposed, cost) < abs(code):
        accepted = not proposed
    else:
        accepted = proposed
    if can_accept is can_reject:
        why = _CHEAPEST if can_accept else LOST
    else:
        forced = _FORCED if policy.spec.ceiling is None else _CEILING
        why = forced if accepted is can_accept else LOST
    # A person who turns out irrelevant leaves the counters as they are.
    if decisions.labelled and not decisions.stays(t, at):
        why = LOST
    return accepted, why


def _rank(decisions: Decisions, t: int, group: int, proposed: bool, cost: float) -> int:
    """How many cost levels are cheaper to overrule than this cost; all if it exceeds all."""
    edges, ranks = decisions.cost_tables
    level = bisect_left(edges, cost)
    if level == len(edges):
        return level
    return int(ranks[t if len(ranks) > 1 else 0][group][proposed][level])


def decide(policy: Policy, state: State, group: Group, proposed: bool, cost: float) -> Decision:
    """Decide one request.  Pure: same arguments, same answer."""
    check_kind(policy, Policy, "a policy decides: make one with synthesize")
    check_kind(state, State, "a state says where the window stands, as State.initial(policy) does")
    t, said = state.decided, as_flag(proposed)
    at = policy.position(state.counts, t)
    price = check_request(policy, t, group, cost)
    accepted, why = verdict(policy, t, at, place_among(policy.groups, group), said, price)
    return Decision(t, group, said, price, accepted, why, at, why is not LOST)


def advance(policy: Policy, state: State, decision: Decision, outcome: bool | None) -> State:
    """The state after a decision whose outcome is known (``None`` if it does not matter)."""
    counting = policy.prop.counting
    if counting.labelled and outcome is None:
        raise InvalidValueError(f"{policy.prop} needs the outcome of every decision")
    gain = counting.gain(decision.accepted, as_flag(outcome) if counting.labelled else None)
    nobody = (0, 0) * len(policy.groups)
    gained = after_gain(nobody, place_among(policy.groups, decision.group), gain)
    return State(state.decided + 1, state.counts.plus(gained))


def step(
    policy: Policy,
    state: State,
    group: Group,
    *,
    proposed: bool,
    cost: float = 1.0,
    outcome: bool | None = None,
) -> tuple[State, Decision]:
    """Decide one request and advance; for properties that need it, with its outcome."""
    decision = decide(policy, state, group, proposed, cost)
    return advance(policy, state, decision, outcome), decision


def check_request(policy: Policy, decided: int, group: Group, cost: Any) -> float:
    """The cost of a request; refuses what cannot be decided, before anything is counted."""
    if place_among(policy.groups, group) < 0:
        raise unknown_group(group, policy.groups)
    price = as_cost(cost)
    if decided >= policy.horizon:
        raise WindowOverError(
            f"all {policy.horizon} decisions of this window have been made: start a new Shield"
        )
    return price
