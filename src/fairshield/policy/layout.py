r"""Layout: the numbering of the counter states of two groups by rows, layers and blocks.

A state is what happened since the start of the window, ``(n_a, k_a, n_b, k_b)``: relevant people
seen and accepted in each group.  A **row** runs along the acceptances of the *long* group, the one
of which more people were seen (b if equally many), and fixes everything else.  A pair
``(n_a, n_b)`` thus has :math:`\min(n_a, n_b) + 1` rows of :math:`\max(n_a, n_b) + 1` states, one
for each number of acceptances in the *short* group; no other choice has fewer rows.

* *Plain* family (everybody is relevant): after ``t`` decisions :math:`n_a + n_b = t`.
* *Labelled* family (relevance is revealed by the outcome): :math:`n_a + n_b \le t`.

Policies number the rows of all layers ``0 … T`` in order of ``t``, ``n_a + n_b``, ``n_a``,
acceptances in the short group.  Synthesis keeps one layer, as **blocks** of equal ``n_a``.

The functions outside classes run as plain Python and compiled
(:mod:`fairshield.policy.jitable`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

GAP = 8
"""Infinite states that follow each row of a block, so that whole vectors can be computed."""


def rows_of_pairs(seen: int) -> int:
    """Rows of all pairs with ``n_a + n_b == seen``."""
    return (seen + 2) * (seen + 2) // 4


def rows_of_smaller_pairs(seen: int) -> int:
    """Rows of all pairs with ``n_a + n_b < seen``."""
    return (seen + 1) * (seen + 3) * (2 * seen + 1) // 24


def pair_start(labelled: bool, n_a: int, n_b: int) -> int:
    """The first row of a pair in its layer."""
    seen = n_a + n_b
    first = rows_of_smaller_pairs(seen) if labelled else 0
    if n_a <= n_b:
        return first + n_a * (n_a + 1) // 2
    return first + rows_of_pairs(seen) - (n_b + 1) * (n_b + 2) // 2


def place(first: int, labelled: bool, n_a: int, k_a: int, n_b: int, k_b: int) -> tuple[int, int]:
    """The row and the position in it of a state; ``first`` is the first row of its layer."""
    row = first + pair_start(labelled, n_a, n_b)
    if n_a <= n_b:
        return row + k_a, k_b
    return row + k_b, k_a


class Rows(NamedTuple):
    """Rows holds the people seen, and acceptances in the short group, of some rows."""

    n_a: Ints
    n_b: Ints
    short: Ints

    @property
    def turned(self) -> NDArray[np.bool_]:
        """Which rows run along group a."""
        return self.n_a > self.n_b

    @property
    def states(self) -> Ints:
        """States of each row."""
        return np.maximum(self.n_a, self.n_b) + 1


def layer_rows(t: int, labelled: bool) -> Rows:
    """Every row after ``t`` decisions, in the order of a policy."""
    seen = np.arange(t + 1) if labelled else np.array([t])
    n_a = _count_up(seen + 1)
    n_b = np.repeat(seen, seen + 1) - n_a
    rows = np.minimum(n_a, n_b) + 1
    return Rows(np.repeat(n_a, rows), np.repeat(n_b, rows), _count_up(rows))


@dataclass(frozen=True)
class Layout:
    """Layout computes indices of rows and sizes of tables for one family and horizon."""

    horizon: int
    labelled: bool

    # Rows of a policy -----------------------------------------------------------------------

    def rows_before(self, t: int) -> int:
        """Rows of all layers before layer ``t``."""
        if not self.labelled:
            return rows_of_smaller_pairs(t)
        # The sum of rows_of_smaller_pairs(1 … t).
        total = t * (t + 1) * (t * (t + 1) + 6 * t + 13) // 2 + 3 * (t + 1) - 3 * (t // 2 + 1)
        return total // 24

    @property
    def n_rows(self) -> int:
        """Rows of all layers ``0 … horizon``."""
        return self.rows_before(self.horizon + 1)

    @cached_property
    def layer_starts(self) -> Ints:
        """``(horizon + 2,)``: the first row of each layer, and the end."""
        return np.array([self.rows_before(t) for t in range(self.horizon + 2)], np.int64)

    # Blocks of one layer --------------------------------------------------------------------

    @cached_property
    def block_rows(self) -> Ints:
        """``(horizon + 1,)``: rows stored for each block, as many as its largest layer has."""
        n_a, most_b = np.arange(self.horizon + 1), np.arange(self.horizon, -1, -1)
        short: Ints = np.minimum(n_a, most_b)
        if not self.labelled:
            return short + 1
        rows: Ints = (short + 1) * (short + 2) // 2 + (most_b - short) * (n_a + 1)
        return rows

    @cached_property
    def block_states(self) -> Ints:
        """``(horizon + 1,)``: states kept for each block, with the gaps between its rows."""
        n_a, most_b = np.arange(self.horizon + 1), np.arange(self.horizon, -1, -1)
        of_b = (most_b + 1) * (most_b + 2) // 2 if self.labelled else most_b + 1
        states: Ints = (n_a + 1) * of_b + GAP * self.block_rows
        return states

    @cached_property
    def block_starts(self) -> Ints:
        """``(horizon + 2,)``: first state of each block, and the end."""
        return np.concatenate(([0], np.cumsum(self.block_states)))

    @cached_property
    def block_row_starts(self) -> Ints:
        """``(horizon + 2,)``: first row of each block, and the end."""
        return np.concatenate(([0], np.cumsum(self.block_rows)))

    def stored_rows(self, t: int) -> tuple[Rows, Ints]:
        """Every row of the blocks at layer ``t``, and the first state of each.

        Rows of a plain block lie as far apart as the largest layer needs; those the layer does not
        have repeat its last.  The pairs of a labelled block follow each other.
        """
        n_a = np.repeat(np.arange(self.horizon + 1), self.block_rows)
        if self.labelled:
            pairs = np.arange(self.horizon + 1, 0, -1)
            pairs_a, pairs_b = np.repeat(pairs[::-1] - 1, pairs), _count_up(pairs)
            rows = np.minimum(pairs_a, pairs_b) + 1
            n_b, short = np.repeat(pairs_b, rows), _count_up(rows)
            stored = Rows(n_a, n_b, short)
            steps = stored.states + GAP
            return stored, np.cumsum(steps) - steps
        n_b = np.maximum(t - n_a, 0)
        short = np.minimum(_count_up(self.block_rows), np.minimum(n_a, n_b))
        steps = np.where(n_a > n_b, n_a, self.horizon - n_a) + 1 + GAP
        return Rows(n_a, n_b, short), self.block_starts[n_a] + short * steps

    @cached_property
    def last_stored_rows(self) -> tuple[Rows, Ints]:
        """:meth:`stored_rows` of the last layer, with which every synthesis begins."""
        return self.stored_rows(self.horizon)

    def states_of(self, t: int) -> int:
        """States after ``t`` decisions."""
        return comb(t + 4, 4) if self.labelled else comb(t + 3, 3)

    def rows_of(self, t: int) -> int:
        """Rows after ``t`` decisions."""
        return self.rows_before(t + 1) - self.rows_before(t)

    def states_before(self, t: int) -> int:
        """States of all layers before layer ``t``."""
        return comb(t + 4, 5) if self.labelled else comb(t + 3, 4)

    @property
    def n_states(self) -> int:
        """States visited by a whole backward induction, all layers together."""
        return self.states_before(self.horizon + 1)


@lru_cache(64)
def layout_of(horizon: int, labelled: bool) -> Layout:
    """The layout of this size, cached so that its tables are computed once."""
    return Layout(horizon, labelled)


def _count_up(lengths: Ints) -> Ints:
    """``0 … n-1`` for each ``n`` in ``lengths``, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
