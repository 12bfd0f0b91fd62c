"""Recorded requests and decisions: CSV or JSON lines in, checked values out.

Every fault names its line, so that a person can find it in a file of a million.
"""

from __future__ import annotations

import contextlib
import csv
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from fairshield.counts import Group, group_name
from fairshield.errors import InvalidValueError

Format = Literal["jsonl", "csv"]
Parsed = TypeVar("Parsed")
Flag = bool | int | str
"""A yes or no, however it is written; see :func:`as_flag`."""
_TRUE = frozenset({"1", "true", "yes", "accept", "accepted"})
_FALSE = frozenset({"0", "false", "no", "reject", "rejected"})


class Record(NamedTuple):
    """One line of a log: its number, and its fields as written."""

    line: int
    fields: dict[str, Any]

    def group(self, key: str = "group") -> Group:
        """The sensitive group."""
        return self._parsed(key, group_name)

    def flag(self, key: str) -> bool:
        """A decision or outcome: 1/0, true/false, yes/no, accept/reject."""
        return self._parsed(key, as_flag)

    def cost(self, key: str = "cost", default: float = 1.0) -> float:
        """The price of overruling; ``default`` where the record has none."""
        if self.missing(key):
            return default
        return self._parsed(key, as_cost)

    def declared(self, groups: Iterable[Group]) -> Record:
        """The same record, its group spelt as the one of ``groups`` that reads the same."""
        return self._replace(fields=self.fields | {"group": declared(self.group(), groups)})

    def missing(self, key: str) -> bool:
        """Whether the field is absent or empty."""
        return self.fields.get(key) in (None, "")

    def _parsed(self, key: str, parse: Callable[[Any], Parsed]) -> Parsed:
        if self.missing(key):
            raise InvalidValueError(f"line {self.line}: no {key!r} in {self.fields}")
        try:
            return parse(self.fields[key])
        except InvalidValueError as error:
            raise InvalidValueError(f"line {self.line}: {key}: {error}") from None


@contextlib.contextmanager
def open_text(path: str | Path) -> Iterator[Iterator[str]]:
    """Lines of a UTF-8 file, with or without a byte-order mark."""
    with Path(path).open("rb") as lines:
        yield decoded(lines)


@contextlib.contextmanager
def open_lines(path: str | Path) -> Iterator[Iterator[str]]:
    """Lines of a UTF-8 file, or of standard input for ``-``."""
    if str(path) == "-":
        if sys.stdin is None:
            raise InvalidValueError("nothing to read: standard input is closed")
        yield decoded(sys.stdin.buffer)
        return
    with open_text(path) as lines:
        yield lines


def decoded(lines: Iterable[bytes]) -> Iterator[str]:
    """Lines as text; a byte-order mark is dropped, a line that is not UTF-8 is named."""
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InvalidValueError(
                f"line {number}: not UTF-8 text ({error.reason} at byte {error.start}): save the "
                "file as UTF-8"
            ) from None


def format_of(path: str | Path) -> Format:
    """Which format a file's name promises; standard input counts as JSON lines."""
    return "csv" if str(path).lower().endswith(".csv") else "jsonl"


def read_records(lines: Iterable[str], format: Format) -> Iterator[Record]:
    """Records one at a time, as soon as their line is complete."""
    return _read_jsonl(lines) if format == "jsonl" else _read_csv(lines)


def _read_jsonl(lines: Iterable[str]) -> Iterator[Record]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidValueError(
                f"line {number}: not a JSON object ({error.msg} at column {error.colno}): "
                f"{line.strip()[:80]!r}"
            ) from None
        except (ValueError, RecursionError) as error:  # more digits or nesting than Python takes
            raise InvalidValueError(f"line {number}: not a JSON object ({error})") from None
        if not isinstance(fields, dict):
            raise InvalidValueError(f"line {number}: expected a JSON object, got {fields!r}")
        yield Record(number, fields)


def _read_csv(lines: Iterable[str]) -> Iterator[Record]:
    reader = csv.reader(lines)
    try:
        header = next(reader, None)
        if header is None:
            raise InvalidValueError(
                "the CSV is empty: expected a header such as 'group,proposed,cost'"
            )
        names = [name.strip() for name in header]
        for row in reader:
            if not row:
                continue
            if len(row) != len(names):
                raise InvalidValueError(
                    f"line {reader.line_num}: {len(row)} fields where the header has {len(names)}"
                )
            yield Record(reader.line_num, dict(zip(names, row, strict=True)))
    except csv.Error as error:
        raise InvalidValueError(f"line {reader.line_num}: not CSV: {error}") from None


def declared(name: Group, groups: Iterable[Group]) -> Group:
    """The one of ``groups`` that reads like ``name``; ``name`` itself if none does.

    Options, CSV files and keys of TOML are text, whatever a group is called elsewhere.

    >>> declared("1", (0, 1)), declared(1, ("0", "1")), declared("x", (0, 1))
    (1, '1', 'x')
    """
    known = tuple(groups)
    if name in known:
        return name
    return next((group for group in known if str(group) == str(name)), name)


def as_flag(value: Any) -> bool:
    """A yes or no, however it was written."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE or value in (1, 1.0):
        return True
    if word in _FALSE or value in (0, 0.0):
        return False
    raise InvalidValueError(f"expected 1/0, true/false, yes/no or accept/reject, got {value!r}")


def as_cost(value: Any) -> float:
    """A finite price of at least 0."""
    try:
        cost = float(value)
    except (TypeError, ValueError):
        cost = math.nan
    if not 0.0 <= cost < math.inf:
        raise InvalidValueError(f"a cost must be a finite number of at least 0, got {value!r}")
    return cost
