"""What every property has: integer decisions, minimum support, a name in files."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from numbers import Rational, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Counts, GroupCount, is_whole
from fairshield.errors import InvalidValueError

Undefined = Literal["bias-0", "rate-0"]
Verdict = Literal["fair", "unfair", "exempt"]
"""What is said of counters: that the property held, that it did not, or that it bound nothing."""
Number = str | int | float | Fraction | Decimal
_MOST_DIGITS = 1000
Count = GroupCount[Any]
"""Counters of one group: Python integers, or integer arrays that broadcast."""


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
                f"min_support must be a whole number of at least 0, got {self.min_support!r}"
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
        return all(bool(self._decide(a, b)) for a, b in self._pairs(counts.values()))

    def binds(self, counts: Counts) -> bool:
        """Whether it asks anything: some decisions about the people seen would have been unfair.

        It does not where every pair lacks support, has a group without people, or cannot differ by
        more than the bound allows.  Counters that it does not bind hold, and are exempt.
        """
        return any(bool(self._pair_binds(a, b)) for a, b in self._pairs(counts.values()))

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
        return max(float(self.bias(a, b)) for a, b in self._pairs(counts.values()))

    def measured_bias_of(self, counts: Counts) -> float:
        """The largest bias of any pair, whether or not it has support."""
        return self._whatever_support().bias_of(counts)

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
        pairs = [np.asarray(self._pair_binds(a, b), bool) for a, b in self._pairs(groups)]
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
        n_a, n_b = self._exact_arrays(a.seen, b.seen)
        supported = (n_a >= self.min_support) & (n_b >= self.min_support)
        return supported & np.asarray(self.can_fail(n_a, n_b), bool)

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
        if not self.min_support:
            return self
        same = copy.copy(self)
        object.__setattr__(same, "min_support", 0)
        return same

    def _pair_holds(self, a: Count, b: Count) -> NDArray[np.bool_]:
        arrays = self._exact_arrays(*a, *b)
        try:
            fair = self._decide(GroupCount(*arrays[:2]), GroupCount(*arrays[2:]))
        except (TypeError, ValueError):
            # A user's property may branch on its counters; then ask it about one state at a time.
            each = np.frompyfunc(
                lambda *n: self._decide(GroupCount(*n[:2]), GroupCount(*n[2:])), 4, 1
            )
            fair = each(*(x.astype(object) for x in arrays))
        shape = np.broadcast_shapes(*(x.shape for x in arrays))
        return np.broadcast_to(np.asarray(fair, dtype=bool), shape)

    def _exact_arrays(self, *counters: Any) -> list[NDArray[Any]]:
        arrays = [np.asarray(x) for x in counters]
        largest = max(int(x.max(initial=1)) for x in arrays)
        # Two products of a coefficient and two counters are added at most.
        fits = 2 * self.coefficient * largest * largest < 2**62
        return [x.astype(np.int64 if fits else object) for x in arrays]

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


Inequality = tuple[Any, Any, Any]
"""``(alpha, beta, gamma)`` for :math:`\\alpha k_a + \\beta k_b \\le \\gamma`."""


@dataclass(frozen=True)
class LinearProperty(Property):
    r"""A property that is a conjunction of inequalities :math:`\alpha k_a + \beta k_b \le \gamma`.

    Given the acceptances in one group, those that are fair in the other form an interval, which
    synthesis uses instead of asking about every state.
    """

    @abstractmethod
    def inequalities(self, n_a: Any, n_b: Any) -> tuple[Inequality, ...]:
        """Integers ``(alpha, beta, gamma)``, or arrays of them, for these people seen."""

    def fair(self, a: Count, b: Count) -> Any:
        verdict: Any = True
        for alpha, beta, gamma in self.inequalities(a.seen, b.seen):
            verdict = verdict & (alpha * a.accepted + beta * b.accepted <= gamma)
        return verdict

    def can_fail(self, n_a: Any, n_b: Any) -> Any:
        a, b = self._defined(GroupCount(n_a, 0), GroupCount(n_b, 0))
        fails: Any = False
        for alpha, beta, gamma in self.inequalities(a.seen, b.seen):
            # A linear function is largest at a corner of all possible decisions.
            largest = alpha * (alpha > 0) * n_a + beta * (beta > 0) * n_b
            fails = fails | (largest > gamma)
        return fails

    def fair_interval(self, n_a: Any, n_b: Any, *, accepted: Any, along: Any) -> tuple[Any, Any]:
        shape = np.broadcast_shapes(*map(np.shape, (n_a, n_b, accepted, along)))
        # Without dimensions, an array of Python integers would decay into one of them.
        n_a, n_b, known = map(np.atleast_1d, self._exact_arrays(n_a, n_b, accepted))
        in_b = np.asarray(along, bool)
        room = np.broadcast_to(np.where(in_b, n_b, n_a), shape or (1,)) + 1
        lo, hi = np.zeros_like(room), room
        a, b = self._defined(GroupCount(n_a, 0), GroupCount(n_b, 0))
        none = 0 * n_a  # as an array even a constant coefficient is exact
        for alpha, beta, gamma in self.inequalities(a.seen, b.seen):
            slope: Any = np.where(in_b, beta + none, alpha + none)
            limit = gamma - np.where(in_b, alpha + none, beta + none) * known
            if not slope.all():
                flat = slope == 0
                hi = np.where(flat & (limit < 0), 0, hi)
                # All of the room is no bound.
                slope, limit = np.where(flat, 1, slope), np.where(flat, room, limit)
            bound, rising = limit // abs(slope), slope > 0
            hi = np.where(rising, np.minimum(hi, bound + 1), hi)
            lo = np.where(rising, lo, np.maximum(lo, -bound))
        lo, hi = np.minimum(lo, room), np.maximum(hi, 0)
        if self.min_support:
            free = (n_a < self.min_support) | (n_b < self.min_support)
            lo, hi = np.where(free, 0, lo), np.where(free, room, hi)
        lo, hi = lo.astype(np.int64).reshape(shape), hi.astype(np.int64).reshape(shape)
        return lo, np.maximum(hi, lo)


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
            "imported before a policy for it is loaded"
        ) from None
    try:
        return cls(**arguments)
    except TypeError as error:
        raise InvalidValueError(f"property {kind!r}: {error}") from None


def exact(value: Number, name: str, *, most: int | None = None) -> Fraction:
    """``value`` as the rational a person meant: a float counts as its shortest decimal.

    >>> exact(0.1, "bound"), exact("1/3", "bound")
    (Fraction(1, 10), Fraction(1, 3))
    """
    try:
        if isinstance(value, bool):
            raise ValueError
        if isinstance(value, Rational):
            result = Fraction(value.numerator, value.denominator)
        elif isinstance(value, (str, Real, Decimal)):
            result = _fraction(str(value))
        else:
            raise ValueError
    except (ValueError, ArithmeticError):
        raise InvalidValueError(
            f"{name} must be a number such as '0.1', '1/10' or 0.1, got {value!r}"
        ) from None
    if result < 0 or (most is not None and result > most):
        interval = "at least 0" if most is None else f"between 0 and {most}"
        raise InvalidValueError(
            f"{name} must be {interval}, got {value!r}: write 10 percent as 0.1 or '1/10'"
        )
    return result


def _fraction(text: str) -> Fraction:
    if "/" in text:
        return Fraction(text)
    number = Decimal(text)
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        raise ValueError  # a power of ten that would take for ever to write out
    return Fraction(number)
