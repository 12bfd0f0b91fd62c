"""Games against periodic shields: all sequences of short periods, adversaries in longer ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from games import Line, replay, violation
from strategies import GROUPS, Request

import fairshield as fs
from fairshield.periodic.dynamic import Dynamic
from fairshield.periodic.exact import ExactPeriodic
from fairshield.periodic.perpetual import Perpetual
from fairshield.periodic.policy import PeriodicPolicy
from fairshield.periodic.static import StaticBounded, StaticFair

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
SKEWED = fs.InputModel.from_table(
    {
        ("a", True, 0.25): 0.5, ("a", False, 1.0): 0.3,
        ("b", True, 1.0): 0.1, ("b", False, 0.25): 0.1,
    },
    outcomes={"a": 0.9, "b": 0.5},
)  # fmt: skip
PERIODS = {2: 3, 3: 3, 4: 2, 5: 2}
"""By the length of a period, how many are searched."""

SHORT = list(product(("1/5", "1/2"), (2, 3)))
INSTANCES = [
    *((fs.DemographicParity(bound), T) for bound, T in product(("1/10", "1/3", "1/2"), PERIODS)),
    *((fs.DemographicParity(bound, min_support=2), T) for bound, T in SHORT),
    *((fs.DemographicParity(bound, undefined="rate-0"), T) for bound, T in SHORT),
    *((fs.EqualOpportunity(bound), T) for bound, T in SHORT),
]


def instance(prop: fs.Property, T: int) -> Any:
    """The largest games are slow: those of five steps, and of three that may count or not."""
    slow = T == 5 or (T == 3 and prop.relevant_outcome is not None)
    return pytest.param(prop, T, id=f"{prop}-{T}", marks=pytest.mark.slow if slow else [])


everywhere = pytest.mark.parametrize(("prop", "T"), [instance(*given) for given in INSTANCES])


# All sequences ------------------------------------------------------------------------------


@everywhere
def test_exact_and_perpetual_shields_are_never_unfair(prop: fs.Property, T: int) -> None:
    m = PERIODS[T]
    assert violation(ExactPeriodic(prop, SKEWED, T, periods=m), m) is None
    assert violation(Perpetual(prop, EVEN, T, lookahead=1), m) is None
    assert violation(Perpetual(prop, SKEWED, T, lookahead=2), m) is None


@everywhere
def test_the_other_shields_are_unfair_only_where_theory_allows(prop: fs.Property, T: int) -> None:
    """Whenever a period ends unfair, one has not met the condition of the theorem."""
    for policy in conditional(prop, T):
        assert violation(policy, PERIODS[T], met=True) is None


def conditional(prop: fs.Property, T: int) -> list[PeriodicPolicy]:
    """The paper's shields."""
    return [
        StaticFair(prop, SKEWED, T),
        StaticBounded(prop, SKEWED, T),
        Dynamic(prop, SKEWED, T),
        Dynamic(prop, SKEWED, T, fallback="inactive"),
    ]


DEFEATS: list[Callable[[], PeriodicPolicy]] = [
    lambda: StaticFair(fs.DemographicParity("1/2"), EVEN, 4),
    lambda: StaticBounded(fs.DemographicParity("1/2"), EVEN, 4),
    lambda: Dynamic(fs.DemographicParity("1/10"), EVEN, 4),
    lambda: Dynamic(fs.DemographicParity("1/2"), EVEN, 4, fallback="inactive"),
    lambda: StaticFair(fs.EqualOpportunity("1/2"), EVEN, 3),
    lambda: Dynamic(fs.EqualOpportunity("2/5"), EVEN, 3),
]


@pytest.mark.parametrize("make", DEFEATS)
def test_a_violation_found_replays_on_a_fresh_shield(make: Callable[[], PeriodicPolicy]) -> None:
    policy = make()
    line = violation(policy, 3)
    assert line is not None
    shield = fs.Run(policy)
    assert replay(shield, line) == [move.accepted for move in line]
    assert not shield.holds()
    assert shield.guarantee.unfair_at == shield.decided == len(line)
    assert not shield.guarantee.held


def test_best_effort_is_unfair_less_often_than_no_effort() -> None:
    """Where the condition does not hold, planning anew may be enough all the same."""
    prop = fs.DemographicParity("1/5")
    assert violation(Dynamic(prop, EVEN, 4), 3) is None
    assert violation(Dynamic(prop, EVEN, 4, fallback="inactive"), 3) is not None


def test_equally_many_people_in_each_period_are_never_a_violation() -> None:
    """The condition for Static-Fair shields, in a search that reaches such runs."""
    policy = StaticFair(fs.DemographicParity("1/2"), EVEN, 4)
    assert violation(policy, 3, met=True) is None
    broken = violation(policy, 3, met=False)
    assert broken is not None
    assert any(unbalanced(broken[i : i + 4]) for i in range(0, len(broken), 4))


def unbalanced(line: Line) -> bool:
    return sum(move.group == "a" for move in line) * 2 != len(line)


# Adversaries --------------------------------------------------------------------------------

Adversary = Callable[[fs.Run], Request]
CHOICES = [Request(g, r, 1.0, z) for g, r, z in product(GROUPS, (False, True), (True, False))]


def starve(shield: fs.Run) -> Request:
    """One group alone until the last step of a period: a proposed, in the next period b not."""
    last, turn = shield.remaining == 1, shield.completed % 2
    return Request(GROUPS[turn ^ last], not turn, 1.0, True)


def alternate(shield: fs.Run) -> Request:
    """Turn about, a always proposed and b never."""
    a = shield.decided % 2 == 0
    return Request("a" if a else "b", a, 1.0, shield.decided % 3 != 0)


def follow_the_bias(shield: fs.Run) -> Request:
    """The smaller group, proposed so that the gap would widen."""
    counts = shield.counts
    rate = {g: n.accepted / max(n.seen, 1) for g, n in counts.items()}
    group = min(GROUPS, key=lambda g: counts[g].seen)
    return Request(group, rate[group] >= max(rate.values()), 1.0, True)


def damage(shield: fs.Run, request: Request, depth: int) -> float:
    """The largest bias that this request and ``depth - 1`` more can lead to."""
    copy = fs.Run(shield.policy, state=shield.state)
    give(copy, request)
    bias = copy.prop.bias_of(copy.counts)
    if depth == 1 or copy.position == 0:
        return bias
    return max(damage(copy, choice, depth - 1) for choice in CHOICES[::2])


def look_one_ahead(shield: fs.Run) -> Request:
    return max(CHOICES[::2], key=lambda request: damage(shield, request, 1))


def look_two_ahead(shield: fs.Run) -> Request:
    return max(CHOICES[::2], key=lambda request: damage(shield, request, 2))


def give(shield: fs.Run, request: Request) -> None:
    decision = shield.decide(request.group, proposed=request.proposed, cost=request.cost)
    if shield.policy.labelled:
        shield.observe(decision, outcome=request.outcome)


SIMPLE = [starve, alternate, follow_the_bias]
LOOKING = [look_one_ahead, look_two_ahead]
LONG = [
    (fs.DemographicParity("0.1"), 20, 5),
    (fs.DemographicParity("0.2", min_support=3), 12, 6),
    (fs.EqualOpportunity("0.25"), 12, 4),
    (fs.PredictiveEquality("0.2", undefined="rate-0"), 10, 4),
]


@pytest.mark.parametrize(("prop", "T", "m"), LONG, ids=str)
@pytest.mark.parametrize("adversary", SIMPLE)
def test_no_adversary_wins_over_many_periods(
    prop: fs.Property, T: int, m: int, adversary: Adversary
) -> None:
    for policy in unconditional(prop, T, m):
        assert_never_unfair(fs.Run(policy), adversary, m)


@pytest.mark.parametrize("adversary", LOOKING)
def test_no_adversary_wins_by_looking_ahead(adversary: Adversary) -> None:
    for policy in unconditional(fs.DemographicParity("0.15"), 10, 4):
        assert_never_unfair(fs.Run(policy), adversary, 4)


def unconditional(prop: fs.Property, T: int, m: int) -> list[PeriodicPolicy]:
    return [ExactPeriodic(prop, SKEWED, T, periods=m), Perpetual(prop, SKEWED, T, lookahead=1)]


def assert_never_unfair(shield: fs.Run, adversary: Adversary, periods: int) -> None:
    for completed in range(periods):
        while shield.completed == completed:
            give(shield, adversary(shield))
        assert shield.holds()
        assert shield.guarantee.guaranteed
    assert shield.guarantee.unfair == 0


@pytest.mark.parametrize("adversary", [*SIMPLE, look_one_ahead])
@pytest.mark.parametrize("prop", [fs.DemographicParity("0.15"), fs.EqualOpportunity("0.3")])
def test_an_adversary_wins_over_the_others_only_by_breaking_the_condition(
    prop: fs.Property, adversary: Adversary
) -> None:
    for policy in conditional(prop, 10):
        shield = fs.Run(policy)
        for completed in range(4):
            while shield.completed == completed:
                give(shield, adversary(shield))
            report = shield.guarantee
            assert shield.holds() or report.broken_at <= shield.decided


def test_starving_a_group_defeats_a_static_fair_shield() -> None:
    shield = fs.StaticFairShield(fs.DemographicParity("0.15"), EVEN, period=10)
    while shield.completed < 4:
        give(shield, starve(shield))
    assert not shield.holds()
