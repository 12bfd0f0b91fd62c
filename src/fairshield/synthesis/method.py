"""Which method makes a policy: an exact table where that is a matter of seconds, or long."""

from __future__ import annotations

from typing import Literal

from fairshield.errors import InvalidValueError
from fairshield.inputs import InputModel, InputSchedule
from fairshield.layout import layout_of
from fairshield.long.rule import rule_of, unsupported
from fairshield.spec import DifferenceOfRates, Property, Sustained

Method = Literal["auto", "exact", "long"]

MOST_STATES = 5 * 10**9
"""States of an exact table that the processors of one machine solve in seconds."""


def chosen_method(
    asked: Method, prop: Property, inputs: InputModel | InputSchedule, planned: int,
    obstacle: str | None, most: int,
) -> tuple[str, str]:  # fmt: skip
    """``exact`` or ``long``, and why; ``most`` states are few enough for a table.

    ``obstacle`` says what else was asked for that long policies do not have.
    """
    if asked not in ("auto", "exact", "long"):
        raise InvalidValueError(f"method must be 'auto', 'exact' or 'long', got {asked!r}")
    against = unsupported(prop) or obstacle or _unsuitable(prop, inputs)
    if asked == "long":
        if against is not None:
            raise InvalidValueError(f"the long method does not apply: {against}; use 'exact'")
        return "long", "asked for"
    if asked == "exact":
        return "exact", "asked for"
    states = layout_of(planned, prop.relevant_outcome is not None).n_states
    table = f"an exact table for {planned} decisions has {states:.2g} states"
    if states <= most:
        return "exact", table
    if against is not None:
        return "exact", f"{table}, and the long method does not apply: {against}"
    return "long", f"{table}, more than the {most:.2g} that are solved in seconds"


def _unsuitable(prop: Property, inputs: InputModel | InputSchedule) -> str | None:
    if prop.relevant_outcome is not None and isinstance(inputs, InputSchedule):
        return "with outcomes the input model must not change over the window"
    return None


def obstacle_of(
    prop: Property, *, spread: float, further: int, checkpoints: tuple[int, ...],
    terminal: Property | None,
) -> str | None:  # fmt: skip
    """What was asked for that long policies do not have."""
    if spread != 1.0:
        return "interventions are spread by exact tables only"
    if further:
        return f"further={further} decisions are planned by exact tables only"
    differences = isinstance(prop, DifferenceOfRates)
    if checkpoints and not differences:
        return (
            "checkpoints need certificates that go on after them, which differences of rates have"
        )
    if (
        terminal is not None
        and terminal != prop
        and not (differences and terminal == Sustained(prop))
    ):
        return f"{terminal} must hold at the end, which has no certificate"
    return None


def check_counters(prop: Property, seen: int, planned: int) -> None:
    """Refuse counters that compiled certificates cannot compare."""
    largest = rule_of(prop).largest
    if seen + planned > largest:
        raise InvalidValueError(
            f"{seen} people before the window and {planned} decisions: certificates of {prop} are "
            f"compared in 64 bits up to {largest} people; shorten the window, begin the counters "
            "anew, or round the bound to a simpler fraction"
        )
