"""Shielded models of MLflow: a classifier and its policy in one model, fair wherever it is loaded.

A flavour like those of MLflow: :func:`save_model`, :func:`log_model`, :func:`load_model`, and
:func:`mlflow.pyfunc.load_model` serves the decisions.  The policy lies beside the classifier as a
``.shield`` file with its digest; nothing of this library is pickled.

Needs the extra ``mlflow``.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec

from fairshield.errors import MissingExtraError

_MISSING = [name for name in ("mlflow", "pandas") if find_spec(name) is None]
if _MISSING:
    raise MissingExtraError(
        f"fairshield.mlflow needs {' and '.join(_MISSING)}: pip install 'fairshield[mlflow]'"
    )

with warnings.catch_warnings():
    # MLflow warns, as it is loaded, of a type of its own.
    warnings.filterwarnings("ignore", ".*Any type hint is inferred as AnyType", UserWarning)
    import mlflow.pyfunc as _pyfunc  # noqa: F401  (first, before what uses it)

from fairshield.mlflow.loading import FLAVOR_NAME as FLAVOR_NAME
from fairshield.mlflow.loading import load_model as load_model
from fairshield.mlflow.loading import load_pyfunc as _load_pyfunc  # noqa: F401  (MLflow calls it)
from fairshield.mlflow.model import ShieldedModel as ShieldedModel
from fairshield.mlflow.reading import Reading as Reading
from fairshield.mlflow.saving import log_model as log_model
from fairshield.mlflow.saving import save_model as save_model
