"""Whether a property can ever bind: if not, a guarantee of it promises nothing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Counts, GroupCount
from fairshield.spec.base import Property
from fairshield.spec.provable import Pair

Ints = NDArray[np.int64]
_MOST = 2000
"""Up to so many decisions every number of people is asked about, beyond only some."""
_DOUBLINGS = 40


def can_bind(prop: Property, start: Counts, due: Iterable[int]) -> bool:
    """Whether some decisions after ``start`` would be unfair when ``prop`` must hold.

    ``due`` are the numbers of decisions after ``start`` at which it must.  Where people count by
    their outcome, and where there are other groups, fewer of them may be of a pair.  What is not
    known is taken to bind: a property without :meth:`~Property.telling_splits` in a long window,
    and start counters so large that the decisions of a long window cannot outweigh them.

    >>> from fairshield import DemographicParity
    >>> nobody = Counts.zero(("a", "b"))
    >>> [can_bind(DemographicParity("0.1", min_support=n), nobody, [100]) for n in (50, 51)]
    [True, False]
    >>> many = Counts({"a": (1000, 500), "b": (1000, 500)})
    >>> [can_bind(DemographicParity("0.1"), many, [n]) for n in (20, 500)]
    [False, True]
    """
    exactly, most = prop.counting.steady and len(start) == 2, prop.counting.most
    return any(
        _pair_can_bind(prop, (a, b), most * decided, exactly=exactly)
        for decided in sorted(set(due), reverse=True)
        for a, b in combinations(start.values(), 2)
    )


def can_ever_bind(prop: Property, start: Counts) -> bool:
    """Whether ``prop`` binds some counters of a run that goes on for ever.

    Of a property without :meth:`~Property.telling_splits` nothing is known, and it is taken to.

    >>> from fairshield import DemographicParity
    >>> nobody = Counts.zero(("a", "b"))
    >>> can_ever_bind(DemographicParity("0.1", min_support=1000), nobody)
    True
    >>> can_ever_bind(DemographicParity(1), nobody)
    False
    """
    most = max(prop.min_support, *(count.seen for count in start.values()))
    return can_bind(prop, start, [2 * most + (1 << power) for power in range(_DOUBLINGS)])


def _pair_can_bind(prop: Property, start: Pair, decided: int, *, exactly: bool) -> bool:
    a, b = (count.seen for count in start)
    # Nearly always an even split binds, and spares asking about all others.
    even = _split(decided, [decided // 2])
    if decided > _MOST:
        telling = prop.telling_splits(decided, a, b)
        if telling is None:
            return True  # nobody knows which of so many splits to ask about
        return any(
            bool(prop.binds_array(GroupCount(n_a + a, 0), GroupCount(n_b + b, 0)).any())
            for n_a, n_b in (even, _split(decided, telling))
        )
    totals = [decided] if exactly else range(decided, -1, -1)
    return any(
        prop.some_unfair(start, n_a, n_b)
        for n_a, n_b in (even, *(_split(n, range(n + 1)) for n in totals))
    )


def _split(total: int, of_a: Iterable[int]) -> tuple[Ints, Ints]:
    """So many people, by how many of them are of the first group."""
    first = np.array(list(of_a), np.int64 if total < 2**62 else object)
    return first, total - first
