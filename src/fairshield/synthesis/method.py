"""Which method makes a policy: an exact table where that is a matter of seconds, or long."""

from __future__ import annotations

from typing import Literal

from fairshield.errors import InvalidValueError
from fairshield.inputs import InputModel, InputSchedule
from fairshield.layout import Layout
from fairshield.long.rule import uncertified_end, unsupported
from fairshield.spec import DifferenceOfRates, Property

Method = Literal["auto", "exact", "long"]

MOST_STATES = 5 * 10**9
"""States of an exact table that the processors of one machine solve in seconds."""
MOST_ON_DEVICE = 5 * 10**10
"""The same for a CUDA device: not its time, but the size of the policy sets the limit."""


def check_method(asked: str) -> None:
    """Refuse a method that is not there."""
    if asked not in ("auto", "exact", "long"):
        raise InvalidValueError(f"method must be 'auto', 'exact' or 'long', got {asked!r}")


def chosen_method(
    asked: Method, layout: Layout, obstacle: str | None, most: int
) -> tuple[str, str]:
    """``exact`` or ``long``, and why; ``most`` states are few enough for a table.

    ``obstacle`` says why the long method does not apply, if it does not.
    """
    check_method(asked)
    if asked == "long" and obstacle is not None:
        raise InvalidValueError(f"the long method does not apply: {obstacle}; use 'exact'")
    if asked != "auto":
        return asked, "asked for"
    table = f"an exact table for {layout.horizon} decisions has {layout.n_states:.2g} states"
    if layout.n_states <= most:
        return "exact", table
    if obstacle is not None:
        return "exact", f"{table}, and the long method does not apply: {obstacle}"
    return "long", f"{table}, more than the {most:.2g} that are solved in seconds"


def obstacle_of(
    prop: Property, inputs: InputModel | InputSchedule, *, spread: float, further: int,
    checkpoints: tuple[int, ...], terminal: Property | None,
) -> str | None:  # fmt: skip
    """Why the long method does not apply; ``None`` if it does."""
    against = unsupported(prop)
    if against is not None:
        return against
    if prop.relevant_outcome is not None and isinstance(inputs, InputSchedule):
        return "with outcomes the input model must not change over the window"
    if spread != 1.0:
        return "interventions are spread by exact tables only"
    if further:
        return f"further={further} decisions are planned by exact tables only"
    differences = isinstance(prop, DifferenceOfRates)
    if checkpoints and not differences:
        return f"{prop} has no certificate that goes on after a checkpoint"
    return uncertified_end(prop, terminal)
