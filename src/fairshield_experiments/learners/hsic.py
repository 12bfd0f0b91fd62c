r"""HSIC: the Hilbert-Schmidt independence criterion of score and group.

The squared distance, in a space of functions, between the joint distribution and the product of
the marginals; zero exactly if score and group are independent (Gretton, Bousquet, Smola and
Schölkopf 2005; as a fairness term Pérez-Suay et al. 2017 and Li et al. 2022).  Their estimator from
n people, here those of a mini-batch:

.. math::
    \Omega = \frac{\operatorname{tr}(K H L H)}{(n - 1)^2}, \qquad
    K_{ij} = e^{-(s_i - s_j)^2 / 2\sigma^2}, \quad
    L_{ij} = e^{-(g_i - g_j)^2 / 2\sigma^2}, \quad
    H = I - \tfrac1n \mathbf{1}\mathbf{1}^\top .

Both variables lie in [0, 1], whose length is the bandwidth: σ = 1.  The usual alternative, the
median of the distances, is 0 for groups, as at least half of all pairs are alike; for scores it
would change with every step, and penalise the same gap the more the less scores differ.

As a group has two values, :math:`L_{ij} = \ell + (1 - \ell)\,(1 - (g_i - g_j)^2)` with
:math:`\ell = e^{-1/2\sigma^2}`, and for centred groups :math:`c = H g`

.. math::
    H L H = 2 (1 - \ell)\, c\, c^\top, \qquad
    \operatorname{tr}(K H L H) = 2 (1 - \ell)\, c^\top K c ,

one matrix instead of four.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fairshield_experiments.learners.penalised import PenalisedLearner


@dataclass(frozen=True)
class HSIC(PenalisedLearner):
    """HSIC penalises dependence of any form between score and group; the paper has λ = 100."""

    weight: float = 100.0
    bandwidth: float = 1.0

    def penalty(self, score: Tensor, group: Tensor) -> Tensor:
        """The estimate from ``n`` people."""
        u = score / (math.sqrt(2) * self.bandwidth)
        one = torch.ones_like(u)
        # -(u_i - u_j)² as a product of thin matrices: two passes over n² entries, not six.
        kernel = torch.exp(torch.stack((2 * u, -u * u, one), 1) @ torch.stack((u, one, -u * u)))
        centred = group - group.mean()
        different = 1 - math.exp(-1 / (2 * self.bandwidth**2))
        return 2 * different / max(len(u) - 1, 1) ** 2 * (centred @ kernel @ centred)
