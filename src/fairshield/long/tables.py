"""A long policy as the compiled functions read it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Tables(NamedTuple):
    """The integers of its property, and what its prices are read from."""

    rule: Ints
    """The integers of :class:`fairshield.long.rule.Rule`."""
    binds_from: int
    """``SUPPORT``, or 0 if the property must be within reach after the end as well."""
    tie: float
    sides: Floats
    """By side: ``alpha_a``, ``alpha_b``, ``gamma``; first excess and distance of its ladder."""
    levels: Floats
    """Costs by group, proposal and cost level, cheapest first."""
    weights: Floats
    """The same, in as few levels as prices need."""
    costs: Floats
    totals: Floats
    """``weights`` of all levels together."""
    ladder: NDArray[np.float32]
    holding: NDArray[np.float32]
    """Both by side, decisions and excess, see :class:`fairshield.long.policy.Ladders`."""
    opening: NDArray[np.int16]
    """Codes by :func:`place_of` and group, of the first people only."""
