"""Several engines over one PostgreSQL database, and a server that crashes under them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from engines import (
    Artifacts,
    anyone,
    ask,
    check_log,
    log,
    many,
    one,
    opened,
    outcome,
    overrule,
    refused,
    standing,
    stream,
)
from postgres_server import Cluster

from fairshield.service.engine.engine import Engine
from fairshield.wire.problems import Refusal

REPLICA = Path(__file__).with_name("replica.py")


@contextlib.asynccontextmanager
async def replicas(address: str, artifacts: Artifacts, *streams: Any) -> Any:
    """Three engines, in one process."""
    async with contextlib.AsyncExitStack() as stack:
        first = await stack.enter_async_context(opened(address, artifacts, *streams))
        others = [await stack.enter_async_context(opened(address, artifacts)) for _ in range(2)]
        yield [first, *others]


async def test_replicas_of_one_stream_agree_on_one_order(
    postgres: str, artifacts: Artifacts
) -> None:
    names = ("long", "window", "perpetual")
    rng = random.Random(5)
    async with replicas(
        postgres, artifacts, *(stream(artifacts, name) for name in names)
    ) as engines:
        jobs = [(rng.choice(engines), name, anyone(rng)) for name in names for _ in range(60)]
        rng.shuffle(jobs)
        answers = await asyncio.gather(
            *(ask(engine, name, who, f"k{i}") for i, (engine, name, who) in enumerate(jobs))
        )
        for name in names:
            numbers = [a["n"] for a, (_, n, _) in zip(answers, jobs, strict=True) if n == name]
            assert sorted(numbers) == list(range(1, 61))
            for engine in engines:
                await check_log(engine, name)
        assert sum(engine.figures.failures for engine in engines) == 0
        assert all(engine.figures.commits for engine in engines)
        ends = await engines[0].read(lambda c: c.windows(c.stream("window") or 0))
        assert [end.verdict in ("fair", "exempt") for end in ends] == [True] * 5


async def test_a_key_has_one_answer_from_all_replicas(postgres: str, artifacts: Artifacts) -> None:
    streams = [stream(artifacts, "window"), stream(artifacts, "labelled-perpetual", "eq")]
    async with replicas(postgres, artifacts, *streams) as engines:
        for i in range(40):
            same = [
                engine.submit("window", one("ab"[i % 2], True), key=f"k{i}") for engine in engines
            ]
            assert len(set(await asyncio.gather(*same))) == 1
        batch = many(*[("ab"[i % 3 == 0], i % 2 == 0, 1.0, i % 5 == 0) for i in range(12)])
        answers = await asyncio.gather(*(e.submit("eq", batch, key="b") for e in engines))
        assert len(set(answers)) == 1
        for engine in engines:
            assert await refused(engine, "window", one("a", False), "k0") == "key-reused"
            assert await refused(engine, "eq", one(), "b") == "key-reused"
        assert len(await log(engines[0], "window")) == 41
        assert len(await log(engines[0], "eq")) == 25


async def test_replicas_take_turns_over_outcomes_and_overrides(
    postgres: str, artifacts: Artifacts
) -> None:
    streams = [stream(artifacts, name, human=True) for name in ("labelled", "perpetual")]
    async with replicas(postgres, artifacts, *streams) as engines:
        a, b, c = engines
        for n in range(1, 15):
            accepted = (await ask(a, "labelled", one("ab"[n % 2], n % 3 == 0)))["accepted"]
            assert await refused(b, "labelled", one()) == "outcome-pending"
            await ask(c, "labelled", overrule(n, not accepted))
            await ask(b, "labelled", outcome(n, n % 4 != 0))
            a, b, c = b, c, a
        for n in range(1, 15):
            accepted = (await ask(a, "perpetual", one("ab"[n % 2], n % 3 == 0)))["accepted"]
            if n % 6:  # with its last decision a period is over
                await ask(b, "perpetual", overrule(n, not accepted))
            a, b, c = b, c, a
        for name in ("labelled", "perpetual"):
            for engine in engines:
                await check_log(engine, name)


async def test_what_one_replica_has_answered_all_replicas_see(
    postgres: str, artifacts: Artifacts
) -> None:
    async with replicas(postgres, artifacts, stream(artifacts, "perpetual")) as engines:
        for n in range(1, 20):
            await ask(engines[n % 3], "perpetual", one("ab"[n % 2]))
            assert [await e.query("perpetual", lambda live: live.n) for e in engines] == [n] * 3
        seen = [await engine.query("perpetual", standing) for engine in engines]
        assert seen[0] == seen[1] == seen[2]


async def test_those_who_watch_a_stream_hear_of_other_replicas(
    postgres: str, artifacts: Artifacts
) -> None:
    async with replicas(postgres, artifacts, stream(artifacts, "window")) as engines:
        for watched in ("window", None):
            await engines[1].query("window", standing)
            await asyncio.sleep(0)
            event = asyncio.Event()
            end = engines[1].watch(watched, event)
            await ask(engines[0], "window", one())
            await asyncio.wait_for(event.wait(), 30)
            end()


async def test_a_stream_is_created_by_one_replica_only(postgres: str, artifacts: Artifacts) -> None:
    async with replicas(postgres, artifacts) as engines:
        for i in range(10):
            same = [engine.create(stream(artifacts, "window", f"s{i}")) for engine in engines]
            assert sorted(await asyncio.gather(*same)) == [False, False, True]
        for engine in engines:
            assert len(await engine.read(lambda c: c.streams())) == 10
            assert engine.figures.failures == 0


async def test_entries_that_vanish_break_their_stream_only(
    cluster: Cluster, postgres: str, artifacts: Artifacts
) -> None:
    streams = [stream(artifacts, "long", name) for name in ("x", "y")]
    async with opened(postgres, artifacts, *streams) as engine:
        for name in ("x", "y"):
            await ask(engine, name, many(*[("a", True)] * 5))
        await asyncio.to_thread(
            cluster.run,
            "ALTER TABLE entries DISABLE TRIGGER USER",
            "DELETE FROM entries WHERE stream = 1 AND seq > 3",
            database=postgres.rpartition("/")[2],
        )
        kinds = await asyncio.gather(*(refused(engine, "x", one()) for _ in range(3)))
        assert set(kinds) == {"log-broken"}
        assert await refused(engine, "y", one()) == "answered"
        with pytest.raises(Refusal, match="does not replay"):
            await engine.query("x", standing)


# Crashes ------------------------------------------------------------------------------------


def test_three_processes_survive_crashes_of_the_server_under_load(
    cluster: Cluster, postgres: str, artifacts: Artifacts, tmp_path: Path
) -> None:
    names = ("long", "perpetual")

    async def prepare() -> None:
        async with opened(postgres, artifacts, *(stream(artifacts, name) for name in names)):
            pass

    async def review(answered: dict[str, Any]) -> None:
        async with opened(postgres, artifacts) as engine:
            for name in names:
                await check_log(engine, name)
                ends = await engine.read(lambda c, n=name: c.windows(c.stream(n)))  # type: ignore[misc]
                assert all(end.verdict != "unfair" for end in ends)
            # Every answer that was given is still the answer.
            for key, (name, person, answer) in answered.items():
                again = await engine.submit(name, one(*person), key=key)
                assert msgspec.json.decode(again) == answer
            assert engine.figures.entries == 0

    asyncio.run(prepare())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen(
            [sys.executable, REPLICA, postgres, str(i), *names],
            stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, env=environment,
        )
        for i in range(3)
    ]  # fmt: skip
    answered: dict[str, Any] = {}
    told = threading.Semaphore(0)
    said: Counter[str] = Counter()

    def listen(process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            kind, *rest = json.loads(line)
            said[kind] += 1
            if kind == "answer":
                key, *answer = rest
                answered[key] = answer
                told.release()
        process.stdout.close()

    listeners = [threading.Thread(target=listen, args=(process,)) for process in processes]
    for listener in listeners:
        listener.start()
    try:
        for _ in range(3):
            for _ in range(100):
                assert told.acquire(timeout=60)
            cluster.kill()
            cluster.start()
        for _ in range(100):
            assert told.acquire(timeout=60)
    finally:
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in processes:
            process.wait(60)
        for listener in listeners:
            listener.join()
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert said["recovered"] >= 3
    asyncio.run(review(answered))


async def test_an_engine_reconnects_by_itself_after_a_restart_of_the_server(
    cluster: Cluster, postgres: str, artifacts: Artifacts
) -> None:
    async with opened(postgres, artifacts, stream(artifacts, "window")) as engine:
        first = await engine.submit("window", one(), key="k")
        await asyncio.to_thread(cluster.stop)
        assert await refused(engine, "window", one(), "l") == "unavailable"
        with pytest.raises(Refusal, match="the store cannot be read"):
            await engine.read(lambda connection: connection.streams())
        await asyncio.to_thread(cluster.start)
        await ready(engine)
        assert await engine.submit("window", one(), key="k") == first
        assert (await ask(engine, "window", one(), "l"))["n"] == 2
        assert await engine.read(lambda connection: connection.streams()) == [(1, "window")]
        await check_log(engine, "window")


async def ready(engine: Engine) -> None:
    while engine.status != "ready":
        await asyncio.sleep(0.01)
