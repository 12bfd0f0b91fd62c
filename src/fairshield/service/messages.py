"""What travels over HTTP: one struct for each message, strict when read.

The same structs are the schemas of the OpenAPI document and what the client returns.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from fairshield.counts import Group
from fairshield.spec import Verdict

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
Status = Literal["guaranteed", "at-risk", "violated", "finished", "vacuous"]
AlarmKind = Literal["bias", "model"]
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


class Rates(Message, frozen=True):
    """Relevant people of one group: seen, and accepted; by the classifier alone, too."""

    group: Group
    seen: int
    accepted: int
    rate: float | None
    proposed: int
    proposed_rate: float | None


class InProgress(Message, frozen=True):
    """The window or period in progress, and the counters that the property is asked of at its end.

    ``window`` counts from 0, ``position`` the decisions made in it.  Counters begin anew with every
    window, and with what the policy starts from; in periods they go on, and so ``groups`` and
    biases are those of all decisions since the first.  ``verdict`` is what the property says of
    them now: ``"exempt"`` if it would bind nothing.  Without support ``bias`` is 0, and
    ``measured_bias`` is what there is all the same.  ``overruled`` decisions, and what they cost,
    are those of this window or period.
    """

    window: int
    position: int
    remaining: int
    groups: tuple[Rates, ...]
    bias: float | None
    bias_unshielded: float | None
    measured_bias: float | None
    measured_bias_unshielded: float | None
    verdict: Verdict
    guaranteed: bool
    overruled: int
    cost_paid: float


class WholeStream(Message, frozen=True):
    """All decisions of the stream since its first one.

    ``windows`` (or periods) are over; in so many of them the property bound and held (``fair``),
    did not hold when it was due (``unfair``), or bound nothing (``exempt``), which adds up.
    ``unshielded_fair`` would have been fair without the shield.  ``worst_bias`` is the largest
    bias when the property was due.  ``groups`` leave out what the policy's counters start from.
    """

    decisions: int
    groups: tuple[Rates, ...]
    overruled: int
    overridden: int
    cost_paid: float
    windows: int
    fair: int
    unfair: int
    exempt: int
    unshielded_fair: int
    worst_bias: float | None


class Alarm(Message, frozen=True):
    """What the monitor beside a stream has found, at decision ``n``.

    ``bias``: the classifier's proposals are unfair beyond chance.  ``model``: people do not come as
    the input model of the policy says.  No decision depends on it.
    """

    kind: AlarmKind
    n: int
    seq: int
    at: str
    words: str


class State(Message, frozen=True):
    """Where a stream stands, as of entry ``seq`` of its log.

    ``in_progress`` has what is of the window or period in progress, ``whole_stream`` what is of
    all decisions since the first; the other numbers are the same again.  Of these,
    ``window``, ``position``, ``remaining``, ``groups`` (but for ``overruled`` in them), ``bias``,
    ``bias_unshielded``, ``holds`` and ``guaranteed`` are of the window or period in progress;
    ``decisions``, ``overruled``, ``overridden``, ``cost_paid``, ``worst_bias`` and all that begin
    with ``windows_`` are of the whole stream.  Infinite biases are ``null``.  ``pending`` is the
    decision whose outcome is awaited.
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
    windows_unfair: int
    windows_exempt: int
    windows_unshielded_fair: int
    worst_bias: float | None
    receipt: str
    in_progress: InProgress
    whole_stream: WholeStream


class Stream(Message, frozen=True):
    """A stream: what it promises, and where it stands.

    ``kind`` is ``"window"`` or the kind of periodic shield; ``length`` the decisions in a window
    or period; ``limit`` the largest bias that is fair.  ``labelled``: every decision must be
    followed by its outcome.  After ``checkpoints`` decisions of a window the property must hold,
    too, not only at the end.  ``can_bind``: whether the property can ever bind; if it cannot, the
    ``status`` is ``"vacuous"``.  ``alarms`` are those of the monitor, in order, and
    ``unwatched`` says why there will be no more of them, if the monitor has failed.
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
    checkpoints: tuple[int, ...]
    human: bool
    created: str
    closed: bool
    can_bind: bool
    alarms: tuple[Alarm, ...]
    unwatched: str | None
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
    can_bind: bool
    windows_completed: int
    windows_fair: int
    windows_unfair: int
    windows_exempt: int
    report: dict[str, Any]


class WindowEnd(Message, frozen=True):
    """A window or period that is over: its counters at the end, and what it took.

    It is ``"unfair"`` if the property did not hold at its end or at a checkpoint, ``"exempt"`` if
    it bound nothing there, and ``fair`` otherwise.  Without support ``bias`` is 0, and
    ``measured_bias`` is what there was all the same.  ``verdict`` and measured biases are ``null``
    in an end that an earlier version stored, until the service has replayed it.
    """

    window: int
    n: int
    seq: int
    at: str
    fair: bool
    bias: float | None
    bias_unshielded: float | None
    overruled: int
    cost_paid: float
    verdict: Verdict | None
    measured_bias: float | None
    measured_bias_unshielded: float | None


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
    """Bias and acceptance rates after decisions ``n``, up to entry ``seq``.

    All are of the counters of the window (of all decisions, in periods).  Without support ``bias``
    is 0, and ``measured_bias`` is what there was all the same; ``binds`` says where it counted.
    """

    seq: int
    n: tuple[int, ...]
    bias: tuple[Plain, ...]
    bias_unshielded: tuple[Plain, ...]
    rates: tuple[tuple[Plain, ...], ...]
    binds: tuple[bool, ...]
    measured_bias: tuple[Plain, ...]
    measured_bias_unshielded: tuple[Plain, ...]


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
