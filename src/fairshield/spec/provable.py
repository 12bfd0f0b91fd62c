"""Provable: theorems about a property, such as what it implies and how it is kept for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import GroupCount
from fairshield.spec.rules import LARGEST, Rule

if TYPE_CHECKING:
    from fairshield.spec.base import Property
    from fairshield.spec.differences import DifferenceOfRates
    from fairshield.spec.sustained import Sustained

Pair = tuple[GroupCount[int], GroupCount[int]]
"""Counters of two groups."""


class Provable:
    """Provable holds the theorems about a property; by default none is known."""

    demands: ClassVar[bool] = True
    """Whether it asks for anything at all."""
    lasting: ClassVar[bool] = False
    """Whether counters that satisfy it can be kept so for ever, whoever arrives."""
    min_support: int
    undefined: str

    if TYPE_CHECKING:  # Declared for type checkers: Property defines it

        def binds_array(self, *groups: GroupCount[Any]) -> NDArray[np.bool_]: ...

    @property
    def coefficient(self) -> int:
        """The largest constant that ``fair`` multiplies with a product of two counters."""
        return 1 << 20

    @property
    def difference(self) -> DifferenceOfRates | None:
        """The property itself if it bounds a difference of rates, which most theorems assume."""
        return None

    @property
    def additive(self) -> DifferenceOfRates | None:
        """The property itself if it bounds a difference of rates of counters that add up.

        Where it holds in two stretches with equal denominators it then holds in both together.
        """
        return self.difference

    @property
    def sustained(self) -> Sustained | None:
        """The property that certifies that this one can be kept for ever; ``None`` if none does."""
        return None

    def implies(self, other: Property) -> bool:
        """Whether ``other`` is known to hold wherever this property does."""
        return other == self or not other.demands

    # Whether it can bind ----------------------------------------------------------------------

    def some_unfair(self, start: Pair, n_a: NDArray[Any], n_b: NDArray[Any]) -> bool:
        """Whether so many people after ``start`` can be decided unfairly, for some of the numbers.

        This one asks whether it binds these people.
        """
        a, b = start
        seen = GroupCount(a.seen + n_a, 0), GroupCount(b.seen + n_b, 0)
        return bool(self.binds_array(*seen).any())

    def telling_splits(self, decided: int, a: int, b: int) -> list[int] | None:
        """How many of ``decided`` people are of the first group, where it binds if it ever does.

        ``a`` and ``b`` people were seen before.  ``None``: such numbers are not known.
        """
        return None

    # Long windows ---------------------------------------------------------------------------

    @property
    def uncertified(self) -> str | None:
        """Why long windows cannot be planned for this property; ``None`` if :meth:`rule` can."""
        return (
            f"{self} is neither a difference nor a ratio of rates nor bounds on them, and only "
            "these have certificates"
        )

    def uncertified_end(self, terminal: Property | None) -> str | None:
        """Why no certificate covers what must also hold at the end; ``None`` if one does."""
        if terminal in (None, self, self.sustained):
            return None
        return f"{terminal} must hold at the end, which has no certificate"

    def rule(self) -> Rule:
        """The rule by which counters are certified in long windows."""
        raise NotImplementedError(self.uncertified)

    def _too_large(self) -> str | None:
        if max(self.coefficient, self.min_support) > LARGEST:
            return f"{self} has numbers above {LARGEST}, too large for certificates in 64 bits"
        return None

    def _binds_nobody(self) -> str | None:
        if self.undefined == "rate-0" and self.min_support == 0:
            return f"{self} binds groups that nobody was seen of, and then no certificate is known"
        return None
