"""What a bound costs: laws of the trade-off."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import fairshield as fs
from fairshield.analysis.pareto import unfair_unshielded
from fairshield.analysis.simulate import simulate
from fairshield.periodic import StaticBounded
from fairshield.policy import Specification
from fairshield.reports.plots import plot_pareto

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
SKEWED = fs.InputModel.from_table(
    {
        ("a", True, 0.5): 0.1,
        ("a", False, 0.5): 0.15,
        ("a", False, 1.0): 0.05,
        ("b", True, 1.0): 0.4,
        ("b", False, 0.5): 0.3,
    },
    outcomes={"a": 0.4, "b": 0.7},
)
BOUNDS = ["0.05", "0.1", "0.2", "0.4", "1"]
ABSOLUTE = [fs.DemographicParity, fs.EqualOpportunity, fs.PredictiveEquality, fs.ShareParity]


@pytest.mark.parametrize("prop", ABSOLUTE)
@pytest.mark.parametrize("inputs", [EVEN, SKEWED], ids=["even", "skewed"])
def test_cost_and_unfairness_do_not_rise_with_the_bound_and_vanish_at_one(
    prop: Any, inputs: fs.InputModel
) -> None:
    found = fs.pareto(prop, inputs, bounds=BOUNDS, horizons=[6, 9])
    for horizon in (6, 9):
        rows = found.of(horizon)
        assert [row.bound for row in rows] == sorted(Fraction(b) for b in BOUNDS)
        for tight, loose in itertools.pairwise(rows):
            assert loose.expected_cost <= tight.expected_cost + 1e-9
            assert loose.unfair_unshielded <= tight.unfair_unshielded + 1e-12
        assert rows[-1].free
        assert rows[-1].unfair_unshielded == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("prop", [*ABSOLUTE, fs.DisparateImpact])
def test_cost_is_that_of_the_policy(prop: Any) -> None:
    found = fs.pareto(prop, SKEWED, bounds=["0.1", "0.5"], horizons=[8], interventions=True)
    for row in found.rows:
        try:
            policy = fs.synthesize(prop(row.bound), SKEWED, horizon=8)
        except fs.InfeasibleError:
            assert row.expected_cost == math.inf
            continue
        assert row.exact
        assert row.expected_cost == pytest.approx(policy.expected_cost, abs=1e-9)
        assert row.overruled is not None
        assert row.expected_cost / 1.0 <= row.overruled + 1e-9 <= row.expected_cost / 0.5 + 1e-9


def test_with_one_cost_people_overruled_are_cost_by_price() -> None:
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5}, cost=2.0)
    row = fs.pareto(fs.DemographicParity, inputs, bounds=["0.2"], horizons=[8]).rows[0]
    assert row.overruled == pytest.approx(row.expected_cost / 2)


@settings(max_examples=examples(25), deadline=None)
@given(st.sampled_from([*ABSOLUTE, fs.DisparateImpact]), st.integers(0, 3), st.integers(0, 3))
def test_the_chance_of_an_unfair_window_is_that_of_all_windows_added_up(
    prop: Any, seen: int, accepted: int
) -> None:
    horizon, rule = 4, prop("0.3")
    start = fs.Counts({"a": (seen, min(seen, accepted)), "b": (1, 1)})
    relevant = rule.relevant_outcome
    table = SKEWED.table(horizon)
    cells = {
        (g, r, z): float((table.probs[0, g, r] * weight).sum())
        for g in (0, 1)
        for r in (0, 1)
        for z, weight in (
            (True, table.relevance(relevant)[0, g, r]),
            (False, 1 - table.relevance(relevant)[0, g, r]),
        )
    }
    unfair = 0.0
    for window in itertools.product(cells, repeat=horizon):
        counts = start
        for g, r, z in window:
            counts = counts.after("ab"[g], accepted=bool(r)) if z else counts
        if not rule.holds(counts):
            unfair += math.prod(cells[cell] for cell in window)
    spec = Specification.of(rule, SKEWED, horizon=horizon, start=start)
    assert unfair_unshielded(spec) == pytest.approx(unfair, abs=1e-12)


def test_the_chance_of_an_unfair_window_is_what_simulation_finds() -> None:
    prop = fs.DemographicParity("0.1")
    policy = fs.synthesize(prop, SKEWED, horizon=30)
    drawn = simulate(policy, n_windows=20_000, rng=np.random.default_rng(1))
    share = drawn.n_unfair_unshielded / 20_000
    exact = unfair_unshielded(policy.spec)
    assert exact is not None
    assert abs(share - exact) < 5 * math.sqrt(exact * (1 - exact) / 20_000)


def test_requests_that_change_over_the_window_have_a_cost_and_no_such_chance() -> None:
    schedule = fs.InputSchedule([(EVEN, 4), (fs.InputModel.agnostic({"a": 0.1, "b": 0.9}), 4)])
    row = fs.pareto(fs.DemographicParity, schedule, bounds=["0.2"], horizons=[8]).rows[0]
    assert row.expected_cost > 0
    assert row.unfair_unshielded is None


def test_three_groups_have_a_cost() -> None:
    inputs = fs.InputModel.agnostic({"a": 0.4, "b": 0.3, "c": 0.3})
    row = fs.pareto(fs.DemographicParity, inputs, bounds=["0.4"], horizons=[6]).rows[0]
    policy = fs.synthesize(fs.DemographicParity("0.4"), inputs, horizon=6)
    assert row.expected_cost == pytest.approx(policy.expected_cost)
    assert row.unfair_unshielded is None


def test_the_knee_lies_below_the_line_between_the_ends() -> None:
    found = fs.pareto(fs.DemographicParity, EVEN, bounds=BOUNDS, horizons=[12])
    knee, rows = found.knee(12), found.of(12)
    assert knee in rows[1:-1]
    assert fs.pareto(fs.DemographicParity, EVEN, bounds=["1", "0.9"], horizons=[3]).knee(3) is None


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    found = fs.pareto(fs.DemographicParity, EVEN, bounds=BOUNDS, horizons=[6, 12])
    plot_pareto(found, tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_to_price_is_refused() -> None:
    with pytest.raises(fs.InvalidValueError, match="at least one of each"):
        fs.pareto(fs.DemographicParity, EVEN, bounds=[], horizons=[5])


@pytest.mark.parametrize("prop", [fs.DemographicParity, fs.EqualOpportunity])
@pytest.mark.parametrize("bound", ["0.3", "1/2", "1"])
def test_enough_people_are_those_that_static_bw_needs(prop: Any, bound: str) -> None:
    (row,) = fs.pareto(prop, SKEWED, bounds=[bound], horizons=[9]).rows
    policy = StaticBounded(prop(bound), SKEWED, 9)
    assert row.balanced == policy.condition_probability() > 0


def test_a_bound_of_zero_leaves_no_room_for_welfare_bounds() -> None:
    (row,) = fs.pareto(fs.DemographicParity, EVEN, bounds=["0"], horizons=[6]).rows
    assert row.balanced is None
