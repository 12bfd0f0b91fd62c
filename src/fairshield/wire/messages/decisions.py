"""Messages about decisions, outcomes and overrides: requests and answers."""

from __future__ import annotations

from typing import Annotated

import msgspec

from fairshield.base.counts import Group
from fairshield.wire.messages.fields import (
    MOST_IN_BATCH,
    Cost,
    Message,
    Named,
    Number,
    RequestMessage,
)


class DecisionRequest(RequestMessage, frozen=True):
    """DecisionRequest is one person, in order of arrival."""

    group: Named
    proposed: bool
    cost: Cost = 1.0


class BatchItem(DecisionRequest, frozen=True):
    """BatchItem is one person of many.

    ``outcome`` is given where the property counts by outcome and it is known.
    """

    outcome: bool | None = None


class BatchRequest(RequestMessage, frozen=True):
    """BatchRequest is many people in order of arrival; all are decided, or none."""

    decisions: Annotated[
        tuple[BatchItem, ...], msgspec.Meta(min_length=1, max_length=MOST_IN_BATCH)
    ]


class OutcomeRequest(RequestMessage, frozen=True):
    """OutcomeRequest is the ground truth about the person of a decision."""

    decision: Number
    outcome: bool


class OverrideRequest(RequestMessage, frozen=True):
    """OverrideRequest is a person's final decision, where it is not the shield's."""

    accepted: bool
    note: Annotated[str, msgspec.Meta(max_length=500)] = ""


class DecisionMessage(Message, frozen=True):
    """DecisionMessage is the answer to a request, and says where it is logged.

    It has the fields of the library's ``Decision``.  ``n`` counts the decisions of the stream from
    1, ``position`` those of its window or period from 0; ``remaining`` are left in it.
    ``receipt`` is the hash of the log up to this entry.
    """

    n: int
    seq: int
    at: str
    window: int
    position: int
    group: Group
    proposed: bool
    cost: float
    accepted: bool
    overruled: bool
    paid: float
    why: str
    reason: str
    guaranteed: bool
    remaining: int
    receipt: str


class DecisionsMessage(Message, frozen=True):
    """DecisionsMessage holds the answers to a batch, in order."""

    decisions: tuple[DecisionMessage, ...]


class Receipt(Message, frozen=True):
    """Receipt says how far a log has got."""

    seq: int
    receipt: str


class OutcomeMessage(Message, frozen=True):
    """OutcomeMessage is an outcome that was recorded."""

    decision: int
    outcome: bool
    seq: int
    at: str
    receipt: str


class Override(Message, frozen=True):
    """Override is a person's decision that was recorded.

    ``guaranteed`` says whether the property is still guaranteed.
    """

    decision: int
    accepted: bool
    note: str
    guaranteed: bool
    seq: int
    at: str
    receipt: str


class ExplanationMessage(Message, frozen=True):
    """ExplanationMessage says why a decision was made.

    Infinite costs, after which nothing is guaranteed, are ``null``.
    """

    decision: DecisionMessage
    text: str
    cost_if_accepted: float | None
    cost_if_rejected: float | None


class WhatIf(Message, frozen=True):
    """WhatIf is what the shield would answer to one request now."""

    group: Group
    proposed: bool
    cost: float
    accepted: bool
    overruled: bool
    why: str
    reason: str
