"""Ledger: turns decisions into counters, costs and verdicts, window after window.

A ledger knows a property, its groups, and the positions of a window at which the property is due.
It does not know who decided, nor by which policy: the monitor, reports on frames and estimators,
and the service count with it.  A shield keeps the counters that it decides by, which a run judges
when they are due; :func:`fairshield.audit` counts by itself, so that it can check the ledger.

Everybody is counted in one of the :mod:`~fairshield.runtime.cells` of their group; all other
numbers are sums of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import GroupCount
from fairshield.runtime.cells import (
    CELLS,
    People,
    cell_codes,
    cells_at,
)
from fairshield.runtime.counting import NOBODY, Counting
from fairshield.runtime.judging import Flags, Ints, Judged, Judgements, judged

_AT_ONCE = 1 << 21


class Ledger(Counting):
    """Ledger counts decisions, and judges the property whenever it is due.

    A moment at which the property is due is judged with the next decision or by :meth:`settle`,
    whichever comes first, and not before the outcome that is awaited.

    Parameters
    ----------
    prop
        What must hold.
    start
        Counters before the first decision of every window; of the first, where they go on.
    due
        Positions of a window at which the property must hold, its end last; none: one window
        without an end.
    goes_on
        Whether counters go on from one window to the next.
    proposals
        Whether what the proposals would have led to is judged as well.

    Examples
    --------
    >>> import fairshield as fs
    >>> start = fs.Counts.zero(("a", "b"))
    >>> ledger = Ledger(fs.DemographicParity("0.5"), start, due=(2, 4))
    >>> for group, proposed, accepted in (0, 1, 1), (1, 0, 1), (0, 1, 1), (1, 0, 0):
    ...     ledger.add(group, bool(proposed), bool(accepted))
    >>> ledger.settle().verdict, ledger.windows, ledger.unshielded.unfair
    ('fair', 1, 1)
    >>> ledger.people(1)
    People(seen=2, accepted=1, proposed=0, overruled=1, raised=1, lowered=0)
    """

    # Many at once ---------------------------------------------------------------------------

    def add_many(
        self,
        group: Ints,
        proposed: Flags,
        accepted: Flags,
        costs: NDArray[np.float64],
        relevant: Flags | None = None,
    ) -> Judgements:
        """:meth:`add` many in order, and :meth:`settle`; returns the moments that were judged."""
        n, cells = len(group), len(self.cells)
        if n:
            self._go_on()
        at = self._moments(self.decided, self.decided + n)
        if n > 1 and (len(at) + 1) * cells > _AT_ONCE:
            halves = slice(n // 2), slice(n // 2, n)
            parts = [
                self.add_many(
                    group[half], proposed[half], accepted[half], costs[half],
                    None if relevant is None else relevant[half],
                )
                for half in halves
            ]  # fmt: skip
            return Judgements(*map(np.concatenate, zip(*parts, strict=True)))
        codes = cell_codes(group, proposed, accepted, relevant)
        # Cells at every moment, and after the last decision.
        then = cells_at(codes, at - self.decided, cells).cumsum(axis=0) + np.array(self.cells)
        found = self._judge_many(at, then[:-1])
        self._count_many(found, then, np.where(accepted != proposed, costs, 0.0))
        return found

    def people_after(self, group: Ints, accepted: Flags, relevant: Flags, cuts: Ints) -> Ints:
        """``(cuts, groups, 2)``: people seen and accepted, if these decisions were added.

        The ledger does not change; ``cuts`` are numbers of these decisions.
        """
        codes = cell_codes(group, accepted, accepted, relevant)
        cells = cells_at(codes, cuts, len(self.cells))[:-1].cumsum(axis=0)
        return self.people_of(cells + np.array(self.cells))[:, :, :2]

    def _moments(self, first: int, last: int) -> Ints:
        """The numbers of decisions after ``first`` at which the property is due."""
        if self.length is None:
            return np.empty(0, np.int64)
        begun = np.arange(self._begun, last, self.length)
        at: Ints = (begun[:, None] + np.array(self.due)).reshape(-1)
        return at[(first < at) & (at <= last)]

    def _judge_many(self, at: Ints, cells: Ints) -> Judgements:
        """The judgements of moments with these cells."""
        ends = (at - self._begun) % (self.length or 1) == 0
        window = self.windows + np.cumsum(ends) - ends
        people = self.people_of(cells)
        start = np.array([[(n, k, k) for n, k in self.starts]], np.int64)
        people = people + start - (0 if self.goes_on else self._before(people, ends))
        counters, unshielded = people[:, :, [0, 1]], people[:, :, [0, 2]]
        return Judgements(window, at, ends, counters, unshielded, *self._ask(counters, at))

    def people_of(self, cells: Ints) -> Ints:
        """``(moments, groups, 3)``: relevant people seen, accepted, and proposed to be accepted."""
        of = cells.reshape(-1, len(self.groups), 2, 2, 2, 2)[..., 1]
        seen, accepted = of.sum(axis=(2, 3, 4)), of[..., 1].sum(axis=(2, 3))
        people = np.stack((seen, accepted, of[:, :, 1].sum(axis=(2, 3))), axis=2)
        earlier: Ints = people + np.array([before[:3] for before in self._earlier])
        return earlier

    def _before(self, people: Ints, ends: Flags) -> Ints:
        """The people of earlier windows, for each moment."""
        base = np.array([[base[:3] for base in self._base]])
        over = np.concatenate((base, people[ends]))
        before: Ints = over[np.cumsum(ends) - ends]
        return before

    def _ask(self, counters: Ints, at: Ints) -> Judged:
        """Whether the property holds for counters, whether it binds, and the largest bias.

        Only groups that were known after ``at`` decisions are compared.
        """
        nothing = Judged(np.ones(len(at), bool), np.zeros(len(at), bool), np.zeros(len(at)))
        if not len(at) or len(self.groups) < 2:
            return nothing
        if max(self.known_from) <= at[0]:
            found = judged(self.prop, counters)
            return found._replace(bias=np.maximum(found.bias, 0.0))
        holds, binds, bias = nothing
        for i, j in combinations(range(len(self.groups)), 2):
            known = at >= max(self.known_from[i], self.known_from[j])
            pair = judged(self.prop, counters[:, [i, j]])
            holds &= pair.holds | ~known
            binds |= pair.binds & known
            bias = np.where(known, np.maximum(bias, pair.bias), bias)
        return Judged(holds, binds, bias)

    def _count_many(self, found: Judgements, then: Ints, paid: NDArray[np.float64]) -> None:
        """Set the cells after the last decision, and count the moments before it."""
        first, last = self.decided, self.decided + len(paid)
        if len(found.decided):
            before = self.shielded.unfair + self.shielded.fair
            self.shielded.add_many(found, found.holds, found.bias)
            if self.proposals:
                holds, _, bias = self._ask(found.counters_unshielded, found.decided)
                self.unshielded.add_many(found, holds, bias)
            ended = int(found.ends.sum())
            self.windows += ended
            self.exempt += ended - (self.shielded.unfair + self.shielded.fair - before)
            self._over = bool(found.ends[-1] and found.decided[-1] == last)
        begun = np.flatnonzero(found.ends & (found.decided < last))
        if len(begun):
            cells, self._begun = then[begun[-1]].tolist(), int(found.decided[begun[-1]])
            self._rebase(cells)
            if found.decided[-1] == self._begun:
                self.shielded.now = self.unshielded.now = None
        # Added in order, so that rounding is the same as with one at a time.
        since = max(self._begun - first, 0)
        self.window_paid = _added(0.0 if len(begun) else self.window_paid, paid[since:])
        self.paid = _added(self.paid, paid)
        self.cells, self.decided = then[-1].tolist(), last
        self._next = last if self._over else self._following()

    # As JSON --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; :meth:`resume` takes it."""
        rows = zip(self.groups, self.known_from, self.starts, strict=True)
        return {
            "groups": [[group, at, *start] for group, at, start in rows],
            "cells": list(self.cells),
            "people": [list(self.people(i)) for i in range(len(self.groups))],
            "base": [list(people) for people in self._base],
            "overridden": self.overridden,
            "overruled_before": self._overruled_before,
            "awaiting": self._awaiting,
            "decided": self.decided,
            "begun": self._begun,
            "over": self._over,
            "cost": self.paid,
            "window_cost": self.window_paid,
            "windows": self.windows,
            "exempt": self.exempt,
            "untold": self.untold,
            "shielded": self.shielded.state(),
            "unshielded": self.unshielded.state(),
        }

    def resume(self, data: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_dict` returned.

        ``people`` and ``overridden`` are the totals.  What they have beyond the sums of ``cells``
        was counted by an earlier version, which had no cells.
        """
        self.groups = [row[0] for row in data["groups"]]
        self.known_from = [int(row[1]) for row in data["groups"]]
        self.starts = [GroupCount(row[2], row[3]) for row in data["groups"]]
        self.cells = [0] * (CELLS * len(self.groups)) if not data["cells"] else list(data["cells"])
        self._earlier, self._earlier_overridden = [NOBODY] * len(self.groups), 0
        self._earlier = [self._untold(told, i) for i, told in enumerate(data["people"])]
        self._earlier_overridden = data["overridden"] - self.overridden
        self._overruled_before = data["overruled_before"]
        self._base, self._awaiting = [People(*base) for base in data["base"]], data["awaiting"]
        self.decided, self._begun, self._over = data["decided"], data["begun"], data["over"]
        self.paid, self.window_paid = data["cost"], data["window_cost"]
        self.windows, self.exempt, self.untold = data["windows"], data["exempt"], data["untold"]
        self.shielded.resume(data["shielded"])
        self.unshielded.resume(data["unshielded"])
        self._next = self.decided if self._over and self.due else self._following()

    def _untold(self, told: Sequence[int], group: int) -> People:
        """The people whom the cells of a group do not account for; ``told`` may be cut short."""
        missing = [n - m for n, m in zip(told, self.people(group), strict=False)]
        return People(*missing) if any(missing) else NOBODY


def _added(total: float, more: NDArray[np.float64]) -> float:
    return float(np.add.accumulate(np.concatenate(([total], more)))[-1])
