"""Plain data: what JSON can hold, under the keys that files, logs and messages have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fairshield.base.counts import Counts


def plain_counts(counts: Counts) -> list[list[Any]]:
    """``[group, seen, accepted]`` of each group."""
    return [[group, *count] for group, count in counts.items()]


def plain_number(value: float) -> float | None:
    """``value``, or ``None`` for the infinity that JSON lacks."""
    return value if math.isfinite(value) else None


def with_keys(data: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    """A copy of ``data`` with keys renamed by ``keys``.

    >>> with_keys({"paid": 2.0, "overruled": 1}, {"paid": "cost_paid"})
    {'cost_paid': 2.0, 'overruled': 1}
    """
    return {keys.get(key, key): value for key, value in data.items()}
