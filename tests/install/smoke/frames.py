"""Import the module for frames, and check its error for what is no frame."""

import sys

import narwhals

import fairshield as fs
from fairshield.base.errors import FairshieldError

policy = fs.synthesize(
    fs.DemographicParity("0.5"), fs.InputModel.agnostic({"a": 0.5, "b": 0.5}), horizon=2,
    backend="reference",
)  # fmt: skip
try:
    fs.shield_frame([1, 2], policy, group="group", proposed="proposed")
except (FairshieldError, TypeError):
    sys.stdout.write(f"narwhals {narwhals.__version__}")
else:
    raise AssertionError("a list is no frame")
