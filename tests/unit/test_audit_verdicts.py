"""What an audit says of windows that nothing bound: exempt, never fair."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairshield as fs
from fairshield.records import Record

people_of = st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=24)
parities = st.builds(
    lambda bound, support: fs.DemographicParity(bound, min_support=support),
    st.sampled_from(["0", "0.3", "1"]),
    st.integers(0, 4),
)


def records(people: list[tuple[str, bool]]) -> list[Record]:
    return [Record(i, {"group": g, "accepted": y}) for i, (g, y) in enumerate(people, 1)]


def counted(people: list[tuple[str, bool]]) -> fs.Counts:
    return fs.Counts(
        {g: (sum(h == g for h, _ in people), sum(y for h, y in people if h == g)) for g in "abc"}
    )


def said_of(verdicts: list[str]) -> str:
    """The convention of every report over windows."""
    if "unfair" in verdicts:
        return "unfair"
    return "fair" if "fair" in verdicts else "exempt"


@given(parities, people_of, st.integers(1, 8), st.sets(st.integers(1, 8), max_size=2))
def test_a_window_is_bound_if_one_of_its_moments_was(prop, people, horizon, points):
    points = tuple(sorted(p for p in points if p < horizon))
    report = fs.audit(
        prop, records(people), groups=("a", "b", "c"), horizon=horizon, checkpoints=points
    )
    expected = []
    for first in range(0, len(people), horizon):
        window = people[first : first + horizon]
        moments = [n for n in (*points, horizon) if n <= len(window)]
        expected.append(
            said_of([prop.verdict(counted(window[:n])) for n in moments]) if moments else None
        )
    assert [window.verdict for window in report.windows] == expected
    known = [verdict for verdict in expected if verdict is not None]
    assert report.verdict == said_of(known)
    assert report.holds == (report.verdict != "unfair")
    assert (report.unfair, report.exempt) == (known.count("unfair"), known.count("exempt"))
    assert report.bound == len(known) - report.exempt


@given(parities, people_of, st.integers(1, 8))
def test_of_periods_the_counters_go_on(prop, people, period):
    report = fs.audit(prop, records(people), groups=("a", "b", "c"), period=period)
    ends = range(period, len(people) + 1, period)
    expected = [prop.verdict(counted(people[:n])) for n in ends]
    assert [w.verdict for w in report.windows if w.complete] == expected
    for window in report.windows:
        assert window.finding == prop.finding(window.counts)


@given(parities, people_of, st.integers(1, 8))
def test_the_widest_window_is_the_worst_there_is(prop, people, horizon):
    report = fs.audit(prop, records(people), groups=("a", "b", "c"), horizon=horizon)
    complete = [window for window in report.windows if window.complete]
    if report.widest is None:
        assert not complete
    else:
        assert report.widest.finding.verdict == report.verdict
        alike = [w.finding.bias for w in complete if w.finding.verdict == report.verdict]
        assert report.widest.finding.bias == max(alike)


def test_below_support_what_was_measured_is_told():
    prop = fs.DisparateImpact("0.8", min_support=60)
    people = [("a", i % 2 == 0) for i in range(80)] + [("b", i % 10 == 0) for i in range(20)]
    report = fs.audit(prop, records(people), horizon=100)
    assert report.holds
    assert (report.verdict, report.bound, report.exempt, report.unfair) == ("exempt", 0, 1, 0)
    assert report.windows[0].bias == 0
    assert str(report.windows[0].finding) == (
        "impact ratio 0.2 of b to a where at least 0.8 is asked; "
        "exempt: 20 of b, below the support of 60"
    )


def test_it_is_in_the_data_as_well():
    prop = fs.DemographicParity("0.1")
    people = [("a", True), ("b", False), ("a", True), ("a", True)]
    data = json.loads(json.dumps(fs.audit(prop, records(people), horizon=2).to_dict()))
    assert {k: data[k] for k in ("verdict", "bound", "exempt", "unfair")} == {
        "verdict": "unfair", "bound": 1, "exempt": 1, "unfair": 1,
    }  # fmt: skip
    assert [window["verdict"] for window in data["windows"]] == ["unfair", "exempt"]
    assert data["windows"][1]["finding"]["why"] == "nobody of b"
    assert data["violations"][0]["finding"]["pair"] == ["b", "a"]


@pytest.mark.parametrize("people", [[], [("a", True), ("b", False)]])
def test_what_had_not_to_hold_yet_is_not_fair(people):
    report = fs.audit(fs.DemographicParity("0.1"), records(people), groups=("a", "b"), horizon=100)
    assert (report.holds, report.verdict, report.checked) == (True, "exempt", 0)
