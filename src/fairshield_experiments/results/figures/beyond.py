"""Figures beyond the paper: learned input models, guaranteed shields, other methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from fairshield_experiments.results import statistics
from fairshield_experiments.results.figures import look
from fairshield_experiments.results.figures.look import LOOK, Look
from fairshield_experiments.results.figures.rows import (
    in_order,
    interval,
    run_rows,
    text_convention,
)
from fairshield_experiments.results.names import ENVIRONMENTS, PROPERTIES
from fairshield_experiments.results.parts import Figure, Item, Product, Results
from fairshield_experiments.results.rows import select, totals

_BOUNDS = (0.1, 0.15, 0.2)
_INPUT_SHIELDS = ("finite-horizon", "static-fair", "static-bounded", "dynamic")
_GUARANTEED = ("static-fair", "static-bounded", "inactive", "dynamic", "exact", "perpetual",
               "optimal")  # fmt: skip
_UNKNOWN = (np.nan, np.nan, np.nan)
_ERROR: dict[str, Any] = {"ecolor": look.INK, "capsize": 2.5, "elinewidth": 0.9}


@LOOK
def inputs(results: Results) -> Product:
    """Utility loss by input model and environment."""
    rows = select(run_rows(results), shield=_INPUT_SHIELDS, min_support=0, learner="ERM")
    rows = select(rows, inputs=tuple(look.INPUTS))
    undefined = text_convention(select(rows, inputs=("learned", "confidence")))
    runs = select(totals(rows), undefined=undefined)
    return Product(figures=tuple(_inputs(runs, undefined, bound) for bound in _BOUNDS))


def _inputs(runs: pd.DataFrame, undefined: str, bound: float) -> Figure:
    runs = select(runs, bound=bound)
    names = in_order(runs["environment"].unique(), ENVIRONMENTS)
    drawing, panels = look.grid(len(_INPUT_SHIELDS), 2, 0.7 + 1.75 * len(_INPUT_SHIELDS))
    for line, shield in zip(panels, _INPUT_SHIELDS, strict=True):
        for axes, (prop, short) in zip(line, PROPERTIES.items(), strict=True):
            axes.set_title(f"{short}, {look.SHIELDS[shield].name}")
            _draw_inputs(axes, select(runs, shield=shield, property=prop), names)
            labels = [ENVIRONMENTS.get(name, name) for name in names]
            axes.set_yticks(range(len(names)), labels if axes is line[0] else [])
            axes.set_ylim(len(names) - 0.4, -0.6)
    for axes in panels[-1]:
        axes.set_xlabel("utility loss (%)")
    look.legend_above(drawing, [
        Line2D([], [], ls="", color=kind.colour, marker=kind.marker, ms=5, label=kind.name)
        for kind in look.INPUTS.values()
    ], 3)  # fmt: skip
    caption = (
        f"Mean over runs ± standard error, ERM, κ = {bound:g}. Agnostic: every proposal is as "
        "likely as the other and overruling costs 1, as in the paper. Learned: shares of the "
        "training part, cost 1. Confidence: the same, and overruling costs the classifier's margin "
        f"|score \N{MINUS SIGN} ½|. {look.convention_text(undefined)}"
    )
    title = f"Utility loss by input model, κ = {bound:g}"
    return look.finish(f"figure-inputs-{bound:g}", title, caption, drawing)


def _draw_inputs(axes: Axes, runs: pd.DataFrame, names: Sequence[str]) -> None:
    if runs["loss"].dropna().empty:
        look.say(axes)
        return
    axes.axvline(0, color=look.GREY, lw=0.7, zorder=0)
    axes.set_axisbelow(True)
    axes.grid(True, axis="y", color="#EDEDED", lw=0.6)
    for j, (model, kind) in enumerate(look.INPUTS.items()):
        for i, name in enumerate(names):
            loss = statistics.mean(select(runs, inputs=model, environment=name), "loss")
            if loss is not None:
                axes.errorbar(loss.value, i + 0.24 * (j - 1), xerr=loss.error,
                              fmt=kind.marker, ms=4.5, color=kind.colour, **_ERROR)  # fmt: skip


@LOOK
def guaranteed(results: Results) -> Product:
    """Share of fair runs and utility loss of the periodic shields."""
    rows = select(run_rows(results), shield=_GUARANTEED, inputs="agnostic", learner="ERM",
                min_support=0)  # fmt: skip
    undefined = text_convention(select(rows, shield=("exact", "perpetual", "optimal")))
    runs = totals(select(rows, undefined=undefined))
    drawing, panels = look.grid(2, 2, 4.6, sharex="col")
    counts = []
    for line, (prop, short) in zip(panels, PROPERTIES.items(), strict=True):
        part = _in_common(select(runs, property=prop))
        n = len(part[["environment", "bound"]].drop_duplicates())
        counts.append(f"{short} {n}")
        line[0].set_title(f"{short}: fair at the end of every period")
        line[1].set_title(f"{short}: utility loss")
        _draw_guaranteed(line, part)
    panels[-1, 0].set_xlabel("runs (%), 95 % interval")
    panels[-1, 1].set_xlabel("utility loss (%), mean ± standard error")
    caption = (
        "ERM, agnostic input model, over the environments and bounds that every shield shown was "
        f"run with (settings: {', '.join(counts)}). Exact, Perpetual and Optimal are fair on every "
        f"input sequence that allows it, by construction. {look.convention_text(undefined)}"
    )
    title = "What a guarantee costs: periodic shields compared"
    return Product(figures=(look.finish("figure-guaranteed", title, caption, drawing),))


def _in_common(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs of the environments and bounds that all shields have."""
    settings = runs[["environment", "bound", "shield"]].drop_duplicates()
    counted = settings.groupby(["environment", "bound"], observed=True).size().rename("shields")
    merged = runs.merge(counted.reset_index(), on=["environment", "bound"], how="left")
    return merged[(merged["shields"] == runs["shield"].nunique()).to_numpy(bool)]


def _draw_guaranteed(line: Sequence[Axes], runs: pd.DataFrame) -> None:
    fair, loss = line
    names = []
    for i, shield in enumerate(_GUARANTEED):
        part, kind = select(runs, shield=shield), look.SHIELDS[shield]
        names.append(kind.name)
        if part.empty:
            for axes in line:
                axes.text(0.02, i, "not run", transform=axes.get_yaxis_transform(), va="center",
                          style="italic", color="#595959")  # fmt: skip
            continue
        share, low, high = interval(statistics.share(part, "fair")) or _UNKNOWN
        found = statistics.mean(part, "loss")
        mean, error = (found.value, found.error) if found else _UNKNOWN[:2]
        reach = [[share - low], [high - share]]
        bar: dict[str, Any] = {"color": kind.colour, "hatch": kind.hatch, "height": 0.62}
        bar |= {"edgecolor": look.INK, "lw": 0.6}
        error_kw = {"ecolor": look.INK, "capsize": 3, "lw": 1.0}
        fair.barh(i, share, xerr=reach, error_kw=error_kw, **bar)
        fair.text(103, i, f"{share:.1f}", va="center")
        loss.barh(i, mean, xerr=error, error_kw=error_kw, **bar)
        end = max(mean, 0) + (0 if np.isnan(error) else error)
        loss.annotate(look.number(mean), (end, i), (5, 0), textcoords="offset points", va="center")
    fair.set_xlim(0, 118)
    fair.set_xticks(range(0, 101, 20))
    loss.margins(x=0.16)
    for axes in line:
        axes.set_ylim(len(_GUARANTEED) - 0.5, -0.5)
        axes.set_yticks(range(len(names)), names if axes is fair else [])
        axes.tick_params(axis="y", length=0)


_METHODS = {
    "erm": Look("ERM alone", look.GREY, "s"),
    "threshold-optimizer": Look("ThresholdOptimizer", look.ORANGE, "^"),
    "exponentiated-gradient": Look("ExponentiatedGradient", look.PURPLE, "v"),
    "logistic-regression": Look("LogisticRegression", look.BLACK, "X"),
    "agnostic": Look("FinHzn, agnostic", look.BLUE, "o"),
    "learned": Look("FinHzn, learned", look.SKY, "D"),
    "confidence": Look("FinHzn, confidence", look.GREEN, "P"),
}


@LOOK
def baselines(results: Results) -> Product:
    """Share of unfair windows against accuracy: plain, Fairlearn's methods, shields."""
    methods = ("threshold-optimizer", "exponentiated-gradient", "logistic-regression")
    wanted = (*methods, "finite-horizon")
    rows = select(run_rows(results), shield=wanted, learner="ERM", min_support=0)
    undefined = text_convention(select(rows, shield=methods))
    runs = totals(select(rows, undefined=undefined))
    drawing, panels = look.grid(2, len(look.BOUNDS), 4.6, sharey=True, sharex="row")
    for line, (prop, short) in zip(panels, PROPERTIES.items(), strict=True):
        for axes, (bound, kind) in zip(line, look.BOUNDS.items(), strict=True):
            axes.set_title(f"{short}, {kind.name}")
            _draw_methods(axes, select(runs, property=prop, bound=bound))
            axes.set_xlabel("accuracy (%)")
            axes.set_ylim(-4, 104)
        line[0].set_ylabel("unfair windows (%)")
    look.legend_above(drawing, [
        Line2D([], [], ls="", color=kind.colour, marker=kind.marker, ms=5.5, label=kind.name)
        for kind in _METHODS.values()
    ], 4)  # fmt: skip
    caption = (
        "Better is lower and further right. Mean over all environments and windows ± standard "
        "error; all methods decide on the same windows. Fairlearn's two bound the expected "
        "difference, not that of a window: ThresholdOptimizer on the scores of ERM, "
        f"ExponentiatedGradient on logistic regression. {look.convention_text(undefined)}"
    )
    title = "Shields beside fair classifiers"
    return Product(figures=(look.finish("figure-baselines", title, caption, drawing),))


def _draw_methods(axes: Axes, runs: pd.DataFrame) -> None:
    if runs.empty:
        look.say(axes)
        return
    for method, kind in _METHODS.items():
        part, suffix = _method(runs, method)
        accuracy = statistics.mean(part, f"accuracy{suffix}")
        unfair = interval(statistics.share(part, f"unfair{suffix}"))
        if accuracy is None or unfair is None:
            continue
        share, low, high = unfair
        reach = [[share - low], [high - share]]
        axes.errorbar(accuracy.value, share, xerr=accuracy.error, yerr=reach,
                      fmt=kind.marker, color=kind.colour, ms=6, **_ERROR)  # fmt: skip
    axes.margins(x=0.2)
    axes.grid(True, color="#EDEDED", lw=0.6)
    axes.set_axisbelow(True)


def _method(runs: pd.DataFrame, method: str) -> tuple[pd.DataFrame, str]:
    """Rows of a method, and the suffix of the columns that describe it."""
    if method == "erm":
        same = ["environment", "property", "bound", "undefined", "run"]
        return runs.drop_duplicates(same), "_unshielded"
    if method in look.INPUTS:
        return select(runs, shield="finite-horizon", inputs=method), ""
    return select(runs, shield=method), ""


ITEMS = (
    Item(name="figure-inputs", title="Input models", needs=("finite", "periodic", "inputs"),
         make=inputs, published=False),
    Item(name="figure-guaranteed", title="Guaranteed shields", needs=("periodic", "guaranteed"),
         make=guaranteed, published=False),
    Item(name="figure-baselines", title="Shields and fair classifiers",
         needs=("finite", "inputs", "baselines"), make=baselines, published=False),
)  # fmt: skip
