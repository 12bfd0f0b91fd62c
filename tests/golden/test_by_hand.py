"""Instances small enough to be solved on paper, each with its derivation."""

from __future__ import annotations

import pytest

import fairshield as fs

GROUPS = ("a", "b")


def model(table: dict[tuple[str, bool], float], cost: float = 1.0, **more: object) -> fs.InputModel:
    return fs.InputModel.from_table({(g, r, cost): p for (g, r), p in table.items()}, **more)


SURE = {("a", True): 0.5, ("a", False): 0.0, ("b", True): 0.0, ("b", False): 0.5}
"""People of a are always proposed, people of b never."""


@pytest.fixture(params=["cpu", "reference"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_one_decision_is_always_fair(backend: str, even: fs.InputModel) -> None:
    # The other group is empty, so there is no bias and nothing to do.
    policy = fs.synthesize(fs.DemographicParity(0), even, horizon=1, backend=backend)
    assert policy.expected_cost == 0.0


def test_two_decisions_with_equal_rates(backend: str, even: fs.InputModel) -> None:
    # If both people are of one group (1/2), nothing binds.  If not (1/2), the second must be
    # decided like the first, and half of the time the proposal says otherwise: 1/2 * 1/2 * 1.
    # Overruling the first buys nothing, since either decision can be copied at the same price.
    policy = fs.synthesize(fs.DemographicParity(0), even, horizon=2, backend=backend)
    assert policy.expected_cost == pytest.approx(1 / 4, rel=1e-15)
    shield = fs.Shield(policy)
    assert not shield.decide("a", proposed=True).overruled
    second = shield.decide("b", proposed=False)
    assert (second.accepted, second.why) == (True, fs.Why.FORCED)


def test_proposals_that_never_agree(backend: str) -> None:
    # Two decisions, a always proposed and b never.  After (a, accept): with probability 1/2 a
    # second a comes, free; with 1/2 a b, who must be accepted at cost 1.  Expected 1/2, which
    # overruling the first (cost 1) cannot beat.  By symmetry the same after (b, reject).
    policy = fs.synthesize(fs.DemographicParity(0), model(SURE), horizon=2, backend=backend)
    assert policy.expected_cost == pytest.approx(1 / 2, rel=1e-15)


def test_a_dear_future_is_bought_off_today(backend: str) -> None:
    # The same, but today overruling costs 0.2 and tomorrow 1, and only b comes tomorrow.
    # Today (a, accept): keep and pay 1 tomorrow, or overrule for 0.2 and pay nothing: 0.2.
    # Today (b, reject): b comes again, nothing binds: 0.  Expected 1/2 * 0.2 = 0.1.
    only_b = {("a", True): 0.0, ("b", False): 1.0}
    inputs = fs.InputSchedule([(model(SURE, cost=0.2), 1), (model(only_b, cost=1.0), 1)])
    policy = fs.synthesize(fs.DemographicParity(0), inputs, horizon=2, backend=backend)
    assert policy.expected_cost == pytest.approx(0.1, rel=1e-15)
    first = fs.Shield(policy).decide("a", proposed=True, cost=0.2)
    assert (first.accepted, first.why) == (False, fs.Why.CHEAPEST)
    assert first.reason == "overruled: at a cost of 0.2, accepting would be expected to cost more"
    # 1.0 is a level too; at that price buying off gains nothing, and a tie keeps the proposal.
    assert fs.Shield(policy).decide("a", proposed=True, cost=1.0).accepted


def test_an_impossible_group_still_binds_and_costs_nothing(backend: str) -> None:
    # b never comes, so the cost is 0; should b come nevertheless, it is decided like a.
    inputs = model({("a", True): 0.5, ("a", False): 0.5, ("b", True): 0.0})
    policy = fs.synthesize(fs.DemographicParity(0), inputs, horizon=2, backend=backend)
    assert policy.expected_cost == 0.0
    shield = fs.Shield(policy)
    shield.decide("a", proposed=True)
    assert shield.decide("b", proposed=False).accepted


def test_the_first_accepted_of_a_team_must_be_matched(backend: str, even: fs.InputModel) -> None:
    # Shares equal after two decisions.  Whoever comes first may be followed by somebody of the
    # same group, and then one accepted cannot be matched: the first is always rejected, 1/2.
    # Then the second must be rejected as well, 1/2.  Expected cost 1.
    policy = fs.synthesize(fs.ShareParity(0), even, horizon=2, backend=backend)
    assert policy.expected_cost == pytest.approx(1.0, rel=1e-15)


def test_rates_in_the_upper_half(backend: str, even: fs.InputModel) -> None:
    # Rates at least 1/2 after one decision: that person must be accepted, 1/2.
    # After two: a single person of a group must be accepted; of two, one.  If the first is
    # rejected, the second may be of the other group: so it is accepted, 1/2 on average.  The
    # second is free if of the same group (1/2), else accepted, 1/2 * 1/2.  Together 3/4.
    prop = fs.BoundedRates("0.5", 1, min_support=0)
    costs = [fs.synthesize(prop, even, horizon=t, backend=backend).expected_cost for t in (1, 2)]
    assert costs == pytest.approx([1 / 2, 3 / 4], rel=1e-15)


def test_cheap_people_are_overruled_first(backend: str) -> None:
    # One decision, nobody may be accepted (rate at most 0): every accept is rejected at its own
    # price, mean of 1 and 3 weighted by 3/4 and 1/4, times the chance 1/2 of an accept.
    table = {
        (g, r, c): (0.75 if c == 1.0 else 0.25) / 4
        for g in GROUPS for r in (False, True) for c in (1.0, 3.0)
    }  # fmt: skip
    prop = fs.ShareParity(0)
    inputs = fs.InputModel.from_table(table)
    policy = fs.synthesize(prop, inputs, horizon=1, backend=backend)
    assert policy.expected_cost == pytest.approx((0.75 * 1 + 0.25 * 3) / 2, rel=1e-15)


def test_outcomes_that_do_not_count(backend: str) -> None:
    # Equal opportunity over two decisions, proposals opposed (SURE), half of the people qualified.
    # Say a comes first and is accepted.  If unqualified (1/2), or if a second a comes (1/2), all
    # is well.  Else b comes and must be accepted, qualified or not, as that shows afterwards: cost
    # 1.  Expected 1/4; overruling the first costs 1.  By symmetry for b first: 1/4.
    inputs = model(SURE, outcomes={"a": 0.5, "b": 0.5})
    policy = fs.synthesize(fs.EqualOpportunity(0), inputs, horizon=2, backend=backend)
    assert policy.expected_cost == pytest.approx(1 / 4, rel=1e-15)


def test_people_who_surely_do_not_count_are_decided_as_if_they_might(backend: str) -> None:
    # As before, but the model is sure that b is unqualified.  After a qualified a was accepted
    # (1/2 * 1/2), b (1/2) must be accepted all the same, for 1.  If b comes first its outcome
    # does not count and the second decision is free.  Expected 1/8.
    inputs = model(SURE, outcomes={"a": 0.5, "b": 0.0})
    policy = fs.synthesize(fs.EqualOpportunity(0), inputs, horizon=2, backend=backend)
    assert policy.expected_cost == pytest.approx(1 / 8, rel=1e-12)


def test_false_positives_mirror_true_positives(backend: str) -> None:
    # Relevant are those with outcome 0: exchanging outcomes exchanges the two properties.
    inputs = {z: model(SURE, outcomes={"a": z, "b": 1 - z}) for z in (0.25, 0.75)}
    equal = fs.synthesize(fs.EqualOpportunity("0.1"), inputs[0.25], horizon=4, backend=backend)
    predictive = fs.synthesize(
        fs.PredictiveEquality("0.1"), inputs[0.75], horizon=4, backend=backend
    )
    assert equal.expected_cost == pytest.approx(predictive.expected_cost, rel=1e-14)
    assert equal.expected_cost > 0


def test_support_frees_the_first_of_each_group(backend: str, even: fs.InputModel) -> None:
    # With support 2, two decisions never bind.
    prop = fs.DemographicParity(0, min_support=2)
    for horizon in (1, 2, 3):
        policy = fs.synthesize(prop, even, horizon=horizon, backend=backend)
        assert policy.expected_cost == 0.0
    assert fs.synthesize(prop, even, horizon=4, backend=backend).expected_cost > 0


def test_an_unseen_group_of_rate_zero_rejects_everybody(backend: str, even: fs.InputModel) -> None:
    # With rate 0 for the unseen group, one accepted person is bias 1: reject, 1/2.
    prop = fs.DemographicParity("0.1", undefined="rate-0")
    policy = fs.synthesize(prop, even, horizon=1, backend=backend)
    assert policy.expected_cost == pytest.approx(1 / 2, rel=1e-15)


def test_one_sided_ratio_binds_one_way(backend: str) -> None:
    # rate_a <= rate_b after two decisions, a always proposed and b never.  After (a, accept) a b
    # (1/2) must be accepted for 1; overruling the a would cost 1 for sure.  After (b, reject) an
    # a (1/2) must be rejected for 1.  So 1/2 either way.
    prop = fs.DisparateImpact(1, two_sided=False)
    policy = fs.synthesize(prop, model(SURE), horizon=2, backend=backend)
    assert policy.expected_cost == pytest.approx(1 / 2, rel=1e-15)
    # The other way round nothing is to be done: b has the lower rate.
    swapped = {("b", False): 0.5, ("a", True): 0.5}
    policy = fs.synthesize(prop, model(swapped), horizon=2, backend=backend)
    assert policy.groups == ("b", "a")
    assert policy.expected_cost == 0.0
