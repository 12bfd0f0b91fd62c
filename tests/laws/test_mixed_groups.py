"""Many at once are the people that they are one at a time, whatever their groups are called.

numpy makes text of a list of mixed types and drops NULs at the end of text: 1, "1" and "1\\0" would
be one group.  Deciding one at a time is the reference, which tells names apart as Python does.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import fairshield as fs
from fairshield.base.counts import Group
from fairshield.fairlearn import window_disparity

ALIKE: tuple[tuple[Group, ...], ...] = (
    (1, "1"), (True, "True"), ("a", "a\0"), ("1", "1.0"), (0, "False"), ("", "\0"),
    ("nan", "None"), (2**53 + 1, 2**53), (2**70, "b"), ("a", 7, "7"),
)  # fmt: skip
"""Declared groups that are easily mistaken for one another."""

ODD: tuple[Any, ...] = (
    1, "1", True, "True", 1.0, "1.0", "1\0", "a", "a\0", "\0", "", 0, False, "False", None, "None",
    float("nan"), "nan", b"a", b"1", np.int8(1), np.int64(7), np.str_("a"), np.str_("1"),
    np.bool_(True), np.float64(1.0), np.float64(2.0**53), 2**53, 2**53 + 1, 2**70, 7, "7",
    ("a", "b"), (1,), Fraction(1), Decimal(1), 1 + 0j, pd.NA, pd.NaT, datetime.date(2026, 1, 1),
    np.datetime64(1, "ns"),
)  # fmt: skip
"""What a list of groups may hold."""

RULES: tuple[Any, ...] = ("refuse", "follow", "map", {"x": 0, "7": 0})


@cache
def made(groups: tuple[Group, ...]) -> fs.Policy:
    share = {(g, r, 1.0): 0.5 / len(groups) for g in groups for r in (False, True)}
    inputs = fs.InputModel.from_table(share)
    return fs.synthesize(fs.DemographicParity("0.25"), inputs, horizon=6)


policies = st.sampled_from(range(len(ALIKE))).map(lambda i: made(ALIKE[i]))


@st.composite
def crowds(draw: st.DrawFn, known: tuple[Group, ...]) -> tuple[list[Any], list[bool]]:
    """Groups, most of them declared, and proposals."""
    names = st.sampled_from(known) | st.sampled_from(known) | st.sampled_from(ODD)
    groups = draw(st.lists(names, max_size=12))
    proposed = draw(st.lists(st.booleans(), min_size=len(groups), max_size=len(groups)))
    return groups, proposed


def rule_for(policy: fs.Policy, rule: Any) -> Any:
    """A rule for strangers in terms of a policy's groups."""
    if rule == "map":
        return fs.Unseen.map(policy.groups[0])
    if isinstance(rule, dict):
        return {g: policy.groups[i] for g, i in rule.items() if g not in policy.groups}
    return rule


def one_by_one(stream: fs.Run, groups: list[Any], proposed: list[bool]) -> Any:
    """What deciding one at a time leads to, or the error that it ends with."""
    told = []
    try:
        for group, said in zip(groups, proposed, strict=True):
            decision = stream.decide(group, proposed=said)
            told.append((decision.accepted, decision.window, decision.position))
    except fs.FairshieldError as error:
        return type(error)
    return told, stream.counts, stream.completed, list(stream.followed.items())


def at_once(stream: fs.Run, groups: Any, proposed: list[bool]) -> Any:
    try:
        answers = stream.decide_many(groups, proposed)
    except fs.FairshieldError as error:
        return type(error)
    told = list(zip(*(answers[i].tolist() for i in (0, 3, 4)), strict=True))
    return told, stream.counts, stream.completed, list(stream.followed.items())


@given(policies, st.sampled_from(RULES), st.data())
def test_a_list_of_any_names_is_decided_as_one_at_a_time(
    policy: fs.Policy, rule: Any, data: st.DataObject
) -> None:
    groups, proposed = data.draw(crowds(policy.groups))
    unseen = rule_for(policy, rule)
    expected = one_by_one(fs.Run(policy, unseen=unseen), groups, proposed)
    for given_ in (groups, tuple(groups), as_objects(groups), pd.Series(groups, dtype=object)):
        assert at_once(fs.Run(policy, unseen=unseen), given_, proposed) == expected


@given(policies, st.data())
def test_a_shield_counts_a_list_as_one_at_a_time(policy: fs.Policy, data: st.DataObject) -> None:
    groups, proposed = data.draw(crowds(policy.groups))
    groups, proposed = groups[: policy.horizon], proposed[: policy.horizon]
    single, many = fs.Shield(policy), fs.Shield(policy)
    try:
        for group, said in zip(groups, proposed, strict=True):
            single.decide(group, proposed=said)
    except fs.UnknownGroupError:
        with pytest.raises(fs.UnknownGroupError):
            many.decide_many(groups, proposed)
        assert not many.decided
        return
    many.decide_many(groups, proposed)
    assert (many.counts, many.guaranteed) == (single.counts, single.guaranteed)


@given(policies, st.data())
def test_columns_of_one_type_are_read_as_their_values(
    policy: fs.Policy, data: st.DataObject
) -> None:
    """Arrays of numpy, pandas, polars and Arrow hold what their elements are one at a time."""
    texts, numbers = (
        [g for g in (*policy.groups, "a", "1") if isinstance(g, str)],
        [g for g in (*policy.groups, 1, 7) if type(g) is int and g < 2**63],
    )
    values = data.draw(
        st.lists(st.sampled_from(texts), max_size=8)
        | st.lists(st.sampled_from(numbers), max_size=8)
    )
    columns: list[Any] = [np.array(values), pl.Series(values), pa.array(values), pd.Series(values)]
    columns += [pd.Series(values).astype("category"), pa.array(values).dictionary_encode()]
    columns += [pd.Series(values, dtype="Int64")] if values and values[0] in numbers else []
    for column in columns:
        elements = column.to_pylist() if isinstance(column, pa.Array) else list(column)
        said = [True] * len(elements)
        expected = one_by_one(fs.Run(policy, unseen="follow"), elements, said)
        assert at_once(fs.Run(policy, unseen="follow"), column, said) == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint64, object])
def test_numbers_are_compared_exactly(dtype: Any) -> None:
    policy = made((2**53 + 1, 2**53))
    groups = np.array([2**53] * 4).astype(dtype)
    shield = fs.Shield(policy)
    shield.decide_many(groups, [True] * 4)
    assert shield.counts == fs.Counts({2**53 + 1: (0, 0), 2**53: (4, 4)})


def test_a_masked_person_has_no_group() -> None:
    groups = np.ma.masked_array(["a", "a\0x", "a"], mask=[False, False, True])
    stream = fs.Run(made(("a", "a\0")), unseen="follow")
    stream.decide_many(groups[[0, 2]], [True, True])
    assert stream.followed == {"(missing)": (1, 1)}
    assert stream.counts["a"].seen == 1


# Everybody else who reads a column of groups ------------------------------------------------


@given(st.sampled_from(ALIKE), st.data())
def test_an_input_model_counts_a_list_as_its_elements(
    known: tuple[Group, ...], data: st.DataObject
) -> None:
    groups = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=12))
    scores = [0.75] * len(groups)
    for model in (
        fs.InputModel.estimate(groups, [True] * len(groups), names=known, smoothing=0.0),
        fs.InputModel.from_scores(scores, groups, names=known, smoothing=0.0),
    ):
        shares = model.probs.sum((1, 2)) * len(groups)
        assert shares == pytest.approx([groups.count(g) for g in known])


@given(st.sampled_from(ALIKE), st.data())
def test_a_monitor_counts_a_list_as_one_at_a_time(
    known: tuple[Group, ...], data: st.DataObject
) -> None:
    names = st.sampled_from(known) | st.sampled_from([1, "1", True, 1.0, "x", None, ("a",), b"a"])
    groups = data.draw(st.lists(names, max_size=10))
    monitors = [fs.Monitor(fs.DemographicParity("0.1")) for _ in range(2)]
    try:
        for group in groups:
            monitors[0].observe(group, accepted=True)
    except fs.FairshieldError as error:
        with pytest.raises(type(error)):
            monitors[1].observe_many(groups, [True] * len(groups))
        assert not monitors[1].decided
        return
    monitors[1].observe_many(groups, [True] * len(groups))
    assert monitors[0].counts == monitors[1].counts


@pytest.mark.parametrize("known", [(1, "1"), ("a", "a\0"), (True, "True")])
def test_a_classifier_and_its_metrics_count_a_list_as_its_elements(known: tuple[Any, ...]) -> None:
    groups = [known[i % 3 > 0] for i in range(60)]
    X = np.arange(60.0)[:, None] % 7
    y = (X[:, 0] > 3).astype(int)
    clf = fs.ShieldedClassifier(LogisticRegression(), fs.DemographicParity("0.2"), horizon=6, cv=2)
    report = clf.fit(X, y, sensitive_features=groups).report_
    people = {row.group: row.decisions for row in report.groups}
    assert people == {name: groups.count(name) for name in known}
    accepted = [int(g == known[0]) for g in groups]
    prop = fs.DemographicParity("0.2")
    told = window_disparity(y, accepted, sensitive_features=groups, prop=prop, horizon=60)
    assert told == 1.0


def as_objects(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array
