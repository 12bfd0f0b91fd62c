"""Groups from several sensitive columns: one name per person for the values in all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Group, group_name
from fairshield.base.errors import InvalidValueError
from fairshield.base.groups import Coded, group_column, is_missing, stranger

CROSS = " × "
"""Stands between the parts of an intersectional group's name."""


def intersection(*columns: Any, separator: str = CROSS) -> NDArray[Any]:
    """Intersectional groups: one name per person from several sensitive columns.

    Parameters
    ----------
    columns
        One-dimensional arrays, lists or series of equal length; or a single table (data frame,
        mapping of columns, two-dimensional array).
    separator
        Stands between the parts of a name, and in none of them.

    Examples
    --------
    >>> intersection(["f", "m", "f"], ["old", "old", "young"]).tolist()
    ['f × old', 'm × old', 'f × young']
    """
    parts = [_part(part, i) for i, part in enumerate(_columns(columns))]
    return np.asarray(cross(parts, separator))


def cross(parts: Sequence[Coded], separator: str = CROSS) -> Coded:
    """:func:`intersection` of columns that are dictionary-encoded."""
    texts = [_as_text(part) for part in parts]
    lengths = {len(text) for text in texts}
    if len(lengths) != 1:
        raise InvalidValueError(
            f"columns of lengths {sorted(lengths)} have no intersection: one entry per person in "
            "each"
        )
    for text in texts:
        for name in text.names:
            if len(texts) > 1 and separator in name:
                raise InvalidValueError(
                    f"the name {name!r} contains the separator {separator!r}, so that "
                    "intersections could not be told apart: choose another with separator="
                )
    names, codes = texts[0].names, texts[0].codes
    for text in texts[1:]:
        more = text.names
        pairs = codes * len(more) + text.codes
        # Numbering the pairs that occur keeps the numbers small, however many columns there are.
        used = np.flatnonzero(np.bincount(pairs, minlength=1))
        places = np.zeros(len(names) * len(more), np.intp)
        places[used] = np.arange(len(used))
        codes = places[pairs]
        names = tuple(
            f"{names[pair // len(more)]}{separator}{more[pair % len(more)]}"
            for pair in used.tolist()
        )
    return Coded(names, codes)


def _columns(given: tuple[Any, ...]) -> list[Any]:
    if len(given) != 1:
        if not given:
            raise InvalidValueError("no columns to intersect: give at least one")
        return list(given)
    return columns_of(given[0])


def groups_of(sensitive_features: Any) -> NDArray[Any] | Coded:
    """One name per person: of a single column as it is, of several that of the intersection."""
    columns = columns_of(sensitive_features)
    if len(columns) == 1:
        return group_column(columns[0], "sensitive_features")
    return intersection(*columns)


def columns_of(table: Any) -> list[Any]:
    """The columns of a data frame, a mapping or a two-dimensional array; or the one there is."""
    if isinstance(table, Mapping):
        return list(table.values())
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):
        # A frame of pandas or polars; an Arrow table has columns instead of their names.
        names = getattr(table, "column_names", table.columns)
        return [table[name] for name in names]
    if isinstance(table, list | tuple) and table and all(map(_is_row, table)):
        if len({len(row) for row in table}) > 1:
            raise InvalidValueError(
                "rows of different lengths are no table: give every person an entry in each column"
            )
        return [list(column) for column in zip(*table, strict=True)]
    if isinstance(table, np.ndarray) and table.ndim == 2:
        return list(table.T)
    return [table]


def _is_row(row: Any) -> bool:
    return isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim == 1)


def _part(column: Any, i: int) -> Coded:
    names = group_column(column, f"columns[{i}]")
    return names if isinstance(names, Coded) else Coded.of(names.tolist())


def _as_text(column: Coded) -> Coded:
    """The names that occur, as text; ``None`` and NaN become one and the same name."""
    places: dict[str, int] = {}
    meant: dict[str, Group | None] = {}
    number = np.zeros(len(column.names), np.intp)
    for code in column.used():
        name = column.names[code]
        known, text = (None if is_missing(name) else group_name(name)), str(stranger(name))
        if meant.setdefault(text, known) != known:
            raise InvalidValueError(
                f"{meant[text]!r} and {known!r} read alike, so that people of two groups would be "
                "counted as one: convert the column to one type"
            )
        number[code] = places.setdefault(text, len(places))
    return Coded(tuple(places), number[column.codes])
