r"""DiffDP: the gap of demographic parity, with scores in place of decisions.

.. math::
    \Omega = \Bigl|\frac{1}{n_a} \sum_{i: g_i = a} s_i - \frac{1}{n_b} \sum_{i: g_i = b} s_i\Bigr|

A decision has no gradient, a score does: where scores are near 0 and 1 the two gaps agree.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fairshield_experiments.learners.penalised import PenalisedLearner


@dataclass(frozen=True)
class DiffDP(PenalisedLearner):
    """DiffDP penalises the difference between the groups' mean scores; the paper has λ = 1."""

    weight: float = 1.0

    def penalty(self, score: Tensor, group: Tensor) -> Tensor:
        """Absolute difference of the mean scores of the groups."""
        n_b = group.sum()
        n_a = len(group) - n_b
        # In a batch of one group there is no gap; dividing by 1 keeps the gradient finite.
        mean_a = (score * (1 - group)).sum() / n_a.clamp(min=1)
        mean_b = (score * group).sum() / n_b.clamp(min=1)
        return (mean_a - mean_b).abs() * ((n_a > 0) & (n_b > 0))
