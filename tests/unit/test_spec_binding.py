"""When a property binds: some decisions about the people seen would have been unfair."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    GROUPS,
    THREE,
    Branching,
    NotThatMany,
    NotThatManyQualified,
    Quota,
    properties,
    starts,
)

import fairshield as fs
from fairshield.base.counts import GroupCount
from fairshield.spec import LinearProperty, NoRequirement, binding, can_bind, can_ever_bind

own = st.one_of(
    *(
        st.builds(kind, st.integers(0, 4), min_support=st.integers(0, 3))
        for kind in (Quota, NotThatMany, NotThatManyQualified, Branching)
    )
)
linear = properties.filter(lambda prop: isinstance(prop, LinearProperty))
people = st.integers(0, 6)


def some_are_unfair(prop: fs.Property, seen: dict[str, int]) -> bool:
    """By the definition: every way to decide about these people is asked about."""
    ways = product(*(range(n + 1) for n in seen.values()))
    return any(
        not prop.holds(fs.Counts({g: (n, k) for (g, n), k in zip(seen.items(), way, strict=True)}))
        for way in ways
    )


@given(properties | own, people, people)
def test_it_binds_iff_some_decisions_would_be_unfair(prop, n_a, n_b):
    counts = fs.Counts({"a": (n_a, 0), "b": (n_b, 0)})
    assert prop.binds(counts) == some_are_unfair(prop, {"a": n_a, "b": n_b})
    arrays = GroupCount(np.array([n_a]), np.array([0])), GroupCount(np.array([n_b]), np.array([0]))
    assert prop.binds_array(*arrays).tolist() == [prop.binds(counts)]


@given(st.integers(0, 4), st.tuples(*(st.integers(0, 3) for _ in THREE)))
def test_of_three_groups_one_pair_suffices(support, seen):
    prop = fs.DemographicParity("0.1", min_support=support)
    who = dict(zip(THREE, seen, strict=True))
    assert prop.binds(fs.Counts({g: (n, 0) for g, n in who.items()})) == some_are_unfair(prop, who)


@given(properties | own, starts())
def test_what_does_not_bind_holds_and_is_called_exempt(prop, counts):
    assert prop.verdict(counts) == (
        "unfair" if not prop.holds(counts) else "fair" if prop.binds(counts) else "exempt"
    )
    if not prop.binds(counts):
        assert prop.holds(counts)


@given(properties, starts())
def test_what_is_measured_does_not_depend_on_support(prop, counts):
    measured = prop.measured_bias_of(counts)
    supported = all(count.seen >= prop.min_support for count in counts.values())
    assert measured == prop.bias_of(counts) if supported else measured >= prop.bias_of(counts)


def test_a_bias_below_support_is_measured_all_the_same():
    prop = fs.DemographicParity("0.1", min_support=60)
    counts = fs.Counts({"a": (50, 50), "b": (50, 0)})
    assert (prop.verdict(counts), prop.bias_of(counts)) == ("exempt", 0.0)
    assert prop.measured_bias_of(counts) == 1.0
    assert prop.measured_bias_array(*counts.values()).tolist() == 1.0


def test_counters_of_any_size_are_judged_exactly():
    huge = 10**20
    prop = fs.DemographicParity("0.1", min_support=huge)
    assert prop.binds(fs.Counts({"a": (huge, 0), "b": (huge, 0)}))
    assert not prop.binds(fs.Counts({"a": (huge, 0), "b": (huge - 1, 0)}))


@pytest.mark.parametrize("bound", ["0.1", "1"])
@pytest.mark.parametrize("kind", [fs.DemographicParity, fs.ShareParity, fs.EqualOpportunity])
def test_a_bound_of_one_never_binds(kind, bound):
    assert kind(bound).binds(fs.Counts({"a": (9, 0), "b": (9, 0)})) == (bound != "1")


def reachable(prop: fs.Property, start: fs.Counts, decided: int) -> list[dict[str, int]]:
    """Everybody who may be counted when so many decisions have been made."""
    splits = product(range(decided + 1), repeat=len(start))
    exact = prop.relevant_outcome is None
    return [
        {g: start[g].seen + n for g, n in zip(start, split, strict=True)}
        for split in splits
        if (sum(split) == decided if exact else sum(split) <= decided)
    ]


@given(properties | own, st.sampled_from([GROUPS, THREE]), st.data())
def test_a_property_can_bind_iff_it_binds_somewhere(prop, groups, data):
    if len(groups) > 2 and prop.only_two is not None:
        groups = GROUPS
    start = data.draw(starts(most=2, groups=groups))
    due = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    unfair = unfair_from(start) if isinstance(prop, fs.LinearProperty) else some_are_unfair
    somewhere = any(
        unfair(prop, seen) for decided in due for seen in reachable(prop, start, decided)
    )
    assert can_bind(prop, start, due) == somewhere


def unfair_from(start: fs.Counts):
    """Whether some decisions about those who came since the start are unfair."""

    def unfair(prop: fs.Property, seen: dict[str, int]) -> bool:
        ways = product(*(range(n - start[g].seen + 1) for g, n in seen.items()))
        return any(
            not prop.holds(
                fs.Counts(
                    {
                        g: (n, start[g].accepted + k)
                        for (g, n), k in zip(seen.items(), way, strict=True)
                    }
                )
            )
            for way in ways
        )

    return unfair


def test_long_windows_are_asked_about_at_once():
    start = fs.Counts.zero(GROUPS)
    for prop, expected in [
        (fs.EqualOpportunity("0.1", min_support=500_000), True),
        (fs.EqualOpportunity("0.1", min_support=500_001), False),
        (fs.DemographicParity("0.1", min_support=500_001), False),
    ]:
        assert can_bind(prop, start, [1_000_000]) == expected


@given(linear, starts(most=30), st.integers(20, 60))
def test_some_splits_tell_of_a_large_window(prop, start, decided):
    """What is asked of windows too large to ask about every split agrees with asking all.

    Start counters that outweigh the decisions are not noticed.
    """
    for begin in (fs.Counts.zero(GROUPS), start):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(binding, "_MOST", 10)
            few = can_bind(prop, begin, [decided])
        every = can_bind(prop, begin, [decided])
        assert few == every if begin != start else few or not every


@given(linear, starts(most=30))
def test_a_property_that_ever_binds_binds_some_window(prop, start):
    assert can_ever_bind(prop, start) == can_bind(prop, start, [10**6])


def test_windows_of_any_length_are_asked_about_at_once():
    start = fs.Counts({"a": (10**15, 0), "b": (0, 0)})
    for support, expected in [(10**15, True), (10**15 + 1, False)]:
        prop = fs.DemographicParity("0.1", min_support=support)
        assert can_bind(prop, start, [10**15]) == expected
        assert can_ever_bind(prop, start)
    assert can_ever_bind(fs.DemographicParity("0.1", min_support=10**20), start)
    assert not can_ever_bind(NoRequirement(), start)
    assert not can_ever_bind(fs.DisparateImpact(0), start)


def test_nothing_is_known_of_a_long_window_and_a_property_of_ones_own():
    for decided, expected in [(5, False), (10**4, True)]:
        assert can_bind(Quota(6), fs.Counts.zero(GROUPS), [decided]) == expected
