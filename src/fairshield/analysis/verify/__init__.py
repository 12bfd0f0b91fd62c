"""``verify`` checks that a policy keeps its promise in every state that the policy can reach.

The verifier knows nothing of how policies are made.  It takes the decision rule as deployed
(:mod:`fairshield.runtime.compiled`), lets every group, proposal, cost and outcome come at every
step, and asks what is required, in integers, at each checkpoint and at the horizon.  What the
tables claim to be feasible does not count; only the property does.

The promise is what the policy says of itself: its property, window and start.  A file may name
any property, so the result includes the :class:`Claim` that was checked, and the caller may pass a
property that must hold as well.  Of a long policy, which has too many states, only some windows are
tried.
"""

from __future__ import annotations

from fairshield.analysis.verify.claim import Claim as Claim
from fairshield.analysis.verify.claim import claim_of, implies
from fairshield.analysis.verify.counterexample import Counterexample as Counterexample
from fairshield.analysis.verify.counterexample import LoggedDecision as LoggedDecision
from fairshield.analysis.verify.counterexample import find_counterexample
from fairshield.analysis.verify.verification import Verification as Verification
from fairshield.base.types import Progress
from fairshield.policy import Policy
from fairshield.spec import Property

LONG_THEOREM = "windows that keep to their certificates end fair"
"""What a verification of a long policy rests on; the proof is in docs/guarantees.md."""


def verify(
    policy: Policy, *, prop: Property | None = None, progress: Progress | None = None
) -> Verification:
    """Confirm the guarantee of one window, or find a shortest sequence of requests that breaks it.

    A long policy has too many states to look at: windows made to be hard are tried instead, and
    ``exhaustive`` is false.

    Parameters
    ----------
    policy
        From :func:`fairshield.synthesize`, from a file, from anywhere.
    prop
        What must hold whenever something is due, besides what the policy says of itself.  Say it
        where the policy is not your own: a file can name any property.
    progress
        Called after every step of the window with the share of work done, between 0 and 1.

    Raises
    ------
    ArtifactError
        If the tables are not those of a policy at all, so that no decision could be looked up.
    """
    policy.check()
    claim = claim_of(policy, prop)
    binds = policy.can_bind if prop is None else claim.can_bind(policy.due)
    verify_some = _verify_table if policy.decisions.tabled else _verify_long
    return verify_some(policy, claim, binds, progress)


def _verify_table(
    policy: Policy, claim: Claim, binds: bool, progress: Progress | None
) -> Verification:
    # Loads the compiler, which everything else in this module does without.
    from fairshield.analysis.verify.reach import ReachedStates

    reach = ReachedStates(policy)
    if claim.in_support:
        binds = False
    for t in range(policy.horizon):
        reach.advance()
        required = claim.required_of(policy, t + 1)
        # What binds only where impossible requests come binds nobody of whom something is shown.
        if claim.in_support and required and not binds:
            binds = reach.binds(claim.judged)
        violation = reach.violation(required)
        if violation is not None:
            example = find_counterexample(reach, *violation)
            looked = reach.states, reach.transitions
            return Verification(
                False, *looked, example, claim=claim, can_bind=binds, exhaustive=False
            )
        if progress is not None:
            progress(reach.layout.states_before(t + 2) / reach.layout.n_states)
    return Verification(
        True, reach.states, reach.transitions, claim=claim, can_bind=binds, exhaustive=True
    )


def _verify_long(
    policy: Policy, claim: Claim, binds: bool, progress: Progress | None
) -> Verification:
    from fairshield.analysis.verify.long import HARD_WINDOWS, Trial, hard_windows

    for tried, window in enumerate(hard_windows(policy.horizon, policy.labelled), 1):
        looked, trial = (tried * policy.horizon,) * 2, Trial(policy, *window)
        example = trial.violation(claim)
        if example is not None:
            return Verification(
                False, *looked, example, claim=claim, can_bind=binds, exhaustive=False,
                windows=tried,
            )  # fmt: skip
        if progress is not None:
            progress(tried / HARD_WINDOWS)
    certified = policy.guarantees(policy.start, 0)
    rests_on = LONG_THEOREM if certified and implies(policy.prop, claim.asked) else None
    return Verification(
        certified, *looked, claim=claim, can_bind=binds, exhaustive=False, windows=HARD_WINDOWS,
        rests_on=rests_on,
    )  # fmt: skip
