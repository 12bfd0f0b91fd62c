"""The decision rule for several groups compiled, for arrays of requests.

The same rule as :func:`fairshield.runtime.step.verdict`, look-ups included.  ``at`` are counters
``n_a, k_a, n_b, k_b, …``, ``sums`` the partial sums of :mod:`fairshield.many.layout`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.codes import accepts
from fairshield.compiler import NO_ALLOCATION, jit
from fairshield.rows import FORCED

Ints = NDArray[np.int64]
_jit = jit(**NO_ALLOCATION)


class ManyTables(NamedTuple):
    """A policy as the compiled functions read it."""

    labelled: bool
    terms: Ints
    codes: NDArray[Any]
    dead: int
    ranks: Ints


# Numbers of states --------------------------------------------------------------------------


@_jit
def place(terms: Ints, labelled: bool, t: int, at: Ints) -> int:
    """See :meth:`fairshield.many.layout.ManyLayout.place`."""
    number, seen = np.int64(0), np.int64(0)
    for g in range(len(at) // 2):
        number += terms[2 * g + 1, seen + at[2 * g + 1]]
        seen += at[2 * g]
        number += terms[2 * g + 2, seen]
    if labelled:
        number += terms[len(at) + 1, t]
    return number


@_jit
def sums_of(terms: Ints, t: int, number: int, sums: Ints) -> None:
    """The partial sums of the state in this place of layer ``t``."""
    last = len(sums) - 1
    sums[last] = t
    for i in range(last, 0, -1):
        s = sums[i]
        while terms[i, s] > number:
            s -= 1
        sums[i - 1] = s
        number -= terms[i, s]


@_jit
def go_on(sums: Ints, first: int) -> None:
    """The next state of a layer; with ``first`` above 0 the first with other sums from there on."""
    i = first
    while i < len(sums) - 2 and sums[i] == sums[i + 1]:
        i += 1
    sums[:i] = 0
    sums[i] += 1


@_jit
def counters_of(sums: Ints, at: Ints) -> None:
    """The counters that have these partial sums."""
    before = np.int64(0)
    for g in range(len(at) // 2):
        at[2 * g], at[2 * g + 1] = sums[2 * g + 1] - before, sums[2 * g] - before
        before = sums[2 * g + 1]


# Look-ups -----------------------------------------------------------------------------------


@_jit
def feasible(tables: ManyTables, t: int, at: Ints) -> bool:
    """See :meth:`fairshield.many.policy.ManyReader.feasible`."""
    return tables.codes[0, place(tables.terms, tables.labelled, t, at)] != tables.dead


@_jit
def look_up(tables: ManyTables, t: int, at: Ints, group: int) -> int:
    """The code of a state, ``FORCED`` (or its negative) where rejecting (accepting) is a must."""
    code = np.int64(tables.codes[group, place(tables.terms, tables.labelled, t, at)])
    at[2 * group] += 1
    can_reject = feasible(tables, t + 1, at)
    at[2 * group + 1] += 1
    can_accept = feasible(tables, t + 1, at)
    at[2 * group] -= 1
    at[2 * group + 1] -= 1
    if can_accept != can_reject:
        return -FORCED if can_accept else FORCED
    return 0 if code == tables.dead else code


# Requests in order --------------------------------------------------------------------------


@_jit
def decide_stream(
    tables: ManyTables, t: int, at: Ints,
    groups: Any, proposed: Any, levels: Any, relevant: Any, accepted: Any,
) -> None:  # fmt: skip
    """Decide requests in order from the counters ``at``, which are updated."""
    for i in range(len(groups)):
        g = np.int64(groups[i])
        code = look_up(tables, t + i, at, g)
        accept = accepts(tables.ranks, code, t + i, g, proposed[i], np.int64(levels[i]))
        accepted[i] = accept
        if relevant[i]:
            at[2 * g] += 1
            at[2 * g + 1] += np.int64(accept)


@_jit
def decide_streams(
    tables: ManyTables, t: int, at: Any,
    groups: Any, proposed: Any, levels: Any, relevant: Any, accepted: Any,
) -> None:  # fmt: skip
    """:func:`decide_stream` for each row of the arrays."""
    for run in range(len(groups)):
        decide_stream(
            tables, t, at[run], groups[run], proposed[run], levels[run], relevant[run],
            accepted[run],
        )  # fmt: skip
