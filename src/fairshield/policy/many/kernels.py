"""Walks over the numbered states of a layer, compiled.

``at`` are counters ``n_a, k_a, n_b, k_b, …``, ``sums`` the partial sums of
:mod:`fairshield.policy.many.layout`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fairshield.base.compiler import NO_ALLOCATION, jit
from fairshield.policy.jitable import number_of

Ints = NDArray[np.int64]


class Numbered(Protocol):
    """Numbered is a layout whose layers are those of a :class:`ManyLayout`."""

    @property
    def terms(self) -> Ints:
        """As :attr:`ManyLayout.terms`."""

    @property
    def kinds(self) -> int:
        """As :attr:`ManyLayout.kinds`."""

    @property
    def n_groups(self) -> int:
        """How many groups there are."""


class Walk(NamedTuple):
    """Walk holds the present position of a loop over the states of a layer, row by row."""

    terms: Ints
    """Those of the layout, one row of ``width`` after the other."""
    width: int
    sums: Ints
    at: Ints
    after: Ints
    """Where rejecting and accepting somebody of each group leads from the row's first state."""

    @staticmethod
    def over(layout: Numbered) -> Walk:
        """A new walk, with room for any layer."""
        terms, counters = layout.terms, 2 * layout.n_groups
        scratch = (np.zeros(n, np.int64) for n in (layout.kinds, counters, counters))
        return Walk(terms.reshape(-1), terms.shape[1], *scratch)


_jit = jit(**NO_ALLOCATION)


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
    """Go to the next state of a layer, or to the next whose sums differ from ``first`` on."""
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


@_jit
def counters_in(terms: Ints, t: int, states: Ints, sums: Ints, found: Ints) -> None:
    """Counters of states given by their place in layer ``t``."""
    for i in range(len(states)):
        sums_of(terms, t, states[i], sums)
        counters_of(sums, found[i])


@_jit
def begin(walk: Walk, t: int) -> int:
    """Begin the walk over layer ``t``; returns how many states it has."""
    walk.sums[:] = 0
    walk.sums[-1] = t
    last = len(walk.sums) * walk.width + t
    return walk.terms[last + 1] - walk.terms[last]


@_jit
def enter_row(walk: Walk, labelled: bool, t: int) -> None:
    """Set the counters of the first state of a row, and the places of its successors.

    The successors of the row's ``i``-th state stand ``i`` places after these.
    """
    counters_of(walk.sums, walk.at)
    first = walk.terms[len(walk.sums) * walk.width + t + 1]
    for group in range(len(walk.at) // 2):
        for accepted in range(2):
            number = number_of(walk.terms, walk.width, labelled, t + 1, walk.at, group, accepted)
            walk.after[2 * group + accepted] = number - first
