r"""PR, the prejudice remover: mutual information of decision and group.

Kamishima, Akaho, Asoh and Sakuma (2012) take the score for the chance of acceptance and sum over
the people at hand, here those of a mini-batch:

.. math::
    \Omega = \sum_i \sum_{y \in \{0, 1\}} P(y \mid x_i) \ln\frac{\hat P(y \mid g_i)}{\hat P(y)}
    = n\, \hat I(Y; G),

with :math:`P(1 \mid x_i) = s_i`, and :math:`\hat P(y \mid g)`, :math:`\hat P(y)` the means of
:math:`P(y \mid x_i)` over a group and over everybody.  Gathered by group,

.. math::
    \Omega = \sum_g n_g \sum_y \hat P(y \mid g) \ln\frac{\hat P(y \mid g)}{\hat P(y)} .

It is a sum and not a mean, so λ weighs the more the larger the mini-batch is.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairshield_experiments.learners.penalised import PenalisedLearner

LEAST = 1e-6
"""Rates are kept this far from 0 and 1, where the logarithm has no gradient."""


@dataclass(frozen=True)
class PrejudiceRemover(PenalisedLearner):
    """PrejudiceRemover penalises what a decision tells about the group; the paper has λ = 0.06."""

    weight: float = 0.06

    def penalty(self, score: Tensor, group: Tensor) -> Tensor:
        """N times the mutual information, in nats."""
        overall = _both(score.mean())
        total = score.new_zeros(())
        for members in (1 - group, group):
            n = members.sum()
            rates = _both((score * members).sum() / n.clamp(min=1))
            total = total + n * (rates * (rates / overall).log()).sum()
        return total


def _both(rate: Tensor) -> Tensor:
    """Chances of rejection and acceptance."""
    rate = rate.clamp(LEAST, 1 - LEAST)
    return torch.stack((1 - rate, rate))
