"""The rule that turns the code of a state into a decision; see :mod:`fairshield.policy.rows`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairshield.base.compiler import NO_ALLOCATION, jit
from fairshield.policy.rows import FORCED


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
        # A cost above the last edge: only a larger risk, not a gain, overrules it.
        return proposed != (level < abs(code))
    i = t if len(ranks) > 1 else 0
    overrule = ranks[i, group, np.int64(proposed), level] < abs(code)
    return proposed != overrule
