"""Reading: how a user's records are written, and the one function that reads all of them.

A record that was read has the library's fields, with values such as ``True`` and ``0.35``, beside
its own fields as they were written.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from fairshield.base.errors import InvalidValueError, argument
from fairshield.records import (
    NO,
    YES,
    Columns,
    Format,
    Record,
    ScoreRule,
    as_threshold,
    decisions_of,
    format_of,
    read_number,
    read_records,
    renamed,
)
from fairshield.records.lines import Trace, check_encoding, open_lines
from fairshield.records.tables import Table, separator_of, tidy

FLAGS = ("proposed", "accepted", "outcome")
"""Fields that say yes or no, in words that may be the user's own."""
NUMBERS = ("cost", "score")
FIELDS = (
    "group", *FLAGS, *NUMBERS, "overruled", "reason", "id", "date", "time",
)  # fmt: skip
"""Fields that may be read from a column of another name."""
_TIDY = ("group", *FLAGS, *NUMBERS)
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
"""What may be a number of thousands as well as one with three decimals."""
_GROUPED = re.compile(r"\d[\s'\N{RIGHT SINGLE QUOTATION MARK}_]\d")
"""Digits in groups, parted by neither a point nor a comma."""
Names = str | Sequence[str]
"""One name, or several."""
OwnWords = Names | Mapping[str, Names]
"""Words by field, under ``""`` those of all fields, which may also be given alone."""


class _Words(NamedTuple):
    """_Words holds the words of one field that mean yes, and those that mean no."""

    yes: tuple[str, ...]
    no: tuple[str, ...]

    def read(self, value: Any) -> bool:
        whole = isinstance(value, float) and value.is_integer()
        word = tidy(str(int(value) if whole else value)).casefold()
        if word in self.yes or word in self.no:
            return word in self.yes
        raise InvalidValueError(
            f"{value!r} means neither yes ({', '.join(self.yes)}) nor no ({', '.join(self.no)}): "
            f"say which with {argument('yes_words')} or {argument('no_words')}"
        )


@dataclass(frozen=True)
class Reading:
    r"""Reading says how records are written, and reads them.

    Attributes
    ----------
    columns
        By field (:data:`FIELDS`), the column it is read from; of a group, also several columns.
    format
        ``"csv"`` or ``"jsonl"``; default: what the name of the file promises.
    separator
        Of the columns of a CSV: one sign, or ``comma``, ``semicolon``, ``tab`` or ``bar``;
        default: the one in the header.
    decimal
        ``"."`` or ``","``, before the decimals of a number.  Default: a point in JSON and where
        commas separate columns; elsewhere either, as long as a number can be read in one way only.
    encoding
        Of the bytes; default: UTF-8, or UTF-16 that says so.
    yes_words, no_words
        The words of ``proposed``, ``accepted`` and ``outcome``, by field, or under ``""`` of all
        three; upper and lower case are the same.  They take the place of ``1, true, yes, accept,
        accepted`` and of ``0, false, no, reject, rejected``.
    threshold
        Records with a ``score`` and without ``proposed`` propose to accept from this score on, at
        a cost, unless they have one, of the distance of the score from it.

    Examples
    --------
    >>> lines = ["sex;decision;price\n", "f;genehmigt;0,35\n"]
    >>> reading = Reading(
    ...     format="csv",
    ...     columns={"group": "sex", "accepted": "decision", "cost": "price"},
    ...     yes_words={"accepted": "genehmigt"},
    ...     no_words={"accepted": "abgelehnt"},
    ... )
    >>> next(reading.read(lines)).fields
    {'sex': 'f', 'decision': 'genehmigt', 'price': '0,35', 'group': 'f', 'accepted': True, 'cost': 0.35}
    """  # noqa: E501  (what is printed is one line)

    columns: Mapping[str, Names] = field(default_factory=dict)
    format: Format | None = None
    separator: str | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    yes_words: OwnWords = field(default_factory=dict)
    no_words: OwnWords = field(default_factory=dict)
    threshold: float | None = None

    def __post_init__(self) -> None:
        for name in ("columns", "yes_words", "no_words"):
            object.__setattr__(self, name, _by_field(getattr(self, name), name))
        if self.separator is not None:
            object.__setattr__(self, "separator", separator_of(self.separator))
        if self.threshold is not None:
            object.__setattr__(self, "threshold", as_threshold(self.threshold))
        if self.decimal not in (None, ".", ","):
            raise InvalidValueError(f"decimal must be '.' or ',', got {self.decimal!r}")
        if self.encoding is not None:
            check_encoding(self.encoding)
        if self.format == "jsonl" and self.separator is not None:
            raise InvalidValueError(
                f"{argument('separator')} is for CSV, and JSON lines have no columns: leave it out"
            )
        for name in self.columns:
            if name not in FIELDS:
                raise InvalidValueError(
                    f"{name!r} is no field that can be read: there are {', '.join(FIELDS)}"
                )
        self._words()

    def format_of(self, path: str | Path) -> Format:
        """The format of a file; a separator says that it is a CSV."""
        return self.format or ("csv" if self.separator else format_of(path))

    @contextlib.contextmanager
    def open(
        self, path: str | Path, trace: Trace | None = None, **options: Any
    ) -> Iterator[Iterator[Record]]:
        """The records of a file, or of standard input; ``options`` are those of :meth:`read`."""
        with open_lines(path, trace, self.encoding) as lines:
            yield self.read(lines, path, **options)

    def read(
        self,
        lines: Iterable[str],
        path: str | Path = "-",
        *,
        keep: bool = False,
        optional: bool = False,
        exported: bool = False,
        requests: bool = False,
    ) -> Iterator[Record]:
        """Records one at a time, as soon as their line is complete.

        With ``keep`` no field of a record is replaced by a column; with ``optional`` columns may
        be missing; ``exported``: the log may be one that a service has exported, of which the
        decisions are read; ``requests``: every record must say what was proposed, so that without
        a threshold scores that are probabilities propose to accept from 0.5 on.
        """
        decimal, is_csv = self.decimal, self.format_of(path) == "csv"
        rows: Iterator[Record]
        if is_csv:
            table = Table(lines, self.separator)
            rows = (Record(line, fields) for line, fields in table)
            decimal = decimal or ("." if table.separator == "," else None)
        else:
            rows, decimal = read_records(lines, "jsonl"), decimal or "."
        if exported:
            rows = decisions_of(rows)
        rule = ScoreRule(threshold=self.threshold)
        scored = requests or self.threshold is not None
        readers = _readers(self._words(), decimal, is_csv)
        columns = cast(Columns, self.columns)  # which are tuples since __post_init__
        for record in renamed(rows, columns, keep=keep, optional=optional):
            found = _translated(record, readers)
            yield found.proposing(rule) if scored else found

    def _words(self) -> dict[str, _Words]:
        """The words for yes and no of each field that has words of its own."""
        found = {}
        for name in FLAGS:
            given = (self.yes_words, self.no_words)
            own = [_of_field(cast(Columns, words), name) for words in given]
            if not any(own):
                continue
            both = set(own[0]) & set(own[1])
            if both:
                raise InvalidValueError(
                    f"{min(both)!r} means both yes and no in {name}: leave it out of one of the two"
                )
            # A default word that the user gave the other meaning loses its default meaning.
            yes = own[0] or tuple(word for word in YES if word not in own[1])
            no = own[1] or tuple(word for word in NO if word not in own[0])
            found[name] = _Words(yes, no)
        return found


def _by_field(given: Any, name: str) -> Columns:
    """By field, its names; those that no field is said for stand under ``""``."""
    table = given if isinstance(given, Mapping) else {"": given}
    if name == "columns" and "" in table:
        example = argument(name, {"group": "COLUMN"})
        raise InvalidValueError(f"{name} must say which, as in {example}, got {given!r}")
    # The order of columns matters, that of words does not.
    many = (list, tuple) if name == "columns" else (list, tuple, set, frozenset)
    for names in table.values():
        if not isinstance(names, (str, *many)):
            raise InvalidValueError(f"{name} must be a name or a list of names, got {names!r}")
    return {
        key: (names,) if isinstance(names, str) else tuple(names) for key, names in table.items()
    }


def _of_field(words: Columns, name: str) -> tuple[str, ...]:
    for key in words:
        if key not in ("", *FLAGS):
            raise InvalidValueError(f"{key!r} has no words for yes and no: {', '.join(FLAGS)} have")
    found = words.get(name, words.get("", ()))
    return tuple(tidy(str(word)).casefold() for word in found)


def _readers(
    words: Mapping[str, _Words], decimal: str | None, is_csv: bool
) -> dict[str, Callable[[Any], Any]]:
    """By field, the function that translates what is written; fields without one are absent."""
    found: dict[str, Callable[[Any], Any]] = dict.fromkeys(_TIDY, tidy) if is_csv else {}
    return found | {
        **{name: own.read for name, own in words.items()},
        **dict.fromkeys(NUMBERS, partial(_number, decimal=decimal)),
    }


def _translated(record: Record, readers: Mapping[str, Callable[[Any], Any]]) -> Record:
    """The record with the values of its fields translated by ``readers``."""
    changed: dict[str, Any] = {}
    for name, read in readers.items():
        written = record.fields.get(name)
        if written is None or written == "":
            continue
        try:
            value = read(written)
        except InvalidValueError as error:
            raise InvalidValueError(f"line {record.line}: {name}: {error}") from None
        if value is not written and value != written:
            changed[name] = value
    return record._replace(fields=record.fields | changed) if changed else record


def _number(written: Any, decimal: str | None) -> Any:
    """Text with a decimal comma as a number; a value that ``float`` can read is left as it is.

    >>> _number("0,35", None), _number("0.35", None), _number("1,000", ",")
    (0.35, '0.35', 1.0)
    """
    if not isinstance(written, str):
        return written
    text = tidy(written)
    if decimal is None and THOUSANDS.fullmatch(text):
        raise InvalidValueError(
            f"{text!r} may be thousands, or have three decimals: say what stands before decimals "
            f"with {argument('decimal', '.')} or {argument('decimal', ',')}"
        )
    if _GROUPED.search(text) or ("," in text and "." in text):
        raise InvalidValueError(
            f"{text!r} has a thousands separator: write numbers without, as in 1000.5"
        )
    other = {".": ",", ",": "."}.get(decimal or "")
    if other is not None and other in text:
        raise InvalidValueError(
            f"{text!r} is no number with decimals after {decimal!r}: if they stand after "
            f"{other!r}, say so with {argument('decimal', other)}; if these are thousands, write "
            "them without a separator"
        )
    if "," not in text:
        return text
    number = read_number(text.replace(",", "."))
    return text if number != number else number
