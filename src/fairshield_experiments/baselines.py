"""Baselines decide the same people with Fairlearn, which is fair in the population.

Fairness in the population promises nothing about a single run.  Both methods of Fairlearn keep
their defaults, which demand parity more strictly than any bound of the experiments.  Their
decisions are random, drawn anew for each person of each run.
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

from fairshield_experiments.data import Dataset, Split, encode, load, make_split
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
        # Fairlearn uses features of pandas that are deprecated; that is no fault of this code.
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
    """Thresholds for each group, on the classifier's own scores (Hardt, Price and Srebro).

    The thresholds are chosen on the validation part, because scores of the training part are
    overconfident.  Runs contain people of that part as well, which favours this method.
    """
    held_out, people = scored.held_out, scored.held_out.take(who)
    chosen = held_out.take(np.arange(len(held_out) // 2, len(held_out)))  # test people come first
    method = ThresholdOptimizer(
        estimator=_Scores().fit(),
        constraints=_CONSTRAINTS[setting.kind][0],
        prefit=True,
        predict_method="predict_proba",
    )
    method.fit(chosen.score[:, None], chosen.target, sensitive_features=chosen.group)
    accepted = method.predict(
        people.score[:, None], sensitive_features=people.group, random_state=setting.seed
    )
    return np.asarray(accepted, dtype=bool)


def exponentiated_gradient(
    setting: Setting, scored: Scored, who: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """A mixture of logistic regressions (Agarwal and others' reductions approach)."""
    dataset, split, features = _encoded(setting.environment)
    method = ExponentiatedGradient(_logistic(), _CONSTRAINTS[setting.kind][1]())
    method.fit(
        features[split.train], dataset.target[split.train].astype(int),
        sensitive_features=dataset.group[split.train],
    )  # fmt: skip
    people = features[split.held_out[who]]
    return np.asarray(method.predict(people, random_state=setting.seed), dtype=bool)


def logistic_regression(
    setting: Setting, scored: Scored, who: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Decisions of one logistic regression, the baseline of the mixture."""
    dataset, split, features = _encoded(setting.environment)
    method = _logistic().fit(features[split.train], dataset.target[split.train])
    return np.asarray(method.predict(features[split.held_out[who]]), dtype=bool)


def _logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def _encoded(environment: str) -> tuple[Dataset, Split, NDArray[np.float32]]:
    dataset = load(environment)
    split = make_split(dataset)
    return dataset, split, encode(dataset, split)


BASELINES: dict[str, Decide] = {
    "logistic-regression": logistic_regression,
    "threshold-optimizer": threshold_optimizer,
    "exponentiated-gradient": exponentiated_gradient,
}


class _Scores(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """_Scores is a classifier that returns its only feature as its score."""

    def fit(self) -> _Scores:
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.hstack([1.0 - scores, scores])
