"""Look-ups in a table of counted states: plain functions, which also run compiled.

As :mod:`fairshield.policy.lookups`.  ``at`` are counters ``n_a, k_a, n_b, k_b, …``.

A *mask* has a bit for each proposal and cost level, and one for costs above all levels: whether
the proposal is overruled.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class CountedTables(NamedTuple):
    """CountedTables holds the decisions of a policy by counted states, as look-ups read them."""

    labelled: bool
    terms: Any
    """One row of :attr:`fairshield.policy.many.layout.ManyLayout.terms` after the other."""
    width: int
    starts: Any
    gains: Any
    """What a decision adds, ``(seen, accepted)`` by ``2 * accepted + told``."""
    masks: Any
    """Those of one group after those of the other."""
    states: int
    dead: int
    salvaging: bool
    salvage: Any
    """Masks where fairness cannot be guaranteed; as ``masks``, or empty."""
    levels: int
    """Cost levels, and one for costs above them."""


def number_of(terms: Any, width: int, at: Any) -> int:
    """The place of these counters in any layer that has them."""
    number, seen, row = 0, 0, width
    for g in range(len(at) // 2):
        number += terms[row + seen + at[2 * g + 1]]
        seen += at[2 * g]
        row += width
        number += terms[row + seen]
        row += width
    return number


def number_after(tables: CountedTables, t: int, at: Any, group: int, gain: int) -> int:
    """The number of a state once somebody of ``group`` was decided on, with this gain."""
    terms, width, gains = tables.terms, tables.width, tables.gains
    number, seen, row = 0, 0, width
    for g in range(len(at) // 2):
        mine = 1 if g == group else 0
        number += terms[row + seen + at[2 * g + 1] + mine * gains[2 * gain + 1]]
        seen += at[2 * g] + mine * gains[2 * gain]
        row += width
        number += terms[row + seen]
        row += width
    place: int = tables.starts[t + 1] + number
    return place


def feasible(tables: CountedTables, t: int, at: Any) -> bool:
    """Whether fairness can be guaranteed from this state, whatever comes."""
    number = tables.starts[t] + number_of(tables.terms, tables.width, at)
    return bool(tables.masks[number] != tables.dead)


def look_up(tables: CountedTables, t: int, at: Any, group: int) -> tuple[bool, bool, int]:
    """Whether rejecting and whether accepting keeps fairness guaranteed, and the mask."""
    masks, dead = tables.masks, tables.dead
    can_reject = (
        masks[number_after(tables, t, at, group, 0)] != dead
        and masks[number_after(tables, t, at, group, 1)] != dead
    )
    can_accept = (
        masks[number_after(tables, t, at, group, 2)] != dead
        and masks[number_after(tables, t, at, group, 3)] != dead
    )
    if can_reject != can_accept:
        rejects = (1 << tables.levels) - 1
        return can_reject, can_accept, rejects << tables.levels if can_reject else rejects
    number = tables.starts[t] + number_of(tables.terms, tables.width, at)
    here = group * tables.states + number
    mask = masks[here]
    if mask == dead:
        mask = tables.salvage[here] if tables.salvaging else 0
    return can_reject, can_accept, mask


def overrules(mask: int, levels: int, proposed: int, level: int) -> bool:
    """Whether a mask overrules this proposal at this cost level."""
    return (mask >> (proposed * levels + level)) & 1 == 1
