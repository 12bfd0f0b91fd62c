"""Rates of any numerator and denominator: counted, decided and verified as they are defined."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import (
    GROUPS,
    THREE,
    Request,
    Spec,
    bounds,
    options,
    specs,
    streams,
    supports,
    with_decisions,
)

import fairshield as fs
from fairshield.analysis.simulate import simulate
from fairshield.periodic.conditions import Counters, EqualDenominators
from fairshield.policy.counted import CountedDecisions, CountedLayout
from fairshield.spec.counting import PEOPLE, Weights, counting_of
from fairshield.synthesis import cost_to_go, reference
from fairshield.synthesis.exact import counted
from fairshield.synthesis.options import Options
from fairshield.synthesis.problem import Problem
from fairshield.synthesis.reference import Position, start_of

kernel_settings = settings(max_examples=examples(60))
NAMED = [
    ("accept 1", "accept"),  # predictive parity
    ("accept 0", "accept"),  # false discovery rate
    ("reject 1", "reject"),  # false omission rate
    ("accept 1, reject 0", "accept, reject"),  # accuracy
    ("accept=2", "accept=2, reject"),
    ("accept 1=2, accept 0", "accept 1=2, reject 1=2, accept 0, reject 0"),
]
weights = st.tuples(*[st.sampled_from([0, 1, 1, 2])] * 4)


@st.composite
def countings(draw: st.DrawFn) -> tuple[Weights, Weights]:
    """A numerator and a denominator, known by a name or not, that do not count people."""
    if draw(st.booleans()):
        num, den = draw(st.sampled_from(NAMED))
        return Weights.of(num, "numerator"), Weights.of(den, "denominator")
    whole = Weights(*draw(weights))
    part = Weights(*(min(n, m) for n, m in zip(draw(weights), whole, strict=True)))
    factor = math.gcd(*part, *whole)
    assume(any(part) and part != whole and factor == 1)
    assume(not counting_of(part, whole).of_people)
    return part, whole


counted_rates = st.builds(
    lambda bound, rate, given: fs.RateDifference(bound, *rate, **given),
    bounds,
    countings(),
    options,
)
counted_specs = specs(counted_rates, horizons=(1, 4))


def solved(problem: Problem, **given: Any) -> counted.CountedSolution:
    return counted.solve(problem, Options(threads=2, **given), record=True)


def same(cost: float, other: float) -> bool:
    return cost == other or math.isclose(cost, other, rel_tol=1e-9, abs_tol=1e-12)


def reached(problem: Problem) -> Iterator[Position]:
    """Every state that some decisions and outcomes lead to."""
    here = {start_of(problem)}
    for _ in range(problem.horizon + 1):
        yield from here
        here = {
            after
            for s in here
            for g, y in product(range(len(problem.start)), (False, True))
            for after in reference.possible(problem, s, g, y)
        }


# Counting -----------------------------------------------------------------------------------


@given(countings(), st.booleans(), st.booleans())
def test_a_decision_adds_what_the_weights_say(
    rate: tuple[Weights, Weights], accepted: bool, outcome: bool
) -> None:
    cell = 2 * accepted + outcome
    gain = counting_of(*rate).gain(accepted, outcome)
    assert gain == (rate[1][cell], rate[0][cell])
    assert gain in counting_of(*rate).possible(accepted)


@given(countings())
def test_weights_are_read_as_they_are_written(rate: tuple[Weights, Weights]) -> None:
    for one in rate:
        assert Weights.of(str(one), "it") == one
        assert Weights.of(one.to_dict(), "it") == one


@pytest.mark.parametrize(
    ("numerator", "denominator", "builtin"),
    [
        ("accept", "accept, reject", fs.DemographicParity),
        ("reject", "accept, reject", fs.DemographicParity),
        ("accept 1", "accept 1, reject 1", fs.EqualOpportunity),
        ("reject 1", "accept 1, reject 1", fs.EqualOpportunity),
        ("accept 0", "accept 0, reject 0", fs.PredictiveEquality),
        ("reject 0", "accept 0, reject 0", fs.PredictiveEquality),
    ],
)
def test_rates_of_people_are_those_of_the_library(
    numerator: str, denominator: str, builtin: Any
) -> None:
    prop, theirs = fs.RateDifference("0.2", numerator, denominator), builtin("0.2")
    assert prop.relevant_outcome is theirs.relevant_outcome
    assert prop.counting == theirs.counting == PEOPLE[theirs.relevant_outcome]
    inputs = fs.InputModel.agnostic({"a": 0.4, "b": 0.6}, outcomes={"a": 0.5, "b": 0.5})
    ours, other = (fs.synthesize(p, inputs, horizon=8) for p in (prop, theirs))
    assert ours.expected_cost == other.expected_cost
    assert type(ours.decisions) is type(other.decisions)
    assert fs.PerpetualShield(prop, inputs, period=8).guaranteed


@given(countings(), st.sampled_from(GROUPS), st.data())
def test_counters_of_arrays_are_those_of_single_decisions(
    rate: tuple[Weights, Weights], first: str, data: st.DataObject
) -> None:
    counting, n = counting_of(*rate), 5
    people = data.draw(st.lists(st.tuples(*[st.booleans()] * 3), min_size=n, max_size=n))
    group, accepted, told = (np.array(x) for x in zip(*people, strict=True))
    at = (0, 0, 0, 0)
    found = counting.gained(group.astype(np.int8), accepted, counting.told(told), 2)
    for i, (g, y, z) in enumerate(people):
        assert found[i].tolist() == list(at)
        gained = counting.gain(y, z)
        at = tuple(m + gained[j % 2] * (j // 2 == g) for j, m in enumerate(at))
    assert found[n].tolist() == list(at)


# The definition -----------------------------------------------------------------------------


@kernel_settings
@given(counted_specs | specs(counted_rates, horizons=(1, 2), groups=THREE))
def test_the_kernel_computes_what_the_recursion_defines(spec: Spec) -> None:
    problem = spec.problem()
    fast, slow = solved(problem), solved(problem, backend="reference")
    assert same(fast.value, slow.value)
    layout = CountedLayout(problem.horizon, len(problem.start), spec.prop.counting)
    assert fast.masks is not None
    assert slow.masks is not None
    for s in reached(problem):
        place = layout.place(*s)
        assert fast.masks[:, place].tolist() == slow.masks[:, place].tolist()


@kernel_settings
@given(specs(counted_rates, horizons=(1, 3), max_levels=1))
def test_the_recursion_is_the_search_over_whole_traces(spec: Spec) -> None:
    problem = spec.problem()
    assert same(
        reference.cost_to_go(problem)(start_of(problem)), reference.cost_to_go_of_traces(problem)
    )


@kernel_settings
@given(counted_specs)
def test_the_least_risk_is_what_the_recursion_defines(spec: Spec) -> None:
    problem = spec.problem()
    fast, slow = (
        counted.solve_best_effort(problem, Options(threads=2, backend=backend))
        for backend in ("cpu", "reference")
    )
    assert same(fast.risk, slow.risk)
    assert same(fast.cost, slow.cost)
    assert (fast.risk == 0.0) == (solved(problem).value < math.inf)


@kernel_settings
@given(counted_specs)
def test_least_risks_are_decided_as_the_recursion_does(spec: Spec) -> None:
    problem = spec.problem()
    fast, slow = (
        counted.solve_best_effort(problem, Options(threads=2, backend=backend)).masks
        for backend in ("cpu", "reference")
    )
    layout = CountedLayout(problem.horizon, 2, spec.prop.counting)
    for s in reached(problem):
        place = layout.place(*s)
        assert fast[:, place].tolist() == slow[:, place].tolist()


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "_WORTH_A_THREAD", 7)
    inputs = fs.InputModel.agnostic({"a": 0.4, "b": 0.6}, outcomes={"a": 0.3, "b": 0.6})
    for num, den in NAMED:
        prop = fs.RateDifference("0.2", num, den, min_support=3)
        problem = Spec(prop, inputs, 11, fs.Counts.zero(GROUPS), (6,)).problem()
        one, some = (
            counted.solve(problem, Options(threads=threads), record=True) for threads in (1, 3)
        )
        assert one.value == some.value
        assert one.masks is not None
        assert some.masks is not None
        assert (one.masks == some.masks).all()
        first, again = (
            counted.solve_best_effort(problem, Options(threads=threads)) for threads in (1, 3)
        )
        assert first[:2] == again[:2]
        assert (first.masks == again.masks).all()


@kernel_settings
@given(counted_specs)
def test_states_are_numbered_one_after_the_other(spec: Spec) -> None:
    problem = spec.problem()
    layout = CountedLayout(problem.horizon, 2, spec.prop.counting)
    places = {s: layout.place(*s) for s in reached(problem)}
    assert len(set(places.values())) == len(places)
    for s, place in places.items():
        assert layout.states_before(s.t) <= place < layout.states_before(s.t + 1)
    assert max(places.values()) < layout.n_states


# Policies -----------------------------------------------------------------------------------


@kernel_settings
@given(counted_specs)
def test_what_is_guaranteed_holds_whatever_comes(spec: Spec) -> None:
    policy = spec.feasible_policy()
    found = fs.verify(policy)
    assert found.holds
    assert found.exhaustive
    assert cost_to_go(policy, policy.start, 0) == pytest.approx(policy.expected_cost)


@kernel_settings
@given(specs(counted_rates, horizons=(2, 4), max_levels=1, checkpointed=False))
def test_a_policy_that_follows_every_proposal_is_found_out(spec: Spec) -> None:
    policy = spec.feasible_policy()
    decisions = policy.decisions
    assert isinstance(decisions, CountedDecisions)
    masks = np.zeros_like(decisions.masks)  # no state is dead, nobody is overruled
    found = fs.verify(with_decisions(policy, masks=masks))
    assume(found.counterexample is not None)
    assert found.counterexample is not None
    counting, at = policy.prop.counting, policy.start
    for one in found.counterexample.decisions:
        assert one.accepted == one.proposed
        gained = [0, 0, 0, 0]
        i = 2 * policy.groups.index(one.group)
        gained[i : i + 2] = counting.gain(one.accepted, one.outcome)
        at = at.plus(tuple(gained))
    assert at == found.counterexample.counts
    assert not policy.prop.holds(at)


@kernel_settings
@given(counted_specs, streams(4))
def test_one_by_one_and_many_at_once_decide_alike(spec: Spec, stream: list[Request]) -> None:
    policy = spec.feasible_policy()
    stream = stream[: policy.horizon]
    one, many = fs.Shield(policy), fs.Shield(policy)
    single = [
        (decided(one, request).accepted, one.policy.feasible(one.decided, one.gained))
        for request in stream
    ]
    groups, proposed, costs, outcomes = zip(*stream, strict=True)
    given_outcomes = outcomes if policy.labelled else None
    batch = many.decide_many(groups, proposed, costs, given_outcomes, reasons=True)
    assert batch.accepted.tolist() == [accepted for accepted, _ in single]
    assert many.counts == one.counts
    assert all(kept for _, kept in single)


def decided(shield: fs.Shield, request: Request) -> fs.Decision:
    group, proposed, cost, outcome = request
    decision = shield.decide(group, proposed=proposed, cost=cost)
    if shield.policy.labelled:
        shield.observe(decision, outcome=outcome)
    return decision


@kernel_settings
@given(spec=counted_specs, effort=st.booleans())
def test_a_file_decides_as_what_was_saved(
    spec: Spec, effort: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    try:
        policy = spec.synthesize(best_effort=effort)
    except fs.InfeasibleError:
        assert not effort
        return
    path = tmp_path_factory.mktemp("it") / "it.shield"
    policy.save(path)
    again = fs.Policy.load(path)
    assert (again.prop, again.risk) == (policy.prop, policy.risk)
    for s in reached(spec.problem()):
        if s.t < policy.horizon:
            for g in (0, 1):
                assert again.decisions.answer(*s, g) == policy.decisions.answer(*s, g)


@kernel_settings
@given(specs(counted_rates, horizons=(1, 4), from_start=False))
def test_the_names_of_the_groups_change_nothing(spec: Spec) -> None:
    assume(not isinstance(spec.inputs, fs.InputSchedule))
    inputs = spec.inputs
    assert isinstance(inputs, fs.InputModel)
    turned = fs.InputModel(
        inputs.groups[::-1], inputs.levels, inputs.probs[::-1],
        None if inputs.outcomes is None else inputs.outcomes[::-1], inputs.edges,
    )  # fmt: skip
    other = spec._replace(inputs=turned, start=fs.Counts({"b": (0, 0), "a": (0, 0)}))
    assert same(solved(spec.problem()).value, solved(other.problem()).value)


@settings(max_examples=examples(20), deadline=None)
@given(specs(counted_rates, horizons=(2, 4), scheduled=False))
def test_simulations_end_as_the_risk_says(spec: Spec) -> None:
    policy = spec.synthesize(best_effort=True)
    n = 2000
    found = simulate(policy, n_windows=n, rng=np.random.default_rng(1), keep=1)
    if not policy.risk:
        assert found.n_unfair == 0
    spread = math.sqrt(max(policy.risk * (1 - policy.risk), 1 / n) / n)
    assert abs(found.n_unfair / n - policy.risk) <= 6 * spread
    last = found.counters[0, -1].tolist()
    assert policy.spec.prop.counting.fits(
        sum(last[::2]) - sum(c.seen for c in policy.start.values()), policy.horizon
    )


@kernel_settings
@given(specs(counted_rates, horizons=(2, 4), checkpointed=False), streams(4))
def test_explanations_give_the_costs_that_decided(spec: Spec, stream: list[Request]) -> None:
    policy = spec.feasible_policy()
    shield = fs.Shield(policy)
    for request in stream[: policy.horizon]:
        decision = decided(shield, request)
        told = fs.explain(policy, decision)
        took = told.if_accepted if decision.accepted else told.if_rejected
        assert took < math.inf
        left = told.if_rejected if decision.accepted else told.if_accepted
        assert (decision.why is fs.Why.FORCED) == (left == math.inf)
        assert str(told)


# Periods ------------------------------------------------------------------------------------


@settings(max_examples=examples(25), deadline=None)
@given(counted_rates, st.integers(2, 4), streams(12), st.sampled_from(["dynamic", "exact"]))
def test_periods_that_are_guaranteed_end_fair(
    prop: fs.RateDifference, period: int, stream: list[Request], kind: str
) -> None:
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5}, outcomes={"a": 0.5, "b": 0.5})
    try:
        shield: fs.Run = (
            fs.DynamicShield(prop, inputs, period=period)
            if kind == "dynamic"
            else fs.ExactPeriodicShield(prop, inputs, period=period, periods=2)
        )
        policy = shield.policy
        policy.outlook()
    except fs.InfeasibleError:
        return
    count = fs.Counts.zero(GROUPS)
    for i, request in enumerate(stream[: 2 * period]):
        sure = shield.guaranteed
        resumed = fs.Run(policy, state=shield.state.to_dict())
        answers = [follow(run, request) for run in (shield, resumed)]
        assert answers[0] == answers[1]
        gained = [0, 0, 0, 0]
        place = 2 * GROUPS.index(request.group)
        gained[place : place + 2] = prop.counting.gain(answers[0].accepted, request.outcome)
        count = count.plus(tuple(gained))
        assert shield.counts == count
        if (i + 1) % period == 0 and sure:
            assert prop.holds(count)


def follow(run: fs.Run, request: Request) -> fs.Decision:
    decision = run.decide(request.group, proposed=request.proposed, cost=request.cost)
    if run.policy.labelled:
        run.observe(decision, outcome=request.outcome)
    return decision


@settings(max_examples=examples(40))
@given(counted_rates, st.data())
def test_equal_denominators_keep_a_difference_over_periods(
    prop: fs.RateDifference, data: st.DataObject
) -> None:
    """The theorem on Static-Fair shields, for any counters that add up."""
    prop = replace(prop, min_support=0, undefined="bias-0")
    total = fs.Counts.zero(GROUPS)
    for _ in range(data.draw(st.integers(1, 4))):
        n = data.draw(st.integers(0, 6))
        k_a, k_b = (data.draw(st.integers(0, n)) for _ in "ab")
        one = fs.Counts({"a": (n, k_a), "b": (n, k_b)})
        assume(prop.holds(one))
        total = total.plus((n, k_a, n, k_b))
    assert prop.holds(total)


@settings(max_examples=examples(40))
@given(countings(), st.integers(0, 3), supports, st.tuples(*[st.integers(0, 3)] * 2))
def test_denominators_can_become_equal_if_some_decisions_make_them_so(
    rate: tuple[Weights, Weights], left: int, least: int, now: tuple[int, int]
) -> None:
    prop = fs.RateDifference("0.1", *rate, min_support=least)
    gained = Counters(now[0], 0, now[1], 0)
    condition = EqualDenominators(prop)
    each = {seen for seen, _ in prop.counting.gains}
    ends = {now}
    for _ in range(left):
        ends = {end for a, b in ends for n in each for end in ((a + n, b), (a, b + n))}
    met = any(a == b and (a == 0 or a >= least) for a, b in ends)
    assert condition.possible(gained, gained, left) == met
    if not left:
        assert bool(condition.certain(gained, gained, 0)) == met


def test_a_person_who_decides_against_advice_is_counted_as_decided() -> None:
    prop = fs.RateDifference("0.2", "accept 1", "accept")
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5}, outcomes={"a": 0.5, "b": 0.5})
    run = fs.DynamicShield(prop, inputs, period=4)
    for group, good in (("a", True), ("b", False)):
        advice = run.advise(group, proposed=True)
        decision = run.record(advice, final=True)
        run.observe(decision, outcome=good)
    assert run.counts == fs.Counts({"a": (1, 1), "b": (1, 0)})
    assert not run.guaranteed
    assert run.guarantee.risk
    for _ in range(2):
        run.observe(run.decide("a", proposed=True), outcome=True)
    assert run.completed == 1
    assert not run.holds()


# What counts people refuses -----------------------------------------------------------------


@given(counted_rates)
def test_what_counts_people_refuses_by_name(prop: fs.RateDifference) -> None:
    with pytest.raises(fs.InvalidValueError, match="counts decisions, not people"):
        _ = prop.relevant_outcome
    assert prop.difference is None
    assert prop.sustained is None
    assert prop.additive is prop
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5}, outcomes={"a": 0.5, "b": 0.5})
    for kind in (fs.StaticBoundedShield, fs.PerpetualShield):
        with pytest.raises(fs.InvalidValueError, match="denominators are not people"):
            kind(prop, inputs, period=5)
    for wrong in ({"spread": 2.0}, {"method": "long"}, {"backend": "cuda"}, {"further": 3}):
        with pytest.raises(fs.InvalidValueError, match="counts decisions"):
            fs.synthesize(prop, inputs, horizon=4, **wrong)


def test_too_many_cost_levels_and_states_are_refused() -> None:
    prop = fs.RateDifference("0.1", "accept 1", "accept")
    table = {(g, r, 1.0 + c): 1 / 124 for g in "ab" for r in (False, True) for c in range(31)}
    inputs = fs.InputModel.from_table(table, outcomes={"a": 0.5, "b": 0.5})
    with pytest.raises(fs.InvalidValueError, match="at most 30 can be told apart"):
        fs.synthesize(prop, inputs, horizon=4)
    even = fs.InputModel.agnostic({"a": 0.5, "b": 0.5}, outcomes={"a": 0.5, "b": 0.5})
    with pytest.raises(fs.MemoryLimitError, match="shorten the window to at most"):
        fs.synthesize(prop, even, horizon=1000)
    assert Fraction(prop.bound) == Fraction(1, 10)
