"""Columns of group names, and the rule for names that no policy declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairshield._renamed import NAMES
from fairshield.base.counts import Group, group_name, place_among, reads_like, unknown_group
from fairshield.base.errors import InvalidValueError, UnknownGroupError, argument, shown
from fairshield.base.renamed import old_names

Places = NDArray[np.signedinteger[Any]]
"""Of each person's group among those known; -1 where it is none of them."""
MISSING = "(missing)"
"""How a person without a group is reported."""

__getattr__ = old_names(__name__, NAMES)


@dataclass(frozen=True)
class Unseen:
    """Unseen says what happens to people of a group that the policy was not made for.

    Made by :meth:`refuse`, :meth:`map` or :meth:`follow`, or read by :meth:`of`.

    * ``refuse``: an error, before anything is counted.
    * ``map``: they count as members of a group that was declared.
    * ``follow``: the classifier's proposal stands and they are not counted; the guarantee is about
      the declared groups, and how many were followed is reported.

    A name with the text of a declared one and another type, such as 1 for ``"1"``, is no other
    group: its column was read wrongly.  It is an error, unless a mapping lists it.

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
        """Raise :class:`~fairshield.base.errors.UnknownGroupError`."""
        return cls("refuse")

    @classmethod
    def follow(cls) -> Unseen:
        """Keep the proposals of people of unseen groups, who enter no counter."""
        return cls("follow")

    @classmethod
    def map(cls, to: Group | Mapping[Group, Group]) -> Unseen:
        """Count people of unseen groups as ``to``, or as a mapping says; refuse those not in it."""
        if isinstance(to, Mapping):
            names = tuple((group_name(g), group_name(known)) for g, known in to.items())
            return cls("map", names=names)
        return cls("map", to=group_name(to))

    @classmethod
    def of(cls, given: Unseen | str | Mapping[Group, Group]) -> Unseen:
        """The rule for ``"refuse"``, ``"follow"``, ``"map:GROUP"``, a mapping or an ``Unseen``."""
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

    @property
    def empty(self) -> Group | None:
        """The group of people without a group; ``None`` if they are refused."""
        return None if self.kind == "refuse" else MISSING

    def among(self, known: tuple[Group, ...]) -> Unseen:
        """The same rule for a policy of the groups ``known``, its targets spelt as in ``known``."""
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
        """``numbers`` with each -1 replaced by the place that the rule maps its group to, if any.

        ``numbers`` has each person's place in ``known``, and -1 for people of other groups.  Those
        whose proposal is followed keep their -1.

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
    """The name that reports give an undeclared group; a missing name is reported as ``MISSING``."""
    return MISSING if is_missing(name) else group_name(name)


def is_missing(value: Any) -> bool:
    """Whether a value is missing: ``None``, not a number, or one of pandas' missing values."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    differs = value != value
    return differs is True or (isinstance(differs, np.bool_) and bool(differs))


def _plain(name: Any) -> Any:
    """``name``, where it is a scalar of numpy as a value of Python."""
    return name.item() if isinstance(name, np.generic) else name


def _no_group(known: tuple[Group, ...]) -> str:
    return f"the group is missing: this policy knows {', '.join(map(repr, known))}"


@dataclass(frozen=True, eq=False, slots=True)
class Coded:
    """Coded is a column of groups: distinct names, and each person's place among them.

    >>> coded = Coded.of(["f", "m", "f"])
    >>> coded.names, coded.codes.tolist(), coded[1:].tolist()
    (('f', 'm'), [0, 1, 0], ['m', 'f'])
    """

    names: tuple[Any, ...]
    codes: NDArray[Any]

    @classmethod
    def of(cls, values: Iterable[Any], column: str = "groups") -> Coded:
        """Encode ``values``; names are in order of appearance.

        Names compare like keys of a dictionary: 1, 1.0, ``True`` and numpy's 1 are one name, and
        ``"1"`` is another.
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
        """The index at which each name first occurs; every name must occur."""
        rows: list[int] = np.unique(self.codes, return_index=True)[1].tolist()
        return rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        names = np.empty(len(self.names), dtype=object)
        names[:] = self.names
        return np.asarray(names[self.codes], dtype)

    def tolist(self) -> list[Any]:
        """The name of each person's group."""
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
        # numpy drops NULs of polars text and rounds Arrow integers, so the elements are read.
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
