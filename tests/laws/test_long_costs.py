"""Long policies are nearly as cheap as exact ones, and say so in advance."""

from __future__ import annotations

import numpy as np
import pytest
from long_cases import BIASED, SKEWED, THREE_LEVELS, long_policy

import fairshield as fs
from fairshield.analysis.simulate import simulate

PROP = fs.DemographicParity("0.3")


@pytest.mark.parametrize("inputs", [BIASED, THREE_LEVELS], ids=["one level", "three levels"])
def test_the_mean_cost_is_within_a_tenth_of_the_least(inputs: fs.InputModel) -> None:
    """And, as the least is the least, not below it by more than chance."""
    exact = fs.synthesize(PROP, inputs, horizon=120, method="exact")
    policy = long_policy(PROP, inputs, 120, endgame=30)
    seen = simulate(policy, n_windows=600, rng=np.random.default_rng(1))
    assert seen.n_unfair == 0
    assert seen.mean_paid <= 1.1 * exact.expected_cost
    assert seen.mean_paid >= exact.expected_cost - 4 * seen.paid_error


@pytest.mark.parametrize("inputs", [BIASED, THREE_LEVELS], ids=["one level", "three levels"])
def test_the_expected_cost_is_within_a_seventh_of_the_least(inputs: fs.InputModel) -> None:
    exact = fs.synthesize(PROP, inputs, horizon=200, method="exact")
    policy = long_policy(PROP, inputs, 200)
    assert policy.expected_cost == pytest.approx(exact.expected_cost, rel=0.15)


@pytest.mark.parametrize("min_support", [0, 8])
def test_where_outcomes_count_the_mean_cost_is_near_the_least(min_support: int) -> None:
    prop = fs.EqualOpportunity("0.3", min_support=min_support)
    inputs = fs.InputModel(
        BIASED.groups, BIASED.levels, BIASED.probs, np.full(BIASED.probs.shape, 0.6)
    )
    exact = fs.synthesize(prop, inputs, horizon=40, method="exact")
    policy = long_policy(prop, inputs, 40, endgame=12)
    seen = simulate(policy, n_windows=400, rng=np.random.default_rng(1))
    assert seen.n_unfair == 0
    assert seen.mean_paid <= 1.05 * exact.expected_cost + 4 * seen.paid_error
    assert seen.mean_paid >= exact.expected_cost - 4 * seen.paid_error


def test_an_endgame_as_long_as_the_window_costs_the_least() -> None:
    exact = fs.synthesize(PROP, THREE_LEVELS, horizon=30, method="exact")
    policy = long_policy(PROP, THREE_LEVELS, 30, endgame=30)
    ours, theirs = (
        simulate(made, n_windows=50, rng=np.random.default_rng(0)) for made in (policy, exact)
    )
    assert np.array_equal(ours.paid, theirs.paid)


def test_a_larger_cost_of_everything_is_that_much_larger() -> None:
    table = {
        (g, r, 10 * c): float(SKEWED.probs[i, int(r), j])
        for i, g in enumerate(SKEWED.groups)
        for r in (False, True)
        for j, c in enumerate(SKEWED.levels)
    }
    once = long_policy(PROP, SKEWED, 5000)
    dear = long_policy(PROP, fs.InputModel.from_table(table), 5000)
    assert dear.expected_cost == pytest.approx(10 * once.expected_cost)
