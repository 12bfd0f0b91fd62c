r"""Counters from which a difference of rates can be kept for ever, with a certificate.

A *corridor* of a group is an interval :math:`[l, u] \subseteq [0, 1]` for its rate.  Two corridors
are a **certificate** for the counters :math:`(n_g, k_g)` and a bound :math:`\kappa` if

1. they are close: :math:`u_a - l_b \le \kappa` and :math:`u_b - l_a \le \kappa`;
2. for each group, with :math:`m = \max(n, \text{min\_support}, 1)` the first number of people at
   which the property may bind: every :math:`[l n', u n']` with :math:`n' \ge m` contains an
   integer, and the one for :math:`m` contains some that :math:`m - n` more people can lead to.

Accepting only if :math:`k` would otherwise fall below :math:`\lceil l n' \rceil` keeps each rate in
its corridor, whoever arrives, so the property holds at *every* later moment.  The proof is in
docs/guarantees.md.

The search is complete.  For one group the narrowest corridors form a staircase: to each lower end
belongs a least upper end :math:`U(l) = \max_{n' \ge m} \lceil l n' \rceil / n'`, to each upper end
a largest lower end :math:`L(u) = \min_{n' \ge m} \lfloor u n' \rfloor / n'`, and only the few steps
that the group's counters can reach matter.  Each leaves the other group the corridor
:math:`[u - \kappa,\, l + \kappa]`.  Fair counters with :math:`1/n_a + 1/n_b \le 2\kappa` always
have a certificate, with corridors of widths :math:`1/n_a` and :math:`1/n_b`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Counts, Group, GroupCount
from fairshield.errors import InvalidValueError
from fairshield.spec.base import Count, Property, property_from_dict
from fairshield.spec.properties import DifferenceOfRates

Ints = NDArray[np.int64]
_REMEMBERED = 1 << 16
_MANY = 10_000
"""People of a group beyond whom its corridors are not looked for, but those of the smaller one."""


class Corridor(NamedTuple):
    """An interval of rates that a group can be kept in for ever."""

    lower: Fraction
    upper: Fraction

    def __str__(self) -> str:
        return f"[{self.lower}, {self.upper}]"


@dataclass(frozen=True)
class Certificate:
    """A corridor for each group: a promise that can be kept whoever arrives.

    >>> from fairshield import Counts, DemographicParity
    >>> prop = Sustained(DemographicParity("0.1"))
    >>> print(prop.certificate(Counts({"a": (2, 1), "b": (98, 40)})))
    a in [1/3, 1/2], b in [2/5, 13/30]
    """

    corridors: Mapping[Group, Corridor]

    def to_dict(self) -> list[list[Any]]:
        """``[group, lower, upper]`` of each group, exact."""
        return [[group, str(c.lower), str(c.upper)] for group, c in self.corridors.items()]

    @staticmethod
    def from_dict(data: list[list[Any]]) -> Certificate:
        """The certificate that :meth:`to_dict` described."""
        return Certificate({g: Corridor(Fraction(lo), Fraction(hi)) for g, lo, hi in data})

    def __str__(self) -> str:
        return ", ".join(f"{group} in {corridor}" for group, corridor in self.corridors.items())


@dataclass(frozen=True)
class Sustained(Property, kind="sustained"):
    """``of`` holds, and there is a certificate that it can be kept at every later moment.

    Its bias is that of ``of``: counters within the limit may lack a certificate.

    Parameters
    ----------
    of
        A difference of rates: demographic parity, equal opportunity, predictive equality.
    """

    of: DifferenceOfRates

    def __init__(self, of: Property | Mapping[str, Any]) -> None:
        prop = property_from_dict(of) if isinstance(of, Mapping) else of
        if not isinstance(prop, DifferenceOfRates):
            raise InvalidValueError(
                f"{prop} is not a difference of rates, so no corridor of rates keeps it: "
                "certificates exist for demographic parity, equal opportunity and predictive "
                "equality"
            )
        object.__setattr__(self, "of", prop)
        object.__setattr__(self, "relevant_outcome", prop.relevant_outcome)
        object.__setattr__(self, "min_support", 0)
        object.__setattr__(self, "undefined", "bias-0")

    # Certificates ---------------------------------------------------------------------------

    def certificate(self, counts: Counts) -> Certificate | None:
        """A certificate for these counters, if there is one."""
        found = self._corridors(*self._two(counts))
        return None if found is None else Certificate(dict(zip(counts, found, strict=True)))

    def certifies(self, certificate: Certificate, counts: Counts) -> bool:
        """Whether ``certificate`` is one for these counters, checked by the definition alone."""
        (l_a, u_a), (l_b, u_b) = certificate.corridors.values()
        close = u_a - l_b <= self.of.bound and u_b - l_a <= self.of.bound
        return close and all(
            self._kept(Corridor(*certificate.corridors[group]), count)
            for group, count in counts.items()
        )

    def accepts(
        self, certificate: Certificate, counts: Counts, group: Group, *, proposed: bool
    ) -> bool:
        """What keeps the certificate when somebody of ``group`` comes: the proposal, if it does."""
        seen, accepted = counts[group]
        low, high = _span(certificate.corridors[group], seen + 1, self._first(seen + 1))
        return accepted < low or (proposed and accepted < high)

    def _kept(self, corridor: Corridor, count: GroupCount[int]) -> bool:
        if self._unseen_counts(count.seen) and corridor.lower > 0:
            return False
        first = self._first(count.seen)
        low, high = _span(corridor, count.seen, first)
        return _last_gap(corridor) < first and low <= count.accepted <= high

    def _corridors(self, a: Count, b: Count) -> tuple[Corridor, Corridor] | None:
        if not self._closed(a.seen, b.seen):
            return self._search(a, b)
        return self._nearest(a, b) if self.of.fair(a, b) else None

    def _closed(self, n_a: Any, n_b: Any) -> Any:
        """Whether both groups are so large that fair counters have a certificate."""
        p, q = self.of.bound.as_integer_ratio()
        least = max(self.of.min_support, 1)
        return (n_a >= least) & (n_b >= least) & (q * (n_a + n_b) <= 2 * p * n_a * n_b)

    def _nearest(self, a: Count, b: Count) -> tuple[Corridor, Corridor]:
        """Corridors of widths ``1/n_a`` and ``1/n_b`` around fair rates."""
        rate_a, rate_b = Fraction(a.accepted, a.seen), Fraction(b.accepted, b.seen)
        w_a, w_b, gap = Fraction(1, a.seen), Fraction(1, b.seen), rate_a - rate_b
        # How much lower a's corridor lies around its rate than b's around its own.
        shift = max(gap + w_a - self.of.bound, -w_b)
        down_a, down_b = max(shift, Fraction(0)), max(-shift, Fraction(0))
        return (
            _clipped(rate_a - down_a, rate_a + w_a - down_a),
            _clipped(rate_b - down_b, rate_b + w_b - down_b),
        )

    def _search(self, a: Count, b: Count) -> tuple[Corridor, Corridor] | None:
        turned = a.seen > b.seen
        small, other = (b, a) if turned else (a, b)
        for way in self._ways(*small):
            if self._kept(way.other, other):
                return (way.other, way.own) if turned else (way.own, way.other)
        return None

    def _ways(self, seen: int, accepted: int) -> tuple[_Way, ...]:
        if self._unseen_counts(seen):
            return _ways_of([Corridor(Fraction(0), Fraction(0))], self.of.bound)
        return _ways(seen, accepted, self._first(seen), self.of.bound)

    def _first(self, seen: int) -> int:
        """The first number of people of a group at which the property may bind."""
        return max(seen, self.of.min_support, 1)

    def _unseen_counts(self, seen: int) -> bool:
        """Whether this is an unseen group whose rate counts as 0."""
        return seen == 0 and self.of.undefined == "rate-0" and self.of.min_support == 0

    # The predicate --------------------------------------------------------------------------

    def fair(self, a: Count, b: Count) -> Any:
        if all(isinstance(n, (int, np.integer)) for n in (*a, *b)):
            return self._has(*a, *b)
        return np.frompyfunc(self._has, 4, 1)(*a, *b)

    def _has(self, n_a: int, k_a: int, n_b: int, k_b: int) -> bool:
        a, b = GroupCount(int(n_a), int(k_a)), GroupCount(int(n_b), int(k_b))
        return self._corridors(a, b) is not None

    def fair_interval(
        self, n_a: Any, n_b: Any, *, accepted: Any, along: Any
    ) -> tuple[Any, Any] | None:
        if not np.all(self._closed(*self.of._exact_arrays(n_a, n_b))):
            return None
        return self.of.fair_interval(n_a, n_b, accepted=accepted, along=along)

    def fair_runs(
        self, n_a: Any, n_b: Any, *, accepted: Any, along: Any
    ) -> tuple[Ints, Ints, Ints]:
        lo, hi = self.of.fair_interval(n_a, n_b, accepted=accepted, along=along)
        n_a, n_b, known = self.of._exact_arrays(n_a, n_b, accepted)
        closed = np.asarray(self._closed(n_a, n_b), bool)
        rows = np.flatnonzero(closed)
        runs = [(rows, lo[rows], hi[rows])]
        fixed, running = np.where(along, n_a, n_b), np.where(along, n_b, n_a)
        few = ~closed & ((fixed <= running) | (fixed <= _MANY))
        runs += self._runs_beside(np.flatnonzero(few), fixed, known, running)
        for row in np.flatnonzero(~closed & ~few).tolist():
            # The fixed group has too many people to look for its corridors.
            n, beside = int(running[row]), GroupCount(int(fixed[row]), int(known[row]))
            fits = [k for k in range(n + 1) if self._has(*beside, n, k)]
            runs.append((np.full(len(fits), row), np.array(fits, int), np.array(fits, int) + 1))
        at, low, high = (np.concatenate(x).astype(np.int64) for x in zip(*runs, strict=True))
        some = low < high
        return at[some], low[some], high[some]

    def _runs_beside(
        self, rows: Ints, fixed: Any, known: Any, running: Any
    ) -> Iterator[tuple[Ints, Any, Any]]:
        """Runs of one group beside each number of acceptances in the other."""
        pairs = np.stack((fixed[rows], known[rows])).astype(np.int64)
        least = max(self.of.min_support, 1)
        for (seen, accepted), here in _groups(pairs):
            at = rows[here]
            for left in self._left(seen, accepted):
                n = _exact(running[at], left.corridor, least)
                first = np.maximum(n, least)
                fits = left.gap < first
                if left.corridor.lower > 0 and self._unseen_counts(0):
                    fits = fits & (n > 0)
                low, high = _span(left.corridor, n, first)
                yield at[fits], np.maximum(low, 0)[fits], np.minimum(high, n)[fits] + 1

    def _left(self, seen: int, accepted: int) -> tuple[_Left, ...]:
        """What the corridors of one group leave the other."""
        least = max(self.of.min_support, 1)
        if seen < least and not self._unseen_counts(seen):
            return _left(seen, accepted, least, self.of.bound)
        return _merged(self._ways(seen, accepted), least)

    # Words ----------------------------------------------------------------------------------

    def bias(self, a: Count, b: Count) -> Any:
        return self.of.bias(a, b)

    @property
    def limit(self) -> float:
        return self.of.limit

    @property
    def coefficient(self) -> int:
        return self.of.coefficient

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "of": self.of.to_dict()}

    def words(self) -> str:
        return f"{self.of}, with a certificate that it can be kept for ever"


class _Way(NamedTuple):
    """A corridor for one group, what it leaves the other, and where that has its last gap."""

    own: Corridor
    other: Corridor
    gap: float


class _Left(NamedTuple):
    """A corridor left to the other group, and where it has its last gap."""

    corridor: Corridor
    gap: float


@lru_cache(_REMEMBERED)
def _ways(seen: int, accepted: int, first: int, bound: Fraction) -> tuple[_Way, ...]:
    if not bound:
        # Both rates must stay the same, which only 0 and 1 do.
        still = ((Fraction(0), accepted == 0), (Fraction(1), accepted == seen))
        return _ways_of([Corridor(rate, rate) for rate, stays in still if stays], bound)
    return _ways_of(narrowest(seen, accepted, first), bound)


def _ways_of(corridors: Iterable[Corridor], bound: Fraction) -> tuple[_Way, ...]:
    ways = []
    for own in corridors:
        if own.upper - own.lower <= 2 * bound:
            other = _clipped(own.upper - bound, own.lower + bound)
            ways.append(_Way(own, other, _last_gap(other)))
    return tuple(ways)


@lru_cache(_REMEMBERED)
def _left(seen: int, accepted: int, first: int, bound: Fraction) -> tuple[_Left, ...]:
    """What a group leaves the other while it has too few people to count."""
    # It can still get into many corridors, so those that leave overlapping ones were put together.
    begin, end = _reachable(seen, accepted, first)
    found = list(_merged(_ways_of([_entry(accepted, first, begin)], bound), first))
    for low, high, left in _blocks(first, bound):
        low, high = max(low, begin + 1), min(high, end)
        if low <= high:
            corridor = Corridor(left[low].corridor.lower, left[high].corridor.upper)
            found.append(_Left(corridor, left[low].gap))
    return tuple(found)


def _merged(ways: Iterable[_Way], least: int) -> tuple[_Left, ...]:
    """What the ways leave the other group, as few corridors as can be.

    Only gaps from ``least`` people on matter.
    """
    found: list[_Left] = []
    for way in ways:
        left = _Left(way.other, 0 if way.gap < least else way.gap)
        if found and _overlap(found[-1], left):
            left = _Left(Corridor(found.pop().corridor.lower, left.corridor.upper), 0)
        found.append(left)
    return tuple(found)


def _overlap(before: _Left, after: _Left) -> bool:
    """Whether two corridors without gaps are one."""
    return before.gap == after.gap == 0 and after.corridor.lower <= before.corridor.upper


@lru_cache(16)
def _blocks(first: int, bound: Fraction) -> list[tuple[int, int, dict[int, _Left]]]:
    """Steps of the staircase whose corridors for the other group overlap: from, to, and each."""
    blocks: list[tuple[int, int, dict[int, _Left]]] = []
    for i, own in enumerate(_staircase(first)):
        for way in _ways_of([own], bound):
            left = _Left(way.other, 0 if way.gap < first else way.gap)
            low, high, each = blocks[-1] if blocks else (i, -2, {})
            if high == i - 1 and _overlap(each[high], left):
                each[i] = left
                blocks[-1] = (low, i, each)
            else:
                blocks.append((i, i, {i: left}))
    return blocks


@lru_cache(16)
def _staircase(first: int) -> tuple[Corridor, ...]:
    """The narrowest corridors of all, from [0, 0] to [1, 1]."""
    steps = [Corridor(Fraction(0), Fraction(0))]
    while steps[-1].lower < 1:
        upper = _next_upper(steps[-1].lower, first)
        steps.append(Corridor(_largest_lower(upper, first), upper))
    return tuple(steps)


def narrowest(seen: int, accepted: int, first: int) -> list[Corridor]:
    """Every corridor for one group that no narrower one could replace."""
    if seen < first:
        begin, end = _reachable(seen, accepted, first)
        return [_entry(accepted, first, begin), *_staircase(first)[begin + 1 : end + 1]]
    # All its people count already: only the steps around its rate matter.
    rate = upper = Fraction(accepted, first)
    found = []
    while True:
        found.append(Corridor(_largest_lower(upper, first), upper))
        if found[-1].lower == rate:
            return found
        upper = _next_upper(found[-1].lower, first)


def _reachable(seen: int, accepted: int, first: int) -> tuple[int, int]:
    """The steps that the group's counters can lead to: the first and the last."""
    steps = _staircase(first)
    rate, reach = Fraction(accepted, first), Fraction(accepted + first - seen, first)
    begin = bisect_right(steps, rate, key=lambda step: step.upper) - 1
    return begin, bisect_left(steps, reach, key=lambda step: step.lower)


def _entry(accepted: int, first: int, begin: int) -> Corridor:
    """The first step, as wide as the people accepted already make it."""
    return Corridor(_staircase(first)[begin].lower, Fraction(accepted, first))


def _largest_lower(upper: Fraction, first: int) -> Fraction:
    """The minimum of ``floor(upper * n) / n`` over all ``n >= first``."""
    p, q = upper.as_integer_ratio()
    if q == 1:
        return upper
    best, n = upper, first
    # Beyond n, nothing is below upper - 1/n.
    while best > upper - Fraction(1, n):
        numbers = np.arange(n, 2 * n + 1)
        counts = p * numbers // q
        # Fractions of denominators below 10^7 are farther apart than floats are off.
        i = int(np.argmin(counts / numbers))
        best, n = min(best, Fraction(int(counts[i]), int(numbers[i]))), 2 * n + 1
    return best


def _next_upper(lower: Fraction, first: int) -> Fraction:
    """The maximum of ``(floor(lower * n) + 1) / n`` over all ``n >= first``."""
    p, q = lower.as_integer_ratio()
    best, n = lower, first
    # Beyond n, nothing is above lower + 1/n.
    while best < lower + Fraction(1, n):
        numbers = np.arange(n, 2 * n + 1)
        counts = p * numbers // q + 1
        i = int(np.argmax(counts / numbers))
        best, n = max(best, Fraction(int(counts[i]), int(numbers[i]))), 2 * n + 1
    return best


@lru_cache(_REMEMBERED)
def _last_gap(corridor: Corridor) -> float:
    """The largest ``n`` for which no ``k / n`` lies in the corridor; 0 if there is none."""
    lower, upper = corridor
    if lower > upper:
        return float("inf")
    if lower == 0 or upper == 1:
        return 0
    if lower == upper:
        return float("inf")
    # An interval of length 1 always contains an integer.  The last gap is mostly near there.
    most, n = int(1 / (upper - lower)), 0
    while most and not n:
        numbers = np.arange(max(most - _MANY, 0) + 1, most + 1)
        low, high = _span(corridor, _exact(numbers, corridor, 1), numbers)
        n = int(np.max(numbers, where=np.asarray(low > high, bool), initial=0))
        most = int(numbers[0]) - 1
    return n


def _span(corridor: Corridor, seen: Any, first: Any) -> tuple[Any, Any]:
    """Acceptances out of ``seen`` that lead into the corridor once ``first`` have been seen."""
    (p, q), (r, s) = (end.as_integer_ratio() for end in corridor)
    return -(-p * first // q) - (first - seen), r * first // s


def _clipped(lower: Fraction, upper: Fraction) -> Corridor:
    return Corridor(max(lower, Fraction(0)), min(upper, Fraction(1)))


def _exact(counters: NDArray[Any], corridor: Corridor, least: int) -> NDArray[Any]:
    """``counters`` as integers that multiply with the corridor's ends without wrapping."""
    most = max(end.denominator for end in corridor) * max(int(counters.max(initial=1)), least)
    return counters.astype(np.int64 if most < 2**62 else object)


def _groups(pairs: NDArray[Any]) -> Iterator[tuple[tuple[int, int], Ints]]:
    """Each different pair, and where it stands."""
    order = np.lexsort(pairs[::-1])
    ordered = pairs[:, order]
    new = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    for here in np.split(order, np.flatnonzero(new) + 1) if len(order) else ():
        seen, accepted = pairs[:, here[0]].tolist()
        yield (seen, accepted), here
