r"""Decisions as a table: for each row of states what is feasible, and what is worth overruling.

What a shield does in a state depends on :math:`D = v(\text{accept}) - v(\text{reject})` alone:
overrule an accept iff :math:`D > c`, a reject iff :math:`-D > c`.  A policy therefore stores, for
each row of states (see :mod:`fairshield.layout`),

* the interval of states from which fairness can be guaranteed; a decision that would leave it is
  never taken, whatever it costs;
* for each group a *code*: how many of the cost levels are worth overruling, positive for accepts
  that become rejects, negative for rejects that become accepts.

A row runs along the acceptances of the long group.  With one cost level the codes along it are
nearly always ``+1 … 0 … -1`` for the short group and ``-1 … 0 … +1`` for the long one, so two
*cuts* per group describe them.  Rows of another shape, and all rows of policies with several cost
levels, are stored state by state (*dense*).  Both forms are exact: the decisions are those of the
full table.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import At, after
from fairshield.layout import Layout

Array = NDArray[Any]
Ints = NDArray[np.int64]
CUTS_WIDTH, BARE_WIDTH = 6, 2
FORCED = 1 << 40
"""The code of a decision that no cost can change."""


@dataclass(frozen=True, eq=False)
class RowTable:
    """Feasible intervals and codes of every row.

    Attributes
    ----------
    cuts
        ``(rows, 6)`` or ``(rows, 2)``, uint8 or uint16: ``lo, hi`` of the feasible states; then,
        with one cost level, ``s1, s2, l1, l2``: in the short group reject below ``s1`` and accept
        from ``s2`` on, in the long group accept below ``l1`` and reject from ``l2`` on, follow in
        between.  ``s1`` at its largest value marks a dense row.
    dense_rows, dense_starts, dense_codes
        Rows stored state by state: their numbers, rising; where each begins in the codes; and the
        codes, those of the short group for ``lo … hi-1``, then those of the long one.  The least
        value of the code type marks a state inside the interval that is not feasible.  If
        ``cuts`` has two columns, nearly every row is dense: ``dense_rows`` is empty and
        ``dense_starts`` has an entry for each row, -1 where all of ``lo … hi-1`` is feasible and
        nothing is decided.
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


def no_rows() -> RowTable:
    """The table of a policy that has none."""
    none = np.empty(0, np.int64)
    return RowTable(np.empty((0, 2), np.uint8), none, none, np.empty(0, np.int8))


def code_type(n_levels: int) -> type[np.signedinteger[Any]]:
    """The smallest type for codes up to ``n_levels`` of either sign, and one value to spare."""
    types: tuple[type[np.signedinteger[Any]], ...] = (np.int8, np.int16, np.int32)
    return next(t for t in types if n_levels <= np.iinfo(t).max)


class RowReader:
    """Looks up single states; plain Python, no compiler needed."""

    def __init__(self, layout: Layout, table: RowTable) -> None:
        self._layout, self.labelled = layout, layout.labelled
        self._starts = layout.layer_starts.tolist()
        self._width = int(table.cuts.shape[1])
        self._cuts = np.ascontiguousarray(table.cuts).reshape(-1).data
        self._mark = int(np.iinfo(table.cuts.dtype).max) if self._width == CUTS_WIDTH else -1
        self._fast = self._mark >= 0 and not self.labelled
        self._dense_rows = table.dense_rows.data
        self._dense_starts = table.dense_starts.data
        self._codes = table.dense_codes.data
        self._dead = int(np.iinfo(table.dense_codes.dtype).min)

    def look_up(self, t: int, at: At, group: int) -> tuple[bool, bool, int]:
        """Whether rejecting and whether accepting keeps fairness guaranteed, and the code.

        If only rejecting does, the code is ``FORCED``, if only accepting does its negative.

        The successors share a row (long group) or stand in neighbouring rows (short group).  The
        common case, everybody relevant and regular rows that all run along the same group, is
        written out: it is every decision's time.
        """
        n_a, k_a, n_b, k_b = at
        if not self._fast or n_a == n_b + group:
            return self._look_up_any(t, at, group)
        # Rows along b are counted from the first of their layer, rows along a from its end.
        if n_a <= n_b:
            k, is_long = k_b, group
            inside = n_a * (n_a + 1) // 2 + k_a
            here, then, across = self._starts[t] + inside, self._starts[t + 1] + inside, n_a + 1
        else:
            k, is_long = k_a, not group
            inside = k_b - (n_b + 1) * (n_b + 2) // 2
            here, then = self._starts[t + 1] + inside, self._starts[t + 2] + inside
            across = -n_b - 2
        here, then = CUTS_WIDTH * here, CUTS_WIDTH * then
        if is_long:
            after, k_after = then, k + 1
        else:
            then += CUTS_WIDTH * across
            after, k_after = then + CUTS_WIDTH, k
        cuts, mark = self._cuts, self._mark
        if cuts[here + 2] == mark or cuts[then + 2] == mark or cuts[after + 2] == mark:
            return self._look_up_any(t, at, group)
        can_reject = cuts[then] <= k < cuts[then + 1]
        can_accept = cuts[after] <= k_after < cuts[after + 1]
        if can_reject is not can_accept:
            return can_reject, can_accept, FORCED if can_reject else -FORCED
        if not cuts[here] <= k < cuts[here + 1]:
            code = 0
        elif is_long:
            code = -1 if k < cuts[here + 4] else 1 if k >= cuts[here + 5] else 0
        else:
            code = 1 if k < cuts[here + 2] else -1 if k >= cuts[here + 3] else 0
        return can_reject, can_accept, code

    def _look_up_any(self, t: int, at: At, group: int) -> tuple[bool, bool, int]:
        can_reject, can_accept = (self.feasible(t + 1, after(at, group, y)) for y in (False, True))
        if can_reject is can_accept:
            return can_reject, can_accept, self.code(t, at, group)
        return can_reject, can_accept, FORCED if can_reject else -FORCED

    def feasible(self, t: int, at: At) -> bool:
        """Whether fairness can be guaranteed from this state, whatever comes."""
        row, k = self._layout.place(t, *at)
        here = row * self._width
        lo = self._cuts[here]
        if not lo <= k < self._cuts[here + 1]:
            return False
        if self._mark >= 0 and self._cuts[here + 2] != self._mark:
            return True
        start = self._dense_start(row)
        return start is None or self._codes[start + k - lo] != self._dead

    def stays(self, t: int, at: At) -> bool:
        """Whether it still can be if the next decision leaves the counters as they are."""
        return self.feasible(t + 1, at)

    def code(self, t: int, at: At, group: int) -> int:
        """Cost levels worth overruling: ``+`` accepts, ``-`` rejects; 0 if not feasible."""
        row, k = self._layout.place(t, *at)
        here = row * self._width
        cuts = self._cuts
        if not cuts[here] <= k < cuts[here + 1]:
            return 0
        is_long = group == (at[0] <= at[2])
        if self._mark >= 0 and cuts[here + 2] != self._mark:
            if is_long:
                return -1 if k < cuts[here + 4] else 1 if k >= cuts[here + 5] else 0
            return 1 if k < cuts[here + 2] else -1 if k >= cuts[here + 3] else 0
        start = self._dense_start(row)
        if start is None:
            return 0
        lo, hi = cuts[here], cuts[here + 1]
        code = int(self._codes[start + k - lo + (hi - lo if is_long else 0)])
        return 0 if code == self._dead else code

    def _dense_start(self, row: int) -> int | None:
        if self._mark < 0:
            start = int(self._dense_starts[row])
            return None if start < 0 else start
        i = bisect_left(self._dense_rows, row)
        if i < len(self._dense_rows) and self._dense_rows[i] == row:
            return int(self._dense_starts[i])
        return None


class SalvagingReader(RowReader):
    """Also knows what to decide where fairness cannot be guaranteed.

    With K cost levels a code of K + 1 in its table overrules at every cost, and one of K + 2
    nobody, also where only the other decision leads to where fairness can be guaranteed.
    """

    def __init__(self, layout: Layout, table: RowTable, salvage: RowTable, n_levels: int) -> None:
        super().__init__(layout, table)
        self._salvage, self._nobody = RowReader(layout, salvage), n_levels + 2
        self._fast = False

    def _look_up_any(self, t: int, at: At, group: int) -> tuple[bool, bool, int]:
        can_reject, can_accept, code = super()._look_up_any(t, at, group)
        if can_reject is not can_accept and not self.feasible(t, at):
            code = self._salvage.code(t, at, group) or code
        return can_reject, can_accept, 0 if abs(code) == self._nobody else code

    def code(self, t: int, at: At, group: int) -> int:
        """As for :class:`RowReader`; that of the salvage table if not feasible."""
        if self.feasible(t, at):
            return super().code(t, at, group)
        return self._salvage.code(t, at, group)
