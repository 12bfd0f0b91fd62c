"""ShieldedModel decides the rows that its classifier scores, in one stream."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairshield.adapters.mlflow.reading import ModelReading
from fairshield.adapters.scorer import Scorer
from fairshield.base.errors import FairshieldError, InvalidValueError
from fairshield.periodic import PeriodicPolicy, Run
from fairshield.policy import Policy
from fairshield.runtime.shield import Batch


class ShieldedModel:
    """ShieldedModel passes a classifier's proposals through the stream of decisions of a policy.

    Calls to :meth:`predict` go on in one stream, in order of arrival, whatever thread they come
    from.  A process has its own stream, which ends with it.

    Examples
    --------
    >>> import pandas as pd
    >>> import fairshield as fs
    >>> class Rule:
    ...     def predict(self, frame):
    ...         return frame["income"] > 50
    >>> inputs = fs.InputModel.agnostic({"f": 0.5, "m": 0.5})
    >>> policy = fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=4)
    >>> model = ShieldedModel(Rule(), policy, ModelReading(group=("sex",)))
    >>> people = pd.DataFrame({"income": [60, 70, 40], "sex": ["m", "m", "f"]})
    >>> model.predict(people)[["accepted", "proposed", "window", "position"]]
       accepted  proposed  window  position
    0      True      True       0         0
    1      True      True       0         1
    2      True     False       0         2
    >>> model.predict(people).position.tolist()
    [3, 0, 1]
    """

    def __init__(self, model: Any, policy: Policy | PeriodicPolicy, reading: ModelReading) -> None:
        self.scorer = Scorer.of(model, reading.rule, reading.predict_method)
        self.model = model
        self.policy = policy
        self.reading = reading
        self.stream = self._new_stream()
        self._lock = threading.Lock()

    def predict(self, frame: Any, params: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """Decide the rows of a frame, all or, on an error, none.

        Parameters
        ----------
        frame
            Features and groups, and costs and outcomes if they are in columns.
        params
            ``stream``: ``"continue"`` (default) goes on in :attr:`stream`; ``"new"`` decides the
            rows in a stream of their own and leaves :attr:`stream` as it is.  ``reasons``: whether
            to say why, of each that was overruled or is of an unseen group; default true.

        Returns
        -------
        pandas.DataFrame
            By row: ``accepted``, ``proposed``, ``overruled``, ``cost`` of overruling, what was
            ``paid``, ``window``, ``position`` in it, and the ``reason``.
        """
        stream, reasons = _checked_params(params)
        rows = _as_frame(frame)
        proposed, of_scores = self._proposals(rows)
        cost = self.reading.costs(rows, of_scores)
        asked = (self.reading.groups(rows), proposed, cost, self.reading.outcomes(rows))
        if stream == "new":
            answers = self._new_stream().decide_many(*asked, reasons=reasons)
        else:
            with self._lock:
                answers = self.stream.decide_many(*asked, reasons=reasons)
        return _told(answers, proposed, cost, rows.index)

    def _proposals(self, rows: pd.DataFrame) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        if not len(rows):  # many classifiers refuse an empty frame
            return np.empty(0, np.bool_), np.empty(0)
        answers = self.scorer.ask(self.model, self.reading.seen_by_model(rows))
        scores = self.scorer.scores(answers)
        if len(scores) != len(rows):
            raise InvalidValueError(
                f"{self.scorer.method} gave an array of shape {answers.shape} for {len(rows)} "
                "rows: one score or label a row is needed"
            )
        return self.scorer.proposals(scores)

    def _new_stream(self) -> Run:
        return Run(self.policy, unseen=self.reading.unseen)


class Served:
    """Served is a shielded model as MLflow calls it; MLflow passes the text of its errors on."""

    def __init__(self, model: ShieldedModel) -> None:
        self.python_model = model  # the name that unwrap_python_model looks for

    def get_raw_model(self) -> ShieldedModel:
        """The model without MLflow around it."""
        return self.python_model

    def predict(self, frame: Any, params: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """See :meth:`ShieldedModel.predict`."""
        try:
            return self.python_model.predict(frame, params)
        except FairshieldError as error:
            # The scoring server passes on the text of this error; of any other it says nothing.
            raise mlflow.MlflowException.invalid_parameter_value(str(error)) from error


def _checked_params(params: Mapping[str, Any] | None) -> tuple[str, bool]:
    given = {"stream": "continue", "reasons": True, **(params or {})}
    stream = given["stream"]
    if stream not in ("continue", "new"):
        raise InvalidValueError(f"params: stream must be 'continue' or 'new', got {stream!r}")
    return stream, bool(given["reasons"])


def _as_frame(given: Any) -> pd.DataFrame:
    if isinstance(given, pd.DataFrame):
        return given
    if isinstance(given, Mapping):
        return pd.DataFrame(given)
    raise InvalidValueError(
        f"predictions are made for a data frame with named columns, got {type(given).__name__}"
    )


def _told(
    answers: Batch, proposed: NDArray[np.bool_], cost: NDArray[np.float64], index: pd.Index
) -> pd.DataFrame:
    reasons = [None] * len(proposed) if answers.reasons is None else list(answers.reasons)
    return pd.DataFrame(
        {
            "accepted": answers.accepted,
            "proposed": proposed,
            "overruled": answers.overruled,
            "cost": cost,
            "paid": answers.paid,
            "window": answers.window,
            "position": answers.position,
            "reason": pd.Series(reasons, index=index, dtype=object),
        },
        index=index,
    )
