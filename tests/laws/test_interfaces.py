"""All ways of asking a policy give the same answer."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import (
    COSTS,
    GROUPS,
    Request,
    Spec,
    contested_specs,
    positions,
    run,
    specs,
    streams,
)

import fairshield as fs
from fairshield.runtime.step import verdict


def columns(stream: list[Request]) -> tuple[list[str], list[bool], list[float], list[bool]]:
    return (
        [r.group for r in stream],
        [r.proposed for r in stream],
        [r.cost for r in stream],
        [r.outcome for r in stream],
    )


# Agreement ----------------------------------------------------------------------------------


any_specs = specs(max_levels=3) | contested_specs()


@given(any_specs, st.data())
def test_decide_step_advise_and_decide_many_agree(spec: Spec, data: st.DataObject) -> None:
    policy = spec.feasible_policy()
    stream = data.draw(streams(spec.horizon))
    one_by_one, advised = fs.Shield(policy), fs.Shield(policy)
    state = fs.State.initial(policy)
    for request in stream:
        group, proposed, cost, outcome = request
        (decision,) = run(one_by_one, [request])
        state, stepped = fs.step(
            policy, state, group, proposed=proposed, cost=cost, outcome=outcome
        )
        advice = advised.advise(group, proposed=proposed, cost=cost)
        recorded = advised.record(advice, final=advice.accepted)
        if policy.labelled:
            advised.observe(recorded, outcome=outcome)
        assert decision == stepped == advice == recorded
    assert one_by_one.counts == advised.counts == state.counts
    assert one_by_one.decided == advised.decided == state.decided == spec.horizon
    batch_shield = fs.Shield(policy)
    batch = batch_shield.decide_many(*columns(stream))
    decisions = run(fs.Shield(policy), stream)
    assert batch.accepted.tolist() == [d.accepted for d in decisions]
    assert batch.overruled.tolist() == [d.overruled for d in decisions]
    assert batch.paid.tolist() == [d.paid for d in decisions]
    assert batch_shield.counts == one_by_one.counts
    assert batch_shield.remaining == 0


@given(any_specs, st.data())
def test_one_batch_or_several_make_no_difference(spec: Spec, data: st.DataObject) -> None:
    policy = spec.feasible_policy()
    stream = data.draw(streams(spec.horizon))
    cut = data.draw(st.integers(0, spec.horizon))
    whole, parts = fs.Shield(policy), fs.Shield(policy)
    all_at_once = whole.decide_many(*columns(stream))
    first = parts.decide_many(*columns(stream[:cut]))
    run(parts, stream[cut : cut + 1])
    rest = parts.decide_many(*columns(stream[cut + 1 :]))
    assert first.accepted.tolist() == all_at_once.accepted[:cut].tolist()
    assert rest.accepted.tolist() == all_at_once.accepted[cut + 1 :].tolist()
    assert parts.counts == whole.counts


@given(any_specs, st.data())
def test_a_resumed_shield_goes_on_like_an_uninterrupted_one(
    spec: Spec, data: st.DataObject
) -> None:
    policy = spec.feasible_policy()
    stream = data.draw(streams(spec.horizon))
    cut = data.draw(st.integers(0, spec.horizon))
    shield = fs.Shield(policy)
    run(shield, stream[:cut])
    resumed = fs.Shield(policy, counts=shield.counts, decided=shield.decided)
    assert run(resumed, stream[cut:]) == run(shield, stream[cut:])
    assert resumed.counts == shield.counts


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spec=any_specs, data=st.data())
def test_a_policy_from_a_file_decides_like_the_one_that_was_saved(
    spec: Spec, data: st.DataObject, tmp_path: Path
) -> None:
    policy = spec.feasible_policy()
    policy.save(tmp_path / "p.shield")
    loaded = fs.Policy.load(tmp_path / "p.shield")
    stream = data.draw(streams(spec.horizon))
    assert run(fs.Shield(policy), stream) == run(fs.Shield(loaded), stream)
    here, there = (fs.Shield(p).decide_many(*columns(stream)) for p in (policy, loaded))
    assert all(np.array_equal(x, y) for x, y in zip(here, there, strict=True))


@given(specs(), st.data())
def test_advice_changes_nothing(spec: Spec, data: st.DataObject) -> None:
    shield = fs.Shield(spec.feasible_policy())
    for request in data.draw(streams(spec.horizon)):
        before = shield.counts, shield.decided, shield.pending
        for group in GROUPS:
            shield.advise(group, proposed=True, cost=0.5)
        assert (shield.counts, shield.decided, shield.pending) == before
        run(shield, [request])


# When to interfere --------------------------------------------------------------------------


@given(any_specs)
def test_forced_decisions_depend_on_neither_cost_nor_proposal(spec: Spec) -> None:
    policy = spec.feasible_policy()
    for s in positions(spec.horizon - 1, policy.labelled):
        for g in (0, 1):
            answers = {
                verdict(policy, *s, g, proposed, cost)
                for proposed in (False, True)
                for cost in COSTS
            }
            reasons = {why for _, why in answers}
            if fs.Why.FORCED in reasons:
                assert len(answers) == 1


@given(any_specs)
def test_the_dearer_the_overruling_the_rarer(spec: Spec) -> None:
    policy = spec.feasible_policy()
    if policy.labelled:  # there, what counts is the cost for each time it changes the counters
        return
    for s in positions(spec.horizon - 1, policy.labelled):
        for g, proposed in ((0, False), (0, True), (1, False), (1, True)):
            overruled = [verdict(policy, *s, g, proposed, c)[0] != proposed for c in COSTS]
            assert overruled == sorted(overruled, reverse=True)


@given(any_specs)
def test_a_cost_above_all_levels_is_paid_only_if_forced(spec: Spec) -> None:
    policy = spec.feasible_policy()
    dear = float(policy.edges[-1])
    if dear == math.inf:
        return
    for s in positions(spec.horizon - 1, policy.labelled):
        for g, proposed in ((0, False), (0, True), (1, False), (1, True)):
            accepted, why = verdict(policy, *s, g, proposed, dear + 1)
            assert accepted == proposed or why is not fs.Why.CHEAPEST


def test_ties_keep_the_proposal(even: fs.InputModel) -> None:
    # Equal counters of both groups: by symmetry the two decisions are worth the same.
    free = fs.InputModel.agnostic({"a": 0.5, "b": 0.5}, cost=0.0)
    for inputs in (even, free):
        shield = fs.Shield(fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=20))
        for proposed in (False, True):
            for group in GROUPS:
                assert shield.advise(group, proposed=proposed, cost=0.0).accepted == proposed


@given(specs(horizons=(1, 4)))
def test_free_overruling_is_no_reason_to_overrule(spec: Spec) -> None:
    free = fs.InputModel.agnostic({"a": 0.5, "b": 0.5}, cost=0.0)
    policy = spec._replace(inputs=free).feasible_policy()
    assert policy.expected_cost == 0.0
    for s in positions(spec.horizon - 1, policy.labelled):
        for g, proposed in ((0, False), (0, True), (1, False), (1, True)):
            accepted, why = verdict(policy, *s, g, proposed, 0.0)
            assert accepted == proposed or why is not fs.Why.CHEAPEST


def test_a_single_person_is_overruled_for_a_reason_that_can_be_read(even: fs.InputModel) -> None:
    shield = fs.Shield(fs.synthesize(fs.ShareParity(0), even, horizon=1))
    decision = shield.decide("a", proposed=True, cost=3.0)
    assert decision.overruled
    assert decision.paid == 3.0
    assert decision.reason == "overruled: accepting could no longer be guaranteed fair"


def test_paid_is_zero_where_the_proposal_is_kept(even: fs.InputModel) -> None:
    shield = fs.Shield(fs.synthesize(fs.DemographicParity(1), even, horizon=1))
    decision = shield.decide("a", proposed=True, cost=3.0)
    assert (decision.paid, decision.overruled) == (0.0, False)
    assert decision.reason == "kept: overruling is not expected to pay for itself"


def test_overruling_somebody_who_surely_does_not_count_gains_nothing() -> None:
    # People of b never have outcome 1, so what is decided about them is expected to change
    # nothing; that overruling them would be free as well makes it a tie.
    table = {("a", True, 1.0): 0.4, ("a", False, 1.0): 0.1, ("b", True, 0.0): 0.5}
    inputs = fs.InputModel.from_table(table, outcomes={"a": 0.5, "b": 0.0})
    for prop in (fs.EqualOpportunity("0.1"), fs.EqualOpportunity("0.3", undefined="rate-0")):
        policy = fs.synthesize(prop, inputs, horizon=6)
        for s in positions(5, labelled=True):
            for proposed in (False, True):
                accepted, why = verdict(policy, *s, 1, proposed, 0.0)
                assert accepted == proposed or why is not fs.Why.CHEAPEST
