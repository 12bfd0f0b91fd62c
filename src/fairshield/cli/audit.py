"""``fairshield audit``."""

from __future__ import annotations

import hashlib
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from fairshield.artifact import digest_of, replacing
from fairshield.cli.extras import needed_by
from fairshield.cli.options import (
    checkpoint_option,
    column_option,
    examples,
    format_option,
    given,
    horizon_option,
    json_option,
    names_callback,
    period_option,
    property_options,
    start_option,
    unseen_option,
)
from fairshield.cli.output import (
    check_target,
    human_size,
    number_of,
    positions,
    print_facts,
    print_json,
    print_table,
    printable,
    progress_bar,
)
from fairshield.cli.stream import blamed_on
from fairshield.counts import Counts, Group
from fairshield.errors import InvalidValueError, MissingExtraError
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


@click.command(
    epilog=examples(
        "fairshield audit decisions.jsonl --policy loans.shield",
        "fairshield audit decisions.csv --property disparate-impact --bound 0.8 --horizon 100",
        "fairshield audit decisions.csv --policy loans.shield --html audit.html",
        "fairshield audit --db shield.db",
    )
)
@click.argument("log", nargs=-1, metavar="[LOG | STREAM ...]")
@click.option(
    "--db",
    metavar="DATABASE",
    help="Instead of a log: the database of fairshield serve, all streams or those named.",
)
@click.option(
    "--expect",
    metavar="STREAM:SEQ:RECEIPT",
    multiple=True,
    callback=lambda ctx, param, value: [_receipt(text, ctx, param) for text in value],
    help="With --db: a receipt that was given and must be in the log. Repeatable.",
)
@click.option(
    "--policy",
    metavar="POLICY",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The policy that decided; every decision is derived again, and must be the policy's.",
)
@property_options
@horizon_option
@period_option
@start_option
@checkpoint_option
@click.option(
    "--names", metavar="A,B", callback=names_callback, help="The groups, first one first."
)
@column_option
@unseen_option
@format_option
@click.option(
    "--html",
    "page",
    metavar="[PAGE]",
    is_flag=False,
    flag_value="",
    help="Write a page to file: all that was found, in one file.  [default: LOG-audit.html]",
)
@click.option("--date", metavar="TEXT", help="With --html: the date that the page is to bear.")
@json_option
@click.pass_context
def audit(
    ctx: click.Context,
    /,
    log: tuple[str, ...],
    db: str | None,
    expect: list[tuple[str, int, str]],
    policy: Path | None,
    names: tuple[str, ...] | None,
    columns: Columns,
    unseen: Unseen,
    format: Format | None,
    page: str | None,
    date: str | None,
    as_json: bool,
    **words: Any,
) -> None:
    """Check a log of decisions again.

    Every window of it; exit 1 if the property was violated, or, with --policy, if a decision is
    not the policy's. LOG (- for standard input) has the
    fields group, accepted and, if the property counts by outcome, outcome; proposed and cost tell
    who was overruled. It is checked against the policy that made it, or against any property;
    without a horizon the log is one window. In windows counters begin again; with --period, and
    for a periodic policy, they go on. A log that a service has exported is read as it is.

    With --html the findings are also written as one page that needs nothing else: the guarantee
    and its conditions, bias over time, costs, and every overruled decision with its reason. The
    same files give the same bytes; their digests are on it. An earlier page is replaced, nothing
    else is.

    With --db, every log of the database is replayed from its first entry on, with the policies
    that are in it: hashes, answers, ends of windows, and the property at each of these. The
    service may be running meanwhile. Exit 1 if anything is found.
    """
    chosen = given(words)
    if db is not None:
        others = given({"policy": policy, "names": names, "format": format}) | chosen
        if page is not None:
            raise InvalidValueError(
                "--html is for one log, and --db for a whole database: export a stream "
                "(GET /v1/streams/NAME/log.jsonl) and audit that file with --policy and --html"
            )
        if columns:
            others |= {"column": columns}
        _audit_database(ctx, db, log, expect, others, as_json)
        return
    if len(log) != 1 or expect:
        raise InvalidValueError(
            "say what to audit: one LOG (- for standard input), or --db DATABASE, with which go "
            "names of streams and --expect"
        )
    if date is not None and page is None:
        raise InvalidValueError("--date goes with --html: it is printed on the page")
    task = _Task(log[0], policy, names, columns, unseen, format, chosen, date or "")
    target = None if page is None else _target(page, log[0])
    found = _audit_log(task, watched=target is not None)
    written = None if target is None else _write_page(found, target)
    if as_json:
        print_json(_data(found) | ({} if written is None else {"page": written}))
    else:
        _print_report(found)
        if written is not None:
            _print_page(written)
    ctx.exit(0 if found.report.holds and found.report.difference is None else 1)


class _Task(NamedTuple):
    """What was asked for."""

    log: str
    policy: Path | None
    names: tuple[str, ...] | None
    columns: Columns
    unseen: Unseen
    format: Format | None
    chosen: dict[str, Any]
    date: str


class _Found(NamedTuple):
    """What was found, by what, in which bytes."""

    task: _Task
    report: AuditReport
    prop: Property
    policy: Policy | PeriodicPolicy | None
    shield: PeriodicShield | None
    start: Counts | None
    trace: Trace
    keeper: Any

    @property
    def noun(self) -> str:
        return "window" if self.shield is None and "period" not in self.task.chosen else "period"

    @property
    def derived(self) -> PeriodicShield | None:
        """The shield at the end of the log, if it made all of its decisions."""
        return self.shield if self.report.difference is None else None


def _audit_log(task: _Task, *, watched: bool) -> _Found:
    chosen, loaded = task.chosen, None if task.policy is None else load_policy(task.policy)
    shield = PeriodicShield(loaded) if isinstance(loaded, PeriodicPolicy) else None
    if loaded is None and "property" not in chosen:
        raise InvalidValueError("say what had to hold: --policy POLICY, or --property and --bound")
    prop = parse_property(chosen) if "property" in chosen or loaded is None else loaded.prop
    groups = _groups(loaded, task.names, chosen.get("start"))
    start = None if groups is None else parse_start(chosen, groups)
    keeper, trace = _keeper() if watched else None, Trace()
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
    return _Found(task, report, prop, loaded, shield, start, trace, keeper)


def _records(lines: Iterator[str], task: _Task) -> Iterator[Record]:
    records = read_records(lines, task.format or format_of(task.log))
    return renamed(decisions_of(records), task.columns)


def _data(found: _Found) -> dict[str, Any]:
    derived = found.derived
    guarantee = None if derived is None else derived.guarantee.to_dict()
    return found.report.to_dict() | ({} if found.shield is None else {"guarantee": guarantee})


# A page -------------------------------------------------------------------------------------


def _target(page: str, log: str) -> Path:
    """Where the page goes, which must be a name for a page and not somebody else's file."""
    with needed_by("audit --html", extra="cli"):
        from fairshield.dossier import MARK

    target = Path(page or ("audit.html" if log == "-" else f"{Path(log).stem}-audit.html"))
    if target.suffix.lower() not in (".html", ".htm"):
        raise InvalidValueError(f"--html writes a page, as in --html audit.html, got {page!r}")
    check_target(target)
    if target.is_file():
        with target.open("rb") as earlier:
            if MARK.encode() not in earlier.read(1000):
                raise InvalidValueError(
                    f"{target} exists and is not a page of an audit: remove it, or choose another "
                    "name"
                )
    return target


def _keeper() -> Any:
    from fairshield.dossier import Keeper

    return Keeper()


def _write_page(found: _Found, target: Path) -> dict[str, Any]:
    from fairshield.dossier import Source, collect, render

    task, chosen = found.task, found.task.chosen
    name = "standard input" if task.log == "-" else Path(task.log).name
    trace, file = found.trace, task.policy
    dossier = collect(
        found.report,
        found.keeper,
        prop=found.prop,
        log=Source(name=name, sha256=trace.sha256, size=trace.size, lines=trace.lines),
        policy=found.policy,
        policy_file=None
        if file is None
        else Source(name=file.name, sha256=digest_of(file), size=file.stat().st_size),
        standing=None if found.derived is None else found.derived.guarantee,
        start=found.start,
        checkpoints=chosen.get("checkpoints", ()),
        horizon=chosen.get("horizon"),
        period=chosen.get("period"),
        command=_command(task, target),
        date=task.date,
    )
    content = render(dossier).encode()
    with replacing(target) as file_:
        file_.write(content)
    digest = hashlib.sha256(content).hexdigest()
    return {"path": str(target), "bytes": len(content), "sha256": digest}


def _command(task: _Task, target: Path) -> str:
    """What makes the page again, in a folder with the files."""
    words = ["fairshield", "audit", "-" if task.log == "-" else Path(task.log).name]
    if task.policy is not None:
        words += ["--policy", task.policy.name]
    for name, value in task.chosen.items():
        words += _option(name, value)
    if task.names is not None:
        words += ["--names", ",".join(task.names)]
    for field, columns in task.columns.items():
        words += ["--column", f"{field}={','.join(columns)}"]
    if task.unseen.kind != "refuse":
        words += ["--unseen", str(task.unseen)]
    if task.format is not None:
        words += ["--format", task.format]
    words += ["--date", task.date] if task.date else []
    return shlex.join([*words, "--html", target.name])


def _option(name: str, value: Any) -> list[str]:
    """An option as it was given."""
    flag = f"--{name.replace('_', '-')}"
    if name == "two_sided":
        return ["--two-sided" if value else "--one-sided"]
    if name == "start":
        return [flag, ",".join(f"{g}={seen}:{accepted}" for g, (seen, accepted) in value.items())]
    if name == "checkpoints":
        return [word for point in value for word in ("--checkpoint", str(point))]
    return [flag, str(int(value)) if isinstance(value, bool) else str(value)]


def _print_page(written: dict[str, Any]) -> None:
    click.echo("")
    size = human_size(written["bytes"])
    print_facts([("page", f"{written['path']}, {size}"), ("its sha256", written["sha256"])])


# A database ---------------------------------------------------------------------------------


def _receipt(text: str, ctx: click.Context, param: click.Parameter) -> tuple[str, int, str]:
    """``"loans:40:9f86…"`` as stream, number of the entry and receipt."""
    found = re.fullmatch(r"(.+):(\d+):([0-9a-fA-F]{64})", text)
    if found is None:
        raise click.BadParameter(
            f"cannot read {text!r}: expected STREAM:SEQ:RECEIPT, the receipt being the 64 "
            "hexadecimal digits that came with entry SEQ",
            ctx,
            param,
        )
    return found[1], int(found[2]), found[3].lower()


def _audit_database(
    ctx: click.Context,
    address: str,
    names: tuple[str, ...],
    expect: list[tuple[str, int, str]],
    others: dict[str, Any],
    as_json: bool,
) -> None:
    if others:
        raise InvalidValueError(
            f"--db goes without {', '.join(others)}: a database has its own policies"
        )
    service = _service()
    expected: dict[str, dict[int, str]] = {}
    for stream, seq, receipt in expect:
        if expected.setdefault(stream, {}).setdefault(seq, receipt) != receipt:
            raise InvalidValueError(f"two receipts are expected of entry {seq} of {stream!r}")
    with (
        service.open_for_reading(address) as connection,
        progress_bar("Audit") as progress,
    ):
        found = service.audit_database(
            connection, service.Shelf(), names, expected=expected, progress=progress
        )
    if as_json:
        print_json(found.to_dict())
    else:
        _print_database(found, sum(map(len, expected.values())))
    ctx.exit(0 if found.holds else 1)


def _service() -> Any:
    """The module that does it; if something it needs is missing, an error that says so."""
    try:
        return importlib.import_module("fairshield.service.audit")
    except ImportError as error:
        raise MissingExtraError(
            f"fairshield audit --db needs {error.name}, which is not installed: "
            "pip install 'fairshield[service]'"
        ) from None


def _print_database(found: Any, expected: int) -> None:
    findings = found.all_findings
    decisions = sum(stream.decisions for stream in found.streams)
    windows = sum(stream.windows for stream in found.streams)
    verdict = (
        f"{number_of(len(findings), 'finding')} in {number_of(len(found.streams), 'stream')}"
        if findings
        else "every log replays, and every window that ended was fair"
        if found.streams
        else "nothing to check: the database has no streams"
    )
    print_facts(
        [
            ("verdict", verdict),
            ("decisions", f"{decisions:,}"),
            ("windows", f"{windows:,} ended, {sum(s.fair for s in found.streams):,} fair"),
            *([("receipts", _receipts(found, expected))] if expected else []),
        ]
    )
    if found.streams:
        click.echo()
        rows = [
            [
                printable(stream.stream),
                f"{stream.entries:,}",
                f"{stream.decisions:,}",
                f"{stream.windows:,}",
                f"{stream.fair:,}",
                f"{len(stream.findings):,}",
                stream.receipt or "",
            ]
            for stream in found.streams
        ]
        header = ["stream", "entries", "decisions", "windows", "fair", "findings", "last receipt"]
        print_table(header, rows)
    if findings:
        click.echo("\nFindings")
        for sentence in findings[:_SHOWN]:
            click.echo(f"- {printable(sentence)}")
    if len(findings) > _SHOWN:
        click.echo(f"... and {len(findings) - _SHOWN:,} more (--json lists all)")


def _receipts(found: Any, expected: int) -> str:
    matching = sum(stream.receipts for stream in found.streams)
    return f"{matching:,} of {expected:,} match the logs"


# A log --------------------------------------------------------------------------------------


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


def _print_report(found: _Found) -> None:
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


def _another_property(found: _Found) -> list[tuple[str, str]]:
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


def _derived_again(found: _Found) -> list[tuple[str, str]]:
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
