"""Figure of time and memory of synthesis, beside the published implementation."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from fairshield_experiments.results.figures import look
from fairshield_experiments.results.figures.look import LOOK, Look
from fairshield_experiments.results.figures.rows import with_columns
from fairshield_experiments.results.parts import Item, Product, Results
from fairshield_experiments.results.published import published as published_numbers
from fairshield_experiments.results.rows import select

_AGAIN = "published implementation, measured again"
_OURS = {
    "demographic-parity": Look("DP", look.BLUE, "o", "-"),
    "equal-opportunity": Look("EqOpp", look.VERMILION, "s", "-"),
}
_PANELS = {"seconds": "time (s)", "megabytes": "memory (MB)"}


@LOOK
def resources(results: Results) -> Product:
    """Synthesis time and memory against the horizon, on logarithmic axes."""
    ours = with_columns(results.resources, ["property", "horizon", "seconds", "megabytes"])
    ours = ours if "levels" in ours else ours.assign(levels=1)
    published = _published()
    drawing, panels = look.grid(1, 2, 3.3)
    for axes, (column, label) in zip(panels.ravel(), _PANELS.items(), strict=True):
        _draw(axes, ours, column, published=False)
        _draw(axes, published, column, published=True)
        if not (pd.to_numeric(ours[column]) > 0).any():
            look.say(axes, "ours: not run")
        axes.set(xscale="log", yscale="log", xlabel="horizon T (decisions)", ylabel=label)
        horizons = sorted({*published["horizon"], *ours["horizon"].dropna().astype(int)})
        shown = [t for t in horizons if t in (10, 25, 50, 100, 200, 400, 800)]
        axes.set_xticks(shown, [str(t) for t in shown])
        axes.minorticks_off()
        axes.grid(True, color="#E5E5E5", lw=0.6)
        axes.set_axisbelow(True)
    look.legend_above(drawing, [
        *(
            Line2D([], [], color=kind.colour, marker=kind.marker, ls="",
                   label=f"{kind.name}, {who}",
                   mfc="white" if who == "published" else kind.colour)
            for who in ("ours", "published")
            for kind in _OURS.values()
        ),
        *(
            Line2D([], [], color=look.INK, ls=_line(levels), label=_costs(levels))
            for levels in sorted({1, 10, *ours["levels"].dropna().astype(int)})
        ),
    ])  # fmt: skip
    caption = (
        "Filled: fairshield; hollow: the published implementation, measured again (κ = 0.05, best "
        "of several; memory where it was measured). Both axes are logarithmic."
    )
    title = "Time and memory of synthesis"
    return Product(figures=(look.finish("figure-resources", title, caption, drawing),))


def _published() -> pd.DataFrame:
    """The published implementation: a row per measured number."""
    rows = [
        {"property": n.prop, "levels": n.levels, "horizon": n.horizon, n.measure: n.value}
        for n in published_numbers("table-resources")
        if n.source == _AGAIN
    ]
    return with_columns(pd.DataFrame(rows), ["property", "levels", "horizon", *_PANELS])


def _line(levels: int) -> str:
    return "-" if levels == 1 else "--"


def _costs(levels: int) -> str:
    return "1 cost" if levels == 1 else f"{levels} costs"


def _draw(axes: Axes, rows: pd.DataFrame, column: str, *, published: bool) -> None:
    for prop, kind in _OURS.items():
        for levels, part in select(rows, property=prop).groupby("levels", observed=True):
            values = pd.to_numeric(part[column]).astype(float)
            # Zero has no place on a logarithmic axis.
            known = part.assign(value=values.where(values > 0)).dropna(subset=["value"])
            known = known.groupby("horizon", observed=True)["value"].min().reset_index()
            axes.plot(
                known["horizon"].astype(float), known["value"], color=kind.colour,
                marker=kind.marker, ls=_line(int(levels)), ms=5,
                mfc="white" if published else kind.colour, lw=0.8 if published else 1.6,
            )  # fmt: skip


ITEMS = (
    Item(name="figure-resources", title="Resources of synthesis", needs=("resources",),
         make=resources),
)  # fmt: skip
