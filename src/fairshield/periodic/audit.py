"""``audit`` checks a log of decisions again, from its records alone.

An audit believes no counter and no verdict in the log.  It counts people anew
(:mod:`fairshield.analysis.recount`, which shares nothing with the ledger that counts as decisions
are made), asks the property in integers whenever it had to hold, and, given the policy, decides
every request once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fairshield.analysis.auditor import LogAuditor
from fairshield.analysis.recount import Recount
from fairshield.analysis.report import Audited, AuditReport
from fairshield.analysis.terms import agreed, check_agreed, check_by
from fairshield.base.counts import Counts, Group, name_order
from fairshield.base.errors import InvalidValueError, argument, called, check_kind
from fairshield.base.groups import Unseen
from fairshield.base.renamed import warn_renamed
from fairshield.periodic.policy import PeriodicPolicy
from fairshield.periodic.run import Run
from fairshield.policy import Policy
from fairshield.records import Record
from fairshield.records.dates import By, Calendar
from fairshield.runtime.window_rule import WindowRule
from fairshield.spec import Property


def audit(
    prop: Property,
    records: Iterable[Record],
    *,
    groups: tuple[Group, ...] | None = None,
    horizon: int | None = None,
    period: int | None = None,
    start: Counts | None = None,
    checkpoints: tuple[int, ...] = (),
    policy: Policy | PeriodicPolicy | Run | None = None,
    shield: Run | None = None,
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
        Of any kind.  It supplies what is not given of the above, every request is decided again
        from the logged counters, and the first decision that differs is reported.  A
        :class:`~fairshield.Run` that has decided nothing yet can be given instead: it makes these
        decisions, and can be asked afterwards where it stands.
    shield
        The earlier name of ``policy``, where a run is given.
    watch
        Called with every decision as it is counted, for callers that need more than the report.
    unseen
        What happened to people of other groups, see :class:`~fairshield.Unseen`: those that were
        followed are not counted, and reported.
    by
        Instead of ``horizon``: every calendar month, quarter or year of the log is a window, in
        which counters begin again at ``start``.  Records need a ``date``; they may come in any
        order, in which they are then counted within their window.  Not for policies, which decide
        windows of a number of decisions.
    date_format, timezone
        How dates are written, and where, see :class:`fairshield.records.dates.Calendar`.

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
        warn_renamed("audit(shield=...)", "audit(policy=...)")
        if policy is not None:
            raise InvalidValueError(
                f"{called('shield')} is the earlier name of {called('policy')}, and both are "
                "given: leave out one of the two"
            )
    run = _run_of(policy if shield is None else shield)
    kind = None if run is None else run.policy
    if kind is None:
        rule = WindowRule.of(horizon=horizon, period=period, checkpoints=checkpoints)
    else:
        rule = kind.window_rule
        check_agreed(rule, horizon=horizon, period=period, checkpoints=checkpoints)
        groups = agreed("groups", groups, kind.groups)
        start = agreed("start", start, kind.start)
    calendar = Calendar(by, date_format, timezone)
    if by is not None:
        check_by(by, rule, kind)
        records = calendar.in_order(records)
    if groups is None:
        records = list(records)
        groups = _groups_of(start, records, Unseen.of(unseen))
    if groups:  # an empty log shows none
        _check_two(groups)
        prop.check_groups(len(groups))
    start = Counts.zero(groups) if start is None else Counts({g: start[g] for g in groups})
    others = Unseen.of(unseen).among(groups)
    decided_for = None if kind is None else kind.prop
    auditor = LogAuditor(Recount(prop, start, rule), run, decided_for, watch, calendar)
    return auditor.read(records, others)


def _run_of(policy: Policy | PeriodicPolicy | Run | None) -> Run | None:
    """The run that decides the log again; refuses one that has decided before the log begins."""
    if policy is None:
        return None
    if not isinstance(policy, Run):
        return Run(policy)
    if policy.decided:
        raise InvalidValueError(
            f"the run given as {called('policy')} has decided already, {policy.decided} times: "
            "give its policy, run.policy, or a new run of it"
        )
    return policy


def _check_property(prop: object) -> None:
    of_policy = isinstance(getattr(prop, "prop", None), Property)
    how = "pass policy.prop" if of_policy else "such as policy.prop"
    check_kind(prop, Property, f"audit asks whether a property held: {how}")


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
    found = {record.group(empty=unseen.empty) for record in records} - {unseen.empty}
    return tuple(sorted(found, key=name_order))
