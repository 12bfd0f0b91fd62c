"""``train`` turns an environment and a learner into scored people and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fairshield as fs
from fairshield_experiments.data import Dataset, Split, encode, make_folds, make_split
from fairshield_experiments.learners import Examples, as_learner
from fairshield_experiments.learners.metrics import Metric, measure
from fairshield_experiments.people import People, Scored


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """Trained holds the scores and metrics of one learner on one environment.

    Attributes
    ----------
    scores
        ``(n,)``: of every person of the data set.
    metrics
        By name, on the test part.
    seconds
        How long the fit took.
    """

    dataset: Dataset
    learner: str
    split: Split
    scores: NDArray[np.float64]
    metrics: Mapping[str, Metric]
    seconds: float

    def scored(self) -> Scored:
        """The people as a simulation sees them."""
        return scored(self.dataset, self.learner, self.scores, self.split)

    def rows(self) -> list[dict[str, Any]]:
        """Rows of the frame ``metrics``."""
        return [
            {
                "environment": self.dataset.name,
                "learner": self.learner,
                "metric": name,
                "value": metric.value,
                "error": metric.error,
                "seconds": self.seconds,
            }
            for name, metric in self.metrics.items()
        ]


def train(
    dataset: Dataset,
    name: str,
    learner: Any,
    *,
    seed: int = 0,
    split: Split | None = None,
) -> Trained:
    """Fit ``learner`` to the training part of ``dataset`` and score everybody.

    Parameters
    ----------
    name
        What results call the learner.
    learner
        A :class:`~fairshield_experiments.learners.Learner`, or a scikit-learn classifier.
    seed
        Of the learner.
    split
        By default the one of seed 0, so that learners of any seed are compared on the same people.
    """
    split = make_split(dataset) if split is None else split
    scores, seconds = _fitted_scores(
        dataset, name, learner, split, np.arange(len(dataset)), seed=seed
    )
    return Trained(
        dataset=dataset,
        learner=name,
        split=split,
        scores=scores,
        metrics=measure(_people(dataset, scores, split.test)),
        seconds=seconds,
    )


def cross_fit(
    dataset: Dataset,
    name: str,
    learner: Any,
    *,
    folds: int,
    seed: int = 0,
    split: Split | None = None,
) -> NDArray[np.float64]:
    """Scores of the training part, each from a learner fitted to the folds it is not in.

    The arguments are those of :func:`train`, and the number of folds.
    """
    split = make_split(dataset) if split is None else split
    scores = np.empty(len(split.train))
    for fold in make_folds(dataset, split, folds, seed=seed):
        own, _ = _fitted_scores(dataset, name, learner, fold, fold.test, seed=seed)
        scores[np.searchsorted(split.train, fold.test)] = own
    return scores


def _fitted_scores(
    dataset: Dataset,
    name: str,
    learner: Any,
    split: Split,
    rows: NDArray[np.intp],
    *,
    seed: int,
) -> tuple[NDArray[np.float64], float]:
    """Scores of these rows by the learner, fitted to the training part; seconds of the fit."""
    features = encode(dataset, split)
    examples = Examples(
        features[split.train], dataset.target[split.train], dataset.group[split.train]
    )
    start = perf_counter()
    classifier = as_learner(learner).fit(examples, seed=seed)
    seconds = perf_counter() - start
    scores = np.asarray(classifier.scores(features[rows]), dtype=np.float64)
    if scores.shape != rows.shape or not ((scores >= 0) & (scores <= 1)).all():
        raise fs.InvalidValueError(
            f"{name} must give each of {len(rows)} people a score in [0, 1], got shape "
            f"{scores.shape} with values from {scores.min()} to {scores.max()}"
        )
    return scores, seconds


def scored(
    dataset: Dataset, learner: str, scores: NDArray[np.float64], split: Split | None = None
) -> Scored:
    """The training part, and the test and validation parts as one, with their scores."""
    split = make_split(dataset) if split is None else split
    return Scored(
        environment=dataset.name,
        learner=learner,
        training=_people(dataset, scores, split.train),
        held_out=_people(dataset, scores, split.held_out),
    )


def _people(dataset: Dataset, scores: NDArray[np.float64], rows: NDArray[np.intp]) -> People:
    return People(group=dataset.group[rows], target=dataset.target[rows], score=scores[rows])
