"""Examples of the paper "Fairness shields"."""

from __future__ import annotations

import pytest

import fairshield as fs


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
