"""Rates of one's own on the command line: from a spec to an audit."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

SPEC = """
property = "rate-difference"
bound = "0.2"
numerator = "accept 1"
denominator = { accept = 1 }
groups = { a = 0.4, b = 0.6 }
outcomes = { a = 0.5, b = 0.6 }
start = { a = [20, 12], b = [25, 14] }
"""
WEIGHTED = (
    "--property", "rate-difference", "--bound", "0.2", "--argument", "numerator=accept=2",
    "--argument", "denominator=accept=2, reject",
)  # fmt: skip


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "parity.toml"
    path.write_text("horizon = 12\n" + SPEC)
    return path


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    rng, path = random.Random(0), tmp_path / "requests.jsonl"
    people = [
        {"group": rng.choice("ab"), "proposed": rng.random() < 0.5, "outcome": rng.random() < 0.5}
        for _ in range(24)
    ]
    path.write_text("".join(json.dumps(person) + "\n" for person in people))
    return path


def test_a_policy_is_made_verified_and_audited(
    command: Any, spec: Path, requests: Path, tmp_path: Path
) -> None:
    policy, log = tmp_path / "parity.shield", tmp_path / "log.jsonl"
    made = command("synthesize", spec, "-o", policy)
    assert made.exit_code == 0
    assert "difference of rates (accept 1 of accept) ≤ 1/5 over 12 decisions" in made.stdout
    assert command("verify", policy).exit_code == 0
    assert "Expected interventions" in command("inspect", policy).stdout
    assert " 0.0%" in command("simulate", policy, "--windows", "50").stdout
    decided = command("run", policy, requests)
    assert decided.exit_code == 0
    log.write_text(decided.stdout)
    audited = command("audit", log, "--policy", policy, "--json")
    assert audited.exit_code == 0
    found = json.loads(audited.stdout)
    counts = {"a": [20, 12], "b": [25, 14]}
    for line in decided.stdout.splitlines()[:12]:
        told = json.loads(line)
        counts[told["group"]][0] += told["accepted"]
        counts[told["group"]][1] += told["accepted"] and told["outcome"]
    assert found["windows"][0]["counts"] == [[g, *counts[g]] for g in "ab"]
    assert command("explain", policy, log).exit_code == 0


def test_periods_of_it_are_made_and_compared(command: Any, tmp_path: Path) -> None:
    spec = tmp_path / "periods.toml"
    spec.write_text(SPEC)
    for kind, more in (("dynamic", ()), ("static-fair", ()), ("exact", ("--periods", "2"))):
        path = tmp_path / f"{kind}.shield"
        made = command("synthesize", spec, "--periodic", kind, "--period", "5", *more, "-o", path)
        assert made.exit_code == 0, made.stderr
        assert "difference of rates" in command("inspect", path).stdout
    compared = command("compare", spec, "--period", "4", "--periods", "2", "--runs", "5")
    assert compared.exit_code == 0
    assert "static-fair" in compared.stdout
    assert "perpetual" not in compared.stdout


def test_weights_are_arguments_of_the_command(command: Any, tmp_path: Path) -> None:
    path = tmp_path / "weighted.shield"
    window = ("--horizon", "8", "--groups", "a=0.5,b=0.5")
    made = command("synthesize", *WEIGHTED, *window, "-o", path)
    assert made.exit_code == 0
    assert "(accept=2 of accept=2, reject)" in made.stdout
    assert command("verify", path).exit_code == 0
    wrong = command("synthesize", *WEIGHTED[:-1], "denominator=accept", *window, "-o", path)
    assert wrong.exit_code != 0
    assert "a rate needs every weight of its numerator to be at most" in wrong.stderr


def test_a_page_of_an_audit_counts_people(
    command: Any, spec: Path, requests: Path, tmp_path: Path
) -> None:
    policy, log = tmp_path / "parity.shield", tmp_path / "log.jsonl"
    command("synthesize", spec, "-o", policy)
    log.write_text(command("run", policy, requests).stdout)
    refused = command("audit", log, "--policy", policy, "--html", tmp_path / "page.html")
    assert refused.exit_code == 2
    assert "counts decisions, not people" in refused.stderr
