"""Counting: what a decision and its outcome add to the two counters of a group.

Nearly every property counts people: those who are relevant are seen, and accepted if the decision
says so.  A rate may count otherwise, such as the accepted people in its denominator and those of
them with outcome 1 in its numerator.  Then ``seen`` is the denominator and ``accepted`` the
numerator of the rate, wherever counters are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import At, is_whole
from fairshield.base.errors import InvalidValueError, called

Gain = tuple[int, int]
"""What is added to ``seen`` and to ``accepted``."""
LARGEST_WEIGHT = 100
_WORDS = ("reject 0", "reject 1", "accept 0", "accept 1")


class Weights(NamedTuple):
    """Weights says what each decision with each outcome adds to one counter."""

    reject_0: int = 0
    reject_1: int = 0
    accept_0: int = 0
    accept_1: int = 0

    @staticmethod
    def of(told: Any, name: str) -> Weights:
        """The weights of a user's words: a mapping, or a text such as ``"accept 1, reject 0"``.

        A word names a decision, or a decision and an outcome; in a text ``=`` gives its weight.

        >>> Weights.of("accept 1=2, reject", "numerator")
        Weights(reject_0=1, reject_1=1, accept_0=0, accept_1=2)
        >>> Weights.of({("accept", 1): 1}, "numerator") == Weights.of("accept 1", "numerator")
        True
        """
        if isinstance(told, Weights):
            return told
        found: dict[str, int] = {}
        for word, weight in _told(told, name):
            for cell in _cells(word, name):
                if cell in found:
                    raise InvalidValueError(
                        f"{called(name)} names {cell!r} twice, in {told!r}: say each decision and "
                        "outcome once"
                    )
                found[cell] = _checked(weight, word, name)
        if not any(found.values()):
            raise InvalidValueError(
                f"{called(name)} counts nobody, got {told!r}: name at least one decision, such as "
                "'accept' or 'accept 1'"
            )
        return Weights(*(found.get(cell, 0) for cell in _WORDS))

    def to_dict(self) -> dict[str, int]:
        """The mapping that :meth:`of` reads, with a decision alone where its outcome is alike."""
        told = {}
        for decision, pair in (("accept", self[2:]), ("reject", self[:2])):
            if pair[0] == pair[1]:
                told[decision] = pair[0]
            else:
                told |= {f"{decision} {z}": pair[z] for z in (1, 0)}
        return {word: weight for word, weight in told.items() if weight}

    def in_words(self) -> str:
        """The people counted, for a sentence.

        >>> Weights.of("accept 1=2, reject", "numerator").in_words()
        'twice the people accepted with outcome 1 and people rejected'
        """
        if len(set(self)) == 1:
            return _times(self[0], "people")
        parts = [_times(weight, _named(word)) for word, weight in self.to_dict().items()]
        *first, last = parts
        return f"{', '.join(first)} and {last}" if first else last

    def __str__(self) -> str:
        """The text that :meth:`of` reads."""
        weighted = self.to_dict().items()
        return ", ".join(word if n == 1 else f"{word}={n}" for word, n in weighted)


@dataclass(frozen=True)
class Counting:
    """Counting says what a decision adds to the counters of its group.

    Attributes
    ----------
    gains
        What is added to ``seen`` and ``accepted``, by ``2 * accepted + told``.
    outcome
        People are *told* apart by whether they have this outcome; ``None``: everybody is told,
        and no outcome is needed.
    """

    gains: tuple[Gain, Gain, Gain, Gain]
    outcome: bool | None

    def gain(self, accepted: bool, outcome: bool | None) -> Gain:
        """What one decision adds to ``seen`` and ``accepted``; the outcome may not be known.

        >>> from fairshield import EqualOpportunity
        >>> count = EqualOpportunity("0.1").counting
        >>> count.gain(True, True), count.gain(False, True), count.gain(True, False)
        ((1, 1), (1, 0), (0, 0))
        """
        return self.gains[2 * accepted + (self.outcome is None or outcome == self.outcome)]

    def possible(self, accepted: bool) -> tuple[Gain, ...]:
        """What one decision may add, whichever outcome is observed."""
        untold, told = self.gains[2 * accepted], self.gains[2 * accepted + 1]
        return (untold, told) if self.labelled else (told,)

    def outcome_of_people(self, name: object) -> bool | None:
        """The outcome of those who are relevant; raises if ``name`` does not count people."""
        if self.of_people:
            return self.outcome
        raise InvalidValueError(
            f"{name} counts decisions, not people, and this counts people: use synthesize, Shield, "
            "Run, verify, simulate, explain and audit, Static-Fair, Dynamic and exact periodic "
            "shields, or a property of the share of people accepted, such as equal opportunity"
        )

    @property
    def labelled(self) -> bool:
        """Whether decisions must be followed by their outcome."""
        return self.outcome is not None

    def awaits(self, accepted: bool) -> bool:
        """Whether the outcome of a person with this decision changes the counters."""
        return len(set(self.possible(accepted))) > 1

    @cached_property
    def of_people(self) -> bool:
        """Whether relevant people are seen, and those of them accepted who are accepted."""
        return self == PEOPLE[self.outcome]

    @cached_property
    def most(self) -> int:
        """The most that one decision adds to ``seen``."""
        return max(seen for seen, _ in self.gains)

    @cached_property
    def steady(self) -> bool:
        """Whether every decision adds exactly 1 to ``seen``, whatever its outcome."""
        return {gain[0] for y in (False, True) for gain in self.possible(y)} == {1}

    @property
    def taken(self) -> str:
        """What connects the two counters in words: so many *accepted of* so many."""
        return "accepted of" if self.of_people else "of"

    def fits(self, seen: int, decided: int) -> bool:
        """Whether so many decisions can add up to ``seen`` over all groups."""
        return seen == decided if self.steady else seen <= self.most * decided

    def told(self, outcomes: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Who is told, of people with these outcomes."""
        if self.outcome is None:
            return np.ones(outcomes.shape, np.bool_)
        told: NDArray[np.bool_] = outcomes == self.outcome
        return told

    def gained(
        self, group: NDArray[Any], accepted: NDArray[np.bool_], told: NDArray[np.bool_], n: int
    ) -> NDArray[np.int64]:
        """``(…, decisions + 1, 2 n)``: counters before each decision, and after all."""
        here = [group == g for g in range(n)]
        if self.of_people:
            mine = [told & m for m in here]
            steps = np.stack([x for m in mine for x in (m, m & accepted)], axis=-1)
        else:
            each = np.array(self.gains, np.int64)[2 * accepted.astype(np.int8) + told]
            steps = np.concatenate([np.where(m[..., None], each, 0) for m in here], axis=-1)
        *runs, length, width = steps.shape
        counters = np.zeros((*runs, length + 1, width), np.int64)
        np.cumsum(steps, axis=-2, out=counters[..., 1:, :])
        return counters


PEOPLE: dict[bool | None, Counting] = {
    None: Counting(((0, 0), (1, 0), (0, 0), (1, 1)), None),
    True: Counting(((0, 0), (1, 0), (0, 0), (1, 1)), True),
    False: Counting(((0, 0), (1, 0), (0, 0), (1, 1)), False),
}
"""How people are counted, by the outcome of those who are relevant; ``None``: everybody is."""


def counting_of(numerator: Weights, denominator: Weights) -> Counting:
    """The counting of a rate.

    It is one of :data:`PEOPLE` where it counts people accepted, or rejected, among everybody or
    among those with one outcome: a rate of rejections differs as much as that of acceptances.
    """
    for word, part, whole in zip(_WORDS, numerator, denominator, strict=True):
        if part > whole:
            raise InvalidValueError(
                f"the numerator counts {word!r} {part} times and the denominator {whole} times: a "
                "rate needs every weight of its numerator to be at most that of its denominator"
            )
    factor = math.gcd(*numerator, *denominator)
    if factor > 1:
        raise InvalidValueError(
            f"all weights of {numerator} and of {denominator} are multiples of {factor}: divide "
            "them by it, which changes no rate"
        )
    if numerator == denominator:
        raise InvalidValueError(
            f"the rate of {numerator} among {denominator} is always 1: leave something out of the "
            "numerator"
        )
    rejected, accepted = Weights(1, 1, 0, 0), Weights(0, 0, 1, 1)
    for outcome, people in _DENOMINATORS.items():
        parts = _within(accepted, people), _within(rejected, people)
        if denominator == people and numerator in parts:
            return PEOPLE[outcome]
    gains = tuple(zip(denominator, numerator, strict=True))
    by_outcome = gains[0] != gains[1] or gains[2] != gains[3]
    return Counting((gains[0], gains[1], gains[2], gains[3]), True if by_outcome else None)


_DENOMINATORS: dict[bool | None, Weights] = {
    None: Weights(1, 1, 1, 1),
    True: Weights(0, 1, 0, 1),
    False: Weights(1, 0, 1, 0),
}


def _within(part: Weights, whole: Weights) -> Weights:
    return Weights(*(p * w for p, w in zip(part, whole, strict=True)))


def after_gain(at: At, group: int, gain: Gain) -> At:
    """Counters after one more decision.

    >>> after_gain((3, 1, 2, 2), 1, (2, 0))
    (3, 1, 4, 2)
    """
    seen, accepted = gain
    if len(at) == 4:  # written out for speed: every outcome takes this path
        n_a, k_a, n_b, k_b = at
        if group:
            return n_a, k_a, n_b + seen, k_b + accepted
        return n_a + seen, k_a + accepted, n_b, k_b
    i = 2 * group
    return (*at[:i], at[i] + seen, at[i + 1] + accepted, *at[i + 2 :])


# Words --------------------------------------------------------------------------------------


def _told(told: Any, name: str) -> Iterator[tuple[Any, Any]]:
    if isinstance(told, Mapping):
        yield from told.items()
        return
    if not isinstance(told, str):
        raise InvalidValueError(
            f"{called(name)} maps decisions to weights, as in {{'accept 1': 1}}, or is a text such "
            f"as 'accept 1, reject 0', got {told!r}"
        )
    for part in told.split(","):
        word, equals, weight = part.partition("=")
        try:
            yield word.strip(), int(weight) if equals else 1
        except ValueError:
            yield word.strip(), weight.strip()


def _cells(word: Any, name: str) -> tuple[str, ...]:
    """The decisions with outcomes that a word names."""
    said = word
    if isinstance(word, tuple) and len(word) == 2:
        said = f"{word[0]} {int(word[1]) if word[1] in (0, 1) else word[1]}"
    found = tuple(cell for cell in _WORDS if said in (cell, cell.split()[0]))
    if not found:
        raise InvalidValueError(
            f"{called(name)} knows no {word!r}: say 'accept' or 'reject', perhaps with an outcome, "
            "as in 'accept 1'"
        )
    return found


def _checked(weight: Any, word: Any, name: str) -> int:
    if not is_whole(weight) or not 0 <= weight <= LARGEST_WEIGHT:
        raise InvalidValueError(
            f"the weight of {word!r} in {called(name)} must be a whole number from 0 to "
            f"{LARGEST_WEIGHT}, got {weight!r}"
        )
    return int(weight)


def _named(word: str) -> str:
    decision, _, outcome = word.partition(" ")
    return f"people {decision}ed" + (f" with outcome {outcome}" if outcome else "")


def _times(weight: int, people: str) -> str:
    if weight == 1:
        return people
    return f"twice the {people}" if weight == 2 else f"{weight} times the {people}"
