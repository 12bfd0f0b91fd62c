"""Limits on connections: clients that are slow, broken or too many are disconnected.

Nothing is timed per request.  :func:`sweep`, called every second, ends every connection that has
been in the same unfinished state for too long; a state is recognised by what uvicorn keeps anyway.

uvicorn itself limits the time between two requests (``timeout_keep_alive``), and how many are
answered at once (``limit_concurrency``, which keeps connections open).  It limits neither the time
in which a request arrives or an answer is read, nor the size of headers, nor open connections.  A
proxy can, but the service must be safe without one.

So :class:`ClientConnection` uses what uvicorn does not document.  It replaces ``data_received`` and
``on_response_complete``; it extends ``connection_made``, ``on_message_begin``, ``on_header``,
``on_headers_complete`` and ``on_body``; it reads ``connections``, ``parser``, ``headers``,
``scope``, ``cycle``, ``flow``, ``pipeline``, ``transport`` and ``server_state``; and it calls
``_start_asgi_task``.  Therefore ``pyproject.toml`` allows only tested versions of uvicorn, and
``tests/service/test_connections.py`` says what each of these must mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from fairshield.service.web.http import SAFE_HEADERS, problem
from fairshield.wire.problems import Refusal

_MOST_HEADERS = 100
_MOST_AROUND = 1 << 16
"""Bytes of a request beyond its body and the first read: headers, trailers, framing."""
_FRAMING = 8
"""Most bytes of framing for each byte of a body: chunks of one byte have six."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """Patience says how many seconds a connection may stay in each state.

    ``idle``: between two requests; ``arriving``: with a request that is not complete;
    ``stuck``: while the client reads nothing of an answer.
    """

    idle: float = 60.0
    arriving: float = 20.0
    stuck: float = 30.0


class ClientConnection(HttpToolsProtocol):
    """ClientConnection is a client's connection, refused if more than ``most`` are open."""

    most = 2_000
    _fed = _body = 0
    _heading = False
    _broken: Refusal | None = None
    _seen: tuple[Any, float] | None = None

    # The type that uvicorn annotates; a TCP connection has all of its methods.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or refuse it if too many are open."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._broken = Refusal(
                "unavailable", f"{self.most} connections are open already", retry_after=1
            )
            self.refuse(self._broken)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; malformed ones are refused after earlier requests are answered."""
        if self._broken is not None:
            return
        if self._within:
            self._fed += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Answered as a plain request; what follows on the connection is not HTTP.
            self.cycle.keep_alive = False
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._malformed(
                cause
                if isinstance(cause, Refusal)
                else Refusal("malformed-request", "this is not an HTTP/1.1 request")
            )
        else:
            if self._fed > _MOST_AROUND + _FRAMING * self._body and self._within:
                self._malformed(_too_long())

    def on_message_begin(self) -> None:
        """Start to count the bytes of a request."""
        self._fed = self._body = 0
        self._heading = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; one that follows the body is left out."""
        if self._heading:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin the request, unless it has too many headers or, after the first read, long ones."""
        if len(self.headers) > _MOST_HEADERS:
            raise _too_long()
        if self._fed and sum(len(name) + len(value) for name, value in self.headers) > _MOST_AROUND:
            raise _too_long()
        self._heading = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._body += len(body)
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Go on with the next request; the time until it comes is counted by :func:`sweep`."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        elif self._broken is not None:
            self.refuse(self._broken)

    # States -----------------------------------------------------------------------------------

    @property
    def _arrived(self) -> bool:
        """Whether the headers of the last request that has begun are complete."""
        return self.cycle is not None and self.cycle.scope is self.scope

    @property
    def _within(self) -> bool:
        """Whether a request has begun to arrive and is not complete."""
        return self.scope is not None and (not self._arrived or self.cycle.more_body)

    def state(self, patience: Patience) -> tuple[Any, float]:
        """The state of the connection, equal only to itself, and the seconds it may last."""
        cycle = self.cycle
        if self.flow.write_paused:
            return (cycle, "stuck", self.transport.get_write_buffer_size()), patience.stuck
        if self._within:
            return (self.scope, "arriving"), patience.arriving
        if cycle is None or cycle.response_complete:
            return (cycle, "idle"), patience.idle
        return None, 0.0

    def check(self, now: float, patience: Patience) -> None:
        """End the connection, if it has been in one state for too long."""
        state, limit = self.state(patience)
        if state is None or self._seen is None or not _same(self._seen[0], state):
            self._seen = None if state is None else (state, now)
        elif now - self._seen[1] >= limit:
            self._overdue(state[1])

    def _overdue(self, what: str) -> None:
        cycle = self.cycle
        if what == "stuck" or self.transport.is_closing():
            self.transport.abort()
        elif cycle is not None and not cycle.response_complete:
            return  # the handler that reads a body has its own time limit
        elif what == "arriving" and not self._arrived:
            self.refuse(Refusal("timeout", "the request did not arrive in time"))
        else:
            self.transport.close()

    # Refusing ---------------------------------------------------------------------------------

    def _malformed(self, why: Refusal) -> None:
        """Refuse malformed bytes, once the requests before them are answered."""
        self._broken = why
        self.flow.pause_reading()
        cycle = self.cycle
        if cycle is not None and self._arrived and cycle.more_body:
            waiting = [entry for entry in self.pipeline if entry[0] is not cycle]
            running = len(waiting) == len(self.pipeline)
            self.pipeline.clear()
            self.pipeline.extend(waiting)
            # No more of its body will come: its handler sees a disconnected client.
            cycle.disconnected = True
            cycle.message_event.set()
            if running and not cycle.response_started:
                self.refuse(why)
                return
            if running:
                self.transport.close()
                return
        if not self._answering:
            self.refuse(why)

    @property
    def _answering(self) -> bool:
        """Whether a request is being answered."""
        if self.pipeline:
            return True
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.disconnected

    def refuse(self, why: Refusal) -> None:
        """Send the refusal, and close the connection."""
        if self.transport.is_closing():
            return
        answer = problem(why)
        lines = [STATUS_LINE[answer.status]]
        for name, value in (
            (b"content-type", answer.content_type),
            (b"content-length", b"%d" % len(answer.body)),
            (b"connection", b"close"),
            *answer.headers,
            *SAFE_HEADERS,
        ):
            lines += [name, b": ", value, b"\r\n"]
        self.transport.write(b"".join([*lines, b"\r\n", answer.body]))
        self.transport.close()


def limited(most: int) -> type[ClientConnection]:
    """Connections of which so many are open at once."""
    return type("LimitedConnection", (ClientConnection,), {"most": most})


def sweep(connections: Iterable[Any], now: float, patience: Patience) -> None:
    """End connections that have been waiting for their clients for too long."""
    for connection in list(connections):
        cast(ClientConnection, connection).check(now, patience)


def _same(before: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    return before[0] is now[0] and before[1:] == now[1:]


def _too_long() -> Refusal:
    return Refusal(
        "headers-too-large",
        f"a request has at most {_MOST_HEADERS} headers, and {_MOST_AROUND:,} bytes beside its "
        "body",
    )
