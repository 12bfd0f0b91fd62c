"""Sentences about what was required, what is guaranteed, and what is not guaranteed.

Each of them is stated, and proved where it is a theorem, in docs/guarantees.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup, escape

from fairshield.base.counts import Counts
from fairshield.periodic import Guarantee, PeriodicPolicy
from fairshield.policy import Policy
from fairshield.reports.dossier.content import Dossier
from fairshield.spec import Property, tally

Level = Literal["good", "care", "bad", "plain"]


@dataclass(frozen=True, slots=True)
class Promise:
    """Promise holds the words of a guarantee, of its conditions and of its limits."""

    level: Level
    title: str
    sentences: tuple[str, ...]
    conditions: tuple[str, ...]
    limits: tuple[str, ...]


_COUNTER = re.compile("([kn])_([abg])")


def formula(prop: Property) -> Markup | None:
    """The inequality that is decided, in integers: k people accepted of n."""
    plain = prop.formula()
    if plain is None:
        return None
    return Markup(_COUNTER.sub(r"<i>\1</i><sub>\2</sub>", str(escape(plain))))


def exceptions(prop: Property, n_groups: int = 2) -> list[str]:
    """Sentences that say when the property does not bind."""
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
        return _NO_POLICY
    window = policy.window_policy
    if window is None:
        found = _periodic(dossier, policy)
    else:
        if window.fair_in_support:
            found = _in_support(dossier, window)
        else:
            found = _best_effort(window) if window.risk else _window(window)
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


_NO_POLICY = Promise(
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
        policy.decisions.grounds,
    ]
    return Promise(
        "good", "Guaranteed on every sequence of requests", tuple(sentences),
        _conditions("window", policy.labelled), _limits(goes_on=False),
    )  # fmt: skip


def _vacuous(policy: PeriodicPolicy) -> Promise:
    if not policy.goes_on:
        span = f"In a window of {policy.length:,} decisions"
    elif policy.last is None:
        span = f"In periods of {policy.length:,} decisions, however many come,"
    else:
        span = f"In {policy.last:,} periods of {policy.length:,} decisions"
    return Promise(
        "care",
        "Nothing is promised: the property can never bind",
        (
            f"{span} nobody can be treated so that {policy.prop} fails: it bounds nothing, "
            "whatever is decided.",
        ),
        (),
        ("Fairness of any kind: no decision was ever at stake.", *_limits(goes_on=policy.goes_on)),
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
        ("That any window ends fair.", *_limits(goes_on=False)),
    )


def _in_support(dossier: Dossier, policy: Policy) -> Promise:
    standing = dossier.standing
    level: Level = "care"
    title = "Guaranteed only on sequences that the input model holds possible"
    told: tuple[str, ...] = ()
    if standing is None:
        told = ("Whether others came in this log was not looked at.",)
    elif standing.broken_at is not None:
        level, title = "bad", "NOT guaranteed: something came that the input model holds impossible"
        if standing.broken_by == "person":
            title = "NOT guaranteed: a person decided against the shield"
        told = (f"In this log {_standing(standing)}.",)
    else:
        told = ("In this log none other came.",)
    return Promise(
        level,
        title,
        (
            f"{policy.prop} holds after all {policy.horizon:,} decisions of a window if every "
            "request and outcome of it is one to which the input model gives a positive "
            "probability. The policy was made to trust that no other ever comes. If one does, the "
            "window may end unfair.",
            *told,
        ),
        (
            "Every request and outcome is one to which the input model gives a positive "
            "probability: group, proposal and cost level, and whether the person counts.",
            *_conditions("window", policy.labelled),
        ),
        (
            "That any window ends fair in which another request or outcome came.",
            *_limits(goes_on=False),
        ),
    )


def _periodic(dossier: Dossier, policy: PeriodicPolicy) -> Promise:
    every = f"at the end of every {policy.length:,} decisions, of all decisions since the beginning"
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
        sentence = policy.no_theorem(str(policy.prop))
        level, title = "bad", "NOT guaranteed: no theorem speaks of this property"
    standing = dossier.standing
    if standing is not None and standing.broken_at is not None and level != "bad":
        level, title = "bad", "The condition of the guarantee was not met in this log"
    told = () if standing is None else (f"In this log {_standing(standing)}; {_ends(dossier)}.",)
    return Promise(level, title, (sentence, *told), conditions, _limits(goes_on=True))


def _standing(found: Guarantee) -> str:
    """Whether the conditions of the guarantee were met in this log, in words."""
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


def _limits(*, goes_on: bool) -> tuple[str, ...]:
    if goes_on:
        moments = ["The property within a period, or of one period by itself."]
    else:
        moments = [
            "The property between these moments: on the way bias may be larger.",
            "Several windows taken together.",
        ]
    return (
        *moments,
        "Like treatment of like people: who came before may decide.",
        "The expected cost, unless requests come as the input model says.",
        "Whether this property between these groups is the right one.",
    )
