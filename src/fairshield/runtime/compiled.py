"""The decision rule compiled, for arrays of requests.

The same rule as :func:`fairshield.runtime.step.verdict`, look-ups included; tests hold the two
together.  Loaded on first use, because it needs the compiler.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fairshield.codes import accepts
from fairshield.compiler import NO_ALLOCATION, jit
from fairshield.counts import At
from fairshield.long import LongPolicy
from fairshield.many import ManyPolicy
from fairshield.many import kernels as many
from fairshield.policy import Policy
from fairshield.rows import BARE_WIDTH, CUTS_WIDTH, FORCED, RowTable
from fairshield.runtime import step
from fairshield.runtime.requests import Requests

Ints = NDArray[np.int64]
_jit = jit(**NO_ALLOCATION)
# The arrays of a policy are many arguments, and handing them on takes as long as a look-up.
_INLINE: dict[str, Any] = {"forceinline": True, **NO_ALLOCATION}


class PolicyTables(NamedTuple):
    """A policy as the compiled functions read it."""

    labelled: bool
    layer_starts: Ints
    cuts: NDArray[Any]
    mark: int
    dense_rows: Ints
    dense_starts: Ints
    dense_codes: NDArray[Any]
    dead: int
    ranks: Ints
    salvage_cuts: NDArray[Any]
    """No rows if the policy has no salvage table."""
    salvage_starts: Ints
    salvage_codes: NDArray[Any]
    salvage_dead: int


_tables: WeakKeyDictionary[Policy, PolicyTables] = WeakKeyDictionary()


def tables(policy: Policy) -> PolicyTables:
    """The arrays of ``policy``, put together once."""
    found = _tables.get(policy)
    if found is None:
        found = _tables[policy] = _make_tables(policy)
    return found


def _make_tables(policy: Policy) -> PolicyTables:
    rows = policy.rows
    salvage = _no_salvage(rows) if policy.salvage is None else policy.salvage
    has_cuts = rows.cuts.shape[1] == CUTS_WIDTH
    return PolicyTables(
        labelled=policy.labelled,
        layer_starts=policy.layout.layer_starts,
        cuts=rows.cuts,
        mark=int(np.iinfo(rows.cuts.dtype).max) if has_cuts else -1,
        dense_rows=rows.dense_rows,
        dense_starts=rows.dense_starts,
        dense_codes=rows.dense_codes,
        dead=int(np.iinfo(rows.dense_codes.dtype).min),
        # Read-only as in a loaded policy, so that one compiled version serves both.
        ranks=np.broadcast_to(policy.ranks, policy.ranks.shape),
        salvage_cuts=salvage.cuts,
        salvage_starts=salvage.dense_starts,
        salvage_codes=salvage.dense_codes,
        salvage_dead=int(np.iinfo(salvage.dense_codes.dtype).min),
    )


def many_tables(policy: ManyPolicy) -> many.ManyTables:
    """The arrays of a policy of several groups."""
    return many.ManyTables(
        labelled=policy.labelled,
        terms=policy.layout.terms,
        codes=policy.codes,
        dead=int(np.iinfo(policy.codes.dtype).min),
        ranks=np.broadcast_to(policy.ranks, policy.ranks.shape),
    )


def _no_salvage(rows: RowTable) -> RowTable:
    """Of the types that a salvage table has, so that one compiled version serves both."""
    none = np.empty(0, np.int64)
    cuts = np.empty((0, BARE_WIDTH), rows.cuts.dtype)
    return RowTable(cuts, none, none, np.empty(0, rows.dense_codes.dtype))


# Look-ups -----------------------------------------------------------------------------------


@_jit
def place(tables: PolicyTables, t: int, n_a: int, k_a: int, n_b: int, k_b: int) -> tuple[int, int]:
    """See :meth:`fairshield.layout.Layout.place`."""
    seen = n_a + n_b
    first = tables.layer_starts[t]
    if tables.labelled:
        first += (seen + 1) * (seen + 3) * (2 * seen + 1) // 24
    if n_a <= n_b:
        return first + n_a * (n_a + 1) // 2 + k_a, k_b
    return first + (seen + 2) * (seen + 2) // 4 - (n_b + 1) * (n_b + 2) // 2 + k_b, k_a


@_jit
def count_up_to(values: Any, x: Any) -> int:
    """How many of the sorted ``values`` are at most ``x``; numpy's search takes long to compile."""
    first, end = np.int64(0), np.int64(len(values))
    while first < end:
        middle = (first + end) >> 1
        if values[middle] <= x:
            first = middle + 1
        else:
            end = middle
    return first


@_jit
def _dense_start(tables: PolicyTables, row: int) -> int:
    if tables.mark < 0:
        return tables.dense_starts[row]
    i = count_up_to(tables.dense_rows, row) - 1
    return tables.dense_starts[i] if i >= 0 and tables.dense_rows[i] == row else -1


@_jit
def feasible(tables: PolicyTables, t: int, n_a: int, k_a: int, n_b: int, k_b: int) -> bool:
    """See :meth:`fairshield.rows.RowReader.feasible`."""
    row, k = place(tables, t, n_a, k_a, n_b, k_b)
    lo = np.int64(tables.cuts[row, 0])
    if k < lo or k >= tables.cuts[row, 1]:
        return False
    if tables.mark >= 0 and tables.cuts[row, 2] != tables.mark:
        return True
    start = _dense_start(tables, row)
    return start < 0 or tables.dense_codes[start + k - lo] != tables.dead


@_jit
def find_code(
    tables: PolicyTables, t: int, n_a: int, k_a: int, n_b: int, k_b: int, group: int
) -> int:
    """See :meth:`fairshield.rows.RowReader.code`."""
    row, k = place(tables, t, n_a, k_a, n_b, k_b)
    cuts = tables.cuts
    lo, hi = np.int64(cuts[row, 0]), np.int64(cuts[row, 1])
    if k < lo or k >= hi:
        return 0
    is_long = (group == 1) == (n_a <= n_b)
    if tables.mark >= 0 and cuts[row, 2] != tables.mark:
        if is_long:
            return -1 if k < cuts[row, 4] else 1 if k >= cuts[row, 5] else 0
        return 1 if k < cuts[row, 2] else -1 if k >= cuts[row, 3] else 0
    start = _dense_start(tables, row)
    if start < 0:
        return 0
    code = np.int64(tables.dense_codes[start + k - lo + (hi - lo if is_long else 0)])
    return 0 if code == tables.dead else code


@_jit
def salvage_code(
    tables: PolicyTables, t: int, n_a: int, k_a: int, n_b: int, k_b: int, group: int
) -> int:
    """See :meth:`fairshield.rows.SalvagingReader.code`."""
    row, k = place(tables, t, n_a, k_a, n_b, k_b)
    lo, hi = np.int64(tables.salvage_cuts[row, 0]), np.int64(tables.salvage_cuts[row, 1])
    start = tables.salvage_starts[row]
    if start < 0 or k < lo or k >= hi:
        return 0
    is_long = (group == 1) == (n_a <= n_b)
    code = np.int64(tables.salvage_codes[start + k - lo + (hi - lo if is_long else 0)])
    return 0 if code == tables.salvage_dead else code


@jit(**_INLINE)
def look_up(
    tables: PolicyTables, t: int, n_a: int, k_a: int, n_b: int, k_b: int, group: int
) -> int:
    """The code of a state, ``FORCED`` (or its negative) where rejecting (accepting) is a must."""
    if group == 0:
        can_reject = feasible(tables, t + 1, n_a + 1, k_a, n_b, k_b)
        can_accept = feasible(tables, t + 1, n_a + 1, k_a + 1, n_b, k_b)
    else:
        can_reject = feasible(tables, t + 1, n_a, k_a, n_b + 1, k_b)
        can_accept = feasible(tables, t + 1, n_a, k_a, n_b + 1, k_b + 1)
    code = 0
    if len(tables.salvage_cuts) and not feasible(tables, t, n_a, k_a, n_b, k_b):
        code = salvage_code(tables, t, n_a, k_a, n_b, k_b, group)
        if abs(code) == tables.ranks.shape[3] + 2:
            return 0
    elif can_accept == can_reject:
        code = find_code(tables, t, n_a, k_a, n_b, k_b, group)
    if code == 0 and can_accept != can_reject:
        return -FORCED if can_accept else FORCED
    return code


@jit(**_INLINE)
def verdict(
    tables: PolicyTables, t: int, n_a: int, k_a: int, n_b: int, k_b: int,
    group: int, proposed: bool, level: int,
) -> bool:  # fmt: skip
    """Whether to accept."""
    code = look_up(tables, t, n_a, k_a, n_b, k_b, group)
    return accepts(tables.ranks, code, t, group, proposed, level)


@_jit
def decide_stream(
    tables: PolicyTables, t: int, at: Ints,
    groups: Any, proposed: Any, levels: Any, relevant: Any, accepted: Any,
) -> None:  # fmt: skip
    """Decide requests in order from the counters ``at``, which are updated."""
    n_a, k_a, n_b, k_b = at[0], at[1], at[2], at[3]
    for i in range(len(groups)):
        g = np.int64(groups[i])
        accept = verdict(tables, t + i, n_a, k_a, n_b, k_b, g, proposed[i], np.int64(levels[i]))
        accepted[i] = accept
        if relevant[i]:
            if g == 0:
                n_a += 1
                k_a += np.int64(accept)
            else:
                n_b += 1
                k_b += np.int64(accept)
    at[0], at[1], at[2], at[3] = n_a, k_a, n_b, k_b


@_jit
def decide_streams(
    tables: PolicyTables, t: int, at: Any,
    groups: Any, proposed: Any, levels: Any, relevant: Any, accepted: Any,
) -> None:  # fmt: skip
    """:func:`decide_stream` for each row of the arrays."""
    for run in range(len(groups)):
        decide_stream(
            tables, t, at[run], groups[run], proposed[run], levels[run], relevant[run],
            accepted[run],
        )  # fmt: skip


def decide_batch(
    policy: Policy, t: int, at: At, requests: Requests
) -> tuple[NDArray[np.bool_], At]:
    """Answers to ``requests`` after ``t`` decisions, and the counters after them."""
    counters = np.array(at, np.int64)
    accepted = np.empty(len(requests.groups), np.bool_)
    if isinstance(policy, LongPolicy):
        _decide_long(policy, t, counters, requests, accepted)
    elif isinstance(policy, ManyPolicy):
        many.decide_stream(
            many_tables(policy), t, counters, requests.groups, requests.proposed, requests.levels,
            requests.relevant, accepted,
        )  # fmt: skip
    else:
        decide_stream(
            tables(policy), t, counters, requests.groups, requests.proposed, requests.levels,
            requests.relevant, accepted,
        )  # fmt: skip
    return accepted, _as_tuple(counters)


def decide_batches(
    policy: Policy, t: int, at: At, requests: Requests
) -> tuple[NDArray[np.bool_], Ints]:
    """:func:`decide_batch` for each row of ``requests``, all from the same counters."""
    runs = len(requests.groups)
    counters, accepted = (
        np.tile(np.array(at, np.int64), (runs, 1)),
        np.empty(requests.groups.shape, np.bool_),
    )
    if isinstance(policy, LongPolicy):
        for run in range(runs):
            one = Requests(*(column[run] for column in requests))
            accepted[run], counters[run] = decide_batch(policy, t, at, one)
    elif isinstance(policy, ManyPolicy):
        many.decide_streams(
            many_tables(policy), t, counters, requests.groups, requests.proposed, requests.levels,
            requests.relevant, accepted,
        )  # fmt: skip
    else:
        decide_streams(
            tables(policy), t, counters, requests.groups, requests.proposed, requests.levels,
            requests.relevant, accepted,
        )  # fmt: skip
    return accepted, counters


def _decide_long(
    policy: LongPolicy, t: int, at: Ints, requests: Requests, accepted: NDArray[np.bool_]
) -> None:
    """Up to each endgame by the certificates and prices, then by its table."""
    reader, n, i = policy.reader, len(accepted), 0
    while i < n:
        check = policy.next_check(t + i)
        if policy.in_endgame(t + i):
            endgame, (steps, local) = reader.endgame(t + i, _as_tuple(at))
            end = min(n, check - t)
            here, counters = slice(i, end), np.array(local, np.int64)
            decide_stream(
                tables(endgame.policy), steps, counters, requests.groups[here],
                requests.proposed[here], requests.levels[here], requests.relevant[here],
                accepted[here],
            )  # fmt: skip
            at[:] = counters + np.array(endgame.at)
            i = end
            continue
        end = min(n, check - policy.endgame - t)
        done = reader.decide_on(t + i, at, requests, accepted, i, end)
        if done == i:
            _decide_one(policy, t + i, at, requests, accepted, i)
            done += 1
        i = done


def _decide_one(
    policy: Policy, t: int, at: Ints, requests: Requests, accepted: NDArray[np.bool_], i: int
) -> None:
    group, proposed = int(requests.groups[i]), bool(requests.proposed[i])
    accept, _ = step.verdict(policy, t, _as_tuple(at), group, proposed, float(requests.costs[i]))
    accepted[i] = accept
    if requests.relevant[i]:
        at[2 * group] += 1
        at[2 * group + 1] += accept


def _as_tuple(counters: Ints) -> At:
    return tuple(counters.tolist())
