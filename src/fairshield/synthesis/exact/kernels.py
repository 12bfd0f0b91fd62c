r"""Compiled backward induction over pairs, blocks and layers.

A layer is updated in place.  Block ``n_a`` of layer ``t`` reads blocks ``n_a`` and ``n_a + 1`` of
layer ``t + 1``, so walking ``n_a`` upwards overwrites only what is no longer needed; several
layers go through one pass as a wavefront (layer ``t - l`` trails ``l`` blocks behind), while the
blocks are in cache.  Each row remembers an interval ``[lo, hi)``, its hull; outside it every value
is infinite and nothing is computed.

What a problem does not need is passed as ``None``, and the branches for it are not compiled: all
but one :class:`Method`, in the plain family ``stay``, in a pass without checkpoint :class:`Fair`,
without a ceiling :class:`Renewal`, in a computation of values alone :class:`RecordedRows`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.compiler import inlined, jit
from fairshield.policy.jitable import pair_start
from fairshield.policy.layout import GAP
from fairshield.synthesis.exact.row_kernels import (
    DEAD,
    EMPTY_LO,
    FAST,
    WORD,
    Bits,
    Floats,
    Ints,
    Method,
    Prices,
    RecordedRows,
    Scratch,
    Successors,
    U,
    back_up_and_note,
    back_up_few,
    back_up_many,
    back_up_one,
    record_row,
    trim,
    write_dense,
)
from fairshield.synthesis.exact.vectors import LANES
from fairshield.synthesis.levels import Levels
from fairshield.synthesis.problem import LEAST_COST

_jit = jit(**FAST)
_inline = inlined(**FAST)


class Layer(NamedTuple):
    """Layer holds the cost to go of one layer by block, and the hull of each row."""

    values: Floats
    lo: Ints
    hi: Ints


class Fair(NamedTuple):
    """Fair holds the fair states of each row: ``[lo, hi)``, and flags if that has gaps."""

    lo: Ints
    hi: Ints
    each: NDArray[np.bool_]
    at: Ints
    row_at: Ints


class Renewal(NamedTuple):
    """Renewal holds a ceiling, and what a pass that ends at a checkpoint finds out about it.

    ``found`` has the largest cost that does not exceed the ceiling, and the least one that does.
    States whose cost is at least ``least`` and does not exceed the ceiling are listed in
    ``attained`` as ``(n_a, n_b, short, long)``; ``listed`` is how many.
    """

    ceiling: float
    least: float
    found: Floats
    attained: Ints
    listed: Ints


class Places(NamedTuple):
    """Places holds first state and row of each block, and room for a pair that is turned."""

    at: Ints
    row_at: Ints
    columns: int
    aside: int
    hulls: int


class Pair(NamedTuple):
    """Pair says where the states of one ``(n_a, n_b)`` and of its successors lie.

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
    n_a: int
    n_b: int


# One pair of one layer ----------------------------------------------------------------------


@_inline
def _back_up_pair(
    layer: Layer, prices: Prices, one: bool | None, noted: bool | None, few: bool | None,
    many: Levels | None, stay: Floats | None, step: int, fair: Fair | None, strike: bool,
    renewal: Renewal | None, record: RecordedRows | None, keep: bool, pair: Pair, room: Scratch,
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
            # An irrelevant person leaves the counters as they are.
            new_lo, new_hi = max(new_lo, old_lo), min(new_hi, old_hi)
        if fair is not None:
            if strike:
                new_lo, new_hi = max(new_lo, fair.lo[fair_row]), min(new_hi, fair.hi[fair_row])
        if new_lo < new_hi:
            # The old hull is computed as well: what is no longer finite comes out infinite.
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
            if one is not None:
                back_up_one(v, at, here, n, w, cost, omega)
            if noted is not None:
                # Also for rows that are not kept, so that every worker rounds in the same way.
                back_up_and_note(v, at, here, n, w, cost, omega, tie, room.notes)
            if few is not None:
                wanted = keep and record is not None
                back_up_few(v, at, here, n, w, cost, total, omega, tie, wanted, room.codes)
            if many is not None:
                back_up_many(
                    v, at, here, n, total, omega, tie, pair.turned, many.steps[step],
                    many.first[step], many.scale[step], room,
                )  # fmt: skip
            if fair is not None:
                if strike:
                    _strike(v, own, begin, new_lo, new_hi, n, fair.each, fair_state, room.notes)
                    if renewal is not None:
                        _renew(v, own, begin, n, renewal, pair, short, keep, room.notes)
            if record is not None:
                if keep:
                    new_lo, new_hi = record_row(
                        record, policy_row, noted, room, v, own, new_lo, new_hi
                    )
                else:
                    new_lo, new_hi = trim(v, own, new_lo, new_hi)
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
    """Set the unfair ones of the ``n`` states computed in a row to infinity, and note them."""
    for k in range(begin, begin + np.int64(n)):
        if k < lo or k >= hi or (len(each) and not each[U(fair_state + k)]):
            v[U(own + k)] = np.inf
            j = U(k - begin)
            notes[DEAD, j // U(WORD)] |= U(1) << (j % U(WORD))


@_jit
def _renew(
    v: Floats, own: int, begin: int, n: Any, renewal: Renewal, pair: Pair, short: int, keep: bool,
    notes: Bits,
) -> None:  # fmt: skip
    """Set the ``n`` states computed in a row to 0, those above the ceiling to infinity."""
    for k in range(begin, begin + np.int64(n)):
        cost = v[U(own + k)]
        if cost == np.inf:
            continue
        if cost < LEAST_COST:
            cost = 0.0
        if cost > renewal.ceiling:
            renewal.found[1] = min(renewal.found[1], cost)
            v[U(own + k)] = np.inf
            j = U(k - begin)
            notes[DEAD, j // U(WORD)] |= U(1) << (j % U(WORD))
            continue
        renewal.found[0] = max(renewal.found[0], cost)
        v[U(own + k)] = 0.0
        i = renewal.listed[0]
        if keep and cost >= renewal.least:
            state = renewal.attained[i]
            state[0], state[1], state[2], state[3] = pair.n_a, pair.n_b, short, k
            renewal.listed[0] = i + 1


@_jit
def _set_aside(layer: Layer, at: int, step: int, rows: int, out: int) -> None:
    """Copy the first ``rows`` states of as many rows."""
    for i in range(rows):
        for k in range(U(rows)):
            layer.values[U(out + i * rows) + k] = layer.values[U(at + i * step) + k]


@_jit
def _turn_hulls(layer: Layer, row: int, rows: int, cells: int, out: int) -> None:
    """Compute the hulls that the rows of a pair would have along the other group."""
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
    layer: Layer, prices: Prices, method: Method, stay: Floats | None, step: int,
    fair: Fair | None, strike: bool, renewal: Renewal | None, record: RecordedRows | None,
    keep: bool, places: Places, layer_start: int, horizon: int, t: int, n_a: int, room: Scratch,
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
            policy_row = layer_start + pair_start(stay is not None, n_a, n_b)
        # A person of group a leads to the next block, a person of group b to the next pair of
        # this block, which in the plain family is the pair at this place one layer later.
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
            # With one more person the short group becomes the long one.
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
            mixed, places.columns, policy_row, fair_state + here, fair_row + row, n_a, n_b,
        )  # fmt: skip
        _back_up_pair(
            layer, prices, method.one, method.noted, method.few, method.many, stay, step, fair,
            strike, renewal, record, keep, pair, room,
        )  # fmt: skip
        here, row = right, row_b
        rows_a = min(n_a + 1, n_b) + 1
        below, row_a = below + rows_a * step_a, row_a + rows_a


# One pass over several layers ---------------------------------------------------------------


@_jit
def back_up(
    layer: Layer, prices: Prices, method: Method, stay: Floats | None, fair: Fair | None,
    renewal: Renewal | None, record: RecordedRows | None, places: Places, layer_starts: Ints,
    horizon: int, t_from: int, t_to: int, block_from: int, block_to: int, room: Scratch,
) -> None:  # fmt: skip
    """Compute layers ``t_from - 1 … t_to`` of blocks ``block_from … block_to - 1``.

    Blocks from ``block_to`` on belong to another worker; ``places`` point to a private copy of as
    many of them as the wavefront needs, and their results are not recorded.  ``fair`` strikes out
    states of the last layer of the pass, ``renewal`` those above its ceiling.
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
                layer, prices, method, stay, step, fair, strike, renewal, record, keep,
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
    layer: Layer, fair: Fair, record: RecordedRows | None, starts: Ints, layer_start: int,
    horizon: int, labelled: bool, block_from: int, block_to: int, room: Scratch,
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
            policy_row = layer_start + pair_start(labelled, n_a, n_b)
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
                        # The last layer has no decisions: its rows only say which states are fair.
                        cuts, n = record.cuts, U(hi - lo)
                        cuts[policy_row, 0], cuts[policy_row, 1] = lo, hi
                        if len(each) and _count_finite(v, U(start + lo), n) < hi - lo:
                            if cuts.shape[1] == 6:
                                cuts[policy_row, 2] = (1 << (8 * cuts.itemsize)) - 1
                            row_at = U(start + lo)
                            write_dense(record, U(policy_row), room.codes, U(0), v, row_at, n)
                row, policy_row = row + 1, policy_row + 1


@_jit
def block_work(layer: Layer, row_at: Ints, t: int, labelled: bool, out: Floats) -> None:
    """The estimated work of each block of layer ``t``: a constant per row, and its states."""
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
