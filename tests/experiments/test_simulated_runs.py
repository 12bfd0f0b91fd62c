"""Runs of the same people with and without a shield."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import cross_fitted, people, scored

import fairshield as fs
from fairshield.periodic import Run
from fairshield_experiments.inputs import CROSS_FITTED, IN_SAMPLE, INPUTS, input_model, priced
from fairshield_experiments.people import People, Scored
from fairshield_experiments.simulate import (
    SHIELDS,
    Setting,
    draw,
    make_policy,
    paths,
    simulate,
    welfare_bounds,
)

KINDS = ("demographic-parity", "equal-opportunity")


def setting(**changes: Any) -> Setting:
    chosen: dict[str, Any] = {
        "environment": "made-up",
        "learner": "ERM",
        "kind": "demographic-parity",
        "bound": "0.2",
        "shield": "finite-horizon",
        "period_length": 12,
        "runs": 6,
    }
    shield = changes.get("shield", "finite-horizon")
    return Setting(**chosen | {"periods": 1 if shield == "finite-horizon" else 3} | changes)


# Who comes ----------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(0, 10), st.integers(0, 2**32))
def test_within_a_run_nobody_comes_twice(length: int, more: int, seed: int) -> None:
    who = draw(setting(period_length=length, seed=seed), length + more)
    assert who.shape == (6, length)
    assert all(len(set(run)) == length for run in who.tolist())
    assert who.min() >= 0
    assert who.max() < length + more


def test_a_shorter_run_is_the_beginning_of_a_longer_one() -> None:
    short, long = (draw(setting(period_length=n), 50) for n in (10, 40))
    assert (long[:, :10] == short).all()
    assert (draw(setting(period_length=10, runs=2), 50) == short[:2]).all()


def test_runs_depend_on_environment_and_seed_alone() -> None:
    base = draw(setting(), 50)
    for same in (
        setting(learner="PR", bound="0.05", inputs="learned", undefined="rate-0", min_support=3),
        setting(kind="equal-opportunity"),
        setting(shield="dynamic", period_length=4),
    ):
        assert (draw(same, 50) == base).all()
    for other in (setting(environment="else"), setting(seed=1)):
        assert (draw(other, 50) != base).any()


def test_a_run_longer_than_the_population_is_refused() -> None:
    with pytest.raises(fs.InvalidValueError, match=r"12 decisions .* 11 held-out people"):
        draw(setting(), 11)


# Input models -------------------------------------------------------------------------------


def test_the_agnostic_model_knows_the_groups_alone() -> None:
    training = people(300, 0)
    share = (training.group == 0).mean()
    model = input_model("agnostic", training)
    assert model.probs[:, :, 0] == pytest.approx(np.array([[share / 2] * 2, [(1 - share) / 2] * 2]))
    assert model.levels.tolist() == [1.0]
    assert (model.outcomes == 0.5).all()


def test_the_learned_model_counts_proposals_and_outcomes() -> None:
    training = people(5000, 0)
    model = input_model("learned", training)
    assert model.outcomes is not None
    for g, r in product((0, 1), (0, 1)):
        here = (training.group == g) & (training.proposed == bool(r))
        assert model.probs[g, r, 0] == pytest.approx(here.mean(), abs=1e-3)
        assert model.outcomes[g, r, 0] == pytest.approx(training.target[here].mean(), abs=1e-3)


def test_confidence_costs_have_ten_levels_up_to_the_largest_margin() -> None:
    training = people(5000, 0)
    model = input_model("confidence", training)
    assert len(model.levels) == 10
    assert model.levels.max() <= training.confidence.max() <= model.edges.max()  # type: ignore[union-attr]
    assert model.probs.sum(axis=2) == pytest.approx(input_model("learned", training).probs[:, :, 0])


def test_cross_fitted_models_are_made_like_the_others_of_out_of_fold_scores() -> None:
    world, folded = scored(), cross_fitted()
    for kind, same in CROSS_FITTED.items():
        assert priced(kind) == priced(same)
        made = input_model(kind, folded.training)
        assert (made.probs == input_model(same, folded.training).probs).all()
        assert (made.probs != input_model(same, world.training).probs).any()
    assert (folded.training.target == world.training.target).all()
    assert (folded.held_out.score == world.held_out.score).all()


@pytest.mark.parametrize("kind", CROSS_FITTED)
def test_cross_fitted_models_refuse_scores_of_the_training_part(kind: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match="needs out-of-fold scores of the training part"):
        simulate(setting(inputs=kind), scored())
    assert len(simulate(setting(inputs=kind), cross_fitted()))


def test_unknown_names_are_told_with_the_known_ones() -> None:
    with pytest.raises(fs.InvalidValueError, match="'guess': choose from agnostic, learned"):
        input_model("guess", people(10, 0))  # type: ignore[arg-type]
    with pytest.raises(fs.InvalidValueError, match="'magic': choose from finite-horizon"):
        make_policy(setting(shield="magic", periods=1), people(10, 0))


@given(st.sampled_from(["0.05", "0.1", "0.2", "1"]), st.floats(0, 1))
def test_welfare_bounds_lie_around_the_share_of_outcomes(bound: str, rate: float) -> None:
    n = 200
    target = np.arange(n) < round(rate * n)
    lower, upper = welfare_bounds(bound, People(np.zeros(n, np.int8), target, np.zeros(n)))
    assert 0 <= lower < upper <= 1
    assert upper - lower == Fraction(bound)
    middle = Fraction(int(target.sum()), n)
    if middle - Fraction(bound) / 2 >= 0 and middle + Fraction(bound) / 2 <= 1:
        assert (lower + upper) / 2 == middle


# What happens -------------------------------------------------------------------------------


def one_by_one(chosen: Setting, world: Scored) -> list[dict[str, Any]]:
    """The same rows from a shield that is asked about one person after the other."""
    policy, who = make_policy(chosen, world.training), draw(chosen, len(world.held_out))
    found = []
    for run, row in enumerate(who):
        shield, crowd = Run(policy), world.held_out.take(row)
        tally = {"correct": 0, "overruled": 0, "cost": 0.0, "margin": 0.0, "correct_unshielded": 0}
        for t in range(chosen.length):
            proposed, target = bool(crowd.proposed[t]), bool(crowd.target[t])
            cost = float(crowd.confidence[t]) if priced(chosen.inputs) else 1.0
            made = shield.decide("ab"[crowd.group[t]], proposed=proposed, cost=cost)
            if chosen.kind == "equal-opportunity":
                shield.observe(made, outcome=target)
            tally["correct"] += made.accepted == target
            tally["correct_unshielded"] += proposed == target
            tally["overruled"] += made.overruled
            tally["cost"] += cost * made.overruled
            tally["margin"] += float(crowd.confidence[t]) * made.overruled
            if (t + 1) % chosen.period_length == 0:
                a, b = shield.counts.values()
                counters = dict(zip(("n_a", "k_a", "n_b", "k_b"), (*a, *b), strict=True))
                bias = chosen.prop.bias_of(shield.counts)
                fair = chosen.prop.holds(shield.counts)
                found.append({"run": run, "fair": fair, "bias": bias, **tally, **counters})
                tally = dict.fromkeys(tally, 0)
    return found


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize(("kind", "shield"), list(product(KINDS, SHIELDS)))
def test_rows_are_what_a_shield_decides_one_by_one(kind: Any, shield: str, inputs: Any) -> None:
    chosen = setting(kind=kind, shield=shield, inputs=inputs, period_length=8)
    world = cross_fitted() if inputs in CROSS_FITTED else scored()
    expected = pd.DataFrame(one_by_one(chosen, world))
    found = simulate(chosen, world)
    for column in expected:
        assert found[column].to_numpy() == pytest.approx(expected[column].to_numpy()), column


@settings(deadline=None, max_examples=examples(40))
@given(
    kind=st.sampled_from(KINDS),
    shield=st.sampled_from(["finite-horizon", "exact", "perpetual", "optimal"]),
    inputs=st.sampled_from(IN_SAMPLE),
    undefined=st.sampled_from(["bias-0", "rate-0"]),
    bound=st.sampled_from(["0.1", "0.25"]),
    share=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    rate=st.sampled_from([0.0, 0.1, 0.6]),
    seed=st.integers(0, 1000),
)
def test_shields_without_a_condition_end_every_period_fair(
    kind: Any, shield: str, inputs: Any, undefined: Any, bound: str, share: float, rate: float,
    seed: int,
) -> None:  # fmt: skip
    """Also where a group never comes, and where it has no positives."""
    chosen = setting(
        kind=kind, shield=shield, inputs=inputs, undefined=undefined, bound=bound, period_length=6
    )
    found = simulate(chosen, scored(seed, n=80, share=share, rate=rate))
    assert found["fair"].all()
    unknown = ["condition", "condition_published", "expected"]
    assert not found.drop(columns=unknown).isna().any(axis=None)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_shield_all_shields_see_the_same(kind: Any) -> None:
    columns = ["run", "period", "bias_unshielded", "fair_unshielded", "correct_unshielded"]
    shields = [shield for shield in SHIELDS if shield != "finite-horizon"]
    seen = [simulate(setting(kind=kind, shield=s), scored())[columns] for s in shields]
    assert all(seen[0].equals(other) for other in seen[1:])


def test_a_setting_is_simulated_the_same_twice_and_says_what_it_was() -> None:
    chosen = setting(shield="dynamic", kind="equal-opportunity", seed=3)
    first, second = simulate(chosen, scored()), simulate(chosen, scored())
    pd.testing.assert_frame_equal(first, second)
    assert set(first["seed"]) == {3}
    assert set(first["bound"]) == {0.2}
    assert set(first["version"]) == {fs.__version__}
    assert len(first) == chosen.runs * chosen.periods


def test_conditions_are_those_of_the_theorems_and_those_of_the_published_table() -> None:
    world = scored(share=0.5)
    fair, bounded, dynamic = (
        simulate(setting(shield=shield, bound="0.5"), world)
        for shield in ("static-fair", "static-bounded", "dynamic")
    )
    gained = {name: _gained(fair, name) for name in ("n_a", "n_b")}
    assert (fair["condition"] == (gained["n_a"] == gained["n_b"])).all()
    assert fair["condition"].equals(fair["condition_published"])
    least = np.minimum(_gained(bounded, "n_a"), _gained(bounded, "n_b"))
    assert (bounded["condition"] == (least >= 2)).all()
    assert (bounded["condition_published"] == (least > 2)).all()
    assert dynamic["condition_published"].all()
    assert simulate(setting(), world)["condition"].isna().all()


def _gained(frame: pd.DataFrame, column: str) -> Any:
    return frame.groupby("run")[column].diff().fillna(frame[column]).to_numpy()


def test_the_published_condition_of_dynamic_is_an_argument_slip() -> None:
    frame = simulate(setting(shield="dynamic", kind="equal-opportunity"), scored(n=100))
    by_run = frame.groupby("run")  # rows are in the order of periods
    n_a, k_a, n_b = (by_run[name].shift(fill_value=0) for name in ("n_a", "k_a", "n_b"))
    expected = (k_a == 0) | (n_b <= k_a * n_a)
    assert (frame["condition_published"] == expected).all()
    assert expected[frame["period"] == 1].all()
    assert not expected.all()


def test_an_inactive_shield_keeps_all_proposals_where_its_condition_fails() -> None:
    frame = simulate(setting(shield="inactive", bound="0.05", period_length=5), scored())
    failed = ~frame["condition"].astype(bool)
    assert failed.any()
    assert (frame.loc[failed, "overruled"] == 0).all()
    assert frame["condition_published"].isna().all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_period_is_expected_to_cost_is_said_where_one_table_decides_it(kind: Any) -> None:
    for shield in SHIELDS:
        chosen = setting(kind=kind, shield=shield, inputs="learned")
        expected = simulate(chosen, scored())["expected"]
        tables = make_policy(chosen, scored().training).tables
        if shield in ("finite-horizon", "static-fair", "static-bounded"):
            assert tables is not None
            assert set(expected) == {tables.expected_cost}
        else:
            assert expected.isna().all()


def test_many_runs_cost_what_a_right_input_model_expects() -> None:
    """Who comes is drawn without replacement, so from many more people than come."""
    crowd = people(20_000, 0)
    world = replace(scored(), training=crowd, held_out=crowd)
    frame = simulate(setting(inputs="learned", runs=2000), world)
    error = frame["cost"].std() / np.sqrt(len(frame))
    assert abs(frame["cost"].mean() - frame["expected"].iloc[0]) < 4 * error


# Single runs --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_passes_through_the_bias_at_the_end_of_every_period(kind: Any) -> None:
    chosen = [setting(kind=kind, shield=s, runs=2) for s in ("static-fair", "dynamic")]
    frame = paths(chosen, scored(), run=1)
    assert set(frame["shield"]) == {"none", "static-fair", "dynamic"}
    ends = frame[frame["decision"] % chosen[0].period_length == 0]
    for one in chosen:
        rows = simulate(one, scored()).query("run == 1")
        found = ends[ends["shield"] == one.shield]["bias"].to_numpy()
        assert found == pytest.approx(rows["bias"].to_numpy())
        free = ends[ends["shield"] == "none"]["bias"].to_numpy()
        assert free == pytest.approx(rows["bias_unshielded"].to_numpy())


def test_settings_name_themselves() -> None:
    text = str(replace(setting(), min_support=10))
    assert text == (
        "made-up, ERM, demographic-parity 0.2, finite-horizon, agnostic, bias-0, min_support 10"
    )
