"""``fairshield verify`` of what promises nothing, and of files that others made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fairshield as fs

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
PARITY = ("--property", "demographic-parity", "--bound")
WINDOW = ("--horizon", "10", "--groups", "a=0.5,b=0.5")


@pytest.fixture
def loans(tmp_path: Path) -> Path:
    fs.synthesize(fs.DemographicParity("0.2"), EVEN, horizon=10).save(tmp_path / "loans.shield")
    return tmp_path / "loans.shield"


def test_a_policy_that_never_binds_is_said_to_be_vacuous(command: Any, tmp_path: Path) -> None:
    path = tmp_path / "rare.shield"
    made = command("synthesize", *PARITY, "0.1", "--min-support", "6", *WINDOW, "-o", path)
    assert made.exit_code == 0
    assert (
        "Warning: demographic parity ≤ 1/10 for groups of at least 6 can never bind" in made.stderr
    )
    assert ", vacuous" in made.stdout
    assert "vacuous: the property can never bind" in command("inspect", path).stdout
    assert json.loads(command("inspect", path, "--json").stdout)["can_bind"] is False
    found = command("verify", path)
    assert (found.exit_code, found.stderr) == (3, "")
    assert "vacuous: it can never bind" in found.stdout
    facts = json.loads(command("verify", path, "--json").stdout)
    assert (facts["verdict"], facts["holds"], facts["can_bind"]) == ("vacuous", True, False)


@pytest.mark.parametrize(
    ("kind", "said", "shown"),
    [
        ("static-fair", "nothing: its periods are too short to bind", "enforces nothing"),
        ("exact", "vacuous: the property can never bind", "vacuous"),
        ("optimal", "vacuous: the property can never bind", "vacuous"),
    ],
)
def test_periods_that_bind_or_enforce_nothing_are_said_to(
    command: Any, kind: str, said: str, shown: str, tmp_path: Path
) -> None:
    path, more = tmp_path / "p.shield", ["--periods", "1"] if kind != "static-fair" else []
    made = command(
        "synthesize", *PARITY, "0.1", "--min-support", "6", "--periodic", kind, "--period", "10",
        *more, "--groups", "a=0.5,b=0.5", "-o", path,
    )  # fmt: skip
    assert made.exit_code == 0
    assert made.stderr.count("can never bind") == 1
    assert shown in made.stdout
    assert said in command("inspect", path).stdout
    assert command("verify", path, *(["--periods", "1"] if not more else [])).exit_code == 3


def test_whoever_did_not_make_the_file_says_what_it_must_keep(command: Any, loans: Path) -> None:
    assert command("verify", loans, *PARITY, "0.2", "--horizon", "10").exit_code == 0
    found = command("verify", loans, *PARITY, "0.1")
    assert found.exit_code == 1
    assert "(the policy says demographic parity ≤ 1/5)" in found.stderr
    facts = json.loads(command("verify", loans, *PARITY, "0.1", "--json").stdout)
    assert facts["claim"]["asked"] == "demographic parity ≤ 1/10"
    assert facts["counterexample"]["violated"] == "demographic parity ≤ 1/10"
    support = command("verify", loans, *PARITY, "0.1", "--min-support", "6")
    assert (support.exit_code, "vacuous" in support.stdout) == (3, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--horizon", "20"], "horizon 20 is not the policy's 10"),
        (["--checkpoint", "5"], "--checkpoint (5,) is not the policy's ()"),
        (["--period", "10"], "period 10 is not the policy's none"),
        (
            ["--start", "a=1:0,b=2:1"],
            "--start (0 accepted of 1 in a and 1 accepted of 2 in b) is not the policy's "
            "(0 accepted of 0 in a and 0 accepted of 0 in b)",
        ),
        (["--start", "a=1:0,b=0:0"], "start "),
        (["--bound", "0.1"], "no property: say what must hold"),
        (["--property", "equal-opportunity", "--bound", "0.1"], "counts other people"),
    ],
)
def test_a_policy_for_something_else_is_refused(
    command: Any, loans: Path, options: list[str], message: str
) -> None:
    result = command("verify", loans, *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_it_tells_what_was_looked_at(command: Any, loans: Path, tmp_path: Path) -> None:
    facts = json.loads(command("verify", loans, "--json").stdout)
    assert (facts["verdict"], facts["exhaustive"], facts["rests_on"]) == ("kept", True, None)
    assert facts["claim"]["start"] == [["a", 0, 0], ["b", 0, 0]]
    path = tmp_path / "long.shield"
    fs.synthesize(fs.DemographicParity("0.1"), EVEN, horizon=1000, method="long").save(path)
    found = command("verify", path)
    assert found.exit_code == 0
    assert "not exhaustive: no violation in 72 hard windows" in found.stdout
    assert "all other windows rest on a theorem" in found.stdout
    facts = json.loads(command("verify", path, "--json").stdout)
    assert (facts["exhaustive"], facts["windows"]) == (False, 72)
    assert facts["rests_on"]


def test_hard_windows_alone_show_nothing(command: Any, tmp_path: Path) -> None:
    path, start = tmp_path / "long.shield", fs.Counts({"a": (10, 5), "b": (10, 5)})
    parity = fs.DemographicParity("0.1")
    fs.synthesize(parity, EVEN, horizon=1000, start=start, method="long").save(path)
    # As everybody has been seen it comes to the same, which no theorem says.
    said = ("--start", "a=10:5,b=10:5")
    found = command("verify", path, *PARITY, "0.1", *said, "--undefined", "rate-0")
    assert found.exit_code == 3
    assert "nothing is shown about all other windows" in found.stdout
    assert command("verify", path, *PARITY, "0.1", *said).exit_code == 0


def test_counters_that_nobody_decided_are_not_taken_as_given(command: Any, tmp_path: Path) -> None:
    path = tmp_path / "padded.shield"
    many = ("--start", "a=100:50,b=100:50")
    made = command("synthesize", *PARITY, "0.2", *WINDOW, *many, "-o", path)
    assert "can never bind" in made.stderr
    assert command("verify", path).exit_code == 3
    refused = command("verify", path, *PARITY, "0.2")
    assert refused.exit_code == 2
    assert "--start" in refused.stderr
    assert command("verify", path, *PARITY, "0.2", *many).exit_code == 3


SURE = ("--property", "equal-opportunity", "--bound", "0.25", "--groups", "a=0.5,b=0.5")
SURE = (*SURE, "--outcomes", "a=1,b=1", "--horizon", "6", "--trust-support")
POSSIBLE = "group,proposed,outcome\n" + "a,1,1\na,0,1\na,1,1\nb,0,1\na,1,1\na,1,1\n"


def test_a_policy_that_trusts_its_support_says_so_in_every_command(
    command: Any, folder: Path
) -> None:
    """Everybody is expected to count, and the shield relies on it; somebody does not."""
    words = "to which the input model gives a positive probability"
    made = command("synthesize", *SURE, "-o", "trusting.shield")
    assert made.exit_code == 0
    assert words in made.stdout
    text = command("inspect", "trusting.shield").stdout
    assert "condition" in text
    assert words in text
    assert "whatever arrives" not in text
    assert json.loads(command("inspect", "trusting.shield", "--json").stdout)["fair_in_support"]
    text = command("verify", "trusting.shield").stdout
    assert words in text
    assert "nothing is shown of other sequences" in text
    assert words in command("simulate", "trusting.shield", "--windows", 10).stdout
    (folder / "requests.csv").write_text(POSSIBLE.replace("b,0,1", "b,0,0"))
    (folder / "log.csv").write_text(command("run", "trusting.shield", "requests.csv").stdout)
    audit = command("audit", "log.csv", "--policy", "trusting.shield", "--html", "page.html")
    assert "broken at decision 4" in audit.stdout
    page = (folder / "page.html").read_text()
    assert "NOT guaranteed: something came that the input model holds impossible" in page
    assert "Guaranteed on every sequence" not in page


def test_a_log_of_possible_requests_is_audited_under_the_condition(
    command: Any, folder: Path
) -> None:
    assert command("synthesize", *SURE, "-o", "trusting.shield").exit_code == 0
    (folder / "requests.csv").write_text(POSSIBLE)
    (folder / "log.csv").write_text(command("run", "trusting.shield", "requests.csv").stdout)
    audit = command("audit", "log.csv", "--policy", "trusting.shield", "--html", "page.html")
    assert "held so far" in audit.stdout
    page = (folder / "page.html").read_text()
    assert "Guaranteed only on sequences that the input model holds possible" in page
    assert "In this log none other came." in page


def test_what_the_command_line_cannot_trust_is_refused(command: Any) -> None:
    spec = ["--property", "demographic-parity", "--bound", "0.2", "--groups", "a=1,b=0"]
    result = command("synthesize", *spec, "--periodic", "dynamic", "--period", 6, "--trust-support")
    assert result.exit_code == 2
    assert "trust-support" in result.stderr
    assert "goes with one window, not with periods" in result.stderr
