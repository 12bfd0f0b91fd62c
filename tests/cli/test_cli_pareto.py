"""``fairshield pareto``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

WORDS = ("pareto", "--groups", "a=0.5,b=0.5", "--bounds", "0.1:0.3:0.1", "--horizon", "6")


def test_table_csv_and_json_say_the_same(command: Any) -> None:
    data = json.loads(command(*WORDS, "--horizon", "8", "--json").stdout)
    rows = list(csv.DictReader(io.StringIO(command(*WORDS, "--horizon", "8", "--csv").stdout)))
    assert [(row["bound"], row["horizon"]) for row in data["rows"]] == [
        (row["bound"], int(row["horizon"])) for row in rows
    ]
    assert [row["bound"] for row in rows] == ["1/10", "1/5", "3/10"] * 2
    table = command(*WORDS, "--horizon", "8").stdout.split("\n\n")[0].splitlines()
    assert len(table) == 1 + len(rows)
    assert float(table[1].split()[2]) == pytest.approx(data["rows"][0]["expected_cost"], rel=1e-4)


def test_a_picture_is_written(command: Any, folder: Path) -> None:
    result = command(*WORDS, "-o", "p.png")
    assert "Picture: p.png" in result.stdout
    assert (folder / "p.png").exists()


def test_bounds_are_estimated_from_records(command: Any, folder: Path) -> None:
    (folder / "r.csv").write_text("group,proposed,cost\na,1,1\nb,0,1\na,0,1\nb,1,1\n")
    words = ("--inputs", "r.csv", "--bounds", "0.2,1/3", "--horizon", "5", "--json")
    assert len(json.loads(command("pareto", *words).stdout)["rows"]) == 2


@pytest.mark.parametrize("text", ["0.3:0.1:0.1", "0:1:0", "0:1", "x", "0:1:0.0001", "2"])
def test_bounds_that_make_no_sense_are_refused(command: Any, text: str) -> None:
    result = command("pareto", "--groups", "a=0.5,b=0.5", "--bounds", text, "--horizon", "4")
    assert (result.exit_code, result.stdout) == (2, "")


def test_one_form_of_output_is_chosen(command: Any) -> None:
    result = command("pareto", "--horizon", "4", "--groups", "a=0.5,b=0.5", "--csv", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--csv and --json" in result.stderr


def test_enough_people_for_static_bw_are_shown_for_differences_of_rates(command: Any) -> None:
    words = (*WORDS[:3], "--bounds", "1/4,1/2", "--horizon", "6")
    quarter, half = json.loads(command(*words, "--json").stdout)["rows"]
    # Six people never have four of both groups; two of each they have unless 0, 1, 5 or 6 are of a.
    assert (quarter["balanced"], half["balanced"]) == (0.0, pytest.approx(1 - 14 / 64))
    text = command(*words).stdout
    assert "enough for Static-BW" in text
    assert "78.12%" in text
    ratio = ("--property", "disparate-impact")
    assert "Static-BW" not in command(*words, *ratio).stdout
    assert json.loads(command(*words, *ratio, "--json").stdout)["rows"][0]["balanced"] is None
