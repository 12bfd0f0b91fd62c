"""One window of decisions: what a shield refuses, and that a refusal counts nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairshield as fs


def snapshot(shield: fs.Shield) -> tuple[Any, ...]:
    return shield.counts, shield.decided, shield.remaining, shield.pending, shield.guaranteed


def refused(
    shield: fs.Shield, error: type[Exception], *parts: str, call: Callable[[], Any]
) -> None:
    """The call fails, says why, and leaves the shield as it was."""
    before = snapshot(shield)
    with pytest.raises(error) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
    assert snapshot(shield) == before


@pytest.fixture
def shield(plain_policy: fs.Policy) -> fs.Shield:
    shield = fs.Shield(plain_policy)
    shield.decide("a", proposed=True)
    return shield


@pytest.fixture
def labelled(labelled_policy: fs.Policy) -> fs.Shield:
    return fs.Shield(labelled_policy)


# Counting -----------------------------------------------------------------------------------


def test_decisions_are_counted_at_once(plain_policy: fs.Policy) -> None:
    shield = fs.Shield(plain_policy)
    assert (shield.decided, shield.remaining) == (0, 6)
    decision = shield.decide("b", proposed=True, cost=0.3)
    assert shield.counts == fs.Counts({"a": (0, 0), "b": (1, int(decision.accepted))})
    assert (shield.decided, shield.remaining) == (1, 5)
    assert (decision.position, decision.group, decision.proposed, decision.cost) == (
        0,
        "b",
        True,
        0.3,
    )


def test_counts_include_the_start(even: fs.InputModel) -> None:
    start = fs.Counts({"b": (20, 14), "a": (10, 8)})
    policy = fs.synthesize(fs.DemographicParity("0.2"), even, horizon=3, start=start)
    shield = fs.Shield(policy)
    assert shield.counts == start
    assert list(shield.counts) == ["a", "b"]
    shield.decide("a", proposed=True)
    assert shield.counts["a"].seen == 11
    assert shield.counts["b"] == (20, 14)


@pytest.mark.parametrize("relevant", [True, False])
def test_only_relevant_outcomes_count(relevant: bool, even: fs.InputModel) -> None:
    kind = fs.EqualOpportunity if relevant else fs.PredictiveEquality
    shield = fs.Shield(fs.synthesize(kind("0.5"), even, horizon=4))
    for outcome in (True, False):
        decision = shield.decide("a", proposed=True)
        assert shield.pending == decision
        before = shield.counts["a"].seen
        shield.observe(decision, outcome=outcome)
        assert shield.counts["a"].seen == before + (outcome == relevant)
        assert shield.pending is None
    assert shield.decided == 2


def test_numpy_values_are_welcome(shield: fs.Shield) -> None:
    decision = shield.decide(np.str_("b"), proposed=np.bool_(True), cost=np.float64(0.5))
    assert decision.proposed is True
    assert shield.decided == 2


# Refusals -----------------------------------------------------------------------------------


def test_no_decision_after_the_last(plain_policy: fs.Policy) -> None:
    shield = fs.Shield(plain_policy)
    for i in range(6):
        shield.decide("ab"[i % 2], proposed=True)
    for call in (
        lambda: shield.decide("a", proposed=True),
        lambda: shield.advise("a", proposed=True),
    ):
        refused(shield, fs.WindowOverError, "all 6 decisions", "start a new Shield", call=call)
    refused(
        shield, fs.WindowOverError, "1 requests", "0 of the window's 6", "new Shield",
        call=lambda: shield.decide_many(["a"], [True]),
    )  # fmt: skip


def test_the_hundred_and_first_of_a_hundred(even: fs.InputModel) -> None:
    shield = fs.Shield(fs.synthesize(fs.DemographicParity("0.1"), even, horizon=100))
    shield.decide_many(["a", "b"] * 50, [True, False] * 50)
    refused(
        shield, fs.WindowOverError, "all 100 decisions",
        call=lambda: shield.decide("a", proposed=True),
    )  # fmt: skip


@pytest.mark.parametrize("group", ["c", "", None, 1, "A"])
def test_unknown_groups(shield: fs.Shield, group: Any) -> None:
    for call in (
        lambda: shield.decide(group, proposed=True),
        lambda: shield.advise(group, proposed=True),
    ):
        refused(shield, fs.UnknownGroupError, f"unknown group {group!r}", "'a', 'b'", call=call)
    refused(
        shield, fs.FairshieldError, "group", str(group),
        call=lambda: shield.decide_many(["a", group], [True, True]),
    )  # fmt: skip


@pytest.mark.parametrize("cost", [-1.0, -1e-300, math.nan, math.inf, -math.inf])
def test_costs_are_finite_and_not_negative(shield: fs.Shield, cost: float) -> None:
    for call in (
        lambda: shield.decide("a", proposed=True, cost=cost),
        lambda: shield.advise("a", proposed=True, cost=cost),
    ):
        refused(shield, fs.InvalidValueError, "finite number of at least 0", repr(cost), call=call)
    refused(
        shield, fs.InvalidValueError, "costs[1]", "finite and at least 0",
        call=lambda: shield.decide_many(["a", "b"], [True, True], [1.0, cost]),
    )  # fmt: skip
    refused(
        shield, fs.InvalidValueError, "costs[0]",
        call=lambda: shield.decide_many(["a", "b"], [True, True], cost),
    )  # fmt: skip


def test_an_outcome_is_needed_before_the_next_decision(labelled: fs.Shield) -> None:
    decision = labelled.decide("a", proposed=True)
    for call in (
        lambda: labelled.decide("a", proposed=True),
        lambda: labelled.advise("a", proposed=True),
        lambda: labelled.decide_many(["a"], [True], outcomes=[True]),
    ):
        refused(labelled, fs.OutcomePendingError, "observe the outcome of decision 0", call=call)
    refused(
        labelled, fs.FairshieldError, "decision",
        call=lambda: labelled.record(decision, final=True),
    )  # fmt: skip
    labelled.observe(decision, outcome=True)
    labelled.decide("a", proposed=True)


def test_outcomes_come_after_decisions_and_once(
    labelled: fs.Shield, labelled_policy: fs.Policy
) -> None:
    elsewhere = fs.Shield(labelled_policy).decide("a", proposed=True)
    refused(
        labelled, fs.UnexpectedOutcomeError, "decision 0 is not waiting", "decide first",
        call=lambda: labelled.observe(elsewhere, outcome=True),
    )  # fmt: skip
    first = labelled.decide("a", proposed=True)
    labelled.observe(first, outcome=True)
    refused(
        labelled, fs.UnexpectedOutcomeError, "decision 0 is not waiting", "observe once",
        call=lambda: labelled.observe(first, outcome=True),
    )  # fmt: skip
    labelled.decide("b", proposed=True)
    refused(
        labelled, fs.UnexpectedOutcomeError, "decision 0 is not waiting", "decision 1 is",
        call=lambda: labelled.observe(first, outcome=True),
    )  # fmt: skip


def test_properties_without_outcomes_need_none(shield: fs.Shield) -> None:
    decision = shield.decide("b", proposed=True)
    refused(
        shield, fs.UnexpectedOutcomeError, "does not need outcomes",
        call=lambda: shield.observe(decision, outcome=True),
    )  # fmt: skip


def test_advice_is_for_the_next_decision_only(shield: fs.Shield) -> None:
    advice = shield.advise("a", proposed=True)
    shield.decide("b", proposed=True)
    refused(
        shield, fs.InvalidValueError, "advice is for decision 1", "next decision is 2",
        call=lambda: shield.record(advice, final=True),
    )  # fmt: skip


# Many at once -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column", [list, tuple, np.array, pd.Series, pl.Series, pa.array], ids=lambda c: c.__name__
)
def test_columns_of_every_make(plain_policy: fs.Policy, column: Any) -> None:
    groups, proposed, costs = ["a", "b", "a"], [True, False, True], [0.5, 1.0, 2.0]
    expected = fs.Shield(plain_policy).decide_many(groups, proposed, costs)
    batch = fs.Shield(plain_policy).decide_many(column(groups), column(proposed), column(costs))
    assert all(np.array_equal(x, y) for x, y in zip(batch, expected, strict=True))


def test_integer_groups_at_once() -> None:
    inputs = fs.InputModel.agnostic({0: 0.5, 1: 0.5})
    shield = fs.Shield(fs.synthesize(fs.DemographicParity("0.5"), inputs, horizon=4))
    shield.decide_many(np.array([0, 1, 1]), [1, 0, 1])
    assert shield.counts[1].seen == 2


def test_none_at_once(shield: fs.Shield) -> None:
    before = snapshot(shield)
    batch = shield.decide_many([], [])
    assert [len(part) for part in batch[:3]] == [0, 0, 0]
    assert snapshot(shield) == before


def test_a_batch_is_decided_whole_or_not_at_all(shield: fs.Shield) -> None:
    refused(
        shield, fs.WindowOverError, "6 requests", "only 5",
        call=lambda: shield.decide_many(["a"] * 6, [True] * 6),
    )  # fmt: skip
    refused(
        shield, fs.UnknownGroupError, "'c'",
        call=lambda: shield.decide_many(["a", "b", "c"], [True] * 3),
    )  # fmt: skip


def test_columns_of_a_batch_are_equally_long(shield: fs.Shield) -> None:
    for call in (
        lambda: shield.decide_many(["a", "b"], [True]),
        lambda: shield.decide_many(["a", "b"], [True, True, True]),
        lambda: shield.decide_many(["a", "b"], [True, True], [1.0, 1.0, 1.0]),
    ):
        refused(shield, fs.InvalidValueError, "groups has 2", call=call)
    refused(
        shield, fs.InvalidValueError, "one-dimensional",
        call=lambda: shield.decide_many(["a", "b"], [[True, True]]),
    )  # fmt: skip


def test_values_of_a_batch_are_checked(shield: fs.Shield) -> None:
    refused(
        shield, fs.InvalidValueError, "7", call=lambda: shield.decide_many(["a", "b"], [True, 7])
    )
    refused(
        shield, fs.InvalidValueError, "costs", "dear",
        call=lambda: shield.decide_many(["a", "b"], [True, True], ["1", "dear"]),
    )  # fmt: skip


def test_labelled_batches_need_outcomes(labelled: fs.Shield) -> None:
    refused(
        labelled, fs.InvalidValueError, "needs outcomes=, one per request",
        call=lambda: labelled.decide_many(["a"], [True]),
    )  # fmt: skip
    labelled.decide_many(["a", "b"], [True, True], outcomes=[1, 0])
    assert labelled.counts == fs.Counts({"a": (1, 1), "b": (0, 0)})
    assert labelled.decided == 2


# Resuming -----------------------------------------------------------------------------------


def test_counters_tell_how_many_were_decided(plain_policy: fs.Policy) -> None:
    shield = fs.Shield(plain_policy, counts=fs.Counts({"b": (2, 1), "a": (1, 1)}))
    assert (shield.decided, shield.remaining) == (3, 3)
    assert shield.counts == fs.Counts({"a": (1, 1), "b": (2, 1)})


def test_where_outcomes_matter_counters_do_not_tell(labelled_policy: fs.Policy) -> None:
    counts = fs.Counts({"a": (1, 1), "b": (0, 0)})
    with pytest.raises(fs.InvalidValueError, match=r"say also how many .*decided="):
        fs.Shield(labelled_policy, counts=counts)
    assert fs.Shield(labelled_policy, counts=counts, decided=3).remaining == 2


@pytest.mark.parametrize(
    ("a", "b", "decided"),
    [((4, 0), (4, 0), None), ((1, 0), (1, 0), 3), ((1, 0), (1, 0), 1), ((7, 0), (0, 0), 7)],
)
def test_counters_must_fit_the_window(
    plain_policy: fs.Policy, a: Any, b: Any, decided: int | None
) -> None:
    with pytest.raises(fs.InvalidValueError, match=r"do not fit .* window of 6"):
        fs.Shield(plain_policy, counts=fs.Counts({"a": a, "b": b}), decided=decided)


@pytest.mark.parametrize("decided", [-1, 6, 10**9])
def test_decisions_must_fit_the_window(labelled_policy: fs.Policy, decided: int) -> None:
    with pytest.raises(fs.InvalidValueError, match=r"do not fit .* window of 5"):
        fs.Shield(labelled_policy, decided=decided)


def test_counters_must_continue_the_start(even: fs.InputModel) -> None:
    start = fs.Counts({"a": (10, 8), "b": (20, 14)})
    policy = fs.synthesize(fs.DemographicParity("0.2"), even, horizon=3, start=start)
    for worse in ({"a": (9, 8), "b": (20, 14)}, {"a": (11, 7), "b": (20, 14)}):
        with pytest.raises(fs.InvalidValueError, match="does not continue the policy's start"):
            fs.Shield(policy, counts=fs.Counts(worse))
    with pytest.raises(fs.UnknownGroupError):
        fs.Shield(policy, counts=fs.Counts({"a": (11, 8), "c": (20, 14)}))


# The pure step ------------------------------------------------------------------------------


def test_step_remembers_nothing(plain_policy: fs.Policy) -> None:
    state = fs.State.initial(plain_policy)
    first = fs.step(plain_policy, state, "a", proposed=True)
    assert fs.step(plain_policy, state, "a", proposed=True) == first
    assert state == fs.State.initial(plain_policy)


def test_step_refuses_what_a_shield_refuses(
    plain_policy: fs.Policy, labelled_policy: fs.Policy
) -> None:
    state = fs.State.initial(plain_policy)
    with pytest.raises(fs.UnknownGroupError):
        fs.step(plain_policy, state, "c", proposed=True)
    with pytest.raises(fs.InvalidValueError, match="cost must be"):
        fs.step(plain_policy, state, "a", proposed=True, cost=-1.0)
    over = fs.State(6, fs.Counts({"a": (3, 3), "b": (3, 3)}))
    with pytest.raises(fs.WindowOverError):
        fs.step(plain_policy, over, "a", proposed=True)
    with pytest.raises(fs.InvalidValueError, match="needs the outcome of every decision"):
        fs.step(labelled_policy, fs.State.initial(labelled_policy), "a", proposed=True)
