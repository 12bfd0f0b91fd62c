"""Terms of an audit: who decided a log, when the property had to hold, what both agree on."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from fairshield.base.counts import Counts, Group, is_whole, so_far
from fairshield.base.errors import InvalidValueError, argument, called, check_kind, shown
from fairshield.policy import Policy
from fairshield.records import Flag
from fairshield.records.dates import By
from fairshield.runtime.step import Decision


@runtime_checkable
class DecidingRun(Protocol):
    """DecidingRun decides all windows or periods, one after the other."""

    @property
    def policy(self) -> Any: ...
    @property
    def completed(self) -> int: ...
    @property
    def position(self) -> int: ...

    def decide(self, group: Group, *, proposed: Flag, cost: float) -> Decision: ...
    def observe(self, decision: Decision, *, outcome: Flag) -> None: ...


def check_deciders(policy: Policy | None, run: DecidingRun | None) -> None:
    """Refuse what cannot decide a log again, and two that both would."""
    if policy is not None and run is not None:
        raise InvalidValueError(
            f"{called('policy')} {shown(policy)} and {called('shield')} {shown(run)} both say who "
            "decided, and only one can decide the log again: leave out one of the two"
        )
    if policy is not None:
        given: object = policy
        run_given = isinstance(given, DecidingRun)
        kind, how = ("a run", "") if run_given else ("a periodic policy", ", as Run(policy)")
        check_kind(
            policy, Policy,
            f"{called('policy')} decides one window: {kind} goes in {called('shield')}{how}",
        )  # fmt: skip
    if run is not None:
        _check_run(run)


def _check_run(run: object) -> None:
    """Refuse what is no run, and one that has decided before the log begins."""
    if not isinstance(run, DecidingRun):
        raise InvalidValueError(
            f"{called('shield')} decides the log again from its first decision, window after "
            f"window: give a Run, such as Run(policy), got {shown(run)}; the policy of one window "
            f"goes in {called('policy')}"
        )
    if run.completed or run.position:
        made = run.completed * run.policy.length + run.position
        raise InvalidValueError(
            f"the run given as {called('shield')} has decided already, {made} times: give a new "
            "one of the same policy, Run(run.policy)"
        )


def check_points(horizon: int | None, period: int | None, checkpoints: tuple[int, ...]) -> None:
    """Refuse horizons, periods and checkpoints that are not numbers of decisions, or that clash."""
    if period is not None and (horizon is not None or checkpoints):
        raise InvalidValueError(
            f"a period of {period!r} goes with neither a horizon nor checkpoints: in periods "
            "counters go on, in windows they begin again; leave out one of the two"
        )
    for name, number in (("horizon", horizon), ("period", period)):
        if number is not None and not (is_whole(number) and number >= 1):
            raise InvalidValueError(f"{name} must be a whole number of at least 1, got {number!r}")
    for point in checkpoints:
        if not is_whole(point) or point < 1 or point > (horizon or point):
            most = "" if horizon is None else f" to the horizon {horizon}"
            raise InvalidValueError(
                f"checkpoints must be whole numbers from 1{most}, got {point!r}"
            )


def check_by(by: By, horizon: int | None, period: int | None, decider: object) -> None:
    """Refuse calendar windows together with a policy, a horizon or a period."""
    if decider is not None:
        raise InvalidValueError(
            f"{argument('by', by)} parts the log by dates, and a policy decides windows of so many "
            f"decisions in their order: check the property alone, without {called('policy')}"
        )
    for name, number in (("horizon", horizon), ("period", period)):
        if number is not None:
            raise InvalidValueError(
                f"{argument('by', by)} makes a window of each {by}, {argument(name, number)} of "
                "so many decisions: leave out one of the two"
            )


def agreed(
    name: str,
    given: Any,
    of_policy: Any,
    *,
    whose: str = "the policy's",
    instead: str = "audit without the policy",
) -> Any:
    """The value of the policy; refuses a ``given`` value that differs from it."""
    if given is not None and given != of_policy:
        raise InvalidValueError(
            f"{called(name)} {_told(given)} is not {whose} {_told(of_policy)}: leave it out, or "
            f"{instead}"
        )
    return of_policy


def _told(value: Any) -> str:
    if value is None:
        return "none"
    return f"({so_far(value)})" if isinstance(value, Counts) else repr(value)
