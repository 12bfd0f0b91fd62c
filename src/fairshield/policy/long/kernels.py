"""Certificates of long windows compiled, and the loop that decides many requests."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fairshield.base.compiler import NO_ALLOCATION, jit, jitable
from fairshield.policy.codes import accepts
from fairshield.policy.long import certificates
from fairshield.policy.long.certificates import certified_anyway, few_people, reaches
from fairshield.policy.long.price_kernels import code_at as code_at
from fairshield.policy.long.tables import Ints, Tables
from fairshield.policy.rows import FORCED

_jit = jit(**NO_ALLOCATION)

CAN_REJECT, CAN_ACCEPT, ANSWER_BITS = 1, 2, 2
"""An answer is a code, shifted, and these two bits."""

for function in (
    certificates._sure, certificates._within, certificates._pushed, certificates._bounded,
    certificates._kept_ratio, certificates._spare, certificates._accepting, certificates.closed,
    certificates.few_people, certificates.reaches, certificates.certified_anyway,
):  # fmt: skip
    jitable(function, **NO_ALLOCATION)


@_jit
def certified(
    tables: Tables, ways: Ints, n_a: int, k_a: int, n_b: int, k_b: int, left: int
) -> bool:
    """See :meth:`fairshield.policy.long.certificates.Certificates.certified`.

    ``ways`` are the corridors that a group of few people leaves the other; not both may be few.
    """
    rule: Any = tables.rule
    if certified_anyway(rule, tables.binds_from, n_a, k_a, n_b, k_b, left):
        return True
    if n_a < n_b:
        return n_a < few_people(rule) and reaches(rule, ways, n_a, n_b, k_b, left)
    return n_b < few_people(rule) and reaches(rule, ways, n_b, n_a, k_a, left)


@_jit
def answer(
    tables: Tables, ways_reject: Ints, ways_accept: Ints, n_a: int, k_a: int, n_b: int, k_b: int,
    left: int, group: int,
) -> int:  # fmt: skip
    """Whether rejecting and accepting keep the certificate, and the code; start included."""
    m_a, m_b = n_a + 1 - group, n_b + group
    found = 0
    if certified(tables, ways_reject, m_a, k_a, m_b, k_b, left - 1):
        found |= CAN_REJECT
    if certified(tables, ways_accept, m_a, k_a + 1 - group, m_b, k_b + group, left - 1):
        found |= CAN_ACCEPT
    return (code_at(tables, n_a, k_a, n_b, k_b, left, group) << ANSWER_BITS) | found


class Ways(NamedTuple):
    """Ways holds the corridors that a small group leaves the other, now and one person later."""

    now: Ints
    rejected: Ints
    accepted: Ints


@_jit
def decide_on(
    tables: Tables, ranks: Ints, ways: Ways, at: Ints, left: int, groups: Any, proposed: Any,
    levels: Any, relevant: Any, accepted: Any, begin: int, end: int,
) -> int:  # fmt: skip
    """Decide requests ``begin … end - 1``; stops where other ``ways`` are needed.

    ``left`` decisions are left before request ``begin``; ``at`` are the counters, start included.
    At least one group must not be few.
    """
    n_a, k_a, n_b, k_b = at[0], at[1], at[2], at[3]
    rule: Any = tables.rule
    few, i, same = few_people(rule), begin, True
    while i < end and same:
        g = np.int64(groups[i])
        own = (n_b if g else n_a) < few
        if own:
            rejected, taken = ways.rejected, ways.accepted
        else:
            rejected, taken = ways.now, ways.now
        found = answer(tables, rejected, taken, n_a, k_a, n_b, k_b, left - (i - begin), g)
        code, can = found >> ANSWER_BITS, found & (CAN_REJECT | CAN_ACCEPT)
        if can == CAN_REJECT:
            code = FORCED
        elif can == CAN_ACCEPT:
            code = -FORCED
        accept = accepts(ranks, code, 0, g, proposed[i], np.int64(levels[i]))
        accepted[i] = accept
        if relevant[i]:
            same = not own
            if g == 0:
                n_a, k_a = n_a + 1, k_a + np.int64(accept)
            else:
                n_b, k_b = n_b + 1, k_b + np.int64(accept)
        i += 1
    at[0], at[1], at[2], at[3] = n_a, k_a, n_b, k_b
    return i
