"""Words, formula and chart axis of a property."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Group, GroupCount, in_words
from fairshield.spec.finding import Measured

_NAMED = 3
"""Groups up to which a sentence names each."""
_NOBODY = GroupCount(0, 0)
_AMONG = {None: "people", True: "people with outcome 1", False: "people with outcome 0"}


@dataclass(frozen=True, slots=True)
class Axis:
    """Axis says what charts draw of a property over time.

    Attributes
    ----------
    name, label
        What a line is called, and the axis.
    low, high
        The least and the largest value that is fair.
    least, most
        The least and the largest value there can be.
    whole
        Whether all values there can be are shown, however small a part of them occurs.
    by_group
        Whether each group's rate is drawn, instead of :meth:`Described.drawn`.
    """

    name: str
    label: str
    low: float
    high: float
    least: float = 0.0
    most: float = float("inf")
    whole: bool = False
    by_group: bool = False


class Described(ABC):
    """Described gives words and charts of a property; users' properties need not override any."""

    kind: ClassVar[str]
    shows_ratios: ClassVar[bool] = False
    """Whether reports show the ratio of each group's rate to the highest."""
    relevant_outcome: ClassVar[bool | None]
    min_support: int
    undefined: str

    # Words ----------------------------------------------------------------------------------

    def words(self) -> str:
        """The bound in words, without the conditions under which it binds."""
        return self.kind.replace("-", " ") or type(self).__name__

    def __str__(self) -> str:
        support = f" for groups of at least {self.min_support}" if self.min_support else ""
        unseen = " (an unseen group has rate 0)" if self.undefined == "rate-0" else ""
        return self.words() + support + unseen

    def requirement(self, groups: Sequence[Group]) -> str:
        """A sentence that states exactly what the property requires of these groups."""
        return f"{self.words()}."

    def promise(self, a: str, b: str) -> str:
        """The beginning of a sentence: what the property keeps between two groups, rounded."""
        words = self.words()
        return words[:1].upper() + words[1:]

    def formula(self) -> str | None:
        """The inequality that the property decides; ``None`` if it has none.

        ``k_a`` and ``n_a`` stand for the people accepted and seen of the first group, ``k_b`` and
        ``n_b`` for those of the second, ``k_g`` and ``n_g`` for those of any.
        """
        return None

    @abstractmethod
    def measured(self, a: GroupCount[Any], b: GroupCount[Any]) -> Measured:
        """Return what is measured of a pair and what is asked of it, ``min_support`` ignored."""

    def _share_accepted(self) -> str:
        return f"share of {_AMONG[self.relevant_outcome]} who are accepted"

    # Pictures -------------------------------------------------------------------------------

    @property
    def limit(self) -> float:
        """The largest bias that is fair."""
        return 0.0

    def axis(self, groups: Sequence[Group]) -> Axis:
        """The axis of charts over time: by default the bias, by the name of what is measured."""
        name = self.measured(_NOBODY, _NOBODY).measure
        return Axis(name, f"{name}{of_any(groups)}", 0.0, self.limit)

    def drawn(self, bias: NDArray[np.float64], *groups: GroupCount[Any]) -> NDArray[np.float64]:
        """The values on the :meth:`axis`, where these counters have this bias."""
        return bias

    def lead(self, a: GroupCount[Any], b: GroupCount[Any]) -> Any:
        """A number whose sign says which group is ahead: positive for the first."""
        return a.accepted * b.seen - b.accepted * a.seen

    def gap_label(self, a: Group, b: Group) -> str:
        """The label of an axis that shows the bias with the sign of :meth:`lead`."""
        return "bias"


def of_any(groups: Sequence[Group]) -> str:
    """Return what an axis label adds where more than two groups are compared."""
    return "" if len(groups) == 2 else ", the largest of any two groups"


def all_of(groups: Sequence[Group]) -> str:
    """The groups in words: by name if they are few, else how many they are.

    >>> all_of(["a", "b"]), all_of(range(9))
    ('groups a and b', '9 groups')
    """
    return f"groups {in_words(groups)}" if len(groups) <= _NAMED else f"{len(groups)} groups"


def any_two_of(groups: Sequence[Group]) -> str:
    """A pair of these groups in words: the two there are, or any two.

    >>> any_two_of(["a", "b"]), any_two_of("abc")
    ('groups a and b', 'any two of the groups a, b and c')
    """
    return all_of(groups) if len(groups) == 2 else f"any two of the {all_of(groups)}"


def exactly(value: Fraction) -> str:
    """A rational number as a rounded decimal, followed by its exact value where that differs.

    >>> exactly(Fraction(1, 10)), exactly(Fraction(1, 3)), exactly(Fraction(1))
    ('0.1 (exactly 1/10)', '0.3333 (exactly 1/3)', '1')
    """
    return str(value) if value.denominator == 1 else f"{float(value):.4g} (exactly {value})"


def rounded(value: float) -> str:
    """A number with three significant digits and without an exponent.

    >>> rounded(10.0), rounded(12.345), rounded(0.0004)
    ('10', '12.3', '0.0004')
    """
    return np.format_float_positional(value, 3, fractional=False, trim="-")
