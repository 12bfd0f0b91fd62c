"""Load for streams of three kinds, and servers in processes that tests kill.

``python faults_kit.py`` waits for commands and forks a server for each.  A fork is cheap, because
everything is imported already.  See :class:`Killable`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import msgspec

import fairshield as fs
from fairshield.policy.artifact import digest_of
from fairshield.service.engine.commands import Command, Decide, DecideBatch, Observe
from fairshield.service.engine.engine import Engine
from fairshield.service.history.audit import audit_database, open_for_reading
from fairshield.service.history.findings import DatabaseAudit
from fairshield.service.store import open_database
from fairshield.service.store.policies import LoadedPolicies
from fairshield.wire.messages import BatchItem, DecisionRequest, OutcomeRequest, StreamRequest
from fairshield.wire.problems import Refusal

STREAMS = {"loans": "window", "hiring": "labelled", "credit": "perpetual"}
"""Streams of the load, by name, and their policies."""


_SHARES = {"a": 0.4, "b": 0.6}

# Policies -----------------------------------------------------------------------------------


@cache
def policies() -> dict[str, tuple[str, bytes]]:
    """Digest and content of policy files: ``window``, ``labelled`` and ``perpetual``."""
    inputs = fs.InputModel.agnostic(_SHARES)
    parity, opportunity = fs.DemographicParity("0.2"), fs.EqualOpportunity("0.25")
    made: dict[str, Any] = {
        "window": fs.synthesize(parity, inputs, horizon=10),
        "labelled": fs.synthesize(opportunity, inputs, horizon=6),
        "perpetual": fs.PerpetualShield(parity, inputs, period=6).policy,
    }
    with tempfile.TemporaryDirectory() as folder:
        path, found = Path(folder) / "policy.shield", {}
        for name, policy in made.items():
            policy.save(path)
            found[name] = digest_of(path), path.read_bytes()
    return found


async def prepare(engine: Engine, streams: Iterable[str] = STREAMS, **settings: Any) -> None:
    """Put the policies into the store, and create the streams that are not there."""
    for digest, content in policies().values():
        await engine.write(lambda c, d=digest, f=content: c.put_artifact(d, f))  # type: ignore[misc]
    for name in streams:
        digest, _ = policies()[STREAMS[name]]
        await engine.create(StreamRequest(name, digest, **settings))


# Load ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A request."""

    stream: str
    key: str
    command: Command


@dataclass
class Load:
    """Random requests to the streams; remembers what was answered and what is in flight.

    Requests to ``hiring``, which counts by outcome, wait for one another.
    """

    rng: random.Random
    depth: int = 8
    streams: tuple[str, ...] = tuple(STREAMS)
    answered: dict[str, tuple[Asked, bytes]] = field(default_factory=dict)
    flying: dict[str, Asked] = field(default_factory=dict)
    awaits: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def next(self) -> list[Asked]:
        """Requests to send now; they are in flight from here on."""
        asked = []
        for stream in self.streams:
            flying = sum(one.stream == stream for one in self.flying.values())
            limit = 1 if STREAMS[stream] == "labelled" else self.depth
            for _ in range(limit - flying):
                one = Asked(stream, f"{stream}-{self.rng.getrandbits(64):x}", self._command(stream))
                self.flying[one.key] = one
                asked.append(one)
        return asked

    def _command(self, stream: str) -> Command:
        rng, labelled = self.rng, STREAMS[stream] == "labelled"
        if stream in self.awaits:
            return Observe(OutcomeRequest(self.awaits[stream], rng.random() < 0.5))
        if rng.random() < 0.2:
            return DecideBatch(
                tuple(
                    BatchItem(*self._person(), rng.random() < 0.5 if labelled else None)
                    for _ in range(rng.randint(2, 7))
                )
            )
        return Decide(DecisionRequest(*self._person()))

    def _person(self) -> tuple[str, bool, float]:
        group = self.rng.choice("ab")
        return group, self.rng.random() < (0.2 if group == "a" else 0.8), self.rng.random()

    def heard(self, key: str, answer: bytes) -> None:
        """Remember an answer; a repeated one must be the same."""
        if key in self.answered:
            if answer != self.answered[key][1]:
                self.problems.append(f"{key}: {self.answered[key][1]!r} became {answer!r}")
            return
        asked = self.flying.pop(key)
        self.answered[key] = asked, answer
        if isinstance(asked.command, Decide) and STREAMS[asked.stream] == "labelled":
            self.awaits[asked.stream] = msgspec.json.decode(answer)["n"]
        elif isinstance(asked.command, Observe):
            del self.awaits[asked.stream]

    def again(self, sample: int | None = None) -> list[Asked]:
        """The requests in flight, and some (``None``: all) of those answered."""
        keys = list(self.answered)
        if sample is not None:
            keys = self.rng.sample(keys, min(sample, len(keys)))
        return [*self.flying.values(), *(self.answered[key][0] for key in keys)]

    def decisions(self, stream: str) -> int:
        """Decisions that were answered."""
        asked = (one for one, _ in self.answered.values() if one.stream == stream)
        return sum(one.command.decisions for one in asked)


async def send(engine: Engine, load: Load, asked: Iterable[Asked]) -> list[Refusal]:
    """Send requests to an engine, all at once; returns what it refused."""

    async def one(request: Asked) -> Refusal | None:
        try:
            answer = await engine.submit(request.stream, request.command, key=request.key)
        except Refusal as refusal:
            return refusal
        load.heard(request.key, answer)
        return None

    refused = await asyncio.gather(*(one(request) for request in asked))
    return [refusal for refusal in refused if refusal is not None]


# Audit --------------------------------------------------------------------------------------


def audited(address: str, names: Iterable[str] = (), **options: Any) -> DatabaseAudit:
    """The result of a full audit."""
    with open_for_reading(address) as connection:
        return audit_database(connection, LoadedPolicies(), names, **options)


def check_log(address: str, load: Load) -> None:
    """Check that every log replays, was fair, and has each answered decision exactly once."""
    assert not load.problems
    assert not load.flying
    found = audited(address)
    assert found.all_findings == ()
    assert {one.stream: one.decisions for one in found.streams} == {
        stream: load.decisions(stream) for stream in load.streams
    }
    for one in found.streams:
        assert one.windows == one.fair + one.exempt
    assert any(one.fair for one in found.streams)


# Processes that are killed ------------------------------------------------------------------


class Killable:
    """Servers in processes of their own, forked from one that has imported everything.

    Parameters
    ----------
    address
        The store.
    folder
        For sockets.
    """

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        settings = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._fork = subprocess.Popen(
            [sys.executable, str(Path(__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | settings | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self._listener = Listener(str(folder / "socket"), "AF_UNIX", backlog=16)

    def _order(self, *words: Any) -> Any:
        assert self._fork.stdin is not None
        assert self._fork.stdout is not None
        self._fork.stdin.write(json.dumps(words) + "\n")
        self._fork.stdin.flush()
        return json.loads(self._fork.stdout.readline())

    def start(self) -> int:
        """Begin to start a server; its process."""
        pid = self._order("start", self.address, self._listener.address)
        assert isinstance(pid, int)
        return pid

    def connected(self) -> Connection:
        """Wait until a server can be asked."""
        return self._listener.accept()

    def forget(self) -> None:
        """Close the sockets of servers that were killed before they were asked."""
        while select.select([self._listener._listener._socket], [], [], 0)[0]:  # type: ignore[attr-defined]
            self._listener.accept().close()

    def kill(self, pid: int) -> None:
        """``kill -9``, and wait for the end of the process."""
        assert self._order("kill", pid) == signal.SIGKILL

    def close(self) -> None:
        """End everything."""
        self._listener.close()
        self._fork.communicate()


def wait_for_orders() -> None:
    """Fork servers on command; this process has one thread, so that forks are safe."""
    inputs = fs.InputModel.agnostic(_SHARES)
    fs.PerpetualShield(fs.DemographicParity("0.2"), inputs, period=6).decide("a", proposed=True)
    assert len(os.listdir("/proc/self/task")) == 1
    for line in sys.stdin:
        order, *words = json.loads(line)
        if order == "start":
            answer = os.fork()
            if not answer:
                try:
                    asyncio.run(serve(*words))
                finally:
                    os._exit(1)
        else:
            os.kill(words[0], signal.SIGKILL)
            answer = os.waitpid(words[0], 0)[1]
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


async def serve(address: str, socket: str) -> None:
    """Answer requests from a socket with an engine."""
    engine = Engine(open_database(address, serving=True), LoadedPolicies())
    await engine.start()
    connection, tasks = Client(socket, "AF_UNIX"), set()

    async def answer(asked: Asked) -> None:
        try:
            told: Any = await engine.submit(asked.stream, asked.command, key=asked.key)
        except Refusal as refusal:
            told = f"{refusal.kind}: {refusal}"
        connection.send((asked.key, told))

    def arrived() -> None:
        task = asyncio.ensure_future(answer(connection.recv()))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    asyncio.get_running_loop().add_reader(connection.fileno(), arrived)
    await asyncio.Event().wait()


if __name__ == "__main__":
    import faults_kit

    faults_kit.wait_for_orders()
