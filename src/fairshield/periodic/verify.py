"""Whether a periodic policy keeps its promise: every sequence of requests, period by period.

* *Exact periodic*: the policy of all periods is verified as it is.
* *Perpetual*: the plan that a run begins with is verified to its end, certificates included; the
  theorem on certificates covers every period after it.  Some periods as they are really decided,
  each from a plan of its own, can be explored as well.
* *Static* and *Dynamic* shields promise fairness under a condition only.  All counters that can be
  reached at the end of each period are explored, up to a number of periods, and the first that are
  unfair come with a log that leads to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Counts, GroupCount, is_whole
from fairshield.errors import InvalidValueError
from fairshield.periodic.exact import ExactPeriodic
from fairshield.periodic.perpetual import Perpetual
from fairshield.periodic.policy import PeriodicPolicy, Window
from fairshield.policy import Policy
from fairshield.spec import Property, both
from fairshield.verify import Claim, Counterexample, Verification, verify
from fairshield.verify.claim import check_asked, implies
from fairshield.verify.counterexample import LoggedDecision, decisions_to
from fairshield.verify.reach import Reach, reach_of

Progress = Callable[[float], None]
Ints = NDArray[np.int64]
Totals = tuple[int, int, int, int]


def verify_periodic(
    policy: PeriodicPolicy,
    *,
    prop: Property | None = None,
    periods: int | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Confirm the guarantee of ``policy``, or find a sequence of requests that breaks it.

    Parameters
    ----------
    policy
        From anywhere.
    prop
        What must hold at the end of every period, besides what the policy says of itself.
    periods
        How many periods are explored, one after the other: 2 by default for static and Dynamic
        policies, none for perpetual ones beyond their first plan.  Of a static or Dynamic policy
        it is asked about these periods alone, and the verdict is about them; if nobody says how
        many, about all periods, of which two show too little to conclude.
    progress
        Called with the share of work done, between 0 and 1.

    Raises
    ------
    ArtifactError
        If the tables were not made for this policy, so that they prove nothing about it.
    """
    if periods is not None and (not is_whole(periods) or periods < 1):
        raise InvalidValueError(
            f"periods must be a whole number of at least 1, got {periods!r}: it is how many to "
            "explore"
        )
    check_asked(prop, policy.prop, policy.groups)
    policy.check_stored()
    claim = Claim(
        policy.prop, (policy.period,), policy.start, asked=prop, kind=policy.kind,
        periods=policy.last,
    )  # fmt: skip
    if periods is not None and _theorem(policy, claim) is None:
        claim = replace(claim, asked_periods=int(periods))
    if isinstance(policy, ExactPeriodic):
        if periods is not None:
            raise InvalidValueError(
                f"an exact periodic policy is verified for all its {policy.periods} periods, not "
                f"for {periods}: leave periods out"
            )
        return replace(verify(policy.tables, prop=prop, progress=progress), claim=claim)
    if isinstance(policy, Perpetual):
        found = _verify_plan(policy, claim, None if periods else progress)
        if periods is None or not found.holds:
            return found
    return _Exploration(policy, claim).run(periods or 2, progress)


def _verify_plan(policy: Perpetual, claim: Claim, progress: Progress | None) -> Verification:
    """The first plan of a run to its end, whose certificates cover all that comes after it."""
    plan = policy.plan(policy.start, recorded=policy.lookahead)
    found = verify(plan, prop=claim.asked, progress=progress)
    shown = found.exhaustive or found.rests_on is not None
    return replace(
        found, claim=claim, can_bind=claim.can_bind(None), exhaustive=False,
        rests_on=_theorem(policy, claim) if shown else None,
    )  # fmt: skip


def _theorem(policy: PeriodicPolicy, claim: Claim) -> str | None:
    """The theorem about all periods, if it needs no condition and speaks of what was asked."""
    covered = policy.unconditional and implies(policy.prop, claim.asked)
    return policy.theorem if covered else None


class _Ends(NamedTuple):
    """Where a period can end: what it gains, and how it gets there."""

    reach: Reach
    gained: Ints


class _Exploration:
    """Counters at period ends, breadth first."""

    def __init__(self, policy: PeriodicPolicy, claim: Claim) -> None:
        self.policy, self.claim = policy, claim
        self._required = both(policy.prop, claim.asked)
        self.states, self.transitions = 0, 0
        self._known: dict[Policy, _Ends] = {}
        (n_a, k_a), (n_b, k_b) = policy.start.values()
        self._start = (n_a, k_a, n_b, k_b)
        self._parents: list[dict[Totals, Totals | None]] = [{self._start: None}]

    def run(self, periods: int, progress: Progress | None) -> Verification:
        """Explore so many periods, or until a violation is found."""
        for period in range(periods):
            here = self._parents[period]
            after: dict[Totals, Totals | None] = {}
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
        theorem = _theorem(self.policy, self.claim)
        ends = None if theorem else [self.policy.period * n for n in range(1, periods + 1)]
        return Verification(
            holds, self.states, self.transitions, example, claim=self.claim,
            can_bind=self.claim.can_bind(ends), rests_on=theorem, periods=periods,
        )  # fmt: skip

    def _explore(self, window: Window) -> _Ends:
        found = self._known.get(window.policy)
        if found is None:
            reach = reach_of(window.policy)
            for _ in range(self.policy.period):
                reach.advance()
            found = _Ends(reach, reach.positions())
            self.states += reach.states
            self.transitions += reach.transitions
            if window.counts == window.policy.start and len(self._known) < 2:
                # A static policy serves every period; others are not met again.
                self._known[window.policy] = found
        return found

    def _violation(self, period: int, start: Totals, ends: _Ends) -> Counterexample | None:
        """How a period that begins so can end unfair, if it can."""
        n_a, k_a, n_b, k_b = (ends.gained + np.array(start)).T
        for prop in self._required:
            fair = prop.holds_array(GroupCount(n_a, k_a), GroupCount(n_b, k_b))
            bad = np.flatnonzero(~fair)
            if len(bad):
                return self._example(period, start, ends, int(bad[0]), prop)
        return None

    def _counts(self, totals: Totals) -> Counts:
        a, b = self.policy.groups
        return Counts({a: totals[:2], b: totals[2:]})

    def _example(
        self, period: int, start: Totals, ends: _Ends, bad: int, prop: Property
    ) -> Counterexample:
        gained = ends.gained[bad]
        decisions = self._decisions(ends.reach, gained)
        at: Totals | None = start
        for earlier in range(period - 1, -1, -1):
            assert at is not None
            before = self._parents[earlier + 1][at]
            assert before is not None
            reach = self._explore(self.policy.window(self._counts(before), earlier)).reach
            decisions[:0] = self._decisions(reach, np.array(at) - np.array(before))
            at = before
        n_a, k_a, n_b, k_b = (gained + np.array(start)).tolist()
        return Counterexample.of(decisions, self._counts((n_a, k_a, n_b, k_b)), prop)

    def _decisions(self, reach: Reach, gained: Ints) -> list[LoggedDecision]:
        return decisions_to(reach, tuple(gained.tolist()))
