"""A property of one file is at home everywhere: nothing else had to learn of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rejection_ratio import RejectionRatio

import fairshield as fs
from fairshield.monitor import Monitor
from fairshield.periodic import kind_of
from fairshield.reports.plots import Comparison, DrawnWindows, plot_running_bias, signed_gap
from fairshield.service.dashboard.show import promise

PROP = RejectionRatio(2)
IMPORTED = ["--import", "rejection_ratio:RejectionRatio"]
ASKED = ["--property", "tests-rejection-ratio", "--argument", "most=2"]
WINDOW = ["--groups", "a=0.5,b=0.5", "--horizon", "8"]
REQUESTS = [(i % 3 == 0, i % 5 < 2) for i in range(24)]


@pytest.fixture(scope="module")
def policy() -> fs.Policy:
    return fs.synthesize(PROP, fs.InputModel.agnostic({"a": 0.5, "b": 0.5}), horizon=8)


def decided(policy: fs.Policy) -> list[tuple[str, bool, bool]]:
    """Group, proposal and decision of every request, three windows after each other."""
    found = []
    for i, (first, proposed) in enumerate(REQUESTS):
        shield = fs.Shield(policy) if i % 8 == 0 else shield  # noqa: F821
        decision = shield.decide("a" if first else "b", proposed=proposed)
        found.append((decision.group, proposed, decision.accepted))
    return found


def test_it_is_synthesised_verified_and_explained(policy: fs.Policy) -> None:
    assert fs.verify(policy).holds
    shield = fs.Shield(policy)
    for first, proposed in REQUESTS[:8]:
        decision = shield.decide("a" if first else "b", proposed=proposed)
        assert fs.explain(policy, decision).decision == decision
    assert PROP.holds(shield.counts)


def test_the_command_line_takes_it_and_its_page_has_its_words(
    command: Any, folder: Path, policy: fs.Policy
) -> None:
    done = command("synthesize", *IMPORTED, *ASKED, *WINDOW, "-o", folder / "own.shield")
    assert done.exit_code == 0, done.output
    assert command("verify", folder / "own.shield").exit_code == 0
    lines = [f"{g},{int(r)},{int(y)}" for g, r, y in decided(policy)]
    (folder / "log.csv").write_text("\n".join(["group,proposed,accepted", *lines, ""]))
    done = command(
        "audit", folder / "log.csv", "--policy", folder / "own.shield", "--html", folder / "p.html"
    )
    assert done.exit_code == 0, done.output
    page = (folder / "p.html").read_text()
    for words in (
        str(PROP), PROP.requirement(("a", "b")), "Rejection ratio.", "allowed: 0 to 2",
        "1 - <i>k</i><sub>a</sub>/<i>n</i><sub>a</sub> ≤ 2 ·",
    ):  # fmt: skip
        assert words in page


def test_a_picture_has_its_axis(tmp_path: Path, policy: fs.Policy) -> None:
    pytest.importorskip("matplotlib")
    steps = np.array([[int(g == "a"), int(g == "a" and y), int(g == "b"), int(g == "b" and y)]
                      for g, _, y in decided(policy)]).reshape(3, 8, 4)  # fmt: skip
    counters = np.concatenate((np.zeros((3, 1, 4), np.int64), steps.cumsum(axis=1)), axis=1)
    assert signed_gap(PROP, np.array([4, 3, 4, 1])) == 3.0
    assert signed_gap(PROP, np.array([4, 1, 4, 3])) == -3.0
    side = DrawnWindows(prop=PROP, counters=counters, unfair=0, windows=3)
    row = Comparison(title="own", groups=("a", "b"), before=side, after=side,
                     overruled_at=np.ones(8, np.int64))  # fmt: skip
    plot_running_bias([row], tmp_path / "own.png")
    assert (tmp_path / "own.png").read_bytes().startswith(b"\x89PNG")


def test_the_monitor_bounds_its_bias(policy: fs.Policy) -> None:
    monitor = Monitor(PROP, groups=("a", "b"))
    for i in range(400):
        monitor.observe("a" if i % 2 else "b", proposed=True, accepted=i % 8 > 1)
    found = monitor.report()
    (two,) = found.pairs
    assert two.bias is not None
    assert two.bias.lower <= two.bias.estimate <= two.bias.upper
    assert "rejection ratio" in str(found)


def test_the_dashboard_has_its_promise(policy: fs.Policy) -> None:
    live: Any = SimpleNamespace(policy=kind_of(policy), length=policy.horizon)
    assert promise(live).startswith("“a” and “b” are rejected at most 2 times as often")
