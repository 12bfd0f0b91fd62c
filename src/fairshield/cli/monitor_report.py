"""``print_monitored`` prints what ``fairshield monitor`` saw, for people."""

from __future__ import annotations

import click

from fairshield.cli.output import number_of, print_facts, print_table, printable
from fairshield.monitor import MonitorReport, Saving
from fairshield.monitor.words import MOST_PAIRS, rest_of, widest_first
from fairshield.spec import Interval

_SHOWN = 10
"""Alarms listed; ``--json`` has all that are kept."""


def print_monitored(report: MonitorReport, waiting: int, saving: Saving | None) -> None:
    """Print what was seen; groups and pairs in tables where there are many."""
    many = len(report.pairs) > MOST_PAIRS
    facts = report.facts(by_group=not many)
    if waiting:
        facts.append(("left out", f"{number_of(waiting, 'decision')} without an outcome"))
    if saving is not None:
        facts.append(("saving", str(saving)))
    print_facts([(printable(name), printable(text)) for name, text in facts])
    if many:
        _print_groups(report)
        _print_pairs(report)
    if report.alarms:
        _print_alarms(report)


def _print_groups(report: MonitorReport) -> None:
    click.echo(f"\nRates since the beginning, with intervals of {report.confidence:.4g}")
    rows = [
        [str(g.group), f"{g.accepted:,} of {g.seen:,}"]
        + (["", "too few"] if g.rate is None else [f"{g.rate.estimate:.3f}", _span(g.rate)])
        for g in report.groups
    ]
    print_table(["", "accepted", "rate", "interval"], rows)


def _span(interval: Interval) -> str:
    return f"[{interval.lower:.3f}, {interval.upper:.3f}]"


def _print_pairs(report: MonitorReport) -> None:
    """Print the widest pairs, and how many others there are."""
    click.echo("\nWidest pairs since the beginning")
    pairs = widest_first(report)
    rows = [
        [
            ", ".join(map(str, pair.finding.pair)),
            pair.finding.shown,
            "too few" if pair.bias is None else _span(pair.bias),
            pair.finding.verdict.replace("unfair", "UNFAIR"),
        ]
        for pair in pairs[:MOST_PAIRS]
    ]
    print_table(["", pairs[0].finding.measure, "bias", ""], rows)
    click.echo(f"... and {rest_of(pairs)}")


def _print_alarms(report: MonitorReport) -> None:
    click.echo("\nAlarms")
    # Alarms about windows come last, because there may be one for every window.
    alarms = sorted(report.alarms, key=lambda alarm: alarm.kind == "violation")
    for alarm in alarms[:_SHOWN]:
        click.echo(f"- {printable(alarm)}")
    if len(alarms) > _SHOWN:
        click.echo(f"... and {len(alarms) - _SHOWN:,} more (--json lists them)")
