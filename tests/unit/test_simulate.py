"""Simulated windows: the same rule as everywhere, on drawn requests."""

from __future__ import annotations

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from strategies import Spec, specs

import fairshield as fs
from fairshield.analysis.simulate import simulate
from fairshield.base.counts import GroupCount
from fairshield.runtime.evaluate import evaluate


def rng() -> np.random.Generator:
    return np.random.default_rng(20)


@given(specs())
def test_every_simulated_window_is_fair(spec: Spec) -> None:
    policy = spec.feasible_policy()
    result = simulate(policy, n_windows=50, rng=rng(), keep=50)
    assert result.fair.all()
    assert result.n_unfair == 0
    assert (result.bias <= spec.prop.limit + 1e-9).all()
    for path in result.counters:
        a, b = path[-1][:2], path[-1][2:]
        assert spec.prop.holds(fs.Counts({"a": tuple(a.tolist()), "b": tuple(b.tolist())}))


@settings(max_examples=examples(20))
@given(specs(scheduled=True))
def test_mean_costs_approach_the_expectation(spec: Spec) -> None:
    policy = spec.feasible_policy()
    result = simulate(policy, n_windows=4000, rng=rng())
    expected = evaluate(policy)
    # Six standard errors, and a floor for windows that never varied.
    slack = 6 * result.paid_error + 0.02 * (1 + expected.expected_cost)
    assert result.mean_paid == pytest.approx(expected.expected_cost, abs=slack)
    shares = result.overruled_at / result.n_windows
    assert shares == pytest.approx(expected.overruled, abs=6 * 0.5 / np.sqrt(4000))


def test_the_same_seed_gives_the_same_windows(plain_policy: fs.Policy) -> None:
    here, there = (simulate(plain_policy, n_windows=300, rng=rng(), keep=2) for _ in "ab")
    assert np.array_equal(here.paid, there.paid)
    assert np.array_equal(here.counters, there.counters)
    other = simulate(plain_policy, n_windows=300, rng=np.random.default_rng(21))
    assert not np.array_equal(here.paid, other.paid)


def test_windows_are_the_same_however_many_are_kept(labelled_policy: fs.Policy) -> None:
    none = simulate(labelled_policy, n_windows=5000, rng=rng())
    some = simulate(labelled_policy, n_windows=5000, rng=rng(), keep=4500)
    assert np.array_equal(none.paid, some.paid)
    assert some.counters.shape == (4500, 6, 4)
    n_a, k_a, n_b, k_b = some.counters[:, -1].T
    ends = labelled_policy.prop.bias(GroupCount(n_a, k_a), GroupCount(n_b, k_b))
    assert np.array_equal(some.bias[:4500], ends)


def test_the_unshielded_decide_as_proposed(even: fs.InputModel) -> None:
    policy = fs.synthesize(fs.DemographicParity(1), even, horizon=8)
    result = simulate(policy, n_windows=100, rng=rng(), keep=100)
    assert result.overruled.sum() == 0
    assert np.array_equal(result.counters, result.counters_unshielded)


def test_without_the_shield_windows_are_unfair(even: fs.InputModel) -> None:
    policy = fs.synthesize(fs.DemographicParity("0.1"), even, horizon=20)
    result = simulate(policy, n_windows=500, rng=rng())
    assert result.n_unfair_unshielded > 250
    assert result.overruled_share == pytest.approx(result.overruled.sum() / (500 * 20))


def test_what_cannot_be_simulated(plain_policy: fs.Policy) -> None:
    for n in (0, -5):
        with pytest.raises(fs.InvalidValueError, match=f"at least 1, got {n}"):
            simulate(plain_policy, n_windows=n, rng=rng())
    elsewhere = fs.InputModel.agnostic({"x": 0.5, "y": 0.5})
    with pytest.raises(fs.InvalidValueError, match="groups"):
        simulate(plain_policy, n_windows=1, rng=rng(), inputs=elsewhere)
