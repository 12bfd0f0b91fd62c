"""Makes look-ups of all kinds of decisions callable from compiled functions by one name.

Importing this module loads numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairshield.base.compiler import NO_ALLOCATION, by_type, jitable
from fairshield.policy import layout, lookups
from fairshield.policy.codes import accepts
from fairshield.policy.counted import lookups as counted
from fairshield.policy.counted.lookups import CountedTables
from fairshield.policy.counted.lookups import number_after as number_after
from fairshield.policy.layout import pair_start as pair_start
from fairshield.policy.layout import place as place
from fairshield.policy.lookups import RowTables
from fairshield.policy.lookups import count_up_to as count_up_to
from fairshield.policy.many import lookups as states
from fairshield.policy.many.lookups import StateTables
from fairshield.policy.many.lookups import number_of as number_of

# Inlined, because passing the many arrays of a policy takes as long as a look-up.
_INLINE: dict[str, Any] = {"forceinline": True, **NO_ALLOCATION}

for function in (
    layout.rows_of_pairs, layout.rows_of_smaller_pairs, layout.pair_start, layout.place,
    lookups.count_up_to, lookups._dense_start, lookups._cut_code, lookups.code_of,
    lookups.feasible, lookups._look_up_any, states.number_of, states.code_of, states.look_up,
    counted.number_of, counted.number_after, counted.look_up, counted.overrules,
):  # fmt: skip
    jitable(function, **NO_ALLOCATION)
jitable(lookups.look_up, **_INLINE)


def answer(tables: Any, t: int, at: Any, group: int) -> Any:
    """:meth:`fairshield.policy.decisions.Decisions.look_up` of an array of counters, compiled."""
    raise NotImplementedError("called from compiled functions only")


def _of_rows(tables: RowTables, t: int, at: Any, group: int) -> tuple[bool, bool, int]:
    return lookups.look_up(tables, t, (at[0], at[1], at[2], at[3]), group)


def _of_states(tables: StateTables, t: int, at: Any, group: int) -> tuple[bool, bool, int]:
    return states.look_up(tables, t, at, group)


def _of_counted(tables: CountedTables, t: int, at: Any, group: int) -> tuple[bool, bool, int]:
    return counted.look_up(tables, t, at, group)


by_type(
    answer, {RowTables: _of_rows, StateTables: _of_states, CountedTables: _of_counted}, **_INLINE
)


def accepted_by(tables: Any, code: int, t: int, group: int, proposed: bool, level: int) -> Any:
    """Whether to accept, given the code of the state, compiled."""
    raise NotImplementedError("called from compiled functions only")


def _by_code(tables: Any, code: int, t: int, group: int, proposed: bool, level: int) -> bool:
    taken: bool = accepts(tables.ranks, code, t, group, proposed, level)
    return taken


def _by_mask(tables: Any, code: int, t: int, group: int, proposed: bool, level: int) -> bool:
    return proposed != counted.overrules(code, tables.levels, int(proposed), level)


by_type(
    accepted_by, {RowTables: _by_code, StateTables: _by_code, CountedTables: _by_mask}, **_INLINE
)


def count(tables: Any, at: Any, group: int, accepted: int, told: bool) -> None:
    """Count one decision in the counters ``at``, compiled; see ``fairshield.spec.Counting``."""
    raise NotImplementedError("called from compiled functions only")


def _people(tables: Any, at: Any, group: int, accepted: int, told: bool) -> None:
    if told:
        at[2 * group] += 1
        at[2 * group + 1] += accepted


def _weighted(tables: CountedTables, at: Any, group: int, accepted: int, told: bool) -> None:
    gain = 2 * (2 * accepted + np.int64(told))
    at[2 * group] += tables.gains[gain]
    at[2 * group + 1] += tables.gains[gain + 1]


by_type(count, {RowTables: _people, StateTables: _people, CountedTables: _weighted}, **_INLINE)
