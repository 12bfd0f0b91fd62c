"""Functions that print tables, bars and sizes for people, and JSON for programs."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from fairshield.base.errors import InvalidValueError
from fairshield.base.types import Progress
from fairshield.base.words import human_size as human_size
from fairshield.records.lines import Trace, open_lines
from fairshield.records.reading import Reading

INCONCLUSIVE = 3
"""Exit status of a command that could not conclude anything, as nothing bound."""
_UNWRAPPED = 240
_LINES_PER_REPORT = 1000
_PATIENCE = 1.0
"""Seconds of work before a progress bar appears."""


def print_json(data: Any) -> None:
    """One line of JSON; numbers that JSON lacks become null."""
    click.echo(json.dumps(finite(data), ensure_ascii=False, allow_nan=False))


def finite(data: Any) -> Any:
    """``data`` with ``None`` for infinities and not-a-numbers."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [finite(value) for value in data]
    return data


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Names and values in two columns."""
    _print_columns([(name, value) for name, value in facts], ("left", "left"))


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table whose first column is text and whose others are numbers."""
    _print_columns(rows, ["left"] + ["right"] * (len(header) - 1), header)


def _print_columns(
    rows: Iterable[Sequence[str]], justify: Sequence[Any], header: Sequence[str] | None = None
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=header is not None)
    for i, side in enumerate(justify):
        table.add_column(
            Text(printable(header[i]) if header else ""), justify=side, overflow="fold"
        )
    for row in rows:
        # Group names are the user's: they may look like markup, or move the cursor.
        table.add_row(*(Text(printable(cell)) for cell in row))
    # Lines wrap on a terminal only.
    console = Console(width=None if sys.stdout.isatty() else _UNWRAPPED)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def check_target(target: Path) -> None:
    """Raise before the work if its result could not be written after it."""
    folder = target.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidValueError(
            f"cannot write {target}: {folder} is not a folder one may write to; create it first"
        )


def number_of(n: int, noun: str) -> str:
    """A number and its noun, in the plural where it is not 1.

    >>> number_of(1, "run"), number_of(2000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def printable(text: object) -> str:
    r"""Text from elsewhere, without what would move a terminal's cursor or change its colours.

    Characters that change the direction of writing are replaced as well, because they change how
    the text reads.

    >>> printable("clear \x1b[2J the screen")
    'clear �[2J the screen'
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def positions(first: int, last: int) -> str:
    """A range of positions as people count them."""
    return str(last) if last == first + 1 else f"{first + 1} to {last}"


@contextlib.contextmanager
def progress_bar(label: str) -> Iterator[Callable[..., None]]:
    """A callback for the share of work done; shows a bar on a terminal if it takes a while."""
    if not sys.stderr.isatty():
        yield lambda share, label=None: None
        return
    bar = _LateBar(label)
    try:
        yield bar.update
    finally:
        bar.close()


@contextlib.contextmanager
def reading_bar(
    label: str,
    path: str | Path,
    reading: Reading,
    trace: Trace | None = None,
    *,
    printing: bool = False,
) -> Iterator[Iterator[str]]:
    """The lines of a file or of standard input; a bar says how much of a file was read.

    With ``printing`` the command prints while it reads: on a terminal no bar is needed then.
    """
    is_file = str(path) != "-" and Path(path).is_file()
    if not is_file or not sys.stderr.isatty() or (printing and sys.stdout.isatty()):
        with open_lines(path, trace, reading.encoding) as lines:
            yield lines
        return
    size = max(Path(path).stat().st_size, 1)
    with progress_bar(label) as progress, open_lines(path, trace, reading.encoding) as lines:
        yield _measured(lines, size, progress)


def _measured(lines: Iterator[str], size: int, progress: Progress) -> Iterator[str]:
    read = 0
    for number, line in enumerate(lines):
        yield line
        read += len(line)
        if number % _LINES_PER_REPORT == 0:
            progress(min(read / size, 1.0))


class _LateBar:
    """_LateBar is a progress bar that appears after :data:`_PATIENCE`, also during compilation."""

    def __init__(self, label: str) -> None:
        self._label, self._share = label, 0.0
        self._bar: Any = None
        self._closed = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(_PATIENCE, self._show)
        self._timer.daemon = True
        self._timer.start()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TimeElapsedColumn

        with self._lock:
            if self._closed:
                return
            columns = ("{task.description}", BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.add_task(self._label, total=1.0, completed=self._share)
            self._bar.start()

    def update(self, share: float, label: str | None = None) -> None:
        with self._lock:
            self._share, self._label = share, label or self._label
            if self._bar is not None:
                task = self._bar.task_ids[0]
                self._bar.update(task, completed=share, description=self._label)

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._bar is not None:
                self._bar.stop()
