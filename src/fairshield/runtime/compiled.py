"""The decision rule compiled, for arrays of requests.

The same rule as :func:`fairshield.runtime.step.verdict` on the same look-ups; tests hold the two
together.  Loaded on first use, because it needs the compiler.
"""

from __future__ import annotations

from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.compiler import NO_ALLOCATION, jit
from fairshield.base.counts import At
from fairshield.policy import Policy
from fairshield.policy.decisions import Stretch
from fairshield.policy.jitable import accepted_by, answer, count
from fairshield.runtime.batches import one_by_one
from fairshield.runtime.requests import Requests

Ints = NDArray[np.int64]
_jit = jit(**NO_ALLOCATION)


@_jit
def verdict(tables: Any, t: int, at: Ints, group: int, proposed: bool, level: int) -> bool:
    """Whether to accept, by the tables of rows, of numbered or of counted states."""
    code = answer(tables, t, at, group)[2]
    return accepted_by(tables, code, t, group, proposed, level)


@_jit
def decide_stream(
    tables: Any, t: int, at: Ints, groups: Any, proposed: Any, levels: Any, relevant: Any,
    accepted: Any,
) -> None:  # fmt: skip
    """Decide requests in order from the counters ``at``, which are updated."""
    for i in range(len(groups)):
        g = np.int64(groups[i])
        code = answer(tables, t + i, at, g)[2]
        accept = accepted_by(tables, code, t + i, g, proposed[i], np.int64(levels[i]))
        accepted[i] = accept
        count(tables, at, g, np.int64(accept), relevant[i])


@_jit
def decide_streams(
    tables: Any, t: int, at: Any, groups: Any, proposed: Any, levels: Any, relevant: Any,
    accepted: Any,
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
    n, i = len(requests.groups), 0
    accepted = np.empty(n, np.bool_)
    while i < n:
        stretch = policy.decisions.stretch(t + i, at)
        if stretch is None:
            i, at = _decide_on(policy, t + i, at, requests, accepted, i)
        elif stretch.length >= n and not i:
            return accepted, _decide_stretch(stretch, requests, accepted)
        else:
            here = slice(i, min(n, i + stretch.length))
            some = requests.part(here)
            i, at = here.stop, _decide_stretch(stretch, some, accepted[here])
    return accepted, at


def decide_batches(
    policy: Policy, t: int, at: At, requests: Requests
) -> tuple[NDArray[np.bool_], Ints]:
    """:func:`decide_batch` for each row of ``requests``, all from the same counters."""
    runs, decisions = requests.groups.shape
    accepted = np.empty((runs, decisions), np.bool_)
    stretch = policy.decisions.stretch(t, at)
    if stretch is None or stretch.length < decisions:
        counters = np.empty((runs, len(at)), np.int64)
        for run in range(runs):
            accepted[run], counters[run] = decide_batch(policy, t, at, requests.part(run))
        return accepted, counters
    counters = np.tile(np.array(stretch.at, np.int64), (runs, 1))
    decide_streams(
        stretch.tables, stretch.decided, counters, requests.groups, requests.proposed,
        requests.levels, requests.relevant, accepted,
    )  # fmt: skip
    counters += np.array(stretch.base)
    return accepted, counters


def _decide_stretch(stretch: Stretch, requests: Requests, accepted: NDArray[np.bool_]) -> At:
    """Decide requests by one table; returns the counters after them."""
    counters = np.array(stretch.at, np.int64)
    decide_stream(
        stretch.tables, stretch.decided, counters, requests.groups, requests.proposed,
        requests.levels, requests.relevant, accepted,
    )  # fmt: skip
    return tuple(map(add, counters.tolist(), stretch.base))


def _decide_on(
    policy: Policy, t: int, at: At, requests: Requests, accepted: NDArray[np.bool_], i: int
) -> tuple[int, At]:
    """Decide requests from ``i`` on that no table decides, one at least; up to where."""
    counters = np.array(at, np.int64)
    done = policy.decisions.decide_on(t, counters, requests, accepted, i)
    if done > i:
        return done, tuple(counters.tolist())
    one = slice(i, i + 1)
    accepted[one], at = one_by_one(policy, t, at, requests.part(one))
    return one.stop, at
