"""Messages about streams: their settings, their state, and windows that are over."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from fairshield.base.counts import Group
from fairshield.spec import Verdict
from fairshield.wire.messages.decisions import WhatIf
from fairshield.wire.messages.fields import (
    AlarmKind,
    Message,
    Name,
    Number,
    Plain,
    RequestMessage,
    Status,
)


class StreamRequest(RequestMessage, frozen=True):
    """StreamRequest asks for a new stream of decisions.

    ``policy`` is the digest of a policy that the service holds.  ``windows`` limits how many
    windows a policy for one window decides, one after the other.  In a stream with ``human`` a
    person may override decisions.
    """

    name: Name
    policy: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
    windows: Number | None = None
    human: bool = False


class GroupState(Message, frozen=True):
    """GroupState holds the counters of one group: relevant people seen, accepted and proposed.

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
    """Rates holds relevant people of one group: seen, accepted and proposed."""

    group: Group
    seen: int
    accepted: int
    rate: float | None
    proposed: int
    proposed_rate: float | None


class InProgress(Message, frozen=True):
    """InProgress is the window or period in progress, and the counters judged at its end.

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
    """WholeStream counts all decisions of the stream since its first one.

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


class AlarmMessage(Message, frozen=True):
    """AlarmMessage is what the monitor beside a stream has found, at decision ``n``.

    ``bias``: the classifier's proposals are unfair beyond chance.  ``model``: people do not come as
    the input model of the policy says.  No decision depends on it.
    """

    kind: AlarmKind
    n: int
    seq: int
    at: str
    words: str


class StateMessage(Message, frozen=True):
    """StateMessage says where a stream stands, as of entry ``seq`` of its log.

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


class StreamMessage(Message, frozen=True):
    """StreamMessage says what a stream promises, and where it stands.

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
    alarms: tuple[AlarmMessage, ...]
    unwatched: str | None
    state: StateMessage


class StreamsMessage(Message, frozen=True):
    """StreamsMessage holds all streams, by name."""

    streams: tuple[StreamMessage, ...]


class GuaranteeReport(Message, frozen=True):
    """GuaranteeReport says what is guaranteed right now, in words and as data.

    The data are those of the library's report.
    """

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
    """WindowEnd is a window or period that is over: its verdict, its bias and its cost.

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
    """Windows holds windows or periods that are over, oldest first.

    ``next`` is the one to ask from next.
    """

    windows: tuple[WindowEnd, ...]
    next: int | None


class Outlook(Message, frozen=True):
    """Outlook says what is expected of the window or period in progress, as of entry ``seq``.

    ``expected_cost`` is ``null`` where fairness cannot be guaranteed or an outcome is awaited.
    """

    seq: int
    expected_cost: float | None
    what_if: tuple[WhatIf, ...]


class Series(Message, frozen=True):
    """Series holds bias and acceptance rates after decisions ``n``, up to entry ``seq``.

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
