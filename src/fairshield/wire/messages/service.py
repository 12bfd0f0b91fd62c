"""Messages about logs, policies and the service itself."""

from __future__ import annotations

from typing import Any, Literal

from fairshield.wire.messages.decisions import DecisionMessage
from fairshield.wire.messages.fields import Message
from fairshield.wire.messages.streams import Series, StreamMessage


class Service(Message, frozen=True):
    """Service says how the service is doing; latencies in seconds, of the last decisions."""

    status: str
    waiting: int
    latency_p50: float | None
    latency_p99: float | None


class Update(Message, frozen=True):
    """Update holds what has changed in a stream: new points, and the latest decisions."""

    stream: StreamMessage
    series: Series
    decisions: tuple[DecisionMessage, ...]
    service: Service


class LogEntry(Message, frozen=True):
    """LogEntry is an entry of a log: its line as stored, and the hash of the log up to it."""

    line: dict[str, Any]
    receipt: str


class Log(Message, frozen=True):
    """Log is a page of a log.

    ``next`` is the ``after`` of the next page, ``null`` on the last.
    """

    entries: tuple[LogEntry, ...]
    next: int | None


class PolicyMessage(Message, frozen=True):
    """PolicyMessage is a policy that the service holds, or is making.

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
    """Policies holds all policies."""

    policies: tuple[PolicyMessage, ...]


class ProblemMessage(Message, frozen=True, omit_defaults=True):
    """ProblemMessage is an error (RFC 9457): ``type`` names the problem.

    ``detail`` names the value and the remedy.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None


class Health(Message, frozen=True):
    """Health says whether the service can answer; ``loading`` streams are being replayed."""

    status: str
    loading: int
    version: str
