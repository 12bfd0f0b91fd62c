"""LinearProperty: the base of properties that are inequalities, linear in the acceptances."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import GroupCount
from fairshield.spec.base import Count, Property
from fairshield.spec.provable import Pair

Inequality = tuple[Any, Any, Any]
"""``(alpha, beta, gamma)`` for :math:`\\alpha k_a + \\beta k_b \\le \\gamma`."""


@dataclass(frozen=True)
class LinearProperty(Property):
    r"""LinearProperty is a conjunction of inequalities :math:`\alpha k_a + \beta k_b \le \gamma`.

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

    def some_unfair(self, start: Pair, n_a: NDArray[Any], n_b: NDArray[Any]) -> bool:
        # A linear function is largest at a corner of all possible decisions.
        a, b = start
        return not all(
            self.holds_array(
                GroupCount(a.seen + n_a, a.accepted + k_a),
                GroupCount(b.seen + n_b, b.accepted + k_b),
            ).all()
            for k_a, k_b in product((0 * n_a, n_a), (0 * n_b, n_b))
        )

    def telling_splits(self, decided: int, a: int, b: int) -> list[int]:
        # Where both groups have support and somebody in them, differences, ratios and bounds of
        # rates bind, or do not, whatever the groups' sizes.  So these splits tell: all in one
        # group, as even as can be, and as many as a group needs.
        even, support = (decided + b - a) // 2, self.min_support
        wanted = (0, 1, decided - 1, decided, even, support - a, decided + b - support)
        return [min(max(n, 0), decided) for n in wanted]

    def fair_interval(self, n_a: Any, n_b: Any, *, accepted: Any, along: Any) -> tuple[Any, Any]:
        shape = np.broadcast_shapes(*map(np.shape, (n_a, n_b, accepted, along)))
        # numpy returns an element, not an array, where an array of objects has no dimensions.
        n_a, n_b, known = map(np.atleast_1d, self._exact_arrays(n_a, n_b, accepted))
        in_b = np.asarray(along, bool)
        room = np.broadcast_to(np.where(in_b, n_b, n_a), shape or (1,)) + 1
        lo, hi = np.zeros_like(room), room
        a, b = self._defined(GroupCount(n_a, 0), GroupCount(n_b, 0))
        none = 0 * n_a  # adding it makes an exact array of a constant coefficient
        for alpha, beta, gamma in self.inequalities(a.seen, b.seen):
            slope: Any = np.where(in_b, beta + none, alpha + none)
            limit = gamma - np.where(in_b, alpha + none, beta + none) * known
            if not slope.all():
                flat = slope == 0
                hi = np.where(flat & (limit < 0), 0, hi)
                # A slope of 0 bounds nothing: its limit becomes the whole range.
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
