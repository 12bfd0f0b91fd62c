"""Rows and words that several tables share."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from fairshield_experiments.results.names import LEARNERS, PERIODIC, PERIODIC_BOUNDS, UNDEFINED
from fairshield_experiments.results.parts import Results
from fairshield_experiments.results.rows import select, totals

SAME_PEOPLE = ("environment", "learner", "property", "undefined", "bound", "run")
"""Runs that agree in these, and in the length of their periods, are of the same people."""


def windows(results: Results, **wanted: object) -> pd.DataFrame:
    """Runs of the finite-horizon shield with the paper's learners and input model."""
    defaults = {
        "shield": "finite-horizon",
        "learner": LEARNERS,
        "inputs": "agnostic",
        "min_support": 0,
    }
    return totals(select(results.runs, **{**defaults, **wanted}))


def periods(results: Results, **wanted: object) -> pd.DataFrame:
    """Runs of the paper's periodic shields with ERM and the paper's input model."""
    defaults = {
        "shield": PERIODIC,
        "learner": "ERM",
        "inputs": "agnostic",
        "min_support": 0,
        "bound": PERIODIC_BOUNDS,
    }
    return totals(select(results.runs, **{**defaults, **wanted}))


def common(frames: Iterable[pd.DataFrame], keys: Iterable[str]) -> list[pd.DataFrame]:
    """Of each frame, the rows whose ``keys`` all of them have."""
    frames, names = list(frames), list(keys)
    shared = frames[0][names].drop_duplicates()
    for frame in frames[1:]:
        shared = shared.merge(frame[names].drop_duplicates(), on=names)
    return [frame.merge(shared, on=names) for frame in frames]


def missing(frame: pd.DataFrame, expected: int, *columns: str) -> str:
    """A sentence on the combinations of ``columns`` of which nothing was run."""
    found = len(frame[list(columns)].drop_duplicates())
    if found in (0, expected):
        return ""
    return f"Nothing was run for {expected - found} of {expected} pairs of {' and '.join(columns)}."


def left_out(frame: pd.DataFrame) -> str:
    """A sentence on runs whose utility loss is undefined."""
    count = int(frame["loss"].isna().sum())
    return f"{count} runs without a correct unshielded decision are left out." if count else ""


def convention(undefined: str) -> str:
    """What a group without relevant people counts as, for people."""
    return {str(name): words for name, words in UNDEFINED.items()}.get(undefined, undefined)


def sentences(*parts: str) -> str:
    """The sentences that are not empty, joined."""
    return " ".join(filter(None, parts))
