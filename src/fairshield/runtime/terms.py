"""What a log is held to: who decided it, and at which moments the property had to hold."""

from __future__ import annotations

from typing import Protocol

from fairshield.counts import Counts, Group, is_whole
from fairshield.dates import By
from fairshield.errors import InvalidValueError, argument, called
from fairshield.records import Flag
from fairshield.runtime.step import Decision
from fairshield.spec import Property


class Terms(Protocol):
    """What a periodic policy says about its runs."""

    @property
    def period(self) -> int: ...
    @property
    def groups(self) -> tuple[Group, ...]: ...
    @property
    def start(self) -> Counts: ...
    @property
    def labelled(self) -> bool: ...
    @property
    def prop(self) -> Property: ...


class Decider(Protocol):
    """Decides one request after the other."""

    def decide(self, group: Group, *, proposed: Flag, cost: float) -> Decision: ...
    def observe(self, decision: Decision, *, outcome: Flag) -> None: ...


class PeriodicDecider(Decider, Protocol):
    """A periodic shield: decides over all periods of a run."""

    @property
    def policy(self) -> Terms: ...


def check_points(horizon: int | None, period: int | None, checkpoints: tuple[int, ...]) -> None:
    """Refuse moments that no log can be checked at."""
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
    """Refuse what cuts a log elsewhere than a calendar does."""
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
