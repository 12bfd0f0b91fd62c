"""``train_again`` repeats an experiment with another training, on another split and other people.

How far its numbers move from one repetition to another is the chance that a number of a single
training has, published or ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from fairshield_experiments.data import Dataset, make_split
from fairshield_experiments.simulate import Setting, simulate
from fairshield_experiments.sweep.task import Frames
from fairshield_experiments.training import train


def train_again(
    dataset: Dataset, name: str, learner: Any, settings: Sequence[Setting], *, seed: int
) -> Frames:
    """Metrics and runs of a learner trained with ``seed``, on the split of ``seed``.

    Returns ``trainings``, rows as in the frame ``metrics``, and ``training_runs``, rows as in the
    frame ``runs``.  The settings should draw people by the same seed.
    """
    trained = train(dataset, name, learner, seed=seed, split=make_split(dataset, seed=seed))
    scored = trained.scored()
    return {
        "trainings": pd.DataFrame(trained.rows()).assign(seed=seed),
        "training_runs": pd.concat(
            [simulate(setting, scored) for setting in settings], ignore_index=True
        ),
    }
