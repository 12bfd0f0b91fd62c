"""Learner fits a classifier to people with known outcomes; Classifier scores others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import fairshield as fs


@dataclass(frozen=True, eq=False)
class Examples:
    """Examples holds people with known outcomes.

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

    def __len__(self) -> int:
        return len(self.target)

    def check(self) -> None:
        """Raise if columns differ in length, or lack an outcome, a group or a finite number."""
        n = len(self.target)
        if self.features.ndim != 2 or len(self.features) != n or len(self.group) != n:
            raise fs.InvalidValueError(
                f"features, target and group must have one row per person, got shapes "
                f"{self.features.shape}, {self.target.shape} and {self.group.shape}"
            )
        for name, column, values in (("target", self.target, "01"), ("group", self.group, "ab")):
            if not set(np.unique(column).tolist()) <= {0, 1}:
                raise fs.InvalidValueError(
                    f"{name} must be 0 or 1, got {np.unique(column).tolist()[:5]}"
                )
            counts = np.bincount(np.asarray(column, dtype=np.intp), minlength=2)
            if counts.min() == 0:
                raise fs.InvalidValueError(
                    f"nobody among the {n} people has {name} {values[int(counts.argmin())]}, and "
                    "both must occur: train on more people, or split with another seed"
                )
        if not np.isfinite(self.features).all():
            raise fs.InvalidValueError(
                "features must be finite numbers, got nan or infinity: fill or drop them first"
            )


class Classifier(Protocol):
    """Classifier is a fitted learner."""

    def scores(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """``(n,)``: probability, or confidence in [0, 1], that the outcome is 1."""


class Learner(Protocol):
    """Learner makes classifiers; the result is determined by the examples and ``seed``."""

    def fit(self, examples: Examples, *, seed: int) -> Classifier:
        """A classifier fitted to ``examples``."""
