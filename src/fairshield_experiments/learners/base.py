"""What a learner is: something that fits people with known outcomes and scores others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Examples:
    """People with known outcomes.

    Attributes
    ----------
    features
        ``(n, d)``, encoded: one-hot and standardised; the sensitive attribute is not among them.
    target
        ``(n,)``: whether the outcome is 1.
    group
        ``(n,)``: 0 for group a, 1 for b; known in training, not used for scoring.
    """

    features: NDArray[np.float32]
    target: NDArray[np.bool_]
    group: NDArray[np.int8]


class Classifier(Protocol):
    """A fitted learner."""

    def scores(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """``(n,)``: probability, or confidence in [0, 1], that the outcome is 1."""


class Learner(Protocol):
    """How a classifier is made; deterministic given ``seed``."""

    def fit(self, examples: Examples, *, seed: int) -> Classifier:
        """A classifier fitted to ``examples``."""
