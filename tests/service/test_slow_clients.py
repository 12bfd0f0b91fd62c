"""Clients that are slow, half open or too many wait for themselves, not others for them."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_server import (
    PATIENCE,
    Answers,
    LiveServer,
    PolicyFile,
    exchange,
    files,
    populate,
    program,
    raw,
    serving,
    wait_for,
)

pytestmark = pytest.mark.slow

__all__ = ["files"]

_MOST = 80
_GOOD = {"group": "alpha", "proposed": True}
_LONG = 30_000
"""Decisions whose log is more than the buffers of a connection take."""


@pytest.fixture(scope="module")
def impatient(
    files: dict[str, PolicyFile], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    """A server that waits for nobody longer than a second or two."""
    code = program(f"rate=0, seconds=1.0, connections={_MOST}", "idle=2.0, arriving=1.0, stuck=2.0")
    with serving(tmp_path_factory.mktemp("impatient"), program=code) as server:
        populate(server, files)
        with server.client() as client:
            for i in range(_LONG // 10_000):
                people = {"decisions": [_GOOD] * 10_000}
                answer = client.post(
                    "/v1/streams/plain/decisions:batch", json=people,
                    headers={"idempotency-key": f"many-{i}"},
                )  # fmt: skip
                assert answer.status_code == 200
        yield server


def decided(server: LiveServer, key: str) -> bool:
    answer = exchange(server, raw("POST", "/v1/streams/periods/decisions", _GOOD, key=key))
    return answer is not None and answer.status == 200


def ended(connection: socket.socket) -> bool:
    """Whether the other side has closed; reads what there is."""
    try:
        return connection.recv(1 << 16) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def open_connections(server: LiveServer) -> int:
    """Connections that the server's process holds."""
    local = f"0100007F:{server.port:04X}"
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table]
    return sum(row[1] == local and row[3] in ("01", "08") for row in rows)


_HALF = raw("POST", "/v1/streams/plain/decisions", _GOOD, key="half")[:-10]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", None),
        (b"POST /v1/streams/plain/deci", 408),
        (b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n", 408),
        (_HALF, 408),
        (_HALF.replace(b"Content-Length: 37", b"Transfer-Encoding: chunked"), 408),
        (raw("GET", "/livez"), 200),
    ],
    ids=["nothing", "half a line", "half the headers", "half a body", "no chunk", "idle"],
)  # fmt: skip
def test_a_connection_that_does_not_go_on_is_ended(
    impatient: LiveServer, sent: bytes, status: int | None
) -> None:
    before = impatient.receipts()["plain"]
    with impatient.connect() as connection:
        connection.sendall(sent)
        answers = Answers(connection)
        answer = answers.next()
        assert (None if answer is None else answer.status) == status
        assert answer is None or answers.next() is None
    assert impatient.receipts()["plain"] == before


def test_headers_byte_by_byte_are_not_waited_for(impatient: LiveServer) -> None:
    with impatient.connect(0.1) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nX: ")

        def trickle() -> bool:
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"x")
            return ended(connection)

        wait_for(trickle, "a client that sends a byte now and then is served for ever")


def test_a_download_that_nobody_reads_is_ended_and_others_are_not(impatient: LiveServer) -> None:
    address = ("127.0.0.1", impatient.port)
    with socket.socket() as stuck, socket.socket() as reading:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for connection in (stuck, reading):
            connection.settimeout(PATIENCE)
            connection.connect(address)
            connection.sendall(raw("GET", "/v1/streams/plain/log.jsonl", Connection="close"))
        got = [0, 0]
        while data := reading.recv(1 << 16):
            got[1] += len(data)
        assert got[1] > _LONG * 150
        mine = stuck.getsockname()[1]
        wait_for(lambda: not _is_open(mine), "a client that reads nothing is served for ever")
        with contextlib.suppress(ConnectionError):
            while data := stuck.recv(1 << 16):
                got[0] += len(data)
        assert got[0] < got[1]


def _is_open(port: int) -> bool:
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table]
    return any(row[2] == f"0100007F:{port:04X}" and row[3] == "01" for row in rows)


def test_others_are_served_while_many_clients_do_nothing(impatient: LiveServer) -> None:
    requests = [
        b"", b"GET ", _HALF, raw("GET", "/v1/events"), raw("GET", "/v1/streams/plain/events"),
        raw("GET", "/v1/streams/closed/log?after=6&wait=30"),
        raw("GET", "/v1/streams/plain/log.csv"),
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        for i in range(_MOST - 20):
            connection = stack.enter_context(impatient.connect())
            connection.sendall(requests[i % len(requests)])
        assert all(decided(impatient, f"beside-{i}") for i in range(50))
        for connection in [impatient.connect() for _ in range(10)]:
            connection.sendall(raw("GET", "/v1/events"))
            # Gone without a word: the system answers whatever comes with a reset.
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.close()
        assert all(decided(impatient, f"after-{i}") for i in range(10))
    wait_for(lambda: open_connections(impatient) == 0, "connections are left behind")


def test_too_many_connections_are_told_so(tmp_path: Path) -> None:
    code = program(f"connections={_MOST}", "idle=60.0")
    with serving(tmp_path, program=code) as server, contextlib.ExitStack() as stack:
        held = [stack.enter_context(server.connect()) for _ in range(_MOST)]
        for connection in held:
            connection.sendall(raw("GET", "/livez"))
            answer = Answers(connection).next()
            assert answer is not None
            assert answer.status == 200
        refused = exchange(server, b"")
        assert refused is not None
        assert refused.status == 503
        assert refused.headers["retry-after"] == "1"
        assert "80 connections" in json.loads(refused.body)["detail"]
        held[0].close()
        wait_for(lambda: open_connections(server) < _MOST, "the connection is not given up")
