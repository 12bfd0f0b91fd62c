"""From a spec to a file: the words of a spec file, of options and of the library are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairshield as fs
from fairshield.artifact import digest_of

SPEC = """
property = "demographic-parity"
bound = "0.2"
horizon = 10

[groups]
a = 0.25
b = 0.75
"""
OPTIONS = ("--property", "demographic-parity", "--bound", "0.2", "--horizon", "10")
SHARES = ("--groups", "a=0.25,b=0.75")
RECORDED = "group,proposed,cost,outcome\na,1,0.5,1\nb,0,1,0\nb,yes,2,1\na,reject,0.5,0\n"
SCORED = "group,score\na,0.9\na,0.2\nb,0.55\nb,0.1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one, with the spec ``loans.toml``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loans.toml").write_text(SPEC)
    return tmp_path


def expected_digest(folder: Path, **changes: Any) -> str:
    """What the library makes of the spec above, with some arguments changed."""
    prop = changes.pop("prop", fs.DemographicParity("0.2"))
    inputs = changes.pop("inputs", fs.InputModel.agnostic({"a": 0.25, "b": 0.75}))
    return fs.synthesize(prop, inputs, **{"horizon": 10, **changes}).save(
        folder / "expected.shield"
    )


def test_file_options_and_library_make_the_same_policy(command: Any, folder: Path) -> None:
    assert command("synthesize", "loans.toml").exit_code == 0
    assert command("synthesize", *OPTIONS, *SHARES, "-o", "options.shield").exit_code == 0
    expected = expected_digest(folder)
    assert digest_of("loans.shield") == digest_of("options.shield") == expected


def test_one_line_tells_guarantee_cost_size_and_digest(command: Any, folder: Path) -> None:
    result = command("synthesize", "loans.toml")
    policy = fs.Policy.load("loans.shield")
    name, guarantee, cost, size, digest = result.stdout.strip().split("  ")
    assert (name, guarantee) == ("loans.shield", "demographic parity ≤ 1/5 over 10 decisions")
    assert cost == f"expected cost {policy.expected_cost:.4f}"
    assert size.endswith("kB")
    assert digest_of("loans.shield").startswith(digest.removeprefix("sha256:").rstrip("…"))


def test_json_has_the_same_facts(command: Any, folder: Path) -> None:
    facts = json.loads(command("synthesize", "loans.toml", "--json").stdout)
    policy = fs.Policy.load(facts["path"])
    assert facts["expected_cost"] == policy.expected_cost
    assert facts["sha256"] == digest_of(facts["path"])
    assert facts["bytes"] == Path(facts["path"]).stat().st_size


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        (["--bound", "1/3"], {"prop": fs.DemographicParity("1/3")}),
        (["--horizon", "7"], {"horizon": 7}),
        (["--start", "a=4:2,b=6:3"], {"start": fs.Counts({"a": (4, 2), "b": (6, 3)})}),
        (["--checkpoint", "5", "--checkpoint", "8"], {"checkpoints": (5, 8)}),
        (["--spread", "3"], {"spread": 3.0}),
        (["--min-support", "2"], {"prop": fs.DemographicParity("0.2", min_support=2)}),
        (["--undefined", "rate-0"], {"prop": fs.DemographicParity("0.2", undefined="rate-0")}),
        (["--property", "share-parity"], {"prop": fs.ShareParity("0.2")}),
        (["--property", "disparate-impact"], {"prop": fs.DisparateImpact("0.2")}),
        (
            ["--property", "disparate-impact", "--one-sided", "--bound", "1.5"],
            {"prop": fs.DisparateImpact("1.5", two_sided=False)},
        ),
        (
            ["--property", "bounded-rates", "--lower", "0.2", "--upper", "0.8"],
            {"prop": fs.BoundedRates("0.2", "0.8")},
        ),
        (
            ["--property", "equal-opportunity", "--outcomes", "a=0.3,b=0.6"],
            {
                "prop": fs.EqualOpportunity("0.2"),
                "inputs": fs.InputModel.agnostic(
                    {"a": 0.25, "b": 0.75}, outcomes={"a": 0.3, "b": 0.6}
                ),
            },
        ),
        (
            ["--groups", "x=0.5,y=0.5", "--cost", "2"],
            {"inputs": fs.InputModel.agnostic({"x": 0.5, "y": 0.5}, cost=2.0)},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_option_replaces_what_the_file_says(
    command: Any, folder: Path, options: list[str], changes: dict[str, Any]
) -> None:
    result = command("synthesize", "loans.toml", *options)
    assert result.exit_code == 0, result.output
    assert digest_of("loans.shield") == expected_digest(folder, **changes)


def test_everything_may_stand_in_the_file(command: Any, folder: Path) -> None:
    (folder / "all.toml").write_text(
        'property = "bounded-rates"\nlower = "1/4"\nupper = 0.75\nmin_support = 4\nhorizon = 10\n'
        'checkpoints = [6]\nspread = 2\nundefined = "bias-0"\ncost = 2\n'
        "start = {a = [4, 2], b = [4, 2]}\ngroups = {a = 0.5, b = 0.5}\n"
        "outcomes = {a = 0.5, b = 0.5}\n"
    )
    result = command("synthesize", "all.toml")
    assert result.exit_code == 0, result.output
    assert digest_of("all.shield") == expected_digest(
        folder,
        prop=fs.BoundedRates("0.25", "0.75", min_support=4),
        inputs=fs.InputModel.agnostic({"a": 0.5, "b": 0.5}, cost=2.0),
        checkpoints=(6,),
        spread=2.0,
        start=fs.Counts({"a": (4, 2), "b": (4, 2)}),
    )


def test_a_spec_may_come_from_standard_input(command: Any, folder: Path) -> None:
    assert command("synthesize", "-", "-o", "x.shield", stdin=SPEC).exit_code == 0
    assert digest_of("x.shield") == expected_digest(folder)


# Recorded inputs ----------------------------------------------------------------------------


def test_records_are_found_next_to_the_spec(command: Any, folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "recorded.csv").write_text(RECORDED)
    words = SPEC.split("[groups]")[0] + 'inputs = "recorded.csv"\nsmoothing = 2\n'
    (inner / "recorded.toml").write_text(words)
    assert command("synthesize", "inner/recorded.toml").exit_code == 0
    model = fs.InputModel.from_csv(inner / "recorded.csv", smoothing=2.0)
    assert digest_of("recorded.shield") == expected_digest(folder, inputs=model)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_records_replace_the_shares_of_the_spec(command: Any, folder: Path, encoding: str) -> None:
    (folder / "recorded.csv").write_text(RECORDED, encoding=encoding)
    result = command("synthesize", "loans.toml", "--inputs", "recorded.csv", "--names", "b,a")
    assert result.exit_code == 0, result.output
    (folder / "plain.csv").write_text(RECORDED)
    model = fs.InputModel.from_csv(folder / "plain.csv", names=("b", "a"))
    assert digest_of("loans.shield") == expected_digest(folder, inputs=model)


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--threshold", "0.3"], {"threshold": 0.3}),
        (["--cost", "constant"], {"cost": "constant"}),
        (["--bins", "2"], {"bins": 2}),
        (["--bins", "none", "--smoothing", "0.5"], {"bins": None, "smoothing": 0.5}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_scores_become_proposals_and_costs(
    command: Any, folder: Path, options: list[str], arguments: dict[str, Any]
) -> None:
    (folder / "scores.csv").write_text(SCORED)
    result = command("synthesize", "loans.toml", "--inputs", "scores.csv", *options)
    assert result.exit_code == 0, result.output
    model = fs.InputModel.from_scores([0.9, 0.2, 0.55, 0.1], ["a", "a", "b", "b"], **arguments)
    assert digest_of("loans.shield") == expected_digest(folder, inputs=model)


# Mistakes -----------------------------------------------------------------------------------

BAD_OPTIONS = {
    "bound below 0": (["--bound", "-0.1"], "between 0 and 1, got '-0.1'"),
    "bound above 1": (["--bound", "1.5"], "between 0 and 1, got '1.5'"),
    "bound of letters": (["--bound", "abc"], "a number such as '0.1', '1/10' or 0.1, got 'abc'"),
    "bound NaN": (["--bound", "NaN"], "got 'NaN'"),
    "horizon 0": (["--horizon", "0"], "at least 1, got 0"),
    "horizon -3": (["--horizon", "-3"], "at least 1, got -3"),
    "horizon 1e9": (["--horizon", "1000000000"], "shorten the horizon"),
    "horizon in letters": (["--horizon", "1e9"], "not a valid integer"),
    "shares sum to 0.9": (["--groups", "a=0.4,b=0.5"], "sum to 0.9, they must sum to 1"),
    "one group": (["--groups", "a=1"], "need exactly two"),
    "share of nothing": (["--groups", "a=,b=1"], "cannot read 'a='"),
    "share NaN": (["--groups", "a=nan,b=1"], "must be a number"),
    "negative share": (["--groups", "a=-1,b=2"], "at least 0"),
    "group twice": (["--groups", "a=0.5,a=0.5"], "name each group once"),
    "cost -1": (["--groups", "a=0.5,b=0.5", "--cost", "-1"], "at least 0, got -1"),
    "cost infinite": (["--groups", "a=0.5,b=0.5", "--cost", "inf"], "finite"),
    "start of a stranger": (["--start", "z=1:1"], "unknown group 'z'"),
    "start with more accepted": (["--start", "a=1:2,b=0:0"], "need 0 <= accepted <= seen"),
    "start without colon": (["--start", "a=12,b=3"], "cannot read 'a=12'"),
    "checkpoint late": (["--checkpoint", "11"], "from 1 to the horizon 10, got 11"),
    "spread below 1": (["--spread", "0.5"], "at least 1"),
    "argument of another property": (["--lower", "0.1"], "takes no lower"),
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
    "one group": (b"group,proposed\na,1\n", "need exactly two"),
    "cost -1": (b"group,proposed,cost\na,1,-1\nb,1,1\n", "line 2: cost"),
    "cost NaN": (b"group,proposed,cost\na,1,nan\nb,1,1\n", "line 2: cost"),
    "not a flag": (b"group,proposed\na,1\nb,perhaps\n", "line 3: proposed"),
    "short row": (b"group,proposed\na,1\nb\n", "line 3: 1 fields where the header has 2"),
    "score of letters": (b"group,score\na,high\nb,0.5\n", "line 2: score"),
    "score NaN": (b"group,score\na,0.5\nb,nan\n", "scores must be finite"),
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
    assert "Loosen the bound, set min_support" in result.stderr
    assert not (folder / "x.shield").exists()


def test_a_failed_synthesis_leaves_the_old_policy_alone(command: Any, folder: Path) -> None:
    command("synthesize", "loans.toml")
    before = Path("loans.shield").read_bytes()
    assert command("synthesize", "loans.toml", "--bound", "abc").exit_code == 2
    assert Path("loans.shield").read_bytes() == before


words = st.text(st.characters(codec="utf-8", exclude_characters="=,\x00"), min_size=1, max_size=6)


@settings(max_examples=25)
@given(st.lists(words.map(str.strip).filter(bool), min_size=2, max_size=2, unique=True))
def test_group_names_are_the_users(
    command: Any, tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    target = tmp_path_factory.mktemp("names") / "x.shield"
    shares = f"{names[0]}=0.5,{names[1]}=0.5"
    result = command("synthesize", *OPTIONS, "--groups", shares, "-o", target)
    assert result.exit_code == 0, result.output
    assert list(fs.Policy.load(target).groups) == names
    assert command("inspect", target).exit_code == 0
