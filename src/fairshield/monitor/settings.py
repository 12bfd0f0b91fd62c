"""Checks of the settings of a monitor: its groups, their order, its numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fairshield.base.counts import Counts, Group, group_name, is_whole
from fairshield.base.errors import InvalidValueError, argument, called
from fairshield.inputs import Inputs
from fairshield.periodic import PeriodicPolicy
from fairshield.spec import Property


def names_of(
    groups: Iterable[Any] | None,
    start: Counts | None,
    inputs: Inputs | None,
    shadow: PeriodicPolicy | None,
) -> tuple[Group, ...] | None:
    """The groups that ``groups``, counters, models or policies name; these must agree."""
    named = None if groups is None else tuple(group_name(g) for g in groups)
    if named is not None and (len(named) < 2 or len(set(named)) < len(named)):
        raise InvalidValueError(
            f"groups must name at least two, each once, got {list(named)}: leave groups out to "
            "meet them as they come"
        )
    sources: list[tuple[str, Any]] = [("start", start), ("inputs", inputs), ("shadow", shadow)]
    for source, thing in sources:
        if thing is None:
            continue
        theirs = tuple(thing) if source == "start" else tuple(getattr(thing, "groups", ()))
        if named is not None and theirs and theirs != named:
            raise InvalidValueError(
                f"{source} names the groups {list(theirs)}, not {list(named)}: give the same "
                "groups in the same order everywhere"
            )
        named = named or theirs or None
    return named


def check_order(prop: Property, named: tuple[Group, ...] | None) -> None:
    """Refuse groups that do not suit the property, and unnamed ones where their order matters."""
    if named is not None:
        prop.check_groups(len(named))
    elif prop.only_two is not None:
        raise InvalidValueError(
            f"{prop} compares the first group with the second, and groups met as they come "
            f"have no order: name them with {argument('groups', ('first', 'second'))}"
        )


def check_numbers(confidence: float, min_group_size: int, keep: int) -> None:
    """Refuse numbers out of range."""
    for name, value, least in (("min_group_size", min_group_size, 0), ("keep", keep, 1)):
        if not (is_whole(value) and value >= least):
            raise InvalidValueError(
                f"{called(name)} must be a whole number of at least {least}, got {value!r}"
            )
    if not isinstance(confidence, (int, float)) or not 0.0 < confidence < 1.0:
        raise InvalidValueError(
            f"confidence must lie between 0 and 1, as 0.95 does, got {confidence!r}"
        )
