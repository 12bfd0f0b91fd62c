"""The table of statements in the paper's text, and whether our runs support them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from fairshield_experiments.results import cells, statistics
from fairshield_experiments.results.names import (
    BOUNDS,
    ENVIRONMENTS,
    LEARNERS,
    PROPERTIES,
    SHIELDS,
    UNDEFINED,
)
from fairshield_experiments.results.parts import Product, ReportTable, Results
from fairshield_experiments.results.rows import select
from fairshield_experiments.results.statistics import Estimate
from fairshield_experiments.results.tables.shared import (
    SAME_PEOPLE,
    common,
    convention,
    periods,
    windows,
)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence holds the runs of one property under one convention.

    Attributes
    ----------
    windows, periods
        A row per run of FinHzn, and of the periodic shields.
    steps
        A row per period of the periodic shields.
    """

    windows: pd.DataFrame
    periods: pd.DataFrame
    steps: pd.DataFrame


Found = tuple[str, bool] | None
"""What was found, and whether the claim holds; ``None``: not run."""


def _all(named: dict[str, Estimate | None], decimals: int = 2) -> str:
    return ", ".join(f"{name} {cells.estimate(found, decimals)}" for name, found in named.items())


def _values(named: dict[str, Estimate | None]) -> list[float] | None:
    """The values in order, if all are there."""
    values = [found.value for found in named.values() if found is not None]
    return values if len(values) == len(named) else None


def _always_fair(evidence: Evidence) -> Found:
    unfair = statistics.share(evidence.windows, "unfair")
    return None if unfair is None else (f"{cells.share(unfair)} % unfair", unfair.value == 0)


def _fair_training(evidence: Evidence) -> Found:
    frame = select(evidence.windows, bound=0.1)
    medians = {n: statistics.quantile(select(frame, learner=n), "loss", 0.5) for n in LEARNERS}
    values = _values(medians)
    return (_all(medians), max(values[1:]) < values[0]) if values else None


def _tighter_bound(evidence: Evidence) -> Found:
    means = {
        f"κ = {bound:g}:": statistics.mean(select(evidence.windows, bound=bound), "loss")
        for bound in BOUNDS
    }
    values = _values(means)
    return (_all(means), values == sorted(values, reverse=True)) if values else None


def _environments(evidence: Evidence) -> Found:
    def means(column: str, names: tuple[str, ...]) -> list[float]:
        found = (statistics.mean(select(evidence.windows, **{column: n}), "loss") for n in names)
        return [f.value for f in found if f is not None]

    places, learners = means("environment", tuple(ENVIRONMENTS)), means("learner", LEARNERS)
    if len(places) < 2 or len(learners) < 2:
        return None
    wide, narrow = max(places) - min(places), max(learners) - min(learners)
    words = f"means differ by {wide:.2f} between environments, by {narrow:.2f} between learners"
    return words, wide > narrow


def _least_and_most(evidence: Evidence) -> Found:
    """Losses on the people for whom both Dynamic and Static-BW met their condition."""
    frame = evidence.periods
    met = frame[frame["condition"] == 1]
    shields = {
        "inactive": select(met, shield="inactive"),
        "static-fair": select(frame, shield="static-fair"),  # its condition is hardly ever met
        "static-bounded": select(met, shield="static-bounded"),
    }
    same = common(shields.values(), SAME_PEOPLE)
    means = {
        SHIELDS[name]: statistics.mean(runs, "loss")
        for name, runs in zip(shields, same, strict=True)
    }
    values = _values(means)
    if not values:
        return None
    return f"{_all(means)} ({len(same[0])} runs)", values == sorted(values)


def _cost(evidence: Evidence) -> Found:
    frame = evidence.windows.dropna(subset=["loss", "cost"])
    if frame["loss"].nunique() < 2 or frame["cost"].nunique() < 2:
        return None
    r = float(frame["loss"].corr(frame["cost"]))
    return f"correlation {r:.2f}", r > 0.5


def _later_periods(evidence: Evidence) -> Found:
    frame = evidence.steps
    if frame.empty:
        return None
    lost = (frame["correct_unshielded"] - frame["correct"]).astype(float)
    early = frame["period"].astype(float) <= frame["periods"].astype(float) / 2
    first, second = float(lost[early].sum()), float(lost[~early].sum())
    if math.isclose(first + second, 0):
        return None
    return f"{100 * first / (first + second):.0f} % in the first half of periods", first > second


def _improvement(evidence: Evidence) -> Found:
    frame = evidence.periods
    shares: dict[str, Estimate | None] = {"no shield": statistics.share(frame, "fair_unshielded")}
    for shield in ("static-fair", "static-bounded", "inactive"):
        shares[SHIELDS[shield]] = statistics.share(select(frame, shield=shield), "fair")
    values = _values(shares)
    return (_all(shares, 1), min(values[1:]) > values[0]) if values else None


CLAIMS: dict[str, Callable[[Evidence], Found]] = {
    "With FinHzn every run is fair at the horizon": _always_fair,
    "Median utility loss is smaller with classifiers trained to be fair (κ = 0.1, %)": (
        _fair_training
    ),
    "A tighter bound costs more utility (FinHzn, %)": _tighter_bound,
    "Utility loss depends on the environment more than on the learner": _environments,
    "Cost and utility loss go together (correlation above 0.5)": _cost,
    "Dynamic loses least, Static-BW most, where their conditions are met (%)": _least_and_most,
    "Dynamic's utility loss falls in later periods": _later_periods,
    "Every periodic shield makes more runs fair at all ends of periods (%)": _improvement,
}


def claims(results: Results) -> Product:
    """The paper's statements beside what was found, with both conventions."""
    finite, periodic = windows(results), periods(results)
    steps = select(results.runs, shield="inactive", learner="ERM", inputs="agnostic")
    rows = []
    for prop, title in PROPERTIES.items():
        for undefined in UNDEFINED:
            wanted = {"property": prop, "undefined": undefined}
            evidence = Evidence(*(select(f, **wanted) for f in (finite, periodic, steps)))
            for words, find in CLAIMS.items():
                rows.append((words, title, convention(undefined), *_cells(find(evidence))))
    for undefined in UNDEFINED:
        found = _between_properties(select(finite, undefined=undefined))
        words = "DP costs less utility than EqOpp (FinHzn, %)"
        rows.append((words, "both", convention(undefined), *_cells(found)))
    order = [*CLAIMS]
    rows.sort(key=lambda row: order.index(row[0]) if row[0] in order else len(order))
    table = ReportTable(
        name="table-claims",
        title="What the paper says in words",
        columns=("claim", "property", "no relevant people", "found", "holds"),
        rows=tuple(rows),
        n_keys=3,
        note="Whether a claim holds is read off the numbers as they are; their standard errors "
        "say how surely.",
    )
    return Product(tables=(table,))


def _between_properties(frame: pd.DataFrame) -> Found:
    means = {
        title: statistics.mean(select(frame, property=prop), "loss")
        for prop, title in PROPERTIES.items()
    }
    values = _values(means)
    return (_all(means), values[0] < values[1]) if values else None


def _cells(found: Found) -> tuple[str, str]:
    if found is None:
        return cells.MISSING, cells.MISSING
    words, holds = found
    return words, "yes" if holds else "no"
