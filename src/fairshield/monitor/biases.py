"""Biases: intervals of rates and biases at any time, and the pairs that are unfair beyond chance.

The intervals hold at all times together (:mod:`fairshield.monitor.sequences` has the proof), so
that looking again and again costs no confidence; looks grow rarer because they cost time.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from fairshield.base.counts import Counts
from fairshield.monitor.evidence import CHECK_EVERY
from fairshield.monitor.report import Alarm
from fairshield.monitor.sequences import rate_interval
from fairshield.runtime.judging import Flags, Ints
from fairshield.runtime.ledger import Ledger
from fairshield.spec import Interval, Property


class Biases:
    """Biases measures how far a ledger's groups are apart, and raises one alarm for each pair.

    Parameters
    ----------
    prop
        What should hold between every two groups.
    ledger
        Where people are counted.
    alpha
        The probability that any of the intervals is ever wrong.
    least
        Below so many relevant people a group has no interval.
    all_known
        Whether the ledger has all groups there will be; they then share ``alpha`` evenly.
    """

    def __init__(
        self, prop: Property, ledger: Ledger, *, alpha: float, least: int, all_known: bool
    ) -> None:
        self._prop, self._ledger = prop, ledger
        self._total_alpha, self._least, self._all_known = alpha, least, all_known
        self._told: set[tuple[int, int]] = set()
        self.look_at = CHECK_EVERY
        """After how many decisions :meth:`look` is called next."""

    # Intervals ------------------------------------------------------------------------------

    def rate(self, i: int) -> Interval | None:
        """The rate of a group so far; ``None`` of too few people."""
        people = self._ledger.people(i)
        if not people.seen or people.seen < self._least:
            return None
        return rate_interval(people.seen, people.accepted, self._alpha(i))

    def between(self, i: int, j: int) -> Interval | None:
        """The bias between two groups so far; ``None`` of too few people."""
        return self._between(i, j, *self._now())

    def _between(
        self, i: int, j: int, seen: list[int], accepted: list[int], only_above: float = -1.0
    ) -> Interval | None:
        """The bias between two groups; ``None`` also if the one observed is not ``only_above``."""
        if min(seen[i], seen[j]) < max(self._least, 1):
            return None
        a, b = self._ledger.groups[i], self._ledger.groups[j]
        counts = Counts({a: (seen[i], accepted[i]), b: (seen[j], accepted[j])})
        observed = self._prop.bias_of(counts)
        if observed <= only_above:
            return None
        # With the j-th group come j pairs.
        team = rate_interval(accepted[i] + accepted[j], accepted[i], self._alpha(j) / j)
        one, other = (rate_interval(seen[g], accepted[g], self._alpha(g)) for g in (i, j))
        bounds = self._prop.bias_within(one, other, team)
        return None if bounds is None else Interval(bounds[0], observed, bounds[1])

    def _alpha(self, i: int) -> float:
        """Return the share of ``alpha`` of the i-th group; all shares add up to at most alpha."""
        alpha = self._total_alpha
        return alpha / len(self._ledger.groups) if self._all_known else alpha / ((i + 1) * (i + 2))

    def _now(self) -> tuple[list[int], list[int]]:
        """Relevant people of every group since the beginning: seen, and accepted."""
        people = [self._ledger.people(i) for i in range(len(self._ledger.groups))]
        return [one.seen for one in people], [one.accepted for one in people]

    # Alarms ---------------------------------------------------------------------------------

    def look(self) -> list[Alarm]:
        """Alarms for pairs of groups that are found unfair beyond chance now."""
        at = self._ledger.decided
        self.look_at = _later(at)
        return self._alarms(at, *self._now())

    def look_among(self, group: Ints, accepted: Flags, relevant: Flags) -> list[Alarm]:
        """:meth:`look` whenever it is due among decisions that are about to be counted."""
        first, looks = self._ledger.decided, []
        while self.look_at <= first + len(group):
            looks.append(self.look_at)
            self.look_at = _later(self.look_at)
        if not looks:
            return []
        cuts = np.array(looks) - first
        people = self._ledger.people_after(group, accepted, relevant, cuts).tolist()
        return [
            alarm
            for at, then in zip(looks, people, strict=True)
            for alarm in self._alarms(at, *map(list, zip(*then, strict=True)))
        ]

    def _alarms(self, at: int, seen: list[int], accepted: list[int]) -> list[Alarm]:
        alarms, limit, length = [], self._prop.limit, self._ledger.length
        for i, j in combinations(range(len(seen)), 2):
            if (i, j) in self._told:
                continue
            bias = self._between(i, j, seen, accepted, only_above=limit)
            if bias is not None and bias.lower > limit:
                self._told.add((i, j))
                a, b = self._ledger.groups[i], self._ledger.groups[j]
                message = (
                    f"the decisions are unfair beyond chance: the bias between {a} and {b} is "
                    f"{bias.estimate:.4g}, at least {bias.lower:.4g} with "
                    f"{1.0 - self._total_alpha:.4g} confidence, where {self._prop} allows "
                    f"{limit:.4g}; put a shield before them (synthesize), or train the classifier "
                    "anew"
                )
                window = 0 if length is None else (at - 1) // length
                alarms.append(Alarm("bias", at, message, window, (a, b)))
        return alarms

    # Where it stands ------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """JSON-able data; :meth:`resume` takes it."""
        return {"look_at": self.look_at, "biased": sorted(map(list, self._told))}

    def resume(self, data: Any) -> None:
        """Go on from what :meth:`state` returned."""
        self.look_at = int(data["look_at"])
        self._told = {(int(i), int(j)) for i, j in data["biased"]}


def _later(at: int) -> int:
    """The next look: the time between looks grows with the time before them."""
    return at + max(CHECK_EVERY, at // 20)
