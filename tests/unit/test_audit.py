"""Audits of logs: those of shields, those of nobody, and those with something wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import islice
from typing import Any

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    Request,
    Spec,
    labelled_properties,
    properties,
    requests,
    specs,
    starts,
    with_spec,
)

import fairshield as fs
from fairshield.periodic import (
    Dynamic,
    ExactPeriodic,
    PeriodicPolicy,
    Perpetual,
    Run,
    StaticFair,
    kind_of,
)
from fairshield.records import Record, read_records

PARITY = fs.DemographicParity("0.1")
EQUAL = fs.EqualOpportunity("0.1")


def logged(decision: fs.Decision, outcome: bool | None) -> dict[str, Any]:
    """A line of a decision log."""
    line = {
        "group": decision.group,
        "proposed": decision.proposed,
        "cost": decision.cost,
        "accepted": decision.accepted,
        "overruled": decision.overruled,
    }
    return line if outcome is None else {**line, "outcome": outcome}


def records_of(lines: list[dict[str, Any]]) -> list[Record]:
    """The lines as written to a file and read again."""
    return list(read_records([json.dumps(line) for line in lines], "jsonl"))


def log_of(policy: fs.Policy, stream: list[Request]) -> list[dict[str, Any]]:
    """Decisions of window after window."""
    lines, shield = [], fs.Shield(policy)
    for request in stream:
        if shield.remaining == 0:
            shield = fs.Shield(policy)
        decision = shield.decide(request.group, proposed=request.proposed, cost=request.cost)
        if policy.labelled:
            shield.observe(decision, outcome=request.outcome)
        lines.append(logged(decision, request.outcome if policy.labelled else None))
    return lines


def people(*lines: tuple[Any, ...]) -> list[Record]:
    """A log of ``(group, accepted[, outcome])``."""
    names = ("group", "accepted", "outcome")
    return [Record(i, dict(zip(names, line, strict=False))) for i, line in enumerate(lines, 1)]


@st.composite
def plain_logs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Decisions that no shield made."""
    stream = draw(st.lists(st.tuples(requests, st.booleans()), max_size=12))
    return [
        {**request._asdict(), "accepted": accepted, "overruled": accepted != request.proposed}
        for request, accepted in stream
    ]


# Laws ---------------------------------------------------------------------------------------


@given(specs(), st.lists(requests, max_size=13))
def test_the_log_of_a_shield_passes(spec: Spec, stream: list[Request]) -> None:
    policy = spec.feasible_policy()
    report = fs.audit(policy.prop, records_of(log_of(policy, stream)), policy=policy)
    assert report.holds
    assert report.difference is None
    assert report.decisions == len(stream)
    finished, rest = divmod(len(stream), policy.horizon)
    assert [w.complete for w in report.windows] == [True] * finished + [False] * bool(rest)
    assert all(w.holds for w in report.windows if w.complete)


@given(properties, plain_logs(), starts(), st.none() | st.integers(1, 5), st.data())
def test_violations_are_those_of_a_recount(
    prop: fs.Property, log: list[Any], start: fs.Counts, horizon: int | None, data: st.DataObject
) -> None:
    points = data.draw(st.sets(st.integers(1, horizon or 5), max_size=3))
    report = fs.audit(
        prop, records_of(log), horizon=horizon, start=start, checkpoints=tuple(points)
    )
    length = horizon or max(len(log), 1)
    expected = []
    for first in range(0, len(log), length):
        window = log[first : first + length]
        for n in range(1, len(window) + 1):
            counts = recount(prop, start, window[:n])
            if (n in points or n == length) and not prop.holds(counts):
                expected.append((first // length, first + n, n, counts))
    assert [(v.window, v.line, v.position, v.counts) for v in report.violations] == expected
    assert report.holds == (not expected)
    assert bool(report) == (report.verdict == "fair" and report.doubt is None)


def recount(prop: fs.Property, start: fs.Counts, window: list[Any]) -> fs.Counts:
    relevant = prop.relevant_outcome
    counts = start
    for line in window:
        if relevant is None or line["outcome"] == relevant:
            counts = counts.after(line["group"], accepted=line["accepted"])
    return counts


@given(plain_logs(), st.integers(1, 5))
def test_interventions_add_up(log: list[Any], horizon: int) -> None:
    report = fs.audit(PARITY, records_of(log), groups=("a", "b"), horizon=horizon)
    overruled = [(i % horizon, line) for i, line in enumerate(log) if line["overruled"]]
    assert report.overruled == len(overruled)
    assert report.paid == pytest.approx(sum(line["cost"] for _, line in overruled))
    for group, n in report.overruled_by_group.items():
        assert n == sum(line["group"] == group for _, line in overruled)
    for i, n in enumerate(report.overruled_by_position):
        assert n == sum(position == i for position, _ in overruled)
    assert len(report.overruled_by_position) == min(len(log), horizon)
    for totals in report.people:
        theirs = [line for line in log if line["group"] == totals.group]
        against = [line for line in theirs if line["overruled"]]
        assert (totals.decisions, totals.overruled) == (len(theirs), len(against))
        assert totals.accepted == sum(line["accepted"] for line in theirs)
        assert totals.proposed == sum(line["proposed"] for line in theirs)
        assert totals.raised == sum(line["accepted"] for line in against)
        assert totals.paid == pytest.approx(sum(line["cost"] for line in against))
    for i, window in enumerate(report.windows):
        those = [line for line in log[i * horizon : (i + 1) * horizon] if line["overruled"]]
        assert window.overruled == len(those)
        assert window.paid == pytest.approx(sum(line["cost"] for line in those))


@given(specs(), st.lists(requests, min_size=1, max_size=10), st.data())
def test_the_first_decision_that_is_not_the_policys_is_named(
    spec: Spec, stream: list[Request], data: st.DataObject
) -> None:
    policy = spec.feasible_policy()
    log = log_of(policy, stream)
    at = data.draw(st.integers(0, len(log) - 1))
    ours = log[at]["accepted"]
    log[at] |= {"accepted": not ours, "overruled": log[at]["proposed"] == ours}
    report = fs.audit(policy.prop, records_of(log), policy=policy)
    assert not report
    difference = report.difference
    assert difference is not None
    assert (difference.line, difference.accepted, difference.expected) == (at + 1, not ours, ours)
    assert difference.reason


@given(specs(labelled_properties), st.lists(requests, min_size=1, max_size=10))
def test_the_last_outcome_may_be_pending(spec: Spec, stream: list[Request]) -> None:
    policy = spec.feasible_policy()
    log = log_of(policy, stream)
    del log[-1]["outcome"]
    report = fs.audit(policy.prop, records_of(log), policy=policy)
    assert report.holds
    assert report.difference is None
    assert report.decisions == len(log)
    last = report.windows[-1]
    assert not last.complete
    in_window = log[len(log) - last.decisions : -1]
    assert last.counts == recount(policy.prop, policy.start, in_window)


@given(properties, plain_logs(), starts(), st.integers(1, 5))
def test_reports_are_json(
    prop: fs.Property, log: list[Any], start: fs.Counts, horizon: int
) -> None:
    report = fs.audit(prop, records_of(log), horizon=horizon, start=start)
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert data["holds"] == (None if report.holds and not report else report.holds)
    assert len(data["windows"]) == len(report.windows)
    assert [v["line"] for v in data["violations"]] == [v.line for v in report.violations]


# Windows ------------------------------------------------------------------------------------


def test_an_unfinished_window_is_no_violation_however_unfair() -> None:
    log = people(("a", 1), ("b", 0), ("a", 1))
    report = fs.audit(PARITY, log, horizon=4)
    window = report.windows[0]
    assert report.holds
    assert (window.complete, window.holds, window.bias) == (False, False, 1.0)
    assert not fs.audit(PARITY, log, horizon=3).holds
    assert not fs.audit(PARITY, log, horizon=4, checkpoints=(2,)).holds


def test_a_window_whose_last_outcome_is_pending_is_no_violation_yet() -> None:
    log = people(("a", 1, 1), ("b", 0, 1), ("a", 1))
    report = fs.audit(EQUAL, log, horizon=3)
    assert report.holds
    assert not report.windows[0].complete
    assert not report.windows[0].holds
    assert not fs.audit(EQUAL, people(("a", 1, 1), ("b", 0, 1), ("a", 1, 1)), horizon=3).holds


def test_an_infinite_bias_is_null_in_json() -> None:
    ratio = fs.DisparateImpact(2, two_sided=False)
    report = fs.audit(ratio, people(("a", 1), ("b", 0)))
    assert report.violations[0].bias == float("inf")
    assert report.to_dict()["violations"][0]["bias"] is None


def test_without_a_horizon_the_log_is_one_window() -> None:
    report = fs.audit(PARITY, people(("a", 1), ("b", 0), ("b", 1)))
    assert [(w.first_line, w.last_line, w.complete) for w in report.windows] == [(1, 3, True)]
    assert report.violations[0].counts == fs.Counts({"a": (1, 1), "b": (2, 1)})


def test_every_window_begins_at_the_start() -> None:
    start = fs.Counts({"a": (1, 1), "b": (1, 1)})
    log = people(("a", 1), ("b", 1), ("a", 0), ("b", 0))
    report = fs.audit(PARITY, log, horizon=2, start=start)
    assert [w.counts["a"] for w in report.windows] == [(2, 2), (2, 1)]
    assert [(w.first_line, w.last_line) for w in report.windows] == [(1, 2), (3, 4)]


def test_lines_are_those_of_the_file_blank_ones_included() -> None:
    lines = ['{"group": "a", "accepted": 1}', "", '{"group": "b", "accepted": 0}']
    assert fs.audit(PARITY, read_records(lines, "jsonl")).violations[0].line == 3


def test_a_stream_is_read_as_it_comes() -> None:
    def endless() -> Any:
        for line in range(1, 10**9):
            yield Record(line, {"group": "ab"[line % 2], "accepted": 1})

    report = fs.audit(PARITY, islice(endless(), 1000), groups=("a", "b"), horizon=10)
    assert len(report.windows) == 100


def test_an_empty_log_holds_and_has_no_windows() -> None:
    report = fs.audit(PARITY, [], groups=("a", "b"), horizon=3)
    assert (report.holds, report.windows, report.decisions) == (True, (), 0)


def test_another_property_than_the_policys_can_be_audited(plain_policy: fs.Policy) -> None:
    shield = fs.Shield(plain_policy)
    log = [logged(shield.decide("a", proposed=True), outcome=True) for _ in range(6)]
    report = fs.audit(EQUAL, records_of(log), policy=plain_policy)
    assert report.windows[0].counts["a"].seen == 6
    assert report.difference is None


# Who was overruled --------------------------------------------------------------------------


def test_a_log_without_proposals_overrules_nobody() -> None:
    assert fs.audit(PARITY, people(("a", 1), ("b", 1))).overruled == 0


def test_a_log_may_say_only_that_a_decision_was_overruled() -> None:
    log = [Record(1, {"group": "a", "accepted": 1, "overruled": 1, "cost": 2.5})]
    report = fs.audit(PARITY, log, groups=("a", "b"))
    assert (report.overruled, report.paid) == (1, 2.5)


# Faults -------------------------------------------------------------------------------------

GOOD = {"group": "a", "proposed": True, "cost": 1.0, "accepted": True, "outcome": True}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"accepted": None}, "line 2: 'accepted' is empty"),
        ({"accepted": "maybe"}, "line 2: accepted: expected 1/0"),
        ({"group": None}, "line 2: the group is empty"),
        ({"group": "c"}, "line 2: unknown group 'c', expected 'a' or 'b'"),
        ({"outcome": None}, "line 2: no 'outcome'.*equal opportunity"),
        ({"outcome": "soon"}, "line 2: outcome"),
        ({"cost": -1}, "line 2: cost"),
        ({"overruled": True}, "line 2: 'overruled' is True, which contradicts"),
    ],
)
def test_faults_name_their_line(changes: dict[str, Any], message: str) -> None:
    log = [Record(1, GOOD), Record(2, {**GOOD, **changes}), Record(3, GOOD)]
    with pytest.raises(fs.FairshieldError, match=message):
        fs.audit(EQUAL, log, groups=("a", "b"))


def test_a_policy_needs_proposals_and_outcomes(labelled_policy: fs.Policy) -> None:
    log = people(("a", True, True), ("a", True, True))
    with pytest.raises(fs.InvalidValueError, match="line 1: no 'proposed'"):
        fs.audit(EQUAL, log, policy=labelled_policy)
    without = [Record(i, {**GOOD, "outcome": None}) for i in (1, 2)]
    with pytest.raises(fs.InvalidValueError, match=r"line 1: no 'outcome'.*equal opportunity"):
        fs.audit(PARITY, without, policy=labelled_policy)


def test_what_agrees_with_the_policy_may_be_given_in_any_order(even: fs.InputModel) -> None:
    policy = fs.synthesize(PARITY, even, horizon=6, checkpoints=(2, 4))
    for points in ((2, 4), (4, 2), (4, 2, 2), ()):
        assert fs.audit(PARITY, [], policy=policy, checkpoints=points).holds


def test_start_counters_of_one_group_are_refused() -> None:
    with pytest.raises(fs.InvalidValueError, match=r"only one group, 'a': two are compared"):
        fs.audit(PARITY, people(("a", 1)), start=fs.Counts({"a": (1, 1)}))


def test_groups_default_to_those_of_the_log_in_order() -> None:
    report = fs.audit(PARITY, people(("y", 1), ("x", 1)))
    assert tuple(report.windows[0].counts) == ("x", "y")


def test_a_log_that_shows_one_group_needs_the_name_of_the_other() -> None:
    with pytest.raises(fs.InvalidValueError, match=r"only one group, 'a'.*name both with groups="):
        fs.audit(PARITY, people(("a", 1)))


def test_a_log_without_decisions_needs_no_names() -> None:
    report = fs.audit(PARITY, [])
    assert (report.verdict, report.decisions, report.windows) == ("exempt", 0, ())


def test_a_policy_is_not_a_property(plain_policy: fs.Policy) -> None:
    with pytest.raises(fs.InvalidValueError, match=r"pass policy\.prop, got <Policy"):
        fs.audit(plain_policy, [])


@pytest.mark.parametrize(
    "given",
    [
        {"horizon": 7},
        {"groups": ("b", "a")},
        {"start": fs.Counts({"a": (1, 1), "b": (0, 0)})},
        {"checkpoints": (2,)},
    ],
)
def test_what_contradicts_the_policy_is_refused(
    given: dict[str, Any], plain_policy: fs.Policy
) -> None:
    with pytest.raises(fs.InvalidValueError, match=r"is not the policy's"):
        fs.audit(PARITY, [], policy=plain_policy, **given)


@pytest.mark.parametrize(
    "given",
    [
        {"horizon": 0},
        {"horizon": 2.5},
        {"horizon": True},
        {"horizon": 3, "checkpoints": (4,)},
        {"checkpoints": (0,)},
        {"checkpoints": ("2",)},
    ],
)
def test_windows_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(fs.InvalidValueError, match=r"must be (a )?whole number"):
        fs.audit(PARITY, [], groups=("a", "b"), **given)


def test_checkpoints_of_the_policy_are_checked(even: fs.InputModel) -> None:
    planned = fs.synthesize(fs.DemographicParity(1), even, horizon=4)
    policy = with_spec(planned, prop=PARITY, checkpoints=(2,))
    log = [{"group": g, "proposed": g == "a", "accepted": g == "a"} for g in "ab"]
    report = fs.audit(PARITY, records_of(log), policy=policy)
    assert [v.position for v in report.violations] == [2]


def test_auditing_needs_no_compiler() -> None:
    code = """if True:
        import sys
        sys.modules["numba"] = None
        import fairshield as fs
        from fairshield.records import Record
        inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
        prop = fs.DemographicParity("0.5")
        policy = fs.synthesize(prop, inputs, horizon=2, backend="reference")
        log = [Record(i, {"group": g, "proposed": 1, "accepted": 1}) for i, g in enumerate("ab", 1)]
        assert fs.audit(prop, log, policy=policy).holds
    """
    subprocess.run([sys.executable, "-c", code], check=True)


# Periods ------------------------------------------------------------------------------------

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
PERIODIC = [
    StaticFair(fs.DemographicParity("0.25"), EVEN, 3),
    Dynamic(fs.EqualOpportunity("0.25"), EVEN, 3),
    ExactPeriodic(fs.DemographicParity("0.25"), EVEN, 3, periods=4),
    Perpetual(fs.DemographicParity("0.25"), EVEN, 3, start=fs.Counts({"a": (4, 2), "b": (4, 2)})),
]
WINDOW = kind_of(fs.synthesize(PARITY, EVEN, horizon=6, checkpoints=(4,)))


def periodic_log(policy: PeriodicPolicy, stream: list[Request]) -> list[dict[str, Any]]:
    """Decisions of a run."""
    lines, shield = [], Run(policy)
    for request in stream:
        decision = shield.decide(request.group, proposed=request.proposed, cost=request.cost)
        if policy.labelled:
            shield.observe(decision, outcome=request.outcome)
        lines.append(logged(decision, request.outcome if policy.labelled else None))
    return lines


@given(properties, plain_logs(), starts(), st.integers(1, 5))
def test_counters_go_on_from_period_to_period(
    prop: fs.Property, log: list[Any], start: fs.Counts, period: int
) -> None:
    report = fs.audit(prop, records_of(log), period=period, start=start)
    ends = range(period, len(log) + 1, period)
    totals = [recount(prop, start, log[:n]) for n in ends]
    unfair = [
        (i, n, period, counts)
        for i, (n, counts) in enumerate(zip(ends, totals, strict=True))
        if not prop.holds(counts)
    ]
    assert [(v.window, v.line, v.position, v.counts) for v in report.violations] == unfair
    complete = [window for window in report.windows if window.complete]
    assert [window.counts for window in complete] == totals
    assert len(report.windows) - len(complete) == bool(len(log) % period)
    assert len(report.overruled_by_position) == min(len(log), period)


@settings(max_examples=examples(30))
@given(st.sampled_from(PERIODIC), st.lists(requests, max_size=12))
def test_the_log_of_a_periodic_shield_is_derived_again(
    policy: PeriodicPolicy, stream: list[Request]
) -> None:
    shield = Run(policy)
    report = fs.audit(policy.prop, records_of(periodic_log(policy, stream)), policy=shield)
    assert report.difference is None
    assert report.decisions == len(stream) == shield.decided
    assert report.windows == () or report.windows[-1].counts == shield.counts
    assert report.holds == (shield.state.history.unfair_at is None)
    if policy.unconditional:
        assert report.holds


@settings(max_examples=examples(30))
@given(st.sampled_from(PERIODIC), st.lists(requests, min_size=1, max_size=12), st.data())
def test_the_first_decision_that_is_not_the_periodic_shields_is_named(
    policy: PeriodicPolicy, stream: list[Request], data: st.DataObject
) -> None:
    log = periodic_log(policy, stream)
    at = data.draw(st.integers(0, len(log) - 1))
    ours = log[at]["accepted"]
    log[at] |= {"accepted": not ours, "overruled": log[at]["proposed"] == ours}
    found = fs.audit(policy.prop, records_of(log), policy=policy).difference
    assert found is not None
    assert (found.line, found.accepted, found.expected) == (at + 1, not ours, ours)


def test_another_property_may_be_asked_of_a_periodic_log() -> None:
    policy = PERIODIC[3]
    log = periodic_log(policy, [Request(g, True, 1.0, True) for g in "abab" * 3])
    report = fs.audit(fs.BoundedRates("0.4", "0.6"), records_of(log), policy=policy)
    assert not report.holds
    assert report.difference is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"period": 3, "horizon": 3}, "neither a horizon nor checkpoints: .* leave out one"),
        ({"period": 3, "checkpoints": (2,)}, "neither a horizon nor checkpoints"),
        ({"period": 0}, "period must be a whole number of at least 1, got 0"),
        ({"period": 2.5}, "period must be a whole number of at least 1, got 2.5"),
    ],
)
def test_periods_and_windows_do_not_mix(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(fs.InvalidValueError, match=sentence):
        fs.audit(PARITY, people(("a", 1), ("b", 1)), **options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"period": 4}, "period 4 is not the policy's 3: leave it out"),
        ({"groups": ("b", "a")}, "groups .* is not the policy's"),
        ({"start": fs.Counts({"a": (1, 1), "b": (0, 0)})}, "start .* is not the policy's"),
        ({"horizon": 3}, "horizon 3 is not the policy's none: leave it out"),
        ({"checkpoints": (1,)}, r"checkpoints \(1,\) is not the policy's \(\)"),
    ],
)
def test_what_contradicts_the_periodic_shield_is_refused(
    options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(fs.InvalidValueError, match=sentence):
        fs.audit(PARITY, [], policy=PERIODIC[0], **options)


@settings(max_examples=examples(30))
@given(st.sampled_from([*PERIODIC, WINDOW]), st.lists(requests, max_size=12), st.booleans())
def test_a_new_run_decides_again_what_its_policy_does(
    policy: PeriodicPolicy, stream: list[Request], changed: bool
) -> None:
    log = periodic_log(policy, stream)
    if changed and log:
        log[-1] |= {"accepted": not log[-1]["accepted"]}
        log[-1] |= {"overruled": log[-1]["accepted"] != log[-1]["proposed"]}
    by_policy = fs.audit(PARITY, records_of(log), policy=policy.artefact)
    assert by_policy == fs.audit(PARITY, records_of(log), policy=fs.Run(policy))
    assert (by_policy.difference is None) != (changed and bool(log))
    with pytest.warns(DeprecationWarning, match=r"shield=\.\.\.\) is called audit\(policy="):
        assert by_policy == fs.audit(PARITY, records_of(log), shield=fs.Run(policy))


def test_what_decides_again_is_a_policy_or_a_new_run() -> None:
    policy = fs.synthesize(PARITY, EVEN, horizon=6)
    used, at_an_end = fs.Run(policy), fs.Run(policy)
    used.decide("a", proposed=True)
    at_an_end.decide_many(["a"] * 6, [True] * 6)
    wrong: Any
    for wrong, sentence in (
        (used, r"has decided already, 1 times: give its policy, run\.policy"),
        (at_an_end, "has decided already, 6 times: give its policy"),
        (fs.Shield(policy), "policy must be a policy: .*, got .*Shield"),
    ):
        with pytest.raises(fs.InvalidValueError, match=sentence):
            fs.audit(PARITY, [], policy=wrong)
    with (
        pytest.warns(DeprecationWarning, match="shield"),
        pytest.raises(fs.InvalidValueError, match=r"earlier name of policy, .*: leave out one"),
    ):
        fs.audit(PARITY, [], policy=policy, shield=fs.Run(policy))


@pytest.mark.parametrize(
    ("order", "line", "sentence"),
    [
        ([0, 1, 3, 4, 5], 3, "its 'position' is 3 where 2 was expected"),
        ([0, 1, 1, 2, 3], 3, "its 'position' is 1 where 2 was expected"),
        ([1, 0, 2, 3, 4], 1, "its 'position' is 1 where 0 was expected"),
        ([*range(6), 7, 8], 7, "its 'position' is 1 where 0 was expected"),
    ],
)
def test_a_line_that_is_missing_doubled_or_out_of_order_is_named(
    order: list[int], line: int, sentence: str
) -> None:
    policy = fs.synthesize(PARITY, EVEN, horizon=6)
    run, whole = fs.Run(policy), []
    for group in "abab" * 3:
        made = run.decide(group, proposed=True)
        place = {"window": made.window, "position": made.position, "reason": made.reason}
        whole.append({**logged(made, None), **place})
    found = fs.audit(PARITY, records_of([whole[i] for i in order]), policy=policy)
    assert found.difference is not None
    assert (found.difference.line, found.difference.expected) == (line, None)
    assert sentence in found.difference.reason
    assert not found
    others = [{k: v for k, v in whole[i].items() if k != "reason"} for i in order]
    assert fs.audit(PARITY, records_of(others), policy=policy).difference is None
    assert fs.audit(PARITY, records_of(whole[6:]), policy=policy).difference is None


def test_a_log_that_outlives_the_plan_names_its_line() -> None:
    policy = ExactPeriodic(fs.DemographicParity("0.25"), EVEN, 2, periods=1)
    log = periodic_log(policy, [Request("a", True, 1.0, True)] * 2)
    with pytest.raises(fs.InvalidValueError, match="line 3: this run is over after its last"):
        fs.audit(policy.prop, records_of([*log, log[0]]), policy=policy)
