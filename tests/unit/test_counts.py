"""Counters: a mapping from the user's group names to what was seen and accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import starts

import fairshield as fs
from fairshield.base.counts import group_name


def test_counts_read_like_a_mapping() -> None:
    counts = fs.Counts({"a": (10, 8), "b": (20, 14)})
    assert counts["a"] == (10, 8)
    assert (counts["b"].seen, counts["b"].accepted) == (20, 14)
    assert list(counts) == ["a", "b"]
    assert len(counts) == 2
    assert dict(counts) == {"a": (10, 8), "b": (20, 14)}
    assert repr(counts) == "Counts({'a': (10, 8), 'b': (20, 14)})"
    assert eval(repr(counts), {"Counts": fs.Counts}) == counts


@given(starts(), st.sampled_from("ab"), st.booleans())
def test_one_more_person_counts_once(counts: fs.Counts, group: str, accepted: bool) -> None:
    before = dict(counts)
    after = counts.after(group, accepted=accepted)
    assert dict(counts) == before
    assert after[group] == (before[group].seen + 1, before[group].accepted + accepted)
    other = "b" if group == "a" else "a"
    assert after[other] == before[other]
    assert list(after) == list(counts)


def test_equal_counts_have_equal_hashes_in_any_order() -> None:
    here, there = fs.Counts({"a": (2, 1), "b": (3, 0)}), fs.Counts({"b": (3, 0), "a": (2, 1)})
    assert here == there
    assert hash(here) == hash(there)
    assert len({here, there}) == 1


def test_counts_do_not_follow_the_mapping_they_were_made_from() -> None:
    source = {"a": (1, 1), "b": (0, 0)}
    counts = fs.Counts(source)
    source["a"] = (9, 9)
    assert counts["a"] == (1, 1)
    with pytest.raises(TypeError):
        counts["a"] = (2, 2)  # type: ignore[index]


def test_an_unknown_group_is_named_with_the_known_ones() -> None:
    with pytest.raises(fs.UnknownGroupError) as caught:
        fs.Counts.zero(("a", "b"))["c"]
    assert str(caught.value) == "unknown group 'c': this policy knows 'a', 'b'"
    assert isinstance(caught.value, KeyError)


@pytest.mark.parametrize("count", [(1, 2), (-1, -1), (3, -1)])
def test_accepted_people_were_seen(count: tuple[int, int]) -> None:
    with pytest.raises(fs.InvalidValueError, match=r"group 'a' has .* need 0 <= accepted <= seen"):
        fs.Counts({"a": count})


@pytest.mark.parametrize("count", [(1.5, 1), (2, 0.5), ("3", 1), (None, 0), (float("nan"), 0)])
def test_counts_are_whole_numbers(count: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match="of group 'a' must be a whole number"):
        fs.Counts({"a": count})


@pytest.mark.parametrize("count", [1, (1,), (1, 2, 3), None])
def test_counts_are_pairs(count: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match=r"must be a pair \(seen, accepted\)"):
        fs.Counts({"a": count})


def test_numpy_integers_become_plain_ones() -> None:
    counts = fs.Counts({"a": (np.int64(3), np.uint8(2))})
    assert {type(n) for n in counts["a"]} == {int}


@pytest.mark.parametrize(
    ("name", "plain"), [("a", "a"), (3, 3), (np.int64(3), 3), (np.str_("x"), "x"), (True, True)]
)
def test_group_names_are_strings_and_integers(name: Any, plain: Any) -> None:
    assert group_name(name) == plain
    assert type(group_name(name)) is type(plain)


@pytest.mark.parametrize("name", [1.5, None, ("a", 1), float("nan"), np.float64(2.0), b"a"])
def test_other_names_are_refused(name: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match="a group name must be a string or an integer"):
        group_name(name)


def test_the_numbers_of_counts_are_what_they_have_more_than_nobody() -> None:
    counts = fs.Counts({"a": (10, 8), "b": (20, 14), "c": (3, 0)})
    assert counts.numbers() == (10, 8, 20, 14, 3, 0)
    assert fs.Counts.zero(("a", "b", "c")).plus(counts.numbers()) == counts
