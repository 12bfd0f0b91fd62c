"""Public import path of :mod:`fairshield.adapters.mlflow`; needs the extra ``mlflow``."""

from fairshield._renamed import NAMES
from fairshield.adapters.mlflow import FLAVOR_NAME as FLAVOR_NAME
from fairshield.adapters.mlflow import ModelReading as ModelReading
from fairshield.adapters.mlflow import ShieldedModel as ShieldedModel
from fairshield.adapters.mlflow import load_model as load_model
from fairshield.adapters.mlflow import log_model as log_model
from fairshield.adapters.mlflow import save_model as save_model
from fairshield.adapters.mlflow.loading import load_pyfunc as _load_pyfunc  # noqa: F401  (MLflow calls it)
from fairshield.base.renamed import old_names

__getattr__ = old_names(__name__, NAMES)
