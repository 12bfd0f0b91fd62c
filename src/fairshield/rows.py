r"""Decisions as a table: for each row of states what is feasible, and what is worth overruling.

What a shield does in a state depends on :math:`D = v(\text{accept}) - v(\text{reject})` alone:
overrule an accept iff :math:`D > c`, a reject iff :math:`-D > c`.  A policy therefore stores, for
each row of states (see :mod:`fairshield.layout`),

* the interval of ``k_b`` from which fairness can be guaranteed; a decision that would leave it is
  never taken, whatever it costs;
* for each group a *code*: how many of the cost levels are worth overruling, positive for accepts
  that become rejects, negative for rejects that become accepts.

With one cost level the codes along a row are nearly always ``+1 … 0 … -1`` for group a and
``-1 … 0 … +1`` for group b, so two *cuts* per group describe them.  Rows of another shape, and all
rows of policies with several cost levels, are stored state by state (*dense*).  Both forms are
exact: the decisions are those of the full table.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.layout import Layout

Array = NDArray[Any]
Ints = NDArray[np.int64]
CUTS_WIDTH, BARE_WIDTH = 6, 2


@dataclass(frozen=True, eq=False)
class RowTable:
    """Feasible intervals and codes of every row.

    Attributes
    ----------
    cuts
        ``(rows, 6)`` or ``(rows, 2)``, uint8 or uint16: ``lo, hi`` of the feasible ``k_b``; then,
        with one cost level, ``a1, a2, b1, b2``: in group a reject below ``a1`` and accept from
        ``a2`` on, in group b accept below ``b1`` and reject from ``b2`` on, follow in between.
        ``a1`` at its largest value marks a dense row.
    dense_rows, dense_starts, dense_codes
        Rows stored state by state: their numbers, rising; where each begins in the codes; and the
        codes, those of group a for ``lo … hi-1``, then those of group b.  The least value of the
        code type marks a state inside the interval that is not feasible.  If ``cuts`` has two
        columns, nearly every row is dense: ``dense_rows`` is empty and ``dense_starts`` has an
        entry for each row, -1 where all of ``lo … hi-1`` is feasible and nothing is decided.
    """

    cuts: Array
    dense_rows: Ints
    dense_starts: Ints
    dense_codes: Array

    def __post_init__(self) -> None:
        for array in (self.cuts, self.dense_rows, self.dense_starts, self.dense_codes):
            array.flags.writeable = False

    @property
    def n_dense(self) -> int:
        """Rows stored state by state."""
        return int((self.dense_starts >= 0).sum())

    @property
    def nbytes(self) -> int:
        """Size of all tables."""
        arrays = (self.cuts, self.dense_rows, self.dense_starts, self.dense_codes)
        return int(sum(a.nbytes for a in arrays))


def code_type(n_levels: int) -> type[np.signedinteger[Any]]:
    """The smallest type for codes up to ``n_levels`` of either sign, and one value to spare."""
    types: tuple[type[np.signedinteger[Any]], ...] = (np.int8, np.int16, np.int32)
    return next(t for t in types if n_levels <= np.iinfo(t).max)


def make_rows(cuts: Array, rows: Ints, starts: Ints, codes: Array) -> RowTable:
    """A table from its ``cuts`` and its dense rows, in order of their numbers."""
    if cuts.shape[1] == BARE_WIDTH:
        by_row = np.full(len(cuts), -1, np.int64)
        by_row[rows] = starts
        rows, starts = np.empty(0, np.int64), by_row
    return RowTable(cuts, rows, starts, codes)


class RowReader:
    """Looks up single states; plain Python, no compiler needed."""

    def __init__(self, layout: Layout, table: RowTable) -> None:
        self.labelled = layout.labelled
        self._starts = [layout.rows_before(t) for t in range(layout.horizon + 2)]
        self._width = int(table.cuts.shape[1])
        self._cuts = np.ascontiguousarray(table.cuts).reshape(-1).data
        self._mark = int(np.iinfo(table.cuts.dtype).max) if self._width == CUTS_WIDTH else -1
        self._dense_rows = table.dense_rows.data
        self._dense_starts = table.dense_starts.data
        self._codes = table.dense_codes.data
        self._dead = int(np.iinfo(table.dense_codes.dtype).min)

    def row(self, t: int, n_a: int, k_a: int, n_b: int) -> int:
        """The row of a state (the formula of :meth:`Layout.row`, without its binomials)."""
        if self.labelled:
            pairs = n_a * (n_a + 1) // 2
            before = (t + 2) * pairs - n_a * (n_a + 1) * (2 * n_a + 1) // 6
            return self._starts[t] + before + n_b * (n_a + 1) + k_a
        return self._starts[t] + n_a * (n_a + 1) // 2 + k_a

    def look_up(
        self, t: int, n_a: int, k_a: int, n_b: int, k_b: int, group: int
    ) -> tuple[bool, bool, int]:
        """Whether rejecting and whether accepting keeps fairness guaranteed, and the code.

        The successors share a row (group b) or stand in neighbouring rows (group a).  The common
        case, everybody relevant and regular rows, is written out: it is every decision's time.
        """
        if self.labelled or self._mark < 0:
            return self._look_up_any(t, n_a, k_a, n_b, k_b, group)
        inside = n_a * (n_a + 1) // 2 + k_a
        at = CUTS_WIDTH * (self._starts[t] + inside)
        then = CUTS_WIDTH * (self._starts[t + 1] + inside)
        if group:
            after, k_after = then, k_b + 1
        else:
            then += CUTS_WIDTH * (n_a + 1)
            after, k_after = then + CUTS_WIDTH, k_b
        cuts, mark = self._cuts, self._mark
        if cuts[at + 2] == mark or cuts[then + 2] == mark or cuts[after + 2] == mark:
            return self._look_up_any(t, n_a, k_a, n_b, k_b, group)
        can_reject = cuts[then] <= k_b < cuts[then + 1]
        can_accept = cuts[after] <= k_after < cuts[after + 1]
        if not cuts[at] <= k_b < cuts[at + 1]:
            code = 0
        elif group:
            code = -1 if k_b < cuts[at + 4] else 1 if k_b >= cuts[at + 5] else 0
        else:
            code = 1 if k_b < cuts[at + 2] else -1 if k_b >= cuts[at + 3] else 0
        return can_reject, can_accept, code

    def _look_up_any(
        self, t: int, n_a: int, k_a: int, n_b: int, k_b: int, group: int
    ) -> tuple[bool, bool, int]:
        in_a, in_b = 1 - group, group
        can_reject = self.feasible(t + 1, n_a + in_a, k_a, n_b + in_b, k_b)
        can_accept = self.feasible(t + 1, n_a + in_a, k_a + in_a, n_b + in_b, k_b + in_b)
        return can_reject, can_accept, self.code(t, n_a, k_a, n_b, k_b, group)

    def feasible(self, t: int, n_a: int, k_a: int, n_b: int, k_b: int) -> bool:
        """Whether fairness can be guaranteed from this state, whatever comes."""
        row = self.row(t, n_a, k_a, n_b)
        at = row * self._width
        lo = self._cuts[at]
        if not lo <= k_b < self._cuts[at + 1]:
            return False
        if self._mark >= 0 and self._cuts[at + 2] != self._mark:
            return True
        start = self._dense_start(row)
        return start is None or self._codes[start + k_b - lo] != self._dead

    def code(self, t: int, n_a: int, k_a: int, n_b: int, k_b: int, group: int) -> int:
        """Cost levels worth overruling: ``+`` accepts, ``-`` rejects; 0 if not feasible."""
        row = self.row(t, n_a, k_a, n_b)
        at = row * self._width
        cuts = self._cuts
        if not cuts[at] <= k_b < cuts[at + 1]:
            return 0
        if self._mark >= 0 and cuts[at + 2] != self._mark:
            if group == 0:
                return 1 if k_b < cuts[at + 2] else -1 if k_b >= cuts[at + 3] else 0
            return -1 if k_b < cuts[at + 4] else 1 if k_b >= cuts[at + 5] else 0
        start = self._dense_start(row)
        if start is None:
            return 0
        lo, hi = cuts[at], cuts[at + 1]
        code = int(self._codes[start + k_b - lo + (hi - lo if group else 0)])
        return 0 if code == self._dead else code

    def _dense_start(self, row: int) -> int | None:
        if self._mark < 0:
            start = int(self._dense_starts[row])
            return None if start < 0 else start
        i = bisect_left(self._dense_rows, row)
        if i < len(self._dense_rows) and self._dense_rows[i] == row:
            return int(self._dense_starts[i])
        return None
