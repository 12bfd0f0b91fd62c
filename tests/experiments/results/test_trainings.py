"""The chance of a published number, from several trainings of ours."""

from __future__ import annotations

import math
from dataclasses import replace

import frames
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fairshield_experiments.results.published import Published
from fairshield_experiments.results.rows import select
from fairshield_experiments.results.statistics import mean
from fairshield_experiments.results.tables.shared import windows
from fairshield_experiments.results.trainings import Spread, beyond, losses, metrics

NUMBER = Published(item="table-utility", measure="loss", value=1.9, digit=0.0, unit="%", source="x")


@given(st.floats(0, 50), st.integers(1, 40))
def test_tails_are_those_of_student_s_distribution(t: float, freedom: int) -> None:
    assert beyond(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), abs=1e-12)


def test_of_trainings_like_ours_one_in_twenty_has_a_chance_below_one_in_twenty() -> None:
    drawn = np.random.default_rng(0).normal(3.0, 2.0, (4000, 6))
    chances = [Spread(tuple(row[:5])).chance(replace(NUMBER, value=row[5])) for row in drawn]
    for level in (0.05, 0.5):
        error = math.sqrt(level * (1 - level) / len(chances))
        assert abs(np.mean(np.array(chances) < level) - level) < 4 * error


@given(
    st.lists(st.floats(-50, 50), min_size=2, max_size=6),
    st.floats(-100, 100),
    st.floats(0.001, 10),
    st.floats(-20, 20),
)
def test_a_chance_does_not_depend_on_the_unit(
    values: list[float], value: float, factor: float, shift: float
) -> None:
    spread = Spread(tuple(values))
    if spread.deviation < 1e-3:
        return
    there = replace(NUMBER, value=factor * value + shift)
    moved = Spread(tuple(factor * x + shift for x in values))
    assert spread.chance(replace(NUMBER, value=value)) == pytest.approx(
        moved.chance(there), abs=1e-6
    )


def test_a_printed_number_counts_as_the_nearest_that_is_printed_like_it() -> None:
    spread, printed = Spread((1.0, 2.0, 3.0)), replace(NUMBER, value=4.0, digit=1.0)
    assert spread.chance(printed) == spread.chance(replace(NUMBER, value=3.5))
    assert spread.chance(replace(printed, value=2.4)) == 1.0


def test_trainings_that_are_all_alike_leave_no_room() -> None:
    same = Spread((2.0, 2.0, 2.0))
    assert same.chance(replace(NUMBER, value=2.0)) == 1.0
    assert same.chance(replace(NUMBER, value=2.1)) == 0.0


def test_the_first_training_is_that_of_the_other_tables() -> None:
    results = frames.results()
    found = losses(results)
    assert {len(spread.values) for spread in found.values()} == {3}
    key = ("equal-opportunity", "rate-0", 0.1, "bank-age", "finite-horizon", "PR")
    names = dict(zip(("property", "undefined", "bound", "environment"), key, strict=False))
    own = mean(select(windows(results), learner="PR", **names), "loss")
    assert own is not None
    assert found[key].values[0] == pytest.approx(own.value)
    again = select(results.training_runs, learner="PR", shield="finite-horizon", seed=2, **names)
    kept, free = again["correct"], again["correct_unshielded"]
    assert found[key].values[2] == pytest.approx((100 * (free - kept) / free).mean())


def test_metrics_are_in_percent_and_the_first_comes_first() -> None:
    results = frames.results()
    first = results.metrics.iloc[0]
    key = (first["environment"], first["learner"], first["metric"])
    spread = metrics(results)[key]
    assert spread.values[0] == pytest.approx(100 * first["value"])
    assert len(spread.values) == 3


def test_what_was_trained_once_or_is_undefined_has_no_spread() -> None:
    results = frames.results()
    once = replace(results, trainings=pd.DataFrame(), training_runs=pd.DataFrame())
    assert not metrics(once)
    assert not losses(once)
    undefined = replace(results, trainings=results.trainings.assign(value=np.nan))
    assert not metrics(undefined)
