"""Tables of data sets, of classifiers, and of the cost of a synthesis."""

from __future__ import annotations

import math

import pandas as pd

from fairshield_experiments.results import cells
from fairshield_experiments.results.checks import NOT_RUN, PublishedMatch, compare
from fairshield_experiments.results.names import ENVIRONMENTS, METRICS, PROPERTIES
from fairshield_experiments.results.parts import Product, ReportTable, Results
from fairshield_experiments.results.published import Published, published
from fairshield_experiments.results.rows import learners, select
from fairshield_experiments.results.statistics import Estimate
from fairshield_experiments.results.trainings import metrics

_SHARES = {"y0": "y = 0 (%)", "y1": "y = 1 (%)", "ga": "group a (%)", "gb": "group b (%)"}


def datasets(results: Results) -> Product:
    """The table of the seven environments: people, groups and outcomes."""
    frame = results.datasets
    known = {} if frame.empty else {str(row["environment"]): row for _, row in frame.iterrows()}

    def row(name: str, title: str) -> tuple[str, ...]:
        if name not in known:
            return (title, *[cells.MISSING] * (6 + len(_SHARES)))
        r = known[name]
        return (
            title,
            str(r["task"]),
            str(r["attribute"]),
            *(cells.number(r[c], 0) for c in ("instances", "numeric", "categorical")),
            *(cells.number(100 * r[c]) for c in _SHARES),
            cells.number(r["parity"]),
        )

    def find(number: Published) -> PublishedMatch:
        if number.environment not in known:
            return NOT_RUN
        value = float(known[number.environment][number.measure])
        # These numbers are counted, so they have no standard error.
        return PublishedMatch(Estimate(100 * value if number.unit == "%" else value, 0.0, 1))

    table = ReportTable(
        name="table-datasets",
        title="Data sets",
        columns=(
            *("environment", "task", "attribute", "people", "numeric", "categorical"),
            *_SHARES.values(),
            "parity",
        ),
        rows=tuple(row(*named) for named in ENVIRONMENTS.items()),
        note="Parity: absolute difference of the groups' base rates.",
    )
    return Product(tables=(table,), checks=compare("table-datasets", find))


def metric(results: Results, environment: str, learner: str, name: str) -> Estimate | None:
    """A metric of a classifier in %, with its standard error."""
    rows = select(results.metrics, environment=environment, learner=learner, metric=name)
    if rows.empty or not math.isfinite(float(rows["value"].iloc[0])):
        return None
    return Estimate(100 * float(rows["value"].iloc[0]), 100 * float(rows["error"].iloc[0]), 1)


_DATASETS = {"adult": "Adult", "bank": "Bank", "compas": "COMPAS", "german": "German"}


def performance(results: Results) -> Product:
    """How good and how fair the classifiers are, a table per data set."""
    spreads = metrics(results)

    def find(number: Published) -> PublishedMatch:
        key = number.environment, number.learner, number.measure
        return PublishedMatch(metric(results, *key), spread=spreads.get(key))

    tables = tuple(_performance(results, name, title) for name, title in _DATASETS.items())
    return Product(tables=tables, checks=compare("table-performance", find))


def _performance(results: Results, dataset: str, title: str) -> ReportTable:
    environments = {
        name: words.partition("(")[2].rstrip(")")
        for name, words in ENVIRONMENTS.items()
        if name.startswith(dataset)
    }
    return ReportTable(
        name=f"table-performance-{dataset}",
        title=f"Classifiers on {title}: performance and unfairness on test people (%)",
        columns=("attribute", "learner", *METRICS.values()),
        rows=tuple(
            (
                attribute,
                learner,
                *(cells.estimate(metric(results, name, learner, m), 1) for m in METRICS),
            )
            for name, attribute in environments.items()
            for learner in learners(results.metrics)
        ),
        n_keys=2,
        note="Standard errors are those of the choice of test people; each classifier was trained "
        "once. DP and EqOpp: absolute differences between the groups.",
    )


_MEASURES = {"seconds": 4, "megabytes": 2}
_THEIRS = "published implementation, measured again"


def resources(results: Results) -> Product:
    """Time and memory of a synthesis by horizon, beside the published implementation's."""
    frame = results.resources
    theirs = {
        (n.prop, n.horizon or 0, n.levels or 0, n.measure): n.value
        for n in published("table-resources")
        if n.source == _THEIRS
    }
    ours = {} if frame.empty else _measured(frame)
    keys = sorted({key[:3] for key in (*theirs, *ours)})

    def row(prop: str, horizon: int, levels: int) -> tuple[str, ...]:
        out = [PROPERTIES.get(prop, prop), str(horizon), str(levels)]
        for measure, decimals in _MEASURES.items():
            mine = ours.get((prop, horizon, levels, measure))
            other = theirs.get((prop, horizon, levels, measure))
            out += [cells.number(mine, decimals), cells.number(other, decimals)]
            out.append(cells.ratio(other / mine) if other and mine else cells.MISSING)
        return tuple(out)

    def find(number: Published) -> PublishedMatch:
        key = (number.prop, number.horizon or 0, number.levels or 0, number.measure)
        return PublishedMatch(Estimate(ours[key], math.nan, 1)) if key in ours else NOT_RUN

    table = ReportTable(
        name="table-resources",
        title="Time and memory of a synthesis",
        columns=(
            *("property", "T", "cost levels"),
            *("seconds", "seconds (published)", "times faster"),
            *("MB", "MB (published)", "times smaller"),
        ),
        rows=tuple(row(*key) for key in keys),
        n_keys=3,
        note="Published: the paper's implementation, measured again (κ = 0.05).",
    )
    return Product(tables=(table,), checks=compare("table-resources", find))


def _measured(frame: pd.DataFrame) -> dict[tuple[str, int, int, str], float]:
    """Our measurements by property, horizon, levels and measure; the best of repeated ones."""
    found: dict[tuple[str, int, int, str], float] = {}
    for _, row in frame.iterrows():
        for measure in _MEASURES:
            key = (str(row["property"]), int(row["horizon"]), int(row["levels"]), measure)
            value = float(row[measure])
            if math.isfinite(value):
                found[key] = min(value, found.get(key, math.inf))
    return found
