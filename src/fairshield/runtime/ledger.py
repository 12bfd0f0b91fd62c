"""Ledger: turns decisions into counters, costs and verdicts, window after window.

A ledger knows a property, its groups, and the positions of a window at which the property is due.
It does not know who decided, nor by which policy: the monitor, reports on frames and estimators,
and the service count with it.  A shield keeps the counters that it decides by, which a run judges
when they are due; :func:`fairshield.audit` counts by itself, so that it can check the ledger.

Everybody is counted in one of the :mod:`~fairshield.runtime.cells` of their group; all other
numbers are sums of these.  The class is long because one state is changed by one decision, by
arrays and by JSON, which must lead to the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Counts, Group, GroupCount
from fairshield.runtime.cells import (
    CELLS,
    NOBODY,
    RELEVANT,
    Everybody,
    People,
    cell_codes,
    cells_at,
    cells_of,
    everybody_in,
    overridden_in,
    people_at,
    people_in,
)
from fairshield.runtime.judging import Flags, Ints, Moment, Moments, VerdictCount, judged_as_met
from fairshield.spec import Property, Verdict

_AT_ONCE = 1 << 21
_NEVER = 1 << 62


class Ledger:
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

    def __init__(
        self,
        prop: Property,
        start: Counts,
        *,
        due: Iterable[int] = (),
        goes_on: bool = False,
        proposals: bool = True,
    ) -> None:
        self.prop, self.goes_on, self.proposals = prop, goes_on, proposals
        self._relevant = prop.relevant_outcome  # refuses what does not count people
        self.due = tuple(due)
        self.length = self.due[-1] if self.due else None
        self.groups: list[Group] = []
        self.cells: list[int] = []
        self.starts: list[GroupCount[int]] = []
        self.known_from: list[int] = []
        self._earlier: list[People] = []
        self._base: list[People] = []
        self._earlier_overridden, self._overruled_before = 0, 0
        self.decided, self._begun = 0, 0
        self.paid, self.window_paid = 0.0, 0.0
        self.shielded, self.unshielded = VerdictCount(), VerdictCount()
        self._awaiting: int | None = None
        self.next_due = self.due[0] if self.due else _NEVER
        """After how many decisions the property is judged next, or a window begins."""
        self._over = False
        for group, count in start.items():
            self.meet(group, count)

    def meet(self, group: Group, start: tuple[int, int] = (0, 0), at: int = 0) -> int:
        """Add a group that was not known before decision ``at``; returns its number."""
        self.groups.append(group)
        self.cells += [0] * CELLS
        self.starts.append(GroupCount(int(start[0]), int(start[1])))
        self.known_from.append(at + 1 if at else 0)
        self._earlier.append(NOBODY)
        self._base.append(NOBODY)
        return len(self.groups) - 1

    # One at a time --------------------------------------------------------------------------

    def add(
        self, group: int, proposed: bool, accepted: bool, cost: float = 1.0, relevant: bool = True
    ) -> None:
        """Count a decision on somebody of a group, by its number."""
        if self.decided == self.next_due:
            self._go_on()
        cell = 16 * group + relevant  # written out for speed: every decision takes this path
        if accepted is proposed:
            cell += 14 if accepted else 0
        else:
            cell += 6 if accepted else 8
            self.paid += cost
            self.window_paid += cost
        self.cells[cell] += 1
        self.decided += 1

    def add_reviewed(
        self,
        group: int,
        proposed: bool,
        decided: bool,
        accepted: bool,
        cost: float = 1.0,
        relevant: bool | None = True,
    ) -> None:
        """:meth:`add` for a decision ``decided`` by the policy that a person may have changed.

        ``relevant`` is ``None`` while the outcome is awaited, see :meth:`observe`.
        """
        if self.decided == self.next_due:
            self._go_on()
        cell = CELLS * group + 8 * proposed + 4 * decided + 2 * accepted
        if relevant is None:
            self._awaiting = cell
        elif relevant:
            cell += 1
        self.cells[cell] += 1
        self.decided += 1
        if decided is not proposed:
            self.paid += cost
            self.window_paid += cost

    def observe(self, outcome: bool) -> None:
        """Count the outcome of the decision that waits for one."""
        cell, self._awaiting = self._awaiting, None
        if cell is not None and outcome is self._relevant:
            self.cells[cell] -= 1
            self.cells[cell + RELEVANT] += 1

    def override(self, group: int, proposed: bool, decided: bool) -> None:
        """Move somebody to the cell of the opposite decision, which a person made afterwards.

        It must be somebody who is relevant, or whose outcome is awaited.  Judgements of earlier
        moments are not revised.
        """
        cell = CELLS * group + 8 * proposed + 4 * decided
        before, after = cell + 2 * decided, cell + 2 * (not decided)
        if self._awaiting is None:
            before, after = before + RELEVANT, after + RELEVANT
        else:
            self._awaiting = after
        self.cells[before] -= 1
        self.cells[after] += 1

    def settle(self) -> Moment | None:
        """Judge the present moment, if the property is due now and has not been judged."""
        if self.decided != self.next_due or self._over or self._awaiting is not None:
            return None
        return self.judge(ends=self.position == self.length)

    def judge(self, *, ends: bool) -> Moment:
        """Judge the present counters; with ``ends`` the window ends here."""
        window, decided, counts = self.windows, self.decided, self.counts
        verdict, bias = self.asked(counts)
        self.shielded.add(verdict, bias, decided, ends=ends)
        if self.proposals:
            self.unshielded.add(*self.asked(self.counts_unshielded), decided, ends=ends)
        self._over = ends
        if not ends:
            self.next_due = self._following()
        return Moment(window, decided, counts, verdict, bias)

    def asked(self, counts: Counts) -> tuple[Verdict, float]:
        """The property's verdict on counters, and the largest bias."""
        if len(counts) < 2:
            return "exempt", 0.0
        return self.prop.verdict(counts), max(self.prop.bias_of(counts), 0.0)

    def _go_on(self) -> None:
        """Judge the property if it is due, and begin the next window if one is over."""
        self.settle()
        self.begin()

    def begin(self) -> None:
        """Begin the next window, if one is over."""
        if not self._over:
            return
        self._over, self._begun, self.window_paid = False, self.decided, 0.0
        self._rebase(self.cells)
        self.shielded.now = self.unshielded.now = None
        self.next_due = self._following()

    def _rebase(self, cells: list[int]) -> None:
        """Let the window in progress begin with these cells."""
        self._base = [self._sums(i, cells) for i in range(len(self.groups))]
        self._overruled_before = sum(base.overruled for base in self._base)

    def _following(self) -> int:
        """After how many decisions the property is due next."""
        position = self.decided - self._begun
        return next((self._begun + at for at in self.due if at > position), _NEVER)

    # Many at once ---------------------------------------------------------------------------

    def add_many(
        self,
        group: Ints,
        proposed: Flags,
        accepted: Flags,
        costs: NDArray[np.float64],
        relevant: Flags | None = None,
    ) -> Moments:
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
            return Moments(*map(np.concatenate, zip(*parts, strict=True)))
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

    def people_of(self, cells: Ints) -> Ints:
        """``(moments, groups, 3)``: relevant people seen, accepted, and proposed to be accepted."""
        people: Ints = people_at(cells) + np.array([before[:3] for before in self._earlier])
        return people

    def _moments(self, first: int, last: int) -> Ints:
        """The numbers of decisions after ``first`` at which the property is due."""
        if self.length is None:
            return np.empty(0, np.int64)
        begun = np.arange(self._begun, last, self.length)
        at: Ints = (begun[:, None] + np.array(self.due)).reshape(-1)
        return at[(first < at) & (at <= last)]

    def _judge_many(self, at: Ints, cells: Ints) -> Moments:
        """The moments after ``at`` decisions, with these cells."""
        ends = (at - self._begun) % (self.length or 1) == 0
        over = np.cumsum(ends) - ends
        people = self.people_of(cells)
        start = np.array([[(n, k, k) for n, k in self.starts]], np.int64)
        if not self.goes_on:
            base = np.array([[base[:3] for base in self._base]])
            start = start - np.concatenate((base, people[ends]))[over]
        people = people + start
        counters, unshielded = people[:, :, [0, 1]], people[:, :, [0, 2]]
        asked = judged_as_met(self.prop, counters, at, self.known_from)
        return Moments(self.windows + over, at, ends, counters, unshielded, *asked)

    def _count_many(self, found: Moments, then: Ints, paid: NDArray[np.float64]) -> None:
        """Set the cells after the last decision, and count the moments before it."""
        first, last = self.decided, self.decided + len(paid)
        at, ends = found.decided, found.ends
        if len(at):
            self.shielded.add_many(at, ends, found.holds, found.binds, found.bias)
            if self.proposals:
                counters = found.counters_unshielded
                asked = judged_as_met(self.prop, counters, at, self.known_from)
                self.unshielded.add_many(at, ends, *asked)
            self._over = bool(ends[-1] and at[-1] == last)
        begun = np.flatnonzero(ends & (at < last))
        if len(begun):
            cells, self._begun = then[begun[-1]].tolist(), int(at[begun[-1]])
            self._rebase(cells)
            if at[-1] == self._begun:
                self.shielded.now = self.unshielded.now = None
        # Added in order, so that rounding is the same as with one at a time.
        since = max(self._begun - first, 0)
        self.window_paid = _added(0.0 if len(begun) else self.window_paid, paid[since:])
        self.paid = _added(self.paid, paid)
        self.cells, self.decided = then[-1].tolist(), last
        self.next_due = last if self._over else self._following()

    # What was counted -----------------------------------------------------------------------

    @property
    def windows(self) -> int:
        """Windows that are over."""
        return self.shielded.windows

    @property
    def position(self) -> int:
        """Decisions of the window in progress, or of the one that is over if none has begun."""
        return self.decided - self._begun

    @property
    def over(self) -> bool:
        """Whether a window is over and the next one has not begun."""
        return self._over

    @property
    def in_progress(self) -> tuple[Verdict, Verdict]:
        """The verdicts on the window in progress, with the policy's decisions and without."""
        if self._over:
            return "exempt", "exempt"
        return self.shielded.now or "exempt", self.unshielded.now or "exempt"

    def base(self, group: int) -> People:
        """People of a group whom the window in progress does not count: those before it.

        Nobody where counters go on from window to window.
        """
        return NOBODY if self.goes_on else self._base[group]

    def people(self, group: int) -> People:
        """People of a group since the beginning, those at the start not included."""
        return self._sums(group, self.cells)

    def _sums(self, group: int, cells: list[int]) -> People:
        counted, before = people_in(cells_of(cells, group)), self._earlier[group]
        if before is NOBODY:
            return counted
        return People(*(n + m for n, m in zip(before, counted, strict=True)))

    @property
    def complete(self) -> bool:
        """Whether every person is in a cell; false after resuming a state of version 0.1."""
        return not self._earlier_overridden and all(one is NOBODY for one in self._earlier)

    def everybody(self, group: int) -> Everybody:
        """People of a group since the beginning, relevant or not, as far as cells have them."""
        return everybody_in(cells_of(self.cells, group))

    @property
    def counts(self) -> Counts:
        """Counters of the window in progress, or since the beginning where they go on."""
        return self._counts(People._fields.index("accepted"))

    @property
    def counts_unshielded(self) -> Counts:
        """The counters as they would be, had all proposals been followed."""
        return self._counts(People._fields.index("proposed"))

    def _counts(self, taken: int) -> Counts:
        counts = {}
        for i, group in enumerate(self.groups):
            people, start = self.people(i), self.starts[i]
            base = self.base(i)
            counts[group] = (
                people.seen - base.seen + start.seen,
                people[taken] - base[taken] + start.accepted,
            )
        return Counts(counts)

    @property
    def overruled(self) -> int:
        """Proposals that the policy overruled since the beginning."""
        return sum(self.people(i).overruled for i in range(len(self.groups)))

    @property
    def window_overruled(self) -> int:
        """Proposals that the policy overruled in the window in progress."""
        return self.overruled - self._overruled_before

    @property
    def overridden(self) -> int:
        """Decisions of the policy that a person has overridden."""
        found = (overridden_in(cells_of(self.cells, i)) for i in range(len(self.groups)))
        return self._earlier_overridden + sum(found)

    # As JSON --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data: the arguments of :meth:`resume`."""
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
            "paid": self.paid,
            "window_paid": self.window_paid,
            "shielded": self.shielded.to_dict(),
            "unshielded": self.unshielded.to_dict(),
        }

    def resume(self, data: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_dict` returned; what is left out stays as it is.

        ``people`` and ``overridden`` are the totals.  What they have beyond the sums of ``cells``
        was counted by an earlier version, which had no cells.
        """
        told = {**self.to_dict(), **data}
        self.groups = [row[0] for row in told["groups"]]
        self.known_from = [int(row[1]) for row in told["groups"]]
        self.starts = [GroupCount(row[2], row[3]) for row in told["groups"]]
        self.cells = list(told["cells"] or [0] * (CELLS * len(self.groups)))
        self._earlier, self._earlier_overridden = [NOBODY] * len(self.groups), 0
        self._earlier = [self._untold(people, i) for i, people in enumerate(told["people"])]
        self._earlier_overridden = told["overridden"] - self.overridden
        self._overruled_before = told["overruled_before"]
        self._base, self._awaiting = [People(*base) for base in told["base"]], told["awaiting"]
        self.decided, self._begun, self._over = told["decided"], told["begun"], told["over"]
        self.paid, self.window_paid = told["paid"], told["window_paid"]
        self.shielded = VerdictCount.from_dict(told["shielded"])
        self.unshielded = VerdictCount.from_dict(told["unshielded"])
        self.next_due = self.decided if self._over and self.due else self._following()

    def _untold(self, told: Sequence[int], group: int) -> People:
        """The people whom the cells of a group do not account for; ``told`` may be cut short."""
        missing = [n - m for n, m in zip(told, self.people(group), strict=False)]
        return People(*missing) if any(missing) else NOBODY


def _added(total: float, more: NDArray[np.float64]) -> float:
    return float(np.add.accumulate(np.concatenate(([total], more)))[-1])
