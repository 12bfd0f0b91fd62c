"""Terms of an audit: when the property had to hold, and what a policy says of that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fairshield.base.counts import Counts, so_far
from fairshield.base.errors import InvalidValueError, argument, called
from fairshield.records.dates import By
from fairshield.runtime.window_rule import WindowRule


def check_by(by: By, rule: WindowRule, policy: object) -> None:
    """Refuse calendar windows together with a policy, a horizon or a period."""
    if policy is not None:
        raise InvalidValueError(
            f"{argument('by', by)} parts the log by dates, and a policy decides windows of so many "
            f"decisions in their order: check the property alone, without {called('policy')}"
        )
    for name, number in (("horizon", rule.horizon), ("period", rule.period)):
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


def check_agreed(
    rule: WindowRule,
    *,
    horizon: int | None = None,
    period: int | None = None,
    checkpoints: Iterable[int] = (),
    **words: str,
) -> None:
    """Refuse windows other than those of the policy; ``words`` are those of :func:`agreed`."""
    agreed("horizon", horizon, rule.horizon, **words)
    agreed("period", period, rule.period, **words)
    agreed("checkpoints", tuple(sorted(set(checkpoints))) or None, rule.checkpoints, **words)


def _told(value: Any) -> str:
    if value is None:
        return "none"
    return f"({so_far(value)})" if isinstance(value, Counts) else repr(value)
