"""Estimates of the memory that a synthesis needs, checked before anything is allocated."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from fairshield.base.errors import MemoryLimitError
from fairshield.policy.layout import GAP, Layout
from fairshield.policy.rows import BARE_WIDTH, CUTS_WIDTH, code_type

_FIXED = 4_000_000
"""Threads, scratch rows, and what the allocator keeps."""
_NOT_WORTH_ASKING = 32_000_000
"""Asking what is available takes longer than a small synthesis should."""


def estimate_bytes(
    layout: Layout, n_levels: int, *, record: int | None, spread: bool = False
) -> int:
    """Peak memory of a synthesis, at most: one layer of values and the policy up to ``record``.

    With several cost levels the codes of all feasible states are held twice while they are sorted.
    How many states are feasible is not known beforehand, so all are counted.
    """
    rows = layout.rows_of(layout.horizon)
    layer = 8 * (layout.states_of(layout.horizon) + GAP * rows)
    total = _FIXED + layer * 5 // 4 + 80 * rows
    if record is not None:
        kept = Layout(record, layout.labelled)
        total += policy_bytes(kept, n_levels)
        if n_levels > 1:
            total += 2 * np.dtype(code_type(n_levels)).itemsize * kept.n_states + 32 * kept.n_rows
    if spread:
        total += 2 * layer
    return total


def policy_bytes(kept: Layout, n_levels: int) -> int:
    """Size of a policy, at most; with one cost level, without the few rows that are dense."""
    cut = 1 if kept.horizon < 254 else 2
    cuts = kept.n_rows * cut * (CUTS_WIDTH if n_levels == 1 else BARE_WIDTH)
    if n_levels == 1:
        return cuts
    return cuts + 2 * np.dtype(code_type(n_levels)).itemsize * kept.n_states + 8 * kept.n_rows


def check_memory(layout: Layout, n_levels: int, *, record: int, spread: bool) -> None:
    """Raise :class:`MemoryLimitError` if the tables of a policy would not fit."""
    _check_bytes(layout, estimate_bytes(layout, n_levels, record=record, spread=spread))


def check_policy_memory(layout: Layout, n_levels: int) -> None:
    """Raise :class:`MemoryLimitError` if a policy alone would not fit."""
    _check_bytes(layout, _FIXED + policy_bytes(layout, n_levels))


def salvage_bytes(layout: Layout, n_levels: int) -> int:
    """Peak memory of the best effort, at most: two layers of risks and costs, and its table."""
    code = np.dtype(code_type(n_levels + 2)).itemsize
    layers = (4 * 8 + 4 * code) * layout.states_of(layout.horizon)
    return _FIXED + layers + 4 * code * layout.n_states + 24 * layout.n_rows


def check_salvage_memory(layout: Layout, n_levels: int) -> None:
    """Raise :class:`MemoryLimitError` if the best effort would not fit."""
    _check_bytes(layout, salvage_bytes(layout, n_levels))


def _check_bytes(layout: Layout, need: int) -> None:
    if need < _NOT_WORTH_ASKING:
        return
    have = available_bytes()
    if need > have:
        raise MemoryLimitError(
            f"horizon {layout.horizon} needs about {human(need)}, and {human(have)} are "
            "available: shorten the horizon, plan fewer periods at once, or use fewer cost levels"
        )


def available_bytes() -> int:
    """Memory this process may still take: what the machine and its control group allow."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        limits = [int(fields["MemAvailable"].split()[0]) * 1024]
    elif "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    else:
        limits = [sys.maxsize]  # the system does not say: then the allocation itself fails
    group = Path("/sys/fs/cgroup")
    if (group / "memory.max").exists() and (group / "memory.current").exists():
        most = (group / "memory.max").read_text().strip()
        if most != "max":
            # Pages of files that were not used lately are freed when memory is needed.
            used = int((group / "memory.current").read_text()) - _inactive_files(group)
            limits.append(max(int(most) - used, 0))
    return min(limits)


def _inactive_files(group: Path) -> int:
    stat = group / "memory.stat"
    lines = stat.read_text().splitlines() if stat.exists() else []
    return next((int(x.split()[1]) for x in lines if x.startswith("inactive_file ")), 0)


def human(size: float) -> str:
    """A number of bytes, in a unit that fits."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} PB"
