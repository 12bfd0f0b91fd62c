r"""Few: counters of few people of one group and many of the other, closed under one period.

The rate of the larger group, g, hardly moves any more: :math:`K_g = r N_g + s` with a *lead* s that
a period changes by a few people.  Nothing but s and the counters of the other group, h, is looked
at: whether the gap is allowed for every :math:`N_g` from some number on is decided by the two ends
of :math:`0 \le 1/N_g \le 1/A`, because the gap is linear in :math:`1/N_g`.  So the states are
finitely many, and the largest closed set of them is found by striking out.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairshield.periodic.closed.region import Region
from fairshield.spec import Count

if TYPE_CHECKING:
    from fairshield.periodic.closed.kernels import Requests

_LEAD = 2
"""Leads up to so many periods of people are looked at."""


@dataclass(frozen=True, eq=False)
class Few:
    """Few holds the closed states beside one rate of the larger group.

    ``kept[i, n, k]`` is about a lead of ``i - offset`` people, in units of one by the rate's
    denominator, and k accepted of n people of the other group.
    """

    rate: Fraction
    least: int
    offset: int
    kept: NDArray[np.bool_]

    def holds(self, larger: Count, other: Count) -> Any:
        """Whether counters belong to it, for integers or elementwise for arrays."""
        x, y = self.rate.as_integer_ratio()
        leads, people = self.kept.shape[:2]
        place = y * larger.accepted - x * larger.seen + self.offset
        n, k = other
        inside = (larger.seen >= self.least) & (n < people) & (place >= 0) & (place < leads)
        inside = np.asarray(inside & (k >= 0) & (k <= n), bool)
        at = (np.where(inside, index, 0).astype(np.int64) for index in (place, n, k))
        return inside & self.kept[tuple(at)]


def closed_few(region: Region, rate: Fraction, requests: Requests, cost: float) -> Few:
    """The largest closed set of states beside ``rate`` from which no period costs more than that.

    Of the groups in ``requests`` the first is the larger one.  Periods may also end in ``region``.
    """
    # Imported here because it loads numba.
    from fairshield.periodic.closed.kernels import close_few

    assert region.few is not None
    few, (x, y) = region.few, rate.as_integer_ratio()
    kept = allowed(region, rate)
    close_few(kept, few, y - x, x, requests, region.period, cost)
    return Few(rate, region.least_of_larger, len(kept) // 2, kept[:, :few])


def allowed(region: Region, rate: Fraction) -> NDArray[np.bool_]:
    """States in which a period may end, ``(leads, n, k)``; those with ``few`` and more are many."""
    assert region.few is not None
    few, period = region.few, region.period
    offset = _LEAD * period * rate.denominator
    lead = np.arange(-offset, offset + 1)[:, None, None]
    n, k = (
        np.arange(few + period)[shape] for shape in np.s_[(None, slice(None), None), (None, None)]
    )
    close = _close(region, rate, lead, n, k)
    found = (k <= n) & np.where(n < few, close | _exempt(region, n), close)
    found &= (n < few) | _in_region(region, rate, lead, n)
    return np.asarray(found)


def _exempt(region: Region, n: Any) -> Any:
    """Whether the property binds nobody where so many people of a group were seen."""
    if region.of.undefined == "rate-0" and not region.of.min_support:
        return np.zeros_like(n, bool)
    return n < max(region.of.min_support, 1)


def _close(region: Region, rate: Fraction, lead: Any, n: Any, k: Any) -> Any:
    """Whether the rates are close, however many people of the larger group there are."""
    (x, y), least = rate.as_integer_ratio(), region.least_of_larger
    p, q = region.of.bound.as_integer_ratio()
    n = n + (n == 0)  # nobody accepted of one person is the rate 0
    close = True
    for leading in (0, lead):
        # The larger group's rate is r + lead / (y * N): at N = infinity, and at N = least.
        accepted, seen = x * least + leading, y * least
        close = close & (q * abs(k * seen - accepted * n) <= p * n * seen)
    return close


def _in_region(region: Region, rate: Fraction, lead: Any, n: Any) -> Any:
    """Whether such counters with close rates are in the region, however many people there are.

    The inequalities of the smaller group hold by themselves, see :attr:`Region.fits`.
    """
    (x, y), least = rate.as_integer_ratio(), region.least_of_larger
    inside = n >= region.few
    for bound in region.bounds:
        if bound.k * x + bound.n * y > 0:
            return np.zeros_like(inside)
        # For the larger group, times y: falling in N, so that the fewest people decide.
        of_larger = bound.k * (x * least + lead) + bound.n * y * least + bound.other * y * n
        inside = inside & (of_larger <= 0)
    return inside
