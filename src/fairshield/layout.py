r"""Where a counter state lives: rows, layers and blocks.

A state is what happened since the start of the window, ``(n_a, k_a, n_b, k_b)``: relevant people
seen and accepted in each group.  A **row** fixes everything but ``k_b``, which runs along it.

* *Plain* family (everybody is relevant): after ``t`` decisions :math:`n_a + n_b = t`, so a row is
  ``(t, n_a, k_a)`` and there are :math:`\binom{t+2}{2}` of them.
* *Labelled* family (relevance is revealed by the outcome): :math:`n_a + n_b \le t`, so a row is
  ``(t, n_a, n_b, k_a)`` and there are :math:`\binom{t+3}{3}` of them.

Policies number the rows of all layers ``0 … T`` in order of ``t``, ``n_a``, (``n_b``,) ``k_a``.
Synthesis keeps one layer, as **blocks** of equal ``n_a``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Indices of rows and sizes of tables for one family and horizon."""

    horizon: int
    labelled: bool

    # Rows of a policy -----------------------------------------------------------------------

    def rows_before(self, t: int) -> int:
        """Rows of all layers before layer ``t``."""
        return comb(t + 3, 4) if self.labelled else comb(t + 2, 3)

    @property
    def n_rows(self) -> int:
        """Rows of all layers ``0 … horizon``."""
        return self.rows_before(self.horizon + 1)

    @property
    def layer_starts(self) -> Ints:
        """``(horizon + 2,)``: the first row of each layer, and the end."""
        return np.array([self.rows_before(t) for t in range(self.horizon + 2)], np.int64)

    def row(self, t: int, n_a: int, k_a: int, n_b: int) -> int:
        """The row of a state."""
        if self.labelled:
            pairs = n_a * (n_a + 1) // 2
            before = (t + 2) * pairs - n_a * (n_a + 1) * (2 * n_a + 1) // 6
            return self.rows_before(t) + before + n_b * (n_a + 1) + k_a
        return self.rows_before(t) + n_a * (n_a + 1) // 2 + k_a

    # Blocks of one layer --------------------------------------------------------------------

    def block_states(self, n_a: int) -> int:
        """States kept for block ``n_a``: room for the largest layer."""
        most_b = self.horizon - n_a
        if self.labelled:
            return (n_a + 1) * (most_b + 1) * (most_b + 2) // 2
        return (n_a + 1) * (most_b + 1)

    def block_rows(self, n_a: int) -> int:
        """Rows kept for block ``n_a``."""
        return (n_a + 1) * (self.horizon - n_a + 1 if self.labelled else 1)

    @property
    def block_starts(self) -> Ints:
        """``(horizon + 2,)``: first state of each block, and the end."""
        return _cumulative([self.block_states(n) for n in range(self.horizon + 1)])

    @property
    def block_row_starts(self) -> Ints:
        """``(horizon + 2,)``: first row of each block, and the end."""
        return _cumulative([self.block_rows(n) for n in range(self.horizon + 1)])

    def stored_rows(self, t: int) -> tuple[Ints, Ints, Ints]:
        """``n_a``, ``k_a``, ``n_b`` of every row of the blocks, as they stand at layer ``t``."""
        n_a = np.repeat(
            np.arange(self.horizon + 1), [self.block_rows(n) for n in range(self.horizon + 1)]
        )
        within = np.arange(len(n_a)) - self.block_row_starts[n_a]
        if self.labelled:
            return n_a, within % (n_a + 1), within // (n_a + 1)
        return n_a, within, np.maximum(t - n_a, 0)

    @property
    def layer_states(self) -> int:
        """States of the largest layer, which is what synthesis keeps."""
        return comb(self.horizon + 4, 4) if self.labelled else comb(self.horizon + 3, 3)

    @property
    def layer_rows(self) -> int:
        """Rows of the largest layer."""
        return comb(self.horizon + 3, 3) if self.labelled else comb(self.horizon + 2, 2)

    @property
    def n_states(self) -> int:
        """States visited by a whole backward induction, all layers together."""
        return comb(self.horizon + 5, 5) if self.labelled else comb(self.horizon + 4, 4)


def _cumulative(sizes: list[int]) -> Ints:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
