"""``compare`` checks our numbers against the published ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

from fairshield_experiments.results.accounts import account, left_over
from fairshield_experiments.results.departed import NOTHING, Departed, Find
from fairshield_experiments.results.names import UNDEFINED, Undefined
from fairshield_experiments.results.parts import Check
from fairshield_experiments.results.published import Published, published
from fairshield_experiments.results.statistics import Estimate
from fairshield_experiments.results.trainings import Spread
from fairshield_experiments.results.verdicts import verdict


@dataclass(frozen=True)
class PublishedMatch:
    """PublishedMatch holds what we found in the place of a published number.

    Attributes
    ----------
    ours
        ``None``: not run.
    others
        The same measured in other ways, each with words that complete "... we get".
    notes
        Sentences about this very number that may explain a difference.
    spread
        Our number in several trainings; ``None``: it was trained once, or is of many classifiers.
    """

    ours: Estimate | None
    others: tuple[tuple[str, Estimate], ...] = ()
    notes: tuple[str, ...] = ()
    spread: Spread | None = None


NOT_RUN = PublishedMatch(None)


def compare(item: str, find: Callable[[Published], PublishedMatch]) -> tuple[Check, ...]:
    """One check for each published number of an item to which no convention applies."""
    return tuple(_check(number, find(number), "", NOTHING) for number in published(item))


def compare_conventions(
    item: str, find: Callable[[Published, Undefined], PublishedMatch], departed: Find
) -> tuple[Check, ...]:
    """A check for each published number and each convention for empty groups.

    ``departed`` says what becomes of a number with departures of the published runs.
    """
    found = cache(find)
    return tuple(
        _check(
            number, _with_other_convention(number, found, undefined), undefined, departed(number)
        )
        for number in published(item)
        for undefined in UNDEFINED
    )


def _with_other_convention(
    number: Published, find: Callable[[Published, Undefined], PublishedMatch], undefined: Undefined
) -> PublishedMatch:
    finding = find(number, undefined)
    others = (
        (f"With the convention {UNDEFINED[other]}", find(number, other).ours)
        for other in UNDEFINED
        if other != undefined
    )
    known = tuple((words, found) for words, found in others if found is not None)
    return replace(finding, others=(*known, *finding.others))


def _check(number: Published, finding: PublishedMatch, undefined: str, departed: Departed) -> Check:
    ours = finding.ours
    if ours is not None and not math.isfinite(ours.value):
        ours = None
    decided = verdict(number, ours)
    text = ""
    if ours is not None and decided != "agrees":
        text = account(
            number, ours, finding.others, finding.notes, departed=departed,
            spread=finding.spread,
        )  # fmt: skip
    together = None if ours is None else departed.together
    return Check(
        item=number.item,
        what=number.what,
        published=number.value,
        ours=None if ours is None else ours.value,
        error=None if ours is None else _known(ours.error),
        verdict=decided,
        account=text,
        chance=None if finding.spread is None else finding.spread.chance(number),
        undefined=undefined,
        unit=number.unit,
        source=number.source,
        departed=None if together is None else together.value,
        departed_error=None if together is None else _known(together.error),
        departed_verdict=None if together is None else verdict(number, together),
        left="" if together is None else left_over(number, departed, finding.spread),
        switch="" if ours is None or decided == "agrees" else departed.switch(number, ours),
    )


def _known(error: float) -> float | None:
    return error if math.isfinite(error) else None


def unexplained(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Checks that do not agree and give no reason; there must be none."""
    return tuple(c for c in checks if c.verdict in ("close", "differs") and not c.account)
