"""Dataset is a data set that has been read: columns, a sensitive group and a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """Dataset is an environment: people, their group and what is to be predicted of them.

    Attributes
    ----------
    name, title
        ``"adult-race"``, ``"Adult (race)"``.
    task, attribute
        What is predicted and what is sensitive: ``"income"``, ``"race"``.
    groups
        Names of the paper's groups a and b.
    group
        ``(n,)``: 0 for a, 1 for b.
    target
        ``(n,)``: whether the target is 1.
    numeric, categorical
        Feature columns by name, ``(n,)`` each; a missing category is a category.
    problems
        What is known to be wrong with these people as a benchmark, in plain sentences.
    """

    name: str
    title: str
    task: str
    attribute: str
    groups: tuple[str, str]
    group: NDArray[np.int8]
    target: NDArray[np.bool_]
    numeric: Mapping[str, NDArray[np.float64]]
    categorical: Mapping[str, NDArray[np.str_]]
    problems: str

    def __len__(self) -> int:
        return len(self.group)
