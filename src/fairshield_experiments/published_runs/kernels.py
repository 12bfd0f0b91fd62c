"""Compiled tables and decisions of the published runs; :mod:`.reference` defines what they are.

All functions are in one file, because compiled code is kept beside it: numba would not notice a
change in another one.

Counters with at most M people are numbered by their sum, then by n_a, k_a and k_b, so that the
number of a state does not depend on M.  A table of layers has layer t, of t decisions left, at
``base[t]``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

(
    BOUND, UNIT, EMPTY_IS_FAIR, N_A, K_A, N_B, K_B, BOUNDED, LOWER, LOWER_UNIT, UPPER, UPPER_UNIT,
    LEAST, LAST_APART, IN_FLOATS,
) = range(15)  # fmt: skip
"""Places in a rule: the bound as a fraction, the history, and the welfare bounds."""
RULE = 15
_FREE, _RATES, _FAIR = 1, 2, 4


def jit(function: Callable[..., Any]) -> Any:
    """Compile a function on its first call and keep the result."""
    # Values may be infinite, but are never NaN; signs of zeros do not matter.
    return njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz"})(function)


@jit
def pairs(most: int) -> Ints:
    """``(most + 1, most + 1)``: number of the first state of each pair n_a, n_b."""
    table = np.full((most + 1, most + 1), -1, np.int64)
    number = 0
    for total in range(most + 1):
        for n_a in range(total + 1):
            table[n_a, total - n_a] = number
            number += (n_a + 1) * (total - n_a + 1)
    return table


@jit
def count(most: int) -> int:
    """How many states have at most ``most`` people."""
    number: int = (most + 1) * (most + 2) * (most + 3) * (most + 4) // 24
    return number


@jit
def _fair(rule: Ints, n_a: int, k_a: int, n_b: int, k_b: int, empty_is_fair: bool) -> bool:
    n_a, k_a, n_b, k_b = n_a + rule[N_A], k_a + rule[K_A], n_b + rule[N_B], k_b + rule[K_B]
    if n_a == 0 or n_b == 0:
        if empty_is_fair:
            return True
        n_a, n_b = max(n_a, 1), max(n_b, 1)
    if rule[IN_FLOATS]:
        return bool(abs(k_a / n_a - k_b / n_b) <= rule[BOUND] / rule[UNIT])
    return bool(rule[UNIT] * abs(k_a * n_b - k_b * n_a) <= rule[BOUND] * n_a * n_b)


@jit
def _in_bounds(rule: Ints, n: int, k: int) -> bool:
    n = max(n, 1)
    return bool(rule[LOWER] * n <= k * rule[LOWER_UNIT] and k * rule[UPPER_UNIT] <= rule[UPPER] * n)


@jit
def _flags(rule: Ints, n_a: int, k_a: int, n_b: int, k_b: int) -> int:
    """What holds of counters at the end: nothing is required, rates, bias."""
    flags = _FAIR * _fair(rule, n_a, k_a, n_b, k_b, rule[EMPTY_IS_FAIR] == 1)
    if rule[BOUNDED]:
        flags += _FREE * (min(n_a, n_b) < rule[LEAST])
        flags += _RATES * (_in_bounds(rule, n_a, k_a) and _in_bounds(rule, n_b, k_b))
    return int(flags)


@jit
def _ends(rule: Ints, flags: int) -> bool:
    wanted = (_FREE | _RATES) if rule[BOUNDED] else _FAIR
    return flags & wanted != 0


@jit
def _end_of_open(rule: Ints, flags: int, then: int) -> bool:
    """Whether the end is right of counters with somebody open, who would change the flags."""
    if rule[LAST_APART]:
        return flags & _FREE != 0 or (flags & _RATES != 0 and flags & then & _FAIR != 0)
    return bool(_ends(rule, flags) and _ends(rule, then))


@jit
def _cheapest(share_a: float, price: float, a0: float, a1: float, b0: float, b1: float) -> float:
    """Expected cost before somebody comes, from the values after each decision on each group.

    Shares are positive, so that it is infinite if both decisions on a group are.
    """
    of_a = min(a0, price + a1) + min(a1, price + a0)
    of_b = min(b0, price + b1) + min(b1, price + b0)
    return share_a / 2 * of_a + (1.0 - share_a) / 2 * of_b


# Everybody counts ---------------------------------------------------------------------------


@jit
def plain_table(rule: Ints, pair: Ints, share_a: float, price: float, horizon: int) -> Any:
    """Values of all counters, and which of them a depth-first recursion visits."""
    values = np.empty(count(horizon))
    visited = np.zeros(count(horizon), np.uint8)
    for total in range(horizon, -1, -1):
        for n_a in range(total + 1):
            n_b = total - n_a
            for k_a in range(n_a + 1):
                for k_b in range(n_b + 1):
                    i = pair[n_a, n_b] + k_a * (n_b + 1) + k_b
                    if total == horizon:
                        right = _ends(rule, _flags(rule, n_a, k_a, n_b, k_b))
                        values[i] = 0.0 if right else np.inf
                        continue
                    a0 = pair[n_a + 1, n_b] + k_a * (n_b + 1) + k_b
                    a1 = a0 + n_b + 1
                    b0 = pair[n_a, n_b + 1] + k_a * (n_b + 2) + k_b
                    values[i] = _cheapest(
                        share_a, price, values[a0], values[a1], values[b0], values[b0 + 1]
                    )
    visited[0] = 1
    for total in range(horizon):
        for n_a in range(total + 1):
            n_b = total - n_a
            for k_a in range(n_a + 1):
                for k_b in range(n_b + 1):
                    if not visited[pair[n_a, n_b] + k_a * (n_b + 1) + k_b]:
                        continue
                    a0 = pair[n_a + 1, n_b] + k_a * (n_b + 1) + k_b
                    a1 = a0 + n_b + 1
                    visited[a0] = visited[a1] = 1
                    if min(values[a0], values[a1]) < np.inf:
                        b0 = pair[n_a, n_b + 1] + k_a * (n_b + 2) + k_b
                        visited[b0] = visited[b0 + 1] = 1
    return values, visited


@jit
def _read(rule: Ints, value: float, there: bool, n_a: int, k_a: int, n_b: int, k_b: int) -> float:
    """A value; where the table has none, what is read in its place."""
    if there and value != 0.0:
        return value
    return 0.0 if _fair(rule, n_a, k_a, n_b, k_b, False) else np.inf


@jit
def decide_plain(
    rule: Ints, pair: Ints, horizon: int, values: Floats, visited: Bytes, missing: bool,
    groups: NDArray[np.int8], proposed: NDArray[np.bool_], prices: Floats, tie: float,
    accepted: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Decide windows ``(runs, horizon)``; writes ``accepted``."""
    for run in range(len(groups)):
        n = np.zeros(2, np.int64)
        k = np.zeros(2, np.int64)
        for step in range(horizon):
            g = groups[run, step]
            worth = np.empty(2)
            n[g] += 1
            for d in range(2):
                k[g] += d
                i = pair[n[0], n[1]] + k[0] * (n[1] + 1) + k[1]
                worth[d] = values[i]
                if missing:
                    worth[d] = _read(rule, values[i], visited[i] == 1, n[0], k[0], n[1], k[1])
                k[g] -= d
            r = int(proposed[run, step])
            y = r if worth[r] <= prices[run, step] + worth[1 - r] + tie else 1 - r
            accepted[run, step] = y == 1
            k[g] += y


# The outcome says who counts ----------------------------------------------------------------


@jit
def layer_bases(horizon: int) -> Ints:
    """Where the layer of t decisions left begins; it has people up to ``horizon + 1 - t``."""
    base = np.zeros(horizon + 2, np.int64)
    for t in range(horizon + 1):
        base[t + 1] = base[t] + count(horizon + 1 - t)
    return base


@jit
def _open_value(
    rule: Ints, values: Floats, flags: Bytes, base: Ints, t: int, i: int, then: int
) -> float:
    """Value with t decisions left and somebody open, whose counting leads from i to ``then``."""
    if t == 0:
        return 0.0 if _end_of_open(rule, flags[i], flags[then]) else np.inf
    value: float = 0.5 * values[base[t] + i] + 0.5 * values[base[t] + then]
    return value


@jit
def end_flags(rule: Ints, pair: Ints, most: int) -> Bytes:
    """What holds at the end, for all counters of at most ``most`` people."""
    flags = np.empty(count(most), np.uint8)
    for n_a in range(most + 1):
        for n_b in range(most + 1 - n_a):
            for k_a in range(n_a + 1):
                for k_b in range(n_b + 1):
                    i = pair[n_a, n_b] + k_a * (n_b + 1) + k_b
                    flags[i] = _flags(rule, n_a, k_a, n_b, k_b)
    return flags


@jit
def _rows(most: int) -> Ints:
    """``(most + 1, most + 1)``: number of the first row of each pair n_a, n_b, one row per k_a."""
    table = np.full((most + 1, most + 1), -1, np.int64)
    number = 0
    for total in range(most + 1):
        for n_a in range(total + 1):
            table[n_a, total - n_a] = number
            number += n_a + 1
    return table


@jit
def _spans(rule: Ints, pair: Ints, row: Ints, flags: Bytes, most: int) -> Any:
    """Of each row, the first k_b whose value may be finite, and the one after the last.

    Without welfare bounds all who come may not count, so that what is unfair stays so.  What is
    fair in a row has no gaps.
    """
    rows = row[most, 0] + most + 1
    low, high = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    for n_a in range(most + 1):
        for n_b in range(most + 1 - n_a):
            for k_a in range(n_a + 1):
                i, here = pair[n_a, n_b] + k_a * (n_b + 1), row[n_a, n_b] + k_a
                lo, hi = 0, n_b + 1
                if not rule[BOUNDED]:
                    while lo < hi and flags[i + lo] & _FAIR == 0:
                        lo += 1
                    while hi > lo and flags[i + hi - 1] & _FAIR == 0:
                        hi -= 1
                low[here], high[here] = lo, hi
    return low, high


@jit
def labelled_table(
    rule: Ints, pair: Ints, share_a: float, price: float, horizon: int, visit: bool
) -> Any:
    """Where layers begin, flags at the end, values when nobody is open, and what is visited.

    Values are of all counters, so that the person to be decided can be among them.
    """
    base, row = layer_bases(horizon), _rows(horizon + 1)
    flags = end_flags(rule, pair, horizon + 1)
    low, high = _spans(rule, pair, row, flags, horizon + 1)
    values = np.full(base[horizon + 1], np.inf)
    for i in range(len(flags)):
        if _ends(rule, flags[i]):
            values[i] = 0.0
    for t in range(1, horizon + 1):
        here, most = base[t], horizon + 1 - t
        for n_a in range(most + 1):
            for n_b in range(most + 1 - n_a):
                for k_a in range(n_a + 1):
                    which = row[n_a, n_b] + k_a
                    i0 = pair[n_a, n_b] + k_a * (n_b + 1)
                    a0 = pair[n_a + 1, n_b] + k_a * (n_b + 1)
                    b0 = pair[n_a, n_b + 1] + k_a * (n_b + 2)
                    if t > 1:
                        there, a1 = base[t - 1], a0 + n_b + 1
                        for k_b in range(low[which], high[which]):
                            now = 0.5 * values[there + i0 + k_b]
                            values[here + i0 + k_b] = _cheapest(
                                share_a, price,
                                now + 0.5 * values[there + a0 + k_b],
                                now + 0.5 * values[there + a1 + k_b],
                                now + 0.5 * values[there + b0 + k_b],
                                now + 0.5 * values[there + b0 + 1 + k_b],
                            )  # fmt: skip
                        continue
                    for k_b in range(low[which], high[which]):
                        i, a, b = i0 + k_b, a0 + k_b, b0 + k_b
                        values[here + i] = _cheapest(
                            share_a, price,
                            _open_value(rule, values, flags, base, 0, i, a),
                            _open_value(rule, values, flags, base, 0, i, a + n_b + 1),
                            _open_value(rule, values, flags, base, 0, i, b),
                            _open_value(rule, values, flags, base, 0, i, b + 1),
                        )  # fmt: skip
    visited = np.zeros(base[horizon + 1] if visit else 1, np.uint8)
    if visit:
        _visit(pair, row, low, high, base, values, horizon, visited)
    return base, flags, values, visited


@jit
def _visit(
    pair: Ints, row: Ints, low: Ints, high: Ints, base: Ints, values: Floats, horizon: int,
    visited: Bytes,
) -> None:  # fmt: skip
    """Mark counters that a depth-first recursion evaluates when nobody is open.

    Counters outside the span of their row lead to nothing but themselves, and are left out: what
    has somebody open there is read as infinite, present or not.
    """
    visited[base[horizon]] = 1
    for t in range(horizon, 1, -1):
        here, there = base[t], base[t - 1]
        for n_a in range(horizon - t + 1):
            for n_b in range(horizon - t + 1 - n_a):
                for k_a in range(n_a + 1):
                    which = row[n_a, n_b] + k_a
                    i0 = pair[n_a, n_b] + k_a * (n_b + 1)
                    a0 = there + pair[n_a + 1, n_b] + k_a * (n_b + 1)
                    a1 = a0 + n_b + 1
                    b0 = there + pair[n_a, n_b + 1] + k_a * (n_b + 2)
                    for k_b in range(low[which], high[which]):
                        if visited[here + i0 + k_b]:
                            # Evaluated with the outcome that does not count, and then, unless
                            # that is infinite, with the one that does.
                            visited[there + i0 + k_b] = 1
                            if values[there + i0 + k_b] < np.inf:
                                visited[a0 + k_b] = visited[a1 + k_b] = 1
                                if min(values[a0 + k_b], values[a1 + k_b]) < np.inf:
                                    visited[b0 + k_b] = visited[b0 + 1 + k_b] = 1


@jit
def _is_visited(
    rule: Ints, pair: Ints, base: Ints, flags: Bytes, values: Floats, visited: Bytes, left: int,
    n: Ints, k: Ints, g: int,
) -> bool:  # fmt: skip
    """Whether the recursion evaluates these counters with somebody of group g open."""
    i = pair[n[0], n[1]] + k[0] * (n[1] + 1) + k[1]
    if not visited[base[left + 1] + i]:
        return False
    if g == 0:
        return True
    for d in range(2):  # group b, unless both decisions on group a are infinite
        then = pair[n[0] + 1, n[1]] + (k[0] + d) * (n[1] + 1) + k[1]
        if _open_value(rule, values, flags, base, left, i, then) < np.inf:
            return True
    return False


@jit
def decide_labelled(
    rule: Ints, pair: Ints, horizon: int, base: Ints, flags: Bytes, values: Floats,
    visited: Bytes, missing: bool, twice: bool, groups: NDArray[np.int8],
    proposed: NDArray[np.bool_], relevant: NDArray[np.bool_], scores: Floats, prices: Floats,
    tie: float, accepted: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Decide windows ``(runs, horizon)``; writes ``accepted``."""
    for run in range(len(groups)):
        n = np.zeros(2, np.int64)
        k = np.zeros(2, np.int64)
        for step in range(horizon):
            g, left = groups[run, step], horizon - 1 - step
            worth = np.empty(2)
            for d in range(2):
                once = _entry(rule, pair, base, flags, values, visited, missing, left, n, k, g, d)
                worth[d] = once
                if twice:
                    n[g] += 1
                    k[g] += d
                    again = _entry(
                        rule, pair, base, flags, values, visited, missing, left, n, k, g, d
                    )
                    n[g] -= 1
                    k[g] -= d
                    s = scores[run, step] if d == 1 else 1.0 - scores[run, step]
                    worth[d] = s * again + (1.0 - s) * once
            r = int(proposed[run, step])
            y = r if worth[r] <= prices[run, step] + worth[1 - r] + tie else 1 - r
            accepted[run, step] = y == 1
            if relevant[run, step]:
                n[g] += 1
                k[g] += y


@jit
def _entry(
    rule: Ints, pair: Ints, base: Ints, flags: Bytes, values: Floats, visited: Bytes,
    missing: bool, left: int, n: Ints, k: Ints, g: int, d: int,
) -> float:  # fmt: skip
    """The value of counters with a person of group g and decision d open, as it is read."""
    i = pair[n[0], n[1]] + k[0] * (n[1] + 1) + k[1]
    if g == 0:
        then = pair[n[0] + 1, n[1]] + (k[0] + d) * (n[1] + 1) + k[1]
    else:
        then = pair[n[0], n[1] + 1] + k[0] * (n[1] + 2) + k[1] + d
    value: float = _open_value(rule, values, flags, base, left, i, then)
    if not missing:
        return value
    there = _is_visited(rule, pair, base, flags, values, visited, left, n, k, g)
    read: float = _read(rule, value, there, n[0], k[0], n[1], k[1])
    return read
