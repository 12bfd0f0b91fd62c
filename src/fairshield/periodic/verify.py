"""verify shows, for any kind of policy, that every sequence of requests ends fair.

* *One window*, begun anew or not: its policy is verified as it is.
* *Exact periodic*: the policy of all periods is verified as it is.
* *Perpetual*: the plan that a run begins with is verified to its end, certificates included; the
  theorem on certificates covers every period after it.  Some periods as they are really decided,
  each from a plan of its own, can be explored as well.
* *Static* and *Dynamic* shields promise fairness under a condition only.  All counters that can be
  reached at the end of each period are explored, up to a number of periods.
"""

from __future__ import annotations

from dataclasses import replace

from fairshield._renamed import NAMES
from fairshield.analysis.verify import Claim, Verification
from fairshield.analysis.verify import verify as verify_window
from fairshield.analysis.verify.claim import check_asked, implies
from fairshield.base.counts import is_whole
from fairshield.base.errors import InvalidValueError
from fairshield.base.renamed import old_names
from fairshield.base.types import Progress
from fairshield.periodic.policy import PeriodicPolicy
from fairshield.periodic.repeated import kind_of
from fairshield.policy import Policy
from fairshield.spec import Property

__getattr__ = old_names(__name__, NAMES)


def verify(
    policy: Policy | PeriodicPolicy,
    *,
    prop: Property | None = None,
    periods: int | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Confirm the guarantee of ``policy``, or find a sequence of requests that breaks it.

    In one window the sequence is a shortest one.  A long policy has too many states to explore:
    windows of adversarial requests are tried instead, and ``exhaustive`` is false.

    Parameters
    ----------
    policy
        Any policy; it need not come from :func:`fairshield.synthesize`.
    prop
        What must hold whenever something is due, besides what the policy says of itself.  Pass it
        where somebody else made the policy: its file can name any property.
    periods
        How many periods are explored, one after the other: 2 by default for static and Dynamic
        policies, none for perpetual ones beyond their first plan.  For a static or Dynamic policy
        the verdict is about these periods alone.  By default it is about all periods; if the two
        explored are fair, that does not show it.
    progress
        Called with the share of work done, between 0 and 1.

    Raises
    ------
    ArtifactError
        If the tables were not made for this policy, so that they prove nothing about it.

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
    if periods is not None and (not is_whole(periods) or periods < 1):
        raise InvalidValueError(
            f"periods must be a whole number of at least 1, got {periods!r}: it is how many to "
            "explore"
        )
    kind, asked = kind_of(policy), None if periods is None else int(periods)
    _check_periods(kind, asked)
    window = kind.window_policy
    if window is not None:
        return verify_window(window, prop=prop, progress=progress)
    claim = _claim(kind, prop, asked)
    plan = kind.whole_plan()
    if plan is None:
        return _explored(kind, claim, asked, progress)
    found = verify_window(plan, prop=prop, progress=None if asked else progress)
    found = replace(found, claim=claim)
    if kind.last is None:
        found = _first_plan(kind, claim, found)
    return _explored(kind, claim, asked, progress) if asked and found.holds else found


def _check_periods(policy: PeriodicPolicy, periods: int | None) -> None:
    """Refuse a number of periods where there is nothing to choose."""
    if periods is None:
        return
    if not policy.goes_on:
        raise InvalidValueError("a policy for one window has no periods: leave periods out")
    if policy.last is not None:
        raise InvalidValueError(
            f"this {policy.title} policy is verified for all its {policy.last} periods, not for "
            f"{periods}: leave periods out"
        )


def _first_plan(policy: PeriodicPolicy, claim: Claim, found: Verification) -> Verification:
    """Turn the verification of a run's first plan into one of all periods, if a theorem helps."""
    shown = found.exhaustive or found.rests_on is not None
    return replace(
        found, can_bind=claim.can_bind(None), exhaustive=False,
        rests_on=_theorem(policy, claim.asked) if shown else None,
    )  # fmt: skip


def _explored(
    policy: PeriodicPolicy, claim: Claim, periods: int | None, progress: Progress | None
) -> Verification:
    # Imported here because it loads numba, which nothing else in this module needs.
    from fairshield.periodic.exploration import Exploration

    exploration = Exploration(policy, claim, _theorem(policy, claim.asked))
    return exploration.run(periods or policy.last or 2, progress)


def _claim(policy: PeriodicPolicy, prop: Property | None, periods: int | None) -> Claim:
    """The claim to be shown: about all periods if a theorem covers them, else about ``periods``.

    Refuses a property that does not fit the policy, and tables of another policy.
    """
    check_asked(prop, policy.prop, policy.groups)
    policy.check_stored()
    some = periods is not None and _theorem(policy, prop) is None
    return Claim(
        policy.prop, (policy.length,), policy.start, asked=prop, kind=policy.kind,
        periods=policy.last, asked_periods=periods if some else None,
    )  # fmt: skip


def _theorem(policy: PeriodicPolicy, asked: Property | None) -> str | None:
    """The theorem about all periods, if it needs no condition and covers the property asked."""
    covered = policy.unconditional and implies(policy.prop, asked)
    return policy.theorem if covered else None
