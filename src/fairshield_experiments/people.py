"""The people of a simulation: their groups, outcomes and scores."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairshield.records import ScoreRule

RULE = ScoreRule(threshold=0.5)
"""What a score proposes, and how confidently."""


@dataclass(frozen=True, eq=False)
class People:
    """People holds group (0: a, 1: b), outcome and score of each, in arrays of any one shape."""

    group: NDArray[np.int8]
    target: NDArray[np.bool_]
    score: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.group)

    def take(self, who: NDArray[np.int64]) -> People:
        """These people, in the shape of ``who``."""
        return People(self.group[who], self.target[who], self.score[who])

    @property
    def proposed(self) -> NDArray[np.bool_]:
        """``(n,)``: whether the classifier proposes acceptance."""
        return RULE.many(self.score)[0]

    @property
    def confidence(self) -> NDArray[np.float64]:
        """``(n,)``: distance of the score from the threshold."""
        return RULE.many(self.score)[1]


@dataclass(frozen=True, eq=False, kw_only=True)
class Scored:
    """Scored is an environment with the scores of one classifier.

    Attributes
    ----------
    training
        Whom the classifier was fitted to: input models are learned from them.
    held_out
        Everybody else: runs are drawn from them.
    cross_fitted
        Whether the scores of the training part are out of fold: each is of a classifier that was
        fitted to others of that part.
    """

    environment: str
    learner: str
    training: People
    held_out: People
    cross_fitted: bool = False

    def with_out_of_fold(self, scores: NDArray[np.float64]) -> Scored:
        """The same people; those of the training part have these scores, which are out of fold."""
        return replace(self, training=replace(self.training, score=scores), cross_fitted=True)
