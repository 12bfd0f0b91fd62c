"""Windows, counted: in any number of pieces, as an audit would."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import fairshield as fs
from fairshield.records import Record
from fairshield.windows import Tally

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
POLICIES = [
    fs.synthesize(fs.DemographicParity("0.5"), EVEN, horizon=6, checkpoints=points)
    for points in ((), (4,), (2, 5))
]

rows = st.lists(st.tuples(st.integers(0, 1), st.booleans(), st.booleans()), max_size=40)


@settings(max_examples=60)
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
        found = fs.audit(
            policy.prop, records, groups=policy.groups, horizon=6, checkpoints=policy.checkpoints
        ).violations
        assert unfair == len({violation.window for violation in found})
        assert largest >= max((violation.bias for violation in found), default=0.0)
    assert report.windows == len(stream) // 6
