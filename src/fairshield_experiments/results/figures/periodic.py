"""Figures of periodic shields: one whole run, and bias and utility loss by period."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from fairshield_experiments.results.figures import look
from fairshield_experiments.results.figures.finite import box_plot
from fairshield_experiments.results.figures.look import LOOK
from fairshield_experiments.results.figures.rows import (
    RUN,
    conventions,
    in_order,
    normalised,
    periodic,
    run_rows,
    text_convention,
    with_columns,
)
from fairshield_experiments.results.names import ENVIRONMENTS, PERIODIC, PROPERTIES
from fairshield_experiments.results.parts import Figure, Item, Product, Results
from fairshield_experiments.results.rows import select, totals

_PATH_COLUMNS = ["environment", "property", "bound", "shield", "run", "decision", "bias"]
_PERIOD_LENGTH = 50
_PATH_BOUND = 0.1


@LOOK
def single_run(results: Results) -> Product:
    """Bias over time of one run on Adult, without a shield and with each periodic one."""
    paths = with_columns(results.paths, _PATH_COLUMNS)
    if "undefined" in paths:
        paths = select(paths, undefined=text_convention(paths))
    found = list(paths["environment"].dropna().unique())
    names = [name for name in in_order(found, ENVIRONMENTS) if name in found] or ["adult-race"]
    shields = [name for name in look.SHIELDS if name in set(paths["shield"])]
    every = _period_length(results)
    drawing, panels = look.grid(len(names), 2, 0.5 + 2.3 * len(names), sharex=True, sharey="col")
    for line, environment in zip(panels, names, strict=True):
        for axes, (prop, short) in zip(line, PROPERTIES.items(), strict=True):
            axes.set_title(f"{ENVIRONMENTS.get(environment, environment)}, {short}")
            _draw_paths(axes, select(paths, environment=environment, property=prop), every)
        line[0].set_ylabel("bias so far")
    for axes in panels[-1]:
        axes.set_xlabel("decisions")
    look.legend_above(drawing, [
        Line2D([], [], color=kind.colour, ls=kind.line, marker=kind.marker, ms=4, mfc="white",
               label=kind.name)
        for kind in (look.SHIELDS[name] for name in shields)
    ], len(shields) if len(shields) <= 5 else 4)  # fmt: skip
    caption = (
        f"The same people in the same order. The band is what κ allows; markers and thin lines "
        f"stand at the ends of the periods of {every} decisions, where the property must hold."
    )
    title = "Bias over time, ERM on Adult, with and without periodic shields"
    return Product(figures=(look.finish("figure-single-run", title, caption, drawing),))


def _period_length(results: Results) -> int:
    lengths = select(run_rows(results), shield=PERIODIC)["period_length"].dropna()
    return int(lengths.mode().iloc[0]) if len(lengths) else _PERIOD_LENGTH


def _draw_paths(axes: Axes, paths: pd.DataFrame, every: int) -> None:
    if paths["bias"].dropna().empty:
        look.say(axes)
        return
    bounds = sorted(set(paths["bound"].dropna()))
    bound = _PATH_BOUND if _PATH_BOUND in bounds or not bounds else bounds[0]
    unshielded = (paths["shield"] == "none").to_numpy(bool)
    rows = paths[(paths["bound"] == bound).to_numpy(bool) | unshielded]
    rows = select(rows, run=rows["run"].min())
    signed = bool((rows["bias"] < 0).any())
    axes.axhspan(-bound if signed else 0, bound, color=look.BAND, lw=0, zorder=0)
    last = int(rows["decision"].max())
    for end in range(every, last + 1, every):
        axes.axvline(end, color="#D9D9D9", lw=0.6, zorder=0.5)
    for name, kind in look.SHIELDS.items():
        path = select(rows, shield=name).drop_duplicates("decision").sort_values("decision")
        if path.empty:
            continue
        ends = (path["decision"] % every == 0).to_numpy(bool)
        axes.plot(path["decision"], path["bias"], color=kind.colour, ls=kind.line, lw=1.3,
                  marker=kind.marker, ms=4, mfc="white", markevery=ends.tolist(),
                  zorder=2 if name == "none" else 3)  # fmt: skip
    later = rows[(rows["decision"] > every / 2).to_numpy(bool)]["bias"].abs().max()
    top = max(3 * bound, 1.1 * float(later) if np.isfinite(later) else 0.0)
    axes.set_ylim(-top if signed else 0, top)
    axes.set_xlim(0, last * 1.02)
    axes.text(
        0.99,
        0.97,
        f"κ = {bound:g}",
        transform=axes.transAxes,
        ha="right",
        va="top",
        in_layout=False,
    )


@LOOK
def period_bias(results: Results) -> Product:
    """Normalised bias at the end of every period, all runs."""
    rows = periodic(results)
    return Product(figures=tuple(
        _bias_by_period(
            rows, undefined, None, ("none", *PERIODIC),
            f"figure-period-bias-{undefined}", "Bias by period, all runs",
        )
        for undefined in conventions(rows)
    ))  # fmt: skip


@LOOK
def period_bias_condition(results: Results) -> Product:
    """Normalised bias at the end of every period, where the theorem's condition was met."""
    rows = periodic(results)
    kinds = {
        "condition": ("", "the condition as the theorem states it"),
        "condition_published": ("-published", "the condition as the published table measured it"),
    }
    return Product(figures=tuple(
        _bias_by_period(
            rows, undefined, column, PERIODIC[:3],
            f"figure-period-bias-condition{suffix}-{undefined}",
            f"Bias by period, runs that met {words}",
        )
        for column, (suffix, words) in kinds.items()
        for undefined in conventions(rows)
    ))  # fmt: skip


def _bias_by_period(
    rows: pd.DataFrame, undefined: str, condition: str | None, shields: Sequence[str], name: str,
    title: str,
) -> Figure:  # fmt: skip
    drawing, panels = look.grid(len(shields), 2, 0.4 + 1.35 * len(shields), sharex=True)
    part = select(rows, undefined=undefined)
    for line, shield in zip(panels, shields, strict=True):
        for axes, (prop, short) in zip(line, PROPERTIES.items(), strict=True):
            axes.set_title(f"{short}, {look.SHIELDS[shield].name}")
            _draw_periods(axes, select(part, property=prop), shield, condition)
        line[0].set_ylabel("bias / κ")
    for axes in panels[-1]:
        axes.set_xlabel("period")
        axes.set_xticks(range(1, 11))
    caption = (
        "Cumulative bias at the end of each period over κ, all environments and bounds, ERM; the "
        "dashed line is what is allowed. Box: quartiles and median; whiskers: 5th and 95th "
        f"percentile; triangle: largest. {look.convention_text(undefined)}"
    )
    convention = look.CONVENTIONS.get(undefined, undefined)
    return look.finish(name, f"{title}, empty group: {convention}", caption, drawing)


def _draw_periods(axes: Axes, rows: pd.DataFrame, shield: str, condition: str | None) -> None:
    # Rows of every shield repeat the same unshielded run; one of them is enough.
    named = [name for name in PERIODIC if name in set(rows["shield"])]
    part = select(rows, shield=named[:1] if shield == "none" else shield)
    if part.empty:
        look.say(axes)
        return
    bias, fair = ("bias_unshielded", "fair_unshielded") if shield == "none" else ("bias", "fair")
    runs = totals(part)
    of = len(runs)
    if condition is not None:
        runs = runs[(runs[condition] == 1).to_numpy(bool)]
        part = part.merge(runs[RUN], on=RUN)
    if part.empty:
        look.say(axes, f"no run of {of:,} met the condition")
        return
    values = normalised(part, bias)
    by_period = {int(at): v.dropna() for at, v in values.groupby(part["period"]) if v.notna().any()}
    box_plot(axes, list(by_period), list(by_period.values()), look.SHIELDS[shield], 0.62)
    tops = [v.max() for v in by_period.values()]
    axes.plot(list(by_period), tops, "^", ms=3.5, mfc="white", mec=look.INK, mew=0.8)
    axes.axhline(1, color=look.INK, ls="--", lw=1)
    top = max([1.0, *tops])
    axes.set_ylim(0, top * 1.42)  # room for the text
    met = "" if condition is None else f", {len(runs):,} of {of:,} runs met it"
    text = f"fair at all ends: {100 * runs[fair].mean():.1f} %{met or f' of {of:,} runs'}"
    axes.text(0.99, 0.98, text, transform=axes.transAxes, ha="right", va="top", in_layout=False)


@LOOK
def period_utility(results: Results) -> Product:
    """Share of a run's utility loss that falls into each period."""
    rows = periodic(results)
    return Product(figures=tuple(_utility_by_period(rows, name) for name in conventions(rows)))


def _utility_by_period(rows: pd.DataFrame, undefined: str) -> Figure:
    shares, left_out, of = _shares(select(rows, undefined=undefined))
    bounds = {bound: kind for bound, kind in look.BOUNDS.items() if bound != 0.05}
    drawing, panels = look.grid(len(PERIODIC), 2, 0.5 + 1.5 * len(PERIODIC), sharex=True)
    for line, shield in zip(panels, PERIODIC, strict=True):
        for axes, (prop, short) in zip(line, PROPERTIES.items(), strict=True):
            axes.set_title(f"{short}, {look.SHIELDS[shield].name}")
            part = select(shares, shield=shield, property=prop)
            if part.empty:
                look.say(axes, "no run lost utility" if _had(rows, shield, prop) else "not run")
                continue
            axes.axhline(0, color=look.GREY, lw=0.7, zorder=0)
            for j, (bound, kind) in enumerate(bounds.items()):
                _draw_shares(axes, select(part, bound=bound), kind, 0.26 * (j - 1))
        line[0].set_ylabel("share of loss (%)")
    for axes in panels[-1]:
        axes.set_xlabel("period")
        axes.set_xticks(range(1, 11))
    look.legend_above(drawing, [
        Line2D([], [], color=kind.colour, marker=kind.marker, lw=2.4, ms=4.5, mec=look.INK,
               mew=0.6, label=kind.name)
        for kind in bounds.values()
    ])  # fmt: skip
    caption = (
        "Utility loss of a period as a percentage of the loss of its run; marker: median, bar: "
        "quartiles, ERM, all environments. A share below 0 % is a period in which the shield "
        "raised the accuracy, and others of that run then exceed 100 %. "
        f"{left_out:,} of {of:,} runs without any loss in total are left out. "
        f"{look.convention_text(undefined)}"
    )
    convention = look.CONVENTIONS.get(undefined, undefined)
    title = f"Utility loss by period, empty group: {convention}"
    return look.finish(f"figure-period-utility-{undefined}", title, caption, drawing)


def _had(rows: pd.DataFrame, shield: str, prop: str) -> bool:
    return not select(rows, shield=shield, property=prop).empty


def _shares(rows: pd.DataFrame) -> tuple[pd.DataFrame, int, int]:
    """Rows with ``share`` in percent; how many runs lost nothing in total; how many there were."""
    lost = pd.to_numeric(rows["correct_unshielded"] - rows["correct"]).astype(float)
    keys = [rows[name] for name in RUN]
    total = lost.groupby(keys, observed=True).transform("sum") if len(lost) else lost
    with_share = rows.assign(share=100 * lost / total.where(total != 0))
    runs = total.groupby(keys, observed=True).first() if len(lost) else total
    return with_share.dropna(subset=["share"]), int((runs == 0).sum()), len(runs)


def _draw_shares(axes: Axes, shares: pd.DataFrame, kind: look.Look, shift: float) -> None:
    for period, share in shares.groupby("period", observed=True)["share"]:
        low, middle, high = np.percentile(share, [25, 50, 75])
        at = float(period) + shift
        axes.plot([at, at], [low, high], color=kind.colour, lw=2.4, solid_capstyle="butt")
        axes.plot(at, middle, kind.marker, color=kind.colour, ms=4.5, mec=look.INK, mew=0.6)


ITEMS = (
    Item(name="figure-single-run", title="Bias over time", needs=("paths",), make=single_run),
    Item(name="figure-period-bias", title="Bias by period", needs=("periodic",), make=period_bias),
    Item(name="figure-period-bias-condition", title="Bias by period where the condition was met",
         needs=("periodic",), make=period_bias_condition),
    Item(name="figure-period-utility", title="Utility loss by period", needs=("periodic",),
         make=period_utility),
)  # fmt: skip
