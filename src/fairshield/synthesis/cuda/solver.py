"""Backward induction on a CUDA device: layers stay there, the policy is copied to the host.

The kernels (``kernels.cu``) are compiled on first use, for the family, the cost levels and whether
decisions are wanted.  Layers go through in batches; while the device works on one, the cuts of the
one before travel to the host.

Importing this module loads neither CuPy nor CUDA.  The file is long because rows, tiles and
transfers share the arrays on the device, without which it cannot be tested.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import import_module, resources
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import GroupCount
from fairshield.base.errors import MemoryLimitError
from fairshield.base.types import Progress
from fairshield.policy.layout import Layout, Rows, layer_rows, layout_of
from fairshield.policy.rows import BARE_WIDTH, CUTS_WIDTH, RowTable, code_type
from fairshield.spec import Property
from fairshield.synthesis.cuda.device import CODES_AT_ONCE, ROWS_AT_ONCE, pair_starts
from fairshield.synthesis.levels import FEW, cost_levels
from fairshield.synthesis.problem import Problem, Solution, without_floor

Ints = NDArray[np.int64]

_LAYERS = 3
"""Layers of one pass over the tiles."""
_SHAPES = {800: (6, 9), 65_535: (6, 14)}
"""Up to which horizon tiles have how many rows, and are worked on for how many values of ``n_a`` by
one warp: smaller ones where there would be too few."""
_EMPTY = 0xFFFF
_STATES_AT_ONCE = 1 << 35
"""Between two reports of progress."""
_BATCH = 1 << 22
"""Rows after which the cuts of a batch begin to travel."""
_PIECE = 1 << 24
_COPIERS = 12
"""Threads that fetch pieces of so many bytes."""


# Solving --------------------------------------------------------------------------------------


def solve(problem: Problem, *, record: int | None, progress: Progress | None) -> Solution:
    """Least expected cost of ``problem``, and the decisions that attain it.

    Decisions up to layer ``record`` are returned; none if it is ``None``.  Decisions are those of
    the compiled backend, costs agree with it up to rounding.
    """
    try:
        return _solve(problem, record, progress)
    except MemoryError as error:
        raise MemoryLimitError(
            f"horizon {problem.layout.horizon} does not fit on the CUDA device ({error}): use "
            "backend 'cpu', shorten the horizon, or use fewer cost levels"
        ) from error


def _solve(problem: Problem, record: int | None, progress: Progress | None) -> Solution:
    induction: _Rows | _Tiles
    # Tiles compute rows more than once, which does not pay with a loop over cost levels.
    if record is None and not problem.layout.labelled and problem.n_levels == 1:
        induction = _Tiles(problem)
    else:
        induction = _Rows(problem, -1 if record is None else record)
    with _Downloads(induction.cupy) as downloads:
        for done in induction.batches(downloads):
            if progress is not None:
                progress(done)
        value = without_floor(induction.value())
        if record is None:
            return Solution(value, None)
        assert isinstance(induction, _Rows)  # tiles record nothing
        return Solution(value, induction.collect(downloads))


class _Build(NamedTuple):
    """_Build holds the constants that the kernels are compiled with."""

    block: int
    """Threads of a block; each warp works alone."""
    resident: int
    """Blocks of a multiprocessor; more would leave too few registers."""
    kernels: tuple[str, ...]


_ROW_KERNELS = ("back_up_layers", "set_terminal", "gather_codes")
_BUILDS = {
    "values": _Build(256, 3, _ROW_KERNELS),
    "policy": _Build(256, 3, _ROW_KERNELS),
    "tiles": _Build(128, 3, ("back_up_values", "strike_values")),
}


@cache
def _kernels(
    kind: str, labelled: bool, levels: int, cut: str, code: str, rows: int
) -> dict[str, Any]:
    """Compiled kernels by name; CuPy keeps them on disk as well."""
    names = {
        "uint8": "unsigned char", "uint16": "unsigned short",
        "int8": "signed char", "int16": "short", "int32": "int",
    }  # fmt: skip
    build = _BUILDS[kind]
    given = {
        "LABELLED": int(labelled), "LEVELS": levels, "CUT": names[cut], "CODE": names[code],
        "RECORD": int(kind == "policy"), "TILES": int(kind == "tiles"),
        "BLOCK": build.block, "RESIDENT": build.resident,
        "ROWS": rows, "LAYERS": _LAYERS,
    }  # fmt: skip
    options = ("--std=c++17", *(f"-D{name}={value}" for name, value in given.items()))
    source = resources.files(__package__).joinpath("kernels.cu").read_text()
    cupy = import_module("cupy")
    module = cupy.RawModule(code=source, options=options, enable_cooperative_groups=True)
    return {name: module.get_function(name) for name in build.kernels}


class _Fair(NamedTuple):
    """_Fair holds the fair states of a layer by row: a hull, and flags if the hull has gaps."""

    hulls: Any
    each: Any
    at: Any


class _Dense:
    """_Dense holds device memory for irregular rows, in the order the kernels write them."""

    def __init__(
        self, cupy: Any, layout: Layout, code_type: np.dtype[Any], total_rows: int
    ) -> None:
        self.cupy, self.layout, self.code_type = cupy, layout, code_type
        states, rows = layout.states_of(layout.horizon), layout.rows_of(layout.horizon)
        total = 2 * layout.n_states
        most_codes = max(2 * states, min(total, CODES_AT_ONCE // code_type.itemsize))
        most_rows = max(rows, min(total_rows, ROWS_AT_ONCE))
        self.rows, self.at = (cupy.empty(most_rows, np.int64) for _ in range(2))
        self.codes = cupy.empty(most_codes, code_type)
        self.used = cupy.zeros(2, np.uint64)
        self.n_codes = self.n_rows = 0
        self.full: list[tuple[Any, Any, Any]] = []

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays that the kernels write to."""
        return self.rows, self.at, self.codes, self.used

    def room(self, t: int, least: int) -> int:
        """The last layer before ``t`` down to which all rows fit, even if all are irregular."""
        end = self._room(t, least)
        if end == t:
            self._empty()
            end = self._room(t, least)
        return end

    def _room(self, t: int, least: int) -> int:
        layout = self.layout

        def fits(end: int) -> bool:
            codes = 2 * (layout.states_before(t) - layout.states_before(end))
            rows = layout.rows_before(t) - layout.rows_before(end)
            return (
                self.n_codes + codes <= len(self.codes)
                and self.n_rows + rows <= len(self.rows)
                and (rows <= _BATCH or end == t - 1)
            )

        return least + bisect_left(range(least, t), True, key=fits)

    def count(self) -> None:
        """Wait for the kernels, and read how many rows and codes they wrote."""
        self.n_codes, self.n_rows = self.used.get().tolist()

    def _empty(self) -> None:
        rows, at, codes = self.written()
        self.full.append((rows.copy(), at.copy(), codes.copy()))
        self.used.fill(0)
        self.n_codes = self.n_rows = 0

    def written(self) -> tuple[Any, Any, Any]:
        """Row numbers, where their codes begin, and the codes."""
        return self.rows[: self.n_rows], self.at[: self.n_rows], self.codes[: self.n_codes]

    def all(self) -> tuple[Any, Any, Any]:
        """:meth:`written` since the beginning."""
        if not self.full:
            return self.written()
        parts = [*self.full, self.written()]
        before = np.cumsum([0, *(len(codes) for _, _, codes in parts)]).tolist()
        join = self.cupy.concatenate
        at = join([part[1] + first for part, first in zip(parts, before, strict=False)])
        return join([part[0] for part in parts]), at, join([part[2] for part in parts])


class _Rows:
    """_Rows holds the device tables of one backward induction: two layers, used alternately."""

    def __init__(self, problem: Problem, recorded: int) -> None:
        cupy = self.cupy = import_module("cupy")
        layout = self.layout = problem.layout
        self.problem, self.recorded = problem, recorded
        self.width = CUTS_WIDTH if problem.n_levels == 1 else BARE_WIDTH
        # The largest value marks a dense row, and hi reaches horizon + 1.
        self.cut_type = np.dtype(np.uint8 if recorded < 254 else np.uint16)
        self.code_type = np.dtype(code_type(problem.n_levels))
        starts = pair_starts(layout)
        self.starts = cupy.asarray(starts[:-1])
        self.values = [cupy.empty(int(starts[-1]), np.float64) for _ in range(2)]
        rows = layout.rows_of(layout.horizon)
        self.hulls = [cupy.empty(rows, np.uint32) for _ in range(2)]
        self.layer_starts = cupy.asarray(layout.layer_starts)
        self.prices = _price_arguments(cupy, problem)
        # Counters of the kernels: blocks that arrived at the barrier; strips taken of each layer.
        self.counters = cupy.zeros(layout.horizon + 1, np.uint32)
        if recorded >= 0:
            kept = layout_of(recorded, layout.labelled)
            shape = (kept.n_rows, self.width)
            self.cuts, self.host_cuts = (
                cupy.empty(shape, self.cut_type),
                np.empty(shape, self.cut_type),
            )
            self.dense = _Dense(cupy, kept, self.code_type, kept.n_rows)

    def batches(self, downloads: _Downloads) -> Iterator[float]:
        """Go through all layers, last first; yields the share of the work done."""
        horizon = self.layout.horizon
        self._set_terminal(downloads)
        t = horizon
        while t > 0:
            earlier = [c for c in self.problem.spec.checkpoints if c < t]
            t_to = self._end_of_batch(t, max(earlier, default=0))
            fair = None
            if t_to in earlier:
                fair = _fair(self.cupy, self.problem, t_to)
            self._back_up(t, t_to, fair, downloads)
            t = t_to
            yield 1.0 - (t / horizon) ** (5 if self.layout.labelled else 4)

    def value(self) -> float:
        """Cost to go at the start."""
        return float(self.values[0][0]) if int(self.hulls[0][0]) != _EMPTY else math.inf

    def collect(self, downloads: _Downloads) -> RowTable:
        """The policy's tables, in row order."""
        cupy = self.cupy
        rows, at, unordered = self.dense.all()
        order = cupy.argsort(rows)
        rows = rows[order]
        starts = cupy.zeros(len(rows) + 1, np.int64)
        starts[1:] = 2 * cupy.cumsum(self.cuts[rows, 1].astype(np.int64) - self.cuts[rows, 0])
        codes = cupy.empty(len(unordered), self.code_type)
        host_codes = np.empty(len(codes), self.code_type)
        self._run(
            "gather_codes", True, max(len(rows), 1),
            unordered, at, order, starts, np.int64(len(rows)), codes,
        )  # fmt: skip
        downloads.fetch(codes, host_codes)
        if self.width == CUTS_WIDTH:
            dense_rows, dense_starts = rows.get(), starts[:-1].get()
        else:
            dense_rows, dense_starts = np.empty(0, np.int64), np.empty(len(self.cuts), np.int64)
            by_row = cupy.full(len(self.cuts), -1, np.int64)
            by_row[rows] = starts[:-1]
            downloads.fetch(by_row, dense_starts)
        downloads.finish()
        return RowTable(self.host_cuts, dense_rows, dense_starts, host_codes)

    # One batch ------------------------------------------------------------------------------

    def _end_of_batch(self, t: int, least: int) -> int:
        """The last of the layers before ``t`` that go together; all are recorded, or none is."""
        if t - 1 <= self.recorded:
            return self.dense.room(t, least)
        return _end_of_values(self.layout, t, max(least, self.recorded + 1))

    def _run(self, kernel: str, recorded: bool, rows: int, *arguments: Any) -> None:
        _launch(self.problem, "policy" if recorded else "values", kernel, rows, arguments,
                self.cut_type, self.code_type)  # fmt: skip

    def _set_terminal(self, downloads: _Downloads) -> None:
        horizon = self.layout.horizon
        recorded = horizon <= self.recorded
        fair = _fair(self.cupy, self.problem, horizon)
        side, rows = horizon % 2, self.layout.rows_of(horizon)
        self._run(
            "set_terminal", recorded, rows,
            self.values[side], self.hulls[side], self.starts, *fair, *self._record(recorded),
            self.layer_starts, np.int32(horizon),
        )  # fmt: skip
        if recorded:
            self._keep(horizon + 1, horizon, downloads)

    def _back_up(self, t_from: int, t_to: int, fair: _Fair | None, downloads: _Downloads) -> None:
        recorded = t_from - 1 <= self.recorded
        self.counters.fill(0)
        self._run(
            "back_up_layers", recorded, self.layout.rows_of(t_from - 1),
            *self.values, *self.hulls, self.starts, *self.prices,
            *(fair or (0, 0, 0)), *self._record(recorded), self.layer_starts,
            np.int32(t_from), np.int32(t_to), self.counters,
        )  # fmt: skip
        if recorded:
            self._keep(t_from, t_to, downloads)
        else:
            self.cupy.cuda.get_current_stream().synchronize()

    def _record(self, recorded: bool) -> tuple[Any, ...]:
        return (self.cuts, *self.dense.arrays) if recorded else (0, 0, 0, 0, 0)

    def _keep(self, t_from: int, t_to: int, downloads: _Downloads) -> None:
        """Start to copy the cuts of a batch to the host, while the next batch is computed."""
        here = slice(self.layout.rows_before(t_to), self.layout.rows_before(t_from))
        downloads.fetch(self.cuts[here], self.host_cuts[here])
        self.dense.count()


class _Tiles:
    """_Tiles computes values of a plain problem, several layers at once (end of ``kernels.cu``)."""

    def __init__(self, problem: Problem) -> None:
        cupy = self.cupy = import_module("cupy")
        self.problem, self.horizon = problem, problem.layout.horizon
        self.rows, self.segment = next(s for t, s in _SHAPES.items() if self.horizon <= t)
        tables = _tile_tables(self.horizon, self.rows)
        self.n_tiles = len(tables.corners)
        self.values = [cupy.empty(tables.n_states, np.float64) for _ in range(2)]
        self.flags = [cupy.zeros(tables.n_flags, np.uint8) for _ in range(2)]
        arrays = (cupy.asarray(x) for x in (tables.corners, tables.before, tables.starts))
        self.tables = (*arrays, np.int32(self.horizon), np.int32(tables.down))
        self.prices = _price_arguments(cupy, problem)
        self.counters = cupy.zeros(self.horizon + 1, np.uint32)

    def batches(self, downloads: _Downloads) -> Iterator[float]:
        """Go through all layers, last first; yields the share of the work done."""
        t = self.horizon
        self._strike(t)
        while t > 0:
            earlier = [c for c in self.problem.spec.checkpoints if c < t]
            t_to = _end_of_values(self.problem.layout, t, max(earlier, default=0))
            self._back_up(t, t_to)
            if t_to in earlier:
                self._strike(t_to)
            self.cupy.cuda.get_current_stream().synchronize()
            t = t_to
            yield 1.0 - (t / self.horizon) ** 4

    def value(self) -> float:
        """Cost to go at the start."""
        return float(self.values[0][0]) if int(self.flags[0][0]) else math.inf

    def _back_up(self, t_from: int, t_to: int) -> None:
        self.counters.fill(0)
        self._run(
            "back_up_values", *self.values, *self.flags, *self.tables, *self.prices,
            np.int32(self.segment), np.int32(t_from), np.int32(t_to), self.counters,
        )  # fmt: skip
        passes, left = divmod(t_from - t_to, _LAYERS)
        if (passes + left) % 2:
            self.values.reverse()
            self.flags.reverse()

    def _strike(self, t: int) -> None:
        fair = _fair(self.cupy, self.problem, t)
        self._run(
            "strike_values", self.values[0], self.flags[0], *self.tables, *fair,
            np.int32(t), np.int32(t == self.horizon),
        )  # fmt: skip

    def _run(self, kernel: str, *arguments: Any) -> None:
        types = np.dtype(np.uint8), np.dtype(np.int8)
        segments = self.n_tiles * (self.horizon // self.segment + 1)
        _launch(self.problem, "tiles", kernel, segments, arguments, *types, rows=self.rows)


def _launch(
    problem: Problem, kind: str, kernel: str, warps: int, arguments: tuple[Any, ...],
    cut_type: np.dtype[Any], code_type: np.dtype[Any], rows: int = 0,
) -> None:  # fmt: skip
    """Run a kernel on as many blocks as are resident at once, and as ``warps`` give work to."""
    n, build = problem.n_levels, _BUILDS[kind]
    levels = 1 if n == 1 else 2 if n <= FEW else 3
    types = cut_type.name, code_type.name
    kernels = _kernels(kind, problem.layout.labelled, levels, *types, rows)
    processors = import_module("cupy").cuda.Device().attributes["MultiProcessorCount"]
    blocks = min(build.resident * processors, -(-warps * 32 // build.block))
    kernels[kernel]((blocks,), (build.block,), arguments)


def _end_of_values(layout: Layout, t: int, least: int) -> int:
    """The last of the layers before ``t`` that are computed before progress is told."""

    def fits(end: int) -> bool:
        states = layout.states_before(t) - layout.states_before(end)
        return states <= _STATES_AT_ONCE or end == t - 1

    return least + bisect_left(range(least, t), True, key=fits)


@dataclass(frozen=True)
class _FairOf:
    """_FairOf is the cache key of a layer's fair states; ``problem`` is no part of it."""

    props: tuple[Property, ...]
    start: tuple[GroupCount[int], ...]
    layout: Layout
    t: int
    problem: Problem = field(compare=False)


def _fair_states(of: _FairOf) -> tuple[NDArray[Any], ...]:
    """Packed hulls of the rows of a layer; if these have gaps, flags and where those begin."""
    rows, at = _rows_and_starts(of.t, of.layout.labelled)
    lo, hi, each = of.problem.fair_states(of.props, rows, at)
    hulls = np.where(lo < hi, hi << 16 | lo, _EMPTY).astype(np.uint32)
    return (hulls, each[: of.layout.states_of(of.t)].view(np.uint8), at) if len(each) else (hulls,)


# Cached, because a new plan mostly has the same property and only another input model.
_remembered_fair_states = lru_cache(4)(_fair_states)


def _fair(cupy: Any, problem: Problem, t: int) -> _Fair:
    of = _FairOf(problem.spec.required(t), problem.start, problem.layout, t, problem)
    try:
        arrays = _remembered_fair_states(of)
    except TypeError:  # a user's property without a hash
        arrays = _fair_states(of)
    hulls, *gaps = map(cupy.asarray, arrays)
    return _Fair(hulls, *(gaps or (0, 0)))


class _Downloads:
    """_Downloads copies arrays from device to host, in threads that have pinned memory each."""

    def __init__(self, cupy: Any) -> None:
        self.cupy, self.device = cupy, cupy.cuda.Device()
        self.pool = ThreadPoolExecutor(_COPIERS)
        self.lanes: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
        self.opened = 0
        self.pending: list[Future[None]] = []

    def __enter__(self) -> _Downloads:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)

    def fetch(self, source: Any, target: NDArray[Any]) -> None:
        """Copy ``source`` after the work queued so far; :meth:`finish` waits for ``target``."""
        size = target.nbytes
        while self.opened < min(_COPIERS, -(-size // _PIECE)):
            stream = self.cupy.cuda.Stream(non_blocking=True)
            self.lanes.put((stream, self.cupy.cuda.alloc_pinned_memory(_PIECE)))
            self.opened += 1
        event = self.cupy.cuda.Event(disable_timing=True)
        event.record()
        flat = target.reshape(-1).view(np.uint8)
        for first in range(0, size, _PIECE):
            piece = flat[first : first + _PIECE]
            self.pending.append(self.pool.submit(self._fetch, source, first, piece, event))

    def _fetch(self, source: Any, first: int, target: NDArray[np.uint8], event: Any) -> None:
        stream, pinned = self.lanes.get()
        runtime, size = self.cupy.cuda.runtime, len(target)
        with self.device:
            stream.wait_event(event)
            runtime.memcpyAsync(
                pinned.ptr, source.data.ptr + first, size, runtime.memcpyDeviceToHost, stream.ptr
            )
            stream.synchronize()
        target[:] = np.frombuffer(pinned, np.uint8, size)
        self.lanes.put((stream, pinned))

    def finish(self) -> None:
        """Wait for all copies."""
        for copy in self.pending:
            copy.result()
        self.pending.clear()


# Tables ---------------------------------------------------------------------------------------


@lru_cache(4)
def _rows_and_starts(t: int, labelled: bool) -> tuple[Rows, Ints]:
    """The rows of a layer, and where each begins if one follows the other."""
    rows = layer_rows(t, labelled)
    return rows, np.cumsum(rows.states) - rows.states


class _TileTables(NamedTuple):
    """_TileTables holds the positions of the tiles.

    ``before`` counts those whose first states have smaller sums.
    """

    corners: NDArray[np.int32]
    before: NDArray[np.int32]
    starts: Ints
    n_states: int
    down: int
    n_flags: int


@lru_cache(4)
def _tile_tables(horizon: int, rows: int) -> _TileTables:
    down, across = horizon // (32 - _LAYERS) + 2, horizon // rows + 2
    k_a = np.tile(np.arange(across) * rows, down)
    k_b = np.repeat(np.arange(down) * (32 - _LAYERS), across)
    order = np.argsort(k_a + k_b, kind="stable")
    order = order[(k_a + k_b)[order] <= horizon]
    sums = (k_a + k_b)[order]
    n_a = np.arange(horizon + 1)
    starts = np.concatenate(([0], np.cumsum((n_a + 1) * (horizon - n_a + 1))))
    # Tiles at the edge read a little beyond the last state.
    spare = (rows + _LAYERS) * (horizon + 1) + 64
    return _TileTables(
        corners=(k_a[order] | k_b[order] << 16).astype(np.int32),
        before=np.searchsorted(sums, np.arange(horizon + 2)).astype(np.int32),
        starts=starts[:-1],
        n_states=int(starts[-1]) + spare,
        down=down,
        n_flags=across * down * (horizon + 2),
    )


def _price_table(problem: Problem) -> NDArray[np.float64]:
    """By step: for each group and proposal weights, costs, total weight; the chance to stay.

    With many levels only the totals are needed: :func:`_device_levels` has the rest.
    """
    weights, costs = problem.sorted_weights, problem.sorted_costs
    parts = [weights.sum(axis=3, keepdims=True)]
    if problem.n_levels <= FEW:
        parts = [weights, costs, *parts]
    sides = np.concatenate(parts, axis=3).reshape(len(weights), -1)
    stay = np.broadcast_to(problem.stay[:, None], (len(sides), 1))
    return np.ascontiguousarray(np.concatenate((sides, stay), axis=1))


def _price_arguments(cupy: Any, problem: Problem) -> tuple[Any, ...]:
    """Prices and levels as all kernels take them."""
    table = _price_table(problem)
    shape = np.int32(table.shape[1]), np.int32(len(table))
    return cupy.asarray(table), *shape, np.float64(problem.tie), *_device_levels(cupy, problem)


def _device_levels(cupy: Any, problem: Problem) -> tuple[Any, ...]:
    """How to search among many levels, how many there are, and the cells of the grid."""
    n = problem.n_levels
    if n <= FEW:
        return 0, 0, 0, np.int32(n), np.int32(0)
    levels = cost_levels(problem)
    assert levels is not None  # a table exists only for several levels
    first = levels.first.astype(np.int32)
    arrays = (cupy.asarray(x) for x in (levels.steps, first, levels.scale))
    return *arrays, np.int32(n), np.int32(first.shape[1] // 4)
