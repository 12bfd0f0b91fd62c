"""Examples of the paper "Fairness shields"."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import input_models

import fairshield as fs
from fairshield.policy import Specification
from fairshield.synthesis.problem import make_problem
from fairshield.synthesis.reference import Position, cost_to_go

RATES = (fs.DemographicParity, fs.EqualOpportunity, fs.PredictiveEquality)


def test_bounded_rates_can_be_impossible(even: fs.InputModel) -> None:
    """Example bounded-acc-rates: of two people the rate is 0, 1/2 or 1, never in [0.2, 0.4]."""
    prop = fs.BoundedRates("0.2", "0.4", min_support=0)
    with pytest.raises(fs.InfeasibleError, match=r"rates in \[1/5, 2/5\]"):
        fs.synthesize(prop, even, horizon=2)


def test_bounded_rates_are_possible_with_enough_support(even: fs.InputModel) -> None:
    """With N = ceil(1 / (u - l)) people in each group, some rate in [l, u] can be reached."""
    prop = fs.BoundedRates("0.2", "0.4")
    assert prop.min_support == 5
    assert fs.synthesize(prop, even, horizon=2).expected_cost == 0.0
    assert fs.synthesize(prop, even, horizon=20).expected_cost > 0.0


def test_buffered_history() -> None:
    """Example buffered: a has 1 of 2, b has 49 of 98, another hundred people are to come.

    If only b comes until the last person is an a, the rate of a becomes 1/3 or 2/3, and the rate
    of b is wherever 99 decisions may have put it.  The text calls this impossible for a bound of
    1/10.  It is not: b need not stay at 1/2.  With b at 0.43, say, rejecting the last a leaves
    0.097.  At a bound of 1/20 it is impossible.
    """
    start = fs.Counts({"a": (2, 1), "b": (98, 49)})
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    policy = fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=100, start=start)
    shield = fs.Shield(policy)
    for group in "b" * 99 + "a":
        shield.decide(group, proposed=True)
    assert policy.prop.holds(shield.counts)
    with pytest.raises(fs.InfeasibleError) as caught:
        fs.synthesize(fs.DemographicParity("0.05"), inputs, horizon=100, start=start)
    assert "from 1 accepted of 2 in a and 49 accepted of 98 in b" in str(caught.value)
    assert "Loosen the bound" in str(caught.value)


def test_bilingual_team() -> None:
    """The introduction's team: the two languages within a tenth of the team, on every run."""
    inputs = fs.InputModel.agnostic({"French": 0.4, "German": 0.6})
    prop = fs.ShareParity("0.1")
    shield = fs.Shield(fs.synthesize(prop, inputs, horizon=60))
    for i in range(60):
        shield.decide("French" if i % 5 < 2 else "German", proposed=i % 5 >= 2)
    team = [count.accepted for count in shield.counts.values()]
    assert 10 * abs(team[0] - team[1]) <= sum(team)


def can_be_fair(prop: fs.Property, inputs: fs.InputModel, horizon: int, at: Position) -> bool:
    """Whether a shield can still guarantee fairness, by the definition."""
    problem = make_problem(Specification.of(prop, inputs, horizon=horizon))
    return cost_to_go(problem)(at) < float("inf")


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(RATES), input_models(), st.integers(2, 8), st.fractions(0, "99/100"), st.data()
)
def test_below_one_over_the_horizon_the_first_group_is_accepted_or_rejected_as_a_whole(
    kind: Any, inputs: fs.InputModel, horizon: int, share: Fraction, data: st.DataObject
) -> None:
    """Existence of shields, for bounds below 1/T: with one group seen, all or nobody.

    It is so below 1/(T - 1): the text uses that a rate of at most T - 1 people that is neither 0
    nor 1 is 1/(T - 1) away from both.
    """
    prop = kind(share / (horizon - 1))
    decided = data.draw(st.integers(1, horizon - 1))
    n = data.draw(st.integers(1, decided)) if prop.relevant_outcome is not None else decided
    k = data.draw(st.integers(0, n))
    for counts in ((n, k, 0, 0), (0, 0, n, k)):
        assert can_be_fair(prop, inputs, horizon, Position(decided, counts)) == (k in (0, n))


@pytest.mark.parametrize("kind", RATES)
@pytest.mark.parametrize("horizon", [3, 4, 6, 8])
def test_from_one_over_the_people_before_the_last_on_one_may_be_an_exception(
    kind: Any, horizon: int
) -> None:
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    prop, last = kind(Fraction(1, horizon - 1)), horizon - 1
    for k in range(horizon):
        expected = min(k, last - k) <= 1
        assert can_be_fair(prop, inputs, horizon, Position(last, (last, k, 0, 0))) == expected


@settings(max_examples=examples(30), deadline=None)
@given(
    st.sampled_from(["a", "b"]), input_models(), st.integers(2, 9),
    st.lists(st.booleans(), min_size=9, max_size=9),
)  # fmt: skip
def test_whoever_comes_alone_below_one_over_the_horizon_gets_what_the_first_person_got(
    group: str, inputs: fs.InputModel, horizon: int, proposed: list[bool]
) -> None:
    bound = Fraction(1, horizon + 1)
    shield = fs.Shield(fs.synthesize(fs.DemographicParity(bound), inputs, horizon=horizon))
    made = [shield.decide(group, proposed=r).accepted for r in proposed[: horizon - 1]]
    assert len(set(made)) == 1
    other = "b" if group == "a" else "a"
    # The last person makes the two rates equal.
    assert shield.decide(other, proposed=not made[0]).accepted == made[0]
    assert shield.policy.prop.holds(shield.counts)
