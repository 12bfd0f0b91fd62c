"""Expectations are computed, not sampled: they are sums over all windows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Request, Spec, input_models, run, schedules, specs

import fairshield as fs
from fairshield.runtime.evaluate import evaluate


@given(specs(horizons=(1, 3)), st.data())
def test_expectations_are_sums_over_all_windows(spec: Spec, data: st.DataObject) -> None:
    policy = spec.feasible_policy()
    inputs = data.draw(input_models() | schedules())
    table = inputs.table(spec.horizon)
    cost, overruled = np.zeros(spec.horizon), np.zeros((spec.horizon, 2))
    outcomes = (False, True) if policy.labelled else (False,)
    cells = list(product((0, 1), (0, 1), range(len(table.levels)), outcomes))
    for window in product(cells, repeat=spec.horizon):
        chance = 1.0
        for t, (g, r, c, z) in enumerate(window):
            i = t if len(table.probs) > 1 else 0
            chance *= table.probs[i, g, r, c]
            if policy.labelled:
                positive = table.outcomes[i, g, r, c]
                chance *= positive if z else 1.0 - positive
        if chance == 0.0:
            continue
        stream = [Request("ab"[g], bool(r), float(table.levels[c]), z) for g, r, c, z in window]
        for t, decision in enumerate(run(fs.Shield(policy), stream)):
            cost[t] += chance * decision.paid
            overruled[t, window[t][0]] += chance * decision.overruled
    result = evaluate(policy, inputs)
    assert result.expected_cost_by_position == pytest.approx(cost, abs=1e-12)
    assert result.overruled == pytest.approx(overruled, abs=1e-12)
    assert result.expected_cost == pytest.approx(cost.sum(), abs=1e-12)


def test_the_groups_must_be_those_of_the_policy(plain_policy: fs.Policy) -> None:
    for shares in ({"a": 0.5, "c": 0.5}, {"b": 0.5, "a": 0.5}):
        with pytest.raises(fs.InvalidValueError, match=r"not \('a', 'b'\)"):
            evaluate(plain_policy, fs.InputModel.agnostic(shares))


def test_outcomes_are_needed_where_they_count(labelled_policy: fs.Policy) -> None:
    table = {(g, r, 1.0): 0.25 for g in "ab" for r in (False, True)}
    with pytest.raises(fs.InvalidValueError, match="needs an input model with outcomes"):
        evaluate(labelled_policy, fs.InputModel.from_table(table))


def test_interventions_fall_late_unless_spread(even: fs.InputModel) -> None:
    # With equal costs waiting is never worse, so an optimal shield waits.
    policy = fs.synthesize(fs.DemographicParity("0.1"), even, horizon=100)
    overruled = evaluate(policy).overruled.sum(axis=1)
    assert overruled[-10:].sum() / overruled.sum() == pytest.approx(0.74, abs=0.02)


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_progress_rises_to_the_whole_and_changes_nothing(names: str) -> None:
    inputs = fs.InputModel.agnostic(dict.fromkeys(names, 1 / len(names)))
    policy = fs.synthesize(fs.DemographicParity("0.4"), inputs, horizon=9)
    shares: list[float] = []
    told = evaluate(policy, progress=shares.append)
    assert len(shares) == 9
    assert shares == sorted(set(shares))
    assert shares[0] > 0
    assert shares[-1] == 1.0
    assert told.expected_cost == evaluate(policy).expected_cost
    assert told.expected_cost == pytest.approx(policy.expected_cost)
