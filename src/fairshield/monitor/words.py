"""Sentences and tables of what a monitor has seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from fairshield.spec import UNTOLD, Interval, tally

if TYPE_CHECKING:
    from fairshield.monitor.report import MonitoredGroup, MonitoredPair, MonitorReport

Kind = Literal["violation", "bias", "model"]
KINDS: tuple[Kind, ...] = ("violation", "bias", "model")
"""Kinds of alarms, in the order in which they are shown."""
_BIASES = ("gap", "bias")
"""Measures that are biases themselves."""
MOST_PAIRS = 5
"""Pairs that are listed: of more, the widest."""


def facts_of(report: MonitorReport, *, by_group: bool = True) -> list[tuple[str, str]]:
    """Names and values, for people; without those of each group and pair unless ``by_group``."""
    facts = [
        ("verdict", _verdict(report)),
        ("property", f"{report.prop}: a bias of {report.limit:.4g} is allowed"),
        ("decisions", f"{report.decisions:,}{_overruled(report)}"),
        *(_by_group(report) if by_group else []),
        (f"{report.noun} now", _now(report)),
    ]
    if report.unfair_share is not None:
        facts.append((f"{report.noun}s", _windows(report, report.unfair_share)))
    if report.log_evidence is not None:
        facts.append(("input model", _model(report, report.log_evidence)))
    if report.shadow is not None:
        facts.append(("shield", str(report.shadow)))
    if report.doubt is not None:
        facts.append(("outcomes", report.doubt))
    return [*facts, ("alarms", _alarms(report))]


def _by_group(report: MonitorReport) -> list[tuple[str, str]]:
    """Rates, and biases of pairs: of many pairs the widest."""
    pairs = list(report.pairs) if len(report.pairs) <= MOST_PAIRS else widest_first(report)
    return [
        *((f"rate of {g.group}", _rate(g)) for g in report.groups),
        *((f"bias {', '.join(map(str, p.groups))}", _pair(p)) for p in pairs[:MOST_PAIRS]),
        *([("... and", rest_of(pairs))] if len(pairs) > MOST_PAIRS else []),
    ]


def widest_first(report: MonitorReport) -> list[MonitoredPair]:
    """All pairs: those that fail, those that bind, others; the widest of each first."""
    return sorted(report.pairs, key=lambda pair: pair.finding.order())


def rest_of(pairs: Sequence[MonitoredPair]) -> str:
    """How many pairs are not listed, in words."""
    rest = [pair.finding.verdict for pair in pairs[MOST_PAIRS:]]
    return f"{len(rest):,} more pair{'s' * (len(rest) > 1)}: {tally(rest)}"


def _verdict(report: MonitorReport) -> str:
    if not report.decisions:
        return "nothing to check: there are no decisions"
    one = f"the {report.noun}"
    ends = f"{report.windows:,} {report.noun}s"
    if report.unfair:
        where = one if report.windows == 1 else f"{report.unfair:,} of {ends}"
        return f"UNFAIR: {report.prop} did not hold in {where}"
    if report.doubt is not None:
        return "INCONCLUSIVE: the outcomes at hand cannot tell"
    if not report.windows:
        return _unfinished(report)
    bound = report.windows - report.exempt - report.untold
    if not bound:
        where = one if report.windows == 1 else f"any of {ends}"
        said = "is not known to have bound" if report.untold else "bound nothing"
        return f"EXEMPT: {report.prop} {said} in {where}"
    where = one if report.windows == 1 else f"all {ends}"
    if bound < report.windows:
        it = "it is known to have bound" if report.untold else "it bound"
        where = f"the {bound:,} of {ends} that {it}"
    return f"fair: {report.prop} held in {where}{_reach(report)}"


def _reach(report: MonitorReport) -> str:
    """How many pairs the property bound, in words; empty if it bound all."""
    reach = report.reach
    if reach is None or not reach.partial:
        return ""
    last = f", of the last {reach.ends:,} {report.noun}s" if reach.ends < report.windows else ""
    return f"; {reach.told(report.noun)}{last}"


def _unfinished(report: MonitorReport) -> str:
    if report.verdict != "exempt":
        said = "fair" if report.verdict == "fair" else "UNFAIR"
        return f"{said} as it stands; no {report.noun} is over"
    return f"nothing had to hold yet: no {report.noun} is over"


def _now(report: MonitorReport) -> str:
    if report.now == "fair" and report.doubt is not None:
        return f"bias {report.bias:.4g}, by outcomes that cannot tell"
    if report.now != "exempt":
        return f"bias {report.bias:.4g}, {'fair' if report.now == 'fair' else 'UNFAIR'}"
    return f"exempt, nothing is bound{_below(report.measured, report.bias)}"


def _overruled(report: MonitorReport) -> str:
    return f", {report.overruled:,} overruled at a cost of {report.paid:.6g}"


def _windows(report: MonitorReport, share: Interval) -> str:
    untold = f", {report.untold:,} {UNTOLD}" if report.untold else ""
    return (
        f"{report.windows:,} over, {report.unfair:,} unfair (share {share}), {report.exempt:,} "
        f"exempt{untold}, largest bias {report.largest_bias:.4g}"
        f"{_below(report.largest_measured, report.largest_bias)}"
    )


def _model(report: MonitorReport, evidence: float) -> str:
    said = f"evidence against it {evidence_words(evidence)}"
    needed = f"{1 / (1 - report.confidence):.4g} contradicts it"
    if report.contradicted_at is None:
        return f"{said}, {needed}"
    return f"CONTRADICTED after {report.contradicted_at:,} decisions; {said}, {needed}"


def _alarms(report: MonitorReport) -> str:
    found = {k: sum(a.kind == k for a in report.alarms) for k in KINDS}
    return ", ".join(f"{n:,} {kind}" for kind, n in found.items() if n) or "none"


def evidence_words(log_evidence: float) -> str:
    """The evidence as a number, or a power of ten.

    >>> evidence_words(2.0), evidence_words(1000.0), evidence_words(1e300)
    ('7.39', '10^434', 'infinite')
    """
    if log_evidence > 1e200:
        return "infinite"
    if log_evidence > math.log(1e6):
        return f"10^{log_evidence / math.log(10):.0f}"
    return f"{math.exp(log_evidence):.3g}"


def _below(measured: float, bias: float) -> str:
    """Return what was measured of groups below support, in words; empty if not above the bias."""
    return f"; a bias of {measured:.4g} was measured below support" if measured > bias else ""


def _rate(g: MonitoredGroup) -> str:
    return f"{g.accepted:,} of {g.seen:,}: {_few(g.rate)}"


def _pair(pair: MonitoredPair) -> str:
    """The bias of a pair, and what the property measures if that is not a bias, as a ratio."""
    told, found = _few(pair.bias), pair.finding
    if found.value is None or found.measure in _BIASES:
        return told
    return f"{told}; {found.measure} {found.shown} {found.who}"


def _few(interval: Interval | None) -> str:
    return "too few to say" if interval is None else str(interval)
