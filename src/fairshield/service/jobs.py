"""What the writing thread is given to do, and the places of streams in memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairshield.service.commands import Command
from fairshield.service.entries import Row
from fairshield.service.live import LiveStream
from fairshield.service.problems import Refusal
from fairshield.service.store import Connection


@dataclass(slots=True)
class Job:
    """Something for the writing thread, and the future that waits for it."""

    future: asyncio.Future[Any] | None


@dataclass(slots=True)
class Ask(Job):
    """A command for a stream."""

    stream: str
    command: Command
    key: str | None
    actor: str | None


@dataclass(slots=True)
class Query(Job):
    """A look at a stream as it is on disk."""

    stream: str
    look: Callable[[LiveStream], Any]


@dataclass(slots=True)
class Survey(Job):
    """A look at many streams at once; ``last`` is what was seen of one that is busy, if known."""

    streams: Sequence[str]
    look: Callable[[LiveStream], Any]
    last: Callable[[LiveStream], Any]


@dataclass(slots=True)
class Write(Job):
    """A transaction of its own."""

    write: Callable[[Connection], Any]


@dataclass(slots=True)
class Loaded(Job):
    """A stream that was read from disk in another thread."""

    slot: Slot
    live: LiveStream | None
    error: Exception | None


@dataclass(slots=True)
class Applied(Job):
    """A command that was applied, or a look that was taken, in another thread."""

    slot: Slot
    job: Ask | Query
    rows: list[Row]
    result: Any
    error: Exception | None


@dataclass(slots=True)
class Slot:
    """A stream's place in memory; ``live`` is ``None`` while it is loaded or cannot be."""

    name: str
    live: LiveStream | None = None
    busy: Ask | Query | None = None
    loading: bool = False
    broken: Refusal | None = None
    waiting: deque[Ask | Query] = field(default_factory=deque)

    @property
    def ready(self) -> bool:
        """Whether the stream can be asked."""
        return self.live is not None and self.busy is None


@dataclass(slots=True)
class Figures:
    """What the engine has done so far."""

    commits: int = 0
    entries: int = 0
    failures: int = 0
    repeats: int = 0
