"""Laws of monitors: one at a time or many at once, stopped or not, they say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    GROUPS,
    Request,
    follow,
    input_models,
    labelled_properties,
    plain_properties,
    properties,
    requests,
    run,
    schedules,
    starts,
)

import fairshield as fs
from fairshield.monitor import evidence, monitor
from fairshield.records import Record


@pytest.fixture(autouse=True, scope="module")
def soon() -> Iterator[None]:
    """Looks every four decisions, and bets that begin anew after eight and after twenty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "CHECK_EVERY", 4)
        patch.setattr(monitor, "CHECK_EVERY", 4)
        patch.setattr(evidence, "LENGTHS", (8, 20))
        patch.setattr(monitor, "_AT_ONCE", 16)
        yield


class Seen(NamedTuple):
    """A request, and what was decided."""

    request: Request
    accepted: bool


seen = st.builds(Seen, requests, st.booleans())
streams = st.lists(seen, max_size=60)
models = input_models(2, binned=True) | schedules()


class Watch(NamedTuple):
    """A property, and the other arguments of a monitor of two groups, or of any."""

    prop: fs.Property
    given: dict[str, Any]


@st.composite
def watches(draw: st.DrawFn) -> Watch:
    """Groups are named where the property compares the first with the second."""
    prop = draw(properties)
    size = draw(st.integers(1, 12))
    window = draw(st.sampled_from([{}, {"horizon": size}, {"period": size}]))
    unnamed = [] if prop.only_two else [{}]
    known: dict[str, Any] = draw(
        st.sampled_from([*unnamed, {"groups": GROUPS}])
        | st.builds(lambda inputs: {"inputs": inputs}, models)
        | st.builds(lambda start: {"start": start}, starts())
    )
    least, keep = draw(st.integers(0, 5)), draw(st.sampled_from([1, 3, 1000]))
    given_ = {**window, **known, "min_group_size": least, "confidence": 0.8, "keep": keep}
    return Watch(prop, given_)


def watched(monitor: fs.Monitor, stream: list[Seen]) -> list[fs.Alarm]:
    """One at a time."""
    alarms: list[fs.Alarm] = []
    for (group, proposed, cost, outcome), accepted in stream:
        alarms += monitor.observe(
            group, accepted=accepted, proposed=proposed, cost=cost, outcome=outcome
        ).alarms
    return alarms


def watched_at_once(monitor: fs.Monitor, stream: list[Seen]) -> list[fs.Alarm]:
    """Many at once."""
    return list(
        monitor.observe_many(
            np.array([s.request.group for s in stream], object),
            np.array([s.accepted for s in stream], bool),
            np.array([s.request.proposed for s in stream], bool),
            np.array([s.request.cost for s in stream], float),
            np.array([s.request.outcome for s in stream], bool),
        )
    )


@given(watches(), streams, st.lists(st.integers(0, 60), max_size=3))
def test_many_at_once_are_the_same_as_one_at_a_time(
    watch: Watch, stream: list[Seen], cuts: list[int]
) -> None:
    prop, given_ = watch
    one, many = fs.Monitor(prop, **given_), fs.Monitor(prop, **given_)
    alarms = watched(one, stream)
    found: list[fs.Alarm] = []
    edges = [0, *sorted(cuts), len(stream)]
    for first, last in pairwise(edges):
        found += watched_at_once(many, stream[first:last])
    assert many.state == one.state
    assert many.alarms == one.alarms
    assert str(many.report()) == str(one.report())
    assert found == alarms
    if given_["keep"] == 1000:
        assert alarms == list(one.alarms)


@given(watches(), streams, st.integers(0, 60))
def test_a_monitor_that_is_stopped_and_resumed_says_the_same(
    watch: Watch, stream: list[Seen], cut: int
) -> None:
    prop, given_ = watch
    whole, first = fs.Monitor(prop, **given_), fs.Monitor(prop, **given_)
    watched(whole, stream)
    watched(first, stream[:cut])
    state = json.loads(json.dumps(first.state))
    second = fs.Monitor(prop, **given_, state=state)
    watched(second, stream[cut:])
    assert second.state == whole.state
    assert second.report().to_dict() == whole.report().to_dict()


@given(watches(), streams)
def test_every_window_is_fair_unfair_or_exempt(watch: Watch, stream: list[Seen]) -> None:
    prop, given_ = watch
    watching = fs.Monitor(prop, **{**given_, "keep": 1000})
    watched(watching, stream)
    watching.end()
    report = watching.report()
    said = [prop.verdict(w.counts) if len(w.counts) > 1 else "exempt" for w in report.recent]
    assert said == [w.verdict for w in report.recent]
    assert (report.unfair, report.exempt) == (said.count("unfair"), said.count("exempt"))
    for window in report.recent:
        shown = prop.measured_bias_of(window.counts) if len(window.counts) > 1 else 0.0
        assert window.measured == pytest.approx(shown)
    if said:
        some = "unfair" if "unfair" in said else "fair" if "fair" in said else "exempt"
        assert report.verdict == some
        assert not report.quiet or (some == "fair" and not report.alarms and not report.doubt)
    else:
        assert not report.quiet


@given(watches(), streams)
def test_states_saved_before_exempt_windows_were_counted_go_on(
    watch: Watch, stream: list[Seen]
) -> None:
    prop, given_ = watch
    whole = fs.Monitor(prop, **{**given_, "keep": 1000})
    watched(whole, stream)
    saved = json.loads(json.dumps(whole.state))
    del saved["outcomes"]
    for key in ("exempt", "untold", "worst_measured"):
        del saved["tally"][key]
    for window in saved["tally"]["recent"]:
        del window["measured"], window["exempt"]
    before = whole.report()
    report = fs.Monitor(prop, **{**given_, "keep": 1000}, state=saved).report()
    assert report.recent == before.recent
    assert (report.exempt, report.verdict) == (before.exempt, before.verdict)
    assert report.untold == 0  # all were kept
    assert report.largest_measured == pytest.approx(before.largest_measured)


@given(labelled_properties, streams)
def test_how_groups_are_called_does_not_matter(prop: fs.Property, stream: list[Seen]) -> None:
    other = dict(zip(GROUPS, reversed(GROUPS), strict=True))
    found = []
    for names in (dict(zip(GROUPS, GROUPS, strict=True)), other):
        watching = fs.Monitor(prop, groups=[names[g] for g in GROUPS])
        for (group, _, _, outcome), accepted in stream:
            watching.expect(names[group], accepted=accepted)
            if accepted:
                watching.observe(names[group], accepted=accepted, outcome=outcome)
        found.append(watching.report().doubt)
    assert found[0] == found[1]
    assert (found[0] is not None) == any(not s.accepted for s in stream)


@given(properties, st.sampled_from(["horizon", "period"]), st.integers(1, 9), streams, starts())
def test_windows_are_those_of_an_audit(
    prop: fs.Property, kind: str, size: int, stream: list[Seen], start: fs.Counts
) -> None:
    watching = fs.Monitor(prop, start=start, **{kind: size})
    watched(watching, stream)
    records = [
        Record(i, {"group": r.group, "proposed": r.proposed, "accepted": y, "outcome": r.outcome,
                   "cost": r.cost})
        for i, (r, y) in enumerate(stream, 1)
    ]  # fmt: skip
    audited = fs.audit(prop, records, start=start, **{kind: size})
    report = watching.report()
    complete = [w for w in audited.windows if w.complete]
    assert [(w.counts, w.bias, w.holds) for w in report.recent] == [
        (w.counts, w.bias, w.holds) for w in complete
    ]
    assert report.windows == len(complete)
    assert report.unfair == len(audited.violations)
    assert [a.at for a in report.alarms if a.kind == "violation"] == [
        v.line for v in audited.violations
    ]
    assert report.overruled == audited.overruled
    assert report.paid == pytest.approx(audited.paid)


@given(
    plain_properties.filter(lambda p: p.only_two is None),
    st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=40),
)
def test_more_groups_are_compared_pair_by_pair(
    prop: fs.Property, stream: list[tuple[str, bool]]
) -> None:
    watching = fs.Monitor(prop)
    for group, accepted in stream:
        watching.observe(group, accepted=accepted)
    report = watching.report()
    pairs = [fs.Counts(dict(pair)) for pair in combinations(watching.counts.items(), 2)]
    assert watching.groups == tuple(dict.fromkeys(group for group, _ in stream))
    assert report.holds == all(prop.holds(pair) for pair in pairs)
    assert report.bias == max((prop.bias_of(pair) for pair in pairs), default=0.0)
    assert [pair.groups for pair in report.pairs] == [tuple(pair) for pair in pairs]


@settings(max_examples=examples(15))
@given(
    (plain_properties | labelled_properties).filter(lambda p: p.min_support < 3),
    input_models(2),
    st.integers(1, 5),
    st.lists(seen, max_size=25),
    st.booleans(),
)
def test_a_shadow_decides_as_a_shield_would(
    prop: fs.Property, inputs: fs.InputModel, horizon: int, stream: list[Seen], at_once: bool
) -> None:
    policy = fs.synthesize(prop, inputs, horizon=horizon, best_effort=True)
    watching = fs.Monitor(prop, shadow=policy)
    asked = [s.request for s in stream]
    windows = [asked[i : i + horizon] for i in range(0, len(asked), horizon)]
    shields = [fs.Shield(policy) for _ in windows]
    decided = (run(shield, window) for shield, window in zip(shields, windows, strict=True))
    expected = [d._replace(window=n) for n, made in enumerate(decided) for d in made]
    if at_once:
        watched_at_once(watching, stream)
    else:
        shadows = [
            watching.observe(
                s.request.group,
                accepted=s.accepted,
                proposed=s.request.proposed,
                cost=s.request.cost,
                outcome=s.request.outcome,
            ).shadow
            for s in stream
        ]
        assert shadows == expected
    found = watching.report().shadow
    assert found is not None
    assert (found.decisions, found.windows) == (len(stream), len(stream) // horizon)
    assert found.overruled == sum(d.overruled for d in expected)
    assert found.paid == pytest.approx(sum(d.paid for d in expected))
    assert found.changed == sum(
        d.accepted != s.accepted for d, s in zip(expected, stream, strict=True)
    )
    over = [shield for shield in shields if not shield.remaining]
    assert found.unfair == sum(not prop.holds(shield.counts) for shield in over)
    assert found.overruled_by_group == {
        g: sum(d.overruled for d in expected if d.group == g) for g in GROUPS
    }
    again = fs.Monitor(prop, shadow=policy, state=json.loads(json.dumps(watching.state)))
    assert again.state == watching.state


@settings(max_examples=examples(10))
@given(st.lists(seen, max_size=20), st.booleans(), st.integers(0, 20))
def test_a_periodic_shadow_decides_as_a_periodic_shield_would(
    stream: list[Seen], at_once: bool, cut: int
) -> None:
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    policy = fs.DynamicShield(fs.DemographicParity("0.3"), inputs, period=4).policy
    watching = fs.Monitor(policy.prop, shadow=policy)
    shield = fs.Run(policy)
    decisions = [follow(shield, s.request) for s in stream]
    watch = watched_at_once if at_once else watched
    watch(watching, stream[:cut])
    resumed = fs.Monitor(policy.prop, shadow=policy, state=json.loads(json.dumps(watching.state)))
    watch(resumed, stream[cut:])
    found = resumed.report().shadow
    assert found is not None
    assert found.overruled == sum(d.overruled for d in decisions)
    assert (found.windows, found.decisions) == (shield.completed, len(stream))


@settings(max_examples=examples(10))
@given(st.lists(seen, max_size=40), st.booleans(), st.integers(0, 40))
def test_a_shadow_with_a_last_period_stops_after_it(
    stream: list[Seen], at_once: bool, cut: int
) -> None:
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    shield = fs.ExactPeriodicShield(fs.DemographicParity("0.3"), inputs, period=4, periods=3)
    policy, ran = shield.policy, min(len(stream), 12)
    decisions = [follow(shield, s.request) for s in stream[:ran]]
    watching = fs.Monitor(policy.prop, shadow=policy)
    watch = watched_at_once if at_once else watched
    watch(watching, stream[:cut])
    resumed = fs.Monitor(policy.prop, shadow=policy, state=json.loads(json.dumps(watching.state)))
    watch(resumed, stream[cut:])
    found, short = resumed.report().shadow, fs.Monitor(policy.prop, period=4, start=policy.start)
    watched(short, stream[:ran])
    assert found is not None
    assert (found.decisions, found.windows, found.over) == (ran, ran // 4, ran == 12)
    assert found.overruled == sum(d.overruled for d in decisions)
    assert found.changed == sum(
        d.accepted != s.accepted for d, s in zip(decisions, stream[:ran], strict=True)
    )
    assert found.unfair_unshielded == short.report().unfair
    assert ("its run is over" in str(found)) == found.over
