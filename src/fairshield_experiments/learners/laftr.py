r"""LAFTR: a representation that predicts the outcome and hides the group.

Madras, Creager, Pitassi and Zemel (2018).  An encoder f, a classifier c and a decoder k play
against an adversary h that guesses the group from the representation:

.. math::
    \min_{f, c, k} \max_h \;
    A_x \underbrace{\tfrac1{nd} \textstyle\sum_i \lVert k(f(x_i), g_i) - x_i\rVert^2}_{L_x}
    + A_y \underbrace{\text{cross-entropy of } c(f(x_i)) \text{ and } y_i}_{L_y}
    + A_z L_z,

.. math::
    L_z = 1 - \sum_{g \in \{a, b\}} \frac1{n_g} \sum_{i: g_i = g} |h(f(x_i)) - g_i| .

:math:`L_z` is the adversary's objective for demographic parity: 1 if it always guesses right, 0 if
it learns nothing; its maximum bounds the gap of every classifier that sees the representation
alone.  Each mini-batch makes one step of encoder, classifier and decoder, then one of the
adversary.

The encoder has the widths of the other learners' network: hidden layers of 512 and 256 units, and a
representation of 64 numbers, from which the classifier is linear.  The decoder mirrors the encoder,
the adversary has one hidden layer of 64.  As in the publication there is no dropout: what it erases
from a representation no decoder can restore.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

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
class LAFTR:
    """LAFTR trains against an adversary; the weights are the paper's A_x, A_y and A_z."""

    reconstruction: float = 8.0
    prediction: float = 4.0
    adversary: float = 2.1
    schedule: Schedule = PAPER
    device: str = "cpu"

    def fit(self, examples: Examples, *, seed: int) -> NetworkClassifier:
        """Encoder and classifier fitted to ``examples``."""
        training = Training.start(examples, schedule=self.schedule, seed=seed, device=self.device)
        d, width = examples.features.shape[1], HIDDEN[-1]
        encoder = training.network(d, *HIDDEN)
        classifier = training.network(width, 1)
        decoder = training.network(width + 1, *HIDDEN[-2::-1], d)
        adversary = training.network(width, width, 1)
        builders, guesser = Descent(encoder, classifier, decoder), Descent(adversary)
        with one_thread():
            for x, y, g, rate in training.batches():
                z = encoder(x)
                loss = (
                    self.reconstruction * mse_loss(decoder(torch.cat((z, g[:, None]), 1)), x)
                    + self.prediction * binary_cross_entropy_with_logits(classifier(z).flatten(), y)
                    + self.adversary * hits(torch.sigmoid(adversary(z).flatten()), g)
                )
                builders.step(loss, rate)
                guess = torch.sigmoid(adversary(z.detach()).flatten())
                guesser.step(-hits(guess, g), rate)
        return NetworkClassifier((encoder, classifier), self.device)


def hits(guess: Tensor, group: Tensor) -> Tensor:
    """L_z: 1 if every guess is the group, 0 if guesses are alike in both groups."""
    miss = (guess - group).abs()
    out = guess.new_ones(())
    for members in (1 - group, group):
        out = out - (miss * members).sum() / members.sum().clamp(min=1)
    return out
