r"""Estimates from runs; standard errors take into account which runs share their people.

Runs of the same environment and number draw the same people, whatever the learner, bound or
shield: they are one *cluster*.  The environments are given, not drawn: each is a *stratum*, and
the people who differ from repetition to repetition are those inside it.  The mean of all
:math:`n` values has

.. math::
    s^2 = \frac{1}{n^2} \sum_e \frac{G_e}{G_e - 1}
          \sum_{g \in e} \Bigl(d_g - \bar d_e\Bigr)^2, \qquad d_g = \sum_{i \in g} (x_i - \bar x),

with :math:`G_e` clusters in stratum :math:`e`.  Quantiles follow Woodruff (1952): the standard
error of the share below the quantile, read off the distribution.  Frames have the columns
``environment`` and ``run``; values that are not numbers are left out and counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """Estimate is a number with its standard error.

    Attributes
    ----------
    error
        Standard error; NaN where one cluster alone cannot tell.
    n, clusters
        Values it is made of, and independent sets of people among them.
    left_out
        Values that were undefined.
    """

    value: float
    error: float
    n: int
    clusters: int = 0
    left_out: int = 0

    def scaled(self, factor: float) -> Estimate:
        """The same in other units."""
        return Estimate(
            self.value * factor, self.error * factor, self.n, self.clusters, self.left_out
        )


@dataclass(frozen=True, eq=False)
class _Sample:
    """_Sample holds defined values with the number of their stratum and cluster, both from 0."""

    values: Floats
    stratum: NDArray[np.intp]
    cluster: NDArray[np.intp]
    left_out: int

    @classmethod
    def of(cls, frame: pd.DataFrame, column: str) -> _Sample | None:
        values = frame[column].to_numpy(dtype=np.float64, na_value=np.nan)
        known = np.isfinite(values)
        if not known.any():
            return None
        stratum, _ = pd.factorize(frame["environment"][known])
        run = frame["run"].to_numpy(dtype=np.int64)[known]
        _, cluster = np.unique(stratum * (run.max() + 1) + run, return_inverse=True)
        return cls(values[known], stratum, cluster, int((~known).sum()))

    @property
    def n_clusters(self) -> int:
        return int(self.cluster.max()) + 1

    def error_of_mean(self, influence: Floats) -> float:
        """Standard error of the mean of ``influence`` (one number per value)."""
        sums = np.bincount(self.cluster, influence - influence.mean())
        stratum = np.zeros(self.n_clusters, dtype=np.intp)
        stratum[self.cluster] = self.stratum
        sizes = np.bincount(stratum)
        if (sizes < 2).any():
            return math.nan
        centred = sums - (np.bincount(stratum, sums) / sizes)[stratum]
        squares = np.bincount(stratum, centred**2)
        return float(np.sqrt(np.sum(squares * sizes / (sizes - 1))) / len(influence))

    def estimate(self, value: float, error: float) -> Estimate:
        return Estimate(value, error, len(self.values), self.n_clusters, self.left_out)


def mean(frame: pd.DataFrame, column: str) -> Estimate | None:
    """Mean of a column; ``None`` if it has no defined value."""
    sample = _Sample.of(frame, column)
    if sample is None:
        return None
    return sample.estimate(float(sample.values.mean()), sample.error_of_mean(sample.values))


def share(frame: pd.DataFrame, column: str) -> Estimate | None:
    """Percentage of rows in which a column of flags is true."""
    found = mean(frame, column)
    return None if found is None else found.scaled(100)


def deviation(frame: pd.DataFrame, column: str) -> Estimate | None:
    """Standard deviation; its error by linearisation of the variance."""
    sample = _Sample.of(frame, column)
    if sample is None or len(sample.values) < 2:
        return None
    values = sample.values
    squares = (values - values.mean()) ** 2
    sd = math.sqrt(squares.sum() / (len(values) - 1))
    error = sample.error_of_mean(squares) / (2 * sd) if sd > 0 else 0.0
    return sample.estimate(sd, error)


def quantile(frame: pd.DataFrame, column: str, q: float) -> Estimate | None:
    """The ``q`` quantile, with Woodruff's standard error."""
    sample = _Sample.of(frame, column)
    if sample is None:
        return None
    value = float(np.quantile(sample.values, q))
    spread = sample.error_of_mean((sample.values <= value).astype(np.float64))
    if math.isnan(spread):
        return sample.estimate(value, math.nan)
    low, high = np.quantile(sample.values, [max(q - spread, 0.0), min(q + spread, 1.0)])
    return sample.estimate(value, float(high - low) / 2)


def wilson(share: float, n: float, z: float = 1.96) -> tuple[float, float]:
    """Wilson's confidence interval for a share of ``n`` independent trials.

    >>> [round(x, 3) for x in wilson(0.0, 100)], [round(x, 3) for x in wilson(0.5, 100)]
    ([0.0, 0.037], [0.404, 0.596])
    """
    if n <= 0:
        return 0.0, 1.0
    shrink = 1 + z**2 / n
    centre = (share + z**2 / (2 * n)) / shrink
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / shrink
    # At a share of 0 or 1 the two terms cancel, but for rounding.
    return min(max(centre - half, 0.0), share), max(min(centre + half, 1.0), share)
