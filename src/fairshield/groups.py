"""Who belongs to which group: names from several columns, and names nobody declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Group, group_name, reads_like, unknown_group
from fairshield.errors import InvalidValueError, UnknownGroupError, argument

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

    A name that reads like a declared one and is of another type, 1 for ``"1"``, is a column read
    wrongly and no other group: an error, unless a mapping lists it.

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
        name = _plain(name)
        missing, listed = _is_missing(name), dict(self.names)
        if not missing and name not in tuple(listed) and reads_like(name, known) is not None:
            raise unknown_group(name, known)
        if self.kind == "follow":
            return None
        if self.kind == "map":
            target = listed.get(stranger(name), self.to)
            if target is not None:
                return target
        what = _no_group(known) if missing else unknown_group(name, known)
        raise UnknownGroupError(f"{what}; say what happens to others with {argument('unseen')}")

    def placed(
        self, numbers: NDArray[np.int8], who: NDArray[Any] | Coded, known: tuple[Group, ...],
        column: str,
    ) -> NDArray[np.int8]:  # fmt: skip
        """``numbers``, each person's place in ``known`` or -1, where -1 is left to the followed.

        Raises
        ------
        UnknownGroupError
            For the first person, by ``column`` and row, whom this rule does not provide for.
        """
        unknown = np.flatnonzero(numbers < 0)
        if not unknown.size:
            return numbers
        others = Coded.of(who[unknown].tolist())
        places = []
        for code, name in enumerate(others.names):
            try:
                target = self.known_as(name, known)
            except UnknownGroupError as error:
                row = int(unknown[np.argmax(others.codes == code)])
                raise UnknownGroupError(f"{column}[{row}]: {error}") from None
            places.append(-1 if target is None else known.index(target))
        placed = numbers.copy()
        placed[unknown] = np.array(places, np.int8)[others.codes]
        return placed

    def __str__(self) -> str:
        return f"map:{self.to}" if self.to is not None else self.kind


def _spelt(name: Group, known: tuple[Group, ...]) -> Group:
    for group in known:
        if str(group) == str(name):
            return group
    raise unknown_group(name, known)


def stranger(name: Any) -> Group:
    """How somebody of an undeclared group is reported; a missing name has a name, too."""
    return MISSING if _is_missing(name) else group_name(name)


def _is_missing(name: Any) -> bool:
    return name is None or type(name).__name__ == "NAType" or bool(name != name)


def _plain(name: Any) -> Any:
    """Scalars of numpy as values of Python."""
    return name.item() if isinstance(name, np.generic) else name


def _no_group(known: tuple[Group, ...]) -> str:
    return f"the group is missing: this policy knows {', '.join(map(repr, known))}"


@dataclass(frozen=True, eq=False, slots=True)
class Coded:
    """A column of groups, dictionary-encoded: distinct names, and each person's place among them.

    >>> coded = Coded.of(["f", "m", "f"])
    >>> coded.names, coded.codes.tolist(), coded[1:].tolist()
    (('f', 'm'), [0, 1, 0], ['m', 'f'])
    """

    names: tuple[Any, ...]
    codes: NDArray[Any]

    @classmethod
    def of(cls, values: Iterable[Any]) -> Coded:
        """Names in order of appearance."""
        places: dict[Any, int] = {}
        codes = [places.setdefault(value, len(places)) for value in values]
        return cls(tuple(places), np.array(codes, np.intp))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, here: slice | NDArray[Any]) -> Coded:
        return Coded(self.names, self.codes[here])

    def among(self, known: tuple[Group, ...]) -> NDArray[np.int8]:
        """The place of each person's group in ``known``; -1 where it is none of them."""
        places = [known.index(name) if name in known else -1 for name in self.names]
        found: NDArray[np.int8] = np.array(places, np.int8)[self.codes]
        return found

    def used(self) -> list[int]:
        """The codes that occur."""
        seen = np.bincount(self.codes, minlength=len(self.names)).tolist()
        return [code for code, people in enumerate(seen) if people]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        names = np.empty(len(self.names), dtype=object)
        names[:] = self.names
        return np.asarray(names[self.codes], dtype)

    def tolist(self) -> list[Any]:
        """Everybody's name."""
        return [self.names[code] for code in self.codes.tolist()]


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
    parts = [Coded.of(_values(part, i)) for i, part in enumerate(_columns(columns))]
    return np.asarray(cross(parts, separator))


def cross(parts: Sequence[Coded], separator: str = CROSS) -> Coded:
    """:func:`intersection` of columns that are encoded."""
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


def groups_of(sensitive_features: Any) -> NDArray[Any]:
    """One name per person: of a single column as it is, of several that of the intersection."""
    columns = columns_of(sensitive_features)
    return np.asarray(columns[0]) if len(columns) == 1 else intersection(*columns)


def columns_of(table: Any) -> list[Any]:
    """The columns of a data frame, a mapping or a two-dimensional array; or the one there is."""
    if isinstance(table, Mapping):
        return list(table.values())
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):
        # A frame of pandas or polars; an Arrow table has columns instead of their names.
        names = getattr(table, "column_names", table.columns)
        return [table[name] for name in names]
    array = np.asarray(table)
    return list(array.T) if array.ndim == 2 else [array]


def _values(column: Any, i: int) -> list[Any]:
    array = np.asarray(column)
    if array.ndim != 1:
        raise InvalidValueError(f"columns[{i}] must be one-dimensional, got shape {array.shape}")
    values: list[Any] = array.tolist()
    return values


def _as_text(column: Coded) -> Coded:
    """Names that occur, as text; values that read alike, 1 and "1" or two NaNs, are one name."""
    places: dict[str, int] = {}
    number = np.zeros(len(column.names), np.intp)
    for code in column.used():
        number[code] = places.setdefault(str(stranger(column.names[code])), len(places))
    return Coded(tuple(places), number[column.codes])
