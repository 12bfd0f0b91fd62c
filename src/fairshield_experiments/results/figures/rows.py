"""Rows as figures want them: chosen, added up by run, in the paper's order.

Every function takes an empty frame, even one without columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairshield_experiments.results.parts import Results

SETTING = [
    "environment", "learner", "property", "undefined", "bound", "shield", "inputs", "min_support",
]  # fmt: skip
RUN_COLUMNS = [
    *SETTING, "period_length", "periods", "run", "period", "bias", "bias_unshielded", "fair",
    "fair_unshielded", "condition", "condition_published", "correct", "correct_unshielded",
    "overruled", "cost", "margin",
]  # fmt: skip
PERIODIC = ("static-fair", "static-bounded", "dynamic", "inactive")


def with_columns(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The frame with at least ``columns``; bounds are rounded, so that they can be compared."""
    missing = [column for column in columns if column not in frame]
    whole = frame.reindex(columns=[*frame.columns, *missing]) if missing else frame
    if "bound" in whole:
        whole = whole.assign(bound=pd.to_numeric(whole["bound"]).round(6))
    return whole


def run_rows(results: Results) -> pd.DataFrame:
    """All rows of runs that were counted."""
    rows = with_columns(results.runs, RUN_COLUMNS)
    return rows.dropna(subset=["correct", "correct_unshielded"])


def pick(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """Rows whose columns have the wanted value, or one of the wanted values."""
    chosen = np.ones(len(frame), dtype=bool)
    for column, value in wanted.items():
        several = isinstance(value, list | tuple | set)
        chosen &= frame[column].isin(list(value) if several else [value]).to_numpy(bool)
    return frame[chosen]


def finite(results: Results) -> pd.DataFrame:
    """Rows behind the paper's FinHzn figures."""
    return pick(run_rows(results), shield="finite-horizon", inputs="agnostic", min_support=0)


def periodic(results: Results, shields: Sequence[str] = PERIODIC) -> pd.DataFrame:
    """Rows behind the paper's periodic figures."""
    rows = pick(run_rows(results), shield=tuple(shields), inputs="agnostic", min_support=0)
    return pick(rows, learner="ERM")


def by_run(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per setting and run.

    ``loss`` is the utility loss in percent, relative to the unshielded run; ``accuracy`` and
    ``accuracy_unshielded`` are in percent; a truth value holds if it held in every period.
    """
    truths = ["fair", "fair_unshielded", "condition", "condition_published"]
    sums = ["correct", "correct_unshielded", "overruled", "cost", "margin", "period_length"]
    flags = {name: rows[name].astype("boolean").fillna(False).astype(bool) for name in truths}
    numbers = {name: pd.to_numeric(rows[name]).astype(float) for name in sums}
    keyed = rows.assign(**flags, **numbers).groupby([*SETTING, "run"], sort=True, observed=True)
    runs = keyed[sums].sum().join(keyed[truths].all()).reset_index()
    before = runs["correct_unshielded"].where(runs["correct_unshielded"] > 0)
    people = runs["period_length"].where(runs["period_length"] > 0)
    return runs.assign(
        loss=100 * (before - runs["correct"]) / before,
        accuracy=100 * runs["correct"] / people,
        accuracy_unshielded=100 * runs["correct_unshielded"] / people,
    )


def normalised(rows: pd.DataFrame, column: str = "bias") -> pd.Series:
    """Bias as a multiple of the bound."""
    return pd.to_numeric(rows[column]).astype(float) / rows["bound"].astype(float)


def in_order(found: Iterable[Any], known: Iterable[Any]) -> list[Any]:
    """All known values in their order, then found ones that nobody foresaw."""
    known = list(known)
    return [*known, *sorted({value for value in found if value not in known}, key=str)]


def conventions(rows: pd.DataFrame) -> list[str]:
    """The conventions for empty groups that the rows have; the text's where there are no rows."""
    found = set(rows["undefined"].dropna())
    return [name for name in in_order(found, ("bias-0", "rate-0")) if name in found] or ["bias-0"]


def mean_and_error(values: pd.Series) -> tuple[float, float]:
    """Mean and its standard error, without what is not a number; NaN where there is nothing."""
    known = values.dropna().to_numpy(float)
    if not known.size:
        return float("nan"), float("nan")
    error = float(known.std(ddof=1) / np.sqrt(known.size)) if known.size > 1 else float("nan")
    return float(known.mean()), error


def share_interval(held: int, runs: int) -> tuple[float, float, float]:
    r"""A share in percent with its 95 % interval by Wilson's score.

    .. math::
        \frac{p + z^2/2n \pm z\sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}, \qquad z = 1.96
    """
    if runs == 0:
        return float("nan"), float("nan"), float("nan")
    z, p = 1.959964, held / runs
    centre = p + z * z / (2 * runs)
    reach = z * np.sqrt(p * (1 - p) / runs + z * z / (4 * runs * runs))
    scale = 100 / (1 + z * z / runs)
    return 100 * p, float(max((centre - reach) * scale, 0.0)), float((centre + reach) * scale)
