"""Tables: the arrays of a long policy that compiled functions read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Tables(NamedTuple):
    """Tables holds the integers of the property, and the arrays that prices are read from."""

    rule: Ints
    """The integers of :class:`fairshield.spec.rules.Rule`."""
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
    """Both by side, decisions and excess, see :class:`fairshield.policy.long.decisions.Ladders`."""
    opening: NDArray[np.int16]
    """Codes by :func:`place_of` and group, of the first people only."""


class Ladders(NamedTuple):
    """Ladders holds the value functions of all sides, see :mod:`fairshield.policy.long.prices`.

    Attributes
    ----------
    grids
        ``(sides, 2)``: first excess, and distance of the points.
    values
        ``(sides, rungs, points)``: by decisions until the property has to hold, at the end of a
        window or, where it must hold at every moment, with enough people in both groups.
    holding
        ``(sides, rungs, points)``: by decisions left, where the property must hold at every
        moment; the last point is the bound.
    rates
        ``(sides,)``: cost per decision far from the end, where the property must hold at every
        moment; else 0.
    """

    grids: Floats
    values: NDArray[np.float32]
    holding: NDArray[np.float32]
    rates: Floats
