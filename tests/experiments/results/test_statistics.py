"""Estimates, and that their standard errors are what repeating the experiment would show."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairshield_experiments.results import statistics
from fairshield_experiments.results.rows import paired, totals

values = st.lists(st.floats(-100, 100), min_size=2, max_size=30)


def single(numbers: list[float]) -> pd.DataFrame:
    """One environment, one value per run."""
    return pd.DataFrame({"environment": "e", "run": range(len(numbers)), "x": numbers})


@given(values)
def test_of_independent_runs_the_error_is_the_usual_one(numbers: list[float]) -> None:
    found = statistics.mean(single(numbers), "x")
    assert found is not None
    assert found.value == pytest.approx(np.mean(numbers))
    usual = np.std(numbers, ddof=1) / math.sqrt(len(numbers))
    assert found.error == pytest.approx(usual, abs=1e-9)


@given(values, st.integers(2, 4))
def test_the_same_people_counted_again_add_no_certainty(numbers: list[float], times: int) -> None:
    once = single(numbers)
    again = pd.concat([once] * times)
    found, repeated = statistics.mean(once, "x"), statistics.mean(again, "x")
    assert found is not None
    assert repeated is not None
    assert repeated.error == pytest.approx(found.error, abs=1e-9)
    assert (repeated.n, repeated.clusters) == (times * found.n, found.clusters)


@given(values, st.floats(-1000, 1000))
def test_what_differs_between_environments_only_is_no_uncertainty(
    numbers: list[float], shift: float
) -> None:
    here, there = single(numbers), single(numbers).assign(environment="f")
    level = statistics.mean(pd.concat([here, there]), "x")
    apart = statistics.mean(pd.concat([here, there.assign(x=there["x"] + shift)]), "x")
    assert level is not None
    assert apart is not None
    assert apart.error == pytest.approx(level.error, abs=1e-6)


def draw(rng: np.random.Generator) -> pd.DataFrame:
    """Three environments of different levels; five learners judge the same people of a run."""
    parts = []
    for environment, level in enumerate((0.0, 4.0, 9.0)):
        people = np.repeat(rng.normal(size=12), 5)
        noise = rng.normal(scale=0.5, size=60)
        parts.append(
            pd.DataFrame(
                {
                    "environment": str(environment),
                    "run": np.repeat(np.arange(12), 5),
                    "x": level + (1 + environment) * people + noise,
                }
            )
        )
    return pd.concat(parts).assign(flag=lambda f: f["x"] > 4)


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [("mean", 0.1), ("share", 0.12), ("deviation", 0.15), ("quantile", 0.25)],
)
def test_errors_are_those_of_repeating_the_experiment(name: str, tolerance: float) -> None:
    estimators = {
        "mean": lambda f: statistics.mean(f, "x"),
        "share": lambda f: statistics.share(f, "flag"),
        "deviation": lambda f: statistics.deviation(f, "x"),
        "quantile": lambda f: statistics.quantile(f, "x", 0.5),
    }
    rng = np.random.default_rng(5)
    found = [estimators[name](draw(rng)) for _ in range(300)]
    spread = np.std([f.value for f in found])
    expected = math.sqrt(np.mean([f.error**2 for f in found]))
    assert expected == pytest.approx(spread, rel=tolerance)


def test_runs_of_the_same_people_are_not_independent() -> None:
    rows = draw(np.random.default_rng(5)).query("environment == '2'")
    found = statistics.mean(rows, "x")
    assert found is not None
    assert found.error > 1.5 * rows["x"].std() / math.sqrt(len(rows))


@given(values, st.floats(0, 1))
def test_a_quantile_lies_between_the_least_and_the_greatest(numbers: list[float], q: float) -> None:
    found = statistics.quantile(single(numbers), "x", q)
    assert found is not None
    assert min(numbers) <= found.value <= max(numbers)
    assert found.error >= 0


@given(st.integers(0, 50), st.integers(1, 50))
def test_wilsons_interval_holds_the_share_and_lies_within_0_and_1(k: int, more: int) -> None:
    n = k + more
    low, high = statistics.wilson(k / n, n)
    assert 0 <= low <= k / n <= high <= 1
    mirrored = statistics.wilson(1 - k / n, n)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_undefined_values_are_left_out_and_counted() -> None:
    found = statistics.mean(single([1.0, math.nan, 3.0]), "x")
    assert found is not None
    assert (found.value, found.n, found.left_out) == (2.0, 2, 1)
    assert statistics.mean(single([math.nan]), "x") is None
    assert statistics.quantile(single([]), "x", 0.5) is None


def test_a_single_run_has_no_standard_error() -> None:
    found = statistics.mean(single([1.0]), "x")
    assert found is not None
    assert math.isnan(found.error)


def run(**columns: object) -> pd.DataFrame:
    fixed = {
        "environment": "adult-race",
        "learner": "ERM",
        "property": "demographic-parity",
        "undefined": "bias-0",
        "bound": 0.1,
        "shield": "dynamic",
        "inputs": "agnostic",
        "min_support": 0,
        "period_length": 10,
        "periods": 2,
        "run": 0,
        "period": [1, 2],
        "bias": [0.2, 0.05],
        "bias_unshielded": [0.1, math.nan],
        "fair": [False, True],
        "fair_unshielded": True,
        "condition": pd.array([True, True], dtype="boolean"),
        "condition_published": pd.array([pd.NA, pd.NA], dtype="boolean"),
        "correct": [6, 6],
        "correct_unshielded": [8, 8],
        "overruled": 3,
        "cost": 3.0,
        "margin": 0.3,
        "n_a": 5,
        "n_b": 15,
    }
    return pd.DataFrame({**fixed, **columns})


def test_a_run_adds_its_periods_up() -> None:
    (row,) = totals(run()).to_dict("records")
    assert row["loss"] == pytest.approx(25)
    assert row["loss_absolute"] == pytest.approx(20)
    assert row["accuracy"] == pytest.approx(60)
    assert row["overruled_share"] == pytest.approx(30)
    assert row["normalised"] == pytest.approx(0.5)
    assert math.isnan(row["normalised_unshielded"])
    assert row["unfair"] == 1
    assert row["condition"] == 1
    assert math.isnan(row["condition_published"])


def test_a_run_with_nothing_right_without_a_shield_has_no_relative_loss() -> None:
    (row,) = totals(run(correct_unshielded=0)).to_dict("records")
    assert math.isnan(row["loss"])


def test_a_run_that_lacks_a_period_is_left_out() -> None:
    assert totals(run().iloc[:1]).empty


def test_the_order_of_rows_does_not_matter() -> None:
    forth, back = totals(run()), totals(run().iloc[::-1])
    pd.testing.assert_frame_equal(forth, back)


def test_differences_are_of_the_same_run() -> None:
    left = pd.DataFrame({"environment": "e", "run": [0, 1, 2], "loss": [1.0, 2.0, 3.0]})
    right = pd.DataFrame({"environment": "e", "run": [2, 1], "loss": [1.0, 1.0]})
    both = paired(left, right, ("environment", "run"), "loss")
    assert sorted(both["difference"]) == [1.0, 2.0]
