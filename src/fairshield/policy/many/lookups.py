"""Look-ups in a table of numbered states: plain functions, which also run compiled.

As :mod:`fairshield.policy.lookups`.  ``at`` are counters ``n_a, k_a, n_b, k_b, …``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fairshield.policy.rows import FORCED

NOBODY = -1
"""In place of a group: nobody has come."""


class StateTables(NamedTuple):
    """StateTables holds the decisions of a policy by numbered states, as look-ups read them."""

    labelled: bool
    terms: Any
    """One row of :attr:`fairshield.policy.many.layout.ManyLayout.terms` after the other."""
    width: int
    codes: Any
    """Those of one group after those of the other."""
    states: int
    dead: int
    ranks: Any


def number_of(
    terms: Any, width: int, labelled: bool, t: int, at: Any, group: int, accepted: int
) -> int:
    """The number of a state once somebody more of ``group`` has come, rejected or accepted."""
    number, seen, row = 0, 0, width
    for g in range(len(at) // 2):
        came = 1 if g == group else 0
        number += terms[row + seen + at[2 * g + 1] + came * accepted]
        seen += at[2 * g] + came
        row += width
        number += terms[row + seen]
        row += width
    return number + terms[row + t] if labelled else number


def look_up(tables: StateTables, t: int, at: Any, group: int) -> tuple[bool, bool, int]:
    """See :meth:`fairshield.policy.decisions.Decisions.look_up`."""
    terms, width, codes, dead = tables.terms, tables.width, tables.codes, tables.dead
    can_reject = codes[number_of(terms, width, tables.labelled, t + 1, at, group, 0)] != dead
    can_accept = codes[number_of(terms, width, tables.labelled, t + 1, at, group, 1)] != dead
    if can_reject != can_accept:
        return can_reject, can_accept, FORCED if can_reject else -FORCED
    return can_reject, can_accept, code_of(tables, t, at, group)


def code_of(tables: StateTables, t: int, at: Any, group: int) -> int:
    """Cost levels worth overruling: ``+`` accepts, ``-`` rejects; 0 if not feasible."""
    number = number_of(tables.terms, tables.width, tables.labelled, t, at, NOBODY, 0)
    code = tables.codes[group * tables.states + number]
    return 0 if code == tables.dead else code
