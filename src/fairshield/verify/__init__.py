"""Whether a policy keeps its promise: every state it can reach is looked at, if it has a table.

The verifier knows nothing of how policies are made.  It takes the decision rule as deployed
(:mod:`fairshield.runtime.compiled`), lets every group, proposal, cost and outcome come at every
step, and asks the property itself, in integers, at each checkpoint and at the horizon.  What the
tables claim to be feasible does not count; only the property does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from fairshield.counts import is_whole
from fairshield.errors import InvalidValueError
from fairshield.long import LongPolicy
from fairshield.policy import Policy
from fairshield.structure import broken
from fairshield.verify.counterexample import Counterexample as Counterexample
from fairshield.verify.counterexample import LoggedDecision as LoggedDecision
from fairshield.verify.counterexample import find_counterexample

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Verification:
    """What :func:`verify` found; true in a boolean context if the guarantee holds.

    Attributes
    ----------
    holds
        Whether the property holds at every checkpoint and at the horizon, whatever comes; what
        was planned further is not looked at.
    states
        Counter states that some sequence of requests reaches, and that were looked at.
    transitions
        Ways on from them: state, group and decision that some request brings about.
    counterexample
        A shortest sequence of requests after which the property is violated, if there is one.
    periods
        How many periods of a periodic policy were explored, if these are not all there are.
    windows
        How many windows were tried, if there are too many states to look at; every state they
        passed counts as often as it was passed.
    """

    holds: bool
    states: int
    transitions: int
    counterexample: Counterexample | None = None
    periods: int | None = None
    windows: int | None = None

    def __bool__(self) -> bool:
        return self.holds

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        example = self.counterexample
        return {
            "holds": self.holds,
            "states": self.states,
            "transitions": self.transitions,
            "counterexample": None if example is None else example.to_dict(),
            "periods": self.periods,
            "windows": self.windows,
        }

    def __str__(self) -> str:
        looked = f"{self.states:,} states, {self.transitions:,} transitions"
        if self.counterexample is None and self.windows is not None:
            tried = f"no violation in {self.windows} hard windows ({self.transitions:,} decisions)"
            if not self.holds:
                return f"nothing is guaranteed, as the start has no certificate; {tried}"
            return f"{tried}; all others are covered by theorem"
        if self.counterexample is None and self.periods is not None:
            return f"no violation in {self.periods} period(s): {looked}"
        if self.counterexample is None:
            return f"guarantee holds: {looked}"
        return f"guarantee violated: {self.counterexample} ({looked})"


def verify(policy: Policy, *, progress: Progress | None = None) -> Verification:
    """Confirm the guarantee of ``policy``, or find a shortest sequence of requests that breaks it.

    A long policy has too many states to look at: windows made to be hard are tried instead.

    Parameters
    ----------
    policy
        From :func:`fairshield.synthesize`, from a file, from anywhere.
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
    >>> print(fs.verify(policy))
    guarantee holds: 433 states, 1,060 transitions
    """
    if not isinstance(policy, Policy):
        raise InvalidValueError(
            f"verify is about a policy for one window, got {type(policy).__name__}: use "
            "fairshield.periodic.verify.verify_periodic for a periodic policy"
        )
    _check_window(policy)
    policy.check()
    if isinstance(policy, LongPolicy):
        return _verify_long(policy, progress)
    # Loads the compiler, which everything else in this module does without.
    from fairshield.verify.reach import reach_of

    reach, points = reach_of(policy), set(policy.due)
    for t in range(policy.horizon):
        reach.advance()
        violation = reach.violation() if t + 1 in points else None
        if violation is not None:
            example = find_counterexample(reach, violation)
            return Verification(False, reach.states, reach.transitions, example)
        if progress is not None:
            layout = policy.layout
            progress(replace(layout, horizon=t + 1).n_states / layout.n_states)
    return Verification(True, reach.states, reach.transitions)


def _verify_long(policy: LongPolicy, progress: Progress | None) -> Verification:
    from fairshield.verify.long import HARD_WINDOWS, Trial, hard_windows

    for tried, window in enumerate(hard_windows(policy.horizon, policy.labelled), 1):
        decisions, example = tried * policy.horizon, Trial(policy, *window).violation()
        if example is not None:
            return Verification(False, decisions, decisions, example, windows=tried)
        if progress is not None:
            progress(tried / HARD_WINDOWS)
    certified = policy.guarantees(policy.start, 0)
    return Verification(certified, decisions, decisions, windows=HARD_WINDOWS)


def _check_window(policy: Policy) -> None:
    if not is_whole(policy.horizon) or policy.horizon < 1:
        raise broken(f"the horizon is {policy.horizon!r}, not a whole number of at least 1")
    most = policy.horizon + policy.further
    for point in policy.checkpoints:
        if not is_whole(point) or not 1 <= point <= most:
            raise broken(f"checkpoint {point!r} does not lie in 1 … {most}")
    if tuple(policy.start) != policy.groups:
        raise broken(f"counters start for groups {tuple(policy.start)}, not {policy.groups}")
