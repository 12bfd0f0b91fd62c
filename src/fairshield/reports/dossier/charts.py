"""Charts of the audit page as SVG: no scripts, no fonts, colours by the page's style.

The size of a chart does not grow with the log: it has at most a few numbers for each pixel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from fairshield.reports.dossier.content import Dossier, Floats, Ints
from fairshield.reports.dossier.running import COLOURS, DrawnSeries
from fairshield.spec import Axis, Verdict

WIDTH, HEIGHT = 960, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 26, 12, 34
_PLOT = WIDTH - _LEFT - _RIGHT
_MOST_BARS = 120
_FEW_ENDS = 60
"""Windows up to which the bias after every decision is drawn; for more, that at their ends."""
_MANY_WINDOWS = 20
"""Complete windows from which on the bias by position in the window is drawn."""


# Bias over time -----------------------------------------------------------------------------


def bias_chart(dossier: Dossier, series: DrawnSeries) -> Markup:
    """Bias after every decision, the allowed band, and how each window ended."""
    n = len(dossier.counters)
    low, high = _extent(dossier, series)
    at_x, at_y = _scale(0, n, _LEFT, WIDTH - _RIGHT), _scale(low, high, HEIGHT - _BOTTOM, _TOP)
    parts = _band(series.axis, low, high, at_y)
    if draws_ways(dossier):
        starts = _starts(dossier)
        for i, (_, values) in enumerate(series.lines):
            for kind, there in (
                ("unbound", ~series.bound[i]),
                (f"run-{i % COLOURS}", series.bound[i]),
            ):
                shown = np.where(there, np.clip(values, low, high), np.nan)
                path = _path(shown, starts, at_x, at_y)
                parts += [f'<path class="run {kind}" d="{path}"/>'] if path else []
    parts += _ends(dossier, series, low, high, at_x, at_y)
    when = "after each" if draws_ways(dossier) else f"at the end of each {dossier.report.noun}"
    label = (
        f"{series.axis.label}, {when} of {n:,} decisions; allowed is {series.axis.low:.4g} to "
        f"{series.axis.high:.4g}. The same ends are in the table of {dossier.report.noun}s."
    )
    ticks = _with_edges(series.axis, low, high, at_y)
    return _svg(label, [*_axes(ticks, at_y, _x_ticks(n), at_x, "decisions"), *parts])


def _band(axis: Axis, low: float, high: float, at_y: _Scale) -> list[str]:
    """The rectangle of allowed values."""
    top, bottom = at_y(min(axis.high, high)), at_y(max(axis.low, low))
    return [
        f'<rect class="band" x="{_LEFT}" y="{top:.1f}" width="{_PLOT}" '
        f'height="{max(bottom - top, 0.8):.1f}"/>',
        *(
            f'<line class="edge" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            for y in dict.fromkeys((top, bottom))
        ),
    ]


def _with_edges(axis: Axis, low: float, high: float, at_y: _Scale) -> list[float]:
    """Tick values: round numbers, and the ends of the allowed band."""
    edges = [edge for edge in (axis.low, axis.high) if low <= edge <= high]
    apart = [t for t in _ticks(low, high) if all(abs(at_y(t) - at_y(e)) > 18 for e in edges)]
    return sorted({*apart, *edges})


def draws_ways(dossier: Dossier) -> bool:
    """Whether the bias after every decision is drawn, and not only at the ends of windows."""
    return dossier.report.rule.goes_on or len(dossier.ends) <= _FEW_ENDS


def within_chart(dossier: Dossier, series: DrawnSeries) -> Markup | None:
    """Bias by position in the window: its median, and where nine of ten windows are."""
    windows = [w for w in dossier.report.windows if w.complete]
    length = dossier.report.rule.length
    if dossier.report.rule.goes_on or length is None or len(windows) < _MANY_WINDOWS:
        return None
    shown = np.unique(np.linspace(0, length - 1, min(length, _PLOT)).astype(np.int64))
    fans = []
    for _, values in series.lines:
        ways = values[: len(windows) * length].reshape(-1, length)[:, shown]
        known = ~np.isnan(ways).all(axis=0)
        fans.append((shown[known], np.nanquantile(ways[:, known], [0.05, 0.5, 0.95], axis=0)))
    low, high = _extent(dossier, series)
    at_x, at_y = (
        _scale(0, length, _LEFT, WIDTH - _RIGHT),
        _scale(low, high, HEIGHT - _BOTTOM, _TOP),
    )
    parts = _band(series.axis, low, high, at_y)
    for i, (at, quantiles) in enumerate(fans):
        least, middle, most = np.clip(quantiles, low, high)
        there = [f"{at_x(x + 1):.1f} {at_y(y):.1f}" for x, y in zip(at, most, strict=True)]
        back = [f"{at_x(x + 1):.1f} {at_y(y):.1f}" for x, y in zip(at, least, strict=True)]
        line = [f"{at_x(x + 1):.1f} {at_y(y):.1f}" for x, y in zip(at, middle, strict=True)]
        parts.append(f'<path class="fan fan-{i % COLOURS}" d="M{"L".join(there + back[::-1])}Z"/>')
        parts.append(f'<path class="run run-{i % COLOURS}" d="M{"L".join(line)}"/>')
    label = (
        f"{series.axis.label} by position in the window: the median of {len(windows):,} windows, "
        "and where nine of ten of them are"
    )
    ticks = _with_edges(series.axis, low, high, at_y)
    return _svg(label, [*_axes(ticks, at_y, _x_ticks(length), at_x, "position"), *parts])


def _extent(dossier: Dossier, series: DrawnSeries) -> tuple[float, float]:
    """All that happens at ends, the band, and most of what happens on the way."""
    axis = series.axis
    if axis.whole:
        return axis.least, axis.most
    at_ends = [values[dossier.ends - 1] for _, values in series.lines] if len(dossier.ends) else []
    ways = [values[_settled(dossier)] for _, values in series.lines]
    found = np.concatenate([*at_ends, *ways, np.zeros(1)])
    found = found[np.isfinite(found)]
    reach = max(abs(axis.low), abs(axis.high), 0.02)
    far = max(3 * reach, float(np.quantile(np.abs(found), 0.98)) * 1.1)
    for values in at_ends:
        finite = values[np.isfinite(values)]
        far = max(far, float(np.abs(finite).max(initial=0.0)) * 1.1)
    return max(-far, axis.least), min(far, axis.most)


def _settled(dossier: Dossier) -> NDArray[np.bool_]:
    """Which decisions are in the second half of their window, or of the whole run."""
    n = len(dossier.counters)
    starts = _starts(dossier)
    window = np.searchsorted(starts, np.arange(n), side="right") - 1
    ends = np.append(starts[1:], n)
    middle = (starts + ends) // 2
    return np.asarray(np.arange(n) >= middle[window])


def _starts(dossier: Dossier) -> Ints:
    """Decisions before which counters, and so lines, begin again."""
    if dossier.report.rule.goes_on or not len(dossier.ends):
        return np.zeros(1, np.int64)
    return np.concatenate(([0], dossier.ends[:-1]))


def _path(values: Floats, starts: Ints, at_x: _Scale, at_y: _Scale) -> str:
    """A line that begins anew at ``starts``; of many points in a column, the least and largest."""
    n = len(values)
    if not n:
        return ""
    column = np.minimum(np.arange(n) * _PLOT // n, _PLOT - 1)
    window = np.searchsorted(starts, np.arange(n), side="right")
    keep = _extremes(values, column) if n > 2 * _PLOT else np.arange(n)
    found, last = [], -1
    for i in keep:
        if math.isnan(values[i]):
            last = -1
            continue
        command = "L" if last == window[i] else "M"
        found.append(f"{command}{at_x(i + 1):.1f} {at_y(float(values[i])):.1f}")
        last = int(window[i])
    return "".join(found)


def _extremes(values: Floats, column: Ints) -> Ints:
    """Indices, in order, of the least and the largest value of each column of pixels."""
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.lexsort((values[known], column[known]))]
    if not len(order):
        return order
    first = np.flatnonzero(np.diff(column[order], prepend=-1))
    last = np.append(first[1:] - 1, len(order) - 1)
    return np.unique(np.concatenate((order[first], order[last])))


def _ends(
    dossier: Dossier, series: DrawnSeries, low: float, high: float, at_x: _Scale, at_y: _Scale
) -> list[str]:
    """A dot for a fair end, a ring for an exempt one, a cross for an unfair one, drawn last."""
    marks: dict[Verdict, dict[tuple[str, str], None]] = {"exempt": {}, "fair": {}, "unfair": {}}
    for window, end in zip(dossier.report.windows, dossier.ends, strict=True):
        if not window.complete:
            continue
        for (_, values), bound in zip(series.lines, series.bound, strict=True):
            value = float(values[end - 1])
            if math.isnan(value):
                value = 0.0
            y = at_y(min(max(value, low), high))
            kind: Verdict = window.finding.verdict if bound[end - 1] else "exempt"
            marks[kind][f"{at_x(int(end)):.1f}", f"{y:.1f}"] = None
    radius = 4 if len(dossier.ends) <= 40 else 2.6 if len(dossier.ends) <= 300 else 1.8
    dots = [
        f'<circle class="{kind}" cx="{x}" cy="{y}" r="{radius}"/>'
        for kind in ("exempt", "fair")
        for x, y in marks[kind]
    ]
    crosses = [
        f'<path class="unfair" d="M{x} {y}m-5-5l10 10m0-10l-10 10"/>' for x, y in marks["unfair"]
    ]
    return dots + crosses


# Bars ---------------------------------------------------------------------------------------


def bar_chart(people: Ints, groups: Sequence[object], axis: str, first: int) -> Markup:
    """People overruled by group, stacked; ``first`` is what the first of them is called."""
    n = len(people)
    size = max(-(-n // _MOST_BARS), 1)
    binned = np.add.reduceat(people, np.arange(0, n, size)) if n else people
    height, bottom = 190, 156
    most = max(int(binned.sum(axis=1).max(initial=0)), 1)
    at_x = _scale(0, len(binned) * size, _LEFT, WIDTH - _RIGHT)
    at_y = _scale(0, most, bottom, _TOP)
    wide = _PLOT / max(len(binned), 1)
    gap = 1.5 if wide > 6 else 0.3
    parts = []
    for i, counts in enumerate(binned.tolist()):
        below = 0
        for g, count in enumerate(counts):
            if count:
                top, left = at_y(below + count), _LEFT + i * wide + gap / 2
                parts.append(
                    f'<rect class="bar-{g % COLOURS}" x="{left:.1f}" y="{top:.1f}" '
                    f'width="{min(wide - gap, 60):.1f}" height="{at_y(below) - top:.1f}"/>'
                )
            below += count
    each = f"each {axis}" if size == 1 else f"each {size} {axis}s together"
    by_group = ", ".join(
        f"{int(n):,} of {group}" for group, n in zip(groups, people.sum(axis=0), strict=True)
    )
    label = f"People overruled in {each}: {by_group}."
    ticks = [t for t in _ticks(0, most) if float(t).is_integer()]
    names = [(x - first, f"{x:,}") for x in _x_values(n, first)]
    axes = _axes(ticks, at_y, names, lambda x: at_x(x) + min(wide / size, 60) / 2, axis, bottom)
    return _svg(label, [*axes, *parts], height)


# Axes ---------------------------------------------------------------------------------------


class _Scale:
    """_Scale maps numbers to pixels, linearly."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.start = low, start
        self.slope = (end - start) / ((high - low) or 1.0)

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) * self.slope


def _scale(low: float, high: float, start: float, end: float) -> _Scale:
    return _Scale(low, high, start, end)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers, about five.

    >>> _ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    rough = (high - low) / 5 or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def _x_values(n: int, first: int) -> list[int]:
    """Round numbers among the ``n`` from ``first`` on, and ``first`` itself."""
    last = first + n - 1
    return sorted({first, *(int(t) for t in _ticks(0, last or 1) if first <= t <= last)})


def _x_ticks(n: int) -> list[tuple[float, str]]:
    return [(t, f"{t:,.0f}") for t in _ticks(0, max(n, 1)) if t.is_integer()]


def _axes(
    ticks: Sequence[float], at_y: _Scale, names: Sequence[tuple[float, str]], at_x: object,
    axis: str, bottom: float = HEIGHT - _BOTTOM,
) -> list[str]:  # fmt: skip
    assert callable(at_x)
    parts = []
    for tick in ticks:
        y = at_y(tick)
        text = f"{tick:.4g}".replace("-", "\N{MINUS SIGN}")
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
        )
    for x, name in names:
        parts.append(
            f'<text x="{at_x(x):.1f}" y="{bottom + 17}" text-anchor="middle">{name}</text>'
        )
    parts.append(
        f'<text x="{WIDTH - _RIGHT}" y="{bottom + 31}" text-anchor="end">{escape(axis)}</text>'
    )
    return parts


def _svg(label: str, parts: Sequence[str], height: int = HEIGHT) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )
