"""Recorded requests: CSV and JSON lines in, checked values out, faults with their line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairshield as fs
from fairshield.records import as_cost, as_flag, read_records
from fairshield.records.lines import open_lines


@pytest.mark.parametrize(
    ("word", "flag"),
    [
        (True, True), (1, True), (1.0, True), ("1", True), (" True ", True), ("YES", True),
        ("accept", True), ("accepted", True), (False, False), (0, False), (0.0, False),
        ("0", False), ("false", False), ("No", False), ("reject", False), ("REJECTED", False),
    ],
)  # fmt: skip
def test_yes_and_no_as_people_write_them(word: Any, flag: bool) -> None:
    assert as_flag(word) is flag


@pytest.mark.parametrize("word", [2, -1, 0.5, "", "maybe", None, float("nan"), [], "truee", "10"])
def test_anything_else_is_neither_yes_nor_no(word: Any) -> None:
    with pytest.raises(fs.InvalidValueError) as caught:
        as_flag(word)
    assert repr(word) in str(caught.value)


@pytest.mark.parametrize(("text", "cost"), [("0", 0.0), ("1.5", 1.5), (2, 2.0), (" 3e-2 ", 0.03)])
def test_costs_as_people_write_them(text: Any, cost: float) -> None:
    assert as_cost(text) == cost


@pytest.mark.parametrize(
    "text", ["", "x", None, "-1", "nan", "inf", -0.1, float("nan"), [], "1_0", "0,5", "٣"]
)
def test_anything_else_is_no_cost(text: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match="finite number of at least 0"):
        as_cost(text)


def test_jsonl_records_know_their_line() -> None:
    lines = ['{"group": "a", "proposed": 1, "cost": 0.5}\n', "\n", '{"group": 3, "proposed": "no"}']
    first, second = read_records(lines, "jsonl")
    assert (first.line, first.group(), first.flag("proposed"), first.cost()) == (1, "a", True, 0.5)
    assert (second.line, second.group(), second.flag("proposed")) == (3, 3, False)
    assert second.cost() == 1.0
    assert second.cost(default=2.0) == 2.0
    assert second.missing("outcome")


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ('{"group": "a"', ["line 2", "not a JSON object"]),
        ("[1, 2]", ["line 2", "expected a JSON object"]),
        ("7", ["line 2", "expected a JSON object"]),
        ("group=a", ["line 2", "not a JSON object"]),
        ("[" * 100_000, ["line 2", "not a JSON object"]),
    ],
)
def test_malformed_json_names_its_line(line: str, parts: list[str]) -> None:
    records = read_records(['{"group": "a"}', line], "jsonl")
    assert next(records).line == 1
    with pytest.raises(fs.InvalidValueError) as caught:
        next(records)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "ask", "part"),
    [
        ({"proposed": 1}, lambda r: r.group(), "line 1: no 'group', the fields are 'proposed'"),
        ({"proposed": ""}, lambda r: r.flag("proposed"), "line 1: 'proposed' is empty"),
        ({"group": 1.5}, lambda r: r.group(), "line 1: group: a group name must be"),
        ({"group": ["a"]}, lambda r: r.group(), "line 1: group: a group name must be"),
        ({"group": "a"}, lambda r: r.flag("proposed"), "line 1: no 'proposed'"),
        ({"proposed": "hm"}, lambda r: r.flag("proposed"), "line 1: proposed: expected 1/0"),
        ({"cost": -1}, lambda r: r.cost(), "line 1: cost: a cost must be"),
        ({"cost": "x"}, lambda r: r.cost(), "line 1: cost: a cost must be"),
    ],
)
def test_bad_fields_name_their_line(fields: dict[str, Any], ask: Any, part: str) -> None:
    (record,) = read_records([json.dumps(fields)], "jsonl")
    with pytest.raises(fs.InvalidValueError, match=part):
        ask(record)


def test_csv_records_know_their_line() -> None:
    lines = ["group, proposed\n", '"a,\n', 'b",1\n', "\n", "c,0\n"]
    first, second = read_records(lines, "csv")
    assert first.group() == "a,\nb"
    assert first.line == 3
    assert (second.line, second.group(), second.flag("proposed")) == (5, "c", False)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_file_reads_the_same_with_and_without_a_byte_order_mark(
    tmp_path: Path, mark: bytes, end: bytes
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(mark + end.join([b"group,proposed", "ä,1".encode(), b""]))
    with open_lines(path) as lines:
        (record,) = read_records(lines, "csv")
    assert record.fields == {"group": "ä", "proposed": "1"}


def test_bytes_that_are_not_utf_8_name_their_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"group": "a"}\n{"group": "\xe4"}\n')
    with open_lines(path) as lines:
        records = read_records(lines, "jsonl")
        assert next(records).group() == "a"
        with pytest.raises(fs.InvalidValueError, match="line 2: not UTF-8 text"):
            next(records)


def test_records_come_one_at_a_time() -> None:
    def endless() -> Any:
        yield "group,proposed\n"
        yield "a,1\n"
        raise AssertionError("read further than asked")

    assert next(read_records(endless(), "csv")).group() == "a"


texts = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1).filter(str.strip)


@given(st.lists(st.tuples(texts, st.booleans(), st.floats(0, 1e6)), max_size=5))
def test_json_lines_carry_any_name(rows: list[tuple[str, bool, float]]) -> None:
    lines = [json.dumps({"group": g, "proposed": r, "cost": c}) for g, r, c in rows]
    records = list(read_records(lines, "jsonl"))
    assert [(r.group(), r.flag("proposed"), r.cost()) for r in records] == rows


def test_a_name_that_two_columns_bear_is_refused() -> None:
    with pytest.raises(fs.InvalidValueError, match="2 columns 'group'"):
        list(read_records(["group,accepted, group\n", "a,1,b\n"], "csv"))
    assert len(list(read_records(["group,,\n", "a,,\n"], "csv"))) == 1


@pytest.mark.parametrize("sign", [";", "\t", "|", ","])
def test_the_separator_is_the_one_in_the_header(sign: str) -> None:
    (record,) = read_records([f"group{sign}accepted\n", f"a{sign}1\n"], "csv")
    assert record.fields == {"group": "a", "accepted": "1"}
