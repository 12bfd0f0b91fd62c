"""Counting: counts decisions one by one, and judges the property when it is due."""

from __future__ import annotations

from collections.abc import Iterable

from fairshield.base.counts import Counts, Group, GroupCount
from fairshield.runtime.cells import (
    CELLS,
    RELEVANT,
    Everybody,
    People,
    cells_of,
    everybody_in,
    overridden_in,
    people_in,
)
from fairshield.runtime.judging import Judgement, Verdicts
from fairshield.spec import Property, Verdict

_NEVER = 1 << 62
NOBODY = People()


class Counting:
    """Counts decisions one by one; :class:`~fairshield.runtime.ledger.Ledger` counts arrays."""

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
        self.windows, self.exempt, self.untold = 0, 0, 0
        self.shielded, self.unshielded = Verdicts(), Verdicts()
        self._awaiting: int | None = None
        self._next = self.due[0] if self.due else _NEVER
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
        if self.decided == self._next:
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
        if self.decided == self._next:
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
        if cell is not None and outcome is self.prop.relevant_outcome:
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

    def settle(self) -> Judgement | None:
        """Judge the present moment, if the property is due now and has not been judged."""
        if self.decided != self._next or self._over or self._awaiting is not None:
            return None
        return self.judge(ends=self.position == self.length)

    def judge(self, *, ends: bool) -> Judgement:
        """Judge the present counters; with ``ends`` the window ends here."""
        counts, decided = self.counts, self.decided
        verdict, bias = self.asked(counts)
        found = Judgement(self.windows, self.position, decided, counts, verdict, bias, ends)
        self.shielded.add(verdict, bias, decided)
        if self.proposals:
            self.unshielded.add(*self.asked(self.counts_unshielded), decided)
        if ends:
            self._end()
        else:
            self._next = self._following()
        return found

    def asked(self, counts: Counts) -> tuple[Verdict, float]:
        """The property's verdict on counters, and the largest bias."""
        if len(counts) < 2:
            return "exempt", 0.0
        return self.prop.verdict(counts), max(self.prop.bias_of(counts), 0.0)

    def _end(self) -> None:
        self.windows += 1
        self.exempt += self.shielded.now == "exempt"
        for side in (self.shielded, self.unshielded):
            side.end()
        self._over = True

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
        self._next = self._following()

    def _rebase(self, cells: list[int]) -> None:
        """Let the window in progress begin with these cells."""
        self._base = [self._sums(i, cells) for i in range(len(self.groups))]
        self._overruled_before = sum(base.overruled for base in self._base)

    def _following(self) -> int:
        """After how many decisions the property is due next."""
        position = self.decided - self._begun
        return next((self._begun + at for at in self.due if at > position), _NEVER)

    # What was counted -----------------------------------------------------------------------

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
        """Whether the cells account for everybody, so that no earlier version counted anybody."""
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
