"""Import the flavour for MLflow."""

import sys
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings of MLflow itself
    import mlflow

    import fairshield.mlflow

assert fairshield.mlflow.load_model
sys.stdout.write(f"MLflow {mlflow.__version__}")
