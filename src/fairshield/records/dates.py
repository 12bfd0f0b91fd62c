"""Dates in a log, and the calendar periods that they fall into."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from functools import lru_cache
from typing import Any, Literal, get_args

from fairshield.base.errors import InvalidValueError, argument
from fairshield.records import Record

By = Literal["month", "quarter", "year"]
DATES = ("date", "time", "at", "timestamp")
"""Fields that may say when a decision was made; the first one that a record has does."""
_NUMBERS = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})\b", re.ASCII)
"""A day and a month, in whichever order, and a year."""


def zone_of(name: str) -> tzinfo:
    """A time zone by its name, as in ``"Europe/Vienna"``."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidValueError(
            f"unknown time zone {name!r}: expected a name as in Europe/Vienna or UTC"
        ) from None


@dataclass(frozen=True)
class Calendar:
    """Calendar reads the dates of a log and finds the calendar period of each record.

    Dates and timestamps are ISO 8601 unless there is a ``format``, in the codes of
    ``datetime.strptime``.  The day of a timestamp is the one that is written.  With a ``timezone``,
    a timestamp that has an offset is moved to that zone first.
    """

    by: By | None = None
    format: str | None = None
    timezone: str | None = None
    zone: tzinfo | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.by is not None and self.by not in get_args(By):
            raise InvalidValueError(f"by must be one of {', '.join(get_args(By))}, got {self.by!r}")
        zone = None if self.timezone is None else zone_of(self.timezone)
        object.__setattr__(self, "zone", zone)
        if self.format is not None:
            _check_format(self.format)

    def day(self, record: Record) -> date | None:
        """The day of a record; ``None`` if it has no date and no date is required."""
        name = next((name for name in DATES if not record.missing(name)), None)
        if name is None and self.by is None:
            return None
        if name is None:
            empty = [field for field in DATES if field in record.fields]
            why = f"{empty[0]!r} is empty: fill it in" if empty else f"no {DATES[0]!r}: {_where()}"
            raise InvalidValueError(f"line {record.line}: {why}")
        try:
            return self._read(record.fields[name])
        except InvalidValueError as error:
            if self.by is None and self.format is None:
                return None  # nobody declared this column to be a date
            raise InvalidValueError(f"line {record.line}: {name}: {error}") from None

    def period(self, record: Record) -> str:
        """The calendar period that a record belongs to, by a name that sorts like its dates.

        >>> Calendar("quarter").period(Record(1, {"date": "2025-07-31T23:30:00-02:00"}))
        '2025 Q3'
        """
        day = self.day(record)
        assert day is not None  # ``day`` has refused a record without a date
        if self.by == "year":
            return f"{day.year:04}"
        if self.by == "quarter":
            return f"{day.year:04} Q{(day.month + 2) // 3}"
        return f"{day.year:04}-{day.month:02}"

    def in_order(self, records: Iterable[Record]) -> list[Record]:
        """The records, one period after the other; within a period in the order of the log."""
        return sorted(records, key=self.period)

    def _read(self, value: Any) -> date:
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        moment = value if isinstance(value, datetime) else self._parsed(value)
        if self.zone is not None and moment.tzinfo is not None:
            moment = moment.astimezone(self.zone)
        return moment.date()

    def _parsed(self, value: Any) -> datetime:
        try:
            return _moment(value if isinstance(value, str) else "", self.format)
        except ValueError:
            raise InvalidValueError(_not_a_date(value, self.format)) from None


@lru_cache(maxsize=4096)  # many decisions share a day, which is asked for more than once
def _moment(text: str, format: str | None) -> datetime:
    if format is None:
        return datetime.fromisoformat(text.strip())
    return datetime.strptime(text.strip(), format)  # noqa: DTZ007  (as written)


def _where() -> str:
    return f"say where dates are with {argument('columns', {'date': 'COLUMN'})}"


def _check_format(format: str) -> None:
    """Refuse a format that would leave out a part that matters."""
    has = set(re.findall(r"%([A-Za-z])", format.replace("%%", "")))
    for part, codes in (("year", "Yy"), ("month", "mbBj")):
        if not has & set(codes) and not has & set("cxD"):
            raise InvalidValueError(
                f"the date format {format!r} has no {part}: write 31.12.2025 as %d.%m.%Y"
            )


def _not_a_date(value: Any, format: str | None) -> str:
    if format is not None:
        return f"{value!r} is not a date in the format {format!r}"
    found = _NUMBERS.match(str(value).strip())
    if found is None:
        likely = ["%d.%m.%Y"]
    else:
        sign, year = found[2], "%Y" if len(found[4]) == 4 else "%y"
        orders = ["%d", "%m"] if int(found[1]) <= 12 and int(found[3]) <= 12 else []
        orders = orders or (["%d"] if int(found[1]) > 12 else ["%m"])
        likely = [sign.join([first, "%m" if first == "%d" else "%d", year]) for first in orders]
    more = " and can be read in two ways" if len(likely) > 1 else ""
    return (
        f"{value!r} is not a date such as 2025-12-31{more}: say how dates are written with "
        f"{' or '.join(argument('date_format', text) for text in likely)}"
    )
