"""Specifications: the rest of a window, and policies that are made again."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import fairshield as fs
from fairshield.monitor.saving import saving
from fairshield.periodic import kind_of
from fairshield.policy import Specification
from fairshield.synthesis import Options, cost_to_go, make_again, make_policy

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
PARITY = fs.DemographicParity("0.2")
DAY = fs.InputSchedule([
    (fs.InputModel.agnostic({"a": 0.5, "b": 0.5}, cost=3.0), 4),
    (fs.InputModel.agnostic({"a": 0.2, "b": 0.8}), 4),
])  # fmt: skip


def test_what_is_left_of_a_window_keeps_everything_else() -> None:
    terminal = fs.spec.Sustained(PARITY)
    spec = Specification.of(
        PARITY, DAY, horizon=8, checkpoints=(3, 6), further=4, terminal=terminal
    )
    counts = fs.Counts({"a": (2, 1), "b": (3, 1)})
    rest = spec.rest(counts, 5)
    assert (rest.horizon, rest.further, rest.plan_length) == (3, 4, 7)
    assert rest.checkpoints == (1, 3)
    assert (rest.prop, rest.terminal, rest.start) == (PARITY, terminal, counts)
    np.testing.assert_array_equal(rest.inputs.table(7).probs, DAY.table(12).probs[5:])


def test_at_the_horizon_what_was_planned_further_is_left() -> None:
    spec = Specification.of(PARITY, EVEN, horizon=4, further=6)
    rest = spec.rest(fs.Counts({"a": (2, 1), "b": (2, 1)}), 4)
    assert (rest.horizon, rest.further, rest.checkpoints) == (6, 0, ())


@pytest.mark.parametrize("decided", range(8))
def test_prices_go_on_rising_in_the_rest(decided: int) -> None:
    spec = Specification.of(PARITY, EVEN, horizon=8, spread=3)
    rest = spec.rest(spec.start, decided)
    np.testing.assert_allclose(rest.rise, spec.rise[decided:], rtol=1e-14)


def test_the_rest_tells_the_same_costs_apart() -> None:
    """A cost that only the morning expects is not above all levels in the evening."""
    policy = make_policy(Specification.of(PARITY, DAY, horizon=8))
    rest = policy.spec.rest(fs.Counts({"a": (2, 1), "b": (2, 1)}), 4)
    later = make_policy(rest)
    np.testing.assert_array_equal(later.edges, policy.edges)
    assert cost_to_go(policy, rest.start, 4) == later.expected_cost


def test_a_long_policy_is_made_again_with_its_own_endgame() -> None:
    policy = fs.synthesize(PARITY, EVEN, horizon=300, method="long", endgame=20)
    assert policy.decisions.endgame == make_again(policy).decisions.endgame == 20
    revised = fs.InputModel.agnostic({"a": 0.4, "b": 0.6})
    assert saving(kind_of(policy), revised).policy.decisions.endgame == 20


@pytest.mark.parametrize(
    "spec",
    [
        Specification.of(PARITY, EVEN, horizon=8, checkpoints=(4,), spread=2),
        Specification.of(PARITY, EVEN, horizon=4, further=4, terminal=fs.spec.Sustained(PARITY)),
        Specification.of(PARITY, DAY, horizon=6, start=fs.Counts({"a": (3, 3), "b": (3, 0)})),
    ],
)
def test_made_again_it_is_the_same_file(spec: Specification) -> None:
    policy = make_policy(spec, Options(best_effort=not spec.further))
    header, arrays = policy.to_artifact()
    again_header, again = make_again(policy).to_artifact()
    assert again_header == header
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)


def test_a_specification_is_as_good_as_its_arguments() -> None:
    spec = Specification.of(PARITY, EVEN, horizon=10, checkpoints=[7, 3, 7, 10])
    assert spec.checkpoints == (3, 7)
    assert spec.due == (3, 7, 10)
    assert replace(spec, further=2, checkpoints=(10,)).plan_length == 12
    assert math.isclose(Specification.of(PARITY, EVEN, horizon=2, spread=2).rise[-1], 2.0)
