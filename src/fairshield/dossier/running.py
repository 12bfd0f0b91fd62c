"""What a property bounds over time, as numbers to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import GroupCount
from fairshield.dossier.content import Dossier, Floats, Ints
from fairshield.plots import signed_gap
from fairshield.spec import (
    BoundedRates,
    DifferenceOfRates,
    DisparateImpact,
    LinearProperty,
    Property,
    ShareParity,
)

COLOURS = 6
"""Groups that have a colour of their own; more begin again."""


@dataclass(frozen=True, eq=False)
class Series:
    """What is drawn over time: lines by name, the allowed band, and what the axis says.

    ``bound`` says of each line, after every decision, whether the property binds what it shows.
    """

    lines: tuple[tuple[str, Floats], ...]
    low: float
    high: float
    axis: str
    bound: tuple[NDArray[np.bool_], ...]

    @property
    def idle(self) -> bool:
        """Whether some of it shows what was not bound."""
        return any(
            bool((~bound & ~np.isnan(values)).any())
            for (_, values), bound in zip(self.lines, self.bound, strict=True)
        )


def running(dossier: Dossier) -> Series:
    """What the property bounds, after every decision.

    Of the widest pair that it binds; where it binds none, of the widest that was measured.
    """
    prop, counters = dossier.prop, dossier.counters
    of_any = "" if len(dossier.groups) == 2 else " of any two groups"
    counts = [GroupCount(*counters.T[i : i + 2]) for i in range(0, counters.shape[1], 2)]
    if isinstance(prop, BoundedRates):
        lines, within = _rates(dossier, counts)
        return Series(lines, float(prop.lower), float(prop.upper), "share accepted", within)
    bound = np.asarray(_bounded(prop, counts).any(axis=0))
    bias = np.where(bound, prop.bias_array(*counts), prop.measured_bias_array(*counts))
    if isinstance(prop, DisparateImpact) and prop.two_sided:
        two = np.sum([count.seen > 0 for count in counts], axis=0) >= 2
        ratio = np.where(two, 1.0 - bias, np.nan)
        axis = f"impact ratio, the lower rate to the higher{of_any}"
        return Series((("impact ratio", ratio),), float(prop.bound), 1.0, axis, (bound,))
    if has_sign(prop) and len(dossier.groups) == 2:
        a, b = (str(group) for group in dossier.groups)
        gap = signed_gap(prop, counters)
        gap = np.where(counters[:, [0, 2]].min(axis=1) > 0, gap, np.nan)
        axis = _gap_axis(prop, a, b)
        return Series((("bias", gap),), -prop.limit, prop.limit, axis, (bound,))
    name = dossier.prop.finding(dossier.start).measure
    axis = f"{name}, the largest{of_any}" if of_any else name
    return Series(((name, bias),), 0.0, prop.limit, axis, (bound,))


def _rates(
    dossier: Dossier, counts: Sequence[GroupCount[Ints]]
) -> tuple[tuple[tuple[str, Floats], ...], tuple[NDArray[np.bool_], ...]]:
    """Each group's share of people accepted, and whether it is bounded.

    Of more groups than colours, the lowest and the highest of those that are, else of all.
    """
    rates = [_rate(dossier.counters[:, 2 * i : 2 * i + 2]) for i in range(len(counts))]
    bound = _bounded(dossier.prop, counts)
    if len(rates) <= COLOURS:
        return tuple(zip(map(str, dossier.groups), rates, strict=True)), tuple(bound)
    some = np.asarray(bound.any(axis=0))
    shown = [np.where(some & ~own, np.nan, r) for r, own in zip(rates, bound, strict=True)]
    # A group of which nobody was seen is neither.
    low, high = np.fmin.reduce(shown), np.fmax.reduce(shown)
    return (("lowest of any group", low), ("highest of any group", high)), (some, some)


def _bounded(prop: Property, counts: Sequence[GroupCount[Ints]]) -> NDArray[np.bool_]:
    """``(groups, decisions)``: whether a group is in a pair that the property binds."""
    found = np.zeros((len(counts), len(counts[0].seen)), bool)
    for (i, a), (j, b) in combinations(enumerate(counts), 2):
        found[[i, j]] |= _binds(prop, a, b)
    return found


def _binds(prop: Property, a: GroupCount[Ints], b: GroupCount[Ints]) -> NDArray[np.bool_]:
    """Whether the pair is bound; of a property of one's own, whether it has support.

    That one would be asked about all decisions about so many people, after each of them.
    """
    if isinstance(prop, LinearProperty):
        return np.asarray(prop.binds_array(a, b), bool)
    least = max(prop.min_support, 1)
    return np.asarray((a.seen >= least) & (b.seen >= least))


def has_sign(prop: Property) -> bool:
    """Whether it says which of two groups is ahead."""
    return isinstance(prop, DifferenceOfRates | ShareParity)


def _gap_axis(prop: Property, a: str, b: str) -> str:
    if isinstance(prop, DifferenceOfRates):
        return f"rate of {a} minus rate of {b}"
    return f"gap in people accepted, to those accepted of the two (positive: {a} ahead)"


def _rate(counts: Ints) -> Floats:
    seen = counts[:, 0].astype(np.float64)
    rates = np.full(len(seen), np.nan)
    np.divide(counts[:, 1], seen, out=rates, where=seen > 0)
    return rates
