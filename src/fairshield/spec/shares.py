"""ShareParity: the property that accepted people split evenly between groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairshield.base.counts import Group, GroupCount
from fairshield.spec.base import Count
from fairshield.spec.bounds import Gap, share_of, where
from fairshield.spec.described import Axis, any_two_of, exactly, rounded
from fairshield.spec.finding import Measured
from fairshield.spec.intervals import Interval
from fairshield.spec.linear import Inequality
from fairshield.spec.rationals import decimal


@dataclass(frozen=True, init=False)
class ShareParity(Gap, kind="share-parity"):
    r"""ShareParity splits the accepted evenly: :math:`|k_a - k_b| \le \kappa (k_a + k_b)`.

    It must hold for every pair of groups.  In a bilingual team, ``ShareParity("0.1")`` keeps the
    numbers of speakers of the two languages within a tenth of the team.
    """

    def inequalities(self, n_a: Any, n_b: Any) -> tuple[Inequality, ...]:
        p, q = self.bound.as_integer_ratio()
        return (q - p, -(q + p), 0), (-(q + p), q - p, 0)

    def bias(self, a: Count, b: Count) -> Any:
        # A float first: a difference of unsigned integers would wrap.
        gap, team = abs(1.0 * a.accepted - b.accepted), a.accepted + b.accepted
        support = (a.seen >= self.min_support) & (b.seen >= self.min_support)
        return where(support, share_of(gap, team))

    def bias_within(self, a: Interval, b: Interval, share: Interval) -> tuple[float, float]:
        low, high = 2 * share.lower - 1, 2 * share.upper - 1
        return max(0.0, low, -high), max(high, -low)

    # Words and pictures ---------------------------------------------------------------------

    def measured(self, a: Count, b: Count) -> Measured:
        gap = super().measured(a, b).value
        asked = f"at most {decimal(self.bound)} of those accepted"
        return Measured("gap", gap, asked, self.limit, turned=a.accepted > b.accepted)

    def requirement(self, groups: Sequence[Group]) -> str:
        return (
            f"The numbers of people who are accepted differ between {any_two_of(groups)} by at "
            f"most {exactly(self.bound)} of those accepted of the two."
        )

    def promise(self, a: str, b: str) -> str:
        limit = f"{rounded(100 * self.limit)} percentage points"
        return f"Those accepted from “{a}” and “{b}” differ by at most {limit} of all accepted"

    def formula(self) -> str:
        return f"|k_a \N{MINUS SIGN} k_b| ≤ {self.bound} · (k_a + k_b)"

    def axis(self, groups: Sequence[Group]) -> Axis:
        axis = super().axis(groups)
        if len(groups) > 2:
            return axis
        return replace(axis, label=f"{axis.label}, of those accepted of the two")

    def gap_label(self, a: Group, b: Group) -> str:
        return f"share of {a} minus share of {b}"

    def lead(self, a: GroupCount[Any], b: GroupCount[Any]) -> Any:
        return a.accepted - b.accepted
