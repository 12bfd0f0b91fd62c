"""From a folder to a shielded model, its policy checked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import mlflow
from mlflow.models import Model

from fairshield.artifact import digest_of
from fairshield.errors import ArtifactError, InvalidValueError
from fairshield.mlflow.inner import open_inner
from fairshield.mlflow.model import Served, ShieldedModel
from fairshield.mlflow.reading import Reading
from fairshield.periodic import load_policy

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
    return Served(ShieldedModel(open_inner(folder / MODEL_FOLDER, reading.score), policy, reading))
