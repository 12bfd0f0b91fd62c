r"""Compiled certificates of long windows, and the loop that decides many requests.

The certificates are those of :mod:`fairshield.policy.long.certificates`, decided in 64-bit
integers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fairshield.base.compiler import NO_ALLOCATION, inlined, jit
from fairshield.policy.long.price_kernels import code_at as code_at
from fairshield.policy.long.tables import Ints, Tables
from fairshield.spec.rules import (
    BOUNDED,
    DIFFERENCE,
    ENOUGH,
    FEW,
    GAP,
    KIND,
    LABELLED,
    LEAST,
    ONE_SIDED,
    RATIO,
    P,
    Q,
    R,
    S,
)

_jit = jit(**NO_ALLOCATION)
_inline = inlined(**NO_ALLOCATION)

CAN_REJECT, CAN_ACCEPT, ANSWER_BITS = 1, 2, 2
"""An answer is a code, shifted, and these two bits."""


# Certificates -------------------------------------------------------------------------------


@_inline
def _within(kind: int, p: int, q: int, k: int, n: int, x: int, m: int) -> bool:
    """Whether one side of the property holds: ``k / n`` is not too high beside ``x / m``."""
    if kind == DIFFERENCE:
        return q * (k * m - x * n) <= p * n * m
    if kind == RATIO:
        return p * k * m <= q * x * n
    return q * k * m <= p * x * n


@_inline
def _pushed(kind: int, p: int, q: int, k: int, n: int, x: int, m: int, left: int) -> bool:
    return _within(kind, p, q, k, n, x + left, m + left) and _within(kind, p, q, k, n + left, x, m)


@_inline
def _bounded(rule: Ints, n: int, k: int) -> bool:
    first = max(n, max(rule[LEAST], 1))
    low = -((-rule[P] * first) // rule[Q]) - (first - n)
    return rule[GAP] < first and low <= k and k <= rule[R] * first // rule[S]


@_inline
def _kept_ratio(p: int, q: int, n: int, k: int, m: int, x: int) -> bool:
    if n == 0 or m == 0 or p * k * m > q * x * n or p * x * n > q * k * m:
        return False
    wide = x * n * (q * q - p * p) >= p * q * m + p * p * n
    return wide and q * k * m >= p * (x + 1) * n


@_inline
def _spare(rule: Ints, left: int, m: int) -> int:
    return left if left > 0 and m + left >= rule[ENOUGH] else 0


@_inline
def _accepting(rule: Ints, n: int, k: int, m: int, x: int, left: int) -> bool:
    """Whether both groups can go on accepting; ``k`` of ``n`` has fewer acceptances."""
    p, q, few = rule[P], rule[Q], rule[FEW]
    if k < n:
        return False
    if x < few:
        return x == m
    spare = _spare(rule, left - (few - k), m)
    return q * (x + spare) >= p * (m + spare)


@_inline
def _reaches(rule: Ints, ways: Ints, n: int, m: int, x: int, left: int) -> bool:
    """Whether ``x`` of ``m`` can reach a corridor that ``n`` people of the other group leave."""
    spare = _spare(rule, left - (rule[FEW] - n), m)
    seen = m + spare
    first = max(seen, max(rule[LEAST], 1))
    for i in range(len(ways)):
        low = -((-ways[i, 0] * first) // ways[i, 1]) - (first - seen)
        high = ways[i, 2] * first // ways[i, 3]
        if ways[i, 4] < first and low <= x + spare and x <= high:
            return True
    return False


@_jit
def certified(
    tables: Tables, ways: Ints, n_a: int, k_a: int, n_b: int, k_b: int, left: int
) -> bool:
    """See :meth:`fairshield.policy.long.certificates.Certificates.certified`.

    ``ways`` are the corridors that a group of few people leaves the other; not both may be few.
    """
    rule = tables.rule
    kind, p, q = rule[KIND], rule[P], rule[Q]
    if min(n_a, n_b) + left < tables.binds_from:
        return True
    if kind == BOUNDED:
        return _bounded(rule, n_a, k_a) and _bounded(rule, n_b, k_b)
    if kind == ONE_SIDED:
        return _pushed(kind, p, q, k_a, n_a, k_b, n_b, left)
    time = left
    if rule[LABELLED]:
        time = 0
    if kind == DIFFERENCE:
        closed = n_a > 0 and n_b > 0 and q * (n_a + n_b) <= 2 * p * n_a * n_b
    else:
        closed = k_a > 0 and k_b > 0 and q * q * (k_a + k_b) <= (q * q - p * p) * k_a * k_b
    closed = closed and _pushed(kind, p, q, k_a, n_a, k_b, n_b, time)
    if closed and _pushed(kind, p, q, k_b, n_b, k_a, n_a, time):
        return True
    if kind == RATIO:
        if k_a < rule[FEW] or k_b < rule[FEW]:
            if k_a <= k_b:
                accepting = _accepting(rule, n_a, k_a, n_b, k_b, left)
            else:
                accepting = _accepting(rule, n_b, k_b, n_a, k_a, left)
            if accepting:
                return True
        return _kept_ratio(p, q, n_a, k_a, n_b, k_b) or _kept_ratio(p, q, n_b, k_b, n_a, k_a)
    if n_a < rule[FEW]:
        return _reaches(rule, ways, n_a, n_b, k_b, time)
    if n_b < rule[FEW]:
        return _reaches(rule, ways, n_b, n_a, k_a, time)
    return False


# Decisions ----------------------------------------------------------------------------------


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
    few = tables.rule[FEW] if tables.rule[KIND] == DIFFERENCE else 0
    i, same = begin, True
    while i < end and same:
        g = np.int64(groups[i])
        own = (n_b if g else n_a) < few
        if own:
            rejected, taken = ways.rejected, ways.accepted
        else:
            rejected, taken = ways.now, ways.now
        found = answer(tables, rejected, taken, n_a, k_a, n_b, k_b, left - (i - begin), g)
        code, can = found >> ANSWER_BITS, found & (CAN_REJECT | CAN_ACCEPT)
        accept = proposed[i]
        if can == CAN_ACCEPT:
            accept = True
        elif can == CAN_REJECT:
            accept = False
        elif code != 0 and (code > 0) == proposed[i]:
            level = np.int64(levels[i])
            rank = level if level == ranks.shape[3] else ranks[0, g, np.int64(proposed[i]), level]
            if rank < abs(code):
                accept = not proposed[i]
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
