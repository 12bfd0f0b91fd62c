"""Backward induction on the CPU: divides the work into passes and threads, collects the policy.

The kernels release the interpreter lock, so plain threads scale, an interrupt is honoured between
passes, and nothing depends on a threading layer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.types import Progress
from fairshield.policy.layout import Layout, Rows
from fairshield.policy.rows import BARE_WIDTH, CUTS_WIDTH, RowTable, code_type
from fairshield.synthesis.exact.kernels import (
    Fair,
    Layer,
    Places,
    Renewal,
    back_up,
    block_work,
    gather_runs,
    set_terminal,
)
from fairshield.synthesis.exact.row_kernels import (
    QUESTIONS,
    WORD,
    Method,
    Prices,
    RecordedRows,
    Scratch,
)
from fairshield.synthesis.exact.vectors import LANES
from fairshield.synthesis.levels import cost_levels
from fairshield.synthesis.problem import Dearest, Problem, Solution, without_floor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CACHE_BYTES = 1 << 20
"""Blocks of one wavefront should fit into this much cache."""
_LEAST_LAYERS, _MOST_LAYERS = 8, 16
_WORTH_A_THREAD = 6_000_000
"""States below which another thread costs more than it brings."""
_ASKING = 0.2
"""Share of the work that it is to ask a property about each of the last states."""
_SAME_SPLIT = 0.95
"""Blocks are shared out anew once the layers have shrunk to this part."""


def solve(
    problem: Problem, *, record: int | None, threads: int, progress: Progress | None
) -> Solution:
    """Least expected cost of ``problem``, and the decisions that attain it.

    Decisions up to layer ``record`` are returned; none if it is ``None``.
    """
    workers = max(1, min(threads, problem.layout.n_states // _WORTH_A_THREAD))
    induction = _Induction(problem, record, workers, progress)
    with ThreadPoolExecutor(max(workers - 1, 1)) as pool:
        for done in induction.passes(pool):
            if progress is not None:
                progress(done)
    value = without_floor(float(induction.layer.values[0]))
    rows = None if record is None else induction.collect()
    return Solution(value, rows, induction.dearest)


class _Induction:
    """_Induction holds the tables of one backward induction: one layer, updated in place."""

    def __init__(
        self, problem: Problem, record: int | None, workers: int, progress: Progress | None
    ) -> None:
        layout = self.layout = problem.layout
        self.problem, self.workers = problem, workers
        self.progress, self.asked = progress, 0.0
        self.recorded = -1 if record is None else record
        self.at, self.row_at = layout.block_starts, layout.block_row_starts
        self.starts = layout.layer_starts
        self.layers = _layers_per_pass(layout, workers)
        halo = self.layers * int(layout.block_states.max())
        halo_rows = self.layers * int(layout.block_rows.max())
        states, rows, halos = int(self.at[-1]), int(self.row_at[-1]), workers - 1
        self.halos = [(states + i * halo, rows + i * halo_rows) for i in range(halos)]
        states, rows = states + halos * halo, rows + halos * halo_rows
        columns = 2 * (layout.horizon + 2 + LANES)
        aside, hulls = columns + (layout.horizon // 2 + 2) ** 2, layout.horizon + 2
        self.spares = [
            (states + i * aside, states + i * aside + columns, rows + i * hulls)
            for i in range(workers)
        ]
        self.layer = _empty_layer(states + workers * aside, rows + workers * hulls)
        self.prices, self.levels = _prices(problem), cost_levels(problem)
        self.stay = problem.stay if layout.labelled else None
        width = CUTS_WIDTH if problem.n_levels == 1 else BARE_WIDTH
        # The largest value marks a dense row, and hi reaches horizon + 1.
        cut_type = np.uint8 if self.recorded < 254 else np.uint16
        self.cuts = np.zeros((layout.rows_before(self.recorded + 1), width), cut_type)
        self.code_type = code_type(problem.n_levels)
        self.pace = np.ones(workers)
        self.split_at, self.work_before = math.inf, np.empty(0)
        self.buffers: dict[int, _DenseBuffer] = {}
        self.dense: list[_DenseRows] = []
        self.dearest = None if problem.spec.ceiling is None else Dearest(0.0, math.inf, {})

    def passes(self, pool: ThreadPoolExecutor) -> Iterator[float]:
        """Run all passes, last layer first; yields the share of the work done."""
        layout = self.layout
        self._set_terminal(pool)
        t = layout.horizon
        while t > 0:
            earlier = [c for c in self.problem.spec.checkpoints if c < t]
            # Either all layers of a pass are recorded, or none.
            first_unrecorded = self.recorded + 1 if self.recorded + 1 < t else 0
            t_to = max([t - self.layers, first_unrecorded, *earlier])
            self._run_pass(pool, t, t_to, strike=t_to in earlier)
            t = t_to
            done = 1.0 - (t / layout.horizon) ** (5 if layout.labelled else 4)
            yield self.asked + (1.0 - self.asked) * done

    def _ask(self, share: float) -> None:
        """Report progress while the property is evaluated, which precedes all passes."""
        self.asked = _ASKING * share
        if self.progress is not None:
            self.progress(self.asked)

    def _set_terminal(self, pool: ThreadPoolExecutor) -> None:
        horizon = self.layout.horizon
        rows, starts = self.layout.last_stored_rows
        fair = self._fair(horizon, rows, starts, self._ask)
        layers = 1 if len(fair.each) else 0
        share = np.arange(self.workers + 1) / self.workers
        edges = np.searchsorted(self.at, share * self.at[-1]).tolist()

        def work(first: int, end: int, buffer: _DenseBuffer) -> None:
            set_terminal(
                self.layer, fair, self._record(buffer, horizon), starts, self.starts[horizon],
                horizon, self.layout.labelled, first, end, _scratch(self.layout),
            )  # fmt: skip

        self._share_out(pool, work, list(pairwise(edges)), horizon, layers)

    def _run_pass(self, pool: ThreadPoolExecutor, t_from: int, t_to: int, strike: bool) -> None:
        fair = self._fair(t_to, *self.layout.stored_rows(t_to)) if strike else None
        renewals: list[Renewal] = []

        def work(first: int, end: int, places: Places, buffer: _DenseBuffer) -> None:
            renewal = self._renewal(t_to) if strike else None
            if renewal is not None:
                renewals.append(renewal)
            back_up(
                self.layer, self.prices, self._method(t_from - 1), self.stay, fair, renewal,
                self._record(buffer, t_from - 1), places, self.starts, self.layout.horizon,
                t_from, t_to, first, end, _scratch(self.layout),
            )  # fmt: skip

        layers = t_from - t_to
        jobs = self._split(t_from, layers)
        seconds = self._share_out(pool, work, jobs, t_from - 1, layers)
        if 1 < len(seconds) == self.workers:
            # A worker that was slow, for whatever reason, gets a smaller part of the next pass.
            self.pace *= np.sqrt(seconds.mean() / np.maximum(seconds, 1e-9))
        if renewals and self.dearest is not None:
            self.dearest = _with_renewals(self.dearest, t_to, renewals)

    def _renewal(self, t: int) -> Renewal | None:
        """What one worker is to do and to note at a checkpoint, if there is a ceiling."""
        ceiling = self.problem.spec.ceiling
        if ceiling is None:
            return None
        # Few states attain it, and untouched pages cost nothing.
        room = np.empty((self.layout.states_of(t), 4), np.int64)
        found, least = np.array([0.0, np.inf]), self.problem.attaining
        return Renewal(ceiling, least, found, room, np.zeros(1, np.int64))

    def _share_out(
        self, pool: ThreadPoolExecutor, work: Callable[..., None], jobs: Sequence[Any],
        t: int, layers: int,
    ) -> Floats:  # fmt: skip
        """Do the first job here and the others in the pool; returns the seconds of each.

        Each gets a buffer with room for ``layers`` layers of the size of layer ``t``.
        """
        buffers = [self._buffer(i, t, layers) for i in range(len(jobs))]
        seconds = np.empty(len(jobs))

        def timed(i: int) -> None:
            begin = time.perf_counter()
            work(*jobs[i], buffers[i])
            seconds[i] = time.perf_counter() - begin

        others = [pool.submit(timed, i) for i in range(1, len(jobs))]
        timed(0)
        for other in others:
            other.result()
        self.dense.extend(buffer.take() for buffer in buffers)
        return seconds

    def _fair(self, t: int, rows: Rows, at: Ints, progress: Progress | None = None) -> Fair:
        required = self.problem.spec.required(t)
        return Fair(*self.problem.fair_states(required, rows, at, progress), self.at, self.row_at)

    def _record(self, buffer: _DenseBuffer, t: int) -> RecordedRows | None:
        """Where decisions up to layer ``t`` go, if they are wanted."""
        return RecordedRows(self.cuts, *buffer.arrays) if t <= self.recorded else None

    def _method(self, t: int) -> Method:
        """The method that computes rows of layers up to ``t``."""
        if self.levels is not None:
            return Method(many=self.levels)
        if self.problem.n_levels > 1:
            return Method(few=True)
        return Method(noted=True) if t <= self.recorded else Method(one=True)

    def _buffer(self, worker: int, t: int, layers: int) -> _DenseBuffer:
        """A buffer with room for all rows of some layers, even if each is irregular."""
        layers = layers if t <= self.recorded else 0
        rows, states = layers * self.layout.rows_of(t), layers * self.layout.states_of(t)
        found = self.buffers.get(worker)
        if found is None or len(found.index) < rows or len(found.codes) < 2 * states:
            found = self.buffers[worker] = _DenseBuffer(rows, states, self.code_type)
        return found

    # Sharing a pass among workers -----------------------------------------------------------

    def _split(self, t: int, layers: int) -> list[tuple[int, int, Places]]:
        """Runs of blocks of about equal work, each with a private copy of what lies to its right.

        A wavefront of ``layers`` layers reads that many blocks of its right neighbour, which
        overwrites them at the same time; so they are copied, and computed twice.
        """
        last = self.layout.horizon + 1
        if self.workers == 1 or t < 2 * self.workers * layers:
            return [(0, last, Places(self.at, self.row_at, *self.spares[0]))]
        if t <= _SAME_SPLIT * self.split_at:
            # The work of a block as a share of all changes slowly with t: compute it rarely.
            work = np.empty(t + 1)
            block_work(self.layer, self.row_at, t, self.layout.labelled, work)
            self.work_before, self.split_at = np.cumsum(work) / work.sum(), t
        share = np.cumsum(self.pace)[:-1] / self.pace.sum()
        parts = np.searchsorted(self.work_before, share) / self.split_at
        edges = [0, *(parts * t).astype(int).tolist(), last]
        runs = []
        for i, (first, end) in enumerate(pairwise(edges)):
            places = (self.at, self.row_at) if end == last else self._copy_halo(i, end, layers)
            runs.append((first, end, Places(*places, *self.spares[i])))
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
        """The policy's tables in row order, which does not depend on the threads."""
        rows = np.concatenate([part.rows for part in self.dense])
        if self.cuts.shape[1] == CUTS_WIDTH:
            # With cuts, few rows are dense.
            rows = np.sort(rows)
            lengths = self._code_lengths(rows)
            starts = np.cumsum(lengths) - lengths
            codes = self._gather(int(lengths.sum()), lambda of: starts[np.searchsorted(rows, of)])
            return RowTable(self.cuts, rows, starts, codes)
        by_row = np.zeros(len(self.cuts), np.int64)
        by_row[rows] = self._code_lengths(rows)
        ends = np.cumsum(by_row)
        starts = np.where(by_row > 0, ends - by_row, -1)
        codes = self._gather(int(ends[-1]), lambda of: starts[of])
        return RowTable(self.cuts, np.empty(0, np.int64), starts, codes)

    def _code_lengths(self, rows: Ints) -> Ints:
        lengths: Ints = 2 * (self.cuts[rows, 1].astype(np.int64) - self.cuts[rows, 0])
        return lengths

    def _gather(self, size: int, starts: Callable[[Ints], Ints]) -> NDArray[Any]:
        """All codes in one array, those of each row where ``starts`` says."""
        codes = np.empty(size, self.code_type)
        while self.dense:
            # One piece at a time, so that pieces that have been copied can be freed.
            part = self.dense.pop()
            lengths = self._code_lengths(part.rows)
            gather_runs(part.codes, part.starts, lengths, starts(part.rows), codes)
        return codes


class _DenseRows(NamedTuple):
    """_DenseRows holds irregular rows of one pass: numbers, where each begins, codes."""

    rows: Ints
    starts: Ints
    codes: NDArray[Any]


class _DenseBuffer:
    """_DenseBuffer is where one worker writes irregular rows during a pass.

    Untouched pages cost nothing.
    """

    def __init__(self, rows: int, states: int, code_type: type) -> None:
        # One array, not two: each array takes at least one page, and pages may be large.
        self.index = np.empty((rows, 2), np.int64)
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


def _with_renewals(dearest: Dearest, t: int, renewals: list[Renewal]) -> Dearest:
    """``dearest`` with what the workers found at the checkpoint after ``t`` decisions."""
    found = np.array([renewal.found for renewal in renewals])
    states = np.concatenate([renewal.attained[: renewal.listed[0]] for renewal in renewals])
    n_a, n_b, short, long = states.T
    k_a, k_b = np.where(n_a > n_b, (long, short), (short, long))
    return Dearest(
        max(dearest.kept, float(found[:, 0].max())),
        min(dearest.struck, float(found[:, 1].min())),
        dearest.attained | {t: np.stack((n_a, k_a, n_b, k_b), axis=1)},
    )


def _scratch(layout: Layout) -> Scratch:
    """Scratch arrays for a row, with lengths rounded up to whole vectors and whole words."""
    room = layout.horizon + 2 + LANES
    notes = np.empty((len(QUESTIONS), room // WORD + 1), np.uint64)
    return Scratch(np.empty((2, room)), np.empty((2, room)), notes)


def _empty_layer(states: int, rows: int) -> Layer:
    return Layer(np.empty(states), np.empty(rows, np.int64), np.empty(rows, np.int64))


def _layers_per_pass(layout: Layout, workers: int) -> int:
    """Layers that a wavefront takes through the cache at once."""
    if workers > 1:
        # Workers wait for each other after each pass, which favours many layers; and they compute
        # as many blocks of their neighbour again as a pass has layers, which favours few.
        return int(np.clip(layout.horizon // (8 * workers), 1, _MOST_LAYERS))
    block = 8 * int(layout.block_states.max())
    return int(np.clip(_CACHE_BYTES // block, _LEAST_LAYERS, _MOST_LAYERS))


def _prices(problem: Problem) -> Prices:
    sides = problem.sorted_weights, problem.sorted_costs
    weights, costs = (np.stack((x, x[:, ::-1]), axis=1) for x in sides)
    return Prices(weights, costs, weights.sum(axis=4), problem.tie)
