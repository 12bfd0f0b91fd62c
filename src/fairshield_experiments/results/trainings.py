r"""How far a number moves from one training to another, and how probable a published one is.

A published number is of one training.  Ours are :math:`n` values :math:`x_1, \dots, x_n`, each of
another training on another split, whose runs are of other people.  If the published one is one more
of the kind, and they are normal,

.. math::
    t = \frac{x - \bar x}{s \sqrt{1 + 1/n}}, \qquad
    s^2 = \frac{1}{n - 1} \sum_i (x_i - \bar x)^2

has Student's distribution with :math:`n - 1` degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd

from fairshield_experiments.results.parts import Results
from fairshield_experiments.results.published import Published
from fairshield_experiments.results.rows import select, totals

_Key = TypeVar("_Key")
LIKELY = 0.05
"""A published number whose chance is at least this may be one more training of the same kind."""

MetricKey = tuple[str, str, str]
"""Environment, learner, metric."""
LossKey = tuple[str, str, float, str, str, str]
LOSS_KEY = ("property", "undefined", "bound", "environment", "shield", "learner")
"""The columns of a :data:`LossKey`; ``undefined`` is the convention for empty groups."""


@dataclass(frozen=True)
class Spread:
    """Spread holds the values of one number in several trainings; there are at least two."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean of the trainings."""
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float:
        """Standard deviation between trainings."""
        return float(np.std(self.values, ddof=1))

    def chance(self, number: Published) -> float:
        """How probable it is that a further training is at least as far from the mean.

        The published number counts as the nearest of those that are printed like it.
        """
        away = max(0.0, abs(number.value - self.mean) - number.digit / 2)
        n = len(self.values)
        scale = self.deviation * math.sqrt(1 + 1 / n)
        if scale == 0:
            return 1.0 if away < 1e-9 else 0.0
        return beyond(away / scale, n - 1)

    def sentence(self, number: Published) -> str:
        """What several trainings say of a published number."""
        unit = f" {number.unit}" if number.unit else ""
        return (
            f"In {len(self.values)} trainings the mean is {self.mean:.3g}{unit}, the standard "
            f"deviation {self.deviation:.2g}; chance: p = {p_value(self.chance(number))}."
        )


def p_value(p: float) -> str:
    """A chance as text.

    >>> p_value(0.314), p_value(0.0312), p_value(0.0004)
    ('0.31', '0.031', '0.0004')
    """
    return f"{p:.2f}" if p >= 0.1 else f"{p:.1g}" if p < 0.01 else f"{p:.3f}"


def metrics(results: Results) -> Mapping[MetricKey, Spread]:
    """Metrics of the classifiers in %; empty if each was trained once."""
    if results.trainings.empty:
        return {}
    frame = pd.concat([results.metrics, results.trainings], ignore_index=True)
    named = frame.groupby(["environment", "learner", "metric"], observed=True)["value"]
    return _spreads({key: 100 * values for key, values in named})


def losses(results: Results) -> Mapping[LossKey, Spread]:
    """Relative utility losses in % of the settings that were run again with every training."""
    again = results.training_runs
    if again.empty:
        return {}
    columns = ("undefined", "bound", "shield", "period_length", "periods")
    first = select(
        results.runs, inputs="agnostic", min_support=0,
        **{column: sorted(set(again[column])) for column in columns},
    )  # fmt: skip
    found: dict[LossKey, list[float]] = {}
    for part in (first, *(part for _, part in again.groupby("seed"))):
        means = totals(part).groupby(list(LOSS_KEY), observed=True)["loss"].mean()
        for (prop, undefined, bound, *rest), loss in means.items():
            key = (prop, undefined, round(float(bound), 6), *rest)
            found.setdefault(key, []).append(float(loss))
    return _spreads({key: pd.Series(values) for key, values in found.items()})


def beyond(t: float, freedom: int) -> float:
    """How probable it is that Student's distribution is at least ``t`` away from 0.

    By the finite sums for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4).

    >>> round(beyond(2.776, 4), 3), round(beyond(12.706, 1), 3), beyond(0.0, 3)
    (0.05, 0.05, 1.0)
    """
    angle = math.atan2(t, math.sqrt(freedom))
    odd, cosine = freedom % 2, math.cos(angle)
    term = math.sin(angle) * (cosine if odd else 1.0)
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= k / (k + 1) * cosine**2
    within = 2 / math.pi * (angle + total) if odd else total
    return min(max(1.0 - within, 0.0), 1.0)


def _spreads(found: Mapping[_Key, pd.Series]) -> dict[_Key, Spread]:
    known = {key: values.dropna() for key, values in found.items()}
    return {key: Spread(tuple(v.astype(float))) for key, v in known.items() if len(v) > 1}
