"""Whether a property can ever bind: if not, a guarantee of it promises nothing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from fairshield.counts import Counts, GroupCount
from fairshield.spec.base import Property

_MOST = 2000
"""Up to so many decisions every number of people is asked about, beyond only the largest."""


def can_bind(prop: Property, start: Counts, due: Iterable[int]) -> bool:
    """Whether ``prop`` binds some counters that a window may have when it must hold.

    ``due`` are the numbers of decisions after ``start`` at which it must.  Where people count by
    their outcome, and where there are other groups, fewer of them may be of a pair.

    >>> from fairshield import DemographicParity
    >>> nobody = Counts.zero(("a", "b"))
    >>> [can_bind(DemographicParity("0.1", min_support=n), nobody, [100]) for n in (50, 51)]
    [True, False]
    """
    exactly = prop.relevant_outcome is None and len(start) == 2
    return any(
        _pair_can_bind(prop, (a, b), decided, exactly=exactly)
        for decided in sorted(set(due), reverse=True)
        for a, b in combinations(start.values(), 2)
    )


def _pair_can_bind(
    prop: Property, start: tuple[GroupCount[int], ...], decided: int, *, exactly: bool
) -> bool:
    of_a = np.arange(decided + 1)
    # Nearly always an even split binds, and spares asking about all others.
    halves = np.array([decided // 2])
    totals = [decided] if exactly or decided > _MOST else range(decided, -1, -1)
    splits = [(halves, decided - halves), *((of_a[: n + 1], n - of_a[: n + 1]) for n in totals)]
    a, b = (count.seen for count in start)
    return any(
        bool(prop.binds_array(GroupCount(a + n_a, 0), GroupCount(b + n_b, 0)).any())
        for n_a, n_b in splits
    )
