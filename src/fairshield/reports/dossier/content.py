"""Dossier holds what an audit page says, as values; it does not know how the page looks."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairshield.analysis.report import Audited, AuditReport
from fairshield.base.counts import Group
from fairshield.periodic import Guarantee, PeriodicPolicy
from fairshield.records.dates import DATES
from fairshield.spec import Property

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Origin = Literal["policy", "log", "nobody"]
"""Source of the reason for overruling: the policy, asked again; the log; or none."""

_TIMES = (*DATES[1:], DATES[0])
"""Fields that say when a decision was made, the most precise first."""


@dataclass(frozen=True, slots=True)
class Overruled:
    """Overruled is a decision that is not what was proposed.

    ``before`` are the counters ``(n_a, k_a, n_b, k_b, ...)`` on which it rests; ``case`` and
    ``time`` are the log's own words for the person and the moment, if it has any.
    """

    line: int
    window: int
    position: int
    case: str
    time: str
    group: Group
    accepted: bool
    cost: float
    reason: str
    origin: Origin
    before: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Source is a file that the page rests on: its name, size and SHA-256 digest.

    ``size`` in bytes; ``lines`` of a log, 0 for a policy.
    """

    name: str
    sha256: str
    size: int
    lines: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Dossier:
    """Dossier holds everything that a page says.

    Attributes
    ----------
    prop, groups
        What had to hold, and between whom.
    report
        What the audit found.
    policy, standing
        The policy that decided, if it was given; where a periodic run stands at the end of the log.
    overruled
        Every decision that overruled a proposal, in order.
    unexplained
        Whether the log lacks proposals, so that nobody can be known to have been overruled.
    counters
        ``(decisions, 2 groups)``: ``n_a, k_a, n_b, k_b, ...`` after each decision.
    ends
        ``(windows,)``: decisions of the log up to the end of each window.
    by_window, by_position
        ``(windows, groups)`` and ``(longest window, groups)``: people overruled.
    log, policy_file, command, date
        Where all of this comes from, and how to make it again.
    """

    prop: Property
    groups: tuple[Group, ...]
    report: AuditReport
    policy: PeriodicPolicy | None
    standing: Guarantee | None
    overruled: tuple[Overruled, ...]
    unexplained: bool
    counters: Ints
    ends: Ints
    by_window: Ints
    by_position: Ints
    log: Source
    policy_file: Source | None
    command: str
    date: str

    @property
    def dated(self) -> bool:
        """Whether the days of some window are known."""
        return any(window.first_date is not None for window in self.report.windows)

    def mean_paid(self) -> tuple[float, float | None] | None:
        """Paid in a complete window on average, and the standard error; ``None`` if none is."""
        paid = np.array([window.paid for window in self.report.windows if window.complete])
        if not len(paid):
            return None
        error = None if len(paid) < 2 else float(paid.std(ddof=1)) / math.sqrt(len(paid))
        return float(paid.mean()), error


class Keeper:
    """Keeper records the counters after every decision of an audit, and who was overruled."""

    def __init__(self) -> None:
        self.overruled: list[Overruled] = []
        self.numbers = array("q")
        self.proposals = 0

    def __call__(self, seen: Audited) -> None:
        """Note one decision."""
        self.numbers.extend(seen.after)
        self.proposals += not seen.record.missing("proposed")
        if seen.overruled:
            self.overruled.append(_overruled(seen))


def _overruled(seen: Audited) -> Overruled:
    fields = seen.record.fields
    time = next((fields[name] for name in _TIMES if fields.get(name) not in (None, "")), "")
    case = fields.get("id", "")
    reason, origin = _reason(seen)
    return Overruled(
        seen.record.line, seen.window, seen.position, "" if case is None else str(case), str(time),
        seen.group, seen.accepted, seen.cost, reason, origin, seen.before,
    )  # fmt: skip


def _reason(seen: Audited) -> tuple[str, Origin]:
    ours, logged = seen.derived, seen.record.fields.get("reason")
    if ours is not None and ours.accepted == seen.accepted:
        return ours.reason, "policy"
    if ours is not None:
        return f"not the policy's decision, which would be: {ours.reason}", "policy"
    return (str(logged), "log") if logged not in (None, "") else ("not recorded", "nobody")


def collect(
    report: AuditReport,
    keeper: Keeper,
    *,
    prop: Property,
    log: Source,
    policy: PeriodicPolicy | None = None,
    policy_file: Source | None = None,
    standing: Guarantee | None = None,
    command: str = "",
    date: str = "",
) -> Dossier:
    """The dossier of an audit that ``keeper`` has watched."""
    groups = tuple(people.group for people in report.people)
    windows = report.windows
    counters = np.array(keeper.numbers, np.int64).reshape(-1, 2 * len(groups))
    ends = np.cumsum([window.decisions for window in windows], dtype=np.int64)
    for kept in (counters, ends):
        kept.setflags(write=False)
    longest = len(report.overruled_by_position)
    return Dossier(
        prop=prop,
        groups=groups,
        report=report,
        policy=policy,
        standing=standing,
        overruled=tuple(keeper.overruled),
        unexplained=report.decisions > 0 and not keeper.proposals,
        counters=counters,
        ends=ends,
        by_window=_by(keeper.overruled, groups, "window", len(windows)),
        by_position=_by(keeper.overruled, groups, "position", longest),
        log=log,
        policy_file=policy_file,
        command=command,
        date=date,
    )


def _by(people: list[Overruled], groups: tuple[Group, ...], what: Any, size: int) -> Ints:
    """``(size, groups)``: how many people, by number of the window or by position, and by group."""
    found = np.zeros((size, len(groups)), np.int64)
    at = [getattr(person, what) for person in people]
    np.add.at(found, (at, [groups.index(person.group) for person in people]), 1)
    found.setflags(write=False)
    return found
