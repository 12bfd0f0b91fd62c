"""``run_demo`` runs shields for two stories on the same windows, with and without them.

* *Lending.*  A score threshold accepts group b more often than group a.  Acceptance rates must
  not differ by more than a tenth after 100 decisions; overruling costs the score's distance from
  the threshold.  The same shield then meets applicants it was not made for.
* *Bilingual team.*  A team that speaks two languages evenly grows, and one language applies more
  often.  It starts with people on it, because from an empty team a shield must reject everybody:
  no speaker of the second language may ever arrive.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairshield.analysis.simulate import Simulation, simulate
from fairshield.base.counts import Counts
from fairshield.base.errors import InvalidValueError
from fairshield.inputs import InputModel
from fairshield.policy import Policy
from fairshield.reports.plots import (
    Comparison,
    DrawnWindows,
    plot_running_bias,
    require_matplotlib,
    sparkline,
    tenths,
)
from fairshield.spec import DemographicParity, Property, ShareParity
from fairshield.synthesis import synthesize

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of the work that is done."""

PICTURE, NUMBERS = "running-bias.png", "demo.json"
_HISTORY = 5000
_SHARE_OF_A, _MEAN_SCORES, _CONCENTRATION = 0.325, (0.45, 0.55), 4.0
_WINDOWS_DRAWN, _WINDOWS_KEPT = 200, 1000


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Scenario says what is synthesised, and who then arrives (``None``: who was expected)."""

    name: str
    title: str
    setting: str
    file: str
    prop: Property
    inputs: InputModel
    horizon: int
    start: Counts | None = None
    arrivals: InputModel | None = None


@dataclass(frozen=True, kw_only=True)
class ScenarioReport:
    """ScenarioReport holds the figures of one scenario.

    Costs are per window; ``cost_error`` is a standard error.
    """

    name: str
    guarantee: str
    setting: str
    windows: int
    horizon: int
    unfair_without: int
    unfair_with: int
    overruled_share: float
    mean_cost: float
    cost_error: float
    expected_cost: float
    overruled_by_tenth: tuple[int, ...]
    synthesis_seconds: float
    artifact: str
    artifact_bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class DemoReport:
    """DemoReport holds all figures of a run, which are written to :data:`NUMBERS`."""

    out: Path
    windows: int
    seed: int
    compile_seconds: float
    scenarios: tuple[ScenarioReport, ...]

    @property
    def picture(self) -> Path:
        """Where the picture is."""
        return self.out / PICTURE

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; paths are relative to the output folder."""
        return {**asdict(self), "out": str(self.out), "picture": PICTURE}

    def columns(self) -> tuple[str, ...]:
        """Headings of the table: what is measured, then the scenarios."""
        return ("", *(s.name for s in self.scenarios))

    def rows(self) -> list[tuple[str, ...]]:
        """Lines of the table, as text."""
        cells: list[tuple[str, Callable[[ScenarioReport], str]]] = [
            ("unfair windows without the shield", lambda s: f"{s.unfair_without} of {s.windows}"),
            ("unfair windows with the shield", lambda s: f"{s.unfair_with} of {s.windows}"),
            ("decisions overruled", lambda s: f"{s.overruled_share:.1%}"),
            ("cost per window", lambda s: f"{s.mean_cost:.3f} ± {s.cost_error:.3f}"),
            ("cost expected by the policy", lambda s: f"{s.expected_cost:.3f}"),
            ("overruled, by tenth of the window", lambda s: sparkline(s.overruled_by_tenth)),
            ("of which in the last tenth", lambda s: _last(s.overruled_by_tenth)),
            ("synthesis", lambda s: f"{1000 * s.synthesis_seconds:.0f} ms"),
            ("policy file", lambda s: f"{s.artifact_bytes / 1e6:.2f} MB"),
        ]
        return [(label, *map(cell, self.scenarios)) for label, cell in cells]


def run_demo(
    out: Path, windows: int = 1000, seed: int = 0, progress: Progress | None = None
) -> DemoReport:
    """Run every scenario; policies, picture and numbers are written into ``out``."""
    for name, value, least in (("windows", windows, 1), ("seed", seed, 0)):
        if value < least:
            raise InvalidValueError(f"{name} must be at least {least}, got {value}")
    require_matplotlib()
    tell = progress or (lambda doing, done: None)
    out.mkdir(parents=True, exist_ok=True)
    tell("compiling", 0.0)
    todo = scenarios(seed)
    began = time.perf_counter()
    _compile(todo)
    compiled = time.perf_counter() - began
    reports, comparisons = [], []
    for i, scenario in enumerate(todo):
        tell(scenario.name, (i + 1) / (len(todo) + 2))
        report, comparison = _run(scenario, out, windows, np.random.default_rng([seed, i + 1]))
        reports.append(report)
        if scenario.arrivals is None:
            comparisons.append(comparison)
    tell("drawing", 1 - 1 / (len(todo) + 2))
    plot_running_bias(comparisons, out / PICTURE, drawn=_WINDOWS_DRAWN)
    demo = DemoReport(
        out=out, windows=windows, seed=seed, compile_seconds=compiled, scenarios=tuple(reports)
    )
    text = json.dumps(demo.to_dict(), indent=2, ensure_ascii=False)
    (out / NUMBERS).write_text(text + "\n", encoding="utf-8")
    tell("done", 1.0)
    return demo


def scenarios(seed: int) -> list[Scenario]:
    """The stories, in the order of the table."""
    rng = np.random.default_rng([seed, 0])
    lending = _lending(_score_model(rng, _MEAN_SCORES))
    wrong = replace(
        lending,
        name="lending, wrong model",
        setting="The same shield; now group b is the one with lower scores.",
        arrivals=_score_model(rng, _MEAN_SCORES[::-1]),
    )
    return [lending, wrong, _team()]


def _lending(inputs: InputModel) -> Scenario:
    people = inputs.probs.sum(axis=2)
    rate_a, rate_b = people[:, 1] / people.sum(axis=1)
    return Scenario(
        name="lending",
        title="Lending: acceptance rates may differ by at most 1/10 after 100 decisions",
        setting=f"{people[0].sum():.0%} of applicants are in group a; the model proposes to "
        f"accept {rate_a:.0%} of a and {rate_b:.0%} of b; overruling costs |score - 0.5|.",
        file="lending.shield",
        prop=DemographicParity("0.1"),
        inputs=inputs,
        horizon=100,
    )


def _team() -> Scenario:
    shares = {"A": 0.6, "B": 0.4}
    return Scenario(
        name="bilingual team",
        title="Bilingual team: languages may differ by at most 1/10 of the team",
        setting="A team of 20 A and 20 B meets 60 applicants, three in five of them A; half of "
        "either language are proposed; overruling costs 1.",
        file="team.shield",
        prop=ShareParity("0.1"),
        inputs=InputModel.agnostic(shares),
        horizon=60,
        start=Counts({"A": (60, 20), "B": (40, 20)}),
    )


def _score_model(rng: np.random.Generator, means: tuple[float, ...]) -> InputModel:
    """Estimated from synthetic scores, one mean per group; accepted from 0.5 on."""
    groups = np.where(rng.random(_HISTORY) < _SHARE_OF_A, "a", "b")
    mean = np.where(groups == "a", *means)
    scores = rng.beta(mean * _CONCENTRATION, (1 - mean) * _CONCENTRATION)
    return InputModel.from_scores(scores, groups, cost="confidence", bins=10)


def _compile(todo: list[Scenario]) -> None:
    """Compile what the scenarios need, or load it, so that timings leave this out."""
    for scenario in todo:
        # At full horizon: short windows do not use all kernels.
        policy = _synthesize(scenario)
        simulate(policy, n_windows=1, rng=np.random.default_rng(0), inputs=scenario.arrivals)


def _synthesize(scenario: Scenario) -> Policy:
    return synthesize(
        scenario.prop, scenario.inputs, horizon=scenario.horizon, start=scenario.start
    )


def _run(
    scenario: Scenario, out: Path, windows: int, rng: np.random.Generator
) -> tuple[ScenarioReport, Comparison]:
    began = time.perf_counter()
    policy = _synthesize(scenario)
    seconds = time.perf_counter() - began
    path = out / scenario.file
    digest = policy.save(path)
    keep = min(windows, _WINDOWS_KEPT)
    sim = simulate(policy, n_windows=windows, rng=rng, inputs=scenario.arrivals, keep=keep)
    by_position = sim.overruled_at.sum(axis=1)
    report = ScenarioReport(
        name=scenario.name,
        guarantee=_guarantee(policy),
        setting=scenario.setting,
        windows=windows,
        horizon=policy.horizon,
        unfair_without=sim.n_unfair_unshielded,
        unfair_with=sim.n_unfair,
        overruled_share=sim.overruled_share,
        mean_cost=sim.mean_paid,
        cost_error=sim.paid_error,
        expected_cost=policy.expected_cost,
        overruled_by_tenth=tuple(
            int(by_position[slice(*part)].sum()) for part in tenths(policy.horizon)
        ),
        synthesis_seconds=seconds,
        artifact=scenario.file,
        artifact_bytes=path.stat().st_size,
        sha256=digest,
    )
    return report, _comparison(scenario, policy, sim)


def _guarantee(policy: Policy) -> str:
    return f"{policy.prop} after {policy.horizon} decisions, on every input sequence"


def _comparison(scenario: Scenario, policy: Policy, sim: Simulation) -> Comparison:
    drawn, n = min(_WINDOWS_DRAWN, sim.n_windows), sim.n_windows
    return Comparison(
        title=scenario.title,
        groups=policy.groups,
        before=DrawnWindows(
            prop=policy.prop,
            counters=sim.counters_unshielded,
            unfair=sim.n_unfair_unshielded,
            windows=n,
        ),
        after=DrawnWindows(prop=policy.prop, counters=sim.counters, unfair=sim.n_unfair, windows=n),
        overruled_at=sim.overruled_at.sum(axis=1),
        notes=(
            "black: one window, on both sides; dots: people overruled",
            f"{sim.overruled_share:.1%} of decisions overruled; {drawn} of {n} windows drawn",
            f"cost {sim.mean_paid:.3f} ± {sim.paid_error:.3f} per window, "
            f"expected {policy.expected_cost:.3f}",
        ),
    )


def _last(counts: tuple[int, ...]) -> str:
    return f"{counts[-1] / (sum(counts) or 1):.0%}"
