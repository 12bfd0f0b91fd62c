"""What a monitor has seen, as values: windows, rates with their intervals, alarms."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from fairshield.counts import Counts, Group
from fairshield.monitor.sequences import Interval
from fairshield.runtime.report import plain_counts, plain_number
from fairshield.runtime.step import Decision

Kind = Literal["violation", "bias", "model"]
KINDS: tuple[Kind, ...] = ("violation", "bias", "model")


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something to act on.

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
    """What one decision led to.

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
    """A window or period that is over: its number from 0, and its counters at its end.

    ``at`` is the number of decisions since the beginning; ``bias`` the largest between two groups;
    ``holds`` whether the property held between all of them.
    """

    number: int
    at: int
    counts: Counts
    bias: float
    holds: bool

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; :meth:`from_dict` is the inverse."""
        return {
            "number": self.number,
            "at": self.at,
            "counts": plain_counts(self.counts),
            "bias": plain_number(self.bias),
            "holds": self.holds,
        }

    @staticmethod
    def from_dict(data: dict[str, Any]) -> MonitoredWindow:
        """The window that :meth:`to_dict` described."""
        counts = Counts({group: (seen, accepted) for group, seen, accepted in data["counts"]})
        bias = math.inf if data["bias"] is None else float(data["bias"])
        return MonitoredWindow(data["number"], data["at"], counts, bias, data["holds"])


@dataclass(frozen=True, slots=True)
class MonitoredGroup:
    """One group since the beginning; ``rate`` is ``None`` while there are too few people."""

    group: Group
    seen: int
    accepted: int
    overruled: int
    rate: Interval | None


@dataclass(frozen=True, slots=True)
class MonitoredPair:
    """The bias between two groups since the beginning; ``None`` while there are too few people.

    It is ``None`` as well for properties of which no interval is known.
    """

    groups: tuple[Group, Group]
    bias: Interval | None


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """What a shield would have done, had it decided all along.

    Attributes
    ----------
    decisions, overruled, cost_paid
        Its decisions, proposals it would have overruled, and what that would have cost.
    overruled_by_group
        Whom.
    changed
        Its decisions that differ from those that were made.
    windows, unfair
        Windows or periods that ended, and those that would have ended unfair.
    unfair_without
        Those of them that did, as things were decided.
    over
        Whether its policy is for a number of periods, and the last is over: later decisions are
        not in these totals.
    """

    decisions: int
    overruled: int
    cost_paid: float
    overruled_by_group: dict[Group, int]
    changed: int
    windows: int
    unfair: int
    unfair_without: int
    over: bool = False

    def __str__(self) -> str:
        share = self.overruled / self.decisions if self.decisions else 0.0
        whom = ", ".join(f"{group} {n:,}" for group, n in self.overruled_by_group.items())
        return (
            f"would have overruled {self.overruled:,} of {self.decisions:,} ({share:.2%}): {whom}; "
            f"cost {self.cost_paid:.6g}; unfair ends {self.unfair:,} instead of "
            f"{self.unfair_without:,} of {self.windows:,}"
            + ("; its run is over, what came later is not in these totals" if self.over else "")
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        by_group = [[g, n] for g, n in self.overruled_by_group.items()]
        return {**asdict(self), "overruled_by_group": by_group}


@dataclass(frozen=True, slots=True)
class MonitorReport:
    """Where a monitored stream stands.

    Attributes
    ----------
    prop, limit, confidence, noun
        The property in words, the largest bias that is fair, how sure intervals and alarms are,
        and whether there are windows or periods.
    decided, overruled, cost_paid
        Decisions since the beginning, proposals overruled, and what that cost.
    groups, pairs
        Rates and biases since the beginning.
    counts, bias, holds
        The window or period in progress: counters, largest bias, whether the property holds now.
    windows, unfair, worst_bias
        Windows or periods that are over, those that ended unfair, and the largest bias at an end.
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
    """

    prop: str
    limit: float
    confidence: float
    noun: str
    decided: int
    overruled: int
    cost_paid: float
    groups: tuple[MonitoredGroup, ...]
    pairs: tuple[MonitoredPair, ...]
    counts: Counts
    bias: float
    holds: bool
    windows: int
    unfair: int
    worst_bias: float
    unfair_share: Interval | None
    recent: tuple[MonitoredWindow, ...]
    log_evidence: float | None
    contradicted_at: int | None
    shadow: ShadowReport | None
    alarms: tuple[Alarm, ...]

    @property
    def quiet(self) -> bool:
        """Whether there was no alarm."""
        return not self.alarms

    def __bool__(self) -> bool:
        return self.quiet

    def __str__(self) -> str:
        return "\n".join(f"{name:<12} {text}" for name, text in self.facts())

    def facts(self) -> list[tuple[str, str]]:
        """Names and values, for people."""
        facts = [
            ("property", f"{self.prop}: a bias of {self.limit:.4g} is allowed"),
            ("decisions", f"{self.decided:,}{self._overruled()}"),
            *((f"rate of {g.group}", _rate(g)) for g in self.groups),
            *((f"bias {a}, {b}", _few(pair.bias)) for pair in self.pairs for a, b in [pair.groups]),
            (f"{self.noun} now", f"bias {self.bias:.4g}, {'fair' if self.holds else 'UNFAIR'}"),
        ]
        if self.unfair_share is not None:
            facts.append((f"{self.noun}s", self._windows(self.unfair_share)))
        if self.log_evidence is not None:
            facts.append(("input model", self._model(self.log_evidence)))
        if self.shadow is not None:
            facts.append(("shield", str(self.shadow)))
        return [*facts, ("alarms", self._alarms())]

    def _overruled(self) -> str:
        return f", {self.overruled:,} overruled at a cost of {self.cost_paid:.6g}"

    def _windows(self, share: Interval) -> str:
        return (
            f"{self.windows:,} over, {self.unfair:,} unfair (share {share}), largest bias "
            f"{self.worst_bias:.4g}"
        )

    def _model(self, evidence: float) -> str:
        said = f"evidence against it {evidence_words(evidence)}"
        needed = f"{1 / (1 - self.confidence):.4g} contradicts it"
        if self.contradicted_at is None:
            return f"{said}, {needed}"
        return f"CONTRADICTED after {self.contradicted_at:,} decisions; {said}, {needed}"

    def _alarms(self) -> str:
        found = {k: sum(a.kind == k for a in self.alarms) for k in KINDS}
        return ", ".join(f"{n:,} {kind}" for kind, n in found.items() if n) or "none"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; counters and groups are lists, because JSON has no integer keys."""
        share = self.unfair_share
        return {
            "quiet": self.quiet,
            "property": self.prop,
            "limit": self.limit,
            "confidence": self.confidence,
            "decisions": self.decided,
            "overruled": self.overruled,
            "cost_paid": self.cost_paid,
            "groups": [_plain(asdict(g), "rate", g.rate) for g in self.groups],
            "pairs": [
                {"groups": list(p.groups), "bias": _plain_interval(p.bias)} for p in self.pairs
            ],
            "now": {
                "counts": plain_counts(self.counts),
                "bias": plain_number(self.bias),
                "holds": self.holds,
            },
            f"{self.noun}s": {
                "over": self.windows,
                "unfair": self.unfair,
                "unfair_share": _plain_interval(share),
                "worst_bias": plain_number(self.worst_bias),
                "recent": [window.to_dict() for window in self.recent],
            },
            "model": None
            if self.log_evidence is None
            else {"log_evidence": self.log_evidence, "contradicted_at": self.contradicted_at},
            "shadow": None if self.shadow is None else self.shadow.to_dict(),
            "alarms": [alarm.to_dict() for alarm in self.alarms],
        }


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


def _rate(g: MonitoredGroup) -> str:
    return f"{g.accepted:,} of {g.seen:,}: {_few(g.rate)}"


def _few(interval: Interval | None) -> str:
    return "too few to say" if interval is None else str(interval)


def _plain_interval(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [plain_number(value) for value in interval]


def _plain(data: dict[str, Any], key: str, interval: Interval | None) -> dict[str, Any]:
    return {**data, key: _plain_interval(interval)}
