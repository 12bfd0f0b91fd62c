"""How probable it is that enough people of both groups come: against enumeration and counting."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import input_models

import fairshield as fs
from fairshield.inputs import Inputs
from fairshield.inputs.arrivals import chance_of_both, chance_of_equal
from fairshield.periodic.conditions import (
    Balanced,
    Condition,
    Counters,
    EnoughHistory,
    EqualDenominators,
)
from fairshield.periodic.cumulative import NOTHING
from fairshield.periodic.runs import Streams, unshielded
from fairshield.periodic.static import StaticBounded, StaticFair

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
KINDS = (fs.DemographicParity, fs.EqualOpportunity, fs.PredictiveEquality)


def by_enumeration(condition: Condition, prop: fs.Property, inputs: Inputs, period: int) -> float:
    """The definition: the probabilities of all sequences of people that meet the condition."""
    table = inputs.table(period)
    relevant = table.relevance(prop.relevant_outcome)
    counted, kinds = table.probs * relevant, ("a", "b", "nobody")
    total = 0.0
    for people in product(kinds, repeat=period):
        chance = 1.0
        for t, who in enumerate(people):
            step = t if len(counted) > 1 else 0
            shares = counted[step].sum(axis=(1, 2))
            others = float((table.probs * (1.0 - relevant))[step].sum())
            chance *= {"a": shares[0], "b": shares[1], "nobody": others}[who]
        gained = Counters(people.count("a"), 0, people.count("b"), 0)
        if condition.certain(NOTHING, gained, 0):
            total += chance
    return total


@st.composite
def expectations(draw: st.DrawFn) -> Inputs:
    """Models and schedules of them."""
    models = draw(st.lists(input_models(), min_size=1, max_size=3))
    if len(models) == 1:
        return models[0]
    return fs.InputSchedule([(model, draw(st.integers(1, 3))) for model in models])


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(KINDS), expectations(), st.integers(1, 6), st.integers(0, 3), st.integers(1, 4)
)
def test_the_probability_is_that_of_all_sequences_which_meet_the_condition(
    kind: Any, inputs: Inputs, period: int, least: int, periods: int
) -> None:
    prop = kind("0.1", min_support=least)
    for condition in (EqualDenominators(prop), Balanced(least, prop.relevant_outcome)):
        expected = by_enumeration(condition, prop, inputs, period)
        found = condition.probability(inputs, period, periods)
        assert found == pytest.approx(expected**periods, rel=1e-9, abs=1e-15)


@given(st.integers(1, 80), st.integers(1, 20), st.fractions("1/20", "19/20", max_denominator=20))
def test_of_everybody_it_is_the_binomial_sum_of_the_paper(
    period: int, least: int, p: Fraction
) -> None:
    inputs = fs.InputModel.agnostic({"a": float(p), "b": float(1 - p)})
    exact = sum(
        math.comb(period, k) * p**k * (1 - p) ** (period - k)
        for k in range(least, period - least + 1)
    )
    assert chance_of_both(inputs, None, period, least) == pytest.approx(float(exact), rel=1e-12)
    half = period // 2
    equal = math.comb(period, half) * (p * (1 - p)) ** half if period % 2 == 0 else 0
    assert chance_of_equal(inputs, None, period, 0) == pytest.approx(float(equal), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_simulated_periods_meet_it_as_often_as_computed(kind: Any) -> None:
    inputs = fs.InputModel.agnostic({"a": 0.35, "b": 0.65}, outcomes={"a": 0.6, "b": 0.5})
    prop, period, runs = kind("0.2"), 24, 4000
    streams = Streams.drawn(
        prop, inputs, period=period, periods=2, runs=runs, rng=np.random.default_rng(7)
    )
    for policy in (StaticFair(prop, inputs, period), StaticBounded(prop, inputs, period)):
        n_a, k_a, n_b, k_b = np.moveaxis(unshielded(policy, streams).gained, -1, 0)
        met = policy.condition.certain(NOTHING, Counters(n_a, k_a, n_b, k_b), 0).all(axis=1)
        expected = policy.condition_probability(2)
        assert expected is not None
        # Five standard errors of the share of runs.
        error = 5 * math.sqrt(expected * (1 - expected) / runs) + 1e-3
        assert abs(met.mean() - expected) <= error


def test_a_condition_that_decisions_decide_has_no_probability() -> None:
    prop = fs.DemographicParity("0.1")
    assert EnoughHistory(prop, 20).probability(EVEN, 20) is None
    assert fs.DynamicShield(prop, EVEN, period=20).policy.condition_probability() is None
    assert fs.PerpetualShield(prop, EVEN, period=20).policy.condition_probability() is None


def test_who_never_comes_is_never_enough() -> None:
    alone = fs.InputModel.from_table({("a", 1, 1.0): 1.0, ("b", 1, 1.0): 0.0})
    assert chance_of_both(alone, None, 10, 1) == 0.0
    assert chance_of_equal(alone, None, 10, 0) == 0.0
    assert chance_of_both(alone, None, 10, 0) == 1.0


@pytest.mark.parametrize("periods", [0, -1, 1.5, "2", True])
def test_periods_are_whole(periods: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match="periods must be a whole number"):
        Balanced(2).probability(EVEN, 10, periods)


@pytest.mark.parametrize("period", [0, 1.5, "2"])
def test_a_period_is_whole(period: Any) -> None:
    for condition in (Balanced(2), EqualDenominators(fs.DemographicParity("0.1"))):
        with pytest.raises(fs.InvalidValueError, match="whole number of decisions"):
            condition.probability(EVEN, period)


def test_three_groups_are_refused() -> None:
    three = fs.InputModel.agnostic({"a": 0.5, "b": 0.25, "c": 0.25})
    with pytest.raises(fs.InvalidValueError, match="two groups, and 3 are declared"):
        Balanced(2).probability(three, 10)
