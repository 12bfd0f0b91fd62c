"""Laws that every property keeps, found by its name: the library's, and those of these tests."""

from __future__ import annotations

import math
from inspect import Parameter
from typing import Any

import numpy as np
import pytest
import rejection_ratio
import strategies
from hypothesis import assume, given
from hypothesis import strategies as st

import fairshield as fs
from fairshield import GroupCount
from fairshield.adapters.specfile import parse_property
from fairshield.spec import (
    KINDS,
    Interval,
    NoRequirement,
    Property,
    offered_kinds,
    parameters_of,
    property_from_dict,
)

HOMES = ("fairshield", strategies.__name__, rejection_ratio.__name__)
ALL = sorted(kind for kind, cls in KINDS.items() if cls.__module__.split(".")[0] in HOMES)
EVERY = pytest.mark.parametrize("kind", ALL)
ROUNDING = 1e-9
CLOSED = fs.periodic.ClosedSet(
    fs.DemographicParity("2/5"), fs.InputModel.agnostic({"a": 0.5, "b": 0.5}), 2, 2.0, 30
)


@st.composite
def starts(draw: st.DrawFn, least: int = 0) -> fs.Counts:
    """Counters of two groups."""
    seen = {group: draw(st.integers(least, 12)) for group in "ab"}
    return fs.Counts({group: (n, draw(st.integers(0, n))) for group, n in seen.items()})


def arguments_of(kind: str) -> dict[str, Any]:
    """Some value for whatever it takes, by what it is annotated with."""
    found: dict[str, Any] = {}
    for name, parameter in parameters_of(kind).items():
        if parameter.default is Parameter.empty:
            found[name] = value_for(str(parameter.annotation), len(found))
    return found


def value_for(annotation: str, place: int) -> Any:
    if "Property" in annotation:
        return fs.DemographicParity("1/5")
    if "Weighted" in annotation:
        return ("", "accept 1", "accept")[place]
    return 2 + place if annotation == "int" else f"{1 + place}/5"


def made(kind: str) -> Property:
    return CLOSED if kind == "closed" else KINDS[kind](**arguments_of(kind))


def pair(counts: fs.Counts) -> tuple[GroupCount[Any], GroupCount[Any]]:
    a, b = (GroupCount(*map(np.array, count)) for count in counts.values())
    return a, b


def test_the_library_and_these_tests_are_all_found() -> None:
    some = {"demographic-parity", "sustained", "none", "tests-quota", "tests-rejection-ratio"}
    assert some <= set(ALL)
    assert {"none", "sustained"}.isdisjoint(offered_kinds())


@EVERY
def test_it_survives_a_file_and_a_specification(kind: str) -> None:
    prop = made(kind)
    assert property_from_dict(prop.to_dict()) == prop
    if kind in offered_kinds():
        assert parse_property({"property": kind, **arguments_of(kind)}) == prop


@EVERY
def test_it_says_what_it_asks(kind: str) -> None:
    prop = made(kind)
    assert str(prop).startswith(prop.words())
    groups = ("a", "b") if prop.only_two else ("a", "b", "c")
    for asked in (prop.requirement(("a", "b")), prop.requirement(groups)):
        assert asked.endswith(".")
        assert not asked.endswith("..")
    promise = prop.promise("women", "men")
    assert promise
    assert not promise.endswith(".")  # it goes on with when it holds


@EVERY
@given(counts=starts())
def test_what_is_bound_and_holds_is_drawn_within_the_band(kind: str, counts: fs.Counts) -> None:
    prop = made(kind)
    axis, groups = prop.axis(("a", "b")), pair(counts)
    assert axis.least <= axis.low <= axis.high <= axis.most
    assert prop.holds(counts) == prop.holds_array(*groups)
    assert prop.bias_of(counts) <= prop.limit + ROUNDING or not prop.holds(counts)
    if prop.verdict(counts) != "fair":
        return
    if axis.by_group:
        drawn = [count.accepted / count.seen for count in counts.values() if count.seen]
    else:
        drawn = prop.drawn(prop.bias_array(*groups), *groups).ravel().tolist()
    for value in drawn:
        assert math.isnan(value) or axis.low - ROUNDING <= value <= axis.high + ROUNDING


@EVERY
@given(counts=starts())
def test_either_group_is_ahead_of_the_other(kind: str, counts: fs.Counts) -> None:
    prop, (a, b) = made(kind), counts.values()
    assert prop.lead(a, b) == -prop.lead(b, a)
    assert prop.gap_label("a", "b")


@EVERY
@given(counts=starts(least=1))
def test_the_bias_of_known_rates_is_known(kind: str, counts: fs.Counts) -> None:
    prop, (a, b) = made(kind), counts.values()
    team = a.accepted / max(a.accepted + b.accepted, 1)
    rates = (a.accepted / a.seen, b.accepted / b.seen, team)
    bounds = prop.bias_within(*(Interval(rate, rate, rate) for rate in rates))
    assume(a.accepted + b.accepted > 0)  # else there is no share of a team
    assert bounds is None or bounds == pytest.approx((prop.measured_bias_of(counts),) * 2)


@EVERY
@given(counts=starts(least=1))
def test_what_binds_is_shown_as_bound(kind: str, counts: fs.Counts) -> None:
    prop, groups = made(kind), pair(counts)
    assert prop.binds_quickly(*groups) or not prop.binds(counts)


@EVERY
def test_it_implies_itself_and_what_asks_nothing(kind: str) -> None:
    prop = made(kind)
    assert prop.implies(prop)
    assert prop.implies(NoRequirement.like(prop))
    assert prop.demands == (kind != "none")


@EVERY
def test_it_has_a_rule_for_long_windows_or_says_why_not(kind: str) -> None:
    prop = made(kind)
    if prop.uncertified is None:
        rule = prop.rule()
        assert rule.numbers.dtype == np.int64
        assert rule.sides.shape[1:] == (3,)
    else:
        with pytest.raises(NotImplementedError, match="certificates"):
            prop.rule()


@EVERY
@given(counts=starts())
def test_what_is_sustained_holds(kind: str, counts: fs.Counts) -> None:
    prop = made(kind)
    if prop.sustained is not None and prop.sustained.holds(counts):
        assert prop.sustained.lasting
        assert prop.holds(counts)
    assert (prop.sustained is None) == (prop.difference is None)


@EVERY
@given(counts=starts())
def test_an_implied_property_holds_with_it(kind: str, counts: fs.Counts) -> None:
    prop = made(kind)
    for other in map(made, ALL):
        if prop.implies(other) and prop.holds(counts):
            assert other.holds(counts)


@given(st.integers(1, 9), st.integers(1, 9), starts())
def test_a_tighter_difference_implies_a_looser_one(one: int, other: int, counts: fs.Counts) -> None:
    tight, loose = (fs.DemographicParity(f"{n}/10") for n in sorted((one, other)))
    assert tight.implies(loose)
    assert loose.implies(tight) == (one == other)
    assert loose.holds(counts) or not tight.holds(counts)
