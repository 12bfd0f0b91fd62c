"""Recorded requests and decisions: CSV or JSON lines in, checked values out.

Every fault names its line, so that a person can find it in a file of a million.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Number
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from fairshield.counts import Group, group_name
from fairshield.errors import InvalidValueError, argument, check_kind, shown
from fairshield.groups import CROSS
from fairshield.tables import Table

Format = Literal["jsonl", "csv"]
Parsed = TypeVar("Parsed")
Flag = bool | int | str
"""A yes or no, however it is written; see :func:`as_flag`."""
Columns = Mapping[str, tuple[str, ...]]
"""Which columns of somebody else's table each of our fields is read from."""
_EXPORTED = frozenset({"created", "decision", "outcome", "override", "closed"})
"""What the entries of a service's log are called."""
YES = ("1", "true", "yes", "accept", "accepted")
NO = ("0", "false", "no", "reject", "rejected")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_TABLES = (".csv", ".tsv", ".tab")
"""How the names of CSV files end."""


class Record(NamedTuple):
    """One line of a log: its number, and its fields as written."""

    line: int
    fields: dict[str, Any]

    @classmethod
    def each(cls, given: Iterable[Record | Mapping[str, Any]]) -> Iterator[Record]:
        """Records as they are, and mappings of fields as lines counted from 1.

        >>> [record.line for record in Record.each([{"group": "a"}, {"group": "b"}])]
        [1, 2]
        """
        check_kind(given, Iterable, "records are a collection of them, or of mappings")
        for line, one in enumerate(given, start=1):
            if isinstance(one, Record):
                yield one
            else:
                check_kind(one, Mapping, "a record is a mapping with fields such as 'group'")
                yield cls(line, dict(one))

    def group(self, key: str = "group", *, empty: Group | None = None) -> Group:
        """The sensitive group; ``empty``, if given, where the field is there and empty."""
        if not self.missing(key):
            return self._read(key, group_name)
        if key in self.fields:
            if empty is not None:
                return empty
            raise InvalidValueError(
                f"line {self.line}: the {key} is empty: fill it in, or say what becomes of people "
                f"without one ({argument('unseen', 'follow')} or {argument('unseen', 'map:GROUP')})"
            )
        return self._parsed(key, group_name)

    def flag(self, key: str) -> bool:
        """A decision or outcome: 1/0, true/false, yes/no, accept/reject."""
        try:
            return self._parsed(key, as_flag)
        except InvalidValueError as error:
            if self.missing(key):
                raise
            raise InvalidValueError(
                f"{error}; say what your own words mean with {argument('yes_words')} and "
                f"{argument('no_words')}"
            ) from None

    def cost(self, key: str = "cost", default: float = 1.0) -> float:
        """The price of overruling; ``default`` where the record has none."""
        if self.missing(key):
            return default
        return self._parsed(key, as_cost)

    def proposing(self, threshold: float | None) -> Record:
        """The record with what its score proposes and at what cost, where it does not say so.

        Accepted is from the threshold on, at the price of the distance from it; without one from
        0.5 on, if the score is a probability.

        >>> Record(2, {"score": "655.5"}).proposing(640).fields
        {'score': '655.5', 'proposed': True, 'cost': 15.5}
        """
        if "proposed" in self.fields or "score" not in self.fields:
            return self
        score = self._parsed("score", as_score)
        if threshold is None and not 0.0 <= score <= 1.0:
            raise InvalidValueError(
                f"line {self.line}: the score {score:g} lies outside 0 to 1, so that 0.5 need not "
                f"be where acceptance begins: say from which score on with {argument('threshold')}"
            )
        limit = 0.5 if threshold is None else threshold
        found = {"proposed": score >= limit, "cost": abs(score - limit)}
        return self._replace(fields=self.fields | found | self._own("cost"))

    def _own(self, key: str) -> dict[str, Any]:
        return {key: self.fields[key]} if key in self.fields else {}

    def declared(self, groups: Iterable[Group], *, empty: Group | None = None) -> Record:
        """The same record, its group spelt as the one of ``groups`` that reads the same."""
        name = declared(self.group(empty=empty), groups)
        return self._replace(fields=self.fields | {"group": name})

    def missing(self, key: str) -> bool:
        """Whether the field is absent or empty."""
        return self.fields.get(key) in (None, "")

    def _parsed(self, key: str, parse: Callable[[Any], Parsed]) -> Parsed:
        if not self.missing(key):
            return self._read(key, parse)
        if key in self.fields:
            raise InvalidValueError(f"line {self.line}: {key!r} is empty: fill it in")
        # The names of its fields; what they hold is about a person.
        there = ", ".join(map(repr, self.fields)) or "none"
        score = f", or {argument('columns', {'score': 'COLUMN'})}" if key == "proposed" else ""
        raise InvalidValueError(
            f"line {self.line}: no {key!r}, the fields are {there}: say which is meant with "
            f"{argument('columns', {key: 'COLUMN'})}{score}"
        )

    def _read(self, key: str, parse: Callable[[Any], Parsed]) -> Parsed:
        """A field that is there, and not empty."""
        try:
            return parse(self.fields[key])
        except InvalidValueError as error:
            raise InvalidValueError(f"line {self.line}: {key}: {error}") from None


def format_of(path: str | Path) -> Format:
    """Which format a file's name promises; standard input counts as JSON lines."""
    return "csv" if str(path).lower().endswith(_TABLES) else "jsonl"


def read_records(lines: Iterable[str], format: Format) -> Iterator[Record]:
    """Records one at a time, as soon as their line is complete; their fields as written.

    :class:`fairshield.Reading` reads what is written otherwise.
    """
    if format == "jsonl":
        yield from _read_jsonl(lines)
    else:
        yield from (Record(line, fields) for line, fields in Table(lines))


def _read_jsonl(lines: Iterable[str]) -> Iterator[Record]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except json.JSONDecodeError as error:
            told = f"line {number}: not a JSON object ({error.msg} at column {error.colno})"
            hint = f": read a CSV with {argument('format', 'csv')}" if number == 1 else ""
            raise InvalidValueError(told + hint) from None
        except (ValueError, RecursionError) as error:  # more digits or nesting than Python takes
            raise InvalidValueError(f"line {number}: not a JSON object ({error})") from None
        if not isinstance(fields, dict):
            raise InvalidValueError(
                f"line {number}: expected a JSON object, got {type(fields).__name__}"
            )
        yield Record(number, fields)


def renamed(
    records: Iterable[Record], columns: Columns, *, keep: bool = False, optional: bool = False
) -> Iterator[Record]:
    """Records with our fields beside their own, read from the columns named.

    Several columns make one group: who is in it has these values in all of them.  With ``keep`` a
    record's own field is not replaced by another value; with ``optional`` columns that are not
    there are left out.

    >>> rows = [Record(2, {"sex": "f", "race": "x", "approved": "1"})]
    >>> columns = {"group": ("sex", "race"), "accepted": ("approved",)}
    >>> next(renamed(rows, columns)).fields["group"]
    'f × x'
    """
    if not columns:
        yield from records
        return
    for i, record in enumerate(records):
        if not i and optional:
            there = record.fields.keys()
            columns = {name: theirs for name, theirs in columns.items() if there >= set(theirs)}
        elif not i:
            _check_columns(record, columns)
        found = {name: _value(record, theirs) for name, theirs in columns.items()}
        for name, value in found.items() if keep else ():
            own = record.fields.get(name, value)
            if own != value:
                raise InvalidValueError(
                    f"line {record.line}: the record has a field {name!r} of its own ({own!r}), "
                    f"which {value!r} would overwrite: rename it"
                )
        yield record._replace(fields=record.fields | found)


def _check_columns(record: Record, columns: Columns) -> None:
    """Find out from the first record, whose fields stand for all of a CSV."""
    for name, theirs in columns.items():
        for column in theirs:
            if column not in record.fields:
                there = ", ".join(map(repr, record.fields)) or "none"
                raise InvalidValueError(
                    f"no column {column!r}, from which {name} was to be read: the columns are "
                    f"{there}"
                )


def _value(record: Record, columns: tuple[str, ...]) -> Any:
    values = [record.fields.get(column) for column in columns]
    if len(values) == 1:
        return values[0]
    if None in values or "" in values:
        return None
    for value in values:
        if CROSS in str(value):
            raise InvalidValueError(
                f"line {record.line}: the value {value!r} contains {CROSS!r}, which stands between "
                "the parts of a group's name: rename it"
            )
    return CROSS.join(map(str, values))


def decisions_of(records: Iterable[Record]) -> Iterator[Record]:
    """Decisions alone, with their outcomes, where the log is one that a service has exported.

    Such a log has an entry for whatever happened, the first of which says that its stream was
    ``created``.  A person's decision takes the place of the shield's.  Any other log is passed on.
    """
    entries = iter(records)
    first = next(entries, None)
    if first is None:
        return
    if first.fields.get("kind") != "created":
        yield first
        yield from entries
        return
    decided: dict[str, Record] = {}
    for entry in entries:
        kind, n = entry.fields.get("kind"), str(entry.fields.get("n"))
        if kind not in _EXPORTED:
            raise InvalidValueError(f"line {entry.line}: no entry of a log is of kind {kind!r}")
        if kind == "decision":
            decided[n] = entry
        elif kind in ("outcome", "override"):
            field = "outcome" if kind == "outcome" else "accepted"
            if n not in decided:
                raise InvalidValueError(f"line {entry.line}: decision {n} is not in the log")
            said = decided[n].fields | {field: entry.fields.get(field)}
            decided[n] = decided[n]._replace(fields=said)
    yield from decided.values()


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
    number: Any = value if isinstance(value, Number) else None
    if word in YES or number == 1:
        return True
    if word in NO or number == 0:
        return False
    raise InvalidValueError(f"expected 1/0, true/false, yes/no or accept/reject, got {value!r}")


def read_number(value: Any) -> float:
    """A number, or not a number for whatever is none.

    Text is read as programs write it: Python would also take the digits of ``1_000``.

    >>> read_number("1e-2"), read_number(2), read_number("1_000"), read_number("0,35")
    (0.01, 2.0, nan, nan)
    """
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def as_cost(value: Any) -> float:
    """A finite price of at least 0."""
    cost = read_number(value)
    if not 0.0 <= cost < math.inf:
        raise InvalidValueError(f"a cost must be a finite number of at least 0, got {shown(value)}")
    return cost


def as_score(value: Any) -> float:
    """A finite number."""
    score = read_number(value)
    if not math.isfinite(score):
        raise InvalidValueError(f"expected a number, got {value!r}")
    return score


def as_threshold(value: Any) -> float:
    """From which score on to accept: a finite number."""
    limit = as_number(value, "threshold")
    if not math.isfinite(limit):
        raise InvalidValueError(f"threshold must be finite, got {value!r}")
    return limit


def as_number(value: Any, name: str) -> float:
    """``value`` as a floating-point number."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValueError(f"{name} must be a number, got {shown(value)}") from None
