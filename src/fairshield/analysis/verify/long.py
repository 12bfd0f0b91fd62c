"""Tests of long policies: windows made to be hard are decided and judged one by one.

A long policy has too many counter states to look at each.  That every sequence of requests ends
fair is a theorem (docs/guarantees.md).  The windows here try whether the policy at hand, as
deployed, obeys the theorem; each would end unfair under a shield that missed a case of the proof.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fairshield.analysis.verify.claim import Claim
from fairshield.analysis.verify.counterexample import Counterexample, LoggedDecision
from fairshield.policy import Policy
from fairshield.runtime.compiled import decide_batch
from fairshield.runtime.requests import Requests

Flags = NDArray[np.bool_]
_SEED = 20260
HARD_WINDOWS = 72


class Trial:
    """Trial is one window, decided by the policy; :meth:`violation` judges it."""

    def __init__(self, policy: Policy, second: Flags, proposed: Flags, counts: Flags) -> None:
        n, cost = policy.horizon, float(policy.edges[0])
        self.policy, self.second, self.proposed, self.relevant = policy, second, proposed, counts
        self.cost = cost if np.isfinite(cost) else 1.0
        self.requests = Requests(
            second.view(np.int8), proposed, np.zeros(n, np.int32), np.full(n, self.cost), counts
        )
        self.accepted, _ = decide_batch(policy, 0, (0, 0, 0, 0), self.requests)

    def violation(self, claim: Claim) -> Counterexample | None:
        """The window up to the first check at which something required does not hold."""
        gained = self.requests.gained(self.accepted, self.policy.prop.counting)
        for check in self.policy.due:
            counts = self.policy.start.plus(tuple(gained[check].tolist()))
            for prop in claim.required_of(self.policy, check):
                if not prop.holds(counts):
                    return Counterexample.of(map(self._decision, range(check)), counts, prop)
        return None

    def _decision(self, i: int) -> LoggedDecision:
        outcome = None
        if self.policy.labelled:
            outcome = bool(self.relevant[i]) == self.policy.prop.relevant_outcome
        return LoggedDecision(
            self.policy.groups[int(self.second[i])], bool(self.proposed[i]), self.cost, outcome,
            bool(self.accepted[i]),
        )  # fmt: skip


def hard_windows(horizon: int, labelled: bool) -> Iterator[tuple[Flags, Flags, Flags]]:
    """Group, proposal and relevance of each person, in windows that are hard to end fair.

    One group alone; one group late; arrivals in blocks; all of one group proposed and none of the
    other; proposals that favour the other group from halfway or shortly before the end; random.
    """
    rng, place = np.random.default_rng(_SEED), np.arange(horizon)
    late = [horizon - min(horizon, n) for n in (1, 2, 10, 100)]
    arrivals = [
        np.zeros(horizon, bool), place % 2 == 1, place >= horizon // 2, rng.random(horizon) < 0.01,
        rng.random(horizon) < 0.5, *(place >= first for first in late),
    ]  # fmt: skip
    for second in arrivals:
        turned = second ^ (place >= horizon - max(horizon // 10, 1))
        for proposed in (second, ~second, turned, rng.random(horizon) < 0.5):
            for who, said in ((second, proposed), (~second, proposed)):
                counts = np.ones(horizon, bool)
                if labelled:
                    counts = rng.random(horizon) < rng.random()
                yield who, said, counts
