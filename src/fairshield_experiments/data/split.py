"""Split divides people into those who train a classifier and those held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, train_test_split

import fairshield as fs
from fairshield_experiments.data.columns import frozen
from fairshield_experiments.data.table import Dataset

HELD_OUT = 0.3
"""Share of the people in each of the parts test and validation."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Split:
    """Split holds the rows of a data set in three disjoint parts, each in rising order."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]
    validation: NDArray[np.intp]

    @property
    def held_out(self) -> NDArray[np.intp]:
        """Everybody who does not train, test before validation."""
        return np.concatenate((self.test, self.validation))


def make_split(dataset: Dataset, *, seed: int = 0) -> Split:
    """40 % of the people to train, 30 % to test, 30 % to validate, stratified on the target."""
    size = round(HELD_OUT * len(dataset))
    rest, test = _part(np.arange(len(dataset)), dataset.target, size, seed)
    train, validation = _part(rest, dataset.target, size, seed)
    return Split(train=train, test=test, validation=validation)


def make_folds(dataset: Dataset, split: Split, folds: int, *, seed: int = 0) -> tuple[Split, ...]:
    """The training part divided into ``folds``, stratified on the target, one :class:`Split` each.

    Each has one fold as its test part, the other folds to train, and nobody to validate.
    """
    rows = split.train
    least = int(np.bincount(dataset.target[rows].astype(np.intp), minlength=2).min())
    if not 2 <= folds <= least:
        raise fs.InvalidValueError(
            f"{folds} folds of the training part of {dataset.name}: there must be at least 2, and "
            f"each needs people of both outcomes, of one of which there are {least}. Choose fewer "
            "folds, or a larger training part"
        )
    kfold = StratifiedKFold(folds, shuffle=True, random_state=seed)
    nobody = frozen(rows[:0])
    return tuple(
        Split(train=frozen(rows[others]), test=frozen(rows[own]), validation=nobody)
        for others, own in kfold.split(rows, dataset.target[rows])
    )


def _part(
    rows: NDArray[np.intp], target: NDArray[np.bool_], size: int, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Take ``size`` of the rows away; return those left and those taken."""
    left, taken = train_test_split(rows, test_size=size, stratify=target[rows], random_state=seed)
    return frozen(np.sort(left)), frozen(np.sort(taken))


def encode(dataset: Dataset, split: Split) -> NDArray[np.float32]:
    """Features of everybody as numbers, ``(n, d)``; columns as :func:`feature_names` lists them.

    Numeric columns have mean 0 and standard deviation 1 on the training part (0 where they do not
    vary there).  Categorical columns are one-hot, with the categories of all people: one that only
    held-out people have is a column of zeros in training.
    """
    columns = [_standardised(column, split.train) for column in dataset.numeric.values()]
    columns += [_one_hot(column) for column in dataset.categorical.values()]
    return np.concatenate(columns, axis=1)


def feature_names(dataset: Dataset) -> tuple[str, ...]:
    """Names of the columns of :func:`encode`: ``"age"``, then ``"sex=Female"``, ``"sex=Male"``."""
    return (
        *dataset.numeric,
        *(
            f"{name}={category}"
            for name, column in dataset.categorical.items()
            for category in np.unique(column)
        ),
    )


def _standardised(column: NDArray[np.float64], train: NDArray[np.intp]) -> NDArray[np.float32]:
    deviation = column[train].std()
    scaled = (column - column[train].mean()) / (deviation if deviation > 0 else 1)
    return np.asarray(scaled, dtype=np.float32)[:, np.newaxis]


def _one_hot(column: NDArray[np.str_]) -> NDArray[np.float32]:
    categories, index = np.unique(column, return_inverse=True)
    return np.eye(len(categories), dtype=np.float32)[index]
