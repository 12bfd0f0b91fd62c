r"""How well and how fairly a classifier does on people it has not seen, with standard errors.

Each metric is a function θ of the weights of people.  With weights 1 it is the usual metric, and
its derivatives :math:`U_i = \partial\theta/\partial w_i` give its standard error by the
infinitesimal jackknife (Jaeckel 1972; Efron 1982):

.. math::
    \operatorname{se}(\theta)^2 = \sum_i U_i^2 .

For a proportion that is :math:`p (1 - p) / n`.  A metric that is not defined, such as the rate of a
group without anybody, is nan, and so is its error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import fairshield as fs
from fairshield_experiments.people import People

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

METRICS = ("accuracy", "ap", "auc", "f1", "dp", "eqopp")


class Metric(NamedTuple):
    """Metric is a value and its standard error, as fractions."""

    value: float
    error: float


UNDEFINED = Metric(np.nan, np.nan)


def measure(people: People) -> dict[str, Metric]:
    """All of ``METRICS``: decisions are scores above one half, gaps are absolute.

    ``dp`` is the difference of acceptance rates of the groups, ``eqopp`` of their true-positive
    rates.
    """
    if not len(people):
        raise fs.InvalidValueError("metrics need people, got none: hold out a part of the data")
    accepted, target, group = people.proposed, people.target, people.group == 1
    everybody = np.ones(len(people), dtype=bool)
    ranked = _Ranks(people.score, target)
    return {
        "accuracy": _metric(*_rate(accepted == target, everybody)),
        "ap": ranked.average_precision(),
        "auc": ranked.area(),
        "f1": _f1(accepted, target),
        "dp": _gap(accepted, group, everybody),
        "eqopp": _gap(accepted, group, target),
    }


def _metric(value: float, influence: Floats) -> Metric:
    return Metric(value, float(np.sqrt(influence @ influence)))


def _rate(hit: Mask, among: Mask) -> tuple[float, Floats]:
    """Share of hits, and its derivatives; nan if there is nobody."""
    n = int(among.sum())
    if n == 0:
        return np.nan, np.full(len(hit), np.nan)
    value = float((hit & among).sum() / n)
    return value, np.where(among, hit - value, 0.0) / n


def _gap(accepted: Mask, group: Mask, among: Mask) -> Metric:
    rate_a, of_a = _rate(accepted, among & ~group)
    rate_b, of_b = _rate(accepted, among & group)
    return _metric(abs(rate_a - rate_b), of_a - of_b)


def _f1(accepted: Mask, target: Mask) -> Metric:
    """2 TP / (2 TP + FP + FN), which is 2 TP / (accepted + positive)."""
    size = accepted.astype(float) + target
    if not size.any():
        return UNDEFINED
    hits = 2.0 * (accepted & target)
    value = float(hits.sum() / size.sum())
    return _metric(value, (hits - value * size) / size.sum())


class _Ranks:
    """_Ranks holds people by falling score; those with equal scores share a rank.

    Attributes
    ----------
    above, positives
        ``(ranks,)``: people, and people with outcome 1, down to and including each rank.
    """

    def __init__(self, score: Floats, target: Mask) -> None:
        _, rising, size = np.unique(score, return_inverse=True, return_counts=True)
        self._rank = len(size) - 1 - rising
        self._target = target
        self._size = size[::-1]
        self._hits = np.bincount(self._rank, weights=target, minlength=len(size))
        self.above = np.cumsum(self._size)
        self.positives = np.cumsum(self._hits)

    def average_precision(self) -> Metric:
        r"""Σ over ranks of precision times gain in recall.

        With P positives, p_k = positives_k / above_k and h_k positives at rank k it is
        :math:`\frac1P \sum_k h_k p_k`.  A person at rank r adds to P and to h_r if positive, and to
        numerator (if positive) and denominator of every p_k with k ≥ r.
        """
        n_positive = self.positives[-1]
        if n_positive == 0:
            return UNDEFINED
        precision = self.positives / self.above
        value = float(self._hits @ precision / n_positive)
        as_positive = _from_here_on(self._hits * (1 - precision) / self.above)
        as_negative = _from_here_on(-self._hits * precision / self.above)
        influence = np.where(
            self._target,
            (as_positive + precision - value)[self._rank],
            as_negative[self._rank],
        )
        return _metric(value, influence / n_positive)

    def area(self) -> Metric:
        """Chance that a random positive scores higher than a random negative, ties for one half."""
        n_positive = self.positives[-1]
        n_negative = self.above[-1] - n_positive
        if n_positive == 0 or n_negative == 0:
            return UNDEFINED
        misses = self._size - self._hits
        below = n_negative - np.cumsum(misses) + misses / 2
        over = self.positives - self._hits / 2
        value = float(self._hits @ below / (n_positive * n_negative))
        influence = np.where(
            self._target,
            (below[self._rank] / n_negative - value) / n_positive,
            (over[self._rank] / n_positive - value) / n_negative,
        )
        return _metric(value, influence)


def _from_here_on(values: Floats) -> Floats:
    """Sums of ``values[k:]``."""
    return np.cumsum(values[::-1])[::-1]
