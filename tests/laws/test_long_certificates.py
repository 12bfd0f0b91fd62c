"""Certificates for long windows: sets of counters that whoever arrives cannot make one leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from typing import NamedTuple

import long_certified
import numpy as np
import pytest
from effort import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from long_cases import EVEN, counts_of, long_policy
from strategies import positions

import fairshield as fs
from fairshield.policy.long import PriceDecisions, kernels
from fairshield.policy.long.certificates import Certificates, closed
from fairshield.spec import NoRequirement
from fairshield.spec.rules import DIFFERENCE, KIND, ONE_SIDED, RATIO

Count = fs.GroupCount[int]
Certified = Callable[[Count, Count, int], bool]


class Case(NamedTuple):
    """A property, and which share of the feasible states of a window is at least certified.

    The window has 14 decisions where outcomes count and 24 otherwise; its end is left out, where
    nothing is at stake any more.
    """

    prop: fs.Property
    share: float = 1.0


CASES = [
    Case(fs.DemographicParity("0.3"), 0.999),
    Case(fs.DemographicParity("1/2"), 0.999),
    Case(fs.DemographicParity("0.2"), 0.88),
    Case(fs.DemographicParity("2/3")),
    Case(fs.DemographicParity("1")),
    Case(fs.DemographicParity("1/3", min_support=2), 0.998),
    Case(fs.DemographicParity("1/3", min_support=5), 0.999),
    Case(fs.DemographicParity("1/3", undefined="rate-0"), 0.999),
    Case(fs.DemographicParity("1/2", min_support=2, undefined="rate-0")),
    Case(fs.EqualOpportunity("1/3")),
    Case(fs.EqualOpportunity("0.3", undefined="rate-0")),
    Case(fs.EqualOpportunity("1/3", min_support=4), 0.999),
    Case(fs.PredictiveEquality("1/2", min_support=3)),
    Case(fs.DisparateImpact("1/2"), 0.85),
    Case(fs.DisparateImpact("0.8"), 0.44),
    Case(fs.DisparateImpact("1/3", min_support=3), 0.83),
    Case(fs.DisparateImpact("2/3", min_support=1, undefined="rate-0"), 0.68),
    Case(fs.DisparateImpact("0"), 0.99),
    Case(fs.DisparateImpact("1.25", two_sided=False)),
    Case(fs.DisparateImpact("1/2", two_sided=False)),
    Case(fs.DisparateImpact("1/2", two_sided=False, min_support=3), 0.93),
    Case(fs.DisparateImpact("0", two_sided=False)),
    Case(fs.BoundedRates("0.3", "0.7")),
    Case(fs.BoundedRates("0.3", "0.7", min_support=1)),
    Case(fs.BoundedRates("0", "1/2", min_support=1)),
    Case(fs.BoundedRates("1/3", "2/3", min_support=0)),
    Case(fs.BoundedRates("0.25", "0.75", outcome=True)),
    Case(fs.BoundedRates("1/2", "1", outcome=False, min_support=1)),
    Case(NoRequirement()),
    Case(NoRequirement(outcome=True)),
]
PROPS = [case.prop for case in CASES]
DIFFERENCES = [prop for prop in PROPS if prop.rule().numbers[KIND] == DIFFERENCE]
CLOSING = [prop for prop in PROPS if prop.rule().numbers[KIND] in (DIFFERENCE, RATIO)]
every_kind = pytest.mark.parametrize("prop", PROPS, ids=repr)
differences = pytest.mark.parametrize("prop", DIFFERENCES, ids=repr)
LEFT = (0, 1, 2, 3, 4, 8, 13, 14, 21, 34, 55)
"""Decisions left."""


def certificates(prop: fs.Property, *, goes_on: bool = False) -> Certificates:
    return Certificates(prop, prop.rule(), goes_on=goes_on)


def small(most: int) -> Iterator[tuple[Count, Count]]:
    """All counters with at most so many people in each group."""
    one = [fs.GroupCount(n, k) for n in range(most + 1) for k in range(n + 1)]
    return product(one, one)


def after(count: Count) -> tuple[Count, Count]:
    """One more person rejected, or accepted."""
    return fs.GroupCount(count.seen + 1, count.accepted), fs.GroupCount(
        count.seen + 1, count.accepted + 1
    )


def kept(certified: Certified, labelled: bool, a: Count, b: Count, left: int) -> bool:
    """Whoever comes, some decision leads on; who turns out not to count leads on as well."""
    return (
        any(certified(then, b, left - 1) for then in after(a))
        and any(certified(a, then, left - 1) for then in after(b))
        and (not labelled or certified(a, b, left - 1))
    )


# What a certificate is ----------------------------------------------------------------------


@every_kind
def test_whoever_comes_some_decision_leads_from_certified_to_certified(prop: fs.Property) -> None:
    assert_kept(prop, certificates(prop))


@differences
def test_so_it_does_if_the_window_goes_on(prop: fs.Property) -> None:
    assert_kept(prop, certificates(prop, goes_on=True))


def assert_kept(prop: fs.Property, of: Certificates) -> None:
    certified, labelled, some = of.certified, prop.relevant_outcome is not None, False
    for (a, b), left in product(small(6), LEFT[1:]):
        if certified(a, b, left):
            assert kept(certified, labelled, a, b, left), (a, b, left)
            some = True
    assert some


@every_kind
def test_certified_counters_with_nothing_left_are_fair(prop: fs.Property) -> None:
    certified = certificates(prop).certified
    for a, b in small(11):
        assert not certified(a, b, 0) or prop.holds(counts_of(*a, *b)), (a, b)


@differences
def test_where_the_window_goes_on_they_are_those_that_can_be_kept_fair(prop: fs.Property) -> None:
    """So that each check leaves a certificate for the next, however far it is."""
    certified, sustained = certificates(prop, goes_on=True).certified, fs.spec.Sustained(prop)
    for a, b in small(8):
        fair = sustained.holds(counts_of(*a, *b))
        assert certified(a, b, 0) == fair
        if fair:
            assert all(certified(a, b, left) for left in LEFT)


@st.composite
def random_properties(draw: st.DrawFn) -> fs.Property:
    """Awkward bounds, supports and conventions of every kind."""
    bound = draw(
        st.sampled_from([Fraction("0.1234567"), Fraction(1, 20), Fraction("0.05001"), Fraction(1)])
        | st.fractions("1/15", 1, max_denominator=30)
    )
    support = draw(st.sampled_from([0, 0, 1, 3, 12]))
    undefined = draw(st.sampled_from(["bias-0", "rate-0"])) if support else "bias-0"
    options = {"min_support": support, "undefined": undefined}
    kinds: list[Callable[[], fs.Property]] = [
        lambda: fs.DemographicParity(bound, **options),
        lambda: fs.EqualOpportunity(bound, **options),
        lambda: fs.DisparateImpact(min(bound, Fraction(9, 10)), **options),
        lambda: fs.DisparateImpact(3 * bound, two_sided=False, **options),
        lambda: fs.BoundedRates(bound / 2, bound, **options),
        lambda: fs.BoundedRates(bound / 2, bound, outcome=True),
    ]
    return draw(st.sampled_from(kinds))()


@st.composite
def counters(draw: st.DrawFn, prop: fs.Property, most: int) -> tuple[Count, Count, int]:
    """Counters about as far apart as the property allows, and decisions left."""
    sizes = st.integers(0, 40) | st.integers(0, most // 4)
    n, m = draw(sizes), draw(sizes)
    left = draw(st.integers(0, 60) | st.integers(0, most // 4))
    share = draw(st.fractions(0, 1, max_denominator=12))
    far = getattr(prop, "bound", Fraction(0))
    gap = draw(st.sampled_from([-far, 0, far]))
    ratio = draw(st.sampled_from([Fraction(1), far])) if far else Fraction(1)
    k, x = share * n, (share + gap) * ratio * m
    # The strongest correction with all decisions left, on top of that.
    x += draw(st.sampled_from([0, 0, -left, left]))
    k, x = (min(max(int(y) + draw(st.integers(-2, 2)), 0), seen) for y, seen in ((k, n), (x, m)))
    a, b = fs.GroupCount(n, k), fs.GroupCount(m, x)
    return (a, b, left) if draw(st.booleans()) else (b, a, left)


@settings(max_examples=examples(200))
@given(random_properties(), st.data())
def test_large_counters_near_the_bound_stay_certified_as_well(
    prop: fs.Property, data: st.DataObject
) -> None:
    a, b, left = data.draw(counters(prop, prop.rule().largest))
    of = certificates(prop)
    assume(left and of.certified(a, b, left))
    assert kept(of.certified, prop.relevant_outcome is not None, a, b, left)


@settings(max_examples=examples(100))
@given(random_properties(), st.data())
def test_large_certified_counters_with_nothing_left_are_fair(
    prop: fs.Property, data: st.DataObject
) -> None:
    a, b, _ = data.draw(counters(prop, prop.rule().largest))
    assert not certificates(prop).certified(a, b, 0) or prop.holds(counts_of(*a, *b))


# Beside the exact tables --------------------------------------------------------------------

STARTS = [(0, 0, 0, 0), (3, 1, 0, 0), (0, 0, 4, 4), (12, 6, 2, 0), (5, 5, 5, 0), (20, 11, 18, 7)]


class Seen(NamedTuple):
    """A state of a window: its counters, decisions left, and what is known about it."""

    a: Count
    b: Count
    left: int
    feasible: bool
    certified: bool


def states(prop: fs.Property, horizon: int, start: fs.Counts) -> Iterator[Seen]:
    """All states of a window; what is feasible is told by the exact table."""
    exact = fs.synthesize(
        prop, EVEN, horizon=horizon, start=start, best_effort=True, method="exact"
    )
    certified = certificates(prop).certified
    for t, at in positions(horizon, exact.labelled):
        a, b = start.plus(at).values()
        left = horizon - t
        yield Seen(a, b, left, exact.decisions.feasible(t, at), certified(a, b, left))


@cache
def states_from(prop: fs.Property, at: tuple[int, int, int, int]) -> list[Seen]:
    return list(states(prop, 8, counts_of(*at)))


@every_kind
def test_certified_counters_are_feasible_from_every_start(prop: fs.Property) -> None:
    for at in STARTS:
        for seen in states_from(prop, at):
            assert seen.feasible or not seen.certified, (at, seen)


@pytest.mark.parametrize("prop", CLOSING, ids=repr)
def test_on_closed_counters_certified_is_feasible(prop: fs.Property) -> None:
    """Closed, and as many people as make the property bind."""
    of, some = certificates(prop), False
    for at in STARTS:
        for seen in states_from(prop, at):
            binding = min(seen.a.seen, seen.b.seen) >= prop.min_support
            if binding and closed(of.rule, *seen.a, *seen.b):
                assert seen.certified == seen.feasible, (at, seen)
                some = True
    assert some


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_certificates_are_hardly_conservative(case: Case) -> None:
    horizon = 24 if case.prop.relevant_outcome is None else 14
    feasible = certified = 0
    for seen in states(case.prop, horizon, fs.Counts.zero(("a", "b"))):
        feasible += seen.feasible and seen.left > 0
        certified += seen.certified and seen.left > 0
    assert certified >= case.share * feasible > 0


# Beside the definition ----------------------------------------------------------------------


@cache
def tables_of(prop: fs.Property) -> PriceDecisions:
    decisions = long_policy(prop, EVEN, 1, endgame=0, best_effort=True).decisions
    assert isinstance(decisions, PriceDecisions)
    return decisions


def assert_defined(prop: fs.Property, a: Count, b: Count, left: int) -> None:
    """As plain Python and, except for two groups of few people, compiled."""
    defined = long_certified.certified(prop, a, b, left)
    of, decisions = certificates(prop), tables_of(prop)
    assert of.certified(a, b, left) == defined
    if max(a.seen, b.seen) < of.few:
        return
    ways = np.empty(0, np.int64)
    if min(a.seen, b.seen) < of.few:
        ways = decisions._ways_of(*(a if a.seen < of.few else b))
    assert kernels.certified(decisions.tables, ways, *a, *b, left) == defined


@settings(max_examples=examples(300))
@given(st.sampled_from(PROPS), st.data())
def test_certified_is_what_the_lemmas_say(prop: fs.Property, data: st.DataObject) -> None:
    """Up to the largest counters that 64 bits are said to do for."""
    assert_defined(prop, *data.draw(counters(prop, prop.rule().largest)))


@settings(max_examples=examples(100))
@given(random_properties(), st.data())
def test_so_it_is_for_awkward_bounds(prop: fs.Property, data: st.DataObject) -> None:
    assert_defined(prop, *data.draw(counters(prop, prop.rule().largest)))


@every_kind
def test_so_it_is_for_all_small_counters(prop: fs.Property) -> None:
    for (a, b), left in product(small(6), (0, 1, 2, 5, 13, 40)):
        assert_defined(prop, a, b, left)


@settings(max_examples=examples(100))
@given(st.sampled_from(PROPS) | random_properties(), st.data())
def test_so_it_is_beyond_64_bits(prop: fs.Property, data: st.DataObject) -> None:
    a, b, left = data.draw(counters(prop, 10**30))
    defined = long_certified.certified(prop, a, b, left)
    assert certificates(prop).certified(a, b, left) == defined


@differences
@settings(max_examples=examples(50))
@given(st.data())
def test_so_it_is_where_the_window_goes_on(prop: fs.Property, data: st.DataObject) -> None:
    a, b, left = data.draw(counters(prop, 10**6))
    defined = long_certified.certified(prop, a, b, left, goes_on=True)
    assert certificates(prop, goes_on=True).certified(a, b, left) == defined


# Laws ---------------------------------------------------------------------------------------


@settings(max_examples=examples(100))
@given(random_properties(), st.data())
def test_group_names_do_not_matter(prop: fs.Property, data: st.DataObject) -> None:
    assume(prop.rule().numbers[KIND] != ONE_SIDED)
    a, b, left = data.draw(counters(prop, 10**6))
    certified = certificates(prop).certified
    assert certified(a, b, left) == certified(b, a, left)


@settings(max_examples=examples(100))
@given(st.sampled_from(DIFFERENCES), st.data())
def test_accepting_and_rejecting_are_alike_for_differences(
    prop: fs.Property, data: st.DataObject
) -> None:
    """But for groups nobody was seen of, if their rate is 0 and not 1."""
    assume(prop.undefined == "bias-0" or prop.min_support)
    a, b, left = data.draw(counters(prop, 10**6))
    other = (fs.GroupCount(n, n - k) for n, k in (a, b))
    certified = certificates(prop).certified
    assert certified(a, b, left) == certified(*other, left)


@differences
@settings(max_examples=examples(50))
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_rejecting_all_is_always_certified(prop: fs.Property, n: int, m: int, left: int) -> None:
    assert certificates(prop).certified(fs.GroupCount(n, 0), fs.GroupCount(m, 0), left)


@settings(max_examples=examples(100))
@given(st.sampled_from(DIFFERENCES), st.data())
def test_what_must_be_kept_after_the_end_is_certified_for_the_end(
    prop: fs.Property, data: st.DataObject
) -> None:
    a, b, left = data.draw(counters(prop, 10**6))
    lasting = certificates(prop, goes_on=True).certified(a, b, left)
    assert certificates(prop).certified(a, b, left) or not lasting
