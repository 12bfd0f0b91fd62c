"""MLflow is there, and what it hands to a model."""

import sys
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the packages below, not ours
    import mlflow
    import narwhals  # noqa: F401
    import pandas  # noqa: F401

import fairshield  # noqa: F401

sys.stdout.write(f"MLflow {mlflow.__version__}")
