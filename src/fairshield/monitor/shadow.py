"""A shield beside the decisions: it sees the same requests, decides them, and nobody obeys.

The shield has a run of its own.  Its counters are those of its own decisions, not of the ones that
were made, so its totals are what would have happened had it decided from the beginning.  Where its
policy is for a number of periods, it stops after the last one.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Counts, Group
from fairshield.errors import InvalidValueError
from fairshield.monitor.report import ShadowReport
from fairshield.periodic import PeriodicPolicy, PeriodicShield
from fairshield.policy import Policy
from fairshield.runtime.shield import Shield
from fairshield.runtime.step import Decision
from fairshield.stream import AnyPolicy, AnyShield


class Shadow:
    """A policy that decides window after window, or period after period, in vain."""

    def __init__(self, policy: AnyPolicy) -> None:
        if not isinstance(policy, (Policy, PeriodicPolicy)):
            raise InvalidValueError(
                f"shadow must be a policy or a periodic policy, got {type(policy).__name__}: make "
                "one with synthesize"
            )
        if isinstance(policy, Policy) and len(policy.due) > 1:
            raise InvalidValueError(
                f"the shadow policy has checkpoints after {list(policy.due[:-1])} decisions, and a "
                "monitor looks at the ends of windows only: audit a log of decisions with the "
                "policy, or make one without checkpoints"
            )
        self.policy = policy
        self._shield = self._fresh()
        self._left = self.size
        self.decisions, self.changed, self.cost_paid = 0, 0, 0.0
        self.windows, self.unfair, self.exempt, self.untold = 0, 0, 0, 0
        self.overruled: dict[Group, int] = dict.fromkeys(policy.groups, 0)

    @property
    def size(self) -> int:
        """Decisions in a window or period."""
        policy = self.policy
        return policy.horizon if isinstance(policy, Policy) else policy.period

    @property
    def identity(self) -> str:
        """A digest of all that the policy was made from, and with what result."""
        policy = self.policy
        if isinstance(policy, PeriodicPolicy):
            return policy.fingerprint
        header, _ = policy.to_artifact()
        return hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()

    @property
    def periods(self) -> int | None:
        """How many periods it decides; ``None``: there is no last window or period."""
        return None if isinstance(self.policy, Policy) else self.policy.last

    @property
    def over(self) -> bool:
        """Whether its last period is over; from then on it decides nothing."""
        return isinstance(self._shield, PeriodicShield) and self._shield.over

    def _fresh(self) -> AnyShield:
        policy = self.policy
        return Shield(policy) if isinstance(policy, Policy) else PeriodicShield(policy)

    def decide(
        self, group: Group, *, accepted: bool, proposed: bool, cost: float, outcome: bool | None
    ) -> Decision | None:
        """What the shield decides where ``accepted`` was decided; ``None`` once it is over."""
        if self.over:
            return None
        shield = self._shield
        decision = shield.decide(group, proposed=proposed, cost=cost)
        if self.policy.labelled and outcome is not None:
            shield.observe(decision, outcome=outcome)
        self.decisions += 1
        self.changed += decision.accepted != accepted
        if decision.overruled:
            self.overruled[group] += 1
            self.cost_paid += cost
        self._advance(1)
        return decision

    def decide_many(
        self,
        groups: NDArray[Any],
        accepted: NDArray[np.bool_],
        proposed: NDArray[np.bool_],
        costs: NDArray[np.float64],
        outcomes: NDArray[np.bool_] | None,
    ) -> None:
        """The same for many, in order; groups are numbers."""
        names = np.empty(len(self.policy.groups), object)
        names[:] = self.policy.groups
        first, paid = 0, [np.array([self.cost_paid])]
        while first < len(groups) and not self.over:
            some = slice(first, first + self._left)
            batch = self._shield.decide_many(
                names[groups[some]], proposed[some], costs[some],
                outcomes[some] if self.policy.labelled and outcomes is not None else None,
            )  # fmt: skip
            self.changed += int((batch.accepted != accepted[some]).sum())
            gained = np.bincount(groups[some][batch.overruled], minlength=len(names)).tolist()
            for group, n in zip(self.policy.groups, gained, strict=True):
                self.overruled[group] += n
            paid.append(batch.paid)
            first += len(batch.accepted)
            self._advance(len(batch.accepted))
        # Added one after the other, as one at a time would.
        self.cost_paid = float(np.add.accumulate(np.concatenate(paid))[-1])
        self.decisions += first

    def _advance(self, n: int) -> None:
        """Count ``n`` decisions; at the end of a window, begin the next."""
        self._left -= n
        if self._left:
            return
        shield = self._shield
        self.windows += 1
        verdict = self.policy.prop.verdict(shield.counts)
        self.unfair += verdict == "unfair"
        self.exempt += verdict == "exempt"
        if isinstance(shield, Shield):
            self._shield = self._fresh()
        self._left = self.size

    def report(self, unfair_without: int) -> ShadowReport:
        """Totals so far."""
        return ShadowReport(
            self.decisions, sum(self.overruled.values()), self.cost_paid, dict(self.overruled),
            self.changed, self.windows, self.unfair, unfair_without, self.over, self.exempt,
            self.untold,
        )  # fmt: skip

    # Where it stands ------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """JSON-able data; :meth:`resume` takes it."""
        shield = self._shield
        if isinstance(shield, PeriodicShield):
            run: Any = shield.state.to_dict()
        else:
            run = [shield.decided, [list(count) for count in shield.counts.values()]]
        return {
            "totals": [self.decisions, self.changed, self.cost_paid, self.windows, self.unfair],
            "exempt": self.exempt,
            "untold": self.untold,
            "overruled": list(self.overruled.values()),
            "run": run,
        }

    def resume(self, data: dict[str, Any]) -> None:
        """Go on from what :meth:`state` returned."""
        self.decisions, self.changed, self.cost_paid, self.windows, self.unfair = data["totals"]
        # Earlier versions did not count these, nor keep what they could be counted from.
        known = "exempt" in data
        self.exempt = data["exempt"] if known else 0
        self.untold = data.get("untold", 0) if known else self.windows - self.unfair
        self.overruled = dict(zip(self.policy.groups, data["overruled"], strict=True))
        if isinstance(self.policy, PeriodicPolicy):
            self._shield = PeriodicShield(self.policy, state=data["run"])
            self._left = self._shield.remaining
            return
        decided, counts = data["run"]
        now = Counts({g: tuple(c) for g, c in zip(self.policy.groups, counts, strict=True)})
        self._shield = Shield(self.policy, counts=now, decided=decided)
        self._left = self.size - decided
