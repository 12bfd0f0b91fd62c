r"""Region: counters of many people of both groups, closed under one period at a computed cost.

Let group a have more people than group b, or as many, :math:`x = N_b/N_a` and :math:`e = 1/N_a`.
What a period must bring in order to end in the region depends on the rate of a, on x and on e only,
through expressions that are linear in each of the three.  So what suffices at the corners of a cell
of such numbers suffices inside it, and finitely many cells cover all counters, however many people
they count.  The proof is in docs/guarantees.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairshield.spec import Count, DifferenceOfRates

if TYPE_CHECKING:
    from fairshield.periodic.closed.kernels import Cell, Requests

_STEPS = 40
"""Cells of rates are no wider than one in so many."""
_SHARES = [Fraction(n, 100) for n in (0, 1, 3, 6)] + [Fraction(n, 20) for n in range(2, 21)]
"""Ends of the cells of x."""


class Bound(NamedTuple):
    """Bound holds ``K_g * k + N_g * n + N_h * other <= 0`` for a group g and the other group h."""

    k: int
    n: int
    other: int


@dataclass(frozen=True)
class Region:
    """Region requires many people of both groups, close rates, and none extreme of a large group.

    The counters have at least ``few`` people of each group and ``total`` of both, rates that
    differ by at most the bound, and for each group g, h being the other, ``lower * N_g - slope *
    N_h <= K_g <= upper * N_g + slope * N_h``.

    Parameters
    ----------
    of
        The difference of rates that must hold.
    period
        Decisions of a period.
    total
        People of both groups from which on counters belong to the region.
    rates
        The rational numbers ``lower`` and ``upper``.
    slope
        A rational number.
    """

    of: DifferenceOfRates
    period: int
    total: int
    rates: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1))
    slope: Fraction = Fraction(1)

    @cached_property
    def few(self) -> int | None:
        """The least number of people with which a period cannot turn a gap round.

        ``None`` if ``total`` is too small for one that leaves the larger group twice as many.
        """
        sizes = range(1, self.total // 3 + 1)
        i = bisect_left(sizes, -self.of.bound, key=lambda few: -self._largest_move(few))
        return sizes[i] if i < len(sizes) else None

    def _largest_move(self, few: int) -> Fraction:
        """By how much a period can move the gap, at most, with so many people of each group."""
        period, total = self.period, self.total
        return max(
            Fraction(j, n + j) + Fraction(period - j, max(n, total - n) + period - j)
            for n in range(few, total // 2 + 1)
            for j in range(period + 1)
        )

    @property
    def fits(self) -> bool:
        """Whether what the proof assumes of the numbers is so."""
        (lower, upper), half = self.rates, -(-self.total // 2)
        if self.few is None or not 0 <= lower < upper <= 1 or self.slope < 0:
            return False
        excess = max(1 - upper, lower)
        many = min(half, self.least_of_larger)
        return excess * (many + self.period) <= self.slope * many

    @property
    def least_of_larger(self) -> int:
        """People of the other group, at least, where there are fewer than ``few`` of one."""
        assert self.few is not None
        return self.total - self.few

    # Membership -----------------------------------------------------------------------------

    def holds(self, a: Count, b: Count) -> Any:
        """Whether counters belong to the region, for integers or elementwise for arrays."""
        p, q = self.of.bound.as_integer_ratio()
        gap = a.accepted * b.seen - b.accepted * a.seen
        limit = p * a.seen * b.seen
        inside = (a.seen >= self.few) & (b.seen >= self.few) & (a.seen + b.seen >= self.total)
        inside = inside & (q * gap <= limit) & (-q * gap <= limit)
        for bound in self.bounds:
            for g, h in ((a, b), (b, a)):
                kept = bound.k * g.accepted + bound.n * g.seen + bound.other * h.seen <= 0
                inside = inside & kept
        return inside

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """The linear inequalities that hold of both groups; those that always do are left out."""
        lower, upper = self.rates
        t, d = Fraction(self.slope).as_integer_ratio()
        found = []
        if upper < 1:
            found.append(Bound(d * upper.denominator, -d * upper.numerator, -t * upper.denominator))
        if lower > 0:
            found.append(Bound(-d * lower.denominator, d * lower.numerator, -t * lower.denominator))
        return tuple(found)

    # What a period costs ----------------------------------------------------------------------

    def cost(self, requests: Requests) -> float:
        """A bound on the expected cost of a period that begins and ends in the region.

        Infinite if there is none.  Of the groups in ``requests`` the first is the paper's a.
        """
        if not self.fits:
            return math.inf
        # Imported here because it loads numba.
        from fairshield.periodic.closed.kernels import cell_cost

        room = np.empty((self.period + 1,) * 4)
        worst = 0.0
        for seen in (requests, requests.turned()):
            for cell in self.cells():
                worst = max(worst, float(cell_cost(cell, seen, self.period, room)))
                if worst == math.inf:
                    return worst
        return worst

    def cells(self) -> Iterator[Cell]:
        """Cells that cover all counters of the region, a being the larger group."""
        lower, upper = self.rates
        for sign, (x0, x1) in product((1, -1), pairwise(_SHARES)):
            for s0, s1 in pairwise(self._rates):
                if s0 <= upper + self.slope * x1 and s1 >= lower - self.slope * x1:
                    yield from self._cells(sign, (s0, s1), (x0, x1))

    @cached_property
    def _rates(self) -> list[Fraction]:
        """Ends of the cells of the larger group's rate."""
        bound = self.of.bound
        parts = {Fraction(k, n) for n in range(1, self.period + 1) for k in range(n + 1)}
        parts |= {Fraction(k, _STEPS) for k in range(_STEPS + 1)} | set(self.rates)
        parts |= {s + d for s in parts for d in (-bound, bound)}
        return sorted(s for s in parts if 0 <= s <= 1)

    def _cells(
        self, sign: int, s: tuple[Fraction, Fraction], x: tuple[Fraction, Fraction]
    ) -> Iterator[Cell]:
        """The cell of these rates and ratios, in two parts where that helps."""
        assert self.few is not None
        bound, e = self.of.bound, min((1 + x[1]) / self.total, x[1] / self.few)
        # Rates are measured from here, so that the other group's, shifted by the bound, is one.
        apart = [max(r, bound) if sign > 0 else min(r, 1 - bound) for r in s]
        risky = [b for b in self.bounds if self._at_risk(b, s, x, e)]
        for b in risky:
            beyond = (s[0] >= 1 - bound) if sign < 0 else (s[1] <= bound)
            if beyond and sign * b.k < 0:
                # Either this inequality is not at risk, or the rate is well beyond `apart`.
                yield self._cell(sign, apart, x, e, [other for other in risky if other != b], 0)
                yield self._cell(sign, apart, x, e, risky, self._spare(b, apart[0], x, e))
                return
        yield self._cell(sign, apart, x, e, risky, 0)

    def _cell(
        self, sign: int, apart: list[Fraction], x: tuple[Fraction, Fraction], e: Fraction,
        lines: list[Bound], spare: int,
    ) -> Cell:  # fmt: skip
        from fairshield.periodic.closed.kernels import Cell

        shifted = [r - sign * self.of.bound for r in apart]
        s_den = math.lcm(*(r.denominator for r in (*apart, *shifted)))
        x_den = math.lcm(*(r.denominator for r in x))
        return Cell(
            sign,
            np.array([int(r * s_den) for r in apart]),
            np.array([int(r * s_den) for r in shifted]),
            s_den,
            spare,
            np.array([int(r * x_den) for r in x]),
            x_den,
            e.numerator,
            e.denominator,
            np.array([(n, k, other) for k, n, other in lines], np.int64).reshape(-1, 3),
        )

    def _adds(self, bound: Bound) -> int:
        """What a period adds, at most, to the left side of the larger group's inequality."""
        return max(bound.k + bound.n, bound.n) * self.period

    def _at_risk(
        self, bound: Bound, s: tuple[Fraction, Fraction], x: tuple[Fraction, Fraction], e: Fraction
    ) -> bool:
        """Whether a period may break the larger group's inequality from somewhere in the cell."""
        assert self.few is not None
        # As e is at most x / few, the left side is largest at an end of x, or where e stops it.
        turn = min(max(e * self.few, x[0]), x[1])
        near = s[1] if bound.k > 0 else s[0]
        return any(
            bound.k * near + bound.n + bound.other * r + self._adds(bound) * min(e, r / self.few)
            > 0
            for r in (*x, turn)
        )

    def _spare(
        self, bound: Bound, apart: Fraction, x: tuple[Fraction, Fraction], e: Fraction
    ) -> int:
        """People between the larger group's rate and ``apart``, at least, if ``bound`` is at risk.

        At risk, the left side is above ``-_adds(bound)``.
        """
        assert self.few is not None
        # Per person of the larger group, and times `k`: how far the inequality begins beyond.
        beyond = -(bound.n + bound.k * apart)
        if beyond < 0:
            return 0
        others = max(Fraction(self.few), x[0] / e)
        spare = (beyond / e - bound.other * others - self._adds(bound)) / abs(bound.k)
        return max(math.floor(spare), 0)
