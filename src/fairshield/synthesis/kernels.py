r"""Compiled backward induction.  Numbers in, arrays filled, nothing checked.

One row at a time: with :math:`x_g, y_g` the cost to go after accepting and rejecting a relevant
person of group :math:`g`, and :math:`s` the cost to go if the next person turns out irrelevant,

.. math::
    v = \omega s + \sum_g \sum_{\ell} \bigl[
          w_{g0\ell} \min(y_g,\; C_{g0\ell} + x_g) + w_{g1\ell} \min(x_g,\; C_{g1\ell} + y_g)\bigr].

Weights are never zero (the caller floors them at 1e-300), so that :math:`w\cdot\infty = \infty`
also for requests the model thinks impossible: the guarantee holds for every input.

A layer is updated in place.  Block ``n_a`` of layer ``t`` reads blocks ``n_a`` and ``n_a + 1`` of
layer ``t + 1``, so walking ``n_a`` upwards overwrites only what is no longer needed; several
layers go through one pass as a wavefront (layer ``t - l`` trails ``l`` blocks behind), while the
blocks are in cache.  Each row remembers the hull ``[lo, hi)`` of its finite values; outside it
every value is infinite and nothing is computed.

What a problem does not need is passed as ``None``, and the branches for it are not compiled: one
cost level has no :class:`Levels`, the plain family no ``stay``, a pass without checkpoint no
:class:`Fair`, a computation of values alone no :class:`Record`.

Offsets are unsigned because a signed index would be checked for wrap-around in the inner loop and
could not be vectorised.  ``ninf`` must never be among the fast-math flags, and with ``nnan`` no
operation may yield NaN, not even in passing.

One long file: compiled code is cached by file, and a change in another would go unnoticed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_OPTIONS: dict[str, Any] = {
    "boundscheck": False,
    "error_model": "numpy",
    "fastmath": {"nnan", "nsz", "reassoc", "contract", "arcp"},
    # Nothing is allocated in here, and counting references would cost time in every row.
    "_nrt": False,
}
_jit = njit(cache=True, nogil=True, **_OPTIONS)
# Rows are short: passing a dozen arrays to a real function would cost more than the row.
_inline = njit(forceinline=True, **_OPTIONS)

U = np.uint64
LANES = 8
"""Rows are computed in whole vectors; tables have room for what that reads beyond their end."""
FEW = 32
"""Cost levels up to which it is faster to go through all of them than to search."""
SWEEP = 512
"""States whose values, differences and codes stay in the first cache."""
FINITE = 1e290
EMPTY_LO = 2**30
MASK, LONG = 0xFFFFFFFF, 0x400
"""Half of a tally; rows from this length on do not fit into it and are stored state by state."""
CODES, ROWS = 0, 1
"""Where ``Record.dense_used`` counts written codes and written rows."""


class Layer(NamedTuple):
    """Cost to go of one layer by block, and the hull of each row."""

    values: Floats
    lo: Ints
    hi: Ints


class Prices(NamedTuple):
    """Weights and costs by step, group, proposal and level; gains up to ``tie`` do not count."""

    weights: Floats
    costs: Floats
    tie: float


class Levels(NamedTuple):
    """How to find a gap among the sorted costs, by step; see :func:`solver.cost_levels`."""

    steps: Floats
    first: Ints
    scale: Floats


class Fair(NamedTuple):
    """Fair ``k_b`` of each row, and a flag per state unless that is all of ``[lo, hi)``."""

    lo: Ints
    hi: Ints
    each: NDArray[np.bool_]
    at: Ints
    row_at: Ints


class Record(NamedTuple):
    """Where the policy is written; see :class:`fairshield.policy.RowTable`."""

    cuts: Any
    dense_index: Ints
    """Row number, and where its codes begin."""
    dense_codes: Any
    dense_used: Ints


class Scratch(NamedTuple):
    """Values, and for both groups differences and codes, of a row or (with levels) of a block."""

    values: Floats
    gaps: Floats
    codes: Floats


class Place(NamedTuple):
    """First state and row of a block, of the next block, and its first row in the policy."""

    here: int
    below: int
    row: int
    row_below: int
    policy_row: int


# One row ------------------------------------------------------------------------------------
#
# Positions are offsets into ``v``; results are written to the first ``n`` entries of ``out``.


@_inline
def _values_one(
    v: Floats, reject_a: Any, accept_a: Any, reject_b: Any, n: Any,
    wa0: float, wa1: float, wb0: float, wb1: float,
    ca0: float, ca1: float, cb0: float, cb1: float, out: Floats,
) -> None:  # fmt: skip
    """One cost level."""
    for j in range(n):
        ya, xa = v[reject_a + j], v[accept_a + j]
        yb, xb = v[reject_b + j], v[reject_b + j + U(1)]
        out[j] = (wa0 * min(ya, ca0 + xa) + wa1 * min(xa, ca1 + ya)) + (
            wb0 * min(yb, cb0 + xb) + wb1 * min(xb, cb1 + yb)
        )


@_inline
def _values_one_stay(
    v: Floats, reject_a: Any, accept_a: Any, reject_b: Any, n: Any,
    wa0: float, wa1: float, wb0: float, wb1: float,
    ca0: float, ca1: float, cb0: float, cb1: float, omega: float, same: Any, out: Floats,
) -> None:  # fmt: skip
    """One cost level, where the next person may be irrelevant."""
    for j in range(n):
        ya, xa = v[reject_a + j], v[accept_a + j]
        yb, xb = v[reject_b + j], v[reject_b + j + U(1)]
        out[j] = omega * v[same + j] + (
            (wa0 * min(ya, ca0 + xa) + wa1 * min(xa, ca1 + ya))
            + (wb0 * min(yb, cb0 + xb) + wb1 * min(xb, cb1 + yb))
        )


@_inline
def _stage(
    v: Floats, reject_a: Any, accept_a: Any, reject_b: Any, n: Any,
    weight_a: float, weight_b: float, gaps: Floats, out: Floats, at: Any,
) -> None:  # fmt: skip
    r"""Prepare a row for :func:`_add_few` or :func:`_add_many`.

    With :math:`m = \min(x, y)` and :math:`d = x - y`, the term of a group is
    :math:`(\sum w)\,m + \sum_\ell w_{1\ell} \min(d^+, C_{1\ell}) + w_{0\ell} \min(d^-, C_{0\ell})`.
    """
    for j in range(n):
        ya, xa = v[reject_a + j], v[accept_a + j]
        yb, xb = v[reject_b + j], v[reject_b + j + U(1)]
        # Both may be infinite; their difference must not be NaN.
        gaps[0, at + j] = min(xa, FINITE) - min(ya, FINITE)
        gaps[1, at + j] = min(xb, FINITE) - min(yb, FINITE)
        out[at + j] = weight_a * min(xa, ya) + weight_b * min(xb, yb)


@_jit
def _add_few(
    n: Any, w: Floats, cost: Floats, tie: float, keep: bool, gaps: Floats, out: Floats,
    codes: Floats,
) -> None:  # fmt: skip
    """Add the terms of all cost levels, two at a time, in vectorised sweeps of a cache-full."""
    for begin in range(U(0), n, U(SWEEP)):
        end = min(begin + U(SWEEP), n)
        for g in range(U(2)):
            for level in range(U(0), U(w.shape[2]), U(2)):
                w0, w1 = w[g, 0, level], w[g, 1, level]
                c0, c1 = cost[g, 0, level], cost[g, 1, level]
                u0, u1 = w[g, 0, level + U(1)], w[g, 1, level + U(1)]
                d0, d1 = cost[g, 0, level + U(1)], cost[g, 1, level + U(1)]
                for j in range(begin, end):
                    up, down = max(gaps[g, j], 0.0), max(-gaps[g, j], 0.0)
                    out[j] += (w0 * min(down, c0) + w1 * min(up, c1)) + (
                        u0 * min(down, d0) + u1 * min(up, d1)
                    )
            if keep:
                for j in range(begin, end):
                    codes[g, j] = 0.0
                for level in range(U(0), U(w.shape[2]), U(2)):
                    c0, c1 = cost[g, 0, level] + tie, cost[g, 1, level] + tie
                    d0, d1 = cost[g, 0, level + U(1)] + tie, cost[g, 1, level + U(1)] + tie
                    for j in range(begin, end):
                        up, down = gaps[g, j], -gaps[g, j]
                        codes[g, j] += ((1.0 if up > c1 else 0.0) + (1.0 if up > d1 else 0.0)) - (
                            (1.0 if down > c0 else 0.0) + (1.0 if down > d0 else 0.0)
                        )


@_jit
def _add_many(
    n: Any, tie: float, keep: bool, steps: Floats, first: Ints, scale: Floats, gaps: Floats,
    out: Floats, codes: Floats,
) -> None:  # fmt: skip
    """Add the terms of all cost levels by searching them, see :func:`solver.cost_levels`."""
    n_steps, n_cells = np.int64(len(steps) // 4), U(len(first) // 4)
    for g in range(U(2)):
        for j in range(n):
            over, gap = gaps[g, j], abs(gaps[g, j])
            side = U(2) * g + (U(1) if over > 0.0 else U(0))
            cell = U(np.int32(min(gap, scale[side, 1]) * scale[side, 0]))
            m = U(first[side * n_cells + cell])
            while steps[m, 0] < gap - tie:
                m += U(1)
            if keep:
                code = np.int64(m) - np.int64(side) * n_steps
                codes[g, j] = code if over > 0.0 else -code
            while steps[m, 0] < gap:
                m += U(1)
            out[j] += steps[m, 1] + steps[m, 2] * gap


@_inline
def _codes_one(
    v: Floats, reject: Any, accept: Any, n: Any, g: int, below: float, above: float,
    codes: Floats, at: Any,
) -> None:  # fmt: skip
    """Codes with one cost level, whose cost is ``below`` for rejects and ``above`` for accepts."""
    for j in range(n):
        x, y = v[accept + j], v[reject + j]
        codes[g, at + j] = (above + y < x) - (below + x < y)


@_inline
def _tally_one(
    v: Floats, reject_a: Any, accept_a: Any, reject_b: Any, n: Any, whole: Any,
    ca0: float, ca1: float, cb0: float, cb1: float, values: Floats, skip: Any,
) -> tuple[int, int, int]:  # fmt: skip
    """States of a row where the shield accepts, or rejects, whatever is proposed.

    For group a, then b: each accepting state adds ``1 + (j << 11)``, each rejecting one the same
    32 bits higher, so that one number holds how many there are and where.  Then the number of
    states that are not feasible.
    """
    zero = np.int64(0)
    in_a = in_b = dead = zero
    for j in range(whole):
        unit = np.int64(1) + (np.int64(j) << 11) if j < n else zero
        ya, xa = v[reject_a + j], v[accept_a + j]
        yb, xb = v[reject_b + j], v[reject_b + j + U(1)]
        in_a += unit if ca0 + xa < ya else zero
        in_a += (unit << 32) if ca1 + ya < xa else zero
        in_b += unit if cb0 + xb < yb else zero
        in_b += (unit << 32) if cb1 + yb < xb else zero
        dead |= unit if values[skip + j] == np.inf else zero
    return in_a, in_b, dead


@_inline
def _is_head(tally: int) -> bool:
    """Whether the tallied states are the first of the row: their positions add up to the least."""
    count, positions = tally & 0x7FF, tally >> 11
    return 2 * positions == count * (count - 1)


@_inline
def _is_tail(tally: int, n: int) -> bool:
    """Whether the tallied states are the last of the row's ``n``."""
    count, positions = tally & 0x7FF, tally >> 11
    return 2 * positions == count * (2 * n - count - 1)


@_inline
def _record_cuts(
    v: Floats, reject_a: Any, accept_a: Any, reject_b: Any, n: Any, whole: Any,
    ca0: float, ca1: float, cb0: float, cb1: float, values: Floats, skip: Any,
    lo: int, hi: int, cuts: Any, row: int, codes: Floats,
) -> bool:  # fmt: skip
    """Write a row as cuts if it is of that form; otherwise mark it and work out its codes."""
    size = hi - lo
    in_a, in_b, dead = _tally_one(
        v, reject_a, accept_a, reject_b, n, whole, ca0, ca1, cb0, cb1, values, skip
    )
    up_a, down_a, up_b, down_b = in_a & MASK, in_a >> 32, in_b & MASK, in_b >> 32
    if (
        size < LONG and dead == 0
        and _is_head(down_a) and _is_tail(up_a, size)
        and _is_head(up_b) and _is_tail(down_b, size)
    ):  # fmt: skip
        cuts[row, 2], cuts[row, 3] = lo + (down_a & 0x7FF), hi - (up_a & 0x7FF)
        cuts[row, 4], cuts[row, 5] = lo + (up_b & 0x7FF), hi - (down_b & 0x7FF)
        return True
    cuts[row, 2] = (1 << (8 * cuts.itemsize)) - 1
    _codes_one(v, reject_a, accept_a, n, 0, ca0, ca1, codes, skip)
    _codes_one(v, reject_b, reject_b + U(1), n, 1, cb0, cb1, codes, skip)
    return False


@_inline
def _finite(values: Floats, skip: Any, n: Any) -> int:
    """How many of the row's values are finite."""
    finite = np.int64(0)
    for j in range(n):
        finite += np.int64(1) if values[skip + j] < np.inf else np.int64(0)
    return finite


@_jit
def _write_dense(record: Record, row: int, codes: Any, values: Floats, skip: Any, n: Any) -> None:
    """Store a row state by state: its codes for group a, then for group b."""
    dead = -(1 << (8 * record.dense_codes.itemsize - 1))
    used = record.dense_used
    start = U(used[CODES])
    for g in range(U(2)):
        for j in range(n):
            alive = values[skip + j] < np.inf
            record.dense_codes[start + g * n + j] = np.int64(codes[g, skip + j]) if alive else dead
    record.dense_index[used[ROWS], 0] = row
    record.dense_index[used[ROWS], 1] = used[CODES]
    used[CODES] += 2 * np.int64(n)
    used[ROWS] += 1


# One block of one layer ---------------------------------------------------------------------


@_jit
def _back_up_block(
    layer: Layer, prices: Prices, levels: Levels | None, stay: Floats | None, step: int,
    fair: Fair | None, strike: bool, record: Record | None, keep: bool,
    place: Place, horizon: int, t: int, n_a: int, room: Scratch,
) -> None:  # fmt: skip
    """``v_t`` from ``v_{t+1}`` for all states with this ``n_a``.

    Where ``strike`` is set, states that are unfair at this layer become infeasible; where ``keep``
    is set, decisions are recorded.
    """
    inf, zero = np.inf, np.int64(0)
    scratch, gaps, codes = room
    v, lo, hi = layer
    w, cost, tie = prices.weights[step], prices.costs[step], prices.tie
    wa0, wa1, wb0, wb1 = w[0, 0, 0], w[0, 1, 0], w[1, 0, 0], w[1, 1, 0]
    ca0, ca1, cb0, cb1 = cost[0, 0, 0], cost[0, 1, 0], cost[1, 0, 0], cost[1, 1, 0]
    length = step_b = horizon - n_a + 1
    step_a = horizon - n_a
    first_b = most_b = t - n_a
    if stay is not None:
        first_b = zero
    # With levels the block is gone through twice: what the rows read is staged for all of them
    # at once, so that the levels are swept over long arrays, and then the rows are finished.
    finish_from = 0
    if levels is not None:
        finish_from = 1
        weight_a, weight_b = w[0].sum(), w[1].sum()
    for phase in range(finish_from + 1):
        here, below, row, row_a, policy_row = place
        if fair is not None:
            fair_state, fair_row = fair.at[n_a], fair.row_at[n_a]
        staged = U(0)
        for n_b in range(first_b, most_b + 1):
            right, row_b = here, row
            if stay is not None:
                length, step_a, step_b = n_b + 1, n_b + 1, n_b + 2
                right, row_b = here + (n_a + 1) * (n_b + 1), row + n_a + 1
            for _ in range(n_a + 1):
                old_lo, old_hi = lo[row], hi[row]
                new_lo = max(min(lo[row_a], lo[row_a + 1]), max(lo[row_b] - 1, zero))
                new_hi = min(max(hi[row_a], hi[row_a + 1]), min(hi[row_b], n_b + 1))
                if stay is not None:
                    # Whoever is irrelevant leaves the counters as they are.
                    new_lo, new_hi = max(new_lo, old_lo), min(new_hi, old_hi)
                if fair is not None:
                    if strike:
                        new_lo = max(new_lo, fair.lo[fair_row])
                        new_hi = min(new_hi, fair.hi[fair_row])
                if new_lo < new_hi:
                    n = U(new_hi - new_lo)
                    whole = ((n + U(LANES - 1)) // U(LANES)) * U(LANES)
                    reject_a, accept_a = U(below + new_lo), U(below + step_a + new_lo)
                    reject_b = U(right + new_lo)
                    skip = U(0)
                    if levels is not None:
                        skip = staged
                        staged += whole
                        if phase == 0:
                            _stage(
                                v, reject_a, accept_a, reject_b, whole, weight_a, weight_b,
                                gaps, scratch, skip,
                            )  # fmt: skip
                            if stay is not None:
                                omega, same = stay[step], U(here + new_lo)
                                for j in range(whole):
                                    scratch[skip + j] += omega * v[same + j]
                    elif stay is None:
                        _values_one(
                            v, reject_a, accept_a, reject_b, whole,
                            wa0, wa1, wb0, wb1, ca0, ca1, cb0, cb1, scratch,
                        )  # fmt: skip
                    else:
                        _values_one_stay(
                            v, reject_a, accept_a, reject_b, whole,
                            wa0, wa1, wb0, wb1, ca0, ca1, cb0, cb1,
                            stay[step], U(here + new_lo), scratch,
                        )  # fmt: skip
                    if phase == finish_from:
                        if fair is not None:
                            if strike and len(fair.each):
                                for j in range(n):
                                    if not fair.each[U(fair_state + new_lo) + j]:
                                        scratch[skip + j] = inf
                        while new_lo < new_hi and scratch[skip] == inf:
                            new_lo += 1
                            skip += U(1)
                        while new_lo < new_hi and scratch[skip + U(new_hi - new_lo - 1)] == inf:
                            new_hi -= 1
                        n = U(new_hi - new_lo)
                        if record is not None:
                            if keep and new_lo < new_hi:
                                cuts = record.cuts
                                cuts[policy_row, 0], cuts[policy_row, 1] = new_lo, new_hi
                                regular = False
                                if levels is None:
                                    regular = _record_cuts(
                                        v, reject_a + skip, accept_a + skip, reject_b + skip,
                                        n, whole, ca0 + tie, ca1 + tie, cb0 + tie, cb1 + tie,
                                        scratch, skip, new_lo, new_hi, cuts, policy_row, codes,
                                    )  # fmt: skip
                                if not regular:
                                    _write_dense(record, policy_row, codes, scratch, skip, n)
                        start = U(here + new_lo)
                        for j in range(n):
                            v[start + j] = scratch[skip + j]
                if phase == finish_from:
                    if new_lo >= new_hi:
                        new_lo, new_hi = EMPTY_LO, zero
                    if new_lo != old_lo or new_hi != old_hi:
                        for j in range(old_lo, min(new_lo, old_hi)):
                            v[U(here + j)] = inf
                        for j in range(max(new_hi, old_lo), old_hi):
                            v[U(here + j)] = inf
                        lo[row], hi[row] = new_lo, new_hi
                row, row_a, row_b, policy_row = row + 1, row_a + 1, row_b + 1, policy_row + 1
                here, below, right = here + length, below + step_a, right + step_b
                if fair is not None:
                    fair_row, fair_state = fair_row + 1, fair_state + length
            # The next block has one more row for each ``n_b``.
            below, row_a = below + step_a, row_a + 1
        if levels is not None:
            if phase == 0:
                if w.shape[2] <= FEW:
                    _add_few(staged, w, cost, tie, keep, gaps, scratch, codes)
                else:
                    _add_many(
                        staged, tie, keep, levels.steps[step], levels.first[step],
                        levels.scale[step], gaps, scratch, codes,
                    )  # fmt: skip


# One pass over several layers ---------------------------------------------------------------


@_jit
def back_up(
    layer: Layer, prices: Prices, levels: Levels | None, stay: Floats | None, fair: Fair | None,
    record: Record | None, at: Ints, row_at: Ints, layer_starts: Ints, horizon: int,
    t_from: int, t_to: int, block_from: int, block_to: int, room: Scratch,
) -> None:  # fmt: skip
    """Layers ``t_from - 1 … t_to`` of blocks ``block_from … block_to - 1``.

    Blocks from ``block_to`` on belong to another worker; ``at`` and ``row_at`` point to a private
    copy of as many of them as the wavefront needs, and their results are not recorded.  ``fair``
    strikes out states of the last layer of the pass.
    """
    layers = t_from - t_to
    for front in range(block_from, min(block_to + layers - 1, t_from)):
        for back in range(layers):
            t, n_a = t_from - 1 - back, front - back
            if n_a < block_from or n_a > t or n_a >= block_to + layers - 1 - back:
                continue
            policy_row = layer_starts[t] + n_a * (n_a + 1) // 2
            if stay is not None:
                policy_row = layer_starts[t] + (t + 2) * (n_a * (n_a + 1) // 2)
                policy_row -= n_a * (n_a + 1) * (2 * n_a + 1) // 6
            place = Place(at[n_a], at[n_a + 1], row_at[n_a], row_at[n_a + 1], policy_row)
            step = t if len(prices.weights) > 1 else 0
            keep, strike = n_a < block_to, t == t_to
            _back_up_block(
                layer, prices, levels, stay, step, fair, strike, record, keep,
                place, horizon, t, n_a, room,
            )  # fmt: skip


@_jit
def set_terminal(
    layer: Layer, fair: Fair, record: Record | None, layer_starts: Ints, horizon: int,
    labelled: bool, room: Scratch,
) -> None:  # fmt: skip
    """The last layer: cost to go 0 where the property holds; all else is infinite already."""
    room.codes[:] = 0.0
    v, each = layer.values, fair.each
    policy_row = layer_starts[horizon]
    row = start = 0
    for n_a in range(horizon + 1):
        for n_b in range(0 if labelled else horizon - n_a, horizon - n_a + 1):
            for _ in range(n_a + 1):
                lo, hi = fair.lo[row], fair.hi[row]
                for k_b in range(U(start + lo), U(start + max(lo, hi))):
                    v[k_b] = 0.0
                if len(each):
                    for k_b in range(lo, hi):
                        if not each[start + k_b]:
                            v[start + k_b] = np.inf
                if lo < hi:
                    layer.lo[row], layer.hi[row] = lo, hi
                    if record is not None:
                        # Nothing is decided here: the row only says which counters are fair.
                        cuts, n = record.cuts, U(hi - lo)
                        cuts[policy_row, 0], cuts[policy_row, 1] = lo, hi
                        if len(each) and _finite(v, U(start + lo), n) < hi - lo:
                            if cuts.shape[1] == 6:
                                cuts[policy_row, 2] = (1 << (8 * cuts.itemsize)) - 1
                            _write_dense(record, policy_row, room.codes, v[start + lo :], U(0), n)
                row, policy_row, start = row + 1, policy_row + 1, start + n_b + 1


@_jit
def block_work(layer: Layer, row_at: Ints, t: int, labelled: bool, out: Floats) -> None:
    """About how long each block of layer ``t`` takes: a time for each row, and its states."""
    for n_a in range(t + 1):
        work = 0.0
        rows = (n_a + 1) * (t - n_a + 1 if labelled else 1)
        for row in range(row_at[n_a], row_at[n_a] + rows):
            work += 16.0 + max(layer.hi[row] - layer.lo[row], 0)
        out[n_a] = work


@_jit
def gather_runs(codes: Any, starts: Ints, lengths: Ints, out_starts: Ints, out: Any) -> None:
    """Copy runs of ``codes`` to their places in ``out``."""
    for i in range(len(starts)):
        for j in range(lengths[i]):
            out[out_starts[i] + j] = codes[starts[i] + j]
