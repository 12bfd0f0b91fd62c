"""``measure`` measures time and memory of synthesis by horizon."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from time import perf_counter

import pandas as pd

import fairshield as fs
from fairshield_experiments.simulate import PROPERTIES, PropertyKind

BOUND = "0.05"
_REPEATS = 5


def measure(kind: PropertyKind, levels: int, horizons: Sequence[int]) -> pd.DataFrame:
    """A row for each horizon: seconds of the best of five syntheses on one thread, megabytes.

    ``megabytes`` is the most that a synthesis has allocated at a time, ``policy_megabytes`` what
    the policy takes in the end.
    """
    prop, inputs = PROPERTIES[kind](BOUND), _inputs(levels)
    fs.synthesize(prop, inputs, horizon=5, threads=1)  # compiles, or loads what was compiled
    rows = []
    for horizon in horizons:
        times = []
        for _ in range(_REPEATS):
            begin = perf_counter()
            policy = fs.synthesize(prop, inputs, horizon=horizon, threads=1)
            times.append(perf_counter() - begin)
        rows.append(
            {
                "property": kind,
                "levels": levels,
                "horizon": horizon,
                "seconds": min(times),
                "megabytes": _peak(prop, inputs, horizon) / 1e6,
                "policy_megabytes": policy.nbytes / 1e6,
            }
        )
    return pd.DataFrame(rows)


def _peak(prop: fs.Property, inputs: fs.InputModel, horizon: int) -> int:
    """Most bytes allocated at a time; apart from the timing, which it would slow down."""
    tracemalloc.start()
    try:
        fs.synthesize(prop, inputs, horizon=horizon, threads=1)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _inputs(levels: int) -> fs.InputModel:
    """Groups and proposals all equally likely, at costs 1, 2, ..."""
    costs = range(1, levels + 1)
    table = {
        (g, r, float(c)): 0.25 / levels for g in ("a", "b") for r in (False, True) for c in costs
    }
    return fs.InputModel.from_table(table, outcomes={"a": 0.5, "b": 0.5})
