"""What was required, what is guaranteed, and what is not: in sentences.

Says nothing that is not in docs/guarantees.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from markupsafe import Markup

from fairshield.counts import Counts, in_words
from fairshield.dossier.content import Dossier
from fairshield.long import LongPolicy
from fairshield.periodic import Guarantee, PeriodicPolicy
from fairshield.policy import Policy
from fairshield.spec import (
    BoundedRates,
    DifferenceOfRates,
    DisparateImpact,
    Property,
    ShareParity,
    tally,
)

Level = Literal["good", "care", "bad", "plain"]
_NAMED = 3
"""Groups up to which a sentence names each; the page lists them all."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What is guaranteed: a heading, sentences, conditions, and what is not guaranteed."""

    level: Level
    title: str
    sentences: tuple[str, ...]
    conditions: tuple[str, ...]
    limits: tuple[str, ...]


def exactly(value: Fraction) -> str:
    """A rational number as a decimal, and as it is meant.

    >>> exactly(Fraction(1, 10)), exactly(Fraction(1, 3)), exactly(Fraction(1))
    ('0.1 (exactly 1/10)', '0.3333 (exactly 1/3)', '1')
    """
    return str(value) if value.denominator == 1 else f"{float(value):.4g} (exactly {value})"


def requirement(prop: Property, groups: tuple[object, ...]) -> str:
    """What the property asks, in a sentence."""
    among = {None: "people", True: "people with outcome 1", False: "people with outcome 0"}
    share = f"share of {among[prop.relevant_outcome]} who are accepted"
    names = f"groups {in_words(groups)}" if len(groups) <= _NAMED else f"{len(groups)} groups"
    pair = names if len(groups) == 2 else f"any two of the {names}"
    if isinstance(prop, DifferenceOfRates):
        return f"The {share} differs between {pair} by at most {exactly(prop.bound)}."
    if isinstance(prop, ShareParity):
        return (
            f"The numbers of people who are accepted differ between {pair} by at most "
            f"{exactly(prop.bound)} of those accepted of the two."
        )
    if isinstance(prop, DisparateImpact) and prop.two_sided:
        return f"Of {pair}, the {share} in each is at least {exactly(prop.bound)} of the other's."
    if isinstance(prop, DisparateImpact):
        a, b = groups
        return f"The {share} in group {a} is at most {exactly(prop.bound)} times that in group {b}."
    if isinstance(prop, BoundedRates):
        return (
            f"The {share} lies, in each of the {names}, between {exactly(prop.lower)} and "
            f"{exactly(prop.upper)}."
        )
    return f"{prop.words()}."


_RATE_A, _RATE_B = (f"<i>k</i><sub>{g}</sub>/<i>n</i><sub>{g}</sub>" for g in "ab")
_MINUS = "\N{MINUS SIGN}"
_RATE_G = "<i>k</i><sub>g</sub>/<i>n</i><sub>g</sub>"


def formula(prop: Property) -> Markup | None:
    """The inequality that is decided, in integers: k people accepted of n."""
    if isinstance(prop, DifferenceOfRates):
        return Markup(f"|{_RATE_A} {_MINUS} {_RATE_B}| ≤ {prop.bound}")
    if isinstance(prop, ShareParity):
        a, b = (f"<i>k</i><sub>{g}</sub>" for g in "ab")
        return Markup(f"|{a} {_MINUS} {b}| ≤ {prop.bound} · ({a} + {b})")
    if isinstance(prop, DisparateImpact) and prop.two_sided:
        p = prop.bound
        return Markup(f"{_RATE_A} ≥ {p} · {_RATE_B} and {_RATE_B} ≥ {p} · {_RATE_A}")
    if isinstance(prop, DisparateImpact):
        return Markup(f"{_RATE_A} ≤ {prop.bound} · {_RATE_B}")
    if isinstance(prop, BoundedRates):
        return Markup(f"{prop.lower} ≤ {_RATE_G} ≤ {prop.upper} for every group g")
    return None


def exceptions(prop: Property, n_groups: int = 2) -> list[str]:
    """When the property does not bind."""
    found = []
    least = (
        "1 person who counts" if prop.min_support == 1 else f"{prop.min_support:,} people who count"
    )
    if prop.min_support and n_groups > 2:
        found.append(
            f"Two groups are compared once both have {least}; "
            "before, everything satisfies it between these two, whatever holds between others."
        )
    elif prop.min_support:
        found.append(f"It binds only once each group has {least}; before, everything satisfies it.")
    if prop.undefined == "rate-0":
        found.append("A group of which nobody who counts was seen has rate 0.")
    else:
        found.append("A group of which nobody who counts was seen bounds nothing.")
    return found


def counted(counts: Counts) -> str:
    """Counters in words."""
    if not any(count.seen for count in counts.values()):
        return "nobody seen"
    return ", ".join(
        f"{group} {count.accepted:,} accepted of {count.seen:,}" for group, count in counts.items()
    )


# Guarantees ---------------------------------------------------------------------------------


def promise(dossier: Dossier) -> Promise:
    """What the policy guarantees, on which conditions, and what it does not."""
    policy = dossier.policy
    if policy is None:
        return _no_policy(dossier)
    if isinstance(policy, PeriodicPolicy):
        found = _periodic(dossier, policy)
    else:
        found = _best_effort(policy) if policy.risk else _window(policy)
    if not policy.can_bind:
        found = _vacuous(policy)
    if policy.prop != dossier.prop:
        nothing = (
            f"What was checked on this page is {dossier.prop}. The policy was not made for it: "
            "whatever was found, another sequence of requests may turn out otherwise."
        )
        kept = (
            f"What follows is about {policy.prop} alone, for which the policy was made and which "
            "was not checked here."
        )
        return Promise(
            "care", f"The policy guarantees nothing about {dossier.prop}, which was checked",
            (nothing, kept, *found.sentences), found.conditions, found.limits,
        )  # fmt: skip
    return found


def _no_policy(dossier: Dossier) -> Promise:
    return Promise(
        "plain",
        "No policy was given: the log speaks for itself alone",
        (
            "The property was checked on what was logged. Whether it would have held for another "
            "sequence of requests cannot be said, nor whether a shield decided at all.",
        ),
        (),
        (
            "Whether the decisions are those of a shield: no policy was there to derive them from.",
            "Why proposals were overruled: reasons are what the log says, if it says any.",
            "What overruling was expected to cost.",
        ),
    )


_CARRIED_OUT = (
    "Every decision of the {noun} is taken by the shield, carried out as it was taken, and counted "
    "once, for the right group."
)
_OUTCOMES = "The outcome of every decision is told before the next one, also of those rejected."


def _conditions(noun: str, labelled: bool) -> tuple[str, ...]:
    return (_CARRIED_OUT.format(noun=noun), *((_OUTCOMES,) if labelled else ()))


def _window(policy: Policy) -> Promise:
    labelled = ", outcomes" if policy.labelled else ""
    points = ", ".join(f"{n:,}" for n in policy.due[:-1])
    also = f" and after {points} decisions" if points else ""
    sentences = [
        f"{policy.prop} holds after all {policy.horizon:,} decisions of every window{also}: on "
        f"every sequence of requests, whatever the groups, proposals, costs{labelled} and their "
        "order, and whether or not the input model is right.",
        "That is decided in whole numbers, without rounding."
        if not isinstance(policy, LongPolicy)
        else "Decisions are worked out as they come, and only such are made from which the "
        "property can still be kept whoever arrives; that is decided in whole numbers.",
    ]
    return Promise(
        "good", "Guaranteed on every sequence of requests", tuple(sentences),
        _conditions("window", policy.labelled), _limits("window"),
    )  # fmt: skip


def _vacuous(policy: Policy | PeriodicPolicy) -> Promise:
    if isinstance(policy, Policy):
        noun, where = "window", f"In a window of {policy.horizon:,} decisions"
    else:
        noun, where = "period", f"In periods of {policy.period:,} decisions, however many come,"
        if policy.last is not None:
            where = f"In {policy.last:,} periods of {policy.period:,} decisions"
    return Promise(
        "care",
        "Nothing is promised: the property can never bind",
        (
            f"{where} nobody can be treated so that {policy.prop} fails: it bounds nothing, "
            "whatever is decided.",
        ),
        (),
        ("Fairness of any kind: no decision was ever at stake.", *_limits(noun)),
    )


def _best_effort(policy: Policy) -> Promise:
    return Promise(
        "bad",
        "NOT guaranteed: the policy is a best effort",
        (
            f"No shield can guarantee {policy.prop} from the counters this policy starts from. It "
            f"makes a violation as improbable as can be: {policy.risk:.3g} per window, if the "
            "input model is right. From a moment on at which fairness can be guaranteed again, "
            "it is.",
        ),
        _conditions("window", policy.labelled),
        ("That any window ends fair.", *_limits("window")),
    )


def _periodic(dossier: Dossier, policy: PeriodicPolicy) -> Promise:
    every = f"at the end of every {policy.period:,} decisions, of all decisions since the beginning"
    conditions = _conditions("run", policy.labelled)
    if policy.unconditional:
        last = "" if policy.last is None else f", for {policy.last:,} periods"
        sentence = (
            f"{policy.prop} holds {every}{last}: on every sequence of requests, by the theorem on "
            f"{policy.theorem}."
        )
        level: Level = "good"
        title = "Guaranteed on every sequence of requests"
    elif policy.condition is not None:
        sentence = (
            f"{policy.prop} holds {every}, if every period meets the first condition below "
            f"({policy.theorem}). Where one does not, the property may fail."
        )
        level, title = "care", "Guaranteed under a condition on who arrives"
        conditions = (f"In every period {policy.condition.words}.", *conditions)
        if not policy.attainable:
            level, title = "bad", "NOT guaranteed: no period can meet the condition"
    else:
        sentence = f"No theorem about {policy.title} shields speaks of {policy.prop}."
        level, title = "bad", "NOT guaranteed: no theorem speaks of this property"
    standing = dossier.standing
    if standing is not None and standing.broken_at is not None and level != "bad":
        level, title = "bad", "The condition of the guarantee was not met in this log"
    told = () if standing is None else (f"In this log {_standing(standing)}; {_ends(dossier)}.",)
    return Promise(level, title, (sentence, *told), conditions, _limits("period"))


def _standing(found: Guarantee) -> str:
    """How it went in this log."""
    if found.broken_at is not None:
        by = {
            "arrivals": "by who arrived",
            "person": "by a person's decision",
            "start": "by the counters at the start",
            "period": "by the length of the periods",
        }
        met = f"the condition was broken at decision {found.broken_at:,}"
        met += f", {by[found.broken_by]}" if found.broken_by in by else ""
    elif found.unconditional:
        met = "nothing stood in its way"
    elif found.condition is None:
        met = "no theorem applies"
    else:
        met = "every period met the condition so far"
    return met


def _ends(dossier: Dossier) -> str:
    """How the periods of the log ended."""
    ends = [window.finding.verdict for window in dossier.report.windows if window.complete]
    return f"of the ends of {len(ends):,} periods: {tally(ends)}" if ends else "no period has ended"


def _limits(noun: str) -> tuple[str, ...]:
    between = (
        "The property between these moments: on the way bias may be larger."
        if noun == "window"
        else "The property within a period, or of one period by itself."
    )
    unions = ("Several windows taken together.",) if noun == "window" else ()
    return (
        between,
        *unions,
        "Like treatment of like people: who came before may decide.",
        "The expected cost, unless requests come as the input model says.",
        "Whether this property between these groups is the right one.",
    )
