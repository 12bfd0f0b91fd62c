"""Shielded models of MLflow: a classifier and its policy in one model, fair wherever it is loaded.

A flavour like those of MLflow: :func:`save_model`, :func:`log_model`, :func:`load_model`, and
:func:`mlflow.pyfunc.load_model` serves the decisions.  The policy lies beside the classifier as a
``.shield`` file with its digest; nothing of this library is pickled.

Needs the extra ``mlflow``.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import shutil
import sys
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fairshield._version import __version__
from fairshield.artifact import digest_of
from fairshield.counts import Group
from fairshield.errors import (
    ArtifactError,
    FairshieldError,
    InvalidValueError,
    MissingExtraError,
)
from fairshield.groups import Unseen, intersection
from fairshield.inputs.columns import flags
from fairshield.periodic import PeriodicPolicy, load_policy
from fairshield.stream import Answers, AnyPolicy, Stream

_MISSING = [name for name in ("mlflow", "pandas") if find_spec(name) is None]
if _MISSING:
    raise MissingExtraError(
        f"fairshield.mlflow needs {' and '.join(_MISSING)}: pip install 'fairshield[mlflow]'"
    )

import mlflow
import pandas as pd

with warnings.catch_warnings():
    # MLflow warns, as it is loaded, of a type of its own.
    warnings.filterwarnings("ignore", ".*Any type hint is inferred as AnyType", UserWarning)
    import mlflow.pyfunc

from mlflow.models import Model, ModelSignature, infer_signature
from mlflow.models.model import ModelInfo
from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema

FLAVOR_NAME = "fairshield"
POLICY_FILE, MODEL_FOLDER, OPTIONS_FILE = "policy.shield", "model", "shield.json"
MARGIN = "margin"
"""``cost``: how far the score is from the threshold, the classifier's confidence."""
Score = Literal["auto", "predict_proba", "decision_function", "predict"]

_NATIVE = ("xgboost", "lightgbm", "sklearn")
"""Flavours whose models are saved in their own way; a class of two is of the first."""
_PARAMS = ParamSchema([
    ParamSpec("stream", DataType.string, "continue"),
    ParamSpec("reasons", DataType.boolean, True),
])  # fmt: skip
_OUTPUTS = Schema([
    ColSpec(DataType.boolean, "accepted"),
    ColSpec(DataType.boolean, "proposed"),
    ColSpec(DataType.boolean, "overruled"),
    ColSpec(DataType.double, "cost"),
    ColSpec(DataType.double, "paid"),
    ColSpec(DataType.long, "window"),
    ColSpec(DataType.long, "position"),
    ColSpec(DataType.string, "reason", required=False),
])  # fmt: skip


# Reading a frame ----------------------------------------------------------------------------


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
        The label that means acceptance; default: the second of two classes, or 1, true, yes.
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
        if not self.group:
            raise InvalidValueError("group names no column: it is the sensitive column, or several")
        if self.score not in get_args(Score):
            raise InvalidValueError(
                f"score must be one of {', '.join(get_args(Score))}, got {self.score!r}"
            )
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise InvalidValueError(f"threshold must be a finite number, got {self.threshold!r}")

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
            return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
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


def _method(model: Any, score: Score) -> str:
    if score == "auto":
        return next((m for m in get_args(Score)[1:] if hasattr(model, m)), "predict")
    if not hasattr(model, score):
        raise InvalidValueError(
            f"the model, a {type(model).__name__}, has no {score}: choose another score"
        )
    return score


def _proposals(
    model: Any, reading: Reading, features: pd.DataFrame
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """What the classifier proposes for each row, and how far its score is from the threshold."""
    method = _method(model, reading.score)
    answer = np.asarray(getattr(model, method)(features))
    if method == "predict":
        scores = _predicted(answer, reading.positive, len(features))
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
        threshold = 0.0 if method == "decision_function" else 0.5
    return scores >= threshold, np.abs(scores - threshold)


def _of_positive(answer: NDArray[Any], classes: Any, positive: Any) -> NDArray[np.float64]:
    """Scores of the positive class."""
    known = [0, 1] if classes is None else np.asarray(classes).tolist()
    if positive is None and len(known) == 2:
        positive = known[1]
    if positive not in known:
        raise InvalidValueError(
            f"positive is {positive!r}, the model's classes are {known}: name the one that means "
            "acceptance"
        )
    at = known.index(positive)
    if answer.ndim == 2:
        return np.asarray(answer[:, at], np.float64)
    return np.asarray(answer if at else -answer, np.float64)


def _predicted(answer: NDArray[Any], positive: Any, rows: int) -> NDArray[np.float64]:
    """Labels as 0 and 1, and scores as they are."""
    if answer.ndim == 2 and answer.shape[1] in (1, 2):
        answer = answer[:, -1]  # of two columns of probabilities, the second is of acceptance
    if positive is not None:
        return np.asarray(answer == positive, np.float64)
    if answer.dtype.kind in "biuf":
        return answer.astype(np.float64)
    return flags(answer, "predictions", rows).astype(np.float64)


# The model ----------------------------------------------------------------------------------


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
        _method(model, reading.score)
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
            to say why, of each that was overruled; default true.

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
        return _proposals(self.model, self.reading, self.reading.seen_by_model(rows))

    def _new_stream(self) -> Stream:
        return Stream(self.policy, unseen=self.reading.unseen)


class _Served:
    """What MLflow calls: a shielded model whose complaints reach whoever sent the request."""

    def __init__(self, model: ShieldedModel) -> None:
        self.python_model = model  # the name that unwrap_python_model looks for

    def get_raw_model(self) -> ShieldedModel:
        return self.python_model

    def predict(self, frame: Any, params: Mapping[str, Any] | None = None) -> pd.DataFrame:
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


# Saving -------------------------------------------------------------------------------------


def save_model(
    model: Any,
    policy: AnyPolicy | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    group: str | Sequence[str],
    features: Sequence[str] | None = None,
    score: Score = "auto",
    threshold: float | None = None,
    positive: Any = None,
    cost: float | str = 1.0,
    outcome: str | None = None,
    unseen: Unseen | str | dict[Group, Group] = "refuse",
    signature: ModelSignature | None = None,
    input_example: Any = None,
    pip_requirements: Sequence[str] | None = None,
    extra_pip_requirements: Sequence[str] = (),
    code_paths: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
    mlflow_model: Model | None = None,
) -> None:
    """Save a classifier and a policy as one model of MLflow.

    Parameters
    ----------
    model
        A fitted classifier of scikit-learn, XGBoost or LightGBM; any object with
        ``predict``; a :class:`mlflow.pyfunc.PythonModel`; or a model that MLflow has already: its
        URI, its folder, or what :func:`mlflow.pyfunc.load_model` returned.
    policy
        For one window or periodic, or the path of its file.
    path
        A new folder.
    group, score, threshold, positive, cost, outcome, unseen
        See :class:`Reading`.
    features
        Default: the columns the classifier was fitted to, if it knows them, else all but those
        that are named for something else.
    signature, input_example
        Of the input: features, groups, and costs and outcomes if they are in columns.  Output and
        inference parameters are always those of :meth:`ShieldedModel.predict`.
    pip_requirements, extra_pip_requirements
        Default: this library, and what the classifier needs.
    code_paths, metadata, mlflow_model
        As of MLflow's own flavours.
    """
    rule = load_policy(policy) if isinstance(policy, str | os.PathLike) else policy
    if rule.labelled and outcome is None:
        raise InvalidValueError(
            f"{rule.prop} counts by outcome: name the column that holds it with outcome="
        )
    with TemporaryDirectory() as folder:
        data = Path(folder, "shield")
        data.mkdir()
        inner = data / MODEL_FOLDER
        _save_inner(model, inner)
        reading = Reading(
            group=(group,) if isinstance(group, str) else tuple(group),
            features=_features(model, inner) if features is None else tuple(features),
            score=score,
            threshold=threshold,
            positive=positive,
            cost=cost,
            outcome=outcome,
            unseen=Unseen.of(unseen).among(rule.groups),
        )
        digest = _put(policy, data / POLICY_FILE)
        options = {"digest": digest, "library": __version__, "reading": reading.to_dict()}
        (data / OPTIONS_FILE).write_text(json.dumps(options, indent=2), encoding="utf-8")
        _load_pyfunc(data)  # what cannot be loaded is not worth saving
        made = Model() if mlflow_model is None else mlflow_model
        made.add_flavor(
            FLAVOR_NAME,
            data=f"data/{data.name}",
            policy=f"data/{data.name}/{POLICY_FILE}",
            **_facts(rule, digest),
        )
        made.signature = _signature(signature, input_example)
        mlflow.pyfunc.save_model(
            os.fspath(path),
            loader_module=__name__,
            data_path=str(data),
            mlflow_model=made,
            input_example=input_example,
            pip_requirements=(
                [*_requirements(inner), *extra_pip_requirements]
                if pip_requirements is None
                else list(pip_requirements)
            ),
            code_paths=code_paths,
            metadata={**(made.metadata or {}), **(metadata or {}), **_prefixed(rule, digest)},
        )


def log_model(
    model: Any,
    policy: AnyPolicy | str | os.PathLike[str],
    *,
    name: str = "shielded",
    registered_model_name: str | None = None,
    await_registration_for: int | None = 300,
    tags: Mapping[str, Any] | None = None,
    **options: Any,
) -> ModelInfo:
    """Log a classifier and a policy as one model of MLflow; returns what MLflow knows of it.

    What the policy enforces, its horizon and its digest become parameters and tags of the logged
    model and of its registered version, and tags of the active run; its expected cost becomes a
    metric of the run.

    Parameters
    ----------
    model, policy
        As for :func:`save_model`.
    name
        Of the logged model.
    registered_model_name, await_registration_for, tags
        As of MLflow's own flavours.
    options
        All keywords of :func:`save_model`.
    """
    with TemporaryDirectory() as folder:
        # A policy's digest is that of its file.
        file = Path(folder, POLICY_FILE)
        digest = _put(policy, file)
        rule = load_policy(file)
        facts, expected = _prefixed(rule, digest), _expected_cost(rule)
        info: ModelInfo = Model.log(
            artifact_path=None,
            flavor=sys.modules[__name__],
            name=name,
            registered_model_name=registered_model_name,
            await_registration_for=await_registration_for,
            params={**facts, "fairshield.expected_cost": expected},
            tags={**facts, **(tags or {})},
            model=model,
            policy=file,
            **options,
        )
    if info.run_id is not None:
        # Tags: a run has one value of a parameter for ever, and may log several models.
        client = mlflow.MlflowClient()
        for key, value in facts.items():
            client.set_tag(info.run_id, key, value)
        client.log_metric(info.run_id, "fairshield.expected_cost", expected, model_id=info.model_id)
    return info


def _put(policy: AnyPolicy | str | os.PathLike[str], path: Path) -> str:
    """A policy, or a copy of its file, at ``path``; returns its digest."""
    if isinstance(policy, str | os.PathLike):
        shutil.copyfile(policy, path)
        return digest_of(path)
    return policy.save(path)


def _facts(policy: AnyPolicy, digest: str) -> dict[str, str]:
    """What is worth knowing of a policy without loading it."""
    facts = {
        "property": str(policy.prop),
        "kind": policy.prop.kind,
        "groups": ", ".join(map(str, policy.groups)),
        "digest": digest,
        "version": __version__,
    }
    bound = policy.prop.to_dict().get("bound")
    if bound is not None:
        facts["bound"] = str(bound)
    if isinstance(policy, PeriodicPolicy):
        return facts | {"periodic": policy.kind, "period": str(policy.period)}
    return facts | {"horizon": str(policy.horizon)}


def _prefixed(policy: AnyPolicy, digest: str) -> dict[str, str]:
    return {f"{FLAVOR_NAME}.{name}": value for name, value in _facts(policy, digest).items()}


def _expected_cost(policy: AnyPolicy) -> float:
    """Of one window; of a periodic policy, of its first plan."""
    if isinstance(policy, PeriodicPolicy):
        return policy.outlook()[0]
    return policy.expected_cost


def _signature(given: ModelSignature | None, example: Any) -> ModelSignature:
    inputs = None if given is None else given.inputs
    if inputs is None and example is not None:
        rows = example[0] if isinstance(example, tuple) else example
        inputs = infer_signature(rows).inputs
    return ModelSignature(inputs=inputs, outputs=_OUTPUTS, params=_PARAMS)


def _features(model: Any, saved: Path) -> tuple[str, ...] | None:
    """The columns that a classifier was fitted to, or was logged with."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        signature = Model.load(str(saved)).signature
        schema = None if signature is None else signature.inputs
        names = schema.input_names() if schema is not None and schema.has_input_names() else None
    return None if names is None else tuple(str(name) for name in names)


def _requirements(saved: Path) -> list[str]:
    listed = saved / "requirements.txt"
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
    return list(dict.fromkeys([f"fairshield[mlflow]=={__version__}", *filter(None, lines)]))


# The classifier as a model of its own -------------------------------------------------------


class _Predicts(mlflow.pyfunc.PythonModel):  # type: ignore[misc,name-defined]  # loaded lazily
    """Any object with ``predict``, as a model of MLflow."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(
        self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> Any:
        return self.model.predict(model_input)


def _save_inner(model: Any, path: Path) -> None:
    """A classifier as a model of MLflow, by the flavour made for it."""
    if isinstance(model, str | os.PathLike | mlflow.pyfunc.PyFuncModel):
        source = mlflow.artifacts.download_artifacts(artifact_uri=_uri(model))
        shutil.copytree(source, path)
        return
    needs = mlflow.pyfunc.get_default_pip_requirements()  # what unpickling needs
    flavour = _flavour(model)
    if flavour is not None:
        save = flavour.save_model
        # Skops knows few classes by itself.  Whoever wants it logs the classifier first, with the
        # types that are trusted, and gives its URI.
        pickled = "serialization_format" in inspect.signature(save).parameters
        more = {"serialization_format": "cloudpickle"} if pickled else {}
        needs = [*flavour.get_default_pip_requirements(), *needs]
        save(model, str(path), pip_requirements=needs, **more)
        return
    if not hasattr(model, "predict"):
        raise InvalidValueError(
            f"a model needs predict, which a {type(model).__name__} does not have; a model that "
            "MLflow has is named by its URI"
        )
    own = isinstance(model, mlflow.pyfunc.PythonModel)
    mlflow.pyfunc.save_model(
        str(path), python_model=model if own else _Predicts(model), pip_requirements=needs
    )


def _uri(model: Any) -> str:
    if isinstance(model, mlflow.pyfunc.PyFuncModel):
        if model.model_id is None:
            raise InvalidValueError("the model was loaded from a folder: give the folder instead")
        return f"models:/{model.model_id}"
    return str(os.fspath(model))


def _flavour(model: Any) -> Any:
    made_by = {cls.__module__.partition(".")[0] for cls in type(model).__mro__}
    name = next((name for name in _NATIVE if name in made_by), None)
    return None if name is None else import_module(f"mlflow.{name}")


def _open_inner(path: Path, score: Score) -> Any:
    """The classifier with all its methods, where its flavour has more than ``predict``."""
    for name in (n for n in _NATIVE if n in Model.load(str(path)).flavors and score != "predict"):
        model = import_module(f"mlflow.{name}").load_model(str(path))
        if hasattr(model, "predict_proba") or hasattr(model, "decision_function"):
            return model
    loaded = mlflow.pyfunc.load_model(str(path))
    held = getattr(loaded._model_impl, "python_model", None)
    return held.model if isinstance(held, _Predicts) else loaded


# Loading ------------------------------------------------------------------------------------


def load_model(model_uri: str, dst_path: str | None = None) -> ShieldedModel:
    """The shielded model at a URI or in a folder, at the beginning of a stream."""
    local = mlflow.artifacts.download_artifacts(artifact_uri=model_uri, dst_path=dst_path)
    flavors = Model.load(local).flavors
    if FLAVOR_NAME not in flavors:
        raise InvalidValueError(
            f"{model_uri} is not a shielded model: its flavours are {', '.join(flavors)}"
        )
    return _load_pyfunc(os.path.join(local, flavors[FLAVOR_NAME]["data"])).python_model


def _load_pyfunc(path: str | os.PathLike[str]) -> _Served:
    """Called by :func:`mlflow.pyfunc.load_model`."""
    folder = Path(path)
    options = json.loads((folder / OPTIONS_FILE).read_text(encoding="utf-8"))
    policy = load_policy(folder / POLICY_FILE)
    found = digest_of(folder / POLICY_FILE)
    if found != options["digest"]:
        raise ArtifactError(
            f"{folder / POLICY_FILE} is not the policy the model was saved with: its digest is "
            f"{found}, not {options['digest']}; restore the file or log the model again"
        )
    reading = Reading.from_dict(options["reading"])
    return _Served(
        ShieldedModel(_open_inner(folder / MODEL_FOLDER, reading.score), policy, reading)
    )
