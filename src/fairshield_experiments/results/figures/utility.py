"""Figures of mean utility loss as coloured tables, by learner and by periodic shield."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from fairshield_experiments.results.figures import look
from fairshield_experiments.results.figures.look import LOOK
from fairshield_experiments.results.figures.rows import (
    conventions,
    finite,
    in_order,
    periodic,
)
from fairshield_experiments.results.names import ENVIRONMENTS, LEARNERS, PERIODIC, PROPERTIES
from fairshield_experiments.results.parts import Figure, Item, Product, Results
from fairshield_experiments.results.rows import select, totals

_BOUNDS = (0.1, 0.15, 0.2)
_MAPS = {"demographic-parity": "Greens", "equal-opportunity": "Blues"}
_SHORT = {"dynamic": "Dynamic\n(effort)", "inactive": "Dynamic\n(inactive)"}


@LOOK
def utility(results: Results) -> Product:
    """Utility loss by environment and learner (FinHzn) or periodic shield (ERM)."""
    runs = pd.concat(
        [totals(finite(results, pooled=False)), totals(periodic(results))], ignore_index=True
    )
    return Product(figures=tuple(
        _heat_map(select(runs, undefined=undefined, bound=bound), undefined, bound)
        for undefined in conventions(runs)
        for bound in _BOUNDS
    ))  # fmt: skip


def _heat_map(runs: pd.DataFrame, undefined: str, bound: float) -> Figure:
    learners = in_order(select(runs, shield="finite-horizon")["learner"].unique(), LEARNERS)
    environments = in_order(runs["environment"].unique(), ENVIRONMENTS)
    ratio = {"width_ratios": [len(learners), len(PERIODIC)]}
    drawing, panels = look.grid(2, 2, 5.0, gridspec_kw=ratio)
    for line, (prop, short) in zip(panels, PROPERTIES.items(), strict=True):
        part = select(runs, property=prop)
        left = _means(select(part, shield="finite-horizon"), environments, "learner", learners)
        right = _means(select(part, shield=PERIODIC), environments, "shield", PERIODIC)
        top = np.nanmax(np.concatenate([left, right], axis=1), initial=1.0)
        for axes, means in zip(line, (left, right), strict=True):
            _draw_cells(axes, means, _MAPS[prop], float(top))
        line[0].set_title(f"{short}: FinHzn by learner")
        line[1].set_title(f"{short}: periodic shields, ERM")
        _name(line[0], learners, [ENVIRONMENTS.get(e, e) for e in environments])
        _name(line[1], [_SHORT.get(s, look.SHIELDS[s].name) for s in PERIODIC], [])
    empty = look.CONVENTIONS.get(undefined, undefined)
    return look.finish(
        f"figure-utility-{bound:g}-{undefined}",
        f"Utility loss in percent, κ = {bound:g}, empty group: {empty}",
        "Mean over runs; darker is more. Hatched: not run. Dynamic goes on with best effort where "
        "its problem has no solution; inactive is Dynamic as the paper's text has it. "
        f"{look.convention_text(undefined)}",
        drawing,
    )  # fmt: skip


def _means(
    runs: pd.DataFrame, environments: Sequence[str], column: str, names: Sequence[str]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """``(environments, names)``: mean utility loss; NaN where nothing was run."""
    if runs.empty:
        return np.full((len(environments), len(names)), np.nan)
    means = runs.pivot_table(index="environment", columns=column, values="loss", aggfunc="mean")
    means = means.reindex(index=list(environments), columns=list(names))
    return np.asarray(means, dtype=np.float64)


def _draw_cells(
    axes: Axes, means: np.ndarray[Any, np.dtype[np.float64]], name: str, top: float
) -> None:
    scale, colours = Normalize(0, top), colormaps[name]
    for (i, j), value in np.ndenumerate(means):
        if np.isnan(value):
            face, ink, text, hatch = (1.0, 1.0, 1.0), look.INK, "", "///"
        else:
            # The darkest third of the map is left out: white on it and black on the rest both read.
            face = colours(0.75 * scale(max(value, 0.0)))[:3]
            ink, text, hatch = _ink_on(face), look.number(value), ""
        axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fc=face, ec=look.GREY if hatch else
                                 "white", hatch=hatch, lw=0.8, in_layout=False))  # fmt: skip
        axes.text(j, i, text, ha="center", va="center", color=ink, in_layout=False)
    axes.set_xlim(-0.5, means.shape[1] - 0.5)
    axes.set_ylim(means.shape[0] - 0.5, -0.5)


def _ink_on(face: tuple[float, float, float]) -> str:
    """Black or white, whichever has more contrast (relative luminance of WCAG)."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in face]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return look.BLACK if (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) else "white"


def _name(axes: Axes, columns: Sequence[str], rows: Sequence[str]) -> None:
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


ITEMS = (
    Item(name="figure-utility", title="Utility loss of all shields", needs=("finite", "periodic"),
         make=utility),
)  # fmt: skip
