"""What handlers share: the parts of a running service, and one request to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fairshield.service.engine.engine import Engine
from fairshield.service.log.reports import describe
from fairshield.service.policies.jobs import PolicyJobs
from fairshield.service.store.policies import LoadedPolicies
from fairshield.service.web.access import Access, Caller, RateLimit
from fairshield.service.web.http import Scope
from fairshield.service.web.timings import Commits, Latencies
from fairshield.wire.messages import StreamMessage
from fairshield.wire.problems import Refusal


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits says how much one request, and one caller, may take.

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


@dataclass(kw_only=True)
class RunningService:
    """RunningService holds the parts of a running service."""

    engine: Engine
    policies: LoadedPolicies
    policy_jobs: PolicyJobs
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
    """Outlooks under way, by stream and cost; pages share them, as compiling may take long."""


@dataclass(slots=True)
class Call:
    """Call is one request, read and checked."""

    service: RunningService
    scope: Scope
    headers: dict[bytes, bytes]
    caller: Caller
    path: dict[str, Any]
    query: Any = None
    body: Any = None
    key: str | None = None


async def described(service: RunningService, names: Iterable[str]) -> tuple[StreamMessage, ...]:
    """These streams, by name; one that cannot be shown is left out, and says why when asked for."""
    found = await service.engine.survey(sorted(names), describe, lambda live: live.described)
    return tuple(seen for _, seen in sorted(found.items()) if not isinstance(seen, Refusal))


async def stream_number(call: Call) -> int:
    """The number of the stream that is asked about."""
    name: str = call.path["name"]
    number = await call.service.engine.read(lambda connection: connection.stream(name))
    if number is None:
        raise Refusal("not-found", f"there is no stream {name!r}")
    return number
