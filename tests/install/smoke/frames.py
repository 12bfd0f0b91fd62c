"""What frames are read with is there."""

import sys

import narwhals

import fairshield  # noqa: F401

sys.stdout.write(f"narwhals {narwhals.__version__}")
