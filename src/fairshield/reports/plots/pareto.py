"""``plot_pareto`` draws what each bound costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairshield.reports.plots.look import (
    BLUE,
    INK,
    ORANGE,
    WIDTH_INCHES,
    require_matplotlib,
    save_small,
)

if TYPE_CHECKING:
    # Imported for types only: the module loads the compiler, which drawing does not need.
    from fairshield.analysis.pareto import Pareto, Trade

_LINES = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def plot_pareto(found: Pareto, path: Path, *, dpi: int = 140) -> None:
    """Write a picture of what each bound costs, and of windows without a shield.

    The left panel shows the expected cost of a window by bound, with a line for each horizon, a
    hollow mark where that cost is 0, and a ring at its knee.  The right panel shows the share of
    windows that end unfair without a shield.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_INCHES, 4.1))
    cost, unfair = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.065, right=0.985, top=0.81, bottom=0.13, wspace=0.17)
    for i, horizon in enumerate(found.horizons):
        rows, colour = found.of(horizon), _LINES[i % len(_LINES)]
        name, at = f"{horizon:,} decisions", [float(row.bound) for row in rows]
        costs = [row.expected_cost if np.isfinite(row.expected_cost) else np.nan for row in rows]
        knee = found.knee(horizon)
        cost.plot(at, costs, color=colour, lw=1.8, marker="o", ms=3.5,
                  label=name + ("" if knee is None else _knee(knee)))  # fmt: skip
        free = [row for row in rows if row.free]
        cost.plot([float(row.bound) for row in free], [0.0] * len(free), "o", ms=7, mfc="white",
                  mec=colour, mew=1.5, clip_on=False, zorder=5)  # fmt: skip
        if knee is not None:
            cost.plot(float(knee.bound), knee.expected_cost, "o", ms=10, mfc="none", mec=colour,
                      mew=1.4, zorder=6)  # fmt: skip
        chances = [row.unfair_unshielded for row in rows]
        shares = [np.nan if chance is None else 100 * chance for chance in chances]
        unfair.plot(at, shares, color=colour, lw=1.8, marker="o", ms=3.5, label=name)
    cost.set_title("With the shield: least expected cost", loc="left", size=11, color=INK)
    cost.set(xlabel="bound κ", ylabel="cost of a window")
    unfair.set_title("Without a shield: windows that end unfair", loc="left", size=11, color=INK)
    unfair.set(xlabel="bound κ", ylabel="% of windows", ylim=(0, 100))
    for axes in (cost, unfair):
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#E6E6E6", lw=0.8)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=9, loc="upper right")
    *most, last = map(str, found.groups)
    name = found.kind.replace("-", " ").capitalize()
    title = f"{name} between {', '.join(most)} and {last}: what each bound costs"
    figure.text(0.012, 0.94, title, size=13.5, weight="bold", color=INK)
    save_small(figure, path, dpi)


def _knee(knee: Trade) -> str:
    return f";  knee (ring): κ = {float(knee.bound):.3g}, cost {knee.expected_cost:.3g}"
