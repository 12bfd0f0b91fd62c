"""Server-sent events: changes of streams, a few times a second, since the client's last one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
from starlette.responses import StreamingResponse

from fairshield.service.history import views
from fairshield.service.log.answers import decision_of
from fairshield.service.log.entries import logged
from fairshield.service.log.reports import describe
from fairshield.service.store import Connection
from fairshield.service.web.context import Call, RunningService, described, stream_number
from fairshield.service.web.http import App
from fairshield.wire.messages import Service, StreamMessage, StreamsMessage, Update
from fairshield.wire.problems import Refusal

_PACE = 0.4
"""Seconds between two events."""
_PULSE = 2.0
"""Seconds after which an idle connection gets a comment line, and its key is checked again."""
_MOST_DECISIONS = 20
_MOST_POINTS = 2_000


async def stream_events(call: Call) -> App:
    """Updates of one stream; ``Last-Event-ID`` is the entry up to which the client knows it."""
    name, engine, policies = call.path["name"], call.service.engine, call.service.policies
    number = await stream_number(call)
    known = _known(call)

    async def update() -> tuple[str, bytes]:
        nonlocal known
        stream: StreamMessage = await engine.query(name, describe)
        since = known

        def look(connection: Connection) -> Update:
            series = views.series(number, connection, policies, after=since, last=_MOST_POINTS)
            rows = connection.latest(number, limit=_MOST_DECISIONS)
            new = (logged(row) for row in rows if row.seq > (since or 0))
            return Update(
                stream=stream,
                series=series,
                decisions=tuple(decision_of(made, stream.length) for made in new),
                service=service_state(call.service),
            )

        found = await engine.read(look)
        known = found.series.seq
        return str(known), msgspec.json.encode(found)

    return _sse(call, name, update)


async def all_events(call: Call) -> App:
    """Updates of all streams."""
    engine, only = call.service.engine, call.caller.stream

    async def update() -> tuple[str, bytes]:
        names = [name for _, name in await engine.read(Connection.streams) if only in (None, name)]
        return "", msgspec.json.encode(StreamsMessage(await described(call.service, names)))

    return _sse(call, None, update)


def service_state(service: RunningService) -> Service:
    """How the service itself is doing."""
    return Service(
        status=service.engine.status,
        waiting=service.engine.waiting,
        latency_p50=service.latencies.quantile(0.5),
        latency_p99=service.latencies.quantile(0.99),
    )


def _known(call: Call) -> int | None:
    last = call.headers.get(b"last-event-id", b"")
    return int(last) if last.isdigit() and len(last) < 16 else None


def _sse(call: Call, name: str | None, update: Callable[[], Awaitable[tuple[str, bytes]]]) -> App:
    return StreamingResponse(
        _events(call, name, update),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _events(
    call: Call, name: str | None, update: Callable[[], Awaitable[tuple[str, bytes]]]
) -> AsyncIterator[bytes]:
    changed = asyncio.Event()
    changed.set()
    stopping = call.service.stopping
    unwatch = call.service.engine.watch(name, changed)
    try:
        yield b"retry: 1000\n\n"
        while not stopping.is_set():
            if not call.service.access.in_force(call.caller):
                yield b'event: problem\ndata: "the key has been revoked"\n\n'
                return
            if changed.is_set():
                changed.clear()
                try:
                    id, data = await update()
                except Refusal as why:
                    yield b"event: problem\ndata: %s\n\n" % msgspec.json.encode(why.detail)
                    return
                yield b"id: %s\nevent: update\ndata: %s\n\n" % (id.encode(), data)
            else:
                yield b": alive\n\n"
            await either(stopping, seconds=_PACE)
            await either(changed, stopping, seconds=_PULSE)
    finally:
        unwatch()


async def either(*events: asyncio.Event, seconds: float) -> None:
    """Wait until one of these events is set, at most so many ``seconds``."""
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
