"""Tables beyond the paper: guarantees, input models, minimum support, other methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from fairshield_experiments.results import cells, statistics
from fairshield_experiments.results.names import (
    CROSS_FITTED,
    ENVIRONMENTS,
    INPUTS,
    PERIODIC,
    PERIODIC_BOUNDS,
    PROPERTIES,
    SHIELDS,
    UNDEFINED,
)
from fairshield_experiments.results.parts import Product, ReportTable, Results
from fairshield_experiments.results.rows import learners, paired, select, totals
from fairshield_experiments.results.statistics import Estimate
from fairshield_experiments.results.tables.shared import (
    SAME_PEOPLE,
    common,
    convention,
    left_out,
    periods,
    sentences,
    windows,
)


def _n(frame: pd.DataFrame) -> str:
    return str(len(frame)) if len(frame) else cells.MISSING


def _conventions(frame: pd.DataFrame) -> list[str]:
    """The conventions that were run; both if none was."""
    run = set(frame["undefined"])
    return [name for name in UNDEFINED if name in run] or list(UNDEFINED)


def _bounds(frame: pd.DataFrame) -> tuple[float, ...]:
    return tuple(sorted({round(float(bound), 6) for bound in frame["bound"]}))


def _difference(left: pd.DataFrame, right: pd.DataFrame, column: str = "loss") -> Estimate | None:
    """Mean of ``left - right`` over the runs of both, paired by their people."""
    return statistics.mean(paired(left, right, SAME_PEOPLE, column), "difference")


# --------------------------------------------------------------------------------- guaranteed


def guaranteed(results: Results) -> Product:
    """Periodic shields with a guarantee for every stream beside the paper's three."""
    promised = ("exact", "perpetual", "optimal")
    frame = periods(results, shield=(*PERIODIC, *promised), inputs=tuple(INPUTS))
    bounds = _bounds(frame) or PERIODIC_BOUNDS
    rows, by_bound = [], []
    for prop in PROPERTIES:
        for undefined in _conventions(select(frame, shield=promised)):
            part = select(frame, property=prop, undefined=undefined)
            base = select(part, shield="dynamic", inputs="agnostic")
            for shield in (*PERIODIC, *promised):
                for inputs in INPUTS:
                    own = select(part, shield=shield, inputs=inputs)
                    if len(own) or inputs == "agnostic":
                        key = (PROPERTIES[prop], convention(undefined), SHIELDS[shield], inputs)
                        rows.append((*key, *_guaranteed_cells(own, base)))
                        parts = (select(own, bound=bound) for bound in bounds)
                        losses = (statistics.mean(part, "loss") for part in parts)
                        by_bound.append((*key, *map(cells.estimate, losses)))
    table = ReportTable(
        name="table-guaranteed",
        title="Periodic shields with ERM: fairness and its price",
        columns=(
            *("property", "no relevant people", "shield", "input model", "runs"),
            *("fair at all ends of periods (%)", "utility loss (%)", "overruled (%)"),
            "utility loss minus Dynamic's (best effort, agnostic)",
        ),
        rows=tuple(rows),
        n_keys=4,
        note=sentences(
            "All environments and bounds that were run; the last column pairs runs of the same "
            "people. In brackets: 95 % confidence bounds.",
            "Exact and optimal shields are not made for EqOpp over ten periods: with outcomes, a "
            "policy for 500 decisions takes 44 GB. Optimal ones are made for the first bound and "
            "the agnostic input model.",
            left_out(frame),
        ),
    )
    utility = ReportTable(
        name="table-guaranteed-utility",
        title="Periodic shields with ERM: relative utility loss (%) by bound",
        columns=(
            *("property", "no relevant people", "shield", "input model"),
            *(f"κ = {bound:g}" for bound in bounds),
        ),
        rows=tuple(by_bound),
        n_keys=4,
        note=sentences(_OURS, left_out(frame)),
    )
    return Product(tables=(table, utility))


_OURS = "There are no published numbers of these shields with a guarantee, or of these inputs."


def _guaranteed_cells(own: pd.DataFrame, base: pd.DataFrame) -> tuple[str, ...]:
    return (
        _n(own),
        cells.share(statistics.share(own, "fair")),
        cells.estimate(statistics.mean(own, "loss")),
        cells.estimate(statistics.mean(own, "overruled_share")),
        cells.estimate(_difference(own, base)),
    )


# ------------------------------------------------------------------------------------- inputs


def inputs(results: Results) -> Product:
    """The table of utility loss by input model, on the same people."""
    tables = []
    for shield in ("finite-horizon", *PERIODIC):
        frame = totals(select(results.runs, shield=shield, inputs=tuple(INPUTS), min_support=0))
        if shield == "finite-horizon" or set(frame["inputs"]) - {"agnostic"}:
            tables.append(_inputs_table(frame, shield))
    return Product(tables=tuple(tables))


def _inputs_table(frame: pd.DataFrame, shield: str) -> ReportTable:
    rows, answers = [], []
    for prop in PROPERTIES:
        for undefined in _conventions(frame[frame["inputs"] != "agnostic"]):
            part = select(frame, property=prop, undefined=undefined)
            compared = _comparable({name: select(part, inputs=name) for name in INPUTS})
            key = (PROPERTIES[prop], convention(undefined))
            gaps = _gaps(compared)
            for environment, title in ENVIRONMENTS.items():
                own = {n: select(f, environment=environment) for n, f in compared.items()}
                apart = {n: select(f, environment=environment) for n, f in gaps.items()}
                rows.append((*key, title, *_inputs_cells(own, apart)))
            rows.append((*key, "all", *_inputs_cells(compared, gaps)))
            for bound in _bounds(part):
                own = {n: select(f, bound=bound) for n, f in compared.items()}
                apart = {n: select(f, bound=bound) for n, f in gaps.items()}
                rows.append((*key, f"all, κ = {bound:g}", *_inputs_cells(own, apart)))
            answers.append(_least_loss(f"{key[0]} with {key[1]}", compared))
    return ReportTable(
        name=f"table-inputs-{shield}",
        title=f"{SHIELDS[shield]}: relative utility loss (%) by input model",
        columns=(
            *("property", "no relevant people", "environment", "runs", *INPUTS),
            *("learned - agnostic", "confidence - agnostic", "confidence - learned"),
        ),
        rows=tuple(rows),
        n_keys=3,
        note=sentences(
            "Runs that all models have; differences are paired by people.",
            "The paper has the agnostic model alone.",
            "Which input model loses least utility?",
            *answers,
            left_out(frame),
        ),
    )


def _comparable(models: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """For each model, the runs that all models have; models that were not run stay empty."""
    run = {name: frame for name, frame in models.items() if len(frame)}
    if not run:
        return dict(models)
    shared = dict(zip(run, common(run.values(), SAME_PEOPLE), strict=True))
    return {name: shared.get(name, frame) for name, frame in models.items()}


def _gaps(compared: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Runs of each two models on the same people, with the difference of their losses."""
    pairs = (("learned", "agnostic"), ("confidence", "agnostic"), ("confidence", "learned"))
    return {
        f"{left} - {right}": paired(compared[left], compared[right], SAME_PEOPLE, "loss")
        for left, right in pairs
    }


def _inputs_cells(
    compared: Mapping[str, pd.DataFrame], gaps: Mapping[str, pd.DataFrame]
) -> tuple[str, ...]:
    return (
        _n(max(compared.values(), key=len)),
        *(cells.estimate(statistics.mean(frame, "loss")) for frame in compared.values()),
        *(cells.estimate(statistics.mean(frame, "difference")) for frame in gaps.values()),
    )


def _least_loss(where: str, compared: Mapping[str, pd.DataFrame]) -> str:
    """A sentence on which model loses least, by how much, and whether that is beyond chance."""
    losses = {name: statistics.mean(frame, "loss") for name, frame in compared.items()}
    known = sorted((loss.value, name) for name, loss in losses.items() if loss is not None)
    if len(known) < 2:
        return f"{where}: not run."
    (_, best), (_, second) = known[:2]
    gap = _difference(compared[second], compared[best])
    if gap is None:
        return f"{where}: not run."
    certain = "" if gap.value > 2 * gap.error else ", which is within two standard errors"
    return (
        f"{where}: {best}, {cells.estimate(losses[best])} %; the next, {second}, loses "
        f"{cells.estimate(gap)} points more{certain}."
    )


# ------------------------------------------------------------------------------- cross-fitted


def cross_fitted(results: Results) -> Product:
    """Input models of out-of-fold scores beside those of the scores of the training part."""
    rows = []
    kinds = (*CROSS_FITTED, *CROSS_FITTED.values())
    frame = totals(select(results.runs, learner="ERM", inputs=kinds, min_support=0))
    for prop in PROPERTIES:
        for undefined in _conventions(select(frame, inputs=tuple(CROSS_FITTED))):
            for shield in ("finite-horizon", *PERIODIC[:3]):
                for kind, name in CROSS_FITTED.items():
                    wanted = {"property": prop, "undefined": undefined, "shield": shield}
                    part = select(frame, **wanted)
                    pair = common([select(part, inputs=k) for k in (name, kind)], SAME_PEOPLE)
                    key = (PROPERTIES[prop], convention(undefined), SHIELDS[shield], name)
                    places = ENVIRONMENTS if shield == "finite-horizon" else {}
                    for place, title in places.items():
                        here = [select(each, environment=place) for each in pair]
                        rows.append((*key, title, *_cross_fitted_cells(*here)))
                    rows.append((*key, "all", *_cross_fitted_cells(*pair)))
    table = ReportTable(
        name="table-cross-fitted",
        title="Learned inputs from the scores of the training part, and from out-of-fold scores",
        columns=(
            *("property", "no relevant people", "shield", "input model", "environment", "runs"),
            *("utility loss (%)", "out of fold", "difference"),
            *("paid", "out of fold", "difference"),
            *("paid - expected", "out of fold"),
        ),
        rows=tuple(rows),
        n_keys=5,
        note=sentences(
            "ERM, the same people; differences are out of fold minus in-sample, paired by people.",
            "Paid: cost of a window or run; expected: by the input model, where one table decides "
            "each period.",
            _OURS,
            left_out(frame),
        ),
    )
    return Product(tables=(table,))


def _cross_fitted_cells(inside: pd.DataFrame, outside: pd.DataFrame) -> tuple[str, ...]:
    out = [_n(outside)]
    for column in ("loss", "cost"):
        out += [cells.estimate(statistics.mean(frame, column)) for frame in (inside, outside)]
        out.append(cells.estimate(_difference(outside, inside, column)))
    gaps = (f.assign(gap=f["cost"] - f["expected"]) for f in (inside, outside))
    return (*out, *(cells.estimate(statistics.mean(frame, "gap")) for frame in gaps))


# ------------------------------------------------------------------------------------ support


def support(results: Results) -> Product:
    """The table of what is saved if fairness is required from a minimum support on."""
    plain = windows(results, learner=learners(results.runs))
    asked = totals(select(results.runs, shield="finite-horizon", inputs="agnostic"))
    asked = asked[asked["min_support"].astype(float) > 0]
    plain, asked = common([plain, asked], SAME_PEOPLE)
    rows = []
    for prop in PROPERTIES:
        for undefined in _conventions(asked):
            parts: dict[str, dict[str, object]] = {
                title: {"environment": name} for name, title in ENVIRONMENTS.items()
            }
            parts["all"] = {}
            parts |= {f"all, κ = {bound:g}": {"bound": bound} for bound in _bounds(asked)}
            for title, part in parts.items():
                wanted = {"property": prop, "undefined": undefined, **part}
                key = (PROPERTIES[prop], convention(undefined), title)
                rows.append(
                    (*key, *_support_cells(select(plain, **wanted), select(asked, **wanted)))
                )
    least = sorted({int(value) for value in asked["min_support"]})
    table = ReportTable(
        name="table-support",
        title="FinHzn with a minimum support, on the same people",
        columns=(
            *("property", "no relevant people", "environment", "runs"),
            *("utility loss (%)", "with minimum support", "difference"),
            *("fair (%)", "fair with minimum support (%)", "had the support (%)"),
        ),
        rows=tuple(rows),
        n_keys=3,
        note=sentences(
            f"Minimum support: {', '.join(map(str, least))} relevant people in each group, else "
            "the run counts as fair."
            if least
            else "",
            "Differences are paired by people. In brackets: 95 % confidence bounds.",
            left_out(plain),
        ),
    )
    return Product(tables=(table,))


def _support_cells(plain: pd.DataFrame, asked: pd.DataFrame) -> tuple[str, ...]:
    return (
        _n(asked),
        cells.estimate(statistics.mean(plain, "loss")),
        cells.estimate(statistics.mean(asked, "loss")),
        cells.estimate(_difference(asked, plain)),
        cells.share(statistics.share(plain, "fair")),
        cells.share(statistics.share(asked, "fair")),
        cells.share(statistics.share(asked, "supported")),
    )


# ---------------------------------------------------------------------------------- baselines

_METHODS = (
    *("none", "finite-horizon", "threshold-optimizer"),
    *("logistic-regression", "exponentiated-gradient"),
)
_SAME_WINDOW = ("environment", "property", "undefined", "bound", "run")


def baselines(results: Results) -> Product:
    """Classifiers made fair on average beside shields, on the same windows."""
    shielded = windows(results, learner="ERM")
    own = {name: totals(select(results.runs, shield=name)) for name in _METHODS[2:]}
    present = {name: frame for name, frame in own.items() if len(frame)}
    frames = dict(
        zip(
            ("finite-horizon", *present),
            common([shielded, *present.values()], _SAME_WINDOW),
            strict=True,
        )
    )
    plain = frames["finite-horizon"]
    frames["none"] = plain.assign(
        unfair=plain["unfair_unshielded"], accuracy=plain["accuracy_unshielded"], loss=0.0
    )
    by_bound = [({"bound": bound}, f"κ = {bound:g}") for bound in _bounds(plain)]
    by_environment = [({"environment": name}, title) for name, title in ENVIRONMENTS.items()]
    return Product(
        tables=(
            _baselines_table("table-baselines", "bound", frames, by_bound),
            _baselines_table("table-baselines-environments", "environment", frames, by_environment),
        )
    )


def _baselines_table(
    name: str,
    by: str,
    frames: Mapping[str, pd.DataFrame],
    parts: Iterable[tuple[Mapping[str, object], str]],
) -> ReportTable:
    rows = []
    parts = [*parts, ({}, "all")]
    for prop in PROPERTIES:
        for undefined in _conventions(frames["finite-horizon"]):
            for wanted, title in parts:
                for method in _METHODS:
                    key = (PROPERTIES[prop], convention(undefined), title, _title(method))
                    if method in frames:
                        own = select(frames[method], property=prop, undefined=undefined, **wanted)
                        rows.append((*key, *_baseline_cells(own, method)))
                    else:
                        rows.append((*key, *[cells.MISSING] * 4))
    return ReportTable(
        name=name,
        title=f"Fair on average or in every window: methods on the same windows, by {by}",
        columns=(
            *("property", "no relevant people", by, "method", "windows"),
            *("unfair windows (%)", "accuracy (%)", "utility loss (%)"),
        ),
        rows=tuple(rows),
        n_keys=4,
        note="Windows that all methods have. Utility loss is relative to plain ERM on the same "
        "people; ExponentiatedGradient is a mixture of logistic regressions, so it is to be "
        "compared with LogisticRegression. ThresholdOptimizer adjusts the scores of ERM by its "
        "decisions on the validation part, half of the people who come: an advantage. In brackets: "
        "95 % confidence bounds.",
    )


def _title(method: str) -> str:
    return {"none": "plain ERM", "finite-horizon": "ERM with FinHzn"}.get(method, SHIELDS[method])


def _baseline_cells(own: pd.DataFrame, method: str) -> tuple[str, ...]:
    loss = cells.MISSING if method == "none" else cells.estimate(statistics.mean(own, "loss"))
    return (
        _n(own),
        cells.share(statistics.share(own, "unfair")),
        cells.estimate(statistics.mean(own, "accuracy")),
        loss,
    )
