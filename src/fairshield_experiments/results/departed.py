"""What our numbers are with departures of the published runs from the paper's text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from fairshield_experiments.published_runs.departures import AS_PUBLISHED, DEPARTURES
from fairshield_experiments.results.parts import Check, Product, Results
from fairshield_experiments.results.published import Published
from fairshield_experiments.results.rows import select
from fairshield_experiments.results.statistics import Estimate

HELD_OUT = "+".join(name for name in DEPARTURES if name != "population")
"""All departures, on people who are held out of training."""
SEVERAL = "several"
_NEARER = 2 / 3
"""A departure explains a difference if it alone leaves at most this part of it."""


@dataclass(frozen=True)
class Departed:
    """Departed holds our number with all departures, and with each alone, as far as they were run.

    What a departure alone does not change is not run.
    """

    together: Estimate | None
    alone: Mapping[str, Estimate]

    def switch(self, number: Published, ours: Estimate) -> str:
        """The departure that alone comes nearest to the published number; or several together."""

        def away(found: Estimate) -> float:
            return abs(found.value - number.value)

        if self.alone:
            best = min(self.alone, key=lambda name: away(self.alone[name]))
            if away(self.alone[best]) <= _NEARER * away(ours):
                return best
            if self.together is not None and away(self.together) <= _NEARER * away(ours):
                return SEVERAL
        return ""


NOTHING = Departed(None, {})
Find = Callable[[Published], Departed]


def variant(results: Results, name: str) -> Results:
    """Results whose runs are those with the departures of this name."""
    rows = select(results.departed, departures=name)
    return replace(results, runs=rows, departed=pd.DataFrame())


def variants(results: Results) -> tuple[str, ...]:
    """Names of the departures that were run: all, each alone, all on held-out people."""
    known = set(results.departed["departures"]) if "departures" in results.departed else set()
    return tuple(name for name in (AS_PUBLISHED, *DEPARTURES, HELD_OUT) if name in known)


def measured(results: Results, make: Callable[[Results], Product], name: str) -> Iterator[Check]:
    """Our numbers with the departures of a name, as far as they were run."""
    for check in make(variant(results, name)).checks:
        # Dynamic is slow: a departure alone has one of its bounds, and is in no pooled number.
        part = name != AS_PUBLISHED and check.item == "table-periodic" and "Dynamic" in check.what
        if check.like_for_like and check.ours is not None and not part:
            yield check


def departed(results: Results, make: Callable[[Results], Product]) -> Find:
    """What departures make of each published number of an item."""
    found: dict[tuple[str, str], dict[str, Estimate]] = {}
    for name in variants(results):
        for check in measured(results, make, name):
            error = math.nan if check.error is None else check.error
            ours = Estimate(check.ours or 0.0, error, 0)
            found.setdefault((check.source, check.what), {})[name] = ours

    def find(number: Published) -> Departed:
        own = found.get((number.source, number.what), {})
        alone: dict[str, Estimate] = {name: own[name] for name in DEPARTURES if name in own}
        return Departed(own.get(AS_PUBLISHED), alone)

    return find
