"""A load generator: keep-alive connections that send the next request when answered.

``python -m benchmarks.load HOST PORT STREAM --connections 64 --seconds 5`` prints one line of JSON.
It runs in a process of its own.  With ``--rate`` requests are due at that rate, and the next free
connection sends them.  Latency is counted from when a request was due, so that requests which a
stalled server delays are counted as slow.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

import uvloop


class Asker(asyncio.Protocol):
    """Asker is one connection to the server."""

    def __init__(self, load: Load) -> None:
        self._load, self._buffer, self.due, self.waits = load, b"", 0.0, False
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the first request, or wait for one."""
        self._transport = transport
        self._load.free(self)

    def ask(self, due: float) -> None:
        """Send a request that was due then."""
        self.due, self.waits = due, True
        self._transport.write(self._load.request())

    def data_received(self, data: bytes) -> None:
        """Note the answer, once it is complete."""
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end].lower()
        at = head.index(b"content-length: ") + 16
        length = int(head[at:].split(b"\r", 1)[0])
        if len(self._buffer) < end + 4 + length:
            return
        ok = self._buffer.startswith(b"HTTP/1.1 200")
        self._buffer, self.waits = b"", False
        self._load.answered(self, ok, time.perf_counter() - self.due)

    def connection_lost(self, exc: Exception | None) -> None:
        """A connection that the server ends counts as an error."""
        self._load.errors += not self._load.over


class Load:
    """What is asked, and how it was answered."""

    def __init__(self, host: str, port: int, stream: str, batch: int, rate: float) -> None:
        self._rng = random.Random(0)
        self._run = f"{time.time_ns():x}"
        self._asked, self._rate = 0, rate
        path = f"/v1/streams/{stream}/decisions" + (":batch" if batch else "")
        self._head = (
            f"POST {path} HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-type: application/json\r\n"
        )
        self._bodies = [self._body(batch) for _ in range(997)]
        self._waiting: deque[Asker] = deque()
        self._due: deque[float] = deque()
        self.latencies: list[float] = []
        self.errors, self.over = 0, False

    def _body(self, batch: int) -> str:
        def person() -> dict[str, object]:
            group = "a" if self._rng.random() < 0.4 else "b"
            proposed = self._rng.random() < (0.6 if group == "a" else 0.4)
            return {"group": group, "proposed": proposed, "cost": round(self._rng.random(), 3)}

        asked = {"decisions": [person() for _ in range(batch)]} if batch else person()
        return json.dumps(asked)

    def request(self) -> bytes:
        """The next request."""
        self._asked += 1
        body = self._bodies[self._asked % len(self._bodies)]
        key = f"idempotency-key: {self._run}-{self._asked}\r\n"
        return f"{self._head}{key}content-length: {len(body)}\r\n\r\n{body}".encode()

    def free(self, asker: Asker) -> None:
        """Give a free connection the next request, if one is due."""
        if self.over:
            return
        if not self._rate:
            asker.ask(time.perf_counter())
        elif self._due:
            asker.ask(self._due.popleft())
        else:
            self._waiting.append(asker)

    def answered(self, asker: Asker, ok: bool, seconds: float) -> None:
        """Note an answer."""
        if ok:
            self.latencies.append(seconds)
        else:
            self.errors += 1
        self.free(asker)

    def unanswered(self, askers: Iterable[Asker]) -> list[float]:
        """Seconds since each request became due that has no answer yet."""
        if not self._rate:
            return []
        now = time.perf_counter()
        asked = [now - asker.due for asker in askers if asker.waits]
        return asked + [now - due for due in self._due]

    async def pace(self, seconds: float) -> None:
        """Make requests due at the given rate."""
        begin = time.perf_counter()
        sent = 0
        while (now := time.perf_counter()) < begin + seconds:
            while self._rate and sent < (now - begin) * self._rate:
                due = begin + sent / self._rate
                sent += 1
                if self._waiting:
                    self._waiting.popleft().ask(due)
                else:
                    self._due.append(due)
            await asyncio.sleep(0.0005 if self._rate else 0.01)


async def run(arguments: argparse.Namespace) -> dict[str, float]:
    """Warm up the server, then measure."""
    loop = asyncio.get_running_loop()
    host, port = arguments.host, arguments.port
    load = Load(host, port, arguments.stream, arguments.batch, arguments.rate)
    made = [
        await loop.create_connection(lambda: Asker(load), host, port)
        for _ in range(arguments.connections)
    ]
    await load.pace(arguments.warm)
    load.latencies.clear()
    begin = time.perf_counter()
    await load.pace(arguments.seconds)
    seconds, answered = time.perf_counter() - begin, len(load.latencies)
    latencies = sorted(load.latencies + load.unanswered(asker for _, asker in made))
    load.over = True
    for transport, _ in made:
        transport.close()
    n = len(latencies)
    return {
        "per_second": answered * (arguments.batch or 1) / seconds,
        "errors": load.errors,
        "p50": latencies[n // 2],
        "p99": latencies[int(n * 0.99)],
    }


def main() -> None:
    """Send the requests, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("stream")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--warm", type=float, default=1.0)
    parser.add_argument("--batch", type=int, default=0, help="people in a request; 0: one")
    parser.add_argument("--rate", type=float, default=0.0, help="requests per second; 0: all")
    print(json.dumps(uvloop.run(run(parser.parse_args()))))


if __name__ == "__main__":
    main()
