"""What every property has: integer decisions, minimum support, a name in files."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Counts, Group, GroupCount, is_whole
from fairshield.errors import FairshieldError, InvalidValueError, called, check_kind, shown
from fairshield.spec.finding import Finding, Measured, Verdict, order_of, why_exempt

Undefined = Literal["bias-0", "rate-0"]
Count = GroupCount[Any]
"""Counters of one group: Python integers, or integer arrays that broadcast."""


class _Judged(NamedTuple):
    """A pair of groups, and what is said of it; the bias is that of whatever support."""

    pair: tuple[Group, Group]
    a: Count
    b: Count
    verdict: Verdict
    bias: float

    def order(self) -> tuple[int, float]:
        return order_of(self.verdict, self.bias)


@dataclass(frozen=True)
class Property(ABC):
    """A predicate of the groups' counters: it holds if it holds for every pair of groups.

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
    difference_of_rates: ClassVar[bool] = False
    _registry: ClassVar[dict[str, type[Property]]] = {}

    _: KW_ONLY
    min_support: int = 0
    undefined: Undefined = "bias-0"

    def __init_subclass__(cls, kind: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if kind:
            taken = Property._registry.get(kind, cls)
            # A class of the same name may be defined anew, as when a notebook cell is run again.
            if (taken.__module__, taken.__qualname__) != (cls.__module__, cls.__qualname__):
                raise InvalidValueError(
                    f"the kind {kind!r} is taken by {taken.__qualname__}: choose another"
                )
            cls.kind = kind
            Property._registry[kind] = cls

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

    # What a property defines ----------------------------------------------------------------

    @abstractmethod
    def fair(self, a: Count, b: Count) -> Any:
        """Whether the bound holds, for integers or elementwise for integer arrays.

        Also asked about groups nobody was seen of, and below ``min_support``, where the answer
        does not count.  Use integer arithmetic, no division.
        """

    def bias(self, a: Count, b: Count) -> Any:
        """How unfair a pair's counters are, as floats for reports; fair means ``bias <= limit``.

        A pair below ``min_support`` has bias 0; :meth:`measured_bias_of` is what was measured.
        """
        return 1.0 - self.holds_array(a, b)

    def can_fail(self, n_a: Any, n_b: Any) -> Any:
        """Whether some decisions about so many people are not :meth:`fair`, whatever the support.

        For integers or arrays that broadcast.  This one asks about all decisions if none of the
        four extreme ones fails; a subclass that knows a formula overrides it.
        """
        return np.frompyfunc(self._some_fail, 2, 1)(n_a, n_b)

    def measured(self, a: Count, b: Count) -> Measured:
        """What is measured of a pair and what is asked of it, in words, whatever the support.

        The larger the :meth:`bias`, the further it is from what is asked.
        """
        bias = float(self._whatever_support().bias(a, b))
        return Measured("bias", bias, f"at most {self.limit:.6g}", self.limit)

    @property
    def only_two(self) -> str | None:
        """Why it cannot be asked of more than two groups; ``None``: it binds every pair."""
        return None

    @property
    def limit(self) -> float:
        """The largest :meth:`bias` that is fair."""
        return 0.0

    @property
    def coefficient(self) -> int:
        """The largest constant that :meth:`fair` multiplies with a product of two counters."""
        return 1 << 20

    # What everybody asks --------------------------------------------------------------------

    def holds(self, counts: Counts) -> bool:
        """Whether the counters satisfy the property, decided in integers of any size."""
        return all(self._asked(a, b) for a, b in self._pairs_of(counts))

    def binds(self, counts: Counts) -> bool:
        """Whether it asks anything: some decisions about the people seen would have been unfair.

        It does not where every pair lacks support, has a group without people, or cannot differ by
        more than the bound allows.  Counters that it does not bind hold, and are exempt.
        """
        return any(bool(self._pair_binds(a, b)) for a, b in self._pairs_of(counts))

    def verdict(self, counts: Counts) -> Verdict:
        """What to say of these counters: ``"fair"``, ``"unfair"``, or ``"exempt"``.

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

        The pair of the largest bias among those that fail; if none does, among those that bind;
        if none does, of all.

        >>> from fairshield import Counts, DisparateImpact
        >>> print(DisparateImpact("0.8").finding(Counts({"a": (90, 61), "b": (90, 17)})))
        impact ratio 0.2787 of b to a where at least 0.8 is asked
        """
        return self._finding(min(self._judged(counts), key=_Judged.order))

    def findings(self, counts: Counts) -> list[Finding]:
        """:meth:`finding` of every pair: those that fail, those that bind, others; widest first."""
        return list(map(self._finding, sorted(self._judged(counts), key=_Judged.order)))

    def fair_interval(
        self, n_a: Any, n_b: Any, *, accepted: Any, along: Any
    ) -> tuple[Any, Any] | None:
        """Fair acceptances ``lo <= k < hi`` in one group, given those in the other.

        ``along`` says for which group (0: a, 1: b) the interval is asked, ``accepted`` how many
        were accepted in the other; all are numbers or arrays.  ``None``: not known.  Only a
        shortcut: it must agree with :meth:`holds`, and everything works without it.
        """
        return None

    def fair_runs(
        self, n_a: Any, n_b: Any, *, accepted: Any, along: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None:
        """:meth:`fair_interval` where the fair acceptances may have gaps, for arrays.

        Any number of runs ``lo <= k < hi``: the place of each in the arrays, ``lo`` and ``hi``.
        """
        return None

    def holds_array(self, *groups: Count) -> NDArray[np.bool_]:
        """:meth:`holds` for arrays of counters that broadcast against each other, never wrapping.

        64-bit integers where every product fits, Python integers where it might not.
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
        """Refuse a number of groups that the property cannot be asked of."""
        if n_groups < 2:
            raise InvalidValueError(f"{self} compares groups, got {n_groups}: declare at least two")
        if n_groups > 2 and self.only_two is not None:
            raise InvalidValueError(f"{self} compares two groups, got {n_groups}: {self.only_two}")

    def _pair_binds(self, a: Count, b: Count) -> Any:
        supported = (a.seen >= self.min_support) & (b.seen >= self.min_support)
        return supported & self.can_fail(a.seen, b.seen)

    def _pair_binds_array(self, a: Count, b: Count) -> NDArray[np.bool_]:
        a, b = (GroupCount(n, 0) for n in self._exact_arrays(a.seen, b.seen))
        return np.asarray(self._pair_binds(a, b), bool)

    def _judged(self, counts: Counts) -> Iterator[_Judged]:
        """Every pair and what is said of it, which costs less than its finding."""
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
            pair=(second, first) if turned else (first, second),
            measure=measure,
            value=None if math.isnan(value) else value,
            asked=asks,
            limit=limit,
            bias=bias,
            verdict=verdict,
            why=why,
            whose=whose,
        )

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
        """The same property, binding from the first person on."""
        return self if not self.min_support else self._from_the_first

    @cached_property
    def _from_the_first(self) -> Property:
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
            # A user's property may branch on its counters, or fail for some: ask it about each.
            each = np.frompyfunc(
                lambda *n: self._asked(GroupCount(*n[:2]), GroupCount(*n[2:])), 4, 1
            )
            fair = np.asarray(each(*(x.astype(object) for x in arrays)), bool)
        return np.broadcast_to(fair, shape)

    def _asked(self, a: Count, b: Count) -> bool:
        """Whether one state is fair, as a truth value or an error that names the state."""
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
        # Two products of a coefficient and two counters are added at most.
        fits = 2 * self.coefficient * largest * largest < 2**62
        return [x.astype(np.int64 if fits else object, copy=False) for x in arrays]

    def _decide(self, a: Count, b: Count) -> Any:
        fair = self.fair(*self._defined(a, b))
        if self.min_support:
            fair = fair | (a.seen < self.min_support) | (b.seen < self.min_support)
        return fair

    def _defined(self, a: Count, b: Count) -> tuple[Count, Count]:
        if self.undefined == "rate-0":
            # Nobody accepted of one person seen: rate 0, whatever the definition of the rate.
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

    # Words and files ------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The property as JSON-able data; :func:`property_from_dict` is the inverse."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {k: str(v) if isinstance(v, Fraction) else v for k, v in data.items()}
        return {"kind": self.kind, **plain}

    def words(self) -> str:
        """The bound in words, without the conditions under which it binds."""
        return self.kind.replace("-", " ") or type(self).__name__

    def __str__(self) -> str:
        support = f" for groups of at least {self.min_support}" if self.min_support else ""
        unseen = " (an unseen group has rate 0)" if self.undefined == "rate-0" else ""
        return self.words() + support + unseen


def both(prop: Property, more: Property | None) -> tuple[Property, ...]:
    """What must hold where ``prop`` must and, if anything, ``more`` as well."""
    return (prop,) if more is None or more == prop else (prop, more)


def property_from_dict(data: Mapping[str, Any]) -> Property:
    """The property that :meth:`Property.to_dict` described."""
    arguments = dict(data)
    kind = arguments.pop("kind", None)
    try:
        cls = Property._registry[str(kind)]
    except KeyError:
        known = ", ".join(sorted(Property._registry))
        raise InvalidValueError(
            f"unknown property {kind!r}: known are {known}; a property of your own must be "
            f"imported before a policy for it is loaded, with {called('import')}"
        ) from None
    try:
        return cls(**arguments)
    except TypeError as error:
        raise InvalidValueError(f"property {kind!r}: {error}") from None
