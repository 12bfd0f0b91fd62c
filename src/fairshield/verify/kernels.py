"""Compiled exploration: from the states of one layer to those of the next.

A layer is one byte per state, row after row in the order of the policy's rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.codes import accepts
from fairshield.compiler import NO_ALLOCATION, jit
from fairshield.many import kernels as many
from fairshield.runtime.compiled import PolicyTables, look_up, place

Ints = NDArray[np.int64]
Flags = NDArray[np.uint8]
_jit = jit(**NO_ALLOCATION)

REJECT, ACCEPT = 1, 2


@_jit
def answers(ranks: Ints, code: int, t: int, group: int, levels: Ints) -> int:
    """Decisions that some proposal and cost level bring about: ``REJECT | ACCEPT``.

    Looks no further once it has seen both, and at the highest cost first, because a cost nobody
    would pay keeps both proposals unless one of them is ruled out.
    """
    found = 0
    for i in range(len(levels) - 1, -1, -1):
        for proposed in (False, True):
            accepted = accepts(ranks, code, t, group, proposed, levels[i])
            found |= ACCEPT if accepted else REJECT
        if found == REJECT | ACCEPT:
            break
    return found


@_jit
def expand(
    tables: PolicyTables, t: int, levels: Ints, rows: Any, starts: Ints, here: Flags,
    after_starts: Ints, after: Flags,
) -> int:  # fmt: skip
    """Mark in ``after`` where the states marked in ``here`` lead; returns the transitions.

    ``starts`` is the first state of each row of the layer.
    """
    transitions = 0
    first_after = tables.layer_starts[t + 1]
    for row in range(len(starts) - 1):
        n_a, n_b, short = rows[0][row], rows[1][row], rows[2][row]
        for long in range(max(n_a, n_b) + 1):
            if not here[starts[row] + long]:
                continue
            k_a, k_b = (short, long) if n_a <= n_b else (long, short)
            for group in range(2):
                code = look_up(tables, t, n_a, k_a, n_b, k_b, group)
                found = answers(tables.ranks, code, t, group, levels)
                in_a, in_b = 1 - group, group
                for accepted in range(2):
                    if found & (ACCEPT if accepted else REJECT):
                        row_after, k = place(
                            tables, t + 1, n_a + in_a, k_a + in_a * accepted,
                            n_b + in_b, k_b + in_b * accepted,
                        )  # fmt: skip
                        after[after_starts[row_after - first_after] + k] = 1
                        transitions += 1
            if tables.labelled:
                stay, k = place(tables, t + 1, n_a, k_a, n_b, k_b)
                after[after_starts[stay - first_after] + k] = 1
    return transitions


# Any number of groups -----------------------------------------------------------------------


@_jit
def expand_many(
    tables: many.ManyTables, t: int, levels: Ints, here: Flags, first_after: int, after: Flags,
    sums: Ints, at: Ints,
) -> int:  # fmt: skip
    """:func:`expand` for several groups; states are in the order of their numbers.

    ``sums`` and ``at`` are scratch, both of zeros but for ``sums[-1]``.
    """
    transitions = 0
    sums[-1] = t
    for state in range(len(here)):
        if here[state]:
            many.counters_of(sums, at)
            for group in range(len(at) // 2):
                code = many.look_up(tables, t, at, group)
                found = answers(tables.ranks, code, t, group, levels)
                at[2 * group] += 1
                for accepted in range(2):
                    if found & (ACCEPT if accepted else REJECT):
                        at[2 * group + 1] += accepted
                        number = many.place(tables.terms, tables.labelled, t + 1, at)
                        after[number - first_after] = 1
                        at[2 * group + 1] -= accepted
                        transitions += 1
                at[2 * group] -= 1
            if tables.labelled:
                after[many.place(tables.terms, True, t + 1, at) - first_after] = 1
        many.go_on(sums, 0)
    return transitions


@_jit
def counters_in(terms: Ints, t: int, states: Ints, sums: Ints, found: Ints) -> None:
    """Counters of states given by their place in layer ``t``."""
    for i in range(len(states)):
        many.sums_of(terms, t, states[i], sums)
        many.counters_of(sums, found[i])
