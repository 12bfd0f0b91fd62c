"""Fixture: the raw data sets; tests that need them skip where they are missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_directory() -> Path:
    """The directory with the raw files."""
    directory = os.environ.get("FAIRSHIELD_DATA")
    if not directory:
        pytest.skip("FAIRSHIELD_DATA names no directory with the raw data sets")
    return Path(directory)
