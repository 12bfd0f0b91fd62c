"""The finding of the largest bias among many counters, computed on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Counts, Group, GroupCount
from fairshield.spec.base import Property
from fairshield.spec.finding import Finding, verdict_places


def widest_finding(
    prop: Property, groups: tuple[Group, ...], counters: NDArray[Any]
) -> Finding | None:
    """The widest :meth:`~fairshield.Property.finding` of counters ``(n, groups, 2)``.

    The first of those with the worst verdict and the largest bias; ``None`` if ``n`` is 0.

    >>> from fairshield import DemographicParity
    >>> counters = np.array([[[4, 2], [4, 3]], [[4, 0], [4, 3]]])
    >>> print(widest_finding(DemographicParity("0.5"), ("a", "b"), counters))
    gap 0.75 between a and b where at most 0.5 is asked
    """
    if not len(counters):
        return None
    each = [GroupCount(*np.moveaxis(one, -1, 0)) for one in np.moveaxis(counters, 1, 0)]
    bound = prop.binds_array(*each)
    place = verdict_places(prop.holds_array(*each), bound)
    bias = np.where(bound, prop.bias_array(*each), prop.measured_bias_array(*each))
    worst = np.flatnonzero(place == place.min())
    first = counters[worst[bias[worst].argmax()]].tolist()
    return prop.finding(Counts(dict(zip(groups, map(tuple, first), strict=True))))
