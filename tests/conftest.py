"""Settings of Hypothesis (see ``effort``), and specifications that many tests share."""

from __future__ import annotations

import pytest
from effort import PROFILE, examples
from hypothesis import settings

import fairshield as fs

# Examples are the same in every run of the same tests, so that a new failure is caused by the last
# change.  Only a search draws others, and prints how to reproduce them.
search = PROFILE == "search"
settings.register_profile(
    PROFILE, deadline=None, max_examples=examples(100), derandomize=not search, print_blob=search
)
settings.load_profile(PROFILE)

# Scripts for the version that writes files use names that later versions may not have; among the
# files is code.
collect_ignore = ["compat/make_fixtures.py", "compat/fixture_policies.py", "compat/files"]


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
