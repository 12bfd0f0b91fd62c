"""Table: the rows of a CSV with any separator, also as spreadsheets export them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from fairshield.base.errors import InvalidValueError, argument

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
"""By name; those that are looked for in a header."""
_DECLARED = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
"""The first line of some exports of Excel."""
_OPEN = re.compile(r'(?:^|(?<=[,;\t|]))"', re.MULTILINE)
"""Where a quoted field begins; a quotation mark elsewhere is one."""
_QUOTED = re.compile(_OPEN.pattern + r'(?:[^"]|"")*"(?!")', re.MULTILINE)
_NARROW = {ord("\N{NO-BREAK SPACE}"): " ", ord("\N{NARROW NO-BREAK SPACE}"): " "}


def tidy(text: str) -> str:
    r"""``name`` without space around it, and with plain spaces instead of other kinds of space.

    >>> tidy("Net\N{NO-BREAK SPACE}income ")
    'Net income'
    """
    return (text if text.isascii() else text.translate(_NARROW)).strip()


def separator_of(text: str) -> str:
    r"""A separator, by its name or as it is.

    >>> separator_of("tab"), separator_of(";"), separator_of(r"\t")
    ('\t', ';', '\t')
    """
    found = SEPARATORS.get(text, "\t" if text == r"\t" else text)
    if len(found) != 1 or found in '"\r\n' or found.isalnum():
        raise InvalidValueError(
            f"cannot separate columns by {text!r}: expected one sign, or one of "
            f"{', '.join(SEPARATORS)}"
        )
    return found


class Table:
    """Table yields the rows of a CSV by the names in its header, which it reads when it is made.

    ``separator`` is the one given, else what the first line declares (``sep=;``), else the one of
    :data:`SEPARATORS` that parts the header into most columns.
    """

    def __init__(self, lines: Iterable[str], separator: str | None = None) -> None:
        self._lines, self._skipped = iter(lines), 0
        first = self._first()
        declared = _DECLARED.fullmatch(first.strip("\r\n"))
        if declared is not None:
            self._skipped += 1
            first = self._first()
        if not first:
            raise InvalidValueError(
                "the CSV is empty: expected a header such as 'group,proposed,cost'"
            )
        if separator is None:
            separator = declared[1] if declared else sniffed(first)
        self.separator = separator
        # Lines keep their ends, because a quoted field may contain line ends.
        whole = chain(re.findall(r"[^\n]*\n|[^\n]+", first), self._lines)
        self._reader = csv.reader(whole, delimiter=separator)
        self.names = _names(self._row() or [])

    def __iter__(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Each row with the number of its last line; rows without any value are left out."""
        while (row := self._row()) is not None:
            if row and (len(self.names) == 1 or any(cell.strip() for cell in row)):
                yield self._line, dict(zip(self.names, self._cells(row), strict=True))

    def _row(self) -> list[str] | None:
        try:
            return next(self._reader, None)
        except csv.Error as error:
            raise InvalidValueError(f"line {self._line}: not CSV: {error}") from None

    @property
    def _line(self) -> int:
        return self._skipped + self._reader.line_num

    def _first(self) -> str:
        """The next line that is not blank, with those that a quoted field of it continues on."""
        text = ""
        for line in self._lines:
            if not text and not line.strip():
                self._skipped += 1
                continue
            text += line
            if not _OPEN.search(_QUOTED.sub("", text)):
                break
        return text

    def _cells(self, row: list[str]) -> list[str]:
        """The cells by column name; refuses a row with values beyond the last named column."""
        n = len(self.names)
        if len(row) < n:
            raise InvalidValueError(
                f"line {self._line}: {len(row)} fields where the header has {n}"
            )
        if any(cell.strip() for cell in row[n:]):
            raise InvalidValueError(
                f"line {self._line}: {len(row)} fields where the header has {n}: name every "
                "column, and quote fields that hold the separator"
            )
        return row[:n]


def sniffed(header: str) -> str:
    """The separator of a header.

    >>> sniffed("id;group;accepted"), sniffed("group"), sniffed('"a;b",c')
    (';', ',', ',')
    """
    bare = _QUOTED.sub("", header)
    found = {sign: bare.count(sign) for sign in SEPARATORS.values()}
    most = max(found.values())
    likely = [sign for sign, n in found.items() if n == most]
    if most and len(likely) > 1:
        raise InvalidValueError(
            f"the columns of the header may be separated by {' or '.join(map(repr, likely))}: say "
            f"by which with {argument('separator', likely[-1])}"
        )
    return likely[0] if most else ","


def _names(header: list[str]) -> list[str]:
    """The names of the columns, without empty ones at the end."""
    names = [tidy(name) for name in header]
    while len(names) > 1 and not names[-1]:
        names.pop()
    for name in names:
        if name and names.count(name) > 1:
            raise InvalidValueError(
                f"the header has {names.count(name)} columns {name!r}, of which only one can be "
                "read: rename the others"
            )
    return names
