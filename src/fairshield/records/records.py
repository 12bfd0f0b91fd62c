"""Recorded requests and decisions, read from CSV or JSON lines as checked values.

Every error names the number of its line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from fairshield.base.counts import Group, group_name
from fairshield.base.errors import InvalidValueError, argument, check_kind
from fairshield.base.intersections import CROSS
from fairshield.base.renamed import warn_renamed
from fairshield.records.scores import ScoreRule
from fairshield.records.tables import Table
from fairshield.records.values import as_cost, as_flag, as_score

Format = Literal["jsonl", "csv"]
Parsed = TypeVar("Parsed")
Columns = Mapping[str, tuple[str, ...]]
"""Which columns of somebody else's table each of our fields is read from."""
_EXPORTED = frozenset({"created", "decision", "outcome", "override", "closed"})
"""What the entries of a service's log are called."""
_TABLES = (".csv", ".tsv", ".tab")
"""How the names of CSV files end."""


class Record(NamedTuple):
    """Record is one line of a log: its number, and its fields as written."""

    line: int
    fields: dict[str, Any]

    @classmethod
    def each(cls, given: Iterable[Record | Mapping[str, Any]]) -> Iterator[Record]:
        """Yield records unchanged, and mappings of fields as records whose lines count from 1.

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
        """The sensitive group; ``empty``, if given, where the field exists and has no value."""
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

    def proposing(self, rule: ScoreRule | float | None) -> Record:
        """The record, with ``proposed`` and ``cost`` of its score where it has none of its own.

        A threshold alone, instead of a rule, is deprecated.

        >>> Record(2, {"score": "655.5"}).proposing(ScoreRule(threshold=640)).fields
        {'score': '655.5', 'proposed': True, 'cost': 15.5}
        """
        if "proposed" in self.fields or "score" not in self.fields:
            return self
        score = self._parsed("score", as_score)
        if not isinstance(rule, ScoreRule):
            warn_renamed(f"Record.proposing({rule})", f"proposing(ScoreRule(threshold={rule}))")
            rule = ScoreRule(threshold=rule)
        try:
            proposed, cost = rule.one(score)
        except InvalidValueError as error:
            raise InvalidValueError(f"line {self.line}: {error}") from None
        return self.filled(proposed=proposed, cost=cost)

    def filled(self, **values: Any) -> Record:
        """The record with these values of fields that are absent or empty."""
        found = {key: value for key, value in values.items() if self.missing(key)}
        return self._replace(fields=self.fields | found)

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
        # Only names of fields are shown: their values are personal data.
        there = ", ".join(map(repr, self.fields)) or "none"
        score = f", or {argument('columns', {'score': 'COLUMN'})}" if key == "proposed" else ""
        raise InvalidValueError(
            f"line {self.line}: no {key!r}, the fields are {there}: say which is meant with "
            f"{argument('columns', {key: 'COLUMN'})}{score}"
        )

    def _read(self, key: str, parse: Callable[[Any], Parsed]) -> Parsed:
        """The value of a field that exists and is not empty."""
        try:
            return parse(self.fields[key])
        except InvalidValueError as error:
            raise InvalidValueError(f"line {self.line}: {key}: {error}") from None


def format_of(path: str | Path) -> Format:
    """The format that a file's name ends with; standard input counts as JSON lines."""
    return "csv" if str(path).lower().endswith(_TABLES) else "jsonl"


def read_records(lines: Iterable[str], format: Format) -> Iterator[Record]:
    """Yield records as soon as their line is complete, with their fields as written.

    :class:`fairshield.Reading` reads records with other columns, words and numbers.
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
        except (ValueError, RecursionError) as error:  # more digits or nesting than Python accepts
            raise InvalidValueError(f"line {number}: not a JSON object ({error})") from None
        if not isinstance(fields, dict):
            raise InvalidValueError(
                f"line {number}: expected a JSON object, got {type(fields).__name__}"
            )
        yield Record(number, fields)


def renamed(
    records: Iterable[Record], columns: Columns, *, keep: bool = False, optional: bool = False
) -> Iterator[Record]:
    """Yield records with the library's fields, read from the columns named, beside their own.

    Several columns make one intersectional group: its members have the same values in all of them.
    With ``keep`` a record's own field is not replaced by another value; with ``optional`` columns
    that do not exist are left out.

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
    """Refuse columns that the first record does not have; all records of a CSV have the same."""
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
    """Yield the decisions of a log that a service has exported, with their outcomes.

    Such a log has an entry for every event; its first entry says that the stream was ``created``.
    A person's override replaces the shield's decision.  Records of any other log pass unchanged.
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

    Options, CSV files and keys of TOML are text, also where a policy's groups are numbers.

    >>> declared("1", (0, 1)), declared(1, ("0", "1")), declared("x", (0, 1))
    (1, '1', 'x')
    """
    known = tuple(groups)
    if name in known:
        return name
    return next((group for group in known if str(group) == str(name)), name)
