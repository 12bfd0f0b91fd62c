"""Coverage: of how many people the outcome is known, and whether rates can be trusted.

A property that counts people by their outcome needs the outcome of the rejected as well.  Where it
is known of the accepted alone, everybody who counts was accepted and every rate is 1, however
unfair the decisions were.  :class:`OutcomeTally` counts known outcomes by group and decision, and
:attr:`Coverage.doubt` says that rates cannot be trusted in four cases:

1. Somebody was rejected, and of nobody rejected is the outcome known; or the same of the accepted.
2. In a group, the known shares of the accepted and of the rejected differ by more than a tenth, and
   by more than three standard errors, computed as if on either side one more were known and one
   more were not, so that a single awaited outcome never suffices.
3. All known outcomes of the rejected are the same, and look filled in: five with the other outcome
would be expected even if it were ten times rarer among the rejected than among the accepted.
4. Thirty people or more were accepted and nobody rejected: the log has accepted people only.

Cases 1 and 2 need enough unknown outcomes: five, or more than a tenth of all people.  Fewer may
just not have arrived yet, and would change little.  Cases 1 and 4 are tested for all people
together and for every group.  Case 2 is tested for each group alone: that outcomes of one group
are known more often than those of another changes no group's rate.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Group
from fairshield.base.errors import OutcomesWarning

PAGE = "docs/late-outcomes.md"
"""The page of the documentation that says what to do instead."""
ADVICE = (
    "where the outcomes of rejected people never come, do not fill them in, but choose a property "
    f"that does without, such as demographic parity ({PAGE})"
)
_HANDFUL = 5
_TENTH, _ERRORS = 10, 3
_RARER, _EXPECTED = 10, 5
_ALL_ACCEPTED = 30


class Known(NamedTuple):
    """Known counts people, those of them with a known outcome, and those with outcome 1."""

    people: int = 0
    known: int = 0
    positive: int = 0

    def plus(self, other: Known) -> Known:
        """The sums of both counts."""
        return Known._make(a + b for a, b in zip(self, other, strict=True))

    def having(self, outcome: bool) -> int:
        """How many people are known to have this outcome."""
        return self.positive if outcome else self.known - self.positive


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage counts known outcomes by group, of the accepted and of the rejected.

    ``relevant`` is the outcome of the people whom the property counts.
    """

    relevant: bool
    accepted: Mapping[Group, Known]
    rejected: Mapping[Group, Known]

    @property
    def doubt(self) -> str | None:
        """A sentence that says why the rates cannot be trusted; ``None`` if they can.

        >>> told = OutcomeTally()
        >>> for group, accepted, outcome in [("a", True, True), ("b", False, None)]:
        ...     told.add(group, accepted, outcome)
        >>> print(told.coverage(relevant=True).doubt)
        the outcome of nobody rejected is known (0 of 1; of those accepted 1 of 1), so all who \
count were accepted, whatever was decided (docs/late-outcomes.md)
        """
        for where, accepted, rejected in self._parts():
            doubt = _nobody(where, accepted, rejected) or _left_out(where, accepted, rejected)
            doubt = doubt or _filled_in(where, accepted, rejected, self.relevant)
            if where and not doubt:
                doubt = _uneven(where, accepted, rejected)
            if doubt:
                return f"{doubt} ({PAGE})"
        return None

    def warn(self, whose: str, stacklevel: int = 2) -> None:
        """Warn if outcomes look filled in, for callers that write no report which could say so."""
        if self.doubt is not None:
            warnings.warn(f"{whose}: {self.doubt}", OutcomesWarning, stacklevel=stacklevel + 1)

    @property
    def unknown(self) -> int:
        """People whose outcome is not known."""
        return sum(k.people - k.known for k in (*self.accepted.values(), *self.rejected.values()))

    def _parts(self) -> Iterator[tuple[str, Known, Known]]:
        """All people together, then each group."""
        yield "", _together(self.accepted.values()), _together(self.rejected.values())
        for group, accepted in self.accepted.items():
            yield f" in group {group}", accepted, self.rejected[group]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data: one row for each group and decision."""
        decided = ((True, self.accepted), (False, self.rejected))
        return {
            "doubt": self.doubt,
            "groups": [
                {"group": group, "accepted": y, **known._asdict()}
                for y, groups in decided
                for group, known in groups.items()
            ],
        }


class OutcomeTally:
    """OutcomeTally counts outcomes that became known, and those that are still awaited."""

    def __init__(self) -> None:
        self._counts: dict[Group, list[int]] = {}

    def add(self, group: Group, accepted: bool, outcome: bool | None) -> None:
        """Count a person with a decision; ``outcome`` is ``None`` if it is not known."""
        self.expect(group, accepted)
        if outcome is not None:
            self.know(group, accepted, outcome)

    def expect(self, group: Group, accepted: bool) -> None:
        """Count a person whose outcome may become known later."""
        self._of(group)[3 * accepted] += 1

    def know(self, group: Group, accepted: bool, outcome: bool) -> None:
        """Count a person whose outcome became known."""
        counts = self._of(group)
        counts[3 * accepted + 1] += 1
        counts[3 * accepted + 2] += outcome

    def know_many(
        self, names: Iterable[Group], g: NDArray[Any], y: NDArray[np.bool_], z: NDArray[np.bool_]
    ) -> None:
        """:meth:`know` for arrays; groups are numbers."""
        for i, group in enumerate(names):
            here = g == i
            if not here.any():
                continue
            counts = self._of(group)
            for accepted in (False, True):
                of = here & (y == accepted)
                counts[3 * accepted + 1] += int(of.sum())
                counts[3 * accepted + 2] += int((of & z).sum())

    def coverage(self, *, relevant: bool) -> Coverage:
        """The coverage so far; people whom :meth:`expect` did not count have known outcomes."""
        found: tuple[dict[Group, Known], dict[Group, Known]] = ({}, {})
        for group, counts in self._rows():
            for accepted in (False, True):
                people, known, positive = counts[3 * accepted : 3 * accepted + 3]
                found[accepted][group] = Known(max(people, known), known, positive)
        return Coverage(relevant, found[True], found[False])

    def _rows(self) -> list[tuple[Group, list[int]]]:
        return sorted(self._counts.items(), key=lambda row: str(row[0]))

    def _of(self, group: Group) -> list[int]:
        counts = self._counts.get(group)
        if counts is None:
            counts = self._counts[group] = [0] * 6
        return counts

    def state(self) -> list[list[Any]]:
        """JSON-able data; :meth:`resume` takes it."""
        return [[group, *counts] for group, counts in self._rows()]

    def resume(self, data: Iterable[list[Any]]) -> None:
        """Go on from what :meth:`state` returned."""
        self._counts = {group: [int(n) for n in counts] for group, *counts in data}


def warn_of_outcomes(
    names: Iterable[Any],
    g: NDArray[Any],
    y: NDArray[np.bool_],
    z: NDArray[np.bool_],
    *,
    relevant: bool | None,
    whose: str,
    stacklevel: int,
) -> None:
    """Warn of outcomes ``z`` that look filled in by decisions ``y``; groups are numbers."""
    told = OutcomeTally()
    told.know_many([str(name) for name in names], g, y, z)
    told.coverage(relevant=bool(relevant)).warn(whose, stacklevel)


# The four rules -----------------------------------------------------------------------------


def _together(parts: Iterable[Known]) -> Known:
    total = Known()
    for part in parts:
        total = total.plus(part)
    return total


def _enough(unknown: int, people: int) -> bool:
    """Whether there are enough unknown outcomes to matter."""
    return unknown >= _HANDFUL or _TENTH * unknown > people


def _nobody(where: str, accepted: Known, rejected: Known) -> str | None:
    for word, other, one, rest in (
        ("rejected", "accepted", rejected, accepted),
        ("accepted", "rejected", accepted, rejected),
    ):
        if not one.known and _enough(one.people, one.people + rest.people):
            told = f"; of those {other} {rest.known:,} of {rest.people:,}" if rest.people else ""
            return (
                f"the outcome of nobody {word}{where} is known (0 of {one.people:,}{told}), so all "
                f"who count were {other}, whatever was decided"
            )
    return None


def _left_out(where: str, accepted: Known, rejected: Known) -> str | None:
    if where or rejected.people or accepted.people < _ALL_ACCEPTED:
        return None
    return (
        f"all {accepted.people:,} people in the log were accepted, so every rate is 1: those who "
        "were rejected may have been left out of it"
    )


def _uneven(where: str, accepted: Known, rejected: Known) -> str | None:
    n, m = accepted.people, rejected.people
    apart = abs(accepted.known * m - rejected.known * n)
    if not _enough(n + m - accepted.known - rejected.known, n + m):
        return None
    if _TENTH * apart <= n * m or not _beyond_chance(accepted, rejected):
        return None
    return (
        f"the outcomes of {accepted.known:,} of {n:,} people accepted{where} are known, and of "
        f"{rejected.known:,} of {m:,} rejected: the rates are not those of everybody decided"
    )


def _beyond_chance(one: Known, other: Known) -> bool:
    """Whether known shares differ by more than so many standard errors (Agresti and Caffo)."""
    (k, n), (j, m) = ((side.known + 1, side.people + 2) for side in (one, other))
    spread = k * (n - k) * m**3 + j * (m - j) * n**3
    return (k * m - j * n) ** 2 * n * m > _ERRORS**2 * spread


def _filled_in(where: str, accepted: Known, rejected: Known, relevant: bool) -> str | None:
    for same in (False, True):
        others = accepted.having(not same)
        if not others or rejected.having(not same) or not rejected.known:
            continue
        if rejected.known * others < _RARER * _EXPECTED * accepted.known:
            continue
        so = (
            "everybody rejected counts"
            if same == relevant
            else "nobody rejected counts, and every rate is 1, whatever was decided"
        )
        return (
            f"all {rejected.known:,} people rejected{where} have outcome {int(same)}, and "
            f"{others:,} of {accepted.known:,} accepted have {int(not same)}: {so}; outcomes that "
            "were filled in where nobody knows them look like this"
        )
    return None
