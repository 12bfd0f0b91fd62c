"""Rates of several groups beside each other, and which pairs of them a property compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from fairshield.base.counts import Counts, Group, GroupCount
from fairshield.base.renamed import Renamed
from fairshield.spec.base import Property


@dataclass(frozen=True, slots=True)
class GroupRate:
    """GroupRate says how many people of a group counted and were accepted.

    A number that does not exist is ``None``.  ``ratio`` is ``rate`` over the highest rate, both of
    groups that have support; it is ``None`` unless the property bounds such ratios.
    """

    group: Group
    seen: int
    accepted: int
    rate: float | None
    ratio: float | None

    people = Renamed("seen")


def rates_of(prop: Property, counts: Counts) -> tuple[GroupRate, ...]:
    """The rate of every group: the highest first, groups without people last.

    >>> from fairshield import Counts, DisparateImpact
    >>> counts = Counts({"a": (90, 18), "b": (90, 45), "c": (2, 2)})
    >>> [(g.group, g.ratio) for g in rates_of(DisparateImpact("0.8", min_support=30), counts)]
    [('c', None), ('b', 1.0), ('a', 0.4)]
    """
    rates = {g: count.accepted / count.seen for g, count in counts.items() if count.seen}
    supported = [g for g in rates if counts[g].seen >= prop.min_support]
    highest = max((rates[g] for g in supported), default=0.0)
    told = prop.shows_ratios and highest > 0
    found = [
        GroupRate(
            group, count.seen, count.accepted, rates.get(group),
            rates[group] / highest if told and group in supported else None,
        )
        for group, count in counts.items()
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda g: -1.0 if g.rate is None else g.rate, reverse=True))


@dataclass(frozen=True, slots=True)
class Reach:
    """Reach says how many ``pairs`` of groups a property bound at some of several ``ends``.

    ``alone`` are the groups that were in none of these pairs.  ``support`` is the ``min_support``
    that all groups in ``alone`` lacked at all ends; 0 if they were not compared for another reason.
    """

    ends: int
    groups: int
    pairs: int
    bound: int
    alone: tuple[Group, ...]
    support: int

    @property
    def partial(self) -> bool:
        """Whether the property bound some pairs, and not all."""
        return 0 < self.bound < self.pairs

    def told(self, noun: str) -> str:
        """The reach in words; each end is that of a ``noun``, such as ``"window"``."""
        bound = "was bound" if self.bound == 1 else "were bound"
        text = f"{self.bound:,} of {self.pairs:,} pairs of groups {bound}"
        if not self.alone:
            return text
        each = f" in each {noun}" if self.ends > 1 else ""
        few = f"had fewer than {self.support:,} people{each} and " if self.support else ""
        was = "was" if len(self.alone) == 1 else "were"
        return (
            f"{text}; {len(self.alone):,} of {self.groups:,} groups {few}{was} compared with nobody"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        return asdict(self) | {"alone": list(self.alone)}


def reach_of(prop: Property, ends: Sequence[Counts]) -> Reach | None:
    """Which pairs ``prop`` bound at one of these moments at least; ``None`` if there are none.

    Of a group that some counters do not know yet, nobody was seen.

    >>> from fairshield import Counts, DemographicParity
    >>> end = Counts({"a": (90, 18), "b": (90, 45), "c": (2, 2)})
    >>> reach = reach_of(DemographicParity("0.1", min_support=30), [end])
    >>> reach.bound, reach.pairs, reach.alone
    (1, 3, ('c',))
    """
    if not ends:
        return None
    groups = dict.fromkeys(group for counts in ends for group in counts)
    seen = {group: np.array([_seen(counts, group) for counts in ends]) for group in groups}
    pairs = list(combinations(seen, 2))
    bound = [
        (a, b)
        for a, b in pairs
        if prop.binds_array(GroupCount(seen[a], 0), GroupCount(seen[b], 0)).any()
    ]
    compared = {group for pair in bound for group in pair}
    alone = tuple(group for group in seen if group not in compared)
    few = all((seen[group] < prop.min_support).all() for group in alone)
    return Reach(
        len(ends), len(seen), len(pairs), len(bound), alone, prop.min_support if few else 0
    )


def _seen(counts: Counts, group: Group) -> int:
    return counts[group].seen if group in counts else 0
