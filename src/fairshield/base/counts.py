"""Counters: how many people were seen and accepted, which is all that a property reads.

For each group, how many *relevant* people were seen and how many of them were accepted.  Who is
relevant is for the property to say (everyone for demographic parity, those with a positive
outcome for equal opportunity); this module only counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral
from typing import Any, Generic, NamedTuple, TypeVar

from fairshield.base.errors import InvalidValueError, UnknownGroupError, check_kind

Group = str | int | bool
"""A group is named by the user; names travel through JSON, so they are strings or integers."""

At = tuple[int, ...]
"""Counters since the start of a window, group after group: ``n_a, k_a, n_b, k_b, …``."""

N = TypeVar("N")


def after(at: At, group: int, accepted: bool) -> At:
    """Counters after one more relevant person.

    >>> after((3, 1, 2, 2), 1, True)
    (3, 1, 3, 3)
    """
    if len(at) == 4:  # written out for speed: every decision takes this path
        n_a, k_a, n_b, k_b = at
        if group:
            return n_a, k_a, n_b + 1, k_b + accepted
        return n_a + 1, k_a + accepted, n_b, k_b
    i = 2 * group
    return (*at[:i], at[i] + 1, at[i + 1] + accepted, *at[i + 2 :])


class GroupCount(NamedTuple, Generic[N]):
    """GroupCount says how many relevant people of one group were seen, and how many accepted.

    Both are integers, or arrays of the same shape.
    """

    seen: N
    accepted: N


class Counts(Mapping[Group, GroupCount[int]]):
    """Counts holds the counters of all groups in a fixed order; it is immutable.

    >>> counts = Counts({"a": (10, 8), "b": (20, 14)})
    >>> counts["a"].seen, counts.after("a", accepted=True)["a"]
    (10, GroupCount(seen=11, accepted=9))
    """

    __slots__ = ("_by_group",)

    def __init__(self, by_group: Mapping[Group, tuple[int, int]]) -> None:
        check_kind(
            by_group, Mapping, "counts map groups to (seen, accepted), as in Counts({'a': (10, 8)})"
        )
        self._by_group = {group: _checked(group, count) for group, count in by_group.items()}

    @classmethod
    def zero(cls, groups: tuple[Group, ...]) -> Counts:
        """Nobody seen yet."""
        return cls(dict.fromkeys(groups, (0, 0)))

    def __getitem__(self, group: Group) -> GroupCount[int]:
        try:
            return self._by_group[group]
        except KeyError:
            raise unknown_group(group, tuple(self._by_group)) from None

    def __iter__(self) -> Iterator[Group]:
        return iter(self._by_group)

    def __len__(self) -> int:
        return len(self._by_group)

    def __hash__(self) -> int:
        return hash(frozenset(self._by_group.items()))

    def __repr__(self) -> str:
        inner = ", ".join(f"{g!r}: ({c.seen}, {c.accepted})" for g, c in self._by_group.items())
        return f"Counts({{{inner}}})"

    def numbers(self) -> At:
        """``n_a, k_a, n_b, k_b, …`` in the order of the groups."""
        return tuple(n for count in self._by_group.values() for n in count)

    def after(self, group: Group, *, accepted: bool) -> Counts:
        """Counters after one more relevant person of ``group``."""
        seen, taken = self[group]
        return Counts({**self._by_group, group: (seen + 1, taken + bool(accepted))})

    def plus(self, gained: At) -> Counts:
        """Counters after more people: ``n_a, k_a, n_b, k_b, …`` in the order of the groups.

        >>> Counts({"a": (10, 8), "b": (20, 14)}).plus((1, 1, 2, 0))
        Counts({'a': (11, 9), 'b': (22, 14)})
        """
        more = zip(gained[::2], gained[1::2], strict=True)
        return Counts(
            {
                group: (count.seen + n, count.accepted + k)
                for (group, count), (n, k) in zip(self._by_group.items(), more, strict=True)
            }
        )


def unknown_group(group: object, known: tuple[Group, ...]) -> UnknownGroupError:
    """The error for a group nobody declared, listing those that were."""
    names = ", ".join(repr(g) for g in known)
    said = f"unknown group {group!r}: this policy knows {names}"
    alike = reads_like(group, known)
    if alike is not None:
        said += f"; {group!r} is {_sort(group)}, the policy knows {alike!r}: convert the column"
    return UnknownGroupError(said)


def place_among(known: tuple[Group, ...], group: object) -> int:
    r"""The index of ``group`` in ``known``; -1 if it is none of them.

    Names are compared like keys of a dictionary: 1, 1.0, ``True`` and numpy's 1 are one name,
    ``"1"`` is another.

    >>> known = (1, "1")
    >>> [place_among(known, name) for name in (True, 1.0, "1", "1\0", None, [1])]
    [0, 0, 1, -1, -1, -1]
    """
    try:
        places: dict[Any, int] = {name: place for place, name in enumerate(known)}
        return places.get(group, -1)
    except TypeError:
        return -1


def reads_like(group: object, known: tuple[Group, ...]) -> Group | None:
    """The known group that has the same text as ``name`` and another type; ``None`` if none has.

    >>> reads_like(1, ("0", "1")), reads_like("1", (0, 1)), reads_like(1.0, ("0", "1"))
    ('1', 1, '1')
    >>> reads_like("c", ("a", "b")) is None
    True
    """
    # pandas turns a column of whole numbers into floats as soon as one value is missing.
    if isinstance(group, float) and group.is_integer():
        group = int(group)
    text = str(group)
    return next((name for name in known if str(name) == text and name != group), None)


def _sort(group: object) -> str:
    if isinstance(group, bool):
        return "a truth value"
    return "a number" if isinstance(group, int | float) else "text"


def name_order(name: object) -> tuple[str, str]:
    """A sorting key of names: first their text, then the type of those with the same text.

    >>> sorted(["1", 2, 1], key=name_order)
    [1, '1', 2]
    """
    return str(name), type(name).__name__


def in_words(names: Iterable[object]) -> str:
    """Names as a part of a sentence.

    >>> in_words("ab"), in_words("abc")
    ('a and b', 'a, b and c')
    """
    *first, last = map(str, names)
    return f"{', '.join(first)} and {last}" if first else last


def group_name(value: Any) -> Group:
    """``value`` as a group name; numpy scalars become plain Python values."""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, (str, int)):
        return value
    raise InvalidValueError(
        f"a group name must be a string or an integer, got {value!r} ({type(value).__name__}): "
        "names are written to policy files and logs"
    )


def is_whole(value: object) -> bool:
    """Whether ``value`` is an integer of Python or numpy; truth values are none."""
    # Nearly all values are plain integers, and this test is faster than isinstance.
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def _checked(group: Group, count: tuple[Any, Any]) -> GroupCount[int]:
    try:
        seen, accepted = count
    except (TypeError, ValueError):
        raise InvalidValueError(
            f"counts of group {group!r} must be a pair (seen, accepted), got {count!r}"
        ) from None
    for name, value in (("seen", seen), ("accepted", accepted)):
        if not is_whole(value):
            raise InvalidValueError(
                f"{name} of group {group!r} must be a whole number, got {value!r}"
            )
    if not 0 <= accepted <= seen:
        raise InvalidValueError(
            f"group {group!r} has {accepted} accepted of {seen} seen: need 0 <= accepted <= seen"
        )
    return GroupCount(int(seen), int(accepted))


def so_far(counts: Counts, taken: str = "accepted of") -> str:
    """Counters in words, for messages; ``taken`` stands between the two of a group.

    >>> so_far(Counts({"a": (10, 8), "b": (0, 0)}))
    '8 accepted of 10 in a and 0 accepted of 0 in b'
    """
    return in_words(
        f"{count.accepted} {taken} {count.seen} in {group}" for group, count in counts.items()
    )
