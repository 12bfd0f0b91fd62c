"""Expectations are computed, not sampled: they are sums over all windows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Request, Spec, input_models, run, schedules, specs

import fairshield as fs
from fairshield.runtime.evaluate import evaluate


@given(specs(horizons=(1, 3)), st.data())
def test_expectations_are_sums_over_all_windows(spec: Spec, data: st.DataObject) -> None:
    policy = spec.feasible_policy()
    inputs = data.draw(input_models() | schedules())
    table = inputs.table(spec.horizon)
    cost, overruled = np.zeros(spec.horizon), np.zeros((spec.horizon, 2))
    outcomes = (False, True) if policy.labelled else (False,)
    cells = list(product((0, 1), (0, 1), range(len(table.levels)), outcomes))
    for window in product(cells, repeat=spec.horizon):
        chance = 1.0
        for t, (g, r, c, z) in enumerate(window):
            i = t if len(table.probs) > 1 else 0
            chance *= table.probs[i, g, r, c]
            if policy.labelled:
                positive = table.outcomes[i, g, r, c]
                chance *= positive if z else 1.0 - positive
        if chance == 0.0:
            continue
        stream = [Request("ab"[g], bool(r), float(table.levels[c]), z) for g, r, c, z in window]
        for t, decision in enumerate(run(fs.Shield(policy), stream)):
            cost[t] += chance * decision.paid
            overruled[t, window[t][0]] += chance * decision.overruled
    result = evaluate(policy, inputs)
    assert result.expected_cost_by_position == pytest.approx(cost, abs=1e-12)
    assert result.overruled == pytest.approx(overruled, abs=1e-12)
    assert result.expected_cost == pytest.approx(cost.sum(), abs=1e-12)


@given(specs(horizons=(2, 5)), st.data())
def test_a_part_costs_its_first_decision_and_what_follows(spec: Spec, data: st.DataObject) -> None:
    policy = spec.feasible_policy()
    stop = data.draw(st.integers(1, spec.horizon), "where the part ends")
    here = {(policy.start, 0)}
    for t in range(data.draw(st.integers(0, stop - 1), "decisions before the part")):
        here = {then for s in here for _, _, then in _steps(policy, *s, t)}
    counts, _ = data.draw(st.sampled_from(sorted(here, key=lambda s: s[0].numbers())), "from")
    decided = here.pop()[1]
    found = evaluate(policy, counts=counts, decided=decided, decisions=stop - decided)
    expected = sum(
        chance * (paid + _rest(policy, then, stop))
        for chance, paid, then in _steps(policy, counts, decided, decided)
    )
    assert found.expected_cost == pytest.approx(expected, abs=1e-12)
    assert found.expected_cost_by_position.shape == (stop - decided,)


def _rest(policy: fs.Policy, state: tuple[fs.Counts, int], stop: int) -> float:
    counts, decided = state
    found = evaluate(policy, counts=counts, decided=decided, decisions=stop - decided)
    return found.expected_cost


def _steps(
    policy: fs.Policy, counts: fs.Counts, decided: int, t: int
) -> list[tuple[float, float, tuple[fs.Counts, int]]]:
    """Probability and price of every request in this state, and where it leads."""
    table = policy.inputs.table(policy.horizon)
    found = []
    for (i, g, r, c), p in np.ndenumerate(table.probs):
        if i != min(t, len(table.probs) - 1):
            continue
        z = 1.0 if table.outcomes is None else float(table.outcomes[i, g, r, c])
        outcomes = {True: z, False: 1.0 - z} if policy.labelled else {None: 1.0}
        for outcome, q in outcomes.items():
            then, made = fs.step(
                policy, fs.State(decided, counts), policy.groups[g], proposed=bool(r),
                cost=float(table.levels[c]), outcome=outcome,
            )  # fmt: skip
            found.append((float(p) * q, made.paid, (then.counts, decided + 1)))
    return found


def test_the_whole_window_is_a_part(plain_policy: fs.Policy) -> None:
    whole, part = evaluate(plain_policy), evaluate(plain_policy, decisions=plain_policy.horizon)
    assert whole.expected_cost_by_position.tolist() == part.expected_cost_by_position.tolist()
    nothing = evaluate(plain_policy, decisions=0)
    assert (nothing.expected_cost, nothing.overruled.shape) == (0.0, (0, 2))


@pytest.mark.parametrize("decisions", [-1, 1.5, 10**6])
def test_a_part_must_lie_in_the_window(plain_policy: fs.Policy, decisions: float) -> None:
    with pytest.raises(fs.InvalidValueError, match="left of the window after 0"):
        evaluate(plain_policy, decisions=decisions)


def test_the_groups_must_be_those_of_the_policy(plain_policy: fs.Policy) -> None:
    for shares in ({"a": 0.5, "c": 0.5}, {"b": 0.5, "a": 0.5}):
        with pytest.raises(fs.InvalidValueError, match=r"not \('a', 'b'\)"):
            evaluate(plain_policy, fs.InputModel.agnostic(shares))


def test_outcomes_are_needed_where_they_count(labelled_policy: fs.Policy) -> None:
    table = {(g, r, 1.0): 0.25 for g in "ab" for r in (False, True)}
    with pytest.raises(fs.InvalidValueError, match="needs an input model with outcomes"):
        evaluate(labelled_policy, fs.InputModel.from_table(table))


def test_interventions_fall_late_unless_spread(even: fs.InputModel) -> None:
    # With equal costs waiting is never worse, so an optimal shield waits.
    policy = fs.synthesize(fs.DemographicParity("0.1"), even, horizon=100)
    overruled = evaluate(policy).overruled.sum(axis=1)
    assert overruled[-10:].sum() / overruled.sum() == pytest.approx(0.74, abs=0.02)


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_progress_rises_to_the_whole_and_changes_nothing(names: str) -> None:
    inputs = fs.InputModel.agnostic(dict.fromkeys(names, 1 / len(names)))
    policy = fs.synthesize(fs.DemographicParity("0.4"), inputs, horizon=9)
    shares: list[float] = []
    told = evaluate(policy, progress=shares.append)
    assert len(shares) == 9
    assert shares == sorted(set(shares))
    assert shares[0] > 0
    assert shares[-1] == 1.0
    assert told.expected_cost == evaluate(policy).expected_cost
    assert told.expected_cost == pytest.approx(policy.expected_cost)
