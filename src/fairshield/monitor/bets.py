r"""Odds bets against an input model, so that a right model keeps the mean capital at 1.

A request is a group, a proposal in it, a cost level, and perhaps an outcome.  Each of these four
*parts* has a bet of its own.  It predicts the next value from the values before it, by the rule of
Krichevsky and Trofimov: of d values, the one seen :math:`n_j` times out of n has the probability
:math:`(n_j + 1/2)/(n + d/2)`; and it is paid that over the model's own.  If the model is right,
the payment is 1 on average whatever happened before, so the capital

.. math::
    e = \prod_{i \le n} \frac{q_i(x_i)}{\theta_i(x_i)}, \qquad
    \prod_{i \le n} q_i(x_i) = \frac{\Gamma(d/2)}{\Gamma(n + d/2)}
    \prod_{j \le d} \frac{\Gamma(n_j + 1/2)}{\Gamma(1/2)}

is a martingale that begins at 1.  Half of the capital of each part is not put at stake: the
product of the :math:`(1 + e)/2` is the average over all choices of the parts that have changed.
Bets on proposals are kept by group, bets on costs by group and proposal, bets on outcomes by
group, proposal and cost level.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.inputs import InputTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PARTS = ("groups", "proposals", "costs", "outcomes")
_IMPOSSIBLE = -1e300
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


class Cells(NamedTuple):
    """Cells counts people by schedule part, group, proposal and cost level.

    The last level is for costs above those of the model.  ``told`` are those with a known outcome,
    ``positive`` those of them with outcome 1; ``spent`` is the sum of costs.  Each is
    ``(..., parts, groups, 2, levels + 1)``.
    """

    people: Ints
    told: Ints
    positive: Ints
    spent: Floats

    def minus(self, earlier: Cells) -> Cells:
        """The counts since ``earlier``."""
        return Cells._make(now - then for now, then in zip(self, earlier, strict=True))

    def at(self, where: Any) -> Cells:
        """The counts at these indices of the first axes."""
        return Cells._make(counts[where] for counts in self)


class Odds:
    """Odds holds the logarithms of a model's probabilities, part by part."""

    def __init__(self, table: InputTable) -> None:
        probs = table.probs
        by_proposal, by_group = probs.sum(axis=3), probs.sum(axis=(2, 3))
        self.groups = _logs(by_group / by_group.sum(axis=1, keepdims=True))
        self.proposals = _logs(_conditional(by_proposal, by_group[..., None]))
        self.costs = _logs(_conditional(probs, by_proposal[..., None]))
        given = table.outcomes
        self.outcomes = None if given is None else (_logs(given), _logs(1.0 - given))

    def capital(self, cells: Cells) -> Floats:
        """``(4, ...)``: the logarithm of the capital of each part."""
        # Without the cell of costs above all levels; its people count in the bets on group and
        # proposal all the same.
        people, told, positive = (counts[..., :-1] for counts in cells[:3])
        anyone = cells.people.sum(axis=-1)
        proposals = anyone.sum(axis=-3)
        bets = [proposals.sum(axis=-1), proposals, people.sum(axis=-4)]
        stakes = [
            _weighed(anyone.sum(axis=-1), self.groups),
            _weighed(anyone, self.proposals),
            _weighed(people, self.costs),
        ]
        if self.outcomes is not None:
            negative = told - positive
            bets.append(np.stack((positive.sum(axis=-4), negative.sum(axis=-4)), axis=-1))
            of_yes, of_no = self.outcomes
            stakes.append(_weighed(positive, of_yes) + _weighed(negative, of_no))
        won = [mine - theirs for mine, theirs in zip(_predicted(bets), stakes, strict=True)]
        return np.stack([*won, *([np.zeros_like(won[0])] * (len(PARTS) - len(won)))])

    def log_e(self, cells: Cells) -> Floats:
        """The logarithm of the product of ``(1 + e)/2`` over the parts."""
        hedged: Floats = np.logaddexp(0.0, self.capital(cells)) - math.log(2.0)
        capped: Floats = np.minimum(hedged.sum(axis=0), -_IMPOSSIBLE)
        return capped


def log_change(before: Cells, since: Cells) -> float:
    r"""Logarithm of the evidence that requests changed between two stretches of a stream.

    For each part it is the logarithm of :math:`q(x) q(y) / q(xy)`, where q predicts the values of
    the first stretch x, of the second y, and of both as one; parts are combined as in
    :meth:`Odds.log_e`.  It depends on no input model, and is 0 if either stretch is empty.
    """
    both = Cells._make(one + other for one, other in zip(before, since, strict=True))
    parts = [_described(cells) for cells in (before, since, both)]
    gained = parts[0] + parts[1] - parts[2]
    return float((np.logaddexp(0.0, gained) - math.log(2.0)).sum())


def _described(cells: Cells) -> Floats:
    """``(4,)``: logarithm of the prediction of each part, summed over the parts of a schedule.

    A schedule itself changes requests between its parts, so each of them is predicted alone.
    """
    people, told, positive = cells[:3]
    outcomes = np.stack((positive, told - positive), axis=-1)
    bets = [people.sum(axis=(-2, -1)), people.sum(axis=-1), people, outcomes]
    return np.array([float(each.sum()) for each in _predicted(bets)])


# Arithmetic of probabilities ----------------------------------------------------------------


def _conditional(joint: Floats, given: Floats) -> Floats:
    """``joint / given``; even probabilities where ``given`` is 0, which nothing depends on."""
    even = np.full(joint.shape, 1.0 / joint.shape[-1])
    happens = np.broadcast_to(given, joint.shape) > 0.0
    found: Floats = np.divide(joint, given, out=even, where=happens)
    return found


def _logs(probs: Floats) -> Floats:
    # A finite number, because 0 times infinity is no number.
    logs: Floats = np.log(probs, out=np.full(probs.shape, _IMPOSSIBLE), where=probs > 0.0)
    return logs


def _weighed(counts: Ints, logs: Floats) -> Floats:
    """The log-likelihood of counts, whose last axes are those of ``logs``."""
    total: Floats = (counts * logs).sum(axis=tuple(range(-logs.ndim, 0)))
    return total


def _predicted(bets: list[Ints]) -> list[Floats]:
    """The logarithms of what Krichevsky and Trofimov predict for several counts.

    The last axis of each array runs over values.  The first axes (times, for one) are those that
    all arrays share with ``bets[0]``, the counts by group.  Over the axes between them, the
    logarithms are summed.
    """
    shape, pieces = bets[0].shape[:-1], []
    for counts in bets:
        pieces.append(counts.reshape(*shape, -1) + 0.5)
        pieces.append(counts.sum(axis=-1).reshape(*shape, -1) + counts.shape[-1] / 2)
    ends = np.cumsum([piece.shape[-1] for piece in pieces])[:-1]
    logs = np.split(log_gamma(np.concatenate(pieces, axis=-1)), ends, axis=-1)
    found = []
    for counts, each, whole in zip(bets, logs[::2], logs[1::2], strict=True):
        d = counts.shape[-1]
        nobody = math.lgamma(d / 2) - d * math.lgamma(0.5)
        found.append(each.sum(axis=-1) - whole.sum(axis=-1) + whole.shape[-1] * nobody)
    return found


def log_gamma(x: NDArray[Any]) -> Floats:
    """Logarithm of the gamma function of positive ``x``: Stirling's series at ``x + 8``.

    >>> bool(np.isclose(log_gamma(np.array([0.5]))[0], math.lgamma(0.5), atol=1e-12))
    True
    """
    y = x + 8.0
    steps = x * (x + 1) * (x + 2) * (x + 3) * (x + 4) * (x + 5) * (x + 6) * (x + 7)
    inverse = 1.0 / (y * y)
    series = _STIRLING[4] + np.zeros_like(y)
    for term in _STIRLING[3::-1]:
        series = series * inverse + term
    half_log_of_2_pi = 0.5 * math.log(2 * math.pi)
    result: Floats = (y - 0.5) * np.log(y) - y + half_log_of_2_pi + series / y - np.log(steps)
    return result
