"""Three groups on the command line: every command takes them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import with_decisions

import fairshield as fs
from fairshield.policy.many import StateDecisions

SPEC = ["demographic-parity", "0.3", "a=0.2,b=0.3,c=0.5"]
REQUESTS = "group,proposed\na,1\nb,0\nc,1\nc,0\na,1\nb,1\n"


def words(prop: str, bound: str, groups: str) -> list[str]:
    return ["--property", prop, "--bound", bound, "--groups", groups, "--horizon", "6"]


@pytest.fixture(scope="module")
def three(command: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy of three groups, made by the command."""
    path = Path(tmp_path_factory.mktemp("three")) / "three.shield"
    done = command("synthesize", *words(*SPEC), "-o", path, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["method"] == "exact"
    return path


def told(done: Any) -> str:
    assert done.exit_code == 0, done.output
    return str(done.stdout)


def test_inspect_names_all_groups(command: Any, three: Path) -> None:
    text = told(command("inspect", three))
    assert "a, b and c" in text
    assert "924 states, 3 groups" in text
    header = next(line for line in text.splitlines() if line.startswith("decisions"))
    assert header.split() == ["decisions", "a", "b", "c", "all"]
    facts = json.loads(told(command("inspect", three, "--json")))
    assert [len(part["overruled"]) for part in facts["interventions"]] == [3] * 6


def test_what_is_run_is_audited_and_explained(command: Any, three: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    asked = [{"group": group, "proposed": group != "b"} for group in "abccab"]
    lines = "".join(json.dumps(request) + "\n" for request in asked)
    log.write_text(told(command("run", three, stdin=lines)))
    decisions = [json.loads(line) for line in log.read_text().splitlines()]
    assert [decision["group"] for decision in decisions] == list("abccab")
    assert re.search(r"a \d+, b \d+, c \d+", told(command("audit", log, "--policy", three)))
    assert told(command("audit", log, "--property", "demographic-parity", "--bound", "0.3"))
    assert len(told(command("explain", three, log, "--all")).splitlines()) == 6
    one = command(
        "explain", three, "--group", "c", "--proposed", "accept", "--counts", "a=1:0,b=1:0,c=1:1"
    )
    assert "Decision 4, group c" in told(one)


def test_the_guarantee_is_verified_and_a_fault_is_found(
    command: Any, three: Path, tmp_path: Path
) -> None:
    assert "guarantee holds" in told(command("verify", three))
    policy = fs.Policy.load(three)
    assert isinstance(policy.decisions, StateDecisions)
    with_decisions(policy, codes=np.zeros_like(policy.decisions.codes)).save(
        tmp_path / "careless.shield"
    )
    done = command("verify", tmp_path / "careless.shield")
    assert done.exit_code != 0
    assert "in a" in done.output


def test_windows_of_three_groups_are_simulated(command: Any, three: Path) -> None:
    facts = json.loads(told(command("simulate", three, "--windows", "200", "--json")))
    assert facts["unfair_windows"] == 0
    assert facts["unfair_windows_unshielded"] > 0
    other = ["--groups", "c=0.5,b=0.25,a=0.25"]
    assert json.loads(told(command("simulate", three, *other, "--json")))["unfair_windows"] == 0


def test_three_groups_are_estimated_from_records(command: Any, tmp_path: Path) -> None:
    (tmp_path / "recorded.csv").write_text(REQUESTS)
    told(
        command(
            "synthesize", "--property", "demographic-parity", "--bound", "0.3", "--horizon", "4",
            "--inputs", tmp_path / "recorded.csv", "--names", "c,a,b", "-o", tmp_path / "x.shield",
        )
    )  # fmt: skip
    assert fs.Policy.load(tmp_path / "x.shield").groups == ("c", "a", "b")


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (["--horizon", "500"], "at most 91 decisions"),
        (["--method", "long"], "use 'exact'"),
    ],
)
def test_what_goes_too_far_is_refused(command: Any, more: list[str], part: str) -> None:
    done = command("synthesize", *words(*SPEC), *more, "-o", "x.shield")
    assert done.exit_code != 0
    assert part in done.output


def test_periods_are_for_two_groups(command: Any) -> None:
    prop, bound, groups = SPEC
    done = command(
        "synthesize", "--property", prop, "--bound", bound, "--groups", groups, "--period", "10",
        "--periodic", "dynamic", "-o", "x.shield",
    )  # fmt: skip
    assert done.exit_code != 0
    assert "periods are for two groups" in done.output
    compared = command(
        "compare", "--property", prop, "--bound", bound, "--groups", groups, "--period", "10"
    )
    assert compared.exit_code != 0
    assert "periods are for two groups" in compared.output
