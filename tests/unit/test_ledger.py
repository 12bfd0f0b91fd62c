"""The ledger: one decision, arrays and JSON lead to the same; an audit counts the same again."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import fairshield as fs
from fairshield.records import Record
from fairshield.runtime.ledger import Ledger

PROPS = [
    fs.DemographicParity("0.25"),
    fs.DemographicParity("0.5", min_support=2),
    fs.EqualOpportunity("0.5"),
    fs.DemographicParity("0.5", undefined="rate-0"),
]
DUE = [(4,), (2, 4), (1, 3, 7), (1,)]
Row = tuple[int, bool, bool, float, bool]
rows = st.lists(
    st.tuples(
        st.integers(0, 2), st.booleans(), st.booleans(),
        st.sampled_from([0.1, 0.7, 1.0]), st.booleans(),
    ),
    max_size=60,
)  # fmt: skip
ledgers = st.builds(
    lambda prop, due, goes_on, start: (prop, due, goes_on, start),
    st.sampled_from(PROPS),
    st.sampled_from(DUE),
    st.booleans(),
    st.sampled_from([((0, 0), (0, 0), (0, 0)), ((5, 2), (3, 3), (1, 0))]),
)


def made(how: tuple[Any, ...]) -> Ledger:
    prop, due, goes_on, start = how
    counts = fs.Counts(dict(zip("abc", start, strict=True)))
    return Ledger(prop, counts, due=due, goes_on=goes_on)


def relevant(ledger: Ledger, outcome: bool) -> bool:
    wanted = ledger.prop.relevant_outcome
    return wanted is None or outcome == wanted


def one_by_one(ledger: Ledger, people: list[Row]) -> Ledger:
    for group, proposed, accepted, cost, outcome in people:
        ledger.add(group, proposed, accepted, cost, relevant(ledger, outcome))
    ledger.settle()
    return ledger


def at_once(ledger: Ledger, people: list[Row]) -> None:
    columns = list(zip(*people, strict=True)) or [()] * 5
    group, proposed, accepted, costs, outcome = (np.array(column) for column in columns)
    counts = np.array([relevant(ledger, bool(z)) for z in outcome], bool)
    ledger.add_many(
        group.astype(np.int64), proposed.astype(bool), accepted.astype(bool),
        costs.astype(float), counts,
    )  # fmt: skip


@settings(max_examples=examples(150))
@given(ledgers, rows, st.lists(st.integers(0, 60), max_size=4))
def test_in_any_number_of_pieces_and_through_json(
    how: tuple[Any, ...], people: list[Row], cuts: list[int]
) -> None:
    ledger = made(how)
    for i, (first, last) in enumerate(pairwise([0, *sorted(cuts), len(people)])):
        if i % 2:
            one_by_one(ledger, people[first:last])
        else:
            at_once(ledger, people[first:last])
        told, ledger = json.loads(json.dumps(ledger.to_dict())), made(how)
        ledger.resume(told)
    assert ledger.to_dict() == one_by_one(made(how), people).to_dict()


@settings(max_examples=examples(150))
@given(ledgers, rows, st.sampled_from(["accepted", "proposed"]))
def test_an_audit_counts_the_same(how: tuple[Any, ...], people: list[Row], which: str) -> None:
    prop, due, goes_on, _ = how
    if goes_on:
        how = (prop, due := due[-1:], *how[2:])
    ledger = one_by_one(made(how), people)
    records = [
        Record(
            i, {"group": "abc"[g], "proposed": r, "accepted": y if which == "accepted" else r}
            | {"cost": cost, "outcome": z},
        )
        for i, (g, r, y, cost, z) in enumerate(people, 1)
    ]  # fmt: skip
    length = {"period" if goes_on else "horizon": due[-1]}
    report = fs.audit(
        prop, records, start=fs.Counts(dict(zip("abc", how[3], strict=True))),
        checkpoints=due[:-1], **length,
    )  # fmt: skip
    side = ledger.shielded if which == "accepted" else ledger.unshielded
    over = [window for window in report.windows if window.complete]
    verdicts = [window.verdict for window in over]
    assert (ledger.windows, side.exempt) == (len(over), verdicts.count("exempt"))
    assert (side.unfair, side.fair) == (verdicts.count("unfair"), verdicts.count("fair"))
    assert side.largest_bias >= max((found.bias for found in report.violations), default=0.0)
    assert side.unfair_at == (report.violations[0].line if report.violations else None)
    if people:
        now = report.windows[-1]
        assert side.now == now.verdict
        counts = ledger.counts if which == "accepted" else ledger.counts_unshielded
        assert counts == now.counts
    if which == "accepted":
        assert ledger.overruled == report.overruled
        assert ledger.paid == report.paid
        assert [ledger.people(i).overruled for i in range(3)] == [
            report.overruled_by_group[group] for group in "abc"
        ]


def test_people_are_told_by_what_happened_to_them() -> None:
    ledger = Ledger(fs.EqualOpportunity("0.5"), fs.Counts.zero(("a", "b")), due=(8,))
    ledger.add_reviewed(0, False, True, True, 2.0, None)
    assert ledger.people(0)[:3] == (0, 0, 0)
    ledger.observe(True)
    ledger.add_reviewed(0, True, False, True, 3.0, None)
    ledger.observe(False)
    ledger.add_reviewed(1, True, True, False)
    ledger.add(1, True, False)
    people = [ledger.people(i) for i in (0, 1)]
    assert [(who.seen, who.accepted, who.proposed) for who in people] == [(1, 1, 0), (2, 0, 2)]
    assert [(who.overruled, who.raised, who.lowered) for who in people] == [(2, 1, 1), (1, 0, 1)]
    assert ledger.everybody(0) == (2, 1, 2, 2)
    assert (ledger.overridden, ledger.overruled, ledger.paid) == (2, 3, 6.0)


def test_nothing_is_judged_before_the_outcome_is_known() -> None:
    ledger = Ledger(fs.EqualOpportunity("0.5"), fs.Counts({"a": (1, 1), "b": (0, 0)}), due=(1,))
    ledger.add_reviewed(1, False, False, False, 1.0, None)
    assert (ledger.settle(), ledger.windows) == (None, 0)
    ledger.observe(True)
    found = ledger.settle()
    assert found is not None
    assert (found.verdict, ledger.over, ledger.settle()) == ("unfair", True, None)


@pytest.mark.parametrize("many", [False, True])
def test_a_group_counts_from_when_it_is_met(many: bool) -> None:
    prop = fs.DemographicParity("0.5", undefined="rate-0")
    ledger = Ledger(prop, fs.Counts.zero(("a", "b")), due=(2,))
    groups, yes = [0, 1, 0, 2], np.ones(4, bool)
    if many:
        ledger.meet("c", at=3)
        ledger.add_many(np.array(groups), yes, yes, np.ones(4))
    else:
        for group in groups[:3]:
            ledger.add(group, True, True)
        ledger.meet("c", at=3)
        ledger.add(2, True, True)
        ledger.settle()
    assert (ledger.windows, ledger.shielded.fair, ledger.shielded.unfair) == (2, 1, 1)


def test_a_ledger_that_goes_on_knows_the_direction_of_what_was_overruled() -> None:
    prop, start = fs.DemographicParity("0.5"), fs.Counts.zero(("a", "b"))
    ledger = Ledger(prop, start, due=(2,))
    for group, proposed in ((0, True), (1, False)):
        ledger.add(group, proposed, not proposed)
    ledger.settle()
    data = ledger.to_dict()
    data["people"] = [people[:4] for people in data["people"]]  # as a stored tally tells them
    again = Ledger(prop, start, due=(2,))
    again.resume(data)
    assert again.complete
    assert (again.people(0).lowered, again.people(1).raised) == (1, 1)
