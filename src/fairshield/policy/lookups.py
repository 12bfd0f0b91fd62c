"""Look-ups in a table of rows: plain functions, which also run compiled.

Single decisions call them as plain Python, on memory views.  :mod:`fairshield.policy.jitable`
makes them callable from compiled functions, on arrays.  Both read the same :class:`RowTables`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fairshield.base.counts import At
from fairshield.policy.layout import place
from fairshield.policy.rows import CUTS_WIDTH, FORCED


class Codes(NamedTuple):
    """Codes holds a :class:`fairshield.policy.rows.RowTable` as look-ups read it."""

    cuts: Any
    """One row after the other."""
    width: int
    mark: int
    """What a dense row has for its third cut; negative if rows have two cuts."""
    dense_rows: Any
    dense_starts: Any
    dense_codes: Any
    dead: int
    """The code of a state that is not feasible."""


class RowTables(NamedTuple):
    """RowTables holds the decisions of a policy by rows, as look-ups read them."""

    labelled: bool
    starts: Any
    """The first row of each layer."""
    regular: bool
    """Whether everybody counts, rows have cuts, and there is nothing to salvage."""
    rows: Codes
    salvaging: bool
    salvage: Codes
    nobody: int
    """The code of the salvage table that overrules nobody."""
    ranks: Any


def look_up(tables: RowTables, t: int, at: At, group: int) -> tuple[bool, bool, int]:
    """See :meth:`fairshield.policy.decisions.Decisions.look_up`.

    The successors share a row (long group) or stand in neighbouring rows (short group).  The
    common case, everybody relevant and regular rows that all run along the same group, is
    written out for speed.
    """
    n_a, k_a, n_b, k_b = at
    if not tables.regular or n_a == n_b + group:
        return _look_up_any(tables, t, at, group)
    starts, rows = tables.starts, tables.rows
    # Rows along b are counted from the start of their layer, rows along a from its end.
    if n_a <= n_b:
        k, is_long = k_b, group == 1
        inside = n_a * (n_a + 1) // 2 + k_a
        here, then, across = starts[t] + inside, starts[t + 1] + inside, n_a + 1
    else:
        k, is_long = k_a, group == 0
        inside = k_b - (n_b + 1) * (n_b + 2) // 2
        here, then, across = starts[t + 1] + inside, starts[t + 2] + inside, -n_b - 2
    here, then = CUTS_WIDTH * here, CUTS_WIDTH * then
    if is_long:
        after, k_after = then, k + 1
    else:
        then += CUTS_WIDTH * across
        after, k_after = then + CUTS_WIDTH, k
    cuts, mark = rows.cuts, rows.mark
    if cuts[here + 2] == mark or cuts[then + 2] == mark or cuts[after + 2] == mark:
        return _look_up_any(tables, t, at, group)
    can_reject = cuts[then] <= k < cuts[then + 1]
    can_accept = cuts[after] <= k_after < cuts[after + 1]
    if can_reject != can_accept:
        return can_reject, can_accept, FORCED if can_reject else -FORCED
    if not cuts[here] <= k < cuts[here + 1]:
        return can_reject, can_accept, 0
    return can_reject, can_accept, _cut_code(cuts, here, k, is_long)


def _look_up_any(tables: RowTables, t: int, at: At, group: int) -> tuple[bool, bool, int]:
    n_a, k_a, n_b, k_b = at
    m_a, m_b = n_a + 1 - group, n_b + group
    can_reject = feasible(tables, t + 1, (m_a, k_a, m_b, k_b))
    can_accept = feasible(tables, t + 1, (m_a, k_a + 1 - group, m_b, k_b + group))
    code = 0
    if tables.salvaging and not feasible(tables, t, at):
        code = code_of(tables, tables.salvage, t, at, group)
        if abs(code) == tables.nobody:
            return can_reject, can_accept, 0
    elif can_accept == can_reject:
        code = code_of(tables, tables.rows, t, at, group)
    if code == 0 and can_accept != can_reject:
        code = FORCED if can_reject else -FORCED
    return can_reject, can_accept, code


def feasible(tables: RowTables, t: int, at: At) -> bool:
    """Whether fairness can be guaranteed from this state, whatever comes."""
    n_a, k_a, n_b, k_b = at
    row, k = place(tables.starts[t], tables.labelled, n_a, k_a, n_b, k_b)
    rows = tables.rows
    here = row * rows.width
    if not rows.cuts[here] <= k < rows.cuts[here + 1]:
        return False
    if rows.mark >= 0 and rows.cuts[here + 2] != rows.mark:
        return True
    start = _dense_start(rows, row)
    return start < 0 or rows.dense_codes[start + k - rows.cuts[here]] != rows.dead


def code_of(tables: RowTables, rows: Codes, t: int, at: At, group: int) -> int:
    """Cost levels worth overruling: ``+`` accepts, ``-`` rejects; 0 outside the row."""
    n_a, k_a, n_b, k_b = at
    row, k = place(tables.starts[t], tables.labelled, n_a, k_a, n_b, k_b)
    here, cuts = row * rows.width, rows.cuts
    if not cuts[here] <= k < cuts[here + 1]:
        return 0
    is_long = (group == 1) == (n_a <= n_b)
    if rows.mark >= 0 and cuts[here + 2] != rows.mark:
        return _cut_code(cuts, here, k, is_long)
    start = _dense_start(rows, row)
    if start < 0:
        return 0
    along = start + k - cuts[here]
    if is_long:
        # In two steps: in compiled code a difference of two unsigned numbers is unsigned.
        along = along + cuts[here + 1] - cuts[here]
    code = rows.dense_codes[along]
    return 0 if code == rows.dead else code


def _cut_code(cuts: Any, here: int, k: int, is_long: bool) -> int:
    """The code that the cuts of a row give to the state at position ``k``."""
    if is_long:
        return -1 if k < cuts[here + 4] else 1 if k >= cuts[here + 5] else 0
    return 1 if k < cuts[here + 2] else -1 if k >= cuts[here + 3] else 0


def _dense_start(rows: Codes, row: int) -> int:
    """The index of the first code of a dense row; negative if the row has no codes."""
    if rows.mark < 0:
        return int(rows.dense_starts[row])
    i = count_up_to(rows.dense_rows, row) - 1
    return int(rows.dense_starts[i]) if i >= 0 and rows.dense_rows[i] == row else -1


def count_up_to(values: Any, x: Any) -> int:
    """How many of the sorted ``values`` are at most ``x``; numpy's function compiles slowly."""
    first, end = 0, len(values)
    while first < end:
        middle = (first + end) >> 1
        if values[middle] <= x:
            first = middle + 1
        else:
            end = middle
    return first
