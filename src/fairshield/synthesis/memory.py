"""Will it fit?  Asked before anything is allocated."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from fairshield.errors import MemoryLimitError
from fairshield.layout import Layout
from fairshield.policy import code_type

_DENSE_SHARE = 0.5
"""Share of states that rows of policies with several cost levels store (measured: below 0.45)."""


def estimate_bytes(layout: Layout, n_levels: int, *, record: bool) -> int:
    """Peak memory of a synthesis: one layer of values and, if recorded, the policy."""
    total = 8 * layout.layer_states * 5 // 4
    if record:
        cut = 1 if layout.horizon < 254 else 2
        total += layout.n_rows * cut * (6 if n_levels == 1 else 2)
        if n_levels > 1:
            code = np.dtype(code_type(n_levels)).itemsize
            # Codes of both groups, held twice while they are put in order.
            total += int(4 * code * _DENSE_SHARE * layout.n_states) + 32 * layout.n_rows
    return total


def check_memory(layout: Layout, n_levels: int, *, record: bool) -> None:
    """Raise :class:`MemoryLimitError` if the tables would not fit."""
    need, have = estimate_bytes(layout, n_levels, record=record), available_bytes()
    if need > have:
        raise MemoryLimitError(
            f"horizon {layout.horizon} needs about {_human(need)}, and {_human(have)} are "
            "available: shorten the horizon, split it into periods, or use fewer cost levels"
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
        limits = [sys.maxsize]  # no way to ask: the allocation itself will have to fail
    group = Path("/sys/fs/cgroup")
    if (group / "memory.max").exists() and (group / "memory.current").exists():
        most = (group / "memory.max").read_text().strip()
        if most != "max":
            limits.append(int(most) - int((group / "memory.current").read_text()))
    return min(limits)


def _human(size: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} PB"
