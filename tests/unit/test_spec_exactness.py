"""Fairness is decided in integers: every verdict equals that of exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Branching, NotThatMany, Quota, linear_properties, one_sided, properties

import fairshield as fs
from fairshield.spec import Property

Count = fs.GroupCount[int]


def fair_by_definition(prop: Property, a: Count, b: Count) -> bool:
    """The definitions of the properties, in fractions and with division."""
    if min(a.seen, b.seen) < prop.min_support:
        return True
    if isinstance(prop, fs.ShareParity):
        return abs(a.accepted - b.accepted) <= prop.bound * (a.accepted + b.accepted)
    rates = [Fraction(g.accepted, g.seen) if g.seen else Fraction(0) for g in (a, b)]
    unseen = [g.seen == 0 and prop.undefined == "bias-0" for g in (a, b)]
    if isinstance(prop, fs.BoundedRates):
        return all(u or prop.lower <= r <= prop.upper for r, u in zip(rates, unseen, strict=True))
    if any(unseen):
        return True
    if isinstance(prop, fs.DisparateImpact):
        if prop.two_sided:
            return min(rates) >= prop.bound * max(rates)
        return rates[0] <= prop.bound * rates[1]
    return abs(rates[0] - rates[1]) <= prop.bound


@st.composite
def counts(draw: st.DrawFn, most: int) -> Count:
    seen = draw(st.integers(0, most))
    return fs.GroupCount(seen, draw(st.integers(0, seen)))


@st.composite
def near_ties(draw: st.DrawFn, most: int = 10**6) -> tuple[fs.DemographicParity, Count, Count]:
    """Counters whose rates differ by the bound or by one person more or less."""
    bound = draw(st.sampled_from([Fraction("0.1234567"), Fraction(1, 10), Fraction(1, 3)]))
    n_a, n_b = (draw(st.integers(1, most)) for _ in "ab")
    k_a = draw(st.integers(0, n_a))
    edge = Fraction(k_a, n_a) + draw(st.sampled_from([-1, 1])) * bound
    k_b = int(edge * n_b) + draw(st.integers(-1, 1))
    return (
        fs.DemographicParity(bound),
        fs.GroupCount(n_a, k_a),
        fs.GroupCount(n_b, min(max(k_b, 0), n_b)),
    )


def holds(prop: Property, a: Count, b: Count) -> bool:
    return prop.holds(fs.Counts({"a": a, "b": b}))


big = st.sampled_from([10, 1000, 10**6]).flatmap(counts)


@given(linear_properties | one_sided, big, big)
def test_every_verdict_is_that_of_fractions(prop: Property, a: Count, b: Count) -> None:
    assert holds(prop, a, b) == fair_by_definition(prop, a, b)


@given(near_ties())
def test_near_ties_are_judged_as_by_fractions(
    case: tuple[fs.DemographicParity, Count, Count],
) -> None:
    prop, a, b = case
    expected = fair_by_definition(prop, a, b)
    assert holds(prop, a, b) == expected
    arrays = [fs.GroupCount(np.array([g.seen]), np.array([g.accepted])) for g in (a, b)]
    assert prop.holds_array(*arrays).tolist() == [expected]


@pytest.mark.parametrize("tenth", ["0.1", 0.1, Fraction(1, 10)])
def test_ties_are_fair_though_floats_say_otherwise(tenth: object) -> None:
    prop = fs.DemographicParity(tenth)
    assert 0.8 - 0.7 > 0.1
    for n in (10, 100, 10**6):
        assert holds(prop, fs.GroupCount(n, n * 8 // 10), fs.GroupCount(n, n * 7 // 10))
        assert not holds(prop, fs.GroupCount(n, n * 8 // 10), fs.GroupCount(n, n * 7 // 10 - 1))


@given(properties, st.lists(st.tuples(big, big), min_size=1, max_size=5))
def test_arrays_are_judged_like_single_counters(
    prop: Property, pairs: list[tuple[Count, Count]]
) -> None:
    a, b = (fs.GroupCount(*(np.array([p[i][j] for p in pairs]) for j in (0, 1))) for i in (0, 1))
    assert prop.holds_array(a, b).tolist() == [holds(prop, *pair) for pair in pairs]


@given(properties, counts(6), st.integers(0, 6))
def test_arrays_broadcast(prop: Property, a: Count, n_b: int) -> None:
    k_b = np.arange(n_b + 1)
    fair = prop.holds_array(a, fs.GroupCount(n_b, k_b))
    assert fair.shape == k_b.shape
    assert fair.tolist() == [holds(prop, a, fs.GroupCount(n_b, int(k))) for k in k_b]


def both(known: Count, other: Count, along: int) -> tuple[Count, Count]:
    """Counters of a and b, where ``other`` is those of the group ``along``."""
    return (known, other) if along else (other, known)


def interval(prop: fs.LinearProperty, known: Count, seen: Any, along: int) -> tuple[Any, Any]:
    """Fair acceptances of ``seen`` people of the group ``along``."""
    a, b = both(known, fs.GroupCount(seen, 0), along)
    return prop.fair_interval(a.seen, b.seen, accepted=known.accepted, along=along)


either = st.sampled_from([0, 1])


@given(linear_properties | one_sided, counts(12), st.integers(0, 12), either)
def test_fair_interval_is_what_holds_says(
    prop: fs.LinearProperty, known: Count, seen: int, along: int
) -> None:
    lo, hi = interval(prop, known, seen, along)
    fair = [k for k in range(seen + 1) if holds(prop, *both(known, fs.GroupCount(seen, k), along))]
    assert fair == [k for k in range(seen + 1) if lo <= k < hi]


@given(linear_properties | one_sided, st.lists(st.tuples(counts(9), counts(9), either), min_size=1))
def test_one_call_answers_for_both_groups(
    prop: fs.LinearProperty, cases: list[tuple[Count, Count, int]]
) -> None:
    pairs = [both(known, other, along) for known, other, along in cases]
    n_a, n_b = (np.array([pair[g].seen for pair in pairs]) for g in (0, 1))
    accepted = np.array([known.accepted for known, _, _ in cases])
    along = np.array([along for _, _, along in cases])
    lo, hi = prop.fair_interval(n_a, n_b, accepted=accepted, along=along)
    alone = [interval(prop, known, other.seen, g) for known, other, g in cases]
    assert list(zip(lo.tolist(), hi.tolist(), strict=True)) == alone


@given(linear_properties | one_sided, big, st.integers(1, 10**6), either)
def test_ends_of_large_fair_intervals_are_exact(
    prop: fs.LinearProperty, known: Count, seen: int, along: int
) -> None:
    lo, hi = (int(end) for end in interval(prop, known, seen, along))
    for k, inside in ((lo - 1, False), (lo, True), (hi - 1, True), (hi, False)):
        if 0 <= k <= seen:
            fair = fair_by_definition(prop, *both(known, fs.GroupCount(seen, k), along))
            assert fair == (inside and lo < hi)


# Their products with counters exceed 64 bits.
HUGE = [Fraction(2**61 - 1, 2**62), Fraction("0.12345678901234567890123456789"), Fraction(1, 3**80)]
huge = st.sampled_from(
    [
        kind(bound, undefined=undefined)
        for kind in (fs.DemographicParity, fs.ShareParity, fs.DisparateImpact)
        for bound in HUGE
        for undefined in ("bias-0", "rate-0")
    ]
    + [fs.BoundedRates(low, low + Fraction(1, 2), min_support=0) for low in HUGE]
    + [fs.DisparateImpact(1 / bound, two_sided=False) for bound in HUGE]
)


@given(huge, big, big, either)
def test_huge_coefficients_never_wrap(
    prop: fs.LinearProperty, a: Count, b: Count, along: int
) -> None:
    expected = fair_by_definition(prop, a, b)
    assert holds(prop, a, b) == expected
    x, y = (fs.GroupCount(np.array([g.seen]), np.array([g.accepted])) for g in (a, b))
    assert prop.holds_array(x, y).tolist() == [expected]
    known, other = (x, y) if along else (y, x)
    lo, hi = interval(prop, known, other.seen, along)
    assert (lo <= other.accepted) & (other.accepted < hi) == expected


@given(huge, counts(9), counts(9), either)
def test_fair_interval_of_single_counters_never_wraps(
    prop: fs.LinearProperty, known: Count, other: Count, along: int
) -> None:
    lo, hi = interval(prop, known, other.seen, along)
    assert (lo <= other.accepted < hi) == fair_by_definition(prop, *both(known, other, along))


@given(linear_properties | one_sided, counts(60), counts(60))
def test_bias_is_within_the_limit_exactly_if_fair_up_to_rounding(
    prop: Property, a: Count, b: Count
) -> None:
    bias = prop.bias_of(fs.Counts({"a": a, "b": b}))
    if abs(bias - prop.limit) > 1e-9:
        assert (bias < prop.limit) == holds(prop, a, b)
    elif holds(prop, a, b) is False:
        # Then it is a rounding error away, not a person.
        assert bias == pytest.approx(prop.limit, abs=1e-9)


@given(linear_properties | one_sided, st.lists(st.tuples(counts(9), counts(9)), min_size=1))
def test_bias_of_arrays_is_that_of_single_counters(
    prop: Property, pairs: list[tuple[Count, Count]]
) -> None:
    a, b = (fs.GroupCount(*(np.array([p[i][j] for p in pairs]) for j in (0, 1))) for i in (0, 1))
    single = [prop.bias_of(fs.Counts({"a": x, "b": y})) for x, y in pairs]
    assert np.asarray(prop.bias(a, b)).tolist() == single


@pytest.mark.parametrize("prop", [Quota(1), NotThatMany(2), Branching(1)])
def test_support_frees_properties_of_ones_own_as_well(prop: Property) -> None:
    unfair = fs.Counts({"a": (3, 2), "b": (3, 0)})
    assert not prop.holds(unfair)
    data = {k: v for k, v in prop.to_dict().items() if k != "kind"}
    assert type(prop)(**{**data, "min_support": 4}).holds(unfair)
    assert not type(prop)(**{**data, "min_support": 3}).holds(unfair)
