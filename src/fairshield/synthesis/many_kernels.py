r"""Compiled backward induction for any number of groups, a row at a time.

With :math:`x_g, y_g` the cost to go after accepting and rejecting a relevant person of group
:math:`g` the costs to go are those of :mod:`fairshield.synthesis.row_kernels`; rows are those of
:mod:`fairshield.many.layout`.  Layers are separate arrays, so that workers may share one out in
any way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.compiler import inlined, jit
from fairshield.many.kernels import Ints, go_on, sums_of
from fairshield.synthesis.row_kernels import FAST

Floats = NDArray[np.float64]
_jit = jit(**FAST)
_inline = inlined(**FAST)


class Step(NamedTuple):
    """What arrives at one step: ``weights`` and ``costs`` ``(G, 2, K)``, cheapest first."""

    weights: Floats
    costs: Floats
    stay: float
    tie: float


class Room(NamedTuple):
    """Scratch of one worker: partial sums, and by kind how far a successor stands ahead."""

    sums: Ints
    ahead: Ints


@_inline
def _find_successors(terms: Ints, sums: Ints, ahead: Ints) -> None:
    """How far ahead, in the next layer, the successor of each kind stands."""
    far = np.int64(0)
    for i in range(len(sums) - 2, 0, -1):
        far += terms[i, sums[i] + 1]
        ahead[i] = far
    ahead[0] = far + 1
    ahead[len(sums) - 1] = 0


@_inline
def _back_up_row(
    after: Floats, v: Floats, here: int, n: int, step: Step, ahead: Ints, labelled: bool
) -> None:
    """Costs to go of the ``n`` states from ``here`` on."""
    stay = step.stay if labelled else 0.0
    for s in range(n):
        v[here + s] = stay * after[here + s] if labelled else 0.0
    for g in range(len(step.weights)):
        accept, reject = here + ahead[2 * g], here + ahead[2 * g + 1]
        for level in range(step.weights.shape[2]):
            w_0, w_1 = step.weights[g, 0, level], step.weights[g, 1, level]
            c_0, c_1 = step.costs[g, 0, level], step.costs[g, 1, level]
            for s in range(n):
                x, y = after[accept + s], after[reject + s]
                v[here + s] += w_0 * min(y, c_0 + x) + w_1 * min(x, c_1 + y)


@_inline
def _decide_row(
    after: Floats, here: int, n: int, step: Step, ahead: Ints, codes: Any, at: int
) -> None:
    """Codes of the row, those of infeasible states among them; ``at`` is its place among all."""
    for g in range(len(step.weights)):
        accept, reject = here + ahead[2 * g], here + ahead[2 * g + 1]
        for s in range(n):
            codes[g, at + s] = 0
        for level in range(step.weights.shape[2]):
            c_0, c_1 = step.costs[g, 0, level] + step.tie, step.costs[g, 1, level] + step.tie
            for s in range(n):
                x, y = after[accept + s], after[reject + s]
                codes[g, at + s] += np.int8(c_1 + y < x) - np.int8(c_0 + x < y)


@_inline
def _strike_row(v: Floats, here: int, n: int, sums: Ints, n_groups: int, fair: Any) -> None:
    """Make infinite what is unfair; ``fair`` is by pair, and counters of its second and first."""
    pair, before = 0, np.int64(0)
    for g in range(n_groups):
        seen, accepted = sums[2 * g + 1] - before, sums[2 * g] - before
        first = seen * (seen + 1) // 2 + accepted
        before = sums[2 * g + 1]
        until = before
        for h in range(g + 1, n_groups):
            seen, accepted = sums[2 * h + 1] - until, sums[2 * h] - until
            second = seen * (seen + 1) // 2 + accepted
            until = sums[2 * h + 1]
            for s in range(n):
                if not fair[pair, second, first + (s if g == 0 else 0)]:
                    v[here + s] = np.inf
            pair += 1


@_jit
def back_up(
    after: Floats, v: Floats, t: int, is_last: bool, terms: Ints, step: Step, labelled: bool,
    fair: Any, codes: Any, dead: int, layer_start: int, begin: int, end: int, room: Room,
) -> None:  # fmt: skip
    """Costs to go of the states ``begin … end - 1`` of layer ``t``, whole rows.

    ``after`` are those of the layer after it, unless it is the last.  ``fair`` says what holds at
    this layer, ``codes`` is where decisions go; empty: no check, no decisions.
    """
    sums, ahead, here = room.sums, room.ahead, begin
    sums_of(terms, t, begin, sums)
    while here < end:
        n = sums[1] + 1
        if is_last:
            v[here : here + n] = 0.0
        else:
            _find_successors(terms, sums, ahead)
            _back_up_row(after, v, here, n, step, ahead, labelled)
        if len(fair):
            _strike_row(v, here, n, sums, len(step.weights), fair)
        if codes.shape[1]:
            at = layer_start + here
            if is_last:
                codes[:, at : at + n] = 0
            else:
                _decide_row(after, here, n, step, ahead, codes, at)
            for s in range(n):
                if v[here + s] == np.inf:
                    codes[:, at + s] = dead
        here += n
        go_on(sums, 1)
