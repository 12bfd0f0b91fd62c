"""A served database, and a proxy that loses answers on demand."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import fairshield as fs


class Served:
    """``fairshield serve`` as a process, on a port that stays the same after a restart."""

    def __init__(self, db: Path, *options: str) -> None:
        self.db, self._options, self._port = db, options, 0
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        """Serve the database, and wait for the address."""
        command = [sys.executable, "-m", "fairshield", "serve", "--db", str(self.db)]
        with (self.db.parent / "serve.log").open("a") as log:
            self._process = subprocess.Popen(
                [*command, "--port", str(self._port), *self._options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        assert said.startswith("Serving "), (self.db.parent / "serve.log").read_text()
        self.url = said.split()[-1]
        self._port = urlsplit(self.url).port or 0

    def kill(self) -> None:
        """Kill the process, without a chance to shut down."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the process with the signal that operators use."""
        self._end(signal.SIGTERM)

    def _end(self, how: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(30)
            assert self._process.stdout is not None
            self._process.stdout.close()


@contextlib.contextmanager
def served(folder: Path, *options: str) -> Iterator[Served]:
    """A service on an empty database."""
    running = Served(folder / "shield.db", *options)
    try:
        yield running
    finally:
        running.stop()
        running.kill()


Fault = Literal["pass", "drop", "cut", "hang"] | int
"""What becomes of an answer: all, nothing, half of it, nothing yet, or another status instead.

In all cases but that of another status, which the proxy sends by itself, the service has answered.
"""


class Proxy:
    """Between a client and a service; the next answers meet with :attr:`faults`."""

    def __init__(self, target: str) -> None:
        self.target = urlsplit(target)
        self.faults: deque[Fault] = deque()
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close all connections."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def keys(self) -> list[str | None]:
        """Idempotency keys of all requests so far."""
        return [headers.get("idempotency-key") for _, _, headers, _ in self.seen]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def _pass_on(self) -> None:
                size = int(self.headers.get("content-length", 0))
                body = self.rfile.read(size)
                headers = {name.lower(): value for name, value in self.headers.items()}
                proxy.seen.append((self.command, self.path, headers, body))
                fault = proxy.faults.popleft() if proxy.faults else "pass"
                if isinstance(fault, int):
                    self.send_response(fault)
                    self.send_header("retry-after", "0")
                    self.send_header("content-length", "4")
                    self.end_headers()
                    self.wfile.write(b"busy")
                    return
                status, kind, answer = proxy.forward(self.command, self.path, headers, body)
                if fault == "hang":
                    proxy.released.wait(20)
                if fault in ("drop", "hang"):
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                if fault == "cut":
                    self.wfile.write(answer[: len(answer) // 2])
                    self.close_connection = True
                else:
                    self.wfile.write(answer)

            do_GET = do_POST = _pass_on

        return Handler

    def forward(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, str, bytes]:
        """The answer of the service to a request."""
        connection = http.client.HTTPConnection(self.target.hostname or "", self.target.port)
        wanted = {k: v for k, v in headers.items() if k not in ("connection", "accept-encoding")}
        wanted["host"] = self.target.netloc
        connection.request(method, path, body or None, wanted)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        return response.status, response.getheader("content-type") or "", answer


@contextlib.contextmanager
def between(target: str) -> Iterator[Proxy]:
    """A proxy before a service."""
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()


def plain_policy(horizon: int = 20) -> fs.Policy:
    """Demographic parity."""
    even = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    return fs.synthesize(fs.DemographicParity("0.25"), even, horizon=horizon)


def labelled_policy() -> fs.Policy:
    """Equal opportunity."""
    even = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    return fs.synthesize(fs.EqualOpportunity("0.25"), even, horizon=8)


def command(*arguments: object, **surroundings: str) -> subprocess.CompletedProcess[str]:
    """``fairshield`` as a process, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "fairshield", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | surroundings,
    )
