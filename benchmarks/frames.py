"""Figures of frames: rows a second, by kind of frame and of group."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import fairshield as fs
from benchmarks.measure import Figure, best_of

ROWS = 1_000_000
LEAST = 2.0
NAMES = ("women", "men")


def _policies() -> dict[str, fs.Policy]:
    """Policies with horizon 100 and ten cost levels, for groups by name and by number."""
    prop = fs.DemographicParity("0.1")
    made = {}
    for kind, groups in (("string", NAMES), ("integer", (0, 1))):
        cells = {
            (g, r, 0.05 * (i + 1)): 0.025 for g in groups for r in (False, True) for i in range(10)
        }
        made[kind] = fs.synthesize(prop, fs.InputModel.from_table(cells), horizon=100)
    return made | {"categorical": made["string"]}


def _frames() -> Iterator[tuple[str, str, Any]]:
    """Kind of frame, kind of group, frame."""
    rng = np.random.default_rng(0)
    number = (rng.random(ROWS) < 0.6).astype(np.int64)
    rest = {"proposed": rng.random(ROWS) < 0.5, "cost": rng.random(ROWS) / 2}
    names = pd.Series(np.array(NAMES, object)[number], dtype="str")
    groups = {"string": names, "categorical": names.astype("category"), "integer": number}
    for kind, column in groups.items():
        frame = pd.DataFrame({"group": column, **rest})
        yield "pandas", kind, frame
        yield "polars", kind, pl.from_pandas(frame)
        yield "pyarrow", kind, pa.Table.from_pandas(frame, preserve_index=False)


def frames() -> Iterator[Figure]:
    """Figures of deciding a million rows, each with a cost of its own."""
    policies = _policies()
    for frame_kind, kind, frame in _frames():
        run = partial(fs.shield_frame, frame, policies[kind], cost="cost")
        rate = ROWS / best_of(run, 5) / 1e6
        yield Figure(
            f"shield_frame, {frame_kind}, {kind} groups, T = 100",
            f"{rate:.1f} M rows/s",
            f"≥ {LEAST:g} M rows/s",
            rate >= LEAST,
        )
