"""``print_report`` prints what ``fairshield audit`` found, for people."""

from __future__ import annotations

import click

from fairshield.analysis.report import AuditReport, Window
from fairshield.base.counts import Counts, Group, in_words
from fairshield.cli.audit_log import Found
from fairshield.cli.output import number_of, positions, print_facts, print_table, printable
from fairshield.reports.plots import sparkline, tenths
from fairshield.spec import Finding, tally

_SHOWN = 10
"""Violations and periods listed; ``--json`` has all, and every window."""
_PAIRS = 5
"""Pairs of groups listed, the widest, where there are more than two groups."""
_GROUPS = 6
"""Groups up to which each is named in a line."""


def print_report(found: Found) -> None:
    """What was found, for people."""
    report, guarantee = found.report, found.guarantee
    print_facts(
        [
            ("verdict", _verdict(report)),
            *_another_property(found),
            (f"{report.noun}s", _windows(report)),
            *_start(found),
            ("decisions", f"{report.decisions:,}"),
            *_interventions(report),
            ("widest pair", _widest(report)),
            *_derived_again(found),
            *_followed(report),
            *([] if report.doubt is None else [("outcomes", report.doubt)]),
            *([] if guarantee is None else [("guarantee", str(guarantee))]),
        ]
    )
    if report.violations:
        _print_violations(report)
    if len(report.groups) > 2:
        _print_groups(found)
    if report.widest is not None:
        _print_pairs(found, report.widest)
    if (report.rule.goes_on or report.by is not None) and report.complete:
        _print_ends(report)
    if report.overruled and len(report.overruled_by_position) > 1:
        _print_positions(report)


def _followed(report: AuditReport) -> list[tuple[str, str]]:
    if not report.followed:
        return []
    by_group = ", ".join(f"{printable(str(g))} {n:,}" for g, n in report.followed.items())
    return [("not counted", f"{sum(report.followed.values()):,} of undeclared groups: {by_group}")]


def _verdict(report: AuditReport) -> str:
    if not report.decisions:
        return "nothing to check: the log has no decisions"
    told = _told(report)
    if report.difference is None:
        return told
    if not report.holds:
        return f"{told}; and line {report.difference.line:,} is not the policy's"
    return f"NOT THE POLICY'S: line {report.difference.line:,} is not what it decides; {told}"


def _told(report: AuditReport) -> str:
    """The verdict on the property, in words."""
    noun, judged = report.noun, report.judged
    if report.conclusion == "violated":
        of = f"{report.unfair:,} of {number_of(judged, noun)}"
        return f"VIOLATED: {report.prop} did not hold in {of}{_exempt(report)}"
    if report.conclusion == "inconclusive":
        return f"INCONCLUSIVE: {report.prop} cannot be checked with the outcomes at hand"
    if not report.complete:
        return _unfinished(report)
    if report.conclusion == "exempt":
        where = f"any of {judged:,} {noun}s" if judged > 1 else f"the {noun}"
        remedy = f"take longer {noun}s, or ask for less support"
        return f"EXEMPT: {report.prop} bound nothing in {where}: to compare more people, {remedy}"
    if report.exempt:
        of = f"{report.bound:,} of {number_of(judged, noun)}"
        return f"{report.prop} held in {of}{_exempt(report)}{_reach(report)}"
    where = f"every {noun}" if len(report.complete) > 1 else f"the {noun}"
    return f"{report.prop} held at the end of {where}{_reach(report)}"


def _reach(report: AuditReport) -> str:
    reach = report.reach
    return f"; {reach.told(report.noun)}" if reach is not None and reach.partial else ""


def _exempt(report: AuditReport) -> str:
    return f"; {report.exempt:,} exempt: it bound nothing there" if report.exempt else ""


def _unfinished(report: AuditReport) -> str:
    now = f"the {report.noun} is not finished (now {printable(report.windows[-1].finding)})"
    if not report.checked:
        return f"nothing had to hold yet: {now}"
    if report.verdict == "exempt":
        return f"EXEMPT: {report.prop} bound nothing at the checkpoints so far; {now}"
    return f"{report.prop} held at every checkpoint so far; {now}"


def _another_property(found: Found) -> list[tuple[str, str]]:
    policy = found.policy
    if policy is None or policy.prop == found.prop:
        return []
    return [("checked", f"{found.prop}, instead of the policy's own {policy.prop}")]


def _start(found: Found) -> list[tuple[str, str]]:
    """The line about counters at the start, which no decision of the log made."""
    start = found.report.start
    if not any(count.seen for count in start.values()):
        return []
    return [
        (
            "counted before",
            in_words(f"{c.accepted:,} of {c.seen:,} in {g}" for g, c in start.items()),
        )
    ]


def _windows(report: AuditReport) -> str:
    complete = len(report.complete)
    text = f"{complete:,} complete"
    if report.named:  # a log cannot tell whether its last calendar period is over
        last = "the last " if complete > 1 else ""
        text = f"{complete:,}, {last}as far as {report.windows[-1].last_date}"
    if len(report.windows) > complete:
        text += f", one unfinished after {report.windows[-1].decisions:,} decisions"
    if report.exempt:
        text += f"; bound in {report.bound:,}, exempt in {report.exempt:,}"
    return text


def _interventions(report: AuditReport) -> list[tuple[str, str]]:
    """Who was overruled, and at what cost, as far as the log tells."""
    if report.decisions and not report.told:
        return [("overruled", "cannot be told, the log has no 'proposed'; nor can the cost")]
    share = report.overruled / report.decisions if report.decisions else 0.0
    unknown = report.decisions - report.told
    more = f"; {unknown:,} more have no 'proposed'" if unknown else ""
    people = f"{report.overruled:,} ({share:.2%}): {_by_group(report.overruled_by_group)}{more}"
    return [("overruled", people), ("cost paid", f"{report.paid:.6g}")]


def _by_group(people: dict[Group, int]) -> str:
    """People by group; of many groups the largest."""
    named = list(people.items())
    if len(named) > _GROUPS:
        named = sorted(named, key=lambda entry: -entry[1])[:_PAIRS]
    text = ", ".join(f"{group} {n:,}" for group, n in named)
    left = sum(people.values()) - sum(n for _, n in named)
    more = len(people) - len(named)
    return f"{text}, {left:,} of {more:,} more groups" if more else text


def _widest(report: AuditReport) -> str:
    window = report.widest
    if window is None:
        return f"no {report.noun} has ended"
    return f"{report.name(report.windows.index(window))}: {window.finding}"


def _derived_again(found: Found) -> list[tuple[str, str]]:
    report, differs = found.report, found.report.difference
    if found.policy is None or not report.decisions:
        return []
    if differs is None:
        n = report.decisions
        text = f"all {n:,} decisions are the policy's" if n > 1 else "the decision is the policy's"
        return [("derived again", text)]
    if differs.expected is None:
        return [("not the policy's", f"line {differs.line}: {differs.reason}")]
    did, should = (("accepted", "rejected")[not y] for y in (differs.accepted, differs.expected))
    text = f"line {differs.line} {did}, the policy would have {should} ({differs.reason})"
    return [("not the policy's", text)]


def _print_groups(found: Found) -> None:
    """One line for each group; ratios where the property bounds them."""
    report, support = found.report, found.prop.min_support
    ratios = any(g.ratio is not None for g in report.groups)
    moment = report.moment or "of the whole log"
    click.echo(f"\nGroups {moment}{', with ratios to the highest rate' if ratios else ''}")
    rows = [
        [str(g.group), f"{g.seen:,}", f"{g.accepted:,}", _decimal(g.rate)]
        + ([_decimal(g.ratio)] if ratios else [])
        for g in report.groups
    ]
    print_table(["", "people", "accepted", "rate", *(["ratio"] if ratios else [])], rows)
    if ratios and any(g.seen < support for g in report.groups):
        click.echo(f"Groups of fewer than {support:,} people have no ratio, and set none.")


def _decimal(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _print_violations(report: AuditReport) -> None:
    click.echo("\nViolations")
    rows = [
        [
            report.name(violation.window),
            f"{violation.line:,}",
            f"{violation.position:,}",
            violation.finding.shown,
            *_counters(violation.counts, violation.finding),
        ]
        for violation in report.violations[:_SHOWN]
    ]
    first = report.violations[0]
    header = ["", "line", "decided", first.finding.measure]
    print_table([*header, *_counter_names(first.counts)], rows)
    if len(report.violations) > _SHOWN:
        click.echo(f"... and {len(report.violations) - _SHOWN:,} more (--json lists all)")


def _counter_names(counts: Counts) -> list[str]:
    """Headings of :func:`_counters`."""
    if len(counts) == 2:
        return [f"{group} accepted" for group in counts]
    return ["widest pair", "accepted", "accepted"]


def _counters(counts: Counts, finding: Finding) -> list[str]:
    """The counters of two groups: of more, those of the widest pair."""
    if len(counts) == 2:
        return [f"{count.accepted:,} of {count.seen:,}" for count in counts.values()]
    pair = (counts[group] for group in finding.pair)
    return [
        _pair(finding),
        *(f"{count.accepted:,} of {count.seen:,}" for count in pair),
    ]


def _pair(finding: Finding) -> str:
    return ", ".join(map(str, finding.pair))


_SAID = {"fair": "fair", "unfair": "UNFAIR", "exempt": "exempt"}


def _print_pairs(found: Found, window: Window) -> None:
    """The widest pairs, where there are several, of the window that has the widest."""
    if len(window.counts) == 2:
        return
    pairs = found.prop.findings(window.counts)
    place = found.report.windows.index(window)
    click.echo(f"\nWidest pairs at the end of {found.report.name(place)}")
    rows = [
        [*_pair_row(window.counts, finding), _SAID[finding.verdict]] for finding in pairs[:_PAIRS]
    ]
    print_table(["", "accepted", "accepted", pairs[0].measure, ""], rows)
    if len(pairs) > _PAIRS:
        rest = [finding.verdict for finding in pairs[_PAIRS:]]
        click.echo(f"... and {number_of(len(rest), 'more pair')}: {tally(rest)}")


def _pair_row(counts: Counts, finding: Finding) -> list[str]:
    return [*_counters(counts, finding), finding.shown]


def _print_ends(report: AuditReport) -> None:
    """Counters at the last ends: of periods, since the beginning of the run."""
    click.echo(f"\nAt the end of each {report.noun}")
    complete = [(i, report.windows[i]) for i in report.complete]
    rows = [
        [
            report.name(i),
            f"{window.last_line:,}",
            window.finding.shown,
            *_counters(window.counts, window.finding),
            _SAID[window.finding.verdict],
        ]
        for i, window in complete[-_SHOWN:]
    ]
    first = complete[0][1]
    print_table(["", "line", first.finding.measure, *_counter_names(first.counts), ""], rows)
    if len(complete) > _SHOWN:
        click.echo(f"... and {len(complete) - _SHOWN:,} earlier (--json lists all)")


def _print_positions(report: AuditReport) -> None:
    people = report.overruled_by_position
    parts = [(part, sum(people[slice(*part)])) for part in tenths(len(people))]
    click.echo(f"\nOverruled by position   {sparkline([n for _, n in parts])}")
    print_table(["decisions", "people"], [[positions(*part), f"{n:,}"] for part, n in parts])
