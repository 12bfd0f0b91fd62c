"""A frame of any kind is decided as its rows would be, one after the other."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import date, datetime, time
from itertools import pairwise
from pathlib import Path
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import fairshield as fs
from fairshield.base.errors import InvalidValueError, UnknownGroupError
from fairshield.periodic import Perpetual

DP = fs.DemographicParity("0.2")
COSTS = (0.25, 1.0, 3.0)
INPUTS = fs.InputModel.from_table(
    {(g, r, c): 1 / 12 for g in "ab" for r in (False, True) for c in COSTS},
    outcomes={"a": 0.6, "b": 0.4},
)
POLICIES = {
    "window": fs.synthesize(DP, INPUTS, horizon=7),
    "labelled": fs.synthesize(fs.EqualOpportunity("0.3", min_support=2), INPUTS, horizon=6),
    "periodic": Perpetual(DP, INPUTS, 6),
}
WINDOW = POLICIES["window"]
ROW = st.tuples(st.sampled_from("aab"), st.booleans(), st.sampled_from(COSTS), st.booleans())
ROWS = st.lists(ROW, max_size=30)
NAMES = ("group", "proposed", "cost", "outcome")
ADDED = ["accepted", "overruled", "paid", "window", "position"]


def columns_of(rows: list[tuple]) -> dict[str, list]:
    return {name: [row[i] for row in rows] for i, name in enumerate(NAMES)}


def table_of(rows: list[tuple]) -> pa.Table:
    types = (pa.string(), pa.bool_(), pa.float64(), pa.bool_())
    schema = pa.schema(list(zip(NAMES, types, strict=True)))
    return pa.table(columns_of(rows), schema=schema)


def _pandas(rows: list[tuple], **types: str) -> pd.DataFrame:
    frame = pd.DataFrame(columns_of(rows))
    kinds = {"group": "str", "proposed": "bool", "cost": "float64", "outcome": "bool"}
    return frame.astype(kinds | types)


KINDS = {
    "pandas": _pandas,
    "pandas-object": lambda rows: _pandas(rows, group="object", proposed="object"),
    "pandas-category": lambda rows: _pandas(rows, group="category", proposed="category"),
    "pandas-nullable": lambda rows: _pandas(
        rows, group="string", proposed="boolean", cost="Float64", outcome="Int64"
    ),
    "pandas-arrow": lambda rows: table_of(rows).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda rows: pl.from_arrow(table_of(rows)),
    "polars-category": lambda rows: pl.from_arrow(table_of(rows)).with_columns(
        pl.col("group").cast(pl.Categorical)
    ),
    "polars-enum": lambda rows: pl.from_arrow(table_of(rows)).with_columns(
        pl.col("group").cast(pl.Enum(["b", "a"]))
    ),
    "polars-words": lambda rows: pl.from_arrow(table_of(rows)).with_columns(
        pl.when("proposed").then(pl.lit("yes")).otherwise(pl.lit("no")).alias("proposed")
    ),
    "lazy": lambda rows: pl.from_arrow(table_of(rows)).lazy(),
    "table": table_of,
    "table-dictionary": lambda rows: table_of(rows).set_column(
        0, "group", pa.chunked_array([table_of(rows)["group"].combine_chunks().dictionary_encode()])
    ),
    "batch": lambda rows: pa.RecordBatch.from_pydict(columns_of(rows), table_of([]).schema),
    "reader": lambda rows: table_of(rows).to_reader(max_chunksize=4),
}


def rows_of(frame: Any) -> list[tuple]:
    """The columns that were added, row by row."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pa.RecordBatchReader):
        frame = frame.read_all()
    as_list = "tolist" if isinstance(frame, pd.DataFrame) else (
        "to_list" if isinstance(frame, pl.DataFrame) else "to_pylist"
    )  # fmt: skip
    return list(zip(*(getattr(frame[name], as_list)() for name in ADDED), strict=True))


def one_by_one(stream: fs.Run, rows: list[tuple]) -> list[tuple]:
    told = []
    for group, proposed, cost, outcome in rows:
        d = stream.decide(group, proposed=proposed, cost=cost)
        if stream.policy.labelled:
            stream.observe(d, outcome=outcome)
        told.append((d.accepted, d.overruled, d.paid, d.window, d.position))
    return told


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(6), deadline=None)
@given(rows=ROWS)
def test_every_kind_of_frame_is_decided_as_its_rows_are(
    kind: str, policy: str, rows: list[tuple]
) -> None:
    frame = KINDS[kind](rows)
    decided = fs.shield_frame(frame, POLICIES[policy], cost="cost")
    assert isinstance(decided, type(frame))
    assert rows_of(decided) == one_by_one(fs.Run(POLICIES[policy]), rows)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=examples(20), deadline=None)
@given(rows=ROWS, cuts=st.lists(st.integers(0, 30), max_size=3))
def test_chunks_equal_the_whole(policy: str, rows: list[tuple], cuts: list[int]) -> None:
    whole = rows_of(fs.shield_frame(table_of(rows), POLICIES[policy], cost="cost"))
    stream, table, parts = fs.Run(POLICIES[policy]), table_of(rows), []
    for begin, end in pairwise(sorted({0, len(rows), *(min(c, len(rows)) for c in cuts)})):
        chunk = table.slice(begin, end - begin)
        parts += rows_of(fs.shield_frame(chunk, stream, cost="cost"))
    assert parts == whole


@settings(max_examples=examples(30), deadline=None)
@given(rows=ROWS, size=st.integers(1, 9), reasons=st.booleans())
def test_batches_equal_the_table(rows: list[tuple], size: int, reasons: bool) -> None:
    table = table_of(rows).replace_schema_metadata({"origin": "test"})
    policy = POLICIES["window"]
    reader = fs.shield_batches(
        table.to_reader(max_chunksize=size), policy, cost="cost", reasons=reasons
    )
    whole = fs.shield_frame(table, policy, cost="cost", reasons=reasons)
    assert reader.read_all().equals(whole)


def test_batches_are_decided_as_they_are_read() -> None:
    table, stream = table_of([("a", True, 1.0, True)] * 9), fs.Run(POLICIES["window"])
    reader = fs.shield_batches(table.to_reader(max_chunksize=3), stream)
    assert (stream.completed, stream.position) == (0, 0)
    reader.read_next_batch()
    assert (stream.completed, stream.position) == (0, 3)


def test_what_exports_an_arrow_stream_becomes_a_table() -> None:
    class Exporter:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return table.__arrow_c_stream__(requested_schema)

    table = table_of([("a", True, 1.0, True), ("b", False, 1.0, True)])
    expected = fs.shield_frame(table, POLICIES["window"])
    assert fs.shield_frame(Exporter(), POLICIES["window"]).equals(expected)
    assert fs.shield_batches(Exporter(), POLICIES["window"]).read_all().equals(expected)


@pytest.mark.parametrize("kind", ["pandas", "polars", "table"])
@settings(max_examples=examples(15), deadline=None)
@given(rows=ROWS, data=st.data())
def test_an_order_decides_as_the_sorted_frame_and_leaves_rows_in_place(
    kind: str, rows: list[tuple], data: st.DataObject
) -> None:
    when = data.draw(st.lists(st.integers(0, 5), min_size=len(rows), max_size=len(rows)))
    table = table_of(rows).append_column("when", pa.array(when, pa.int64()))
    frame = {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table)}.get(
        kind, lambda: table
    )()
    options = {"cost": "cost", "reasons": True}
    decided = fs.shield_frame(frame, POLICIES["window"], order_by="when", **options)
    order = np.argsort(np.array(when, np.int64), kind="stable").tolist()
    expected = one_by_one(fs.Run(POLICIES["window"]), [rows[i] for i in order])
    assert [rows_of(decided)[i] for i in order] == expected
    assert list(decided["when"].to_pylist() if kind == "table" else decided["when"]) == when


def test_an_index_is_kept() -> None:
    rows = [("a", True, 1.0, True), ("b", False, 1.0, True)] * 4
    frame = _pandas(rows).set_index(pd.Index(list("hgfedcba"), name="id"))
    decided = fs.shield_frame(frame, POLICIES["window"])
    pd.testing.assert_frame_equal(decided[frame.columns], frame)
    assert rows_of(decided) == one_by_one(fs.Run(POLICIES["window"]), rows)
    assert [str(decided[name].dtype) for name in ADDED] == [
        "bool", "bool", "float64", "int64", "int64",
    ]  # fmt: skip


def test_repeated_index_labels_do_no_harm() -> None:
    rows = [("a", True, 1.0, True), ("b", False, 1.0, True)] * 4
    frame = _pandas(rows).set_index(pd.Index([0] * 8))
    assert rows_of(fs.shield_frame(frame, POLICIES["window"])) == one_by_one(
        fs.Run(POLICIES["window"]), rows
    )


def test_integers_are_groups() -> None:
    inputs = fs.InputModel.agnostic({0: 0.5, 1: 0.5})
    policy = fs.synthesize(DP, inputs, horizon=4)
    answers = fs.Run(policy).decide_many([0, 1, 1, 0], [True, False, False, True])
    given = {"group": [0, 1, 1, 0], "proposed": [1, 0, 0, 1]}
    for frame in (pd.DataFrame(given, dtype="Int64"), pl.DataFrame(given), pa.table(given)):
        accepted = fs.shield_frame(frame, policy)["accepted"]
        assert list(np.asarray(accepted)) == answers.accepted.tolist()


def test_several_columns_are_intersected() -> None:
    sex, age = list("fmfmffmm"), [1, 1, 2, 1, 1, 2, 1, 1]
    names = fs.intersection(sex, age)
    assert set(names) == {"f × 1", "m × 1", "f × 2"}
    inputs = fs.InputModel.agnostic({"f × 1": 0.5, "m × 1": 0.5})
    policy, proposed = fs.synthesize(DP, inputs, horizon=3), [True, False] * 4
    answers = fs.Run(policy, unseen="follow").decide_many(names, proposed)
    frame = pl.DataFrame({"sex": sex, "age": age, "proposed": proposed})
    decided = fs.shield_frame(frame, policy, group=["sex", "age"], unseen="follow")
    assert decided["accepted"].to_list() == answers.accepted.tolist()
    assert decided["position"].to_list() == answers.position.tolist()


@pytest.mark.parametrize(
    "kind", ["pandas", "pandas-nullable", "pandas-category", "polars", "table"]
)
@pytest.mark.parametrize("unseen", ["follow", "map:b", {"z": "a", "(missing)": "b"}])
def test_strangers_and_the_missing_go_by_the_rule(kind: str, unseen: Any) -> None:
    rows = [(g, i % 2 == 0, 1.0, True) for i, g in enumerate(["a", "z", None, "b", "a", None, "b"])]
    decided = fs.shield_frame(KINDS[kind](rows), POLICIES["window"], unseen=unseen)
    assert rows_of(decided) == one_by_one(fs.Run(POLICIES["window"], unseen=unseen), rows)


def test_strangers_of_many_names_are_followed() -> None:
    names = [f"z{i}" for i in range(50)] + ["a", None, "b"]
    stream = fs.Run(POLICIES["window"], unseen="follow")
    frame = pl.DataFrame({"group": names, "proposed": [True] * 53})
    fs.shield_frame(frame, stream)
    assert len(stream.followed) == 51
    assert stream.position == 2


def test_scores_propose_and_price() -> None:
    score = [0.9, 0.5, 0.1, 0.4, 0.6, 0.2]
    frame = pl.DataFrame({"group": list("abaabb"), "score": score})
    decided = fs.shield_frame(frame, POLICIES["window"], score="score")
    plain = frame.with_columns(proposed=pl.col("score") >= 0.5, cost=(pl.col("score") - 0.5).abs())
    assert rows_of(decided) == rows_of(fs.shield_frame(plain, POLICIES["window"], cost="cost"))
    assert (
        fs.shield_frame(frame, POLICIES["window"], score="score", threshold=2)["accepted"].sum() < 6
    )


@given(ROWS)
def test_a_column_of_costs_needs_no_naming(rows: list[tuple]) -> None:
    table = table_of(rows)
    named = fs.shield_frame(table, WINDOW, cost="cost")
    assert rows_of(fs.shield_frame(table, WINDOW)) == rows_of(named)
    apart = table.rename_columns(["group", "proposed", "price", "outcome"])
    ones = table.set_column(2, "cost", [np.ones(len(rows))])
    assert rows_of(fs.shield_frame(apart, WINDOW)) == rows_of(fs.shield_frame(ones, WINDOW))
    if rows:
        assert fs.audit_frame(named, WINDOW) == fs.audit_frame(named, WINDOW, cost="cost")


def test_decimals_are_costs() -> None:
    plain = table_of([("a", True, 0.25, True), ("b", False, 3.0, True)] * 6)
    exact = plain.set_column(2, "cost", plain["cost"].cast(pa.decimal128(6, 2)))
    for frame in (exact, pl.from_arrow(exact), exact.to_pandas()):
        assert rows_of(fs.shield_frame(frame, WINDOW)) == rows_of(fs.shield_frame(plain, WINDOW))
        decided = fs.shield_frame(frame, DP, horizon=6)
        assert rows_of(decided) == rows_of(fs.shield_frame(plain, DP, horizon=6))


def test_an_audit_reads_the_outcome_it_is_told_of() -> None:
    frame = pl.DataFrame({"group": ["a"], "accepted": [True]})
    with pytest.raises(InvalidValueError, match=r"no column 'repaid'.*outcome="):
        fs.audit_frame(frame, fs.EqualOpportunity("0.1"), outcome="repaid")


def test_a_property_is_enforced_with_a_policy_for_these_rows() -> None:
    rng = np.random.default_rng(5)
    groups = np.where(rng.random(400) < 0.4, "x", "y")
    frame = pl.DataFrame({"group": groups, "score": np.where(groups == "x", 0.7, 0.4)})
    frame = frame.with_columns(score=pl.col("score") + rng.normal(0, 0.2, 400))
    decided = fs.shield_frame(frame, DP, score="score", threshold=0.5, horizon=50)
    report = fs.audit_frame(decided.with_columns(proposed=pl.col("score") >= 0.5), DP, horizon=50)
    assert report.holds
    assert (len(report.windows), report.overruled) == (8, int(decided["overruled"].sum()))
    inputs = fs.InputModel.agnostic({"x": 0.4, "y": 0.6})
    other = fs.shield_frame(frame, DP, score="score", threshold=0.5, horizon=50, inputs=inputs)
    policy = fs.synthesize(DP, inputs, horizon=50)
    assert rows_of(other) == rows_of(fs.shield_frame(frame, policy, score="score", threshold=0.5))


def test_a_labelled_property_is_estimated_with_outcomes() -> None:
    rows = [("ab"[i % 2], i % 3 == 0, 1.0, i % 5 > 1) for i in range(60)]
    prop = fs.EqualOpportunity("0.3", min_support=2)
    decided = fs.shield_frame(pl.from_arrow(table_of(rows)), prop, horizon=12)
    assert fs.audit_frame(decided, prop, horizon=12).holds


def test_a_file_decides_like_its_policy(tmp_path: Path) -> None:
    path, rows = tmp_path / "dp.shield", [("a", True, 1.0, True), ("b", False, 1.0, True)] * 9
    POLICIES["window"].save(path)
    expected = one_by_one(fs.Run(POLICIES["window"]), rows)
    assert rows_of(fs.shield_frame(table_of(rows), path)) == expected
    assert rows_of(fs.shield_frame(table_of(rows), str(path))) == expected


@pytest.mark.parametrize("kind", ["pandas", "polars", "table"])
def test_reasons_are_given_for_the_overruled(kind: str) -> None:
    rows = [("a", True, 1.0, True), ("b", False, 1.0, True)] * 7
    frame = fs.shield_frame(KINDS[kind](rows), POLICIES["window"], reasons=True, prefix="shield_")
    given = frame["shield_reason"].to_pylist() if kind == "table" else list(frame["shield_reason"])
    overruled = list(np.asarray(frame["shield_overruled"]))
    assert [isinstance(reason, str) for reason in given] == overruled
    assert any(overruled)


# Audits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=examples(15), deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=30))
def test_what_was_decided_passes_its_audit(policy: str, rows: list[tuple]) -> None:
    decided = fs.shield_frame(table_of(rows), POLICIES[policy], cost="cost")
    report = fs.audit_frame(decided, POLICIES[policy], cost="cost")
    assert report.holds
    assert report.difference is None
    assert report.overruled == sum(decided["overruled"].to_pylist())
    assert report.paid == pytest.approx(sum(decided["paid"].to_pylist()))


def test_an_audit_names_the_row_that_was_changed() -> None:
    rows = [("a", True, 1.0, True), ("b", False, 1.0, True)] * 7
    decided = fs.shield_frame(_pandas(rows), POLICIES["window"])
    decided.loc[3, "accepted"] = not decided.loc[3, "accepted"]
    decided = decided.drop(columns="overruled")
    report = fs.audit_frame(decided, POLICIES["window"])
    assert report.difference is not None
    assert report.difference.line == 4
    late = decided.iloc[::-1].assign(when=range(13, -1, -1))
    again = fs.audit_frame(late, POLICIES["window"], order_by="when")
    assert again.difference is not None
    assert again.difference.line == 11


def test_only_the_last_outcome_may_be_awaited() -> None:
    frame = pl.DataFrame({"group": ["a", "b"], "accepted": [True, True], "outcome": [1, None]})
    prop = fs.EqualOpportunity("0.3")
    assert fs.audit_frame(frame, prop).decisions == 2
    with pytest.raises(InvalidValueError, match="line 1: no 'outcome'"):
        fs.audit_frame(frame[::-1], prop)


# What cannot be decided ---------------------------------------------------------------------

FINE = {"group": ["a", "b", "a"], "proposed": [True, False, True], "cost": [1.0, 1.0, 2.0]}


@pytest.mark.parametrize(
    ("changed", "policy", "options", "error", "message"),
    [
        ({"group": ["a", None, "b"]}, WINDOW, {}, UnknownGroupError, r"group\[1\]: the group is m"),
        ({"group": ["a", "b", "z"]}, WINDOW, {}, UnknownGroupError, r"group\[2\]: unknown .*'z'"),
        ({"group": ["a", "y", "z"]}, WINDOW, {"unseen": {"z": "b"}}, UnknownGroupError, r"'y'"),
        ({"group": [1, 2, 1]}, WINDOW, {}, UnknownGroupError, r"group\[0\]: unknown group 1"),
        ({"proposed": [True, None, True]}, WINDOW, {}, InvalidValueError, r"proposed\[1\] is mis"),
        ({"proposed": ["yes", "no", "?"]}, WINDOW, {}, InvalidValueError, r"proposed\[2\]: .*'\?'"),
        ({"proposed": [1, 0, 7]}, WINDOW, {}, InvalidValueError, r"proposed\[2\]: .*got 7"),
        ({"cost": [1.0, -1.0, 1.0]}, WINDOW, {"cost": "cost"}, InvalidValueError, r"cost\[1\]"),
        ({"cost": [1.0, None, 1.0]}, WINDOW, {"cost": "cost"}, InvalidValueError, r"\[1\] is m"),
        ({"cost": list("xyz")}, WINDOW, {"cost": "cost"}, InvalidValueError, "cost must be num"),
        ({"cost": [0.1, 0.2, float("inf")]}, WINDOW, {"score": "cost"}, InvalidValueError, "score"),
        ({"window": [1, 2, 3]}, WINDOW, {}, InvalidValueError, "a column 'window'.*prefix="),
        ({}, WINDOW, {"group": "race"}, InvalidValueError, "no column 'race'.*group="),
        ({}, WINDOW, {"order_by": "when"}, InvalidValueError, "no column 'when'.*order_by="),
        ({}, WINDOW, {"horizon": 5}, InvalidValueError, "horizon and inputs are for a property"),
        ({}, WINDOW, {"score": "cost", "proposed": "p"}, InvalidValueError, "leave one of them"),
        ({}, POLICIES["labelled"], {}, InvalidValueError, "no column 'outcome'"),
        ({}, fs.Run(WINDOW), {"unseen": "follow"}, InvalidValueError, "a rule of its own"),
        ({}, DP, {}, InvalidValueError, "horizon="),
        ({"group": ["a", "a", "a"]}, DP, {"horizon": 5}, InvalidValueError, "two or more"),
        ({"group": ["a", "b", None]}, DP, {"horizon": 5}, InvalidValueError, "that have names"),
        ({}, 3, {}, InvalidValueError, "policy must be"),
        ({}, WINDOW, {"threshold": 0.7}, InvalidValueError, "threshold=0.7 is for a score.*score="),
        ({"cost": [1.0, -1.0, 1.0]}, WINDOW, {}, InvalidValueError, r"cost\[1\] is -1"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_faults_are_named_and_nothing_is_decided(
    make: Any, changed: dict, policy: Any, options: dict, error: type, message: str
) -> None:
    stream = fs.Run(policy) if isinstance(policy, fs.Policy) and not options else policy
    with pytest.raises(error, match=message):
        fs.shield_frame(make({**FINE, **changed}), stream, **options)
    if isinstance(stream, fs.Run):
        assert (stream.completed, stream.position) == (0, 0)


@pytest.mark.parametrize("unseen", ["refuse", "follow", "map:1"])
def test_a_column_of_another_type_is_never_one_of_strangers(unseen: str) -> None:
    inputs = fs.InputModel.agnostic({"1": 0.5, "2": 0.5})
    policy = fs.synthesize(DP, inputs, horizon=4)
    for group in ([1, 2], [1.0, None]):
        frame = pd.DataFrame({"group": group, "proposed": [True, False]})
        with pytest.raises(UnknownGroupError, match=r"group\[0\]: .* the policy knows '1': conv"):
            fs.shield_frame(frame, policy, unseen=unseen)


def test_columns_of_one_name_are_refused_by_it() -> None:
    names = ["group", "proposed", "proposed"]
    table = pa.table([["a"], [True], [False]], names=names)
    (batch,) = table.to_batches()
    for frame in (
        pd.DataFrame([["a", True, False]], columns=names),
        table,
        batch,
        table.to_reader(),
    ):
        with pytest.raises(InvalidValueError, match="two columns 'proposed'"):
            fs.shield_frame(frame, WINDOW)


def test_what_is_no_frame_is_refused() -> None:
    for thing in (FINE, [1, 2], np.zeros((3, 2))):
        with pytest.raises(InvalidValueError, match="is no frame"):
            fs.shield_frame(thing, WINDOW)


def test_a_reader_is_not_sorted_and_makes_no_policy() -> None:
    table = table_of([])
    with pytest.raises(InvalidValueError, match="sort them first"):
        fs.shield_frame(table.to_reader(), WINDOW, order_by="cost")
    with pytest.raises(InvalidValueError, match="synthesize"):
        fs.shield_frame(table.to_reader(), DP, horizon=5)
    with pytest.raises(InvalidValueError, match="synthesize"):
        fs.shield_batches(table.to_reader(), DP)  # type: ignore[arg-type]


# One by one ---------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=examples(20), deadline=None)
@given(rows=ROWS)
def test_generators_equal_the_loop(policy: str, rows: list[tuple]) -> None:
    expected = one_by_one(fs.Run(POLICIES[policy]), rows)

    async def awaited() -> list[fs.Decision]:
        async def arriving() -> Any:
            for row in rows:
                await asyncio.sleep(0)
                yield row

        stream = fs.Run(POLICIES[policy])
        return [decision async for decision in stream.adecide_each(arriving())]

    as_mappings = [dict(zip(NAMES, row, strict=True)) for row in rows]
    for decisions in (
        list(fs.Run(POLICIES[policy]).decide_each(rows)),
        list(fs.Run(POLICIES[policy]).decide_each(as_mappings)),
        asyncio.run(awaited()),
    ):
        told = [(d.accepted, d.overruled, d.paid, d.window, d.position) for d in decisions]
        assert told == expected


def test_a_generator_reads_nothing_ahead() -> None:
    asked = iter([("a", True), ("b", False), ("a", True)])
    decisions = fs.Run(WINDOW).decide_each(asked)
    next(decisions)
    assert list(asked) == [("b", False), ("a", True)]


def test_an_outcome_may_come_after_its_decision() -> None:
    stream = fs.Run(POLICIES["labelled"])
    asked = [{"group": g, "proposed": True} for g in "abab"]
    for decision in stream.decide_each(asked):
        stream.observe(decision, outcome=True)
    assert {g: c.seen for g, c in stream.counts.items()} == {"a": 2, "b": 2}
    decisions = stream.decide_each(asked)
    next(decisions)
    with pytest.raises(fs.OutcomePendingError):
        next(decisions)


@pytest.mark.parametrize("request_", [{"group": "a"}, {"proposed": 1}, ("a",), "ab", 7])
def test_what_is_no_request_is_refused(request_: Any) -> None:
    stream = fs.Run(WINDOW)
    with pytest.raises(InvalidValueError, match=r"request|line 1: no '"):
        next(stream.decide_each([request_]))
    assert stream.position == 0


# Many tasks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["window", "labelled", "periodic"])
def test_a_thousand_tasks_share_a_stream(policy: str) -> None:
    stream, order = fs.Run(POLICIES[policy]), []
    rng = np.random.default_rng(1)
    people = [("ab"[i], i == 0, 1.0, bool(z)) for i, z in rng.integers(0, 2, (1000, 2)).tolist()]

    async def serve(lock: asyncio.Lock, person: tuple) -> None:
        group, proposed, cost, outcome = person
        await asyncio.sleep(float(rng.random()) / 1000)
        async with lock:
            if not stream.planned:
                await asyncio.to_thread(stream.plan)
            decision = stream.decide(group, proposed=proposed, cost=cost)
            order.append((person, decision))
            if stream.policy.labelled:
                await asyncio.sleep(0)
                stream.observe(decision, outcome=outcome)

    async def all_of_them() -> None:
        lock = asyncio.Lock()
        await asyncio.gather(*(serve(lock, person) for person in people))

    asyncio.run(all_of_them())
    assert len(order) == 1000
    arrived = [person for person, _ in order]
    told = [(d.accepted, d.overruled, d.paid, d.window, d.position) for _, d in order]
    assert told == one_by_one(fs.Run(POLICIES[policy]), arrived)
    decided = fs.shield_frame(table_of(arrived), POLICIES[policy])
    assert rows_of(decided) == told
    assert fs.audit_frame(decided, POLICIES[policy]).holds


def test_without_narwhals_the_extra_is_named() -> None:
    code = """
import sys, fairshield as fs
sys.modules["narwhals"] = None
try:
    fs.shield_frame
except ImportError as error:
    assert isinstance(error, fs.FairshieldError)
    assert str(error) == "reading frames needs narwhals: pip install 'fairshield[frames]'", error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_deciding_a_frame_loads_no_other_kind_of_frame() -> None:
    code = """
import sys, polars as pl, fairshield as fs
policy = fs.synthesize(
    fs.DemographicParity("0.25"), fs.InputModel.agnostic({"a": 0.5, "b": 0.5}), horizon=4
)
fs.shield_frame(pl.DataFrame({"group": ["a", "b"], "proposed": [True, False]}), policy)
assert not {"pandas", "pyarrow"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_frame_is_audited_by_quarter(kind: str) -> None:
    module = pytest.importorskip(kind)
    days = [date(2025, 7, 2), date(2025, 4, 1), date(2025, 6, 30), date(2025, 9, 30)]
    rows = {"group": list("abab"), "accepted": [1, 0, 1, 0]}
    for when in (
        days,
        [day.isoformat() for day in days],
        [datetime.combine(day, time(8)) for day in days],
    ):
        frame = module.DataFrame(rows | {"on": when})
        report = fs.audit_frame(frame, fs.DemographicParity("0.1"), by="quarter", date="on")
        assert [window.name for window in report.windows] == ["2025 Q2", "2025 Q3"]
        assert report.windows[0].first_date == "2025-04-01"
    with pytest.raises(fs.InvalidValueError, match=r"no column 'date'.*date="):
        fs.audit_frame(frame, fs.DemographicParity("0.1"), by="quarter")


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_missing_date_is_refused_where_dates_part_the_rows(kind: str) -> None:
    module = pytest.importorskip(kind)
    noon = time(12)
    days = [date(2025, 7, 2), None, date(2025, 6, 30), date(2025, 9, 30)]
    days = [day and datetime.combine(day, noon) for day in days]
    frame = module.DataFrame({"group": list("abab"), "accepted": [1, 0, 1, 0], "date": days})
    with pytest.raises(fs.InvalidValueError, match="line 2: 'date' is empty"):
        fs.audit_frame(frame, fs.DemographicParity("0.1"), by="quarter")
    report = fs.audit_frame(frame, fs.DemographicParity("0.1"))
    assert len(report.windows) == 1


# Names of mixed types -----------------------------------------------------------------------


@pytest.mark.parametrize("known", [(1, "1"), (True, "True"), ("a", "a\0"), (7, "7", "07")])
def test_names_that_read_alike_are_told_apart_in_every_kind_of_column(known: tuple) -> None:
    table = {(g, r, 1.0): 0.5 / len(known) for g in known for r in (False, True)}
    inputs = fs.InputModel.from_table(table)
    policy = fs.synthesize(fs.DemographicParity("0.5"), inputs, horizon=3 * len(known))
    groups, expected = list(known) * 3, fs.Shield(policy)
    for group in groups:
        expected.decide(group, proposed=True)
    columns = [pd.Series(groups, dtype=object), pd.Series(pd.Categorical(groups, list(known)))]
    frames = [pd.DataFrame({"group": column}) for column in columns]
    if all(isinstance(g, str) for g in known):
        frames += [pl.DataFrame({"group": pl.Series(groups, dtype=pl.Enum(known))})]
        frames += [pl.DataFrame({"group": groups})]
        frames += [pa.table({"group": pa.array(groups).dictionary_encode()})]
        frames += [pa.table({"group": groups}), pd.DataFrame({"group": groups}, dtype="string")]
    for frame in frames:
        opened = nw.from_native(frame, eager_only=True)
        said = nw.new_series("proposed", [True] * len(groups), backend=opened.implementation)
        stream = fs.Run(policy)
        fs.shield_frame(opened.with_columns(said).to_native(), stream)
        assert stream.completed == 1
        report = fs.audit_frame(
            opened.with_columns(said.alias("accepted")).to_native(), policy.prop
        )
        assert report.windows[-1].counts == expected.counts
