"""What becomes of a period after a person has decided against advice; what decisions promise."""

from __future__ import annotations

import json

import pytest

import fairshield as fs

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})


def overridden() -> fs.PerpetualShield:
    """A run in which a person accepts somebody whom the shield would have rejected."""
    start = fs.Counts({"a": (1, 0), "b": (7, 0)})
    shield = fs.PerpetualShield(fs.DemographicParity("0.1"), EVEN, period=8, start=start)
    shield.decide("b", proposed=True)
    advice = shield.advise("a", proposed=True)
    assert not advice.accepted
    decision = shield.record(advice, final=True)
    assert decision.guaranteed == shield.guarantee.guaranteed
    return shield


def test_the_rest_of_a_period_is_planned_anew_after_an_override() -> None:
    shield = overridden()
    assert shield.guarantee.guaranteed
    assert shield.guarantee.broken_by == "person"
    for group, proposed in zip("bbbbba", (1, 0, 0, 0, 0, 0), strict=True):
        decision = shield.decide(group, proposed=proposed)
        assert decision.guaranteed
        assert shield.explain(decision).decision == decision
    assert (shield.completed, shield.holds()) == (1, True)


def test_decisions_before_an_override_are_explained_by_the_plan_they_followed() -> None:
    start = fs.Counts({"a": (1, 0), "b": (7, 0)})
    shield = fs.PerpetualShield(fs.DemographicParity("0.1"), EVEN, period=8, start=start)
    first = shield.decide("b", proposed=True)
    said = shield.explain(first)
    against = shield.record(shield.advise("a", proposed=True), final=True)
    assert shield.state.mended is not None
    later = shield.decide("b", proposed=True)
    assert shield.explain(first) == said
    assert "against the shield's advice" in str(shield.explain(against))
    assert "certificate" not in str(shield.explain(later))


def test_a_mended_period_is_resumed_as_it_was_mended() -> None:
    shield = overridden()
    for group, proposed in zip("bbbbba", (1, 0, 0, 0, 0, 0), strict=True):
        data = json.loads(json.dumps(shield.state.to_dict()))
        again = fs.Run(shield.policy, state=data)
        assert again.state == shield.state
        assert again.guarantee == shield.guarantee
        ours = shield.decide(group, proposed=proposed)
        assert again.decide(group, proposed=proposed) == ours


def test_what_cannot_be_mended_is_made_improbable() -> None:
    shield = fs.DynamicShield(fs.DemographicParity("0.1"), EVEN, period=10)
    shield.record(shield.advise("a", proposed=True), final=True)
    advice = shield.advise("b", proposed=False)
    assert advice.accepted
    assert not shield.record(advice, final=False).guaranteed
    report = shield.guarantee
    best = fs.synthesize(shield.prop, EVEN, horizon=8, start=shield.counts, best_effort=True)
    assert report.risk == best.risk > 0
    while shield.remaining < 10:
        shield.decide("a", proposed=True)
    assert shield.completed == 1


def test_an_inactive_shield_says_that_nothing_is_guaranteed() -> None:
    start = fs.Counts({"a": (2, 1), "b": (98, 49)})
    shield = fs.DynamicShield(
        fs.DemographicParity("0.05"), EVEN, period=4, fallback="inactive", start=start
    )
    decision = shield.decide("a", proposed=True)
    assert not decision.guaranteed
    assert not shield.guarantee.guaranteed
    assert "inactive" in str(shield.explain(decision))


def test_static_decisions_speak_of_the_run() -> None:
    """A period may be fair by itself and the run unfair: no decision promises otherwise."""
    shield = fs.StaticFairShield(fs.DemographicParity("0.1"), EVEN, period=4)
    requests = zip("abbbaaab", (1, 1, 1, 1, 0, 0, 0, 0), strict=True)
    decisions = [shield.decide(group, proposed=said) for group, said in requests]
    assert not shield.holds()
    assert all(decision.guaranteed for decision in decisions[:4])
    assert not any(decision.guaranteed for decision in decisions[4:])


def test_an_inactive_shield_promises_nothing_of_a_property_without_theorem() -> None:
    start = fs.Counts({"a": (50, 50), "b": (50, 0)})
    shield = fs.DynamicShield(
        fs.DisparateImpact("0.8"), EVEN, period=4, fallback="inactive", start=start
    )
    assert not shield.advise("b", proposed=False).guaranteed
    assert not shield.decide("a", proposed=True).guaranteed
    assert not shield.guarantee.guaranteed


def forced(shield: fs.Run) -> fs.Decision:
    """The first advice that leaves no choice; until then it is followed."""
    for i in range(50):
        group = "aaabbb"[i % 6]
        advice = shield.advise(group, proposed=group == "a")
        if advice.why is fs.Why.FORCED:
            return advice
        shield.observe(shield.record(advice, final=advice.accepted), outcome=True)
    raise AssertionError("nothing is ever forced")


@pytest.mark.parametrize("again", [False, True])
def test_an_override_that_awaits_its_outcome_is_resumed_as_it_was(again: bool) -> None:
    shield = fs.DynamicShield(fs.EqualOpportunity("0.1"), EVEN, period=8)
    advice = forced(shield)
    made = shield.record(advice, final=not advice.accepted)
    if again:
        shield.observe(made, outcome=True)
        advice = shield.advise("b", proposed=True)
        made = shield.record(advice, final=not advice.accepted)
    assert shield.pending == made
    assert made.guaranteed == shield.guarantee.guaranteed
    resumed = fs.Run(shield.policy, state=json.loads(json.dumps(shield.state.to_dict())))
    assert resumed.pending == made
    for one in (shield, resumed):
        one.observe(made, outcome=True)
    assert resumed.state == shield.state
    assert resumed.guarantee == shield.guarantee
