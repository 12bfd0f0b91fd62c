"""Classifiers of scikit-learn are learners as they are."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import fairshield as fs
from fairshield_experiments.learners import ERM, Examples, SklearnLearner, as_learner


def test_scores_are_predict_proba(biased: Examples) -> None:
    ours = SklearnLearner(LogisticRegression()).fit(biased, seed=0).scores(biased.features)
    fitted = LogisticRegression(random_state=0).fit(biased.features, biased.target)
    assert (ours == fitted.predict_proba(biased.features)[:, 1]).all()


def test_a_margin_passes_through_the_logistic(biased: Examples) -> None:
    ours = SklearnLearner(LinearSVC()).fit(biased, seed=0).scores(biased.features)
    margin = LinearSVC(random_state=0).fit(biased.features, biased.target)
    expected = 1 / (1 + np.exp(-margin.decision_function(biased.features)))
    assert ours == pytest.approx(expected)


def test_the_seed_reaches_every_part(biased: Examples) -> None:
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(5))
    first, same, other = (
        as_learner(forest).fit(biased, seed=s).scores(biased.features) for s in (0, 0, 1)
    )
    assert (first == same).all()
    assert (first != other).any()


def test_the_estimator_itself_stays_unfitted(biased: Examples) -> None:
    estimator = LogisticRegression()
    SklearnLearner(estimator).fit(biased, seed=1)
    assert not hasattr(estimator, "coef_")
    assert estimator.random_state is None


def test_learners_are_left_as_they_are() -> None:
    learner, estimator = ERM(), LogisticRegression()
    assert as_learner(learner) is learner
    adapted = as_learner(estimator)
    assert as_learner(adapted) is adapted
    assert isinstance(adapted, SklearnLearner)


@pytest.mark.parametrize("wrong", ["ERM", None, StandardScaler(), LogisticRegression])
def test_other_things_are_refused(wrong: object) -> None:
    with pytest.raises(fs.InvalidValueError, match="learner"):
        as_learner(wrong)


def test_one_class_is_refused(biased: Examples) -> None:
    one = Examples(biased.features, np.ones_like(biased.target), biased.group)
    with pytest.raises(fs.InvalidValueError, match="has target 0"):
        SklearnLearner(LogisticRegression()).fit(one, seed=0)
