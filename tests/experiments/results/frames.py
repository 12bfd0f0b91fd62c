"""Made-up results: small, random, valid, the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np
import pandas as pd

from fairshield_experiments.results.names import (
    BOUNDS,
    CROSS_FITTED,
    ENVIRONMENTS,
    INPUTS,
    LEARNERS,
    METRICS,
    PERIODIC_BOUNDS,
    PROPERTIES,
    UNDEFINED,
)
from fairshield_experiments.results.parts import Results

N_RUNS = 3
PERIODS = 3
ONLY_ERM = ("ERM",)
AGAIN = (1, 2)
"""Seeds of the trainings after the first."""


def results(seed: int = 0) -> Results:
    """Rows of every experiment."""
    rng = np.random.default_rng(seed)
    datasets, metrics, runs = _datasets(rng), _metrics(rng), _runs(rng)
    return Results(
        datasets=datasets,
        metrics=metrics,
        runs=runs,
        paths=_paths(rng),
        resources=_resources(rng),
        failures=pd.DataFrame(columns=["title", "error"]),
        facts={"seed": seed},
        trainings=pd.concat([_metrics(rng).assign(seed=number) for number in AGAIN]),
        training_runs=pd.concat([_runs_again(runs, rng).assign(seed=number) for number in AGAIN]),
        departed=_departed(runs),
    )


def _departed(runs: pd.DataFrame) -> pd.DataFrame:
    """All departures together, and two of them alone, which move the bias by a little."""
    plain = runs[
        (runs["undefined"] == "rate-0")
        & (runs["inputs"] == "agnostic")
        & (runs["min_support"] == 0)
        & runs["shield"].isin(["finite-horizon", "static-fair", "static-bounded", "dynamic"])
    ]
    labelled = plain[plain["property"] == "equal-opportunity"]
    return pd.concat(
        [
            rows.assign(departures=name, bias=factor * rows["bias"])
            for name, factor, rows in (
                ("as-published", 0.5, plain),
                ("prices", 0.8, plain),
                ("person-twice", 0.6, labelled),
            )
        ],
        ignore_index=True,
    )


def empty() -> Results:
    """Results of which nothing was run: frames without rows or columns."""
    nothing = pd.DataFrame()
    return Results(
        datasets=nothing,
        metrics=nothing,
        runs=nothing,
        paths=nothing,
        resources=nothing,
        failures=nothing,
    )


def _datasets(rng: np.random.Generator) -> pd.DataFrame:
    y1, gb = rng.uniform(0.1, 0.9, (2, len(ENVIRONMENTS)))
    return pd.DataFrame(
        {
            "environment": list(ENVIRONMENTS),
            "title": list(ENVIRONMENTS.values()),
            "task": "credit",
            "attribute": [name.split("-")[1] for name in ENVIRONMENTS],
            "instances": rng.integers(1000, 50000, len(ENVIRONMENTS)),
            "numeric": 5,
            "categorical": 7,
            "y0": 1 - y1,
            "y1": y1,
            "ga": 1 - gb,
            "gb": gb,
            "parity": rng.uniform(0, 0.3, len(ENVIRONMENTS)),
        }
    )


def _metrics(rng: np.random.Generator) -> pd.DataFrame:
    keys = list(product(ENVIRONMENTS, LEARNERS, METRICS))
    frame = pd.DataFrame(keys, columns=["environment", "learner", "metric"])
    return frame.assign(
        value=rng.uniform(0.5, 0.9, len(keys)), error=rng.uniform(0, 0.02, len(keys)), seconds=1.0
    )


def _resources(rng: np.random.Generator) -> pd.DataFrame:
    keys = [
        *product(["demographic-parity"], [50, 100, 150, 200], [1, 10]),
        *product(["equal-opportunity"], [25, 50, 75], [1, 10]),
    ]
    frame = pd.DataFrame(keys, columns=["property", "horizon", "levels"])
    return frame.assign(
        seconds=rng.uniform(0.01, 2, len(keys)), megabytes=rng.uniform(5, 500, len(keys))
    )


def _paths(rng: np.random.Generator) -> pd.DataFrame:
    keys = list(
        product(PROPERTIES, ("none", "static-fair", "static-bounded", "dynamic"), range(30))
    )
    frame = pd.DataFrame(keys, columns=["property", "shield", "decision"])
    return frame.assign(
        environment="adult-race", bound=0.1, run=0, bias=rng.uniform(0, 0.3, len(keys))
    )


def _settings() -> Iterator[tuple[str, str, str, str, float, str, str, int, int]]:
    """Of every experiment: ..., shield, inputs, min_support, periods."""

    def grid(
        learners: Iterable[str],
        bounds: Iterable[float],
        shields: Iterable[str],
        inputs: Iterable[str],
    ) -> Iterator[tuple[str, str, str, str, float, str, str]]:
        return product(ENVIRONMENTS, learners, PROPERTIES, UNDEFINED, bounds, shields, inputs)

    windows, periodic = (
        ("finite-horizon",),
        ("static-fair", "static-bounded", "dynamic", "inactive"),
    )
    for key in grid(LEARNERS, BOUNDS, windows, ["agnostic"]):
        yield (*key, 0, 1)
    for key in grid(ONLY_ERM, BOUNDS, windows, ["learned", "confidence", *CROSS_FITTED]):
        yield (*key, 0, 1)
    for key in grid(ONLY_ERM, BOUNDS, windows, ["agnostic"]):
        yield (*key, 10, 1)
    baselines = ("threshold-optimizer", "exponentiated-gradient", "logistic-regression")
    for key in grid(ONLY_ERM, BOUNDS, baselines, ["agnostic"]):
        yield (*key, 0, 1)
    for key in grid(ONLY_ERM, PERIODIC_BOUNDS, periodic, ["agnostic"]):
        yield (*key, 0, PERIODS)
    for key in grid(
        ONLY_ERM, [0.1], ("static-fair", "dynamic"), ["learned", "confidence", *CROSS_FITTED]
    ):
        yield (*key, 0, PERIODS)
    for key in grid(ONLY_ERM, [0.1], ("exact", "perpetual", "optimal"), INPUTS):
        yield (*key, 0, PERIODS)


def _runs(rng: np.random.Generator) -> pd.DataFrame:
    settings = pd.DataFrame(
        list(_settings()),
        columns=[
            *("environment", "learner", "property", "undefined", "bound", "shield", "inputs"),
            *("min_support", "periods"),
        ],
    )
    frame = settings.loc[settings.index.repeat(N_RUNS * settings["periods"])].reset_index(drop=True)
    within = frame.groupby(list(settings.columns), sort=False).cumcount()
    frame["run"] = within // frame["periods"]
    frame["period"] = within % frame["periods"] + 1
    single = np.where(frame["property"] == "demographic-parity", 100, 75)
    frame["period_length"] = np.where(frame["periods"] == 1, single, 50)
    return _with_outcomes(frame, rng)


def _runs_again(runs: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Runs of the settings that are run again with every training."""
    again = runs[(runs["inputs"] == "agnostic") & (runs["bound"] == 0.1)]
    again = again[(again["min_support"] == 0) & (again["undefined"] == "rate-0")]
    shields = ("finite-horizon", "static-fair", "static-bounded", "dynamic")
    again = again[again["shield"].isin(shields)]
    correct = again["correct"] - rng.binomial(again["overruled"], 0.3)
    return again.assign(correct=np.maximum(correct, 0))


def _with_outcomes(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    n = len(frame)
    length = frame["period_length"].to_numpy()
    # Results without a shield do not depend on the bound or the shield of a row.
    people = frame.groupby(["environment", "learner", "property", "periods", "run", "period"])
    person = people.ngroup().to_numpy()
    luck = rng.random((2, person.max() + 1))[:, person]
    without = np.round(length * (0.7 + 0.2 * luck[0])).astype(int)
    overruled = rng.binomial(length, 0.05)
    bias = np.round(frame["bound"].to_numpy() * rng.uniform(0, 1.1, n), 4)
    bias_unshielded = np.round(0.3 * luck[1], 4)
    condition = pd.array(rng.random(n) < 0.8, dtype="boolean")
    without_condition = frame["periods"].to_numpy() == 1
    condition[without_condition] = pd.NA
    seen = rng.integers(0, 30, (2, n))
    return frame.assign(
        bias=bias,
        bias_unshielded=bias_unshielded,
        fair=bias <= frame["bound"],
        fair_unshielded=bias_unshielded <= frame["bound"],
        condition=condition,
        condition_published=condition,
        correct=np.maximum(without - rng.binomial(overruled, 0.6), 0),
        correct_unshielded=without,
        overruled=overruled,
        cost=overruled * 1.0,
        margin=overruled * 0.2,
        expected=np.where(frame["shield"] == "dynamic", np.nan, 0.05 * length),
        n_a=seen[0],
        k_a=seen[0] // 2,
        n_b=seen[1],
        k_b=seen[1] // 2,
        seed=0,
        version="0",
    )
