"""SklearnLearner makes a learner of anything with scikit-learn's interface."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

import fairshield as fs
from fairshield_experiments.learners.base import Classifier, Examples, Learner


@dataclass(frozen=True, eq=False)
class SklearnClassifier:
    """SklearnClassifier is a fitted estimator."""

    estimator: Any

    def scores(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """``predict_proba`` of class 1; without it σ(``decision_function``)."""
        if hasattr(self.estimator, "predict_proba"):
            return np.asarray(self.estimator.predict_proba(features)[:, 1], dtype=np.float64)
        margin = np.asarray(self.estimator.decision_function(features), dtype=np.float64)
        return np.asarray(0.5 * (1 + np.tanh(margin / 2)))


@dataclass(frozen=True, eq=False)
class SklearnLearner:
    """SklearnLearner fits clones of an estimator, which itself stays as it is.

    Every ``random_state`` that the estimator or a part of it has is set to the seed.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> SklearnLearner(LogisticRegression(C=0.5))
    SklearnLearner(estimator=LogisticRegression(C=0.5))
    """

    estimator: Any

    def __post_init__(self) -> None:
        if not _is_estimator(self.estimator):
            raise fs.InvalidValueError(
                f"a learner needs fit and predict_proba or decision_function, which "
                f"{self.estimator!r} lacks: pass a scikit-learn classifier, or an object with "
                "fit(examples, *, seed)"
            )

    def fit(self, examples: Examples, *, seed: int) -> Classifier:
        """A clone fitted to ``examples``; the group is not shown to it."""
        examples.check()
        estimator = clone(self.estimator)
        states = [
            name
            for name in estimator.get_params(deep=True)
            if name == "random_state" or name.endswith("__random_state")
        ]
        estimator.set_params(**dict.fromkeys(states, seed))
        estimator.fit(examples.features, examples.target)
        return SklearnClassifier(estimator)


def as_learner(obj: Any) -> Learner:
    """``obj`` itself if its ``fit`` takes a seed; else a learner that wraps this classifier."""
    if isinstance(obj, type):
        raise fs.InvalidValueError(f"a learner is an object, got the class {obj.__name__}: call it")
    fit = getattr(obj, "fit", None)
    if callable(fit) and "seed" in signature(fit).parameters:
        learner: Learner = obj
        return learner
    return SklearnLearner(obj)


def _is_estimator(obj: Any) -> bool:
    scores = hasattr(obj, "predict_proba") or hasattr(obj, "decision_function")
    return scores and hasattr(obj, "fit") and hasattr(obj, "get_params")
