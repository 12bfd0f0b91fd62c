"""MonitorTally counts decisions for a monitor, and keeps the last windows one by one."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Counts, GroupCount
from fairshield.base.plain import plain_number
from fairshield.monitor.report import MonitoredWindow, number_from
from fairshield.runtime.judging import Flags, Ints, Moments
from fairshield.runtime.ledger import Ledger
from fairshield.runtime.window_rule import WindowRule
from fairshield.spec import Property, Verdict

Floats = NDArray[np.float64]


class MonitorTally:
    """MonitorTally counts decisions with a ledger, and keeps the last windows one by one.

    Parameters
    ----------
    prop
        What should hold.
    start
        Counters before the first decision of every window, or of the first period.
    rule
        How long windows are, and whether counters go on.
    keep
        How many windows are kept one by one.
    compared
        How many windows, the first ones, a shadow shield decides as well; ``None``: all.
    """

    def __init__(
        self,
        prop: Property,
        start: Counts,
        rule: WindowRule,
        *,
        keep: int,
        compared: int | None = None,
    ) -> None:
        # An endless window keeps its counters when it is ended, because no other one begins.
        goes_on = rule.goes_on or rule.length is None
        self.ledger = Ledger(prop, start, due=rule.due, goes_on=goes_on, proposals=False)
        self.prop, self._compared = prop, compared
        self.largest_measured, self.unfair_compared = 0.0, 0
        self.recent: deque[MonitoredWindow] = deque(maxlen=keep)

    @property
    def start(self) -> Counts:
        """Counters before the first decision."""
        return Counts(dict(zip(self.ledger.groups, self.ledger.starts, strict=True)))

    def verdict(self) -> tuple[Verdict, float, float]:
        """Verdict on the window in progress, its largest bias, and the largest bias measured."""
        counts = self.ledger.counts
        verdict, bias = self.ledger.asked(counts)
        return verdict, bias, self._measured(counts, bias)

    def _measured(self, counts: Counts, bias: float) -> float:
        # Without a required support every group has it, and both biases are the same.
        if not self.prop.min_support or len(counts) < 2:
            return bias
        return max(self.prop.measured_bias_of(counts), 0.0)

    def close(self, *, early: bool = False) -> list[MonitoredWindow]:
        """End the window in progress if it is full, or ``early``; returns it if it is unfair."""
        found = self.ledger.judge(ends=True) if early else self.ledger.settle()
        if found is None:
            return []
        self.ledger.begin()
        measured = self._measured(found.counts, found.bias)
        window = MonitoredWindow(
            found.window, found.decided, found.counts, found.bias, found.verdict != "unfair",
            measured, found.verdict == "exempt",
        )  # fmt: skip
        self.recent.append(window)
        self.largest_measured = max(self.largest_measured, measured)
        return self._unfair([] if window.holds else [window])

    def add_many(
        self, group: Ints, proposed: Flags, accepted: Flags, costs: Floats, relevant: Flags
    ) -> list[MonitoredWindow]:
        """Count decisions in order; returns the windows that ended unfair."""
        found = self.ledger.add_many(group, proposed, accepted, costs, relevant)
        self.ledger.begin()
        if not len(found.decided):
            return []
        measured = self._measured_many(found)
        self.largest_measured = max(self.largest_measured, float(measured.max()))
        unfair, n = np.flatnonzero(~found.holds).tolist(), len(found.decided)
        kept = range(max(n - (self.recent.maxlen or 0), 0), n)
        made = {w: self._window(w, found, measured) for w in {*kept, *unfair}}
        self.recent.extend(made[w] for w in kept)
        return self._unfair([made[w] for w in unfair])

    def _unfair(self, windows: list[MonitoredWindow]) -> list[MonitoredWindow]:
        """Count those unfair windows that a shadow shield decides as well; returns ``windows``."""
        first = self._compared
        self.unfair_compared += sum(first is None or window.number < first for window in windows)
        return windows

    def _measured_many(self, found: Moments) -> Floats:
        prop, measured = self.prop, np.zeros(len(found.decided))
        if not prop.min_support:
            return found.bias
        for i, j in combinations(range(found.counters.shape[1]), 2):
            known = found.decided >= max(self.ledger.known_from[i], self.ledger.known_from[j])
            a, b = (GroupCount(*found.counters[:, g].T) for g in (i, j))
            shown = prop.measured_bias_array(a, b)
            measured = np.where(known, np.maximum(measured, shown), measured)
        return measured

    def _window(self, w: int, found: Moments, measured: Floats) -> MonitoredWindow:
        at, ledger = int(found.decided[w]), self.ledger
        counts = {
            group: (seen, accepted)
            for group, (seen, accepted), known in zip(
                ledger.groups, found.counters[w].tolist(), ledger.known_from, strict=True
            )
            if known <= at
        }
        holds, binds = bool(found.holds[w]), bool(found.binds[w])
        return MonitoredWindow(
            int(found.window[w]), at, Counts(counts), float(found.bias[w]), holds,
            float(measured[w]), holds and not binds,
        )  # fmt: skip

    # Saving and resuming --------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """JSON-able data; :meth:`resume` takes it."""
        ledger, rows = self.ledger, []
        for i, (group, at) in enumerate(zip(ledger.groups, ledger.known_from, strict=True)):
            people, base = ledger.people(i), ledger.base(i)
            counted = people.seen, people.accepted, people.overruled, base.seen, base.accepted
            rows.append([group, at, *counted, *ledger.starts[i]])
        return {
            "groups": rows,
            "cells": list(ledger.cells),
            "over": ledger.windows,
            "unfair": ledger.shielded.unfair,
            "exempt": ledger.shielded.exempt,
            "untold": ledger.shielded.untold,
            "unfair_compared": self.unfair_compared,
            "worst_bias": plain_number(ledger.shielded.largest_bias),
            "worst_measured": plain_number(self.largest_measured),
            "recent": [window.to_dict() for window in self.recent],
        }

    def resume(self, data: dict[str, Any], decided: int, cost: float) -> None:
        """Go on from what :meth:`state` returned, after so many decisions at this cost."""
        self.unfair_compared = data["unfair_compared"]
        self.recent.extend(self._resumed(window) for window in data["recent"])
        told = data if "exempt" in data else {**data, **self._look_back(data)}
        self.largest_measured = number_from(told["worst_measured"])
        rows, over, exempt = data["groups"], data["over"], told["exempt"]
        length, untold = self.ledger.length, told.get("untold", 0)
        self.ledger.resume(
            {
                "groups": [[group, at, *start] for group, at, _, _, _, _, _, *start in rows],
                "cells": data.get("cells"),
                "people": [[n, k, 0, o] for _, _, n, k, o, *_ in rows],
                "base": [[m, j] for *_, m, j, _, _ in rows],
                "decided": decided,
                "begun": 0 if length is None else decided - decided % length,
                "paid": cost,
                "shielded": {
                    "windows": over,
                    "fair": over - data["unfair"] - exempt - untold,
                    "exempt": exempt,
                    "untold": untold,
                    "largest_bias": data["worst_bias"],
                },
            }
        )

    def _resumed(self, data: dict[str, Any]) -> MonitoredWindow:
        """A saved window; one of an earlier version, without its verdict, is judged again."""
        if "exempt" in data:
            return MonitoredWindow.from_dict(data)
        window = MonitoredWindow.from_dict({**data, "exempt": False, "measured": data["bias"]})
        if len(window.counts) < 2:
            return replace(window, exempt=True)
        exempt = self.prop.verdict(window.counts) == "exempt"
        return replace(window, exempt=exempt, measured=self.prop.measured_bias_of(window.counts))

    def _look_back(self, data: dict[str, Any]) -> dict[str, Any]:
        """Counts that earlier versions did not save, made from the windows that were kept.

        Windows that were not kept and not unfair are ``untold``: fair or exempt.
        """
        kept = [window.verdict for window in self.recent]
        exempt, largest = kept.count("exempt"), number_from(data["worst_bias"])
        return {
            "exempt": exempt,
            "untold": data["over"] - data["unfair"] - exempt - kept.count("fair"),
            "worst_measured": plain_number(max([largest, *(w.measured for w in self.recent)])),
        }
