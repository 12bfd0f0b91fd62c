r"""ManyLayout: the numbering of the counter states of several groups.

Every person decided on is one of :math:`m` kinds: of group :math:`g` and accepted or rejected, or,
where the outcome says who counts, not counted.  With people :math:`x_1, \dots, x_m` of the kinds
*accepted in a, rejected in a, accepted in b, …* and their partial sums
:math:`s_i = x_1 + \dots + x_i`, of which :math:`s_m = t` is the number of decisions, a state is
number

.. math:: \sum_{i=1}^{m} \binom{s_i + i - 1}{i},

the combinatorial number system: every number from 0 on is that of one state, the states of a layer
``t`` follow those of the layers before, and of one layer the same sum without its last term is the
place in it.  One person more of kind :math:`j` adds
:math:`\sum_{i \ge j} \binom{s_i + i - 1}{i - 1}`.

A **row** fixes everything but the acceptances in the first group, :math:`s_1`, and so all the
terms but the first: its states follow each other, and so do their successors of each kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import At
from fairshield.policy.many.lookups import NOBODY, number_of

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ManyLayout:
    """ManyLayout numbers the states of all layers ``0 … horizon``.

    >>> layout = ManyLayout(30, n_groups=3, labelled=False)
    >>> layout.n_states, layout.place(30, (30, 30, 0, 0, 0, 0))
    (1947792, 1947791)
    """

    horizon: int
    n_groups: int
    labelled: bool

    @property
    def kinds(self) -> int:
        """The number of kinds of people, see the module's docstring."""
        return 2 * self.n_groups + self.labelled

    @property
    def n_states(self) -> int:
        """States of all layers."""
        return self.states_before(self.horizon + 1)

    def states_before(self, t: int) -> int:
        """States of the layers before ``t``."""
        return comb(t + self.kinds - 1, self.kinds)

    def layer(self, t: int) -> int:
        """The sum of all people in layer ``t``, which is its number."""
        return t

    def states_of(self, t: int) -> int:
        """States of layer ``t``."""
        return comb(t + self.kinds - 1, self.kinds - 1)

    @cached_property
    def terms(self) -> Ints:
        r"""``(kinds + 1, horizon + 2)``: :math:`\binom{s + i - 1}{i}` by ``i`` and ``s``."""
        terms = np.ones((self.kinds + 1, self.horizon + 2), np.int64)
        for i in range(1, self.kinds + 1):
            # Pascal's rule: each row is the running sum of the row above.
            terms[i, 0] = 0
            np.cumsum(terms[i - 1, 1:], out=terms[i, 1:])
        terms.flags.writeable = False
        return terms

    def place(self, t: int, at: At) -> int:
        """The number of a state."""
        terms = self.terms.reshape(-1)
        return int(number_of(terms, self.terms.shape[1], self.labelled, t, at, NOBODY, 0))


def largest_horizon(n_groups: int, labelled: bool, most: int) -> int:
    """The longest window of at most ``most`` states; 0 if there is none."""
    horizon = 0
    while ManyLayout(horizon + 1, n_groups, labelled).n_states <= most:
        horizon += 1
    return horizon
