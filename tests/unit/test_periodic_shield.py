"""Periodic shields: one suite for all five, then what sets each apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import Quota, Request, follow, relevant

import fairshield as fs
from fairshield.periodic import load_policy
from fairshield.periodic.dynamic import Dynamic
from fairshield.periodic.exact import ExactPeriodic
from fairshield.periodic.optimal import OptimalPeriodic
from fairshield.periodic.perpetual import Perpetual
from fairshield.periodic.policy import PeriodicPolicy
from fairshield.periodic.state import RunState
from fairshield.periodic.static import StaticBounded, StaticFair

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
SKEWED = fs.InputModel.from_table(
    {
        ("a", True, 0.25): 0.4, ("a", False, 1.0): 0.2,
        ("b", True, 1.0): 0.1, ("b", False, 0.25): 0.3,
    },
    outcomes={"a": 0.75, "b": 0.5},
)  # fmt: skip
T = 6
PERIODS = 3
POLICIES: dict[str, Callable[..., PeriodicPolicy]] = {
    "static-fair": lambda prop, inputs=SKEWED: StaticFair(prop, inputs, T),
    "static-bounded": lambda prop, inputs=SKEWED: StaticBounded(prop, inputs, T),
    "dynamic": lambda prop, inputs=SKEWED: Dynamic(prop, inputs, T),
    "exact": lambda prop, inputs=SKEWED: ExactPeriodic(prop, inputs, T, periods=PERIODS),
    "optimal": lambda prop, inputs=SKEWED: OptimalPeriodic(prop, inputs, T, periods=PERIODS),
    "perpetual": lambda prop, inputs=SKEWED: Perpetual(prop, inputs, T),
}
KINDS = (fs.DemographicParity, fs.EqualOpportunity, fs.PredictiveEquality)
_MADE: dict[tuple[str, type], PeriodicPolicy] = {}


@pytest.fixture(params=KINDS, ids=lambda kind: kind.kind)
def kind(request: pytest.FixtureRequest) -> type[fs.Property]:
    return request.param


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest, kind: type[fs.Property]) -> PeriodicPolicy:
    key = request.param, kind
    if key not in _MADE:
        _MADE[key] = POLICIES[request.param](kind("1/2"))
    return _MADE[key]


def stream(length: int, shift: int = 0) -> list[Request]:
    """Both groups, both proposals, cheap and dear, now one group for a while and then the other."""
    return [
        Request("ab"[(i * i // 3 + shift) % 2], (i + shift) % 3 != 0, (0.25, 1.0)[i % 2], i % 4 > 0)
        for i in range(length)
    ]


def through_json(state: RunState) -> dict[str, Any]:
    return json.loads(json.dumps(state.to_dict()))


# All five -----------------------------------------------------------------------------------


def test_everybody_is_counted_from_the_beginning_of_the_run(policy: PeriodicPolicy) -> None:
    shield = fs.Run(policy)
    counts = fs.Counts.zero(("a", "b"))
    for i, request in enumerate(stream(PERIODS * T)):
        assert (shield.decided, shield.completed) == (i, i // T)
        assert shield.remaining == T - i % T
        decision = follow(shield, request)
        assert decision.position == i % T
        if policy.prop.relevant_outcome in (None, request.outcome):
            counts = counts.after(request.group, accepted=decision.accepted)
        assert shield.counts == counts
        assert shield.holds() == policy.prop.holds(counts)
    report = shield.guarantee
    assert (report.decided, report.completed) == (PERIODS * T, PERIODS)
    assert (report.title, report.length) == (policy.title, T)
    assert (report.unfair_at is None) == (report.unfair == 0)
    assert str(policy.prop) in str(report)
    assert json.loads(json.dumps(report.to_dict()))["completed"] == PERIODS


def test_a_run_goes_on_from_its_state_at_every_decision(policy: PeriodicPolicy) -> None:
    """Same decisions, same report, same state, also while an outcome is awaited."""
    steady = fs.Run(policy)
    for request in stream(2 * T + 1, shift=1):
        resumed = fs.Run(policy, state=through_json(steady.state))
        assert resumed.guarantee == steady.guarantee
        assert (resumed.counts, resumed.remaining) == (steady.counts, steady.remaining)
        answers = [
            shield.decide(request.group, proposed=request.proposed, cost=request.cost)
            for shield in (steady, resumed)
        ]
        assert answers[0] == answers[1]
        if policy.labelled:
            again = fs.Run(policy, state=through_json(steady.state))
            assert again.pending == steady.pending == answers[0]
            assert again.guarantee == steady.guarantee
            for shield in (steady, resumed, again):
                shield.observe(answers[0], outcome=request.outcome)
            assert again.state == steady.state
        assert resumed.state == steady.state
        assert resumed.guarantee == steady.guarantee


@pytest.mark.parametrize("done", [1, 2])
def test_ends_of_which_an_older_state_tells_nothing_are_not_said_to_be_fair(done: int) -> None:
    policy = Dynamic(fs.DemographicParity("0.3", min_support=100), EVEN, T)
    shield = fs.Run(policy)
    shield.decide_many([*"ab" * (done * T // 2)], [True] * (done * T))
    old = json.loads(json.dumps(shield.state.to_dict()))
    for key in ("exempt_ends", "untold_ends"):
        del old["history"][key]
    resumed = fs.Run(policy, state=old)
    assert (resumed.guarantee.exempt, resumed.guarantee.untold) == (0, done)
    said = {1: "The first period ended fair or exempt", 2: "0 of 2 periods ended fair, 2 fair or"}
    assert said[done] in str(resumed.guarantee)
    resumed.decide_many([*"ab" * (T // 2)], [True] * T)
    again = fs.Run(policy, state=through_json(resumed.state)).guarantee
    assert (again.fair, again.exempt, again.untold) == (0, 1, done)
    more = {**old["history"], "exempt_ends": 1, "untold_ends": done}
    with pytest.raises(fs.InvalidValueError):
        fs.Run(policy, state={**old, "history": more})


def test_states_compare_and_travel(policy: PeriodicPolicy) -> None:
    shield = fs.Run(policy)
    follow(shield, stream(1)[0])
    assert RunState.from_dict(through_json(shield.state)) == shield.state


def test_reading_the_report_changes_nothing(policy: PeriodicPolicy) -> None:
    read, unread = fs.Run(policy), fs.Run(policy)
    for request in stream(2 * T):
        assert read.guarantee == read.guarantee
        assert follow(read, request) == follow(unread, request)
    assert read.guarantee == unread.guarantee


def test_the_state_of_another_policy_is_refused(policy: PeriodicPolicy) -> None:
    other = StaticFair(fs.DemographicParity("1/3"), SKEWED, T)
    with pytest.raises(fs.InvalidValueError, match="another policy"):
        fs.Run(policy, state=fs.Run(other).state)


def test_what_is_no_decision_is_named(policy: PeriodicPolicy) -> None:
    run = fs.Run(policy)
    for act in (
        lambda: run.observe(None, outcome=True),  # type: ignore[arg-type]
        lambda: run.record("x", final=True),  # type: ignore[arg-type]
        lambda: run.explain(None),  # type: ignore[arg-type]
    ):
        with pytest.raises(fs.InvalidValueError, match=r"a Decision, as .* returned, got"):
            act()
    with pytest.raises(fs.InvalidValueError, match=r"that of a run is its \.policy, got"):
        fs.Run(run)  # type: ignore[arg-type]


def test_a_state_goes_on_with_a_policy_that_was_made_again() -> None:
    policy = fs.synthesize(fs.DemographicParity("1/3"), SKEWED, horizon=T)
    run = fs.Run(policy)
    follow(run, stream(1)[0])
    again = replace(policy, version="99", expected_cost=policy.expected_cost * (1 + 1e-15))
    assert fs.Run(again, state=run.state).state == run.state
    other = fs.synthesize(fs.DemographicParity("1/4"), SKEWED, horizon=T)
    with pytest.raises(fs.InvalidValueError, match="another policy"):
        fs.Run(other, state=run.state)


@pytest.mark.parametrize("other", [{"method": "exact"}, {"method": "long", "endgame": 2}])
def test_a_state_does_not_go_on_with_a_policy_that_was_made_in_another_way(
    other: dict[str, Any],
) -> None:
    prop = fs.DemographicParity("1/3")
    run = fs.Run(fs.synthesize(prop, SKEWED, horizon=T, method="long", endgame=3))
    follow(run, stream(1)[0])
    with pytest.raises(fs.InvalidValueError, match="another policy"):
        fs.Run(fs.synthesize(prop, SKEWED, horizon=T, **other), state=run.state)


def test_a_saved_policy_decides_the_same(policy: PeriodicPolicy, tmp_path: Path) -> None:
    path = tmp_path / "periodic.shield"
    digest = policy.save(path)
    assert len(digest) == 64
    loaded = fs.PeriodicPolicy.load(path)
    assert isinstance(load_policy(path), type(policy))
    assert loaded.fingerprint == policy.fingerprint
    assert loaded.to_dict() == policy.to_dict()
    assert str(loaded) == str(policy)
    shields = fs.Run(policy), fs.Run(loaded)
    for request in stream(2 * T):
        assert follow(shields[0], request) == follow(shields[1], request)
    assert fs.Run(loaded, state=shields[0].state).guarantee == shields[0].guarantee


def test_a_periodic_file_is_no_policy_for_one_window(
    policy: PeriodicPolicy, tmp_path: Path
) -> None:
    path = tmp_path / "periodic.shield"
    policy.save(path)
    with pytest.raises(fs.ArtifactError, match=r"is a periodic policy: .* PeriodicPolicy\.load"):
        fs.Policy.load(path)


def test_a_policy_for_one_window_is_not_periodic(plain_policy: fs.Policy, tmp_path: Path) -> None:
    path = tmp_path / "plain.shield"
    plain_policy.save(path)
    with pytest.raises(fs.ArtifactError, match=r"for one window: load it with Policy\.load"):
        fs.PeriodicPolicy.load(path)
    assert isinstance(load_policy(path), fs.Policy)


def test_decisions_are_explained_in_the_period_and_after_its_end(policy: PeriodicPolicy) -> None:
    shield = fs.Run(policy)
    told: list[tuple[Any, Any]] = []
    for i, request in enumerate(stream(3 * T)):
        decision = follow(shield, request)
        assert (decision.window, decision.position) == (i // T, i % T)
        found = shield.explain(decision)
        assert str(found).startswith(f"Period {i // T + 1}. Decision {i % T + 1}, ")
        assert found.plan in str(found)
        told.append((decision, found))
        # Whatever has been decided since, in the next period the explanation is the same.
        for earlier, said in told[max(i - T + 1, 0) :: 3]:
            assert shield.explain(earlier) == said
    with pytest.raises(fs.InvalidValueError, match="belongs to period 0, whose plan is not kept"):
        shield.explain(told[0][0])


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    moves=st.lists(
        st.tuples(st.sampled_from("ab"), st.booleans(), st.booleans(), st.integers(0, 5)),
        min_size=2 * T,
        max_size=2 * T,
    )
)
def test_a_promise_made_after_an_override_is_kept(policy: PeriodicPolicy, moves: Any) -> None:
    """If nobody interferes any more, a period that is said to end fair does, resumed or not."""
    shield = fs.Run(policy)
    promised = shield.guarantee.guaranteed
    for group, proposed, outcome, dice in moves:
        advice = shield.advise(group, proposed=proposed)
        decision = shield.record(advice, final=advice.accepted != (dice == 0))
        if policy.labelled:
            shield.observe(decision, outcome=outcome)
        if decision.overruled != advice.overruled:
            promised = decision.guaranteed
        if decision.position == T - 1:
            assert shield.holds() or not promised
            promised = False
        promised = promised or shield.guarantee.guaranteed
        shield = fs.Run(policy, state=through_json(shield.state))


def test_a_decision_of_another_period_is_not_taken_for_one_of_this(policy: PeriodicPolicy) -> None:
    shield = fs.Run(policy)
    advice = shield.advise("a", proposed=True)
    for request in stream(T):
        follow(shield, request)
    with pytest.raises(fs.InvalidValueError, match="of period 0 is none of period 1"):
        shield.record(advice, final=True)


def test_an_unknown_group_is_refused_and_not_counted(policy: PeriodicPolicy) -> None:
    shield = fs.Run(policy)
    before = shield.state
    with pytest.raises(fs.UnknownGroupError):
        shield.decide("c", proposed=True)
    assert shield.state == before


def test_outcomes_are_awaited_where_they_count(policy: PeriodicPolicy) -> None:
    shield = fs.Run(policy)
    decision = shield.decide("a", proposed=True)
    if policy.labelled:
        with pytest.raises(fs.OutcomePendingError):
            shield.decide("a", proposed=True)
        shield.observe(decision, outcome=relevant(policy.prop))
        assert shield.counts["a"].seen == 1
    with pytest.raises(fs.UnexpectedOutcomeError):
        shield.observe(decision, outcome=True)


def test_a_person_who_breaks_the_guarantee_is_reported(policy: PeriodicPolicy) -> None:
    """Against the first advice that was forced; the run goes on, and the report remembers."""
    shield = fs.Run(policy)
    broken = None
    for i in range(PERIODS * T):
        group = "aaabbb"[i % T]
        advice = shield.advise(group, proposed=group == "a")
        against = broken is None and advice.why in (fs.Why.FORCED, fs.Why.CEILING)
        decision = shield.record(advice, final=advice.accepted != against)
        if against:
            broken = i + 1
            assert decision.why is fs.Why.HUMAN
            assert not decision.guaranteed
        if policy.labelled:
            shield.observe(decision, outcome=relevant(policy.prop))
        assert shield.guarantee.broken_at == broken
        assert shield.guarantee.held == (broken is None)
    assert broken is not None
    assert shield.guarantee.broken_by == "person"
    assert "person" in str(shield.guarantee)
    assert shield.completed == PERIODS


# States that no run can have reached --------------------------------------------------------

NONSENSE: dict[str, dict[str, Any]] = {
    "version": {"version": 99},
    "negative": {"decided": -1},
    "not whole": {"completed": 0.5},
    "too many decisions": {"decided": T + 1},
    "a period that is over": {"decided": T, "counts": [["a", T, 3], ["b", 0, 0]]},
    "more counted than decided": {"counts": [["a", 9, 3], ["b", 0, 0]]},
    "fewer than at the start": {"start": [["a", 3, 3], ["b", 0, 0]]},
    "counted before the run": {"start": [["a", 1, 1], ["b", 0, 0]]},
    "periods nobody came in": {"completed": 2},
    "not begun": {"decided": 0},
    "accepted more than seen": {"counts": [["a", 1, 2], ["b", 0, 0]]},
    "another group": {"counts": [["a", 2, 1], ["c", 0, 0]]},
    "a third group": {"start": [["a", 0, 0], ["b", 0, 0], ["c", 0, 0]]},
    "a group missing": {"counts": [["a", 2, 1]]},
    "malformed counts": {"counts": [["a", 2], ["b", 0]]},
    "malformed history": {"history": {"seasons": 4}},
    "malformed certificate": {"certificate": [["a", "x", "y"]]},
    "malformed decision": {"pending": {"why": "hunger", "seen_before": [0, 0, 0, 0]}},
    "pending without reason": {"pending": {}},
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("change", NONSENSE.values(), ids=NONSENSE)
def test_a_state_that_makes_no_sense_is_refused(name: str, change: dict[str, Any]) -> None:
    policy = _MADE.setdefault(
        (name, fs.DemographicParity), POLICIES[name](fs.DemographicParity("1/2"))
    )
    shield = fs.Run(policy)
    shield.decide("a", proposed=True)
    shield.decide("a", proposed=False)
    state = through_json(shield.state)
    assert fs.Run(policy, state=state).counts == shield.counts
    with pytest.raises((fs.InvalidValueError, fs.UnknownGroupError)) as caught:
        fs.Run(policy, state={**state, **change})
    assert len(str(caught.value)) > 20


@pytest.mark.parametrize("data", [{}, [], None, "state", {"version": 1}], ids=repr)
def test_data_that_is_no_state_is_refused(data: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match="not the state of a run"):
        RunState.from_dict(data)


def test_the_order_of_groups_in_a_state_does_not_matter() -> None:
    shield = fs.StaticFairShield(fs.DemographicParity("1/2"), EVEN, period=4)
    shield.decide("a", proposed=True)
    state = through_json(shield.state)
    turned = {**state, "start": state["start"][::-1], "counts": state["counts"][::-1]}
    resumed = fs.Run(shield.policy, state=turned)
    assert list(resumed.counts.items()) == list(shield.counts.items())


def test_no_decisions_are_left_after_the_last_period() -> None:
    policy = ExactPeriodic(fs.EqualOpportunity("1/2"), EVEN, 2, periods=2)
    shield = fs.Run(policy)
    for request in stream(4):
        follow(shield, request)
    resumed = fs.Run(policy, state=through_json(shield.state))
    for over in (shield, resumed):
        assert over.remaining == 0
        assert over.guarantee.guaranteed == over.holds() is True
        for ask in (over.decide, over.advise):
            with pytest.raises(fs.WindowOverError, match="over after its last period, number 2"):
                ask("a", proposed=True)
    for change in ({"decided": 1}, {"completed": 3}):
        with pytest.raises(fs.InvalidValueError):
            fs.Run(policy, state={**through_json(shield.state), **change})


# Reports ------------------------------------------------------------------------------------


def test_a_report_while_an_outcome_is_awaited_does_not_promise_too_much() -> None:
    """The last person of the period may yet count, and then one group has more."""
    shield = fs.StaticFairShield(fs.EqualOpportunity("1/2"), EVEN, period=2)
    for group in "ab":
        shield.observe(shield.decide(group, proposed=True), outcome=True)
    shield.observe(shield.decide("a", proposed=True), outcome=False)
    decision = shield.decide("a", proposed=True)
    assert not shield.guarantee.certain
    assert not shield.guarantee.guaranteed
    shield.observe(decision, outcome=True)
    assert (shield.guarantee.broken_at, shield.guarantee.broken_by) == (4, "arrivals")


def test_a_period_that_begins_with_too_little_history_breaks_the_condition() -> None:
    """Said at once, read or not, resumed or not."""
    shield = fs.DynamicShield(fs.DemographicParity("0.1"), EVEN, period=4)
    for group in "aaab":
        shield.decide(group, proposed=group == "a")
    resumed = fs.Run(shield.policy, state=shield.state)
    for each in (shield, resumed):
        assert (each.guarantee.broken_at, each.guarantee.broken_by) == (4, "arrivals")
        assert "broken at decision 4" in str(each.guarantee)


@pytest.mark.parametrize(
    "make",
    [
        lambda start: fs.StaticFairShield(DP, EVEN, period=8, start=start),
        lambda start: fs.StaticBoundedShield(DP, EVEN, period=8, start=start),
        lambda start: fs.DynamicShield(DP, EVEN, period=8, start=start),
    ],
    ids=["static-fair", "static-bounded", "dynamic"],
)
def test_counters_to_begin_with_may_break_the_condition(
    make: Callable[[fs.Counts], fs.Run],
) -> None:
    unlucky = make(fs.Counts({"a": (1, 1), "b": (5, 0)})).guarantee
    assert (unlucky.broken_at, unlucky.broken_by) == (0, "start")
    assert "by the counters it started from" in str(unlucky)
    lucky = make(fs.Counts({"a": (20, 10), "b": (20, 10)})).guarantee
    assert lucky.held


@pytest.mark.parametrize("cls", [fs.ExactPeriodicShield, fs.PerpetualShield])
def test_unconditional_shields_refuse_counters_past_mending(cls: type) -> None:
    options = {"periods": 2} if cls is fs.ExactPeriodicShield else {}
    start = fs.Counts({"a": (50, 50), "b": (50, 0)})
    with pytest.raises(fs.InfeasibleError, match="50 accepted of 50 in a"):
        cls(fs.DemographicParity("0.1"), EVEN, period=4, start=start, **options)


# Arguments ----------------------------------------------------------------------------------

DP = fs.DemographicParity("1/4")
MISTAKES: list[tuple[Callable[[], object], str]] = [
    (lambda: fs.StaticFairShield(DP, EVEN, period=0), "period must be a whole number"),
    (lambda: fs.DynamicShield(DP, EVEN, period=2.5), "period must be a whole number"),
    (lambda: fs.ExactPeriodicShield(DP, EVEN, period=4, periods=0), "periods must be a whole"),
    (lambda: fs.PerpetualShield(DP, EVEN, period=4, lookahead=0), "lookahead must be a whole"),
    (lambda: fs.DynamicShield(DP, EVEN, period=4, fallback="hope"), "fallback must be"),
    (lambda: bounded((0, "1/2")), "must rise by more than 0 and at most 1/4"),
    (lambda: bounded(("1/2", "1/4")), "must rise by more than 0 and at most 1/4"),
    (lambda: bounded(("1/2", "1/2")), "must rise by more than 0"),
    (lambda: bounded("widest"), "bounds must be two rates"),
    (lambda: bounded(("x", "y")), "a welfare bound must be a number"),
    (lambda: bounded(("0.9", "1.1")), "between 0 and 1"),
    (lambda: bounded(("0.2",)), "bounds must be two rates"),
    (lambda: bounded(None), "bounds must be two rates"),
    (
        lambda: fs.StaticBoundedShield(fs.DemographicParity(0), EVEN, period=4),
        "leaves no room between welfare bounds",
    ),
]


def bounded(bounds: Any) -> fs.Run:
    return fs.StaticBoundedShield(DP, EVEN, period=4, bounds=bounds)


SHIELDS: dict[str, Callable[..., fs.Run]] = {
    "static-fair": fs.StaticFairShield,
    "static-bounded": fs.StaticBoundedShield,
    "dynamic": fs.DynamicShield,
    "exact": partial(fs.ExactPeriodicShield, periods=PERIODS),
    "optimal": partial(fs.OptimalPeriodicShield, periods=PERIODS),
    "perpetual": fs.PerpetualShield,
}


@pytest.mark.parametrize("name", SHIELDS)
def test_a_shield_by_name_is_the_run_of_its_policy(name: str) -> None:
    by_name = SHIELDS[name](DP, EVEN, period=T, unseen="follow")
    run = fs.Run(POLICIES[name](DP, EVEN), unseen="follow")
    for group in "abcab":
        assert by_name.decide(group, proposed=True) == run.decide(group, proposed=True)
    assert by_name.followed == run.followed == {"c": fs.GroupCount(1, 1)}
    resumed = SHIELDS[name](DP, EVEN, period=T, unseen="follow", state=by_name.state)
    assert resumed.state == run.state


@pytest.mark.parametrize(("mistake", "says"), MISTAKES)
def test_mistakes_are_named(mistake: Callable[[], object], says: str) -> None:
    with pytest.raises(fs.InvalidValueError, match=says):
        mistake()


def test_counters_of_unknown_groups_are_refused() -> None:
    with pytest.raises(fs.UnknownGroupError):
        fs.StaticFairShield(DP, EVEN, period=4, start=fs.Counts({"a": (1, 1), "c": (1, 1)}))


@pytest.mark.parametrize("bounds", ["centred", "cheapest", ("0.3", "0.5"), (0.75, 1)])
def test_welfare_bounds_are_exact_and_no_wider_than_the_bound(bounds: Any) -> None:
    lower, upper = bounded(bounds).policy.bounds
    assert 0 <= lower < upper <= 1
    assert upper - lower <= DP.bound


def test_the_cheapest_welfare_bounds_cost_least() -> None:
    def cost(bounds: Any) -> float:
        policy = StaticBounded(fs.DemographicParity("1/2"), SKEWED, T, bounds=bounds)
        return policy.tables.expected_cost

    tried = [(f"{i}/20", f"{i + 10}/20") for i in range(11)]
    assert cost("cheapest") <= min(map(cost, ["centred", *tried])) + 1e-9


# Other properties ---------------------------------------------------------------------------

OTHERS = [fs.ShareParity("1/2"), fs.DisparateImpact("1/2"), Quota(1)]


@pytest.mark.parametrize("prop", OTHERS, ids=str)
@pytest.mark.parametrize("name", ["static-fair", "static-bounded", "perpetual"])
def test_shields_that_add_up_rates_refuse_other_properties(name: str, prop: fs.Property) -> None:
    with pytest.raises(fs.InvalidValueError, match=r"not a difference of rates: .*Use a Dynamic"):
        POLICIES[name](prop)


@pytest.mark.parametrize("prop", OTHERS, ids=str)
def test_dynamic_and_exact_shields_work_with_any_property(prop: fs.Property) -> None:
    exact = fs.Run(POLICIES["exact"](prop))
    for fallback in ("best-effort", "inactive"):
        dynamic = fs.DynamicShield(prop, SKEWED, period=T, fallback=fallback)
        assert dynamic.guarantee.theorem is None
        assert "No theorem about Dynamic shields" in str(dynamic.guarantee)
        for request in stream(PERIODS * T):
            promised = dynamic.guarantee.guaranteed
            follow(dynamic, request)
            assert dynamic.remaining < T or not promised or dynamic.holds()
    for request in stream(PERIODS * T):
        follow(exact, request)
        assert exact.remaining not in (0, T) or exact.holds()
    assert exact.guarantee.unfair == 0


# Schedules ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
def test_a_schedule_is_repeated_in_each_period(name: str) -> None:
    schedule = fs.InputSchedule([(EVEN, 2), (SKEWED, 2)])
    policy = POLICIES[name](fs.DemographicParity("1/2"), schedule)
    shield = fs.Run(policy)
    for request in stream(2 * T):
        follow(shield, request)
    assert shield.completed == 2
    steps = [steps for _, steps in schedule.repeated(T, 2).parts]
    assert steps == [2, 4, 2, 4]
    if name in ("exact", "optimal"):
        assert [steps for _, steps in policy.tables.inputs.parts] == [2, 4] * PERIODS


# Ends that bound nothing --------------------------------------------------------------------


def test_ends_that_bound_nothing_are_exempt_and_not_fair() -> None:
    shield = fs.DynamicShield(fs.DemographicParity("1/2", min_support=3), EVEN, period=T)
    for i in range(2 * T):
        shield.decide("ab"[i >= T], proposed=True)
        if shield.completed == 1 and shield.remaining == T:
            assert "The first period ended exempt" in str(shield.guarantee)
    report = shield.guarantee
    assert (report.fair, report.exempt) == (1, 1)
    assert "1 of 2 periods ended fair, 1 exempt" in str(report)
    assert report.to_dict()["exempt_ends"] == 1


def test_a_state_from_before_exempt_ends_were_counted_is_read() -> None:
    shield = fs.DynamicShield(fs.DemographicParity("1/2"), EVEN, period=T)
    for request in stream(2 * T):
        follow(shield, request)
    data = shield.state.to_dict()
    del data["history"]["exempt_ends"]
    assert RunState.from_dict(data).history.exempt == 0
    data["history"]["exempt_ends"] = -1
    with pytest.raises(fs.InvalidValueError, match="exempt_ends"):
        RunState.from_dict(data)
