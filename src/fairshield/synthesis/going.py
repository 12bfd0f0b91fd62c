"""Expected costs still to be paid, from the start or from the middle of a window."""

from __future__ import annotations

import math

from fairshield.base.counts import Counts
from fairshield.base.errors import InvalidValueError
from fairshield.policy import Policy, Specification
from fairshield.synthesis.options import Options
from fairshield.synthesis.problem import make_problem
from fairshield.synthesis.solving import solve


def least_cost(spec: Specification) -> float:
    """The expected cost of the cheapest policy, which is not made; infinite if there is none."""
    return solve(make_problem(spec), Options()).value


def cost_to_go(policy: Policy, counts: Counts, decided: int) -> float:
    """Least expected cost of the decisions left, from these counters; infinite if not feasible.

    Solved afresh, as the policy itself stores decisions and not costs; of a long window before an
    endgame, and up to its next check, estimated.  For a policy with
    ``spread`` these are the risen costs it was planned with, for one with a ``ceiling`` those up to
    the next checkpoint.
    """
    if not 0 <= decided <= policy.horizon:
        raise InvalidValueError(f"{decided} decisions do not fit a window of {policy.horizon}")
    if not policy.keeps(counts, decided):
        return math.inf
    estimated = policy.decisions.estimate(counts, decided)
    if estimated is not None:
        return estimated
    if decided == policy.spec.plan_length:
        return 0.0
    if policy.spec.ceiling is not None and decided in policy.checkpoints:
        return 0.0 if policy.guarantees(counts, decided) else math.inf
    return least_cost(policy.decisions.rest(policy.spec, counts, decided))
