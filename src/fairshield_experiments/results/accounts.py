"""``account`` says in plain words why a published number may differ from ours.

A reason is a function of both numbers; it returns an empty text where it does not apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from fairshield_experiments.published_runs.departures import WORDS, Departure
from fairshield_experiments.results import cells
from fairshield_experiments.results.departed import NOTHING, Departed
from fairshield_experiments.results.parts import Verdict
from fairshield_experiments.results.published import Published, published
from fairshield_experiments.results.statistics import Estimate
from fairshield_experiments.results.trainings import Spread
from fairshield_experiments.results.verdicts import verdict

NO_REASON = "No reason known."

_SO: dict[Verdict, str] = {
    "agrees": "which agrees",
    "close": "which is close",
    "differs": "which differs too",
}


@dataclass(frozen=True)
class Case:
    """Case is a published number and what we found in its place.

    ``training`` is the standard deviation of single trainings, each with people of its own; NaN:
    it was trained once.
    """

    number: Published
    ours: Estimate
    training: float = math.nan

    @staticmethod
    def of(number: Published, ours: Estimate, spread: Spread | None) -> Case:
        """A case; ``spread`` is our number in several trainings, if there were several."""
        return Case(number, ours, math.nan if spread is None else spread.deviation)

    @property
    def away(self) -> float:
        """Ours minus the published value."""
        return self.ours.value - self.number.value

    @property
    def error(self) -> float:
        """Standard error of ours, training included where it is known."""
        known = not math.isnan(self.training)
        return max(self.ours.error, self.training) if known else self.ours.error

    @property
    def deviations(self) -> float:
        """How many standard errors the difference is, if the published one is as large as ours."""
        beyond = max(abs(self.away) - self.number.digit / 2, 0.0)
        both = math.sqrt(2) * self.error
        return beyond / both if both else math.inf * (beyond > 0)

    @property
    def chance(self) -> float:
        """The probability of a difference as large as this, or larger, by chance alone."""
        return math.erfc(self.deviations / math.sqrt(2))


def account(
    number: Published,
    ours: Estimate,
    others: Iterable[tuple[str, Estimate]] = (),
    notes: Iterable[str] = (),
    *,
    departed: Departed = NOTHING,
    spread: Spread | None = None,
) -> str:
    """All known reasons why our number is not the published one, as sentences.

    Parameters
    ----------
    others
        The same measured in other ways, each with words that complete "... we get".
    notes
        Sentences about this very number.
    departed
        The same with departures of the published runs from the paper's text.
    spread
        Our number in several trainings.
    """
    case = Case.of(number, ours, spread)
    sentences = [
        *(_other(number, words, found) for words, found in others),
        *notes,
        spread.sentence(number) if spread else "",
        *_with_departures(case, departed),
        left_over(number, departed, spread),
        *(reason(case) for reason in REASONS.get(number.item, ())),
    ]
    return " ".join(filter(None, sentences)) or NO_REASON


def _with_departures(case: Case, departed: Departed) -> Iterator[str]:
    """What departures of the published runs make of our number, and what they leave."""
    number = case.number
    if departed.together is None:
        return
    yield _other(number, "With all departures of the published runs", departed.together)
    switch = departed.switch(number, case.ours)
    if switch in departed.alone:
        yield f"The departure {switch} alone gives {_text(number, departed.alone[switch])}."


def left_over(number: Published, departed: Departed, spread: Spread | None = None) -> str:
    """What all departures of the published runs do not explain, and with what chance."""
    if departed.together is None or verdict(number, departed.together) != "differs":
        return ""
    case = Case.of(number, departed.together, spread)
    if not math.isfinite(case.error) or case.error == 0:
        return "What is left has no known chance, as there is no standard error."
    return f"What is left {_by_chance(case)}."


def _by_chance(case: Case) -> str:
    """How probable a difference is."""
    training = "" if math.isnan(case.training) else ", training included"
    percent = 100 * case.chance
    often = f"{percent:.2g} % of cases" if percent >= 0.1 else "fewer than 1 in 1000 cases"
    return (
        f"is {case.deviations:.1f} standard errors, if the published one is as large as ours"
        f"{training}: chance alone makes as much in {often}"
    )


def _text(number: Published, found: Estimate) -> str:
    """Our number with one digit more than the published one."""
    decimals = max(0, 1 - round(math.log10(number.digit)))
    unit = f" {number.unit}" if number.unit else ""
    return cells.estimate(found, decimals) + unit


def _other(number: Published, words: str, found: Estimate) -> str:
    so = _SO.get(verdict(number, found))
    return f"{words} we get {_text(number, found)}, {so}." if so else ""


def _is_chance(case: Case) -> bool:
    """Whether the difference is within what chance causes, if both have our standard error."""
    return math.isfinite(case.error) and case.deviations <= 2


def _departures(case: Case) -> str:
    """A reason: the departures of the published runs that can change this number."""
    found = "; ".join(f"{name} ({WORDS[name]})" for name in _changing(case.number))
    return f"The published runs departed from the text here: {found}."


def _changing(number: Published) -> Iterator[Departure]:
    """Departures that can change a number, those that change it most first."""
    if number.shield != "none":
        if number.shield == "static-bounded":
            yield from ("missing-entries", "static-bounds")
        if number.prop == "equal-opportunity":
            yield "person-twice"
        yield "prices"
    yield "population"
    if number.measure in ("unfair runs", "fairness satisfied"):
        yield "judging"


def _chance(case: Case) -> str:
    """A reason: the published average has a sampling error as well, about as large as ours."""
    if not math.isfinite(case.error) or case.error == 0:
        return ""
    if _is_chance(case):
        return (
            "The published runs were not seeded and their average has a sampling error of its own; "
            f"if it is as large as ours (± {case.error:.2g}), the draw of people may explain it."
        )
    return f"Which people were drawn does not explain the difference: it {_by_chance(case)}."


def _classifiers(case: Case) -> str:
    with_it = "leaves that out" if math.isnan(case.training) else "includes that"
    return (
        "Each classifier was trained once, there and here, with different seeds and splits; our "
        f"standard error {with_it}."
    )


def _run_numbers(case: Case) -> str:
    """A reason: no number of the 4200 windows is the published share.

    7 environments, 5 learners and 4 bounds with 30 runs each are 4200 windows.
    """
    number, windows = case.number, 4200
    nearest = 100 * round(number.value * windows / 100) / windows
    if number.unit != "%" or abs(nearest - number.value) <= number.digit / 2:
        return ""
    return (
        f"The text says 30 runs, but {number.value:g} % of {windows} windows is not a whole number "
        "of windows; 50 runs fit."
    )


def _text_or_table(case: Case) -> str:
    """A reason: text and table of the paper give different values of the same share."""
    number = case.number
    if number.measure != "unfair runs":
        return ""
    twins = [
        n
        for n in published(number.item)
        if (n.measure, n.prop, n.shield) == (number.measure, number.prop, number.shield)
        and n.source != number.source
        and abs(n.value - number.value) > (n.digit + number.digit) / 2
    ]
    return " ".join(
        f"The paper gives this share twice, as {number.value:g} % ({number.source}) and as "
        f"{twin.value:g} % ({twin.source}); ours is nearer to "
        f"{min((number, twin), key=lambda n: abs(n.value - case.ours.value)).value:g} %."
        for twin in twins
    )


_MEASURED = {
    "static-fair": "that both groups had equally many people at each end of a period",
    "static-bounded": "that both groups had more than ⌈1/κ⌉ people in every period, where the "
    "theorem is content with as many",
    "dynamic": "that the hard problem of each period was feasible",
}


def _condition(case: Case) -> str:
    number = case.number
    if number.measure != "condition satisfied":
        return ""
    if (number.shield, number.prop) == ("dynamic", "equal-opportunity"):
        return (
            f"The published {number.value:g} % does not measure the assumption that the theorem "
            "states: a run counts if, at every start of a period, k_a = 0 or n_b ≤ k_a · n_a, an "
            "argument slip; ours is measured in the same way."
        )
    return f"The published table measured {_MEASURED[number.shield]}."


def _training(case: Case) -> str:
    """A reason: another split or training gives other models."""
    error = f" (± {case.error:.2g})" if math.isfinite(case.error) else ""
    covers = "choice of test people only" if math.isnan(case.training) else "training as well"
    return (
        "Both numbers are of a single model; another seed of the split or the training moves "
        f"them, and our standard error{error} covers the {covers}."
    )


def _chance_of_model(case: Case) -> str:
    if not math.isfinite(case.error) or case.error == 0:
        return ""
    return f"The difference {_by_chance(case)}."


def _machine(case: Case) -> str:
    number, ours = case.number, case.ours
    if ours.value <= 0:
        return ""
    less = number.value / ours.value
    times = cells.ratio(less if less >= 1 else 1 / less)
    return (
        f"The cost of another implementation, not a result: ours needs {times} "
        f"{'less' if less >= 1 else 'more'}."
    )


def _same_sentence(case: Case) -> str:
    if case.number.source != "sec:experiments, periodic":
        return ""
    return (
        "The text repeats for T = 50 what it says of the longer horizons; measured again, the "
        "published implementation needs less at T = 50."
    )


REASONS: dict[str, tuple[Callable[[Case], str], ...]] = {
    "table-performance": (_training, _chance_of_model),
    "table-fairness": (_departures, _text_or_table, _chance, _run_numbers, _classifiers),
    "table-utility": (_departures, _chance, _classifiers),
    "table-periodic": (_condition, _departures, _chance, _classifiers),
    "table-resources": (_machine, _same_sentence),
}
"""Reasons by item, most telling first."""
