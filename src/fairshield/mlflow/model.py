"""A classifier and the stream of decisions about whom it is asked."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairshield.errors import FairshieldError, InvalidValueError
from fairshield.mlflow.reading import Reading, check_asked, proposals
from fairshield.stream import Answers, AnyPolicy, Stream


class ShieldedModel:
    """A classifier and a stream of decisions about whom it is asked.

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
    >>> model = ShieldedModel(Rule(), policy, Reading(group=("sex",)))
    >>> people = pd.DataFrame({"income": [60, 70, 40], "sex": ["m", "m", "f"]})
    >>> model.predict(people)[["accepted", "proposed", "window", "position"]]
       accepted  proposed  window  position
    0      True      True       0         0
    1      True      True       0         1
    2      True     False       0         2
    >>> model.predict(people).position.tolist()
    [3, 0, 1]
    """

    def __init__(self, model: Any, policy: AnyPolicy, reading: Reading) -> None:
        check_asked(model, reading)
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
        proposed, margin = self._proposals(rows)
        cost = self.reading.costs(rows, margin)
        asked = (self.reading.groups(rows), proposed, cost, self.reading.outcomes(rows))
        if stream == "new":
            answers = self._new_stream().decide_many(*asked, reasons=reasons)
        else:
            with self._lock:
                answers = self.stream.decide_many(*asked, reasons=reasons)
        return _told(answers, proposed, cost, rows.index)

    def _proposals(self, rows: pd.DataFrame) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        if not len(rows):  # which many a classifier refuses
            return np.empty(0, np.bool_), np.empty(0)
        return proposals(self.model, self.reading, self.reading.seen_by_model(rows))

    def _new_stream(self) -> Stream:
        return Stream(self.policy, unseen=self.reading.unseen)


class Served:
    """What MLflow calls: a shielded model whose complaints reach whoever sent the request."""

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
            # Of any other error the scoring server says only that it was unexpected.
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
    answers: Answers, proposed: NDArray[np.bool_], cost: NDArray[np.float64], index: pd.Index
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
