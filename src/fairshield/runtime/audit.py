"""Re-check a log of decisions: from what was logged, and from nothing else.

An audit believes no counter and no verdict in the log.  It counts people anew, asks the property
in integers whenever it had to hold, and, given the policy, decides every request once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import date
from itertools import chain, pairwise
from typing import Any, NamedTuple

from fairshield.counts import Counts, Group, name_order, so_far
from fairshield.dates import By, Calendar
from fairshield.errors import (
    InvalidValueError,
    UnknownGroupError,
    WindowOverError,
    argument,
    called,
    check_kind,
)
from fairshield.groups import MISSING, Unseen
from fairshield.outcomes import ADVICE, Coverage, OutcomeTally
from fairshield.policy import Policy
from fairshield.records import Record
from fairshield.runtime.report import Audited, AuditReport, Difference, Violation, Window
from fairshield.runtime.shield import Shield
from fairshield.runtime.step import Decision
from fairshield.runtime.terms import Decider, PeriodicDecider, check_by, check_points
from fairshield.spec import Property, Verdict, rates_of, reach_of, worst


def audit(
    prop: Property,
    records: Iterable[Record],
    *,
    groups: tuple[Group, ...] | None = None,
    horizon: int | None = None,
    period: int | None = None,
    start: Counts | None = None,
    checkpoints: tuple[int, ...] = (),
    policy: Policy | None = None,
    shield: PeriodicDecider | None = None,
    watch: Callable[[Audited], None] | None = None,
    unseen: Unseen | str = "refuse",
    by: By | None = None,
    date_format: str | None = None,
    timezone: str | None = None,
) -> AuditReport:
    """Whether ``prop`` held at the end of every window of a log, and at every checkpoint.

    A record needs ``group`` and ``accepted``, and ``outcome`` if the property counts by outcome;
    only the very last may still wait for its outcome.  ``proposed`` and ``cost`` say who was
    overruled and at what price.

    Parameters
    ----------
    prop
        What had to hold; need not be the property of ``policy``.
    records
        The log, from :func:`fairshield.records.read_records`, or mappings with these fields; read
        once, line by line.
    groups
        The groups in order; default: those of ``start``, else sorted from the log, which is then
        read at once.
    horizon
        Decisions per window, after which counters begin again at ``start``; default: the whole
        log is one window.
    period
        Instead of ``horizon``: decisions per period, where counters go on, so that the property
        had to hold of all decisions so far at the end of each; every period is a window of the
        report.
    start
        Counters before the first decision of a window, or of the first period; default: nobody
        seen.
    checkpoints
        Earlier numbers of decisions after which the property had to hold as well.
    policy
        Supplies what is not given of the above.  Every request is decided again from the logged
        counters, and the first decision that differs is reported.
    shield
        A periodic shield at the beginning of its run, of the kind that decided; takes the place of
        ``policy``.
    watch
        Told every decision as it is counted, for those who want more than the report.
    unseen
        What happened to people of other groups, see :class:`~fairshield.Unseen`: those that were
        followed are not counted, and reported.
    by
        Instead of ``horizon``: every calendar month, quarter or year of the log is a window, in
        which counters begin again at ``start``.  Records need a ``date``; they may come in any
        order, in which they are then counted within their window.  Not for policies, which decide
        windows of a number of decisions.
    date_format, timezone
        How dates are written, and where, see :class:`fairshield.dates.Calendar`.

    Raises
    ------
    InvalidValueError
        If a record lacks something or contradicts itself; the message names the line.

    Examples
    --------
    >>> import fairshield as fs
    >>> from fairshield.records import read_records
    >>> log = ['{"group": "a", "accepted": 1}', '{"group": "b", "accepted": 0}']
    >>> report = audit(fs.DemographicParity("0.1"), read_records(log, "jsonl"))
    >>> report.verdict, report.violations[0].line, str(report.violations[0].finding)
    ('unfair', 2, 'gap 1 between b and a where at most 0.1 is asked')
    """
    _check_property(prop)
    records = Record.each(records)
    if shield is not None:
        groups = agreed("groups", groups, shield.policy.groups)
        period = agreed("period", period, shield.policy.period)
        start = agreed("start", start, shield.policy.start)
    if policy is not None:
        groups = agreed("groups", groups, policy.groups)
        horizon = agreed("horizon", horizon, policy.horizon)
        start = agreed("start", start, policy.start)
        points = tuple(sorted(set(checkpoints))) or None
        checkpoints = agreed("checkpoints", points, policy.due[:-1])
    calendar = Calendar(by, date_format, timezone)
    if by is not None:
        check_by(by, horizon, period, policy or shield)
        records = calendar.in_order(records)
    if groups is None:
        records = list(records)
        groups = _groups_of(start, records, Unseen.of(unseen))
    if groups:  # an empty log shows none
        _check_two(groups)
        prop.check_groups(len(groups))
    check_points(horizon, period, checkpoints)
    start = Counts.zero(groups) if start is None else Counts({g: start[g] for g in groups})
    others = Unseen.of(unseen).among(groups)
    auditor = _Auditor(prop, start, horizon, period, checkpoints, policy, shield, watch, calendar)
    for record, following in _with_next(auditor.counted(records, others)):
        auditor.add(record, following)
    return auditor.report()


def _check_property(prop: object) -> None:
    of_policy = isinstance(getattr(prop, "prop", None), Property)
    how = "pass policy.prop" if of_policy else "such as policy.prop"
    check_kind(prop, Property, f"audit asks whether a property held: {how}")


class _Entry(NamedTuple):
    """One line of the log, checked."""

    line: int
    group: Group
    accepted: bool
    outcome: bool | None
    overruled: bool
    cost: float


class _Auditor:
    """Counters of the current window, and totals of all."""

    def __init__(
        self,
        prop: Property,
        start: Counts,
        horizon: int | None,
        period: int | None,
        checkpoints: tuple[int, ...],
        policy: Policy | None,
        shield: PeriodicDecider | None,
        watch: Callable[[Audited], None] | None,
        calendar: Calendar,
    ) -> None:
        self.calendar = calendar
        self.prop, self.start, self.policy, self.watch = prop, start, policy, watch
        self.decider: Decider | None = shield
        self.horizon, self.goes_on = horizon if period is None else period, period is not None
        self.points = frozenset(checkpoints)
        self.labelled = prop.relevant_outcome is not None
        decided_for = policy if shield is None else shield.policy
        self.decider_prop = None if decided_for is None else decided_for.prop
        self.decider_labelled = decided_for is not None and decided_for.labelled
        self.windows: list[Window] = []
        self.violations: list[Violation] = []
        self.difference: Difference | None = None
        self.decisions, self.overruled, self.cost_paid = 0, 0, 0.0
        self.checked = self.told = 0
        self.by_group: dict[Group, int] = dict.fromkeys(start, 0)
        self.by_position: list[int] = []
        self.followed: dict[Group, int] = {}
        self.outcomes = OutcomeTally()
        self._open_window()

    def _open_window(self) -> None:
        self.decided, self.first_line = 0, 0
        self.verdicts: set[Verdict] = set()
        self.days: list[date] | None = []
        if not self.goes_on or not self.windows:
            self.seen = {group: count.seen for group, count in self.start.items()}
            self.accepted = {group: count.accepted for group, count in self.start.items()}
        if self.policy is not None:
            self.decider = Shield(self.policy)

    @property
    def counts(self) -> Counts:
        return Counts({group: (self.seen[group], self.accepted[group]) for group in self.start})

    def _numbers(self) -> tuple[int, ...]:
        return tuple(n for group in self.start for n in (self.seen[group], self.accepted[group]))

    def counted(self, records: Iterable[Record], unseen: Unseen) -> Iterator[Record]:
        """The records of declared groups, others as what they count as."""
        known, empty = tuple(self.start), _nobody(unseen)
        for record in records:
            group = record.group(empty=empty)
            name: Group | None = group
            if group not in self.by_group and unseen.kind != "refuse":
                name = unseen.known_as(group, known)
            if name is None:
                self.followed[group] = self.followed.get(group, 0) + 1
            else:
                yield (
                    record
                    if record.fields.get("group") == name
                    else record._replace(fields=record.fields | {"group": name})
                )

    def add(self, record: Record, following: Record | None) -> None:
        """Count one decision, and ask the property if it had to hold after it."""
        is_last = following is None
        entry = self._entry(record, is_last)
        self.told += not (record.missing("proposed") and record.missing("overruled"))
        derived = self._derive_again(record, entry)
        window, position = len(self.windows), self.decided
        before = () if self.watch is None else self._numbers()
        self._tally(entry)
        self._count(entry)
        if self.labelled and entry.outcome is not None:
            self.outcomes.know(entry.group, entry.accepted, entry.outcome)
        if self.watch is not None:
            self.watch(
                Audited(
                    record, window, position, entry.group, entry.accepted, entry.overruled,
                    entry.cost, derived, before, self._numbers(),
                )
            )  # fmt: skip
        pending = self.labelled and entry.outcome is None
        self._note_day(record)
        at_end = self._ends(record, following)
        if not pending and (at_end or self.decided in self.points):
            self._check(entry.line)
        if at_end or is_last:
            name = None if self.calendar.by is None else self.calendar.period(record)
            self._close_window(entry.line, complete=at_end and not pending, name=name)

    def _ends(self, record: Record, following: Record | None) -> bool:
        """Whether the window is over after this record."""
        if self.horizon is not None:
            return self.decided == self.horizon
        if following is None or self.calendar.by is None:
            return following is None
        return self.calendar.period(record) != self.calendar.period(following)

    def _note_day(self, record: Record) -> None:
        """The first and the last day of the window, unless a record has none."""
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
        if group not in self.by_group:
            known = " or ".join(repr(name) for name in self.by_group)
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
        if is_last:
            return None
        needs = self.prop if self.labelled else self.decider_prop
        who = "accepted" if record.flag("accepted") else "rejected"
        raise InvalidValueError(
            f"line {record.line}: no 'outcome' of somebody who was {who}, without which {needs} "
            "cannot be checked; only the last decision of a log may still wait for it, and "
            f"{ADVICE}"
        )

    def _derive_again(self, record: Record, entry: _Entry) -> Decision | None:
        """Decide the request again, until a decision differs."""
        if self.decider is None or self.difference is not None:
            return None
        proposed = record.flag("proposed")
        try:
            ours = self.decider.decide(entry.group, proposed=proposed, cost=entry.cost)
        except WindowOverError as error:
            raise InvalidValueError(f"line {entry.line}: {error}") from None
        if ours.accepted != entry.accepted:
            self.difference = Difference(entry.line, entry.accepted, ours.accepted, ours.reason)
        elif entry.outcome is not None and self.decider_labelled:
            self.decider.observe(ours, outcome=entry.outcome)
        return ours

    def _tally(self, entry: _Entry) -> None:
        self.decisions += 1
        if self.decided == len(self.by_position):
            self.by_position.append(0)
        if entry.overruled:
            self.overruled += 1
            self.by_group[entry.group] += 1
            self.by_position[self.decided] += 1
            self.cost_paid += entry.cost

    def _count(self, entry: _Entry) -> None:
        if self.decided == 0:
            self.first_line = entry.line
        self.decided += 1
        if not self.labelled or entry.outcome == self.prop.relevant_outcome:
            self.seen[entry.group] += 1
            self.accepted[entry.group] += entry.accepted

    def _check(self, line: int) -> None:
        self.checked += 1
        counts = self.counts
        finding = self.prop.finding(counts)
        self.verdicts.add(finding.verdict)
        if finding.verdict == "unfair":
            bias = self.prop.bias_of(counts)
            self.violations.append(
                Violation(len(self.windows), line, self.decided, counts, bias, finding)
            )

    def _close_window(self, line: int, *, complete: bool, name: str | None) -> None:
        counts, verdicts = self.counts, self.verdicts
        days = [None, None] if self.days is None else [day.isoformat() for day in self.days]
        self.windows.append(
            Window(
                first_line=self.first_line,
                last_line=line,
                decided=self.decided,
                counts=counts,
                bias=self.prop.bias_of(counts),
                holds=self.prop.holds(counts),
                complete=complete,
                finding=self.prop.finding(counts),
                verdict=worst(verdicts),
                name=name,
                first_date=days[0],
                last_date=days[1],
            )
        )
        self._open_window()

    def report(self) -> AuditReport:
        """What has been found so far."""
        report = AuditReport(
            prop=str(self.prop),
            limit=self.prop.limit,
            windows=tuple(self.windows),
            violations=tuple(self.violations),
            difference=self.difference,
            decisions=self.decisions,
            overruled=self.overruled,
            cost_paid=self.cost_paid,
            overruled_by_group=self.by_group,
            overruled_by_position=tuple(self.by_position),
            followed=self.followed,
            checked=self.checked,
            told=self.told,
            coverage=self._coverage(),
        )
        if report.latest is None:
            return report
        ends = [window.counts for window in self.windows if window.complete]
        groups = rates_of(self.prop, self.windows[report.latest].counts)
        return replace(report, groups=groups, reach=reach_of(self.prop, ends))

    def _coverage(self) -> Coverage | None:
        relevant = self.prop.relevant_outcome
        return None if relevant is None else self.outcomes.coverage(relevant=relevant)


def _overruled(record: Record, accepted: bool) -> bool:
    """Whether the proposal was overruled; not known to have been, if there is none."""
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


def _check_two(groups: tuple[Group, ...]) -> None:
    two = argument("groups", ("first", "second"))
    if len(groups) == 1:
        raise InvalidValueError(
            f"only one group, {groups[0]!r}: two are compared; if nobody of the other is in the "
            f"log, name both with {two}"
        )


def _groups_of(
    start: Counts | None, records: Iterable[Record], unseen: Unseen
) -> tuple[Group, ...]:
    if start is not None:
        return tuple(start)
    empty = _nobody(unseen)
    found = {record.group(empty=empty) for record in records} - {empty}
    return tuple(sorted(found, key=name_order))


def _nobody(unseen: Unseen) -> Group | None:
    """Whom an empty group stands for; ``None`` if people without a group are refused."""
    return None if unseen.kind == "refuse" else MISSING


def agreed(
    name: str,
    given: Any,
    of_policy: Any,
    *,
    whose: str = "the policy's",
    instead: str = "audit without the policy",
) -> Any:
    """What the policy says; anything else that is given is refused."""
    if given is not None and given != of_policy:
        raise InvalidValueError(
            f"{called(name)} {_told(given)} is not {whose} {_told(of_policy)}: leave it out, or "
            f"{instead}"
        )
    return of_policy


def _told(value: Any) -> str:
    if value is None:
        return "none"
    return f"({so_far(value)})" if isinstance(value, Counts) else repr(value)
