"""Backward induction on a CUDA device: the layers stay there, the policy is fetched.

The kernels (``kernels.cu``) are compiled on first use, for the family, the cost levels and whether
decisions are wanted.  Layers go through in batches; while the device works on one, the cuts of the
one before travel to the host.

Importing this module loads neither CuPy nor CUDA; :func:`missing` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module, resources
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.errors import MemoryLimitError, MissingExtraError
from fairshield.layout import Layout, Rows, layer_rows
from fairshield.rows import BARE_WIDTH, CUTS_WIDTH, RowTable, code_type
from fairshield.spec import Property
from fairshield.synthesis.levels import FEW, cost_levels
from fairshield.synthesis.memory import human, policy_bytes
from fairshield.synthesis.problem import Problem, Solution

Progress = Callable[[float], None]
Ints = NDArray[np.int64]

_BLOCK = 256
"""Threads of a block: eight warps, a row each."""
_RESIDENT = {False: 4, True: 3}
"""Blocks of a multiprocessor, without and with decisions; more would leave too few registers."""
_EMPTY = 0xFFFF
_STATES_AT_ONCE = 1 << 35
"""Between two reports of progress."""
_CODES_AT_ONCE = 1 << 30
"""Bytes for the codes of one batch, should each of its rows turn out irregular."""
_PIECE = 1 << 24
_COPIERS = 6
"""Threads that fetch pieces of so many bytes."""
_WORTH_A_DEVICE = 50_000_000
"""States below which the processor is done before the device has begun."""


# Whether and when -----------------------------------------------------------------------------


@cache
def missing() -> str | None:
    """Why nothing can be computed on a device; ``None`` if it can."""
    try:
        cupy = import_module("cupy")
    except ImportError as error:
        return f"cupy cannot be imported ({error})"
    try:
        found = cupy.cuda.runtime.getDeviceCount()
        if found and cupy.cuda.Device().attributes["CooperativeLaunch"]:
            return None
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CUDA finds no device ({error})"
    return "the CUDA device cannot launch cooperatively" if found else "CUDA finds no device"


def require_device() -> None:
    """Raise :class:`MissingExtraError` if nothing can be computed on a device."""
    reason = missing()
    if reason is not None:
        raise MissingExtraError(
            f"backend 'cuda' needs CuPy and a CUDA device, and {reason}: pip install "
            "'fairshield[cuda]' on a machine with one, or use backend 'cpu'"
        )


def pays(layout: Layout, n_levels: int, *, record: int | None) -> bool:
    """Whether there is a device, the problem is worth sending to it, and it fits."""
    if layout.n_states < _WORTH_A_DEVICE or missing() is not None:
        return False
    return device_bytes(layout, n_levels, record=record) <= _free_bytes()


def device_bytes(layout: Layout, n_levels: int, *, record: int | None) -> int:
    """Peak memory on the device: two layers, a batch of decisions, and codes of several levels."""
    rows = layout.rows_of(layout.horizon)
    total = 2 * 8 * int(_starts(layout)[-1]) + 16 * rows
    if record is not None:
        kept = Layout(record, layout.labelled)
        code = np.dtype(code_type(n_levels)).itemsize
        total += 4 * code * kept.states_of(record) + 100 * kept.rows_of(record)
        if n_levels > 1:
            total += policy_bytes(kept, n_levels)
    return total


def check_device_memory(layout: Layout, n_levels: int, *, record: int | None) -> None:
    """Raise :class:`MemoryLimitError` if a problem does not fit on the device."""
    need, have = device_bytes(layout, n_levels, record=record), _free_bytes()
    if need > have:
        raise MemoryLimitError(
            f"horizon {layout.horizon} needs about {human(need)} on the CUDA device, and "
            f"{human(have)} are free: use backend 'cpu', shorten the horizon, or use fewer cost "
            "levels"
        )


def _free_bytes() -> int:
    cupy = import_module("cupy")
    return int(cupy.cuda.Device().mem_info[0]) + int(cupy.get_default_memory_pool().free_bytes())


# Solving --------------------------------------------------------------------------------------


def solve(problem: Problem, *, record: int | None, progress: Progress | None) -> Solution:
    """Least expected cost of ``problem``, and the decisions that attain it.

    ``record`` says up to which layer decisions are wanted; ``None``: no decisions.  Decisions are
    those of the compiled backend, costs agree with it up to rounding.
    """
    induction = _Induction(problem, -1 if record is None else record)
    with _Downloads(induction.cupy) as downloads:
        for done in induction.batches(downloads):
            if progress is not None:
                progress(done)
        value = induction.value()
        return Solution(value, None if record is None else induction.collect(downloads))


class _Kernels(NamedTuple):
    back_up_layers: Any
    set_terminal: Any
    code_lengths: Any
    gather_codes: Any


@cache
def _kernels(labelled: bool, levels: int, record: bool, cut: str, code: str) -> _Kernels:
    """The compiled kernels; CuPy keeps them on disk as well."""
    names = {
        "uint8": "unsigned char", "uint16": "unsigned short",
        "int8": "signed char", "int16": "short", "int32": "int",
    }  # fmt: skip
    options = (
        "--std=c++17", f"-DLABELLED={int(labelled)}", f"-DLEVELS={levels}",
        f"-DRECORD={int(record)}", f"-DCUT={names[cut]}", f"-DCODE={names[code]}",
        f"-DBLOCK={_BLOCK}", f"-DRESIDENT={_RESIDENT[record]}",
    )  # fmt: skip
    source = resources.files(__package__).joinpath("kernels.cu").read_text()
    cupy = import_module("cupy")
    module = cupy.RawModule(code=source, options=options, enable_cooperative_groups=True)
    return _Kernels(*(module.get_function(name) for name in _Kernels._fields))


class _Fair(NamedTuple):
    """Fair states of each row of a layer; a flag per state unless that is all of the hull."""

    hulls: Any
    each: Any
    at: Any


@dataclass(frozen=True)
class _Batch:
    """Decisions of some layers, on the device."""

    first_row: int
    rows: Any
    """Dense rows, numbered within the batch; all rows if there are several cost levels."""
    starts: Any
    codes: Any


class _Induction:
    """The tables of one backward induction: two layers, which take turns."""

    def __init__(self, problem: Problem, recorded: int) -> None:
        cupy = self.cupy = import_module("cupy")
        layout = self.layout = problem.layout
        self.problem, self.recorded = problem, recorded
        self.width = CUTS_WIDTH if problem.n_levels == 1 else BARE_WIDTH
        # The largest value marks a dense row, and hi reaches horizon + 1.
        self.cut_type = np.dtype(np.uint8 if recorded < 254 else np.uint16)
        self.code_type = np.dtype(code_type(problem.n_levels))
        starts = _starts(layout)
        self.starts = cupy.asarray(starts[:-1])
        self.values = [cupy.empty(int(starts[-1]), np.float64) for _ in range(2)]
        rows = layout.rows_of(layout.horizon)
        self.hulls = [cupy.empty(rows, np.uint32) for _ in range(2)]
        self.layer_starts = cupy.asarray(layout.layer_starts)
        self.prices = cupy.asarray(_price_table(problem))
        self.levels = _device_levels(cupy, problem)
        self.arrived = cupy.zeros(1, np.uint32)
        self.used = cupy.zeros(1, np.uint64)
        kept_rows = layout.rows_before(recorded + 1)
        self.cuts = np.empty((kept_rows, self.width), self.cut_type)
        self.batches_kept: list[_Batch] = []
        self.codes, self.dense_at = cupy.empty(0, self.code_type), cupy.empty(0, np.int64)

    def batches(self, downloads: _Downloads) -> Iterator[float]:
        """Go through all layers, last first; yields the share of the work done."""
        horizon = self.layout.horizon
        self._set_terminal(downloads)
        t = horizon
        while t > 0:
            earlier = [c for c in self.problem.checkpoints if c < t]
            t_to = self._end_of_batch(t, max(earlier, default=0))
            fair = self._fair(self.problem.prop, t_to) if t_to in earlier else None
            self._back_up(t, t_to, fair, downloads)
            t = t_to
            yield 1.0 - (t / horizon) ** (5 if self.layout.labelled else 4)

    def value(self) -> float:
        """Cost to go at the start."""
        hull = int(self.hulls[0][0])
        value = float(self.values[0][0]) if hull != _EMPTY else math.inf
        # Weights of probability zero are floored at 1e-300; what they add is not cost.
        return 0.0 if value < 1e-200 else value

    def collect(self, downloads: _Downloads) -> RowTable:
        """The policy's tables, in row order."""
        batches = self.batches_kept[::-1]
        sizes = [len(batch.codes) for batch in batches]
        before = np.cumsum([0, *sizes])
        codes = np.empty(int(before[-1]), self.code_type)
        for batch, begin, end in zip(batches, before[:-1], before[1:], strict=True):
            downloads.fetch(batch.codes, codes[begin:end])
        if self.width == CUTS_WIDTH:
            none = [np.empty(0, np.int64)]
            numbers = [b.rows.get() + b.first_row for b in batches]
            starts = [b.starts.get() + first for b, first in zip(batches, before, strict=False)]
            dense_rows, dense_starts = np.concatenate(none + numbers), np.concatenate(none + starts)
        else:
            dense_rows, dense_starts = np.empty(0, np.int64), np.full(len(self.cuts), -1, np.int64)
            for batch, first in zip(batches, before, strict=False):
                starts_here = self.cupy.where(batch.starts >= 0, batch.starts + int(first), -1)
                end = batch.first_row + len(batch.starts)
                downloads.fetch(starts_here, dense_starts[batch.first_row : end])
        downloads.finish()
        return RowTable(self.cuts, dense_rows, dense_starts, codes)

    # One batch ------------------------------------------------------------------------------

    def _end_of_batch(self, t: int, least: int) -> int:
        """The last of the layers before ``t`` that go together; all are recorded, or none is."""
        recorded = t - 1 <= self.recorded
        least = least if recorded else max(least, self.recorded + 1)
        size = 2 * self.code_type.itemsize if recorded else 1
        room = _CODES_AT_ONCE if recorded else _STATES_AT_ONCE
        end, taken = t - 1, size * self.layout.states_of(t - 1)
        while end > least:
            taken += size * self.layout.states_of(end - 1)
            if taken > room:
                break
            end -= 1
        return end

    def _compiled(self, recorded: bool) -> _Kernels:
        n = self.problem.n_levels
        levels = 1 if n == 1 else 2 if n <= FEW else 3
        types = self.cut_type.name, self.code_type.name
        return _kernels(self.layout.labelled, levels, recorded, *types)

    def _grid(self, rows: int, recorded: bool) -> tuple[int]:
        """As many blocks as are resident at once, but no more than have a row to work on."""
        processors = self.cupy.cuda.Device().attributes["MultiProcessorCount"]
        return (max(1, min(_RESIDENT[recorded] * processors, -(-rows * 32 // _BLOCK))),)

    def _set_terminal(self, downloads: _Downloads) -> None:
        horizon = self.layout.horizon
        recorded = horizon <= self.recorded
        fair = self._fair(self.problem.terminal, horizon)
        side, rows = horizon % 2, self.layout.rows_of(horizon)
        cuts = self._room(horizon + 1, horizon) if recorded else 0
        self._compiled(recorded).set_terminal(
            self._grid(rows, recorded), (_BLOCK,),
            (self.values[side], self.hulls[side], self.starts, *fair, cuts, self.dense_at,
             self.codes, self.used, np.int32(horizon)),
        )  # fmt: skip
        if recorded:
            self._keep(horizon + 1, horizon, cuts, downloads)

    def _back_up(self, t_from: int, t_to: int, fair: _Fair | None, downloads: _Downloads) -> None:
        recorded = t_from - 1 <= self.recorded
        cuts = self._room(t_from, t_to) if recorded else 0
        self.arrived.fill(0)
        self._compiled(recorded).back_up_layers(
            self._grid(self.layout.rows_of(t_from - 1), recorded), (_BLOCK,),
            (*self.values, *self.hulls, self.starts,
             self.prices, np.int32(self.prices.shape[1]), np.int32(len(self.prices)),
             np.float64(self.problem.tie),
             *self.levels, *(fair or (0, 0, 0)),
             cuts, self.dense_at, self.codes, self.used, self.layer_starts,
             np.int64(self.layout.rows_before(t_to)), np.int32(t_from), np.int32(t_to),
             self.arrived),
        )  # fmt: skip
        if recorded:
            self._keep(t_from, t_to, cuts, downloads)
        else:
            self.cupy.cuda.get_current_stream().synchronize()

    def _fair(self, prop: Property, t: int) -> _Fair:
        rows, at = _rows_and_starts(t, self.layout.labelled)
        lo, hi, each = self.problem.fair_states(prop, rows, at)
        hulls = np.where(lo < hi, hi << 16 | lo, _EMPTY).astype(np.uint32)
        asarray = self.cupy.asarray
        if not len(each):
            return _Fair(asarray(hulls), 0, 0)
        states = each[: self.layout.states_of(t)].view(np.uint8)
        return _Fair(asarray(hulls), asarray(states), asarray(at))

    def _room(self, t_from: int, t_to: int) -> Any:
        """Room for the decisions of layers ``t_from - 1 … t_to``; returns that for their cuts."""
        layout, empty = self.layout, self.cupy.empty
        rows = layout.rows_before(t_from) - layout.rows_before(t_to)
        states = sum(layout.states_of(t) for t in range(t_to, t_from))
        if len(self.codes) < 2 * states:
            self.codes = empty(0, self.code_type)
            self.codes = empty(2 * states, self.code_type)
        if len(self.dense_at) < rows:
            self.dense_at = empty(rows, np.int64)
        self.used.fill(0)
        return empty((rows, self.width), self.cut_type)

    def _keep(self, t_from: int, t_to: int, cuts: Any, downloads: _Downloads) -> None:
        """Send the cuts of a batch to the host, and put its codes in order."""
        first, rows = self.layout.rows_before(t_to), len(cuts)
        downloads.fetch(cuts, self.cuts[first : first + rows])
        used = int(self.used[0])
        if not used:
            return
        cupy, kernels, grid = self.cupy, self._compiled(True), self._grid(rows, True)
        order = cupy.zeros(rows + 1, np.int64)
        n_rows, dense_at = np.int64(rows), self.dense_at[:rows]
        kernels.code_lengths(grid, (_BLOCK,), (cuts, dense_at, n_rows, order))
        cupy.cumsum(order, out=order)
        codes = cupy.empty(used, self.code_type)
        kernels.gather_codes(grid, (_BLOCK,), (self.codes, dense_at, order, n_rows, codes))
        if self.width == CUTS_WIDTH:
            dense = cupy.flatnonzero(dense_at >= 0)
            starts = order[dense]
        else:
            dense, starts = None, cupy.where(dense_at >= 0, order[:-1], -1)
        self.batches_kept.append(_Batch(first, dense, starts, codes))


class _Downloads:
    """Copies from the device to the host, by threads with a piece of pinned memory each."""

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
        """Copy ``source`` once the work queued so far is done; ``target`` is ready at the end."""
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
def _starts(layout: Layout) -> Ints:
    """Where each pair begins, and the end: by ``n_a``, or by ``n_a + n_b`` and ``n_a``.

    Rows are padded to 32 bytes.  A plain layer has one pair for each ``n_a``, and room for that of
    the last layer.
    """
    horizon = layout.horizon
    if layout.labelled:
        seen = np.repeat(np.arange(horizon + 1), np.arange(1, horizon + 2))
        n_a = np.arange(len(seen)) - seen * (seen + 1) // 2
        n_b = seen - n_a
    else:
        n_a = np.arange(horizon + 1)
        n_b = horizon - n_a
    sizes = (np.minimum(n_a, n_b) + 1) * (np.maximum(n_a, n_b) + 4 & ~3)
    return np.concatenate(([0], np.cumsum(sizes)))


@lru_cache(4)
def _rows_and_starts(t: int, labelled: bool) -> tuple[Rows, Ints]:
    """The rows of a layer, and where each begins if one follows the other."""
    rows = layer_rows(t, labelled)
    return rows, np.cumsum(rows.states) - rows.states


def _price_table(problem: Problem) -> NDArray[np.float64]:
    """By step: for each group and proposal weights, costs, total weight; the chance to stay.

    Many levels have tables of their own, so that only the totals are needed.
    """
    weights, costs = problem.sorted_weights, problem.sorted_costs
    parts = [weights.sum(axis=3, keepdims=True)]
    if problem.n_levels <= FEW:
        parts = [weights, costs, *parts]
    sides = np.concatenate(parts, axis=3).reshape(len(weights), -1)
    stay = np.broadcast_to(problem.stay[:, None], (len(sides), 1))
    return np.ascontiguousarray(np.concatenate((sides, stay), axis=1))


def _device_levels(cupy: Any, problem: Problem) -> tuple[Any, ...]:
    """How to search among many levels, how many there are, and the cells of the grid."""
    n = problem.n_levels
    if n <= FEW:
        return 0, 0, 0, np.int32(n), np.int32(0)
    levels = cost_levels(problem)
    assert levels is not None  # there are several
    first = levels.first.astype(np.int32)
    arrays = (cupy.asarray(x) for x in (levels.steps, first, levels.scale))
    return *arrays, np.int32(n), np.int32(first.shape[1] // 4)
