"""Recount counts the decisions of a log again for an audit, from what the log says alone.

It shares no code with :class:`fairshield.runtime.ledger.Ledger`, which counts while decisions are
made, on purpose: a fault of one of them shows as a difference to the other.  Audits of files, of
the command line and of databases count with it.
"""

from __future__ import annotations

from fairshield.base.counts import Counts, Group
from fairshield.runtime.window_rule import WindowRule
from fairshield.spec import Finding, Property, Verdict, worst


class Recount:
    """Recount holds the counters of the window in progress and the verdicts of the property.

    Parameters
    ----------
    prop
        What had to hold.
    start
        Counters before the first decision of a window, or of the first period.
    rule
        How long windows are, and when the property had to hold; without a length the caller ends
        them with :meth:`end`.
    """

    def __init__(self, prop: Property, start: Counts, rule: WindowRule) -> None:
        self.prop, self.start, self.rule = prop, start, rule
        self._due = frozenset(rule.due)
        self.windows = 0
        self._begin()

    def _begin(self) -> None:
        self.decided = 0
        self._verdicts: set[Verdict] = set()
        if not self.rule.goes_on or not self.windows:
            self.seen = {group: count.seen for group, count in self.start.items()}
            self.accepted = {group: count.accepted for group, count in self.start.items()}

    @property
    def counts(self) -> Counts:
        """Counters now, those at the start included."""
        return Counts({group: (self.seen[group], self.accepted[group]) for group in self.start})

    def numbers(self) -> tuple[int, ...]:
        """Counters as ``n_a, k_a, n_b, k_b, …``."""
        return tuple(n for group in self.start for n in (self.seen[group], self.accepted[group]))

    def add(self, group: Group, accepted: bool, outcome: bool | None = None) -> None:
        """Count a decision; ``outcome`` where it changes what is counted."""
        self.decided += 1
        seen, taken = self.prop.counting.gain(accepted, outcome)
        self.seen[group] += seen
        self.accepted[group] += taken

    @property
    def full(self) -> bool:
        """Whether the window has all its decisions."""
        return self.decided == self.rule.length

    @property
    def due(self) -> bool:
        """Whether the property has to hold of the counters now, by their position alone."""
        return self.decided in self._due

    def judge(self) -> Finding:
        """Ask the property about the counters now."""
        finding = self.prop.finding(self.counts)
        self._verdicts.add(finding.verdict)
        return finding

    @property
    def verdict(self) -> Verdict | None:
        """The worst verdict of this window so far; ``None`` before the property was due."""
        return worst(self._verdicts)

    def end(self) -> None:
        """Begin the next window."""
        self.windows += 1
        self._begin()
