"""Outcomes that are known of the accepted alone, or were filled in, on the command line."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

OPPORTUNITY = ("--property", "equal-opportunity", "--bound", "0.1")


@pytest.fixture
def logs(tmp_path: Path) -> dict[str, Path]:
    """A log of equally good people of whom more of b are accepted, by the outcome of others."""
    found = {}
    for name, rejected in {"unknown": "", "filled": "0"}.items():
        rng, rows = random.Random(0), ["group,proposed,accepted,outcome"]
        for _ in range(600):
            group, good = rng.choice("ab"), rng.random() < 0.7
            y = int(rng.random() < {"a": 0.3, "b": 0.6}[group])
            rows.append(f"{group},{y},{y},{int(good) if y else rejected}")
        found[name] = tmp_path / f"{name}.csv"
        found[name].write_text("\n".join(rows) + "\n")
    return found


def test_an_audit_explains_missing_outcomes(command: Any, logs: dict[str, Path]) -> None:
    result = command("audit", logs["unknown"], *OPPORTUNITY)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no 'outcome' of somebody who was rejected" in result.stderr
    assert "docs/late-outcomes.md" in result.stderr


def test_an_audit_of_outcomes_that_were_filled_in_is_inconclusive(
    command: Any, logs: dict[str, Path]
) -> None:
    result = command("audit", logs["filled"], *OPPORTUNITY)
    assert result.exit_code == 3, result.output
    assert "INCONCLUSIVE" in result.stdout
    assert "nobody rejected counts, and every rate is 1" in result.stdout
    data = json.loads(command("audit", logs["filled"], *OPPORTUNITY, "--json").stdout)
    assert "filled in" in data["doubt"]
    page = logs["filled"].with_suffix(".html")
    assert command("audit", logs["filled"], *OPPORTUNITY, "--html", page).exit_code == 3
    text = page.read_text()
    assert "Inconclusive: the outcomes cannot tell" in text
    assert "held at the end" not in text


@pytest.mark.parametrize(
    ("words", "inputs"),
    [
        (("synthesize", "--horizon", "10", "-o", "out.shield"), "--inputs"),
        (("pareto", "--horizon", "10", "--bounds", "0.1"), "--inputs"),
        (("compare", "--period", "10", "--periods", "2", "--groups", "a=0.5,b=0.5"), "--log"),
    ],
)
def test_commands_that_read_outcomes_say_so(
    command: Any, logs: dict[str, Path], tmp_path: Path, words: tuple[str, ...], inputs: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    prop = OPPORTUNITY[:2] if words[0] == "pareto" else OPPORTUNITY
    unknown = command(*words, *prop, inputs, logs["unknown"])
    assert unknown.exit_code == 2, unknown.output
    assert "docs/late-outcomes.md" in unknown.stderr
    filled = command(*words, *prop, inputs, logs["filled"])
    assert filled.exit_code == 0, filled.output
    assert filled.stderr.count("filled in where nobody knows them") == 1


def test_a_filter_warns_at_the_end(
    command: Any, logs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agnostic = ("--groups", "a=0.5,b=0.5", "--horizon", "20", "-o", "eq.shield")
    assert command("synthesize", *OPPORTUNITY, *agnostic).exit_code == 0
    requests = logs["filled"].read_text().splitlines()
    stdin = "\n".join(",".join(line.split(",")[i] for i in (0, 1, 3)) for line in requests)
    done = command("run", "eq.shield", "--format", "csv", stdin=stdin)
    assert done.exit_code == 0, done.output
    assert "Warning: by what was proposed: all" in done.stderr
    few = "\n".join(stdin.splitlines()[:10]) + "\n"
    assert not command("run", "eq.shield", "--format", "csv", stdin=few).stderr
