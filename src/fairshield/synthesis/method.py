"""chosen_method chooses an exact table where that takes seconds, else the long method."""

from __future__ import annotations

from typing import Literal

from fairshield.base.errors import InvalidValueError
from fairshield.policy.layout import Layout
from fairshield.policy.specification import Specification

Method = Literal["auto", "exact", "long"]

MOST_STATES = 5 * 10**9
"""States of an exact table that the processors of one machine solve in seconds."""
MOST_ON_DEVICE = 5 * 10**10
"""The same for a CUDA device: not its time, but the size of the policy sets the limit."""


def check_method(asked: str) -> None:
    """Refuse a method that does not exist."""
    if asked not in ("auto", "exact", "long"):
        raise InvalidValueError(f"method must be 'auto', 'exact' or 'long', got {asked!r}")


def chosen_method(
    asked: Method, layout: Layout, obstacle: str | None, most: int
) -> tuple[str, str]:
    """``exact`` or ``long``, and why; a table may have up to ``most`` states.

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


def obstacle_of(spec: Specification) -> str | None:
    """Why the long method does not apply; ``None`` if it does."""
    prop = spec.prop
    against = prop.uncertified
    if against is not None:
        return against
    if spec.trusting:
        return "exact tables alone can trust the support of the input model"
    if spec.labelled and not spec.inputs.steady:
        return "with outcomes the input model must not change over the window"
    if spec.spread != 1.0:
        return "interventions are spread by exact tables only"
    if spec.ceiling is not None:
        return "a ceiling on the cost between checkpoints is kept by exact tables only"
    if spec.further:
        return f"further={spec.further} decisions are planned by exact tables only"
    if spec.checkpoints and prop.sustained is None:
        return f"{prop} has no certificate that goes on after a checkpoint"
    return prop.uncertified_end(spec.terminal)
