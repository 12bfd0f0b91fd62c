r"""Intervals for rates that are right at all times at once, however often one looks.

Let :math:`X_i` be 1 if the i-th person was accepted, and :math:`p_i` the probability of it given
all that happened before.  Nothing is assumed about :math:`p_i`: it may drift, and it may depend on
what was decided before.  With :math:`S = X_1 + \dots + X_n` and the average
:math:`m_n = (p_1 + \dots + p_n)/n`, for every :math:`\lambda`

.. math::
    L_n(\lambda) = \prod_{i \le n} \frac{e^{\lambda X_i}}{1 - p_i + p_i e^\lambda}

is a nonnegative martingale that begins at 1, and so is any mixture of them.  The logarithm of
:math:`1 - p + p e^\lambda` is concave in p, so by Jensen's inequality

.. math::
    M_n(m) = \sum_\lambda w_\lambda\, e^{\lambda S} (1 - m + m e^\lambda)^{-n}
    \quad\text{satisfies}\quad M_n(m_n) \le \sum_\lambda w_\lambda L_n(\lambda).

Ville's inequality says that the right side ever reaches :math:`1/\alpha` with probability at most
:math:`\alpha`.  Hence, with probability at least :math:`1 - \alpha`, the set
:math:`\{m : M_n(m) < 1/\alpha\}` contains :math:`m_n` for **all** n.  It is an interval, because
:math:`M_n` is a sum of log-convex functions, and it contains the observed rate, where
:math:`M_n \le 1`.  If the :math:`p_i` are all the same, they are what it contains.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fairshield.spec import (
    BoundedRates,
    DifferenceOfRates,
    DisparateImpact,
    Property,
    ShareParity,
    Sustained,
)

_SIZES = 2.0 ** (np.arange(6, -29, -1) / 2)
"""Sizes of lambda: n people call for about the root of 56/n, so up to n = 10**10 one is near."""
_LAMBDAS = np.concatenate((_SIZES, -_SIZES))
_LOG_WEIGHTS = np.log(np.sqrt(np.abs(_LAMBDAS)) / np.sqrt(np.abs(_LAMBDAS)).sum())
_GROWTH = np.expm1(_LAMBDAS)
_HALVINGS = 50


class Interval(NamedTuple):
    """What was observed, and between which numbers the truth lies."""

    lower: float
    estimate: float
    upper: float

    def __str__(self) -> str:
        return f"{self.estimate:.4g} [{self.lower:.4g}, {self.upper:.4g}]"


def log_evidence(seen: int, accepted: int, rate: float) -> float:
    r"""The logarithm of :math:`M_n(m)` above: how much the counters speak against ``rate``."""
    terms = _LOG_WEIGHTS + _LAMBDAS * accepted - seen * np.log1p(rate * _GROWTH)
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum()))


def rate_interval(seen: int, accepted: int, alpha: float) -> Interval:
    """The average probability of acceptance so far; wrong at any time with at most ``alpha``.

    >>> print(rate_interval(1000, 300, 0.05))
    0.3 [0.2495, 0.3539]
    """
    if not seen:
        return Interval(0.0, math.nan, 1.0)
    observed = accepted / seen
    limit = -math.log(alpha)
    lower = _edge(seen, accepted, limit, 0.0, observed)
    upper = _edge(seen, accepted, limit, 1.0, observed)
    return Interval(lower, observed, upper)


def _edge(seen: int, accepted: int, limit: float, outside: float, inside: float) -> float:
    """Where the evidence reaches ``limit``, by bisection; errs to the outside."""
    if log_evidence(seen, accepted, outside) < limit:
        return outside
    for _ in range(_HALVINGS):
        middle = (outside + inside) / 2
        if log_evidence(seen, accepted, middle) < limit:
            inside = middle
        else:
            outside = middle
    return outside


# From rates to bias -------------------------------------------------------------------------


def bias_bounds(
    prop: Property, a: Interval, b: Interval, share: Interval
) -> tuple[float, float] | None:
    """The least and the largest bias of rates within their intervals.

    ``share`` is that of the first group among the accepted of both.  ``None``: a property of
    which nothing is known but whether counters satisfy it.
    """
    if isinstance(prop, Sustained):
        return bias_bounds(prop.of, a, b, share)
    if isinstance(prop, DifferenceOfRates):
        return max(0.0, a.lower - b.upper, b.lower - a.upper), _furthest(a, b)
    if isinstance(prop, ShareParity):
        low, high = 2 * share.lower - 1, 2 * share.upper - 1
        return max(0.0, low, -high), max(high, -low)
    if isinstance(prop, DisparateImpact):
        if not prop.two_sided:
            return _ratio(a.lower, b.upper, 0.0), _ratio(a.upper, b.lower, 0.0)
        # Rates that are both 0 are as alike as can be.
        least = min(_ratio(a.lower, b.upper, 1.0), _ratio(b.lower, a.upper, 1.0))
        most = min(_ratio(a.upper, b.lower, 1.0), _ratio(b.upper, a.lower, 1.0))
        return max(0.0, 1 - most), 1 - least
    if isinstance(prop, BoundedRates):
        lower, upper = float(prop.lower), float(prop.upper)
        nearest = max(0.0, *(max(lower - g.upper, g.lower - upper) for g in (a, b)))
        return nearest, max(0.0, *(max(lower - g.lower, g.upper - upper) for g in (a, b)))
    return None


def _furthest(a: Interval, b: Interval) -> float:
    return max(a.upper - b.lower, b.upper - a.lower)


def _ratio(one: float, other: float, of_zeros: float) -> float:
    if other > 0.0:
        return one / other
    return math.inf if one > 0.0 else of_zeros
