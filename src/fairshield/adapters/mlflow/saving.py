"""``save_model`` and ``log_model`` write a classifier and its policy as a model of MLflow."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mlflow
from mlflow.models import Model, ModelSignature, infer_signature
from mlflow.models.model import ModelInfo
from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema

from fairshield._version import __version__
from fairshield.adapters.mlflow.inner import save_inner
from fairshield.adapters.mlflow.loading import (
    FLAVOR_NAME,
    MODEL_FOLDER,
    OPTIONS_FILE,
    POLICY_FILE,
    load_pyfunc,
)
from fairshield.adapters.mlflow.reading import ModelReading
from fairshield.adapters.scorer import PredictMethod
from fairshield.base.counts import Group
from fairshield.base.errors import InvalidValueError
from fairshield.base.groups import Unseen
from fairshield.periodic import PeriodicPolicy, kind_of, load_policy
from fairshield.policy import Policy
from fairshield.policy.artifact import digest_of
from fairshield.spec import Property

_FLAVOUR = "fairshield.mlflow"
"""The module that MLflow saves and loads with."""
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


def save_model(
    model: Any,
    policy: Policy | PeriodicPolicy | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    group: str | Sequence[str],
    features: Sequence[str] | None = None,
    predict_method: PredictMethod = "auto",
    threshold: float | None = None,
    positive: Any = None,
    cost: float | str = 1.0,
    cost_column: str | None = None,
    outcome: str | None = None,
    unseen: Unseen | str | dict[Group, Group] = "refuse",
    signature: ModelSignature | None = None,
    input_example: Any = None,
    pip_requirements: Sequence[str] | None = None,
    extra_pip_requirements: Sequence[str] = (),
    code_paths: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
    mlflow_model: Model | None = None,
    score: PredictMethod | None = None,
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
    group, predict_method, threshold, positive, cost, cost_column, outcome, unseen
        See :class:`ModelReading`.
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
    score
        Deprecated name of ``predict_method``.
    """
    rule = _rule(policy)
    if rule.labelled and outcome is None:
        raise InvalidValueError(
            f"{rule.prop} counts by outcome: name the column that holds it with outcome="
        )
    with TemporaryDirectory() as folder:
        data = Path(folder, "shield")
        data.mkdir()
        inner = data / MODEL_FOLDER
        save_inner(model, inner)
        reading = ModelReading(
            group=(group,) if isinstance(group, str) else tuple(group),
            features=_features(model, inner) if features is None else tuple(features),
            predict_method=predict_method,
            threshold=threshold,
            positive=positive,
            cost=cost,
            cost_column=cost_column,
            outcome=outcome,
            unseen=Unseen.of(unseen).among(rule.groups),
            score=score,
        )
        digest = _put(policy, data / POLICY_FILE)
        options = {"digest": digest, "library": __version__, "reading": reading.to_dict()}
        (data / OPTIONS_FILE).write_text(json.dumps(options, indent=2), encoding="utf-8")
        load_pyfunc(data)  # raises where the model could not be loaded again
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
            loader_module=_FLAVOUR,
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
    policy: Policy | PeriodicPolicy | str | os.PathLike[str],
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
        All keywords of :func:`save_model`, of which ``group`` is needed.
    """
    if "group" not in options:
        raise InvalidValueError("whose decisions are to be fair? Name the column of groups, group=")
    _rule(policy)
    with TemporaryDirectory() as folder:
        # A policy's digest is that of its file.
        file = Path(folder, POLICY_FILE)
        digest = _put(policy, file)
        rule = _rule(file)
        facts, expected = _prefixed(rule, digest), rule.outlook()[0]
        info: ModelInfo = Model.log(
            artifact_path=None,
            flavor=sys.modules[_FLAVOUR],
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
        # Tags, not parameters: a run may log several models, and cannot change a parameter.
        client = mlflow.MlflowClient()
        for key, value in facts.items():
            client.set_tag(info.run_id, key, value)
        client.log_metric(info.run_id, "fairshield.expected_cost", expected, model_id=info.model_id)
    return info


def _rule(policy: Any) -> PeriodicPolicy:
    if isinstance(policy, str | os.PathLike):
        policy = load_policy(policy)
    if isinstance(policy, Property):
        raise InvalidValueError(
            "policy must be a policy or the path of its file, got "
            f"{type(policy).__name__}: make one with fairshield.synthesize"
        )
    return kind_of(policy)


def _put(policy: Policy | PeriodicPolicy | str | os.PathLike[str], path: Path) -> str:
    """Save a policy, or copy its file, to ``path``; returns its digest."""
    if isinstance(policy, str | os.PathLike):
        shutil.copyfile(policy, path)
        return digest_of(path)
    return policy.save(path)


def _facts(policy: PeriodicPolicy, digest: str) -> dict[str, str]:
    """Facts about a policy that are useful without loading it."""
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
    return facts | {name: str(value) for name, value in policy.terms().items()}


def _prefixed(policy: PeriodicPolicy, digest: str) -> dict[str, str]:
    return {f"{FLAVOR_NAME}.{name}": value for name, value in _facts(policy, digest).items()}


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
    # With the compiler: some policies need it to decide, and batches are faster with it.
    ours = f"fairshield[mlflow,synthesis]=={__version__}"
    return list(dict.fromkeys([ours, *filter(None, lines)]))
