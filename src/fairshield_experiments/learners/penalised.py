r"""Empirical risk plus a multiple of a penalty on scores and groups.

.. math::
    \frac1n \sum_i -\bigl(y_i \ln s_i + (1 - y_i) \ln(1 - s_i)\bigr)
    \;+\; \lambda\, \Omega(s_1, \dots, s_n;\, g_1, \dots, g_n)

over the people of each mini-batch, with scores :math:`s_i` in [0, 1].  Learners of this kind differ
in :math:`\Omega` alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from fairshield_experiments.learners.base import Examples
from fairshield_experiments.learners.network import (
    HIDDEN,
    PAPER,
    Descent,
    NetworkClassifier,
    Schedule,
    Training,
    one_thread,
)


@dataclass(frozen=True)
class PenalisedLearner(ABC):
    """PenalisedLearner trains the network on the risk and ``weight`` (λ) times :meth:`penalty`."""

    weight: float
    schedule: Schedule = PAPER
    device: str = "cpu"

    @abstractmethod
    def penalty(self, score: Tensor, group: Tensor) -> Tensor:
        """Ω of ``(n,)`` scores and groups; zero where a group has nobody."""

    def fit(self, examples: Examples, *, seed: int) -> NetworkClassifier:
        """A network fitted to ``examples``."""
        training = Training.start(examples, schedule=self.schedule, seed=seed, device=self.device)
        network = training.network(examples.features.shape[1], *HIDDEN, 1)
        descent = Descent(network)
        with one_thread():
            for x, y, g, rate in training.batches():
                logit = network(x, training.noise).flatten()
                loss = binary_cross_entropy_with_logits(logit, y)
                if self.weight:
                    loss = loss + self.weight * self.penalty(torch.sigmoid(logit), g)
                descent.step(loss, rate)
        return NetworkClassifier((network,), self.device)
