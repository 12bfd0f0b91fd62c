"""``fairshield audit --db`` audits all logs in the database of a service."""

from __future__ import annotations

import importlib
import re
from typing import Any

import click

from fairshield.base.errors import InvalidValueError, MissingExtraError
from fairshield.cli.output import (
    INCONCLUSIVE,
    number_of,
    print_facts,
    print_json,
    print_table,
    printable,
    progress_bar,
)

_VERDICTS = ("fair", "unfair", "exempt")
_SHOWN = 10
"""Findings listed for people; ``--json`` has all."""


def receipt_of(text: str, ctx: click.Context, param: click.Parameter) -> tuple[str, int, str]:
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


def audit_all(
    ctx: click.Context,
    address: str,
    names: tuple[str, ...],
    expect: list[tuple[str, int, str]],
    others: dict[str, Any],
    as_json: bool,
) -> None:
    """Replay the streams of a database, print what was found, and exit."""
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
            connection, service.LoadedPolicies(), names, expected=expected, progress=progress
        )
    if as_json:
        print_json(found.to_dict())
    else:
        _print_database(found, sum(map(len, expected.values())))
    doubts = any(stream.doubt for stream in found.streams)
    unclear = doubts or found.verdict == "exempt"
    ctx.exit(1 if not found.holds else INCONCLUSIVE if unclear else 0)


def _service() -> Any:
    """The module of the audit; raises an error that names the extra if something is missing."""
    try:
        return importlib.import_module("fairshield.service.history.audit")
    except ImportError as error:
        raise MissingExtraError(
            f"fairshield audit --db needs {error.name}, which is not installed: "
            "pip install 'fairshield[service]'"
        ) from None


def _print_database(found: Any, expected: int) -> None:
    findings = found.all_findings
    decisions = sum(stream.decisions for stream in found.streams)
    windows = sum(stream.windows for stream in found.streams)
    print_facts(
        [
            ("verdict", _verdict(found)),
            ("decisions", f"{decisions:,}"),
            ("windows", f"{windows:,} ended: {_judged(found)}"),
            *([("receipts", _receipts(found, expected))] if expected else []),
            *(("outcomes", f"{s.stream}: {s.doubt}") for s in found.streams if s.doubt),
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
                f"{stream.exempt:,}",
                f"{len(stream.findings):,}",
                stream.receipt or "",
            ]
            for stream in found.streams
        ]
        header = ["stream", "entries", "decisions", "windows", "fair", "exempt", "findings"]
        print_table([*header, "last receipt"], rows)
    if findings:
        click.echo("\nFindings")
        for sentence in findings[:_SHOWN]:
            click.echo(f"- {printable(sentence)}")
    if len(findings) > _SHOWN:
        click.echo(f"... and {len(findings) - _SHOWN:,} more (--json lists all)")


def _verdict(found: Any) -> str:
    findings, streams = found.all_findings, found.streams
    if findings:
        return f"{number_of(len(findings), 'finding')} in {number_of(len(streams), 'stream')}"
    if not streams:
        return "INCONCLUSIVE: the database has no streams"
    if any(stream.doubt for stream in streams):
        return "INCONCLUSIVE: every log replays, but not all outcomes can tell"
    return _fair(streams) if found.verdict == "fair" else _exempt(streams)


def _fair(streams: Any) -> str:
    """The line for streams in which the property bound and always held."""
    if any(stream.fair for stream in streams):
        exempt = any(stream.exempt for stream in streams)
        which = "that the property bound" if exempt else "that ended"
        return f"every log replays, and every window {which} was fair"
    which = "window that it bound" if any(stream.windows for stream in streams) else "window"
    return (
        "every log replays, and the property held at every checkpoint so far; "
        f"no {which} has ended yet"
    )


def _exempt(streams: Any) -> str:
    """The line for streams in which the property bound nothing."""
    if any(stream.windows for stream in streams):
        return "INCONCLUSIVE: every log replays; exempt: the property bound nothing in any window"
    if any(stream.unfinished for stream in streams):
        return (
            "INCONCLUSIVE: every log replays; exempt: the property bound nothing at the "
            "checkpoints so far"
        )
    return "INCONCLUSIVE: every log replays, and no window has ended yet"


def _judged(found: Any) -> str:
    totals = [(name, sum(getattr(s, name) for s in found.streams)) for name in _VERDICTS]
    return ", ".join(f"{n:,} {name}" for name, n in totals)


def _receipts(found: Any, expected: int) -> str:
    matching = sum(stream.receipts for stream in found.streams)
    return f"{matching:,} of {expected:,} match the logs"
