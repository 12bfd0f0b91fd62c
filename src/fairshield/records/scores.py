"""ScoreRule: which proposal a classifier's score stands for, and what overruling it costs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fairshield.base.errors import InvalidValueError, argument
from fairshield.records.values import as_score, as_threshold

Floats = NDArray[np.float64]
ScoreCost = Literal["confidence", "constant"]
"""How overruling is priced: the distance of the score from the threshold, or 1."""
PROBABILITY_THRESHOLD = 0.5
"""The threshold of scores between 0 and 1 where none is given."""
SCORE_LEVELS = 10
"""Cost levels of an input model that is estimated from scores, where no other number is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRule:
    """ScoreRule turns a score into a proposal and the cost of overruling it.

    Attributes
    ----------
    threshold
        A score of at least this proposes to accept.  ``None`` is 0.5 for scores between 0 and 1;
        other scores need a threshold.
    cost
        Price of overruling: ``"confidence"``, the distance of the score from the threshold, or
        ``"constant"``, 1.
    positive
        The label that means acceptance; ``None`` is the second of two labels.  Where labels are
        text, the order is that of the alphabet, and :meth:`settled` warns.

    Examples
    --------
    >>> ScoreRule(threshold=640).one(655.5)
    (True, 15.5)
    >>> ScoreRule(cost="constant").one("0.3")
    (False, 1.0)
    """

    threshold: float | None = None
    cost: ScoreCost = "confidence"
    positive: Any = None

    def __post_init__(self) -> None:
        if self.threshold is not None:
            object.__setattr__(self, "threshold", as_threshold(self.threshold))
        if self.cost not in get_args(ScoreCost):
            raise InvalidValueError(f"cost must be 'confidence' or 'constant', got {self.cost!r}")

    # Scores -------------------------------------------------------------------------------

    def one(self, score: Any) -> tuple[bool, float]:
        """What one score proposes, and the price of overruling it."""
        found = as_score(score)
        if self.threshold is None and not 0.0 <= found <= 1.0:
            raise _needs_threshold(f"the score {found:g}")
        bar = self._bar
        return found >= bar, 1.0 if self.cost == "constant" else abs(found - bar)

    def many(self, scores: Floats, name: str = "scores") -> tuple[NDArray[np.bool_], Floats]:
        """What each score proposes, and the price of overruling it; ``name`` is for errors."""
        wrong = np.flatnonzero(~np.isfinite(scores))
        if len(wrong):
            raise InvalidValueError(
                f"{name}[{wrong[0]}] is {scores[wrong[0]]}: a score must be a finite number"
            )
        self.check_range(scores, name)
        bar = self._bar
        return scores >= bar, np.ones(len(scores)) if self.cost == "constant" else abs(scores - bar)

    def check_range(self, scores: Floats, name: str = "scores") -> None:
        """Raise where scores are no probabilities and no threshold is given."""
        if self.threshold is not None:
            return
        beyond = np.flatnonzero((scores < 0.0) | (scores > 1.0))
        if len(beyond):
            raise _needs_threshold(f"{name}[{beyond[0]}] is {scores[beyond[0]]}, which")

    @property
    def _bar(self) -> float:
        return PROBABILITY_THRESHOLD if self.threshold is None else self.threshold

    # Labels -------------------------------------------------------------------------------

    def settled(self, labels: Sequence[Any]) -> ScoreRule:
        """The same rule, with ``positive`` set to the one of ``labels`` that means acceptance.

        Warns where the labels are two words and ``positive`` was not given.
        """
        known = list(labels)
        if self.positive in known:
            return self
        if self.positive is not None or len(known) != 2:
            raise InvalidValueError(
                f"positive is {self.positive!r}, the labels are {known}: name the one that means "
                f"acceptance, as in positive={known[-1]!r}"
            )
        rejected, accepted = known
        if isinstance(accepted, str):
            warnings.warn(
                f"labels are text: {accepted!r} is taken for acceptance and {rejected!r} for "
                f"rejection; say which it is, as in positive={accepted!r}",
                UserWarning,
                stacklevel=4,  # the caller who made the scorer of a classifier
            )
        return replace(self, positive=accepted)


def _needs_threshold(which: str) -> InvalidValueError:
    return InvalidValueError(
        f"{which} lies outside 0 to 1, so that 0.5 need not be where acceptance begins: say from "
        f"which score on with {argument('threshold')}"
    )
