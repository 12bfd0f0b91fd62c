"""CountedLayout: the numbering of the states of a property that counts decisions.

A layer is one of :class:`fairshield.policy.many.ManyLayout`: after ``t`` decisions that add at most
``w`` each it is that of ``w t`` people, of whom any number is not counted, or all of whom are
counted where every decision adds exactly 1.  Layers follow each other without gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import At
from fairshield.policy.counted.lookups import number_of
from fairshield.policy.many import ManyLayout
from fairshield.spec import Counting

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CountedLayout:
    """CountedLayout numbers the states of all layers ``0 … horizon``.

    >>> from fairshield import RateDifference
    >>> parity = RateDifference("0.1", numerator="accept 1", denominator="accept")
    >>> layout = CountedLayout(30, n_groups=2, counting=parity.counting)
    >>> layout.n_states, layout.place(30, (30, 30, 0, 0))
    (324632, 324631)
    """

    horizon: int
    n_groups: int
    counting: Counting

    @cached_property
    def inner(self) -> ManyLayout:
        """The layout of the people that the last layer is one of."""
        most = self.counting.most
        return ManyLayout(most * self.horizon, self.n_groups, not self.counting.steady)

    @property
    def n_states(self) -> int:
        """States of all layers."""
        return self.states_before(self.horizon + 1)

    def states_before(self, t: int) -> int:
        """States of the layers before ``t``."""
        if self.counting.most == 1:
            return self.inner.states_before(t)
        return sum(map(self.states_of, range(t)))

    def states_of(self, t: int) -> int:
        """States of layer ``t``."""
        return self.inner.states_of(self.layer(t))

    def layer(self, t: int) -> int:
        """The layer of :attr:`inner` that layer ``t`` is."""
        return self.counting.most * t

    @cached_property
    def starts(self) -> Ints:
        """What is added to the place of a state's counters, by layer, to give its number."""
        if self.counting.steady:
            return np.zeros(self.horizon + 1, np.int64)
        sizes = [self.states_of(t) for t in range(self.horizon)]
        return np.cumsum([0, *sizes], dtype=np.int64)

    @property
    def terms(self) -> Ints:
        """As :attr:`fairshield.policy.many.ManyLayout.terms`."""
        return self.inner.terms

    @property
    def kinds(self) -> int:
        """As :attr:`fairshield.policy.many.ManyLayout.kinds`."""
        return self.inner.kinds

    def place(self, t: int, at: At) -> int:
        """The number of a state."""
        terms = self.terms
        return int(self.starts[t] + number_of(terms.reshape(-1), terms.shape[1], at))


def largest_horizon(n_groups: int, counting: Counting, most: int) -> int:
    """The longest window of at most ``most`` states; 0 if there is none."""
    horizon = 0
    while CountedLayout(horizon + 1, n_groups, counting).n_states <= most:
        horizon += 1
    return horizon
