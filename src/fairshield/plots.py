"""Pictures: the running bias of many windows, before and after the shield.

Knows counters and properties, not where they came from.  matplotlib loads on the first picture.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Group, GroupCount
from fairshield.errors import MissingExtraError
from fairshield.spec import BoundedRates, Property, ShareParity

if TYPE_CHECKING:
    # They load the compiler, which drawing does without.
    from fairshield.pareto import Pareto, Trade
    from fairshield.periodic.compare import PeriodicComparison, Row

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Orange and blue of Okabe and Ito, which stay apart under every colour blindness.
ORANGE, BLUE, GREY, BAND, INK = "#D55E00", "#0072B2", "#8A8A8A", "#FFF0B8", "#222222"
_ROW_INCHES, _WIDTH_INCHES = 4.1, 10.0
_BINS_PER_BOUND = 5
_BLOCKS = "▁▂▃▄▅▆▇█"
_KINDS = {
    "no shield": GREY,
    "static-fair": "#E69F00",
    "static-bounded": "#CC79A7",
    "dynamic": BLUE,
    "inactive": "#56B4E9",
    "exact": "#009E73",
    "perpetual": ORANGE,
}
_ERROR = {"ecolor": INK, "capsize": 3, "lw": 1.1}


@dataclass(frozen=True, eq=False, kw_only=True)
class Side:
    """Windows as they went with or without the shield.

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
        return self.prop.holds_array(*_split(self.counters[:, -1]))


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """The same windows without and with a shield; one row of the picture.

    ``overruled_at`` has, by position, the people overruled in all windows together; ``notes`` are
    lines of text to stand under the left panel.
    """

    title: str
    groups: tuple[Group, ...]
    before: Side
    after: Side
    overruled_at: Ints
    notes: tuple[str, ...] = ()


def signed_gap(prop: Property, counters: Ints) -> Floats:
    """The measured bias with a sign: positive where the first group is ahead, whatever the support.

    ``counters`` has ``n_a, k_a, n_b, k_b`` along its last axis.

    >>> from fairshield.spec import DemographicParity
    >>> signed_gap(DemographicParity("0.1"), np.array([[4, 1, 4, 3], [4, 3, 4, 1]]))
    array([-0.5,  0.5])
    """
    a, b = _split(counters)
    bias = prop.measured_bias_array(a, b)
    if isinstance(prop, BoundedRates):
        return bias  # it compares each group with an interval, not with the other group
    shares = isinstance(prop, ShareParity)
    ahead = a.accepted - b.accepted if shares else a.accepted * b.seen - b.accepted * a.seen
    return np.asarray(np.copysign(bias, ahead))


def require_matplotlib() -> Any:
    """The module; if it is missing, an error that says how to get it."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError(
            "pictures need matplotlib, which is not installed: pip install 'fairshield[plot]'"
        ) from None
    return mpl


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
        figure = Figure(figsize=(_WIDTH_INCHES, _ROW_INCHES * len(comparisons)))
        for i, comparison in enumerate(comparisons):
            _draw_row(figure, comparison, len(comparisons) - 1 - i, len(comparisons), drawn)
        save_small(figure, path, dpi)


def _draw_row(figure: Any, row: Comparison, i: int, rows: int, drawn: int) -> None:
    """Row ``i`` from below."""

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
    left.set(xlim=(0, horizon), ylim=(-reach, reach), ylabel=_gap_label(row), xlabel="decisions")
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


def _draw_fan(axes: Any, side: Side, drawn: int, calm: str, name: str, color: str) -> None:
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
    """Rates of a handful of people jump wildly: what they show is drawn more faintly."""
    cuts = [0, *(n * i // 40 for i in range(1, 9)), n - 1]
    alphas = np.linspace(0.06, 0.32, len(cuts) - 1)
    return [(slice(a, b + 1), float(x)) for (a, b), x in zip(pairwise(cuts), alphas, strict=True)]


def _draw_ends(axes: Any, side: Side, calm: str) -> None:
    """Histogram of the gaps at the horizon, standing on its side."""
    limit = side.prop.limit
    width = (limit or 0.1) / _BINS_PER_BOUND
    most = max(int(np.abs(side.gap[:, -1]).max() / width) + 1, _BINS_PER_BOUND)
    # An end on the bound is fair and belongs inside, which floats would not tell.
    inside = np.clip(side.gap[:, -1], -limit + width / 2, limit - width / 2)
    end = np.where(side.fair, inside, side.gap[:, -1])
    axes.axhspan(-limit, limit, color=BAND, lw=0, zorder=0)
    axes.hist([end[side.fair], end[~side.fair]], np.arange(-most, most + 1) * width,
              orientation="horizontal", stacked=True, color=[calm, ORANGE], zorder=2)  # fmt: skip
    axes.axis("off")
    axes.text(1.0, -0.045, "ends", transform=axes.transAxes, va="top", ha="right", color=INK)


def _draw_one_window(left: Any, right: Any, row: Comparison) -> None:
    """The window whose unfairness is the median one, with those overruled in it."""
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


def save_small(figure: Any, path: Path, dpi: int) -> None:
    """As PNG with a palette: a third of the size, and no difference to see."""
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=dpi, facecolor="white")
    image = Image.open(buffer).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    image.save(path, format="PNG", optimize=True)


def plot_periods(comparison: PeriodicComparison, path: Path, *, dpi: int = 140) -> None:
    """Write a picture of periodic shields on the same runs.

    Four panels: how many runs were fair at the end of every period, and how many met the
    condition; cost; cost by period; worst bias.  Bars end in their errors.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 7.4), layout="constrained")
    (fair, cost), (by_period, bias) = figure.subplots(2, 2)
    colours = {row.name: _KINDS.get(row.name, INK) for row in comparison.rows}
    _draw_shares(fair, comparison.rows, colours)
    _draw_means(cost, comparison.rows, colours, lambda row: row.cost, "cost of a run")
    _draw_means(
        bias, comparison.rows, colours, lambda row: row.worst_bias, "worst bias at a period end"
    )
    bias.axvline(comparison.limit, color=INK, lw=1.2, ls="--")
    for i, row in enumerate(comparison.rows):
        bias.plot(row.largest_bias, i, marker=">", ms=6, mfc="white", mec=INK, zorder=7)
    bias.set_xlabel("mean ± standard error;  ▷ largest;  dashed: allowed")
    _draw_by_period(by_period, comparison, colours)
    figure.suptitle(
        f"{comparison.prop} after every {comparison.period} decisions: the same "
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
        values = np.array([mean.value for mean in row.cost_by_period])
        errors = [mean.error or 0.0 for mean in row.cost_by_period]
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


_LINES = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def plot_pareto(found: Pareto, path: Path, *, dpi: int = 140) -> None:
    """Write a picture of what each bound costs, and of what comes of doing nothing.

    Left the expected cost of a window by bound, a line for each horizon, with a hollow mark where
    nothing need be done and a ring at its knee; right the windows that end unfair without a shield.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH_INCHES, 4.1))
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
        shares = [np.nan if row.unfair is None else 100 * row.unfair for row in rows]
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


def sparkline(values: Sequence[float]) -> str:
    """A row of blocks as high as the values; nothing but zeros is flat.

    >>> sparkline([0, 1, 2, 4])
    '▁▃▅█'
    """
    top = max(values, default=0.0)
    if top <= 0.0:
        return _BLOCKS[0] * len(values)
    return "".join(_BLOCKS[round(value / top * (len(_BLOCKS) - 1))] for value in values)


def tenths(horizon: int) -> list[tuple[int, int]]:
    """The window cut into at most ten parts: first position and one past the last.

    >>> tenths(25)[:2], tenths(3)
    ([(0, 2), (2, 5)], [(0, 1), (1, 2), (2, 3)])
    """
    parts = min(10, horizon)
    return list(pairwise(i * horizon // parts for i in range(parts + 1)))


def _reach(row: Comparison) -> float:
    """Half the height of the panels: all that happens in the second half of the windows."""
    settled = np.abs(row.before.gap[:, len(row.overruled_at) // 2 :])
    return max(float(np.quantile(settled, 0.999)), 2 * row.before.prop.limit)


def _split(counters: Ints) -> tuple[GroupCount[Any], GroupCount[Any]]:
    n_a, k_a, n_b, k_b = np.moveaxis(counters, -1, 0)
    return GroupCount(n_a, k_a), GroupCount(n_b, k_b)


def _gap_label(row: Comparison) -> str:
    a, b = row.groups
    if isinstance(row.before.prop, ShareParity):
        return f"share of {a} minus {b}"
    return f"rate of {a} minus {b}" if row.before.prop.difference_of_rates else "bias"


def _signed(value: float, _: Any = None) -> str:
    return f"{value:+.3g}".replace("-", "\N{MINUS SIGN}") if value else "0"


def _overruled_steps(before: Ints, after: Ints) -> Ints:
    """After how many decisions the shield had just overruled somebody in this window."""
    taken = [np.diff(path[:, 1] + path[:, 3]) for path in (before, after)]
    return np.flatnonzero(taken[0] != taken[1]) + 1
