"""Exhaustive search for violations: all sequences of a few short periods.

At the end of a period a run keeps nothing but its counters.  So the search goes over the counters
at ends of periods, and over the counters within one period at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import fairshield as fs
from fairshield.periodic.conditions import Counters
from fairshield.periodic.cumulative import NOTHING, counters
from fairshield.periodic.policy import PeriodicPolicy


class Move(NamedTuple):
    """A request and its answer; ``outcome`` is ``None`` where it does not matter."""

    group: str
    proposed: bool
    accepted: bool
    outcome: bool | None = None


Line = tuple[Move, ...]


class End(NamedTuple):
    """Where a run stands at the end of a period: did every period meet the theorem's condition?"""

    counts: fs.Counts
    met: bool


def violation(policy: PeriodicPolicy, periods: int, *, met: bool | None = None) -> Line | None:
    """A shortest sequence after which a period ends unfair, or ``None``.

    ``met``: only sequences in which every period meets the condition (or not every one does).
    """
    for ends in play(policy, periods):
        for end, line in ends.items():
            if not policy.prop.holds(end.counts) and met in (None, end.met):
                return line
    return None


def play(policy: PeriodicPolicy, periods: int) -> Iterator[dict[End, Line]]:
    """All ends of the first period, of the second, and so on, each with a sequence to it."""
    here: dict[End, Line] = {End(policy.start, policy.admits(policy.start)): ()}
    for completed in range(periods):
        after: dict[End, Line] = {}
        for (start, met), line in here.items():
            for counts, more in period_ends(policy, start, completed).items():
                end = End(counts, met and meets(policy, start, counts))
                after.setdefault(end, line + more)
        yield after
        here = after


def meets(policy: PeriodicPolicy, start: fs.Counts, end: fs.Counts) -> bool:
    """Whether a period from ``start`` to ``end`` meets the condition of the theorem."""
    if policy.condition is None:
        return True
    if policy.condition.known_at_start:
        return bool(policy.condition.certain(counters(start), NOTHING, policy.period))
    gained = Counters(*(x - y for x, y in zip(counters(end), counters(start), strict=True)))
    return bool(policy.condition.certain(counters(start), gained, 0))


def period_ends(policy: PeriodicPolicy, start: fs.Counts, completed: int) -> dict[fs.Counts, Line]:
    """All counters that one period from ``start`` can end with."""
    window = policy.window(start, completed)
    outcomes = (False, True) if policy.labelled else (None,)
    requests = list(product(policy.groups, (False, True), outcomes))
    layer: dict[fs.State, Line] = {fs.State(window.decided, window.counts): ()}
    for _ in range(policy.period):
        after: dict[fs.State, Line] = {}
        for state, line in layer.items():
            for group, proposed, outcome in requests:
                then, decision = fs.step(
                    window.policy, state, group, proposed=proposed, outcome=outcome
                )
                move = Move(group, proposed, decision.accepted, outcome)
                after.setdefault(then, (*line, move))
        layer = after
    return {_moved(start, window.counts, end.counts): line for end, line in layer.items()}


def _moved(start: fs.Counts, origin: fs.Counts, end: fs.Counts) -> fs.Counts:
    """``end``, counted from ``start`` instead of from ``origin``."""
    return fs.Counts(
        {
            g: (n.seen + end[g].seen - origin[g].seen, n.accepted + end[g].accepted
                - origin[g].accepted)
            for g, n in start.items()
        }
    )  # fmt: skip


def replay(shield: fs.Run, line: Line) -> list[bool]:
    """The decisions of a shield on the requests of a sequence."""
    answers = []
    for move in line:
        decision = shield.decide(move.group, proposed=move.proposed)
        if move.outcome is not None:
            shield.observe(decision, outcome=move.outcome)
        answers.append(decision.accepted)
    return answers
