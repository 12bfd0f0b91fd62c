"""The stored form of a stream's ledger, between two windows."""

from __future__ import annotations

import msgspec

from fairshield.base.counts import Counts
from fairshield.base.plain import plain_number
from fairshield.runtime.ledger import Ledger
from fairshield.spec import Verdict


class Whole(msgspec.Struct):
    """Whole counts relevant people by group in windows that are over.

    They are counted with the shield and without it.  ``exempt`` counts the windows, or periods, in
    which the property bound nothing.  In periods counters go on, and the people are those of the
    shield.
    """

    seen: list[int]
    accepted: list[int]
    proposed: list[int]
    exempt: int = 0


class StreamTally(msgspec.Struct):
    """StreamTally is the ledger of a stream between two windows.

    It counts since the beginning; fields that begin with ``window_`` are of the last window.
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
    cells: list[int] | None = None
    """The cells of the ledger; ``None`` if they do not account for everybody.

    They do not in a tally of an earlier version, nor in those that follow it.
    """

    @staticmethod
    def of(ledger: Ledger) -> StreamTally:
        """A ledger between two windows."""
        groups = [ledger.people(i) for i in range(len(ledger.groups))]
        nobody, proposed = [0] * len(groups), [people.proposed for people in groups]
        whole = Whole([*nobody], [*nobody], [*nobody], ledger.shielded.exempt)
        if not ledger.goes_on:
            whole.seen, whole.proposed = [people.seen for people in groups], proposed
            whole.accepted = [people.accepted for people in groups]
        return StreamTally(
            proposed=proposed if ledger.goes_on else nobody,
            overruled_by_group=[people.overruled for people in groups],
            overruled=ledger.overruled,
            overridden=ledger.overridden,
            cost_paid=ledger.paid,
            window_overruled=ledger.window_overruled,
            window_cost=ledger.window_paid,
            completed=ledger.windows,
            fair=ledger.shielded.fair,
            unshielded_fair=ledger.unshielded.fair,
            worst_bias=plain_number(ledger.shielded.largest_bias),
            window_verdict=ledger.shielded.now or "exempt",
            window_unshielded=ledger.unshielded.now or "exempt",
            whole=whole,
            cells=[*ledger.cells] if ledger.complete else None,
        )

    def resume(self, ledger: Ledger, decided: int, counts: Counts) -> None:
        """Let a new ledger go on after so many decisions; ``counts`` are those of its periods."""
        rows = list(zip(ledger.groups, ledger.starts, strict=True))
        whole, nobody = self.whole, [0] * len(rows)
        seen, accepted, proposed = nobody, nobody, self.proposed
        if ledger.goes_on:
            seen = [counts[group].seen - start.seen for group, start in rows]
            accepted = [counts[group].accepted - start.accepted for group, start in rows]
        elif whole is not None:
            seen, accepted, proposed = whole.seen, whole.accepted, whole.proposed
        people = zip(seen, accepted, proposed, self.overruled_by_group, strict=True)
        totals = [list(row) for row in people]
        ended = {"windows": self.completed, "exempt": 0 if whole is None else whole.exempt}
        shielded = {"fair": self.fair, "largest_bias": self.worst_bias, "now": self.window_verdict}
        unshielded = {"fair": self.unshielded_fair, "now": self.window_unshielded}
        ledger.resume(
            {
                "cells": self.cells,
                "people": totals,
                "base": totals,
                "overridden": self.overridden,
                "overruled_before": self.overruled - self.window_overruled,
                "decided": decided,
                "begun": decided,
                "over": self.completed > 0,
                "paid": self.cost_paid,
                "window_paid": self.window_cost,
                "shielded": ended | shielded,
                "unshielded": ended | unshielded,
            }
        )
