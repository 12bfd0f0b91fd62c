"""Functions that select the rows of an item, and sum up runs over their periods."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from fairshield_experiments.results.names import LEARNERS

SETTING = (
    "environment",
    "learner",
    "property",
    "undefined",
    "bound",
    "shield",
    "inputs",
    "min_support",
    "period_length",
    "periods",
)
_NAMES = ("environment", "learner", "property", "undefined", "shield", "inputs")
_FLAGS = ("fair", "fair_unshielded", "condition", "condition_published")
_COUNTS = ("correct", "correct_unshielded", "overruled", "cost", "margin")
_AT_THE_END = ("bias", "bias_unshielded", "n_a", "n_b", "expected")
COLUMNS = (*SETTING, "run", "period", *_AT_THE_END, *_FLAGS, *_COUNTS)


def select(frame: pd.DataFrame, **wanted: object) -> pd.DataFrame:
    """Rows whose columns have the wanted value, or one of a collection of wanted values.

    An empty frame, or one without such a column, has no such rows.
    """
    if any(column not in frame for column in wanted):
        return frame.iloc[:0]
    keep = np.ones(len(frame), dtype=bool)
    for column, value in wanted.items():
        found = frame[column]
        if column == "bound":
            found = found.astype(float).round(6)
        if isinstance(value, Collection) and not isinstance(value, str):
            keep &= found.isin(list(value)).to_numpy(dtype=bool)
        else:
            keep &= (found == value).to_numpy(dtype=bool)
    return frame[keep]


def learners(frame: pd.DataFrame) -> tuple[str, ...]:
    """The paper's learners, then others that the frame knows."""
    found = set(frame["learner"]) if "learner" in frame else set()
    return (*LEARNERS, *sorted(found.difference(LEARNERS)))


def totals(runs: pd.DataFrame) -> pd.DataFrame:
    """A row per complete run: what its periods add up to.

    Flags hold in all periods, biases and counters are those at the end, and

    - ``loss``: relative utility loss in %, ``100 (correct_unshielded - correct) /
      correct_unshielded``, undefined where nothing was correct without a shield;
    - ``loss_absolute``: the same in percentage points of accuracy;
    - ``loss_rejecting``: the loss of rejecting everybody, where outcomes say who counts;
    - ``expected``: what the run was expected to cost, where every period was expected alike;
    - ``accuracy``, ``accuracy_unshielded`` and ``overruled_share`` in %;
    - ``normalised``, ``normalised_unshielded``: bias / bound;
    - ``unfair``, ``unfair_unshielded``;
    - ``supported``: both groups had ``min_support`` relevant people.
    """
    runs = runs.reindex(columns=list(COLUMNS))
    for column in (*_FLAGS, *_COUNTS, *_AT_THE_END):
        runs[column] = pd.to_numeric(runs[column].astype("Float64")).astype(float)
    keys = [*SETTING, "run"]
    how = dict.fromkeys(_FLAGS, "min") | dict.fromkeys(_COUNTS, "sum") | {"period": "count"}
    ordered = runs.sort_values("period", kind="stable").drop_duplicates([*keys, "period"])
    total = ordered.groupby(keys, observed=True, sort=False, dropna=False).agg(how).reset_index()
    last = ordered.drop_duplicates(keys, keep="last").set_index(keys)[list(_AT_THE_END)]
    total = total.join(last, on=keys)
    total = total[total["period"] == total["periods"]].reset_index(drop=True)
    # Categories compare as integers, which is faster: tables select thousands of times.
    return _derived(total.astype(dict.fromkeys(_NAMES, "category")))


def _derived(total: pd.DataFrame) -> pd.DataFrame:
    people = total["periods"].astype(float) * total["period_length"].astype(float)
    without = total["correct_unshielded"]
    lost = without - total["correct"]
    # People who count for equal opportunity have a positive outcome.
    labelled = total["property"] == "equal-opportunity"
    positives = total[["n_a", "n_b"]].astype(float).sum(axis=1).where(labelled)
    return total.assign(
        loss=100 * lost / without.where(without > 0),
        loss_absolute=100 * lost / people,
        loss_rejecting=100 * (without - people + positives) / without.where(without > 0),
        expected=total["expected"] * total["periods"].astype(float),
        accuracy=100 * total["correct"] / people,
        accuracy_unshielded=100 * without / people,
        overruled_share=100 * total["overruled"] / people,
        normalised=total["bias"] / total["bound"].astype(float),
        normalised_unshielded=total["bias_unshielded"] / total["bound"].astype(float),
        unfair=1 - total["fair"],
        unfair_unshielded=1 - total["fair_unshielded"],
        supported=total[["n_a", "n_b"]].min(axis=1) >= total["min_support"].astype(float),
    )


def paired(
    left: pd.DataFrame, right: pd.DataFrame, on: Collection[str], column: str
) -> pd.DataFrame:
    """Runs that both have, with ``difference``: ``column`` of ``left`` minus that of ``right``."""
    keys = list(on)
    both = left[[*keys, column]].merge(right[[*keys, column]], on=keys, suffixes=("", "_right"))
    return both.assign(difference=both[column] - both[f"{column}_right"])
