"""MonitorReport and its parts hold what a monitor has seen: windows, rates, alarms."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from fairshield.base.counts import Counts, Group
from fairshield.base.plain import plain_counts, plain_number, with_keys
from fairshield.base.renamed import Renamed
from fairshield.base.words import summary
from fairshield.monitor.words import Kind, facts_of
from fairshield.runtime.step import Decision
from fairshield.spec import UNTOLD, Finding, Interval, Reach, Verdict
from fairshield.spec.outcomes import Coverage


@dataclass(frozen=True, slots=True)
class Alarm:
    """Alarm says what the monitor found, and after which decision.

    Attributes
    ----------
    kind
        ``"violation"``: a window or period ended unfair.  ``"bias"``: the decisions are unfair
        beyond chance, the whole interval of the bias lies above what is allowed.  ``"model"``:
        the requests contradict the input model.
    at
        After how many decisions.
    message
        One sentence: what was seen, which rule it breaks, what to do.
    window
        Which window or period, from 0.
    groups
        Whom it is about, if not everybody.
    """

    kind: Kind
    at: int
    message: str
    window: int
    groups: tuple[Group, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} after {self.at:,} decisions: {self.message}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; :meth:`from_dict` is the inverse."""
        return {**asdict(self), "groups": list(self.groups)}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Alarm:
        """The alarm that :meth:`to_dict` described."""
        return Alarm(**{**data, "groups": tuple(data["groups"])})


class Observation(NamedTuple):
    """Observation says what one observed decision led to.

    ``at`` counts decisions from 1, ``window`` windows or periods from 0; ``alarms`` are those it
    raised; ``shadow`` is what the shadow shield would have decided, ``None`` also once its run is
    over.
    """

    at: int
    window: int
    alarms: tuple[Alarm, ...] = ()
    shadow: Decision | None = None


@dataclass(frozen=True, slots=True)
class MonitoredWindow:
    """MonitoredWindow is a window or period that is over: its number from 0, its counters.

    ``at`` is the number of decisions since the beginning; ``bias`` the largest between two groups
    that have support, ``measured`` between any two; ``holds`` whether the property held between all
    of them, ``exempt`` whether it bound none.
    """

    number: int
    at: int
    counts: Counts
    bias: float
    holds: bool
    measured: float
    exempt: bool

    @property
    def verdict(self) -> Verdict:
        """``"unfair"``, ``"exempt"`` or ``"fair"``."""
        return "exempt" if self.exempt else "fair" if self.holds else "unfair"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; :meth:`from_dict` is the inverse."""
        return {
            "number": self.number,
            "at": self.at,
            "counts": plain_counts(self.counts),
            "bias": plain_number(self.bias),
            "holds": self.holds,
            "measured": plain_number(self.measured),
            "exempt": self.exempt,
        }

    @staticmethod
    def from_dict(data: dict[str, Any]) -> MonitoredWindow:
        """The window that :meth:`to_dict` described."""
        counts = Counts({group: (seen, accepted) for group, seen, accepted in data["counts"]})
        return MonitoredWindow(
            data["number"], data["at"], counts, number_from(data["bias"]), data["holds"],
            number_from(data["measured"]), data["exempt"],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class MonitoredGroup:
    """MonitoredGroup holds the counters of one group since the beginning.

    ``rate`` is ``None`` while there are too few people.
    """

    group: Group
    seen: int
    accepted: int
    overruled: int
    rate: Interval | None


@dataclass(frozen=True, slots=True)
class MonitoredPair:
    """MonitoredPair holds the bias between two groups since the beginning.

    The bias is ``None`` while there are too few people, and for properties of which no interval is
    known.  ``finding`` is what the property measured of all people since the beginning, in its own
    words.
    """

    groups: tuple[Group, Group]
    bias: Interval | None
    finding: Finding


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """ShadowReport holds what a shield would have done, had it decided from the beginning.

    Attributes
    ----------
    decisions, overruled, paid
        Its decisions, proposals it would have overruled, and what that would have cost.
    overruled_by_group
        The proposals it would have overruled, by group.
    changed
        Its decisions that differ from those that were made.
    windows, unfair, exempt, untold
        Windows or periods that ended, those that would have ended unfair, those in which the
        property would have bound nothing, and those of which a state of an earlier version does
        not tell whether it would.
    unfair_unshielded
        Those of them that did end unfair, as things were decided.
    over
        Whether its policy is for a number of periods, and the last is over: later decisions are
        not in these totals.
    """

    decisions: int
    overruled: int
    paid: float
    overruled_by_group: dict[Group, int]
    changed: int
    windows: int
    unfair: int
    unfair_unshielded: int
    over: bool = False
    exempt: int = 0
    untold: int = 0

    cost_paid = Renamed("paid")
    unfair_without = Renamed("unfair_unshielded")

    __repr__ = summary

    def __str__(self) -> str:
        share = self.overruled / self.decisions if self.decisions else 0.0
        whom = ", ".join(f"{group} {n:,}" for group, n in self.overruled_by_group.items())
        return (
            f"would have overruled {self.overruled:,} of {self.decisions:,} ({share:.2%}): {whom}; "
            f"cost {self.paid:.6g}; unfair ends {self.unfair:,} instead of "
            f"{self.unfair_unshielded:,} of {self.windows:,}"
            + (f", {self.exempt:,} exempt" if self.exempt else "")
            + (f", {self.untold:,} {UNTOLD}" if self.untold else "")
            + ("; its run is over, what came later is not in these totals" if self.over else "")
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        by_group = [[g, n] for g, n in self.overruled_by_group.items()]
        data = with_keys(asdict(self), {"paid": "cost_paid", "unfair_unshielded": "unfair_without"})
        return {**data, "overruled_by_group": by_group}


@dataclass(frozen=True, slots=True)
class MonitorReport:
    """MonitorReport says where a monitored stream stands.

    Attributes
    ----------
    prop, limit, confidence, noun
        The property in words, the largest bias that is fair, how sure intervals and alarms are,
        and whether there are windows or periods.
    decisions, overruled, paid
        Decisions since the beginning, proposals overruled, and what that cost.
    groups, pairs
        Rates and biases since the beginning.
    counts, bias, measured, now
        The window or period in progress: counters, largest bias of groups that have support and of
        any two, and what is to be said of it now.
    windows, unfair, exempt
        Windows or periods that are over, those that ended unfair, and those in which the property
        bound nothing.
    untold
        Those of which a state of an earlier version does not tell whether they were fair or exempt.
    largest_bias, largest_measured
        The largest bias at an end, of groups that have support and of any two.
    verdict
        ``"unfair"`` if a window ended unfair; ``"fair"`` if none did and the property is known to
        have bound one; else ``"exempt"``.  An endless window that is not over is taken as it
        stands.
    unfair_share
        How probable an unfair end was on average; ``None`` before the first end.
    recent
        The last ones that are over.
    log_evidence
        The natural logarithm of the evidence against the input model; ``None`` without one.
    contradicted_at
        After how many decisions the input model was contradicted.
    shadow
        What a shield would have done.
    alarms
        In order.
    coverage
        Known outcomes of the accepted and of the rejected, where the property counts by outcome.
    reach
        Which pairs the property bound at the ends in ``recent``; ``None`` if none is over.
    """

    prop: str
    limit: float
    confidence: float
    noun: str
    decisions: int
    overruled: int
    paid: float
    groups: tuple[MonitoredGroup, ...]
    pairs: tuple[MonitoredPair, ...]
    counts: Counts
    bias: float
    measured: float
    now: Verdict
    windows: int
    unfair: int
    exempt: int
    largest_bias: float
    largest_measured: float
    verdict: Verdict
    unfair_share: Interval | None
    recent: tuple[MonitoredWindow, ...]
    log_evidence: float | None
    contradicted_at: int | None
    shadow: ShadowReport | None
    alarms: tuple[Alarm, ...]
    coverage: Coverage | None = None
    untold: int = 0
    reach: Reach | None = None

    decided = Renamed("decisions")
    cost_paid = Renamed("paid")
    worst_bias = Renamed("largest_bias")
    worst_measured = Renamed("largest_measured")

    @property
    def holds(self) -> bool:
        """Whether the property holds in the window or period in progress."""
        return self.now != "unfair"

    @property
    def doubt(self) -> str | None:
        """Why the outcomes at hand cannot tell whether people were treated alike; or ``None``."""
        return None if self.coverage is None else self.coverage.doubt

    @property
    def quiet(self) -> bool:
        """Whether all is well: no alarm, something had to hold and did, and outcomes can tell."""
        return not self.alarms and self.verdict == "fair" and self.doubt is None

    def __bool__(self) -> bool:
        return self.quiet

    __repr__ = summary

    def __str__(self) -> str:
        return "\n".join(f"{name:<12} {text}" for name, text in self.facts())

    def facts(self, *, by_group: bool = True) -> list[tuple[str, str]]:
        """Names and values, for people; ``by_group`` with those of each group and the pairs."""
        return facts_of(self, by_group=by_group)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; counters and groups are lists, because JSON has no integer keys."""
        share = self.unfair_share
        return {
            "quiet": self.quiet,
            "verdict": self.verdict,
            "doubt": self.doubt,
            "property": self.prop,
            "limit": self.limit,
            "confidence": self.confidence,
            "decisions": self.decisions,
            "overruled": self.overruled,
            "cost_paid": self.paid,
            "groups": [_plain(asdict(g), "rate", g.rate) for g in self.groups],
            "pairs": [
                {
                    "groups": list(p.groups),
                    "bias": _plain_interval(p.bias),
                    "finding": p.finding.to_dict(),
                }
                for p in self.pairs
            ],
            "now": {
                "counts": plain_counts(self.counts),
                "bias": plain_number(self.bias),
                "measured": plain_number(self.measured),
                "holds": self.holds,
                "verdict": self.now,
            },
            f"{self.noun}s": {
                "over": self.windows,
                "unfair": self.unfair,
                "exempt": self.exempt,
                "untold": self.untold,
                "unfair_share": _plain_interval(share),
                "worst_bias": plain_number(self.largest_bias),
                "worst_measured": plain_number(self.largest_measured),
                "recent": [window.to_dict() for window in self.recent],
            },
            "model": None
            if self.log_evidence is None
            else {"log_evidence": self.log_evidence, "contradicted_at": self.contradicted_at},
            "shadow": None if self.shadow is None else self.shadow.to_dict(),
            "outcomes": None if self.coverage is None else self.coverage.to_dict(),
            "reach": None if self.reach is None else self.reach.to_dict(),
            "alarms": [alarm.to_dict() for alarm in self.alarms],
        }


def number_from(value: float | None) -> float:
    """The inverse of :func:`~fairshield.analysis.report.plain_number`."""
    return math.inf if value is None else float(value)


def _plain_interval(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [plain_number(value) for value in interval]


def _plain(data: dict[str, Any], key: str, interval: Interval | None) -> dict[str, Any]:
    return {**data, key: _plain_interval(interval)}
