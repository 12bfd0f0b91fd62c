"""``decide`` decides runs as the published ones were decided, period after period."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairshield_experiments.published_runs import kernels
from fairshield_experiments.published_runs.window import TIE, At, Window, towards_half

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
LEAST_SHARE = 1e-12
"""A share of 0 is raised to it, because what is improbable must be possible."""
HISTORY = slice(kernels.N_A, kernels.K_B + 1)


@dataclass(frozen=True, eq=False)
class Crowd:
    """Crowd holds the people of many runs in arrays ``(runs, decisions)``.

    ``relevant`` says who counts for the property.
    """

    group: NDArray[np.int8]
    proposed: Flags
    score: Floats
    relevant: Flags

    def part(self, runs: Ints, columns: slice) -> Crowd:
        """Some runs, in some of their decisions."""
        return Crowd(
            self.group[runs, columns],
            self.proposed[runs, columns],
            self.score[runs, columns],
            self.relevant[runs, columns],
        )

    def counters(self, accepted: Flags) -> Ints:
        """``(runs, 4)``: ``n_a, k_a, n_b, k_b`` of these people."""
        mine = [self.relevant & (self.group == g) for g in (0, 1)]
        return np.stack([x.sum(axis=1) for m in mine for x in (m, m & accepted)], axis=1)


class Table:
    """Table holds the values of one window, and decides by them."""

    def __init__(self, window: Window) -> None:
        self._window, self._rule = window, rule_of(window)
        self._missing = "missing-entries" in window.departures
        self._pair = kernels.pairs(window.horizon + 1)

    @cached_property
    def _plain(self) -> tuple[Floats, NDArray[np.uint8]]:
        found: tuple[Floats, NDArray[np.uint8]] = kernels.plain_table(*self._asked)
        return found

    @cached_property
    def _labelled(self) -> tuple[Ints, NDArray[np.uint8], Floats, NDArray[np.uint8]]:
        found: tuple[Ints, NDArray[np.uint8], Floats, NDArray[np.uint8]] = kernels.labelled_table(
            *self._asked, self._missing
        )
        return found

    @property
    def _asked(self) -> tuple[Ints, Ints, float, float, int]:
        window = self._window
        share = min(max(window.share, LEAST_SHARE), 1.0 - LEAST_SHARE)
        return self._rule, self._pair, share, window.table_price, window.horizon

    @property
    def feasible(self) -> bool:
        """Whether the end can be right whoever comes."""
        if not self._window.labelled:
            return bool(self._plain[0][0] < np.inf)
        base, _, values, _ = self._labelled
        return bool(values[base[self._window.horizon]] < np.inf)

    def decide(self, crowd: Crowd) -> Flags:
        """The decisions of windows ``(runs, horizon)``."""
        window, accepted = self._window, np.empty(crowd.proposed.shape, np.bool_)
        prices = window.prices(crowd.score)
        fixed = self._rule, self._pair, window.horizon
        if window.labelled:
            kernels.decide_labelled(
                *fixed, *self._labelled, self._missing, "person-twice" in window.departures,
                crowd.group, crowd.proposed, crowd.relevant, towards_half(crowd.score), prices,
                TIE, accepted,
            )  # fmt: skip
        else:
            kernels.decide_plain(
                *fixed, *self._plain, self._missing, crowd.group, crowd.proposed, prices, TIE,
                accepted,
            )  # fmt: skip
        return accepted


def rule_of(window: Window) -> Ints:
    """The window as kernels read it."""
    rule = np.zeros(kernels.RULE, np.int64)
    rule[[kernels.BOUND, kernels.UNIT]] = window.bound.as_integer_ratio()
    rule[kernels.EMPTY_IS_FAIR] = window.undefined == "bias-0"
    rule[HISTORY] = window.history
    rule[kernels.IN_FLOATS] = "judging" in window.departures
    if window.welfare is not None:
        rule[kernels.BOUNDED] = 1
        rule[[kernels.LOWER, kernels.LOWER_UNIT]] = window.welfare.lower.as_integer_ratio()
        rule[[kernels.UPPER, kernels.UPPER_UNIT]] = window.welfare.upper.as_integer_ratio()
        rule[kernels.LEAST] = window.welfare.least
        rule[kernels.LAST_APART] = window.last_apart
    return rule


class Tables:
    """Tables decides runs, and keeps the table of the last window that it decided with."""

    def __init__(self) -> None:
        self._kept: tuple[Window, Table] | None = None

    def of(self, window: Window) -> Table:
        """The table of a window; it may be large, so only the last one is kept."""
        if self._kept is None or self._kept[0] != window:
            self._kept = None
            self._kept = window, Table(window)
        return self._kept[1]

    def decide(self, window: Window, crowd: Crowd, *, dynamic: bool) -> tuple[Flags, Flags]:
        """Decisions ``(runs, decisions)``, and whether each period could be kept right.

        The window is that of every period; with ``dynamic``, what came before is its history.
        """
        runs, length = crowd.proposed.shape
        periods = length // window.horizon
        accepted, feasible = np.empty((runs, length), np.bool_), np.empty((runs, periods), np.bool_)
        totals = np.zeros((runs, 4), np.int64)
        for period in range(periods):
            columns = slice(period * window.horizon, (period + 1) * window.horizon)
            for history, who in _starts(totals if dynamic else np.zeros_like(totals)):
                table = self.of(replace(window, history=history))
                part = crowd.part(who, columns)
                decided = table.decide(part)
                accepted[who, columns], feasible[who, period] = decided, table.feasible
                totals[who] += part.counters(decided)
        return accepted, feasible


def _starts(totals: Ints) -> list[tuple[At, Ints]]:
    """Different counters, and the runs that have them."""
    starts, which = np.unique(totals, axis=0, return_inverse=True)
    found = []
    for number, start in enumerate(starts.tolist()):
        n_a, k_a, n_b, k_b = start
        found.append(((n_a, k_a, n_b, k_b), np.flatnonzero(which.reshape(-1) == number)))
    return found
