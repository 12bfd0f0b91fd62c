"""All items that can be made, in the order of the report: tables first."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

from fairshield_experiments.results.figures import FIGURES, drawn
from fairshield_experiments.results.parts import Item, Product, Results
from fairshield_experiments.results.tables import claims, models, more, paper

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
    """Items by themselves, in this process or in several, because drawing takes its time."""
    if processes == 1 or len(items) == 1:
        return {item: make(item, results) for item in items}
    context = get_context("spawn")  # a fork would copy locks that other threads hold
    with ProcessPoolExecutor(processes, context, _receive, (results,)) as pool:
        made = pool.map(_make_received, [item.name for item in items])
        return dict(zip(items, made, strict=True))


_received: list[Results] = []
"""In a process that makes items: what they are made of."""


def _receive(results: Results) -> None:
    _received.append(results)


def _make_received(name: str) -> Product:
    (item,) = (item for item in ITEMS if item.name == name)
    return make(item, _received[0])
