r"""The conditions under which the paper's periodic shields are proven fair, decided exactly.

Each theorem assumes something about every period :math:`\tau_i` of a run.  A condition answers two
questions about the period in progress, from the counters at its start, those gained since and the
number of decisions left: can it still be met, and is it certain to be met whatever comes?  That
arithmetic is on integers.  At the end of a period, counters may also be arrays.  Before a run, a
condition that depends on arrivals alone says how probable it is to be met.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import is_whole
from fairshield.base.errors import InvalidValueError
from fairshield.inputs import Inputs
from fairshield.inputs.arrivals import chance_of_both, chance_of_equal
from fairshield.spec import DifferenceOfRates


class Counters(NamedTuple):
    """Counters holds people seen and accepted in each group, as integers or arrays.

    They are ``n_a, k_a, n_b, k_b`` in this order.
    """

    n_a: Any
    k_a: Any
    n_b: Any
    k_b: Any


_MOST_LEFT = 2000
"""No table has so many decisions of a property that counts them; what is possible is not asked."""
_MOST_ADDED: dict[frozenset[int], list[NDArray[np.int64]]] = {}


def most_added(each: frozenset[int], left: int, ahead: int) -> int:
    """The most that ``left`` decisions add to a denominator that gets ``ahead`` more than another.

    Each adds one of the numbers ``each`` to one of the two; -1 if no decisions do.

    >>> most_added(frozenset({0, 1}), 3, 1), most_added(frozenset({1}), 3, 0)
    (2, -1)
    """
    largest, known = max(each), _MOST_ADDED.setdefault(each, [np.zeros(1, np.int64)])
    while len(known) <= left:
        # By what the first is ahead of the second, from the least there can be.
        before = known[-1]
        after = np.full(len(before) + 2 * largest, -1, np.int64)
        for n in each:
            for shift, added in ((largest + n, n), (largest - n, 0)):
                here = after[shift : shift + len(before)]
                np.maximum(here, np.where(before < 0, -1, before + added), out=here)
        known.append(after)
    place = ahead + left * largest
    return int(known[left][place]) if 0 <= place < len(known[left]) else -1


class Condition(ABC):
    """Condition is what a theorem assumes about each period."""

    theorem: str
    """The name of the theorem."""
    known_at_start = False
    """Whether the condition depends on the counters at the start of the period alone."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The condition in words, after "in every period"."""

    @abstractmethod
    def possible(self, start: Counters, gained: Counters, left: int) -> bool:
        """Whether the period in progress can still meet the condition."""

    @abstractmethod
    def certain(self, start: Counters, gained: Counters, left: int) -> Any:
        """Whether the period in progress meets the condition whatever comes."""

    def probability(self, inputs: Inputs, period: int, periods: int = 1) -> float | None:
        """Probability that each of so many periods meets the condition, if ``inputs`` is right.

        It is computed, not simulated, and no shield can change it.  ``None`` where a condition
        depends on what is decided as well.

        Parameters
        ----------
        inputs
            Who comes in each period.
        period
            Decisions in a period.
        periods
            Periods, which come independently of each other.
        """
        if not is_whole(periods) or periods < 1:
            raise InvalidValueError(
                f"periods must be a whole number of at least 1, got {periods!r}"
            )
        one = self._in_one(inputs, period)
        return None if one is None else one**periods

    def _in_one(self, inputs: Inputs, period: int) -> float | None:
        """:meth:`probability` of one period."""
        return None


@dataclass(frozen=True)
class EqualDenominators(Condition):
    """EqualDenominators says that both groups have equally many relevant people.

    It is the condition of the theorem on Static-Fair shields.  With ``min_support`` each group must
    also have that many in each period: a period with fewer is not kept fair, and yet counts in the
    total.
    """

    prop: DifferenceOfRates
    theorem = "conditional correctness of Static-Fair shields"

    @property
    def words(self) -> str:
        least = self.prop.min_support
        support = f", and at least {least}, or none" if least > 1 else ""
        if not self.prop.counting.of_people:
            return f"the denominators of the two groups are equal{support}"
        return f"the two groups have equally many relevant people{support}"

    def possible(self, start: Counters, gained: Counters, left: int) -> bool:
        n_a, _, n_b, _ = gained
        if not self.prop.counting.of_people:
            return self._can_be_equal(int(n_a), int(n_b), left)
        missing, spare = abs(n_a - n_b), left - abs(n_a - n_b)
        if missing > left or (self.prop.relevant_outcome is None and spare % 2):
            return False
        most = max(n_a, n_b) + spare // 2
        # Where the outcome says who counts, a period may have nobody who counts.
        silent = n_a == n_b == 0 and self.prop.relevant_outcome is not None
        return most == 0 or most >= self.prop.min_support or silent

    def _can_be_equal(self, n_a: int, n_b: int, left: int) -> bool:
        """Whether some decisions make these denominators equal, and large enough or 0."""
        each = frozenset(seen for seen, _ in self.prop.counting.gains)
        if n_a == n_b == 0 and (0 in each or not left):
            return True
        if left > _MOST_LEFT:
            return True
        most = most_added(each, left, n_b - n_a)
        return most >= 0 and n_a + most >= max(self.prop.min_support, 1)

    def certain(self, start: Counters, gained: Counters, left: int) -> Any:
        if left:
            return False
        n_a, _, n_b, _ = gained
        return (n_a == n_b) & ((n_a == 0) | (n_a >= self.prop.min_support))

    def _in_one(self, inputs: Inputs, period: int) -> float | None:
        if not self.prop.counting.of_people:
            return None
        outcome = self.prop.relevant_outcome
        return chance_of_equal(inputs, outcome, period, self.prop.min_support)


@dataclass(frozen=True)
class Balanced(Condition):
    """Balanced says that each group has at least ``least`` relevant people.

    It is the condition of the theorem on Static-BW shields.  ``outcome`` says who is relevant;
    ``None``: everybody.
    """

    least: int
    outcome: bool | None = None
    theorem = "conditional correctness of Static-BW shields"

    @property
    def words(self) -> str:
        return f"each group has at least {self.least} relevant people"

    def possible(self, start: Counters, gained: Counters, left: int) -> bool:
        missing = sum(max(self.least - int(n), 0) for n in (gained.n_a, gained.n_b))
        return missing <= left

    def certain(self, start: Counters, gained: Counters, left: int) -> Any:
        return (gained.n_a >= self.least) & (gained.n_b >= self.least)

    def _in_one(self, inputs: Inputs, period: int) -> float:
        return chance_of_both(inputs, self.outcome, period, self.least)


@dataclass(frozen=True)
class EnoughHistory(Condition):
    r"""EnoughHistory says that a period begins fair, with enough people of both groups.

    It is the condition of the theorem on Dynamic shields.  Both groups must have ``min_support``,
    and so many people that

    .. math:: \frac{1}{n_a(\tau\tau')} + \frac{1}{n_b(\tau\tau')} \le \kappa + \varphi(\tau)

    for *every* continuation :math:`\tau'` by a period.  The sum of reciprocals is convex in how
    the arrivals split, so it is largest if all are of one group; where the outcome says who
    counts, if nobody counts.  A first period that begins with nobody seen needs no condition.
    """

    prop: DifferenceOfRates
    period: int
    theorem = "conditional correctness of Dynamic shields"
    known_at_start = True

    @property
    def words(self) -> str:
        least = self.prop.min_support
        support = f"with at least {least} relevant people of each group " if least > 1 else ""
        return (
            f"it begins fair {support}and, whoever comes, the sum of 1/(people seen) over both "
            "groups at its end is at most the bound plus the bias at its beginning"
        )

    def possible(self, start: Counters, gained: Counters, left: int) -> bool:
        return bool(self.certain(start, gained, left))

    def certain(self, start: Counters, gained: Counters, left: int) -> Any:
        n_a, k_a, n_b, k_b = start
        least = max(self.prop.min_support, 1)
        p, q = self.prop.bound.as_integer_ratio()
        # Both multiplied by n_a n_b: the bound, and the bias.
        bound, gap = p * n_a * n_b, q * abs(k_a * n_b - k_b * n_a)
        fair = (n_a >= least) & (n_b >= least) & (gap <= bound)
        for more_a, more_b in self._extremes():
            m_a, m_b = n_a + more_a, n_b + more_b
            fair = fair & ((m_a + m_b) * q * n_a * n_b <= (bound + gap) * m_a * m_b)
        return fair | ((n_a == 0) & (n_b == 0))

    def _extremes(self) -> list[tuple[int, int]]:
        if self.prop.relevant_outcome is None:
            return [(self.period, 0), (0, self.period)]
        return [(0, 0)]


@dataclass(frozen=True)
class PossibleRequests(Condition):
    """PossibleRequests says that only requests and outcomes of positive probability come.

    It is the condition of policies that trust the support of their input model.  Counters do not
    tell whether it was met: a run looks at each request.  What comes next is never certain.
    """

    theorem = "shields that trust the support of their input model are fair on it"

    @property
    def words(self) -> str:
        return (
            "every request and outcome is one to which the input model gives a positive probability"
        )

    def possible(self, start: Counters, gained: Counters, left: int) -> bool:
        return True

    def certain(self, start: Counters, gained: Counters, left: int) -> Any:
        return left == 0

    def _in_one(self, inputs: Inputs, period: int) -> float:
        return 1.0


def balanced_from(lower: Fraction, upper: Fraction) -> int:
    """The paper's N: with so many people, some rate always lies in ``[lower, upper]``."""
    return math.ceil(1 / (upper - lower))
