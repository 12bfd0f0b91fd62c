"""Counters by group since the beginning, and the windows or periods that are over."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Counts, Group, GroupCount
from fairshield.monitor.report import MonitoredWindow, number_from
from fairshield.runtime.report import plain_number
from fairshield.spec import Property, Verdict

Ints = NDArray[np.int64]


class _Judged(NamedTuple):
    """Windows that are over: what the property says of each."""

    holds: NDArray[np.bool_]
    binds: NDArray[np.bool_]
    bias: NDArray[np.float64]
    measured: NDArray[np.float64]


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
        self.over, self.unfair, self.exempt = 0, 0, 0
        self.untold = 0
        self.worst_bias, self.worst_measured = 0.0, 0.0
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

    def verdict(self) -> tuple[Verdict, float, float]:
        """What to say of the window in progress; its largest bias, and the largest measured."""
        return self._asked(self.counts)

    def _asked(self, now: Counts) -> tuple[Verdict, float, float]:
        prop = self.prop
        if len(now) < 2:
            return "exempt", 0.0, 0.0
        bias = prop.bias_of(now)
        # Whoever needs no support has it.
        return prop.verdict(now), bias, prop.measured_bias_of(now) if prop.min_support else bias

    def close(self, at: int) -> list[MonitoredWindow]:
        """End the window in progress after ``at`` decisions; returns it, if it is unfair."""
        counts = self.counts
        verdict, bias, measured = self._asked(counts)
        holds, bias, measured = verdict != "unfair", max(bias, 0.0), max(measured, 0.0)
        window = MonitoredWindow(self.over, at, counts, bias, holds, measured, verdict == "exempt")
        self.recent.append(window)
        unfair = [] if holds else [window]
        self._count(1, unfair, int(window.exempt), bias, measured)
        self._begin(self.seen, self.accepted)
        return unfair

    def close_many(self, at: Sequence[int], seen: Ints, accepted: Ints) -> list[MonitoredWindow]:
        """End windows after ``at`` decisions each, with these counters; returns unfair ones.

        Counters are ``(windows, groups)``, since the beginning.
        """
        ends = np.asarray(at, np.int64)
        n, k = (self._of_windows(counters, i) for i, counters in enumerate((seen, accepted)))
        found = self._judge(ends, n, k)
        unfair = np.flatnonzero(~found.holds)
        keep = self.recent.maxlen or 0
        made = {
            w: self._window(w, int(ends[w]), n[w], k[w], found)
            for w in {*range(max(len(ends) - keep, 0), len(ends)), *unfair.tolist()}
        }
        self.recent.extend(made[w] for w in sorted(made) if w >= len(ends) - keep)
        ended = [made[w] for w in unfair.tolist()]
        exempt = int((found.holds & ~found.binds).sum())
        largest = (float(bias.max(initial=0.0)) for bias in (found.bias, found.measured))
        self._count(len(ends), ended, exempt, *largest)
        self._begin(seen[-1].tolist(), accepted[-1].tolist())
        return ended

    def _count(
        self, n: int, unfair: list[MonitoredWindow], exempt: int, bias: float, measured: float
    ) -> None:
        """Count ``n`` windows that are over, with the largest biases of them."""
        if self._compared is None:
            self.unfair_compared += len(unfair)
        else:
            self.unfair_compared += sum(window.number < self._compared for window in unfair)
        self.over += n
        self.unfair += len(unfair)
        self.exempt += exempt
        self.worst_bias = max(self.worst_bias, bias)
        self.worst_measured = max(self.worst_measured, measured)

    def _begin(self, seen: list[int], accepted: list[int]) -> None:
        """Begin a window after so many people since the beginning."""
        if not self.goes_on:
            self._base = list(zip(seen, accepted, strict=True))

    def _of_windows(self, counters: Ints, which: int) -> Ints:
        """People counted in each window, those at its start included."""
        start = np.array([count[which] for count in self._start], np.int64)
        if self.goes_on:
            return counters + start
        base = np.array([[count[which] for count in self._base]], np.int64)
        before = np.concatenate((base, counters[:-1]))
        return counters - before + start

    def _judge(self, ends: Ints, n: Ints, k: Ints) -> _Judged:
        prop, size = self.prop, len(ends)
        holds, binds = np.ones(size, np.bool_), np.zeros(size, np.bool_)
        bias, measured = np.zeros(size), np.zeros(size)
        for i, j in combinations(range(len(self.groups)), 2):
            known = ends >= max(self._known_from[i], self._known_from[j])
            pair = GroupCount(n[:, i], k[:, i]), GroupCount(n[:, j], k[:, j])
            holds &= prop.holds_array(*pair) | ~known
            binds |= prop.binds_array(*pair) & known
            bias = np.where(known, np.maximum(bias, prop.bias(*pair)), bias)
            if prop.min_support:
                shown = prop.measured_bias_array(*pair)
                measured = np.where(known, np.maximum(measured, shown), measured)
        return _Judged(holds, binds, bias, measured if prop.min_support else bias)

    def _window(self, w: int, at: int, n: Ints, k: Ints, found: _Judged) -> MonitoredWindow:
        counts = {
            group: (seen, accepted)
            for group, seen, accepted, known in zip(
                self.groups, n.tolist(), k.tolist(), self._known_from, strict=True
            )
            if known <= at
        }
        holds, binds = bool(found.holds[w]), bool(found.binds[w])
        return MonitoredWindow(
            self.over + w, at, Counts(counts), float(found.bias[w]), holds,
            float(found.measured[w]), holds and not binds,
        )  # fmt: skip

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
            "exempt": self.exempt,
            "untold": self.untold,
            "unfair_compared": self.unfair_compared,
            "worst_bias": plain_number(self.worst_bias),
            "worst_measured": plain_number(self.worst_measured),
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
        self.worst_bias = number_from(data["worst_bias"])
        self.recent.extend(self._resumed(window) for window in data["recent"])
        if "exempt" in data:
            self.exempt, self.worst_measured = data["exempt"], number_from(data["worst_measured"])
            self.untold = data.get("untold", 0)
        else:
            self._look_back()

    def _resumed(self, data: dict[str, Any]) -> MonitoredWindow:
        """A window as it was saved; one that tells too little is judged again."""
        if "exempt" in data:
            return MonitoredWindow.from_dict(data)
        window = MonitoredWindow.from_dict({**data, "exempt": False, "measured": data["bias"]})
        if len(window.counts) < 2:
            return replace(window, exempt=True)
        exempt = self.prop.verdict(window.counts) == "exempt"
        return replace(window, exempt=exempt, measured=self.prop.measured_bias_of(window.counts))

    def _look_back(self) -> None:
        """Count from the windows that were kept what earlier versions did not.

        Of others that were not unfair nobody knows whether they bound.
        """
        kept = [window.verdict for window in self.recent]
        self.exempt = kept.count("exempt")
        self.untold = self.over - self.unfair - self.exempt - kept.count("fair")
        self.worst_measured = max([self.worst_bias, *(w.measured for w in self.recent)])
