"""fairshield compare: all periodic shields on the same runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairshield as fs
from fairshield.periodic.compare import compare, make_policies
from fairshield.periodic.cumulative import compared_kinds
from fairshield.periodic.runs import Streams

KINDS = tuple(name for name, one in compared_kinds().items() if not one.variant)
SPEC = ["--property", "demographic-parity", "--bound", "0.25", "--groups", "a=0.4,b=0.6"]
SMALL = [*SPEC, "--period", "4", "--periods", "3"]
OPPORTUNITY = ["--property", "equal-opportunity", *SPEC[2:], "--period", "4", "--periods", "2"]
PNG = b"\x89PNG\r\n\x1a\n"


def test_the_table_shows_the_librarys_numbers(command: Any) -> None:
    result = command("compare", *SMALL, "--runs", "9", "--seed", "4", "--json")
    facts = json.loads(result.stdout)
    prop, inputs = fs.DemographicParity("0.25"), fs.InputModel.agnostic({"a": 0.4, "b": 0.6})
    policies = make_policies(prop, inputs, period=4, periods=3)
    streams = Streams.drawn(prop, inputs, period=4, periods=3, runs=9, rng=np.random.default_rng(4))
    expected = json.loads(json.dumps(compare(policies, streams).to_dict()))
    assert facts == expected | {"seed": 4, "log": None}
    text = command("compare", *SMALL, "--runs", "9", "--seed", "4").stdout
    assert "after every 4 decisions, 3 periods, 9 runs, seed 4" in text
    lines = text.splitlines()
    for row in facts["shields"]:
        shown = next(line for line in lines if line.startswith(row["name"]))
        assert f"{row['fair']['value']:.1%}" in shown
        assert f"{row['cost']['value']:.2f} ± {row['cost']['error']:.2f}" in shown
        dearest = row["dearest_period"]
        assert (dearest is None) == (row["name"] == "no shield")
        assert dearest is None or f"{dearest:.4f}" in shown
    assert [row["name"] for row in facts["shields"]] == ["no shield", *KINDS]
    expected = {row["name"]: row["condition_expected"] for row in facts["shields"]}
    assert {name for name, chance in expected.items() if chance is not None} == {
        "static-fair", "static-bounded",
    }  # fmt: skip
    # Two and two of each group, in three periods of four.
    assert expected["static-fair"] == pytest.approx((6 * 0.4**2 * 0.6**2) ** 3)
    assert f"static-fair {expected['static-fair']:.3g}" in text


def test_the_same_seed_gives_the_same_numbers(command: Any) -> None:
    options = [*SMALL, "--shields", "dynamic,perpetual", "--runs", "20"]
    here, there = (command("compare", *options, "--seed", "1").stdout for _ in "ab")
    assert here == there
    assert here != command("compare", *options, "--seed", "2").stdout


def test_shields_without_condition_are_fair_in_every_run(command: Any) -> None:
    result = command("compare", *SMALL, "--shields", "exact,perpetual", "--runs", "40", "--json")
    for row in json.loads(result.stdout)["shields"][1:]:
        assert (row["fair"]["value"], row["condition"]) == (1.0, None)
        assert row["promise"] == "none needed"


def test_recorded_requests_are_cut_into_runs(command: Any, jsonl: str, tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(jsonl)
    result = command("compare", *SMALL, "--log", path, "--json")
    facts = json.loads(result.stdout)
    assert (facts["runs"], facts["log"], facts["seed"]) == (3, str(path), None)
    requests = [json.loads(line) for line in jsonl.splitlines()]
    proposed = {
        group: [r["proposed"] for r in requests[:12] if r["group"] == group] for group in "ab"
    }
    one = command("compare", *SMALL, "--log", "-", "--shields", "dynamic", "--json",
                  stdin="".join(jsonl.splitlines(keepends=True)[:12]))  # fmt: skip
    first = json.loads(one.stdout)
    assert first["runs"] == 1
    rates = [sum(flags) / len(flags) for flags in proposed.values()]
    assert first["shields"][0]["largest_bias"] >= abs(rates[0] - rates[1]) - 1e-12
    assert first["shields"][0]["cost"] == {"value": 0.0, "error": None}
    text = command("compare", *SMALL, "--log", path).stdout
    assert f"3 periods, 3 runs, recorded in {path}" in text


def test_a_picture_is_drawn_of_whatever_there_is(command: Any, folder: Path) -> None:
    for name, options in (
        ("compare.png", SMALL),
        ("compare.PNG", [*SMALL, "--shields", "dynamic,inactive"]),
        ("one.png", [*SPEC, "--period", "4", "--periods", "1", "--shields", "static-fair"]),
        ("none.png", [*SPEC, "--period", "90", "--periods", "90", "--shields", "exact"]),
    ):
        result = command("compare", *options, "--runs", "2", "--plot", name)
        assert result.exit_code == 0, result.output
        # Windows of four decisions never bind the bounds of a static shield.
        assert all("can never bind" in line for line in result.stderr.splitlines())
        picture = (folder / name).read_bytes()
        assert picture.startswith(PNG)
        assert len(picture) > 5000


def test_a_shield_that_cannot_take_part_is_named_with_the_reason(command: Any) -> None:
    long = [*SPEC, "--period", "90", "--periods", "90", "--runs", "1"]
    text = command(
        "compare", *long, "--property", "share-parity", "--shields", "exact,dynamic"
    ).stdout
    assert "exact was left out: horizon 8100 needs about" in text
    unfair = [*SMALL, "--start", "a=10:0,b=10:10", "--runs", "3", "--json"]
    found = json.loads(command("compare", *unfair).stdout)
    assert set(found["left_out"]) == {"exact", "optimal", "perpetual"}
    assert "cannot be guaranteed" in found["left_out"]["exact"]
    assert found["shields"][0]["largest_bias"] > 0.25


def test_many_periods_are_shown_in_ten_parts(command: Any) -> None:
    options = [*SPEC, "--period", "4", "--periods", "30", "--shields", "static-fair"]
    text = command("compare", *options, "--runs", "3").stdout
    header = text.split("Cost of a period\n")[1].splitlines()[0]
    assert header.split("  ")[-1].strip() == "28 to 30"
    assert header.count(" to ") == 10


def test_a_spec_may_be_for_a_window_or_for_periods(command: Any, folder: Path) -> None:
    few = ["--periods", "2", "--runs", "2", "--shields", "dynamic", "--json"]
    assert command("compare", "loans.toml", "--period", "4", *few).exit_code == 0
    (folder / "periods.toml").write_text(
        (folder / "loans.toml").read_text().replace("horizon = 10", 'periodic = "exact"\nperiod=4')
    )
    assert json.loads(command("compare", "periods.toml", *few).stdout)["period"] == 4
    result = command("compare", "loans.toml", *few)
    assert result.exit_code == 2
    assert "horizon goes with one window, not with periods" in result.stderr


def test_properties_without_theorem_are_compared_where_possible(command: Any) -> None:
    options = ["--property", "disparate-impact", "--bound", "0.8", *SPEC[4:], "--period", "4"]
    few = ["--periods", "2", "--runs", "3", "--json"]
    found = json.loads(command("compare", *options, *few).stdout)
    assert [row["promise"] for row in found["shields"]] == [
        "no shield",
        "no theorem",
        "none needed",
        "none needed",
    ]
    result = command("compare", *options, *few, "--shields", "perpetual")
    assert result.exit_code == 2
    assert "Use a Dynamic or an exact periodic shield" in result.stderr
    equal = ["--property", "demographic-parity", "--bound", "0", *SPEC[4:], "--period", "4"]
    found = json.loads(command("compare", *equal, *few).stdout)
    assert "static-bounded" not in [row["name"] for row in found["shields"]]


MISTAKES = {
    "no period": (SPEC, "no period: say after every how many decisions"),
    "period 0": ([*SPEC, "--period", "0"], "period must be a whole number of at least 1, got 0"),
    "periods 0": ([*SPEC, "--period", "4", "--periods", "0"], "not in the range"),
    "an unknown shield": ([*SMALL, "--shields", "eternal"], "unknown kind 'eternal': choose from"),
    "bounds": ([*SMALL, "--bounds", "0.1,0.9"], "must rise by more than 0 and at most 1/4"),
    "one bound": ([*SMALL, "--bounds", "0.1"], "bounds must be two rates"),
    "lookahead": ([*SMALL, "--lookahead", "0"], "at least 1, got 0"),
    "start": ([*SMALL, "--start", "a=1:1"], "start says nothing about group 'b'"),
    "no such log": ([*SMALL, "--log", "nowhere.csv"], "nowhere.csv: No such file"),
    "a short log": (
        [*SMALL, "--log", "bare.csv"],
        "bare.csv: 2 recorded requests are too few for one run of 12 decisions: record more",
    ),
    "strangers": (
        [*SMALL, "--groups", "x=0.5,y=0.5", "--log", "bare.csv"],
        "bare.csv: line 2: unknown group 'a', expected 'x' or 'y'",
    ),
    "no outcomes in the log": (
        [*OPPORTUNITY, "--log", "bare.csv"],
        "bare.csv: line 2: no 'outcome', and equal opportunity ≤ 1/4 counts people by it",
    ),
    "no outcomes in the model": (
        [*OPPORTUNITY[:4], "--inputs", "bare.csv", "--period", "4"],
        "the input model has no outcome probabilities",
    ),
    "no such folder": ([*SMALL, "--plot", "nowhere/x.png"], "create it first"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence(command: Any, folder: Path, name: str) -> None:
    (folder / "bare.csv").write_text("group,proposed\na,1\nb,0\n")
    options, sentence = MISTAKES[name]
    result = command("compare", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert isinstance(result.exception, SystemExit)
