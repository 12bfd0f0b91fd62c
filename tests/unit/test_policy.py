"""Policies: what they say about themselves, and look-ups of single states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numba import njit
from strategies import NotThatMany, Spec, code_at, contested_specs, positions, specs

import fairshield as fs
from fairshield.policy.jitable import answer
from fairshield.policy.rows import FORCED


def test_a_policy_says_what_it_is(plain_policy: fs.Policy, labelled_policy: fs.Policy) -> None:
    assert plain_policy.groups == ("a", "b")
    assert not plain_policy.labelled
    assert labelled_policy.labelled
    assert plain_policy.version == fs.__version__
    cost = f"{plain_policy.expected_cost:.6g}"
    assert str(plain_policy) == (
        f"demographic parity ≤ 1/4 over 6 decisions, groups a and b, expected cost {cost}"
    )
    assert plain_policy.nbytes > 0


def test_tables_are_read_only(plain_policy: fs.Policy) -> None:
    for array in (plain_policy.decisions.rows.cuts, plain_policy.decisions.rows.dense_codes):
        assert not array.flags.writeable


def final_code(can_reject: bool, can_accept: bool, code: int) -> int:
    """The code, unless only one of the decisions is feasible."""
    if can_reject == can_accept:
        return code
    return FORCED if can_reject else -FORCED


@njit
def answer_of(tables: Any, t: int, at: Any, group: int) -> Any:
    return answer(tables, t, at, group)


@given(specs(max_levels=3) | contested_specs())
def test_compiled_look_ups_are_those_of_the_reader(spec: Spec) -> None:
    policy = spec.feasible_policy()
    tables, reader = policy.decisions.tables, policy.decisions
    for s in positions(spec.horizon, policy.labelled):
        if s.t == spec.horizon:
            continue
        for group in (0, 1):
            code = code_at(reader, *s, group)
            assert reader.look_up(*s, group) == answer_of(tables, s.t, np.array(s.at), group)
            after = [reader.feasible(*s.after(group, accepted)) for accepted in (False, True)]
            assert reader.look_up(*s, group) == (*after, final_code(*after, code))


@pytest.mark.parametrize(
    ("prop", "horizon"),
    [(fs.DemographicParity("0.1"), 20), (NotThatMany(3), 8), (fs.EqualOpportunity("0.3"), 9)],
)
def test_one_look_up_is_three(prop: fs.Property, horizon: int, even: fs.InputModel) -> None:
    # Long enough for irregular rows next to regular ones.
    policy = fs.synthesize(prop, even, horizon=horizon, checkpoints=(horizon // 2,))
    reader = policy.decisions
    assert policy.decisions.rows.n_dense > 0
    for s in positions(horizon - 1, policy.labelled):
        for group in (0, 1):
            after = [reader.feasible(*s.after(group, accepted)) for accepted in (False, True)]
            code = final_code(*after, code_at(reader, *s, group))
            assert reader.look_up(*s, group) == (*after, code)


@given(specs())
def test_states_that_are_not_feasible_have_no_code(spec: Spec) -> None:
    policy = spec.feasible_policy()
    for s in positions(spec.horizon, policy.labelled):
        if not policy.decisions.feasible(*s):
            assert code_at(policy.decisions, *s, 0) == code_at(policy.decisions, *s, 1) == 0


@given(specs())
def test_codes_count_cost_levels(spec: Spec) -> None:
    policy = spec.feasible_policy()
    for s in positions(spec.horizon - 1, policy.labelled):
        assert abs(code_at(policy.decisions, *s, 0)) <= len(policy.edges)
        assert abs(code_at(policy.decisions, *s, 1)) <= len(policy.edges)


@given(specs())
def test_at_the_end_feasible_means_fair(spec: Spec) -> None:
    policy = spec.feasible_policy()
    for s in positions(spec.horizon, policy.labelled):
        if s.t == spec.horizon:
            counts = spec.start.plus(s.at)
            assert policy.guarantees(counts, s.t) == spec.prop.holds(counts)


def test_a_long_window_needs_wider_numbers(even: fs.InputModel) -> None:
    # From horizon 254 on, counters do not fit into a byte.
    policy = fs.synthesize(fs.ShareParity("0.2"), even, horizon=260)
    assert policy.decisions.rows.cuts.dtype.itemsize == 2
    groups, proposed = ["a", "b"] * 130, [True, False] * 130
    one_by_one, at_once = fs.Shield(policy), fs.Shield(policy)
    decisions = [one_by_one.decide(g, proposed=r) for g, r in zip(groups, proposed, strict=True)]
    batch = at_once.decide_many(groups, proposed)
    assert batch.accepted.tolist() == [d.accepted for d in decisions]
    assert policy.prop.holds(one_by_one.counts)
    assert batch.overruled.any()


@pytest.mark.parametrize("levels", [126, 127, 128, 400])
def test_many_cost_levels_are_told_apart(levels: int) -> None:
    costs = [(1 + i) / levels for i in range(levels)]
    table = {(g, r, c): 0.25 / levels for g in "ab" for r in (False, True) for c in costs}
    policy = fs.synthesize(fs.DemographicParity("0.1"), fs.InputModel.from_table(table), horizon=5)
    reference = fs.synthesize(
        fs.DemographicParity("0.1"), fs.InputModel.from_table(table), horizon=5, backend="reference"
    )
    assert policy.expected_cost == pytest.approx(reference.expected_cost, rel=1e-12)
    for s in positions(4, labelled=False):
        for group in (0, 1):
            assert code_at(policy.decisions, *s, group) == code_at(reference.decisions, *s, group)
