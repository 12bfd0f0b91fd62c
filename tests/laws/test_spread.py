"""Spreading moves interventions away from the last arrivals, at a price that is told."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import GROUPS, Spec, code_at, contested_specs, positions, run, specs, streams

import fairshield as fs
from fairshield.runtime.evaluate import evaluate
from fairshield.synthesis import cost_to_go
from fairshield.synthesis.reference import Position

spreads = st.sampled_from([1.5, 3.0, 10.0])


@given(specs(), spreads, st.data())
def test_a_spread_shield_is_as_fair_as_any(spec: Spec, spread: float, data: st.DataObject) -> None:
    shield = fs.Shield(spec.feasible_policy(spread=spread))
    for request in data.draw(streams(spec.horizon)):
        run(shield, [request])
        if shield.decided in {*spec.checkpoints, spec.horizon}:
            assert spec.prop.holds(shield.counts)


@given(specs() | contested_specs(), spreads)
def test_spreading_costs_something_or_nothing_but_never_less(spec: Spec, spread: float) -> None:
    plain, policy = spec.feasible_policy(), spec.feasible_policy(spread=spread)
    assert policy.spread == spread
    assert policy.least_cost == pytest.approx(plain.expected_cost, rel=1e-12, abs=1e-25)
    assert policy.expected_cost >= policy.least_cost - 1e-9
    assert policy.expected_cost == pytest.approx(evaluate(policy).expected_cost, rel=1e-12)


# With N_t the expected cost at position t and rising prices p_t, the spread policy has the least
# sum of p_t N_t and the plain one the least sum of N_t; dividing the one by the other, the mean
# price per cost, and with it the mean position, cannot rise.
@given(specs(horizons=(2, 6)) | contested_specs(), spreads)
def test_interventions_move_earlier(spec: Spec, spread: float) -> None:
    plain, policy = spec.feasible_policy(), spec.feasible_policy(spread=spread)
    here, there = (evaluate(made).expected_cost_by_position for made in (plain, policy))
    if here.sum() > 1e-9:
        order = np.arange(spec.horizon)
        assert there @ order / there.sum() <= here @ order / here.sum() + 1e-6


def test_a_spread_policy_is_planned_with_rising_costs() -> None:
    # Whether an accept is overruled depends on the gap between the costs to go, against a price
    # that rises from 1 to 3 over six decisions.
    table = {("a", True, 1.0): 0.4, ("a", False, 1.0): 0.1, ("b", True, 1.0): 0.1}
    inputs = fs.InputModel.from_table({**table, ("b", False, 1.0): 0.4})
    policy = fs.synthesize(fs.DemographicParity("0.3"), inputs, horizon=6, spread=3.0)
    weighed = 0
    for s in positions(5, labelled=False):
        for group in (0, 1):
            accept, reject = (to_go(policy, s.after(group, y)) for y in (True, False))
            if accept < math.inf and reject < math.inf:
                gap = accept - reject
                price = 1.0 + 2.0 * s.t / 5
                code = code_at(policy.decisions, *s, group)
                assert code == (gap > price + 1e-6) - (-gap > price + 1e-6)
                weighed += code != 0
    assert weighed > 0


def to_go(policy: fs.Policy, s: Position) -> float:
    return cost_to_go(policy, policy.start.plus(s.at), s.t)


def test_spreading_does_spread(even: fs.InputModel) -> None:
    burden = []
    for spread in (1.0, 5.0):
        policy = fs.synthesize(fs.DemographicParity("0.1"), even, horizon=60, spread=spread)
        overruled = evaluate(policy).overruled.sum(axis=1)
        burden.append(overruled[-6:].sum() / overruled.sum())
    assert burden[1] < 0.8 * burden[0]


@given(specs())
def test_a_spread_of_one_is_no_spread(spec: Spec) -> None:
    plain, policy = spec.feasible_policy(), spec.feasible_policy(spread=1.0)
    assert plain.expected_cost == plain.least_cost == policy.expected_cost == policy.least_cost
    assert np.array_equal(plain.decisions.rows.cuts, policy.decisions.rows.cuts)
    assert np.array_equal(plain.decisions.rows.dense_codes, policy.decisions.rows.dense_codes)


@pytest.mark.parametrize("spread", [0.5, 0.0, -1.0, float("nan"), float("inf")])
def test_a_spread_below_one_is_refused(spread: float, even: fs.InputModel) -> None:
    with pytest.raises(fs.InvalidValueError, match=r"spread must be .* at least 1.*got"):
        fs.synthesize(fs.DemographicParity("0.1"), even, horizon=3, spread=spread)


def test_a_window_of_one_decision_has_nothing_to_spread(even: fs.InputModel) -> None:
    policy = fs.synthesize(fs.ShareParity(0), even, horizon=1, spread=4.0)
    assert policy.expected_cost == policy.least_cost == 0.5  # every proposed accept is rejected
    assert policy.groups == GROUPS
