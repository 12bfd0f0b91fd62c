"""Shadow runs a shield beside decisions that others make; nobody follows its decisions.

The shield has a run of its own.  Its counters are those of its own decisions, not of the ones that
were made, so its totals are what would have happened had it decided from the beginning.  Where its
policy is for a number of periods, it stops after the last one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Counts, Group
from fairshield.base.errors import InvalidValueError, check_kind
from fairshield.base.groups import Coded
from fairshield.monitor.report import ShadowReport
from fairshield.periodic import PeriodicPolicy, Run, RunState
from fairshield.periodic.state import History, verdicts_of
from fairshield.policy import Policy
from fairshield.runtime.ledger import Ledger
from fairshield.runtime.step import Decision


class Shadow:
    """Shadow decides the requests that others have decided, and counts where it differs."""

    def __init__(self, policy: Policy | PeriodicPolicy) -> None:
        check_kind(
            policy, Policy | PeriodicPolicy, "shadow must be a policy: make one with synthesize"
        )
        self.run = Run(policy)
        self.policy = self.run.policy
        if len(self.policy.due) > 1:
            raise InvalidValueError(
                f"the shadow policy has checkpoints after {list(self.policy.due[:-1])} decisions, "
                "and a monitor looks at the ends of windows only: audit a log of decisions with "
                "the policy, or make one without checkpoints"
            )
        self.changed = 0
        # The run judges its windows; this ledger counts people and costs only.
        self.ledger = Ledger(self.policy.prop, Counts.zero(self.policy.groups), proposals=False)
        self._index = {group: i for i, group in enumerate(self.policy.groups)}

    @property
    def overruled(self) -> dict[Group, int]:
        """Proposals overruled, by group."""
        return {group: self.ledger.people(i).overruled for group, i in self._index.items()}

    def decide(
        self, group: Group, *, accepted: bool, proposed: bool, cost: float, outcome: bool | None
    ) -> Decision | None:
        """The shield's decision where ``accepted`` was decided; ``None`` once its run is over."""
        if self.run.over:
            return None
        decision = self.run.decide(group, proposed=proposed, cost=cost)
        if self.policy.labelled and outcome is not None:
            self.run.observe(decision, outcome=outcome)
        self.changed += decision.accepted != accepted
        self.ledger.add(self._index[decision.group], proposed, decision.accepted, cost)
        return decision

    def decide_many(
        self,
        groups: NDArray[Any],
        accepted: NDArray[np.bool_],
        proposed: NDArray[np.bool_],
        costs: NDArray[np.float64],
        outcomes: NDArray[np.bool_] | None,
    ) -> None:
        """:meth:`decide` for many requests in order; groups are numbers."""
        policy, last = self.policy, self.policy.last
        left = len(groups) if last is None else last * policy.length - self.run.decided
        some = slice(min(left, len(groups)))
        batch = self.run.decide_many(
            Coded(policy.groups, groups[some]), proposed[some], costs[some],
            outcomes[some] if policy.labelled and outcomes is not None else None,
        )  # fmt: skip
        self.changed += int((batch.accepted != accepted[some]).sum())
        self.ledger.add_many(groups[some], proposed[some], batch.accepted, costs[some])

    def report(self, unfair_unshielded: int) -> ShadowReport:
        """Totals so far."""
        run, past, ledger = self.run, verdicts_of(self.run.state), self.ledger
        return ShadowReport(
            run.decided, ledger.overruled, ledger.paid, self.overruled, self.changed,
            past.windows, past.unfair, unfair_unshielded, run.over, past.exempt, past.untold,
        )  # fmt: skip

    # Saving and resuming --------------------------------------------------------------------

    @property
    def digests(self) -> tuple[str, str]:
        """The policy's fingerprint, and the one that version 0.1 gave a policy for one window."""
        header = json.dumps(self.policy.to_dict(), sort_keys=True)
        return self.policy.fingerprint, hashlib.sha256(header.encode()).hexdigest()

    def state(self) -> dict[str, Any]:
        """JSON-able data; :meth:`resume` takes it."""
        return {
            "changed": self.changed,
            "cost_paid": self.ledger.paid,
            "overruled": list(self.overruled.values()),
            "run": self.run.state.to_dict(),
        }

    def resume(self, data: dict[str, Any]) -> None:
        """Go on from what :meth:`state` returned, now or in an earlier version."""
        state = data["run"]
        if "totals" in data:
            _, self.changed, cost, windows, unfair = data["totals"]
            if isinstance(state, list):
                state = self._state_of_window(data, windows, unfair)
        else:
            self.changed, cost = data["changed"], data["cost_paid"]
        people = [[0, 0, 0, overruled] for overruled in data["overruled"]]
        self.ledger.resume({"people": people, "paid": cost})
        self.run = Run(self.policy, state=state)

    def _state_of_window(self, data: dict[str, Any], windows: int, unfair: int) -> RunState:
        """The state of a run, where an earlier version stored the window in progress alone."""
        position, rows = data["run"]
        # States before that one have no count of exempt windows, nor anything to count them from.
        untold = data.get("untold", 0) if "exempt" in data else windows - unfair
        exempt = data.get("exempt", 0)
        fair = windows - unfair - exempt - untold
        counts = Counts({g: tuple(row) for g, row in zip(self.policy.groups, rows, strict=True)})
        history = History(fair=fair, exempt=exempt, untold=untold)
        return replace(
            self.run.state, completed=windows, position=position, counts=counts, history=history
        )
