"""Counters by group since the beginning, and the windows or periods that are over."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Counts, Group, GroupCount
from fairshield.monitor.report import MonitoredWindow
from fairshield.spec import Property

Ints = NDArray[np.int64]


class MonitorTally:
    """Counts relevant people, and asks the property at the end of every window.

    Parameters
    ----------
    prop
        What should hold.
    goes_on
        Whether counters go on from one window to the next, as they do in periods.
    start
        Counters before the first decision of every window, or of the first period.
    keep
        How many windows are kept one by one.
    compared
        How many windows, the first ones, a shadow shield decides as well; ``None``: all.
    """

    def __init__(
        self,
        prop: Property,
        *,
        goes_on: bool,
        start: Counts,
        keep: int,
        compared: int | None = None,
    ) -> None:
        self.prop, self.goes_on, self._compared = prop, goes_on, compared
        self.groups: list[Group] = []
        self.seen: list[int] = []
        self.accepted: list[int] = []
        self.overruled: list[int] = []
        self._start: list[tuple[int, int]] = []
        self._base: list[tuple[int, int]] = []
        self._known_from: list[int] = []
        self.over, self.unfair, self.worst_bias = 0, 0, 0.0
        self.unfair_compared = 0
        self.recent: deque[MonitoredWindow] = deque(maxlen=keep)
        for group, count in start.items():
            self.meet(group, 0, count)

    def meet(self, group: Group, at: int, start: tuple[int, int] = (0, 0)) -> int:
        """Count a new group from the decision after ``at`` on."""
        self.groups.append(group)
        for counter in (self.seen, self.accepted, self.overruled):
            counter.append(0)
        self._start.append((int(start[0]), int(start[1])))
        self._base.append((0, 0))
        self._known_from.append(at + 1 if at else 0)
        return len(self.groups) - 1

    @property
    def counts(self) -> Counts:
        """Counters of the window in progress."""
        return Counts(
            {
                group: (n - m + more, k - j + taken)
                for group, n, k, (m, j), (more, taken) in zip(
                    self.groups, self.seen, self.accepted, self._base, self._start, strict=True
                )
            }
        )

    @property
    def start(self) -> Counts:
        """Counters before the first decision."""
        return Counts(dict(zip(self.groups, self._start, strict=True)))

    def verdict(self) -> tuple[bool, float]:
        """Whether the property holds in the window in progress, and the largest bias."""
        now = self.counts
        if len(now) < 2:
            return True, 0.0
        return self.prop.holds(now), self.prop.bias_of(now)

    def close(self, at: Sequence[int], seen: Ints, accepted: Ints) -> list[MonitoredWindow]:
        """End windows after ``at`` decisions each, with these counters; returns unfair ones.

        Counters are ``(windows, groups)``, since the beginning.
        """
        ends = np.asarray(at, np.int64)
        n, k = (self._of_windows(counters, i) for i, counters in enumerate((seen, accepted)))
        holds, bias = self._judge(ends, n, k)
        unfair = np.flatnonzero(~holds)
        keep = self.recent.maxlen or 0
        made = {
            w: self._window(w, int(ends[w]), n[w], k[w], float(bias[w]), bool(holds[w]))
            for w in {*range(max(len(ends) - keep, 0), len(ends)), *unfair.tolist()}
        }
        self.recent.extend(made[w] for w in sorted(made) if w >= len(ends) - keep)
        compared = len(ends) if self._compared is None else self._compared - self.over
        self.unfair_compared += int((unfair < compared).sum())
        self.over += len(ends)
        self.unfair += len(unfair)
        self.worst_bias = max(self.worst_bias, float(bias.max(initial=0.0)))
        if not self.goes_on:
            self._base = list(zip(seen[-1].tolist(), accepted[-1].tolist(), strict=True))
        return [made[w] for w in unfair.tolist()]

    def _of_windows(self, counters: Ints, which: int) -> Ints:
        """People counted in each window, those at its start included."""
        start = np.array([count[which] for count in self._start], np.int64)
        if self.goes_on:
            return counters + start
        base = np.array([[count[which] for count in self._base]], np.int64)
        before = np.concatenate((base, counters[:-1]))
        return counters - before + start

    def _judge(self, ends: Ints, n: Ints, k: Ints) -> tuple[NDArray[np.bool_], Any]:
        holds, bias = np.ones(len(ends), np.bool_), np.zeros(len(ends))
        for i, j in combinations(range(len(self.groups)), 2):
            known = ends >= max(self._known_from[i], self._known_from[j])
            a, b = GroupCount(n[:, i], k[:, i]), GroupCount(n[:, j], k[:, j])
            holds &= self.prop.holds_array(a, b) | ~known
            bias = np.where(known, np.maximum(bias, self.prop.bias(a, b)), bias)
        return holds, bias

    def _window(
        self, w: int, at: int, n: Ints, k: Ints, bias: float, holds: bool
    ) -> MonitoredWindow:
        counts = {
            group: (seen, accepted)
            for group, seen, accepted, known in zip(
                self.groups, n.tolist(), k.tolist(), self._known_from, strict=True
            )
            if known <= at
        }
        return MonitoredWindow(self.over + w, at, Counts(counts), bias, holds)

    # Where it stands ------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """JSON-able data; :meth:`resume` takes it."""
        rows = zip(
            self.groups, self._known_from, self.seen, self.accepted, self.overruled, self._base,
            self._start, strict=True,
        )  # fmt: skip
        return {
            "groups": [[g, at, n, k, o, *base, *start] for g, at, n, k, o, base, start in rows],
            "over": self.over,
            "unfair": self.unfair,
            "unfair_compared": self.unfair_compared,
            "worst_bias": None if self.worst_bias == float("inf") else self.worst_bias,
            "recent": [window.to_dict() for window in self.recent],
        }

    def resume(self, data: dict[str, Any]) -> None:
        """Go on from what :meth:`state` returned."""
        for rows in (self.groups, self.seen, self.accepted, self.overruled):
            rows.clear()
        self._known_from, self._base, self._start = [], [], []
        for group, at, n, k, overruled, m, j, more, taken in data["groups"]:
            self.groups.append(group)
            self._known_from.append(at)
            self.seen.append(n)
            self.accepted.append(k)
            self.overruled.append(overruled)
            self._base.append((m, j))
            self._start.append((more, taken))
        self.over, self.unfair = data["over"], data["unfair"]
        self.unfair_compared = data["unfair_compared"]
        worst = data["worst_bias"]
        self.worst_bias = float("inf") if worst is None else worst
        self.recent.extend(MonitoredWindow.from_dict(window) for window in data["recent"])
