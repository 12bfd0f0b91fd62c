"""Tables of several trainings: how far numbers of a single one move, and the chance of theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from fairshield_experiments.results import cells
from fairshield_experiments.results.names import ENVIRONMENTS, MEASURES, PROPERTIES, SHIELDS
from fairshield_experiments.results.parts import Product, ReportTable, Results
from fairshield_experiments.results.published import Published, published
from fairshield_experiments.results.tables.shared import convention, sentences
from fairshield_experiments.results.trainings import (
    LIKELY,
    LossKey,
    MetricKey,
    Spread,
    losses,
    metrics,
    p_value,
)

_Key = TypeVar("_Key")
_SPREAD = ("trainings", "mean", "standard deviation", "published", "chance p")


def trainings(results: Results) -> Product:
    """Tables of metrics and of utility losses over all trainings."""
    return Product(tables=(_metrics(metrics(results)), _losses(losses(results))))


def _metrics(spreads: Mapping[MetricKey, Spread]) -> ReportTable:
    numbers = {(n.environment, n.learner, n.measure): n for n in published("table-performance")}
    return ReportTable(
        name="table-trainings-performance",
        title="Classifiers in several trainings: performance and unfairness on test people (%)",
        columns=("environment", "learner", "metric", *_SPREAD),
        rows=tuple(
            (
                ENVIRONMENTS.get(environment, environment),
                learner,
                MEASURES.get(metric, metric),
                *_cells(spreads.get((environment, learner, metric)), number),
            )
            for (environment, learner, metric), number in _both(numbers, spreads)
        ),
        n_keys=3,
        note=sentences(_NOTE, _how_many(numbers, spreads)),
    )


def _losses(spreads: Mapping[LossKey, Spread]) -> ReportTable:
    run = sorted({undefined for _, undefined, *_ in spreads}) or ["rate-0"]
    numbers: dict[LossKey, Published] = {
        (n.prop, undefined, n.bound or 0.0, n.environment, n.shield, n.learner): n
        for undefined in run
        for n in published("table-utility")
    }

    def row(key: LossKey, number: Published | None) -> tuple[str, ...]:
        prop, undefined, bound, environment, shield, learner = key
        said = (PROPERTIES[prop], convention(undefined), f"{bound:g}")
        who = (ENVIRONMENTS.get(environment, environment), SHIELDS[shield], learner)
        return (*said, *who, *_cells(spreads.get(key), number))

    return ReportTable(
        name="table-trainings-utility",
        title="Utility loss in several trainings (%)",
        columns=(
            *("property", "no relevant people", "κ", "environment", "shield", "learner"),
            *_SPREAD,
        ),
        rows=tuple(row(*pair) for pair in _both(numbers, spreads)),
        n_keys=6,
        note=sentences(_NOTE, _how_many(numbers, spreads)),
    )


_NOTE = (
    "Each training has a split, a seed and runs of other people of its own; the first one is that "
    "of all other tables. Chance: how probable it is, by Student's distribution, that a further "
    "training is at least as far from the mean as the published number, which is one training."
)


def _both(
    numbers: Mapping[_Key, Published], spreads: Iterable[_Key]
) -> list[tuple[_Key, Published | None]]:
    """Keys of published numbers in their order, then those of others that were trained."""
    others = [key for key in spreads if key not in numbers]
    return [*numbers.items(), *((key, None) for key in others)]


def _cells(spread: Spread | None, number: Published | None) -> tuple[str, ...]:
    if spread is None:
        return (cells.MISSING,) * len(_SPREAD)
    ours = (str(len(spread.values)), cells.number(spread.mean), cells.number(spread.deviation))
    if number is None:
        return (*ours, cells.MISSING, cells.MISSING)
    return (*ours, cells.number(number.value), p_value(spread.chance(number)))


def _how_many(numbers: Mapping[_Key, Published], spreads: Mapping[_Key, Spread]) -> str:
    """How many published numbers are improbable, and how many would be by chance alone."""
    chances = [spreads[key].chance(number) for key, number in numbers.items() if key in spreads]
    if not chances:
        return ""
    return (
        f"Of {len(chances)} published numbers, {sum(p < LIKELY for p in chances)} have a chance "
        f"below {LIKELY:g}; if all were trainings like ours, {LIKELY * len(chances):.0f} would."
    )
