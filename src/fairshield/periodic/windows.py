"""ShieldReport: how windows of decisions ended, and what the decisions did in all of them.

It knows arrays and counters, and not who decided: the same report describes a shield, the
classifier without it, and any other method on the same people.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Group
from fairshield.base.plain import with_keys
from fairshield.base.renamed import Renamed
from fairshield.base.words import summary
from fairshield.periodic.policy import PeriodicPolicy
from fairshield.periodic.repeated import kind_of
from fairshield.policy import Policy
from fairshield.runtime.judging import Flags
from fairshield.runtime.ledger import Ledger
from fairshield.spec import Finding, Verdict, verdict_of, widest_finding


@dataclass(frozen=True, slots=True)
class GroupReport:
    """GroupReport holds numbers of decisions on one group, also on people who do not count."""

    group: Group
    decisions: int
    proposed: int
    accepted: int
    overruled: int

    @property
    def rate(self) -> float:
        """Share accepted; NaN without people."""
        return self.accepted / self.decisions if self.decisions else math.nan

    @property
    def proposed_rate(self) -> float:
        """Share that the classifier would have accepted; NaN without people."""
        return self.proposed / self.decisions if self.decisions else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class ShieldReport:
    """ShieldReport says what a shield did on a stream of people; it prints as a short table.

    Attributes
    ----------
    prop, limit
        The property in words, and the largest bias that is fair.
    length
        Decisions in a window or period.
    decisions, windows
        Decisions made, and windows or periods that they completed.
    unfair, unfair_unshielded
        Windows in which the property did not hold when it had to, at the end or at a checkpoint:
        with the shield, and had all proposals been followed.  The window in progress counts once
        a checkpoint fails.
    bound, exempt
        Windows in which the property bound when it had to hold, the one in progress once a
        checkpoint did; and completed windows in which it bound nothing.  Who came decides that,
        so that both are the same without the shield.
    largest_bias, largest_bias_unshielded
        Of any two groups that have support, at the end of any completed window or at a checkpoint;
        0 if there is none.
    widest, widest_unshielded
        The widest pair at any of these moments, with what was measured of it, also below support;
        ``None`` before the first.
    overruled, paid
        Proposals overruled, and what that cost.
    expected_cost
        Per window, as the policy expects; of a periodic policy, per period of its first plan.
    groups
        The same by group.
    followed
        People of unseen groups, whose proposals were followed and who are not counted.
    """

    prop: str
    limit: float
    length: int
    decisions: int
    windows: int
    unfair: int
    unfair_unshielded: int
    largest_bias: float
    largest_bias_unshielded: float
    overruled: int
    paid: float
    expected_cost: float
    groups: tuple[GroupReport, ...]
    bound: int
    exempt: int
    widest: Finding | None
    widest_unshielded: Finding | None
    followed: int = 0

    cost = Renamed("paid")
    cost_per_window = Renamed("paid_per_window")
    horizon = Renamed("length")

    @property
    def verdict(self) -> Verdict:
        """``"unfair"`` if a window is, ``"fair"`` if none is and some bound, else ``"exempt"``."""
        return verdict_of(unfair=self.unfair, fair=self.bound)

    @property
    def all_fair(self) -> bool:
        """Whether no window was unfair so far; also true where nothing bound."""
        return not self.unfair

    @property
    def overruled_share(self) -> float:
        """Share of decisions overruled; 0 without decisions."""
        return self.overruled / self.decisions if self.decisions else 0.0

    @property
    def paid_per_window(self) -> float:
        """Paid for as many decisions as a window has, on average; 0 of none."""
        return self.paid / self.decisions * self.length if self.decisions else 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; a bias or cost that is infinite or unknown becomes ``None``."""
        data = with_keys(asdict(self), {"paid": "cost", "length": "horizon"})
        finite = {k: None if v != v or v in (math.inf, -math.inf) else v for k, v in data.items()}
        return {
            **finite,
            "groups": [asdict(group) for group in self.groups],
            "widest": None if self.widest is None else self.widest.to_dict(),
            "widest_unshielded": None
            if self.widest_unshielded is None
            else self.widest_unshielded.to_dict(),
            "verdict": self.verdict,
            "all_fair": self.all_fair,
            "overruled_share": self.overruled_share,
        }

    __repr__ = summary

    def __str__(self) -> str:
        lines = [
            f"{self.prop}, every {self.length} decisions",
            f"{self.decisions} decisions, {self.windows} windows: {self.unfair} unfair, "
            f"{self.unfair_unshielded} without the shield{self._exempt()}",
            f"overruled {self.overruled} ({self.overruled_share:.1%}), cost per window "
            f"{self.paid_per_window:.4g}, expected {self.expected_cost:.4g}",
        ]
        if self.widest is not None:
            lines += [f"widest: {self.widest}", f"without the shield: {self.widest_unshielded}"]
        lines += [
            f"{g.group}: {g.decisions} {'person' if g.decisions == 1 else 'people'}, accepted "
            f"{g.rate:.1%}, proposed {g.proposed_rate:.1%}, overruled {g.overruled}"
            for g in self.groups
        ]
        if self.followed:
            lines.append(f"{self.followed} of unseen groups, followed and not counted")
        return "\n".join(lines)

    def _exempt(self) -> str:
        if not self.exempt:
            return ""
        if not self.bound:
            return "; all exempt: the property bound nothing"
        return f"; {self.exempt} exempt, where the property bound nothing"


class Tally:
    """Tally adds up decisions, in any number of pieces, into a :class:`ShieldReport`.

    Parameters
    ----------
    policy
        Whose decisions are counted.  Windows begin anew with its start; where it is periodic,
        counters go on.
    """

    def __init__(self, policy: Policy | PeriodicPolicy) -> None:
        kind = self.policy = kind_of(policy)
        self.followed = 0
        self.ledger = Ledger(kind.prop, kind.start, due=kind.due, goes_on=kind.goes_on)
        self.widest: list[Finding | None] = [None, None]
        """The widest pair when the property was due, with the shield and without."""

    def add(
        self,
        group: NDArray[Any],
        proposed: Flags,
        accepted: Flags,
        paid: NDArray[np.float64],
        relevant: Flags | None = None,
    ) -> Tally:
        """Count decisions in order; ``group`` is -1 for those who are followed, not counted."""
        known = np.flatnonzero(group >= 0)
        self.followed += len(group) - len(known)
        found = self.ledger.add_many(
            group[known].astype(np.int64), proposed[known], accepted[known], paid[known],
            None if relevant is None else relevant[known],
        )  # fmt: skip
        for side, counters in enumerate((found.counters, found.counters_unshielded)):
            here = widest_finding(self.policy.prop, self.policy.groups, counters)
            known_so_far = [one for one in (self.widest[side], here) if one is not None]
            self.widest[side] = min(known_so_far, key=Finding.order, default=None)
        return self

    def report(self) -> ShieldReport:
        """The report on all decisions so far."""
        policy, ledger = self.policy, self.ledger
        cost, windows = policy.outlook()
        # The window in progress counts once a checkpoint was judged.
        now, now_unshielded = ledger.in_progress
        return ShieldReport(
            prop=str(policy.prop),
            limit=policy.prop.limit,
            length=ledger.due[-1],
            decisions=ledger.decided,
            windows=ledger.windows,
            unfair=ledger.shielded.unfair + (now == "unfair"),
            unfair_unshielded=ledger.unshielded.unfair + (now_unshielded == "unfair"),
            largest_bias=ledger.shielded.largest_bias,
            largest_bias_unshielded=ledger.unshielded.largest_bias,
            overruled=ledger.overruled,
            paid=ledger.paid,
            expected_cost=cost / windows,
            groups=tuple(
                GroupReport(name, *ledger.everybody(i)) for i, name in enumerate(policy.groups)
            ),
            bound=ledger.windows - ledger.shielded.exempt + (now != "exempt"),
            exempt=ledger.shielded.exempt,
            widest=self.widest[0],
            widest_unshielded=self.widest[1],
            followed=self.followed,
        )
