"""A shield costs no more than it must, and says beforehand what it will cost."""

from __future__ import annotations

import math

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    Spec,
    code_at,
    contested_models,
    contested_specs,
    input_models,
    labelled_properties,
    plain_properties,
    positions,
    schedules,
    specs,
)

import fairshield as fs
from fairshield.runtime.evaluate import evaluate
from fairshield.synthesis import cost_to_go
from fairshield.synthesis.reference import Position, cost_to_go_of_traces
from fairshield.synthesis.reference import cost_to_go as reference_cost_to_go

TOLERANCE = {"rel": 1e-9, "abs": 1e-9}
"""Ties within 1e-9 of the largest cost keep the proposal, so that much is not sought."""


def cost_or_infinity(spec: Spec, **options: object) -> float:
    try:
        return spec.synthesize(**options).expected_cost
    except fs.InfeasibleError:
        return math.inf


# Against exhaustive search ------------------------------------------------------------------


@settings(max_examples=examples(50))
@given(
    specs(plain_properties, horizons=(1, 4), max_levels=1)
    | specs(plain_properties, horizons=(1, 3), max_levels=2)
    | specs(labelled_properties, horizons=(1, 3), max_levels=1)
    | specs(labelled_properties, horizons=(1, 2), max_levels=2)
)
def test_expected_cost_is_the_least_over_all_decisions_on_all_traces(spec: Spec) -> None:
    least = cost_to_go_of_traces(spec.problem())
    assert cost_or_infinity(spec) == pytest.approx(least, rel=1e-12, abs=1e-25)
    assert cost_or_infinity(spec, backend="reference") == pytest.approx(least, rel=1e-12, abs=1e-25)


# Against itself -----------------------------------------------------------------------------


@given(specs(max_levels=3) | contested_specs())
def test_the_decisions_cost_what_was_promised(spec: Spec) -> None:
    policy = spec.feasible_policy()
    assert evaluate(policy).expected_cost == pytest.approx(policy.expected_cost, **TOLERANCE)


@given(specs(horizons=(1, 4)) | contested_specs(), st.data())
def test_a_wrong_input_model_costs_money_and_no_less_than_the_best(
    spec: Spec, data: st.DataObject
) -> None:
    truth = data.draw(input_models(max_levels=3) | schedules() | contested_models())
    policy = spec.feasible_policy()
    best = spec._replace(inputs=truth).synthesize()
    assert evaluate(policy, truth).expected_cost >= best.expected_cost - 1e-9


@given(specs(scheduled=False), st.data())
def test_a_schedule_of_one_model_is_that_model(spec: Spec, data: st.DataObject) -> None:
    steps = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    plain = spec.feasible_policy()
    parts = fs.InputSchedule([(spec.inputs, n) for n in steps])
    scheduled = spec._replace(inputs=parts).synthesize()
    assert scheduled.expected_cost == pytest.approx(plain.expected_cost, rel=1e-12)
    for s in positions(spec.horizon - 1, plain.labelled):
        assert plain.decisions.feasible(*s) == scheduled.decisions.feasible(*s)
        for group in (0, 1):
            assert code_at(plain.decisions, *s, group) == code_at(scheduled.decisions, *s, group)


# From the middle of a window ----------------------------------------------------------------


def counts_at(spec: Spec, s: Position) -> fs.Counts:
    return spec.start.plus(s.at)


@given(specs(horizons=(2, 4)))
def test_cost_to_go_of_every_state_is_that_of_the_recursion(spec: Spec) -> None:
    policy = spec.feasible_policy()
    v = reference_cost_to_go(spec.problem())
    for s in positions(spec.horizon, policy.labelled):
        assert cost_to_go(policy, counts_at(spec, s), s.t) == pytest.approx(
            v(s), rel=1e-12, abs=1e-25
        )


@given(
    specs(horizons=(2, 5), scheduled=False, checkpointed=False)
    | specs(horizons=(6, 8), checkpointed=False, models=contested_models()),
    st.data(),
)
def test_the_rest_of_a_window_is_a_window_that_starts_from_its_counters(
    spec: Spec, data: st.DataObject
) -> None:
    policy = spec.feasible_policy()
    inside = [s for s in positions(spec.horizon - 1, policy.labelled) if s.t]
    s = data.draw(st.sampled_from(inside))
    counts, left = counts_at(spec, s), spec.horizon - s.t
    rest = spec._replace(start=counts, horizon=left)
    if not policy.guarantees(counts, s.t):
        with pytest.raises(fs.InfeasibleError):
            rest.synthesize()
        return
    rest_policy = rest.synthesize()
    assert cost_to_go(policy, counts, s.t) == pytest.approx(rest_policy.expected_cost, rel=1e-12)
    for later in positions(left - 1, policy.labelled):
        at = tuple(x + y for x, y in zip(s.at, later.at, strict=True))
        whole = Position(s.t + later.t, at)
        assert policy.decisions.feasible(*whole) == rest_policy.decisions.feasible(*later)
        for group in (0, 1):
            assert code_at(policy.decisions, *whole, group) == code_at(
                rest_policy.decisions, *later, group
            )
