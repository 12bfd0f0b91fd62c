"""``fairshield run``."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import click

from fairshield.base.errors import InvalidValueError
from fairshield.base.groups import Unseen
from fairshield.cli.options import examples, policy_argument, unseen_option
from fairshield.cli.output import reading_bar
from fairshield.cli.reading import reading_argument
from fairshield.cli.stream import (
    ANSWER_FIELDS,
    Answer,
    Lines,
    RecordRun,
    blamed_on,
    decide_stream,
    keeping_fields,
    read_stream,
    telling_price,
)
from fairshield.periodic import load_policy
from fairshield.records import Format, Record
from fairshield.records.lines import decoded
from fairshield.records.reading import Reading


@click.command(
    epilog=examples(
        "fairshield run loans.shield < requests.jsonl > decisions.jsonl",
        "fairshield run loans.shield requests.csv -o decisions.csv --resume decisions.csv",
    )
)
@policy_argument
@click.argument("file", default="-")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Default: standard output.",
)
@click.option(
    "--resume",
    metavar="DECISIONS",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Earlier output of an interrupted run; the input is the whole stream again.",
)
@click.option("--explain", is_flag=True, help="Explain each overruled decision.")
@unseen_option
@reading_argument
def run(
    policy: Path,
    file: str,
    output: Path | None,
    resume: Path | None,
    explain: bool,
    unseen: Unseen,
    reading: Reading,
) -> None:
    """Decide a stream of requests.

    One line each, from FILE or standard input. A request has the fields group, proposed, cost
    (default 1) and, if the property counts by outcome, outcome; a score may stand for proposed and
    cost, see --threshold, which are then written, too. Its line is written back with window,
    position, accepted, overruled and reason, none of which may be a field of its own, as soon as
    it is decided. A new window begins after every horizon decisions; a periodic policy
    goes on from period to period, and window counts the periods. A field that --column reads from
    elsewhere is written under its own name, too, in words and numbers that later commands read
    without options; a CSV is written in UTF-8, with commas.

    An interrupted run is continued by the same command with --resume: what has been decided is
    checked and skipped. With -o naming the same file the output goes on where it stopped.
    """
    windows = RecordRun(load_policy(policy), unseen=unseen)
    named = next((path for path in (file, resume, output) if path not in ("-", None)), "-")
    chosen = reading.format_of(named)
    earlier = _earlier(resume, output, chosen)
    with (
        reading_bar("deciding", file, reading, printing=output is None) as source,
        _destination(output, earlier) as target,
    ):
        lines, write = Lines(source), _Writer(chosen, target, earlier)
        log = () if earlier is None else earlier.records()
        added = (*ANSWER_FIELDS, "explanation") if explain else ANSWER_FIELDS
        asked = read_stream(lines, replace(reading, format=chosen))
        requests = telling_price(keeping_fields(asked, added), windows.policy, file)
        for answer in decide_stream(windows, requests, log, file):
            write(_explained(windows, answer) if explain else answer.fields())
        windows.warn_of_outcomes()
    if lines.cut and chosen == "csv":
        click.echo("Note: the last line of the input has no end; decided as it stands.", err=True)


def _explained(windows: RecordRun, answer: Answer) -> dict[str, Any]:
    why = str(windows.explain(answer)) if answer.decision.overruled else None
    return answer.fields() | {"explanation": why}


# Input and output ---------------------------------------------------------------------------


_OURS: dict[Format, dict[str, Any]] = {"csv": {"separator": ","}, "jsonl": {}}
"""How the output of a run is written."""


class _Earlier:
    """_Earlier reads the whole lines of an interrupted run's output, and drops a torn one."""

    def __init__(self, path: Path, format: Format, continued: bool) -> None:
        self._path, self._format, self.continued = path, format, continued
        self._whole = self._length_of_whole_lines()
        self._torn = path.stat().st_size > self._whole
        if self._torn:
            click.echo(f"Note: {path} ends in an unfinished line; it is decided again.", err=True)

    def _length_of_whole_lines(self) -> int:
        """Bytes up to the last line end that is not inside a quoted CSV field."""
        end, at, quoted = 0, 0, False
        with self._path.open("rb") as file:
            for line in file:
                at += len(line)
                quoted ^= self._format == "csv" and line.count(b'"') % 2 == 1
                end = at if line.endswith(b"\n") and not quoted else end
        return end

    def _lines(self) -> Iterator[str]:
        with self._path.open("rb") as file:
            yield from decoded(iter(lambda: file.readline(self._whole - file.tell()), b""))

    def records(self) -> Iterator[Record]:
        """The records of earlier decisions."""
        if self._whole:
            with blamed_on("the earlier output"):
                yield from Reading(format=self._format, **_OURS[self._format]).read(self._lines())

    def header(self) -> list[str] | None:
        """The columns of a CSV; ``None`` if it has no header yet."""
        is_csv = self._format == "csv"
        return next(csv.reader(self._lines()), None) if is_csv and self._whole else None

    def drop_torn_line(self) -> None:
        """Cut off an unfinished last line, if the output continues in the same file."""
        if self.continued and self._torn:
            os.truncate(self._path, self._whole)


def _earlier(resume: Path | None, output: Path | None, format: Format) -> _Earlier | None:
    if resume is None or (output == resume and not resume.exists()):
        return None
    return _Earlier(resume, format, _is_same(output, resume))


def _is_same(output: Path | None, resume: Path) -> bool:
    """Whether the output is the file that is resumed, by name or by redirection."""
    if output is not None:
        return output.exists() and output.samefile(resume)
    try:
        return os.path.samestat(os.fstat(sys.stdout.fileno()), resume.stat())
    except io.UnsupportedOperation:  # standard output is not a file
        return False


@contextlib.contextmanager
def _destination(output: Path | None, earlier: _Earlier | None) -> Iterator[BinaryIO]:
    """The file to which answers are written; refuses a file that already has content."""
    if output is None:
        yield sys.stdout.buffer
        return
    continued = earlier is not None and earlier.continued
    if not continued and output.exists() and output.stat().st_size:
        raise InvalidValueError(
            f"{output} already holds something: continue it with --resume {output}, remove it, or "
            "choose another name"
        )
    new = not output.exists()
    with output.open("ab") as target:
        try:
            yield target
        except BaseException:
            if new and not target.tell():
                output.unlink(missing_ok=True)
            raise


class _Writer:
    """_Writer writes and flushes one line for every decision."""

    def __init__(self, format: Format, target: BinaryIO, earlier: _Earlier | None) -> None:
        self._csv, self._target, self._earlier = format == "csv", target, earlier
        self._header = None if earlier is None else earlier.header()

    def __call__(self, fields: dict[str, Any]) -> None:
        text = self._row(fields) if self._csv else json.dumps(fields, ensure_ascii=False) + "\n"
        if self._earlier is not None:
            # Only now: the comparison with the requests has shown that the file is of this run.
            self._earlier.drop_torn_line()
            self._earlier = None
        self._target.write(text.encode(errors="backslashreplace"))
        self._target.flush()

    def _row(self, fields: dict[str, Any]) -> str:
        columns, values = list(fields), [_cell(value) for value in fields.values()]
        rows = [values]
        if self._header is None:
            self._header = columns
            rows = [columns, values]
        elif self._header != columns:
            raise InvalidValueError(
                f"the earlier output has the columns {', '.join(self._header)}, this run would "
                f"write {', '.join(columns)}: resume with the same options"
            )
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        return text.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
