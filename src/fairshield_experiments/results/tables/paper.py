"""Tables of the paper's simulations: windows with every classifier, periods with ERM."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from fairshield_experiments.results import cells, statistics
from fairshield_experiments.results.checks import NOT_RUN, PublishedMatch, compare_conventions
from fairshield_experiments.results.departed import departed
from fairshield_experiments.results.names import (
    BOUNDS,
    ENVIRONMENTS,
    LEARNERS,
    PERIODIC,
    PERIODIC_BOUNDS,
    PROPERTIES,
    SHIELDS,
    UNDEFINED,
    Undefined,
)
from fairshield_experiments.results.parts import Product, ReportTable, Results
from fairshield_experiments.results.published import Published, published
from fairshield_experiments.results.rows import SETTING, learners, select
from fairshield_experiments.results.statistics import Estimate
from fairshield_experiments.results.tables.models import metric
from fairshield_experiments.results.tables.shared import (
    convention,
    left_out,
    missing,
    periods,
    sentences,
    windows,
)
from fairshield_experiments.results.trainings import LOSS_KEY, LossKey
from fairshield_experiments.results.trainings import losses as losses_of_trainings

# ----------------------------------------------------------------------------------- fairness

_WHOSE = {"none": "_unshielded", "finite-horizon": ""}


def fairness(results: Results) -> Product:
    """Normalised bias at the horizon, and how often it is above the bound."""
    frame = windows(results)
    found: dict[tuple[str, str, str], dict[str, Estimate | None]] = {
        (prop, undefined, shield): _distribution(
            select(frame, property=prop, undefined=undefined), suffix
        )
        for prop in PROPERTIES
        for undefined in UNDEFINED
        for shield, suffix in _WHOSE.items()
    }
    gaps = missing(frame, len(ENVIRONMENTS) * len(LEARNERS), "environment", "learner")

    def find(number: Published, undefined: Undefined) -> PublishedMatch:
        if gaps:
            return NOT_RUN  # the published number is of all learners together
        ours = found[number.prop, undefined, number.shield][number.measure]
        notes = () if number.shield == "none" else (_LABEL,) * (number.source == "tab:fair_distr")
        return PublishedMatch(ours, notes=notes)

    return Product(
        tables=(_fairness_table(found, gaps), _unfair_by_environment(frame)),
        checks=compare_conventions("table-fairness", find, departed(results, fairness)),
    )


_LABEL = "The printed row is labelled Static-Fair; its numbers are those of the FinHzn shields."


def _distribution(frame: pd.DataFrame, suffix: str) -> dict[str, Estimate | None]:
    bias = f"normalised{suffix}"
    return {
        "25 % quantile": statistics.quantile(frame, bias, 0.25),
        "median": statistics.quantile(frame, bias, 0.5),
        "75 % quantile": statistics.quantile(frame, bias, 0.75),
        "mean": statistics.mean(frame, bias),
        "standard deviation": statistics.deviation(frame, bias),
        "unfair runs": statistics.share(frame, f"unfair{suffix}"),
    }


def _fairness_table(
    found: Mapping[tuple[str, str, str], Mapping[str, Estimate | None]], gaps: str
) -> ReportTable:
    def row(key: tuple[str, str, str], row: Mapping[str, Estimate | None]) -> tuple[str, ...]:
        prop, undefined, shield = key
        unfair = row["unfair runs"]
        return (
            PROPERTIES[prop],
            convention(undefined),
            SHIELDS[shield],
            str(unfair.n) if unfair else cells.MISSING,
            *(cells.estimate(v) for measure, v in row.items() if measure != "unfair runs"),
            cells.share(unfair, 2),
        )

    return ReportTable(
        name="table-fairness",
        title="Normalised bias (bias / κ) at the horizon, environments, learners, bounds pooled",
        columns=(
            *("property", "no relevant people", "shield", "runs"),
            *("25 % quantile", "median", "75 % quantile", "mean", "standard deviation"),
            "unfair runs (%)",
        ),
        rows=tuple(row(*pair) for pair in found.items()),
        n_keys=3,
        note=sentences(
            "Standard errors are clustered: runs with the same people count as one. In brackets: "
            "95 % confidence bounds.",
            gaps,
        ),
    )


def _unfair_by_environment(frame: pd.DataFrame) -> ReportTable:
    def row(environment: str, title: str, undefined: str) -> tuple[str, ...]:
        part = select(frame, environment=environment, undefined=undefined)
        shares = (
            statistics.share(select(part, property=prop), f"unfair{suffix}")
            for prop in PROPERTIES
            for suffix in _WHOSE.values()
        )
        return (title, convention(undefined), *(cells.share(found) for found in shares))

    return ReportTable(
        name="table-fairness-environments",
        title="Unfair runs by environment (%), learners and bounds pooled",
        columns=(
            *("environment", "no relevant people"),
            *(f"{prop}, {SHIELDS[s]}" for prop in PROPERTIES.values() for s in _WHOSE),
        ),
        rows=tuple(row(*named, u) for named in ENVIRONMENTS.items() for u in UNDEFINED),
        n_keys=2,
        note="In brackets: 95 % confidence bounds.",
    )


# ------------------------------------------------------------------------------------ utility


class _Losses:
    """_Losses holds the mean utility losses of the paper's settings, each computed once."""

    def __init__(self, frame: pd.DataFrame) -> None:
        frame = frame.assign(bound=frame["bound"].astype(float).round(6))
        self.frame = frame
        self._parts = dict(iter(frame.groupby(list(LOSS_KEY), observed=True)))
        self._means: dict[tuple[LossKey, str], Estimate | None] = {}

    def mean(self, key: LossKey, column: str = "loss") -> Estimate | None:
        """Of one setting; ``None`` if it was not run."""
        if key not in self._parts:
            return None
        if (key, column) not in self._means:
            self._means[key, column] = statistics.mean(self._parts[key], column)
        return self._means[key, column]


def utility(results: Results) -> Product:
    """Relative utility loss by environment, learner and shield, a table per bound."""
    finite = windows(results, learner=learners(results.runs))
    losses = _Losses(pd.concat([finite, periods(results)], ignore_index=True))
    spreads = losses_of_trainings(results)

    def find(number: Published, undefined: Undefined) -> PublishedMatch:
        where = (number.prop, undefined, number.bound or 0.0, number.environment)
        key: LossKey = (*where, number.shield, number.learner)
        ours = losses.mean(key)
        others = [("As a difference of accuracies", losses.mean(key, "loss_absolute"))]
        if number.shield == "dynamic":
            others.append((_INACTIVE, losses.mean((*where, "inactive", number.learner))))
        rejecting = losses.mean(key, "loss_rejecting")
        if ours and rejecting and _nearer(number, rejecting, ours):
            others.append(("By rejecting everybody", rejecting))
        return PublishedMatch(
            ours,
            others=tuple((words, m) for words, m in others if m is not None),
            notes=_model_note(results, number),
            spread=spreads.get(key),
        )

    tables = tuple(_utility_table(losses, bound) for bound in BOUNDS)
    checks = compare_conventions("table-utility", find, departed(results, utility))
    return Product(tables=tables, checks=checks)


_INACTIVE = "Without interventions where the assumption fails, as the text has it,"


def _nearer(number: Published, one: Estimate, other: Estimate) -> bool:
    return abs(one.value - number.value) < abs(other.value - number.value)


def _model_note(results: Results, number: Published) -> tuple[str, ...]:
    """A sentence on how unfair our classifier is beside the paper's."""
    name = "dp" if number.prop == "demographic-parity" else "eqopp"
    ours = metric(results, number.environment, number.learner, name)
    theirs = [
        n.value
        for n in published("table-performance")
        if (n.environment, n.learner, n.measure) == (number.environment, number.learner, name)
    ]
    if ours is None or not theirs:
        return ()
    return (
        f"What there is to correct: the groups of our {number.learner} differ by "
        f"{cells.estimate(ours, 1)} % in {PROPERTIES[number.prop]}, of theirs by {theirs[0]:g} %.",
    )


def _utility_table(losses: _Losses, bound: float) -> ReportTable:
    columns = [("finite-horizon", learner) for learner in learners(losses.frame)]
    if bound in PERIODIC_BOUNDS:
        columns += [(shield, "ERM") for shield in PERIODIC]
    frame = select(losses.frame, bound=bound)

    def row(prop: str, undefined: str, environment: str, title: str) -> tuple[str, ...]:
        values = (losses.mean((prop, undefined, bound, environment, *c)) for c in columns)
        return (PROPERTIES[prop], convention(undefined), title, *map(cells.estimate, values))

    def pooled(prop: str, undefined: str) -> tuple[str, ...]:
        part = select(frame, property=prop, undefined=undefined)
        values = (statistics.mean(select(part, shield=s, learner=n), "loss") for s, n in columns)
        return (PROPERTIES[prop], convention(undefined), "all", *map(cells.estimate, values))

    rows: list[tuple[str, ...]] = []
    for prop in PROPERTIES:
        for undefined in UNDEFINED:
            rows += [row(prop, undefined, *named) for named in ENVIRONMENTS.items()]
            rows.append(pooled(prop, undefined))
    return ReportTable(
        name=f"table-utility-{round(100 * bound):03d}",
        title=f"Relative utility loss (%), κ = {bound:g}",
        columns=(
            *("property", "no relevant people", "environment"),
            *(
                f"FinHzn, {learner}" if shield == "finite-horizon" else SHIELDS[shield]
                for shield, learner in columns
            ),
        ),
        rows=tuple(rows),
        n_keys=3,
        note=sentences(
            "100 (accuracy without shield - accuracy with) / accuracy without, on the same people; "
            "periodic shields with ERM.",
            _whose(bound),
            left_out(frame),
        ),
    )


def _whose(bound: float) -> str:
    """A sentence on the published numbers of this bound."""
    printed = sorted({number.bound for number in published("table-utility") if number.bound})
    if bound in printed:
        return "The report has the published numbers beside these."
    bounds = " and ".join(f"{other:g}" for other in printed)
    return f"Published numbers exist for κ = {bounds} alone; these are ours."


# ----------------------------------------------------------------------------------- periodic


def periodic(results: Results) -> Product:
    """How often conditions were met, and how often runs were fair at all ends of periods."""
    frame = periods(results)
    everyone = _unshielded(frame)
    parts = {
        (prop, undefined, shield): select(
            everyone if shield == "none" else frame,
            property=prop,
            undefined=undefined,
            **({} if shield == "none" else {"shield": shield}),
        )
        for prop in PROPERTIES
        for undefined in UNDEFINED
        for shield in ("none", *PERIODIC)
    }
    gaps = missing(frame, len(ENVIRONMENTS) * len(PERIODIC_BOUNDS), "environment", "bound")

    def find(number: Published, undefined: Undefined) -> PublishedMatch:
        if gaps:
            return NOT_RUN
        part = parts[number.prop, undefined, number.shield]
        others: list[tuple[str, Estimate | None]] = []
        if number.measure == "condition satisfied":
            ours = statistics.share(part, "condition_published")
            others.append(("For the condition as stated", statistics.share(part, "condition")))
        else:
            ours = statistics.share(part, "fair")
            if number.shield == "dynamic":
                inactive = parts[number.prop, undefined, "inactive"]
                others.append((_INACTIVE, statistics.share(inactive, "fair")))
        return PublishedMatch(
            ours,
            others=tuple((words, m) for words, m in others if m is not None),
        )

    def row(key: tuple[str, str, str], part: pd.DataFrame) -> tuple[str, ...]:
        prop, undefined, shield = key
        shares = (statistics.share(part, c) for c in ("condition", "condition_published", "fair"))
        return (
            PROPERTIES[prop],
            convention(undefined),
            SHIELDS[shield],
            str(len(part)),
            *(cells.share(found) for found in shares),
        )

    table = ReportTable(
        name="table-periodic",
        title="Periodic shields with ERM: runs that met the condition, and fair ones (%)",
        columns=(
            *("property", "no relevant people", "shield", "runs"),
            *("condition as stated", "condition as published", "fair at all ends of periods"),
        ),
        rows=tuple(row(*pair) for pair in parts.items()),
        n_keys=3,
        note=sentences(
            "Environments and bounds pooled. As published: the way the published table measured "
            "the condition. Dynamic (inactive) does not intervene in periods that do not meet its "
            "assumption. In brackets: 95 % confidence bounds.",
            gaps,
        ),
    )
    checks = compare_conventions("table-periodic", find, departed(results, periodic))
    return Product(tables=(table,), checks=checks)


def _unshielded(frame: pd.DataFrame) -> pd.DataFrame:
    """Runs without a shield, each once, though several shields decided the same people."""
    keys = [c for c in (*SETTING, "run") if c != "shield"]
    once = frame.sort_values("shield").drop_duplicates(keys)
    none = once[["condition"]].astype(float) * float("nan")
    return once.assign(
        fair=once["fair_unshielded"],
        condition=none["condition"],
        condition_published=none["condition"],
    )
