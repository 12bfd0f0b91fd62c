r"""Compiled backward induction where both outcomes of either decision may change the counters.

With :math:`V_{gyz}` the cost to go once somebody of group :math:`g` got the decision :math:`y` and
has the outcome :math:`z`, and :math:`z_\ell` the chance of that outcome,

.. math::
    R_{gy\ell} = (1 - z_\ell) V_{gy0} + z_\ell V_{gy1}, \qquad
    v = \sum_g \sum_r \sum_\ell w_{gr\ell} \min(R_{gr\ell},\; C_{gr\ell} + R_{g(1-r)\ell}).

Weights and chances are never zero (the caller floors them), so that their products with infinity
are infinite also for requests and outcomes the model thinks impossible.

States are walked row by row, see :mod:`fairshield.policy.many.layout`: the successors of the states
of a row follow each other, for each decision and outcome.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.compiler import inlined, jit
from fairshield.policy.many.kernels import Ints, counters_of, go_on, sums_of
from fairshield.synthesis.exact.row_kernels import FAST

Floats = NDArray[np.float64]
_jit = jit(**FAST)
_inline = inlined(**FAST)


class Step(NamedTuple):
    """Step holds what arrives at one step, ``(G, 2, K)``, and what decisions add.

    ``told`` and ``untold`` are the chances of the two outcomes.
    """

    weights: Floats
    costs: Floats
    told: Floats
    untold: Floats
    tie: float
    same_risk: float


class Place(NamedTuple):
    """Place holds where a walk stands: partial sums, counters, and successors of a row.

    ``ahead`` has the place in the next layer of what the row's first state leads to, by group,
    decision and outcome.
    """

    sums: Ints
    at: Ints
    ahead: Ints


@_inline
def _find_ahead(terms: Ints, gains: Ints, steady_start: int, place: Place) -> None:
    """Compute counters and successors of the first state of a row.

    ``steady_start`` is the number of the next layer's first state where counters number states
    without their layer.
    """
    counters_of(place.sums, place.at)
    at = place.at
    for g in range(len(at) // 2):
        for gain in range(4):
            number, seen = -np.int64(steady_start), np.int64(0)
            for h in range(len(at) // 2):
                n, k = at[2 * h], at[2 * h + 1]
                if h == g:
                    n += gains[2 * gain]
                    k += gains[2 * gain + 1]
                number += terms[2 * h + 1, seen + k]
                seen += n
                number += terms[2 * h + 2, seen]
            place.ahead[4 * g + gain] = number


@_jit
def back_up(
    after: Floats, v: Floats, layer: int, terms: Ints, gains: Ints, steady_start: int, step: Step,
    masks: Any, dead: int, first: int, begin: int, end: int, place: Place,
) -> None:  # fmt: skip
    """Costs to go of the states ``begin … end - 1`` of a layer, whole rows, and their masks.

    ``after`` are those of the next layer.  ``masks`` of the layer begin at ``first``; if they are
    empty, none are computed.
    """
    n_levels = step.weights.shape[2]
    sums_of(terms, layer, begin, place.sums)
    here = begin
    while here < end:
        length = place.sums[1] + 1
        _find_ahead(terms, gains, steady_start, place)
        for k in range(length):
            v[here + k] = 0.0
        for g in range(len(step.weights)):
            ahead = place.ahead[4 * g : 4 * g + 4]
            for r in range(2):
                o = 1 - r
                for level in range(n_levels):
                    weight, cost = step.weights[g, r, level], step.costs[g, r, level]
                    told, untold = step.told[g, r, level], step.untold[g, r, level]
                    for k in range(length):
                        keep = untold * after[ahead[2 * r] + k] + told * after[ahead[2 * r + 1] + k]
                        other = (
                            untold * after[ahead[2 * o] + k] + told * after[ahead[2 * o + 1] + k]
                        )
                        v[here + k] += weight * min(keep, cost + other)
            if masks.shape[1]:
                for k in range(length):
                    masks[g, first + here + k] = _mask(after, ahead, k, step, g)
        if masks.shape[1]:
            for k in range(length):
                if v[here + k] == np.inf:
                    for g in range(len(step.weights)):
                        masks[g, first + here + k] = dead
        here += length
        go_on(place.sums, 1)


@_inline
def _mask(after: Floats, ahead: Ints, k: int, step: Step, g: int) -> Any:
    n_levels, mask = step.weights.shape[2], np.int64(0)
    for r in range(2):
        o = 1 - r
        for level in range(n_levels):
            told, untold = step.told[g, r, level], step.untold[g, r, level]
            keep = untold * after[ahead[2 * r] + k] + told * after[ahead[2 * r + 1] + k]
            other = untold * after[ahead[2 * o] + k] + told * after[ahead[2 * o + 1] + k]
            if step.costs[g, r, level] + step.tie + other < keep:
                mask |= np.int64(1) << (r * (n_levels + 1) + level)
    return mask


@_jit
def back_up_risk(
    risks: Floats, costs: Floats, risk: Floats, cost: Floats, layer: int, terms: Ints, gains: Ints,
    steady_start: int, step: Step, masks: Any, first: int, begin: int, end: int, place: Place,
) -> None:  # fmt: skip
    """Least risks, and least costs at them, of states of a layer, and masks of all of them.

    What is dearer than all levels is overruled as the dearest, if a lesser risk is the reason.
    """
    n_levels = step.weights.shape[2]
    sums_of(terms, layer, begin, place.sums)
    here = begin
    while here < end:
        length = place.sums[1] + 1
        _find_ahead(terms, gains, steady_start, place)
        for k in range(length):
            certain, total, paid = True, 0.0, 0.0
            for g in range(len(step.weights)):
                ahead, mask = place.ahead[4 * g : 4 * g + 4], np.int64(0)
                sure_0 = risks[ahead[0] + k] == 0.0 and risks[ahead[1] + k] == 0.0
                sure_1 = risks[ahead[2] + k] == 0.0 and risks[ahead[3] + k] == 0.0
                certain = certain and (sure_0 or sure_1)
                for r in range(2):
                    o = 1 - r
                    for level in range(n_levels):
                        told, untold = step.told[g, r, level], step.untold[g, r, level]
                        keep = untold * risks[ahead[2 * r] + k] + told * risks[ahead[2 * r + 1] + k]
                        other = (
                            untold * risks[ahead[2 * o] + k] + told * risks[ahead[2 * o + 1] + k]
                        )
                        kept = untold * costs[ahead[2 * r] + k] + told * costs[ahead[2 * r + 1] + k]
                        gone = untold * costs[ahead[2 * o] + k] + told * costs[ahead[2 * o + 1] + k]
                        price = step.costs[g, r, level]
                        bits = np.int64(3 if level == n_levels - 1 else 1)
                        if sure_0 != sure_1:
                            overrule = sure_0 if r == 1 else sure_1
                        elif abs(other - keep) > step.same_risk:
                            overrule = other < keep
                        else:
                            overrule, bits = price + step.tie + gone < kept, np.int64(1)
                        weight = step.weights[g, r, level]
                        if overrule:
                            mask |= bits << (r * (n_levels + 1) + level)
                            total += weight * other
                            paid += weight * (gone + price)
                        else:
                            total += weight * keep
                            paid += weight * kept
                masks[g, first + here + k] = mask
            # Products of probabilities near 1e-300 are 0 in floats, so that the risk could be 0.
            risk[here + k] = 0.0 if certain else min(max(total, 1e-300), 1.0)
            cost[here + k] = paid
        here += length
        go_on(place.sums, 1)
