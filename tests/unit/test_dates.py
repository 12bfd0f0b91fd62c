"""Dates of a log: which day, which calendar period, and what is said of those that are none."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairshield as fs
from fairshield.records import Record
from fairshield.records.dates import Calendar

PARITY = fs.DemographicParity("0.25")
days = st.dates(date(1990, 1, 1), date(2060, 12, 31))


def period(value: Any, by: Any = "quarter", **options: Any) -> str:
    return Calendar(by, **options).period(Record(7, {"date": value}))


@given(days, st.times())
def test_however_a_day_is_written_it_is_in_the_same_period(day: date, time: Any) -> None:
    moment = datetime.combine(day, time)
    for by, name in (
        ("year", f"{day.year}"),
        ("quarter", f"{day.year} Q{(day.month - 1) // 3 + 1}"),
        ("month", f"{day.year}-{day.month:02}"),
    ):
        for value in (day, day.isoformat(), moment, moment.isoformat(), f" {moment} "):
            assert period(value, by) == name
        assert period(f"{day:%d.%m.%Y}", by, format="%d.%m.%Y") == name
        assert period(f"{day:%m/%d/%Y}", by, format="%m/%d/%Y") == name


@given(days, days)
def test_names_of_periods_sort_like_their_days(one: date, other: date) -> None:
    for by in ("month", "quarter", "year"):
        if one <= other:
            assert period(one, by) <= period(other, by)


def test_timestamps_are_dated_where_they_are_written_or_where_one_says() -> None:
    late = "2025-06-30T23:30:00+00:00"
    assert period(late) == "2025 Q2"
    assert period(late, timezone="Europe/Vienna") == "2025 Q3"
    assert period("2025-07-01T00:30:00+02:00", timezone="UTC") == "2025 Q2"
    assert period("2025-06-30T23:30:00Z", "month", timezone="Asia/Tokyo") == "2025-07"
    for naive in ("2025-06-30T23:30:00", "2025-06-30", date(2025, 6, 30)):
        assert period(naive, timezone="Asia/Tokyo") == "2025 Q2"
    assert period(datetime(2025, 6, 30, 23, 30, tzinfo=UTC), timezone="Asia/Tokyo") == "2025 Q3"


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("31.12.2025", "with date_format='%d.%m.%Y'"),
        ("12/31/2025", "with date_format='%m/%d/%Y'"),
        ("03/04/2025", "in two ways.*date_format='%d/%m/%Y' or date_format='%m/%d/%Y'"),
        ("03-04-25", "in two ways.*date_format='%d-%m-%y' or date_format='%m-%d-%y'"),
        ("next spring", "'next spring' is not a date such as 2025-12-31"),
        (20251231, "20251231 is not a date"),
        ("31122025", "'31122025' is not a date"),
        ("2025-13-01", "is not a date"),
    ],
)
def test_what_is_no_iso_date_names_the_remedy(value: Any, remedy: str) -> None:
    with pytest.raises(fs.InvalidValueError, match=f"line 7: date: .*{remedy}"):
        period(value)


def test_what_cannot_be_dated_is_refused() -> None:
    with pytest.raises(fs.InvalidValueError, match="line 7: no 'date': say where dates are with"):
        Calendar("month").period(Record(7, {"group": "a"}))
    with pytest.raises(fs.InvalidValueError, match="line 7: 'date' is empty"):
        period("")
    with pytest.raises(fs.InvalidValueError, match=r"'31.12.2025' is not a date in the format '%Y"):
        period("31.12.2025", format="%Y/%m/%d")
    for wrong, said in (
        ({"by": "week"}, "by must be one of month, quarter, year, got 'week'"),
        ({"timezone": "Vienna"}, "unknown time zone 'Vienna'"),
        ({"timezone": "../etc"}, "unknown time zone"),
        ({"format": "%d.%m."}, "has no year"),
        ({"format": "%Y"}, "has no month"),
    ):
        with pytest.raises(fs.InvalidValueError, match=said):
            Calendar(**wrong)


# Audits by calendar -------------------------------------------------------------------------


def log(n: int = 400, seed: int = 3) -> list[Record]:
    rng = random.Random(seed)
    first = date(2025, 1, 10)
    rows = []
    for _ in range(n):
        group = rng.choice("ab")
        rows.append(
            {
                "group": group,
                "accepted": rng.random() < (0.3 if group == "a" else 0.5),
                "date": (first + timedelta(days=rng.randrange(500))).isoformat(),
            }
        )
    return [Record(i + 1, row) for i, row in enumerate(rows)]


@pytest.mark.parametrize("by", ["month", "quarter", "year"])
def test_a_window_is_the_audit_of_its_records_alone(by: Any) -> None:
    records = log()
    report = fs.audit(PARITY, records, groups=("a", "b"), by=by)
    names = [window.name for window in report.windows]
    assert names == sorted({Calendar(by).period(record) for record in records})
    for window in report.windows:
        theirs = [record for record in records if Calendar(by).period(record) == window.name]
        (alone,) = fs.audit(PARITY, theirs, groups=("a", "b")).windows
        assert (window.counts, window.bias, window.holds) == (alone.counts, alone.bias, alone.holds)
        dates = [record.fields["date"] for record in theirs]
        assert (window.first_date, window.last_date) == (min(dates), max(dates))
        assert window.complete
    unfair = {report.windows[violation.window].name for violation in report.violations}
    assert unfair == {window.name for window in report.windows if not window.holds}


def test_the_order_of_periods_in_the_log_does_not_matter() -> None:
    records = log()
    shuffled = records[:]
    random.Random(1).shuffle(shuffled)
    one, other = (
        fs.audit(PARITY, order, groups=("a", "b"), by="quarter") for order in (records, shuffled)
    )
    assert [window.counts for window in one.windows] == [window.counts for window in other.windows]


def test_windows_of_a_horizon_have_dates_if_the_log_has() -> None:
    records = sorted(log(100), key=lambda record: record.fields["date"])
    report = fs.audit(PARITY, records, groups=("a", "b"), horizon=30)
    for i, window in enumerate(report.windows):
        theirs = records[30 * i : 30 * i + 30]
        assert window.first_date == theirs[0].fields["date"]
        assert window.last_date == theirs[-1].fields["date"]
        assert window.name is None
    vague = [r._replace(fields=r.fields | {"date": "some day"}) for r in records[:3]]
    report = fs.audit(PARITY, [*vague, *records[3:]], groups=("a", "b"), horizon=30)
    assert [window.first_date is None for window in report.windows] == [True, False, False, False]


def test_calendar_periods_are_not_the_windows_of_a_policy() -> None:
    even = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    policy = fs.synthesize(PARITY, even, horizon=6)
    with pytest.raises(fs.InvalidValueError, match="check the property alone, without policy"):
        fs.audit(PARITY, log(), policy=policy, by="quarter")
    for other in ({"horizon": 5}, {"period": 5}):
        with pytest.raises(fs.InvalidValueError, match="leave out one of the two"):
            fs.audit(PARITY, log(), groups=("a", "b"), by="quarter", **other)
