"""Fairlearn on the same people: fairness in the population, which promises nothing about a run.

Both methods are used with their own defaults, which ask for parity more strictly than any bound
here.  Their decisions are random: each person of each run gets a draw of their own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import DemographicParity, ExponentiatedGradient, TruePositiveRateParity
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from fairshield_experiments.data import encode, load, make_split
from fairshield_experiments.people import Scored
from fairshield_experiments.simulate import PropertyKind, Setting, draw, rows, streams, unshielded

_CONSTRAINTS: dict[PropertyKind, tuple[str, Callable[[], Any]]] = {
    "demographic-parity": ("demographic_parity", DemographicParity),
    "equal-opportunity": ("true_positive_rate_parity", TruePositiveRateParity),
}
Decide = Callable[[Setting, Scored, NDArray[np.int64]], NDArray[np.bool_]]


def simulate_baseline(settings: Sequence[Setting], scored: Scored) -> pd.DataFrame:
    """Rows of settings that differ in their bound alone and name a baseline for a shield."""
    first = settings[0]
    who = draw(first, len(scored.held_out))
    with warnings.catch_warnings():
        # What pandas will drop one day is between Fairlearn and pandas.
        warnings.simplefilter("ignore", DeprecationWarning)
        accepted = BASELINES[first.shield](first, scored, who.reshape(-1)).reshape(who.shape)
    people = scored.held_out.take(who)
    frames = []
    for setting in settings:
        requests = streams(setting, people)
        decided, free = (unshielded(setting, requests, x) for x in (accepted, requests.proposed))
        frames.append(rows(setting, people, decided, free))
    return pd.concat(frames, ignore_index=True)


def threshold_optimizer(
    setting: Setting, scored: Scored, who: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Thresholds for each group, on the classifier's own scores (Hardt, Price and Srebro)."""
    training, people = scored.training, scored.held_out.take(who)
    method = ThresholdOptimizer(
        estimator=_Scores().fit(),
        constraints=_CONSTRAINTS[setting.kind][0],
        prefit=True,
        predict_method="predict_proba",
    )
    method.fit(training.score[:, None], training.target, sensitive_features=training.group)
    accepted = method.predict(
        people.score[:, None], sensitive_features=people.group, random_state=setting.seed
    )
    return np.asarray(accepted, dtype=bool)


def exponentiated_gradient(
    setting: Setting, scored: Scored, who: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """A mixture of logistic regressions (Agarwal and others' reductions approach)."""
    dataset = load(setting.environment)
    split = make_split(dataset)
    features = encode(dataset, split)
    method = ExponentiatedGradient(
        LogisticRegression(max_iter=1000), _CONSTRAINTS[setting.kind][1]()
    )
    method.fit(
        features[split.train], dataset.target[split.train].astype(int),
        sensitive_features=dataset.group[split.train],
    )  # fmt: skip
    people = features[split.held_out[who]]
    return np.asarray(method.predict(people, random_state=setting.seed), dtype=bool)


BASELINES: dict[str, Decide] = {
    "threshold-optimizer": threshold_optimizer,
    "exponentiated-gradient": exponentiated_gradient,
}


class _Scores(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier whose only feature is the score it gives."""

    def fit(self) -> _Scores:
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.hstack([1.0 - scores, scores])
