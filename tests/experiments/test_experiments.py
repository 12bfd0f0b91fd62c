"""Which settings the experiments have, and what tells their tasks apart."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up import cross_fitted, scored
from sklearn.linear_model import LogisticRegression

import fairshield as fs
from fairshield_experiments.experiments import (
    FIVE,
    Extent,
    cross_fit_tasks,
    make_extent,
    model_tasks,
    run_tasks,
    settings_of,
)
from fairshield_experiments.inputs import CROSS_FITTED, IN_SAMPLE, INPUTS
from fairshield_experiments.people import Scored

WHOLE = Extent(learners=dict.fromkeys(FIVE))
SMALL = replace(WHOLE, environments=("german-age", "german-gender"), bounds=("0.1",))


def worlds(extent: Extent) -> dict[tuple[str, str], Scored]:
    return {
        (environment, learner): replace(scored(i), environment=environment, learner=learner)
        for i, environment in enumerate(extent.environments)
        for learner in extent.learners
    }


def test_the_paper_s_settings_are_all_there() -> None:
    finite = list(settings_of("finite", WHOLE))
    by_kind = Counter((s.kind, s.undefined, s.period_length, s.runs, s.periods) for s in finite)
    each = 7 * 5 * 4  # environments, learners, bounds
    assert by_kind == {
        ("demographic-parity", "bias-0", 100, 30, 1): each,
        ("demographic-parity", "rate-0", 100, 30, 1): each,
        ("equal-opportunity", "bias-0", 75, 30, 1): each,
        ("equal-opportunity", "rate-0", 75, 30, 1): each,
    }
    periodic = list(settings_of("periodic", WHOLE))
    assert Counter((s.shield, s.undefined) for s in periodic) == {
        (shield, undefined): 7 * 3 * 2
        for shield in ("static-fair", "static-bounded", "dynamic", "inactive")
        for undefined in ("bias-0", "rate-0")
    }
    assert {(s.period_length, s.periods, s.runs, s.learner) for s in periodic} == {
        (50, 10, 20, "ERM")
    }


def test_shields_without_a_condition_are_built_on_every_input_model() -> None:
    found = Counter((s.shield, s.kind, s.inputs) for s in settings_of("guaranteed", WHOLE))
    for inputs in IN_SAMPLE:
        assert found["exact", "demographic-parity", inputs] == 7 * 3
        assert found["perpetual", "demographic-parity", inputs] == 7 * 3
        assert found["perpetual", "equal-opportunity", inputs] == 7 * 3
    assert found["optimal", "demographic-parity", "agnostic"] == 7
    tabled = {"exact", "optimal"}
    assert not any(shield in tabled and kind == "equal-opportunity" for shield, kind, _ in found)


def test_other_input_models_are_tried_with_every_shield_of_the_paper() -> None:
    found = {(s.shield, s.inputs) for s in settings_of("inputs", WHOLE)}
    shields = ("finite-horizon", "static-fair", "static-bounded", "dynamic")
    assert found == {(s, inputs) for s in shields for inputs in INPUTS if inputs != "agnostic"}


def test_cross_fitted_models_are_tried_with_erm_and_with_periods_at_one_bound() -> None:
    made = [s for s in settings_of("inputs", WHOLE) if s.inputs in CROSS_FITTED]
    assert {s.learner for s in made} == {"ERM"}
    assert {s.bound for s in made if s.shield == "finite-horizon"} == set(WHOLE.bounds)
    assert {s.bound for s in made if s.shield != "finite-horizon"} == {"0.1"}
    without = replace(WHOLE, learners={"mine": None})
    assert not any(s.inputs in CROSS_FITTED for s in settings_of("inputs", without))
    assert not cross_fit_tasks(("inputs",), without)
    assert not cross_fit_tasks(("finite", "periodic"), WHOLE)


def test_cross_fitted_settings_get_the_out_of_fold_scores_and_no_other_setting_does() -> None:
    world = worlds(SMALL)
    folded = {at: replace(cross_fitted(), environment=at[0]) for at in world if at[1] == "ERM"}
    tasks = run_tasks(("finite", "inputs"), SMALL, world, folded)
    for task in tasks:
        (setting,) = task.arguments["settings"]
        assert task.arguments["scored"].cross_fitted == (setting.inputs in CROSS_FITTED)
    plain = run_tasks(("finite", "inputs"), SMALL, world)
    own = {task.key for task in tasks} - {task.key for task in plain}
    assert {task.key for task in plain} <= {task.key for task in tasks}
    assert len(own) == len(tasks) - len(plain) == 2 * 2 * 2 * (1 + 3)


def test_folds_are_part_of_what_a_model_depends_on() -> None:
    keys = [
        {task.key for task in cross_fit_tasks(("inputs",), replace(SMALL, **changes)).values()}
        for changes in ({}, {"folds": 3}, {"seed": 1})
    ]
    assert [len(each) for each in keys] == [2, 2, 2]
    assert len(set.union(*keys)) == 6


def test_every_training_has_a_seed_of_its_own_for_all_that_is_drawn() -> None:
    extent = replace(WHOLE, environments=("german-age",), trainings=4)
    tasks = run_tasks(("trainings",), extent, worlds(extent))
    assert len(tasks) == 3 * 5
    for task in tasks:
        chosen, name = task.arguments["settings"], task.arguments["name"]
        assert {s.seed for s in chosen} == {task.arguments["seed"]}
        assert {s.learner for s in chosen} == {name}
        assert {(s.bound, s.undefined, s.inputs) for s in chosen} == {("0.1", "rate-0", "agnostic")}
        shields = {s.shield for s in chosen} - {"finite-horizon"}
        assert shields == ({"static-fair", "static-bounded", "dynamic"} if name == "ERM" else set())
    assert Counter(task.arguments["seed"] for task in tasks) == {1: 5, 2: 5, 3: 5}
    assert not run_tasks(("trainings",), replace(extent, trainings=1), worlds(extent))
    missing = {at: people for at, people in worlds(extent).items() if at[1] != "PR"}
    assert len(run_tasks(("trainings",), extent, missing)) == 3 * 4


def test_tasks_have_keys_of_their_own() -> None:
    experiments = ("finite", "periodic", "inputs", "guaranteed", "support", "baselines", "paths")
    folded = {("german-age", "ERM"): replace(cross_fitted(), environment="german-age")}
    tasks = run_tasks((*experiments, "resources", "trainings"), SMALL, worlds(SMALL), folded)
    assert len({task.key for task in tasks}) == len(tasks)
    assert len({task.title for task in tasks}) == len(tasks)
    models = model_tasks(SMALL)
    assert len({task.key for task in models.values()}) == len(models) == 2 * 5


def test_what_two_experiments_need_is_simulated_once() -> None:
    both = run_tasks(("finite", "finite"), SMALL, worlds(SMALL))
    assert len(both) == len(run_tasks(("finite",), SMALL, worlds(SMALL)))


def test_keys_change_with_whatever_the_result_depends_on() -> None:
    world = worlds(SMALL)
    at = ("german-age", "ERM")
    other = {**world, at: replace(world[at], held_out=world["german-gender", "ERM"].held_out)}

    def keys(extent: Extent, people: dict[tuple[str, str], Scored]) -> set[str]:
        return {task.key for task in run_tasks(("finite",), extent, people)}

    base = keys(SMALL, world)
    assert base == keys(SMALL, worlds(SMALL))
    assert not base & keys(replace(SMALL, seed=1), world)
    assert len(base & keys(SMALL, other)) == len(base) - 4  # of one model: two kinds, two readings
    seeds = ({t.key for t in model_tasks(replace(SMALL, seed=s)).values()} for s in (0, 1))
    assert not set.intersection(*seeds)


def test_without_a_model_only_its_own_settings_are_left_out() -> None:
    world = worlds(SMALL)
    del world["german-age", "PR"]
    tasks = run_tasks(("finite",), SMALL, world)
    assert len(tasks) == (2 * 5 - 1) * 4
    assert not any("german-age, PR" in task.title for task in tasks)


def test_without_erm_only_the_finite_horizon_is_run() -> None:
    extent = replace(SMALL, learners={"mine": None})
    experiments = ("finite", "periodic", "guaranteed", "baselines", "paths")
    tasks = run_tasks(experiments, extent, worlds(extent))
    assert len(tasks) == len(run_tasks(("finite",), extent, worlds(extent))) == 2 * 2 * 2


def test_a_learner_is_its_content_and_its_code_not_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(learner: Any) -> str:
        extent = replace(SMALL, learners={"mine": learner})
        return model_tasks(extent)["german-age", "mine"].key

    assert key(LogisticRegression(C=2.0)) == key(LogisticRegression(C=2.0))
    assert key(LogisticRegression(C=2.0)) != key(LogisticRegression(C=3.0))
    file = tmp_path / "changing_learner.py"
    monkeypatch.syspath_prepend(tmp_path)
    keys = []
    for score in ("0.1", "0.9"):
        file.write_text(f"class Mine:\n    score = {score}\n", encoding="utf-8")
        sys.modules.pop("changing_learner", None)
        importlib.invalidate_caches()
        made = importlib.import_module("changing_learner").Mine
        keys.append(key(made()))
        assert key(made()) == keys[-1]
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"environments": ["mars"]}, "unknown environment 'mars': choose from adult-race"),
        ({"learners": ["SVM"]}, "unknown learner 'SVM': choose from ERM"),
        ({"learners": ["ERM", "ERM"]}, "repeated learner 'ERM'"),
    ],
)
def test_wrong_names_are_told_with_the_right_ones(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(fs.InvalidValueError, match=sentence):
        make_extent(**wrong)


def test_a_plan_has_the_paper_s_learners_and_one_s_own() -> None:
    mine = LogisticRegression()
    assert [*make_extent(own={"mine": mine}).learners] == [*FIVE, "mine"]
    assert [*make_extent(learners=["mine"], own={"mine": mine}).learners] == ["mine"]
    assert [*make_extent(own={"ERM": mine}).learners] == [*FIVE]
    with pytest.raises(fs.InvalidValueError):
        make_extent(own={"mine": object()})
    assert len(make_extent(quick=True).environments) == 2


def test_epochs_train_longer() -> None:
    by_steps, by_epochs = (make_extent(epochs=epochs).learners["ERM"] for epochs in (False, True))
    assert by_steps.schedule.steps == by_epochs.schedule.epochs == 150
