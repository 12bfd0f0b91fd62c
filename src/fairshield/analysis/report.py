"""AuditReport and its parts hold what an audit found: windows, violations, totals."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple

from fairshield.base.counts import Counts, Group
from fairshield.base.plain import plain_counts, plain_number, with_keys
from fairshield.base.renamed import Renamed
from fairshield.base.words import summary
from fairshield.records import Record
from fairshield.records.dates import By
from fairshield.runtime.step import Decision
from fairshield.runtime.window_rule import WindowRule
from fairshield.spec import Finding, GroupRate, Reach, Verdict, verdict_of
from fairshield.spec.outcomes import Coverage

Conclusion = Literal["violated", "inconclusive", "exempt", "held"]


class Audited(NamedTuple):
    """Audited is one decision of a log, with the counters that the audit found before and after.

    ``window`` and ``position`` count from 0.  ``before`` and ``after`` are the counters
    ``(n_a, k_a, n_b, k_b, ...)``, those at the start included.  ``derived`` is the policy's own
    decision; ``None`` without a policy, and after the first one that differed.
    """

    record: Record
    window: int
    position: int
    group: Group
    accepted: bool
    overruled: bool
    cost: float
    derived: Decision | None
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Window holds what was found of one window of the log.

    ``complete`` says whether all its decisions have been made and their outcomes are known;
    ``holds`` whether the property holds for ``counts``, which it must only if it is complete, and
    ``finding`` what was measured of the widest pair.  ``verdict`` is about all moments of the
    window at which the property had to hold: ``"unfair"`` if it failed at one of them, ``"fair"``
    if it bound at one, ``"exempt"`` if at none; ``None`` if there was no such moment yet.
    ``name`` is that of its calendar period, if it is one; ``first_date`` and ``last_date`` are the
    days of its decisions, if the log has them.  ``overruled`` is how many people were decided
    otherwise than proposed, and ``paid`` what that cost.
    """

    first_line: int
    last_line: int
    decisions: int
    counts: Counts
    bias: float
    holds: bool
    complete: bool
    finding: Finding
    verdict: Verdict | None
    name: str | None = None
    first_date: str | None = None
    last_date: str | None = None
    overruled: int = 0
    paid: float = 0.0

    decided = Renamed("decisions")


@dataclass(frozen=True, slots=True)
class Violation:
    """Violation is a moment at which the property had to hold and did not.

    ``position`` decisions of the window had been made.  ``window`` counts from 0, ``line`` is that
    of the decision that completed the violation, ``finding`` names the widest pair.
    """

    window: int
    line: int
    position: int
    counts: Counts
    bias: float
    finding: Finding

    decided = Renamed("position")


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """GroupTotals counts all decisions on people of one group.

    ``raised`` were to be rejected and were accepted, ``lowered`` the reverse; ``paid`` is what both
    cost.
    """

    group: Group
    decisions: int
    accepted: int
    raised: int
    lowered: int
    paid: float

    @property
    def overruled(self) -> int:
        """How many were decided otherwise than proposed."""
        return self.raised + self.lowered

    @property
    def proposed(self) -> int:
        """How many would have been accepted without a shield."""
        return self.accepted - self.raised + self.lowered


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference is a logged decision that the policy would not have made, and the reason.

    ``expected`` is ``None`` where the decision is not the next one: its ``reason`` says which was.
    """

    line: int
    accepted: bool
    expected: bool | None
    reason: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    """AuditReport holds what :func:`fairshield.audit` found; it is true if the property was kept.

    Kept means that it was not violated, bound at least once (:attr:`verdict` is ``"fair"``), that
    every decision is the policy's, if one was given (no :attr:`difference`), and, where people
    count by their outcome, that the outcomes can tell (no :attr:`doubt`).

    Attributes
    ----------
    prop, limit
        The property in words, and the largest bias that is fair.
    windows
        In order; the last may be unfinished.
    violations
        Every checkpoint and end of a window at which the property did not hold.
    difference
        The first decision that is not the policy's; ``None`` also if no policy was given.
    decisions, overruled, paid
        Totals; ``paid`` is what overruling cost.
    people, overruled_by_position
        All decisions by group; the people overruled by place in the window, from 0 on.
    followed
        People of groups that were not declared, who are not counted.
    checked
        Moments that the log reaches at which the property had to hold; of none, ``holds`` says
        nothing.
    told
        Decisions of which the log tells whether they were overruled; the totals are about them.
    coverage
        Outcomes of the accepted and of the rejected, where the property counts by outcome.
    groups
        How each group fared in the :attr:`latest` window, those of the highest rates first.
    reach
        Which pairs of groups the property bound at the ends of windows; ``None`` if none has ended.
    start
        Counters before the first decision of a window, or of the first period.
    rule, by
        How long windows are and when the property had to hold in them; the calendar period that a
        window is, ``"quarter"`` for one, else ``None``.
    """

    prop: str
    limit: float
    windows: tuple[Window, ...]
    violations: tuple[Violation, ...]
    difference: Difference | None
    decisions: int
    overruled: int
    paid: float
    people: tuple[GroupTotals, ...]
    overruled_by_position: tuple[int, ...]
    followed: dict[Group, int] = field(default_factory=dict)
    checked: int = 0
    told: int = 0
    coverage: Coverage | None = None
    groups: tuple[GroupRate, ...] = ()
    reach: Reach | None = None
    start: Counts = field(default_factory=lambda: Counts({}))
    rule: WindowRule = field(default_factory=WindowRule)
    by: By | None = None

    cost_paid = Renamed("paid")

    @property
    def doubt(self) -> str | None:
        """Why the outcomes in the log cannot tell how people were treated; ``None``: they can."""
        return None if self.coverage is None else self.coverage.doubt

    @property
    def overruled_by_group(self) -> dict[Group, int]:
        """How many people of each group were overruled."""
        return {people.group: people.overruled for people in self.people}

    @property
    def named(self) -> bool:
        """Whether windows are calendar periods, which have names."""
        return bool(self.windows) and self.windows[0].name is not None

    @property
    def noun(self) -> str:
        """The word for a window: ``"window"``, ``"period"``, or that of its calendar period."""
        return self.by or self.rule.noun

    def label(self, window: int) -> str:
        """What a window is called: its calendar period, or a number: of periods counted from 1."""
        known = self.windows[window].name if window < len(self.windows) else None
        return f"{window + self.rule.first:,}" if known is None else known

    @property
    def moment(self) -> str | None:
        """When the counters of :attr:`groups` were such; ``None``: at the end of the whole log."""
        number = self.latest
        if number is None or not self.windows[number].complete:
            return "so far"
        only = len(self.windows) == 1 and not self.named
        return None if only else f"at the end of {self.name(number)}"

    def name(self, window: int) -> str:
        """The label of a window, with the noun where it is a number."""
        label = self.label(window)
        return label if self.named else f"{self.noun} {label}"

    @property
    def holds(self) -> bool:
        """Whether the property held wherever the log reaches a point at which it had to."""
        return not self.violations

    @property
    def verdict(self) -> Verdict:
        """``"unfair"`` if a window is, ``"fair"`` if none is and some bound, else ``"exempt"``."""
        return verdict_of(unfair=self.unfair, fair=self.bound)

    @property
    def conclusion(self) -> Conclusion:
        """What the log shows of the property; inconclusive if its outcomes cannot tell."""
        if not self.holds:
            return "violated"
        if self.doubt is not None:
            return "inconclusive"
        return "held" if self.verdict == "fair" else "exempt"

    @property
    def unfair(self) -> int:
        """Windows in which the property was violated, at the end or before."""
        return self._windows_with("unfair")

    @property
    def bound(self) -> int:
        """Windows in which the property bound at a moment at which it had to hold."""
        return self._windows_with("fair", "unfair")

    @property
    def judged(self) -> int:
        """Windows in which the property had to hold at a moment that the log reaches."""
        return self.bound + self.exempt

    @property
    def exempt(self) -> int:
        """Windows in which the property had to hold and bound nothing."""
        return self._windows_with("exempt")

    @property
    def complete(self) -> tuple[int, ...]:
        """The numbers of the windows that are over."""
        return tuple(i for i, window in enumerate(self.windows) if window.complete)

    @property
    def widest(self) -> Window | None:
        """The complete window with the widest finding, that of the last if several have it."""
        complete = [self.windows[i] for i in reversed(self.complete)]
        return min(complete, key=lambda window: window.finding.order(), default=None)

    @property
    def latest(self) -> int | None:
        """The number of the last complete window: of the last one if none is, ``None`` if none."""
        return max(self.complete, default=len(self.windows) - 1 if self.windows else None)

    def _windows_with(self, *verdicts: Verdict) -> int:
        return sum(window.verdict in verdicts for window in self.windows)

    def __bool__(self) -> bool:
        return self.conclusion == "held" and self.difference is None

    __repr__ = summary

    def __str__(self) -> str:
        differs = "" if self.difference is None else "; not the policy's decisions"
        return (
            f"{self.prop}: {self._told()}; {self.decisions:,} decisions in {len(self.windows):,} "
            f"windows, {self.overruled:,} overruled at a cost of {self.paid:.6g}{differs}"
        )

    def _told(self) -> str:
        if not self.checked:
            return "nothing had to hold yet"
        if self.conclusion == "violated":
            return f"violated in {self.unfair:,} of {self.judged:,} windows"
        if self.conclusion == "inconclusive":
            return "inconclusive, as the outcomes at hand cannot tell"
        if self.conclusion == "exempt":
            return f"exempt in all {self.judged:,} windows: it bound nothing"
        return f"held in {self.bound:,} of {self.judged:,} windows" + (
            f", exempt in {self.exempt:,}" if self.exempt else ""
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; ``holds`` is ``None`` where nothing bound or the outcomes cannot tell.

        Counters are lists, because JSON has no integer keys.
        """
        return {
            "holds": {"held": True, "violated": False}.get(self.conclusion),
            "verdict": self.verdict,
            "doubt": self.doubt,
            "checked": self.checked,
            "bound": self.bound,
            "exempt": self.exempt,
            "unfair": self.unfair,
            "property": self.prop,
            "limit": self.limit,
            "decisions": self.decisions,
            "told": self.told,
            "overruled": self.overruled,
            "cost_paid": self.paid,
            "groups": [with_keys(asdict(g), {"seen": "people"}) for g in self.groups],
            "groups_window": self.latest,
            "reach": None if self.reach is None else self.reach.to_dict(),
            "overruled_by_group": [[g, n] for g, n in self.overruled_by_group.items()],
            "overruled_by_position": list(self.overruled_by_position),
            "followed": [[g, n] for g, n in self.followed.items()],
            "violations": [_plain(violation) for violation in self.violations],
            "difference": None if self.difference is None else asdict(self.difference),
            "windows": [_plain(window) for window in self.windows],
        }


_DECIDED = {"decisions": "decided", "position": "decided"}
_NOT_SENT = ("overruled", "paid")


def _plain(item: Window | Violation) -> dict[str, Any]:
    data = {f.name: getattr(item, f.name) for f in fields(item) if f.name not in _NOT_SENT}
    data = with_keys(data, _DECIDED)
    return {
        **data,
        "counts": plain_counts(item.counts),
        "bias": plain_number(item.bias),
        "finding": item.finding.to_dict(),
    }
