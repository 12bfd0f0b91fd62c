r"""ERM minimises the empirical risk alone: :math:`\Omega = 0`."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fairshield_experiments.learners.penalised import PenalisedLearner


@dataclass(frozen=True)
class ERM(PenalisedLearner):
    """ERM minimises the cross-entropy."""

    weight: float = 0.0

    def penalty(self, score: Tensor, group: Tensor) -> Tensor:
        """The penalty, which is zero."""
        return score.new_zeros(())
