"""Cells: counters of decisions by all that matters of a decision.

A group has sixteen cells.  The number of a cell is a sum: 8 if the proposal was to accept, 4 if the
policy accepted, 2 if the person was accepted in the end, 1 if the person is relevant to the
property.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fairshield.runtime.judging import Flags, Ints

CELLS, RELEVANT = 16, 1
_DECIDED_AND_ACCEPTED = 4 + 2


class People(NamedTuple):
    """People counts one group: seen, accepted and proposed of the relevant ones only.

    ``raised`` were accepted by the policy against the proposal, ``lowered`` rejected against it,
    relevant or not.  ``overruled`` is the sum of both, and of people counted by an earlier version
    that did not store the direction.
    """

    seen: int = 0
    accepted: int = 0
    proposed: int = 0
    overruled: int = 0
    raised: int = 0
    lowered: int = 0


NOBODY = People()


class Everybody(NamedTuple):
    """Everybody counts one group, whether or not its people are relevant to the property."""

    decisions: int
    proposed: int
    accepted: int
    overruled: int


def cells_of(cells: Sequence[int], group: int) -> Sequence[int]:
    """The cells of one group."""
    return cells[CELLS * group : CELLS * (group + 1)]


def people_in(cells: Sequence[int]) -> People:
    """The numbers of people in the cells of a group."""
    raised, lowered = sum(cells[4:8]), sum(cells[8:12])
    seen, accepted, proposed = sum(cells[1::2]), sum(cells[3::4]), sum(cells[9::2])
    return People(seen, accepted, proposed, raised + lowered, raised, lowered)


def everybody_in(cells: Sequence[int]) -> Everybody:
    """The numbers of people in the cells of a group, relevant or not."""
    accepted = sum(cells[2::4]) + sum(cells[3::4])
    return Everybody(sum(cells), sum(cells[8:]), accepted, sum(cells[4:12]))


def overridden_in(cells: Sequence[int]) -> int:
    """How many people in the cells of a group got another decision than the policy's.

    >>> overridden_in([1] * 16)
    8
    """
    return sum(cells[2:6]) + sum(cells[10:14])


def cell_codes(
    group: Ints, proposed: Flags, accepted: Flags, relevant: Flags | None = None
) -> Ints:
    """The number of the cell that each decision is counted in, see the module's docstring.

    >>> cell_codes(np.array([0, 1]), np.array([False, True]), np.array([True, True])).tolist()
    [7, 31]
    """
    flags = accepted.view(np.int8) * np.int8(_DECIDED_AND_ACCEPTED)
    flags += proposed.view(np.int8) << 3
    flags += 1 if relevant is None else relevant.view(np.int8)
    codes = group * CELLS
    codes += flags
    return codes


def cells_at(codes: Ints, cuts: Ints, cells: int) -> Ints:
    """``(cuts + 1, cells)``: how many decisions are in each cell between one cut and the next."""
    size = np.diff(cuts, prepend=0, append=len(codes))
    if len(cuts):
        codes = codes + np.repeat(np.arange(len(size)) * cells, size)
    return np.bincount(codes, minlength=len(size) * cells).reshape(-1, cells)


def people_at(cells: Ints) -> Ints:
    """``(moments, groups, 3)``: relevant people seen, accepted, and proposed to be accepted.

    ``cells`` are ``(moments, cells)``.
    """
    relevant = cells.reshape(len(cells), cells.shape[1] // CELLS, 2, 2, 2, 2)[..., 1]
    seen, accepted = relevant.sum(axis=(2, 3, 4)), relevant[..., 1].sum(axis=(2, 3))
    return np.stack((seen, accepted, relevant[:, :, 1].sum(axis=(2, 3))), axis=2)
