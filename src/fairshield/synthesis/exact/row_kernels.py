r"""Compiled work on one row of states: its costs to go, and what is decided there.

With :math:`x_g, y_g` the cost to go after accepting and rejecting a relevant person of group
:math:`g`, and :math:`s` the cost to go if the next person turns out irrelevant,

.. math::
    v = \omega s + \sum_g \sum_{\ell} \bigl[
          w_{g0\ell} \min(y_g,\; C_{g0\ell} + x_g) + w_{g1\ell} \min(x_g,\; C_{g1\ell} + y_g)\bigr].

Weights are never zero (the caller floors them at 1e-300), so that :math:`w\cdot\infty = \infty`
also for requests the model thinks impossible: the guarantee holds for every input.

Rows run along the *long* group, see :mod:`fairshield.policy.layout`; names end in ``s`` and
``l`` for the short and the long one.  Positions are offsets into ``v``.  A row is updated in place,
a vector at a time, because a vector reads only itself and what follows it in the row.

Offsets are unsigned because a signed index would be checked for wrap-around.  ``ninf`` must never
be among the fast-math flags, and with ``nnan`` no intermediate result may be NaN.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.compiler import NO_ALLOCATION, inlined, jit
from fairshield.synthesis.exact.vectors import (
    LANES,
    above,
    count_bits,
    lesser,
    load,
    one_where_above,
    splat,
    store,
)
from fairshield.synthesis.levels import Levels

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bits = NDArray[np.uint64]

FAST: dict[str, Any] = {"fastmath": {"nnan", "nsz", "reassoc", "contract", "arcp"}, **NO_ALLOCATION}
_jit = jit(**FAST)
# Inlined, because rows are short and passing a dozen arrays would cost more than a row.
_inline = inlined(**FAST)

U = np.uint64
WORD = 64
UP_S, DOWN_S, UP_L, DOWN_L, DEAD = QUESTIONS = range(5)
"""About a state, see :class:`Scratch`."""
FINITE = 1e290
EMPTY_LO = 2**30
CODES, ROWS = 0, 1
"""Where ``RecordedRows.dense_used`` counts written codes and written rows."""


class Prices(NamedTuple):
    """Prices holds weights and costs by step, ``turned``, group, proposal and level.

    The short group comes before the long one.  Gains up to ``tie`` do not count.
    """

    weights: Floats
    costs: Floats
    totals: Floats
    """Weights of all levels together."""
    tie: float


class Method(NamedTuple):
    """Method says which of the functions below computes a row's costs; others are ``None``.

    The compiler leaves out the branches of arguments that are ``None``.
    """

    one: bool | None = None
    """:func:`back_up_one`."""
    noted: bool | None = None
    """:func:`back_up_and_note`."""
    few: bool | None = None
    """:func:`back_up_few`."""
    many: Levels | None = None
    """:func:`back_up_many`, and where it searches."""


class RecordedRows(NamedTuple):
    """RecordedRows is where the policy is written; see :class:`fairshield.policy.rows.RowTable`."""

    cuts: Any
    dense_index: Ints
    """Row number, and where its codes begin."""
    dense_codes: Any
    dense_used: Ints


class Scratch(NamedTuple):
    """Scratch holds arrays for the decisions of one row.

    ``gaps`` and ``codes`` are by short and long group; ``notes`` has a bit per state for each of
    the questions ``UP_S`` … ``DEAD``: is everybody of the short (long) group accepted, is everybody
    rejected, is the state not feasible.
    """

    gaps: Floats
    codes: Floats
    notes: Bits


class Successors(NamedTuple):
    """Successors holds offsets of a row's successors.

    Accepting in the long group leads one further.
    """

    reject_s: Any
    accept_s: Any
    reject_l: Any


# Costs to go -------------------------------------------------------------------------------


@_inline
def back_up_one(
    v: Floats, at: Successors, here: Any, n: Any, w: Floats, cost: Floats, omega: float | None
) -> None:
    """Back up a row with one cost level; values only."""
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
def back_up_and_note(
    v: Floats, at: Successors, here: Any, n: Any, w: Floats, cost: Floats, omega: float | None,
    tie: float, notes: Bits,
) -> None:  # fmt: skip
    """Back up a row with one cost level, and write ``notes``, see :class:`Scratch`."""
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
def back_up_few(
    v: Floats, at: Successors, here: Any, n: Any, w: Floats, cost: Floats, total: Floats,
    omega: float | None, tie: float, keep: bool, codes: Floats,
) -> None:  # fmt: skip
    r"""Back up a row with a few cost levels, cheapest first.

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
        # The difference of two infinities is NaN.
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
    # Two independent sums, because each addition waits for the one before.
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
def back_up_many(
    v: Floats, at: Successors, here: Any, n: Any, total: Floats, omega: float | None, tie: float,
    turned: int, steps: Floats, first: Ints, scale: Floats, room: Scratch,
) -> None:  # fmt: skip
    """Back up a row with many cost levels by searching them, see :func:`levels.cost_levels`."""
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


# Decisions ----------------------------------------------------------------------------------


@_inline
def _write_cuts(notes: Bits, lo: int, hi: int, cuts: Any, row: Any) -> bool:
    """Write a row as cuts if its decisions have that form; otherwise mark it as dense.

    They have if everybody of the short group is rejected in its first states and accepted in its
    last, and in the long group the other way round.  Read as binary numbers, lowest bit first, the
    notes (or their complements) then are ones followed by zeros.
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
            # A word may have ones only if the words before it have no zeros.
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
    """Compute the codes of a row with one cost level from its notes."""
    for i in range(size):
        up, down = _noted(notes, UP_S, i), _noted(notes, DOWN_S, i)
        codes[0, i] = np.float64(down) - np.float64(up)
        up, down = _noted(notes, UP_L, i), _noted(notes, DOWN_L, i)
        codes[1, i] = np.float64(down) - np.float64(up)


@_inline
def write_dense(
    record: RecordedRows, row: int, codes: Floats, skip: Any, v: Floats, at: Any, n: Any
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
def trim(v: Floats, own: int, lo: int, hi: int) -> tuple[int, int]:
    """The hull of the finite values in ``[lo, hi)`` of a row."""
    while lo < hi and v[U(own + lo)] == np.inf:
        lo += 1
    while lo < hi and v[U(own + hi - 1)] == np.inf:
        hi -= 1
    return (lo, hi) if lo < hi else (EMPTY_LO, np.int64(0))


@_inline
def record_row(
    record: RecordedRows, row: Any, noted: bool | None, room: Scratch, v: Floats, own: int,
    lo: int, hi: int,
) -> tuple[int, int]:  # fmt: skip
    """Write the decisions of the states ``[lo, hi)``; returns the hull of the finite values."""
    begin, regular = lo, False
    if noted is not None:
        regular = _write_cuts(room.notes, lo, hi, record.cuts, row)
    if not regular:
        if noted is not None:
            _codes_from_notes(room.notes, U(hi - lo), room.codes)
        lo, hi = trim(v, own, lo, hi)
        if lo >= hi:
            record.cuts[row, :] = 0
            return lo, hi
        write_dense(record, row, room.codes, U(lo - begin), v, U(own + lo), U(hi - lo))
    record.cuts[row, 0], record.cuts[row, 1] = lo, hi
    return lo, hi
