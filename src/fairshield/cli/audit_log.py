"""A log, audited and told: what ``fairshield audit`` prints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from fairshield.cli.output import (
    number_of,
    positions,
    print_facts,
    print_table,
    printable,
)
from fairshield.cli.stream import blamed_on
from fairshield.counts import Counts, Group
from fairshield.errors import InvalidValueError
from fairshield.groups import MISSING, Unseen
from fairshield.periodic import PeriodicPolicy, PeriodicShield, load_policy
from fairshield.plots import sparkline, tenths
from fairshield.policy import Policy
from fairshield.records import (
    Columns,
    Format,
    Record,
    Trace,
    decisions_of,
    declared,
    format_of,
    open_lines,
    read_records,
    renamed,
)
from fairshield.runtime.audit import audit as audit_log
from fairshield.runtime.report import AuditReport, Window
from fairshield.spec import Property
from fairshield.specfile import parse_property, parse_start

_SHOWN = 10
"""Violations listed for people; ``--json`` has all, and every window."""


class Task(NamedTuple):
    """What was asked for."""

    log: str
    policy: Path | None
    names: tuple[str, ...] | None
    columns: Columns
    unseen: Unseen
    format: Format | None
    chosen: dict[str, Any]
    date: str


class Found(NamedTuple):
    """What was found, by what, in which bytes."""

    task: Task
    report: AuditReport
    prop: Property
    policy: Policy | PeriodicPolicy | None
    shield: PeriodicShield | None
    start: Counts | None
    trace: Trace
    keeper: Any

    @property
    def noun(self) -> str:
        """What the log is made of."""
        return "window" if self.shield is None and "period" not in self.task.chosen else "period"

    @property
    def derived(self) -> PeriodicShield | None:
        """The shield at the end of the log, if it made all of its decisions."""
        return self.shield if self.report.difference is None else None


def audit_one(task: Task, keeper: Any = None) -> Found:
    """Audit the log; ``keeper`` is shown every decision on the way."""
    chosen, loaded = task.chosen, None if task.policy is None else load_policy(task.policy)
    shield = PeriodicShield(loaded) if isinstance(loaded, PeriodicPolicy) else None
    if loaded is None and "property" not in chosen:
        raise InvalidValueError("say what had to hold: --policy POLICY, or --property and --bound")
    prop = parse_property(chosen) if "property" in chosen or loaded is None else loaded.prop
    groups = _groups(loaded, task.names, chosen.get("start"))
    start = None if groups is None else parse_start(chosen, groups)
    trace = Trace()
    with open_lines(task.log, trace) as lines, blamed_on(task.log):
        records, empty = _records(lines, task), None if task.unseen.kind == "refuse" else MISSING
        report = audit_log(
            prop,
            records
            if groups is None
            else (record.declared(groups, empty=empty) for record in records),
            groups=groups,
            horizon=chosen.get("horizon"),
            period=chosen.get("period"),
            start=start,
            checkpoints=chosen.get("checkpoints", ()),
            policy=loaded if isinstance(loaded, Policy) else None,
            shield=shield,
            watch=keeper,
            unseen=task.unseen,
        )
    return Found(task, report, prop, loaded, shield, start, trace, keeper)


def _records(lines: Iterator[str], task: Task) -> Iterator[Record]:
    records = read_records(lines, task.format or format_of(task.log))
    return renamed(decisions_of(records), task.columns)


def data_of(found: Found) -> dict[str, Any]:
    """What ``--json`` prints."""
    derived = found.derived
    guarantee = None if derived is None else derived.guarantee.to_dict()
    return found.report.to_dict() | ({} if found.shield is None else {"guarantee": guarantee})


# What is printed ----------------------------------------------------------------------------


def _groups(
    policy: Policy | PeriodicPolicy | None,
    names: tuple[str, ...] | None,
    start: dict[str, Any] | None,
) -> tuple[Group, ...] | None:
    """The groups in order, as far as known before the log is read."""
    if names is not None:
        return tuple(declared(name, policy.groups if policy else ()) for name in names)
    if policy is not None:
        return policy.groups
    return None if start is None else tuple(start)


def print_report(found: Found) -> None:
    """What was found, for people."""
    report, noun, shield = found.report, found.noun, found.derived
    complete = [window for window in report.windows if window.complete]
    unfair = {violation.window for violation in report.violations}
    print_facts(
        [
            ("verdict", _verdict(report, noun, len(unfair), len(complete))),
            *_another_property(found),
            (f"{noun}s", _windows(report, len(complete))),
            ("decisions", f"{report.decisions:,}"),
            ("overruled", _overruled(report)),
            ("cost paid", _cost_paid(report)),
            ("largest bias", _largest_bias(report, noun)),
            *_derived_again(found),
            *_followed(report),
            *([] if shield is None else [("guarantee", str(shield.guarantee))]),
        ]
    )
    if report.violations:
        _print_violations(report, noun)
    if noun == "period" and complete:
        _print_periods(report, complete)
    if report.overruled and len(report.overruled_by_position) > 1:
        _print_positions(report)


def _followed(report: AuditReport) -> list[tuple[str, str]]:
    if not report.followed:
        return []
    by_group = ", ".join(f"{printable(str(g))} {n:,}" for g, n in report.followed.items())
    return [("not counted", f"{sum(report.followed.values()):,} of undeclared groups: {by_group}")]


def _verdict(report: AuditReport, noun: str, unfair: int, complete: int) -> str:
    if not report.decisions:
        return "nothing to check: the log has no decisions"
    if not report.holds:
        # A checkpoint may be violated in a window that is not finished.
        of = max(unfair, complete)
        told = f"VIOLATED: {report.prop} did not hold in {unfair:,} of {number_of(of, noun)}"
    elif complete:
        where = f"every {noun}" if complete > 1 else f"the {noun}"
        told = f"{report.prop} held at the end of {where}"
    else:
        now = f"the {noun} is not finished (bias now {report.windows[-1].bias:.4g})"
        told = (
            f"{report.prop} held at every checkpoint so far; {now}"
            if report.checked
            else f"nothing had to hold yet: {now}"
        )
    if report.difference is None:
        return told
    if not report.holds:
        return f"{told}; and line {report.difference.line:,} is not the policy's"
    return f"NOT THE POLICY'S: line {report.difference.line:,} is not what it decides; {told}"


def _another_property(found: Found) -> list[tuple[str, str]]:
    policy = found.policy
    if policy is None or policy.prop == found.prop:
        return []
    return [("checked", f"{found.prop}, instead of the policy's own {policy.prop}")]


def _windows(report: AuditReport, complete: int) -> str:
    text = f"{complete:,} complete"
    if len(report.windows) > complete:
        text += f", one unfinished after {report.windows[-1].decided:,} decisions"
    return text


_CANNOT = "cannot be told, the log has no 'proposed'"


def _overruled(report: AuditReport) -> str:
    if report.decisions and not report.told:
        return _CANNOT
    share = report.overruled / report.decisions if report.decisions else 0.0
    by_group = ", ".join(f"{group} {n:,}" for group, n in report.overruled_by_group.items())
    unknown = report.decisions - report.told
    more = f"; {unknown:,} more have no 'proposed'" if unknown else ""
    return f"{report.overruled:,} ({share:.2%}): {by_group}{more}"


def _cost_paid(report: AuditReport) -> str:
    return _CANNOT if report.decisions and not report.told else f"{report.cost_paid:.6g}"


def _largest_bias(report: AuditReport, noun: str) -> str:
    biases = [window.bias for window in report.windows if window.complete]
    if not biases:
        return f"no {noun} has ended"
    largest = max(biases)
    return f"{largest:.4g} at the end of a {noun}, {report.limit:.4g} is allowed"


def _derived_again(found: Found) -> list[tuple[str, str]]:
    report, differs = found.report, found.report.difference
    if found.policy is None or not report.decisions:
        return []
    if differs is None:
        n = report.decisions
        text = f"all {n:,} decisions are the policy's" if n > 1 else "the decision is the policy's"
        return [("derived again", text)]
    did, should = (("accepted", "rejected")[not y] for y in (differs.accepted, differs.expected))
    text = f"line {differs.line} {did}, the policy would have {should} ({differs.reason})"
    return [("not the policy's", text)]


def _print_violations(report: AuditReport, noun: str) -> None:
    click.echo("\nViolations")
    rows = [
        [
            f"period {violation.window + 1}" if noun == "period" else f"{noun} {violation.window}",
            f"{violation.line:,}",
            f"{violation.decided:,}",
            f"{violation.bias:.4g}",
            *(f"{count.accepted:,} of {count.seen:,}" for count in violation.counts.values()),
        ]
        for violation in report.violations[:_SHOWN]
    ]
    header = ["", "line", "decided", "bias"]
    print_table([*header, *(f"{group} accepted" for group in report.overruled_by_group)], rows)
    if len(report.violations) > _SHOWN:
        click.echo(f"... and {len(report.violations) - _SHOWN:,} more (--json lists all)")


def _print_periods(report: AuditReport, complete: list[Window]) -> None:
    """Counters since the beginning of the run at the last period ends."""
    click.echo("\nAt the end of each period")
    first = max(len(complete) - _SHOWN, 0)
    rows = [
        [
            f"period {first + i}",
            f"{window.last_line:,}",
            f"{window.bias:.4g}",
            *(f"{count.accepted:,} of {count.seen:,}" for count in window.counts.values()),
            "fair" if window.holds else "UNFAIR",
        ]
        for i, window in enumerate(complete[first:], 1)
    ]
    groups = [f"{group} accepted" for group in report.overruled_by_group]
    print_table(["", "line", "bias", *groups, ""], rows)
    if first:
        click.echo(f"... and {first:,} earlier (--json lists all)")


def _print_positions(report: AuditReport) -> None:
    people = report.overruled_by_position
    parts = [(part, sum(people[slice(*part)])) for part in tenths(len(people))]
    click.echo(f"\nOverruled by position   {sparkline([n for _, n in parts])}")
    print_table(["decisions", "people"], [[positions(*part), f"{n:,}"] for part, n in parts])
