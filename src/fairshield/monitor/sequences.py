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

import numpy as np

from fairshield.spec import Interval

_SIZES = 2.0 ** (np.arange(6, -29, -1) / 2)
"""Sizes of lambda: n people call for about the root of 56/n, so up to n = 10**10 one is near."""
_LAMBDAS = np.concatenate((_SIZES, -_SIZES))
_LOG_WEIGHTS = np.log(np.sqrt(np.abs(_LAMBDAS)) / np.sqrt(np.abs(_LAMBDAS)).sum())
_GROWTH = np.expm1(_LAMBDAS)
_HALVINGS = 50


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
