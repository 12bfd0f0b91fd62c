"""Fairlearn is there, and scikit-learn with it."""

import sys
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the packages below, not ours
    import fairlearn
    import sklearn  # noqa: F401

import fairshield  # noqa: F401

sys.stdout.write(f"Fairlearn {fairlearn.__version__}")
