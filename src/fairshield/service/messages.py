"""What travels over HTTP: one struct for each message, strict when read.

The same structs are the schemas of the OpenAPI document and what the client returns.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from fairshield.counts import Group

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$(?!\n)")]
"""Of a stream: it is part of addresses."""
Named = (
    Annotated[str, msgspec.Meta(max_length=200)]
    | Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
)
"""A group, as JSON."""
Cost = Annotated[float, msgspec.Meta(ge=0.0, le=1e300)]
Number = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Whole = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Status = Literal["guaranteed", "at-risk", "violated", "finished"]
Scope = Literal["decide", "read", "admin"]

MOST_IN_BATCH = 10_000


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of what a client sends."""


class Message(msgspec.Struct, frozen=True):
    """Base of what the service answers."""


# Decisions ----------------------------------------------------------------------------------


class DecisionRequest(Request, frozen=True):
    """One person, in order of arrival."""

    group: Named
    proposed: bool
    cost: Cost = 1.0


class BatchItem(DecisionRequest, frozen=True):
    """One person of many; ``outcome`` where the property counts by outcome and it is known."""

    outcome: bool | None = None


class BatchRequest(Request, frozen=True):
    """Many people in order of arrival; all are decided, or none."""

    decisions: Annotated[
        tuple[BatchItem, ...], msgspec.Meta(min_length=1, max_length=MOST_IN_BATCH)
    ]


class OutcomeRequest(Request, frozen=True):
    """The ground truth about the person of a decision."""

    decision: Number
    outcome: bool


class OverrideRequest(Request, frozen=True):
    """A person's final decision, where it is not the shield's."""

    accepted: bool
    note: Annotated[str, msgspec.Meta(max_length=500)] = ""


class Decision(Message, frozen=True):
    """The answer to a request: the fields of the library's ``Decision``, and where it is logged.

    ``n`` counts the decisions of the stream from 1, ``position`` those of its window or period
    from 0; ``remaining`` are left in it.  ``receipt`` is the hash of the log up to this entry.
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


class Decisions(Message, frozen=True):
    """Answers to a batch, in order."""

    decisions: tuple[Decision, ...]


class Receipt(Message, frozen=True):
    """How far a log has got."""

    seq: int
    receipt: str


class Outcome(Message, frozen=True):
    """An outcome that was recorded."""

    decision: int
    outcome: bool
    seq: int
    at: str
    receipt: str


class Override(Message, frozen=True):
    """A person's decision that was recorded; ``guaranteed`` says what it left of the guarantee."""

    decision: int
    accepted: bool
    note: str
    guaranteed: bool
    seq: int
    at: str
    receipt: str


# Streams ------------------------------------------------------------------------------------


class StreamRequest(Request, frozen=True):
    """A new stream of decisions.

    ``policy`` is the digest of a policy that the service holds.  ``windows`` limits how many
    windows a policy for one window decides, one after the other.  In a stream with ``human`` a
    person may override decisions.
    """

    name: Name
    policy: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
    windows: Number | None = None
    human: bool = False


class GroupState(Message, frozen=True):
    """Counters of one group: relevant people seen, and accepted; by the classifier alone, too.

    They are those of the window, or of the whole run, in periods; ``overruled`` counts decisions
    since the stream began.
    """

    group: Group
    seen: int
    accepted: int
    rate: float | None
    proposed: int
    proposed_rate: float | None
    overruled: int


class State(Message, frozen=True):
    """Where a stream stands, as of entry ``seq`` of its log.

    ``window`` is the window or period in progress, from 0, of which ``position`` decisions are
    made and ``remaining`` are left.  ``bias`` is that of the counters now (of the window; of the
    whole run, in periods), ``bias_unshielded`` what the classifier's proposals would have led to.
    Infinite biases are ``null``.  ``overruled`` decisions are the shield's, at ``cost_paid``;
    ``overridden`` ones are those that a person has changed.  ``pending`` is the decision whose
    outcome is awaited.
    """

    seq: int
    decisions: int
    window: int
    position: int
    remaining: int
    groups: tuple[GroupState, ...]
    bias: float | None
    bias_unshielded: float | None
    holds: bool
    guaranteed: bool
    pending: int | None
    overruled: int
    overridden: int
    cost_paid: float
    windows_completed: int
    windows_fair: int
    windows_unshielded_fair: int
    worst_bias: float | None
    receipt: str


class Stream(Message, frozen=True):
    """A stream: what it promises, and where it stands.

    ``kind`` is ``"window"`` or the kind of periodic shield; ``length`` the decisions in a window
    or period; ``limit`` the largest bias that is fair.  ``labelled``: every decision must be
    followed by its outcome.
    """

    name: str
    status: Status
    policy: str
    kind: str
    property: str
    limit: float | None
    length: int
    windows: int | None
    groups: tuple[Group, ...]
    labelled: bool
    human: bool
    created: str
    closed: bool
    state: State


class Streams(Message, frozen=True):
    """All streams, by name."""

    streams: tuple[Stream, ...]


class GuaranteeReport(Message, frozen=True):
    """What is guaranteed right now, in words and as data (that of the library's report)."""

    stream: str
    status: Status
    words: str
    guaranteed: bool
    unconditional: bool
    windows_completed: int
    windows_fair: int
    report: dict[str, Any]


class WindowEnd(Message, frozen=True):
    """A window or period that is over: its counters at the end, and what it took."""

    window: int
    n: int
    seq: int
    at: str
    fair: bool
    bias: float | None
    bias_unshielded: float | None
    overruled: int
    cost_paid: float


class Windows(Message, frozen=True):
    """Windows or periods that are over, oldest first; ``next`` is the one to ask from next."""

    windows: tuple[WindowEnd, ...]
    next: int | None


class Explanation(Message, frozen=True):
    """Why a decision was made; infinite costs, after which nothing is guaranteed, are ``null``."""

    decision: Decision
    text: str
    cost_if_accepted: float | None
    cost_if_rejected: float | None


class WhatIf(Message, frozen=True):
    """What the shield would answer to one request now."""

    group: Group
    proposed: bool
    cost: float
    accepted: bool
    overruled: bool
    why: str
    reason: str


class Outlook(Message, frozen=True):
    """What is to be expected of the window or period in progress, as of entry ``seq``.

    ``expected_cost`` is ``null`` where fairness cannot be guaranteed or an outcome is awaited.
    """

    seq: int
    expected_cost: float | None
    what_if: tuple[WhatIf, ...]


Plain = float | None
"""A number; ``null`` for what JSON lacks."""


class Series(Message, frozen=True):
    """Bias and acceptance rates after decisions ``n``, up to entry ``seq``."""

    seq: int
    n: tuple[int, ...]
    bias: tuple[Plain, ...]
    bias_unshielded: tuple[Plain, ...]
    rates: tuple[tuple[Plain, ...], ...]


class Service(Message, frozen=True):
    """How the service itself is doing; latencies in seconds, of the last decisions."""

    status: str
    waiting: int
    latency_p50: float | None
    latency_p99: float | None


class Update(Message, frozen=True):
    """What has changed in a stream: points since the last update, and the latest decisions."""

    stream: Stream
    series: Series
    decisions: tuple[Decision, ...]
    service: Service


# The log ------------------------------------------------------------------------------------


class LogEntry(Message, frozen=True):
    """An entry of a log: its line as stored, and the hash of the log up to it."""

    line: dict[str, Any]
    receipt: str


class Log(Message, frozen=True):
    """A page of a log; ``next`` is the ``after`` of the next one, ``null`` on the last."""

    entries: tuple[LogEntry, ...]
    next: int | None


# Policies -----------------------------------------------------------------------------------


class Policy(Message, frozen=True):
    """A policy that the service holds, or is making.

    ``status``: ``synthesising``, ``verifying``, ``ready`` or ``refused``; only ready ones decide.
    """

    id: str
    status: Literal["synthesising", "verifying", "ready", "refused"]
    progress: float
    digest: str | None
    words: str | None
    verification: str | None
    error: str | None
    size: int | None
    created: str


class Policies(Message, frozen=True):
    """All policies."""

    policies: tuple[Policy, ...]


# The service --------------------------------------------------------------------------------


class Problem(Message, frozen=True, omit_defaults=True):
    """An error (RFC 9457): ``type`` names the problem, ``detail`` the value and the remedy."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None


class Health(Message, frozen=True):
    """Whether the service can answer; ``loading`` streams are being replayed."""

    status: str
    loading: int
    version: str
