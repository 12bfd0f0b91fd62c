"""Explanations: one sentence, with the numbers that decided."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Spec, contested_specs, run, specs, streams

import fairshield as fs
from fairshield.analysis.explain import explain


@given(specs(horizons=(1, 4)) | contested_specs((6, 7)), st.data())
def test_the_numbers_bear_the_decision_out(spec: Spec, data: st.DataObject) -> None:
    policy = spec.feasible_policy()
    for decision in run(fs.Shield(policy), data.draw(streams(spec.horizon))):
        why = explain(policy, decision)
        ours, theirs = why.if_accepted, why.if_rejected
        if not decision.accepted:
            ours, theirs = theirs, ours
        assert ours < math.inf
        assert (theirs == math.inf) == (decision.why is fs.Why.FORCED)
        if decision.cost in policy.inputs.table(spec.horizon).levels and theirs < math.inf:
            gain = theirs - ours if decision.overruled else ours - theirs
            if decision.overruled:
                assert gain >= decision.cost - 1e-9
            else:
                assert gain <= decision.cost + 1e-8


def test_kept_as_proposed(even: fs.InputModel) -> None:
    policy = fs.synthesize(fs.DemographicParity(0), even, horizon=2)
    decision = fs.Shield(policy).decide("a", proposed=True)
    assert str(explain(policy, decision)) == (
        "Decision 1, group a: accepted as proposed, because 0.25 more is expected to be paid "
        "after accepting and 0.25 after rejecting: overruling would save nothing."
    )


def test_forced(even: fs.InputModel) -> None:
    policy = fs.synthesize(fs.DemographicParity(0), even, horizon=2)
    shield = fs.Shield(policy)
    shield.decide("a", proposed=True)
    text = str(explain(policy, shield.decide("b", proposed=False)))
    assert text.startswith("Decision 2, group b: accepted although rejection was proposed, because")
    assert "after rejecting fairness could no longer be guaranteed" in text
    assert text.endswith(".")


def test_bought_off_early() -> None:
    sure = {("a", True): 0.5, ("b", False): 0.5}
    cheap = fs.InputModel.from_table({(g, r, 0.2): p for (g, r), p in sure.items()})
    dear = fs.InputModel.from_table({("a", True, 1.0): 0.0, ("b", False, 1.0): 1.0})
    policy = fs.synthesize(
        fs.DemographicParity(0), fs.InputSchedule([(cheap, 1), (dear, 1)]), horizon=2
    )
    decision = fs.Shield(policy).decide("a", proposed=True, cost=0.2)
    why = explain(policy, decision)
    assert (why.if_accepted, why.if_rejected) == (pytest.approx(1.0), 0.0)
    assert "overruling costs 0.2 and is expected to save 1" in str(why)


def test_a_person_against_advice(even: fs.InputModel) -> None:
    policy = fs.synthesize(fs.DemographicParity(0), even, horizon=2)
    shield = fs.Shield(policy)
    first = shield.record(shield.advise("a", proposed=True), final=False)
    assert "by a person against the shield's advice; fairness is still guaranteed" in str(
        explain(policy, first)
    )
    second = shield.record(shield.advise("b", proposed=True), final=True)
    assert "fairness is no longer guaranteed" in str(explain(policy, second))


def test_lost(even: fs.InputModel) -> None:
    policy = fs.synthesize(fs.ShareParity(0), even, horizon=2)
    shield = fs.Shield(policy)
    shield.record(shield.advise("a", proposed=True), final=True)
    text = str(explain(policy, shield.decide("a", proposed=True)))
    assert "fairness could no longer be guaranteed whatever was decided" in text
