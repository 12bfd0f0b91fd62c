"""Judgements: verdicts of a property when it is due, and how many windows ended with which."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Counts, GroupCount
from fairshield.spec import Property, Verdict, worst

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_RANKS: tuple[Verdict, ...] = ("exempt", "fair", "unfair")


class Judgement(NamedTuple):
    """The verdict of the property at one moment when it was due.

    ``window`` counts from 0; ``position`` is that in the window, ``decided`` that since the
    beginning; ``ends`` says that the window ended there.
    """

    window: int
    position: int
    decided: int
    counts: Counts
    verdict: Verdict
    bias: float
    ends: bool


class Judgements(NamedTuple):
    """Verdicts at many moments: the fields of :class:`Judgement` as arrays.

    ``counters`` are ``(moments, groups, 2)``: people seen and accepted, those at the start
    included, or, of ``counters_unshielded``, proposed to be.
    """

    window: Ints
    decided: Ints
    ends: Flags
    counters: Ints
    counters_unshielded: Ints
    holds: Flags
    binds: Flags
    bias: NDArray[np.float64]


class Verdicts:
    """Counts verdicts on moments and windows, of the decisions or of the proposals.

    ``unfair`` and ``fair`` windows are over; ``now`` is the verdict of the moments of the window in
    progress, ``None`` before the first; ``first_unfair`` says after how many decisions the property
    failed first.
    """

    __slots__ = ("fair", "first_unfair", "largest_bias", "now", "unfair")

    def __init__(self) -> None:
        self.unfair, self.fair = 0, 0
        self.largest_bias = 0.0
        self.first_unfair: int | None = None
        self.now: Verdict | None = None

    def add(self, verdict: Verdict, bias: float, decided: int) -> None:
        """Count the verdict on a moment of the window in progress."""
        self.now = verdict if self.now is None else worst((self.now, verdict))
        self.largest_bias = max(self.largest_bias, bias)
        if verdict == "unfair" and self.first_unfair is None:
            self.first_unfair = decided

    def end(self) -> None:
        """Count the window in progress, which has been judged at its end."""
        self.unfair += self.now == "unfair"
        self.fair += self.now == "fair"

    def add_many(self, found: Judgements, holds: Flags, bias: NDArray[np.float64]) -> None:
        """Take many moments into account, and count the windows that end with them."""
        self.largest_bias = max(self.largest_bias, float(bias.max()))
        failed = np.flatnonzero(~holds)
        if len(failed) and self.first_unfair is None:
            self.first_unfair = int(found.decided[failed[0]])
        rank = np.where(holds, np.where(found.binds, 1, 0), 2)
        first = np.flatnonzero(np.r_[True, found.ends[:-1]])
        ranks = np.maximum.reduceat(rank, first)
        if self.now is not None:
            ranks[0] = max(ranks[0], _RANKS.index(self.now))
        over = ranks if found.ends[-1] else ranks[:-1]
        self.unfair += int((over == 2).sum())
        self.fair += int((over == 1).sum())
        self.now = _RANKS[ranks[-1]]

    def state(self) -> list[Any]:
        """JSON-able data; :meth:`resume` takes it."""
        largest = self.largest_bias if math.isfinite(self.largest_bias) else None
        return [self.unfair, self.fair, largest, self.first_unfair, self.now]

    def resume(self, data: Sequence[Any]) -> None:
        """Go on from what :meth:`state` returned."""
        self.unfair, self.fair, largest, self.first_unfair, self.now = data
        self.largest_bias = math.inf if largest is None else largest


def count_windows(window: Ints, group: Ints, accepted: Flags, shape: tuple[int, int]) -> Ints:
    """``(windows, groups, 2)``: people seen and accepted, from one entry per person.

    >>> at, who = np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> count_windows(at, who, np.array([True, False, True]), (2, 2)).tolist()
    [[[1, 1], [1, 0]], [[0, 0], [1, 1]]]
    """
    cell, cells = window * shape[1] + group, shape[0] * shape[1]
    seen = np.bincount(cell, minlength=cells)
    taken = np.bincount(cell[accepted], minlength=cells)
    return np.stack((seen, taken), axis=1).reshape(*shape, 2)


class Judged(NamedTuple):
    """Whether a property holds for each of many counters, whether it binds, and the bias."""

    holds: Flags
    binds: Flags
    bias: NDArray[np.float64]


def judged(prop: Property, counters: Ints) -> Judged:
    """Evaluate the property on counters ``(..., groups, 2)``.

    >>> from fairshield import DemographicParity
    >>> [x.tolist() for x in judged(DemographicParity("0.5"), np.array([[[2, 2], [4, 1]]]))]
    [[False], [True], [0.75]]
    """
    groups = [GroupCount(*np.moveaxis(of, -1, 0)) for of in np.moveaxis(counters, -2, 0)]
    return Judged(prop.holds_array(*groups), prop.binds_array(*groups), prop.bias_array(*groups))
