"""Properties that are inequalities, linear in the acceptances."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairshield.counts import GroupCount
from fairshield.spec.base import Count, Property

Inequality = tuple[Any, Any, Any]
"""``(alpha, beta, gamma)`` for :math:`\\alpha k_a + \\beta k_b \\le \\gamma`."""


@dataclass(frozen=True)
class LinearProperty(Property):
    r"""A property that is a conjunction of inequalities :math:`\alpha k_a + \beta k_b \le \gamma`.

    Given the acceptances in one group, those that are fair in the other form an interval, which
    synthesis uses instead of asking about every state.
    """

    @abstractmethod
    def inequalities(self, n_a: Any, n_b: Any) -> tuple[Inequality, ...]:
        """Integers ``(alpha, beta, gamma)``, or arrays of them, for these people seen."""

    def fair(self, a: Count, b: Count) -> Any:
        verdict: Any = True
        for alpha, beta, gamma in self.inequalities(a.seen, b.seen):
            verdict = verdict & (alpha * a.accepted + beta * b.accepted <= gamma)
        return verdict

    def can_fail(self, n_a: Any, n_b: Any) -> Any:
        a, b = self._defined(GroupCount(n_a, 0), GroupCount(n_b, 0))
        fails: Any = False
        for alpha, beta, gamma in self.inequalities(a.seen, b.seen):
            # A linear function is largest at a corner of all possible decisions.
            largest = alpha * (alpha > 0) * n_a + beta * (beta > 0) * n_b
            fails = fails | (largest > gamma)
        return fails

    def fair_interval(self, n_a: Any, n_b: Any, *, accepted: Any, along: Any) -> tuple[Any, Any]:
        shape = np.broadcast_shapes(*map(np.shape, (n_a, n_b, accepted, along)))
        # Without dimensions, an array of Python integers would decay into one of them.
        n_a, n_b, known = map(np.atleast_1d, self._exact_arrays(n_a, n_b, accepted))
        in_b = np.asarray(along, bool)
        room = np.broadcast_to(np.where(in_b, n_b, n_a), shape or (1,)) + 1
        lo, hi = np.zeros_like(room), room
        a, b = self._defined(GroupCount(n_a, 0), GroupCount(n_b, 0))
        none = 0 * n_a  # as an array even a constant coefficient is exact
        for alpha, beta, gamma in self.inequalities(a.seen, b.seen):
            slope: Any = np.where(in_b, beta + none, alpha + none)
            limit = gamma - np.where(in_b, alpha + none, beta + none) * known
            if not slope.all():
                flat = slope == 0
                hi = np.where(flat & (limit < 0), 0, hi)
                # All of the room is no bound.
                slope, limit = np.where(flat, 1, slope), np.where(flat, room, limit)
            bound, rising = limit // abs(slope), slope > 0
            hi = np.where(rising, np.minimum(hi, bound + 1), hi)
            lo = np.where(rising, lo, np.maximum(lo, -bound))
        lo, hi = np.minimum(lo, room), np.maximum(hi, 0)
        if self.min_support:
            free = (n_a < self.min_support) | (n_b < self.min_support)
            lo, hi = np.where(free, 0, lo), np.where(free, room, hi)
        lo, hi = lo.astype(np.int64).reshape(shape), hi.astype(np.int64).reshape(shape)
        return lo, np.maximum(hi, lo)
