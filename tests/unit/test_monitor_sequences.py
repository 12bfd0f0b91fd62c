"""Intervals that are right at all times at once."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fairshield as fs
from fairshield.base.counts import GroupCount
from fairshield.monitor.sequences import log_evidence, rate_interval
from fairshield.spec import Interval

ALPHAS = st.sampled_from([0.5, 0.05, 0.001])
chances = st.floats(0.01, 0.99)


@st.composite
def counters(draw: st.DrawFn, most: int = 5000) -> tuple[int, int]:
    seen = draw(st.integers(1, most))
    return seen, draw(st.integers(0, seen))


@given(counters(), ALPHAS)
def test_an_interval_contains_the_observed_rate(count: tuple[int, int], alpha: float) -> None:
    lower, observed, upper = rate_interval(*count, alpha)
    assert observed == count[1] / count[0]
    assert 0.0 <= lower <= observed <= upper <= 1.0


@given(counters(), ALPHAS, st.floats(0, 1))
def test_an_interval_is_what_the_evidence_does_not_exclude(
    count: tuple[int, int], alpha: float, rate: float
) -> None:
    interval = rate_interval(*count, alpha)
    assume(min(abs(rate - interval.lower), abs(rate - interval.upper)) > 1e-9)
    excluded = log_evidence(*count, rate) >= -math.log(alpha)
    assert excluded == (not interval.lower <= rate <= interval.upper)


@given(counters(), ALPHAS, ALPHAS)
def test_to_be_surer_takes_a_wider_interval(
    count: tuple[int, int], one: float, other: float
) -> None:
    sure, less_sure = (rate_interval(*count, a) for a in sorted((one, other)))
    assert sure.lower <= less_sure.lower
    assert less_sure.upper <= sure.upper


@given(counters(500), ALPHAS)
def test_four_times_the_people_make_an_interval_narrower(
    count: tuple[int, int], alpha: float
) -> None:
    seen, accepted = count
    few, many = rate_interval(seen, accepted, alpha), rate_interval(4 * seen, 4 * accepted, alpha)
    assert many.upper - many.lower <= few.upper - few.lower + 1e-12


def test_nobody_seen_says_nothing() -> None:
    interval = rate_interval(0, 0, 0.05)
    assert (interval.lower, interval.upper) == (0.0, 1.0)
    assert math.isnan(interval.estimate)


@given(chances, st.integers(1, 40))
def test_the_evidence_against_the_true_rate_is_one_on_average(p: float, n: int) -> None:
    total = sum(
        math.comb(n, k) * p**k * (1 - p) ** (n - k) * math.exp(log_evidence(n, k, p))
        for k in range(n + 1)
    )
    assert total == pytest.approx(1.0, rel=1e-9)


@given(st.lists(chances, min_size=31, max_size=31), st.integers(1, 5))
def test_whatever_rates_depend_on_the_evidence_against_their_average_is_at_most_one(
    by_past: list[float], n: int
) -> None:
    expected = 0.0
    for sequence in product((0, 1), repeat=n):
        node, probability, rates = 0, 1.0, []
        for x in sequence:
            p = by_past[node]  # of acceptance, given all decisions before
            rates.append(p)
            probability *= p if x else 1 - p
            node = 2 * node + 1 + x
        mean = sum(rates) / n
        expected += probability * math.exp(log_evidence(n, sum(sequence), mean))
    assert expected <= 1.0 + 1e-9


@pytest.mark.parametrize("world", ["constant", "drifting", "reacting"])
def test_of_many_streams_few_ever_leave_their_interval(world: str) -> None:
    streams, length, alpha = 2000, 500, 0.05
    rng = np.random.default_rng(7)
    missed = np.zeros(streams, bool)
    accepted, total = np.zeros(streams), np.zeros(streams)
    for n in range(1, length + 1):
        p = {
            "constant": np.full(streams, 0.3),
            "drifting": np.full(streams, 0.2 + 0.6 * n / length),
            # Like a shield: more acceptances call for fewer.
            "reacting": np.clip(0.9 - accepted / n, 0.05, 0.95),
        }[world]
        accepted += rng.random(streams) < p
        total += p
        if n > 100 and n % 5:
            continue
        missed |= _evidence(n, accepted, total / n) >= -math.log(alpha)
    assert missed.mean() <= alpha


def _evidence(n: int, accepted: Any, mean: Any) -> Any:
    from fairshield.monitor import sequences  # noqa: PLC0415

    lambdas = sequences._LAMBDAS[:, None]
    terms = lambdas * accepted - n * np.log1p(mean * np.expm1(lambdas))
    return np.logaddexp.reduce(terms + sequences._LOG_WEIGHTS[:, None], axis=0)


# From rates to bias -------------------------------------------------------------------------

PROPS = [
    fs.DemographicParity("0.1"),
    fs.EqualOpportunity("0.1"),
    fs.DisparateImpact("0.8"),
    fs.DisparateImpact("1.2", two_sided=False),
    fs.BoundedRates("0.3", "0.6"),
    fs.spec.Sustained(fs.DemographicParity("0.1")),
]


@st.composite
def within(draw: st.DrawFn) -> tuple[Interval, int]:
    """An interval, and a rate inside, in thousandths."""
    low, rate, high = sorted(draw(st.lists(st.integers(0, 1000), min_size=3, max_size=3)))
    return Interval(low / 1000, math.nan, high / 1000), rate


@pytest.mark.parametrize("prop", PROPS, ids=str)
@given(within(), within())
def test_the_bias_of_rates_within_their_intervals_is_within_its_own(
    prop: fs.Property, one: tuple[Interval, int], other: tuple[Interval, int]
) -> None:
    bounds = prop.bias_within(one[0], other[0], Interval(0.0, 0.5, 1.0))
    assert bounds is not None
    bias = float(prop.bias(GroupCount(1000, one[1]), GroupCount(1000, other[1])))
    assert bounds[0] - 1e-12 <= bias <= bounds[1] + 1e-12


@given(st.integers(1, 1000), st.integers(0, 1000))
def test_the_bias_of_shares_follows_from_the_share_of_one_group(team: int, of_a: int) -> None:
    of_a %= team + 1
    share = Interval(of_a / team, of_a / team, of_a / team)
    whole = Interval(0.0, 0.5, 1.0)
    bounds = fs.ShareParity("0.1").bias_within(whole, whole, share)
    bias = fs.ShareParity("0.1").bias(GroupCount(team, of_a), GroupCount(team, team - of_a))
    assert bounds == pytest.approx((float(bias), float(bias)))


@pytest.mark.parametrize("prop", PROPS, ids=str)
@given(st.integers(0, 1000), st.integers(0, 1000))
def test_exact_rates_have_an_exact_bias(prop: fs.Property, one: int, other: int) -> None:
    a, b = (Interval(k / 1000, k / 1000, k / 1000) for k in (one, other))
    bias = float(prop.bias(GroupCount(1000, one), GroupCount(1000, other)))
    assert prop.bias_within(a, b, a) == pytest.approx((bias, bias))
