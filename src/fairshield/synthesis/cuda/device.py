"""What is known of a CUDA device before anything is computed on it: whether to use it, and room.

Importing this module loads neither CuPy nor CUDA; :func:`missing` does.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from fairshield.base.errors import MemoryLimitError, MissingExtraError
from fairshield.policy.layout import Layout
from fairshield.policy.rows import code_type
from fairshield.synthesis.memory import human, policy_bytes

CODES_AT_ONCE, ROWS_AT_ONCE = 1 << 31, 1 << 24
"""Bytes for the codes of some batches, and their rows, should each turn out irregular."""
_MORE_THAN_ANY = 10**13
"""States of a table that no device holds; to lay it out would take the memory of the host."""
_WORTH_A_DEVICE = 50_000_000
"""States below which the processor is done before the device has begun."""


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
    """Whether there is a device on which the problem fits and is solved faster."""
    if layout.n_states < _WORTH_A_DEVICE or missing() is not None:
        return False
    return device_bytes(layout, n_levels, record=record) <= _free_bytes()


def device_bytes(layout: Layout, n_levels: int, *, record: int | None) -> int:
    """Peak memory on the device: two layers, the policy, and its codes before they are sorted.

    With one cost level few rows are irregular; they are taken to have a fortieth of all states,
    which is more than any problem had so far.
    """
    if layout.n_states > _MORE_THAN_ANY:
        return layout.n_states  # a byte each, at least
    rows = layout.rows_of(layout.horizon)
    total = 2 * 8 * int(pair_starts(layout)[-1]) + 16 * rows
    if record is not None:
        kept = Layout(record, layout.labelled)
        code = np.dtype(code_type(n_levels)).itemsize
        codes = 2 * code * kept.n_states // (80 if n_levels == 1 else 1)
        room = max(2 * code * kept.states_of(record), min(2 * code * kept.n_states, CODES_AT_ONCE))
        total += policy_bytes(kept, n_levels) + room + 2 * codes
        total += 16 * min(kept.n_rows, ROWS_AT_ONCE)
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


@lru_cache(4)
def pair_starts(layout: Layout) -> NDArray[np.int64]:
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
