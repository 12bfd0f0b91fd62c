"""What the code of a state says of a request, compiled; see :mod:`fairshield.rows`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairshield.compiler import NO_ALLOCATION, jit
from fairshield.rows import FORCED


@jit(**NO_ALLOCATION, forceinline=True)
def accepts(
    ranks: NDArray[np.int64], code: int, t: int, group: int, proposed: bool, level: int
) -> bool:
    """Whether to accept, given the code of the state and the ``ranks`` of the policy."""
    if code == 0 or (code > 0) != proposed:
        return proposed
    if abs(code) == FORCED:
        return not proposed
    if level == ranks.shape[3]:
        # Above all levels, where only a larger risk overrules.
        return proposed != (level < abs(code))
    i = t if len(ranks) > 1 else 0
    overrule = ranks[i, group, np.int64(proposed), level] < abs(code)
    return proposed != overrule
