"""Terms of an audit: when the property had to hold, and what a policy says of that."""

from __future__ import annotations

from typing import Any

from fairshield.base.counts import Counts, is_whole, so_far
from fairshield.base.errors import InvalidValueError, argument, called
from fairshield.records.dates import By


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
