"""``plot_running_bias`` draws the running bias of many windows, without and with a shield.

This module knows counters and properties.  It does not know whether they were simulated or logged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Group, GroupCount
from fairshield.reports.plots.look import (
    BAND,
    BLUE,
    GREY,
    INK,
    ORANGE,
    WIDTH_INCHES,
    require_matplotlib,
    save_small,
)
from fairshield.runtime.judging import judged
from fairshield.spec import Property

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROW_INCHES = 4.1
_BINS_PER_BOUND = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class DrawnWindows:
    """DrawnWindows holds windows as they went with or without the shield.

    Attributes
    ----------
    counters
        ``(windows, horizon + 1, 4)``: running ``n_a, k_a, n_b, k_b``.
    unfair, windows
        What the title states; may count more windows than ``counters`` holds.
    """

    prop: Property
    counters: Ints
    unfair: int
    windows: int

    @cached_property
    def gap(self) -> Floats:
        """``(windows, horizon + 1)``: running bias with a sign."""
        return signed_gap(self.prop, self.counters)

    @cached_property
    def fair(self) -> NDArray[np.bool_]:
        """``(windows,)``: whether the window ended fair."""
        return judged(self.prop, self.counters[:, -1].reshape(-1, 2, 2)).holds


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """Comparison holds the same windows without and with a shield: one row of the picture.

    ``overruled_at`` has, by position, the people overruled in all windows together; ``notes`` are
    lines of text to stand under the left panel.
    """

    title: str
    groups: tuple[Group, ...]
    before: DrawnWindows
    after: DrawnWindows
    overruled_at: Ints
    notes: tuple[str, ...] = ()


def signed_gap(prop: Property, counters: Ints) -> Floats:
    """The measured bias with a sign: positive where the first group is ahead, whatever the support.

    ``counters`` has ``n_a, k_a, n_b, k_b`` along its last axis.

    >>> from fairshield.spec import DemographicParity
    >>> signed_gap(DemographicParity("0.1"), np.array([[4, 1, 4, 3], [4, 3, 4, 1]]))
    array([-0.5,  0.5])
    """
    n_a, k_a, n_b, k_b = np.moveaxis(counters, -1, 0)
    a, b = GroupCount(n_a, k_a), GroupCount(n_b, k_b)
    return np.asarray(np.copysign(prop.measured_bias_array(a, b), prop.lead(a, b)))


def plot_running_bias(
    comparisons: Sequence[Comparison], path: Path, *, drawn: int = 200, dpi: int = 140
) -> None:
    """Write a picture with one row per comparison: before on the left, after on the right.

    Each side shows the running gap of ``drawn`` windows and, at its right edge, how all windows
    ended.  One window is drawn in black on both sides, with dots where the shield overruled.
    """
    mpl = require_matplotlib()
    from matplotlib.figure import Figure  # not pyplot, which would take over the caller's backend

    style = {"font.size": 11, "axes.edgecolor": "#767676", "xtick.color": INK, "ytick.color": INK}
    with mpl.rc_context(style):
        figure = Figure(figsize=(WIDTH_INCHES, _ROW_INCHES * len(comparisons)))
        for i, comparison in enumerate(comparisons):
            _draw_row(figure, comparison, len(comparisons) - 1 - i, len(comparisons), drawn)
        save_small(figure, path, dpi)


def _draw_row(figure: Any, row: Comparison, i: int, rows: int, drawn: int) -> None:
    """Draw one comparison as row ``i``, counted from below."""

    def height(inches: float) -> float:
        return (i * _ROW_INCHES + inches) / (_ROW_INCHES * rows)

    figure.text(0.012, height(3.82), row.title, size=13.5, weight="bold", color=INK)
    grid = figure.add_gridspec(
        1, 5, left=0.085, right=0.995, top=height(3.4), bottom=height(1.25), wspace=0.03,
        width_ratios=[10, 1.5, 1.0, 10, 1.5],
    )  # fmt: skip
    left = figure.add_subplot(grid[0])
    right = figure.add_subplot(grid[3], sharex=left, sharey=left)
    _draw_fan(left, row.before, drawn, GREY, "Without the shield", ORANGE)
    _draw_fan(right, row.after, drawn, BLUE, "With the shield", BLUE)
    _draw_ends(figure.add_subplot(grid[1], sharey=left), row.before, GREY)
    _draw_ends(figure.add_subplot(grid[4], sharey=left), row.after, BLUE)
    _draw_one_window(left, right, row)
    horizon, reach = len(row.overruled_at), _reach(row)
    left.set(
        xlim=(0, horizon),
        ylim=(-reach, reach),
        ylabel=row.before.prop.gap_label(*row.groups),
        xlabel="decisions",
    )
    ticks = [m * row.before.prop.limit for m in (-4, -2, -1, 0, 1, 2, 4)]
    left.set_yticks([y for y in ticks if abs(y) < reach])
    left.yaxis.set_major_formatter(_signed)
    right.tick_params(labelleft=False)
    figure.text(0.085, height(0.62), "\n".join(row.notes), va="top", size=10, color=INK,
                linespacing=1.45)  # fmt: skip
    box = right.get_position()
    strip = figure.add_axes(
        (box.x0, height(0.3), box.width, height(0.72) - height(0.3)), sharex=left
    )
    _draw_interventions(strip, row)


def _draw_fan(axes: Any, side: DrawnWindows, drawn: int, calm: str, name: str, color: str) -> None:
    limit = side.prop.limit
    axes.axhspan(-limit, limit, color=BAND, lw=0, zorder=0)
    for edge in (-limit, limit):
        axes.axhline(edge, color=INK, lw=0.9, ls=(0, (4, 3)), zorder=4)
    gap, fair = side.gap[:drawn], side.fair[:drawn]
    steps = np.arange(gap.shape[1])
    for part, alpha in _fade_in(len(steps)):
        look = {"lw": 0.7, "alpha": alpha, "solid_capstyle": "butt"}
        axes.plot(steps[part], gap[fair, part].T, color=calm, zorder=2, **look)
        axes.plot(steps[part], gap[~fair, part].T, color=ORANGE, zorder=3, **look)
    finding = f"{name}: {side.unfair} of {side.windows} windows unfair"
    axes.set_title(finding, loc="left", color=color, weight="bold", size=11.5, pad=7)
    axes.spines[["top", "right"]].set_visible(False)


def _fade_in(n: int) -> list[tuple[slice, float]]:
    """Parts of a line and their opacity: rates of few people vary widely and are drawn faintly."""
    cuts = [0, *(n * i // 40 for i in range(1, 9)), n - 1]
    alphas = np.linspace(0.06, 0.32, len(cuts) - 1)
    return [(slice(a, b + 1), float(x)) for (a, b), x in zip(pairwise(cuts), alphas, strict=True)]


def _draw_ends(axes: Any, side: DrawnWindows, calm: str) -> None:
    """Histogram of the gaps at the horizon, standing on its side."""
    limit = side.prop.limit
    width = (limit or 0.1) / _BINS_PER_BOUND
    most = max(int(np.abs(side.gap[:, -1]).max() / width) + 1, _BINS_PER_BOUND)
    # A gap equal to the bound is fair; rounding must not put it into a bin outside the band.
    inside = np.clip(side.gap[:, -1], -limit + width / 2, limit - width / 2)
    end = np.where(side.fair, inside, side.gap[:, -1])
    axes.axhspan(-limit, limit, color=BAND, lw=0, zorder=0)
    axes.hist([end[side.fair], end[~side.fair]], np.arange(-most, most + 1) * width,
              orientation="horizontal", stacked=True, color=[calm, ORANGE], zorder=2)  # fmt: skip
    axes.axis("off")
    axes.text(1.0, -0.045, "ends", transform=axes.transAxes, va="top", ha="right", color=INK)


def _draw_one_window(left: Any, right: Any, row: Comparison) -> None:
    """Draw the unfair window of median gap, with dots where the shield overruled somebody."""
    unfair = np.flatnonzero(~row.before.fair)
    order = np.argsort(np.abs(row.before.gap[unfair, -1]), kind="stable")
    i = int(unfair[order[len(order) // 2]]) if len(unfair) else 0
    seen = row.before.counters[i][:, [0, 2]].min(axis=1)
    known = np.flatnonzero(seen)  # before both groups have been seen there is no gap to draw
    for axes, side in ((left, row.before), (right, row.after)):
        axes.plot(known, side.gap[i][known], color="white", lw=3.2, alpha=0.9, zorder=5)
        axes.plot(known, side.gap[i][known], color=INK, lw=1.5, zorder=6)
    changed = _overruled_steps(row.before.counters[i], row.after.counters[i])
    right.plot(changed, row.after.gap[i][changed], "o", color=INK, ms=5, mec="white", mew=0.9,
               zorder=7)  # fmt: skip


def _draw_interventions(axes: Any, row: Comparison) -> None:
    share = 100 * row.overruled_at / row.after.windows
    axes.bar(np.arange(len(share)) + 0.5, share, width=1.0, color=BLUE, lw=0)
    axes.set(yticks=[0, np.ceil(share.max())], yticklabels=["0", f"{np.ceil(share.max()):.0f}%"])
    axes.tick_params(labelsize=9, labelbottom=False)
    axes.set_title("decisions overruled, by position", loc="left", size=10, color=INK, pad=4)
    axes.spines[["top", "right"]].set_visible(False)


def _reach(row: Comparison) -> float:
    """Half the height of the panels: shows nearly all gaps in the second half of the windows."""
    settled = np.abs(row.before.gap[:, len(row.overruled_at) // 2 :])
    return max(float(np.quantile(settled, 0.999)), 2 * row.before.prop.limit)


def _signed(value: float, _: Any = None) -> str:
    return f"{value:+.3g}".replace("-", "\N{MINUS SIGN}") if value else "0"


def _overruled_steps(before: Ints, after: Ints) -> Ints:
    """After how many decisions the shield had just overruled somebody in this window."""
    taken = [np.diff(path[:, 1] + path[:, 3]) for path in (before, after)]
    return np.flatnonzero(taken[0] != taken[1]) + 1
