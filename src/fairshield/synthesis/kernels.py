r"""Compiled backward induction.  Numbers in, arrays filled, nothing checked.

One row at a time (see :mod:`fairshield.layout`): with :math:`x_g, y_g` the cost to go after
accepting and rejecting a relevant person of group :math:`g`, and :math:`s` the cost to go if the
next person turns out irrelevant,

.. math::
    v = \omega s + \sum_g \sum_{\ell} \bigl[
          w_{g0\ell} \min(y_g,\; C_{g0\ell} + x_g) + w_{g1\ell} \min(x_g,\; C_{g1\ell} + y_g)\bigr].

Weights are never zero (the caller floors them at 1e-300), so that :math:`w\cdot\infty = \infty`
also for requests the model thinks impossible: the guarantee holds for every input.

A layer is updated in place.  Block ``n_a`` of layer ``t`` reads blocks ``n_a`` and ``n_a + 1`` of
layer ``t + 1``, so walking ``n_a`` upwards overwrites only what is no longer needed; several
layers go through one pass as a wavefront (layer ``t - l`` trails ``l`` blocks behind), while the
blocks are in cache.  Each row remembers an interval ``[lo, hi)``, its hull; outside it every value
is infinite and nothing is computed.

What a problem does not need is passed as ``None``, and the branches for it are not compiled: one
cost level has no :class:`Levels`, the plain family no ``stay``, a pass without checkpoint no
:class:`Fair`, a computation of values alone no :class:`Record`.

Offsets are unsigned because a signed index would be checked for wrap-around in the inner loop and
could not be vectorised.  ``ninf`` must never be among the fast-math flags, and with ``nnan`` no
operation may yield NaN, not even in passing.

One long file: compiled code is cached by file, and a change in another (in :mod:`.vectors`, or of
``GAP``) would go unnoticed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fairshield.layout import GAP
from fairshield.synthesis.vectors import (
    LANES,
    above,
    count_bits,
    lesser,
    load,
    one_where_above,
    splat,
    store,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bits = NDArray[np.uint64]

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
WORD = 64
UP_S, DOWN_S, UP_L, DOWN_L, DEAD = range(5)
"""Questions about a state, see :class:`Scratch`."""
FEW = 32
"""Cost levels up to which it is faster to go through all of them than to search."""
FINITE = 1e290
EMPTY_LO = 2**30
CODES, ROWS = 0, 1
"""Where ``Record.dense_used`` counts written codes and written rows."""


class Layer(NamedTuple):
    """Cost to go of one layer by block, and the hull of each row."""

    values: Floats
    lo: Ints
    hi: Ints


class Prices(NamedTuple):
    """Weights and costs by step, ``turned``, group (short, long), proposal and level.

    Gains up to ``tie`` do not count.
    """

    weights: Floats
    costs: Floats
    totals: Floats
    """Weights of all levels together."""
    tie: float


class Levels(NamedTuple):
    """How to find a gap among the sorted costs, by step; see :func:`solver.cost_levels`."""

    steps: Floats
    first: Ints
    scale: Floats


class Fair(NamedTuple):
    """Fair states of each row, and a flag per state unless that is all of ``[lo, hi)``."""

    lo: Ints
    hi: Ints
    each: NDArray[np.bool_]
    at: Ints
    row_at: Ints


class Record(NamedTuple):
    """Where the policy is written; see :class:`fairshield.rows.RowTable`."""

    cuts: Any
    dense_index: Ints
    """Row number, and where its codes begin."""
    dense_codes: Any
    dense_used: Ints


class Scratch(NamedTuple):
    """What is found out about one row.

    ``gaps`` and ``codes`` are by short and long group; ``notes`` has a bit per state for each of
    the questions ``UP_S`` … ``DEAD``: is everybody of the short (long) group accepted, is everybody
    rejected, is the state not feasible.
    """

    gaps: Floats
    codes: Floats
    notes: Bits


class Successors(NamedTuple):
    """Where the states stand that a row leads to; accepting in the long group, one further."""

    reject_s: Any
    accept_s: Any
    reject_l: Any


class Places(NamedTuple):
    """First state and row of each block, and room for a pair whose rows run the other way."""

    at: Ints
    row_at: Ints
    columns: int
    aside: int
    hulls: int


class Pair(NamedTuple):
    """The states of one ``(n_a, n_b)``, and those that the next person leads to.

    ``ahead`` is the pair with one more of the long group, ``across`` the one with one more of the
    short group.  Each has its first state, the distance of its rows, and its first row.
    """

    turned: int
    """1 if group a is the long one."""
    rows: int
    cells: int
    here: int
    step: int
    row: int
    ahead: int
    ahead_step: int
    ahead_row: int
    across: int
    across_step: int
    across_row: int
    mixed: bool
    """Whether the rows of ``across`` run along the other group."""
    columns: int
    """Room for two of its columns."""
    policy_row: int
    fair_state: int
    fair_row: int


# One row ------------------------------------------------------------------------------------
#
# Positions are offsets into ``v``.  A row is updated in place, a vector at a time: what a vector
# reads of the row itself lies in it or after it.


@_inline
def _back_up_one(
    v: Floats, at: Successors, here: Any, n: Any, w: Floats, cost: Floats, omega: float | None
) -> None:
    """One cost level, values only."""
    ws0, ws1, wl0, wl1 = _splat_four(w)
    cs0, cs1, cl0, cl1 = _splat_four(cost)
    for j in range(U(0), n, U(LANES)):
        ys, xs = load(v, at.reject_s + j), load(v, at.accept_s + j)
        yl, xl = load(v, at.reject_l + j), load(v, at.reject_l + j + U(1))
        value = (ws0 * lesser(ys, cs0 + xs) + ws1 * lesser(xs, cs1 + ys)) + (
            wl0 * lesser(yl, cl0 + xl) + wl1 * lesser(xl, cl1 + yl)
        )
        if omega is not None:
            value = value + splat(omega) * load(v, here + j)
        store(v, here + j, value)


@_inline
def _back_up_and_note(
    v: Floats, at: Successors, here: Any, n: Any, w: Floats, cost: Floats, omega: float | None,
    tie: float, notes: Bits,
) -> None:  # fmt: skip
    """One cost level; ``notes`` takes a bit per state and question, see :class:`Scratch`."""
    ws0, ws1, wl0, wl1 = _splat_four(w)
    cs0, cs1, cl0, cl1 = _splat_four(cost)
    slack, finite = splat(tie), splat(FINITE)
    for first in range(U(0), n, U(WORD)):
        up_s = down_s = up_l = down_l = dead = U(0)
        for j in range(first, min(first + U(WORD), n), U(LANES)):
            ys, xs = load(v, at.reject_s + j), load(v, at.accept_s + j)
            yl, xl = load(v, at.reject_l + j), load(v, at.reject_l + j + U(1))
            us, ds, ul, dl = cs0 + xs, cs1 + ys, cl0 + xl, cl1 + yl
            value = (ws0 * lesser(ys, us) + ws1 * lesser(xs, ds)) + (
                wl0 * lesser(yl, ul) + wl1 * lesser(xl, dl)
            )
            if omega is not None:
                value = value + splat(omega) * load(v, here + j)
            store(v, here + j, value)
            shift = j - first
            up_s |= above(ys, us + slack) << shift
            down_s |= above(xs, ds + slack) << shift
            up_l |= above(yl, ul + slack) << shift
            down_l |= above(xl, dl + slack) << shift
            dead |= above(value, finite) << shift
        word = first // U(WORD)
        notes[UP_S, word], notes[DOWN_S, word] = up_s, down_s
        notes[UP_L, word], notes[DOWN_L, word] = up_l, down_l
        notes[DEAD, word] = dead


@_inline
def _splat_four(x: Floats) -> Any:
    return splat(x[0, 0, 0]), splat(x[0, 1, 0]), splat(x[1, 0, 0]), splat(x[1, 1, 0])


@_inline
def _back_up_few(
    v: Floats, at: Successors, here: Any, n: Any, w: Floats, cost: Floats, total: Floats,
    omega: float | None, tie: float, keep: bool, codes: Floats,
) -> None:  # fmt: skip
    r"""A few cost levels, cheapest first.

    With :math:`m = \min(x, y)` and :math:`d = x - y`, the term of a group is
    :math:`(\sum w)\,m + \sum_\ell w_{1\ell} \min(d^+, C_{1\ell}) + w_{0\ell} \min(d^-, C_{0\ell})`.
    """
    weight_s, weight_l = splat(total[0, 0] + total[0, 1]), splat(total[1, 0] + total[1, 1])
    for j in range(U(0), n, U(LANES)):
        ys, xs = load(v, at.reject_s + j), load(v, at.accept_s + j)
        yl, xl = load(v, at.reject_l + j), load(v, at.reject_l + j + U(1))
        value = weight_s * lesser(xs, ys) + weight_l * lesser(xl, yl)
        if omega is not None:
            value = value + splat(omega) * load(v, here + j)
        # Differences of infinities would not be numbers.
        xs, ys, xl, yl = _finite(xs), _finite(ys), _finite(xl), _finite(yl)
        least_s, least_l = lesser(xs, ys), lesser(xl, yl)
        up_s, down_s, up_l, down_l = ys - least_s, xs - least_s, yl - least_l, xl - least_l
        value = _add_side(value, up_s, w[0, 0], cost[0, 0], total[0, 0])
        value = _add_side(value, down_s, w[0, 1], cost[0, 1], total[0, 1])
        value = _add_side(value, up_l, w[1, 0], cost[1, 0], total[1, 0])
        value = _add_side(value, down_l, w[1, 1], cost[1, 1], total[1, 1])
        store(v, here + j, value)
        if keep:
            code = _count(down_s, cost[0, 1], tie) - _count(up_s, cost[0, 0], tie)
            store(codes, j, code)
            code = _count(down_l, cost[1, 1], tie) - _count(up_l, cost[1, 0], tie)
            store(codes, U(codes.shape[1]) + j, code)


@_inline
def _finite(x: Any) -> Any:
    return lesser(x, splat(FINITE))


@_inline
def _add_side(value: Any, over: Any, w: Floats, cost: Floats, total: float) -> Any:
    """Add what overruling costs on one side; below its cheapest level nobody is overruled."""
    if above(over, splat(cost[0])) == U(0):
        return value + splat(total) * over
    # Two sums, because each addition waits for the one before.
    odd = splat(0.0)
    for level in range(U(0), U(len(w)) - U(1), U(2)):
        value = value + splat(w[level]) * lesser(over, splat(cost[level]))
        odd = odd + splat(w[level + U(1)]) * lesser(over, splat(cost[level + U(1)]))
    if len(w) % 2:
        value = value + splat(w[-1]) * lesser(over, splat(cost[-1]))
    return value + odd


@_inline
def _count(over: Any, cost: Floats, tie: float) -> Any:
    """How many levels are worth overruling."""
    count = splat(0.0)
    if above(over, splat(cost[0])) != U(0):
        for level in range(U(len(cost))):
            count = count + one_where_above(over, splat(cost[level] + tie))
    return count


@_inline
def _back_up_many(
    v: Floats, at: Successors, here: Any, n: Any, total: Floats, omega: float | None, tie: float,
    turned: int, steps: Floats, first: Ints, scale: Floats, room: Scratch,
) -> None:  # fmt: skip
    """Many cost levels, which are searched, see :func:`solver.cost_levels`."""
    gaps, codes = room.gaps, room.codes
    for j in range(n):
        ys, xs = v[at.reject_s + j], v[at.accept_s + j]
        yl, xl = v[at.reject_l + j], v[at.reject_l + j + U(1)]
        gaps[0, j] = min(xs, FINITE) - min(ys, FINITE)
        gaps[1, j] = min(xl, FINITE) - min(yl, FINITE)
        value = (total[0, 0] + total[0, 1]) * min(xs, ys)
        value += (total[1, 0] + total[1, 1]) * min(xl, yl)
        if omega is not None:
            value += omega * v[here + j]
        v[here + j] = value
    n_steps, n_cells = np.int64(len(steps) // 4), U(len(first) // 4)
    for g in range(U(2)):
        for j in range(n):
            over, gap = gaps[g, j], abs(gaps[g, j])
            side = U(2) * (g ^ U(turned)) + (U(1) if over > 0.0 else U(0))
            cell = U(np.int32(min(gap, scale[side, 1]) * scale[side, 0]))
            m = U(first[side * n_cells + cell])
            while steps[m, 0] < gap - tie:
                m += U(1)
            code = np.int64(m) - np.int64(side) * n_steps
            codes[g, j] = code if over > 0.0 else -code
            while steps[m, 0] < gap:
                m += U(1)
            v[here + j] += steps[m, 1] + steps[m, 2] * gap


# What a row decides -------------------------------------------------------------------------


@_inline
def _write_cuts(notes: Bits, lo: int, hi: int, cuts: Any, row: Any) -> bool:
    """Write a row as cuts if it is of that form; otherwise mark it.

    It is if everybody of the short group is rejected in its first states and accepted in its last,
    with the long group the other way round: read as binary numbers, lowest first, the answers (or
    their opposites) are ones and then zeros.
    """
    down_s = not_up_s = up_l = not_down_l = broken = U(0)
    for first in range(U(0), U(hi - lo), U(WORD)):
        word = first // U(WORD)
        inside = ~U(0) >> U(max(lo + WORD - hi + np.int64(first), 0))
        w0, w1 = notes[DOWN_S, word] & inside, ~notes[UP_S, word] & inside
        w2, w3 = notes[UP_L, word] & inside, ~notes[DOWN_L, word] & inside
        broken |= (w0 & (w0 + U(1))) | (w1 & (w1 + U(1))) | (w2 & (w2 + U(1))) | (w3 & (w3 + U(1)))
        broken |= notes[DEAD, word] & inside
        if first:
            # Ones may only go on where the words before had no zeros.
            broken |= w0 if down_s != first else U(0)
            broken |= w1 if not_up_s != first else U(0)
            broken |= w2 if up_l != first else U(0)
            broken |= w3 if not_down_l != first else U(0)
        down_s, not_up_s = down_s + count_bits(w0), not_up_s + count_bits(w1)
        up_l, not_down_l = up_l + count_bits(w2), not_down_l + count_bits(w3)
    if broken:
        cuts[row, 2] = (1 << (8 * cuts.itemsize)) - 1
        return False
    cuts[row, 2], cuts[row, 3] = U(lo) + down_s, U(lo) + not_up_s
    cuts[row, 4], cuts[row, 5] = U(lo) + up_l, U(lo) + not_down_l
    return True


@_inline
def _noted(notes: Bits, question: int, i: Any) -> Any:
    return (notes[question, i // U(WORD)] >> (i % U(WORD))) & U(1)


@_jit
def _codes_from_notes(notes: Bits, size: Any, codes: Floats) -> None:
    """Codes of a row with one cost level."""
    for i in range(size):
        up, down = _noted(notes, UP_S, i), _noted(notes, DOWN_S, i)
        codes[0, i] = np.float64(down) - np.float64(up)
        up, down = _noted(notes, UP_L, i), _noted(notes, DOWN_L, i)
        codes[1, i] = np.float64(down) - np.float64(up)


@_jit
def _write_dense(
    record: Record, row: int, codes: Floats, skip: Any, v: Floats, at: Any, n: Any
) -> None:
    """Store a row state by state: its codes for the short group, then for the long one.

    ``skip`` codes are left out; the values of the row begin ``at``.
    """
    dead = -(1 << (8 * record.dense_codes.itemsize - 1))
    used = record.dense_used
    start = U(used[CODES])
    for g in range(U(2)):
        for j in range(n):
            alive = v[at + j] < np.inf
            record.dense_codes[start + g * n + j] = np.int64(codes[g, skip + j]) if alive else dead
    record.dense_index[used[ROWS], 0] = row
    record.dense_index[used[ROWS], 1] = used[CODES]
    used[CODES] += 2 * np.int64(n)
    used[ROWS] += 1


@_inline
def _trim(v: Floats, own: int, lo: int, hi: int) -> tuple[int, int]:
    """The hull of the finite values in ``[lo, hi)`` of a row."""
    while lo < hi and v[U(own + lo)] == np.inf:
        lo += 1
    while lo < hi and v[U(own + hi - 1)] == np.inf:
        hi -= 1
    return (lo, hi) if lo < hi else (EMPTY_LO, np.int64(0))


@_inline
def _record_row(
    record: Record, row: Any, levels: Levels | None, room: Scratch, v: Floats, own: int,
    lo: int, hi: int,
) -> tuple[int, int]:  # fmt: skip
    """Write what was found out about ``[lo, hi)``; returns the hull of its finite values."""
    begin, regular = lo, False
    if levels is None:
        regular = _write_cuts(room.notes, lo, hi, record.cuts, row)
    if not regular:
        if levels is None:
            _codes_from_notes(room.notes, U(hi - lo), room.codes)
        lo, hi = _trim(v, own, lo, hi)
        if lo >= hi:
            record.cuts[row, :] = 0
            return lo, hi
        _write_dense(record, row, room.codes, U(lo - begin), v, U(own + lo), U(hi - lo))
    record.cuts[row, 0], record.cuts[row, 1] = lo, hi
    return lo, hi


# One pair of one layer ----------------------------------------------------------------------


@_inline
def _back_up_pair(
    layer: Layer, prices: Prices, levels: Levels | None, stay: Floats | None, step: int,
    fair: Fair | None, strike: bool, record: Record | None, keep: bool, pair: Pair, room: Scratch,
) -> None:  # fmt: skip
    """``v_t`` from ``v_{t+1}`` for all states of a pair.

    Where ``strike`` is set, states that are unfair at this layer become infeasible; where ``keep``
    is set, decisions are recorded.
    """
    zero = np.int64(0)
    v, lo, hi = layer
    w, cost, tie = prices.weights[step, pair.turned], prices.costs[step, pair.turned], prices.tie
    total = prices.totals[step, pair.turned]
    omega = None if stay is None else stay[step]
    row, ahead_row, across_row = U(pair.row), U(pair.ahead_row), U(pair.across_row)
    own, ahead, across = pair.here, pair.ahead, pair.across
    policy_row, fair_state, fair_row = U(pair.policy_row), pair.fair_state, U(pair.fair_row)
    for short in range(pair.rows):
        old_lo, old_hi = lo[row], hi[row]
        new_lo = max(min(lo[across_row], lo[across_row + U(1)]), max(lo[ahead_row] - 1, zero))
        new_hi = min(max(hi[across_row], hi[across_row + U(1)]), min(hi[ahead_row], pair.cells))
        if stay is not None:
            # Whoever is irrelevant leaves the counters as they are.
            new_lo, new_hi = max(new_lo, old_lo), min(new_hi, old_hi)
        if fair is not None:
            if strike:
                new_lo, new_hi = max(new_lo, fair.lo[fair_row]), min(new_hi, fair.hi[fair_row])
        if new_lo < new_hi:
            # Where the row was finite before and is no longer, it becomes infinite by itself.
            begin, end = min(new_lo, old_lo), max(new_hi, old_hi)
            if record is not None:
                for k in range(begin, min(new_lo, old_hi)):
                    v[U(own + k)] = np.inf
                begin = new_lo
            here, n = U(own + begin), U((end - begin + LANES - 1) & -LANES)
            reject_s, accept_s = U(across + begin), U(across + pair.across_step + begin)
            if pair.mixed:
                reject_s, accept_s = U(pair.columns), U(pair.columns) + n
                _columns(
                    v, U(pair.across + short), U(pair.across_step), pair.cells, begin, n, reject_s
                )
            at = Successors(reject_s, accept_s, U(ahead + begin))
            if levels is not None:
                if w.shape[2] <= FEW:
                    wanted = keep and record is not None
                    _back_up_few(v, at, here, n, w, cost, total, omega, tie, wanted, room.codes)
                else:
                    _back_up_many(
                        v, at, here, n, total, omega, tie, pair.turned, levels.steps[step],
                        levels.first[step], levels.scale[step], room,
                    )  # fmt: skip
            elif record is None:
                _back_up_one(v, at, here, n, w, cost, omega)
            else:
                # Also what is not kept, so that every worker rounds alike.
                _back_up_and_note(v, at, here, n, w, cost, omega, tie, room.notes)
            if fair is not None:
                if strike:
                    _strike(v, own, begin, new_lo, new_hi, n, fair.each, fair_state, room.notes)
            if record is not None:
                if keep:
                    new_lo, new_hi = _record_row(
                        record, policy_row, levels, room, v, own, new_lo, new_hi
                    )
                else:
                    new_lo, new_hi = _trim(v, own, new_lo, new_hi)
        else:
            for k in range(old_lo, old_hi):
                v[U(own + k)] = np.inf
            new_lo, new_hi = EMPTY_LO, zero
        lo[row], hi[row] = new_lo, new_hi
        row, ahead_row, across_row = row + U(1), ahead_row + U(1), across_row + U(1)
        own, ahead, across = own + pair.step, ahead + pair.ahead_step, across + pair.across_step
        policy_row, fair_row = policy_row + U(1), fair_row + U(1)
        fair_state += pair.step


@_inline
def _columns(v: Floats, at: Any, step: Any, cells: int, begin: int, n: Any, out: Any) -> None:
    """Copy two columns of a pair whose rows run along the other group, one after the other."""
    for j in range(n):
        k = U(begin) + j
        inside = k < U(cells)
        v[out + j] = v[at + k * step] if inside else np.inf
        v[out + n + j] = v[at + k * step + U(1)] if inside else np.inf


@_jit
def _strike(
    v: Floats, own: int, begin: int, lo: int, hi: int, n: Any, each: NDArray[np.bool_],
    fair_state: int, notes: Bits,
) -> None:  # fmt: skip
    """Make infinite, and note so, what is unfair in a row of which ``n`` states were computed."""
    for k in range(begin, begin + np.int64(n)):
        if k < lo or k >= hi or (len(each) and not each[U(fair_state + k)]):
            v[U(own + k)] = np.inf
            j = U(k - begin)
            notes[DEAD, j // U(WORD)] |= U(1) << (j % U(WORD))


@_jit
def _set_aside(layer: Layer, at: int, step: int, rows: int, out: int) -> None:
    """Copy the first ``rows`` states of as many rows."""
    for i in range(rows):
        for k in range(U(rows)):
            layer.values[U(out + i * rows) + k] = layer.values[U(at + i * step) + k]


@_jit
def _turn_hulls(layer: Layer, row: int, rows: int, cells: int, out: int) -> None:
    """Hulls of the rows of a pair if they ran along the other group."""
    lo, hi = layer.lo, layer.hi
    for k in range(out, out + cells):
        lo[k], hi[k] = EMPTY_LO, 0
    for i in range(rows):
        for k in range(U(out + lo[row + i]), U(out + max(lo[row + i], hi[row + i]))):
            lo[k] = min(lo[k], i)
            hi[k] = i + 1


# One block of one layer ---------------------------------------------------------------------


@_jit
def _back_up_block(
    layer: Layer, prices: Prices, levels: Levels | None, stay: Floats | None, step: int,
    fair: Fair | None, strike: bool, record: Record | None, keep: bool,
    places: Places, layer_start: int, horizon: int, t: int, n_a: int, room: Scratch,
) -> None:  # fmt: skip
    """``v_t`` from ``v_{t+1}`` for all states with this ``n_a``."""
    here, row = places.at[n_a], places.row_at[n_a]
    below, row_a = places.at[n_a + 1], places.row_at[n_a + 1]
    fair_state = fair_row = policy_row = np.int64(0)
    if fair is not None:
        fair_state, fair_row = fair.at[n_a] - here, fair.row_at[n_a] - row
    first_b = t - n_a
    if stay is not None:
        first_b = 0
    for n_b in range(first_b, t - n_a + 1):
        turned = n_a > n_b
        rows, cells = min(n_a, n_b) + 1, max(n_a, n_b) + 1
        if record is not None:
            policy_row = layer_start + row_in_layer(n_a, n_b, stay is not None)
        # Where the next person leads: in group a to the next block, in group b to the next pair
        # of this one, which in the plain family is what stood here one layer later.
        if stay is None:
            right, row_b = here, row
            along_a, along_b = n_a + 1 + GAP, horizon - n_a + 1 + GAP
            own_step = along_a if turned else along_b
            step_b = along_a if n_a > n_b + 1 else along_b
            step_a = along_a + 1 if n_a >= n_b else along_b - 1
        else:
            own_step = cells + GAP
            right, row_b = here + rows * own_step, row + rows
            step_b, step_a = max(n_a, n_b + 1) + 1 + GAP, max(n_a + 1, n_b) + 1 + GAP
        if turned:
            ahead, ahead_step, ahead_row = below, step_a, row_a
            across, across_step, across_row = right, step_b, row_b
        else:
            ahead, ahead_step, ahead_row = right, step_b, row_b
            across, across_step, across_row = below, step_a, row_a
        mixed = False
        if n_a == n_b or n_a == n_b + 1:
            # One more of the short group and the other is the long one.
            mixed = True
            _turn_hulls(layer, across_row, n_a + 1, n_a + (2 if n_a == n_b else 1), places.hulls)
            across_row = places.hulls
            if stay is None and turned:
                # From here on the rows of this block run along the other group.
                _set_aside(layer, across, across_step, n_a + 1, places.aside)
                across, across_step = places.aside, n_a + 1
                for i in range(U(here), U(here + rows * own_step)):
                    layer.values[i] = np.inf
                for i in range(row, row + rows):
                    layer.lo[i], layer.hi[i] = EMPTY_LO, 0
        pair = Pair(
            np.int64(turned), rows, cells, here, own_step, row,
            ahead, ahead_step, ahead_row, across, across_step, across_row,
            mixed, places.columns, policy_row, fair_state + here, fair_row + row,
        )  # fmt: skip
        _back_up_pair(layer, prices, levels, stay, step, fair, strike, record, keep, pair, room)
        here, row = right, row_b
        rows_a = min(n_a + 1, n_b) + 1
        below, row_a = below + rows_a * step_a, row_a + rows_a


@_jit
def row_in_layer(n_a: int, n_b: int, labelled: bool) -> int:
    """The first row of a pair, see :meth:`fairshield.layout.Layout.place`."""
    seen = n_a + n_b
    first = (seen + 1) * (seen + 3) * (2 * seen + 1) // 24 if labelled else 0
    if n_a <= n_b:
        return first + n_a * (n_a + 1) // 2
    return first + (seen + 2) * (seen + 2) // 4 - (n_b + 1) * (n_b + 2) // 2


# One pass over several layers ---------------------------------------------------------------


@_jit
def back_up(
    layer: Layer, prices: Prices, levels: Levels | None, stay: Floats | None, fair: Fair | None,
    record: Record | None, places: Places, layer_starts: Ints, horizon: int,
    t_from: int, t_to: int, block_from: int, block_to: int, room: Scratch,
) -> None:  # fmt: skip
    """Layers ``t_from - 1 … t_to`` of blocks ``block_from … block_to - 1``.

    Blocks from ``block_to`` on belong to another worker; ``places`` point to a private copy of as
    many of them as the wavefront needs, and their results are not recorded.  ``fair`` strikes out
    states of the last layer of the pass.
    """
    layers = t_from - t_to
    for front in range(block_from, min(block_to + layers - 1, t_from)):
        for back in range(layers):
            t, n_a = t_from - 1 - back, front - back
            if n_a < block_from or n_a > t or n_a >= block_to + layers - 1 - back:
                continue
            step = t if len(prices.weights) > 1 else 0
            keep, strike = n_a < block_to, t == t_to
            _back_up_block(
                layer, prices, levels, stay, step, fair, strike, record, keep,
                places, layer_starts[t], horizon, t, n_a, room,
            )  # fmt: skip


@_inline
def _count_finite(v: Floats, at: Any, n: Any) -> int:
    finite = np.int64(0)
    for j in range(n):
        finite += np.int64(1) if v[at + j] < np.inf else np.int64(0)
    return finite


@_jit
def set_terminal(
    layer: Layer, fair: Fair, record: Record | None, starts: Ints, layer_start: int, horizon: int,
    labelled: bool, block_from: int, block_to: int, room: Scratch,
) -> None:  # fmt: skip
    """The last layer: cost to go 0 where the property holds, infinite elsewhere.

    ``starts`` says where each row begins.
    """
    room.codes[:] = 0.0
    v, each = layer.values, fair.each
    for i in range(U(fair.at[block_from]), U(fair.at[block_to])):
        v[i] = np.inf
    row = fair.row_at[block_from]
    for n_a in range(block_from, block_to):
        for n_b in range(0 if labelled else horizon - n_a, horizon - n_a + 1):
            policy_row = layer_start + row_in_layer(n_a, n_b, labelled)
            for _ in range(min(n_a, n_b) + 1):
                start, lo, hi = starts[row], fair.lo[row], fair.hi[row]
                layer.lo[row], layer.hi[row] = EMPTY_LO, 0
                for k in range(U(start + lo), U(start + max(lo, hi))):
                    v[k] = 0.0
                if len(each):
                    for k in range(lo, hi):
                        if not each[start + k]:
                            v[start + k] = np.inf
                if lo < hi:
                    layer.lo[row], layer.hi[row] = lo, hi
                    if record is not None:
                        # Nothing is decided here: the row only says which counters are fair.
                        cuts, n = record.cuts, U(hi - lo)
                        cuts[policy_row, 0], cuts[policy_row, 1] = lo, hi
                        if len(each) and _count_finite(v, U(start + lo), n) < hi - lo:
                            if cuts.shape[1] == 6:
                                cuts[policy_row, 2] = (1 << (8 * cuts.itemsize)) - 1
                            row_at = U(start + lo)
                            _write_dense(record, policy_row, room.codes, U(0), v, row_at, n)
                row, policy_row = row + 1, policy_row + 1


@_jit
def block_work(layer: Layer, row_at: Ints, t: int, labelled: bool, out: Floats) -> None:
    """About how long each block of layer ``t`` takes: a time for each row, and its states."""
    for n_a in range(t + 1):
        work = 0.0
        row = row_at[n_a]
        for n_b in range(0 if labelled else t - n_a, t - n_a + 1):
            for _ in range(min(n_a, n_b) + 1):
                work += 16.0 + max(layer.hi[row] - layer.lo[row], 0)
                row += 1
        out[n_a] = work


@_jit
def gather_runs(codes: Any, starts: Ints, lengths: Ints, out_starts: Ints, out: Any) -> None:
    """Copy runs of ``codes`` to their places in ``out``."""
    for i in range(len(starts)):
        for j in range(lengths[i]):
            out[out_starts[i] + j] = codes[starts[i] + j]
