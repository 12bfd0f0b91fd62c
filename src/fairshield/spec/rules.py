r"""Rule: the few integers of a property that certificates of long windows compute with.

Every property that long windows can be planned for compares rates linearly.  A *side* is one
inequality :math:`\alpha_a r_a + \alpha_b r_b \le \gamma` between the rates of the two groups; a
demographic parity has two of them, bounded rates have four.  Each property makes its own rule, in
:meth:`~fairshield.spec.provable.Provable.rule`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DIFFERENCE, RATIO, ONE_SIDED, BOUNDED = range(4)
KIND, P, Q, R, S, SUPPORT, LEAST, FEW, ENOUGH, LABELLED, ANYTIME, GAP = range(12)
"""Places in :attr:`Rule.numbers`."""
LARGEST = 10**9
"""Of these, even the square is a 64-bit integer."""


class Rule(NamedTuple):
    r"""Rule says how the counters of a property are certified.

    Attributes
    ----------
    numbers
        Integers by the names above: the kind; the bound ``P/Q`` (for bounded rates the lower
        one, ``R/S`` the upper one, ``GAP`` the last number of people without a rate between
        them); the property binds from ``SUPPORT`` people of each group on, certificates as
        if it did from ``LEAST``; a group below ``FEW`` is few, and waits for the
        other one only if that ends with ``ENOUGH`` people; whether relevance is revealed by
        outcomes; whether the property must in effect hold at every moment (``ANYTIME``), because
        nobody else may come who counts for it.
    sides
        ``(sides, 3)``: :math:`\alpha_a, \alpha_b, \gamma`.
    largest
        Counters up to this size are compared in 64 bits.
    """

    numbers: NDArray[np.int64]
    sides: NDArray[np.float64]
    largest: int

    @property
    def anytime(self) -> bool:
        """Whether the property must in effect hold at every moment."""
        return bool(self.numbers[ANYTIME])


def make_rule(numbers: Mapping[int, int], sides: Sequence[Sequence[float]], largest: int) -> Rule:
    """A rule with these numbers, given by their index; all others are 0."""
    found = np.zeros(12, np.int64)
    found[list(numbers)] = list(numbers.values())
    return Rule(found, np.array(sides, float).reshape(-1, 3), largest)
