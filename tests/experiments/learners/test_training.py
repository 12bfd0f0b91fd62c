"""From an environment to scored people."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import fairshield as fs
from fairshield_experiments.data import Dataset, make_folds, make_split
from fairshield_experiments.learners import ERM, Examples, Schedule
from fairshield_experiments.learners.metrics import METRICS, measure
from fairshield_experiments.simulate import Setting
from fairshield_experiments.training import cross_fit, train
from fairshield_experiments.trainings import train_again


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    rng = np.random.default_rng(0)
    group = (rng.random(300) < 0.6).astype(np.int8)
    merit = rng.normal(size=300) + group
    return Dataset(
        name="toy",
        title="Toy",
        task="merit",
        attribute="kind",
        groups=("a", "b"),
        group=group,
        target=merit + 0.5 * rng.normal(size=300) > 0.5,
        numeric={"merit": merit},
        categorical={"colour": rng.choice(["red", "blue"], size=300)},
        problems="Made up.",
    )


def test_training_and_held_out_people_are_everybody_once(dataset: Dataset) -> None:
    trained = train(dataset, "LR", LogisticRegression())
    scored = trained.scored()
    assert (scored.environment, scored.learner) == ("toy", "LR")
    assert len(scored.training) == len(trained.split.train) == 120
    assert len(scored.held_out) == 180
    both = np.concatenate((scored.training.score, scored.held_out.score))
    assert sorted(both) == sorted(trained.scores)
    rows = trained.split.train
    assert (scored.training.target == dataset.target[rows]).all()
    assert (scored.training.group == dataset.group[rows]).all()


def test_metrics_are_those_of_the_test_part(dataset: Dataset) -> None:
    trained = train(dataset, "LR", LogisticRegression())
    tested = trained.scored().held_out.take(np.arange(len(trained.split.test)))
    assert trained.metrics == measure(tested)
    assert trained.metrics["auc"].value > 0.8
    rows = trained.rows()
    assert [row["metric"] for row in rows] == list(METRICS)
    assert rows[0]["value"] == trained.metrics["accuracy"].value


def test_a_seed_is_a_model(dataset: Dataset) -> None:
    learner = ERM(schedule=Schedule(steps=3))
    first, same, other = (train(dataset, "ERM", learner, seed=s).scores for s in (0, 0, 1))
    assert (first == same).all()
    assert (first != other).any()


def test_the_split_may_be_given(dataset: Dataset) -> None:
    split = make_split(dataset, seed=5)
    assert train(dataset, "LR", LogisticRegression(), split=split).split is split


class Remembering:
    """Scores 1 for whom it was fitted to, and 0 for everybody else."""

    def fit(self, examples: Examples, *, seed: int) -> Remembering:
        self.known = {row.tobytes() for row in examples.features[:, :1].round(3)}
        return self

    def scores(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.array([float(row.tobytes() in self.known) for row in features[:, :1].round(3)])


def test_nobody_is_scored_by_a_classifier_that_was_fitted_to_them(dataset: Dataset) -> None:
    apart = replace(dataset, numeric={"merit": np.arange(300) / 7.0})
    split = make_split(apart)
    assert train(apart, "memory", Remembering()).scores[split.train].all()
    assert not cross_fit(apart, "memory", Remembering(), folds=3).any()


def test_out_of_fold_scores_are_those_of_trainings_on_the_other_folds(dataset: Dataset) -> None:
    split = make_split(dataset, seed=3)
    found = cross_fit(dataset, "LR", LogisticRegression(), folds=4, seed=2, split=split)
    scores = dict(zip(split.train, found, strict=True))
    for fold in make_folds(dataset, split, 4, seed=2):
        own = train(dataset, "LR", LogisticRegression(), seed=2, split=fold).scores
        assert [scores[row] for row in fold.test] == pytest.approx(own[fold.test])


def test_another_training_has_another_split_and_other_people(dataset: Dataset) -> None:
    def again(seed: int) -> Any:
        setting = Setting(
            environment="toy", learner="LR", kind="demographic-parity", bound="0.2",
            shield="finite-horizon", period_length=10, runs=3, seed=seed,
        )  # fmt: skip
        return train_again(dataset, "LR", LogisticRegression(), [setting], seed=seed)

    first, same, other = again(1), again(1), again(2)
    assert (
        first["trainings"].drop(columns="seconds").equals(same["trainings"].drop(columns="seconds"))
    )
    assert first["training_runs"].equals(same["training_runs"])
    assert set(first["trainings"]["seed"]) == set(first["training_runs"]["seed"]) == {1}
    assert len(other["training_runs"]) == 3
    values = [frames["trainings"]["value"].tolist() for frames in (first, other)]
    expected = train(dataset, "LR", LogisticRegression(), split=make_split(dataset, seed=1))
    assert values[0] == [row["value"] for row in expected.rows()]
    assert values[0] != values[1]


class Shouting:
    """Scores beyond 1."""

    def fit(self, examples: Examples, *, seed: int) -> Shouting:
        return self

    def scores(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.full(len(features), 2.0)


def test_scores_outside_the_unit_interval_are_refused(dataset: Dataset) -> None:
    with pytest.raises(fs.InvalidValueError, match=r"Shouting must give .* score in \[0, 1\]"):
        train(dataset, "Shouting", Shouting())
