"""Compiled functions that find the states of the next layer from those of one layer.

A layer is one byte per state, in the order of the numbers of
:mod:`fairshield.policy.many.layout`, whatever the policy's own tables are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.compiler import NO_ALLOCATION, jit
from fairshield.policy.counted.lookups import CountedTables
from fairshield.policy.jitable import accepted_by, answer, number_after
from fairshield.policy.many.kernels import Walk, begin, counters_of, enter_row, go_on

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
_jit = jit(**NO_ALLOCATION)

REJECT, ACCEPT = 1, 2


@_jit
def answers(tables: Any, code: int, t: int, group: int, levels: Ints, possible: Flags) -> int:
    """Decisions that some proposal and cost level lead to, as bits: ``REJECT | ACCEPT``.

    ``possible`` says which proposals and levels may come, by group, proposal and level.  Stops once
    both decisions were found.  The highest cost comes first: at a cost that is never worth paying
    both proposals are followed, unless one of them is infeasible.
    """
    found = 0
    for i in range(len(levels) - 1, -1, -1):
        for proposed in (False, True):
            if not possible[group, np.int64(proposed), levels[i]]:
                continue
            accepted = accepted_by(tables, code, t, group, proposed, levels[i])
            found |= ACCEPT if accepted else REJECT
        if found == REJECT | ACCEPT:
            break
    return found


@_jit
def expand(
    tables: Any, t: int, levels: Ints, possible: Flags, rests: bool, here: Bytes, after: Bytes,
    walk: Walk,
) -> int:  # fmt: skip
    """Mark in ``after`` where the states marked in ``here`` lead; returns the transitions.

    ``possible`` says who may come and count, ``rests`` whether somebody may come who does not.
    """
    transitions, at, state, end = 0, walk.at, 0, begin(walk, t)
    while state < end:
        length, first = walk.sums[1] + 1, 0
        while first < length and not here[state + first]:
            first += 1
        if first < length:  # many rows have no state that is reached
            enter_row(walk, tables.labelled, t)
        for k in range(first, length):
            if not here[state + k]:
                continue
            at[1] = k
            for group in range(len(at) // 2):
                code = answer(tables, t, at, group)[2]
                found = answers(tables, code, t, group, levels, possible)
                for accepted in range(2):
                    if found & (ACCEPT if accepted else REJECT):
                        after[walk.after[2 * group + accepted] + k] = 1
                        transitions += 1
            if rests:
                # A person who does not count leaves the counters, and so the place, as they are.
                after[state + k] = 1
        state += length
        go_on(walk.sums, 1)
    return transitions


@_jit
def expand_counted(
    tables: CountedTables, t: int, layer: int, before: int, levels: Ints, possible: Flags,
    here: Bytes, after: Bytes, walk: Walk,
) -> int:  # fmt: skip
    """:func:`expand` where decisions are counted; ``before`` states precede the next layer."""
    transitions, at, state, end = 0, walk.at, 0, begin(walk, layer)
    while state < end:
        length = walk.sums[1] + 1
        counters_of(walk.sums, at)
        for k in range(length):
            if not here[state + k]:
                continue
            at[1] = k
            for group in range(len(at) // 2):
                code = answer(tables, t, at, group)[2]
                found = answers(tables, code, t, group, levels, possible)
                for accepted in range(2):
                    if found & (ACCEPT if accepted else REJECT):
                        for told in range(2):
                            gain = 2 * accepted + told
                            after[number_after(tables, t, at, group, gain) - before] = 1
                        transitions += 1
        state += length
        go_on(walk.sums, 1)
    return transitions
