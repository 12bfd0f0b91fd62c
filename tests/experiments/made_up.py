"""Random people for tests, with any shares and scores."""

from __future__ import annotations

import numpy as np

from fairshield_experiments.people import People, Scored


def people(n: int, seed: int, *, share: float = 0.3, rate: float = 0.5) -> People:
    rng = np.random.default_rng(seed)
    group = (rng.random(n) >= share).astype(np.int8)
    score = np.clip(rng.beta(2, 2, n) + 0.15 * (group - 0.5), 0.0, 1.0)
    return People(group, rng.random(n) < rate * (0.5 + score), score)


def scored(seed: int = 0, *, n: int = 400, share: float = 0.3, rate: float = 0.5) -> Scored:
    return Scored(
        environment="made-up",
        learner="ERM",
        training=people(n, seed, share=share, rate=rate),
        held_out=people(n, seed + 1, share=share, rate=rate),
    )


def cross_fitted(seed: int = 0) -> Scored:
    """The people of :func:`scored`; the training part has other scores, said to be out of fold."""
    world = scored(seed)
    return world.with_out_of_fold(np.random.default_rng(seed).random(len(world.training)))
