r"""What the certificates of a property need to know, as a few integers.

Every property that long windows can be planned for compares rates linearly.  A *side* is one
inequality :math:`\alpha_a r_a + \alpha_b r_b \le \gamma` between the rates of the two groups; a
demographic parity has two of them, bounded rates have four.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.spec import (
    BoundedRates,
    DifferenceOfRates,
    DisparateImpact,
    NoRequirement,
    Property,
    Sustained,
)
from fairshield.spec.corridors import Corridor, last_gap

DIFFERENCE, RATIO, ONE_SIDED, BOUNDED = range(4)
KIND, P, Q, R, S, SUPPORT, LEAST, FEW, ENOUGH, LABELLED, ANYTIME, GAP = range(12)
"""Places in :attr:`Rule.numbers`."""
_MOST_LEAST = 50
"""Corridors of so many people are found at once; of hundreds they take seconds."""
_LEAST_BOUND = Fraction(1, 200)
_MOST = 10**9
"""Of these, even the square is a 64-bit integer."""


class Rule(NamedTuple):
    r"""How the counters of a property are certified.

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


def unsupported(prop: Property) -> str | None:
    """Why long windows cannot be planned for ``prop``; ``None`` if they can."""
    if isinstance(prop, NoRequirement):
        return None
    if not isinstance(prop, (DifferenceOfRates, DisparateImpact, BoundedRates)):
        return (
            f"{prop} is neither a difference nor a ratio of rates nor bounds on them, and only "
            "these have certificates"
        )
    if max(prop.coefficient, prop.min_support) > _MOST:
        return f"{prop} has numbers above {_MOST}, too large for certificates in 64 bits"
    if isinstance(prop, DifferenceOfRates) and prop.bound < _LEAST_BOUND:
        return f"a bound below {_LEAST_BOUND} leaves too little room for certificates of few people"
    if isinstance(prop, DifferenceOfRates):
        return None
    if prop.undefined == "rate-0" and prop.min_support == 0:
        return f"{prop} binds groups that nobody was seen of, and then no certificate is known"
    if isinstance(prop, DisparateImpact) and prop.two_sided and prop.bound == 1:
        return "rates that must be equal leave no room for a certificate"
    return None


def uncertified_end(prop: Property, terminal: Property | None) -> str | None:
    """Why no certificate covers what must hold at the end; ``None`` if one does."""
    if terminal is None or terminal == prop:
        return None
    if isinstance(prop, DifferenceOfRates) and terminal == Sustained(prop):
        return None
    return f"{terminal} must hold at the end, which has no certificate"


def rule_of(prop: Property) -> Rule:
    """The rule of a property for which :func:`unsupported` knows no objection."""
    if isinstance(prop, BoundedRates):
        return _bounded(prop)
    if isinstance(prop, NoRequirement):
        return _free()
    assert isinstance(prop, (DifferenceOfRates, DisparateImpact))
    p, q = prop.bound.as_integer_ratio()
    numbers = np.zeros(12, np.int64)
    numbers[[P, Q, SUPPORT]] = p, q, prop.min_support
    if isinstance(prop, DifferenceOfRates):
        least = min(prop.min_support, _MOST_LEAST)
        few = max(-(-q // p), least)
        numbers[[KIND, LEAST, FEW, ENOUGH]] = DIFFERENCE, least, few, -(-few * q // p)
        numbers[[LABELLED, ANYTIME]] = prop.relevant_outcome is not None
        bound = p / q
        sides = [[1.0, -1.0, bound], [-1.0, 1.0, bound]]
        largest = math.isqrt(2**61 // max(2 * p, 2 * q))
        return Rule(numbers, np.array(sides), largest)
    largest = math.isqrt(2**61 // max(p, q) ** 2)
    if prop.two_sided:
        few = -(-2 * q * q // (q * q - p * p))
        numbers[[KIND, FEW, ENOUGH]] = RATIO, few, -(-few * q // p) if p else 0
        return Rule(numbers, np.array([[p / q, -1.0, 0.0], [-1.0, p / q, 0.0]]), largest)
    numbers[KIND] = ONE_SIDED
    return Rule(numbers, np.array([[1.0, -p / q, 0.0]]), largest)


def _free() -> Rule:
    """Rates within [0, 1], on no side of which there is anything to pay."""
    numbers = np.zeros(12, np.int64)
    numbers[[KIND, Q, R, S, ANYTIME]] = BOUNDED, 1, 1, 1, 1
    return Rule(numbers, np.empty((0, 3)), 2**61)


def _bounded(prop: BoundedRates) -> Rule:
    (p, q), (r, s) = prop.lower.as_integer_ratio(), prop.upper.as_integer_ratio()
    gap = last_gap(Corridor(prop.lower, prop.upper))
    numbers = np.zeros(12, np.int64)
    numbers[[KIND, P, Q, R, S, ANYTIME]] = BOUNDED, p, q, r, s, 1
    numbers[[SUPPORT, LEAST, GAP]] = prop.min_support, prop.min_support, int(gap)
    numbers[LABELLED] = prop.relevant_outcome is not None
    low, high = p / q, r / s
    sides = [[1.0, 0.0, high], [-1.0, 0.0, -low], [0.0, 1.0, high], [0.0, -1.0, -low]]
    return Rule(numbers, np.array(sides), 2**61 // max(p, q, r, s))
