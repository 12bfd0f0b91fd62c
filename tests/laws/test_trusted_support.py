"""Policies that trust the support of their input model: the paper's definition to the letter."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from effort import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import input_models, labelled_properties, plain_properties, properties

import fairshield as fs
from fairshield.inputs import Inputs
from fairshield.periodic import kind_of
from fairshield.policy import Specification
from fairshield.synthesis import Options, least_cost, make_policy
from fairshield.synthesis.problem import make_problem
from fairshield.synthesis.reference import (
    cost_to_go,
    cost_to_go_of_traces,
    least_risk,
    solve_best_effort,
    start_of,
)

CELLS = tuple(product("ab", (False, True), (1.0, 2.0)))


@st.composite
def sparse_models(draw: st.DrawFn) -> fs.InputModel:
    """Models in which many requests and outcomes have probability 0, perhaps whole groups."""
    shares = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.0]), min_size=8, max_size=8))
    assume(sum(shares))
    table = {cell: share / sum(shares) for cell, share in zip(CELLS, shares, strict=True)}
    chances = st.sampled_from([0.0, 0.0, 0.5, 1.0])
    outcomes = {(g, r): draw(chances) for g, r in product("ab", (False, True))}
    return fs.InputModel.from_table(table, outcomes=outcomes)


@st.composite
def sparse_inputs(draw: st.DrawFn) -> Inputs:
    """Such models, and schedules of them: a group may come only later, or no longer."""
    models = draw(st.lists(sparse_models(), min_size=1, max_size=3))
    if len(models) == 1:
        return models[0]
    return fs.InputSchedule([(model, draw(st.integers(1, 2))) for model in models])


def specified(prop: fs.Property, inputs: Inputs, horizon: int, **more: Any) -> Specification:
    return Specification.of(prop, inputs, horizon=horizon, **more)


def value(spec: Specification) -> float:
    """The least expected cost, by the definition."""
    problem = make_problem(spec)
    return cost_to_go(problem)(start_of(problem))


def near(x: float) -> Any:
    return pytest.approx(x, rel=1e-9, abs=1e-12)


# The reference --------------------------------------------------------------------------------


@settings(max_examples=examples(120), deadline=None)
@given(properties, sparse_inputs(), st.integers(1, 4))
def test_counters_suffice_also_where_the_support_is_trusted(
    prop: fs.Property, inputs: Inputs, horizon: int
) -> None:
    """The recursion over counters is that over whole traces of positive probability."""
    assume(horizon < 4 or prop.relevant_outcome is None)
    problem = make_problem(specified(prop, inputs, horizon, trust_support=True))
    assert cost_to_go(problem)(start_of(problem)) == near(cost_to_go_of_traces(problem))


@settings(max_examples=examples(120), deadline=None)
@given(properties, sparse_inputs(), st.integers(1, 6), st.booleans())
def test_it_never_costs_more_than_to_trust_nothing(
    prop: fs.Property, inputs: Inputs, horizon: int, early: bool
) -> None:
    more = {"checkpoints": (1,)} if early and horizon > 1 else {}
    trusting = value(specified(prop, inputs, horizon, trust_support=True, **more))
    assert trusting <= value(specified(prop, inputs, horizon, **more)) + 1e-9


@settings(max_examples=examples(60), deadline=None)
@given(properties, sparse_inputs(), st.integers(1, 5))
def test_risk_is_zero_exactly_where_the_support_can_be_kept_fair(
    prop: fs.Property, inputs: Inputs, horizon: int
) -> None:
    problem = make_problem(specified(prop, inputs, horizon, trust_support=True))
    assume(problem.trusting)
    cost, risky = cost_to_go(problem), least_risk(problem)(start_of(problem))
    found = cost(start_of(problem))
    assert (risky.risk == 0.0) == (found < math.inf)
    if found < math.inf:
        assert risky.cost == near(found)


# Kernels and policies --------------------------------------------------------------------------


@settings(max_examples=examples(80), deadline=None)
@given(properties, sparse_inputs(), st.integers(1, 6), st.booleans())
def test_policies_are_those_of_the_reference(
    prop: fs.Property, inputs: Inputs, horizon: int, early: bool
) -> None:
    more = {"checkpoints": (1,)} if early and horizon > 1 else {}
    spec = specified(prop, inputs, horizon, trust_support=True, **more)
    assume(spec.trusting)
    least = value(spec)
    assert least_cost(spec) == near(least)
    if least == math.inf:
        with pytest.raises(fs.InfeasibleError, match="that the input model holds possible"):
            make_policy(spec)
        return
    policy = make_policy(spec)
    assert policy.expected_cost == near(least)
    assert policy.fair_in_support
    again = make_policy(spec, Options(backend="reference"))
    assert again.expected_cost == near(least)
    codes = solve_best_effort(make_problem(spec)).rows
    for mine, theirs in zip(_dense(policy), _dense_of(codes, policy), strict=True):
        assert mine == theirs


def _dense(policy: fs.Policy) -> list[Any]:
    return _dense_of(policy.decisions.salvage, policy)


def _dense_of(table: Any, policy: fs.Policy) -> list[Any]:
    """What is decided in every state, by row."""
    found = []
    for row, (start, (lo, hi)) in enumerate(zip(table.dense_starts, table.cuts, strict=True)):
        for k in range(int(lo), int(hi)):
            width = int(hi) - int(lo)
            codes = [int(table.dense_codes[start + g * width + k - int(lo)]) for g in (0, 1)]
            if start >= 0 and any(codes):
                found.append((row, k, codes))
    return found


@settings(max_examples=examples(40), deadline=None)
@given(properties, input_models(), st.integers(1, 6))
def test_it_changes_nothing_where_everybody_who_matters_may_come(
    prop: fs.Property, inputs: fs.InputModel, horizon: int
) -> None:
    spec = specified(prop, inputs, horizon, trust_support=True)
    assume(not spec.trusting)
    plain = specified(prop, inputs, horizon)
    try:
        expected = make_policy(plain)
    except fs.InfeasibleError:
        with pytest.raises(fs.InfeasibleError):
            make_policy(spec)
        return
    policy = make_policy(spec)
    assert (policy.expected_cost, policy.risk) == (expected.expected_cost, 0.0)
    assert not policy.fair_in_support
    _, ours = policy.to_artifact()
    _, theirs = expected.to_artifact()
    assert all((array == theirs[name]).all() for name, array in ours.items())


@settings(max_examples=examples(60), deadline=None)
@given(plain_properties | labelled_properties, sparse_inputs(), st.integers(1, 5), st.data())
def test_every_sequence_in_the_support_ends_fair_and_none_costs_what_is_not_expected(
    prop: fs.Property, inputs: Inputs, horizon: int, data: st.DataObject
) -> None:
    spec = specified(prop, inputs, horizon, trust_support=True)
    assume(spec.trusting and least_cost(spec) < math.inf)
    run = fs.Run(make_policy(spec))
    table, outcome = inputs.table(horizon), prop.relevant_outcome
    for t in range(horizon):
        i = t if len(table.probs) > 1 else 0
        cells = [
            (g, r, level)
            for g, r, level in product((0, 1), (0, 1), range(len(table.levels)))
            if table.probs[i, g, r, level] > 0
        ]
        g, r, level = data.draw(st.sampled_from(cells))
        decision = run.decide("ab"[g], proposed=bool(r), cost=float(table.levels[level]))
        if outcome is not None:
            chance = table.outcomes[i, g, r, level]
            possible = [z for z in (False, True) if (chance if z else 1 - chance) > 0]
            run.observe(decision, outcome=data.draw(st.sampled_from(possible)))
    found = run.guarantee
    assert (found.unfair, found.broken_at, found.held) == (0, None, True)


@settings(max_examples=examples(40), deadline=None)
@given(properties, sparse_inputs(), st.integers(1, 6))
def test_what_is_expected_to_be_paid_is_what_the_decisions_cost(
    prop: fs.Property, inputs: Inputs, horizon: int
) -> None:
    spec = specified(prop, inputs, horizon, trust_support=True)
    assume(spec.trusting and least_cost(spec) < math.inf)
    policy = make_policy(spec)
    assert fs.evaluate(policy).expected_cost == near(policy.expected_cost)


@settings(max_examples=examples(60), deadline=None)
@given(properties, sparse_inputs(), st.integers(1, 5))
def test_every_reachable_state_of_the_support_is_verified(
    prop: fs.Property, inputs: Inputs, horizon: int
) -> None:
    spec = specified(prop, inputs, horizon, trust_support=True)
    assume(spec.trusting and least_cost(spec) < math.inf)
    found = fs.verify(make_policy(spec))
    assert (found.holds, found.exhaustive, found.claim.in_support) == (True, True, True)
    assert found.verdict == ("kept" if found.can_bind else "vacuous")
    assert found.can_bind <= spec.can_bind
    assert "only on sequences to which the input model gives a positive" in str(found.claim)
    if found.can_bind:
        assert "nothing is shown of other sequences" in found.result


# What is told of it ----------------------------------------------------------------------------

FIRST_A = fs.InputSchedule(
    [
        (fs.InputModel.agnostic({"a": 1.0, "b": 0.0}), 5),
        (fs.InputModel.agnostic({"a": 0.0, "b": 1.0}), 5),
    ]
)
PARITY = fs.DemographicParity("0.1")


@pytest.fixture(scope="module")
def trusting() -> fs.Policy:
    """Five people of group a are expected, and then five of group b."""
    return fs.synthesize(PARITY, FIRST_A, horizon=10, trust_support=True)


def test_tables_that_are_not_fair_in_the_support_are_found_out(trusting: fs.Policy) -> None:
    idle = fs.synthesize(
        fs.DemographicParity("0.9"), FIRST_A, horizon=10, trust_support=True
    ).decisions
    found = fs.verify(replace(trusting, decisions=idle))
    assert found.verdict == "violated"
    assert [d.group for d in found.counterexample.decisions] == ["a"] * 5 + ["b"] * 5


def test_what_binds_only_if_the_impossible_comes_is_vacuous() -> None:
    alone = fs.InputModel.agnostic({"a": 1.0, "b": 0.0})
    policy = fs.synthesize(PARITY, alone, horizon=6, trust_support=True)
    assert (policy.expected_cost, policy.can_bind, policy.fair_in_support) == (0.0, True, True)
    assert fs.verify(policy).verdict == "vacuous"


def test_it_is_cheaper_and_nowhere_called_a_guarantee_of_every_sequence(
    trusting: fs.Policy,
) -> None:
    default = fs.synthesize(PARITY, FIRST_A, horizon=10)
    assert trusting.expected_cost < default.expected_cost / 3
    words = "fair only on sequences to which the input model gives a positive probability"
    kind = kind_of(trusting)
    assert words in str(trusting)
    assert words in dict(kind.lines())["condition"]
    assert "guarantee" not in dict(kind.lines())
    assert words in kind.summary_data()["guarantee"]
    assert (kind.unconditional, trusting.guarantees(trusting.start, 0)) == (False, False)
    run = fs.Run(trusting)
    assert not run.decide("a", proposed=True).guaranteed
    told = run.guarantee
    assert (told.guaranteed, told.unconditional, run.guaranteed) == (False, False, False)
    assert "every request and outcome is one to which the input model gives" in str(told)
    assert "held so far, and still possible in this window" in str(told)


def test_a_request_of_probability_zero_breaks_the_promise_from_then_on(
    trusting: fs.Policy, tmp_path: Path
) -> None:
    run = fs.Run(trusting)
    for _ in range(3):
        run.decide("a", proposed=True)
    assert run.guarantee.held
    decision = run.decide("b", proposed=False)
    assert (run.guarantee.broken_at, run.guarantee.broken_by) == (4, "arrivals")
    assert not decision.guaranteed
    # In this window, after it, in the next one, and after it was resumed from a file.
    for group in "a" * 6 + "aaaaabbbbb":
        run.decide(group, proposed=True)
        assert (run.guarantee.broken_at, run.guaranteed) == (4, False)
    trusting.save(tmp_path / "t.shield")
    loaded = fs.load_policy(tmp_path / "t.shield")
    assert loaded.fair_in_support
    again = fs.Run(loaded, state=json.loads(json.dumps(run.state.to_dict())))
    assert again.guarantee.broken_at == 4
    assert "broken at decision 4" in str(again.guarantee)


def test_a_cost_above_all_levels_has_probability_zero_too(trusting: fs.Policy) -> None:
    run = fs.Run(trusting)
    run.decide("a", proposed=True, cost=7.0)
    assert run.guarantee.broken_at == 1


def test_a_person_who_decides_otherwise_breaks_the_promise(trusting: fs.Policy) -> None:
    run = fs.Run(trusting)
    advice = run.advise("a", proposed=True)
    run.record(advice, final=advice.accepted)
    assert run.guarantee.held
    advice = run.advise("a", proposed=True)
    run.record(advice, final=not advice.accepted)
    assert (run.guarantee.broken_at, run.guarantee.broken_by) == (2, "person")


def test_an_outcome_of_probability_zero_breaks_the_promise() -> None:
    table = {(g, r, 1.0): 0.25 for g in "ab" for r in (False, True)}
    inputs = fs.InputModel.from_table(table, outcomes={"a": 1.0, "b": 0.5})
    policy = fs.synthesize(fs.EqualOpportunity("0.2"), inputs, horizon=6, trust_support=True)
    assert policy.fair_in_support is False  # somebody of b may not count, and so may anybody
    sure = fs.InputModel.from_table(table, outcomes={"a": 1.0, "b": 1.0})
    policy = fs.synthesize(fs.EqualOpportunity("0.25"), sure, horizon=6, trust_support=True)
    default = fs.synthesize(fs.EqualOpportunity("0.25"), sure, horizon=6)
    plain = fs.synthesize(fs.DemographicParity("0.25"), sure, horizon=6)
    # Where everybody is sure to count, equal opportunity is demographic parity.
    assert policy.expected_cost == near(plain.expected_cost)
    assert policy.expected_cost < default.expected_cost / 2
    run = fs.Run(policy)
    run.observe(run.decide("a", proposed=True), outcome=True)
    assert run.guarantee.held
    run.observe(run.decide("b", proposed=True), outcome=False)
    assert run.guarantee.broken_at == 2


@settings(max_examples=examples(40), deadline=None)
@given(properties, sparse_inputs(), st.integers(1, 5), st.data())
def test_many_at_once_are_told_what_one_by_one_are(
    prop: fs.Property, inputs: Inputs, horizon: int, data: st.DataObject
) -> None:
    spec = specified(prop, inputs, horizon, trust_support=True)
    assume(spec.trusting and least_cost(spec) < math.inf)
    policy = make_policy(spec)
    n = data.draw(st.integers(1, 3 * horizon))
    column = lambda values: data.draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))  # noqa: E731
    groups, proposed, costs, outcomes = (
        column(values) for values in ("ab", (False, True), (1.0, 2.0, 3.0), (False, True))
    )
    one, many = fs.Run(policy), fs.Run(policy)
    answers = many.decide_many(groups, proposed, costs, outcomes)
    for i in range(n):
        decision = one.decide(groups[i], proposed=proposed[i], cost=costs[i])
        assert decision.accepted == answers.accepted[i]
        if one.policy.labelled:
            one.observe(decision, outcome=outcomes[i])
    assert one.guarantee == many.guarantee
    assert one.state == many.state


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "long"}, "the long method does not apply: exact tables alone can trust"),
        ({"backend": "cuda"}, "does not run on backend='cuda': use 'cpu'"),
        ({"further": 3}, "further=3 plans beyond it: leave one out"),
    ],
)
def test_what_cannot_trust_the_support_refuses(options: dict[str, Any], words: str) -> None:
    with pytest.raises(fs.InvalidValueError, match=words):
        fs.synthesize(PARITY, FIRST_A, horizon=10, trust_support=True, **options)


def test_three_groups_of_which_one_never_comes_are_refused() -> None:
    three = fs.InputModel.agnostic({"a": 0.5, "b": 0.5, "c": 0.0})
    with pytest.raises(fs.InvalidValueError, match="for two groups, and 3 are declared"):
        fs.synthesize(PARITY, three, horizon=4, trust_support=True)


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_it_is_true_or_false(value: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match="trust_support must be true or false"):
        fs.synthesize(PARITY, FIRST_A, horizon=4, trust_support=value)


def test_no_order_of_possible_arrivals_may_defeat_every_shield() -> None:
    bounded = fs.BoundedRates("0.2", "0.4", min_support=0)
    alone = fs.InputModel.agnostic({"a": 1.0, "b": 0.0})
    with pytest.raises(fs.InfeasibleError, match="that the input model holds possible"):
        fs.synthesize(bounded, alone, horizon=2, trust_support=True)
    policy = fs.synthesize(bounded, alone, horizon=2, trust_support=True, best_effort=True)
    assert (policy.fair_in_support, policy.risk) == (False, 1.0)
