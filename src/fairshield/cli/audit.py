"""``fairshield audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

from fairshield.analysis.report import AuditReport
from fairshield.base.errors import InvalidValueError
from fairshield.base.groups import Unseen
from fairshield.cli.audit_database import audit_all, receipt_of
from fairshield.cli.audit_log import AuditTask, audit_one, data_of
from fairshield.cli.audit_report import print_report
from fairshield.cli.extras import needed_by
from fairshield.cli.options import (
    checkpoint_option,
    examples,
    given,
    horizon_option,
    json_option,
    names_callback,
    period_option,
    property_options,
    start_option,
    unseen_option,
)
from fairshield.cli.output import INCONCLUSIVE, human_size, print_facts, print_json
from fairshield.cli.own import imports_of
from fairshield.cli.reading import given_reading, reading_argument
from fairshield.records.dates import By
from fairshield.records.reading import Reading


@click.command(
    epilog=examples(
        "fairshield audit decisions.jsonl --policy loans.shield",
        "fairshield audit decisions.csv --property disparate-impact --bound 0.8 --horizon 100",
        "fairshield audit decisions.csv --property demographic-parity --bound 0.1 --by quarter \\",
        "    --column date=decided_on",
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
    callback=lambda ctx, param, value: [receipt_of(text, ctx, param) for text in value],
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
@click.option(
    "--by",
    type=click.Choice(get_args(By)),
    help="Instead of --horizon: every calendar period is a window, by the field date.",
)
@click.option(
    "--date-format",
    metavar="FORMAT",
    help="How dates are written, as in %d.%m.%Y.  [default: ISO, 2025-12-31]",
)
@click.option(
    "--timezone",
    metavar="ZONE",
    help="Where timestamps with an offset are dated, as in Europe/Vienna.  [default: as written]",
)
@start_option
@checkpoint_option
@click.option(
    "--names", metavar="A,B", callback=names_callback, help="The groups, first one first."
)
@unseen_option
@reading_argument
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
    unseen: Unseen,
    reading: Reading,
    page: str | None,
    date: str | None,
    as_json: bool,
    **words: Any,
) -> None:
    """Check a log of decisions again.

    Every window of it; exit 1 if the property was violated, or, with --policy, if a decision is
    not the policy's; exit 3 if nothing can be said, because no window was bound, nothing had to
    hold yet, there are no decisions, or the outcomes in the log cannot tell. LOG (- for standard
    input) has the fields group, accepted and, if the property counts by outcome, outcome; proposed
    and cost tell who was overruled. It is checked against the policy that made it, or against any
    property; without a horizon the log is one window. In windows counters begin again; with
    --period, and for a periodic policy, they go on. With --by, every month, quarter or year is a
    window, in whatever order the log is. A log that a service has exported is read as it is.

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
        others = given({"policy": policy, "names": names}) | chosen | given_reading(reading)
        if page is not None:
            raise InvalidValueError(
                "--html is for one log, and --db for a whole database: export a stream "
                "(GET /v1/streams/NAME/log.jsonl) and audit that file with --policy and --html"
            )
        audit_all(ctx, db, log, expect, others, as_json)
        return
    if len(log) != 1 or expect:
        raise InvalidValueError(
            "say what to audit: one LOG (- for standard input), or --db DATABASE, with which go "
            "names of streams and --expect"
        )
    if date is not None and page is None:
        raise InvalidValueError("--date goes with --html: it is printed on the page")
    task = AuditTask(log[0], policy, names, reading, unseen, chosen, date or "", imports_of(ctx))
    if page is None:
        found, written = audit_one(task), None
    else:
        with needed_by("audit --html", extra="cli"):
            from fairshield.cli.audit_page import audit_with_page
        found, written = audit_with_page(task, page)
    if as_json:
        print_json(data_of(found) | ({} if written is None else {"page": written}))
    else:
        print_report(found)
        if written is not None:
            size = human_size(written["bytes"])
            click.echo("")
            print_facts([("page", f"{written['path']}, {size}"), ("its sha256", written["sha256"])])
    ctx.exit(_status(found.report))


def _status(report: AuditReport) -> int:
    if not report.holds or report.difference is not None:
        return 1
    return 0 if report else INCONCLUSIVE
