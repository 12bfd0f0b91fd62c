"""Games against long policies: whoever arrives in whatever order, every window ends fair."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from long_cases import (
    ADAPTIVE,
    ADVERSARIES,
    BIASED,
    EVEN,
    SKEWED,
    THREE_LEVELS,
    Adversary,
    alternate,
    blocks,
    corner,
    counts_of,
    hard_arrivals,
    late,
    long_policy,
    play,
    rare,
    silent,
    widen,
)
from strategies import GROUPS, run, streams, with_decisions

import fairshield as fs
from fairshield.spec import NoRequirement

PLAIN = [
    fs.DemographicParity("0.05"),
    fs.DemographicParity("0.2", min_support=30),
    fs.DemographicParity("0.1", undefined="rate-0"),
    fs.DisparateImpact("0.8"),
    fs.DisparateImpact("1.1", two_sided=False),
    fs.BoundedRates("0.4", "0.6"),
]
LABELLED = [
    fs.EqualOpportunity("0.1"),
    fs.PredictiveEquality("0.2", min_support=6),
    fs.BoundedRates("0.3", "0.5", outcome=True),
]
every_kind = pytest.mark.parametrize("prop", [*PLAIN, *LABELLED], ids=str)


@cache
def policy_for(prop: fs.Property, horizon: int) -> fs.Policy:
    return long_policy(prop, SKEWED if prop in PLAIN else EVEN, horizon)


# Long windows -------------------------------------------------------------------------------


@every_kind
def test_no_adversary_wins_over_a_thousand_decisions(prop: fs.Property) -> None:
    for adversary in ADVERSARIES:
        play(fs.Shield(policy_for(prop, 1000)), adversary)


@pytest.mark.parametrize(
    ("prop", "adversary"),
    [(PLAIN[0], widen), (PLAIN[0], corner), (PLAIN[3], corner), (LABELLED[0], silent)],
    ids=lambda of: getattr(of, "__name__", str(of)),
)
def test_no_adversary_wins_over_ten_thousand(prop: fs.Property, adversary: Adversary) -> None:
    play(fs.Shield(policy_for(prop, 10_000)), adversary)


@every_kind
def test_no_order_of_arrivals_wins_over_a_hundred_thousand(prop: fs.Property) -> None:
    policy, rng = policy_for(prop, 100_000), np.random.default_rng(0)
    for second, proposed in hard_arrivals(policy.horizon, rng):
        assert_ends_fair(policy, second, proposed, rng)


def test_no_order_of_arrivals_wins_over_a_million() -> None:
    policy, rng = policy_for(PLAIN[0], 10**6), np.random.default_rng(0)
    for second, proposed in hard_arrivals(policy.horizon, rng)[:5]:
        assert_ends_fair(policy, second, proposed, rng)


def assert_ends_fair(
    policy: fs.Policy, second: np.ndarray, proposed: np.ndarray, rng: np.random.Generator
) -> None:
    """Decided in two parts, with costs and outcomes by chance."""
    shield, cut = fs.Shield(policy), policy.horizon // 3
    costs = rng.choice([0.25, 1.0, 1000.0], len(second))
    outcomes = rng.random(len(second)) < 0.4 if policy.labelled else None
    groups = np.array(GROUPS)[second.view(np.int8)]
    for part in (slice(0, cut), slice(cut, None)):
        of = None if outcomes is None else outcomes[part]
        shield.decide_many(groups[part], proposed[part], costs[part], of)
        assert shield.guaranteed
    assert not shield.remaining
    assert policy.prop.holds(shield.counts)


# The switch to the endgame ------------------------------------------------------------------

SWITCHES = [*range(21), 30, 47]
"""Sizes of the endgame in a window of 47."""


@pytest.mark.parametrize(
    "prop",
    [
        fs.DemographicParity("0.2"),
        fs.DemographicParity("0.25", min_support=6),
        fs.DemographicParity("0.3", undefined="rate-0"),
        fs.DisparateImpact("2/3"),
        fs.DisparateImpact("0.9", two_sided=False, min_support=2),
        fs.BoundedRates("0.3", "0.6"),
    ],
    ids=str,
)
def test_wherever_the_endgame_begins_no_adversary_wins(prop: fs.Property) -> None:
    policy = long_policy(prop, SKEWED, 47)
    for endgame in SWITCHES:
        here = with_decisions(policy, endgame=endgame)
        for adversary in ADVERSARIES:
            play(fs.Shield(here), adversary)


@pytest.mark.parametrize("prop", [fs.EqualOpportunity("0.2"), LABELLED[2]], ids=str)
def test_nor_where_outcomes_count(prop: fs.Property) -> None:
    policy = long_policy(prop, SKEWED, 40)
    for endgame in (*range(12), 20, 40):
        here = with_decisions(policy, endgame=endgame)
        for adversary in (late(2), late(10, first=1), rare, *ADAPTIVE):
            play(fs.Shield(here), adversary)


def reachable(policy: fs.Policy) -> list[set[fs.State]]:
    """States after each number of decisions, over all requests and outcomes."""
    outcomes = (False, True) if policy.labelled else (None,)
    arrivals = list(product(policy.groups, (False, True), outcomes))
    layers = [{fs.State.initial(policy)}]
    for _ in range(policy.horizon):
        layers.append(
            {
                fs.step(policy, state, g, proposed=r, outcome=z)[0]
                for state in layers[-1]
                for g, r, z in arrivals
            }
        )
    return layers


@pytest.mark.parametrize(
    ("prop", "horizon"),
    [
        (fs.DemographicParity("0.2"), 10),
        (fs.DemographicParity("0.3"), 9),
        (fs.DemographicParity("1/2"), 8),
        (fs.DemographicParity("1/3", min_support=2), 9),
        (fs.DemographicParity("0.4", undefined="rate-0"), 8),
        (fs.EqualOpportunity("0.4"), 6),
        (fs.DisparateImpact("1/2"), 9),
        (fs.DisparateImpact("3/4", two_sided=False), 8),
        (fs.BoundedRates("0.2", "0.7"), 9),
    ],
    ids=str,
)
def test_all_sequences_of_a_short_window_end_fair(prop: fs.Property, horizon: int) -> None:
    policy = long_policy(prop, SKEWED, horizon)
    for endgame in range(horizon + 1):
        for state in reachable(with_decisions(policy, endgame=endgame))[-1]:
            assert prop.holds(state.counts), (endgame, state)


# Checkpoints --------------------------------------------------------------------------------

POINTS = [(40,), (20, 21, 23, 40), (1, 2, 3), (30, 59)]


@pytest.mark.parametrize("points", POINTS, ids=str)
@pytest.mark.parametrize(
    "prop",
    [
        fs.DemographicParity("0.2"),
        fs.DemographicParity("0.2", min_support=12),
        fs.DemographicParity("0.3", undefined="rate-0"),
        fs.EqualOpportunity("0.3", min_support=4),
    ],
    ids=str,
)
def test_every_checkpoint_is_met(prop: fs.Property, points: tuple[int, ...]) -> None:
    policy = long_policy(prop, SKEWED, 60, checkpoints=points)
    for endgame in (0, 4, 30):
        here = with_decisions(policy, endgame=endgame)
        for adversary in (late(2), late(10), blocks, corner, silent):
            play(fs.Shield(here), adversary)


@pytest.mark.parametrize("endgame", [0, 5, 10])
def test_a_group_too_small_to_bind_at_a_checkpoint_may_bind_at_the_next(endgame: int) -> None:
    """Eleven people of a, all proposed for rejection, before a check from twelve people on."""
    prop = fs.DemographicParity("0.2", min_support=12)
    policy = long_policy(prop, EVEN, 104, checkpoints=(100,), endgame=endgame)
    arrivals = iter([("b", True)] * 89 + [("a", False)] * 11 + [("a", True)] * 4)
    shield = fs.Shield(policy)
    for group, proposed in arrivals:
        assert shield.decide(group, proposed=proposed).guaranteed
    assert prop.holds(shield.counts)


def test_all_sequences_are_fair_at_all_checkpoints() -> None:
    prop = fs.DemographicParity("0.3", min_support=2)
    policy = long_policy(prop, SKEWED, 9, checkpoints=(4, 6))
    for endgame in (0, 1, 2, 4, 9):
        layers = reachable(with_decisions(policy, endgame=endgame))
        for t in (4, 6, 9):
            assert all(prop.holds(state.counts) for state in layers[t]), (endgame, t)


def test_many_checkpoints_are_met_in_a_batch() -> None:
    prop, rng = fs.DemographicParity("0.05"), np.random.default_rng(0)
    policy = long_policy(prop, EVEN, 50_000, checkpoints=range(5000, 50_000, 5000))
    for second, proposed in hard_arrivals(policy.horizon, rng):
        shield = fs.Shield(policy)
        groups = np.array(GROUPS)[second.view(np.int8)]
        for begin in range(0, policy.horizon, 5000):
            part = slice(begin, begin + 5000)
            shield.decide_many(groups[part], proposed[part])
            assert prop.holds(shield.counts), shield.decided


# History ------------------------------------------------------------------------------------

STARTS = [
    (fs.DemographicParity("0.1"), counts_of(500, 300, 2, 1)),
    (fs.DemographicParity("0.1"), counts_of(0, 0, 10**6, 10**6)),
    (fs.DemographicParity("0.1"), counts_of(3, 3, 3, 0)),
    (fs.DemographicParity("0.05"), counts_of(1000, 900, 1000, 800)),
    (fs.EqualOpportunity("0.1"), counts_of(400, 200, 300, 170)),
    (fs.DisparateImpact("0.8"), counts_of(400, 200, 300, 100)),
    (fs.BoundedRates("0.4", "0.6"), counts_of(40, 20, 3, 0)),
]


@pytest.mark.parametrize(("prop", "start"), STARTS, ids=str)
def test_windows_with_a_history_end_fair(prop: fs.Property, start: fs.Counts) -> None:
    policy = long_policy(prop, SKEWED, 1000, start=start)
    for adversary in (late(1), late(10, first=1), alternate, *ADAPTIVE):
        play(fs.Shield(policy), adversary)


# Input models that are wrong ----------------------------------------------------------------


def lopsided(share: float, chance: float, cost: float) -> fs.InputModel:
    """Nearly everybody of one group, and nearly all proposals alike."""
    return fs.InputModel.from_table(
        {
            (g, r, cost): (share if g == "a" else 1 - share) * (chance if r else 1 - chance)
            for g, r in product(GROUPS, (False, True))
        },
        outcomes={"a": 0.01, "b": 0.99},
    )


WRONG = {
    "hardly anybody of a": lopsided(0.01, 0.9, 1.0),
    "hardly anybody of b": lopsided(0.99, 0.1, 1.0),
    "impossible": lopsided(1.0, 0.0, 1.0),
    "all too cheap": lopsided(0.5, 0.5, 1e-3),
    "all too dear": lopsided(0.5, 0.5, 1e3),
}


@pytest.mark.parametrize("inputs", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("prop", [*PLAIN[:4], PLAIN[5], LABELLED[0]], ids=str)
def test_a_wrong_input_model_never_costs_fairness(prop: fs.Property, inputs: fs.InputModel) -> None:
    horizon = 2000 if prop in PLAIN else 80
    policy, rng = long_policy(prop, inputs, horizon), np.random.default_rng(0)
    for second, proposed in hard_arrivals(policy.horizon, rng)[::3]:
        assert_ends_fair(policy, second, proposed, rng)
    play(fs.Shield(policy), corner)
    play(fs.Shield(policy), widen)


def test_a_wrong_input_model_costs_money() -> None:
    """Proposals are the other way round than expected, on the same windows."""
    turned = fs.InputModel.from_table(
        {(g, r, 1.0): 0.1 if r == (g == "a") else 0.4 for g, r in product(GROUPS, (False, True))}
    )
    costs = []
    for inputs in (BIASED, turned):
        rng, policy, paid = np.random.default_rng(0), long_policy(PLAIN[0], inputs, 1000), 0.0
        for _ in range(20):
            second = rng.random(1000) < 0.5
            proposed = rng.random(1000) < np.where(second, 0.2, 0.8)
            shield = fs.Shield(policy)
            paid += shield.decide_many(np.array(GROUPS)[second.view(np.int8)], proposed).paid.sum()
            assert PLAIN[0].holds(shield.counts)
        costs.append(paid)
    assert costs[0] < costs[1]


# Chance -------------------------------------------------------------------------------------


@settings(max_examples=examples(40))
@given(st.sampled_from([*PLAIN, *LABELLED]), st.integers(0, 12), streams(40))
def test_random_windows_at_any_cost_end_fair(prop: fs.Property, endgame: int, stream: list) -> None:
    """Costs on, between and above all levels."""
    policy = with_decisions(policy_for(prop, 40), endgame=endgame)
    shield = fs.Shield(policy)
    assert all(decision.guaranteed for decision in run(shield, stream))
    assert prop.holds(shield.counts)


def test_several_cost_levels_change_nothing_about_fairness() -> None:
    policy, rng = long_policy(PLAIN[0], THREE_LEVELS, 3000), np.random.default_rng(0)
    for second, proposed in hard_arrivals(policy.horizon, rng):
        assert_ends_fair(policy, second, proposed, rng)
    for adversary in ADVERSARIES:
        play(fs.Shield(policy), adversary)


def test_no_requirement_never_overrules() -> None:
    policy, rng = long_policy(NoRequirement(), SKEWED, 5000), np.random.default_rng(0)
    groups, proposed = rng.choice(GROUPS, 5000), rng.random(5000) < 0.5
    assert not fs.Shield(policy).decide_many(groups, proposed).overruled.any()
