"""Synthesis: what is refused, how progress is told, how it is interrupted."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Branching

import fairshield as fs
from fairshield.policy.layout import Layout
from fairshield.spec import Sustained
from fairshield.synthesis import cost_to_go, memory
from fairshield.synthesis.exact import solver

PARITY = fs.DemographicParity("0.1")


# Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("horizon", [0, -3, True, False, 2.5, 1e9, "10", None, math.nan])
def test_a_horizon_is_a_whole_number_of_decisions(horizon: Any, even: fs.InputModel) -> None:
    with pytest.raises(fs.InvalidValueError) as caught:
        fs.synthesize(PARITY, even, horizon=horizon)
    assert f"horizon must be a whole number of at least 1, got {horizon!r}" in str(caught.value)
    assert "number of decisions" in str(caught.value)


def test_a_horizon_may_be_a_numpy_integer(even: fs.InputModel) -> None:
    policy = fs.synthesize(PARITY, even, horizon=np.int64(5))
    assert type(policy.horizon) is int


@pytest.mark.parametrize("point", [0, -1, 7, 2.5, True, "3"])
def test_checkpoints_lie_in_the_window(point: Any, even: fs.InputModel) -> None:
    with pytest.raises(fs.InvalidValueError) as caught:
        fs.synthesize(PARITY, even, horizon=6, checkpoints=(3, point))
    assert f"from 1 to the horizon 6, got {point!r}" in str(caught.value)


@pytest.mark.parametrize(
    "points", [(2, 4), [4, 2], {2, 4}, (4, 2, 2, 6), iter((2, 4)), np.array([2, 4]), range(2, 5, 2)]
)
def test_checkpoints_come_in_any_collection(points: Any, even: fs.InputModel) -> None:
    policy = fs.synthesize(PARITY, even, horizon=6, checkpoints=points)
    assert policy.checkpoints == (2, 4)
    expected = fs.synthesize(PARITY, even, horizon=6, checkpoints=(2, 4))
    assert policy.expected_cost == expected.expected_cost


@pytest.mark.parametrize("backend", ["gpu", "", None, "CPU"])
def test_an_unknown_backend_is_refused(backend: Any, even: fs.InputModel) -> None:
    with pytest.raises(fs.InvalidValueError, match=f"'reference', got {backend!r}"):
        fs.synthesize(PARITY, even, horizon=3, backend=backend)


def test_the_start_names_the_groups_of_the_model(even: fs.InputModel) -> None:
    with pytest.raises(fs.UnknownGroupError, match="unknown group 'c'"):
        fs.synthesize(PARITY, even, horizon=3, start=fs.Counts({"a": (1, 1), "c": (1, 1)}))
    with pytest.raises(fs.FairshieldError, match="'b'"):
        fs.synthesize(PARITY, even, horizon=3, start=fs.Counts({"a": (1, 1)}))


def test_outcomes_are_needed_where_they_count() -> None:
    table = {(g, r, 1.0): 0.25 for g in "ab" for r in (False, True)}
    inputs = fs.InputModel.from_table(table)
    fs.synthesize(PARITY, inputs, horizon=3)
    with pytest.raises(fs.InvalidValueError) as caught:
        fs.synthesize(fs.EqualOpportunity("0.1"), inputs, horizon=3)
    assert "has no outcome probabilities" in str(caught.value)
    assert "outcomes={'GROUP': 'P(outcome = 1)'}" in str(caught.value)


def test_infeasible_says_from_where_and_what_to_relax(even: fs.InputModel) -> None:
    start = fs.Counts({"a": (10, 10), "b": (10, 0)})
    with pytest.raises(fs.InfeasibleError) as caught:
        fs.synthesize(PARITY, even, horizon=5, start=start)
    for part in (
        "demographic parity ≤ 1/10", "over 5 decisions",
        "10 accepted of 10 in a and 0 accepted of 10 in b",
        "Loosen the bound", "min_support", "lengthen the horizon",
    ):  # fmt: skip
        assert part in str(caught.value)


def test_an_early_checkpoint_can_be_what_is_infeasible(even: fs.InputModel) -> None:
    # Rates 1 and 0: one decision cannot bring them within a half, twenty can.
    start = fs.Counts({"a": (3, 3), "b": (3, 0)})
    prop = fs.DemographicParity("0.5")
    assert fs.synthesize(prop, even, horizon=20, start=start).expected_cost > 0
    with pytest.raises(fs.InfeasibleError, match="drop early checkpoints"):
        fs.synthesize(prop, even, horizon=20, start=start, checkpoints=(1,))


# Memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("prop", [PARITY, fs.EqualOpportunity("0.1")])
@pytest.mark.parametrize("horizon", [10**9, 10**18])
def test_a_horizon_that_cannot_fit_is_refused_before_anything_is_allocated(
    prop: fs.Property, horizon: int, even: fs.InputModel
) -> None:
    schedule = fs.InputSchedule([(even, 1)])
    tracemalloc.start()
    try:
        for inputs in (even, schedule):
            with pytest.raises(fs.MemoryLimitError) as caught:
                fs.synthesize(prop, inputs, horizon=horizon, method="exact")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10**6
    message = str(caught.value)
    assert f"horizon {horizon} needs about" in message
    assert "available" in message
    assert "shorten the horizon" in message
    assert isinstance(caught.value, MemoryError)


def test_little_memory_means_short_horizons(
    even: fs.InputModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 5_000_000)
    fs.synthesize(PARITY, even, horizon=20)
    with pytest.raises(fs.MemoryLimitError, match="and 5 MB are available"):
        fs.synthesize(PARITY, even, horizon=400, method="exact")
    assert "needs about" in fs.synthesize(PARITY, even, horizon=400).reason


@given(st.integers(1, 300), st.booleans(), st.sampled_from([1, 2, 200]), st.booleans())
def test_the_estimate_grows_with_everything(
    horizon: int, labelled: bool, levels: int, record: bool
) -> None:
    def estimate(t: int, n: int, r: bool) -> int:
        return memory.estimate_bytes(Layout(t, labelled), n, record=t if r else None)

    here = estimate(horizon, levels, record)
    assert 0 < here < estimate(horizon + 1, levels, record)
    assert here <= estimate(horizon, levels + 200, record)
    assert here <= estimate(horizon, levels, True)


def test_the_machine_has_some_memory() -> None:
    assert memory.available_bytes() > 10**6


# Progress and interruption ------------------------------------------------------------------


@pytest.mark.parametrize("prop", [PARITY, fs.EqualOpportunity("0.2")])
def test_progress_rises_to_one(prop: fs.Property, even: fs.InputModel) -> None:
    shares: list[float] = []
    fs.synthesize(prop, even, horizon=40, checkpoints=(7, 20), progress=shares.append)
    assert len(shares) > 1
    assert shares == sorted(shares)
    assert all(0.0 <= share <= 1.0 for share in shares)
    assert shares[-1] == 1.0


def test_an_interrupt_stops_the_synthesis(even: fs.InputModel) -> None:
    calls: list[float] = []

    def interrupt(share: float) -> None:
        calls.append(share)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fs.synthesize(PARITY, even, horizon=40, progress=interrupt)
    assert len(calls) == 1
    assert fs.synthesize(PARITY, even, horizon=20).expected_cost == pytest.approx(2.587137694601552)


def test_an_interrupt_stops_all_threads(
    even: fs.InputModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solver, "_WORTH_A_THREAD", 1)

    def interrupt(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fs.synthesize(PARITY, even, horizon=80, threads=2, progress=interrupt)


@pytest.mark.parametrize("threads", [1, 2, 64])
def test_more_threads_than_work_do_no_harm(threads: int, even: fs.InputModel) -> None:
    policy = fs.synthesize(PARITY, even, horizon=1, threads=threads)
    assert policy.expected_cost == 0.0


# Cost to go ---------------------------------------------------------------------------------


def test_cost_to_go_at_the_end_is_nothing_or_everything(plain_policy: fs.Policy) -> None:
    assert cost_to_go(plain_policy, fs.Counts({"a": (3, 2), "b": (3, 2)}), 6) == 0.0
    assert cost_to_go(plain_policy, fs.Counts({"a": (3, 3), "b": (3, 0)}), 6) == math.inf


def test_cost_to_go_at_the_start_is_the_expected_cost(plain_policy: fs.Policy) -> None:
    assert cost_to_go(plain_policy, plain_policy.start, 0) == plain_policy.expected_cost


def test_cost_to_go_at_a_missed_checkpoint_is_infinite(even: fs.InputModel) -> None:
    prop = fs.DemographicParity("0.5")
    policy = fs.synthesize(prop, even, horizon=6, checkpoints=(2,))
    missed = fs.Counts({"a": (1, 1), "b": (1, 0)})
    assert not policy.guarantees(missed, 2)
    assert cost_to_go(policy, missed, 2) == math.inf


def test_cost_to_go_past_the_end_is_refused(plain_policy: fs.Policy) -> None:
    with pytest.raises(fs.InvalidValueError, match="7"):
        cost_to_go(plain_policy, fs.Counts({"a": (4, 2), "b": (3, 2)}), 7)


# Unusual numbers ----------------------------------------------------------------------------


def test_probabilities_of_any_size_keep_the_guarantee() -> None:
    table = {("a", True, 1.0): 1.0 - 1e-12, ("a", False, 1.0): 1e-12, ("b", True, 1.0): 1e-320}
    inputs = fs.InputModel.from_table(table, outcomes={"a": 1e-320, "b": 1 - 1e-16})
    for prop in (PARITY, fs.EqualOpportunity("0.1")):
        policy = fs.synthesize(prop, inputs, horizon=6)
        assert 0.0 <= policy.expected_cost <= 6.0
        shield = fs.Shield(policy)
        for i in range(6):
            decision = shield.decide("ab"[i % 2], proposed=i % 2 == 0)
            if policy.labelled:
                shield.observe(decision, outcome=True)
        assert prop.holds(shield.counts)


@pytest.mark.parametrize("cost", [1e-30, 1e-3, 1e6, 1e30])
def test_costs_of_any_size_scale(cost: float, even: fs.InputModel) -> None:
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5}, cost=cost)
    for prop in (PARITY, fs.EqualOpportunity("0.1")):
        unit = fs.synthesize(prop, even, horizon=12).expected_cost
        policy = fs.synthesize(prop, inputs, horizon=12)
        assert policy.expected_cost == pytest.approx(unit * cost, rel=1e-9)


@pytest.mark.parametrize("cost", [1e-31, 1e31, 1e300])
def test_costs_that_would_not_add_up_are_refused(cost: float) -> None:
    with pytest.raises(fs.InvalidValueError, match="choose another unit"):
        fs.InputModel.agnostic({"a": 0.5, "b": 0.5}, cost=cost)


def test_bounds_of_any_precision(even: fs.InputModel) -> None:
    third = Fraction(1, 3)
    for backend in ("cpu", "reference"):
        costs = [
            fs.synthesize(
                fs.EqualOpportunity(third + shift), even, horizon=6, backend=backend
            ).expected_cost
            for shift in (-Fraction(1, 10**40), Fraction(0), Fraction(1, 10**40))
        ]
        assert costs[0] > costs[1] == costs[2]


def test_more_cost_levels_than_two_bytes_count() -> None:
    # Overruling is cheap at first and dear later, so the shield overrules at every early level.
    n = 40_000
    table = {("a", True): 0.1, ("a", False): 0.4, ("b", True): 0.4, ("b", False): 0.1}
    dear = fs.InputModel.from_table({(g, r, 1.0): p for (g, r), p in table.items()})
    cheap = fs.InputModel(("a", "b"), np.linspace(0.01, 0.2, n), np.full((2, 2, n), 0.25 / n))
    inputs = fs.InputSchedule([(cheap, 1), (dear, 4)])
    policy = fs.synthesize(fs.DemographicParity("0.3"), inputs, horizon=5)
    for group in "ab":
        for proposed in (False, True):
            one, many = fs.Shield(policy), fs.Shield(policy)
            decision = one.decide(group, proposed=proposed, cost=0.1999)
            batch = many.decide_many([group], [proposed], 0.1999)
            assert batch.accepted.tolist() == [decision.accepted]


# Plans beyond the horizon -------------------------------------------------------------------


def test_a_plan_is_the_beginning_of_the_longer_policy(even: fs.InputModel) -> None:
    short = fs.synthesize(PARITY, even, horizon=6, further=6)
    long = fs.synthesize(PARITY, even, horizon=12, checkpoints=[6])
    assert short.expected_cost == long.expected_cost
    ours, theirs = short.decisions, long.decisions
    assert len(ours.rows.cuts) == ours.layout.n_rows < theirs.layout.n_rows
    np.testing.assert_array_equal(ours.rows.cuts, theirs.rows.cuts[: ours.layout.n_rows])
    assert short.due == (6,)
    assert long.due == (6, 12)


def test_the_end_of_a_plan_may_be_held_to_more(even: fs.InputModel) -> None:
    free = fs.synthesize(PARITY, even, horizon=6, further=6)
    certified = fs.synthesize(PARITY, even, horizon=6, further=6, terminal=Sustained(PARITY))
    assert certified.expected_cost >= free.expected_cost


def test_the_cost_to_go_of_a_plan_is_that_of_the_whole_plan(even: fs.InputModel) -> None:
    policy = fs.synthesize(PARITY, even, horizon=6, further=6, terminal=Sustained(PARITY))
    assert cost_to_go(policy, policy.start, 0) == pytest.approx(policy.expected_cost)
    lone = fs.Counts({"a": (1, 1), "b": (1, 1)})
    assert cost_to_go(policy, lone, 2) < math.inf
    assert cost_to_go(policy, fs.Counts({"a": (3, 3), "b": (3, 0)}), 6) == math.inf


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"further": -1}, "further must be a whole number of at least 0, got -1"),
        ({"further": 2.5}, "further must be a whole number"),
        ({"further": 2, "spread": 2.0}, "further=2 plans beyond it"),
        ({"further": 2, "best_effort": True}, "further=2 plans beyond it"),
        ({"further": 2, "checkpoints": [9]}, "from 1 to the horizon 8, got 9"),
        ({"terminal": fs.EqualOpportunity("0.1")}, "must count the same people"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(
    options: dict[str, Any], message: str, even: fs.InputModel
) -> None:
    with pytest.raises(fs.InvalidValueError, match=message):
        fs.synthesize(PARITY, even, horizon=6, **options)


def test_progress_is_reported_while_an_own_property_is_asked(even: fs.InputModel) -> None:
    shares: list[float] = []
    fs.synthesize(Branching(2), even, horizon=30, progress=shares.append)
    assert sum(share < 0.2 for share in shares) >= 10
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
