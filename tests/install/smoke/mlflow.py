"""The flavour is there."""

import sys
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of MLflow, not ours
    import mlflow

    import fairshield.mlflow

assert fairshield.mlflow.load_model
sys.stdout.write(f"MLflow {mlflow.__version__}")
