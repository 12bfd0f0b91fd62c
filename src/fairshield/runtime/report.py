"""What an audit found, as values: windows, violations, differences, totals."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

from fairshield.counts import Counts, Group
from fairshield.records import Record
from fairshield.runtime.step import Decision


class Audited(NamedTuple):
    """One decision of a log, as an audit counted it.

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
    """One window of the log.

    ``complete`` says whether all its decisions have been made and their outcomes are known;
    ``holds`` whether the property holds for ``counts``, which binds only if it is complete.
    """

    first_line: int
    last_line: int
    decided: int
    counts: Counts
    bias: float
    holds: bool
    complete: bool


@dataclass(frozen=True, slots=True)
class Violation:
    """A point where the property had to hold and did not: ``decided`` decisions into a window.

    ``window`` counts from 0, ``line`` is that of the decision that completed the violation.
    """

    window: int
    line: int
    decided: int
    counts: Counts
    bias: float


@dataclass(frozen=True, slots=True)
class Difference:
    """A logged decision that the policy would not have made, and why it would not."""

    line: int
    accepted: bool
    expected: bool
    reason: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What :func:`fairshield.audit` found; true in a boolean context if the property held.

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
    decisions, overruled, cost_paid
        Totals.
    overruled_by_group, overruled_by_position
        Whom the interventions fell on: by group, and by place in the window from 0 on.
    followed
        People of groups that were not declared, who are not counted.
    checked
        Moments that the log reaches at which the property had to hold; of none, ``holds`` says
        nothing.
    told
        Decisions of which the log tells whether they were overruled; the totals are about them.
    """

    prop: str
    limit: float
    windows: tuple[Window, ...]
    violations: tuple[Violation, ...]
    difference: Difference | None
    decisions: int
    overruled: int
    cost_paid: float
    overruled_by_group: dict[Group, int]
    overruled_by_position: tuple[int, ...]
    followed: dict[Group, int] = field(default_factory=dict)
    checked: int = 0
    told: int = 0

    @property
    def holds(self) -> bool:
        """Whether the property held wherever the log reaches a point at which it had to."""
        return not self.violations

    def __bool__(self) -> bool:
        return self.holds

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; counters are lists, because JSON has no integer keys."""
        return {
            "holds": self.holds,
            "checked": self.checked,
            "property": self.prop,
            "limit": self.limit,
            "decisions": self.decisions,
            "told": self.told,
            "overruled": self.overruled,
            "cost_paid": self.cost_paid,
            "overruled_by_group": [[g, n] for g, n in self.overruled_by_group.items()],
            "overruled_by_position": list(self.overruled_by_position),
            "followed": [[g, n] for g, n in self.followed.items()],
            "violations": [_plain(violation) for violation in self.violations],
            "difference": None if self.difference is None else asdict(self.difference),
            "windows": [_plain(window) for window in self.windows],
        }


def plain_counts(counts: Counts) -> list[list[Any]]:
    """``[group, seen, accepted]`` of each group."""
    return [[group, *count] for group, count in counts.items()]


def plain_number(value: float) -> float | None:
    """``value``, or ``None`` for the infinity that JSON lacks."""
    return value if math.isfinite(value) else None


def _plain(item: Window | Violation) -> dict[str, Any]:
    data = {f.name: getattr(item, f.name) for f in fields(item)}
    return {**data, "counts": plain_counts(item.counts), "bias": plain_number(item.bias)}
