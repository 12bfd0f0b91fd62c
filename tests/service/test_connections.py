"""What a connection uses of uvicorn beyond its documentation is there, and means what it did."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from fairshield.service.server.connections import ClientConnection, Patience, limited
from fairshield.service.server.server import Server

_REQUEST = b"POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 2\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.closed = b"", False

    def write(self, data: Any) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def connected(
    state: ServerState, kind: type[ClientConnection] = ClientConnection
) -> tuple[ClientConnection, Wire]:
    config = uvicorn.Config(echo, lifespan="off", http=kind, ws="none", log_config=None)
    config.load()
    made, wire = kind(config=config, server_state=state, app_state={}), Wire()
    made.connection_made(wire)
    return made, wire


async def test_a_long_header_is_refused_however_it_is_cut() -> None:
    request = _REQUEST.replace(b"host", b"x: " + b"y" * 400_000 + b"\r\nhost") + b"hi"
    for cut in (100, 1 << 16, 1 << 18, len(request) - 30):
        made, wire = connected(ServerState())
        made.data_received(request[:cut])
        made.data_received(request[cut:])
        assert wire.written.startswith(b"HTTP/1.1 4"), cut
        assert wire.closed


async def test_the_state_of_a_connection_follows_its_request() -> None:
    """Idle, arriving, being answered, idle again: by uvicorn's cycle, scope, flow and pipeline."""
    made, wire = connected(ServerState())
    patience = Patience()
    assert made.state(patience) == ((None, "idle"), patience.idle)
    made.data_received(_REQUEST[:20])
    assert made.state(patience) == ((made.scope, "arriving"), patience.arriving)
    made.data_received(_REQUEST[20:] + b"h")
    assert made.state(patience) == ((made.scope, "arriving"), patience.arriving)
    made.data_received(b"i")
    assert made.state(patience) == (None, 0.0)
    while not wire.written.endswith(b"hi\r\n0\r\n\r\n"):
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert made.state(patience) == ((made.cycle, "idle"), patience.idle)
    made.flow.pause_writing()
    assert made.state(patience) == ((made.cycle, "stuck", 0), patience.stuck)
    assert made.server_state.total_requests == 1
    assert not made.pipeline


async def test_uvicorn_knows_its_connections() -> None:
    """One more than the limit is told so, with a status line of uvicorn's."""
    state, kind = ServerState(), limited(1)
    first, _ = connected(state, kind)
    _, wire = connected(state, kind)
    assert state.connections == first.connections
    assert wire.written.startswith(STATUS_LINE[503])
    assert wire.closed


def test_what_is_overridden_is_uvicorns() -> None:
    for name in ("connection_made", "data_received", "on_message_begin", "on_header",
                 "on_headers_complete", "on_body", "on_response_complete",
                 "_start_asgi_task"):  # fmt: skip
        assert callable(getattr(HttpToolsProtocol, name)), name


def test_what_the_server_overrides_is_uvicorns() -> None:
    for name in ("startup", "on_tick", "handle_exit", "shutdown"):
        ours, theirs = getattr(Server, name), getattr(uvicorn.Server, name)
        assert ours is not theirs
        assert [*inspect.signature(ours).parameters] == [*inspect.signature(theirs).parameters]
    kept = vars(uvicorn.Server(uvicorn.Config(echo, log_config=None)))
    assert {"server_state", "should_exit", "force_exit"} <= kept.keys()
