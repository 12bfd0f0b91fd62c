"""How a row of a frame is read: its features, its group, and what the classifier makes of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairshield.errors import InvalidValueError
from fairshield.groups import Unseen, intersection
from fairshield.inputs.columns import flags, numbers, threshold_for
from fairshield.records import as_number

MARGIN = "margin"
"""``cost``: how far the score is from the threshold, the classifier's confidence."""
Score = Literal["auto", "predict_proba", "decision_function", "predict"]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the columns of a frame are, and what the classifier's answer means.

    Attributes
    ----------
    group
        Sensitive columns; several are intersected.
    features
        Columns the classifier sees; ``None``: all but those that are named for something else.
    score
        How the classifier is asked; ``"auto"``: ``predict_proba``, else ``decision_function``, else
        ``predict``.
    threshold
        A score of at least this proposes to accept; default: 0 for a ``decision_function``, else
        0.5.
    positive
        The label that means acceptance; default: the second of two classes that are not text, or
        1, true, yes.
    cost
        Price of overruling: of everybody, in a column, or ``"margin"``.
    outcome
        Column of true outcomes, where the property counts by outcome.
    unseen
        What happens to groups that the policy does not know.
    """

    group: tuple[str, ...]
    features: tuple[str, ...] | None = None
    score: Score = "auto"
    threshold: float | None = None
    positive: Any = None
    cost: float | str = 1.0
    outcome: str | None = None
    unseen: Unseen = field(default_factory=Unseen.refuse)

    def __post_init__(self) -> None:
        for name in ("threshold", "positive", "cost"):  # of numpy's kinds, which JSON lacks
            value = getattr(self, name)
            if isinstance(value, np.generic):
                object.__setattr__(self, name, value.item())
        if not self.group:
            raise InvalidValueError("group names no column: it is the sensitive column, or several")
        if self.score not in get_args(Score):
            raise InvalidValueError(
                f"score must be one of {', '.join(get_args(Score))}, got {self.score!r}"
            )
        if self.threshold is not None and not math.isfinite(as_number(self.threshold, "threshold")):
            raise InvalidValueError(f"threshold must be a finite number, got {self.threshold!r}")
        if not isinstance(self.cost, str) and not 0.0 <= as_number(self.cost, "cost") < math.inf:
            raise InvalidValueError(
                f"cost must be finite and at least 0, or the name of a column, got {self.cost!r}"
            )

    @property
    def cost_column(self) -> str | None:
        """The column of prices, if there is one."""
        return self.cost if isinstance(self.cost, str) and self.cost != MARGIN else None

    def take(self, frame: pd.DataFrame, names: Iterable[str], what: str) -> pd.DataFrame:
        """Columns of a frame by name."""
        wanted = list(names)
        missing = [name for name in wanted if name not in frame.columns]
        if missing:
            raise InvalidValueError(
                f"the frame has no column {missing[0]!r}, which holds {what}: it has "
                f"{', '.join(map(repr, frame.columns))}"
            )
        return frame[wanted]

    def seen_by_model(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns that the classifier sees."""
        if self.features is not None:
            return self.take(frame, self.features, "a feature of the classifier")
        others = {*self.group, self.cost_column, self.outcome}
        return frame[[name for name in frame.columns if name not in others]]

    def groups(self, frame: pd.DataFrame) -> NDArray[Any]:
        """The group of each row."""
        columns = self.take(frame, self.group, "the group")
        parts = [columns[name].to_numpy() for name in self.group]
        return parts[0] if len(parts) == 1 else intersection(*parts)

    def costs(self, frame: pd.DataFrame, margin: NDArray[np.float64]) -> NDArray[np.float64]:
        """The price of overruling each row."""
        name = self.cost_column
        if name is not None:
            column = self.take(frame, [name], "the cost")[name]
            return numbers(column.to_numpy(), name)
        return margin if self.cost == MARGIN else np.full(len(frame), float(self.cost))

    def outcomes(self, frame: pd.DataFrame) -> NDArray[Any] | None:
        """The outcome of each row, where there are outcomes."""
        if self.outcome is None:
            return None
        return np.asarray(self.take(frame, [self.outcome], "the outcome")[self.outcome])

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data; :meth:`from_dict` is the inverse."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reading:
        """What :meth:`to_dict` described."""
        rule, features = data["unseen"], data["features"]
        names = tuple((name, known) for name, known in rule["names"])
        return cls(
            **{
                **data,
                "group": tuple(data["group"]),
                "features": None if features is None else tuple(features),
                "unseen": Unseen(rule["kind"], rule["to"], names),
            }
        )


# Asking the classifier ----------------------------------------------------------------------


def method_of(model: Any, score: Score) -> str:
    """How the classifier is asked."""
    if score == "auto":
        return next((m for m in get_args(Score)[1:] if hasattr(model, m)), "predict")
    if not hasattr(model, score):
        raise InvalidValueError(
            f"the model, a {type(model).__name__}, has no {score}: choose another score"
        )
    return score


def check_asked(model: Any, reading: Reading) -> None:
    """Raise where the classifier's answers could not be read as they are said to be."""
    method = method_of(model, reading.score)
    if method == "predict":
        return
    _place_of_positive(getattr(model, "classes_", None), reading.positive)
    threshold = reading.threshold
    if method == "predict_proba" and threshold is not None and not 0.0 <= threshold <= 1.0:
        raise InvalidValueError(
            f"threshold must be between 0 and 1, as probabilities are, got {threshold!r}"
        )


def proposals(
    model: Any, reading: Reading, features: pd.DataFrame
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """What the classifier proposes for each row, and how far its score is from the threshold."""
    method = method_of(model, reading.score)
    answer = np.asarray(getattr(model, method)(features))
    if method == "predict":
        scores = _predicted(answer, model, reading, len(features))
    else:
        scores = _of_positive(answer, getattr(model, "classes_", None), reading.positive)
    if scores.shape != (len(features),):
        raise InvalidValueError(
            f"{method} gave an array of shape {answer.shape} for {len(features)} rows: one score "
            "or label a row is needed"
        )
    if np.isnan(scores).any():
        raise InvalidValueError(
            f"{method} gave no number for row {int(np.flatnonzero(np.isnan(scores))[0])}"
        )
    threshold = reading.threshold
    if threshold is None:
        threshold = 0.0 if method == "decision_function" else threshold_for(scores, None, method)
    return scores >= threshold, np.abs(scores - threshold)


def _of_positive(answer: NDArray[Any], classes: Any, positive: Any) -> NDArray[np.float64]:
    """Scores of the positive class."""
    at = _place_of_positive(classes, positive)
    if answer.ndim == 2:
        return np.asarray(answer[:, at], np.float64)
    return np.asarray(answer if at else -answer, np.float64)


def _place_of_positive(classes: Any, positive: Any) -> int:
    known: list[Any] = [0, 1] if classes is None else np.asarray(classes).tolist()
    if positive is None and len(known) == 2 and not isinstance(known[1], str):
        positive = known[1]
    if positive not in known:
        raise InvalidValueError(
            f"positive is {positive!r}, the model's classes are {known}: name the one that means "
            f"acceptance, as in positive={known[-1]!r}"
        )
    return known.index(positive)


def _predicted(answer: NDArray[Any], model: Any, reading: Reading, rows: int) -> NDArray[Any]:
    """Labels as 0 and 1, and scores as they are."""
    classes, positive = getattr(model, "classes_", None), reading.positive
    if answer.ndim == 2 and answer.shape[1] == 2:
        return np.asarray(answer[:, _place_of_positive(classes, positive)], np.float64)
    if answer.ndim == 2 and answer.shape[1] == 1:
        answer = answer[:, 0]
    if answer.ndim != 1:
        return np.empty(answer.shape)  # which is refused
    if classes is not None and len(classes) == 2:
        positive = np.asarray(classes).tolist()[_place_of_positive(classes, positive)]
    if positive is not None:
        return np.asarray(answer == positive, np.float64)
    if answer.dtype.kind not in "biuf":
        return flags(answer, "predictions", rows).astype(np.float64)
    scores = answer.astype(np.float64)
    if reading.threshold is None:
        if np.isin(scores, (-1.0, 1.0)).all():
            return (scores + 1.0) / 2.0
        beyond = np.flatnonzero((scores < 0.0) | (scores > 1.0))
        if len(beyond):
            raise InvalidValueError(
                f"predict gave {answer[beyond[0]]} for row {int(beyond[0])}, which is neither a "
                "probability nor one of the labels 0 and 1: say which label means acceptance with "
                "positive=, or from which score on with threshold="
            )
    return scores
