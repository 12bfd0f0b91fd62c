"""Figures of finite horizons: bias with and without the shield, and its cost in accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fairshield_experiments.results.figures import look
from fairshield_experiments.results.figures.look import LOOK
from fairshield_experiments.results.figures.rows import conventions, finite, in_order, normalised
from fairshield_experiments.results.names import ENVIRONMENTS, LEARNERS, PROPERTIES
from fairshield_experiments.results.parts import Figure, Item, Product, ReportTable, Results
from fairshield_experiments.results.rows import select, totals

_WIDEST = 6.0
_BIN = 0.2
_BOX = "Box: quartiles and median; whiskers: 5th and 95th percentile."


@LOOK
def bias_distribution(results: Results) -> Product:
    """Normalised bias of all FinHzn windows, with and without the shield."""
    rows = finite(results)
    drawing, panels = look.grid(2, 2, 4.3, sharex=True, sharey=True)
    for line, undefined in zip(panels, look.CONVENTIONS, strict=True):
        for axes, prop in zip(line, PROPERTIES, strict=True):
            _draw_distribution(axes, select(rows, property=prop, undefined=undefined))
            empty = look.CONVENTIONS[undefined]
            axes.set_title(f"{PROPERTIES[prop]}, empty group: {empty}")
        line[0].set_ylabel("windows (%)")
    for axes in panels[-1]:
        axes.set_xlabel("normalised bias, bias / κ")
    look.legend_above(drawing, [
        Patch(fc="none", ec=look.VERMILION, lw=1.4, label="without shield"),
        Patch(fc=look.SKY, ec=look.BLUE, hatch="///", label="with shield"),
        Line2D([], [], color=look.INK, ls="--", label="allowed"),
    ])  # fmt: skip
    caption = (
        "Distribution of the normalised bias at the end of the window over all environments, "
        f"learners and bounds. The last bar holds everything above {_WIDEST:g}."
    )
    title = "Bias with and without the FinHzn shield"
    return Product(figures=(look.finish("figure-bias-distribution", title, caption, drawing),))


def _draw_distribution(axes: Axes, rows: pd.DataFrame) -> None:
    after, before = (normalised(rows, name).dropna() for name in ("bias", "bias_unshielded"))
    if before.empty:
        look.say(axes)
        return
    # The shares in the text come from verdicts in integers.  In the picture 1e-9 is subtracted, so
    # that a bias of exactly κ is drawn left of the line.
    edges = np.arange(0, _WIDEST + 1.5 * _BIN, _BIN).tolist()
    styles: tuple[tuple[pd.Series, dict[str, Any]], ...] = (
        (after, {"color": look.SKY, "edgecolor": look.BLUE, "hatch": "///", "lw": 0.5}),
        (before, {"color": look.VERMILION, "histtype": "step", "lw": 1.4}),
    )
    for values, style in styles:
        shown = np.clip(values.to_numpy() - 1e-9, 0, _WIDEST + _BIN / 2)
        axes.hist(shown, edges, weights=np.full(len(shown), 100 / len(shown)), **style)
    axes.axvline(1, color=look.INK, ls="--", lw=1)
    unfair = [100 * (1 - rows[name].astype(float).mean()) for name in ("fair_unshielded", "fair")]
    text = f"unfair: {unfair[0]:.1f} % without,\n{unfair[1]:.1f} % with shield"
    text += f"\n{len(rows):,} windows"
    axes.text(0.98, 0.96, text, transform=axes.transAxes, ha="right", va="top", in_layout=False)


@dataclass(frozen=True)
class Line:
    """Line is fitted by least squares: ``loss = slope * cost + start``."""

    n: int
    slope: float
    start: float
    error: float
    explained: float


def fit(cost: np.ndarray[Any, Any], loss: np.ndarray[Any, Any]) -> Line | None:
    r"""The line through the runs and the standard error of its slope.

    .. math::
        b = S_{xy} / S_{xx}, \qquad
        \mathrm{se}(b)^2 = \frac{\sum (y - a - bx)^2}{(n - 2)\, S_{xx}}
    """
    known = np.isfinite(cost) & np.isfinite(loss)
    x, y = cost[known], loss[known]
    if x.size < 3 or np.ptp(x) == 0:
        return None
    dx, dy = x - x.mean(), y - y.mean()
    s_xx, s_xy, s_yy = dx @ dx, dx @ dy, dy @ dy
    slope = s_xy / s_xx
    rest = max(s_yy - slope * s_xy, 0.0)
    error = np.sqrt(rest / (x.size - 2) / s_xx)
    explained = 1 - rest / s_yy if s_yy > 0 else float("nan")
    return Line(x.size, float(slope), float(y.mean() - slope * x.mean()), float(error), explained)


_COSTS = {
    "overruled": ("number of people overruled", "people overruled", "% per person"),
    "margin": (
        "margin of those overruled",
        "sum of |score \N{MINUS SIGN} ½|",
        "% per unit",
    ),
}


@LOOK
def cost_utility(results: Results) -> Product:
    """Regression of utility loss on cost, by environment and bound."""
    runs = totals(finite(results))
    shown = conventions(runs)[0]
    figures = tuple(
        _regression(select(runs, property=prop, undefined=shown), prop, cost, shown)
        for cost in _COSTS
        for prop in PROPERTIES
    )
    return Product(figures=figures, tables=(_slopes(runs),))


def _regression(runs: pd.DataFrame, prop: str, cost: str, undefined: str) -> Figure:
    environments = in_order(runs["environment"].unique(), ENVIRONMENTS)
    n_rows = -(-(len(environments) + 1) // 3)
    drawing, panels = look.grid(n_rows, 3, 2.05 * n_rows)
    cells = panels.ravel()
    for axes, environment in zip(cells, environments, strict=False):
        axes.set_title(ENVIRONMENTS.get(environment, environment))
        _draw_regression(axes, select(runs, environment=environment), cost)
        axes.set_xlabel(_COSTS[cost][1])
    for axes in panels[:, 0]:
        axes.set_ylabel("utility loss (%)")
    for axes in cells[len(environments) :]:
        axes.set_axis_off()
    short = PROPERTIES[prop]
    cells[len(environments)].legend(
        handles=[Line2D([], [], color=b.colour, marker=b.marker, ls=b.line, ms=4, label=b.name)
                 for b in look.BOUNDS.values()],
        title=f"{short}: slope ± standard error\n({_COSTS[cost][2]})", loc="center",
        handlelength=3.2, title_fontsize=8.5,
    )  # fmt: skip
    return look.finish(
        f"figure-cost-utility-{short.lower()}-{cost}",
        f"Utility loss against the {_COSTS[cost][0]}, {short}",
        f"One point is one FinHzn run of any learner; lines are least squares per κ. "
        f"{look.convention_text(undefined)} Slopes under both conventions are in the table.",
        drawing,
    )


def _draw_regression(axes: Axes, runs: pd.DataFrame, cost: str) -> None:
    lines = []
    for bound, kind in look.BOUNDS.items():
        part = select(runs, bound=bound)
        x, y = part[cost].to_numpy(float), part["loss"].to_numpy(float)
        if not np.isfinite(y).any():
            continue
        axes.plot(x, y, kind.marker, ms=2.2, mew=0, color=kind.colour, alpha=0.35, rasterized=True)
        line = fit(x, y)
        if line is None:
            lines.append((f"{kind.name[4:]}: no slope", kind))
            continue
        ends = np.array([np.nanmin(x), np.nanmax(x)])
        axes.plot(ends, line.start + line.slope * ends, color=kind.colour, ls=kind.line, lw=1.6)
        lines.append((f"{kind.name[4:]}: {look.number(line.slope)} ± {line.error:.2f}", kind))
    if not lines:
        look.say(axes)
        return
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + (high - low) * 0.45)  # room for the slopes above the points
    text = "\n".join(text for text, _ in lines)
    axes.text(0.03, 0.99, text, transform=axes.transAxes, ha="left", va="top", linespacing=1.05,
              in_layout=False,
              bbox={"fc": "white", "ec": "none", "alpha": 0.7, "pad": 1})  # fmt: skip


def _slopes(runs: pd.DataFrame) -> ReportTable:
    lines = []
    kinds = ["property", "undefined", "environment", "bound"]
    for key, part in runs.groupby(kinds, sort=True, observed=True):
        prop, undefined, environment, bound = key
        cells = []
        for cost in _COSTS:
            line = fit(part[cost].to_numpy(float), part["loss"].to_numpy(float))
            cells += (
                [f"{look.number(line.slope, 3)} ± {line.error:.3f}", f"{line.explained:.2f}"]
                if line else ["–", "–"]
            )  # fmt: skip
        lines.append((
            PROPERTIES.get(prop, prop), look.CONVENTIONS.get(undefined, undefined),
            ENVIRONMENTS.get(environment, environment), f"{bound:g}", str(len(part)), *cells,
        ))  # fmt: skip
    return ReportTable(
        "figure-cost-utility-slopes",
        "Utility loss on cost: slopes ± standard error",
        ("property", "empty group", "environment", "κ", "runs", "% per person overruled", "R²",
         "% per unit of margin", "R²"),
        tuple(lines), 4,
        "Least squares over the FinHzn runs of all learners; – where cost or loss never varied.",
    )  # fmt: skip


@LOOK
def environments(results: Results) -> Product:
    """Box plots of utility loss by environment."""
    runs = totals(finite(results))
    names = in_order(runs["environment"].unique(), ENVIRONMENTS)
    labels = [ENVIRONMENTS.get(name, name).replace(" ", "\n", 1) for name in names]
    return _boxes(runs, "environment", names, labels, "all learners")


@LOOK
def learners(results: Results) -> Product:
    """Box plots of utility loss by learner."""
    runs = totals(finite(results, pooled=False))
    names = in_order(runs["learner"].unique(), LEARNERS)
    return _boxes(runs, "learner", names, names, "all environments")


def _boxes(
    runs: pd.DataFrame, column: str, names: Sequence[str], labels: Sequence[str], over: str
) -> Product:
    figures = []
    for undefined in conventions(runs):
        drawing, panels = look.grid(2, 1, 4.8, sharex=True)
        for axes, (prop, short) in zip(panels.ravel(), PROPERTIES.items(), strict=True):
            part = select(runs, property=prop, undefined=undefined)
            _draw_boxes(axes, part, column, names)
            axes.set_title(short)
            axes.set_ylabel("utility loss (%)")
            axes.set_xticks(range(len(names)), labels)
            axes.set_xlim(-0.6, len(names) - 0.4)
            axes.tick_params(axis="x", length=0)
        look.legend_above(drawing, [
            Patch(fc=b.colour, ec=look.INK, hatch=b.hatch, lw=0.7, label=b.name)
            for b in look.BOUNDS.values()
        ])  # fmt: skip
        figures.append(look.finish(
            f"figure-{column}s-{undefined}",
            f"Utility loss of FinHzn by {column}, empty group: "
            f"{look.CONVENTIONS.get(undefined, undefined)}",
            f"Runs of {over}. {_BOX} {look.convention_text(undefined)}",
            drawing,
        ))  # fmt: skip
    return Product(figures=tuple(figures))


def _draw_boxes(axes: Axes, runs: pd.DataFrame, column: str, names: Sequence[str]) -> None:
    if runs["loss"].dropna().empty:
        look.say(axes)
        return
    axes.axhline(0, color=look.GREY, lw=0.7, zorder=0)
    width = 0.8 / len(look.BOUNDS)
    for i, name in enumerate(names):
        if select(runs, **{column: name})["loss"].dropna().empty:
            axes.text(i, 0.5, "not run", transform=axes.get_xaxis_transform(), ha="center",
                      va="center", rotation=90, style="italic", color="#595959")  # fmt: skip
    for j, (bound, kind) in enumerate(look.BOUNDS.items()):
        at, values = [], []
        for i, name in enumerate(names):
            loss = select(runs, **{column: name}, bound=bound)["loss"].dropna().to_numpy(float)
            if loss.size:
                at.append(i + (j - (len(look.BOUNDS) - 1) / 2) * width)
                values.append(loss)
        box_plot(axes, at, values, kind, 0.82 * width)


def box_plot(
    axes: Axes, at: Sequence[float], values: Sequence[Any], kind: look.Look, width: float
) -> None:
    """Draw boxes with whiskers to the 5th and 95th percentile, in one style."""
    if not values:
        return
    axes.boxplot(
        values, positions=at, widths=width, whis=(5, 95), showfliers=False, manage_ticks=False,
        patch_artist=True, boxprops={"fc": kind.colour, "ec": look.INK, "hatch": kind.hatch,
                                     "lw": 0.7},
        medianprops={"color": look.INK, "lw": 1.6}, whiskerprops={"color": look.INK, "lw": 0.8},
        capprops={"color": look.INK, "lw": 0.8},
    )  # fmt: skip


ITEMS = (
    Item(name="figure-bias-distribution", title="Distribution of bias, FinHzn", needs=("finite",),
         make=bias_distribution),
    Item(name="figure-cost-utility", title="Utility loss and cost, FinHzn", needs=("finite",),
         make=cost_utility),
    Item(name="figure-environments", title="Utility loss by environment, FinHzn",
         needs=("finite",), make=environments),
    Item(name="figure-learners", title="Utility loss by learner, FinHzn", needs=("finite",),
         make=learners),
)  # fmt: skip
