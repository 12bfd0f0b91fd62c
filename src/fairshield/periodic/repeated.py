"""Repeated: one policy for every window, begun anew whenever a window is over."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fairshield.base.counts import Counts
from fairshield.base.errors import check_kind
from fairshield.inputs import Inputs
from fairshield.periodic.conditions import Condition, PossibleRequests
from fairshield.periodic.policy import VACUOUS, PeriodicPolicy, WindowPolicy
from fairshield.policy import Policy
from fairshield.policy.policy import TRUSTS
from fairshield.policy.support import Support
from fairshield.spec import Property
from fairshield.synthesis import make_again
from fairshield.synthesis.options import Options


@dataclass(frozen=True, eq=False, repr=False)
class Repeated(PeriodicPolicy):
    """Repeated decides each window by the same ``policy`` from its start; there is no last one.

    The property holds in each window by itself, also at the policy's checkpoints.  After a person
    has decided against advice, the policy goes on from the counters as they are.
    """

    kind = "window"
    title = "repeated"
    goes_on = False

    policy: Policy

    @property
    def prop(self) -> Property:
        return self.policy.prop

    @property
    def inputs(self) -> Inputs:
        return self.policy.inputs

    @property
    def start(self) -> Counts:
        return self.policy.start

    @property
    def length(self) -> int:
        return self.policy.horizon

    @property
    def due(self) -> tuple[int, ...]:
        return self.policy.due

    @property
    def window_policy(self) -> Policy:
        return self.policy

    def window(self, counts: Counts, completed: int) -> WindowPolicy:
        return WindowPolicy(self.policy, self.policy.start, 0)

    def begins_with(self, counts: Counts, completed: int) -> bool:
        return counts == self.policy.start

    def keeps(self, counts: Counts, position: int) -> bool:
        return self.policy.keeps(counts, position)

    @property
    def condition(self) -> Condition | None:
        return PossibleRequests() if self.policy.fair_in_support else None

    @property
    def support(self) -> Support | None:
        return self.policy.spec.support if self.policy.fair_in_support else None

    @property
    def theorem(self) -> str | None:
        return "shields of one window are always fair" if self.unconditional else super().theorem

    def no_theorem(self, prop: str) -> str:
        return "No theorem speaks of windows that are decided by best effort."

    @property
    def unconditional(self) -> bool:
        return not self.policy.risk

    @cached_property
    def can_bind(self) -> bool:
        return self.policy.can_bind

    @property
    def tables(self) -> Policy:
        return self.policy

    def check_stored(self) -> None:
        self.policy.check()

    @property
    def artefact(self) -> Policy:
        return self.policy

    def remade(self, inputs: Inputs) -> Repeated:
        return Repeated(make_again(self.policy, inputs))

    def terms(self) -> dict[str, Any]:
        return {"horizon": self.length}

    def summary_data(self) -> dict[str, Any]:
        policy = self.policy
        return {
            "property": policy.prop.to_dict(),
            "guarantee": f"{policy.prop} over {policy.horizon} decisions" + self._trust(),
            "horizon": policy.horizon,
            "can_bind": policy.can_bind,
            "method": policy.method,
            "reason": policy.reason,
            "expected_cost": policy.expected_cost,
            "least_cost": policy.least_cost,
        }

    def detail_data(self) -> dict[str, Any]:
        policy, stored = self.policy, self.policy.decisions.describe()
        return super().detail_data() | {
            "checkpoints": list(policy.checkpoints),
            "terminal": None if policy.terminal is None else policy.terminal.to_dict(),
            "further": policy.further,
            "spread": policy.spread,
            "trust_support": policy.spec.trust_support,
            "fair_in_support": policy.fair_in_support,
            "outcomes_needed": policy.labelled,
            "rows": stored.get("rows", 0),
            "dense_rows": stored.get("dense_rows", 0),
            "library": policy.version,
        }

    def lines(self) -> list[tuple[str, str]]:
        policy = self.policy
        cost = f"{policy.expected_cost:.6g} per window"
        if policy.least_cost < policy.expected_cost:
            cost += f", of which {policy.expected_cost - policy.least_cost:.3g} for spreading"
        return [
            self._promise(),
            *self._group_lines(),
            ("expected cost", cost),
            ("input model", str(policy.inputs)),
            self._start_line(),
            ("spread", f"{policy.spread:g}" if policy.spread > 1 else "none"),
            ("method", policy.method + (f": {policy.reason}" if policy.reason else "")),
            ("tables", policy.decisions.in_words()),
        ]

    def _promise(self) -> tuple[str, str]:
        policy, (*earlier, last) = self.policy, self.due
        when = " and ".join(filter(None, [", ".join(map(str, earlier)), str(last)]))
        what = f"{policy.prop} after {when} decisions"
        if policy.required(policy.horizon)[1:]:
            what += f", and {policy.terminal} at the end"
        if not policy.can_bind:
            return "property", f"{what}; {VACUOUS}"
        if not policy.risk:
            return "guarantee", f"{what}, whatever arrives"
        if policy.fair_in_support:
            return "condition", f"{what}, {TRUSTS}"
        return "best effort", f"{what}, violated with probability {policy.risk:.3g}"

    def cost_line(self) -> str:
        policy = self.policy
        spreads = policy.least_cost < policy.expected_cost
        least = f" (least {policy.least_cost:.4f})" if spreads else ""
        vacuous = "" if policy.can_bind else ", vacuous"
        return f"expected cost {policy.expected_cost:.4f}{least}{vacuous}"

    def _trust(self) -> str:
        return f", {TRUSTS}" if self.policy.fair_in_support else ""

    def to_dict(self) -> dict[str, Any]:
        header, _ = self.policy.to_artifact()
        return header

    @cached_property
    def fingerprint(self) -> str:
        # Costs may differ in the last digit between machines, and say nothing of what is kept.
        how = Options.that_made(self.policy)
        asked = self.policy.spec.to_dict() | {"method": how.method, "endgame": how.endgame}
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]

    def save(self, path: str | os.PathLike[str]) -> str:
        return self.policy.save(path)

    def __str__(self) -> str:
        return str(self.policy)


def kind_of(policy: Policy | PeriodicPolicy) -> PeriodicPolicy:
    """``policy`` itself if it is periodic, else ``Repeated(policy)``."""
    if isinstance(policy, Policy):
        return Repeated(policy)
    check_kind(
        policy, PeriodicPolicy,
        "policy must be a policy: make one with synthesize, or load it with load_policy; "
        "that of a run is its .policy",
    )  # fmt: skip
    return policy
