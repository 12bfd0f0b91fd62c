"""Finding: what a property measured of two groups, and how verdicts are put together."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Group, GroupCount

Verdict = Literal["fair", "unfair", "exempt"]
"""What is said of counters: that the property held, that it did not, or that it bound nothing."""
UNTOLD = "fair or exempt, which an earlier version did not tell apart"
"""What is said of moments of which a state that it saved says only that they did not fail."""
VERDICTS: tuple[Verdict, ...] = ("unfair", "fair", "exempt")
"""All verdicts; of several moments the first of theirs is that of all."""

AT_LAST: dict[Verdict, str] = {
    "fair": "holds", "unfair": "does not hold", "exempt": "bound nothing"
}  # fmt: skip
"""What a property did at the end of a window, by its verdict."""


def worst(verdicts: Collection[Verdict]) -> Verdict | None:
    """The verdict of several moments together: unfair if one was, else fair if one was.

    >>> worst(["exempt", "fair"]), worst(["exempt"]), worst([])
    ('fair', 'exempt', None)
    """
    return min(verdicts, key=VERDICTS.index, default=None)


def verdict_of(*, unfair: int, fair: int) -> Verdict:
    """The verdict of several moments, given how many were unfair and how many fair.

    >>> verdict_of(unfair=1, fair=2), verdict_of(unfair=0, fair=2), verdict_of(unfair=0, fair=0)
    ('unfair', 'fair', 'exempt')
    """
    return "unfair" if unfair else "fair" if fair else "exempt"


def verdict_places(holds: NDArray[np.bool_], binds: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The places in ``VERDICTS`` of moments at which the property held, or not, and bound, or not.

    >>> verdict_places(np.array([True, True, False]), np.array([False, True, True])).tolist()
    [2, 1, 0]
    """
    unfair, fair, exempt = map(VERDICTS.index, ("unfair", "fair", "exempt"))
    return np.where(holds, np.where(binds, fair, exempt), unfair)


def tally(verdicts: Collection[Verdict]) -> str:
    """How many there are of each verdict, in words.

    >>> tally(["fair", "unfair", "fair"])
    '1 unfair, 2 fair'
    """
    found = list(verdicts)
    return ", ".join(f"{found.count(kind):,} {kind}" for kind in VERDICTS if kind in found)


def order_of(verdict: Verdict, bias: float) -> tuple[int, float]:
    """A sorting key of pairs: unfair ones, fair ones, exempt ones; in each the largest bias first.

    >>> min([("fair", 0.1), ("exempt", 0.4), ("fair", 0.2)], key=lambda pair: order_of(*pair))
    ('fair', 0.2)
    """
    return VERDICTS.index(verdict), -bias


class Measured(NamedTuple):
    """Measured is the value of a property's measure for one pair of groups.

    ``value`` is not a number where a group has nobody to measure.  ``limit`` is the last value that
    is fair.  ``turned`` says that the second group is named first.
    """

    measure: str
    value: float
    asked: str
    limit: float
    turned: bool = False
    whose: str = "between {} and {}"


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding is what a property measured of a pair of groups; as text, a sentence.

    Attributes
    ----------
    pair
        The two groups, in the order of the sentence: of a ratio, the one that is divided first.
    measure, value
        What was measured, such as ``"impact ratio"``, and how much; ``None`` where a group has
        nobody to measure.
    asked, limit
        What is asked, such as ``"at least 0.8"``, and the last value that is fair.
    bias
        How unfair that is, whatever the support: the :meth:`~fairshield.Property.bias` of the pair.
    verdict
        Of this pair alone: ``"exempt"`` if it did not bind.
    why
        Why it did not bind; empty if it did.
    whose
        How the sentence names the pair.
    """

    pair: tuple[Group, Group]
    measure: str
    value: float | None
    asked: str
    limit: float
    bias: float
    verdict: Verdict
    why: str = ""
    whose: str = "between {} and {}"

    @property
    def bound(self) -> bool:
        """Whether the property bound this pair."""
        return self.verdict != "exempt"

    def order(self) -> tuple[int, float]:
        """The sorting key :func:`order_of`, by which findings of several windows compare, too."""
        return order_of(self.verdict, self.bias)

    @property
    def who(self) -> str:
        """The pair as the sentence names it, such as ``"of women to men"``."""
        return self.whose.format(*self.pair)

    @property
    def shown(self) -> str:
        """The value for people to read, with as many digits as show that it is not fair."""
        if self.value is None or math.isinf(self.value):
            return "unknown" if self.value is None else "infinite"
        over, text = self.value > self.limit, ""
        for digits in (4, 6, 9, 12, 17):
            text = f"{self.value:.{digits}g}"
            read = float(text)
            if self.verdict != "unfair" or (read != self.limit and (read > self.limit) == over):
                break
        return text

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; a number is ``None`` also where it is infinite."""
        data = asdict(self)
        del data["whose"]
        finite = {k: None if v in (math.inf, -math.inf) else v for k, v in data.items()}
        return finite | {"pair": list(self.pair), "text": str(self)}

    def __str__(self) -> str:
        told = f"{self.measure} {self.shown} {self.who} where {self.asked} is asked"
        return f"{told}; exempt: {self.why}" if self.why else told


def why_exempt(counts: Mapping[Group, GroupCount[int]], min_support: int, *, rate_0: bool) -> str:
    """Why nothing binds these two groups; with ``rate_0`` a group without people has rate 0."""
    short = [(group, n.seen) for group, n in counts.items() if n.seen < min_support]
    if short:
        return f"{_people(short)}, below the support of {min_support:,}"
    nobody = [(group, 0) for group, n in counts.items() if not n.seen and not rate_0]
    if nobody:
        return _people(nobody)
    return "no decisions about these people could exceed it"


def _people(short: list[tuple[Group, int]]) -> str:
    return " and ".join(f"{seen or 'nobody'} of {group}" for group, seen in short)
