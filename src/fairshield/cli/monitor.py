"""``fairshield monitor``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from fairshield.adapters.specfile import parse_inputs, parse_property, parse_start
from fairshield.base.counts import Group
from fairshield.base.errors import FairshieldError, InvalidValueError
from fairshield.cli.monitor_report import print_monitored
from fairshield.cli.options import (
    examples,
    given,
    horizon_option,
    json_option,
    names_callback,
    period_option,
    property_options,
    start_option,
)
from fairshield.cli.output import (
    INCONCLUSIVE,
    number_of,
    print_json,
    progress_bar,
    reading_bar,
)
from fairshield.cli.reading import groups_known, reading_argument
from fairshield.cli.stream import blamed_on
from fairshield.monitor import Monitor, Saving
from fairshield.periodic import load_policy
from fairshield.records import Record, Request
from fairshield.records.reading import Reading


@click.command(
    epilog=examples(
        "fairshield monitor decisions.jsonl --property demographic-parity --bound 0.1",
        "fairshield monitor log.csv --property share-parity --bound 0.2 --inputs training.csv",
        "fairshield monitor decisions.jsonl --shadow loans.shield",
    )
)
@click.argument("log", metavar="LOG")
@click.option(
    "--shadow",
    metavar="POLICY",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Say what this policy would have done; its property, windows and input model are watched.",
)
@property_options
@horizon_option
@period_option
@start_option
@click.option(
    "--inputs",
    metavar="FILE",
    help="Watch the input model estimated from these records.  [default: that of the policy]",
)
@click.option(
    "--names",
    metavar="A,B,...",
    callback=names_callback,
    help="All groups, in order.  [default: as they come, or those of the policy or the inputs]",
)
@click.option(
    "--confidence",
    metavar="NUMBER",
    type=float,
    default=0.95,
    show_default=True,
    help="Of intervals and alarms, at all times at once.",
)
@click.option(
    "--min-group-size",
    metavar="N",
    type=int,
    default=30,
    show_default=True,
    help="Conclude nothing about smaller groups.",
)
@reading_argument
@json_option
@click.pass_context
def monitor(
    ctx: click.Context,
    /,
    log: str,
    shadow: Path | None,
    inputs: str | None,
    names: tuple[str, ...] | None,
    confidence: float,
    min_group_size: int,
    reading: Reading,
    as_json: bool,
    **words: Any,
) -> None:
    """Watch decisions without changing them.

    Exit 1 on an alarm: a window or period that ended unfair, a bias beyond chance, requests that
    contradict the input model. Exit 3 if nothing can be concluded: no window is over, the property
    bound none, or the outcomes at hand cannot tell. LOG (- for standard input) has the fields
    group, accepted and, if the property counts by outcome, outcome; proposed (by default what was
    accepted) and cost tell what was asked. Records without an outcome are left out, and counted: if
    they are mostly of rejected people, as where only accepted people show what they are worth,
    nothing can be concluded. Without --horizon or --period the log is one window, which is judged
    at its end.
    """
    chosen = given(words)
    policy = None if shadow is None else load_policy(shadow)
    if policy is None and "property" not in chosen:
        raise InvalidValueError("say what should hold: --property and --bound, or --shadow POLICY")
    prop = parse_property(chosen) if policy is None or "property" in chosen else policy.prop
    groups = groups_known(names, policy, chosen.get("start"))
    model = None
    if inputs is not None:
        model = parse_inputs({"inputs": inputs}, groups or (), shared=reading)
    if groups is None and model is not None:
        groups = model.groups
    watching = Monitor(
        prop,
        horizon=chosen.get("horizon"),
        period=chosen.get("period"),
        groups=groups,
        start=None if groups is None else parse_start(chosen, groups),
        inputs=model,
        confidence=confidence,
        min_group_size=min_group_size,
        shadow=policy,
    )
    with reading_bar("watching", log, reading) as lines, blamed_on(log):
        _watch(watching, reading.read(lines, log), groups or ())
        waiting = 0 if watching.coverage is None else watching.coverage.unknown
        _check_counted(watching, waiting)
    watching.end()
    report, saving = watching.report(), _saving(watching)
    if as_json:
        more = {"waiting": waiting, "saving": None if saving is None else saving.to_dict()}
        print_json(report.to_dict() | more)
    else:
        print_monitored(report, waiting, saving)
    ctx.exit(1 if report.alarms else 0 if report.quiet else INCONCLUSIVE)


def _watch(monitor: Monitor, records: Iterator[Record], groups: tuple[Group, ...]) -> None:
    """Observe every record whose outcome is known, or not needed."""
    labelled = monitor.prop.relevant_outcome is not None
    for record in records:
        try:
            accepted = record.flag("accepted")
            group, proposed, cost, outcome = Request.of(record.filled(proposed=accepted), groups)
            if labelled:
                monitor.expect(group, accepted=accepted)
                if outcome is None:
                    continue
            monitor.observe(group, accepted=accepted, proposed=proposed, cost=cost, outcome=outcome)
        except FairshieldError as error:
            told = str(error)
            line = f"line {record.line}"
            raise InvalidValueError(told if told.startswith(line) else f"{line}: {told}") from None


def _check_counted(monitor: Monitor, waiting: int) -> None:
    """Refuse a log of which nothing could be counted, instead of calling it fair."""
    if waiting and not monitor.decided:
        raise InvalidValueError(
            f"none of {number_of(waiting, 'record')} has an 'outcome', without which "
            f"{monitor.prop} cannot be checked: add it, or say where it is (--column "
            "outcome=COLUMN)"
        )
    if not monitor.groups:
        raise InvalidValueError(
            "the log has no decisions, and nothing names the groups: name them with --names A,B"
        )


def _saving(monitor: Monitor) -> Saving | None:
    """Return what re-synthesis would save, if the model is contradicted and there is a policy."""
    contradicted = any(alarm.kind == "model" for alarm in monitor.alarms)
    if not contradicted or (monitor.horizon is None and monitor.shadow is None):
        return None
    with progress_bar("revising"):
        return monitor.saving()
