"""Servers that are killed at any moment, under load."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from faults_kit import Asked, Killable, Load, check_log, prepare

from fairshield.service.engine.engine import Engine
from fairshield.service.store import open_database
from fairshield.service.store.policies import LoadedPolicies

pytestmark = pytest.mark.slow

KILLS = 100
LONGEST = 0.03
"""Seconds of load before a kill."""


@pytest.fixture
def killable(address: str, tmp_path: Path) -> Iterator[Killable]:
    servers = Killable(address, tmp_path)
    yield servers
    servers.close()


async def set_up(address: str) -> None:
    engine = Engine(open_database(address), LoadedPolicies())
    await engine.start()
    await prepare(engine)
    await engine.stop()


def ask(server: Connection, load: Load, asked: list[Asked]) -> None:
    """Ask, a few at a time, and hear all answers."""
    for i in range(0, len(asked), 50):
        part = asked[i : i + 50]
        for request in part:
            server.send(request)
        for _ in part:
            hear(server, load)


def work(server: Connection, load: Load, until: float) -> None:
    """Keep a server busy until then."""
    while (left := until - time.monotonic()) > 0:
        for request in load.next():
            server.send(request)
        if server.poll(left):
            hear(server, load)


def hear(server: Connection, load: Load) -> None:
    assert server.poll(30), "no answer"
    key, answer = server.recv()
    assert isinstance(answer, bytes), answer
    load.heard(key, answer)


def hear_the_rest(server: Connection, load: Load) -> None:
    """Answers that were sent before the kill were given, whenever they are heard."""
    with contextlib.suppress(EOFError, ConnectionResetError):
        while True:
            hear(server, load)
    server.close()


def test_nothing_that_was_answered_is_lost_or_changed_by_kills(
    killable: Killable, address: str, tmp_path: Path
) -> None:
    asyncio.run(set_up(address))
    rng = random.Random(9)
    load = Load(rng)
    killed_while_starting = 0
    for _ in range(KILLS):
        process = killable.start()
        if rng.random() < 0.1:
            time.sleep(rng.uniform(0, LONGEST))
            killed_while_starting += 1
            killable.kill(process)
            killable.forget()
            continue
        server = killable.connected()
        ask(server, load, 2 * load.again(20))
        work(server, load, time.monotonic() + rng.uniform(0, LONGEST))
        killable.kill(process)
        hear_the_rest(server, load)
    process = killable.start()
    server = killable.connected()
    ask(server, load, load.again())
    killable.kill(process)
    server.close()
    assert 0 < killed_while_starting < KILLS / 2
    assert len(load.answered) > 10 * KILLS
    check_log(address, load)
