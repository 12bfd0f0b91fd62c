"""LogAuditor reads a log line by line, and counts and judges it independently of the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain, pairwise
from typing import NamedTuple, Protocol

from fairshield.analysis.recount import Recount
from fairshield.analysis.report import (
    Audited,
    AuditReport,
    Difference,
    GroupTotals,
    Violation,
    Window,
)
from fairshield.base.counts import Group
from fairshield.base.errors import InvalidValueError, UnknownGroupError, WindowOverError
from fairshield.base.groups import Unseen
from fairshield.records import Flag, Record
from fairshield.records.dates import Calendar
from fairshield.runtime.step import Decision
from fairshield.spec import Property, rates_of, reach_of
from fairshield.spec.outcomes import ADVICE, Coverage, OutcomeTally


class Decider(Protocol):
    """Decider decides requests in order, as runs do, which this module does not know."""

    def decide(self, group: Group, *, proposed: Flag, cost: float) -> Decision:
        """The decision on the next request."""

    def observe(self, decision: Decision, *, outcome: Flag) -> None:
        """Reveal the outcome of the last decision."""


class _Entry(NamedTuple):
    """_Entry holds what one line of the log says, once it is checked."""

    line: int
    group: Group
    accepted: bool
    outcome: bool | None
    overruled: bool
    cost: float


@dataclass
class _People:
    """_People counts the decisions on one group so far, see :class:`GroupTotals`."""

    decisions: int = 0
    accepted: int = 0
    raised: int = 0
    lowered: int = 0
    paid: float = 0.0


class LogAuditor:
    """LogAuditor reads a log line by line, judges its windows, and adds up its decisions.

    ``decider`` decides every request again, ``None``: nothing does; ``decided_for`` is the property
    of its policy.
    """

    def __init__(
        self,
        recount: Recount,
        decider: Decider | None,
        decided_for: Property | None,
        watch: Callable[[Audited], None] | None,
        calendar: Calendar,
    ) -> None:
        self.prop, self.recount, self.decider = recount.prop, recount, decider
        self.decided_for, self.watch, self.calendar = decided_for, watch, calendar
        self.labelled = self.prop.counting.labelled
        self.decider_labelled = decided_for is not None and decided_for.counting.labelled
        self.windows: list[Window] = []
        self.violations: list[Violation] = []
        self.difference: Difference | None = None
        self.checked = self.told = 0
        self.paid = 0.0
        self.people = {group: _People() for group in recount.start}
        self.by_position: list[int] = []
        self.followed: dict[Group, int] = {}
        self.outcomes = OutcomeTally()
        self._open_window()

    def _open_window(self) -> None:
        self.first_line = self.window_overruled = 0
        self.window_paid = 0.0
        self.days: list[date] | None = []

    def read(self, records: Iterable[Record], unseen: Unseen) -> AuditReport:
        """Audit all records in their order."""
        for record, following in _with_next(self._counted(records, unseen)):
            self._add(record, following)
        return self._report()

    def _counted(self, records: Iterable[Record], unseen: Unseen) -> Iterator[Record]:
        """Yield records under declared groups; count, and leave out, people who were followed.

        ``unseen`` says under which declared group a record of another group counts.
        """
        known, empty = tuple(self.people), unseen.empty
        for record in records:
            group = record.group(empty=empty)
            name: Group | None = group
            if group not in self.people and unseen.kind != "refuse":
                name = unseen.known_as(group, known)
            if name is None:
                self.followed[group] = self.followed.get(group, 0) + 1
            else:
                yield (
                    record
                    if record.fields.get("group") == name
                    else record._replace(fields=record.fields | {"group": name})
                )

    def _add(self, record: Record, following: Record | None) -> None:
        """Count one decision, and ask the property if it had to hold after it."""
        is_last = following is None
        entry = self._entry(record, is_last)
        self.told += not (record.missing("proposed") and record.missing("overruled"))
        derived, recount = self._derive_again(record, entry), self.recount
        window, position = recount.windows, recount.decided
        before = () if self.watch is None else recount.numbers()
        self._tally(entry)
        recount.add(entry.group, entry.accepted, entry.outcome)
        if self.labelled and entry.outcome is not None:
            self.outcomes.know(entry.group, entry.accepted, entry.outcome)
        if self.watch is not None:
            self.watch(
                Audited(
                    record, window, position, entry.group, entry.accepted, entry.overruled,
                    entry.cost, derived, before, recount.numbers(),
                )
            )  # fmt: skip
        pending = entry.outcome is None and self.prop.counting.awaits(entry.accepted)
        self._note_day(record)
        at_end = self._ends(record, following)
        if not pending and (at_end or recount.due):
            self._check(entry.line)
        if at_end or is_last:
            name = None if self.calendar.by is None else self.calendar.period(record)
            self._close_window(entry.line, complete=at_end and not pending, name=name)

    def _ends(self, record: Record, following: Record | None) -> bool:
        """Whether the window is over after this record."""
        if self.recount.rule.length is not None:
            return self.recount.full
        if following is None or self.calendar.by is None:
            return following is None
        return self.calendar.period(record) != self.calendar.period(following)

    def _note_day(self, record: Record) -> None:
        """Extend the first and the last day of the window; forget both if a record has no date."""
        if self.days is None and self.calendar.format is None:
            return
        day = self.calendar.day(record)
        if day is None or self.days is None:
            self.days = None
        elif not self.days:
            self.days = [day, day]
        elif not self.days[0] <= day <= self.days[1]:
            self.days = [min(day, self.days[0]), max(day, self.days[1])]

    def _entry(self, record: Record, is_last: bool) -> _Entry:
        group, accepted = record.group(), record.flag("accepted")
        if group not in self.people:
            known = " or ".join(repr(name) for name in self.people)
            raise UnknownGroupError(
                f"line {record.line}: unknown group {group!r}, expected {known}"
            )
        outcome = self._outcome(record, is_last)
        return _Entry(
            record.line, group, accepted, outcome, _overruled(record, accepted), record.cost()
        )

    def _outcome(self, record: Record, is_last: bool) -> bool | None:
        if not self.labelled and not self.decider_labelled:
            return None
        if not record.missing("outcome"):
            return record.flag("outcome")
        accepted = record.flag("accepted")
        counted_by = [one for one in (self.prop, self.decided_for) if one is not None]
        if is_last or not any(one.counting.awaits(accepted) for one in counted_by):
            return None
        needs = self.prop if self.labelled else self.decided_for
        who = "accepted" if accepted else "rejected"
        raise InvalidValueError(
            f"line {record.line}: no 'outcome' of somebody who was {who}, without which {needs} "
            "cannot be checked; only the last decision of a log may still wait for it, and "
            f"{ADVICE}"
        )

    def _derive_again(self, record: Record, entry: _Entry) -> Decision | None:
        """Decide the request again, until a decision differs."""
        if self.decider is None or self.difference is not None:
            return None
        if record.fields.get("position", self.recount.decided) != self.recount.decided:
            self.difference = self._misplaced(record, entry)
            if self.difference is not None:
                return None
        proposed = record.flag("proposed")
        try:
            ours = self.decider.decide(entry.group, proposed=proposed, cost=entry.cost)
        except WindowOverError as error:
            raise InvalidValueError(f"line {entry.line}: {error}") from None
        if ours.accepted != entry.accepted:
            self.difference = Difference(entry.line, entry.accepted, ours.accepted, ours.reason)
        elif self._observable(entry):
            # Where no outcome changes the counters, either of the two will do.
            self.decider.observe(ours, outcome=bool(entry.outcome))
        return ours

    def _observable(self, entry: _Entry) -> bool:
        """Whether the decider can go on: the outcome is known, or changes nothing it counts."""
        if not self.decider_labelled or self.decided_for is None:
            return False
        return entry.outcome is not None or not self.decided_for.counting.awaits(entry.accepted)

    def _misplaced(self, record: Record, entry: _Entry) -> Difference | None:
        """The difference of a decision whose place in its window, as logged, is not the next."""
        place, expected = str(record.fields["position"]), str(self.recount.decided)
        # A log that no shield wrote may call something else a position.
        if place == expected or not record.fields.keys() >= {"window", "overruled", "reason"}:
            return None
        return Difference(
            entry.line, entry.accepted, None,
            f"its 'position' is {place} where {expected} was expected: a line is missing, doubled "
            "or out of order",
        )  # fmt: skip

    def _tally(self, entry: _Entry) -> None:
        position = self.recount.decided
        if position == 0:
            self.first_line = entry.line
        people = self.people[entry.group]
        people.decisions += 1
        people.accepted += entry.accepted
        if position == len(self.by_position):
            self.by_position.append(0)
        if entry.overruled:
            people.raised += entry.accepted
            people.lowered += not entry.accepted
            people.paid += entry.cost
            self.window_overruled += 1
            self.window_paid += entry.cost
            self.by_position[position] += 1
            self.paid += entry.cost

    def _check(self, line: int) -> None:
        self.checked += 1
        recount, finding = self.recount, self.recount.judge()
        if finding.verdict == "unfair":
            counts = recount.counts
            bias = self.prop.bias_of(counts)
            self.violations.append(
                Violation(recount.windows, line, recount.decided, counts, bias, finding)
            )

    def _close_window(self, line: int, *, complete: bool, name: str | None) -> None:
        counts = self.recount.counts
        days = [None, None] if self.days is None else [day.isoformat() for day in self.days]
        self.windows.append(
            Window(
                first_line=self.first_line,
                last_line=line,
                decisions=self.recount.decided,
                counts=counts,
                bias=self.prop.bias_of(counts),
                holds=self.prop.holds(counts),
                complete=complete,
                finding=self.prop.finding(counts),
                verdict=self.recount.verdict,
                name=name,
                first_date=days[0],
                last_date=days[1],
                overruled=self.window_overruled,
                paid=self.window_paid,
            )
        )
        self.recount.end()
        self._open_window()

    def _report(self) -> AuditReport:
        """What has been found so far."""
        people = tuple(GroupTotals(group, **vars(n)) for group, n in self.people.items())
        report = AuditReport(
            prop=str(self.prop),
            limit=self.prop.limit,
            windows=tuple(self.windows),
            violations=tuple(self.violations),
            difference=self.difference,
            decisions=sum(window.decisions for window in self.windows),
            overruled=sum(window.overruled for window in self.windows),
            paid=self.paid,
            people=people,
            overruled_by_position=tuple(self.by_position),
            followed=self.followed,
            checked=self.checked,
            told=self.told,
            coverage=self._coverage(),
            start=self.recount.start,
            rule=self.recount.rule,
            by=self.calendar.by,
        )
        if report.latest is None:
            return report
        ends = [window.counts for window in self.windows if window.complete]
        groups = rates_of(self.prop, self.windows[report.latest].counts)
        return replace(report, groups=groups, reach=reach_of(self.prop, ends))

    def _coverage(self) -> Coverage | None:
        counting = self.prop.counting
        if counting.outcome is None or not counting.awaits(False):
            return None
        return self.outcomes.coverage(relevant=counting.outcome)


def _overruled(record: Record, accepted: bool) -> bool:
    """Whether the proposal was overruled; without a proposal, what the record itself says."""
    if record.missing("proposed"):
        return not record.missing("overruled") and record.flag("overruled")
    overruled = record.flag("proposed") != accepted
    if not record.missing("overruled") and record.flag("overruled") != overruled:
        raise InvalidValueError(
            f"line {record.line}: 'overruled' is {record.fields['overruled']!r}, which contradicts "
            f"'proposed' {record.fields['proposed']!r} and 'accepted' "
            f"{record.fields['accepted']!r}: correct one of the three, or leave out 'overruled'"
        )
    return overruled


def _with_next(records: Iterable[Record]) -> Iterator[tuple[Record, Record | None]]:
    for record, following in pairwise(chain(records, [None])):
        if record is not None:
            yield record, following
