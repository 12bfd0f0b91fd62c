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
    assert result.exit_code == 0, result.output
    assert "1 decision without an outcome" in result.stdout
    assert json.loads(command("monitor", "-", *prop, "--json", stdin=log).stdout)["waiting"] == 1


def test_groups_are_compared_as_text_by_a_monitor(command: Any, policies: Path) -> None:
    log = "group,accepted\n0,1\n1,1\n"
    options = ("--format", "csv", "--shadow", policies / "numbered.shield")
    result = command("monitor", "-", *options, stdin=log)
    assert result.exit_code == 0, result.output


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
