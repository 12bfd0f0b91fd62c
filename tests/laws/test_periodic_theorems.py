"""The paper's theorems on periodic shields: each condition generated, each conclusion checked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import pytest
from effort import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import COSTS, GROUPS, Request, follow, input_models, relevant, requests

import fairshield as fs
from fairshield.periodic.conditions import (
    Balanced,
    Condition,
    Counters,
    EnoughHistory,
    EqualDenominators,
    balanced_from,
)
from fairshield.periodic.cumulative import NOTHING
from fairshield.periodic.policy import PeriodicPolicy
from fairshield.periodic.static import StaticBounded, StaticFair

KINDS = (fs.DemographicParity, fs.EqualOpportunity, fs.PredictiveEquality)
kinds = st.sampled_from(KINDS)
loose = st.fractions("1/4", "2/3", max_denominator=8)


@st.composite
def differences(draw: st.DrawFn, bounds: st.SearchStrategy[Fraction] = loose) -> fs.Property:
    """Each difference of rates, with and without a minimum support."""
    return draw(kinds)(draw(bounds), min_support=draw(st.sampled_from([0, 0, 2])))


@st.composite
def arrivals(draw: st.DrawFn, prop: fs.Property, n_a: int, n_b: int, others: int) -> list[Request]:
    """So many people who count, and others who do not, in any order, however proposed."""
    counted = [("a", True)] * n_a + [("b", True)] * n_b
    rest = [(draw(st.sampled_from(GROUPS)), False) for _ in range(others)]
    return [
        Request(g, draw(st.booleans()), draw(st.sampled_from(COSTS)), relevant(prop) == counts)
        for g, counts in draw(st.permutations(counted + rest))
    ]


# Static-Fair --------------------------------------------------------------------------------


@settings(max_examples=examples(60))
@given(differences(), input_models(), st.data())
def test_static_fair_is_fair_where_both_groups_have_equally_many(
    prop: fs.Property, inputs: fs.InputModel, data: st.DataObject
) -> None:
    shield = fs.StaticFairShield(prop, inputs, period=6)
    sizes = [n for n in (0, 1, 2, 3) if n >= prop.min_support or n == 0]
    for _ in range(3):
        each = data.draw(st.sampled_from(sizes)) if prop.relevant_outcome is not None else 3
        for request in data.draw(arrivals(prop, each, each, 6 - 2 * each)):
            follow(shield, request)
        assert shield.holds()
        assert shield.guarantee.held


# Static-BW ----------------------------------------------------------------------------------

positive = st.fractions("1/9", 9, max_denominator=9)


@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=6))
def test_a_ratio_of_sums_lies_between_the_ratios(pairs: list[tuple[Fraction, Fraction]]) -> None:
    """Lemma min-frac-max."""
    ratios = [a / b for a, b in pairs]
    whole = sum(a for a, _ in pairs) / sum(b for _, b in pairs)
    assert min(ratios) <= whole <= max(ratios)


@given(st.data(), st.fractions(0, "1/2", max_denominator=9), st.integers(2, 9))
def test_bounded_rates_are_closed_under_concatenation(
    data: st.DataObject, lower: Fraction, width: int
) -> None:
    """Lemma acc-rates."""
    bounded = fs.BoundedRates(lower, lower + Fraction(1, width), min_support=0)
    whole = dict.fromkeys(GROUPS, (0, 0))
    for _ in range(data.draw(st.integers(1, 5))):
        part = {}
        for g in GROUPS:
            n = data.draw(st.integers(width, 30))
            lo, hi = math.ceil(lower * n), math.floor(bounded.upper * n)
            part[g] = (n, data.draw(st.integers(lo, hi)))
        assert bounded.holds(fs.Counts(part))
        whole = {g: (whole[g][0] + part[g][0], whole[g][1] + part[g][1]) for g in GROUPS}
        assert bounded.holds(fs.Counts(whole))


@given(st.fractions(0, 1, max_denominator=20), st.fractions(0, 1, max_denominator=20))
def test_rates_can_be_kept_in_bounds_from_n_people_on(x: Fraction, y: Fraction) -> None:
    """Lemma acc-rates-existence: ceil(l n) lies in bounds and rises by at most one."""
    assume(x != y)
    lower, upper = sorted((x, y))
    for n in range(balanced_from(lower, upper), 60):
        now, after = math.ceil(lower * n), math.ceil(lower * (n + 1))
        assert now <= upper * n
        assert after - now in (0, 1)


@settings(max_examples=examples(50))
@given(st.data(), st.sampled_from(["0", "1/7", "0.4"]), st.sampled_from(["1/2", "1/3", "0.6"]))
def test_a_shield_for_bounded_rates_always_exists(
    data: st.DataObject, lower: str, width: str
) -> None:
    """Lemma acc-rates-existence, and what it promises at the end of a window."""
    outcome = data.draw(st.sampled_from([None, False, True]))
    prop = fs.BoundedRates(lower, Fraction(lower) + Fraction(width), outcome=outcome)
    horizon = data.draw(st.integers(1, 9))
    policy = fs.synthesize(prop, data.draw(input_models()), horizon=horizon)
    shield = fs.Shield(policy)
    for request in data.draw(st.lists(requests, min_size=horizon, max_size=horizon)):
        decision = shield.decide(request.group, proposed=request.proposed, cost=request.cost)
        if outcome is not None:
            shield.observe(decision, outcome=request.outcome)
    if all(count.seen >= prop.min_support for count in shield.counts.values()):
        for count in shield.counts.values():
            assert prop.lower <= Fraction(count.accepted, count.seen) <= prop.upper


@settings(max_examples=examples(60))
@given(kinds, st.sampled_from(["1/2", "2/3"]), input_models(), st.data())
def test_static_bw_is_fair_where_periods_are_balanced(
    kind: type, bound: str, inputs: fs.InputModel, data: st.DataObject
) -> None:
    prop = kind(bound)
    shift = data.draw(st.fractions(0, 1 - prop.bound, max_denominator=12))
    shield = fs.StaticBoundedShield(prop, inputs, period=7, bounds=(shift, shift + prop.bound))
    assert shield.policy.condition == Balanced(2, prop.relevant_outcome)
    for _ in range(3):
        others = data.draw(st.integers(0, 3)) if shield.policy.labelled else 0
        n_a = data.draw(st.integers(2, 5 - others))
        for request in data.draw(arrivals(prop, n_a, 7 - others - n_a, others)):
            follow(shield, request)
        assert shield.holds()
        assert shield.guarantee.held


# Dynamic ------------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn, most: int = 14) -> fs.Counts:
    """Counters with somebody in both groups."""
    seen = {g: draw(st.integers(1, most)) for g in GROUPS}
    return fs.Counts({g: (n, draw(st.integers(0, n))) for g, n in seen.items()})


def as_counters(counts: fs.Counts) -> Counters:
    (n_a, k_a), (n_b, k_b) = counts.values()
    return Counters(n_a, k_a, n_b, k_b)


def since(start: fs.Counts, now: fs.Counts) -> Counters:
    then = as_counters(start)
    return Counters(*(x - y for x, y in zip(as_counters(now), then, strict=True)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("least", [0, 3])
@pytest.mark.parametrize(("bound", "period"), [("1/3", 1), ("1/2", 3), ("2/3", 6)])
def test_enough_history_is_what_the_paper_assumes(
    kind: type, least: int, bound: str, period: int
) -> None:
    """Every continuation of every small history is looked at, in fractions."""
    prop = kind(bound, min_support=least)
    condition = EnoughHistory(prop, period)
    counted = [period] if prop.relevant_outcome is None else range(period + 1)
    some = [(n, k) for n in range(1, 8) for k in range(n + 1)]
    for (n_a, k_a), (n_b, k_b) in product(some, some):
        bias = abs(Fraction(k_a, n_a) - Fraction(k_b, n_b))
        paper = all(
            Fraction(1, n_a + m) + Fraction(1, n_b + both - m) <= prop.bound + bias
            for both in counted
            for m in range(both + 1)
        )
        expected = paper and bias <= prop.bound and min(n_a, n_b) >= least
        start = Counters(n_a, k_a, n_b, k_b)
        assert bool(condition.certain(start, NOTHING, period)) == expected
        assert condition.possible(start, NOTHING, period) == expected


@settings(max_examples=examples(200))
@given(differences(), histories(), st.integers(1, 8), input_models())
def test_a_period_after_enough_history_can_be_kept_fair(
    prop: fs.Property, start: fs.Counts, period: int, inputs: fs.InputModel
) -> None:
    """Lemma buff-shield-exists."""
    assume(EnoughHistory(prop, period).certain(as_counters(start), NOTHING, period))
    assert fs.synthesize(prop, inputs, horizon=period, start=start).risk == 0.0


@settings(max_examples=examples(50))
@given(differences(), histories(), input_models(), st.data())
@pytest.mark.parametrize("fallback", ["best-effort", "inactive"])
def test_dynamic_is_fair_while_there_is_enough_history(
    fallback: str, prop: fs.Property, start: fs.Counts, inputs: fs.InputModel, data: st.DataObject
) -> None:
    if data.draw(st.booleans()):
        start = fs.Counts.zero(GROUPS)
    shield = fs.DynamicShield(prop, inputs, period=4, fallback=fallback, start=start)
    for _ in range(3):
        held = shield.guarantee.held
        for request in data.draw(st.lists(requests, min_size=4, max_size=4)):
            follow(shield, request)
        assert shield.holds() or not held


# Conditions ---------------------------------------------------------------------------------


def continuations(gained: Counters, left: int, labelled: bool) -> Iterator[Counters]:
    """All people seen at the end of a period; acceptances do not matter here."""
    for counted in range(left + 1) if labelled else [left]:
        for more_a in range(counted + 1):
            n_a, n_b = gained.n_a + more_a, gained.n_b + counted - more_a
            yield Counters(n_a, 0, n_b, 0)


def meets(condition: Condition, end: Counters) -> bool:
    """What the theorem says of a whole period."""
    if isinstance(condition, Balanced):
        return min(end.n_a, end.n_b) >= condition.least
    assert isinstance(condition, EqualDenominators)
    return end.n_a == end.n_b and (end.n_a == 0 or end.n_a >= condition.prop.min_support)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("least", [0, 1, 2, 3])
def test_conditions_look_ahead_exactly(kind: type, least: int) -> None:
    """Possible: some way to go on meets the condition.  Certain: all do."""
    prop = kind("0.1", min_support=least)
    labelled = prop.relevant_outcome is not None
    for condition in (EqualDenominators(prop), Balanced(max(least, 1))):
        for period, n_a, n_b in product(range(1, 9), range(9), range(9)):
            for left in range(period - n_a - n_b + 1) if labelled else [period - n_a - n_b]:
                if left < 0:
                    continue
                gained = Counters(n_a, 0, n_b, 0)
                ends = [meets(condition, end) for end in continuations(gained, left, labelled)]
                assert condition.possible(NOTHING, gained, left) == any(ends)
                assert bool(condition.certain(NOTHING, gained, left)) == all(ends)


# Reports ------------------------------------------------------------------------------------


@st.composite
def conditional(draw: st.DrawFn) -> PeriodicPolicy:
    """Periodic policies whose guarantee has a condition that arrivals can break."""
    prop, inputs = draw(differences(st.fractions("1/3", "2/3", max_denominator=6))), EVEN
    if draw(st.booleans()):
        return StaticFair(prop, inputs, 5 + draw(st.integers(0, 1)))
    return StaticBounded(prop, inputs, 6, bounds="centred")


EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})


@settings(max_examples=examples(60))
@given(conditional(), st.data())
def test_reports_say_when_the_condition_broke_and_never_lie(
    policy: PeriodicPolicy, data: st.DataObject
) -> None:
    """``broken_at`` is the first decision after which the condition cannot be met any more."""
    shield = fs.Run(policy)
    condition = policy.condition
    assert condition is not None
    broken = None if condition.possible(NOTHING, NOTHING, policy.period) else 0
    for _ in range(3):
        start, certain, promised = shield.counts, False, shield.guarantee.guaranteed
        for left in reversed(range(policy.period)):
            follow(shield, data.draw(requests))
            gained = since(start, shield.counts)
            if broken is None and not condition.possible(NOTHING, gained, left):
                broken = shield.decided
            report = shield.guarantee
            assert report.broken_at == broken
            assert report.held == (broken is None)
            if left:
                certain, promised = certain or report.certain, promised or report.guaranteed
        assert not certain or meets(condition, gained)
        assert not promised or shield.holds()
        assert (report.unfair_at is None) == (report.unfair == 0)


@settings(max_examples=examples(60))
@given(differences(), input_models(), st.data())
@pytest.mark.parametrize("kind", ["dynamic", "inactive", "exact", "optimal", "perpetual"])
def test_what_is_guaranteed_comes_true(
    kind: str, prop: fs.Property, inputs: fs.InputModel, data: st.DataObject
) -> None:
    shield = {
        "dynamic": lambda: fs.DynamicShield(prop, inputs, period=3),
        "inactive": lambda: fs.DynamicShield(prop, inputs, period=3, fallback="inactive"),
        "exact": lambda: fs.ExactPeriodicShield(prop, inputs, period=3, periods=3),
        "optimal": lambda: fs.OptimalPeriodicShield(prop, inputs, period=3, periods=3),
        "perpetual": lambda: fs.PerpetualShield(prop, inputs, period=3, lookahead=1),
    }[kind]()
    for _ in range(3):
        promised = False
        for _ in range(3):
            promised = promised or shield.guarantee.guaranteed
            follow(shield, data.draw(requests))
        assert shield.holds() or not promised
        assert promised or not shield.guarantee.unconditional
