"""Windows, counted: in any number of pieces, as an audit would."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import fairshield as fs
from fairshield.periodic.windows import Tally
from fairshield.records import Record

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
POLICIES = [
    fs.synthesize(fs.DemographicParity("0.5"), EVEN, horizon=6, checkpoints=points)
    for points in ((), (4,), (2, 5))
] + [
    fs.synthesize(fs.DisparateImpact("0.5", min_support=3), EVEN, horizon=6, checkpoints=points)
    for points in ((), (5,))
]

rows = st.lists(st.tuples(st.integers(0, 1), st.booleans(), st.booleans()), max_size=40)


@settings(max_examples=examples(60))
@given(st.sampled_from(POLICIES), rows, st.lists(st.integers(0, 40), max_size=4))
def test_a_report_finds_the_windows_in_which_an_audit_finds_violations(
    policy: fs.Policy, stream: list[tuple[int, bool, bool]], cuts: list[int]
) -> None:
    tally = Tally(policy)
    for first, last in pairwise([0, *sorted(cuts), len(stream)]):
        some = stream[first:last]
        group, proposed, accepted = (np.array([row[i] for row in some]) for i in range(3))
        tally.add(group, proposed.astype(bool), accepted.astype(bool), np.zeros(len(some)))
    report = tally.report()
    for column, unfair, largest in (
        (2, report.unfair, report.largest_bias),
        (1, report.unfair_unshielded, report.largest_bias_unshielded),
    ):
        records = [
            Record(i, {"group": policy.groups[row[0]], "accepted": row[column]})
            for i, row in enumerate(stream, 1)
        ]
        audited = fs.audit(
            policy.prop, records, groups=policy.groups, horizon=6, checkpoints=policy.checkpoints
        )
        found = audited.violations
        assert (report.bound, report.exempt) == (
            audited.bound,
            sum(window.verdict == "exempt" for window in audited.windows if window.complete),
        )
        assert unfair == len({violation.window for violation in found})
        assert largest >= max((violation.bias for violation in found), default=0.0)
        if column == 2:
            assert report.verdict == audited.verdict
    assert report.windows == len(stream) // 6


def test_windows_that_bound_nothing_are_told_with_what_was_measured() -> None:
    policy, four = POLICIES[3], np.ones(4, bool)
    tally = Tally(policy)
    tally.add(
        np.array([0, 0, 0, 0, 1, 1]), np.zeros(6, bool), np.r_[four, [False] * 2], np.zeros(6)
    )
    report = tally.report()
    assert (report.verdict, report.exempt, report.bound) == ("exempt", 1, 0)
    assert report.largest_bias == 0
    said = str(report)
    assert (
        "1 windows: 0 unfair, 0 without the shield; all exempt: the property bound nothing" in said
    )
    assert "widest: impact ratio 0 of b to a where at least 0.5 is asked; exempt: 2 of b" in said
    assert report.to_dict()["widest"]["pair"] == ["b", "a"]


@settings(max_examples=examples(60))
@given(rows)
def test_the_widest_end_is_the_audits(stream: list[tuple[int, bool, bool]]) -> None:
    for policy in POLICIES[::3]:
        tally, records = Tally(policy), []
        for i, (group, proposed, accepted) in enumerate(stream, 1):
            flags = np.array([proposed]), np.array([accepted])
            tally.add(np.array([group]), *flags, np.zeros(1))
            records.append(Record(i, {"group": policy.groups[group], "accepted": accepted}))
        widest = fs.audit(policy.prop, records, groups=policy.groups, horizon=6).widest
        found = tally.report().widest
        assert (widest is None) == (found is None)
        if widest is not None and found is not None:
            assert widest.finding.order() == found.order()
