"""Certificates: corridors of rates that can be kept for ever, whoever arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from effort import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import GROUPS

import fairshield as fs
from fairshield.spec import Certificate, Sustained
from fairshield.spec.corridors import Corridor

KINDS = (fs.DemographicParity, fs.EqualOpportunity, fs.PredictiveEquality)
BOUNDS = [
    Fraction(b) for b in ("0", "0.1234567", "1/20", "1/10", "1/7", "1/5", "1/3", "2/5", "1/2", "1")
]


@st.composite
def differences(draw: st.DrawFn, bound: Fraction | None = None) -> fs.Property:
    """Every option of a difference of rates."""
    bounds = st.sampled_from(BOUNDS) | st.fractions(0, 1, max_denominator=30)
    return draw(st.sampled_from(KINDS))(
        draw(bounds) if bound is None else bound,
        min_support=draw(st.sampled_from([0, 0, 1, 3])),
        undefined=draw(st.sampled_from(["bias-0", "rate-0"])),
    )


@st.composite
def pairs(draw: st.DrawFn, most: int = 25) -> fs.Counts:
    """Counters of two groups, alike or not."""
    seen = [draw(st.integers(0, most)) for _ in GROUPS]
    share = draw(st.fractions(0, 1, max_denominator=8))
    near = [min(max(int(share * n) + draw(st.integers(-1, 1)), 0), n) for n in seen]
    return fs.Counts({g: (n, k) for g, n, k in zip(GROUPS, seen, near, strict=True)})


def counts_of(n_a: int, k_a: int, n_b: int, k_b: int) -> fs.Counts:
    return fs.Counts({"a": (n_a, k_a), "b": (n_b, k_b)})


def small(most: int) -> Iterator[fs.Counts]:
    """All counters with at most so many people in each group."""
    one = [(n, k) for n in range(most + 1) for k in range(n + 1)]
    return (counts_of(*a, *b) for a, b in product(one, one))


def certified(prop: fs.Property, counts: fs.Counts) -> Certificate:
    found = Sustained(prop).certificate(counts)
    assume(found is not None)
    assert found is not None
    return found


# What a certificate promises ----------------------------------------------------------------


@settings(max_examples=examples(500))
@given(differences(), pairs())
def test_a_certificate_is_one_by_definition_and_the_property_holds(
    prop: fs.Property, counts: fs.Counts
) -> None:
    sustained = Sustained(prop)
    found = sustained.certificate(counts)
    assert sustained.holds(counts) == (found is not None)
    if found is not None:
        assert sustained.certifies(found, counts)
        assert certifies_by_hand(prop, found, counts)
        assert prop.holds(counts)
        assert Certificate.from_dict(found.to_dict()) == found


def certifies_by_hand(prop: fs.Property, held: Certificate, counts: fs.Counts) -> bool:
    """The definition, word for word, in fractions."""
    a, b = held.corridors.values()
    close = a.upper - b.lower <= prop.bound and b.upper - a.lower <= prop.bound
    return close and all(serves(prop, held.corridors[g], *counts[g]) for g in counts)


def serves(prop: fs.Property, corridor: Corridor, seen: int, accepted: int) -> bool:
    first, (lower, upper) = max(seen, prop.min_support, 1), corridor
    # An interval of length 1 contains an integer; one of length 0 does not always.
    most = 2 + max(lower, upper).denominator if lower >= upper else 1 + int(1 / (upper - lower))
    full = all(-(-lower * n // 1) <= upper * n // 1 for n in range(first, first + most))
    inside = [k for k in range(first + 1) if lower * first <= k <= upper * first]
    return (
        full
        and any(accepted <= k <= accepted + first - seen for k in inside)
        and at_least_zero(prop, seen, corridor)
    )


@st.composite
def corridors(draw: st.DrawFn) -> Corridor:
    lower = draw(st.fractions(0, 1, max_denominator=12))
    return Corridor(lower, min(lower + draw(st.fractions(0, "1/2", max_denominator=9)), 1))


@settings(max_examples=examples(500))
@given(differences(), corridors(), st.fractions(0, "1/5", max_denominator=15), pairs(most=9))
def test_what_certifies_is_told_by_the_definition(
    prop: fs.Property, corridor: Corridor, shift: Fraction, counts: fs.Counts
) -> None:
    other = Corridor(*(max(end - shift, Fraction(0)) for end in corridor))
    offered = Certificate({"a": corridor, "b": other})
    expected = certifies_by_hand(prop, offered, counts)
    assert Sustained(prop).certifies(offered, counts) == expected


@pytest.mark.parametrize("corridor", [("17/50", "49/100"), ("1/3", "49/100"), ("2/5", "9/20")])
def test_a_corridor_serves_only_beyond_its_last_gap(corridor: tuple[str, str]) -> None:
    """Between 17/50 and 49/100 lies no k/6, but some k/n for every larger n."""
    prop = fs.DemographicParity("1/2")
    own = Corridor(*map(Fraction, corridor))
    offered = Certificate({"a": own, "b": Corridor(Fraction(0), Fraction(1, 2))})
    for n in range(1, 40):
        for k in range(n + 1):
            counts = counts_of(n, k, 0, 0)
            expected = certifies_by_hand(prop, offered, counts)
            assert Sustained(prop).certifies(offered, counts) == expected


def kept(prop: fs.Property, held: Certificate, now: fs.Counts, group: str, r: bool) -> fs.Counts:
    """Counters after one more relevant person; those who are not relevant change nothing."""
    accepted = Sustained(prop).accepts(held, now, group, proposed=r)
    return now.after(group, accepted=accepted)


@settings(max_examples=examples(60))
@given(differences(), pairs(most=9))
def test_following_a_certificate_keeps_the_property_in_every_order(
    prop: fs.Property, counts: fs.Counts
) -> None:
    """Whoever comes, whatever is proposed, the property holds and the certificate stays one."""
    held, sustained = certified(prop, counts), Sustained(prop)
    reached = {counts}
    for _ in range(7):
        reached = {kept(prop, held, s, g, r) for s in reached for g in GROUPS for r in (0, 1)}
        for state in reached:
            assert prop.holds(state)
            assert sustained.certifies(held, state)


Adversary = Callable[[fs.Property, Certificate, fs.Counts, int], tuple[str, bool]]


def starve(prop: fs.Property, held: Certificate, now: fs.Counts, t: int) -> tuple[str, bool]:
    """One group alone, and once in a long while somebody of the other."""
    return ("b", False) if t % 50 == 49 else ("a", True)


def alternate(prop: fs.Property, held: Certificate, now: fs.Counts, t: int) -> tuple[str, bool]:
    return GROUPS[t % 2], t % 2 == 0


def follow_the_bias(
    prop: fs.Property, held: Certificate, now: fs.Counts, t: int
) -> tuple[str, bool]:
    """The smaller group, proposed so that the gap would widen."""
    group = min(GROUPS, key=lambda g: now[g].seen)
    rate = {g: Fraction(n.accepted, max(n.seen, 1)) for g, n in now.items()}
    return group, rate[group] == max(rate.values())


def greedy(prop: fs.Property, held: Certificate, now: fs.Counts, t: int) -> tuple[str, bool]:
    """Whatever leaves the largest bias."""
    return max(
        product(GROUPS, (False, True)),
        key=lambda request: prop.bias_of(kept(prop, held, now, *request)),
    )


@pytest.mark.parametrize("adversary", [starve, alternate, follow_the_bias, greedy])
@settings(max_examples=examples(15))
@given(differences(), pairs())
def test_no_adversary_drives_a_certified_run_out_of_bounds(
    adversary: Adversary, prop: fs.Property, counts: fs.Counts
) -> None:
    held, now = certified(prop, counts), counts
    for t in range(200):
        now = kept(prop, held, now, *adversary(prop, held, now, t))
        assert prop.holds(now)


@given(differences(), pairs(), st.booleans())
def test_a_proposal_that_stays_in_the_corridor_is_kept(
    prop: fs.Property, counts: fs.Counts, proposed: bool
) -> None:
    held = certified(prop, counts)
    for group in GROUPS:
        accepted = Sustained(prop).accepts(held, counts, group, proposed=proposed)
        if accepted != proposed:
            other = counts.after(group, accepted=proposed)
            assert not Sustained(prop).certifies(held, other)


# The search ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", ["1/10", "1/7", "1/4", "1/3", "1/2", "1"])
@pytest.mark.parametrize("least", [0, 4])
def test_the_closed_form_is_what_the_search_finds(bound: str, least: int) -> None:
    """From 1/n_a + 1/n_b <= 2 kappa on, all fair counters are certified and no others."""
    prop = fs.DemographicParity(bound, min_support=least)
    sustained = Sustained(prop)
    most = max(int(3 / (2 * prop.bound)), 4)
    boundary = 0
    for n_a, n_b in product(range(1, most + 1), range(1, most + 1)):
        reciprocals = Fraction(1, n_a) + Fraction(1, n_b)
        closed = reciprocals <= 2 * prop.bound and min(n_a, n_b) >= least
        assert bool(sustained._closed(n_a, n_b)) == closed
        # Inside the region the search has more room: its edge is where it could fail.
        inside = reciprocals < Fraction(4, 3) * prop.bound and min(n_a, n_b) > least
        if not closed or inside:
            continue
        for k_a, k_b in product(range(n_a + 1), range(n_b + 1)):
            counts = counts_of(n_a, k_a, n_b, k_b)
            assert (sustained._search(*counts.values()) is not None) == prop.holds(counts)
            boundary += 1
    assert boundary


ORDER = 12
ENDS = sorted({Fraction(k, n) for n in range(1, ORDER + 1) for k in range(n + 1)})


@cache
def last_gap(lower: Fraction, upper: Fraction) -> int:
    """The largest n without a k/n in between, looked for one by one.

    Ends of these denominators are equal or at least 1/132 apart, so that no gap is beyond 132
    unless there is one for every other n.
    """
    gaps = (n for n in range(ORDER * (ORDER - 1), 0, -1) if -(-lower * n // 1) > upper * n // 1)
    return next(gaps, 0)


@cache
def corridors_by_hand(seen: int, accepted: int, first: int) -> tuple[Corridor, ...]:
    """Of all corridors with these ends, those that serve the counters and contain no other."""
    serving = [
        Corridor(lower, upper)
        for i, lower in enumerate(ENDS)
        for upper in ENDS[i:]
        if last_gap(lower, upper) < first
        and any(
            lower * first <= k <= upper * first
            for k in range(accepted, accepted + first - seen + 1)
        )
    ]
    narrow: list[Corridor] = []
    for c in sorted(serving, key=lambda c: c.upper - c.lower):
        if not any(c.lower <= n.lower and n.upper <= c.upper for n in narrow):
            narrow.append(c)
    return tuple(narrow)


@pytest.mark.parametrize("least", [0, 3])
@pytest.mark.parametrize("undefined", ["bias-0", "rate-0"])
@pytest.mark.parametrize("bound", ["1/10", "1/5", "1/3", "5/12"])
def test_where_any_corridors_would_do_the_search_finds_some(
    bound: str, undefined: str, least: int
) -> None:
    prop = fs.DemographicParity(bound, min_support=least, undefined=undefined)
    sustained = Sustained(prop)
    for counts in small(5):
        a, b = (
            [c for c in corridors_by_hand(n, k, max(n, least, 1)) if at_least_zero(prop, n, c)]
            for n, k in counts.values()
        )
        exists = any(
            c.upper - d.lower <= prop.bound and d.upper - c.lower <= prop.bound
            for c, d in product(a, b)
        )
        assert not exists or sustained.holds(counts), counts


def at_least_zero(prop: fs.Property, seen: int, corridor: Corridor) -> bool:
    """Where an unseen group has rate 0, its corridor must contain it."""
    counts = seen == 0 and prop.undefined == "rate-0" and not prop.min_support
    return corridor.lower == 0 or not counts


# Many states at once ------------------------------------------------------------------------


@st.composite
def rows(draw: st.DrawFn, most: int) -> tuple[list[int], list[int], list[int], list[int]]:
    """People seen in both groups, acceptances in one, and the group to ask about."""
    table = []
    for _ in range(draw(st.integers(1, 6))):
        n_a, n_b = draw(st.integers(0, most)), draw(st.integers(0, most))
        along = draw(st.integers(0, 1))
        table.append((n_a, n_b, draw(st.integers(0, n_a if along else n_b)), along))
    n_a, n_b, accepted, along = (list(column) for column in zip(*table, strict=True))
    return n_a, n_b, accepted, along


def holds_at(prop: fs.Property, n_a: int, n_b: int, accepted: int, along: int, k: int) -> bool:
    k_a, k_b = (accepted, k) if along else (k, accepted)
    return prop.holds(counts_of(n_a, k_a, n_b, k_b))


@settings(max_examples=examples(150))
@given(differences(), rows(most=14))
def test_fair_runs_are_the_states_that_hold(prop: fs.Property, given_rows: tuple) -> None:
    sustained = Sustained(prop)
    n_a, n_b, accepted, along = map(np.array, given_rows)
    at, low, high = sustained.fair_runs(n_a, n_b, accepted=accepted, along=along)
    interval = sustained.fair_interval(n_a, n_b, accepted=accepted, along=along)
    for row, (p, q, k, g) in enumerate(zip(*given_rows, strict=True)):
        fair = {
            x
            for here, lo, hi in zip(at, low, high, strict=True)
            for x in range(lo, hi)
            if here == row
        }
        room = range((q if g else p) + 1)
        assert fair == {x for x in room if holds_at(sustained, p, q, k, g, x)}
        if interval is not None:
            assert fair == set(range(interval[0][row], interval[1][row]))


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
@settings(max_examples=examples(30))
@given(st.integers(0, 6), st.integers(0, 2), st.integers(0, 1), st.data())
def test_fair_runs_are_exact_for_a_hundred_million_million_people(
    bound: Fraction, few: int, jitter: int, along: int, data: st.DataObject
) -> None:
    """The ends of each run hold, their neighbours outside do not."""
    sustained, many = Sustained(data.draw(differences(bound))), 10**14 + jitter
    n_a, n_b = (few, many) if along else (many, few)
    known = data.draw(st.integers(0, few))
    at, low, high = sustained.fair_runs(
        np.array([n_a]), np.array([n_b]), accepted=np.array([known]), along=np.array([along])
    )
    runs = sorted(zip(low.tolist(), high.tolist(), strict=True))
    inside = {x for lo, hi in runs for x in (lo, hi - 1)}
    for k in {0, many, *inside, *(x for lo, hi in runs for x in (lo - 1, hi))}:
        if 0 <= k <= many:
            expected = any(lo <= k < hi for lo, hi in runs)
            assert holds_at(sustained, n_a, n_b, known, along, k) == expected
    assert not at.any()


@settings(max_examples=examples(100))
@given(differences(), st.integers(0, 6), st.integers(0, 1), st.data())
def test_the_small_group_is_asked_about_beside_a_huge_one(
    prop: fs.Property, few: int, along: int, data: st.DataObject
) -> None:
    sustained, many = Sustained(prop), 10**14
    share = data.draw(st.fractions(0, 1, max_denominator=6))
    n_a, n_b = (many, few) if along else (few, many)
    known = int(share * many)
    _, low, high = sustained.fair_runs(
        np.array([n_a]), np.array([n_b]), accepted=np.array([known]), along=np.array([along])
    )
    fair = {k for lo, hi in zip(low, high, strict=True) for k in range(lo, hi)}
    states = range(few + 1)
    assert fair == {k for k in states if holds_at(sustained, n_a, n_b, known, along, k)}


# Laws ---------------------------------------------------------------------------------------


@given(differences(), st.sampled_from(BOUNDS), pairs())
def test_a_looser_bound_certifies_no_less(
    prop: fs.Property, other: Fraction, counts: fs.Counts
) -> None:
    options = {"min_support": prop.min_support, "undefined": prop.undefined}
    tight, loose = (type(prop)(b, **options) for b in sorted((prop.bound, other)))
    assert Sustained(loose).holds(counts) or not Sustained(tight).holds(counts)


@given(differences(), pairs())
def test_group_names_do_not_matter(prop: fs.Property, counts: fs.Counts) -> None:
    sustained = Sustained(prop)
    (a, b), (of_a, of_b) = counts, counts.values()
    swapped = fs.Counts({b: of_b, a: of_a})
    renamed = fs.Counts({"x": of_a, "y": of_b})
    assert sustained.holds(counts) == sustained.holds(swapped) == sustained.holds(renamed)


@given(differences(), st.integers(0, 40), st.integers(0, 40))
def test_accepting_all_and_rejecting_all_can_be_kept_up(
    prop: fs.Property, n_a: int, n_b: int
) -> None:
    sustained = Sustained(prop)
    all_in = Corridor(1 - prop.bound, Fraction(1))
    all_out = Corridor(Fraction(0), prop.bound)
    assert sustained.certifies(both(all_out), counts_of(n_a, 0, n_b, 0))
    assert sustained.holds(counts_of(n_a, 0, n_b, 0))
    unseen_has_a_rate = prop.undefined == "rate-0" and not prop.min_support
    if min(n_a, n_b) or not unseen_has_a_rate:
        assert sustained.certifies(both(all_in), counts_of(n_a, n_a, n_b, n_b))
        assert sustained.holds(counts_of(n_a, n_a, n_b, n_b))


def both(corridor: Corridor) -> Certificate:
    return Certificate(dict.fromkeys(GROUPS, corridor))


def test_corridors_with_gaps_or_too_far_apart_are_no_certificate() -> None:
    sustained = Sustained(fs.DemographicParity("0.1"))
    start = counts_of(10, 5, 10, 5)
    assert sustained.certifies(both(Corridor(Fraction(9, 20), Fraction(11, 20))), start)
    assert not sustained.certifies(both(Corridor(Fraction(2, 5), Fraction(3, 5))), start)
    assert not sustained.certifies(both(Corridor(Fraction(1, 2), Fraction(1, 2))), start)
    assert not sustained.certifies(both(Corridor(Fraction(0), Fraction(1, 10))), start)


def test_fair_counters_need_not_have_a_certificate(even: fs.InputModel) -> None:
    """The next person of the small group moves its rate out of reach of the large one's."""
    prop, counts = fs.DemographicParity("0.05"), counts_of(2, 1, 98, 49)
    assert prop.holds(counts)
    assert Sustained(prop).certificate(counts) is None
    with pytest.raises(fs.InfeasibleError):
        fs.synthesize(prop, even, horizon=1, start=counts)


@pytest.mark.parametrize("prop", [fs.ShareParity("0.1"), fs.DisparateImpact("0.8")])
def test_other_properties_have_no_certificates(prop: fs.Property) -> None:
    with pytest.raises(fs.InvalidValueError, match="not a difference of rates"):
        Sustained(prop)
