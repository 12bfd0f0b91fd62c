"""Whether a property can ever bind: if not, a guarantee of it promises nothing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Counts, GroupCount
from fairshield.spec.base import Property
from fairshield.spec.linear import LinearProperty

Ints = NDArray[np.int64]
_MOST = 2000
"""Up to so many decisions every number of people is asked about, beyond only some."""
_DOUBLINGS = 40


def can_bind(prop: Property, start: Counts, due: Iterable[int]) -> bool:
    """Whether some decisions after ``start`` would be unfair when ``prop`` must hold.

    ``due`` are the numbers of decisions after ``start`` at which it must.  Where people count by
    their outcome, and where there are other groups, fewer of them may be of a pair.  What is not
    known is taken to bind: a property that is no :class:`LinearProperty` in a long window, and
    start counters so large that the decisions of a long window cannot outweigh them.

    >>> from fairshield import DemographicParity
    >>> nobody = Counts.zero(("a", "b"))
    >>> [can_bind(DemographicParity("0.1", min_support=n), nobody, [100]) for n in (50, 51)]
    [True, False]
    >>> many = Counts({"a": (1000, 500), "b": (1000, 500)})
    >>> [can_bind(DemographicParity("0.1"), many, [n]) for n in (20, 500)]
    [False, True]
    """
    exactly = prop.relevant_outcome is None and len(start) == 2
    return any(
        _pair_can_bind(prop, (a, b), decided, exactly=exactly)
        for decided in sorted(set(due), reverse=True)
        for a, b in combinations(start.values(), 2)
    )


def can_ever_bind(prop: Property, start: Counts) -> bool:
    """Whether ``prop`` binds some counters of a run that goes on for ever.

    Of a property that is no :class:`LinearProperty` nothing is known, and it is taken to.

    >>> from fairshield import DemographicParity
    >>> nobody = Counts.zero(("a", "b"))
    >>> can_ever_bind(DemographicParity("0.1", min_support=1000), nobody)
    True
    >>> can_ever_bind(DemographicParity(1), nobody)
    False
    """
    if not isinstance(prop, LinearProperty):
        return True
    most = max(prop.min_support, *(count.seen for count in start.values()))
    return can_bind(prop, start, [2 * most + (1 << power) for power in range(_DOUBLINGS)])


def _pair_can_bind(
    prop: Property, start: tuple[GroupCount[int], ...], decided: int, *, exactly: bool
) -> bool:
    a, b = (count.seen for count in start)
    known = isinstance(prop, LinearProperty)
    # Nearly always an even split binds, and spares asking about all others.
    splits = [_split(decided, [decided // 2])]
    if decided > _MOST:
        if not known:
            return True  # nobody knows which of so many splits to ask about
        splits.append(_split(decided, _telling(decided, a, b, prop.min_support)))
    else:
        totals = [decided] if exactly else range(decided, -1, -1)
        splits += [_split(n, range(n + 1)) for n in totals]
    if known and decided <= _MOST:
        return any(_some_unfair(prop, start, n_a, n_b) for n_a, n_b in splits)
    return any(
        bool(prop.binds_array(GroupCount(n_a + a, 0), GroupCount(n_b + b, 0)).any())
        for n_a, n_b in splits
    )


def _some_unfair(prop: Property, start: tuple[GroupCount[int], ...], n_a: Ints, n_b: Ints) -> bool:
    """Whether so many people can be decided unfairly: a linear function is largest at a corner."""
    a, b = start
    return not all(
        prop.holds_array(
            GroupCount(a.seen + n_a, a.accepted + k_a), GroupCount(b.seen + n_b, b.accepted + k_b)
        ).all()
        for k_a, k_b in product((0 * n_a, n_a), (0 * n_b, n_b))
    )


def _split(total: int, of_a: Iterable[int]) -> tuple[Ints, Ints]:
    """So many people, by how many of them are of the first group."""
    first = np.array(list(of_a), np.int64 if total < 2**62 else object)
    return first, total - first


def _telling(decided: int, a: int, b: int, support: int) -> list[int]:
    """Splits of a large number of people, one of which binds if any does.

    Where both groups have support and somebody in them, a difference or a ratio of rates and
    bounds on them bind or not whatever their sizes: all in one group, as even as can be, and as
    many as a group needs.
    """
    even = (decided + b - a) // 2
    wanted = (0, 1, decided - 1, decided, even, support - a, decided + b - support)
    return [min(max(n, 0), decided) for n in wanted]
