"""ModelReading says how a row of a frame is read: its features, group and proposal."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import InitVar, asdict, dataclass, field
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairshield.adapters.scorer import PredictMethod, check_predict_method
from fairshield.base.errors import InvalidValueError
from fairshield.base.groups import Unseen
from fairshield.base.intersections import intersection
from fairshield.inputs.columns import numbers
from fairshield.records import ScoreCost, ScoreRule, as_number

_MARGIN = "margin"
"""The value of ``cost`` that was renamed to ``"confidence"`` in 0.2."""


@dataclass(frozen=True, kw_only=True)
class ModelReading:
    """ModelReading says what the columns of a frame are, and what the classifier's answer means.

    Attributes
    ----------
    group
        Sensitive columns; several are intersected.
    features
        Columns the classifier sees; ``None``: all but those that are named for something else.
    predict_method
        How the classifier is asked; ``"auto"``: ``predict_proba``, else ``decision_function``, else
        ``predict``.
    threshold
        A score of at least this proposes to accept; default: 0 for a ``decision_function``, else
        0.5.
    positive
        The label that means acceptance; default: the second of two classes, with a warning where
        they are text, or 1, true, yes.
    cost
        Price of overruling: a number, the same for everybody; the column it stands in;
        ``"confidence"``, the distance of the score from the threshold; or ``"constant"``, 1.
    cost_column
        The column of prices where its name is one of these words.
    outcome
        Column of true outcomes, where the property counts by outcome.
    unseen
        What happens to groups that the policy does not know.
    score
        Deprecated name of ``predict_method``.
    """

    group: tuple[str, ...]
    features: tuple[str, ...] | None = None
    predict_method: PredictMethod = "auto"
    threshold: float | None = None
    positive: Any = None
    cost: float | str = 1.0
    cost_column: str | None = None
    outcome: str | None = None
    unseen: Unseen = field(default_factory=Unseen.refuse)
    score: InitVar[PredictMethod | None] = None

    def __post_init__(self, score: PredictMethod | None) -> None:
        for name in ("threshold", "positive", "cost"):  # JSON has no types of numpy
            value = getattr(self, name)
            if isinstance(value, np.generic):
                object.__setattr__(self, name, value.item())
        if score is not None:
            _deprecated(f"score={score!r}", f"predict_method={score!r}")
            object.__setattr__(self, "predict_method", score)
        if self.cost == _MARGIN:
            _deprecated("cost='margin'", "cost='confidence'")
            object.__setattr__(self, "cost", "confidence")
        if isinstance(self.cost, str) and self.cost not in get_args(ScoreCost):
            object.__setattr__(self, "cost_column", self.cost)
        if not self.group:
            raise InvalidValueError("group names no column: it is the sensitive column, or several")
        check_predict_method(self.predict_method)
        if not isinstance(self.cost, str) and not 0.0 <= as_number(self.cost, "cost") < math.inf:
            raise InvalidValueError(
                f"cost must be finite and at least 0, or the name of a column, got {self.cost!r}"
            )
        _ = self.rule  # which checks the threshold

    @property
    def rule(self) -> ScoreRule:
        """What the classifier's scores propose, and at what cost where the scores say it."""
        cost: ScoreCost = "confidence" if self.cost == "confidence" else "constant"
        return ScoreRule(threshold=self.threshold, cost=cost, positive=self.positive)

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

    def costs(self, frame: pd.DataFrame, of_scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The price of overruling each row; ``of_scores`` are the prices that the scores imply."""
        name = self.cost_column
        if name is not None:
            column = self.take(frame, [name], "the cost")[name]
            return numbers(column.to_numpy(), name)
        return of_scores if isinstance(self.cost, str) else np.full(len(frame), float(self.cost))

    def outcomes(self, frame: pd.DataFrame) -> NDArray[Any] | None:
        """The outcome of each row, where there are outcomes."""
        if self.outcome is None:
            return None
        return np.asarray(self.take(frame, [self.outcome], "the outcome")[self.outcome])

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able data; :meth:`from_dict` is the inverse."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelReading:
        """Return the reading that :meth:`to_dict` described."""
        said = dict(data) if "predict_method" in data else _current(data)
        rule, features = said["unseen"], said["features"]
        names = tuple((name, known) for name, known in rule["names"])
        return cls(
            **{
                **said,
                "group": tuple(said["group"]),
                "features": None if features is None else tuple(features),
                "unseen": Unseen(rule["kind"], rule["to"], names),
            }
        )


def _current(data: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that version 0.1 wrote, in the words of this version."""
    said = dict(data)
    said["predict_method"], cost = said.pop("score"), said["cost"]
    if cost == _MARGIN:
        said["cost"] = "confidence"
    elif isinstance(cost, str):  # any other word named a column
        said |= {"cost": 1.0, "cost_column": cost}
    return said


def _deprecated(old: str, new: str) -> None:
    warnings.warn(
        f"{old} is called {new}; the old word goes with 0.3", DeprecationWarning, stacklevel=4
    )
