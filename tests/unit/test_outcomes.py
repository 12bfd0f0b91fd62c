"""Which known outcomes can tell how people were treated."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairshield.spec.outcomes import PAGE, Coverage, Known, OutcomeTally

FEW = st.integers(0, 60)


@st.composite
def knowns(draw: st.DrawFn) -> Known:
    """Some people, some of them known, some of these with outcome 1."""
    people = draw(FEW)
    known = draw(st.integers(0, people))
    return Known(people, known, draw(st.integers(0, known)))


@st.composite
def coverages(draw: st.DrawFn) -> Coverage:
    groups = draw(st.sampled_from([("a", "b"), ("a", "b", "c")]))
    decided = [{g: draw(knowns()) for g in groups} for _ in range(2)]
    return Coverage(draw(st.booleans()), *decided)


@given(coverages())
def test_if_nobody_rejected_is_known_it_is_always_said(coverage: Coverage) -> None:
    """Of five people or more, and of more than a tenth of everybody."""
    rejected = {g: Known(k.people) for g, k in coverage.rejected.items()}
    some = sum(k.people for k in rejected.values())
    if some >= 5 or 9 * some > sum(k.people for k in coverage.accepted.values()):
        found = Coverage(coverage.relevant, coverage.accepted, rejected).doubt
        assert found is not None
        assert found.startswith("the outcome of nobody rejected is known")
        assert PAGE in found


@given(
    st.dictionaries(
        st.sampled_from("abc"),
        st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 5), st.integers(0, 5)),
        min_size=2,
    ),
    st.booleans(),
)
def test_equal_coverage_says_nothing(
    groups: dict[str, tuple[int, int, int, int]], relevant: bool
) -> None:
    # In each group the same share of accepted and rejected is known, and the known rejected have
    # both outcomes.
    sides: list[dict[str, Known]] = [{}, {}]
    for g, (n, m, known, more) in groups.items():
        for side, size in zip(sides, (n, m), strict=True):
            side[g] = Known(2 * size * (known + more), 2 * size * known, size * known)
    assert Coverage(relevant, *sides).doubt is None


@given(coverages(), st.permutations(["a", "b", "c"]))
def test_names_of_groups_do_not_matter(coverage: Coverage, names: list[str]) -> None:
    new = dict(zip("abc", names, strict=True))
    sides = [
        {new[g]: k for g, k in side.items()} for side in (coverage.accepted, coverage.rejected)
    ]
    found = Coverage(coverage.relevant, *sides).doubt
    assert (found is None) == (coverage.doubt is None)


@given(coverages())
def test_everything_known_of_both_outcomes_says_nothing(coverage: Coverage) -> None:
    sides = [
        {g: Known(k.people + 2, k.people + 2, min(k.positive + 1, k.people + 1))
         for g, k in side.items()}
        for side in (coverage.accepted, coverage.rejected)
    ]  # fmt: skip
    assert Coverage(coverage.relevant, *sides).doubt is None


@given(
    st.tuples(st.integers(0, 400), st.integers(2, 400)),
    st.booleans(),
    st.integers(1, 3),
)
def test_one_awaited_person_among_others_is_no_reason_to_doubt(
    people: tuple[int, int], rejected: bool, groups: int
) -> None:
    """Whoever is awaited, and however many are known of the others."""
    rest, some = (Known(n, n, n // 2) for n in people)
    waiting = Known(some.people, some.people - 1, some.people // 2)
    sides = [dict.fromkeys("abc"[:groups], side) for side in (rest, some)]
    sides[1]["a"] = waiting
    accepted, others = sides if rejected else sides[::-1]
    assert Coverage(True, accepted, others).doubt is None


@pytest.mark.parametrize(
    ("accepted", "rejected", "said"),
    [
        (Known(192, 192, 96), Known(9, 8, 4), False),
        (Known(1000, 1000, 500), Known(1), False),  # the only one rejected was so today
        (Known(1000, 1000, 500), Known(4), False),
        (Known(1000, 1000, 500), Known(5), True),
        (Known(9, 9, 5), Known(1), False),  # a tenth of everybody, and no more
        (Known(8, 8, 5), Known(1), True),
        (Known(390, 390, 300), Known(200), True),
        (Known(390, 390, 300), Known(200, 100, 50), True),
        (Known(200), Known(390, 390, 300), True),
    ],
)
def test_few_who_are_awaited_are_no_reason_to_doubt(
    accepted: Known, rejected: Known, said: bool
) -> None:
    found = Coverage(True, {"a": accepted}, {"a": rejected}).doubt
    assert (found is not None) == said


@pytest.mark.parametrize("small", ["a", "b"])
def test_one_group_is_enough(small: str) -> None:
    """Of all rejected nearly everybody is known, in the small group nobody."""
    people = {"a": Known(400, 400, 200), "b": Known(400, 400, 200)}
    rejected = people | {small: Known(20, 0, 0)}
    found = Coverage(True, people, rejected).doubt
    assert found is not None
    assert f"in group {small}" in found


@pytest.mark.parametrize(
    ("rejected", "said"),
    [
        (Known(100, 100, 0), True),
        (Known(62, 62, 0), False),  # five expected at a tenth of 0.8: from 62.5 on
        (Known(63, 63, 0), True),
        (Known(3, 3, 0), False),
        (Known(100, 100, 1), False),
        (Known(100, 100, 100), False),  # 20 of 100 accepted have outcome 0: from 250 on
        (Known(250, 250, 250), True),
    ],
)
def test_outcomes_that_look_filled_in(rejected: Known, said: bool) -> None:
    accepted = {"a": Known(100, 100, 80), "b": Known()}
    found = Coverage(True, accepted, {"a": rejected, "b": Known()}).doubt
    assert (found is not None) == said


def test_who_counts_is_said_for_either_outcome() -> None:
    sides = {"a": Known(390, 390, 312)}, {"a": Known(610, 610, 0)}
    for relevant, words in ((True, "every rate is 1"), (False, "everybody rejected counts")):
        found = Coverage(relevant, *sides).doubt
        assert found is not None
        assert words in found


@pytest.mark.parametrize(
    ("rejected", "said"),
    [
        (Known(600, 540, 200), False),  # a tenth apart, and no more
        (Known(600, 539, 200), True),
        (Known(6, 5, 2), False),  # one of six may well be waiting
    ],
)
def test_how_far_apart_coverage_may_be(rejected: Known, said: bool) -> None:
    accepted = {"a": Known(600, 600, 300)}
    if rejected.people == 6:
        accepted = {"a": Known(6, 6, 3)}
    assert (Coverage(True, accepted, {"a": rejected}).doubt is not None) == said


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans())))
def test_arrays_count_as_people_one_by_one_do(rows: list[tuple[str, bool, bool]]) -> None:
    one, many = OutcomeTally(), OutcomeTally()
    for row in rows:
        one.know(*row)
    g = np.array(["abc".index(group) for group, _, _ in rows], np.int64)
    y, z = (np.array([row[i] for row in rows], np.bool_) for i in (1, 2))
    many.know_many("abc", g, y, z)
    relevant = one.coverage(relevant=True), many.coverage(relevant=True)
    assert relevant[0] == relevant[1]
    again = OutcomeTally()
    again.resume(json.loads(json.dumps(one.state())))
    assert again.coverage(relevant=True) == relevant[0]


def test_an_outcome_that_was_expected_is_counted_once() -> None:
    told = OutcomeTally()
    for _ in range(3):
        told.expect("a", True)
    told.know("a", True, True)
    assert told.coverage(relevant=True).accepted == {"a": Known(3, 1, 1)}
    assert told.coverage(relevant=True).unknown == 2
