"""Judging: verdicts of a property when it is due, and how windows ended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Counts, GroupCount
from fairshield.spec import VERDICTS, Property, Verdict, worst
from fairshield.spec.finding import verdict_places

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Moment(NamedTuple):
    """Moment is a moment at which the property was due, and its verdict."""

    window: int
    decided: int
    counts: Counts
    verdict: Verdict
    bias: float


class Moments(NamedTuple):
    """Moments holds many moments at which the property was due, as arrays.

    ``window`` counts from 0, ``decided`` since the beginning; ``ends`` says that a window ended
    there.  ``counters`` are ``(moments, groups, 2)``: people seen and accepted, those at the start
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


@dataclass(slots=True)
class VerdictCount:
    """VerdictCount counts how windows ended, by the verdicts whenever the property was due.

    Attributes
    ----------
    windows
        Windows that are over.
    fair, exempt, untold
        Those in which the property bound and held whenever it was due; those in which it bound
        nothing; those that a state of an earlier version does not tell apart.
    unfair_at
        After how many decisions the property was due and did not hold first.
    largest_bias
        The largest bias whenever the property was due.
    now
        The verdict of the moments of the window in progress; ``None`` before the first.
    """

    windows: int = 0
    fair: int = 0
    exempt: int = 0
    untold: int = 0
    unfair_at: int | None = None
    largest_bias: float = 0.0
    now: Verdict | None = None

    @property
    def unfair(self) -> int:
        """Windows in which the property did not hold whenever it was due."""
        return self.windows - self.fair - self.exempt - self.untold

    def add(self, verdict: Verdict, bias: float, decided: int, *, ends: bool) -> None:
        """Count the verdict on a moment; with ``ends`` the window in progress ends there."""
        self.now = verdict if self.now is None else worst((self.now, verdict))
        self.largest_bias = max(self.largest_bias, bias)
        if verdict == "unfair" and self.unfair_at is None:
            self.unfair_at = decided
        if ends:
            self.windows += 1
            self.fair += self.now == "fair"
            self.exempt += self.now == "exempt"

    def add_many(
        self, decided: Ints, ends: Flags, holds: Flags, binds: Flags, bias: NDArray[np.float64]
    ) -> None:
        """:meth:`add` many moments in order, at least one."""
        self.largest_bias = max(self.largest_bias, float(bias.max()))
        failed = np.flatnonzero(~holds)
        if len(failed) and self.unfair_at is None:
            self.unfair_at = int(decided[failed[0]])
        first = np.flatnonzero(np.r_[True, ends[:-1]])
        places = np.minimum.reduceat(verdict_places(holds, binds), first)
        if self.now is not None:
            places[0] = min(places[0], VERDICTS.index(self.now))
        over = places if ends[-1] else places[:-1]
        self.windows += len(over)
        self.fair += int((over == VERDICTS.index("fair")).sum())
        self.exempt += int((over == VERDICTS.index("exempt")).sum())
        self.now = VERDICTS[places[-1]]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; :meth:`from_dict` takes it."""
        told = {name: getattr(self, name) for name in self.__slots__}
        return told if math.isfinite(self.largest_bias) else {**told, "largest_bias": None}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> VerdictCount:
        """The count that :meth:`to_dict` described; what is left out is 0."""
        largest = data.get("largest_bias", 0.0)
        return VerdictCount(**{**data, "largest_bias": math.inf if largest is None else largest})


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
    """Judged says of many counters if a property holds, if it binds, and with which bias."""

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


def judged_as_met(prop: Property, counters: Ints, at: Ints, known_from: Sequence[int]) -> Judged:
    """:func:`judged` among the groups that were known after ``at`` decisions; no bias below 0.

    ``known_from`` says of each group after how many decisions it was.
    """
    holds, binds, bias = np.ones(len(at), bool), np.zeros(len(at), bool), np.zeros(len(at))
    if not len(at) or len(known_from) < 2:
        return Judged(holds, binds, bias)
    if max(known_from) <= at[0]:
        found = judged(prop, counters)
        return found._replace(bias=np.maximum(found.bias, 0.0))
    for i, j in combinations(range(len(known_from)), 2):
        known = at >= max(known_from[i], known_from[j])
        pair = judged(prop, counters[:, [i, j]])
        holds &= pair.holds | ~known
        binds |= pair.binds & known
        bias = np.where(known, np.maximum(bias, pair.bias), bias)
    return Judged(holds, binds, bias)
