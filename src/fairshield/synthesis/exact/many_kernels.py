r"""Compiled backward induction for any number of groups, a block at a time.

With :math:`x_g, y_g` the cost to go after accepting and rejecting a relevant person of group
:math:`g` the costs to go are those of :mod:`fairshield.synthesis.exact.row_kernels`.

A **block** fixes everything except the people of the first group and the acceptances among them:
the rows of :mod:`fairshield.policy.many.layout` for :math:`s_2 = 0, 1, \dots, s_3`, which follow
each other.  Their successors after one more person of any other group follow each other as well,
so that the whole block is one loop.  Successors after one of the first group need a loop for each
row.  Layers are separate arrays, so workers may divide a layer in any way.

Offsets are unsigned because a signed index would be checked for wrap-around.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.compiler import inlined, jit
from fairshield.policy.many.kernels import Ints, go_on, sums_of
from fairshield.synthesis.exact.row_kernels import FAST, U

Floats = NDArray[np.float64]
_jit = jit(**FAST)
_inline = inlined(**FAST)


class Step(NamedTuple):
    """Step holds what arrives at one step: ``weights`` and ``costs`` ``(G, 2, K)``.

    They are sorted, the cheapest first.
    """

    weights: Floats
    costs: Floats
    stay: float
    tie: float


class Room(NamedTuple):
    """Room holds scratch arrays of one worker: partial sums, and successors by kind."""

    sums: Ints
    ahead: Ints


@_inline
def _find_successors(terms: Ints, sums: Ints, ahead: Ints) -> None:
    """Compute the offsets in the next layer of the successors of all kinds from the third on."""
    far = np.int64(0)
    ahead[len(sums) - 1] = 0
    for i in range(len(sums) - 2, 1, -1):
        far += terms[i, sums[i] + 1]
        ahead[i] = far


@_inline
def _add_costs(
    after: Floats, v: Floats, here: Any, accept: Any, reject: Any, n: Any, step: Step, g: int
) -> None:
    """Add what arrivals of group ``g`` contribute to the costs to go of ``n`` states."""
    for level in range(step.weights.shape[2]):
        w_0, w_1 = step.weights[g, 0, level], step.weights[g, 1, level]
        c_0, c_1 = step.costs[g, 0, level], step.costs[g, 1, level]
        for s in range(n):
            x, y = after[accept + s], after[reject + s]
            v[here + s] += w_0 * min(y, c_0 + x) + w_1 * min(x, c_1 + y)


@_inline
def _decide(
    after: Floats, codes: Any, at: Any, accept: Any, reject: Any, n: Any, step: Step, g: int
) -> None:
    """Codes of group ``g`` in ``n`` states from ``at`` on, whether feasible or not."""
    for s in range(n):
        codes[g, at + s] = 0
    for level in range(step.weights.shape[2]):
        c_0, c_1 = step.costs[g, 0, level] + step.tie, step.costs[g, 1, level] + step.tie
        for s in range(n):
            x, y = after[accept + s], after[reject + s]
            codes[g, at + s] += np.int8(c_1 + y < x) - np.int8(c_0 + x < y)


@_jit
def _back_up_block(
    after: Floats, v: Floats, here: int, n: int, rows: int, step: Step, ahead: Ints,
    labelled: bool,
) -> None:  # fmt: skip
    """Costs to go of the ``n`` states from ``here`` on."""
    begin, size = U(here), U(n)
    for s in range(size):
        v[begin + s] = step.stay * after[begin + s] if labelled else 0.0
    for g in range(1, len(step.weights)):
        accept, reject = begin + U(ahead[2 * g]), begin + U(ahead[2 * g + 1])
        _add_costs(after, v, begin, accept, reject, size, step, g)
    for row in range(U(rows)):
        reject = begin + U(ahead[2]) + row + U(1)
        _add_costs(after, v, begin, reject + U(1), reject, row + U(1), step, 0)
        begin += row + U(1)


@_jit
def _decide_block(
    after: Floats, codes: Any, here: int, at: int, n: int, rows: int, step: Step, ahead: Ints
) -> None:
    """Codes of the ``n`` states from ``here`` on in their layer, ``at`` among all."""
    begin, place, size = U(here), U(at), U(n)
    for g in range(1, len(step.weights)):
        accept, reject = begin + U(ahead[2 * g]), begin + U(ahead[2 * g + 1])
        _decide(after, codes, place, accept, reject, size, step, g)
    for row in range(U(rows)):
        reject = begin + U(ahead[2]) + row + U(1)
        _decide(after, codes, place, reject + U(1), reject, row + U(1), step, 0)
        begin, place = begin + row + U(1), place + row + U(1)


@_jit
def _strike_block(v: Floats, here: int, rows: int, sums: Ints, n_groups: int, fair: Any) -> None:
    """Set unfair states to infinity; ``fair`` is that of :func:`.many.fair_pairs`."""
    for row in range(rows):
        sums[1] = row
        pair, before = 0, np.int64(0)
        for g in range(n_groups):
            # The first state of a row has no acceptances in the first group.
            seen, accepted = sums[2 * g + 1] - before, sums[2 * g] - before
            first = seen * (seen + 1) // 2 + (accepted if g else 0)
            before = sums[2 * g + 1]
            until = before
            for h in range(g + 1, n_groups):
                seen, accepted = sums[2 * h + 1] - until, sums[2 * h] - until
                second = seen * (seen + 1) // 2 + accepted
                until = sums[2 * h + 1]
                for s in range(row + 1):
                    if not fair[pair, second, first + (0 if g else s)]:
                        v[here + s] = np.inf
                pair += 1
        here += row + 1


@_jit
def back_up(
    after: Floats, v: Floats, t: int, is_last: bool, terms: Ints, step: Step, labelled: bool,
    fair: Any, codes: Any, dead: int, layer_start: int, begin: int, end: int, room: Room,
) -> None:  # fmt: skip
    """Costs to go of the states ``begin … end - 1`` of layer ``t``, whole blocks.

    ``after`` are the costs to go of layer ``t + 1``; they are not read if ``t`` is the last layer.
    ``fair`` says which pairs are fair at this layer; if empty, nothing is checked.  ``codes``
    receives the decisions; if empty, none are computed.
    """
    sums, ahead, here = room.sums, room.ahead, begin
    sums_of(terms, t, begin, sums)
    while here < end:
        rows = sums[2] + 1
        n = rows * (rows + 1) // 2
        if is_last:
            v[here : here + n] = 0.0
        else:
            _find_successors(terms, sums, ahead)
            _back_up_block(after, v, here, n, rows, step, ahead, labelled)
        if len(fair):
            _strike_block(v, here, rows, sums, len(step.weights), fair)
        if codes.shape[1]:
            at = layer_start + here
            if is_last:
                codes[:, at : at + n] = 0
            else:
                _decide_block(after, codes, here, at, n, rows, step, ahead)
            for g in range(len(codes)):
                for s in range(U(n)):
                    if v[U(here) + s] == np.inf:
                        codes[g, U(at) + s] = dead
        here += n
        go_on(sums, 2)
