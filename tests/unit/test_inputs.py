"""Input models: tables, estimates, scores, schedules, and what is refused."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import input_models, schedules

import fairshield as fs
from fairshield.inputs import inputs_from_dict

EVEN = {(group, proposed, 1.0): 0.25 for group in "ab" for proposed in (True, False)}


def refused(call: Any, *parts: str) -> None:
    """The error names each of ``parts``: the value, the rule, the remedy."""
    with pytest.raises(fs.InvalidValueError) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)


# Agnostic and explicit ----------------------------------------------------------------------


def test_agnostic_knows_only_the_shares() -> None:
    model = fs.InputModel.agnostic({"a": 0.325, "b": 0.675})
    assert model.groups == ("a", "b")
    assert model.levels.tolist() == [1.0]
    assert model.probs.tolist() == [[[0.1625], [0.1625]], [[0.3375], [0.3375]]]
    assert model.outcomes is not None
    assert (model.outcomes == 0.5).all()
    assert fs.InputModel.agnostic({"a": 0.5, "b": 0.5}, cost=3.0).levels.tolist() == [3.0]


def test_a_table_keeps_the_order_of_its_groups() -> None:
    table = {("z", True, 1.0): 0.5, ("a", False, 0.5): 0.5}
    model = fs.InputModel.from_table(table)
    assert model.groups == ("z", "a")
    assert model.levels.tolist() == [0.5, 1.0]
    assert model.probs.tolist() == [[[0, 0], [0, 0.5]], [[0.5, 0], [0, 0]]]
    assert model.outcomes is None


def test_proposals_may_be_written_as_numbers() -> None:
    table = {("a", 1, 1): 0.5, ("b", 0, 1): 0.5}
    assert fs.InputModel.from_table(table).probs[0, 1, 0] == 0.5


def test_the_most_specific_outcome_wins() -> None:
    outcomes = {("a", True, 1.0): 1.0, "a": 0.1, ("a", True): 0.2, "b": 0.3}
    table = {**EVEN, ("a", True, 2.0): 0.0}
    model = fs.InputModel.from_table(table, outcomes=outcomes)
    assert model.outcomes is not None
    assert model.outcomes[0].tolist() == [[0.1, 0.1], [1.0, 0.2]]
    assert (model.outcomes[1] == 0.3).all()


def test_models_are_read_only() -> None:
    model = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    for array in (model.probs, model.levels, model.edges, model.outcomes):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0  # type: ignore[index]


def test_a_model_does_not_follow_the_arrays_it_was_made_from() -> None:
    probs = np.full((2, 2, 1), 0.25)
    model = fs.InputModel(("a", "b"), np.array([1.0]), probs)
    probs[:] = 0.0
    assert model.probs.sum() == 1.0


@pytest.mark.parametrize("short", [0.9, 1.1, 0.999999])
def test_probabilities_sum_to_one(short: float) -> None:
    table = {**EVEN, ("a", True, 1.0): 0.25 + short - 1.0}
    refused(
        lambda: fs.InputModel.from_table(table),
        f"probabilities sum to {short:g}", "must sum to 1", "divide each by the sum",
    )  # fmt: skip
    shares = {"a": 0.5, "b": short - 0.5}
    refused(lambda: fs.InputModel.agnostic(shares), f"sum to {short:g}")


def test_rounding_errors_of_a_sum_are_forgiven() -> None:
    tenths = {("a", True, 1.0): 0.1, ("a", False, 1.0): 0.2, ("b", True, 1.0): 1 - (0.1 + 0.2)}
    tenths[("b", False, 1.0)] = 1e-16
    assert sum(map(Fraction, tenths.values())) != 1
    fs.InputModel.from_table(tenths)


@pytest.mark.parametrize("bad", [-0.25, math.nan, math.inf])
def test_probabilities_are_finite_and_not_negative(bad: float) -> None:
    table = {**EVEN, ("b", False, 1.0): bad, ("b", True, 1.0): 0.5 - bad}
    refused(
        lambda: fs.InputModel.from_table(table),
        "probability of ('b', ", f"is {bad if bad < 1 else ''}".strip(), "finite and at least 0",
    )  # fmt: skip


@pytest.mark.parametrize("cost", [-1.0, math.nan, math.inf, "dear", None])
def test_costs_are_finite_and_not_negative(cost: Any) -> None:
    refused(
        lambda: fs.InputModel.from_table({("a", True, cost): 0.5, ("b", True, 1.0): 0.5}),
        "a cost must be a finite number of at least 0", repr(cost),
    )  # fmt: skip


@pytest.mark.parametrize("groups", [["a"], []])
def test_a_table_names_at_least_two_groups(groups: list[str]) -> None:
    table = {(g, True, 1.0): 1.0 / len(groups) for g in groups}
    refused(
        lambda: fs.InputModel.from_table(table),
        f"{len(groups)} groups", "at least two", "probability 0",
    )  # fmt: skip


@pytest.mark.parametrize("key", ["a", ("a", True), ("a", True, 1.0, 2), 3])
def test_a_table_is_keyed_by_group_proposal_and_cost(key: Any) -> None:
    refused(lambda: fs.InputModel.from_table({key: 1.0}), "(group, proposed, cost)", repr(key))


def test_a_proposal_is_yes_or_no() -> None:
    table = {("a", "maybe", 1.0): 0.5, ("b", True, 1.0): 0.5}
    refused(lambda: fs.InputModel.from_table(table), "'maybe'", "accept/reject")


@pytest.mark.parametrize("group", [1.5, None, ("a", "b")])
def test_a_group_is_a_string_or_an_integer(group: Any) -> None:
    table = {(group, True, 1.0): 0.5, ("b", True, 1.0): 0.5}
    refused(lambda: fs.InputModel.from_table(table), "a group name must be", repr(group))


@pytest.mark.parametrize("chance", [-0.1, 1.1, math.nan])
def test_chances_of_outcomes_lie_between_zero_and_one(chance: float) -> None:
    refused(
        lambda: fs.InputModel.from_table(EVEN, outcomes={"a": chance, "b": 0.5}),
        "outcome = 1", "got" if chance == chance else "P(",
    )  # fmt: skip


def test_every_request_needs_the_chance_of_its_outcome() -> None:
    refused(
        lambda: fs.InputModel.from_table(EVEN, outcomes={"a": 0.5, ("b", True): 0.5}),
        "no P(outcome = 1) for ('b', False, 1)", "per (group, proposed)",
    )  # fmt: skip
    refused(lambda: fs.InputModel.from_table(EVEN, outcomes={"c": 0.5}), "group 'c'")
    refused(
        lambda: fs.InputModel.from_table(EVEN, outcomes={"a": 0.5, "b": 0.5, ("a", True, 7.0): 1}),
        "cost 7.0", "[1.0]",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("groups", "part"),
    [
        (("a", "a"), "group 'a' twice"),
        (("a",), "at least two"),
        (("a", "b", "c"), "shape (3, 2, 1)"),
        (tuple(range(101)), "at most 100"),
    ],
)
def test_groups_are_different_and_as_many_as_the_probabilities(
    groups: tuple[str, ...], part: str
) -> None:
    probs = np.full((2, 2, 1), 0.25)
    refused(lambda: fs.InputModel(groups, np.array([1.0]), probs), part)


@pytest.mark.parametrize(
    ("levels", "edges", "part"),
    [
        ([2.0, 1.0], None, "must rise"),
        ([1.0, 1.0], None, "must rise"),
        ([1.0, 2.0], [1.0, 1.5], "between it and the next level"),
        ([], None, "at least one cost level"),
        ([1.0, 2.0], [3.0], "each with an edge"),
    ],
)
def test_levels_rise_and_lie_below_their_edges(levels: Any, edges: Any, part: str) -> None:
    n = max(len(levels), 1)
    probs = np.full((2, 2, n), 0.25 / n)
    refused(lambda: fs.InputModel(("a", "b"), levels, probs, None, edges), part)


def test_shapes_are_checked() -> None:
    refused(
        lambda: fs.InputModel(("a", "b"), np.array([1.0]), np.full((2, 2, 2), 0.125)),
        "shape (2, 2, 1)", "got (2, 2, 2)",
    )  # fmt: skip
    refused(
        lambda: fs.InputModel(
            ("a", "b"), np.array([1.0]), np.full((2, 2, 1), 0.25), np.full((2, 2), 0.5)
        ),
        "outcomes must have shape (2, 2, 1)",
    )


# Files --------------------------------------------------------------------------------------


@given(input_models(max_levels=4, binned=True) | schedules(max_levels=3))
def test_an_input_model_survives_a_file_to_the_bit(inputs: Any) -> None:
    copy = inputs_from_dict(inputs.to_dict())
    assert type(copy) is type(inputs)
    assert copy.to_dict() == inputs.to_dict()
    for horizon in (1, 5):
        here, there = inputs.table(horizon), copy.table(horizon)
        assert here.groups == there.groups
        for name in ("levels", "edges", "probs", "outcomes"):
            assert np.array_equal(getattr(here, name), getattr(there, name))


@given(input_models(max_levels=4, binned=True) | schedules(max_levels=3), st.integers(1, 12))
def test_a_table_is_a_distribution_at_every_step(inputs: Any, horizon: int) -> None:
    table = inputs.table(horizon)
    assert len(table.probs) in (1, horizon)
    assert table.probs.sum(axis=(1, 2, 3)) == pytest.approx(np.ones(len(table.probs)))
    assert ((table.outcomes >= 0) & (table.outcomes <= 1)).all()


@given(input_models(max_levels=4, binned=True) | schedules(max_levels=3))
def test_every_cost_level_lies_in_a_cell_of_its_own(inputs: Any) -> None:
    table = inputs.table(3)
    cells = np.searchsorted(table.edges, table.levels, side="left")
    assert cells.tolist() == list(range(len(table.levels)))


# Schedules ----------------------------------------------------------------------------------


def test_the_last_model_of_a_schedule_covers_the_rest() -> None:
    early = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    late = fs.InputModel.agnostic({"a": 0.25, "b": 0.75}, cost=2.0)
    table = fs.InputSchedule([(early, 2), (late, 1)]).table(5)
    assert table.levels.tolist() == [1.0, 2.0]
    share_of_a = table.probs[:, 0].sum(axis=(1, 2))
    assert share_of_a.tolist() == [0.5, 0.5, 0.25, 0.25, 0.25]
    assert fs.InputSchedule([(early, 2), (late, 1)]).table(1).probs.shape[0] == 1


def test_a_schedule_may_be_longer_than_any_window() -> None:
    model = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    schedule = fs.InputSchedule([(model, 10**7)])
    tracemalloc.start()
    table = schedule.table(3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert table.probs.shape == (3, 2, 2, 1)
    assert peak < 10**6


@pytest.mark.parametrize("steps", [0, -1, 2.5, "3"])
def test_a_part_of_a_schedule_lasts_whole_steps(steps: Any) -> None:
    model = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    refused(lambda: fs.InputSchedule([(model, steps)]), "at least 1", str(steps))


def test_models_of_a_schedule_share_their_groups() -> None:
    here = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    there = fs.InputModel.agnostic({"b": 0.5, "a": 0.5})
    refused(lambda: fs.InputSchedule([(here, 1), (there, 1)]), "same groups in the same order")
    refused(lambda: fs.InputSchedule([]), "at least one")


def test_a_schedule_without_outcomes_somewhere_has_none() -> None:
    with_outcomes = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    without = fs.InputModel.from_table(EVEN)
    assert fs.InputSchedule([(with_outcomes, 1), (without, 1)]).table(2).outcomes is None


def test_models_and_schedules_can_be_read() -> None:
    model = fs.InputModel.agnostic({"a": 0.325, "b": 0.675})
    assert str(model) == "a 0.325, b 0.675; cost 1"
    two = fs.InputModel.from_table({("a", True, 1.0): 0.5, ("b", True, 2.0): 0.5})
    assert str(two) == "a 0.5, b 0.5; 2 cost levels"
    assert "(2 steps) then" in str(fs.InputSchedule([(model, 2), (model, 1)]))
