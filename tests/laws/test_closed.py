"""Closed sets: from their counters a period ends in the set again, at a bounded expected cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fairshield as fs
from fairshield.base.errors import InvalidValueError
from fairshield.periodic.closed import ClosedSet, Region, worst_cost_for_ever
from fairshield.periodic.closed.closed import requests_of
from fairshield.periodic.closed.few import Few, allowed, closed_few
from fairshield.periodic.closed.kernels import Cell, Requests, cell_cost
from fairshield.periodic.closed.region import _SHARES
from fairshield.policy import Specification
from fairshield.spec import property_from_dict
from fairshield.synthesis import make_policy

ROUNDING = 1e-9


def even(share: float = 0.5, a: float = 0.5, b: float = 0.5) -> fs.InputModel:
    """Group a has this share of people; proposals accept so many of a, and of b."""
    groups = {"a": (share, a), "b": (1 - share, b)}
    return fs.InputModel.from_table(
        {
            (g, r, 1.0): p * (accept if r else 1 - accept)
            for g, (p, accept) in groups.items()
            for r in (False, True)
        },
        outcomes={"a": 0.6, "b": 0.4},
    )


def dear() -> fs.InputModel:
    """Overruling costs 1 or 3, and group b never comes, says the model."""
    return fs.InputModel.from_table(
        {("a", False, 1.0): 0.5, ("a", True, 3.0): 0.5, ("b", True, 1.0): 0.0}
    )


def parity(bound: str, **options: Any) -> fs.DemographicParity:
    return fs.DemographicParity(bound, **options)


WIDE = (Fraction(0), Fraction(1))
SETTINGS: dict[str, tuple[fs.Property, fs.InputModel, Region]] = {}
for name, prop, inputs, period, total, rates, slope in (
    ("all rates", parity("1/5"), even(), 5, 60, WIDE, Fraction(1)),
    ("biased", parity("1/5"), even(0.4, 0.7, 0.3), 5, 62, ("1/5", "4/5"), Fraction(1, 4)),
    ("odd bound", parity("3/10"), even(), 4, 48, ("3/10", "7/10"), Fraction(1, 2)),
    ("lopsided", parity("1/3"), even(0.3), 3, 30, ("1/4", "4/5"), Fraction(1)),
    ("support", parity("1/3", min_support=5), even(), 3, 30, ("1/4", "3/4"), Fraction(1)),
    ("rate 0", parity("1/3", undefined="rate-0"), even(), 3, 30, WIDE, Fraction(1)),
    ("two prices", parity("1/3"), dear(), 3, 30, WIDE, Fraction(1)),
    ("outcomes", fs.EqualOpportunity("1/3"), even(), 3, 30, ("1/4", "3/4"), Fraction(1)),
):
    ends = tuple(Fraction(rate) for rate in rates)
    SETTINGS[name] = (prop, inputs, Region(prop, period, total, ends, slope))
any_setting = st.sampled_from(sorted(SETTINGS))


@cache
def closed_set(name: str) -> ClosedSet:
    """The closed set of the least cost that its region allows."""
    prop, inputs, region = SETTINGS[name]
    cost = region.cost(requests_of(prop, inputs, region.period))
    return ClosedSet(prop, inputs, region.period, cost, region.total, region.rates, region.slope)


@st.composite
def of_many(draw: st.DrawFn, region: Region) -> fs.Counts:
    """Counters of many people of both groups, near an edge of the region as a rule."""
    few, bound, (lower, upper) = region.few, region.of.bound, region.rates
    assert few is not None
    n_b = draw(st.integers(few, 2 * few) | st.integers(few, 100 * few))
    least = max(n_b, region.total - n_b)
    n_a = draw(st.integers(least, least + few) | st.integers(least, 10**6))
    x = Fraction(n_b, n_a)
    places = [
        Fraction(0), Fraction(1), lower, upper, lower - region.slope * x,
        upper + region.slope * x, bound, 1 - bound, Fraction(draw(st.integers(0, 60)), 60),
    ]  # fmt: skip
    rate = draw(st.sampled_from(places))
    k_a = min(max(int(rate * n_a) + draw(st.integers(-2, 2)), 0), n_a)
    gap = draw(st.sampled_from([bound, -bound, bound / 2, Fraction(0)]))
    k_b = min(max(int((Fraction(k_a, n_a) - gap) * n_b) + draw(st.integers(-1, 1)), 0), n_b)
    larger, other = ("a", "b") if draw(st.booleans()) else ("b", "a")
    found = {larger: (n_a, k_a), other: (n_b, k_b)}
    counts = fs.Counts({group: found[group] for group in "ab"})
    assume(region.holds(counts["a"], counts["b"]))
    return counts


def counts_of(few: Few, turned: bool, index: tuple[int, int, int], more: int) -> fs.Counts | None:
    """Counters with a kept state, and so many people of the larger group above the least."""
    i, n, k = index
    x, y = few.rate.as_integer_ratio()
    seen = few.least + more
    while (i - few.offset + x * seen) % y:
        seen += 1
    accepted = (i - few.offset + x * seen) // y
    if not 0 <= accepted <= seen:
        return None
    larger, other = (seen, accepted), (n, k)
    return fs.Counts({"a": other, "b": larger} if turned else {"a": larger, "b": other})


@st.composite
def of_few(draw: st.DrawFn, closed: ClosedSet) -> fs.Counts:
    """Counters of few people of one group."""
    turned, few = draw(st.sampled_from(closed.parts))
    kept = np.argwhere(few.kept)
    i, n, k = kept[draw(st.integers(0, len(kept) - 1))].tolist()
    counts = counts_of(few, turned, (i, n, k), draw(st.integers(0, 30) | st.integers(0, 10**5)))
    assume(counts is not None)
    assert counts is not None
    return counts


# What is promised -----------------------------------------------------------------------------


def gains(cell: Cell, larger: fs.GroupCount[int], other: fs.GroupCount[int]) -> bool:
    """Whether a period that brings these may end in the region, from the counters of a cell."""
    (n_a, k_a), (n_b, k_b) = larger, other
    for n, k, of_other in cell.lines.tolist():
        if n * n_a + k * k_a + of_other * n_b > 0:
            return False
    sign, spare = int(cell.sign), int(cell.spare)
    s_den, x_den, e_den = int(cell.s_den), int(cell.x_den), int(cell.e_den)
    for s, shifted in zip(cell.s.tolist(), cell.shifted.tolist(), strict=True):
        y_a, y_b = (k_a - sign * spare) * s_den - s * n_a, k_b * s_den - shifted * n_b
        for x, e in product(cell.x.tolist(), (0, int(cell.e))):
            of_b, of_a = x * e_den + e * x_den * n_b, x_den * e_den + e * x_den * n_a
            if sign * (y_a * of_b - y_b * of_a) > 0:
                return False
    return True


def key_of(cell: Cell) -> str:
    return repr([np.asarray(part).tolist() for part in cell])


@cache
def all_cells(name: str) -> frozenset[str]:
    """The cells that a region's cost is the largest of."""
    return frozenset(map(key_of, SETTINGS[name][2].cells()))


@settings(max_examples=examples(60))
@given(any_setting, st.data())
def test_what_a_cell_allows_ends_in_the_region(name: str, data: st.DataObject) -> None:
    region = SETTINGS[name][2]
    counts = data.draw(of_many(region))
    larger, other = sorted(counts.values(), key=lambda count: count.seen, reverse=True)
    (n_a, k_a), (n_b, k_b) = larger, other
    s, x = Fraction(k_a, n_a), Fraction(n_b, n_a)
    sign = 1 if k_a * n_b >= k_b * n_a else -1
    rates = [ends for ends in pairwise(region._rates) if ends[0] <= s <= ends[1]]
    shares = [ends for ends in pairwise(_SHARES) if ends[0] <= x <= ends[1]]
    for ends, between in product(rates, shares):
        parts = list(region._cells(sign, ends, between))
        assert set(map(key_of, parts)) <= all_cells(name)
        e = Fraction(int(parts[0].e), int(parts[0].e_den))
        assert Fraction(1, n_a) <= e
        if len(parts) == 2:
            risky = [b for b in region.bounds if region._at_risk(b, ends, between, e)]
            split = next(b for b in risky if sign * b.k < 0)
            at_risk = split.k * k_a + split.n * n_a + split.other * n_b > -region._adds(split)
            parts = parts[at_risk:][:1]
        for m_a, m_b in product(range(region.period + 1), repeat=2):
            if m_a + m_b > region.period:
                continue
            for l_a, l_b in product(range(m_a + 1), range(m_b + 1)):
                brings = fs.GroupCount(m_a, l_a), fs.GroupCount(m_b, l_b)
                if gains(parts[0], *brings):
                    after = [fs.GroupCount(n + m, k + m_k) for (n, k), (m, m_k) in
                             zip((larger, other), brings, strict=True)]  # fmt: skip
                    assert region.holds(*after), (counts, brings)


@pytest.mark.parametrize("name", sorted(SETTINGS))
@pytest.mark.parametrize("more", [0, 1, 7, 10_000])
def test_few_people_become_many_inside_the_region(name: str, more: int) -> None:
    region = SETTINGS[name][2]
    (lower, upper), bound = region.rates, region.of.bound
    for rate in {Fraction(1, 2), lower, upper, bound, 1 - bound}:
        if not lower <= rate <= upper:
            continue
        (x, y), states = rate.as_integer_ratio(), allowed(region, rate)
        i, n, k = np.argwhere(states[:, region.few :]).T
        lead, seen = i - len(states) // 2, np.full(len(i), region.least_of_larger + more)
        for _ in range(y):
            seen += (lead + x * seen) % y != 0
        accepted = (lead + x * seen) // y
        there = (accepted >= 0) & (accepted <= seen)
        larger = fs.GroupCount(seen[there], accepted[there])
        other = fs.GroupCount(n[there] + region.few, k[there])
        assert region.holds(larger, other).all()


@pytest.mark.parametrize(
    ("prop", "inputs"),
    [
        (parity("1/2", min_support=100), even()),
        (parity("1/2"), even(0.5, 0.0, 0.0)),
        (parity("1"), even()),
    ],
    ids=["support", "nobody is proposed", "any rates"],
)
def test_bounds_are_found_where_the_lower_one_is_nothing(
    prop: fs.Property, inputs: fs.InputModel
) -> None:
    found = worst_cost_for_ever(prop, inputs, period=2, periods=12)
    assert found.lower == 0.0
    assert 0.0 <= found.upper <= 2.0


def test_many_digits_are_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"at most 1,000, got 3333.*'1/3'"):
        worst_cost_for_ever(parity("0.3333333333333333"), even(), period=2, periods=15)
    with pytest.raises(InvalidValueError, match="within must be a share above 0, got 0"):
        worst_cost_for_ever(parity("1/3"), even(), period=2, periods=15, within=0)


@settings(max_examples=examples(150))
@given(any_setting, st.data())
def test_from_many_people_a_period_ends_in_the_set_at_the_cost(
    name: str, data: st.DataObject
) -> None:
    closed = closed_set(name)
    counts = data.draw(of_many(closed.region))
    assert closed.holds(counts)
    assert closed.of.holds(counts)
    assert closed.cost_from(counts) <= closed.cost + ROUNDING


@settings(max_examples=examples(150))
@given(any_setting, st.data())
def test_from_few_people_of_one_group_a_period_ends_in_the_set_at_the_cost(
    name: str, data: st.DataObject
) -> None:
    closed = closed_set(name)
    counts = data.draw(of_few(closed))
    assert closed.holds(counts)
    assert closed.of.holds(counts)
    assert closed.cost_from(counts) <= closed.cost + ROUNDING


@pytest.mark.parametrize("name", ["lopsided", "support", "rate 0", "outcomes"])
def test_all_counters_of_a_number_of_people_end_in_the_set_at_the_cost(name: str) -> None:
    closed = closed_set(name)
    rng = np.random.default_rng(0)
    found = []
    for n_a in range(closed.total + 3):
        n_b = closed.total + 2 - n_a
        for k_a, k_b in product(range(n_a + 1), range(n_b + 1)):
            counts = fs.Counts({"a": (n_a, k_a), "b": (n_b, k_b)})
            if closed.holds(counts):
                found.append(counts)
    assert len(found) > 500
    for i in rng.choice(len(found), examples(200), replace=False):
        assert closed.cost_from(found[i]) <= closed.cost + ROUNDING


@settings(max_examples=examples(40), deadline=None)
@given(any_setting, st.data())
def test_no_sequence_leads_out_of_the_set(name: str, data: st.DataObject) -> None:
    closed = closed_set(name)
    counts = data.draw(of_few(closed) | of_many(closed.region))
    for _ in range(3):
        policy = fs.synthesize(
            closed.of, closed.inputs, horizon=closed.period, start=counts, terminal=closed
        )
        shield = fs.Shield(policy)
        favourite = data.draw(st.sampled_from(["a", "b", None]))
        for _ in range(closed.period):
            group = favourite or data.draw(st.sampled_from("ab"))
            decision = shield.decide(group, proposed=data.draw(st.booleans()))
            if closed.relevant_outcome is not None:
                shield.observe(decision, outcome=data.draw(st.booleans()))
        counts = shield.counts
        assert closed.holds(counts)
        assert closed.of.holds(counts)


# What is computed -----------------------------------------------------------------------------


def plain_cost(closes: set[tuple[int, ...]], requests: Requests, period: int) -> float:
    """The recursion of a period that must end with one of these gains."""

    @cache
    def v(t: int, at: tuple[int, ...]) -> float:
        if t == period:
            return 0.0 if at in closes else math.inf
        i = t if len(requests.weights) > 1 else 0
        total = requests.stay[i] * v(t + 1, at) if requests.labelled else 0.0
        for g in (0, 1):
            gains = [list(at), list(at)]
            for accepted in (0, 1):
                gains[accepted][2 * g] += 1
                gains[accepted][2 * g + 1] += accepted
            then = [v(t + 1, tuple(gain)) for gain in gains]
            for r, level in product((0, 1), range(requests.weights.shape[3])):
                price = requests.costs[i, g, r, level]
                total += requests.weights[i, g, r, level] * min(then[r], price + then[1 - r])
        return float(total)

    return v(0, (0, 0, 0, 0))


def gains_of(period: int, *, labelled: bool) -> Iterator[tuple[int, int, int, int]]:
    for n_a in range(period + 1):
        for n_b in range(0 if labelled else period - n_a, period - n_a + 1):
            for k_a, k_b in product(range(n_a + 1), range(n_b + 1)):
                yield n_a, k_a, n_b, k_b


def closes(cell: Cell, gain: tuple[int, int, int, int]) -> bool:
    """Whether a period that brings this ends closed, in fractions and at every corner."""
    n_a, k_a, n_b, k_b = gain
    if any(n_a * n + k_a * k + n_b * other > 0 for n, k, other in cell.lines.tolist()):
        return False
    for i, j, e in product((0, 1), (0, 1), (Fraction(0), Fraction(cell.e, cell.e_den))):
        s, shifted = (Fraction(int(rate[i]), cell.s_den) for rate in (cell.s, cell.shifted))
        x = Fraction(int(cell.x[j]), cell.x_den)
        over_a, over_b = k_a - cell.sign * cell.spare - s * n_a, k_b - shifted * n_b
        if cell.sign * (over_a * (x + e * n_b) - over_b * (1 + e * n_a)) > 0:
            return False
    return True


@settings(max_examples=examples(60), deadline=None)
@given(any_setting, st.data())
def test_the_compiled_cost_of_a_cell_is_that_of_the_recursion(
    name: str, data: st.DataObject
) -> None:
    prop, inputs, region = SETTINGS[name]
    requests = requests_of(prop, inputs, region.period)
    requests = data.draw(st.sampled_from([requests, requests.turned()]))
    cell = data.draw(st.sampled_from(cells_of(name)))
    ends = {
        gain for gain in gains_of(region.period, labelled=requests.labelled) if closes(cell, gain)
    }
    room = np.empty((region.period + 1,) * 4)
    expected = plain_cost(ends, requests, region.period)
    assert cell_cost(cell, requests, region.period, room) == pytest.approx(expected)


@cache
def cells_of(name: str) -> list[Cell]:
    return list(SETTINGS[name][2].cells())


@pytest.mark.parametrize("cost", [0.3, 0.6])
def test_few_is_the_largest_closed_set_of_its_states(cost: float) -> None:
    prop, inputs = parity("1/2"), even(0.4, 0.6, 0.5)
    region = Region(prop, 2, 18, (Fraction(1, 4), Fraction(3, 4)), Fraction(1))
    requests = requests_of(prop, inputs, 2)
    found = closed_few(region, Fraction(1, 2), requests, cost)
    assert found.kept.tolist() == largest_closed(region, Fraction(1, 2), requests, cost).tolist()
    assert 0 < found.kept.sum() < found.kept.size / 2


def largest_closed(
    region: Region, rate: Fraction, requests: Requests, cost: float
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """All states that are close for very many people, less those that cannot end among them."""
    few, x, y = region.few, rate.numerator, rate.denominator
    assert few is not None
    offset, least, period = 2 * region.period * y, region.least_of_larger, region.period

    def allowed(lead: int, n: int, k: int) -> bool:
        """Whether it is for a sample of numbers of people of the larger group."""
        if not 0 <= k <= n or abs(lead) > offset:
            return False
        for seen in (least, least + 1, 2 * least, 100 * least, 10**9 * least):
            # A lead may be a part of a person here, as the compiled loop allows for.
            rate_a = Fraction(x * seen + lead, y * seen)
            if n and abs(rate_a - Fraction(k, n)) > region.of.bound:
                return False
            if n >= few and not lines_hold(region, rate_a, seen, n):
                return False
        return True

    kept = {
        (lead, n, k)
        for lead in range(-offset, offset + 1)
        for n in range(few + period)
        for k in range(n + 1)
        if allowed(lead, n, k)
    }
    while True:
        lost = set()
        for lead, n, k in kept:
            if n < few:
                ends = {
                    gain
                    for gain in gains_of(period, labelled=requests.labelled)
                    if (lead + y * gain[1] - x * gain[0], n + gain[2], k + gain[3]) in kept
                }
                if plain_cost(ends, requests, period) > cost:
                    lost.add((lead, n, k))
        if not lost:
            break
        kept -= lost
    table = np.zeros((2 * offset + 1, few, few + period), np.bool_)
    for lead, n, k in kept:
        if n < few:
            table[lead + offset, n, k] = True
    return table


def lines_hold(region: Region, rate_a: Fraction, seen: int, n: int) -> bool:
    lower, upper = region.rates
    margin = region.slope * Fraction(n, seen)
    return lower - margin <= rate_a <= upper + margin


@settings(max_examples=examples(100))
@given(any_setting, st.data())
def test_membership_is_decided_alike_one_by_one_and_in_arrays(
    name: str, data: st.DataObject
) -> None:
    closed = closed_set(name)
    each = [
        data.draw(of_few(closed) | of_many(closed.region))
        for _ in range(data.draw(st.integers(1, 5)))
    ]
    shifts = [data.draw(st.integers(-3, 3)) for _ in each]
    counts = [
        fs.Counts({"a": c["a"], "b": (n, min(max(k + shift, 0), n))})
        for c, shift in zip(each, shifts, strict=True)
        for n, k in [c["b"]]
    ]
    arrays = np.array([c.numbers() for c in counts]).T
    found = closed.holds_array(fs.GroupCount(*arrays[:2]), fs.GroupCount(*arrays[2:]))
    assert found.tolist() == [closed.holds(c) for c in counts]


# For ever -------------------------------------------------------------------------------------


def test_bounds_for_ever_meet_where_the_first_periods_are_the_dearest() -> None:
    prop, periods = parity("1/5"), 14
    found = worst_cost_for_ever(prop, even(), period=5, periods=periods)
    assert found.lower == found.upper == found.closed.cost
    assert found.lower == pytest.approx(1.96875)
    spec = Specification.of(
        prop, even(), horizon=5 * periods, checkpoints=range(5, 5 * periods, 5),
        terminal=found.closed,
    )  # fmt: skip
    policy = make_policy(replace(spec, ceiling=found.upper))
    rng = np.random.default_rng(0)
    for share in (0.0, 0.02, 0.1, 0.5, 1.0):
        for accepts in (0.0, 0.5, 1.0):
            shield = fs.Shield(policy)
            for _ in range(5 * periods):
                shield.decide("ab"[rng.random() < share], proposed=bool(rng.random() < accepts))
            assert found.closed.holds(shield.counts)


@pytest.mark.slow
def test_bounds_for_ever_are_apart_where_no_closed_set_is_that_cheap() -> None:
    found = worst_cost_for_ever(
        parity("1/3", min_support=4), even(), period=3, periods=12, within=0.05
    )
    assert found.lower < found.upper == found.closed.cost
    assert found.closed.region_cost <= found.upper


def test_a_closed_set_is_written_and_read() -> None:
    closed = closed_set("biased")
    again = property_from_dict(closed.to_dict())
    assert isinstance(again, ClosedSet)
    assert again.to_dict() == closed.to_dict()
    assert again.region == closed.region
    counts = fs.Counts({"a": (50, 25), "b": (40, 20)})
    assert again.holds(counts)


def test_what_no_closed_set_is_known_for_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="too few"):
        ClosedSet(parity("1/5"), even(), 10, 2.0, 100)
    with pytest.raises(InvalidValueError, match="not a difference"):
        ClosedSet(fs.DisparateImpact("0.8"), even(), 5, 2.0, 100)
    with pytest.raises(InvalidValueError, match="finite cost"):
        ClosedSet(parity("1/5"), even(), 5, math.inf, 100)
    with pytest.raises(InvalidValueError, match="raise cost"):
        ClosedSet(parity("1/5"), even(), 5, 0.5, 100).holds(
            fs.Counts({"a": (50, 25), "b": (50, 25)})
        )
    with pytest.raises(InvalidValueError, match="not a demographic parity"):
        worst_cost_for_ever(fs.EqualOpportunity("1/5"), even(), period=5, periods=14)
    with pytest.raises(InvalidValueError, match="raise periods"):
        worst_cost_for_ever(parity("1/5"), even(), period=5, periods=2)
