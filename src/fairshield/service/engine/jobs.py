"""Jobs for the writing thread, and slots that hold streams in memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fairshield.service.engine.commands import Command
from fairshield.service.log.entries import Logged
from fairshield.service.log.live import Author, LiveStream
from fairshield.service.store import Connection
from fairshield.wire.problems import Refusal


@dataclass(slots=True)
class Job:
    """Job is work for the writing thread, and the future that waits for its result."""

    future: asyncio.Future[Any] | None


@dataclass(slots=True)
class Ask(Job):
    """Ask gives a command to a stream."""

    stream: str
    command: Command
    key: str | None
    actor: str | None


@dataclass(slots=True)
class StreamLook(Job):
    """StreamLook reads a stream as it is on disk."""

    stream: str
    look: Callable[[LiveStream], Any]


@dataclass(slots=True)
class Survey(Job):
    """Survey asks many streams for a view; ``last`` returns the earlier view of a busy one."""

    streams: Sequence[str]
    look: Callable[[LiveStream], Any]
    last: Callable[[LiveStream], Any]


@dataclass(slots=True)
class Write(Job):
    """Write is a transaction of its own."""

    write: Callable[[Connection], Any]


@dataclass(slots=True)
class Loaded(Job):
    """Loaded holds a stream that another thread has read from disk."""

    slot: Slot
    live: LiveStream | None
    error: Exception | None


@dataclass(slots=True)
class Applied(Job):
    """Applied holds the result of a command or look that another thread has carried out."""

    slot: Slot
    job: Ask | StreamLook
    logged: list[Logged]
    result: Any
    error: Exception | None


@dataclass(slots=True)
class Slot:
    """Slot holds a stream in memory; ``live`` is ``None`` while it is loading or broken."""

    name: str
    live: LiveStream | None = None
    busy: Ask | StreamLook | None = None
    loading: bool = False
    broken: Refusal | None = None
    waiting: deque[Ask | StreamLook] = field(default_factory=deque)

    @property
    def ready(self) -> bool:
        """Whether the stream can be asked."""
        return self.live is not None and self.busy is None


@dataclass(slots=True)
class Figures:
    """Figures counts what the engine has done so far."""

    commits: int = 0
    entries: int = 0
    failures: int = 0
    repeats: int = 0


class BatchHost(Protocol):
    """BatchHost is the part of the engine that a batch uses."""

    slots: dict[str, Slot]
    connection: Connection | None
    figures: Figures
    committed: Callable[[int, int, float], None]

    def now(self) -> str: ...
    def load(self, slot: Slot) -> None: ...
    def apply_elsewhere(self, slot: Slot, job: Ask | StreamLook, by: Author | None) -> None: ...
    def put_first(self, jobs: Sequence[Job]) -> None: ...
    def unavailable(self) -> Refusal: ...
