"""Figures that are one line of text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float]) -> str:
    """A row of block characters as high as the values; flat if all are zero.

    >>> sparkline([0, 1, 2, 4])
    '▁▃▅█'
    """
    top = max(values, default=0.0)
    if top <= 0.0:
        return _BLOCKS[0] * len(values)
    return "".join(_BLOCKS[round(value / top * (len(_BLOCKS) - 1))] for value in values)


def tenths(horizon: int) -> list[tuple[int, int]]:
    """Positions of a window in at most ten parts: the first, and one past the last, of each.

    >>> tenths(25)[:2], tenths(3)
    ([(0, 2), (2, 5)], [(0, 1), (1, 2), (2, 3)])
    """
    parts = min(10, horizon)
    return list(pairwise(i * horizon // parts for i in range(parts + 1)))
