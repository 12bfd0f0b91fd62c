"""Functions that select rows for figures, in the paper's order.

Every function accepts an empty frame, even one without columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from fairshield_experiments.results.names import LEARNERS, PERIODIC, UNDEFINED
from fairshield_experiments.results.parts import Results
from fairshield_experiments.results.rows import COLUMNS, SETTING, select
from fairshield_experiments.results.statistics import Estimate, wilson

RUN = [*SETTING, "run"]


def with_columns(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The frame with at least ``columns``; bounds are rounded, so that they can be compared."""
    missing = [column for column in columns if column not in frame]
    whole = frame.reindex(columns=[*frame.columns, *missing]) if missing else frame
    if "bound" in whole:
        whole = whole.assign(bound=pd.to_numeric(whole["bound"]).astype(float).round(6))
    return whole


def run_rows(results: Results) -> pd.DataFrame:
    """All rows of runs that were counted."""
    rows = with_columns(results.runs, COLUMNS)
    return rows.dropna(subset=["correct", "correct_unshielded"])


def finite(results: Results, *, pooled: bool = True) -> pd.DataFrame:
    """Rows behind the paper's FinHzn figures; ``pooled``: of the paper's learners only."""
    rows = select(run_rows(results), shield="finite-horizon", inputs="agnostic", min_support=0)
    return select(rows, learner=LEARNERS) if pooled else rows


def periodic(results: Results, shields: Sequence[str] = PERIODIC) -> pd.DataFrame:
    """Rows behind the paper's periodic figures."""
    return select(
        run_rows(results), shield=shields, inputs="agnostic", min_support=0, learner="ERM"
    )


def normalised(rows: pd.DataFrame, column: str = "bias") -> pd.Series:
    """Bias as a multiple of the bound."""
    return pd.to_numeric(rows[column]).astype(float) / rows["bound"].astype(float)


def in_order(found: Iterable[Any], known: Iterable[Any]) -> list[Any]:
    """Known values in their order, then all others."""
    known = list(known)
    return [*known, *sorted({value for value in found if value not in known}, key=str)]


def conventions(rows: pd.DataFrame) -> list[str]:
    """The conventions for empty groups that the rows have; the text's where there are no rows."""
    found = set(rows["undefined"].dropna())
    return [name for name in in_order(found, UNDEFINED) if name in found] or ["bias-0"]


def text_convention(rows: pd.DataFrame) -> str:
    """The convention of the paper's text; if the rows lack it, the one they have."""
    found = conventions(rows)
    return "bias-0" if "bias-0" in found else found[0]


def interval(share: Estimate | None) -> tuple[float, float, float] | None:
    r"""A percentage and its 95 % interval: Wilson's, for as many independent trials as its error.

    .. math:: n = p (1 - p) / s^2

    A share of 0 or 1, or of an unknown error, has as many trials as there are clusters.
    """
    if share is None:
        return None
    p, error = share.value / 100, share.error / 100
    trials = p * (1 - p) / error**2 if error > 0 and 0 < p < 1 else 0.0
    n = trials if math.isfinite(trials) and trials > 0 else share.clusters or share.n
    low, high = wilson(p, n)
    return share.value, 100 * low, 100 * high
