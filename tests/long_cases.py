"""Properties, input models and adversaries that the tests of long policies share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray
from strategies import GROUPS, Request

import fairshield as fs

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
SKEWED = fs.InputModel.from_table(
    {
        ("a", True, 0.25): 0.5, ("a", False, 1.0): 0.3,
        ("b", True, 1.0): 0.1, ("b", False, 0.25): 0.1,
    },
    outcomes={"a": 0.9, "b": 0.5},
)  # fmt: skip
BIASED = fs.InputModel.from_table(
    {(g, r, 1.0): 0.4 if r == (g == "a") else 0.1 for g, r in product(GROUPS, (False, True))}
)
THREE_LEVELS = fs.InputModel.from_table(
    {
        (g, r, c): (0.6 if g == "a" else 0.4) * (0.7 if r == (g == "a") else 0.3) / 3
        for g, r, c in product(GROUPS, (False, True), (0.25, 1.0, 2.5))
    }
)


def long_policy(
    prop: fs.Property, inputs: fs.InputModel | fs.InputSchedule, horizon: int, **options: object
) -> fs.Policy:
    """A long policy, whatever the horizon."""
    policy = fs.synthesize(prop, inputs, horizon=horizon, method="long", **options)
    assert policy.method == "long"
    return policy


def counts_of(n_a: int, k_a: int, n_b: int, k_b: int) -> fs.Counts:
    return fs.Counts({"a": (n_a, k_a), "b": (n_b, k_b)})


# Adversaries that see the shield ------------------------------------------------------------

Adversary = Callable[[fs.Shield], Request]


def request(shield: fs.Shield, group: int, proposed: bool, counted: bool = True) -> Request:
    """``counted``: the outcome is the one with which people count for the property."""
    relevant = shield.policy.prop.relevant_outcome is not False
    return Request(GROUPS[group], proposed, 1.0, relevant == counted)


def outward(shield: fs.Shield, group: int) -> bool:
    """The proposal that would drive the rates apart."""
    n_a, k_a, n_b, k_b = _with_start(shield)
    higher = k_a * max(n_b, 1) - k_b * max(n_a, 1)
    return higher <= 0 if group else higher >= 0


def _with_start(shield: fs.Shield) -> tuple[int, ...]:
    start = shield.policy.start.numbers()
    return tuple(x + y for x, y in zip(shield.gained, start, strict=True))


def late(decisions: int, first: int = 0) -> Adversary:
    """One group alone, all with the same proposal; at the end the other, all with the opposite."""

    def adversary(shield: fs.Shield) -> Request:
        last = shield.remaining <= decisions
        return request(shield, first ^ last, (first == 0) ^ last)

    return adversary


def alternate(shield: fs.Shield) -> Request:
    """Groups in turn: a always proposed, b never, and some people who do not count."""
    group = shield.decided % 2
    return request(shield, group, group == 0, shield.decided % 7 != 0)


def blocks(shield: fs.Shield) -> Request:
    """Arrivals in blocks that grow, a always proposed and b never."""
    group = shield.decided.bit_length() % 2
    return request(shield, group, group == 0)


def rare(shield: fs.Shield) -> Request:
    """Every twentieth person is of the second group; all are proposed outward."""
    group = int(shield.decided % 20 == 19)
    return request(shield, group, outward(shield, group))


def widen(shield: fs.Shield) -> Request:
    """The smaller group, proposed so that the gap would widen."""
    n_a, _, n_b, _ = shield.gained
    group = int(n_b < n_a)
    return request(shield, group, outward(shield, group))


def turn_tables(shield: fs.Shield) -> Request:
    """Proposals that need no correction; in the last tenth all of a, and none of b."""
    group = shield.decided % 2
    turned = shield.remaining * 10 <= shield.policy.horizon
    return request(shield, group, group == 0 if turned else shield.decided % 4 < 2)


def corner(shield: fs.Shield) -> Request:
    """The group for which fewer decisions are certified, proposed the one that is not."""
    look_up, t, at = shield.policy.decisions.look_up, shield.decided, shield.gained
    can = [look_up(t, at, group)[:2] for group in (0, 1)]
    group = 0 if sum(can[0]) <= sum(can[1]) else 1
    can_reject, can_accept = can[group]
    forced = can_reject != can_accept
    return request(shield, group, can_reject if forced else outward(shield, group))


def silent(shield: fs.Shield) -> Request:
    """:func:`corner`, and only those count who widen the gap; towards the end nobody does."""
    asked = corner(shield)
    group = GROUPS.index(asked.group)
    counted = asked.proposed == outward(shield, group) and shield.remaining > 5
    return request(shield, group, asked.proposed, counted)


SIMPLE = [
    late(1), late(2), late(10), late(1, first=1), late(10, first=1), alternate, blocks, rare,
    turn_tables,
]  # fmt: skip
ADAPTIVE = [widen, corner, silent]
ADVERSARIES = [*SIMPLE, *ADAPTIVE]


def play(shield: fs.Shield, adversary: Adversary) -> float:
    """Decide a whole window, and check every decision; returns the cost paid."""
    policy, paid = shield.policy, 0.0
    while shield.remaining:
        asked = adversary(shield)
        decision = shield.decide(asked.group, proposed=asked.proposed, cost=asked.cost)
        if policy.labelled:
            shield.observe(decision, outcome=asked.outcome)
        assert decision.guaranteed, decision
        if shield.decided in policy.due:
            assert policy.prop.holds(shield.counts), (shield.decided, shield.counts)
        paid += decision.paid
    return paid


# Whole windows ------------------------------------------------------------------------------

Flags = NDArray[np.bool_]


def hard_arrivals(horizon: int, rng: np.random.Generator) -> list[tuple[Flags, Flags]]:
    """Groups and proposals of windows that are hard to end fair."""
    place = np.arange(horizon)
    chance = rng.random(horizon)
    reversed_late = (place % 2 == 1) ^ (place >= horizon - horizon // 10)
    return [
        (place >= horizon - 1, place < horizon - 1),
        (place >= horizon - 10, place < horizon - 10),
        (place < horizon - 2, place >= horizon - 2),
        (place % 2 == 1, place % 2 == 0),
        (place % 2 == 1, reversed_late),
        (place >= horizon // 2, place < horizon // 2),
        (chance < 1e-3, chance >= 1e-3),
        (chance < 0.5, chance >= 0.4),
    ]
