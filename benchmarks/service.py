"""Figures of the service: decisions per second, latency, memory, restart.

Server and load generator share this machine.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fairshield as fs
from benchmarks.measure import HERE, Figure
from fairshield.service.server.server import serve
from fairshield.service.store.sqlite import SqliteConnection, SqliteDatabase
from fairshield.service.web.context import Limits

CONNECTIONS = 64


class ForgetfulConnection(SqliteConnection):
    """ForgetfulConnection drops all entries after the first: the service without a store."""

    def append(self, rows: Any) -> None:
        """Store entry 0 of a stream, and drop all others."""
        super().append([row for row in rows if row.seq == 0])

    def put_windows(self, windows: Any) -> None:
        """Drop the ends of windows."""

    def find(self, keys: Any) -> Any:
        """Find no earlier request."""
        return {}


class ForgetfulDatabase(SqliteDatabase):
    """ForgetfulDatabase stores no decision; its commits are empty."""

    def connect(self) -> Any:
        """A connection that forgets."""
        return ForgetfulConnection(str(self.path), None)


class Served:
    """A server process."""

    def __init__(self, command: list[str]) -> None:
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = re.search(r"http://([\d.]+):(\d+)", line)
            if found:
                self.host, self.port = found[1], int(found[2])
                break
        else:
            raise RuntimeError("the server did not start")

    def ask(self, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """Send one request."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{self.host}:{self.port}{path}", data, {"content-type": content_type}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def make_streams(self, policy: fs.Policy, names: list[str]) -> None:
        """Upload the policy and make streams of it."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "p.shield"
            digest = policy.save(path)
            self.ask("/v1/policies", path.read_bytes(), "application/octet-stream")
        while self.ask(f"/v1/policies/{digest}")["status"] != "ready":
            time.sleep(0.05)
        for name in names:
            self.ask("/v1/streams", {"name": name, "policy": digest})

    def load(self, stream: str, **options: float) -> dict[str, float]:
        """Run the load generator, at full speed or at a rate."""
        flags = [f"--{name}={value}" for name, value in options.items()]
        command = [sys.executable, "-m", "benchmarks.load", self.host, str(self.port), stream]
        done = subprocess.run([*command, *flags], check=True, capture_output=True, text=True)
        found: dict[str, float] = json.loads(done.stdout)
        if found["errors"]:
            raise RuntimeError(f"{found['errors']} requests failed")
        return found

    def memory(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", status)
        return int(found[1]) / 1000 if found else 0.0

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End the server process."""
        self.process.send_signal(how)
        self.process.wait(30)


@contextlib.contextmanager
def served(db: str, *, forgetful: bool = False) -> Iterator[Served]:
    """A server over a database."""
    if forgetful:
        command = [sys.executable, "-m", "benchmarks.service", db]
    else:
        command = [
            sys.executable,
            "-m",
            "fairshield",
            "serve",
            "--db",
            db,
            "--port",
            "0",
            "--rate",
            "0",
        ]
    server = Served(command)
    try:
        yield server
    finally:
        server.stop()


def policy() -> fs.Policy:
    """The policy of all benchmarks: demographic parity over a hundred decisions."""
    inputs = fs.InputModel.agnostic({"a": 0.4, "b": 0.6})
    return fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=100)


def durable_decisions() -> Iterator[Figure]:
    """Figures of decisions one at a time and in batches, with and without a store."""
    deciding = policy()
    with tempfile.TemporaryDirectory() as folder:
        alone, durable, batches = [], [], []
        for i in range(3):
            with served(f"{folder}/none{i}.db", forgetful=True) as server:
                server.make_streams(deciding, ["s"])
                alone.append(server.load("s", connections=CONNECTIONS, seconds=4)["per_second"])
            with served(f"{folder}/full{i}.db") as server:
                server.make_streams(deciding, ["s", "t"])
                durable.append(server.load("s", connections=CONNECTIONS, seconds=4)["per_second"])
                batches.append(server.load("t", connections=CONNECTIONS, batch=100)["per_second"])
        with served(f"{folder}/half.db") as server:
            server.make_streams(deciding, ["s"])
            half = server.load("s", connections=CONNECTIONS, rate=max(durable) / 2, seconds=8)
    best = max(durable)
    # Measured in turn, so that other load on the machine affects both.
    ratio = statistics.median(d / a for d, a in zip(durable, alone, strict=True))
    yield Figure(
        f"durable decisions, SQLite, one at a time, {CONNECTIONS} connections",
        f"{best:,.0f} per second, {ratio:.2f}× of no store",
        "≥ 5,000, ≥ 0.6×",
        best >= 5000 and ratio >= 0.6,
        f"without a store {max(alone):,.0f} per second",
    )
    yield Figure(
        "the same, batches of 100",
        f"{max(batches):,.0f} per second",
        "≥ 20,000",
        max(batches) >= 20_000,
    )
    yield Figure(
        "latency at half of that load, 99 %",
        f"{half['p99'] * 1e3:.1f} ms",
        "≤ 25 ms",
        half["p99"] <= 0.025,
        f"median {half['p50'] * 1e3:.1f} ms",
    )


def postgres_decisions() -> Iterator[Figure]:
    """Figures on a PostgreSQL server that is started here, if one is installed."""
    tests = HERE.parent / "tests"
    sys.path += [str(tests), str(tests / "service")]
    import postgres_server  # noqa: PLC0415  (asyncpg loads for this figure alone)

    if postgres_server.programs() is None:
        return
    durable = []
    with postgres_server.running() as cluster:
        for _ in range(3):
            with cluster.database() as address, served(address) as server:
                server.make_streams(policy(), ["s"])
                durable.append(server.load("s", connections=CONNECTIONS, seconds=4)["per_second"])
    yield Figure(
        f"durable decisions, PostgreSQL, one replica, {CONNECTIONS} connections",
        f"{max(durable):,.0f} per second",
        "≥ 4,000",
        max(durable) >= 4000,
    )


def open_streams() -> Iterator[Figure]:
    """Figures of the memory of a thousand open streams of one policy."""
    with tempfile.TemporaryDirectory() as folder, served(f"{folder}/s.db") as server:
        server.make_streams(policy(), [f"s{i}" for i in range(1000)])
        for i in range(0, 1000, 50):
            server.load(f"s{i}", connections=1, seconds=0.05, warm=0.05)
        memory = server.memory()
    yield Figure(
        "memory, 1,000 open streams of one policy", f"{memory:.0f} MB", "≤ 200 MB", memory <= 200
    )


def restart() -> Iterator[Figure]:
    """Figures of a restart and of a full audit, with a million decisions logged."""
    with tempfile.TemporaryDirectory() as folder:
        db = f"{folder}/s.db"
        with served(db) as server:
            server.make_streams(policy(), ["s"])
            while server.ask("/v1/streams/s/state")["decisions"] < 1_000_000:
                server.load("s", connections=8, batch=1000, seconds=5, warm=0)
            decisions = server.ask("/v1/streams/s/state")["decisions"]
            server.stop(signal.SIGKILL)
        with served(db) as server:
            server.ask("/v1/streams/s/state")
            seconds = time.perf_counter() - server.begun
        begin = time.perf_counter()
        command = [sys.executable, "-m", "fairshield", "audit", "--db", db]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        audit = time.perf_counter() - begin
    yield Figure(
        f"restart after kill -9, {decisions:,} decisions logged, until the state is answered",
        f"{seconds:.2f} s",
        "≤ 3 s",
        seconds <= 3,
    )
    yield Figure("full replay audit of them", f"{audit:.1f} s", "≤ 15 s", audit <= 15)


if __name__ == "__main__":
    serve(
        ForgetfulDatabase(sys.argv[1], serving=True), port=0, limits=Limits(rate=0.0),
        announce=lambda address, _: print(address, flush=True),
    )  # fmt: skip
