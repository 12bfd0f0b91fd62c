"""A person may decide otherwise; the shield says at once what that did to the guarantee."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import NotThatManyQualified, Request, Spec, mendable_properties, run, specs, streams

import fairshield as fs

any_specs = specs() | specs(mendable_properties, horizons=(2, 5))
unpaced = specs(checkpointed=False) | specs(mendable_properties, (2, 5), checkpointed=False)


def overrule(shield: fs.Shield, request: Request) -> tuple[fs.Decision, fs.Decision]:
    """The advice, and the record of the opposite decision."""
    advice = shield.advise(request.group, proposed=request.proposed, cost=request.cost)
    return advice, shield.record(advice, final=not advice.accepted)


@given(any_specs, st.data())
def test_going_against_advice_loses_the_guarantee_exactly_if_it_was_forced(
    spec: Spec, data: st.DataObject
) -> None:
    shield = fs.Shield(spec.feasible_policy())
    stream = data.draw(streams(spec.horizon))
    cut = data.draw(st.integers(0, spec.horizon - 1))
    run(shield, stream[:cut])
    advice, final = overrule(shield, stream[cut])
    assert final.guaranteed == (advice.why is not fs.Why.FORCED)
    assert shield.guaranteed == final.guaranteed
    assert final.why is fs.Why.HUMAN
    assert final.accepted != advice.accepted


@given(any_specs, st.data())
def test_following_advice_keeps_the_guarantee(spec: Spec, data: st.DataObject) -> None:
    shield = fs.Shield(spec.feasible_policy())
    for request in data.draw(streams(spec.horizon)):
        advice = shield.advise(request.group, proposed=request.proposed, cost=request.cost)
        final = shield.record(advice, final=advice.accepted)
        assert final == advice
        assert final.guaranteed
        if shield.policy.labelled:
            shield.observe(final, outcome=request.outcome)
    assert spec.prop.holds(shield.counts)


@given(any_specs, st.data())
def test_people_decide_at_will_and_the_shield_knows_where_it_stands(
    spec: Spec, data: st.DataObject
) -> None:
    policy = spec.feasible_policy()
    shield = fs.Shield(policy)
    for request in data.draw(streams(spec.horizon)):
        before = shield.guaranteed
        advice = shield.advise(request.group, proposed=request.proposed, cost=request.cost)
        final = shield.record(advice, final=data.draw(st.booleans()))
        assert final.guaranteed == shield.guaranteed
        if policy.labelled:
            shield.observe(final, outcome=request.outcome)
            assert shield.guaranteed >= final.guaranteed
        if before and final.why is not fs.Why.HUMAN:
            assert shield.guaranteed
        assert shield.guaranteed == policy.guarantees(shield.counts, shield.decided)
    assert shield.guaranteed == spec.prop.holds(shield.counts)


@given(unpaced, st.data())
def test_once_the_guarantee_is_back_it_stays(spec: Spec, data: st.DataObject) -> None:
    shield = fs.Shield(spec.feasible_policy())
    stream = data.draw(streams(spec.horizon))
    cut = data.draw(st.integers(0, spec.horizon - 1))
    run(shield, stream[:cut])
    _, final = overrule(shield, stream[cut])
    if shield.policy.labelled:
        shield.observe(final, outcome=stream[cut].outcome)
    back = shield.guaranteed
    for request in stream[cut + 1 :]:
        run(shield, [request])
        assert shield.guaranteed >= back
        back = shield.guaranteed
    assert spec.prop.holds(shield.counts) == back


# A decision speaks for the moment it was made: afterwards, whatever the outcome.
@given(any_specs, st.data())
def test_a_decision_promises_no_more_than_the_shield_can_keep(
    spec: Spec, data: st.DataObject
) -> None:
    shield = fs.Shield(spec.feasible_policy())
    stream = data.draw(streams(spec.horizon))
    assume(len(stream) > 1)
    _, final = overrule(shield, stream[0])
    if shield.policy.labelled:
        shield.observe(final, outcome=stream[0].outcome)
    for request in stream[1:]:
        decision = shield.decide(request.group, proposed=request.proposed, cost=request.cost)
        assert decision.guaranteed == shield.guaranteed
        if shield.policy.labelled:
            shield.observe(decision, outcome=request.outcome)


def test_in_a_lost_window_a_decision_does_not_count_on_its_outcome() -> None:
    # Any number of qualified people may be accepted but two.  One was before the window, and a
    # person accepts a second against advice.  Accepting a third mends it if that third turns out
    # to be qualified, which is not known when the decision is made.
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    start = fs.Counts({"a": (0, 0), "b": (1, 1)})
    policy = fs.synthesize(NotThatManyQualified(2), inputs, horizon=2, start=start)
    shield = fs.Shield(policy)
    advice = shield.advise("a", proposed=True)
    assert (advice.accepted, advice.why) == (False, fs.Why.FORCED)
    shield.observe(shield.record(advice, final=True), outcome=True)
    third = shield.decide("a", proposed=False)
    assert third.accepted
    assert not third.guaranteed
    assert not shield.guaranteed
    shield.observe(third, outcome=True)
    assert shield.guaranteed


def test_the_shield_recovers_what_a_person_spoilt(even: fs.InputModel) -> None:
    # After two decisions, one on each group, both must have been treated alike.  A person breaks
    # that; one more decision on b and the rates are 1 and 1/2.
    prop = fs.DemographicParity("0.5")
    policy = fs.synthesize(prop, even, horizon=6, checkpoints=(2,))
    shield = fs.Shield(policy)
    shield.decide("a", proposed=True)
    advice = shield.advise("b", proposed=False)
    assert advice.why is fs.Why.FORCED
    assert advice.accepted
    spoilt = shield.record(advice, final=False)
    assert not spoilt.guaranteed
    assert not prop.holds(shield.counts)
    assert spoilt.reason == "kept by a person, against advice: fairness is no longer guaranteed"
    shield.decide("b", proposed=False)
    assert shield.guaranteed
    for group in "aaa":
        shield.decide(group, proposed=True)
    assert prop.holds(shield.counts)


def test_where_nothing_helps_the_proposal_stands_and_says_so(even: fs.InputModel) -> None:
    # Accepted people must split evenly over two decisions.  One of a has been accepted against
    # advice; if another of a follows, the split is one to none or two to none.
    shield = fs.Shield(fs.synthesize(fs.ShareParity(0), even, horizon=2))
    advice = shield.advise("a", proposed=True)
    assert (advice.accepted, advice.why) == (False, fs.Why.FORCED)
    assert not shield.record(advice, final=True).guaranteed
    for proposed in (False, True):
        lost = shield.advise("a", proposed=proposed)
        assert (lost.accepted, lost.why, lost.guaranteed) == (proposed, fs.Why.LOST, False)
        assert lost.reason == "kept: fairness can no longer be guaranteed from these counters"
    saved = shield.decide("b", proposed=False)
    assert (saved.accepted, saved.why, saved.guaranteed) == (True, fs.Why.FORCED, True)
    assert shield.guaranteed
