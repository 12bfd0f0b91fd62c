"""Answers as functions of the entries that were stored, so that a retry gets the same one."""

from __future__ import annotations

from fairshield.runtime.step import Why, reason_of
from fairshield.service.log.entries import Decided, Logged
from fairshield.wire.messages import DecisionMessage


def decision_of(logged: Logged, length: int) -> DecisionMessage:
    """The answer that an entry records, in a stream with windows or periods of this length."""
    e = logged.entry
    assert isinstance(e, Decided)
    overruled = e.accepted is not e.proposed
    return DecisionMessage(
        n=e.n, seq=e.seq, at=e.at, window=e.window, position=e.position, group=e.group,
        proposed=e.proposed, cost=e.cost, accepted=e.accepted, overruled=overruled,
        paid=e.cost if overruled else 0.0, why=e.why,
        reason=reason_of(
            Why(e.why), e.group, proposed=e.proposed, accepted=e.accepted, cost=e.cost,
            guaranteed=e.guaranteed,
        ),
        guaranteed=e.guaranteed, remaining=length - e.position - 1,
        receipt=logged.row.hash.hex(),
    )  # fmt: skip
