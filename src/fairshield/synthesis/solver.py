"""Backward induction on the CPU: splits the work into passes and threads, collects the policy.

The kernels release the interpreter lock, so plain threads scale, an interrupt is honoured between
passes, and nothing depends on a threading layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.layout import Layout
from fairshield.rows import BARE_WIDTH, CUTS_WIDTH, RowTable, code_type, make_rows
from fairshield.synthesis.kernels import (
    EMPTY_LO,
    LANES,
    Fair,
    Layer,
    Levels,
    Prices,
    Record,
    Scratch,
    back_up,
    block_work,
    gather_runs,
    set_terminal,
)
from fairshield.synthesis.problem import NEVER, Problem

Progress = Callable[[float], None]
Ints = NDArray[np.int64]

_CACHE_BYTES = 1 << 20
"""Blocks of one wavefront should fit into this much cache."""
_LEAST_LAYERS, _MOST_LAYERS = 8, 16
_WORTH_A_THREAD = 6_000_000
"""States below which another thread costs more than it brings."""
_CELLS_PER_LEVEL = 64
_SAME_SPLIT = 0.95
"""Blocks are shared out anew once the layers have shrunk to this part."""


@dataclass(frozen=True)
class Solution:
    """Cost to go at the start, and the decisions if they were asked for."""

    value: float
    rows: RowTable | None


def solve(problem: Problem, *, record: bool, threads: int, progress: Progress | None) -> Solution:
    """Least expected cost of ``problem`` and, if ``record``, the policy that attains it."""
    workers = max(1, min(threads, problem.layout.n_states // _WORTH_A_THREAD))
    induction = _Induction(problem, record, workers)
    with ThreadPoolExecutor(workers) as pool:
        for done in induction.passes(pool):
            if progress is not None:
                progress(done)
    value = float(induction.layer.values[0])
    # Weights of probability zero are floored at 1e-300; what they add is not cost.
    value = 0.0 if value < 1e-200 else value
    rows = induction.collect() if record and value < math.inf else None
    return Solution(value, rows)


class _Run(NamedTuple):
    """Consecutive blocks of one worker, and where it finds them."""

    first: int
    last: int
    at: Ints
    row_at: Ints


class _Induction:
    """The tables of one backward induction: a single layer, updated in place."""

    def __init__(self, problem: Problem, record: bool, workers: int) -> None:
        layout = self.layout = problem.layout
        self.problem, self.wanted, self.workers = problem, record, workers
        self.at, self.row_at = layout.block_starts, layout.block_row_starts
        self.starts = layout.layer_starts
        self.layers = _layers_per_pass(layout, workers)
        blocks = range(layout.horizon + 1)
        halo = self.layers * max(map(layout.block_states, blocks))
        halo_rows = self.layers * max(map(layout.block_rows, blocks))
        states, rows, spare = int(self.at[-1]), int(self.row_at[-1]), workers - 1
        self.halos = [(states + i * halo, rows + i * halo_rows) for i in range(spare)]
        self.layer = _empty_layer(states + spare * halo, rows + spare * halo_rows, layout.horizon)
        self.prices, self.levels = _prices(problem), cost_levels(problem)
        self.stay = problem.stay if layout.labelled else None
        width = CUTS_WIDTH if problem.n_levels == 1 else BARE_WIDTH
        # The largest value marks a dense row, and hi reaches horizon + 1.
        cut_type = np.uint8 if layout.horizon < 254 else np.uint16
        self.cuts = np.zeros((layout.n_rows if record else 0, width), cut_type)
        self.code_type = code_type(problem.n_levels)
        self.split_at, self.parts = math.inf, np.empty(0)
        self.buffers: dict[int, _DenseBuffer] = {}
        self.dense: list[_DenseRows] = []

    def passes(self, pool: ThreadPoolExecutor) -> Iterator[float]:
        """Run all passes, last layer first; yields the share of the work done."""
        layout = self.layout
        self._set_terminal()
        t = layout.horizon
        while t > 0:
            earlier = [c for c in self.problem.checkpoints if c < t]
            t_to = max([t - self.layers, 0, *earlier])
            self._run_pass(pool, t, t_to, strike=t_to in earlier)
            t = t_to
            yield 1.0 - (t / layout.horizon) ** (5 if layout.labelled else 4)

    def _set_terminal(self) -> None:
        fair = self._fair(self.layout.horizon)
        buffer = self._buffer(-1, int(self.at[-1]) if len(fair.each) else 0)
        set_terminal(
            self.layer, fair, self._record(buffer), self.starts,
            self.layout.horizon, self.layout.labelled, _scratch(self.layout, self.levels),
        )  # fmt: skip
        self.dense.append(buffer.take())

    def _run_pass(self, pool: ThreadPoolExecutor, t_from: int, t_to: int, strike: bool) -> None:
        fair = self._fair(t_to) if strike else None
        runs = self._split(t_from, t_from - t_to)
        buffers = [
            self._buffer(i, int(self.at[run.last] - self.at[run.first]) * (t_from - t_to))
            for i, run in enumerate(runs)
        ]

        def work(run: _Run, buffer: _DenseBuffer) -> None:
            back_up(
                self.layer, self.prices, self.levels, self.stay, fair, self._record(buffer),
                run.at, run.row_at, self.starts, self.layout.horizon,
                t_from, t_to, run.first, run.last, _scratch(self.layout, self.levels),
            )  # fmt: skip

        others = [pool.submit(work, *job) for job in zip(runs[1:], buffers[1:], strict=True)]
        work(runs[0], buffers[0])
        for other in others:
            other.result()
        self.dense.extend(buffer.take() for buffer in buffers)

    def _fair(self, t: int) -> Fair:
        return Fair(*self.problem.fair_states(t), self.at, self.row_at)

    def _record(self, buffer: _DenseBuffer) -> Record | None:
        return Record(self.cuts, *buffer.arrays) if self.wanted else None

    def _buffer(self, worker: int, states: int) -> _DenseBuffer:
        """Room for every state of a pass, should each row turn out irregular."""
        states = states if self.wanted else 0
        if worker not in self.buffers or self.buffers[worker].states < states:
            self.buffers[worker] = _DenseBuffer(states, self.code_type)
        return self.buffers[worker]

    # Sharing a pass among workers -----------------------------------------------------------

    def _split(self, t: int, layers: int) -> list[_Run]:
        """Runs of blocks of about equal work, each with a private copy of what lies to its right.

        A wavefront of ``layers`` layers reads that many blocks of its right neighbour, which
        overwrites them at the same time; so they are copied, and worked out twice.
        """
        last = self.layout.horizon + 1
        if self.workers == 1 or t < 2 * self.workers * layers:
            return [_Run(0, last, self.at, self.row_at)]
        if t <= _SAME_SPLIT * self.split_at:
            # Which part of the blocks makes an equal share of work changes slowly with t.
            work = np.empty(t + 1)
            block_work(self.layer, self.row_at, t, self.layout.labelled, work)
            share = np.arange(1, self.workers) / self.workers
            self.parts = np.searchsorted(np.cumsum(work) / work.sum(), share) / t
            self.split_at = t
        edges = [0, *(self.parts * t).astype(int).tolist(), last]
        runs = []
        for i, (first, end) in enumerate(pairwise(edges)):
            places = (self.at, self.row_at) if end == last else self._copy_halo(i, end, layers)
            runs.append(_Run(first, end, *places))
        return runs

    def _copy_halo(self, worker: int, end: int, layers: int) -> tuple[Ints, Ints]:
        """Copy the blocks from ``end`` on; returns where the worker finds all blocks."""
        stop = min(end + layers, self.layout.horizon + 1)
        at, row_at = self.at.copy(), self.row_at.copy()
        at[end : stop + 1] += self.halos[worker][0] - self.at[end]
        row_at[end : stop + 1] += self.halos[worker][1] - self.row_at[end]
        for table, old, new in (
            (self.layer.values, self.at, at),
            (self.layer.lo, self.row_at, row_at),
            (self.layer.hi, self.row_at, row_at),
        ):
            table[new[end] : new[stop]] = table[old[end] : old[stop]]
        return at, row_at

    def collect(self) -> RowTable:
        """The policy's tables, in row order whatever the threads did."""
        rows = np.sort(np.concatenate([part.rows for part in self.dense]))
        lengths = 2 * (self.cuts[rows, 1].astype(np.int64) - self.cuts[rows, 0])
        starts = np.cumsum(lengths) - lengths
        codes = np.empty(int(lengths.sum()), self.code_type)
        while self.dense:
            # One at a time, so that what has been copied can go.
            part = self.dense.pop()
            at = np.searchsorted(rows, part.rows)
            gather_runs(part.codes, part.starts, lengths[at], starts[at], codes)
        return make_rows(self.cuts, rows, starts, codes)


class _DenseRows(NamedTuple):
    """Irregular rows of one pass: their numbers, where each begins, their codes."""

    rows: Ints
    starts: Ints
    codes: NDArray[Any]


class _DenseBuffer:
    """Where one worker writes irregular rows during a pass; untouched pages cost nothing."""

    def __init__(self, states: int, code_type: type) -> None:
        self.states = states
        # One array, not two: where pages are large, the first of each is not for nothing.
        self.index = np.empty((states, 2), np.int64)
        self.codes: NDArray[Any] = np.empty(2 * states, code_type)
        self.used = np.zeros(2, np.int64)

    @property
    def arrays(self) -> tuple[Ints, NDArray[Any], Ints]:
        return self.index, self.codes, self.used

    def take(self) -> _DenseRows:
        """Copy out what was written and start afresh."""
        codes, rows = self.used
        self.used[:] = 0
        index = self.index[:rows]
        return _DenseRows(index[:, 0].copy(), index[:, 1].copy(), self.codes[:codes].copy())


def _scratch(layout: Layout, levels: Levels | None) -> Scratch:
    """Room for a row, or with levels for a block, each row in whole vectors."""
    room = layout.horizon + 2 + 2 * LANES
    if levels is not None:
        blocks = range(layout.horizon + 1)
        room += max(layout.block_states(n) + LANES * layout.block_rows(n) for n in blocks)
    return Scratch(np.empty(room), np.empty((2, room)), np.empty((2, room)))


def _empty_layer(states: int, rows: int, horizon: int) -> Layer:
    """Everything infeasible."""
    values = np.full(states + horizon + 2 + 2 * LANES, np.inf)
    return Layer(values, np.full(rows, EMPTY_LO), np.zeros(rows, np.int64))


def _layers_per_pass(layout: Layout, workers: int) -> int:
    """Layers that a wavefront takes through the cache at once."""
    if workers > 1:
        # Workers meet after each pass, and go over as many of their neighbour's blocks again as
        # it has layers.
        return int(np.clip(layout.horizon // (8 * workers), 1, _MOST_LAYERS))
    block = 8 * max(map(layout.block_states, range(layout.horizon + 1)))
    return int(np.clip(_CACHE_BYTES // block, _LEAST_LAYERS, _MOST_LAYERS))


def _prices(problem: Problem) -> Prices:
    weights, costs = problem.weights, problem.costs
    if problem.n_levels > 1:
        # The kernel takes levels in pairs; a missing one weighs nothing and is never overruled.
        missing = ((0, 0), (0, 0), (0, 0), (0, problem.n_levels % 2))
        weights = np.pad(weights, missing)
        costs = np.pad(costs, missing, constant_values=np.inf)
    return Prices(weights, costs, problem.tie)


def cost_levels(problem: Problem) -> Levels | None:
    r"""What overruling saves, as a function of the gap between the two costs to go.

    For group g and proposal r, :math:`G(u) = \sum_\ell w_\ell \min(u, C_\ell)` is piecewise
    linear: where m costs are below u it is :math:`P_m + W_m u`.  A uniform grid says where to
    begin the search for m, so that it takes about one step however many cost levels there are.
    One cost level needs no search, hence ``None``.

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
    if problem.n_levels == 1:
        return None
    shape = (len(problem.costs), 4, problem.n_levels)
    costs, weights = problem.costs.reshape(shape), problem.weights.reshape(shape)
    order = np.argsort(costs, axis=2, kind="stable")
    costs, weights = (np.take_along_axis(x, order, axis=2) for x in (costs, weights))
    none = np.zeros((*shape[:2], 1))
    paid = np.concatenate((none, np.cumsum(costs * weights, axis=2)), axis=2)
    left = np.concatenate((none, np.cumsum(weights[..., ::-1], axis=2)), axis=2)[..., ::-1]
    ends = np.concatenate((costs, none + np.inf), axis=2)
    steps = np.stack((ends, paid, left), axis=3).reshape(shape[0], -1, 3)
    # Costs of people who are certainly irrelevant lie far beyond the grid.
    top = np.max(costs, axis=2, where=costs < NEVER, initial=0.0)
    cells = _CELLS_PER_LEVEL * problem.n_levels
    scale = np.divide(cells, top, out=np.zeros_like(top), where=top > 0)
    first = np.zeros((*shape[:2], cells + 1), np.int64)
    for i, side in np.ndindex(shape[:2]):
        # A little below each cell's edge, for rounding and for ties.
        edges = (np.arange(cells + 1) - 1e-6) / (scale[i, side] or 1.0) - 2 * problem.tie
        below = np.searchsorted(costs[i, side], edges, side="left")
        first[i, side] = side * (problem.n_levels + 1) + below
    return Levels(
        np.ascontiguousarray(steps), first.reshape(shape[0], -1), np.stack((scale, top), axis=2)
    )
