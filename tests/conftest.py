"""Hypothesis profiles, and the few specifications that many tests share."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

import fairshield as fs

# The same examples for everybody, every day, so that a failure is of the change at hand.
settings.register_profile("same", deadline=None, max_examples=100, derandomize=True)
# Others every time, and more of them: `make search`.
settings.register_profile("search", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(scope="session")
def even() -> fs.InputModel:
    """The paper's uniform input model: two groups, either proposal, cost 1, outcomes even."""
    return fs.InputModel.agnostic({"a": 0.5, "b": 0.5})


@pytest.fixture(scope="session")
def plain_policy(even: fs.InputModel) -> fs.Policy:
    """Demographic parity over six decisions."""
    return fs.synthesize(fs.DemographicParity("0.25"), even, horizon=6)


@pytest.fixture(scope="session")
def labelled_policy(even: fs.InputModel) -> fs.Policy:
    """Equal opportunity over five decisions."""
    return fs.synthesize(fs.EqualOpportunity("0.25"), even, horizon=5)
