"""Functions that format numbers, decisions and promises for pages."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from fairshield.service.log.live import LiveStream
from fairshield.spec import Property
from fairshield.wire.messages import DecisionMessage, Status, StreamMessage, WhatIf

NOTHING = "–"
_ROUNDING = 1e-9
_INTERVAL = re.compile(r"\[(\d+(?:/\d+)?), (\d+(?:/\d+)?)\]")


class Light(NamedTuple):
    """Light is a status: its words, what it means, and how much attention it needs (0: most)."""

    label: str
    meaning: str
    rank: int


STATUSES: dict[Status, Light] = {
    "violated": Light("Violated", "a window or period was unfair when it had to be fair", 0),
    "at-risk": Light("At risk", "the end of this window or period may be unfair", 1),
    "vacuous": Light("Never binds", "the property can never bind: nothing is promised", 2),
    "guaranteed": Light("Guaranteed", "certain to end fair, whoever comes", 3),
    "finished": Light("Finished", "no more decisions: all made, or closed", 4),
}


# Numbers ------------------------------------------------------------------------------------


def bias(value: float | None) -> str:
    """A bias; ``None`` is what no number bounds.

    >>> bias(0.0857), bias(None)
    ('0.086', '∞')
    """
    return "∞" if value is None else f"{value:.3f}"


def figure(value: float | None) -> str:
    """Three significant digits, without an exponent where that is short.

    >>> [figure(value) for value in (0, 0.1, 0.12345, 12.0, 1234.5, 1e-9, None)]
    ['0', '0.1', '0.123', '12', '1,234', '1.00e-09', '–']
    """
    if value is None:
        return NOTHING
    if value and not 1e-3 <= abs(value) < 1e15:
        return f"{value:.2e}"
    digits = 2 - math.floor(math.log10(abs(value))) if value else 0
    text = f"{value:,.{max(digits, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def whole(value: int) -> str:
    """A whole number with separators between thousands."""
    return f"{value:,}"


def percent(value: float | None) -> str:
    """A share."""
    return NOTHING if value is None else f"{100 * value:.1f}\N{NO-BREAK SPACE}%"


def milliseconds(seconds: float | None) -> str:
    """A short time."""
    if seconds is None:
        return NOTHING
    return (
        f"{1000 * seconds:.0f}\N{NO-BREAK SPACE}ms"
        if seconds >= 0.01
        else f"{1000 * seconds:.1f}\N{NO-BREAK SPACE}ms"
    )


def clock(at: str) -> str:
    """The time of day of an entry, UTC."""
    return datetime.fromisoformat(at).strftime("%H:%M:%S")


def day(at: str) -> str:
    """Date and time of an entry, UTC."""
    return datetime.fromisoformat(at).strftime("%Y-%m-%d %H:%M:%S UTC")


def short(hash: str) -> str:
    """The beginning of a hash."""
    return f"{hash[:8]}…"


def verdict(accepted: bool) -> str:
    """A decision."""
    return "accept" if accepted else "reject"


def sentence(text: str) -> str:
    """A text that begins with a capital."""
    return text[:1].upper() + text[1:]


def bar(value: float | None, limit: float | None) -> float:
    """Length of a bar, in percent, on a scale of four limits."""
    full = 4 * limit if limit else 1.0
    return 100.0 if value is None else round(100 * min(value / full, 1.0), 2)


def tally(fair: int, completed: int) -> str:
    """How many windows ended fair.

    >>> tally(3, 4), tally(0, 0)
    ('3 of 4', 'none yet')
    """
    return f"{fair:,} of {completed:,}" if completed else "none yet"


def told(text: str, groups: Sequence[Any]) -> str:
    """A text of the library, with percentages for fractions and the names of the groups.

    >>> told("(first to second), in [139/238, 3/4]", ["a", "b"]).split()
    ['(“a”', 'to', '“b”),', 'in', '58.4', '%', 'to', '75.0', '%']
    """
    a, b = groups
    named = text.replace("(first to second)", f"(“{a}” to “{b}”)")
    return _INTERVAL.sub(lambda found: " to ".join(map(_share, found.groups())), named)


def _share(text: str) -> str:
    return percent(float(Fraction(text)))


def within(value: float | None, limit: float | None) -> bool:
    """Whether a bias, which is rounded, is allowed."""
    return limit is None or (value is not None and value <= limit + _ROUNDING)


def unit(stream: StreamMessage) -> str:
    """Return what is counted in a stream: ``"window"`` or ``"period"``."""
    return "window" if stream.kind == "window" else "period"


def just_begun(stream: StreamMessage) -> bool:
    """Whether the bias says nothing yet: in the first tenth of what it is counted over."""
    state = stream.state
    counted_anew = unit(stream) == "window" or not state.windows_completed
    return counted_anew and 10 * (state.position - 1) < stream.length


# Reasons ------------------------------------------------------------------------------------


def reason(case: DecisionMessage | WhatIf, stream: StreamMessage, left: int) -> str:
    """Why this is decided, for whoever knows nothing of shields; ``left`` decisions come after."""
    words = {
        "forced": _forced(case, unit(stream), left, bool(stream.checkpoints)),
        "cheapest": "balancing it later is expected to cost more than overruling it now, at "
        f"{figure(case.cost)}"
        if case.overruled
        else "it can still be balanced, and overruling is not expected to pay",
        "lost": f"a fair end of this {unit(stream)} is no longer certain, whatever is decided"
        + ("; this is the less risky decision" if case.overruled else ""),
    }
    verb = "Overruled" if case.overruled else "As proposed"
    return f"{verb}: {words[case.why]}" if case.why in words else sentence(case.reason)


def _forced(case: DecisionMessage | WhatIf, unit: str, left: int, checkpoints: bool) -> str:
    other = f"one more {'rejection' if case.accepted else 'acceptance'} of group {case.group}"
    if checkpoints:
        return f"{other} could not have been balanced before fairness is due"
    if not left:
        return f"{other} would have ended the {unit} unfair"
    room = f"the {left:,} decisions" if left > 1 else "the one decision"
    return f"{other} could not have been balanced in {room} left"


TESTS: dict[str, Callable[..., bool]] = {"within": within, "just_begun": just_begun}
FILTERS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        bias, figure, whole, percent, milliseconds, clock, day, short, verdict, bar, sentence,
        tally, told, unit, reason
    )
}  # fmt: skip


# Promises -----------------------------------------------------------------------------------


def promise(live: LiveStream) -> str:
    """Return what a stream promises, in one sentence."""
    policy = live.policy
    what = policy.prop.promise(*map(str, policy.groups)) + _support(policy.prop)
    if policy.goes_on:
        return f"{what}, among all people so far, at the end of every {live.length} decisions."
    return f"{what}, at the end of every window of {live.length} decisions."


def _support(prop: Property) -> str:
    """The condition under which the property binds."""
    least = prop.min_support
    return f", where both have at least {least:,} people" if least else ""
