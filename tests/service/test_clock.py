"""Clocks jump; nothing but the time in an entry depends on them."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from faults_kit import Load, check_log, prepare, send

from fairshield.service.engine.engine import Engine
from fairshield.service.store import SqliteDatabase
from fairshield.service.store.policies import LoadedPolicies

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def steady() -> Callable[[], datetime]:
    return lambda: NOON


def jumping() -> Callable[[], datetime]:
    rng = random.Random(5)
    return lambda: NOON + timedelta(days=rng.randint(-9_000, 9_000), microseconds=rng.randint(0, 9))


async def run(path: Path, clocks: list[Callable[[], datetime]]) -> Load:
    """The same load whatever the clocks say; the service is started anew for each of them."""
    load = Load(random.Random(6), depth=3)
    for clock in clocks:
        engine = Engine(SqliteDatabase(path), LoadedPolicies(), clock=clock)
        await engine.start()
        await prepare(engine)
        for asked in [load.again(50), *([None] * 30)]:
            assert await send(engine, load, load.next() if asked is None else asked) == []
        await engine.stop()
    return load


def timeless(answer: bytes) -> Any:
    """An answer without times and what follows from them."""
    data = json.loads(answer)
    parts = data.get("decisions", [data])
    return [{k: v for k, v in part.items() if k not in ("at", "receipt")} for part in parts]


def test_answers_and_order_do_not_depend_on_the_clock(tmp_path: Path) -> None:
    loads = []
    for name, clock in (("steady", steady), ("jumping", jumping)):
        (folder := tmp_path / name).mkdir()
        load = asyncio.run(run(folder / "shield.db", [clock(), clock(), clock()]))
        check_log(str(folder / "shield.db"), load)
        loads.append({key: timeless(answer) for key, (_, answer) in load.answered.items()})
    assert loads[0] == loads[1]


def test_times_are_told_as_the_clock_says_them(tmp_path: Path) -> None:
    load = asyncio.run(run(tmp_path / "shield.db", [jumping()]))
    years = [json.loads(answer).get("at", "2026")[:4] for _, answer in load.answered.values()]
    assert min(years) < "2010"
    assert max(years) > "2040"
