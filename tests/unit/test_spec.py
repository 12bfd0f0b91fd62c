"""Properties: bounds as people write them, words, files, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Branching, NotThatMany, Quota, properties

import fairshield as fs
from fairshield.spec import KINDS, Property, exact, property_from_dict

BOUNDED = [
    fs.DemographicParity,
    fs.EqualOpportunity,
    fs.PredictiveEquality,
    fs.ShareParity,
    fs.DisparateImpact,
]


# Bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    ["0.1", "1/10", 0.1, np.float64(0.1), np.float32(0.1), Fraction(1, 10), Decimal("0.1"), "1e-1"],
    ids=repr,
)
@pytest.mark.parametrize("kind", BOUNDED)
def test_a_bound_is_the_number_a_person_meant(kind: Any, written: Any) -> None:
    assert kind(written).bound == Fraction(1, 10)


@given(st.floats(0, 1))
def test_a_float_is_its_shortest_decimal(bound: float) -> None:
    assert float(fs.DemographicParity(bound).bound) == bound
    assert fs.DemographicParity(bound) == fs.DemographicParity(repr(bound))


@pytest.mark.parametrize("written", [0, 1, "0", "1", np.int64(1), True - 0])
def test_zero_and_one_are_bounds(written: Any) -> None:
    assert fs.DemographicParity(written).bound in (0, 1)


@pytest.mark.parametrize("kind", BOUNDED)
@pytest.mark.parametrize("bound", [-0.1, 1.5, "-1/3", "1.0001", 2], ids=repr)
def test_a_bound_outside_zero_and_one_is_refused(kind: Any, bound: Any) -> None:
    with pytest.raises(fs.InvalidValueError) as caught:
        kind(bound)
    assert str(caught.value).startswith(f"bound must be between 0 and 1, got {bound!r}: write ")


@pytest.mark.parametrize("kind", BOUNDED)
@pytest.mark.parametrize(
    "bound",
    ["abc", "", float("nan"), float("inf"), None, True, False, [0.1], "1/0", 1j, Decimal("NaN")],
    ids=repr,
)
def test_a_bound_that_is_no_number_is_refused(kind: Any, bound: Any) -> None:
    with pytest.raises(fs.InvalidValueError) as caught:
        kind(bound)
    assert "bound must be a number such as '0.1', '1/10' or 0.1" in str(caught.value)
    assert repr(bound) in str(caught.value)


def test_a_one_sided_ratio_may_exceed_one() -> None:
    assert fs.DisparateImpact("1.25", two_sided=False).bound == Fraction(5, 4)
    with pytest.raises(fs.InvalidValueError, match="bound must be at least 0, got -1"):
        fs.DisparateImpact(-1, two_sided=False)


@pytest.mark.parametrize(("lower", "upper"), [(0.4, 0.2), (0.3, 0.3), ("1/3", Fraction(1, 3))])
def test_an_empty_interval_of_rates_is_refused(lower: Any, upper: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match=r"lower must be below upper.*widen"):
        fs.BoundedRates(lower, upper)


@pytest.mark.parametrize(("lower", "upper", "bad"), [(-1, 0.5, "lower"), (0, 1.5, "upper")])
def test_rates_lie_between_zero_and_one(lower: Any, upper: Any, bad: str) -> None:
    with pytest.raises(fs.InvalidValueError, match=f"{bad} must be between 0 and 1"):
        fs.BoundedRates(lower, upper)


@pytest.mark.parametrize(
    ("lower", "upper", "support"), [("0.2", "0.4", 5), (0, 1, 1), ("0.1", "0.4", 4), ("1/3", 1, 2)]
)
def test_support_of_bounded_rates_is_the_papers(lower: Any, upper: Any, support: int) -> None:
    assert fs.BoundedRates(lower, upper).min_support == support
    assert fs.BoundedRates(lower, upper, min_support=7).min_support == 7
    assert fs.BoundedRates(lower, upper, min_support=0).min_support == 0


@pytest.mark.parametrize("support", [-1, 1.5, "3", None, float("nan")])
def test_support_is_a_whole_number(support: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match="min_support must be a whole number"):
        fs.DemographicParity("0.1", min_support=support)


def test_support_may_be_a_numpy_integer() -> None:
    assert fs.DemographicParity("0.1", min_support=np.int64(3)).min_support == 3


@pytest.mark.parametrize("undefined", ["rate-1", "", None, 0])
def test_undefined_is_one_of_two_words(undefined: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match="undefined must be 'bias-0' or 'rate-0'"):
        fs.DemographicParity("0.1", undefined=undefined)


def test_exact_names_what_it_was_asked_for() -> None:
    with pytest.raises(fs.InvalidValueError, match="width must be a number"):
        exact("wide", "width")


# Words and files ----------------------------------------------------------------------------


@given(properties)
def test_a_property_survives_a_file(prop: Property) -> None:
    copy = property_from_dict(prop.to_dict())
    assert copy == prop
    assert type(copy) is type(prop)
    assert hash(copy) == hash(prop)


@pytest.mark.parametrize(
    ("prop", "words"),
    [
        (fs.DemographicParity("0.1"), "demographic parity ≤ 1/10"),
        (fs.EqualOpportunity("0.1"), "equal opportunity ≤ 1/10"),
        (fs.PredictiveEquality("0.1"), "predictive equality ≤ 1/10"),
        (fs.ShareParity("0.1"), "share parity ≤ 1/10"),
        (fs.DisparateImpact("0.8"), "disparate impact ≥ 4/5"),
        (
            fs.DisparateImpact("1.25", two_sided=False),
            "disparate impact (first to second) ≤ 5/4",
        ),
        (fs.BoundedRates("0.2", "0.4"), "rates in [1/5, 2/5]"),
        (Quota(1), "tests quota"),
    ],
)
def test_a_property_can_be_read(prop: Property, words: str) -> None:
    assert str(prop).startswith(words)


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(fs.InvalidValueError) as caught:
        property_from_dict({"kind": "equity", "bound": "0.1"})
    message = str(caught.value)
    assert "unknown property 'equity'" in message
    assert "demographic-parity" in message
    assert "imported before" in message


@pytest.mark.parametrize("data", [{}, {"kind": None}, {"kind": ""}])
def test_a_kind_is_needed(data: dict[str, Any]) -> None:
    with pytest.raises(fs.InvalidValueError, match="unknown property"):
        property_from_dict(data)


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(fs.InvalidValueError, match=r"demographic-parity.*colour"):
        property_from_dict({"kind": "demographic-parity", "bound": "0.1", "colour": "red"})
    with pytest.raises(fs.InvalidValueError, match=r"demographic-parity.*bound"):
        property_from_dict({"kind": "demographic-parity"})


def test_a_kind_is_not_taken_twice() -> None:
    with pytest.raises((fs.InvalidValueError, TypeError), match="demographic-parity"):

        @dataclass(frozen=True)
        class Impostor(Property, kind="demographic-parity"):
            def fair(self, a: Any, b: Any) -> Any:
                return True

    assert property_from_dict(fs.DemographicParity("0.1").to_dict()) == fs.DemographicParity("0.1")


@pytest.fixture(autouse=True)
def _registry_is_left_as_it_was() -> Any:
    before = dict(KINDS)
    yield
    KINDS.clear()
    KINDS.update(before)


# A property of one's own --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prop", "remedy"),
    [
        (fs.DisparateImpact("0.8", two_sided=False), "two_sided=True"),
        (fs.spec.Sustained(fs.DemographicParity("0.1")), "demographic parity ≤ 1/10 itself"),
    ],
)
def test_what_compares_two_groups_says_so(prop: Property, remedy: str) -> None:
    counts = fs.Counts({"a": (1, 1), "b": (1, 1), "c": (1, 1)})
    with pytest.raises(fs.InvalidValueError, match=f"compares two groups, got 3: .*{remedy}"):
        prop.holds(counts)


def test_one_group_is_not_compared() -> None:
    with pytest.raises(fs.InvalidValueError, match="declare at least two"):
        fs.DemographicParity("0.1").holds(fs.Counts({"a": (1, 1)}))


@pytest.mark.parametrize("prop", [Quota(1), NotThatMany(3), Branching(1)])
def test_a_property_of_ones_own_answers_everything(prop: Property) -> None:
    for counts in (fs.Counts({"a": (3, 2), "b": (2, 1)}), fs.Counts({"a": (3, 3), "b": (2, 1)})):
        fair = prop.holds(counts)
        assert (prop.bias_of(counts) <= prop.limit) == fair
    assert str(prop) == prop.kind.replace("-", " ")
    assert prop.fair_interval(1, 3, accepted=1, along=1) is None


def test_a_property_may_compute_with_plain_integers_only() -> None:
    class Coprime(Property):
        def fair(self, a: Any, b: Any) -> Any:
            from math import gcd  # noqa: PLC0415

            return gcd(a.accepted, b.accepted) <= 1

    n = np.arange(4)
    a, b = fs.GroupCount(n[:, None] + 3, n[:, None]), fs.GroupCount(n + 3, n)
    fair = Coprime().holds_array(a, b)
    assert fair.tolist() == [
        [Coprime().holds(fs.Counts({"a": (9, i), "b": (9, j)})) for j in n.tolist()]
        for i in n.tolist()
    ]
