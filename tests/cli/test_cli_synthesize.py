"""From a spec to a file: the words of a spec file, of options and of the library are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import fairshield as fs
from cli.conftest import SPEC
from fairshield.policy.artifact import digest_of

OPTIONS = ("--property", "demographic-parity", "--bound", "0.2", "--horizon", "10")
SHARES = ("--groups", "a=0.25,b=0.75")
RECORDED = "group,proposed,cost,outcome\na,1,0.5,1\nb,0,1,0\nb,yes,2,1\na,reject,0.5,0\n"
SCORED = "group,score\na,0.9\na,0.2\nb,0.55\nb,0.1\n"


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


words = st.text(st.characters(codec="utf-8", exclude_characters="=,\x00"), min_size=1, max_size=6)


@settings(max_examples=examples(25))
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


def test_options_name_recorded_groups_as_text(command: Any, folder: Path) -> None:
    (folder / "people.jsonl").write_text(
        '{"group": 0, "proposed": 1}\n{"group": 1, "proposed": 0}\n'
    )
    options = ("--inputs", "people.jsonl", "--names", "1,0", "--start", "0=2:1,1=4:3")
    result = command("synthesize", "loans.toml", *options)
    assert result.exit_code == 0, result.output
    policy = fs.Policy.load(folder / "loans.shield")
    assert policy.groups == (1, 0)
    assert policy.start == fs.Counts({1: (4, 3), 0: (2, 1)})
