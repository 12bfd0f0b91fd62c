"""``render`` turns a dossier into HTML; wording and layout are in the template."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from fairshield._version import __version__
from fairshield.analysis.report import Window
from fairshield.base.counts import in_words
from fairshield.inputs import InputSchedule
from fairshield.periodic import PeriodicPolicy
from fairshield.reports.dossier import charts, words
from fairshield.reports.dossier.content import Dossier, Overruled
from fairshield.reports.dossier.running import COLOURS, running
from fairshield.reports.plots import tenths
from fairshield.spec import tally

MARK = '<meta name="generator" content="fairshield audit">'
"""Text by which a page that this module wrote is recognised."""
_OPEN = 200
"""Rows up to which the tables of overruled decisions and of windows are unfolded."""
_NAMED = 12
"""Most unfair windows named in the verdict, most violations unfolded; tables have all."""


_PAIRS = 8
"""Most pairs of groups shown; of more, the widest."""
_FEW = 3
"""Groups up to which each has columns of its own for the counters before a decision."""


_UNPRINTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction in which a line is read."""


def render(dossier: Dossier) -> str:
    """The page as HTML, the same for the same dossier; control characters are made visible."""
    return _UNPRINTED.sub("\N{REPLACEMENT CHARACTER}", _rendered(dossier))


def _rendered(dossier: Dossier) -> str:
    found, series = words.promise(dossier), running(dossier)
    return _environment().get_template("audit.html.j2").render(
        d=dossier,
        r=dossier.report,
        mark=MARK,
        version=__version__,
        verdict=verdict(dossier),
        requirement=dossier.prop.requirement(dossier.groups),
        formula=words.formula(dossier.prop),
        exceptions=words.exceptions(dossier.prop, len(dossier.groups)),
        start=words.counted(dossier.report.start),
        promise=found,
        series=series,
        bias_chart=charts.bias_chart(dossier, series) if dossier.report.decisions else "",
        within_chart=charts.within_chart(dossier, series),
        every_way=charts.draws_ways(dossier),
        widest=_widest(dossier),
        pairs=_pairs(dossier),
        moment=dossier.report.moment or "in the whole log",
        ratios=any(group.ratio is not None for group in dossier.report.groups),
        bars=_bars(dossier),
        few=len(dossier.groups) <= _FEW,
        coloured=dossier.groups if _all_coloured(dossier) else ("all groups together",),
        tenths=_tenths(dossier),
        costs=_costs(dossier),
        by_window=_overruled_by_window(dossier),
        unfolded=len(dossier.overruled) <= _OPEN,
        short=len(dossier.report.windows) <= _OPEN,
        model=_model(dossier),
        has_time=any(person.time for person in dossier.overruled),
        has_case=any(person.case for person in dossier.overruled),
        named=_NAMED,
        colours=COLOURS,
        told=dossier.report.told or not dossier.report.decisions,
        names=in_words(dossier.groups),
    )  # fmt: skip


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fairshield.reports.dossier", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, share=share, whole=lambda n: f"{n:,}", rate=rate)
    environment.filters.update(sentence=sentence, fixed=fixed)
    return environment


def number(value: float | None) -> str:
    """A number with five significant digits; a dash for ``None``.

    >>> number(0.123456), number(45222.0), number(-1.5), number(None), number(float("inf"))
    ('0.12346', '45,222', '\N{MINUS SIGN}1.5', '–', '∞')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    text = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.5g}"
    return text.replace("-", "\N{MINUS SIGN}") if "e" not in text else text


def sentence(text: str) -> str:
    """``text`` with a capital letter at its beginning.

    >>> sentence("disparate impact held")
    'Disparate impact held'
    """
    return text[:1].upper() + text[1:]


def share(part: int, whole: int) -> str:
    """A part in percent."""
    return f"{100 * part / whole:.2f} %" if whole else "–"


def fixed(value: float | None) -> str:
    """A share or a ratio of shares; a dash where there is none."""
    return "–" if value is None else f"{value:.4f}"


def rate(count: tuple[int, int]) -> str:
    """A share of people seen who were accepted, from (seen, accepted)."""
    seen, accepted = count
    return fixed(accepted / seen if seen else None)


def verdict(dossier: Dossier) -> tuple[str, str, str]:
    """Level of the verdict (``good``, ``care``, ``bad``, ``plain``), a heading and a sentence."""
    level, title, text = _found(dossier)
    if dossier.report.difference is None:
        return level, title, text
    line = f"{text} Not every decision is the policy's: line {dossier.report.difference.line:,} is"
    also = "and" if level == "bad" else "but"
    return (
        "bad" if level == "bad" else "care",
        f"{title}, {also} decisions differ from the policy's",
        f"{line} not.",
    )


def _found(dossier: Dossier) -> tuple[str, str, str]:
    """What was found about the property."""
    report, noun = dossier.report, dossier.report.noun
    unfair = [i for i, window in enumerate(report.windows) if window.verdict == "unfair"]
    judged = report.judged
    some_exempt = f" {_exempt(dossier)}" if report.exempt else ""
    if not report.decisions:
        return "plain", "Nothing to check", "The log has no decisions."
    if report.conclusion == "violated":
        named = ", ".join(map(dossier.report.label, unfair[:_NAMED]))
        which = "" if dossier.report.by else f"number{_s(len(unfair))} "
        more = f" and {len(unfair) - _NAMED:,} more" if len(unfair) > _NAMED else ""
        return "bad", "Violated", (
            f"{report.prop} did not hold in {len(unfair):,} of {judged:,} {noun}{_s(judged)}: "
            f"{which}{named}{more}.{some_exempt}"
        )  # fmt: skip
    if report.conclusion == "inconclusive":
        return "care", "Inconclusive: the outcomes cannot tell", (
            f"{report.prop} cannot be checked with the outcomes in the log: {report.doubt}."
        )  # fmt: skip
    if not report.complete:
        return "plain", "Not finished", _unfinished(dossier)
    if report.conclusion == "exempt":
        where = f"any of the {judged:,} {noun}s" if judged > 1 else f"the {noun}"
        return "care", "Exempt: nothing was bound", (
            f"{report.prop} bound nothing in {where}. That is no finding of fairness: what was "
            "measured is below, and nothing was asked of it."
        )  # fmt: skip
    points = " and at every checkpoint" if dossier.report.rule.checkpoints else ""
    where = f"all {judged:,} {noun}s" if judged > 1 else f"the {noun}"
    if report.exempt:
        where = f"{report.bound:,} of {judged:,} {noun}s"
    text = f"{report.prop} held at the end of {where}{points}.{some_exempt}"
    reach = report.reach
    if reach is None or not reach.partial:
        return "good", "Held", text
    text = f"{text} {sentence(reach.told(noun))}."
    if reach.alone:
        return "care", "Held, but not every group was compared", text
    return "good", "Held", text


def _exempt(dossier: Dossier) -> str:
    """A sentence about exempt windows, where there are others as well."""
    n, noun = dossier.report.exempt, dossier.report.noun
    was = "was" if n == 1 else "were"
    return f"{n:,} {noun}{_s(n)} {was} exempt: the property bound nothing there."


def _unfinished(dossier: Dossier) -> str:
    report, noun = dossier.report, dossier.report.noun
    if not report.checked:
        return (
            f"No {noun} has ended, so {report.prop} did not have to hold yet (now "
            f"{report.windows[-1].finding})."
        )
    how = "bound nothing at the checkpoints so far"
    if report.verdict == "fair":
        how = "held at every checkpoint so far"
    return f"{report.prop} {how}; no {noun} has ended."


def _widest(dossier: Dossier) -> str:
    """The widest pair at the end of any window, in a sentence; empty if none has ended."""
    window = dossier.report.widest
    if window is None:
        return ""
    place = f" of {_place(dossier, window)}" if len(dossier.report.complete) > 1 else ""
    return f"At the end{place}: {window.finding}."


def _place(dossier: Dossier, window: Window) -> str:
    return dossier.report.name(dossier.report.windows.index(window))


def _pairs(dossier: Dossier) -> dict[str, Any] | None:
    """The widest pairs of the widest window; ``None`` with two groups or no complete window."""
    window = dossier.report.widest
    if window is None or len(dossier.groups) == 2:
        return None
    found = dossier.prop.findings(window.counts)
    rest = [finding.verdict for finding in found[_PAIRS:]]
    return {
        "place": _place(dossier, window),
        "counts": window.counts,
        "shown": found[:_PAIRS],
        "rest": f"{len(rest):,} more pair{_s(len(rest))}: {tally(rest)}." if rest else "",
    }


def _s(n: int) -> str:
    return "" if n == 1 else "s"


def _bars(dossier: Dossier) -> dict[str, Any]:
    """Charts of who was overruled, where anybody was."""
    if not dossier.overruled:
        return {}
    by_window, by_position, names = dossier.by_window, dossier.by_position, dossier.groups
    if not _all_coloured(dossier):
        by_window, by_position = (n.sum(axis=1, keepdims=True) for n in (by_window, by_position))
        names = ("all groups together",)
    return {
        f"By {dossier.report.noun}": charts.bar_chart(
            by_window, names, dossier.report.noun, dossier.report.rule.first
        ),
        f"By position in the {dossier.report.noun}": charts.bar_chart(
            by_position, names, "position", 1
        ),
    }


def _all_coloured(dossier: Dossier) -> bool:
    """Whether each group has a colour of its own."""
    return len(dossier.groups) <= COLOURS


def _tenths(dossier: Dossier) -> list[tuple[str, list[int]]]:
    """People overruled in each tenth of a window, by group."""
    people = dossier.by_position
    if not len(people):
        return []
    return [
        (f"{start + 1:,} to {end:,}", people[start:end].sum(axis=0).tolist())
        for start, end in tenths(len(people))
    ]


def _costs(dossier: Dossier) -> list[tuple[str, str]]:
    noun, policy = dossier.report.noun, dossier.policy
    if dossier.report.decisions and not dossier.report.told:
        found = [("paid", "cannot be told")]
    else:
        found = [("paid in all", number(dossier.report.paid))]
    paid = dossier.mean_paid()
    if paid is not None and dossier.report.told:
        mean, error = paid
        within = "" if error is None else f" ± {number(error)} (standard error)"
        found.append((f"paid per complete {noun}", f"{number(mean)}{within}"))
    if policy is None:
        return [*found, ("expected", "unknown: no policy was given")]
    window = policy.window_policy
    if window is None:
        return found + _expected_of_periods(dossier, policy)
    about = "" if window.decisions.tabled else " (an estimate)"
    expected = window.expected_cost
    found.append((f"expected by the policy per {noun}", f"{number(expected)}{about}"))
    if paid is not None:
        found.append(("paid minus expected", number(paid[0] - expected)))
    return found


def _expected_of_periods(dossier: Dossier, policy: PeriodicPolicy) -> list[tuple[str, str]]:
    cost, periods = policy.outlook()
    first = "the first period" if periods == 1 else f"the first {periods:,} periods"
    found = [(f"expected by the policy in {first}", number(cost))]
    if len(dossier.report.complete) >= periods:
        paid = math.fsum(window.paid for window in dossier.report.windows[:periods])
        found += [(f"paid in {first}", number(paid)), ("difference", number(paid - cost))]
    return found


def _overruled_by_window(dossier: Dossier) -> Iterator[tuple[int, list[Overruled], float]]:
    for window, people in groupby(dossier.overruled, key=lambda person: person.window):
        found = list(people)
        yield window, found, math.fsum(person.cost for person in found)


def _model(dossier: Dossier) -> list[tuple[str, list[list[str]]]]:
    """The input model of the policy: probabilities by group, proposal and cost level."""
    if dossier.policy is None:
        return []
    inputs = dossier.policy.inputs
    parts = (
        [(model, f"for {steps:,} decisions") for model, steps in inputs.parts]
        if isinstance(inputs, InputSchedule)
        else [(inputs, "at every decision")]
    )
    found = []
    for model, when in parts:
        outcomes = model.outcomes if dossier.policy.labelled else None
        rows = [
            [
                str(group),
                ("reject", "accept")[proposed],
                number(float(level)),
                number(float(model.probs[g, proposed, c])),
                *([] if outcomes is None else [number(float(outcomes[g, proposed, c]))]),
            ]
            for g, group in enumerate(model.groups)
            for proposed in (0, 1)
            for c, level in enumerate(model.levels)
        ]
        found.append((when, rows))
    return found
