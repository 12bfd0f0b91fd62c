"""What a notebook shows of an object is a summary for a person, whatever its tables hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import fairshield as fs
from fairshield.analysis.simulate import simulate
from fairshield.periodic import Perpetual, StaticFair
from fairshield.runtime.evaluate import evaluate

PROP = fs.DemographicParity("0.2")
INPUTS = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
THREE = fs.InputModel.agnostic({"a": 0.4, "b": 0.3, "c": 0.3})
WORDS = "demographic parity ≤ 1/5"


@cache
def policy(horizon: int = 6, **options: Any) -> fs.Policy:
    return fs.synthesize(PROP, INPUTS, horizon=horizon, **options)


def decided(shield: Any, groups: str = "abab") -> Any:
    for group in groups:
        shield.decide(group, proposed=True)
    return shield


def watched() -> fs.Monitor:
    monitor = fs.Monitor(PROP, shadow=policy())
    monitor.observe_many(list("abab"), [True, False, True, True])
    return monitor


SHOWN: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "policy": (policy, ["<Policy: ", WORDS, "6 decisions", "a and b", "expected cost"]),
    "long": (lambda: policy(60, method="long"), ["<Policy: ", "long method"]),
    "three groups": (
        lambda: fs.synthesize(fs.DemographicParity("0.5"), THREE, horizon=4),
        ["<Policy: ", "a, b and c"]),
    "periodic policy": (lambda: StaticFair(PROP, INPUTS, 6), ["<StaticFair: ", WORDS]),
    "perpetual policy": (lambda: Perpetual(PROP, INPUTS, 10), ["<Perpetual: ", WORDS]),
    "shield": (
        lambda: decided(fs.Shield(policy())),
        ["<Shield: ", WORDS, "4 of 6 decisions", "'a': (2, 2)"]),
    "shield at its end": (
        lambda: decided(fs.Shield(policy()), "ababab"), ["6 of 6 decisions", ", fair>"]),
    "stream": (
        lambda: decided(fs.Run(policy(), unseen="follow"), "ababababc"),
        ["<Run: ", "window 2, 2 of 6", "1 of unseen groups followed"]),
    "perpetual shield": (
        lambda: decided(fs.PerpetualShield(PROP, INPUTS, period=10)),
        ["<PerpetualShield: ", "period 1, 4 of 10 decisions"]),
    "periodic stream": (
        lambda: decided(fs.Run(StaticFair(PROP, INPUTS, 6))), ["period 1, 4 of 6"]),
    "simulation": (
        lambda: simulate(policy(), n_windows=50, rng=np.random.default_rng(0)),
        ["<Simulation: 50 windows of 6 decisions: 0 unfair", "overruled"]),
    "evaluation": (lambda: evaluate(policy()), ["<Evaluation: 6 decisions: expected cost"]),
    "audit": (
        lambda: fs.audit(PROP, [{"group": g, "accepted": g == "a"} for g in "abab"], horizon=4),
        ["<AuditReport: ", WORDS, "violated in 1 of 1 windows", "4 decisions in 1 windows"]),
    "audit of a beginning": (
        lambda: fs.audit(PROP, [{"group": g, "accepted": True} for g in "ab"], horizon=4),
        ["nothing had to hold yet"]),
    "monitor's report": (lambda: watched().report(), ["<MonitorReport: ", WORDS]),
    "shadow's report": (
        lambda: watched().report().shadow, ["<ShadowReport: ", "would have overruled"]),
    "verification": (lambda: fs.verify(policy()), ["<Verification: ", WORDS, "guarantee holds"]),
    "pareto": (
        lambda: fs.pareto(fs.DemographicParity, INPUTS, bounds=["0.2", "1"], horizons=[4, 6]),
        ["<Pareto: demographic parity", "4 decisions: 1/5 costs", "6 decisions: "]),
    "input model": (lambda: INPUTS, ["<InputModel: a 0.5, b 0.5; cost 1>"]),
    "input schedule": (
        lambda: fs.InputSchedule([(INPUTS, 3), (INPUTS, 3)]), ["<InputSchedule: "]),
}  # fmt: skip


@pytest.mark.parametrize("what", SHOWN)
def test_what_is_shown_is_a_summary(what: str) -> None:
    made, words = SHOWN[what]
    text = repr(made())
    assert [word for word in words if word not in text] == [], text
    assert "array(" not in text
    assert len(text) < 1000
    assert text.startswith("<")
    assert text.endswith(">")


def test_a_shield_says_whether_its_counters_hold_and_whether_that_shows_anything() -> None:
    shields = (fs.Shield(policy()), fs.PerpetualShield(PROP, INPUTS, period=10))
    for shield in (*shields, fs.Run(policy())):
        assert (shield.holds(), shield.verdict()) == (True, "exempt")  # nobody was seen
        decided(shield, "aabb")
        assert (shield.holds(), shield.verdict()) == (True, "fair")
    human = fs.Shield(policy())
    for group in "aabb":
        human.record(human.advise(group, proposed=True), final=group == "a")
    assert (human.holds(), human.verdict()) == (False, "unfair")
