"""Who belongs to which group: names from several columns, and names nobody declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Group, group_name, unknown_group
from fairshield.errors import InvalidValueError

CROSS = " × "
"""Stands between the parts of an intersectional group's name."""
MISSING = "(missing)"
"""How a person without a group is reported."""


@dataclass(frozen=True)
class Unseen:
    """What happens to people of a group that the policy was not made for.

    Made by :meth:`refuse`, :meth:`map` or :meth:`follow`, or read by :meth:`of`.

    * ``refuse``: an error, before anything is counted.
    * ``map``: they count as members of a group that was declared.
    * ``follow``: the classifier's proposal stands and they are not counted; the guarantee is about
      the declared groups, and how many were followed is reported.

    >>> Unseen.map({"nonbinary": "women"}).known_as("nonbinary", ("women", "men"))
    'women'
    >>> Unseen.follow().known_as("nonbinary", ("women", "men")) is None
    True
    """

    kind: Literal["refuse", "map", "follow"] = "refuse"
    to: Group | None = None
    """``map``: the group of all that :attr:`names` does not list; ``None`` refuses them."""
    names: tuple[tuple[Group, Group], ...] = ()

    @classmethod
    def refuse(cls) -> Unseen:
        """Raise :class:`~fairshield.errors.UnknownGroupError`."""
        return cls("refuse")

    @classmethod
    def follow(cls) -> Unseen:
        """Keep the proposal, count nobody, report how many."""
        return cls("follow")

    @classmethod
    def map(cls, to: Group | Mapping[Group, Group]) -> Unseen:
        """Count everybody unseen as ``to``, or each as a mapping says; others are refused."""
        if isinstance(to, Mapping):
            names = tuple((group_name(g), group_name(known)) for g, known in to.items())
            return cls("map", names=names)
        return cls("map", to=group_name(to))

    @classmethod
    def of(cls, given: Unseen | str | Mapping[Group, Group]) -> Unseen:
        """What a user gave: ``"refuse"``, ``"follow"``, ``"map:GROUP"``, a mapping or this."""
        if isinstance(given, cls):
            return given
        if isinstance(given, Mapping):
            return cls.map(given)
        if given in ("refuse", "follow"):
            return cls(given)  # type: ignore[arg-type]  # one of the two
        if isinstance(given, str) and given.startswith("map:") and given != "map:":
            return cls.map(given.removeprefix("map:"))
        raise InvalidValueError(
            f"unseen must be 'refuse', 'follow', 'map:GROUP' or a mapping of groups, got {given!r}"
        )

    def among(self, known: tuple[Group, ...]) -> Unseen:
        """The same for a policy that knows these groups, targets spelt as they are."""
        for name, _ in self.names:
            if name in known:
                raise InvalidValueError(
                    f"unseen maps {name!r}, which the policy knows: leave it out of the mapping"
                )
        to = None if self.to is None else _spelt(self.to, known)
        return Unseen(self.kind, to, tuple((name, _spelt(g, known)) for name, g in self.names))

    def known_as(self, name: Any, known: tuple[Group, ...]) -> Group | None:
        """The declared group that ``name`` counts as; ``None`` if the proposal is followed."""
        if self.kind == "follow":
            return None
        if self.kind == "map":
            target = dict(self.names).get(stranger(name), self.to)
            if target is not None:
                return target
        raise unknown_group(name, known)

    def __str__(self) -> str:
        return f"map:{self.to}" if self.to is not None else self.kind


def _spelt(name: Group, known: tuple[Group, ...]) -> Group:
    for group in known:
        if str(group) == str(name):
            return group
    raise unknown_group(name, known)


def stranger(name: Any) -> Group:
    """How somebody of an undeclared group is reported; a missing name has a name, too."""
    if name is None or name != name:  # NaN alone differs from itself
        return MISSING
    return group_name(name)


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
    parts = [_named(part, i) for i, part in enumerate(_columns(columns))]
    lengths = {len(codes) for _, codes in parts}
    if len(lengths) != 1:
        raise InvalidValueError(
            f"columns of lengths {sorted(lengths)} have no intersection: one entry per person in "
            "each"
        )
    for names, _ in parts:
        for name in names:
            if len(parts) > 1 and separator in name:
                raise InvalidValueError(
                    f"the name {name!r} contains the separator {separator!r}, so that "
                    "intersections could not be told apart: choose another with separator="
                )
    names, codes = parts[0]
    for more, others in parts[1:]:
        used, codes = np.unique(codes * len(more) + others, return_inverse=True)
        names = [f"{names[c // len(more)]}{separator}{more[c % len(more)]}" for c in used.tolist()]
    return np.array(names, dtype=object)[codes] if names else np.empty(0, dtype=object)


def _columns(given: tuple[Any, ...]) -> list[Any]:
    if len(given) != 1:
        if not given:
            raise InvalidValueError("no columns to intersect: give at least one")
        return list(given)
    (table,) = given
    if isinstance(table, Mapping):
        return list(table.values())
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):
        # A frame of pandas or polars; an Arrow table has columns instead of their names.
        names = getattr(table, "column_names", table.columns)
        return [table[name] for name in names]
    array = np.asarray(table)
    return list(array.T) if array.ndim == 2 else [array]


def _named(column: Any, i: int) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct values of a column as text, and the number of each person's."""
    array = np.asarray(column)
    if array.ndim != 1:
        raise InvalidValueError(f"columns[{i}] must be one-dimensional, got shape {array.shape}")
    values: dict[Any, int] = {}
    rows = [values.setdefault(value, len(values)) for value in array.tolist()]
    names: dict[str, int] = {}
    # Values that read alike, 1 and "1" or two NaNs, are one name.
    number = [names.setdefault(str(stranger(value)), len(names)) for value in values]
    return list(names), np.array(number, np.int64)[np.array(rows, np.intp)]
