"""Models of MLflow that hold a classifier and its policy: fair wherever they are loaded.

The functions are those of MLflow's own flavours: :func:`save_model`, :func:`log_model` and
:func:`load_model`.  A model that :func:`mlflow.pyfunc.load_model` loads returns shielded decisions.
The policy is stored beside the classifier as a ``.shield`` file with its digest; nothing of this
library is pickled.

Needs the extra ``mlflow``.
"""

from __future__ import annotations

import warnings

from fairshield.base.extras import check_installed

check_installed("fairshield.mlflow", "mlflow", "pandas", extra="mlflow")

with warnings.catch_warnings():
    # When it is imported, MLflow warns about types of its own.
    warnings.simplefilter("ignore", UserWarning)
    import mlflow.pyfunc as _pyfunc  # noqa: F401  (first, before what uses it)

from fairshield.adapters.mlflow.loading import FLAVOR_NAME as FLAVOR_NAME
from fairshield.adapters.mlflow.loading import load_model as load_model
from fairshield.adapters.mlflow.model import ShieldedModel as ShieldedModel
from fairshield.adapters.mlflow.reading import ModelReading as ModelReading
from fairshield.adapters.mlflow.saving import log_model as log_model
from fairshield.adapters.mlflow.saving import save_model as save_model
