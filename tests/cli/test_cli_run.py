"""The stream filter: decides like the library, keeps what it was given, loses nothing."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fairshield as fs
from fairshield.records import as_flag

ADDED = ["window", "position", "accepted", "overruled", "reason"]


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.split("\n") if line]


def by_library(path: Path, requests: list[dict[str, Any]]) -> list[tuple[int, fs.Decision]]:
    """What shields of this policy decide, a new one for every window."""
    policy, answers = fs.Policy.load(path), []
    shields = [fs.Shield(policy) for _ in requests[:: policy.horizon]]
    for i, request in enumerate(requests):
        window = i // policy.horizon
        shield = shields[window]
        decision = shield.decide(
            request["group"], proposed=request["proposed"], cost=request["cost"]
        )
        if policy.labelled:
            shield.observe(decision, outcome=request["outcome"])
        answers.append((window, decision))
    return answers


@pytest.mark.parametrize("name", ["plain", "labelled"])
def test_decisions_are_those_of_the_library(
    command: Any, policies: Path, name: str, requests: list[dict[str, Any]], jsonl: str
) -> None:
    path = policies / f"{name}.shield"
    answers = lines_of(command("run", path, stdin=jsonl).stdout)
    expected = by_library(path, requests)
    assert any(decision.overruled for _, decision in expected)
    assert answers == [
        request
        | {
            "window": window,
            "position": decision.position,
            "accepted": decision.accepted,
            "overruled": decision.overruled,
            "reason": decision.reason,
        }
        for request, (window, decision) in zip(requests, expected, strict=True)
    ]


def test_a_new_window_begins_after_every_horizon_decisions(
    command: Any, plain: Path, jsonl: str
) -> None:
    answers = lines_of(command("run", plain, stdin=jsonl).stdout)
    assert [(a["window"], a["position"]) for a in answers] == [divmod(i, 6) for i in range(40)]


def test_csv_and_jsonl_give_the_same_decisions(
    command: Any, plain: Path, jsonl: str, csv_text: str
) -> None:
    as_json = lines_of(command("run", plain, stdin=jsonl).stdout)
    rows = list(
        csv.DictReader(io.StringIO(command("run", plain, "--format", "csv", stdin=csv_text).stdout))
    )
    assert list(rows[0]) == ["id", "group", "proposed", "cost", "outcome", *ADDED]
    assert [as_flag(row["accepted"]) for row in rows] == [a["accepted"] for a in as_json]
    assert [row["id"] for row in rows] == [a["id"] for a in as_json]


def test_the_name_of_a_file_tells_its_format(
    command: Any, plain: Path, tmp_path: Path, csv_text: str
) -> None:
    (tmp_path / "requests.csv").write_text(csv_text)
    result = command("run", plain, tmp_path / "requests.csv")
    assert result.stdout.startswith("id,group,proposed,cost,outcome,window")


def test_cost_is_1_where_none_is_given(command: Any, plain: Path) -> None:
    stream = '{"group": "a", "proposed": true}\n{"group": "b", "proposed": 0, "cost": null}\n'
    answers = lines_of(command("run", plain, stdin=stream).stdout)
    assert [a["accepted"] for a in answers] == [True, False]
    assert "cost" not in answers[0]


def test_group_names_are_compared_as_text(command: Any, policies: Path) -> None:
    stream = '{"group": "0", "proposed": 1}\n{"group": 1, "proposed": 0}\n'
    answers = lines_of(command("run", policies / "numbered.shield", stdin=stream).stdout)
    assert [a["group"] for a in answers] == ["0", 1]


def test_running_on_its_own_output_changes_nothing(command: Any, plain: Path, jsonl: str) -> None:
    once = command("run", plain, stdin=jsonl).stdout
    assert command("run", plain, stdin=once).stdout == once


@pytest.mark.parametrize("field", ["window", "position", "accepted", "overruled", "reason"])
def test_a_field_that_the_decision_would_overwrite_is_refused(
    command: Any, plain: Path, field: str
) -> None:
    stream = f'{{"group": "a", "proposed": 1}}\n{{"group": "a", "proposed": 1, "{field}": "7"}}\n'
    result = command("run", plain, stdin=stream)
    assert result.exit_code == 2
    assert len(lines_of(result.stdout)) == 1
    assert f"line 2: the request has a field '{field}'" in result.stderr
    assert "rename it" in result.stderr


def test_an_explanation_of_the_requests_own_is_overwritten_by_nobody(
    command: Any, plain: Path
) -> None:
    stream = '{"group": "a", "proposed": 1, "explanation": "mine"}\n'
    (answer,) = lines_of(command("run", plain, stdin=stream).stdout)
    assert answer["explanation"] == "mine"
    assert "field 'explanation'" in command("run", plain, "--explain", stdin=stream).stderr


def test_explanations_are_added_to_overruled_decisions_only(
    command: Any, plain: Path, jsonl: str
) -> None:
    for answer in lines_of(command("run", plain, "--explain", stdin=jsonl).stdout):
        explained = answer["explanation"] is not None
        assert explained == answer["overruled"]
        assert not explained or "although" in answer["explanation"]


def test_an_empty_stream_gives_an_empty_stream(command: Any, plain: Path) -> None:
    result = command("run", plain, stdin="")
    assert (result.exit_code, result.output) == (0, "")


# Mistakes -----------------------------------------------------------------------------------

GOOD = '{"group": "a", "proposed": true}\n'
BAD_LINES = {
    "not JSON": ("group a\n", "not a JSON object"),
    "not an object": ("[1, 2]\n", "expected a JSON object"),
    "nested without end": ("[" * 100_000 + "\n", "not a JSON object"),
    "a number of 5000 digits": ('{"cost": ' + "1" * 5000 + "}\n", "not a JSON object"),
    "no group": ('{"proposed": 1}\n', "no 'group'"),
    "no proposal": ('{"group": "a"}\n', "no 'proposed'"),
    "a stranger": (
        '{"group": "z", "proposed": 1}\n',
        "unknown group 'z': this policy knows 'a', 'b'",
    ),
    "a group in pieces": ('{"group": ["a"], "proposed": 1}\n', "must be a string or an integer"),
    "not a flag": ('{"group": "a", "proposed": 2}\n', "expected 1/0, true/false"),
    "cost -1": ('{"group": "a", "proposed": 1, "cost": -1}\n', "got -1"),
    "cost NaN": ('{"group": "a", "proposed": 1, "cost": NaN}\n', "got nan"),
    "cost infinite": ('{"group": "a", "proposed": 1, "cost": Infinity}\n', "got inf"),
    "cost in words": ('{"group": "a", "proposed": 1, "cost": "much"}\n', "got 'much'"),
    "ends in a line": ('{"group": "a", "prop', "the input ends in the middle of this line"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_named_and_nothing_before_it_is_lost(
    command: Any, plain: Path, name: str
) -> None:
    line, sentence = BAD_LINES[name]
    result = command("run", plain, stdin=GOOD * 3 + "\n" + line + GOOD * (line[-1] == "\n"))
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: line 5: ")
    assert sentence in result.stderr
    assert len(lines_of(result.stdout)) == 3


def test_bytes_that_are_not_text_are_named(command: Any, plain: Path) -> None:
    result = command("run", plain, stdin=GOOD.encode() + b'{"group": "\xff"}\n')
    assert result.exit_code == 2
    assert "line 2: not UTF-8" in result.stderr
    assert len(lines_of(result.stdout)) == 1


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("", "the CSV is empty"),
        ("group,proposed\na,1\nb\n", "line 3: 1 fields where the header has 2"),
        ("group,proposed\na,1\nb", "line 3: 1 fields where the header has 2: the input ends in"),
        ("group\na\n", "line 2: no 'proposed'"),
    ],
)
def test_bad_rows_are_named(command: Any, plain: Path, rows: str, sentence: str) -> None:
    result = command("run", plain, "--format", "csv", stdin=rows)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_a_last_row_without_end_is_decided_and_noted(command: Any, plain: Path) -> None:
    # Unlike JSON, "0.2" may be the beginning of "0.25".
    result = command("run", plain, "--format", "csv", stdin="group,proposed,cost\na,1,0.2")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2
    assert "the last line of the input has no end" in result.stderr


def test_a_last_object_without_line_end_is_complete(command: Any, plain: Path) -> None:
    result = command("run", plain, stdin=GOOD + GOOD.strip())
    assert (result.exit_code, result.stderr) == (0, "")
    assert len(lines_of(result.stdout)) == 2


def test_a_property_of_outcomes_needs_them(command: Any, labelled: Path) -> None:
    result = command("run", labelled, stdin=GOOD)
    assert result.exit_code == 2
    assert "line 1: no 'outcome', and equal opportunity ≤ 1/4 counts people by it" in result.stderr


@pytest.mark.parametrize("content", [b"", b"FSHIELD\n", b"\x89PNG\r\n\x1a\n" + b"\0" * 60])
def test_what_is_not_a_policy_is_refused(command: Any, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.shield").write_bytes(content)
    for name in ("run", "inspect", "verify", "simulate", "explain"):
        result = command(name, tmp_path / "x.shield", stdin="")
        assert (result.exit_code, result.stdout) == (2, "")
        assert str(tmp_path / "x.shield") in result.stderr


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_cut_and_no_flipped_bit_of_a_policy_goes_unnoticed(
    command: Any, plain: Path, tmp_path: Path, data: st.DataObject
) -> None:
    content = bytearray(plain.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[at:]
    else:
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    (tmp_path / "x.shield").write_bytes(content)
    result = command("run", tmp_path / "x.shield", stdin=GOOD)
    assert (result.exit_code, result.stdout) == (2, "")
    assert isinstance(result.exception, SystemExit)


# Fields of the user's own -------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = texts.filter(lambda name: name not in ADDED)
values = texts | st.integers() | st.booleans() | st.none() | st.lists(texts, max_size=2)


@settings(max_examples=examples(30))
@given(st.lists(st.dictionaries(names, values, max_size=3), min_size=1, max_size=4))
def test_every_field_of_a_request_comes_back(
    command: Any, plain: Path, extras: list[dict[str, Any]]
) -> None:
    asked = [extra | {"group": "a", "proposed": True, "cost": 1} for extra in extras]
    stream = "".join(json.dumps(request) + "\n" for request in asked)
    answers = lines_of(command("run", plain, stdin=stream).stdout)
    for request, answer in zip(asked, answers, strict=True):
        assert {key: answer[key] for key in request} == request


# What is told -------------------------------------------------------------------------------


def test_an_error_names_the_file_and_leaves_no_empty_output(
    command: Any, plain: Path, folder: Path
) -> None:
    (folder / "bad.csv").write_text("group,proposed,cost\na,1,x\n")
    done = command("run", plain, "bad.csv", "-o", "out.csv")
    assert done.exit_code == 2
    assert "Error: bad.csv: line 2: cost: a cost must be a finite number" in done.stderr
    assert not (folder / "out.csv").exists()


@pytest.mark.parametrize("before", [None, ""])
def test_an_output_is_kept_if_it_was_there_or_holds_something(
    command: Any, plain: Path, folder: Path, before: str | None
) -> None:
    out, good = folder / "out.csv", "" if before is not None else "a,1,1\n"
    if before is not None:
        out.write_text(before)
    (folder / "bad.csv").write_text(f"group,proposed,cost\n{good}a,1,x\n")
    assert command("run", plain, "bad.csv", "-o", out).exit_code == 2
    assert out.exists()
    assert bool(out.read_text()) is bool(good)


def test_costs_that_are_missing_are_told_once_where_the_policy_has_others(
    command: Any, folder: Path
) -> None:
    made = ["--property", "demographic-parity", "--bound", "0.2", "--horizon", "4"]
    command("synthesize", *made, "--groups", "a=0.5,b=0.5", "--cost", "3", "-o", "dear.shield")
    (folder / "bare.csv").write_text("group,proposed\na,1\nb,0\n")
    done = command("run", "dear.shield", "bare.csv")
    assert done.exit_code == 0
    assert done.stderr.count("Warning: no 'cost' in bare.csv: 1 is taken") == 1
    assert "plans with a cost of 3; say which column it is with --column cost=" in done.stderr
    (folder / "priced.csv").write_text("group,proposed,cost\na,1,3\nb,0,3\n")
    assert command("run", "dear.shield", "priced.csv").stderr == ""
