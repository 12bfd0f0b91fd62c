"""Mistakes in a spec: one sentence, exit code 2, nothing written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.conftest import SPEC

SHARES = ("--groups", "a=0.25,b=0.75")


BAD_OPTIONS = {
    "bound below 0": (["--bound", "-0.1"], "between 0 and 1, got '-0.1'"),
    "bound above 1": (["--bound", "1.5"], "between 0 and 1, got '1.5'"),
    "bound of letters": (["--bound", "abc"], "a number such as '0.1', '1/10' or 0.1, got 'abc'"),
    "bound NaN": (["--bound", "NaN"], "got 'NaN'"),
    "horizon 0": (["--horizon", "0"], "at least 1, got 0"),
    "horizon -3": (["--horizon", "-3"], "at least 1, got -3"),
    "horizon 1e16": (["--horizon", "10000000000000000"], "shorten the window"),
    "exact horizon 1e9": (
        ["--horizon", "1000000000", "--method", "exact"],
        "shorten the horizon",
    ),
    "endgame of a table": (["--endgame", "5", "--method", "exact"], "leave one of them out"),
    "horizon in letters": (["--horizon", "1e9"], "not a valid integer"),
    "shares sum to 0.9": (["--groups", "a=0.4,b=0.5"], "sum to 0.9, they must sum to 1"),
    "one group": (["--groups", "a=1"], "need at least two"),
    "share of nothing": (["--groups", "a=,b=1"], "expected a number as in 0.5, got ''"),
    "share of letters": (["--groups", "a=x,b=1"], "expected a number as in 0.5, got 'x'"),
    "share of nobody": (["--groups", "0.5,0.5"], "name a group, as in a=...,b=..."),
    "bound of a tiny exponent": (["--bound", "1e-30000000"], "got '1e-30000000'"),
    "share NaN": (["--groups", "a=nan,b=1"], "must be a number"),
    "negative share": (["--groups", "a=-1,b=2"], "got -1"),
    "group twice": (["--groups", "a=0.5,a=0.5"], "name each group once"),
    "cost -1": (["--groups", "a=0.5,b=0.5", "--cost", "-1"], "at least 0, got -1"),
    "cost infinite": (["--groups", "a=0.5,b=0.5", "--cost", "inf"], "finite"),
    "start of a stranger": (["--start", "z=1:1"], "unknown group 'z'"),
    "start with more accepted": (["--start", "a=1:2,b=0:0"], "need 0 <= accepted <= seen"),
    "start without colon": (["--start", "a=12,b=3"], "expected SEEN:ACCEPTED as in 10:8, got '12'"),
    "start of one group": (["--start", "a=1:1"], "start says nothing about group 'b'"),
    "checkpoint late": (["--checkpoint", "11"], "from 1 to the horizon 10, got 11"),
    "spread below 1": (["--spread", "0.5"], "at least 1"),
    "argument of another property": (["--lower", "0.1"], "takes no --lower"),
    "missing argument": (["--property", "bounded-rates"], "bounded-rates needs lower and upper"),
    "unknown property": (["--property", "niceness"], "'demographic-parity'"),
    "no such records": (["--inputs", "nowhere.csv"], "nowhere.csv: No such file"),
    "no such folder": (["-o", "nowhere/x.shield"], "create it first"),
    "a folder": (["-o", "."], "is a directory"),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_a_mistake_is_one_sentence_and_writes_nothing(
    command: Any, folder: Path, name: str
) -> None:
    options, sentence = BAD_OPTIONS[name]
    result = command("synthesize", "loans.toml", *options)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stdout == ""
    assert isinstance(result.exception, SystemExit)
    assert [path.name for path in folder.iterdir()] == ["loans.toml"]


BAD_FILES = {
    "unknown key": ("propertie = 1", "unknown key 'propertie': known are property, bound,"),
    "not TOML": ("property = ", "not TOML"),
    "no property": ("bound = 1", "no property: say what must hold"),
    "property of numbers": ("property = [1]", "no property: say what must hold"),
    "no horizon": ('property = "share-parity"\nbound = 1\ngroups = {a = 1, b = 0}', "no horizon"),
    "no inputs": ('property = "share-parity"\nbound = 1\nhorizon = 1', "so far there is neither"),
    "horizon in quotes": (SPEC.replace("10", '"10"'), "whole number of at least 1, got '10'"),
    "both inputs": ('inputs = "x.csv"\n' + SPEC, "not both"),
    "bound true": (SPEC.replace('"0.2"', "true"), "got True"),
    "groups a list": (SPEC.split("[groups]")[0] + "groups = [1, 2]", "one value per group"),
    "share in quotes": (SPEC.replace("0.25", '"much"'), "groups.a must be a number, got 'much'"),
    "checkpoint alone": ("checkpoints = 5\n" + SPEC, "checkpoints must be a list, got 5"),
    "start alone": ("start = {a = 3, b = 4}\n" + SPEC, "must be a pair (seen, accepted), got 3"),
    "two_sided in words": (
        SPEC.replace("demographic-parity", "disparate-impact").replace(
            "horizon", 'two_sided = "no"\nhorizon'
        ),
        "two_sided must be true or false",
    ),
    "threshold without scores": ("threshold = 0.5\n" + SPEC, "threshold goes with inputs"),
    "inputs a number": (SPEC.split("[groups]")[0] + "inputs = 5", "inputs must name a file"),
    "names a text": (
        SPEC.split("[groups]")[0] + 'inputs = "x.csv"\nnames = "ab"',
        "names must be a list, got 'ab'",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_mistake_in_a_spec_is_one_sentence(command: Any, folder: Path, name: str) -> None:
    text, sentence = BAD_FILES[name]
    (folder / "bad.toml").write_text(text)
    result = command("synthesize", "bad.toml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert not (folder / "bad.shield").exists()


BAD_RECORDS = {
    "empty": (b"", "the CSV is empty"),
    "only a header": (b"group,proposed\n", "no records to estimate from"),
    "one group": (b"group,proposed\na,1\n", "need at least two"),
    "cost -1": (b"group,proposed,cost\na,1,-1\nb,1,1\n", "line 2: cost"),
    "cost NaN": (b"group,proposed,cost\na,1,nan\nb,1,1\n", "line 2: cost"),
    "not a flag": (b"group,proposed\na,1\nb,perhaps\n", "line 3: proposed"),
    "short row": (b"group,proposed\na,1\nb\n", "line 3: 1 fields where the header has 2"),
    "score of letters": (b"group,score\na,high\nb,0.5\n", "line 2: score"),
    "score NaN": (b"group,score\na,0.5\nb,nan\n", "line 3: score: expected a number, got 'nan'"),
    "no columns": (b"x,y\n1,2\n", "line 2: no 'group'"),
    "not UTF-8": (b"group,proposed\na,1\n\xff,0\n", "line 3: not UTF-8"),
}


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_a_mistake_in_records_names_file_and_line(command: Any, folder: Path, name: str) -> None:
    content, sentence = BAD_RECORDS[name]
    (folder / "bad.csv").write_bytes(content)
    result = command("synthesize", "loans.toml", "--inputs", "bad.csv")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: bad.csv: " in result.stderr
    assert sentence in result.stderr


def test_an_infeasible_spec_exits_with_1_and_says_what_to_relax(command: Any, folder: Path) -> None:
    rates = ["--property", "bounded-rates", "--lower", "0.4", "--upper", "0.6"]
    window = ["--min-support", "0", "--horizon", "5", *SHARES]
    result = command("synthesize", *rates, *window, "-o", "x.shield")
    assert result.exit_code == 1
    assert "Loosen the bound, set --min-support" in result.stderr
    assert not (folder / "x.shield").exists()


def test_a_failed_synthesis_leaves_the_old_policy_alone(command: Any, folder: Path) -> None:
    command("synthesize", "loans.toml")
    before = Path("loans.shield").read_bytes()
    assert command("synthesize", "loans.toml", "--bound", "abc").exit_code == 2
    assert Path("loans.shield").read_bytes() == before
