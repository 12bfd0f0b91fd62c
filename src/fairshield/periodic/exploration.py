"""Exploration finds all counters that can be reached at the ends of a number of periods.

For the first unfair ones it returns a log of decisions that leads to them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.analysis.verify import Claim, Counterexample, Verification
from fairshield.analysis.verify.counterexample import LoggedDecision, decisions_to
from fairshield.analysis.verify.reach import ReachedStates
from fairshield.base.counts import At, Counts, GroupCount
from fairshield.base.types import Progress
from fairshield.periodic.policy import PeriodicPolicy, WindowPolicy
from fairshield.policy import Policy
from fairshield.spec import Property, both

Ints = NDArray[np.int64]


class _Ends(NamedTuple):
    """_Ends holds the possible ends of a period: counters gained, and decisions leading there."""

    reach: ReachedStates
    gained: Ints


class Exploration:
    """Exploration finds the counters at the ends of periods, breadth first.

    Parameters
    ----------
    policy
        Whose periods are explored.
    claim
        What is to be shown.
    theorem
        The theorem about all periods, if one speaks of the claim.
    """

    def __init__(self, policy: PeriodicPolicy, claim: Claim, theorem: str | None) -> None:
        self.policy, self.claim, self.theorem = policy, claim, theorem
        self._required = both(policy.prop, claim.asked)
        self.states, self.transitions = 0, 0
        self._known: dict[Policy, _Ends] = {}
        self._parents: list[dict[At, At | None]] = [{policy.start.numbers(): None}]

    def run(self, periods: int, progress: Progress | None) -> Verification:
        """Explore so many periods, or until a violation is found."""
        for period in range(periods):
            here = self._parents[period]
            after: dict[At, At | None] = {}
            for done, start in enumerate(here, 1):
                window = self.policy.window(self._counts(start), period)
                ends = self._explore(window)
                totals = ends.gained + np.array(start)
                example = self._violation(period, start, ends)
                if example is not None:
                    return self._found(False, period + 1, example)
                if period + 1 < periods:
                    after |= dict.fromkeys(map(tuple, totals.tolist()), start)
                if progress is not None:
                    progress((period + done / len(here)) / periods)
            self._parents.append(after)
        return self._found(True, int(periods))

    def _found(
        self, holds: bool, periods: int, example: Counterexample | None = None
    ) -> Verification:
        ends = None if self.theorem else [self.policy.length * n for n in range(1, periods + 1)]
        return Verification(
            holds, self.states, self.transitions, example, claim=self.claim,
            can_bind=self.claim.can_bind(ends), exhaustive=False, rests_on=self.theorem,
            periods=periods,
        )  # fmt: skip

    def _explore(self, window: WindowPolicy) -> _Ends:
        found = self._known.get(window.policy)
        if found is None:
            reach = ReachedStates(window.policy)
            for _ in range(self.policy.length):
                reach.advance()
            found = _Ends(reach, reach.positions())
            self.states += reach.states
            self.transitions += reach.transitions
            if window.counts == window.policy.start and len(self._known) < 2:
                # A static policy decides every period, so its ends are kept; others do not recur.
                self._known[window.policy] = found
        return found

    def _violation(self, period: int, start: At, ends: _Ends) -> Counterexample | None:
        """Decisions by which a period with this start ends unfair; ``None`` if there are none."""
        n_a, k_a, n_b, k_b = (ends.gained + np.array(start)).T
        for prop in self._required:
            fair = prop.holds_array(GroupCount(n_a, k_a), GroupCount(n_b, k_b))
            bad = np.flatnonzero(~fair)
            if len(bad):
                return self._example(period, start, ends, int(bad[0]), prop)
        return None

    def _counts(self, totals: At) -> Counts:
        return Counts.zero(self.policy.groups).plus(totals)

    def _example(
        self, period: int, start: At, ends: _Ends, bad: int, prop: Property
    ) -> Counterexample:
        gained = ends.gained[bad]
        decisions = self._decisions(ends.reach, gained)
        at: At | None = start
        for earlier in range(period - 1, -1, -1):
            assert at is not None
            before = self._parents[earlier + 1][at]
            assert before is not None
            reach = self._explore(self.policy.window(self._counts(before), earlier)).reach
            decisions[:0] = self._decisions(reach, np.array(at) - np.array(before))
            at = before
        return Counterexample.of(decisions, self._counts(start).plus(tuple(gained.tolist())), prop)

    def _decisions(self, reach: ReachedStates, gained: Ints) -> list[LoggedDecision]:
        return decisions_to(reach, tuple(gained.tolist()))
