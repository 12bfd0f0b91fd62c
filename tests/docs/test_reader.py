"""docs/examples/reader.mjs, written from docs/format.md alone, decides as the library does."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairshield as fs

READER = Path(__file__).parents[2] / "docs" / "examples" / "reader.mjs"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

REQUESTS = 4000
"""Of each of the policies below: 60,000 and more in all."""


@dataclass(frozen=True)
class Quota(fs.Property, kind="quota-of-the-reader"):
    most: int

    def fair(self, a: fs.GroupCount, b: fs.GroupCount) -> Any:
        return abs(a.accepted - b.accepted) <= self.most


@dataclass(frozen=True)
class QuotaByOutcome(Quota, kind="labelled-quota-of-the-reader"):
    relevant_outcome = True


def scored(names: tuple[Any, ...] = ("women", "men"), seed: int = 0) -> fs.InputModel:
    """Ten cost levels, the last of which has no upper edge."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(len(names), size=3000)
    outcomes = rng.random(3000) < 0.5
    return fs.InputModel.from_scores(
        rng.beta(2 + groups, 2.0), [names[g] for g in groups], outcomes=outcomes
    )


def plain(*names: Any) -> fs.InputModel:
    return fs.InputModel.agnostic(
        dict.fromkeys(names, 1 / len(names)), outcomes=dict.fromkeys(names, 0.5)
    )


DP, EO = fs.DemographicParity, fs.EqualOpportunity
LEVELS = fs.InputModel.from_table(
    {("a", True, 0.2): 0.1, ("a", False, 1.5): 0.3, ("b", True, 1.5): 0.4, ("b", False, 0.2): 0.2},
    outcomes={"a": 0.3, "b": 0.6},
)
SKEWED = fs.InputModel.from_table(
    {
        ("a", False, 1.0): 0.18,
        ("a", True, 1.0): 0.12,
        ("b", False, 1.0): 0.28,
        ("b", True, 1.0): 0.42,
    }
)


def dearer(often: float) -> fs.InputModel:
    """Two prices; those who cost 1.5 count ``often``, those who cost 1 in three of ten cases."""
    cells = [(g, r, c) for g in "ab" for r in (True, False) for c in (1.0, 1.5)]
    return fs.InputModel.from_table(
        dict.fromkeys(cells, 0.125),
        outcomes={cell: often if cell[2] > 1 else 0.3 for cell in cells},
    )


UNFAIR = fs.Counts({"a": (2, 1), "b": (3, 1)})
POLICIES: dict[str, Callable[[], fs.Policy]] = {
    "parity": lambda: fs.synthesize(DP("0.1"), SKEWED, horizon=10),
    "wide rows": lambda: fs.synthesize(DP("0.1"), SKEWED, horizon=260),
    "impact": lambda: fs.synthesize(fs.DisparateImpact("0.8"), SKEWED, horizon=30),
    "scores": lambda: fs.synthesize(DP("0.1"), scored(), horizon=40),
    "outcomes": lambda: fs.synthesize(EO("0.1", min_support=5), plain("a", "b"), horizon=40),
    "scores and outcomes": lambda: fs.synthesize(
        EO("0.2", min_support=3), scored(), horizon=30, checkpoints=[10, 20]
    ),
    "outcome 0": lambda: fs.synthesize(fs.PredictiveEquality("0.2"), LEVELS, horizon=20),
    "bounded rates": lambda: fs.synthesize(
        fs.BoundedRates("0.3", "0.6", outcome=True), LEVELS, horizon=20
    ),
    "impact, checkpoints, start": lambda: fs.synthesize(
        fs.DisparateImpact("0.8", min_support=5), scored(), horizon=30, checkpoints=[10, 15],
        start=fs.Counts({"women": (10, 7), "men": (12, 8)}),
    ),
    "spread": lambda: fs.synthesize(DP("0.1"), scored(), horizon=30, spread=3.0),
    "schedule": lambda: fs.synthesize(
        DP("0.1"), fs.InputSchedule([(scored(), 10), (scored(seed=1), 15)]), horizon=30
    ),
    "schedule by outcome": lambda: fs.synthesize(
        EO("0.1", min_support=8), fs.InputSchedule([(dearer(0.3), 15), (dearer(0.9), 9)]),
        horizon=30,
    ),
    "further": lambda: fs.synthesize(DP("0.1"), LEVELS, horizon=20, further=20),
    "best effort": lambda: fs.synthesize(
        DP("0"), LEVELS, horizon=15, start=UNFAIR, best_effort=True
    ),
    "best effort by outcome": lambda: fs.synthesize(
        EO("0"), LEVELS, horizon=15, start=UNFAIR, best_effort=True
    ),
    "by the definition": lambda: fs.synthesize(DP("0.2"), LEVELS, horizon=12, backend="reference"),
    "a property of one's own": lambda: fs.synthesize(Quota(2), plain(0, 1), horizon=20),
    "three groups": lambda: fs.synthesize(
        DP("0.2", min_support=3), scored(("a", "b", "c")), horizon=24, checkpoints=[12]
    ),
    "four groups by outcome": lambda: fs.synthesize(
        EO("0.3", min_support=2), plain("a", "b", "c", "d"), horizon=10
    ),
}  # fmt: skip


def reading(path: Path, requests: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(NODE), str(READER), str(path)], input=requests, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def requests_for(policy: fs.Policy, seed: int) -> list[dict[str, Any]]:
    """Any groups, proposals and outcomes; costs on edges, between them and above them all."""
    rng = np.random.default_rng(seed)
    finite = policy.edges[np.isfinite(policy.edges)].tolist()
    costs = rng.choice([0.0, *finite, *rng.random(20), 5.0], REQUESTS).tolist()
    favoured = rng.random() * 0.8 + 0.1
    return [
        {
            "group": policy.groups[rng.integers(len(policy.groups))],
            "proposed": bool(rng.random() < favoured),
            "cost": cost,
            "outcome": bool(rng.random() < 0.5),
        }
        for cost in costs
    ]


def decided_here(policy: fs.Policy, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    columns = {name: [r[name] for r in requests] for name in requests[0]}
    answers = fs.Run(policy).decide_many(
        columns["group"], columns["proposed"], columns["cost"],
        columns["outcome"] if policy.labelled else None,
    )  # fmt: skip
    answered = zip(
        answers.window.tolist(), answers.position.tolist(), answers.accepted.tolist(),
        answers.overruled.tolist(), strict=True,
    )  # fmt: skip
    names = ("window", "position", "accepted", "overruled")
    return [r | dict(zip(names, a, strict=True)) for r, a in zip(requests, answered, strict=True)]


@pytest.mark.parametrize("name", POLICIES)
def test_the_reader_decides_as_the_library_does(name: str, tmp_path: Path) -> None:
    policy = POLICIES[name]()
    policy.save(tmp_path / "policy.shield")
    requests = requests_for(policy, seed=len(name))
    expected = decided_here(policy, requests)
    assert any(answer["overruled"] for answer in expected)
    done = reading(tmp_path / "policy.shield", "".join(json.dumps(r) + "\n" for r in requests))
    assert (done.returncode, done.stderr) == (0, "")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(expected)
    assert (
        next((pair for pair in zip(answers, expected, strict=True) if pair[0] != pair[1]), None)
        is None
    )


def test_sixty_thousand_decisions_are_compared() -> None:
    assert len(POLICIES) * REQUESTS >= 60_000


def resealed(data: bytes) -> bytes:
    return data[:16] + hashlib.sha256(data[:16] + data[48:]).digest() + data[48:]


def test_the_reader_refuses_what_it_cannot_read(tmp_path: Path) -> None:
    policy = fs.synthesize(DP("0.1"), plain("a", "b"), horizon=10)
    policy.save(tmp_path / "table.shield")
    fs.synthesize(DP("0.1"), plain("a", "b"), horizon=100, method="long").save(
        tmp_path / "long.shield"
    )
    perpetual = fs.PerpetualShield(DP("0.1"), plain("a", "b"), period=10)
    perpetual.policy.save(tmp_path / "periodic.shield")
    fs.synthesize(QuotaByOutcome(2), plain("a", "b"), horizon=8).save(tmp_path / "own.shield")
    data = (tmp_path / "table.shield").read_bytes()
    for name, content in {
        "version": resealed(data[:8] + bytes([2, 0, 0, 0]) + data[12:]),
        "cut": data[:-64],
        "stub": data[:20],
        "bit": data[:-1] + bytes([data[-1] ^ 1]),
        "notes": b"These are notes.\n",
    }.items():
        (tmp_path / f"{name}.shield").write_bytes(content)
    for name, message in {
        "long": "a policy by the method long: this reader reads tables",
        "periodic": "a periodic policy (perpetual): this reader reads tables of one window",
        "own": "which outcome labelled-quota-of-the-reader counts is not in the file",
        "version": "format version 2: this reader knows version 1",
        "cut": "truncated or corrupted: the digest differs",
        "stub": "truncated",
        "bit": "truncated or corrupted: the digest differs",
        "notes": "not a policy",
    }.items():
        path = tmp_path / f"{name}.shield"
        done = reading(path, '{"group": "a", "proposed": true, "outcome": 1}\n')
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"Error: {path}: {message}\n"


@pytest.mark.parametrize(
    ("request_line", "message"),
    [
        ('{"group": "c", "proposed": true}', 'unknown group "c": the policy knows a, b'),
        ('{"group": "a", "proposed": "yes"}', 'proposed must be true or false, got "yes"'),
        ('{"group": "a", "proposed": 1, "cost": -1}', "cost must be a finite number of at"),
        ('{"group": "a", "proposed": 1}', "outcome must be true or false, got undefined"),
    ],
)
def test_a_request_that_cannot_be_decided_is_named(
    request_line: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "policy.shield"
    fs.synthesize(EO("0.5"), plain("a", "b"), horizon=4).save(path)
    done = reading(path, request_line + "\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"line 1: {message}" in done.stderr
