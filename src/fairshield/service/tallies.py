"""What is counted beside the shield of a stream, and how its windows are judged."""

from __future__ import annotations

import math

import msgspec

from fairshield.counts import Counts
from fairshield.runtime.report import plain_number
from fairshield.spec import Property, Verdict, worst


def overall(*verdicts: Verdict) -> Verdict:
    """What to say of several moments: exempt also where there was none.

    >>> overall("exempt", "fair"), overall("fair", "unfair", "exempt"), overall()
    ('fair', 'unfair', 'exempt')
    """
    return worst(verdicts) or "exempt"


class Whole(msgspec.Struct):
    """Windows that are over: relevant people by group, with and without the shield.

    ``exempt`` counts the windows, or periods, in which the property bound nothing.  In periods
    counters go on, and the people are those of the shield.
    """

    seen: list[int]
    accepted: list[int]
    proposed: list[int]
    exempt: int = 0

    @staticmethod
    def nobody(groups: int) -> Whole:
        """Before the first window."""
        return Whole([0] * groups, [0] * groups, [0] * groups)

    def copy(self) -> Whole:
        """The same, to be counted on separately."""
        return Whole([*self.seen], [*self.accepted], [*self.proposed], self.exempt)


class Tally(msgspec.Struct):
    """What is counted beside the shield, since the beginning of the stream or of its window.

    ``proposed`` counts, by group, the relevant people whom the classifier would have accepted;
    ``overruled`` what the shield decided otherwise than proposed, ``overridden`` what a person
    decided otherwise than the shield.  ``completed`` windows are ``fair``, unfair or exempt.
    """

    proposed: list[int]
    overruled_by_group: list[int]
    overruled: int = 0
    overridden: int = 0
    cost_paid: float = 0.0
    window_overruled: int = 0
    window_cost: float = 0.0
    completed: int = 0
    fair: int = 0
    unshielded_fair: int = 0
    worst_bias: float | None = 0.0
    """``None``: infinite, which JSON lacks."""
    window_verdict: Verdict = "exempt"
    """Of the moments of this window at which the property was due, as they stood then."""
    window_unshielded: Verdict = "exempt"
    whole: Whole | None = None
    """``None``: the tally of an earlier version, whose ``fair`` windows include exempt ones."""

    @staticmethod
    def empty(groups: int) -> Tally:
        """Before the first decision."""
        return Tally([0] * groups, [0] * groups, whole=Whole.nobody(groups))

    @property
    def largest_bias(self) -> float:
        """The largest bias when the property was due."""
        return math.inf if self.worst_bias is None else self.worst_bias

    @property
    def exempt(self) -> int:
        """Windows that are over, and in which the property bound nothing."""
        return 0 if self.whole is None else self.whole.exempt

    @property
    def unfair(self) -> int:
        """Windows that are over, and in which the property once did not hold when it was due."""
        return self.completed - self.fair - self.exempt

    def copy(self) -> Tally:
        """The same, to be counted on separately."""
        return msgspec.structs.replace(
            self,
            proposed=[*self.proposed],
            overruled_by_group=[*self.overruled_by_group],
            whole=None if self.whole is None else self.whole.copy(),
        )

    # A window -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin to count a window or period."""
        self.window_overruled, self.window_cost = 0, 0.0
        self.window_verdict = self.window_unshielded = "exempt"

    def judge(self, prop: Property, counts: Counts, unshielded: Counts) -> None:
        """Note how counters stand at a moment when the property is due."""
        self.window_verdict = overall(self.window_verdict, prop.verdict(counts))
        self.window_unshielded = overall(self.window_unshielded, prop.verdict(unshielded))
        self.worst_bias = plain_number(max(self.largest_bias, prop.bias_of(counts)))

    def keep_judged(self, before: Tally) -> None:
        """Take over what was judged in this window: what is past does not change any more."""
        self.window_verdict = before.window_verdict
        self.window_unshielded = before.window_unshielded
        self.worst_bias = before.worst_bias

    def end(self, completed: int) -> None:
        """Count the window or period that has been judged at its end."""
        self.completed = completed
        self.fair += self.window_verdict == "fair"
        self.unshielded_fair += self.window_unshielded == "fair"
        if self.whole is not None:
            self.whole.exempt += self.window_verdict == "exempt"

    def put_away(self, counts: Counts, start: Counts) -> None:
        """Add the people of a window that is over to those before, and begin with nobody."""
        whole = self.whole
        if whole is not None:
            for i, group in enumerate(counts):
                whole.seen[i] += counts[group].seen - start[group].seen
                whole.accepted[i] += counts[group].accepted - start[group].accepted
                whole.proposed[i] += self.proposed[i]
        self.proposed = [0] * len(self.proposed)
