"""Property, the base class: integer decisions, minimum support, a name in files.

A property's words and charts are in :mod:`fairshield.spec.described`, the theorems about it in
:mod:`fairshield.spec.provable`.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import KW_ONLY, dataclass, fields
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Counts, Group, GroupCount, is_whole
from fairshield.base.errors import FairshieldError, InvalidValueError, called, check_kind, shown
from fairshield.base.renamed import Renamed
from fairshield.spec.counting import PEOPLE, Counting
from fairshield.spec.described import Described
from fairshield.spec.finding import Finding, Measured, Verdict, order_of, why_exempt
from fairshield.spec.intervals import Interval
from fairshield.spec.provable import Provable
from fairshield.spec.registry import register

Undefined = Literal["bias-0", "rate-0"]
Count = GroupCount[Any]
"""Counters of one group: Python integers, or integer arrays that broadcast."""


class _Judged(NamedTuple):
    """_Judged holds a pair of groups, its verdict, and its bias without ``min_support``."""

    pair: tuple[Group, Group]
    a: Count
    b: Count
    verdict: Verdict
    bias: float

    def order(self) -> tuple[int, float]:
        return order_of(self.verdict, self.bias)


@dataclass(frozen=True)
class Property(Described, Provable):
    """Property is a predicate of counters; it holds if it holds for every pair of groups.

    With two groups there is one pair; with more, :meth:`bias_of` is the largest bias of any pair.
    Subclasses are frozen dataclasses with a ``kind`` (the name in files and on the command line)
    and implement :meth:`fair` for a pair, of which ``a`` is the group declared first;
    :meth:`bias` and :attr:`limit` are what reports and plots show.

    Parameters
    ----------
    min_support
        The property binds a pair only once both groups have this many relevant people.
    undefined
        What to make of the rate of a group without relevant people: with ``"bias-0"`` it bounds
        nothing, as in the paper; ``"rate-0"`` makes it 0, as the published experiments did.
    """

    kind: ClassVar[str] = ""
    relevant_outcome: ClassVar[bool | None] = None
    """Only people with this outcome are counted; ``None`` counts everybody at once."""
    offered: ClassVar[bool] = True
    """Whether specifications and the command line offer it by its ``kind``."""

    _: KW_ONLY
    min_support: int = 0
    undefined: Undefined = "bias-0"

    difference_of_rates = Renamed("difference is not None", lambda it: it.difference is not None)

    def __init_subclass__(cls, kind: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if kind:
            register(cls, kind)
            cls.kind = kind

    def __post_init__(self) -> None:
        if not is_whole(self.min_support) or self.min_support < 0:
            raise InvalidValueError(
                f"{called('min_support')} must be a whole number of at least 0, got "
                f"{self.min_support!r}"
            )
        object.__setattr__(self, "min_support", int(self.min_support))
        if self.undefined not in ("bias-0", "rate-0"):
            raise InvalidValueError(
                f"undefined must be 'bias-0' or 'rate-0', got {self.undefined!r}"
            )

    @property
    def counting(self) -> Counting:
        """What a decision and its outcome add to the counters that the property reads."""
        return PEOPLE[self.relevant_outcome]

    # What a property defines ----------------------------------------------------------------

    @abstractmethod
    def fair(self, a: Count, b: Count) -> Any:
        """Whether the bound holds, for integers or elementwise for integer arrays.

        It is also called for groups of which nobody was seen, and below ``min_support``, where the
        answer does not count.  Use integer arithmetic, no division.
        """

    def bias(self, a: Count, b: Count) -> Any:
        """How unfair a pair's counters are, as floats for reports; fair means ``bias <= limit``.

        A pair below ``min_support`` has bias 0; :meth:`measured_bias_of` is what was measured.
        """
        return 1.0 - self.holds_array(a, b)

    def can_fail(self, n_a: Any, n_b: Any) -> Any:
        """Whether some decisions on so many people are not :meth:`fair`, ``min_support`` ignored.

        For integers or arrays that broadcast.  This default tries all numbers of acceptances if
        none of the four extreme ones fails; a subclass that knows a formula overrides it.
        """
        return np.frompyfunc(self._some_fail, 2, 1)(n_a, n_b)

    def measured(self, a: Count, b: Count) -> Measured:
        """Return what is measured of a pair and what is asked of it, ``min_support`` ignored.

        The larger the :meth:`bias`, the further is the measured value from what is asked.
        """
        bias = float(self._whatever_support().bias(a, b))
        return Measured("bias", bias, f"at most {self.limit:.6g}", self.limit)

    @property
    def only_two(self) -> str | None:
        """Why the property cannot bind more than two groups; ``None`` if it binds every pair."""
        return None

    def bias_within(self, a: Interval, b: Interval, share: Interval) -> tuple[float, float] | None:
        """The least and the largest bias of rates within these intervals; ``None`` if not known.

        ``share`` is the share of the first group among the people of both who were accepted.
        """
        return None

    # What other modules call ----------------------------------------------------------------

    def holds(self, counts: Counts) -> bool:
        """Whether the counters satisfy the property, decided in integers of any size."""
        return all(self._asked(a, b) for a, b in self._pairs_of(counts))

    def binds(self, counts: Counts) -> bool:
        """Whether some decisions about the people seen would have been unfair.

        None would, and the property binds nothing, where every pair lacks support, has a group
        without people, or cannot differ by more than the bound allows.  Then :meth:`holds` is true
        and the verdict is ``"exempt"``.
        """
        return any(bool(self._pair_binds(a, b)) for a, b in self._pairs_of(counts))

    def verdict(self, counts: Counts) -> Verdict:
        """The verdict on these counters: ``"fair"``, ``"unfair"``, or ``"exempt"``.

        >>> from fairshield import Counts, DemographicParity
        >>> prop = DemographicParity("0.1", min_support=30)
        >>> counts = Counts({"a": (60, 40), "b": (20, 5)})
        >>> prop.holds(counts), prop.verdict(counts), round(prop.measured_bias_of(counts), 3)
        (True, 'exempt', 0.417)
        """
        if not self.holds(counts):
            return "unfair"
        return "fair" if self.binds(counts) else "exempt"

    def bias_of(self, counts: Counts) -> float:
        """The largest bias of any pair that has support, for people to read."""
        return max(float(self.bias(a, b)) for a, b in self._pairs_of(counts))

    def measured_bias_of(self, counts: Counts) -> float:
        """The largest bias of any pair, whether or not it has support."""
        return self._whatever_support().bias_of(counts)

    def finding(self, counts: Counts) -> Finding:
        """The pair that decides the :meth:`verdict`, and what was measured of it.

        It is the pair of the largest bias among those that fail.  If none fails, it is chosen among
        those that bind; if none binds, among all.

        >>> from fairshield import Counts, DisparateImpact
        >>> print(DisparateImpact("0.8").finding(Counts({"a": (90, 61), "b": (90, 17)})))
        impact ratio 0.2787 of b to a where at least 0.8 is asked
        """
        return self._finding(min(self._judged(counts), key=_Judged.order))

    def findings(self, counts: Counts) -> list[Finding]:
        """:meth:`finding` of every pair: first those that fail, then those that bind, then others.

        Within each of the three the largest bias comes first.
        """
        return list(map(self._finding, sorted(self._judged(counts), key=_Judged.order)))

    def fair_interval(
        self, n_a: Any, n_b: Any, *, accepted: Any, along: Any
    ) -> tuple[Any, Any] | None:
        """Fair acceptances ``lo <= k < hi`` in one group, given those in the other.

        ``along`` says for which group (0: a, 1: b) the interval is asked, ``accepted`` how many
        were accepted in the other; all are numbers or arrays.  ``None`` means that no formula is
        known.  The interval only saves time: it must agree with :meth:`holds`.
        """
        return None

    def fair_runs(
        self, n_a: Any, n_b: Any, *, accepted: Any, along: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None:
        """:meth:`fair_interval` where the fair acceptances may have gaps, for arrays.

        Returns any number of runs ``lo <= k < hi`` as three arrays: the index of each run's row in
        the arguments, ``lo`` and ``hi``.
        """
        return None

    def holds_array(self, *groups: Count) -> NDArray[np.bool_]:
        """:meth:`holds` for arrays of counters that broadcast against each other, never wrapping.

        It computes in 64-bit integers where every product fits, else in Python integers.
        """
        first, *others = (self._pair_holds(a, b) for a, b in self._pairs(groups))
        for fair in others:
            first = first & fair
        return first

    def binds_array(self, *groups: Count) -> NDArray[np.bool_]:
        """:meth:`binds` for arrays of counters."""
        pairs = [self._pair_binds_array(a, b) for a, b in self._pairs(groups)]
        some: NDArray[np.bool_] = np.any(np.broadcast_arrays(*pairs), axis=0)
        return some

    def bias_array(self, *groups: Count) -> NDArray[np.float64]:
        """:meth:`bias_of` for arrays of counters."""
        pairs = [np.asarray(self.bias(a, b), float) for a, b in self._pairs(groups)]
        largest: NDArray[np.float64] = np.max(np.broadcast_arrays(*pairs), axis=0)
        return largest

    def measured_bias_array(self, *groups: Count) -> NDArray[np.float64]:
        """:meth:`measured_bias_of` for arrays of counters."""
        return self._whatever_support().bias_array(*groups)

    def check_groups(self, n_groups: int) -> None:
        """Raise if the property cannot bind this number of groups."""
        if n_groups < 2:
            raise InvalidValueError(f"{self} compares groups, got {n_groups}: declare at least two")
        if n_groups > 2 and self.only_two is not None:
            raise InvalidValueError(f"{self} compares two groups, got {n_groups}: {self.only_two}")

    def binds_quickly(self, a: Count, b: Count) -> NDArray[np.bool_]:
        """:meth:`binds_array` of a pair; where that takes too long, only whether it has support.

        It takes long where a subclass has no formula for :meth:`can_fail`, which then tries all
        numbers of acceptances.
        """
        if type(self).can_fail is not Property.can_fail:
            return self.binds_array(a, b)
        least = max(self.min_support, 1)
        return np.asarray((a.seen >= least) & (b.seen >= least))

    def _pair_binds(self, a: Count, b: Count) -> Any:
        supported = (a.seen >= self.min_support) & (b.seen >= self.min_support)
        return supported & self.can_fail(a.seen, b.seen)

    def _pair_binds_array(self, a: Count, b: Count) -> NDArray[np.bool_]:
        a, b = (GroupCount(n, 0) for n in self._exact_arrays(a.seen, b.seen))
        return np.asarray(self._pair_binds(a, b), bool)

    def _judged(self, counts: Counts) -> Iterator[_Judged]:
        """Yield every pair with its verdict and bias, which cost less than its finding."""
        self.check_groups(len(counts))
        asked = self._whatever_support()
        for (first, a), (second, b) in combinations(counts.items(), 2):
            yield _Judged((first, second), a, b, self._pair_verdict(a, b), float(asked.bias(a, b)))

    def _finding(self, judged: _Judged) -> Finding:
        (first, second), a, b, verdict, bias = judged
        measure, value, asks, limit, turned, whose = self.measured(a, b)
        why = ""
        if verdict == "exempt":
            rate_0 = self.undefined == "rate-0"
            why = why_exempt({first: a, second: b}, self.min_support, rate_0=rate_0)
        return Finding(
            pair=(second, first) if turned else (first, second), measure=measure,
            value=None if math.isnan(value) else value, asked=asks, limit=limit,
            bias=bias, verdict=verdict, why=why, whose=whose,
        )  # fmt: skip

    def _pair_verdict(self, a: Count, b: Count) -> Verdict:
        if not self._decide(a, b):
            return "unfair"
        return "fair" if self._pair_binds(a, b) else "exempt"

    def _some_fail(self, n_a: int, n_b: int) -> bool:
        extremes = [np.array([0, n]) for n in (n_a, n_b)]
        everything = [np.arange(n + 1) for n in (n_a, n_b)]
        asked = self._whatever_support()
        return any(
            not asked.holds_array(GroupCount(n_a, k_a[:, None]), GroupCount(n_b, k_b)).all()
            for k_a, k_b in (extremes, everything)
        )

    def _whatever_support(self) -> Property:
        """The same property with ``min_support`` 0, so that it binds groups of any size."""
        return self if not self.min_support else self._without_support

    @cached_property
    def _without_support(self) -> Property:
        """A copy of this property with ``min_support`` 0, made once."""
        same = copy.copy(self)
        object.__setattr__(same, "min_support", 0)
        return same

    def _pair_holds(self, a: Count, b: Count) -> NDArray[np.bool_]:
        arrays = self._exact_arrays(*a, *b)
        shape = np.broadcast_shapes(*(x.shape for x in arrays))
        try:
            with np.errstate(divide="raise", invalid="raise"):
                fair = self._decide(GroupCount(*arrays[:2]), GroupCount(*arrays[2:]))
            fair = np.broadcast_to(np.asarray(fair), shape)
        except (TypeError, ValueError, ArithmeticError):
            fair = None
        if fair is None or fair.dtype != np.bool_:
            # A user's property may branch on its counters or raise for some: call it for each.
            each = np.frompyfunc(
                lambda *n: self._asked(GroupCount(*n[:2]), GroupCount(*n[2:])), 4, 1
            )
            fair = np.asarray(each(*(x.astype(object) for x in arrays)), bool)
        return np.broadcast_to(fair, shape)

    def _asked(self, a: Count, b: Count) -> bool:
        """Whether one state is fair; an error names the state where ``fair`` gives no bool."""
        try:
            fair = self._decide(a, b)
        except FairshieldError:
            raise
        except Exception as error:
            raise self._no_answer(a, b, f"raised {type(error).__name__}: {error}") from error
        if not isinstance(fair, bool | np.bool_):
            raise self._no_answer(a, b, f"returned {shown(fair)}")
        return bool(fair)

    def _no_answer(self, a: Count, b: Count, what: str) -> InvalidValueError:
        state = f"{a.accepted} accepted of {a.seen} and {b.accepted} of {b.seen}"
        return InvalidValueError(
            f"{type(self).__name__}.fair {what} for {state}: it is asked about every such state, "
            "also of groups nobody was seen of, and must return True or False; multiply integers "
            "instead of dividing"
        )

    def _exact_arrays(self, *counters: Any) -> list[NDArray[Any]]:
        arrays = [np.asarray(x) for x in counters]
        largest = max(int(x.max(initial=1)) for x in arrays)
        # At most two products of a coefficient and two counters are added.
        fits = 2 * self.coefficient * largest * largest < 2**62
        return [x.astype(np.int64 if fits else object, copy=False) for x in arrays]

    def _decide(self, a: Count, b: Count) -> Any:
        fair = self.fair(*self._defined(a, b))
        if self.min_support:
            fair = fair | (a.seen < self.min_support) | (b.seen < self.min_support)
        return fair

    def _defined(self, a: Count, b: Count) -> tuple[Count, Count]:
        if self.undefined == "rate-0":
            # With one person seen and nobody accepted, every definition of the rate gives 0.
            return (
                GroupCount(a.seen + (a.seen == 0), a.accepted),
                GroupCount(b.seen + (b.seen == 0), b.accepted),
            )
        return a, b

    def _known_rate(self, g: Count) -> float:
        """The rate of a group; not a number if it is undefined."""
        if g.seen:
            return float(g.accepted / g.seen)
        return 0.0 if self.undefined == "rate-0" else math.nan

    def _pairs_of(self, counts: Counts) -> Iterator[tuple[Count, Count]]:
        check_kind(counts, Counts, "a property is asked about Counts of people seen and accepted")
        return self._pairs(counts.values())

    def _pairs(self, groups: Collection[Count]) -> Iterator[tuple[Count, Count]]:
        self.check_groups(len(groups))
        return combinations(groups, 2)

    # Files ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The property as JSON-able data; :func:`property_from_dict` is the inverse."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {k: str(v) if isinstance(v, Fraction) else v for k, v in data.items()}
        return {"kind": self.kind, **plain}


def both(prop: Property, more: Property | None) -> tuple[Property, ...]:
    """The properties that must all hold: ``prop``, and ``more`` if it is another one."""
    return (prop,) if more is None or more == prop else (prop, more)
