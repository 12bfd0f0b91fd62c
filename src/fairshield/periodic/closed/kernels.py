"""Compiled loops over cells of rates and over counters of few people.

What they compute is defined in :mod:`fairshield.periodic.closed.region` and
:mod:`fairshield.periodic.closed.few`; the tests compare both with plain recursions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.compiler import inlined, jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Requests(NamedTuple):
    """Requests holds what one period is expected to bring, by step, group, proposal and level.

    ``stay`` is the chance, by step, that nobody counts.
    """

    weights: Floats
    costs: Floats
    stay: Floats
    labelled: bool

    def turned(self) -> Requests:
        """The same with the groups exchanged."""
        weights, costs = (np.ascontiguousarray(x[:, ::-1]) for x in (self.weights, self.costs))
        return Requests(weights, costs, self.stay, self.labelled)


class Cell(NamedTuple):
    """Cell holds what a period must end with from all counters of one cell, in integers.

    ``sign`` is 1 where the larger group has the higher rate, -1 where the other has.  ``s`` and
    ``shifted``, of denominator ``s_den``, are rates at both ends of the cell: the larger group's
    is no farther out than s, by ``spare`` people, and the other group's no farther than the one
    shifted by the bound.  Then the ratio x and the reciprocal e of the larger group's people,
    which begins at 0.  Each row of ``lines`` is an inequality ``(n_a, k_a, n_b) · row <= 0``.
    """

    sign: Any
    s: Any
    shifted: Any
    s_den: Any
    spare: Any
    x: Any
    x_den: Any
    e: Any
    e_den: Any
    lines: Any


@inlined()
def _ends_closed(cell: Any, n_a: int, k_a: int, n_b: int, k_b: int) -> bool:
    """Whether a period with these people ends closed from everywhere in the cell."""
    for i in range(len(cell.lines)):
        line = cell.lines[i]
        if n_a * line[0] + k_a * line[1] + n_b * line[2] > 0:
            return False
    for i in range(2):
        over_a = (k_a - cell.sign * cell.spare) * cell.s_den - cell.s[i] * n_a
        over_b = k_b * cell.s_den - cell.shifted[i] * n_b
        for j in range(2):
            for e in (0, cell.e):
                of_b = cell.x[j] * cell.e_den + e * cell.x_den * n_b
                of_a = cell.x_den * cell.e_den + e * cell.x_den * n_a
                if cell.sign * (over_a * of_b - over_b * of_a) > 0:
                    return False
    return True


@inlined()
def _cheaper(requests: Any, i: int, g: int, reject: float, accept: float) -> float:
    """Expected cost of deciding about somebody of group ``g`` at step ``i``."""
    total = 0.0
    for level in range(requests.weights.shape[3]):
        price = requests.costs[i, g, 0, level]
        total += requests.weights[i, g, 0, level] * min(reject, price + accept)
        price = requests.costs[i, g, 1, level]
        total += requests.weights[i, g, 1, level] * min(accept, price + reject)
    return total


@jit()
def cell_cost(cell: Any, requests: Any, period: int, values: Floats) -> float:
    """Least expected cost of a period that ends closed from everywhere in the cell.

    ``values`` is room for ``(period + 1)`` to the fourth numbers.
    """
    for n_a in range(period + 1):
        for n_b in range(0 if requests.labelled else period - n_a, period - n_a + 1):
            for k_a in range(n_a + 1):
                for k_b in range(n_b + 1):
                    ends = _ends_closed(cell, n_a, k_a, n_b, k_b)
                    values[n_a, n_b, k_a, k_b] = 0.0 if ends else np.inf
    for t in range(period - 1, -1, -1):
        i = t if len(requests.weights) > 1 else 0
        for n_a in range(t + 1):
            for n_b in range(0 if requests.labelled else t - n_a, t - n_a + 1):
                for k_a in range(n_a + 1):
                    for k_b in range(n_b + 1):
                        a = values[n_a + 1, n_b, k_a, k_b], values[n_a + 1, n_b, k_a + 1, k_b]
                        b = values[n_a, n_b + 1, k_a, k_b], values[n_a, n_b + 1, k_a, k_b + 1]
                        cost = _cheaper(requests, i, 0, a[0], a[1])
                        cost += _cheaper(requests, i, 1, b[0], b[1])
                        if requests.labelled:
                            cost += requests.stay[i] * values[n_a, n_b, k_a, k_b]
                        values[n_a, n_b, k_a, k_b] = cost
    return values[0, 0, 0, 0]


@jit()
def close_few(
    kept: Bools, few: int, up: int, down: int, requests: Any, period: int, most: float
) -> None:
    """Strike from ``kept`` what cannot end a period in ``kept`` at an expected cost of ``most``.

    ``kept[i, n, k]`` is about lead number i of the larger group and k accepted of n people of the
    other; accepting somebody of the larger group raises i by ``up``, rejecting lowers it by
    ``down``.  From ``n = few`` on nothing is struck.
    """
    leads, people = kept.shape[0], kept.shape[1]
    values = np.full((period + 1, leads, people, people), np.inf)
    for n in range(people - 1, -1, -1):
        struck = True
        while struck:
            struck = False
            for i in range(leads):
                for k in range(n + 1):
                    values[period, i, n, k] = 0.0 if kept[i, n, k] else np.inf
            # Of more people than few, so many only after so many decisions.
            for t in range(period - 1, max(n - few, -1), -1):
                step = t if len(requests.weights) > 1 else 0
                for i in range(leads):
                    for k in range(n + 1):
                        then = values[t + 1]
                        reject = then[i - down, n, k] if i >= down else np.inf
                        accept = then[i + up, n, k] if i + up < leads else np.inf
                        cost = _cheaper(requests, step, 0, reject, accept)
                        b = then[i, n + 1, k], then[i, n + 1, k + 1]
                        cost += _cheaper(requests, step, 1, b[0], b[1])
                        if requests.labelled:
                            cost += requests.stay[step] * then[i, n, k]
                        values[t, i, n, k] = cost
            if n < few:
                for i in range(leads):
                    for k in range(n + 1):
                        if kept[i, n, k] and not values[0, i, n, k] <= most:
                            kept[i, n, k] = False
                            struck = True
