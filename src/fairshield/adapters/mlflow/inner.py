"""``save_inner`` and ``open_inner`` keep the bare classifier as a model of MLflow."""

from __future__ import annotations

import inspect
import os
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow.models import Model

from fairshield.adapters.scorer import PredictMethod
from fairshield.base.errors import InvalidValueError

_NATIVE = ("xgboost", "lightgbm", "sklearn")
"""Flavours that save models in their own way; the first that knows a class is taken."""


class _Predicts(mlflow.pyfunc.PythonModel):  # type: ignore[misc,name-defined]  # loaded lazily
    """_Predicts makes a model of MLflow of any object with ``predict``."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(
        self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> Any:
        return self.model.predict(model_input)


def save_inner(model: Any, path: Path) -> None:
    """Save a classifier as a model of MLflow, with the flavour made for its class."""
    if isinstance(model, str | os.PathLike | mlflow.pyfunc.PyFuncModel):
        source = mlflow.artifacts.download_artifacts(artifact_uri=_uri(model))
        shutil.copytree(source, path)
        return
    needs = mlflow.pyfunc.get_default_pip_requirements()  # what unpickling needs
    flavour = _flavour(model)
    if flavour is not None:
        save = flavour.save_model
        # Not skops, which trusts few classes by itself.  To use skops, log the classifier first,
        # with the types to trust, and pass its URI as the model.
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


def open_inner(path: Path, predict_method: PredictMethod) -> Any:
    """The classifier with all its methods, where its flavour has more than ``predict``."""
    flavors = () if predict_method == "predict" else Model.load(str(path)).flavors
    for name in (n for n in _NATIVE if n in flavors):
        model = import_module(f"mlflow.{name}").load_model(str(path))
        if hasattr(model, "predict_proba") or hasattr(model, "decision_function"):
            return model
    loaded = mlflow.pyfunc.load_model(str(path))
    try:
        held = loaded.unwrap_python_model()
    except mlflow.MlflowException:  # it is no PythonModel
        return loaded
    return held.model if isinstance(held, _Predicts) else loaded
