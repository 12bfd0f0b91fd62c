"""The command that watches: monitor."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

PARITY = ("--property", "demographic-parity", "--bound", "0.1")


def lines(n: int, rate: dict[str, float], **more: Any) -> str:
    """Decisions in a log."""
    rng = random.Random(0)
    found = []
    for _ in range(n):
        group = rng.choice(list(rate))
        found.append(json.dumps({"group": group, "accepted": rng.random() < rate[group], **more}))
    return "\n".join(found)


def test_a_fair_log_is_quiet(command: Any) -> None:
    result = command("monitor", "-", *PARITY, stdin=lines(500, {"a": 0.5, "b": 0.5}))
    assert result.exit_code == 0, result.output
    assert result.stdout.split()[-2:] == ["alarms", "none"]
    assert "rate of a" in result.stdout


def test_an_unfair_one_raises_alarms(command: Any, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(lines(2000, {"a": 0.2, "b": 0.8}))
    result = command("monitor", log, *PARITY, "--horizon", "100", "--names", "a,b")
    assert result.exit_code == 1, result.output
    assert "- bias after" in result.stdout
    assert "... and" in result.stdout
    data = json.loads(command("monitor", log, *PARITY, "--period", "100", "--json").stdout)
    assert data["quiet"] is False
    assert data["periods"]["over"] == 20
    assert {alarm["kind"] for alarm in data["alarms"]} == {"bias", "violation"}


def test_a_shadow_and_its_model_are_reported(command: Any, plain: Path) -> None:
    log = lines(1200, {"a": 1.0, "b": 1.0})
    result = command("monitor", "-", "--shadow", plain, stdin=log)
    assert result.exit_code == 1, result.output
    for words in ("would have overruled", "- model after", "re-synthesised"):
        assert words in result.stdout
    data = json.loads(command("monitor", "-", "--shadow", plain, "--json", stdin=log).stdout)
    assert data["shadow"]["decisions"] == 1200
    assert data["saving"]["saved"] >= 0.0
    assert data["model"]["contradicted_at"] <= 1200


def test_a_model_is_estimated_from_records(command: Any, tmp_path: Path) -> None:
    training = tmp_path / "training.csv"
    rows = [f"{group},{said}" for group in "ab" for said in (0, 1)] * 50
    training.write_text("\n".join(["group,proposed", *rows]))
    result = command(
        "monitor", "-", *PARITY, "--inputs", training, stdin=lines(900, {"a": 0.9, "b": 0.9})
    )
    assert result.exit_code == 1, result.output
    assert "proposed to be accepted, the model says 0.5" in result.stdout


def test_records_that_wait_for_their_outcome_are_left_out(command: Any) -> None:
    log = '{"group": "a", "accepted": 1, "outcome": 1}\n{"group": "b", "accepted": 0}\n'
    prop = ("--property", "equal-opportunity", "--bound", "0.1")
    result = command("monitor", "-", *prop, stdin=log)
    assert result.exit_code == 3, result.output  # and the only one who was rejected
    assert "1 decision without an outcome" in result.stdout
    assert json.loads(command("monitor", "-", *prop, "--json", stdin=log).stdout)["waiting"] == 1


def test_groups_are_compared_as_text_by_a_monitor(command: Any, policies: Path) -> None:
    log = "group,accepted\n0,1\n1,1\n"
    options = ("--format", "csv", "--shadow", policies / "numbered.shield")
    result = command("monitor", "-", *options, stdin=log)
    assert result.exit_code == 3, result.output
    assert "nothing had to hold yet: no window is over" in result.stdout


@pytest.mark.parametrize(
    ("options", "log", "words"),
    [
        ((), "", "say what should hold"),
        ((*PARITY, "--horizon", "0"), "", "horizon must be"),
        (PARITY, '{"group": "a"}', "line 1: no 'accepted'"),
        ((*PARITY, "--names", "a,b"), '{"group": "c", "accepted": 1}', "line 1: unknown group 'c'"),
        ((*PARITY, "--confidence", "95"), "", "confidence must lie between 0 and 1"),
    ],
)
def test_mistakes_in_monitoring_are_told_in_a_sentence(
    command: Any, options: tuple[str, ...], log: str, words: str
) -> None:
    result = command("monitor", "-", *options, stdin=log)
    assert result.exit_code == 2, result.output
    assert words in result.stderr


OPPORTUNITY = ("--property", "equal-opportunity", "--bound", "0.1")


def test_a_log_of_which_nothing_can_be_counted_is_not_called_fair(command: Any) -> None:
    log = lines(40, {"a": 0.5, "b": 0.5})
    result = command("monitor", "-", *OPPORTUNITY, stdin=log)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "none of 40 records has an 'outcome'" in result.stderr


def lending(rejected: str) -> str:
    """A log of equally good people of whom more of b are accepted; outcomes of the accepted."""
    rng, rows = random.Random(0), ["group,accepted,outcome"]
    for _ in range(1000):
        group, good = rng.choice("ab"), rng.random() < 0.7
        accepted = rng.random() < {"a": 0.3, "b": 0.6}[group]
        rows.append(f"{group},{int(accepted)},{int(good) if accepted else rejected}")
    return "\n".join(rows)


@pytest.mark.parametrize("prop", ["equal-opportunity", "predictive-equality"])
@pytest.mark.parametrize(
    ("rejected", "words"),
    [("", "of nobody rejected is known"), ("0", "rejected have outcome 0")],
)
def test_outcomes_of_the_accepted_alone_conclude_nothing(
    command: Any, tmp_path: Path, prop: str, rejected: str, words: str
) -> None:
    log = tmp_path / "lend.csv"
    log.write_text(lending(rejected))
    options = ("--property", prop, "--bound", "0.1" if not rejected else "1")
    result = command("monitor", log, *options)
    assert result.exit_code == 3, result.output
    assert "INCONCLUSIVE: the outcomes at hand cannot tell" in result.stdout
    assert words in result.stdout
    assert "docs/late-outcomes.md" in result.stdout
    data = json.loads(command("monitor", log, *options, "--json").stdout)
    assert not data["quiet"]
    assert words in data["doubt"]


def test_windows_that_bound_nothing_conclude_nothing(command: Any) -> None:
    options = (*PARITY, "--min-support", "30", "--horizon", "40")
    result = command("monitor", "-", *options, stdin=lines(400, {"a": 0.2, "b": 0.8}))
    data = json.loads(
        command("monitor", "-", *options, "--json", stdin=lines(400, {"a": 0.2, "b": 0.8})).stdout
    )
    assert data["windows"]["exempt"] == data["windows"]["over"] == 10
    assert data["windows"]["worst_measured"] > data["windows"]["worst_bias"] == 0.0
    assert (result.exit_code, data["verdict"]) == (1, "exempt")  # the bias is beyond chance
    few = command("monitor", "-", *options, stdin=lines(40, {"a": 0.2, "b": 0.8}))
    assert few.exit_code == 3, few.output
    assert "bound nothing in the window" in few.stdout


@pytest.mark.parametrize("text", ["", "group,accepted\n"])
def test_an_empty_log_shows_nothing(command: Any, text: str) -> None:
    format = ("--format", "csv" if text else "jsonl")
    for name in ("audit", "monitor"):
        found = command(name, "-", *PARITY, *format, "--names", "a,b", stdin=text)
        assert found.exit_code == 3
        assert "nothing to check" in found.stdout
    unnamed = command("monitor", "-", *PARITY, *format, stdin=text)
    assert unnamed.exit_code == 2
    assert "the log has no decisions" in unnamed.stderr


@pytest.mark.parametrize("accepted", ["1100", "1010", "1000", "1111"])
def test_without_a_horizon_the_log_is_one_window_judged_at_its_end(
    command: Any, accepted: str
) -> None:
    rows = [
        json.dumps({"group": group, "accepted": int(y)})
        for group, y in zip("aabb", accepted, strict=True)
    ]
    found = {
        name: command(name, "-", *PARITY, stdin="\n".join(rows)) for name in ("audit", "monitor")
    }
    assert found["monitor"].exit_code == found["audit"].exit_code
    assert ("- violation after 4 decisions" in found["monitor"].stdout) == (
        "VIOLATED" in found["audit"].stdout
    )


def test_who_is_first_must_be_said_where_it_matters(command: Any) -> None:
    impact = ("--property", "disparate-impact", "--bound", "1.2", "--one-sided")
    log = '{"group": "b", "accepted": 1}\n{"group": "a", "accepted": 0}\n'
    result = command("monitor", "-", *impact, stdin=log)
    assert result.exit_code == 2
    assert "--names first,second" in result.stderr
    for names in ("a,b", "b,a"):
        options = (*impact, "--names", names)
        found = {command(name, "-", *options, stdin=log).exit_code for name in ("audit", "monitor")}
        assert found == {int(names == "b,a")}
    three = command("monitor", "-", *impact, "--names", "a,b,c", stdin=log)
    assert "compares two groups, got 3" in three.stderr


def test_a_monitor_reads_columns_of_other_names(command: Any) -> None:
    log = "sex,race,approved\nf,x,1\nm,y,1\n"
    columns = ("--column", "group=sex,race", "--column", "accepted=approved")
    result = command("monitor", "-", *PARITY, "--format", "csv", *columns, stdin=log)
    assert result.exit_code == 0, result.output
    assert "rate of f × x" in result.stdout


def test_of_many_groups_the_widest_pairs_are_told(command: Any) -> None:
    """Rates in a table that a terminal has room for, five pairs, and a count of the others."""
    rates = {f"group {i:02} of people": 0.3 + i / 40 for i in range(14)}
    log = lines(1400, rates)
    result = command("monitor", "-", *PARITY, stdin=log)
    text = result.stdout
    pairs = text.split("Widest pairs since the beginning\n")[1].split("\n\n")[0].splitlines()
    assert len(pairs) == 1 + 5 + 1
    data = json.loads(command("monitor", "-", *PARITY, "--json", stdin=log).stdout)
    found = [pair["finding"] for pair in data["pairs"]]
    widest = max(found, key=lambda finding: finding["bias"])
    assert pairs[1].startswith(", ".join(widest["pair"]))
    assert pairs[1].endswith("UNFAIR")
    unfair = sum(finding["verdict"] == "unfair" for finding in found) - 5
    assert unfair > 0
    assert pairs[-1] == f"... and 86 more pairs: {unfair} unfair, {86 - unfair} fair"
    rates_table = text.split("Rates since")[1].split("\n\n")[0].splitlines()[2:]
    assert len(rates_table) == 14
    assert max(map(len, rates_table)) <= 80
    assert "bias group" not in text
