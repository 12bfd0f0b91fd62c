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

The search, in :mod:`fairshield.spec.corridors`, is complete.  Fair counters with
:math:`1/n_a + 1/n_b \le 2\kappa` always have a certificate, with corridors of widths
:math:`1/n_a` and :math:`1/n_b`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Counts, Group, GroupCount
from fairshield.base.errors import InvalidValueError
from fairshield.spec.base import Count, Property
from fairshield.spec.corridors import (
    MANY,
    Corridor,
    Left,
    Way,
    clipped,
    exact_counters,
    last_gap,
    left_by_few,
    merged,
    span,
    ways_from,
    ways_of,
)
from fairshield.spec.finding import Measured
from fairshield.spec.intervals import Interval
from fairshield.spec.rationals import exact
from fairshield.spec.registry import property_from_dict

if TYPE_CHECKING:
    from fairshield.spec.described import Axis
    from fairshield.spec.differences import DifferenceOfRates

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Certificate:
    """Certificate holds a corridor of rates for each group that can be kept whoever arrives.

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
        return Certificate(
            {g: Corridor(exact(lo, "a rate"), exact(hi, "a rate")) for g, lo, hi in data}
        )

    def __str__(self) -> str:
        return ", ".join(f"{group} in {corridor}" for group, corridor in self.corridors.items())


@dataclass(frozen=True)
class Sustained(Property, kind="sustained"):
    """Sustained requires ``of``, and a certificate that it can be kept at every later moment.

    Its bias is that of ``of``: counters within the limit may lack a certificate.

    Parameters
    ----------
    of
        A difference of rates: demographic parity, equal opportunity, predictive equality.
    """

    lasting: ClassVar[bool] = True
    offered: ClassVar[bool] = False

    of: DifferenceOfRates

    def __init__(self, of: Property | Mapping[str, Any]) -> None:
        given = property_from_dict(of) if isinstance(of, Mapping) else of
        prop = given.difference if isinstance(given, Property) else None
        if prop is None:
            raise InvalidValueError(
                f"{given} is not a difference of rates, so no corridor of rates keeps it: "
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
        (pair,) = self._pairs(counts.values())
        found = self._corridors(*pair)
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
        """Whether to accept somebody of ``group`` so as to keep the certificate.

        If either decision keeps it, the proposal stands.
        """
        seen, accepted = counts[group]
        low, high = span(certificate.corridors[group], seen + 1, self._first(seen + 1))
        return accepted < low or (proposed and accepted < high)

    def _kept(self, corridor: Corridor, count: GroupCount[int]) -> bool:
        if self._unseen_counts(count.seen) and corridor.lower > 0:
            return False
        first = self._first(count.seen)
        low, high = span(corridor, count.seen, first)
        return last_gap(corridor) < first and low <= count.accepted <= high

    def _corridors(self, a: Count, b: Count) -> tuple[Corridor, Corridor] | None:
        if not self._closed(a.seen, b.seen):
            return self._search(a, b)
        return self._nearest(a, b) if self.of.fair(a, b) else None

    def _closed(self, n_a: Any, n_b: Any) -> Any:
        """Whether both groups are so large that all fair counters have a certificate."""
        p, q = self.of.bound.as_integer_ratio()
        least = max(self.of.min_support, 1)
        return (n_a >= least) & (n_b >= least) & (q * (n_a + n_b) <= 2 * p * n_a * n_b)

    def _nearest(self, a: Count, b: Count) -> tuple[Corridor, Corridor]:
        """Corridors of widths ``1/n_a`` and ``1/n_b`` around fair rates."""
        rate_a, rate_b = Fraction(a.accepted, a.seen), Fraction(b.accepted, b.seen)
        w_a, w_b, gap = Fraction(1, a.seen), Fraction(1, b.seen), rate_a - rate_b
        # By how much a's corridor is moved down around its rate; if negative, b's around its own.
        shift = max(gap + w_a - self.of.bound, -w_b)
        down_a, down_b = max(shift, Fraction(0)), max(-shift, Fraction(0))
        return (
            clipped(rate_a - down_a, rate_a + w_a - down_a),
            clipped(rate_b - down_b, rate_b + w_b - down_b),
        )

    def _search(self, a: Count, b: Count) -> tuple[Corridor, Corridor] | None:
        turned = a.seen > b.seen
        small, other = (b, a) if turned else (a, b)
        for way in self._ways(*small):
            if self._kept(way.other, other):
                return (way.other, way.own) if turned else (way.own, way.other)
        return None

    def _ways(self, seen: int, accepted: int) -> tuple[Way, ...]:
        if self._unseen_counts(seen):
            return ways_of([Corridor(Fraction(0), Fraction(0))], self.of.bound)
        return ways_from(seen, accepted, self._first(seen), self.of.bound)

    def _first(self, seen: int) -> int:
        """The first number of people of a group at which the property may bind."""
        return max(seen, self.of.min_support, 1)

    def _unseen_counts(self, seen: int) -> bool:
        """Whether nobody of this group was seen and its rate counts as 0."""
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
        few = ~closed & ((fixed <= running) | (fixed <= MANY))
        runs += self._runs_beside(np.flatnonzero(few), fixed, known, running)
        for row in np.flatnonzero(~closed & ~few).tolist():
            # The fixed group has too many people to enumerate its corridors: try every number.
            n, beside = int(running[row]), GroupCount(int(fixed[row]), int(known[row]))
            fits = [k for k in range(n + 1) if self._has(*beside, n, k)]
            runs.append((np.full(len(fits), row), np.array(fits, int), np.array(fits, int) + 1))
        at, low, high = (np.concatenate(x).astype(np.int64) for x in zip(*runs, strict=True))
        some = low < high
        return at[some], low[some], high[some]

    def _runs_beside(
        self, rows: Ints, fixed: Any, known: Any, running: Any
    ) -> Iterator[tuple[Ints, Any, Any]]:
        """Fair runs of the running group for each number of acceptances in the fixed one."""
        pairs = np.stack((fixed[rows], known[rows])).astype(np.int64)
        least = max(self.of.min_support, 1)
        for (seen, accepted), here in _groups(pairs):
            at = rows[here]
            for left in self._left(seen, accepted):
                n = exact_counters(running[at], left.corridor, least)
                first = np.maximum(n, least)
                fits = left.gap < first
                if left.corridor.lower > 0 and self._unseen_counts(0):
                    fits = fits & (n > 0)
                low, high = span(left.corridor, n, first)
                yield at[fits], np.maximum(low, 0)[fits], np.minimum(high, n)[fits] + 1

    def _left(self, seen: int, accepted: int) -> tuple[Left, ...]:
        """The corridors that a group with these counters leaves the other group."""
        least = max(self.of.min_support, 1)
        if seen < least and not self._unseen_counts(seen):
            return left_by_few(seen, accepted, least, self.of.bound)
        return merged(self._ways(seen, accepted), least)

    # Words ----------------------------------------------------------------------------------

    def bias(self, a: Count, b: Count) -> Any:
        return self.of.bias(a, b)

    def bias_within(self, a: Interval, b: Interval, share: Interval) -> tuple[float, float]:
        return self.of.bias_within(a, b, share)

    def measured(self, a: Count, b: Count) -> Measured:
        return self.of.measured(a, b)

    def axis(self, groups: Sequence[Group]) -> Axis:
        return self.of.axis(groups)

    def drawn(self, bias: NDArray[np.float64], *groups: GroupCount[Any]) -> NDArray[np.float64]:
        return self.of.drawn(bias, *groups)

    def gap_label(self, a: Group, b: Group) -> str:
        return self.of.gap_label(a, b)

    @property
    def only_two(self) -> str | None:
        return f"a certificate is a pair of corridors; use {self.of} itself, over one window"

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


def _groups(pairs: NDArray[Any]) -> Iterator[tuple[tuple[int, int], Ints]]:
    """Each distinct column of ``pairs``, and the indices where it occurs."""
    order = np.lexsort(pairs[::-1])
    ordered = pairs[:, order]
    new = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    for here in np.split(order, np.flatnonzero(new) + 1) if len(order) else ():
        seen, accepted = pairs[:, here[0]].tolist()
        yield (seen, accepted), here
