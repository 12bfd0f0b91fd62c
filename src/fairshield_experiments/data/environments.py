"""The paper's seven environments by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import fairshield as fs
from fairshield_experiments.data import adult, bank, compas, german
from fairshield_experiments.data.sources import Progress
from fairshield_experiments.data.table import Dataset

_LOADERS: dict[str, Callable[..., Dataset]] = {
    "adult-race": partial(adult.load, "race"),
    "adult-gender": partial(adult.load, "gender"),
    "bank-age": bank.load,
    "compas-gender": partial(compas.load, "gender"),
    "compas-race": partial(compas.load, "race"),
    "german-gender": partial(german.load, "gender"),
    "german-age": partial(german.load, "age"),
}

ENVIRONMENTS = tuple(_LOADERS)
"""Names of the environments, in the order of the paper's table."""


def load(name: str, *, progress: Progress | None = None) -> Dataset:
    """The environment ``name``, read from the raw files.

    Parameters
    ----------
    name
        One of :data:`ENVIRONMENTS`.
    progress
        Called while a file is downloaded.

    Raises
    ------
    InvalidValueError
        No environment has this name.
    DataError
        A raw file is not there and cannot be downloaded, or is not the published one.
    """
    if name not in _LOADERS:
        raise fs.InvalidValueError(
            f"there is no environment {name!r}; choose one of {', '.join(ENVIRONMENTS)}"
        )
    return _LOADERS[name](progress=progress)


def describe(dataset: Dataset) -> dict[str, Any]:
    """The environment's row of the paper's table; shares are fractions.

    ``y0`` and ``y1`` are shares of the targets, ``ga`` and ``gb`` of the groups; ``parity`` is the
    absolute difference of the groups' shares of target 1.  ``problems`` is not in the paper.
    """
    in_b = dataset.group == 1
    y1, gb = float(dataset.target.mean()), float(in_b.mean())
    parity = abs(float(dataset.target[in_b].mean()) - float(dataset.target[~in_b].mean()))
    return {
        "environment": dataset.name,
        "title": dataset.title,
        "task": dataset.task,
        "attribute": dataset.attribute,
        "instances": len(dataset),
        "numeric": len(dataset.numeric),
        "categorical": len(dataset.categorical),
        "y0": 1 - y1,
        "y1": y1,
        "ga": 1 - gb,
        "gb": gb,
        "parity": parity,
        "problems": dataset.problems,
    }
