"""What handlers share: the parts of a running service, and one request to it."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from fairshield.service.access import Access, Caller, RateLimit
from fairshield.service.engine import Engine
from fairshield.service.http import Scope
from fairshield.service.policies import Shelf, Workshop


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request, and one caller, may take.

    ``rate`` is requests per second of one caller (0: no limit), ``body`` and ``upload`` bytes of a
    request and of a policy file, ``seconds`` how long a request may take to arrive.
    """

    rate: float = 10_000.0
    body: int = 4 << 20
    upload: int = 256 << 20
    seconds: float = 20.0


class Latencies:
    """How long the last decisions took, from request to answer."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=2_000)

    def add(self, seconds: float) -> None:
        """Note one."""
        self._seconds.append(seconds)

    def quantile(self, share: float) -> float | None:
        """The time within which this share was answered."""
        ordered = sorted(self._seconds)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None


@dataclass(kw_only=True)
class Service:
    """A running service."""

    engine: Engine
    shelf: Shelf
    workshop: Workshop
    access: Access
    limits: Limits
    rate: RateLimit
    latencies: Latencies = field(default_factory=Latencies)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    demo: bool = False
    outlooks: dict[tuple[str, float], asyncio.Future[Any]] = field(default_factory=dict)
    """What pages wait for, by stream and cost: shared, as the first may compile for long."""


@dataclass(slots=True)
class Call:
    """One request, read and checked."""

    service: Service
    scope: Scope
    headers: dict[bytes, bytes]
    caller: Caller
    path: dict[str, Any]
    query: Any = None
    body: Any = None
    key: str | None = None
