"""``running`` computes what a property bounds after every decision, for charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import GroupCount
from fairshield.reports.dossier.content import Dossier, Floats, Ints
from fairshield.spec import Axis, Property

COLOURS = 6
"""Groups that have a colour of their own."""


@dataclass(frozen=True, eq=False)
class DrawnSeries:
    """DrawnSeries holds what is drawn over time: lines by name, and their axis.

    ``bound`` says of each line, after every decision, whether the property binds what it shows.
    """

    lines: tuple[tuple[str, Floats], ...]
    axis: Axis
    bound: tuple[NDArray[np.bool_], ...]

    @property
    def idle(self) -> bool:
        """Whether a line shows values that the property did not bind."""
        return any(
            bool((~bound & ~np.isnan(values)).any())
            for (_, values), bound in zip(self.lines, self.bound, strict=True)
        )


def running(dossier: Dossier) -> DrawnSeries:
    """What the property bounds, after every decision.

    The values are those of the widest pair that it binds; where it binds none, those of the widest
    pair that was measured.
    """
    prop, counters = dossier.prop, dossier.counters
    axis = prop.axis(dossier.groups)
    counts = [GroupCount(*counters.T[i : i + 2]) for i in range(0, counters.shape[1], 2)]
    if axis.by_group:
        lines, within = _rates(dossier, counts)
        return DrawnSeries(lines, axis, within)
    bound = np.asarray(_bounded(prop, counts).any(axis=0))
    bias = np.where(bound, prop.bias_array(*counts), prop.measured_bias_array(*counts))
    return DrawnSeries(((axis.name, prop.drawn(bias, *counts)),), axis, (bound,))


def _rates(
    dossier: Dossier, counts: Sequence[GroupCount[Ints]]
) -> tuple[tuple[tuple[str, Floats], ...], tuple[NDArray[np.bool_], ...]]:
    """Each group's share of people accepted, and whether it is bounded.

    With more groups than colours, only the lowest and the highest rate of bounded groups are
    returned; where no group is bounded, those of all groups.
    """
    rates = [_rate(dossier.counters[:, 2 * i : 2 * i + 2]) for i in range(len(counts))]
    bound = _bounded(dossier.prop, counts)
    if len(rates) <= COLOURS:
        return tuple(zip(map(str, dossier.groups), rates, strict=True)), tuple(bound)
    some = np.asarray(bound.any(axis=0))
    shown = [np.where(some & ~own, np.nan, r) for r, own in zip(rates, bound, strict=True)]
    # fmin and fmax ignore NaN, the rate of a group of which nobody was seen.
    low, high = np.fmin.reduce(shown), np.fmax.reduce(shown)
    return (("lowest of any group", low), ("highest of any group", high)), (some, some)


def _bounded(prop: Property, counts: Sequence[GroupCount[Ints]]) -> NDArray[np.bool_]:
    """``(groups, decisions)``: whether a group is in a pair that the property binds."""
    found = np.zeros((len(counts), len(counts[0].seen)), bool)
    for (i, a), (j, b) in combinations(enumerate(counts), 2):
        found[[i, j]] |= prop.binds_quickly(a, b)
    return found


def _rate(counts: Ints) -> Floats:
    seen = counts[:, 0].astype(np.float64)
    rates = np.full(len(seen), np.nan)
    np.divide(counts[:, 1], seen, out=rates, where=seen > 0)
    return rates
