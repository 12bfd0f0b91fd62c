"""``load_model`` loads a shielded model from a folder or URI, and checks its policy."""

from __future__ import annotations

import json
import os
from pathlib import Path

import mlflow
from mlflow.models import Model

from fairshield.adapters.mlflow.inner import open_inner
from fairshield.adapters.mlflow.model import Served, ShieldedModel
from fairshield.adapters.mlflow.reading import ModelReading
from fairshield.base.errors import ArtifactError, InvalidValueError
from fairshield.periodic import load_policy
from fairshield.policy.artifact import digest_of

FLAVOR_NAME = "fairshield"
POLICY_FILE, MODEL_FOLDER, OPTIONS_FILE = "policy.shield", "model", "shield.json"


def load_model(model_uri: str, dst_path: str | None = None) -> ShieldedModel:
    """The shielded model at a URI or in a folder, at the beginning of a stream."""
    local = mlflow.artifacts.download_artifacts(artifact_uri=model_uri, dst_path=dst_path)
    flavors = Model.load(local).flavors
    if FLAVOR_NAME not in flavors:
        raise InvalidValueError(
            f"{model_uri} is not a shielded model: its flavours are {', '.join(flavors)}"
        )
    return load_pyfunc(os.path.join(local, flavors[FLAVOR_NAME]["data"])).python_model


def load_pyfunc(path: str | os.PathLike[str]) -> Served:
    """The model that :func:`mlflow.pyfunc.load_model` returns; MLflow calls this function."""
    folder = Path(path)
    options = json.loads((folder / OPTIONS_FILE).read_text(encoding="utf-8"))
    policy = load_policy(folder / POLICY_FILE)
    found = digest_of(folder / POLICY_FILE)
    if found != options["digest"]:
        raise ArtifactError(
            f"{folder / POLICY_FILE} is not the policy the model was saved with: its digest is "
            f"{found}, not {options['digest']}; restore the file or log the model again"
        )
    reading = ModelReading.from_dict(options["reading"])
    model = open_inner(folder / MODEL_FOLDER, reading.predict_method)
    return Served(ShieldedModel(model, policy, reading))
