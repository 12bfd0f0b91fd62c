"""``account`` says in plain words why a published number may differ from ours.

A reason is a function of both numbers; it returns an empty text where it does not apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fairshield_experiments.results import cells
from fairshield_experiments.results.parts import Verdict
from fairshield_experiments.results.published import Published, published
from fairshield_experiments.results.statistics import Estimate
from fairshield_experiments.results.trainings import LIKELY, Spread
from fairshield_experiments.results.verdicts import verdict

NO_REASON = "No reason known."
NOT_SHOWN = "None of this is shown to explain it all: the reason is not known."

_SO: dict[Verdict, str] = {
    "agrees": "which agrees",
    "close": "which is close",
    "differs": "which differs too",
}


@dataclass(frozen=True)
class Case:
    """Case is a published number and what we found in its place."""

    number: Published
    ours: Estimate

    @property
    def away(self) -> float:
        """Ours minus the published value."""
        return self.ours.value - self.number.value


def account(
    number: Published,
    ours: Estimate,
    others: Iterable[tuple[str, Estimate]] = (),
    notes: Iterable[str] = (),
    spread: Spread | None = None,
) -> str:
    """All known reasons why our number is not the published one, as sentences.

    Parameters
    ----------
    others
        The same measured in other ways, each with words that complete "... we get".
    notes
        Sentences about this very number.
    spread
        Our number in several trainings.
    """
    case, others = Case(number, ours), tuple(others)
    sentences = [
        *(_other(number, words, found) for words, found in others),
        *notes,
        spread.sentence(number) if spread else "",
        *(reason(case) for reason in REASONS.get(number.item, ())),
    ]
    likely = spread is not None and spread.chance(number) >= LIKELY
    if not likely and _unexplained(case, [found for _, found in others]):
        sentences.append(NOT_SHOWN)
    return " ".join(filter(None, sentences)) or NO_REASON


def _unexplained(case: Case, others: list[Estimate]) -> bool:
    """Whether a difference remains that neither chance nor another way of measuring explains."""
    simulated = case.number.item in ("table-fairness", "table-utility", "table-periodic")
    elsewhere = any(verdict(case.number, found) in ("agrees", "close") for found in others)
    return simulated and not _is_chance(case) and not elsewhere


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
    both = math.sqrt(2) * case.ours.error
    return math.isfinite(both) and abs(case.away) <= 2 * both + case.number.digit / 2


def _optimal(case: Case) -> str:
    """A reason: our shield intervenes least, so others have less bias and more loss."""
    number = case.number
    less_bias = number.item == "table-fairness" and case.away > 0
    more_loss = number.item == "table-utility" and case.away < 0
    if number.shield != "finite-horizon" or _is_chance(case) or not (less_bias or more_loss):
        return ""
    return (
        "Ours has the least expected cost that the bound and the input model allow. A shield that "
        f"intervenes more would show {'less bias' if less_bias else 'more loss'}, as the published "
        "one does."
    )


def _chance(case: Case) -> str:
    """A reason: the published average has a sampling error as well, about as large as ours."""
    error = case.ours.error
    if not math.isfinite(error):
        return ""
    both = math.sqrt(2) * error
    if _is_chance(case):
        return (
            "The published runs were not seeded and their average has a sampling error of its own; "
            f"if it is as large as ours (± {error:.2g}), the draw of people may explain it."
        )
    if both == 0:
        return ""
    return (
        "Which people were drawn does not explain the difference: it is "
        f"{abs(case.away) / both:.1f} standard errors, if the published one is as large as ours."
    )


def _population(case: Case) -> str:
    return (
        "The published runs drew people from a fresh random 60 % of all data, training data "
        "included; ours are drawn from people held out of training."
    )


def _classifiers(case: Case) -> str:
    return (
        "Each classifier was trained once, there and here, with different seeds and splits; our "
        "standard error does not include that."
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
            "states; how it was measured is not known."
        )
    return f"The published table measured {_MEASURED[number.shield]}."


def _training(case: Case) -> str:
    error = f" (± {case.ours.error:.2g})" if math.isfinite(case.ours.error) else ""
    return (
        "Both numbers are of a single model; another seed of the split or the training moves "
        f"them, and our standard error{error} covers the choice of test people only."
    )


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
    "table-performance": (_training,),
    "table-fairness": (_text_or_table, _chance, _optimal, _run_numbers, _population, _classifiers),
    "table-utility": (_chance, _optimal, _population, _classifiers),
    "table-periodic": (_condition, _chance, _population, _classifiers),
    "table-resources": (_machine, _same_sentence),
}
"""Reasons by item, most telling first."""
