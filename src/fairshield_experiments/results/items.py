"""All items that can be made, in the order of the report: tables first."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from fairshield_experiments.results.figures import FIGURES, drawn
from fairshield_experiments.results.parts import Item, Product, Results
from fairshield_experiments.results.tables import (
    claims,
    departures,
    models,
    more,
    paper,
    trainings,
)
from fairshield_experiments.sweep.call import Failure
from fairshield_experiments.sweep.task import Task
from fairshield_experiments.sweep.workers import Processes

TABLES: tuple[Item, ...] = (
    Item(
        name="table-datasets",
        title="Data sets",
        needs=("datasets",),
        make=models.datasets,
    ),
    Item(
        name="table-performance",
        title="Performance of the classifiers",
        needs=("models",),
        make=models.performance,
    ),
    Item(
        name="table-fairness",
        title="Normalised bias with and without a shield",
        needs=("finite",),
        make=paper.fairness,
    ),
    Item(
        name="table-utility",
        title="Utility loss",
        needs=("models", "finite", "periodic"),
        make=paper.utility,
    ),
    Item(
        name="table-periodic",
        title="Conditions and fairness of periodic shields",
        needs=("periodic",),
        make=paper.periodic,
    ),
    Item(
        name="table-resources",
        title="Time and memory of a synthesis",
        needs=("resources",),
        make=models.resources,
    ),
    Item(
        name="table-claims",
        title="What the paper says in words",
        needs=("finite", "periodic"),
        make=claims.claims,
    ),
    Item(
        name="table-as-published",
        title="The published numbers, by the text and as the published runs were made",
        needs=("datasets", "models", "finite", "periodic", "resources", "as-published"),
        make=departures.as_published,
        published=False,
    ),
    Item(
        name="table-departures",
        title="What each departure of the published runs changes",
        needs=("models", "finite", "periodic", "as-published", "ablation"),
        make=departures.departures,
        published=False,
        in_all=False,
    ),
    Item(
        name="table-guaranteed",
        title="Periodic shields with a guarantee",
        needs=("periodic", "guaranteed"),
        make=more.guaranteed,
        published=False,
    ),
    Item(
        name="table-inputs",
        title="What a better input model is worth",
        needs=("finite", "periodic", "inputs"),
        make=more.inputs,
        published=False,
    ),
    Item(
        name="table-cross-fitted",
        title="Input models from out-of-fold scores",
        needs=("inputs",),
        make=more.cross_fitted,
        published=False,
    ),
    Item(
        name="table-trainings",
        title="Several trainings",
        needs=("models", "finite", "periodic", "trainings"),
        make=trainings.trainings,
        published=False,
    ),
    Item(
        name="table-support",
        title="Fairness once both groups have enough people",
        needs=("finite", "support"),
        make=more.support,
        published=False,
    ),
    Item(
        name="table-baselines",
        title="Classifiers made fair on average",
        needs=("finite", "baselines"),
        make=more.baselines,
        published=False,
    ),
)


ITEMS: tuple[Item, ...] = (*TABLES, *FIGURES)


def make(item: Item, results: Results) -> Product:
    """The item, its figures drawn."""
    product = item.make(results)
    return replace(
        product,
        tables=tuple(table.without_gaps() for table in product.tables),
        figures=tuple(map(drawn, product.figures)),
    )


def make_all(items: Sequence[Item], results: Results, processes: int) -> dict[Item, Product]:
    """Make the items, in this process or in several, because drawing is slow."""
    if processes == 1 or len(items) == 1:
        return {item: make(item, results) for item in items}
    tasks = {
        Task(item.name, item.title, {"name": item.name, "results": results}): item for item in items
    }
    made: dict[Item, Product] = {}
    with closing(Processes(processes).results(_made, list(tasks))) as found:
        for task, outcome, _ in found:
            if isinstance(outcome, Failure):
                raise RuntimeError(f"{task.title} could not be made: {outcome}")
            made[tasks[task]] = outcome["product"]
    return {item: made[item] for item in items}


def _made(name: str, results: Results) -> dict[str, Product]:
    """An item, as a process makes it."""
    (item,) = (item for item in ITEMS if item.name == name)
    return {"product": make(item, results)}
