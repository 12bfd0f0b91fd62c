"""Fixtures: policy files, requests as text, and two ways to run the command."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from strategies import with_decisions

import fairshield as fs
from fairshield.cli.app import app
from fairshield.policy.layout import layer_rows
from fairshield.policy.rows import RowTable

Command = Callable[..., Result]
SPEC = """
property = "demographic-parity"
bound = "0.2"
horizon = 10

[groups]
a = 0.25
b = 0.75
"""


@pytest.fixture(scope="session")
def command() -> Command:
    """Run ``fairshield`` in this process."""

    def run(*arguments: Any, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, [str(part) for part in arguments], input=stdin)

    return run


@pytest.fixture
def process() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Run ``fairshield`` in a process of its own, with pipes unless other streams are given.

    ``shell`` is a script that may prepare the environment, and then runs ``"$@"``.  A process that
    hangs is killed, so that the test fails.
    """
    watchdogs: list[threading.Timer] = []

    def start(*arguments: Any, shell: str = 'exec "$@"', **streams: Any) -> Any:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command = [sys.executable, "-m", "fairshield", *map(str, arguments)]
        running = subprocess.Popen(["sh", "-c", shell, "sh", *command], **(pipes | streams))
        watchdogs.append(threading.Timer(180.0, running.kill))
        watchdogs[-1].start()
        return running

    yield start
    for watchdog in watchdogs:
        watchdog.cancel()


@pytest.fixture(scope="session")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of policies: ``plain`` (six decisions), ``labelled`` (five), ``numbered``."""
    folder = tmp_path_factory.mktemp("policies")
    even = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    numbered = fs.InputModel.agnostic({0: 0.5, 1: 0.5})
    for name, prop, inputs, horizon in (
        ("plain", fs.DemographicParity("0.25"), even, 6),
        ("labelled", fs.EqualOpportunity("0.25"), even, 5),
        ("numbered", fs.DemographicParity("0.25"), numbered, 6),
    ):
        fs.synthesize(prop, inputs, horizon=horizon).save(folder / f"{name}.shield")
    return folder


@pytest.fixture(scope="session")
def plain(policies: Path) -> Path:
    return policies / "plain.shield"


@pytest.fixture(scope="session")
def labelled(policies: Path) -> Path:
    return policies / "labelled.shield"


@pytest.fixture(scope="session")
def requests() -> list[dict[str, Any]]:
    """Forty requests that a shield must overrule now and then."""
    rng = random.Random(7)
    return [
        {
            "id": f"p{i}",
            "group": (group := rng.choice("ab")),
            "proposed": rng.random() < (0.2 if group == "a" else 0.8),
            "cost": rng.choice([0.5, 1, 2]),
            "outcome": rng.random() < 0.5,
        }
        for i in range(40)
    ]


@pytest.fixture(scope="session")
def jsonl(requests: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(request) + "\n" for request in requests)


@pytest.fixture(scope="session")
def csv_text(requests: list[dict[str, Any]]) -> str:
    rows = [",".join(str(value) for value in request.values()) for request in requests]
    return "\n".join([",".join(requests[0]), *rows]) + "\n"


@pytest.fixture(scope="session")
def decided(command: Any, plain: Path, jsonl: str, tmp_path_factory: Any) -> Path:
    """Forty decisions of the plain policy."""
    log = tmp_path_factory.mktemp("log") / "decisions.jsonl"
    log.write_text(command("run", plain, stdin=jsonl).stdout)
    return Path(log)


@pytest.fixture(scope="session")
def broken(plain: Path) -> Path:
    """A policy that claims every state to be feasible and follows every proposal."""
    policy = fs.Policy.load(plain)
    cuts = np.array(policy.decisions.rows.cuts)
    starts = policy.decisions.layout.layer_starts
    for t in range(policy.horizon + 1):
        states = layer_rows(t, policy.labelled).states
        cuts[starts[t] : starts[t + 1]] = np.stack([0 * states, states] * 3, axis=1)
    empty = np.empty(0, np.int64)
    rows_table = RowTable(cuts, empty, empty, np.empty(0, np.int8))
    path = plain.with_name("broken.shield")
    with_decisions(policy, rows=rows_table).save(path)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one, with the spec ``loans.toml``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loans.toml").write_text(SPEC)
    return tmp_path
