"""make_long_policy makes policies for long windows: prices, and the expected cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fairshield._version import __version__
from fairshield.base.counts import At, is_whole, so_far
from fairshield.base.errors import InfeasibleError, InvalidValueError, argument, called
from fairshield.base.types import Progress
from fairshield.policy import Policy, Specification
from fairshield.policy.layout import layout_of
from fairshield.policy.long.decisions import MOST_DECISIONS, PriceDecisions
from fairshield.policy.long.price_kernels import lasting_cost
from fairshield.policy.long.prices import OPENING, few_levels, make_ladders, make_opening
from fairshield.runtime.compiled import decide_batch
from fairshield.runtime.requests import Requests
from fairshield.spec.rules import ENOUGH, FEW, KIND, RATIO
from fairshield.synthesis.options import Options
from fairshield.synthesis.problem import make_problem

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
    """The number of decisions whose exact table takes a few milliseconds to make."""
    if labelled:
        return 40
    return 100 if n_levels == 1 else 60


def make_long_policy(spec: Specification, options: Options, reason: str) -> Policy:
    """A policy that is fair on every input sequence, and cheap if the input model is right."""
    if spec.horizon > MOST_DECISIONS:
        raise InvalidValueError(
            f"a window has at most {MOST_DECISIONS} decisions, got {spec.horizon}: shorten the "
            "window"
        )
    decisions = _decisions(spec, options.endgame)
    certified = decisions.feasible(0, (0, 0, 0, 0))
    if not certified and not options.best_effort:
        raise _uncertified(spec)
    cost, risk = _cost_and_risk(decisions, certified, options.progress)
    return Policy(
        spec, decisions, cost, least_cost=cost, risk=risk, reason=reason, version=__version__
    )


def _decisions(spec: Specification, endgame: int | None) -> PriceDecisions:
    average = spec.inputs.average(spec.horizon)
    problem = make_problem(replace(spec, inputs=average, horizon=1, checkpoints=()))
    levels = problem.sorted_costs[0]
    weights, costs = few_levels(problem.sorted_weights[0], levels)
    decisions = PriceDecisions(
        spec=spec,
        edges=np.array(problem.table.edges),
        ranks=problem.ranks,
        levels=levels,
        weights=weights,
        costs=costs,
        tie=problem.tie,
        ladders=make_ladders(spec.prop.rule(), weights, costs, problem.start, spec.horizon),
        opening=np.empty((0, 2), np.int16),
        endgame=_checked_endgame(endgame, spec.horizon, problem.n_levels, spec.labelled),
    )
    return replace(decisions, opening=make_opening(decisions.tables, problem.start, spec.horizon))


def _uncertified(spec: Specification) -> InfeasibleError:
    return InfeasibleError(
        f"no certificate that {spec.prop} can be reached in {spec.due[0]} decisions from "
        f"{so_far(spec.start)}: loosen the bound, set {called('min_support')}, lengthen the "
        "window, or let best_effort do what can be done"
    )


def _cost_and_risk(
    decisions: PriceDecisions, certified: bool, progress: Progress | None
) -> tuple[float, float]:
    spec = decisions.spec
    alone = len(spec.due) == 1
    if decisions.endgame == spec.horizon and alone:
        whole = decisions.endgame_at(0, (0, 0, 0, 0)).endgame.policy
        return whole.expected_cost, whole.risk
    if certified and alone and _formula_holds(decisions):
        return decisions.expected_from(0, (0, 0, 0, 0)), 0.0
    cost, violated = _simulated(decisions, certified, progress)
    return cost, 0.0 if certified else violated


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


def _formula_holds(decisions: PriceDecisions) -> bool:
    """Whether the window is so long that the formula for its end gives its cost."""
    numbers, spec = decisions.rule.numbers, decisions.spec
    seen = sum(count.seen for count in spec.start.values())
    first = int(numbers[FEW] + numbers[ENOUGH])
    if numbers[KIND] == RATIO:
        rarest = float(decisions.weights.sum(axis=(1, 2)).min())
        first = int(10 * numbers[FEW] / max(rarest, 1e-6))
    return not decisions.rule.anytime and seen + spec.horizon >= _TYPICAL * first


class _Windows:
    """_Windows simulates windows, without endgames."""

    def __init__(self, decisions: PriceDecisions) -> None:
        spec = decisions.spec
        self.decisions, self.spec = decisions, spec
        self.table = spec.inputs.average(spec.horizon).table(1)
        if decisions.rule.anytime and len(spec.due) == 1:
            # Decisions at the beginning do not depend on the length, so a shorter window serves.
            spec = replace(spec, horizon=min(spec.horizon, _LONG))
        self.plain = Policy(spec, replace(decisions, endgame=0, spec=spec), math.nan)
        self.rng = np.random.default_rng(0)

    def run(self, upto: int, *, until_certified: bool) -> Iterator[_Run]:
        """Yield one window after each part, up to ``upto`` decisions or until it is certified."""
        certified, here = self.decisions.certified, _Run(0, (0, 0, 0, 0), 0.0, False)
        while here.t < upto and not (until_certified and certified(here.t, here.at)):
            here = self._go_on(here, min(_AT_ONCE, upto - here.t))
            yield here

    def _go_on(self, here: _Run, n: int) -> _Run:
        spec, (t, at, paid, unfair) = self.spec, here
        outcome = spec.prop.relevant_outcome
        groups, proposed, level, chance = self.table.draw(self.rng.random(n), outcome)
        costs, relevant = self.table.levels[level], self.rng.random(n) < chance
        requests = Requests(groups, proposed, level.astype(np.int32), costs, relevant)
        accepted, after = decide_batch(self.plain, t, at, requests)
        paid += float(costs[accepted != proposed].sum())
        checks = [due for due in spec.due if t < due <= t + n]
        ends = (
            np.array(at)
            + requests.gained(accepted, spec.prop.counting)[[due - t for due in checks]]
        )
        held = (spec.prop.holds(spec.start.plus(tuple(end))) for end in ends.tolist())
        return _Run(t + n, after, paid, unfair or not all(held))


class _Run(NamedTuple):
    """_Run is a simulated window so far: decisions, counters, cost, and if a check failed."""

    t: int
    at: At
    paid: float
    unfair: bool


def _simulated(
    decisions: PriceDecisions, certified: bool, progress: Progress | None
) -> tuple[float, float]:
    """Mean cost of some windows, and an estimate above 0 of the share that is unfair at a check.

    Of each window only the part is simulated whose cost no formula gives.
    """
    windows, horizon = _Windows(decisions), decisions.spec.horizon
    alone = len(decisions.spec.due) == 1
    upto, runs = _simulated_decisions(decisions, whole=not (alone and certified))
    total, unfair = 0.0, 0
    for i in range(runs):
        here = _Run(0, (0, 0, 0, 0), 0.0, False)
        for here in windows.run(upto, until_certified=alone and not certified):
            if progress is not None:
                progress((i + here.t / upto) / runs)
        total += here.paid
        if here.t < horizon:
            total += _cost_after(decisions, here)
        unfair += here.unfair
    return total / runs, (unfair + 1) / (runs + 1)


def _simulated_decisions(decisions: PriceDecisions, *, whole: bool) -> tuple[int, int]:
    """How many decisions of each window are simulated, and how many windows."""
    upto = decisions.spec.horizon
    if decisions.rule.anytime and not whole:
        upto = min(upto, _FIRST)
    # Decisions on the first people are slow: one by one, in integers of any size.
    few, shares = int(decisions.rule.numbers[FEW]), decisions.weights.sum(axis=(1, 2))
    slow = math.ceil(min((2 * few + 1) / max(float(shares.max()), 1e-15), upto))
    if slow == upto and not whole:
        upto = slow = min(upto, _TRIED_SLOWLY)
    runs = max(min(_TRIED // upto, _TRIED_SLOWLY // slow, _MOST_RUNS), _LEAST_RUNS)
    return upto, runs


def _cost_after(decisions: PriceDecisions, here: _Run) -> float:
    """The expected cost of the decisions after the simulated part of a certified window."""
    left = decisions.spec.horizon - here.t
    if not decisions.rule.anytime:
        return decisions.expected_from(here.t, here.at)
    if float(decisions.weights.sum()) * decisions.spec.horizon < OPENING:
        return here.paid / here.t * left if here.t else 0.0
    return float(lasting_cost(decisions.tables)) * left
