"""Scorer turns the answers of a fitted classifier into scores, whatever method it has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairshield.base.errors import InvalidValueError
from fairshield.inputs.columns import flags
from fairshield.records import ScoreRule
from fairshield.records.scores import PROBABILITY_THRESHOLD

Array = NDArray[Any]
Floats = NDArray[np.float64]
PredictMethod = Literal["auto", "predict_proba", "decision_function", "predict"]
"""How a classifier is asked; ``"auto"``: by the first of these methods that it has."""
METHODS: tuple[str, ...] = get_args(PredictMethod)[1:]


def check_predict_method(name: Any) -> None:
    """Raise for what is no :data:`PredictMethod`."""
    if name not in get_args(PredictMethod):
        raise InvalidValueError(
            f"predict_method must be 'auto' or one of {', '.join(METHODS)}, got {name!r}"
        )


def method_of(model: Any, predict_method: PredictMethod) -> str:
    """The method by which a classifier is asked."""
    check_predict_method(predict_method)
    wanted = METHODS if predict_method == "auto" else (predict_method,)
    for name in wanted:
        if hasattr(model, name):
            return name
    raise InvalidValueError(
        f"{type(model).__name__} has no {', '.join(wanted)}: set predict_method to one that it has"
    )


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """Scorer reads a classifier's answers as scores of the label that means acceptance.

    ``labels`` are the classifier's; ``None`` where it does not tell them.
    """

    method: str
    rule: ScoreRule
    labels: tuple[Any, ...] | None = None

    @classmethod
    def of(
        cls,
        model: Any,
        rule: ScoreRule,
        predict_method: PredictMethod = "auto",
        labels: ArrayLike | None = None,
    ) -> Scorer:
        """How ``model`` is asked and read; ``labels`` where it has no ``classes_`` of its own."""
        method = method_of(model, predict_method)
        found = getattr(model, "classes_", labels)
        known = None if found is None else tuple(np.asarray(found).tolist())
        if method == "predict_proba" and not 0.0 <= (rule.threshold or 0.0) <= 1.0:
            raise InvalidValueError(
                f"threshold must be between 0 and 1, as probabilities are, got {rule.threshold!r} "
                f"for {method}"
            )
        if method == "decision_function" and rule.threshold is None:
            rule = replace(rule, threshold=0.0)
        if method != "predict" or (known is not None and len(known) == 2):
            known = known or (0, 1)
            rule = rule.settled(known)
        return cls(method=method, rule=rule, labels=known)

    @property
    def place(self) -> int:
        """The index, among the labels, of the one that means acceptance."""
        known = self.labels or (0, 1)
        return known.index(self.rule.settled(known).positive)

    def fixed(self, scores: Floats) -> Scorer:
        """The same scorer with a threshold: its own, else the one for probabilities."""
        if self.rule.threshold is not None:
            return self
        self.rule.check_range(scores, self.method)
        return replace(self, rule=replace(self.rule, threshold=PROBABILITY_THRESHOLD))

    def ask(self, model: Any, rows: Any) -> Array:
        """The classifier's answers to ``rows``."""
        return np.asarray(getattr(model, self.method)(rows))

    def proposals(self, scores: Floats) -> tuple[NDArray[np.bool_], Floats]:
        """Return what each score proposes, and the price of overruling it."""
        return self.rule.many(scores, self.method)

    def scores(self, answers: Array) -> Floats:
        """The score of each row."""
        scores = self._predicted(answers) if self.method == "predict" else self._scored(answers)
        if scores.ndim != 1:
            raise InvalidValueError(
                f"{self.method} gave an array of shape {answers.shape}: one score or label a row "
                "is needed"
            )
        wrong = np.flatnonzero(~np.isfinite(scores))
        if len(wrong):
            raise InvalidValueError(
                f"{self.method} gave {scores[wrong[0]]} for row {wrong[0]}: scores must be finite "
                "numbers"
            )
        return scores

    def _scored(self, answers: Array) -> Floats:
        if answers.ndim == 2:
            answers = answers[:, self.place]
        elif not self.place:
            answers = -answers
        return np.asarray(answers, np.float64)

    def _predicted(self, answers: Array) -> Floats:
        """Answers of ``predict`` as numbers: labels become 0 and 1, scores stay as they are."""
        if answers.ndim == 2 and answers.shape[1] == 2:
            return np.asarray(answers[:, self.place], np.float64)
        if answers.ndim == 2 and answers.shape[1] == 1:
            answers = answers[:, 0]
        if answers.ndim != 1:
            return np.empty(answers.shape)  # a shape that the caller refuses
        if self.rule.positive is not None:
            return np.asarray(answers == self.rule.positive, np.float64)
        if answers.dtype.kind not in "biuf":
            return flags(answers, "predictions", len(answers)).astype(np.float64)
        scores = answers.astype(np.float64)
        if self.rule.threshold is None:
            if np.isin(scores, (-1.0, 1.0)).all():
                return (scores + 1.0) / 2.0
            self._check_labels(answers)
        return scores

    def _check_labels(self, answers: Array) -> None:
        beyond = np.flatnonzero((answers < 0) | (answers > 1))
        if len(beyond):
            raise InvalidValueError(
                f"predict gave {answers[beyond[0]]} for row {int(beyond[0])}, which is neither a "
                "probability nor one of the labels 0 and 1: say which label means acceptance with "
                "positive=, or from which score on with threshold="
            )
