"""Tables by which every backend searches among many cost levels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.synthesis.problem import NEVER, Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEW = 32
"""Cost levels up to which it is faster to go through all of them than to search."""
_CELLS_PER_LEVEL = 64


class Levels(NamedTuple):
    """Levels says how to find a gap among the sorted costs, by step; see :func:`cost_levels`."""

    steps: Floats
    first: Ints
    scale: Floats


def cost_levels(problem: Problem) -> Levels | None:
    r"""What overruling saves, as a function of the gap between the two costs to go.

    For group g and proposal r, :math:`G(u) = \sum_\ell w_\ell \min(u, C_\ell)` is piecewise
    linear: where m costs are below u it is :math:`P_m + W_m u`.  A uniform grid says where to
    begin the search for m, so that it takes about one step however many cost levels there are.
    Up to :data:`FEW` levels are tried one by one, without tables: then ``None`` is returned.

    Returns
    -------
    steps
        ``(steps, 4 (K + 1), 3)``: :math:`C_m` (finally infinite), :math:`P_m`, :math:`W_m` for each
        ``2 * group + proposal`` in turn.
    first
        ``(steps, 4 (cells + 1))``: the place in ``steps`` to search from, for each cell.
    scale
        ``(steps, 4, 2)``: cells per unit of gap; the gap where the grid ends.
    """
    if problem.n_levels <= FEW:
        return None
    shape = (len(problem.costs), 4, problem.n_levels)
    costs, weights = problem.sorted_costs.reshape(shape), problem.sorted_weights.reshape(shape)
    none = np.zeros((*shape[:2], 1))
    paid = np.concatenate((none, np.cumsum(costs * weights, axis=2)), axis=2)
    left = np.concatenate((none, np.cumsum(weights[..., ::-1], axis=2)), axis=2)[..., ::-1]
    ends = np.concatenate((costs, none + np.inf), axis=2)
    steps = np.stack((ends, paid, left), axis=3).reshape(shape[0], -1, 3)
    # People who are certainly irrelevant have huge costs, which the grid need not cover.
    top = np.max(costs, axis=2, where=costs < NEVER, initial=0.0)
    cells = _CELLS_PER_LEVEL * problem.n_levels
    scale = np.divide(cells, top, out=np.zeros_like(top), where=top > 0)
    first = np.zeros((*shape[:2], cells + 1), np.int64)
    for i, side in np.ndindex(shape[:2]):
        # Search from a little below each cell's edge, because of rounding and ties.
        edges = (np.arange(cells + 1) - 1e-6) / (scale[i, side] or 1.0) - 2 * problem.tie
        below = np.searchsorted(costs[i, side], edges, side="left")
        first[i, side] = side * (problem.n_levels + 1) + below
    return Levels(
        np.ascontiguousarray(steps), first.reshape(shape[0], -1), np.stack((scale, top), axis=2)
    )
