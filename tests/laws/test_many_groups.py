"""Three groups or more: every pair of them ends fair, at the least expected cost."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    COSTS,
    THREE,
    Request,
    Spec,
    bounds,
    input_models,
    labelled_properties,
    mendable_properties,
    positions,
    run,
    schedules,
    specs,
    starts,
    symmetric_properties,
    with_decisions,
)

import fairshield as fs
from fairshield.analysis.simulate import simulate
from fairshield.policy.many import ManyLayout, StateDecisions
from fairshield.runtime.evaluate import evaluate
from fairshield.runtime.step import verdict
from fairshield.synthesis import cost_to_go, reference
from fairshield.synthesis.exact import many
from fairshield.synthesis.options import Options
from fairshield.synthesis.problem import Problem

FOUR = (*THREE, "d")
kernel_settings = settings(max_examples=examples(60))
three_groups = specs(symmetric_properties, horizons=(1, 4), groups=THREE)
three_streams = st.lists(
    st.builds(
        Request, st.sampled_from(THREE), st.booleans(), st.sampled_from(COSTS), st.booleans()
    ),
    min_size=4,
    max_size=4,
)


def solved(problem: Problem, **options: Any) -> many.ManySolution:
    return many.solve(problem, Options(threads=2, **options), record=True)


def same(cost: float, other: float) -> bool:
    return cost == other or math.isclose(cost, other, rel_tol=1e-12, abs_tol=1e-25)


# The definition -----------------------------------------------------------------------------


@given(symmetric_properties, starts(groups=FOUR))
def test_a_property_holds_iff_it_holds_for_every_pair(prop: fs.Property, counts: fs.Counts) -> None:
    pairs = [fs.Counts({g: counts[g] for g in pair}) for pair in combinations(counts, 2)]
    assert prop.holds(counts) == all(map(prop.holds, pairs))
    assert prop.bias_of(counts) == max(map(prop.bias_of, pairs))
    assert bool(prop.holds_array(*counts.values())) == prop.holds(counts)
    assert float(prop.bias_array(*counts.values())) == prop.bias_of(counts)


@given(bounds, starts(groups=THREE))
def test_demographic_parity_bounds_the_largest_difference_of_rates(
    bound: Fraction, counts: fs.Counts
) -> None:
    rates = [Fraction(of.accepted, of.seen) for of in counts.values() if of.seen]
    widest = max(rates) - min(rates) if rates else 0
    assert fs.DemographicParity(bound).holds(counts) == (widest <= bound)


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("n_groups", [2, 3, 4])
def test_every_state_has_a_number_of_its_own(n_groups: int, labelled: bool) -> None:
    layout, here = ManyLayout(3, n_groups, labelled), {(0, 0) * n_groups}
    for t in range(4):
        numbers = sorted(layout.place(t, at) for at in here)
        assert numbers == list(range(layout.states_before(t), layout.states_before(t + 1)))
        assert len(here) == layout.states_of(t)
        after = {
            reference.Position(t, at).after(g, y).at
            for at, g, y in product(here, range(n_groups), (False, True))
        }
        here = after | here if labelled else after


# The kernel ---------------------------------------------------------------------------------


@kernel_settings
@given(three_groups)
def test_the_kernel_decides_as_the_recursion_in_every_state(spec: Spec) -> None:
    value, codes = solved(spec.problem())
    expected, wanted = solved(spec.problem(), backend="reference")
    assert same(value, expected)
    assert np.array_equal(codes, wanted)


@settings(max_examples=examples(15))
@given(specs(symmetric_properties, horizons=(1, 3), groups=FOUR))
def test_the_kernel_decides_as_the_recursion_for_four_groups(spec: Spec) -> None:
    value, codes = solved(spec.problem())
    expected, wanted = solved(spec.problem(), backend="reference")
    assert same(value, expected)
    assert np.array_equal(codes, wanted)


@settings(max_examples=examples(30))
@given(specs(symmetric_properties, horizons=(1, 2), groups=THREE))
def test_the_recursion_over_counters_is_the_one_over_traces(spec: Spec) -> None:
    value, _ = solved(spec.problem())
    assert same(value, reference.cost_to_go_of_traces(spec.problem()))


@kernel_settings
@given(specs(horizons=(1, 5)))
def test_two_groups_are_solved_alike_by_either_solver(spec: Spec) -> None:
    policy = spec.feasible_policy(backend="cpu")
    value, codes = solved(spec.problem())
    assert same(value, policy.expected_cost)
    twin = _many_policy(policy, codes)
    for s in positions(spec.horizon - 1, policy.labelled):
        assert twin.decisions.feasible(*s) == policy.decisions.feasible(*s)
        for g, proposed, cost in product((0, 1), (False, True), COSTS):
            request = g, proposed, cost
            assert verdict(twin, *s, *request) == verdict(policy, *s, *request)


def _many_policy(policy: fs.Policy, codes: Any) -> fs.Policy:
    layout = ManyLayout(policy.horizon, 2, policy.labelled)
    decisions = StateDecisions(layout=layout, codes=codes, edges=policy.edges, ranks=policy.ranks)
    return replace(policy, decisions=decisions)


def test_the_number_of_threads_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = fs.InputModel.agnostic(dict.fromkeys(THREE, 1 / 3))
    alone = fs.synthesize(fs.DemographicParity("0.3"), inputs, horizon=8, threads=1)
    monkeypatch.setattr(many, "_WORTH_A_THREAD", 10)
    shared = fs.synthesize(fs.DemographicParity("0.3"), inputs, horizon=8, threads=3)
    assert isinstance(alone.decisions, StateDecisions)
    assert isinstance(shared.decisions, StateDecisions)
    assert np.array_equal(alone.decisions.codes, shared.decisions.codes)
    assert alone.expected_cost == shared.expected_cost


# The guarantee ------------------------------------------------------------------------------


def ends_fair(policy: fs.Policy, stream: list[Request]) -> bool:
    shield = fs.Shield(policy)
    for request in stream:
        run(shield, [request])
        if shield.decided in policy.due and not policy.prop.holds(shield.counts):
            return False
    return True


@given(three_groups, three_streams)
def test_every_stream_ends_fair_for_every_pair(spec: Spec, stream: list[Request]) -> None:
    policy = spec.feasible_policy()
    assert ends_fair(policy, stream[: spec.horizon])


@pytest.mark.parametrize("bound", ["0", "1/3", "1/2"])
def test_no_sequence_of_four_defeats_demographic_parity(bound: str) -> None:
    inputs = fs.InputModel.agnostic({"a": 0.2, "b": 0.3, "c": 0.5})
    policy = fs.synthesize(fs.DemographicParity(bound), inputs, horizon=4)
    for arrivals in product(product(THREE, (False, True)), repeat=4):
        shield = fs.Shield(policy)
        for group, proposed in arrivals:
            shield.decide(group, proposed=proposed)
        rates = [Fraction(of.accepted, of.seen) for of in shield.counts.values() if of.seen]
        assert max(rates) - min(rates) <= Fraction(bound)


@pytest.mark.parametrize("prop", [fs.EqualOpportunity("1/2"), fs.PredictiveEquality("0")])
def test_no_sequence_of_three_with_outcomes_is_unfair(prop: fs.Property) -> None:
    inputs = fs.InputModel.agnostic({"a": 0.2, "b": 0.3, "c": 0.5})
    policy = fs.synthesize(prop, inputs, horizon=3)
    requests = [Request(g, r, 1.0, z) for g, r, z in product(THREE, (False, True), (False, True))]
    for stream in product(requests, repeat=3):
        assert ends_fair(policy, list(stream))


@given(specs(mendable_properties, horizons=(2, 4), checkpointed=True, groups=THREE))
def test_the_verifier_agrees_that_the_guarantee_holds(spec: Spec) -> None:
    assert fs.verify(spec.feasible_policy()).holds


@given(symmetric_properties)
def test_a_group_that_is_not_expected_is_safe_all_the_same(prop: fs.Property) -> None:
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5, "c": 0.0})
    policy = Spec(prop, inputs, 4, fs.Counts.zero(THREE), ()).feasible_policy()
    assert fs.verify(policy).holds


# What it costs ------------------------------------------------------------------------------


def cost_or_infinity(spec: Spec) -> float:
    try:
        return spec.synthesize().expected_cost
    except fs.InfeasibleError:
        return math.inf


@given(st.tuples(bounds, bounds), three_groups)
def test_a_looser_bound_never_costs_more(pair: tuple[Fraction, Fraction], spec: Spec) -> None:
    loose, tight = (fs.DemographicParity(bound) for bound in sorted(pair, reverse=True))
    costs = [cost_or_infinity(spec._replace(prop=prop)) for prop in (loose, tight)]
    assert costs[0] <= costs[1] * (1 + 1e-12) + 1e-25


@given(symmetric_properties, st.integers(1, 4))
def test_another_group_to_be_kept_alike_never_saves(prop: fs.Property, horizon: int) -> None:
    two = fs.InputModel.agnostic({"a": 0.4, "b": 0.6})
    three = fs.InputModel.agnostic({"a": 0.4, "b": 0.6, "c": 0.0})
    costs = [
        cost_or_infinity(Spec(prop, inputs, horizon, fs.Counts.zero(inputs.groups), ()))
        for inputs in (two, three)
    ]
    assert costs[0] <= costs[1] * (1 + 1e-12) + 1e-25


@settings(max_examples=examples(40))
@given(three_groups, st.sampled_from(list(permutations(range(3)))))
def test_group_names_do_not_matter(spec: Spec, order: tuple[int, ...]) -> None:
    here, there = spec.problem(), turned(spec, order).problem()
    (value, codes), (other, others) = solved(here), solved(there)
    assert same(value, other)
    layout = ManyLayout(spec.horizon, 3, here.spec.labelled)
    for t, at in states(layout):
        number = layout.place(t, at)
        image = layout.place(t, tuple(x for g in order for x in at[2 * g : 2 * g + 2]))
        assert codes[list(order), number].tolist() == others[:, image].tolist()


def turned(spec: Spec, order: tuple[int, ...]) -> Spec:
    """The same with groups declared in another order."""
    names = tuple(THREE[g] for g in order)

    def model(given: fs.InputModel) -> fs.InputModel:
        chances = None if given.outcomes is None else given.outcomes[list(order)]
        return fs.InputModel(names, given.levels, given.probs[list(order)], chances, given.edges)

    inputs = spec.inputs
    if isinstance(inputs, fs.InputSchedule):
        changed: Any = fs.InputSchedule([(model(part), n) for part, n in inputs.parts])
    else:
        changed = model(inputs)
    return spec._replace(inputs=changed, start=fs.Counts({g: spec.start[g] for g in names}))


def states(layout: ManyLayout) -> set[tuple[int, tuple[int, ...]]]:
    found, here = set(), {reference.Position(0, (0, 0) * layout.n_groups)}
    for _ in range(layout.horizon + 1):
        found |= {(s.t, s.at) for s in here}
        steps = product(here, range(layout.n_groups), (False, True))
        after = {s.after(g, y) for s, g, y in steps}
        here = after | {s.unchanged() for s in here} if layout.labelled else after
    return found


@given(three_groups)
def test_the_policy_costs_what_it_was_expected_to(spec: Spec) -> None:
    policy = spec.feasible_policy()
    found = evaluate(policy)
    assert found.overruled.shape == (spec.horizon, 3)
    assert math.isclose(found.expected_cost, policy.expected_cost, rel_tol=1e-9, abs_tol=1e-9)


@given(specs(symmetric_properties, horizons=(2, 4), groups=THREE), st.sampled_from([1.5, 4.0]))
def test_spreading_is_as_safe_and_never_cheaper(spec: Spec, spread: float) -> None:
    policy = spec.feasible_policy(spread=spread)
    assert fs.verify(policy).holds
    assert same(policy.least_cost, spec.synthesize().expected_cost)
    assert policy.expected_cost >= policy.least_cost - 1e-9


@given(three_groups)
def test_the_cost_to_go_from_the_start_is_the_expected_cost(spec: Spec) -> None:
    policy = spec.feasible_policy()
    if 0 not in policy.due:
        assert same(cost_to_go(policy, policy.start, 0), policy.expected_cost)


# Deciding -----------------------------------------------------------------------------------


@given(three_groups, three_streams)
def test_many_are_decided_as_one_by_one(spec: Spec, stream: list[Request]) -> None:
    policy = spec.feasible_policy()
    one, all_at_once, stream = fs.Shield(policy), fs.Shield(policy), stream[: spec.horizon]
    decisions = run(one, stream)
    groups, proposed, costs, outcomes = zip(*stream, strict=True)
    known = outcomes if policy.labelled else None
    batch = all_at_once.decide_many(groups, proposed, costs, known, reasons=True)
    assert batch.accepted.tolist() == [decision.accepted for decision in decisions]
    told = [decision.reason if decision.overruled else None for decision in decisions]
    assert list(batch.reasons or ()) == told
    assert all_at_once.counts == one.counts
    assert all_at_once.guaranteed == one.guaranteed


@given(
    specs(symmetric_properties, horizons=(1, 3), groups=THREE),
    st.lists(three_streams, min_size=2, max_size=3),
)
def test_a_stream_goes_on_from_window_to_window(spec: Spec, parts: list[list[Request]]) -> None:
    policy = spec.feasible_policy()
    stream = fs.Run(policy, unseen="follow")
    asked = [request for part in parts for request in (*part, Request("x", True, 1.0, True))]
    groups, proposed, costs, outcomes = zip(*asked, strict=True)
    found = stream.decide_many(groups, proposed, costs, outcomes if policy.labelled else None)
    assert stream.followed["x"].seen == len(parts)
    known = [request for request in asked if request.group != "x"]
    answers = [yes for yes, who in zip(found.accepted.tolist(), groups, strict=True) if who != "x"]
    for first in range(0, len(known), spec.horizon):
        window = run(fs.Shield(policy), known[first : first + spec.horizon])
        here = answers[first : first + spec.horizon]
        assert [decision.accepted for decision in window] == here


@settings(max_examples=examples(20))
@given(
    specs(
        st.one_of(symmetric_properties, labelled_properties), horizons=(2, 4), groups=THREE,
        models=input_models(groups=THREE) | schedules(groups=THREE),
    )
)  # fmt: skip
def test_simulated_windows_end_fair_and_count_everybody(spec: Spec) -> None:
    policy = spec.feasible_policy()
    found = simulate(policy, n_windows=40, rng=np.random.default_rng(1), keep=3)
    assert found.n_unfair == 0
    assert found.counters.shape == (3, spec.horizon + 1, 6)
    assert found.overruled_at.sum() == found.overruled.sum()
    ended = [policy.start.plus(tuple(end)) for end in _gained(policy, found.counters[:, -1])]
    assert [policy.prop.bias_of(counts) for counts in ended] == found.bias[:3].tolist()


def _gained(policy: fs.Policy, counters: Any) -> list[list[int]]:
    start = policy.start.numbers()
    rows: list[list[int]] = (counters - np.array(start)).tolist()
    return rows


@given(three_groups)
def test_a_policy_that_forgot_what_is_feasible_is_found_out(spec: Spec) -> None:
    policy = spec.feasible_policy()
    assert isinstance(policy.decisions, StateDecisions)
    careless = with_decisions(policy, codes=np.zeros_like(policy.decisions.codes))
    found = fs.verify(careless)
    if spec.horizon <= 2:
        outcomes = (False, True) if policy.labelled else (True,)
        requests = [Request(g, r, 1.0, z) for g, r, z in product(THREE, (False, True), outcomes)]
        windows = product(requests, repeat=spec.horizon)
        assert found.holds == all(ends_fair(careless, list(stream)) for stream in windows)
    if found.counterexample is None:
        return
    assert not policy.prop.holds(found.counterexample.counts)
    shield = fs.Shield(careless)
    for logged in found.counterexample.decisions:
        made = shield.decide(logged.group, proposed=logged.proposed, cost=logged.cost)
        assert made.accepted == logged.accepted
        if policy.labelled:
            shield.observe(made, outcome=bool(logged.outcome))
    assert shield.counts == found.counterexample.counts
