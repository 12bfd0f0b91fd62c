"""Decides many requests at once: compiled, or one at a time where numba is not installed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import At
from fairshield.base.extras import can_compile
from fairshield.policy import Policy
from fairshield.runtime.requests import Requests
from fairshield.runtime.step import verdict
from fairshield.spec.counting import after_gain

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]


def decide_batch(policy: Policy, t: int, at: At, requests: Requests) -> tuple[Flags, At]:
    """Answers to ``requests`` after ``t`` decisions, and the counters after them."""
    if not can_compile():
        return one_by_one(policy, t, at, requests)
    from fairshield.runtime import compiled

    return compiled.decide_batch(policy, t, at, requests)


def decide_windows(policy: Policy, at: At, requests: Requests) -> tuple[Flags, Ints]:
    """Answers to each row of ``requests``, a whole window from ``at``, and counters at its end."""
    if not can_compile():
        rows = map(requests.part, range(len(requests.groups)))
        accepted, ends = zip(*(one_by_one(policy, 0, at, row) for row in rows), strict=True)
        return np.array(accepted), np.array(ends)
    from fairshield.runtime import compiled

    return compiled.decide_batches(policy, 0, at, requests)


def one_by_one(policy: Policy, t: int, at: At, requests: Requests) -> tuple[Flags, At]:
    """:func:`decide_batch` by the rule for single requests, without the compiler."""
    accepted, gains = np.empty(len(requests.groups), np.bool_), policy.prop.counting.gains
    columns = (requests.groups, requests.proposed, requests.costs, requests.relevant)
    people = zip(*(column.tolist() for column in columns), strict=True)
    for i, (group, proposed, cost, relevant) in enumerate(people):
        accept, _ = verdict(policy, t + i, at, group, proposed, cost)
        accepted[i] = accept
        at = after_gain(at, group, gains[2 * accept + relevant])
    return accepted, at
