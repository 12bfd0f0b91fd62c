"""What handlers share: the parts of a running service, and one request to it."""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from fairshield.service.access import Access, Caller, RateLimit
from fairshield.service.engine import Engine
from fairshield.service.http import Scope
from fairshield.service.messages import Stream
from fairshield.service.policies import Workshop
from fairshield.service.reports import describe
from fairshield.service.shelf import Shelf


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request, and one caller, may take.

    ``rate`` is requests per second of one caller (0: no limit), ``body`` and ``upload`` bytes of a
    request and of a policy file, ``seconds`` and ``upload_seconds`` how long they may take to
    arrive, ``connections`` those that are open at once.
    """

    rate: float = 10_000.0
    body: int = 4 << 20
    upload: int = 256 << 20
    seconds: float = 20.0
    upload_seconds: float = 300.0
    connections: int = 2_000


class Histogram:
    """How many values were at most so large, for each of some bounds."""

    def __init__(self, *bounds: float) -> None:
        self._bounds, self._counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Count one."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Every bound, and how many values are at most that."""
        names = (*(f"{bound:g}" for bound in self._bounds), "+Inf")
        return zip(names, accumulate(self._counts), strict=True)


_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class Latencies:
    """How long decisions took, from request to answer: all of them, and the last ones."""

    def __init__(self) -> None:
        self.histogram = Histogram(*_SECONDS)
        self._last: deque[float] = deque(maxlen=2_000)

    def add(self, seconds: float) -> None:
        """Note one."""
        self._last.append(seconds)
        self.histogram.add(seconds)

    def quantile(self, share: float) -> float | None:
        """The time within which this share was answered."""
        ordered = sorted(self._last)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None


class Commits:
    """How long group commits took, and how many entries they stored."""

    def __init__(self) -> None:
        self.seconds = Histogram(*_SECONDS)
        self.entries = Histogram(*(2**i for i in range(13)))

    def add(self, entries: int, seconds: float) -> None:
        """Note one."""
        self.entries.add(entries)
        self.seconds.add(seconds)


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
    commits: Commits = field(default_factory=Commits)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    findings: dict[str, int] = field(default_factory=dict)
    """What the audit at the start has found, by stream."""
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


async def described(service: Service, names: Iterable[str]) -> tuple[Stream, ...]:
    """These streams, by name; one that cannot be shown is left out, and says why when asked for."""
    found = await service.engine.survey(sorted(names), describe, lambda live: live.described)
    return tuple(seen for _, seen in sorted(found.items()) if isinstance(seen, Stream))
