"""Who belongs to which group: names from several columns, and names nobody declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Group, group_name, place_among, reads_like, unknown_group
from fairshield.errors import InvalidValueError, UnknownGroupError, argument, shown

CROSS = " × "
"""Stands between the parts of an intersectional group's name."""
Places = NDArray[np.signedinteger[Any]]
"""Of each person's group among those known; -1 where it is none of them."""
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
            if place_among(known, name) >= 0:
                raise InvalidValueError(
                    f"unseen maps {name!r}, which the policy knows: leave it out of the mapping"
                )
        to = None if self.to is None else _spelt(self.to, known)
        return Unseen(self.kind, to, tuple((name, _spelt(g, known)) for name, g in self.names))

    def known_as(self, name: Any, known: tuple[Group, ...]) -> Group | None:
        """The declared group that ``name`` counts as; ``None`` if the proposal is followed."""
        name = _plain(name)
        missing, listed = is_missing(name), dict(self.names)
        listed_here = place_among(tuple(listed), name) >= 0
        if not missing and not listed_here and reads_like(name, known) is not None:
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
        self, numbers: Places, who: NDArray[Any] | Coded, known: tuple[Group, ...],
        column: str,
    ) -> Places:  # fmt: skip
        """``numbers``, each person's place in ``known`` or -1, where -1 is left to the followed.

        Raises
        ------
        UnknownGroupError
            For the first person, by ``column`` and row, whom this rule does not provide for.
        """
        unknown = np.flatnonzero(numbers < 0)
        if not unknown.size:
            return numbers
        others = Coded.of(who[unknown].tolist(), column)
        places = []
        for code, name in enumerate(others.names):
            try:
                target = self.known_as(name, known)
            except UnknownGroupError as error:
                row = int(unknown[np.argmax(others.codes == code)])
                raise UnknownGroupError(f"{column}[{row}]: {error}") from None
            places.append(-1 if target is None else known.index(target))
        placed = numbers.copy()
        placed[unknown] = np.array(places, np.intp)[others.codes]
        return placed

    def __str__(self) -> str:
        return f"map:{self.to}" if self.to is not None else self.kind


def _spelt(name: Group, known: tuple[Group, ...]) -> Group:
    exact = place_among(known, name)
    if exact >= 0:
        return known[exact]
    for group in known:
        if str(group) == str(name):
            return group
    raise unknown_group(name, known)


def stranger(name: Any) -> Group:
    """How somebody of an undeclared group is reported; a missing name has a name, too."""
    return MISSING if is_missing(name) else group_name(name)


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: ``None``, not a number, or what pandas has instead."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    differs = value != value
    return differs is True or (isinstance(differs, np.bool_) and bool(differs))


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
    def of(cls, values: Iterable[Any], column: str = "groups") -> Coded:
        """Names in order of appearance, told apart as the keys of a dictionary are.

        So 1, 1.0, ``True`` and numpy's are one name, and ``"1"`` is another.
        """
        places: dict[Any, int] = {}
        try:
            codes = [places.setdefault(value, len(places)) for value in values]
        except TypeError:
            raise InvalidValueError(
                f"{column} must be one-dimensional, a name for each person, got "
                f"{shown(list(values))}"
            ) from None
        return cls(tuple(places), np.array(codes, np.intp))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, here: slice | NDArray[Any]) -> Coded:
        return Coded(self.names, self.codes[here])

    def among(self, known: tuple[Group, ...]) -> Places:
        """The place of each person's group in ``known``; -1 where it is none of them."""
        index = {name: place for place, name in enumerate(known)}
        places = [index.get(name, -1) for name in self.names]
        found: Places = np.array(places, _type_for(known))[self.codes]
        return found

    def used(self) -> list[int]:
        """The codes that occur."""
        seen = np.bincount(self.codes, minlength=len(self.names)).tolist()
        return [code for code, people in enumerate(seen) if people]

    def first(self) -> list[int]:
        """Where each name first occurs, of names that all do."""
        rows: list[int] = np.unique(self.codes, return_index=True)[1].tolist()
        return rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        names = np.empty(len(self.names), dtype=object)
        names[:] = self.names
        return np.asarray(names[self.codes], dtype)

    def tolist(self) -> list[Any]:
        """Everybody's name."""
        return [self.names[code] for code in self.codes.tolist()]


def group_column(values: Any, column: str = "groups") -> NDArray[Any] | Coded:
    r"""One name per person: an array where all are text or all are numbers, else by name.

    Never an array that numpy makes of a list: of mixed types it makes text, and it drops NULs at
    the end of text, so that 1, ``"1"`` and ``"1\0"`` would be one group.
    """
    if isinstance(values, Coded):
        return values
    if isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray):
        return Coded.of(values, column)
    if isinstance(values, np.ma.MaskedArray):
        return Coded.of(values.tolist(), column)
    array = np.asarray(values)
    if array.ndim != 1:
        raise InvalidValueError(
            f"{column} must be one-dimensional, a name for each person, got "
            + (f"shape {array.shape}" if array.ndim else f"{values!r}")
        )
    if array is not values and array.dtype.kind in "Uf":
        # Of polars text without its NULs, of Arrow rounded integers: the elements are as they are.
        elements = getattr(values, "to_pylist", None) or getattr(values, "to_list", None)
        if elements is not None:
            return Coded.of(elements(), column)
    return array if array.dtype.kind in _COMPARED else Coded.of(array, column)


_COMPARED = "Ubiuf"
"""Kinds of arrays that numpy compares with a name as Python does, see :func:`places_among`."""


def places_among(known: tuple[Group, ...], who: NDArray[Any] | Coded) -> Places:
    """The place of each person's group in ``known``; -1 where it is none of them."""
    if not isinstance(who, Coded) and who.dtype.kind not in _COMPARED:
        who = Coded.of(who)
    if isinstance(who, Coded):
        return who.among(known)
    places = np.full(len(who), -1, _type_for(known))
    for place, name in enumerate(known):
        if _fits(name, who.dtype):
            places[who == name] = place
    return places


def _type_for(known: tuple[Group, ...]) -> np.dtype[Any]:
    """The smallest type for places among these, and -1."""
    return np.min_scalar_type(-max(1, len(known)))


def _fits(name: Group, dtype: np.dtype[Any]) -> bool:
    """Whether an array of this type can hold ``name``, and compares with it exactly."""
    if dtype.kind == "U":
        return isinstance(name, str) and not name.endswith("\0")
    if isinstance(name, str):
        return False
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return abs(name) < 2**1000 and bool(dtype.type(name) == name)
    if dtype.kind == "b":
        return name in (0, 1)
    limits = np.iinfo(dtype)
    return int(limits.min) <= name <= int(limits.max)


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
    """Names that occur, as text; whoever has none, ``None`` or NaN, has one name."""
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
