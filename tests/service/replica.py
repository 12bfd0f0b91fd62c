"""A process that decides over a PostgreSQL database, and prints every answer.

Arguments: the address, a number, the streams.  The process ends at the end of its input.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from typing import Any

import msgspec
from engines import fixed_clock, one

from fairshield.service.engine.engine import Engine
from fairshield.service.store import open_database
from fairshield.service.store.policies import LoadedPolicies
from fairshield.wire.problems import Refusal


def tell(*words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


async def decide(engine: Engine, stream: str, name: str, ended: asyncio.Event) -> None:
    """Ask for one decision after the other, each until it is answered."""
    rng, number = random.Random(name), 0
    while not ended.is_set():
        number += 1
        key = f"{name}-{number}"
        person = (rng.choice("ab"), rng.random() < 0.5, round(rng.random(), 3))
        while not ended.is_set():
            try:
                answer = await engine.submit(stream, one(*person), key=key)
            except Refusal as refusal:
                if refusal.kind != "unavailable":
                    raise
                await asyncio.sleep(0.02)
            else:
                tell("answer", key, stream, person, msgspec.json.decode(answer))
                break


async def main(address: str, number: str, *streams: str) -> None:
    engine = Engine(open_database(address), LoadedPolicies(), clock=fixed_clock)
    await engine.start()
    ended = asyncio.Event()
    callers = [
        asyncio.ensure_future(decide(engine, stream, f"{number}-{stream}-{i}", ended))
        for stream in streams for i in range(4)
    ]  # fmt: skip
    await asyncio.to_thread(sys.stdin.read)
    ended.set()
    await asyncio.gather(*callers)
    await engine.stop()
    for _ in range(engine.figures.failures):
        tell("recovered")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
