"""Makes policies for long windows: prices from the input model, and what they are to cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fairshield._version import __version__
from fairshield.counts import At, Counts, is_whole
from fairshield.errors import InfeasibleError, InvalidValueError, argument, called
from fairshield.inputs import InputModel, InputSchedule
from fairshield.layout import layout_of
from fairshield.long.policy import MOST_DECISIONS, LongPolicy
from fairshield.long.price_kernels import expected, lasting_cost
from fairshield.long.prices import OPENING, few_levels, make_ladders, make_opening
from fairshield.long.rule import ENOUGH, FEW, KIND, RATIO, rule_of
from fairshield.runtime.compiled import decide_batch
from fairshield.runtime.requests import Requests
from fairshield.spec import Property
from fairshield.synthesis.problem import make_problem

Progress = Callable[[float], None]

_TRIED, _TRIED_SLOWLY = 500_000, 4000
"""Decisions that are simulated where no formula says what a policy costs, and slow ones."""
_LEAST_RUNS, _MOST_RUNS = 2, 400
_FIRST = 20_000
"""Decisions of a window after which a bound that holds at every moment costs the same for ever."""
_LONG = 10**8
"""Decisions of a window whose counters are compared in 64 bits."""
_AT_ONCE = 50_000
"""Decisions that are simulated in one go, so that memory does not grow with the window."""
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
    progress: Progress | None = None,
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
        cost, violated = _simulated(policy, average, certified, progress)
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
            f"{argument('endgame', endgame)} is more than can be solved while somebody waits for a "
            f"decision: leave it out, or try {default_endgame(n_levels, labelled)}, the default"
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


@dataclass
class _Windows:
    """Draws windows and decides them, without endgames."""

    policy: LongPolicy
    inputs: InputModel

    def __post_init__(self) -> None:
        self.table = self.inputs.table(1)
        policy, horizon = self.policy, self.policy.horizon
        if policy.rule.anytime and len(policy.due) == 1:
            # The beginning of a window does not depend on how long it is.
            horizon = min(horizon, _LONG)
        self.plain = replace(policy, endgame=0, horizon=horizon)
        self.rng = np.random.default_rng(0)

    def run(self, upto: int, *, until_certified: bool) -> Iterator[_Run]:
        """A window after each of its parts, up to ``upto`` decisions or to its certificate."""
        policy, here = self.policy, _Run(0, (0, 0, 0, 0), 0.0, False)
        while here.t < upto and not (until_certified and policy.certified(here.t, here.at)):
            here = self._go_on(here, min(_AT_ONCE, upto - here.t))
            yield here

    def _go_on(self, here: _Run, n: int) -> _Run:
        policy, (t, at, paid, unfair) = self.policy, here
        outcome = policy.prop.relevant_outcome
        groups, proposed, level, chance = self.table.draw(self.rng.random(n), outcome)
        costs, relevant = self.table.levels[level], self.rng.random(n) < chance
        requests = Requests(groups, proposed, level.astype(np.int32), costs, relevant)
        accepted, after = decide_batch(self.plain, t, at, requests)
        paid += float(costs[accepted != proposed].sum())
        checks = [due for due in policy.due if t < due <= t + n]
        ends = np.array(at) + requests.gained(accepted)[[due - t for due in checks]]
        held = (policy.prop.holds(policy.start.plus(tuple(end))) for end in ends.tolist())
        return _Run(t + n, after, paid, unfair or not all(held))


class _Run(NamedTuple):
    """Where a window stands: decisions made, counters, what was paid, whether a check failed."""

    t: int
    at: At
    paid: float
    unfair: bool


def _simulated(
    policy: LongPolicy, inputs: InputModel, certified: bool, progress: Progress | None
) -> tuple[float, float]:
    """Mean cost of some windows, and an estimate above 0 of the share that is unfair at a check.

    Only so much of each is decided as its cost is not known by a formula.
    """
    windows, horizon, alone = _Windows(policy, inputs), policy.horizon, len(policy.due) == 1
    upto, runs = _simulated_decisions(policy, whole=not (alone and certified))
    total, unfair = 0.0, 0
    for i in range(runs):
        here = _Run(0, (0, 0, 0, 0), 0.0, False)
        for here in windows.run(upto, until_certified=alone and not certified):
            if progress is not None:
                progress((i + here.t / upto) / runs)
        total += here.paid
        if here.t < horizon:
            total += _cost_after(policy, here)
        unfair += here.unfair
    return total / runs, (unfair + 1) / (runs + 1)


def _simulated_decisions(policy: LongPolicy, *, whole: bool) -> tuple[int, int]:
    """Decisions of each window that are simulated, and how many windows."""
    upto = policy.horizon
    if policy.rule.anytime and not whole:
        upto = min(upto, _FIRST)
    # The first people are looked at one by one, in integers of any size.
    few, shares = int(policy.rule.numbers[FEW]), policy.weights.sum(axis=(1, 2))
    slow = math.ceil(min((2 * few + 1) / max(float(shares.max()), 1e-15), upto))
    if slow == upto and not whole:
        upto = slow = min(upto, _TRIED_SLOWLY)
    runs = max(min(_TRIED // upto, _TRIED_SLOWLY // slow, _MOST_RUNS), _LEAST_RUNS)
    return upto, runs


def _cost_after(policy: LongPolicy, here: _Run) -> float:
    """What the decisions after a simulated part of a certified window are expected to cost."""
    left = policy.horizon - here.t
    if not policy.rule.anytime:
        return expected_from(policy, policy.start.plus(here.at), here.t)
    if float(policy.weights.sum()) * policy.horizon < OPENING:
        return here.paid / here.t * left if here.t else 0.0
    return float(lasting_cost(policy.tables)) * left
