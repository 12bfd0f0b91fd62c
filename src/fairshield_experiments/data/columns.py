"""``read_columns`` reads delimited text as columns."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.str_]
Array = TypeVar("Array", bound=NDArray[Any])


def read_columns(
    path: Path, *, delimiter: str = ",", header: Sequence[str] | None = None
) -> dict[str, Column]:
    """The columns of a file by name, as text.

    Lines with another number of fields than the header are remarks or empty, and left out.  Of
    columns with one name the first is taken.

    Parameters
    ----------
    header
        Names of the columns; ``None``: they are in the first line.
    """
    with path.open(encoding="utf-8", newline="") as stream:
        rows = csv.reader(stream, delimiter=delimiter, skipinitialspace=True)
        names = next(rows) if header is None else header
        fields = zip(*(row for row in rows if len(row) == len(names)), strict=True)
        columns: dict[str, Column] = {}
        for name, values in zip(names, fields, strict=True):
            columns.setdefault(name, np.array(values, dtype=np.str_))
    return columns


def select(columns: Mapping[str, Column], rows: NDArray[np.bool_]) -> dict[str, Column]:
    """The columns of some rows."""
    return {name: column[rows] for name, column in columns.items()}


def numbers(columns: Mapping[str, Column], names: Iterable[str]) -> dict[str, NDArray[np.float64]]:
    """The named columns as numbers, read-only."""
    return {name: frozen(columns[name].astype(np.float64)) for name in names}


def categories(columns: Mapping[str, Column], names: Iterable[str]) -> dict[str, Column]:
    """The named columns as text, read-only."""
    return {name: frozen(columns[name]) for name in names}


def frozen(array: Array) -> Array:
    """The array itself, no longer writeable."""
    array.setflags(write=False)
    return array


def codes(in_b: NDArray[np.bool_]) -> NDArray[np.int8]:
    """0 for group a and 1 for group b, read-only."""
    return frozen(in_b.astype(np.int8))
