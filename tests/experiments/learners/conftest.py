"""Fixtures: people of whom one group is favoured, and a short training schedule."""

from __future__ import annotations

import numpy as np
import pytest

from fairshield_experiments.learners import Examples


@pytest.fixture(scope="session")
def biased() -> Examples:
    """People whose outcome follows one merit, higher in group b; features tell the group."""
    rng = np.random.default_rng(0)
    group = (rng.random(2000) < 0.6).astype(np.int8)
    merit = rng.normal(size=2000) + 1.5 * group
    clue = rng.normal(size=2000) + 2 * group
    noise = rng.normal(size=(2000, 4))
    features = np.column_stack((merit, clue, noise)).astype(np.float32)
    return Examples(features, merit + 0.3 * rng.normal(size=2000) > 1, group)
