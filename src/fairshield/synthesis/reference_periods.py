r"""The paper's optimal periodic shield by its definition: a search over whole shields.

A shield decides for every trace and every request.  It is fair if the property holds at every
checkpoint and at the horizon, on every trace that it leads to, and its worst cost is

.. math::
    \sup_\tau \; \mathbb E[\text{cost from } \tau \text{ to the next checkpoint} \mid \tau],

over all traces :math:`\tau` from one checkpoint (or the start) that it leads to.  Decisions after
one trace say nothing about those after another, so that the search need not list all shields: of
the ways to decide the rest of a period it keeps those that no other beats both in expected cost and
in the worst cost of later periods.  It uses traces, the input model and the property themselves, no
counters, no ceilings and no values of states, in exponential time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import NamedTuple

from fairshield.synthesis.problem import Problem
from fairshield.synthesis.reference import Position, is_fair, start_of

Trace = tuple[tuple[int, bool, bool | None], ...]
"""Group, final decision and outcome of everybody so far."""


class Way(NamedTuple):
    """Way is a way to decide the rest of a period: what it costs, and later periods at worst."""

    cost: float
    later: float


class Request(NamedTuple):
    """Request is a request that can come, with its probability and those of its outcomes."""

    group: int
    proposed: bool
    cost: float
    chance: float
    outcomes: tuple[tuple[bool | None, float], ...]


def least_worst_cost(problem: Problem, trace: Trace = ()) -> float:
    """The least worst cost of a period, of those after ``trace``; infinite if none is fair."""
    return min((max(way) for way in _ways(problem, trace, begun=len(trace))), default=math.inf)


def _ways(problem: Problem, trace: Trace, begun: int) -> list[Way]:
    """The ways to decide the period that began after ``begun`` decisions, from ``trace`` on."""
    t = len(trace)
    if not is_fair(problem, _counted(problem, trace)):
        return []
    if t == problem.horizon:
        return [Way(0.0, 0.0)]
    if t in problem.spec.checkpoints and t > begun:
        worst = least_worst_cost(problem, trace)
        return [] if worst == math.inf else [Way(0.0, worst)]
    ways = [Way(0.0, 0.0)]
    for request in _requests(problem, t):
        # Whatever its probability, each request and each outcome can come.
        decided = []
        for accepted in (False, True):
            after = [Way(request.cost * (accepted != request.proposed), 0.0)]
            for outcome, chance in request.outcomes:
                then = _ways(problem, (*trace, (request.group, accepted, outcome)), begun)
                after = _both(after, then, chance)
            decided += after
        ways = _both(ways, _unbeaten(decided), request.chance)
    return ways


def _both(ways: list[Way], more: list[Way], chance: float) -> list[Way]:
    """Ways to decide two cases; the second has this probability."""
    return _unbeaten(
        Way(one.cost + chance * two.cost, max(one.later, two.later))
        for one, two in product(ways, more)
    )


def _unbeaten(ways: Iterable[Way]) -> list[Way]:
    """The ways that no other beats in both respects."""
    kept: list[Way] = []
    for way in sorted(ways):
        if not kept or way.later < kept[-1].later:
            kept.append(way)
    return kept


def _requests(problem: Problem, t: int) -> Iterator[Request]:
    table, relevant = problem.table, problem.spec.prop.relevant_outcome
    i = t if len(table.probs) > 1 else 0
    for group, r, level in product(
        range(len(problem.start)), (False, True), range(len(table.levels))
    ):
        outcomes: tuple[tuple[bool | None, float], ...] = ((None, 1.0),)
        if relevant is not None:
            assert table.outcomes is not None
            positive = float(table.outcomes[i, group, int(r), level])
            outcomes = ((True, positive), (False, 1.0 - positive))
        chance = float(table.probs[i, group, int(r), level])
        yield Request(group, r, float(table.levels[level]), chance, outcomes)


def _counted(problem: Problem, trace: Trace) -> Position:
    relevant, s = problem.spec.prop.relevant_outcome, start_of(problem)
    for group, accepted, outcome in trace:
        s = s.after(group, accepted) if outcome == relevant else s.unchanged()
    return s
