"""``plot_periods`` draws periodic shields that decided the same runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairshield.periodic.cumulative import compared_kinds
from fairshield.reports.plots.look import BLUE, GREY, INK, ORANGE, require_matplotlib, save_small

if TYPE_CHECKING:
    # Imported for types only: the module loads the compiler, which drawing does not need.
    from fairshield.periodic.compare import PeriodicComparison, Row

_PALETTE = ("#E69F00", "#CC79A7", BLUE, "#56B4E9", "#009E73", ORANGE, "#F0E442")
"""Colours of shields, in the order in which comparisons offer them."""
_ERROR = {"ecolor": INK, "capsize": 3, "lw": 1.1}


def plot_periods(comparison: PeriodicComparison, path: Path, *, dpi: int = 140) -> None:
    """Write a picture of periodic shields on the same runs.

    Four panels: how many runs were fair at the end of every period, and how many met the
    condition; cost; cost by period; worst bias.  Bars end in their errors.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 7.4), layout="constrained")
    (fair, cost), (by_period, bias) = figure.subplots(2, 2)
    offered = dict(zip(compared_kinds(), cycle(_PALETTE), strict=False)) | {"no shield": GREY}
    colours = {row.name: offered.get(row.name, INK) for row in comparison.rows}
    _draw_shares(fair, comparison.rows, colours)
    _draw_means(cost, comparison.rows, colours, lambda row: row.paid, "cost of a run")
    _draw_means(
        bias,
        comparison.rows,
        colours,
        lambda row: row.mean_largest_bias,
        "worst bias at a period end",
    )
    bias.axvline(comparison.limit, color=INK, lw=1.2, ls="--")
    for i, row in enumerate(comparison.rows):
        bias.plot(row.largest_bias, i, marker=">", ms=6, mfc="white", mec=INK, zorder=7)
    bias.set_xlabel("mean ± standard error;  ▷ largest;  dashed: allowed")
    _draw_by_period(by_period, comparison, colours)
    figure.suptitle(
        f"{comparison.prop} after every {comparison.length} decisions: the same "
        f"{comparison.runs:,} runs of {comparison.periods} periods",
        size=13, color=INK,
    )  # fmt: skip
    save_small(figure, path, dpi)


def _draw_shares(axes: Any, rows: Sequence[Row], colours: dict[str, str]) -> None:
    for i, row in enumerate(rows):
        share = row.fair
        error = [[100 * (share.value - share.low)], [100 * (share.high - share.value)]]
        axes.barh(i, 100 * share.value, color=colours[row.name], height=0.62, xerr=error,
                  error_kw=_ERROR)  # fmt: skip
        if row.condition is not None:
            met = row.condition
            error = [[100 * (met.value - met.low)], [100 * (met.high - met.value)]]
            axes.errorbar(100 * met.value, i, xerr=error, fmt="D", ms=6, mfc="white", mec=INK,
                          ecolor=INK, capsize=2, zorder=5)  # fmt: skip
    _name_rows(axes, [f"{row.name}  {100 * row.fair.value:.3g} %" for row in rows])
    axes.set_xlim(0, 105)
    axes.set_xlabel("% of runs, 95 % interval;  ◇ condition of the theorem met")
    axes.set_title("fair at the end of every period", loc="left", size=11, color=INK)


def _draw_means(
    axes: Any, rows: Sequence[Row], colours: dict[str, str], value: Any, title: str
) -> None:
    for i, row in enumerate(rows):
        mean = value(row)
        axes.barh(i, mean.value, color=colours[row.name], height=0.62, xerr=mean.error or 0.0,
                  error_kw=_ERROR)  # fmt: skip
    _name_rows(axes, [f"{row.name}  {value(row).value:.3g}" for row in rows])
    axes.margins(x=0.12)
    axes.set_xlabel("mean over runs ± standard error")
    axes.set_title(title, loc="left", size=11, color=INK)


def _draw_by_period(axes: Any, comparison: PeriodicComparison, colours: dict[str, str]) -> None:
    at = np.arange(1, comparison.periods + 1)
    for row in comparison.rows[1:]:
        values = np.array([mean.value for mean in row.paid_by_period])
        errors = [mean.error or 0.0 for mean in row.paid_by_period]
        values[values == 0.0] = np.nan  # has no place on a logarithmic axis
        axes.errorbar(at, values, yerr=errors, color=colours[row.name], lw=1.6,
                      marker="o", ms=4, capsize=2, label=row.name)  # fmt: skip
    axes.set_yscale("log")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("period")
    axes.set_title("cost by period (logarithmic, without zeros)", loc="left", size=11, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    if len(comparison.rows) > 1:
        axes.legend(frameon=False, fontsize=9)


def _name_rows(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
