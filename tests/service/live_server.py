"""LiveServer runs ``fairshield serve`` in a process of its own; raw HTTP to talk to it.

``files``
    Policy files, made once for all tests of a process.
``live``
    A server with streams in it (see ``populate``), for the tests of one module.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

import fairshield as fs
from fairshield.policy.artifact import digest_of

PATIENCE = 90.0
"""Seconds after which a test stops waiting, and fails."""


# The process --------------------------------------------------------------------------------


@dataclass
class LiveServer:
    """A server over the database in ``folder``; ``program`` replaces ``fairshield serve``."""

    folder: Path
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    program: str | None = None
    token: str | None = None
    address: str = ""
    _process: subprocess.Popen[bytes] | None = None

    @property
    def database(self) -> Path:
        return self.folder / "shield.db"

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    @property
    def port(self) -> int:
        return int(self.address.rsplit(":", 1)[1])

    def start(self) -> LiveServer:
        """Start, and wait until it can be reached."""
        arguments = [sys.executable, "-m", "fairshield", "serve"]
        if self.program is not None:
            arguments = [sys.executable, "-c", self.program]
        arguments += ["--db", str(self.database), "--port", "0", *self.options]
        with self._file("out").open("wb") as out, self._file("err").open("ab") as err:
            self._process = subprocess.Popen(
                arguments, stdout=out, stderr=err, env={**os.environ, **self.environment}
            )
        found = wait_for(self._announced, "the server does not start:\n" + self.output)
        self.address = found
        return self

    def _announced(self) -> str:
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended: {self.output}")
        found = re.search(r"at (http://\S+)", self._file("out").read_text())
        return found[1] if found else ""

    def stop(self, how: int = signal.SIGTERM) -> int:
        """Stop the server, and wait for its end; returns the exit code."""
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """Kill the server, without a chance to shut down."""
        self.stop(signal.SIGKILL)

    def end(self) -> None:
        """Make sure that the server has ended."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    @property
    def output(self) -> str:
        """Everything that the server has written."""
        files = [self._file(name) for name in ("out", "err")]
        return "".join(file.read_text() for file in files if file.exists())

    def _file(self, name: str) -> Path:
        return self.folder / f"server.{name}"

    # Requests ---------------------------------------------------------------------------------

    def client(self, token: str | None = None) -> httpx.Client:
        """A client that sends the token, if there is one."""
        token = token or self.token
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.address, headers=headers, timeout=PATIENCE)

    def connect(self, seconds: float = PATIENCE) -> socket.socket:
        """A plain connection."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=seconds)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def receipts(self) -> dict[str, tuple[int, str]]:
        """The last receipt of each log."""
        with self.client() as client:
            streams = client.get("/v1/streams").json()["streams"]
        return {s["name"]: (s["state"]["seq"], s["state"]["receipt"]) for s in streams}


def wait_for(look: Callable[[], Any], otherwise: str, seconds: float = PATIENCE) -> Any:
    """The result of ``look``, as soon as it is not empty."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError(otherwise)


@contextlib.contextmanager
def serving(folder: Path, *options: str, **settings: Any) -> Iterator[LiveServer]:
    """A running server, which ends with the context."""
    server = LiveServer(folder, options, **settings)
    try:
        yield server.start()
    finally:
        server.end()


def program(limits: str = "", patience: str = "") -> str:
    """A program that serves with limits short enough for a test to wait for."""
    return f"""
import sys
from fairshield.service.server import logs
from fairshield.service.server import server
from fairshield.service.server.connections import Patience
from fairshield.service.web.context import Limits
from fairshield.service.store import open_database

logs.set_up("debug")
server.serve(
    open_database(sys.argv[2], serving=True), port=0, limits=Limits({limits}),
    patience=Patience({patience}), announce=lambda at, _: print("Serving at", at, flush=True),
)
"""


# Raw HTTP -----------------------------------------------------------------------------------


def raw(
    method: str, path: str, body: bytes | Any = None, *, key: str | None = None, **headers: str
) -> bytes:
    """A request as it goes over the wire."""
    content = (
        b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    )
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    if key is not None:
        lines.append(f"Idempotency-Key: {key}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


@dataclass(frozen=True)
class Answer:
    """An answer as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Answers:
    """Reads answers off a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._held = connection, b""

    def next(self) -> Answer | None:
        """The next one; ``None`` if the connection has ended."""
        while b"\r\n\r\n" not in self._held:
            if not self._more():
                return None
        head, _, self._held = self._held.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines)}
        size = int(headers.get("content-length", 0))
        while len(self._held) < size:
            if not self._more():
                return None
        body, self._held = self._held[:size], self._held[size:]
        return Answer(int(status.split()[1]), headers, body)

    def _more(self) -> bool:
        try:
            got = self._connection.recv(1 << 16)
        except (ConnectionError, TimeoutError):
            return False
        self._held += got
        return bool(got)


def exchange(server: LiveServer, request: bytes) -> Answer | None:
    """One request on a connection of its own."""
    with server.connect() as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(request)
        return Answers(connection).next()


# Streams ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PolicyFile:
    """A policy as a file."""

    content: bytes
    digest: str


def make_files() -> dict[str, PolicyFile]:
    """Policies of every sort, small ones."""
    even = fs.InputModel.agnostic({"alpha": 0.5, "beta": 0.5})
    parity = fs.DemographicParity("0.25")
    made = {
        "plain": fs.synthesize(parity, even, horizon=12),
        "labelled": fs.synthesize(fs.EqualOpportunity("0.25"), even, horizon=8),
        "perpetual": fs.PerpetualShield(parity, even, period=8).policy,
    }
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, policy in made.items():
            path = Path(folder) / name
            policy.save(path)
            found[name] = PolicyFile(path.read_bytes(), digest_of(path))
    return found


STREAMS: dict[str, dict[str, Any]] = {
    "plain": {"policy": "plain"},
    "labelled": {"policy": "labelled"},
    "periods": {"policy": "perpetual"},
    "human": {"policy": "plain", "human": True},
    "over": {"policy": "plain", "windows": 1},
    "closed": {"policy": "plain"},
}
"""The streams that ``populate`` makes."""


def upload(client: httpx.Client, file: PolicyFile) -> dict[str, Any]:
    """Upload a policy, and wait until it has been verified."""
    octets = {"content-type": "application/octet-stream"}
    answer = client.post("/v1/policies", content=file.content, headers=octets)
    assert answer.status_code in (200, 202), answer.text
    return settled(client, file.digest)


def settled(client: httpx.Client, which: str) -> dict[str, Any]:
    """A policy once it is ready or refused."""

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = client.get(f"/v1/policies/{which}").json()
        return found if found["status"] in ("ready", "refused") else None

    policy: dict[str, Any] = wait_for(look, f"policy {which} is never ready")
    return policy


def populate(server: LiveServer, files: Mapping[str, PolicyFile]) -> None:
    """Streams of every sort with some decisions in them."""
    with server.client() as client:
        for file in files.values():
            assert upload(client, file)["status"] == "ready"
        for name, settings in STREAMS.items():
            digest = files[settings["policy"]].digest
            answer = client.post("/v1/streams", json={**settings, "name": name, "policy": digest})
            assert answer.status_code == 201, answer.text
        for name in STREAMS:
            size = 12 if name == "over" else 5
            people = [
                {"group": ("alpha", "beta")[i % 2], "proposed": i % 3 == 0, "cost": 0.5}
                | ({"outcome": i % 2 == 0} if name == "labelled" and i < size - 1 else {})
                for i in range(size)
            ]
            answer = client.post(
                f"/v1/streams/{name}/decisions:batch",
                json={"decisions": people},
                headers={"idempotency-key": "first"},
            )
            assert answer.status_code == 200, answer.text
        assert client.post("/v1/streams/closed/close").status_code == 200


@pytest.fixture(scope="session")
def files() -> dict[str, PolicyFile]:
    """Policy files."""
    return make_files()


@pytest.fixture(scope="module")
def live(
    files: dict[str, PolicyFile], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    """A server with streams in it."""
    with serving(tmp_path_factory.mktemp("live"), "--rate", "0") as server:
        populate(server, files)
        yield server
