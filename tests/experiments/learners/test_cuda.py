"""The same learners on a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairshield_experiments.learners import LEARNERS, Examples, Schedule

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.mark.parametrize("name", list(LEARNERS))
def test_a_seed_gives_the_same_scores_and_they_are_about_as_good(
    name: str, biased: Examples
) -> None:
    # All five are dataclasses; a learner need not be one.
    learner: Any = replace(LEARNERS[name], schedule=Schedule(steps=150))  # type: ignore[type-var]

    def scores(device: str) -> Any:
        return replace(learner, device=device).fit(biased, seed=0).scores(biased.features)

    once, again, on_cpu = scores("cuda"), scores("cuda"), scores("cpu")
    assert np.array_equal(once, again)
    right = [np.mean((found > 0.5) == biased.target) for found in (once, on_cpu)]
    assert right[0] == pytest.approx(right[1], abs=0.1)
