"""At the end of a plan the property and ``terminal`` both hold: nothing weakens a promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    Branching,
    NotThatMany,
    Spec,
    labelled_properties,
    plain_properties,
    specs,
)

import fairshield as fs
from fairshield.spec import NoRequirement
from fairshield.synthesis import cost_to_go

PARITY = fs.DemographicParity("0.1")


def anything(prop: fs.Property) -> NoRequirement:
    """Nothing is asked of the people that ``prop`` counts."""
    return NoRequirement(prop.relevant_outcome)


@st.composite
def ends(draw: st.DrawFn, spec: Spec) -> fs.Property:
    """Something that may be asked of the same people."""
    if spec.prop.relevant_outcome is None:
        return draw(plain_properties)
    same = labelled_properties.filter(lambda p: p.relevant_outcome == spec.prop.relevant_outcome)
    return draw(same)


@given(specs(horizons=(1, 5)), st.integers(0, 3))
def test_a_terminal_that_asks_nothing_changes_nothing(spec: Spec, further: int) -> None:
    spec = spec._replace(further=further)
    policy = spec.feasible_policy()
    other = spec._replace(terminal=anything(spec.prop)).synthesize()
    assert other.expected_cost == policy.expected_cost
    for ours, theirs in zip(
        vars(other.decisions.rows).values(), vars(policy.decisions.rows).values(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


@given(specs(horizons=(1, 4), max_levels=1), st.data())
def test_every_backend_holds_the_end_to_both(spec: Spec, data: st.DataObject) -> None:
    terminal = data.draw(ends(spec))
    policy = spec._replace(terminal=terminal).feasible_policy()
    again = spec._replace(terminal=terminal).synthesize(backend="reference")
    assert again.expected_cost == pytest.approx(policy.expected_cost)
    turned = spec._replace(prop=terminal, terminal=spec.prop, checkpoints=())
    alone = spec._replace(checkpoints=())
    assert turned.synthesize().expected_cost == pytest.approx(
        alone._replace(terminal=terminal).synthesize().expected_cost
    )
    for made in (policy, again):
        assert fs.verify(made).holds
        assert fs.verify(made, prop=terminal).holds


@given(specs(horizons=(1, 5), max_levels=1), st.data())
def test_a_best_effort_is_held_to_both(spec: Spec, data: st.DataObject) -> None:
    spec = spec._replace(terminal=data.draw(ends(spec)))
    ours = spec.synthesize(best_effort=True)
    theirs = spec.synthesize(best_effort=True, backend="reference")
    assert ours.risk == pytest.approx(theirs.risk)
    assert ours.risk >= spec._replace(terminal=None).synthesize(best_effort=True).risk - 1e-12


@pytest.mark.parametrize("terminal", [NotThatMany(5), Branching(2), fs.ShareParity("0.5")], ids=str)
@pytest.mark.parametrize("prop", [NotThatMany(3), PARITY, Branching(3)], ids=str)
def test_gaps_of_both_are_gaps(prop: fs.Property, terminal: fs.Property) -> None:
    even = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    costs = []
    for backend in ("cpu", "reference"):
        policy = fs.synthesize(
            prop, even, horizon=7, terminal=terminal, best_effort=True, backend=backend
        )
        costs.append((policy.risk, policy.expected_cost))
        for n_a in range(8):
            for k_a in range(n_a + 1):
                for k_b in range(8 - n_a):
                    counts = fs.Counts({"a": (n_a, k_a), "b": (7 - n_a, k_b)})
                    both = prop.holds(counts) and terminal.holds(counts)
                    assert policy.guarantees(counts, 7) == both
                    assert (cost_to_go(policy, counts, 7) < math.inf) == both
    assert costs[0] == pytest.approx(costs[1])


def test_no_window_ends_unfair_under_a_weaker_terminal() -> None:
    even = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    policy = fs.synthesize(PARITY, even, horizon=10, terminal=NoRequirement())
    shield = fs.Shield(policy)
    for i in range(10):
        shield.decide("ab"[i % 2], proposed=i % 2 == 0, cost=1e9)
    assert PARITY.holds(shield.counts)
    assert shield.guaranteed
