"""Whether a policy keeps its promise: every state it can reach is looked at, if it has a table.

The verifier knows nothing of how policies are made.  It takes the decision rule as deployed
(:mod:`fairshield.runtime.compiled`), lets every group, proposal, cost and outcome come at every
step, and asks what is required, in integers, at each checkpoint and at the horizon.  What the
tables claim to be feasible does not count; only the property does.

What the promise is, the policy says itself: its property, window and start.  A file may lie about
that, so the :class:`Claim` that was looked at is part of what is found, and the caller may say
what must hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fairshield.errors import InvalidValueError
from fairshield.long import LongPolicy
from fairshield.policy import Policy
from fairshield.spec import Property
from fairshield.verify.claim import Claim as Claim
from fairshield.verify.claim import claim_of, implies
from fairshield.verify.counterexample import Counterexample as Counterexample
from fairshield.verify.counterexample import LoggedDecision as LoggedDecision
from fairshield.verify.counterexample import find_counterexample
from fairshield.verify.verification import Verification as Verification

Progress = Callable[[float], None]
LONG_THEOREM = "windows that keep to their certificates end fair"
"""What a verification of a long policy rests on; the proof is in docs/guarantees.md."""


def verify(
    policy: Policy, *, prop: Property | None = None, progress: Progress | None = None
) -> Verification:
    """Confirm the guarantee of ``policy``, or find a shortest sequence of requests that breaks it.

    A long policy has too many states to look at: windows made to be hard are tried instead.

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

    Examples
    --------
    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> policy = fs.synthesize(fs.DemographicParity("0.2"), inputs, horizon=10)
    >>> found = fs.verify(policy)
    >>> print(found.claim)
    demographic parity ≤ 1/5 after 10 decisions, groups a and b, from nobody seen
    >>> print(found.result)
    guarantee holds: 433 states, 1,060 transitions, all that can be reached
    >>> fs.verify(policy, prop=fs.DemographicParity("0.1")).holds
    False
    """
    if not isinstance(policy, Policy):
        raise InvalidValueError(
            f"verify is about a policy for one window, got {type(policy).__name__}: use "
            "fairshield.periodic.verify.verify_periodic for a periodic policy"
        )
    policy.check_window()
    policy.check()
    claim = claim_of(policy, prop)
    binds = policy.can_bind if prop is None else claim.can_bind(policy.due)
    if isinstance(policy, LongPolicy):
        return _verify_long(policy, claim, binds, progress)
    return _verify_table(policy, claim, binds, progress)


def _verify_table(
    policy: Policy, claim: Claim, binds: bool, progress: Progress | None
) -> Verification:
    # Loads the compiler, which everything else in this module does without.
    from fairshield.verify.reach import reach_of

    reach = reach_of(policy)
    for t in range(policy.horizon):
        reach.advance()
        violation = reach.violation(claim.required_of(policy, t + 1))
        if violation is not None:
            example = find_counterexample(reach, *violation)
            looked = reach.states, reach.transitions
            return Verification(False, *looked, example, claim=claim, can_bind=binds)
        if progress is not None:
            layout = policy.layout
            progress(replace(layout, horizon=t + 1).n_states / layout.n_states)
    return Verification(
        True, reach.states, reach.transitions, claim=claim, can_bind=binds, exhaustive=True
    )


def _verify_long(
    policy: LongPolicy, claim: Claim, binds: bool, progress: Progress | None
) -> Verification:
    from fairshield.verify.long import HARD_WINDOWS, Trial, hard_windows

    for tried, window in enumerate(hard_windows(policy.horizon, policy.labelled), 1):
        looked, trial = (tried * policy.horizon,) * 2, Trial(policy, *window)
        example = trial.violation(claim)
        if example is not None:
            return Verification(False, *looked, example, claim=claim, can_bind=binds, windows=tried)
        if progress is not None:
            progress(tried / HARD_WINDOWS)
    certified = policy.guarantees(policy.start, 0)
    rests_on = LONG_THEOREM if certified and implies(policy.prop, claim.asked) else None
    return Verification(
        certified, *looked, claim=claim, can_bind=binds, windows=HARD_WINDOWS, rests_on=rests_on
    )
