"""What is asked for moves the cost in the direction everybody expects."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    GROUPS,
    Branching,
    NotThatMany,
    Quota,
    Spec,
    bounds,
    code_at,
    contested_models,
    input_models,
    options,
    positions,
    properties,
    run,
    specs,
    streams,
    symmetric_properties,
)

import fairshield as fs


def cost_or_infinity(spec: Spec) -> float:
    try:
        return spec.synthesize().expected_cost
    except fs.InfeasibleError:
        return math.inf


def not_more(cost: float, other: float) -> bool:
    return cost <= other * (1 + 1e-12) + 1e-25


# Bounds and support -------------------------------------------------------------------------

BOUNDED = [fs.DemographicParity, fs.EqualOpportunity, fs.PredictiveEquality, fs.ShareParity]


@given(st.sampled_from(BOUNDED), st.tuples(bounds, bounds), options, specs())
def test_a_looser_bound_never_costs_more(
    kind: Any, pair: tuple[Fraction, Fraction], given: Any, spec: Spec
) -> None:
    tight, loose = (kind(bound, **given) for bound in sorted(pair))
    costs = [cost_or_infinity(spec._replace(prop=prop)) for prop in (loose, tight)]
    assert not_more(*costs)


@given(st.tuples(bounds, bounds), options, specs())
def test_a_lower_ratio_never_costs_more(
    pair: tuple[Fraction, Fraction], given: Any, spec: Spec
) -> None:
    loose, tight = (fs.DisparateImpact(bound, **given) for bound in sorted(pair))
    assert not_more(*(cost_or_infinity(spec._replace(prop=prop)) for prop in (loose, tight)))


@given(
    st.lists(bounds, min_size=4, max_size=4).map(sorted).filter(lambda b: b[1] < b[2]),
    options,
    specs(),
)
def test_a_wider_interval_of_rates_never_costs_more(
    ends: list[Fraction], given: Any, spec: Spec
) -> None:
    wide = fs.BoundedRates(ends[0], ends[3], **given)
    narrow = fs.BoundedRates(ends[1], ends[2], **given)
    assert not_more(*(cost_or_infinity(spec._replace(prop=prop)) for prop in (wide, narrow)))


def with_support(prop: fs.Property, support: int) -> fs.Property:
    data = {**prop.to_dict(), "min_support": support}
    return type(prop)(**{k: v for k, v in data.items() if k != "kind"})


@given(specs(), st.integers(0, 3), st.integers(0, 3))
def test_more_support_never_costs_more(spec: Spec, few: int, more: int) -> None:
    early, late = (with_support(spec.prop, n) for n in (few, few + more))
    assert not_more(*(cost_or_infinity(spec._replace(prop=prop)) for prop in (late, early)))


@given(specs())
def test_a_checkpoint_never_makes_it_cheaper(spec: Spec) -> None:
    assert not_more(*map(cost_or_infinity, (spec._replace(checkpoints=()), spec)))


VACUOUS = [
    fs.DemographicParity(1),
    fs.EqualOpportunity(1),
    fs.PredictiveEquality(1, undefined="rate-0"),
    fs.ShareParity(1),
    fs.DisparateImpact(0),
    fs.BoundedRates(0, 1, min_support=0),
    fs.DemographicParity(0, min_support=100),
    Quota(100),
    NotThatMany(-1),
    Branching(100),
]


@given(st.sampled_from(VACUOUS), specs(), st.data())
def test_a_bound_that_always_holds_costs_nothing_and_changes_nobody(
    prop: fs.Property, spec: Spec, data: st.DataObject
) -> None:
    policy = spec._replace(prop=prop).synthesize()
    assert policy.expected_cost == 0.0
    decisions = run(fs.Shield(policy), data.draw(streams(spec.horizon)))
    assert not any(d.overruled for d in decisions)


# Names of groups ----------------------------------------------------------------------------


def mirrored(spec: Spec) -> Spec:
    """The same with the two groups in each other's place."""
    assert isinstance(spec.inputs, fs.InputModel)
    m = spec.inputs
    outcomes = None if m.outcomes is None else m.outcomes[::-1]
    inputs = replace(m, probs=m.probs[::-1], outcomes=outcomes)
    a, b = (spec.start[g] for g in GROUPS)
    return spec._replace(inputs=inputs, start=fs.Counts({"a": b, "b": a}))


# A one-sided ratio compares a to b; its mirror image is another property.
@given(
    specs(symmetric_properties, scheduled=False)
    | specs(symmetric_properties, horizons=(6, 8), models=contested_models())
)
def test_swapping_the_groups_changes_nothing(spec: Spec) -> None:
    other = mirrored(spec)
    cost = cost_or_infinity(spec)
    assert cost_or_infinity(other) == pytest.approx(cost, rel=1e-12, abs=1e-25)
    if cost < math.inf:
        here, there = spec.synthesize().decisions, other.synthesize().decisions
        for s in positions(spec.horizon - 1, spec.problem().layout.labelled):
            image = s._replace(at=s.at[2:] + s.at[:2])
            assert here.feasible(*s) == there.feasible(*image)
            assert [code_at(here, *s, g) for g in (0, 1)] == [
                code_at(there, *image, g) for g in (1, 0)
            ]


@given(specs(properties, scheduled=False), st.data())
def test_the_names_of_the_groups_do_not_matter(spec: Spec, data: st.DataObject) -> None:
    policy = spec.feasible_policy()
    names = {"a": 7, "b": "Ωmega"}
    inputs = replace(spec.inputs, groups=tuple(names[g] for g in GROUPS))
    start = fs.Counts({names[g]: spec.start[g] for g in GROUPS})
    renamed = spec._replace(inputs=inputs, start=start).synthesize()
    stream = data.draw(streams(spec.horizon))
    here = run(fs.Shield(policy), stream)
    there = run(fs.Shield(renamed), [r._replace(group=names[r.group]) for r in stream])
    assert [d.accepted for d in here] == [d.accepted for d in there]
    assert renamed.expected_cost == policy.expected_cost


@given(specs(scheduled=False), st.sampled_from([0.001, 3.0, 1000.0]))
def test_costs_have_no_unit(spec: Spec, factor: float) -> None:
    inputs = spec.inputs
    scaled = fs.InputModel(
        inputs.groups, inputs.levels * factor, inputs.probs, inputs.outcomes, inputs.edges * factor
    )
    cost, other = (cost_or_infinity(spec._replace(inputs=i)) for i in (inputs, scaled))
    assert other == pytest.approx(cost * factor, rel=1e-9)


@given(input_models(), specs())
def test_nothing_costs_more_than_overruling_everybody(inputs: fs.InputModel, spec: Spec) -> None:
    policy = spec._replace(inputs=inputs).feasible_policy()
    per_step = float((inputs.probs * inputs.levels).sum())
    assert not_more(policy.expected_cost, per_step * spec.horizon)
    assert np.isfinite(policy.expected_cost)
