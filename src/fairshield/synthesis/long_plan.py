"""Makes policies for long windows: prices from the input model, and what they are to cost."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fairshield._version import __version__
from fairshield.counts import Counts, is_whole
from fairshield.errors import InfeasibleError, InvalidValueError, called
from fairshield.inputs import InputModel, InputSchedule
from fairshield.layout import layout_of
from fairshield.long.policy import MOST_DECISIONS, LongPolicy
from fairshield.long.price_kernels import expected
from fairshield.long.prices import few_levels, make_ladders, make_opening
from fairshield.long.rule import ENOUGH, FEW, KIND, RATIO, rule_of
from fairshield.runtime.compiled import Requests, decide_batch
from fairshield.spec import Property
from fairshield.synthesis.problem import make_problem

_TRIED, _TRIED_SLOWLY = 500_000, 4000
"""Decisions that are simulated where no formula says what a policy costs, and slow ones."""
_LEAST_RUNS, _MOST_RUNS = 2, 400
_MOST_ENDGAME = 10**9
"""States of an endgame: seconds, for whoever insists."""
_TYPICAL = 10
"""A window so many times as long as the first people take is not about them any more."""


def default_endgame(n_levels: int, labelled: bool) -> int:
    """Decisions whose exact table takes a few milliseconds."""
    if labelled:
        return 40
    return 100 if n_levels == 1 else 60


def make_long_policy(
    prop: Property,
    inputs: InputModel | InputSchedule,
    horizon: int,
    start: Counts,
    checkpoints: tuple[int, ...],
    terminal: Property | None,
    *,
    endgame: int | None,
    best_effort: bool,
    reason: str,
) -> LongPolicy:
    """A policy that is fair on every input sequence, and cheap if the input model is right."""
    if horizon > MOST_DECISIONS:
        raise InvalidValueError(
            f"a window has at most {MOST_DECISIONS} decisions, got {horizon}: shorten the window"
        )
    average = inputs.average(horizon)
    problem = make_problem(prop, average, 1, start, ())
    levels = problem.sorted_costs[0]
    weights, costs = few_levels(problem.sorted_weights[0], levels)
    policy = LongPolicy(
        prop=prop,
        inputs=inputs,
        horizon=horizon,
        start=start,
        checkpoints=checkpoints,
        terminal=terminal,
        expected_cost=math.nan,
        edges=np.array(problem.table.edges),
        ranks=problem.ranks,
        version=__version__,
        reason=reason,
        levels=levels,
        weights=weights,
        costs=costs,
        tie=problem.tie,
        ladders=make_ladders(rule_of(prop), weights, costs, problem.start, horizon),
        opening=np.empty((0, 2), np.int16),
        endgame=_checked_endgame(endgame, horizon, problem.n_levels, problem.layout.labelled),
    )
    policy = replace(policy, opening=make_opening(policy.tables, problem.start, horizon))
    certified = policy.reader.feasible(0, (0, 0, 0, 0))
    if not certified and not best_effort:
        raise InfeasibleError(
            f"no certificate that {prop} can be reached in {policy.due[0]} decisions from "
            + " and ".join(
                f"{count.accepted} accepted of {count.seen} in {group}"
                for group, count in start.items()
            )
            + f": loosen the bound, set {called('min_support')}, lengthen the window, or let "
            "best_effort do what can be done"
        )
    if policy.endgame == horizon and len(policy.due) == 1:
        whole = policy.reader.endgame(0, (0, 0, 0, 0)).endgame.policy
        cost, risk = whole.expected_cost, whole.risk
    elif certified and len(policy.due) == 1 and _formula_holds(policy):
        cost, risk = expected_from(policy, start, 0), 0.0
    else:
        cost, violated = _simulated(policy, average)
        risk = 0.0 if certified else violated
    return replace(policy, expected_cost=cost, least_cost=cost, risk=risk)


def _checked_endgame(endgame: int | None, horizon: int, n_levels: int, labelled: bool) -> int:
    if endgame is None:
        return min(default_endgame(n_levels, labelled), horizon)
    if not is_whole(endgame) or not 0 <= endgame <= horizon:
        raise InvalidValueError(
            f"endgame must be a number of decisions from 0 to the horizon {horizon}, got "
            f"{endgame!r}: leave it out for what takes a few milliseconds"
        )
    if layout_of(int(endgame), labelled).n_states * min(n_levels, 3) > _MOST_ENDGAME:
        raise InvalidValueError(
            f"endgame={endgame} is more than can be solved while somebody waits for a decision: "
            f"leave it out, or try {default_endgame(n_levels, labelled)}, the default"
        )
    return int(endgame)


def _formula_holds(policy: LongPolicy) -> bool:
    """Whether what the first people cost vanishes beside the rest, and only the end counts."""
    numbers, seen = policy.rule.numbers, sum(count.seen for count in policy.start.values())
    first = int(numbers[FEW] + numbers[ENOUGH])
    if numbers[KIND] == RATIO:
        rarest = float(policy.weights.sum(axis=(1, 2)).min())
        first = int(10 * numbers[FEW] / max(rarest, 1e-6))
    return not policy.rule.anytime and seen + policy.horizon >= _TYPICAL * first


def expected_from(policy: LongPolicy, counts: Counts, decided: int) -> float:
    """What the decisions up to the next check are expected to cost, roughly."""
    left = policy.next_check(decided) - decided
    if policy.rule.anytime:
        return float(policy.ladders.rates.sum()) * left
    (n_a, k_a), (n_b, k_b) = counts.values()
    return float(expected(policy.tables, n_a, k_a, n_b, k_b, left))


def _simulated(policy: LongPolicy, inputs: InputModel) -> tuple[float, float]:
    """Mean cost of some windows, and an estimate above 0 of the share that is unfair at a check."""
    plain = replace(policy, endgame=0)
    rng, horizon = np.random.default_rng(0), policy.horizon
    table, outcome = inputs.table(1), policy.prop.relevant_outcome
    # The first people are looked at one by one, in integers of any size.
    slow = min(2 * int(policy.rule.numbers[FEW]) + 1, horizon)
    runs = max(min(_TRIED // horizon, _TRIED_SLOWLY // slow, _MOST_RUNS), _LEAST_RUNS)
    paid, unfair = 0.0, 0
    for _ in range(runs):
        groups, proposed, level, chance = table.draw(rng.random(horizon), outcome)
        costs, relevant = table.levels[level], rng.random(horizon) < chance
        requests = Requests(groups, proposed, level.astype(np.int32), costs, relevant)
        accepted, _ = decide_batch(plain, 0, (0, 0, 0, 0), requests)
        paid += float(costs[accepted != proposed].sum())
        ends = requests.gained(accepted)[list(policy.due)].tolist()
        unfair += not all(policy.prop.holds(policy.start.plus(tuple(end))) for end in ends)
    return paid / runs, (unfair + 1) / (runs + 1)
