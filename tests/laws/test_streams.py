"""A stream of any length decides as its shields would, whoever comes and however it is cut."""

from __future__ import annotations

import asyncio
import csv
import pickle
from itertools import pairwise

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import fairshield as fs
from fairshield.base.errors import InvalidValueError, UnknownGroupError, WindowOverError
from fairshield.base.groups import MISSING
from fairshield.inputs.recorded import request_of
from fairshield.periodic import (
    Dynamic,
    ExactPeriodic,
    OptimalPeriodic,
    Perpetual,
    StaticBounded,
    StaticFair,
)
from fairshield.records import Request
from fairshield.runtime.step import Why

DP = fs.DemographicParity("0.2")
EQ = fs.EqualOpportunity("0.3", min_support=2)
COSTS = (0.25, 1.0, 3.0)
INPUTS = fs.InputModel.from_table(
    {(g, r, c): 1 / 12 for g in "ab" for r in (False, True) for c in COSTS},
    outcomes={"a": 0.6, "b": 0.4},
)
POLICIES = {
    "window": fs.synthesize(DP, INPUTS, horizon=7),
    "labelled": fs.synthesize(EQ, INPUTS, horizon=6),
    "long": fs.synthesize(DP, INPUTS, horizon=40, method="long", endgame=8),
    "static-fair": StaticFair(DP, INPUTS, 8),
    "static-bounded": StaticBounded(DP, INPUTS, 16),
    "dynamic": Dynamic(DP, INPUTS, 8),
    "exact": ExactPeriodic(DP, INPUTS, 5, periods=8),
    "optimal": OptimalPeriodic(DP, INPUTS, 5, periods=8),
    "perpetual": Perpetual(DP, INPUTS, 6),
    "perpetual-labelled": Perpetual(fs.EqualOpportunity("0.4"), INPUTS, 5),
}
PEOPLE = st.lists(
    st.tuples(st.sampled_from("aab"), st.booleans(), st.sampled_from(COSTS), st.booleans()),
    max_size=40,
)


def one_by_one(stream: fs.Run, people: list) -> list[fs.Decision]:
    decisions = []
    for group, proposed, cost, outcome in people:
        decisions.append(stream.decide(group, proposed=proposed, cost=cost))
        if stream.policy.labelled:
            stream.observe(decisions[-1], outcome=outcome)
    return decisions


def at_once(stream: fs.Run, people: list, **options: bool) -> fs.Batch:
    groups, proposed, costs, outcomes = ([person[i] for person in people] for i in range(4))
    given = outcomes if stream.policy.labelled else None
    return stream.decide_many(np.array(groups, object), proposed, costs, given, **options)


def as_rows(answers: fs.Batch) -> list[tuple]:
    return list(zip(*(column.tolist() for column in answers[:5]), strict=True))


@pytest.mark.parametrize("kind", POLICIES)
@settings(max_examples=examples(25), deadline=None)
@given(people=PEOPLE, cuts=st.lists(st.integers(0, 40), max_size=3))
def test_many_at_once_equal_one_by_one(kind: str, people: list, cuts: list[int]) -> None:
    single, batch = fs.Run(POLICIES[kind]), fs.Run(POLICIES[kind])
    expected = one_by_one(single, people)
    ends = sorted({0, len(people), *(min(cut, len(people)) for cut in cuts)})
    rows, why = [], []
    for begin, end in pairwise(ends):
        answers = at_once(batch, people[begin:end], reasons=bool(begin % 2))
        rows += as_rows(answers)
        why += answers.reasons or [None] * (end - begin)
    assert rows == [(d.accepted, d.overruled, d.paid, d.window, d.position) for d in expected]
    assert all(w is None or w == d.reason for w, d in zip(why, expected, strict=True))
    assert (single.counts, single.completed, single.remaining) == (
        batch.counts,
        batch.completed,
        batch.remaining,
    )
    assert single.state == batch.state


@pytest.mark.parametrize("kind", POLICIES)
def test_reasons_are_given_for_the_overruled_alone(kind: str) -> None:
    people = [("a", True, 1.0, True), ("b", False, 0.25, True)] * 20
    stream, twin = fs.Run(POLICIES[kind]), fs.Run(POLICIES[kind])
    answers = at_once(stream, people, reasons=True)
    expected = [d.reason if d.overruled else None for d in one_by_one(twin, people)]
    assert answers.reasons == tuple(expected)
    assert answers.overruled.any()


def test_every_window_of_a_stream_ends_fair() -> None:
    rng = np.random.default_rng(3)
    groups = np.where(rng.random(7 * 300) < 0.3, "a", "b")
    answers = fs.Run(POLICIES["window"]).decide_many(groups, groups == "a")
    for window in range(300):
        here = answers.window == window
        assert here.sum() == 7
        counts = {
            g: (int((m := here & (groups == g)).sum()), int((m & answers.accepted).sum()))
            for g in "ab"
        }
        assert DP.holds(fs.Counts(counts))


def test_a_batch_beyond_the_last_period_decides_nothing() -> None:
    stream = fs.Run(POLICIES["exact"])
    with pytest.raises(WindowOverError, match="only 40 decisions are left"):
        stream.decide_many(["a"] * 41, [True] * 41)
    assert (stream.completed, stream.position) == (0, 0)


@pytest.mark.parametrize("kind", POLICIES)
def test_a_fault_anywhere_decides_nothing(kind: str) -> None:
    stream = fs.Run(POLICIES[kind])
    outcomes = [True] * 12 if stream.policy.labelled else None
    with pytest.raises(InvalidValueError, match=r"costs\[11\]"):
        stream.decide_many(["a"] * 12, [True] * 12, [1.0] * 11 + [-1.0], outcomes)
    with pytest.raises(UnknownGroupError, match="unknown group 'c'"):
        stream.decide_many(["a"] * 11 + ["c"], [True] * 12, 1.0, outcomes)
    assert (stream.completed, stream.position) == (0, 0)


@pytest.mark.parametrize("kind", POLICIES)
def test_policies_and_streams_survive_pickling(kind: str) -> None:
    people = [("a", True, 1.0, True), ("b", False, 0.25, True)] * 19
    stream = fs.Run(POLICIES[kind])
    at_once(stream, people[:17])
    twin = pickle.loads(pickle.dumps(stream))
    assert as_rows(at_once(stream, people[17:])) == as_rows(at_once(twin, people[17:]))


# Groups nobody declared ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", POLICIES)
@settings(max_examples=examples(15), deadline=None)
@given(people=PEOPLE, strangers=st.lists(st.integers(0, 39), max_size=6))
def test_following_strangers_changes_nothing_for_others(
    kind: str, people: list, strangers: list[int]
) -> None:
    mixed = list(people)
    for place in sorted(strangers):
        # Not the last: after the last period of a run nobody is decided.
        mixed.insert(min(place, max(len(mixed) - 1, 0)), ("z", place % 2 == 0, 1.0, True))
    plain, mixed_single, mixed_batch = (fs.Run(POLICIES[kind], unseen="follow") for _ in range(3))
    alone = one_by_one(plain, people)
    decisions = one_by_one(mixed_single, mixed)
    assert [d for d in decisions if d.why is not Why.UNSEEN] == alone
    unseen = [d for d in decisions if d.why is Why.UNSEEN]
    assert all(d.accepted == d.proposed and not d.overruled for d in unseen)
    rows = as_rows(at_once(mixed_batch, mixed, reasons=True))
    assert rows == [(d.accepted, d.overruled, d.paid, d.window, d.position) for d in decisions]
    assert mixed_single.followed == mixed_batch.followed
    seen = sum(count.seen for count in mixed_single.followed.values())
    assert seen == len(strangers)


def test_mapping_counts_strangers_as_the_group_they_map_to() -> None:
    for unseen in ("map:b", {"z": "b", "y": "a"}, fs.Unseen.map("b")):
        stream = fs.Run(POLICIES["window"], unseen=unseen)
        stream.decide_many(["a", "z", "b"], [True, True, False])
        assert stream.decide("z", proposed=False).group == "b"
        assert {g: c.seen for g, c in stream.counts.items()} == {"a": 1, "b": 3}


def test_people_without_a_number_count_as_the_group_they_map_to() -> None:
    inputs = fs.InputModel.agnostic({0: 0.5, 1: 0.5})
    policy = fs.synthesize(fs.DemographicParity("0.25"), inputs, horizon=4)
    missing = np.array([0.0, np.nan, 1.0, np.nan])
    one, other = (fs.Run(policy, unseen="map:1") for _ in range(2))
    answers = one.decide_many(missing, [True] * 4)
    assert (answers.accepted == other.decide_many([0, 1, 1, 1], [True] * 4).accepted).all()


def test_a_mapping_refuses_whom_it_does_not_list() -> None:
    stream = fs.Run(POLICIES["window"], unseen={"z": "b"})
    with pytest.raises(UnknownGroupError, match="unknown group 'y'"):
        stream.decide("y", proposed=True)
    with pytest.raises(UnknownGroupError, match="unknown group 'y'"):
        stream.decide_many(["z", "y"], [True, True])
    assert stream.position == 0


@pytest.mark.parametrize(
    ("unseen", "error", "message"),
    [
        ("ignore", InvalidValueError, "unseen must be 'refuse', 'follow', 'map:GROUP'"),
        ("map:", InvalidValueError, "unseen must be"),
        ("map:c", UnknownGroupError, "unknown group 'c'"),
        ({"a": "b"}, InvalidValueError, "which the policy knows"),
    ],
)
def test_what_cannot_be_meant_is_refused(unseen: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        fs.Run(POLICIES["window"], unseen=unseen)


def test_a_missing_group_is_followed_and_reported_by_a_name() -> None:
    stream = fs.Run(POLICIES["window"], unseen="follow")
    stream.decide_many(np.array(["a", None, float("nan")], object), [True, True, False])
    stream.decide(None, proposed=True)  # type: ignore[arg-type]
    assert stream.followed == {MISSING: (3, 2)}


def test_those_who_are_followed_are_told_why() -> None:
    people = [("a", True, 1.0, True), ("z", False, 1.0, True), ("b", False, 0.25, True)] * 12
    stream, twin = (fs.Run(POLICIES["window"], unseen="follow") for _ in range(2))
    told = at_once(stream, people, reasons=True).reasons
    assert told == tuple(
        decision.reason if decision.overruled or decision.why is Why.UNSEEN else None
        for decision in one_by_one(twin, people)
    )


@pytest.mark.parametrize("names", [(1, 2), ("1", "2")])
@pytest.mark.parametrize("unseen", ["refuse", "follow", "map:1", {"z": "1"}])
def test_what_reads_like_a_known_group_is_no_stranger(names: tuple, unseen: object) -> None:
    policy = fs.synthesize(DP, fs.InputModel.agnostic(dict.fromkeys(names, 0.5)), horizon=4)
    stream = fs.Run(policy, unseen=unseen)
    other = "1" if names[0] == 1 else 1
    said = f"{other!r} is .*, the policy knows {names[0]!r}: convert the column"
    with pytest.raises(UnknownGroupError, match=said):
        stream.decide(other, proposed=True)
    with pytest.raises(UnknownGroupError, match=rf"groups\[2\]: .*{said}"):
        stream.decide_many(np.array([*names, other], object), [True] * 3)
    assert (stream.position, stream.followed) == (0, {})


def test_a_mapping_may_say_that_one_type_stands_for_the_other() -> None:
    policy = fs.synthesize(DP, fs.InputModel.agnostic({"1": 0.5, "2": 0.5}), horizon=4)
    stream = fs.Run(policy, unseen={1: "1", 2: "2"})
    stream.decide_many([1, 2, 1], [True] * 3)
    assert {g: c.seen for g, c in stream.counts.items()} == {"1": 2, "2": 1}


@pytest.mark.parametrize(("group", "said"), [("z", "unknown group 'z'"), (None, "group is missi")])
def test_a_refusal_names_row_and_remedy(group: object, said: str) -> None:
    stream = fs.Run(POLICIES["window"])
    with pytest.raises(UnknownGroupError, match=rf"groups\[1\]: .*{said}.*unseen="):
        stream.decide_many(np.array(["a", group, "y"], object), [True] * 3)


NUMBERED = fs.InputModel.from_table(
    {(g, r, c): 1 / 12 for g in (0, 1) for r in (False, True) for c in COSTS},
    outcomes={0: 0.6, 1: 0.4},
)
OF_NUMBERS = [fs.synthesize(prop, NUMBERED, horizon=6) for prop in (DP, EQ)]


@given(
    st.lists(st.tuples(st.sampled_from([0, 1]), st.booleans(), st.sampled_from(COSTS)), max_size=15)
)
def test_requests_are_read_alike_however_they_are_written(people: list) -> None:
    """Text stands for the group it reads like, and an empty cell for a value that is not known."""
    lines = ["group,proposed,cost,outcome\n"]
    for group, proposed, cost in people:
        price = "" if cost == 1.0 else cost
        lines.append(f"{group},{'yes' if proposed else 'no'},{price},{int(proposed)}\n")
    for policy in OF_NUMBERS:
        as_tuples = [(*person, person[1]) for person in people]
        expected = list(fs.Run(policy).decide_each(as_tuples))
        rows = list(csv.DictReader(lines))
        assert list(fs.Run(policy).decide_each(rows)) == expected
        records = fs.Reading(format="csv").read(lines)
        assert list(fs.Run(policy).decide_each(records)) == expected
        requests = [Request.of(row, policy.groups) for row in rows]
        assert [request.values() for request in requests] == [
            Request(*person).values() for person in as_tuples
        ]
        records = fs.Reading(format="csv").read(lines)
        assert [request_of(record, policy.groups, EQ) for record in records] == requests


def test_outcomes_of_requests_may_be_unknown_or_of_no_interest() -> None:
    asked = {"group": "a", "proposed": "1", "outcome": ""}
    waiting = fs.Run(POLICIES["labelled"])
    (decision,) = waiting.decide_each([asked])
    waiting.observe(decision, outcome=True)
    assert len(list(fs.Run(POLICIES["window"]).decide_each([asked | {"outcome": "so-so"}]))) == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"group": "a"}, "line 2: no 'proposed', the fields are 'group'"),
        ({"proposed": 1}, "line 2: no 'group', the fields are 'proposed'"),
        ({"group": "a", "proposed": "perhaps"}, "line 2: proposed: .*'perhaps'"),
        ({"group": "a", "proposed": 1, "cost": "dear"}, "line 2: cost: .*'dear'"),
        ({"group": "", "proposed": 1}, "line 2: the group is empty.*unseen="),
    ],
)
def test_a_request_that_cannot_be_read_is_told_by_its_line(asked: dict, said: str) -> None:
    async def arriving():
        yield ("a", True)
        yield asked

    async def decided(run: fs.Run) -> list:
        return [decision async for decision in run.adecide_each(arriving())]

    run = fs.Run(POLICIES["window"])
    with pytest.raises(InvalidValueError, match=said):
        list(run.decide_each([("a", True), asked]))
    assert run.position == 1
    with pytest.raises(InvalidValueError, match=said):
        asyncio.run(decided(fs.Run(POLICIES["window"])))


def test_each_kind_of_iterable_is_sent_to_its_method() -> None:
    async def awaited():
        yield ("a", True)

    async def decided() -> list:
        return [d async for d in stream.adecide_each([("a", True)])]  # type: ignore[arg-type]

    stream = fs.Run(POLICIES["window"])
    with pytest.raises(InvalidValueError, match="adecide_each"):
        stream.decide_each(awaited())  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="with decide_each"):
        asyncio.run(decided())
    with pytest.raises(InvalidValueError, match="must be an iterable"):
        stream.decide_each(3)  # type: ignore[arg-type]


def test_an_awaited_outcome_is_awaited_across_the_end_of_a_window() -> None:
    stream = fs.Run(POLICIES["labelled"])
    for i in range(6):
        decision = stream.decide("a", proposed=True)
        if i < 5:
            stream.observe(decision, outcome=True)
    with pytest.raises(fs.OutcomePendingError):
        stream.decide_many(["a"], [True], 1.0, [True])
    stream.observe(decision, outcome=False)
    assert (stream.completed, stream.counts["a"].seen) == (1, 0)


def test_a_name_that_is_none_decides_nothing_even_where_strangers_are_followed() -> None:
    stream = fs.Run(POLICIES["window"], unseen="follow")
    with pytest.raises(InvalidValueError, match="string or an integer"):
        stream.decide_many(np.array(["a", "b", 1.5], object), [True] * 3)
    assert (stream.position, stream.followed) == (0, {})


def test_nobody_is_decided_after_the_last_period_strangers_included() -> None:
    stream = fs.Run(POLICIES["exact"], unseen="follow")
    with pytest.raises(WindowOverError, match="beyond"):
        stream.decide_many(["a"] * 40 + ["z"], [True] * 41)
    assert (stream.completed, stream.position) == (0, 0)
    stream.decide_many(["z", *"a" * 40], [True] * 41)
    assert (stream.completed, stream.position) == (8, 0)
    with pytest.raises(WindowOverError):
        stream.decide("z", proposed=True)
    with pytest.raises(WindowOverError):
        stream.decide_many(["z"], [True])
