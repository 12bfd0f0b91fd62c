"""The power fails while a service writes: what was synced is there, anything else may be."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import get_args

import apsw
import pytest
from faults_kit import Load, check_log, prepare, send
from faulty_disk import Disk, DiskFile, Loss

from fairshield.service.engine.engine import Engine
from fairshield.service.store import SqliteDatabase, StoreError
from fairshield.service.store.policies import LoadedPolicies
from fairshield.service.store.sqlite import SqliteConnection
from fairshield.wire.problems import Refusal

CUTS = 60


async def serve_until_the_cut(disk: Disk, path: Path, policies: LoadedPolicies, load: Load) -> None:
    """Repeat what was asked before, then go on asking."""
    engine = Engine(SqliteDatabase(path, vfs=disk.name), policies)
    try:
        await engine.start()
        await prepare(engine)
        refused = await send(engine, load, load.again(20))
        # A stream that is broken by lost pages is refused without the disk, which then never fails.
        while not (disk.dead or load.problems):
            load.problems += map(str, refused)
            refused = await send(engine, load, load.next())
        load.problems += [str(refusal) for refusal in refused if refusal.kind != "unavailable"]
    except (StoreError, Refusal):
        if not disk.dead:
            raise
    finally:
        await engine.stop()


def survive_cuts(folder: Path, *, cuts: int, seed: int) -> tuple[Load, Path]:
    """Cut the power again and again; the load, and the folder of what is left."""
    rng = random.Random(seed)
    # How much a load draws depends on time, so it has a generator of its own.
    load, policies, now = Load(random.Random(seed)), LoadedPolicies(), folder / "0"
    now.mkdir()
    for i in range(1, cuts + 1):
        disk = Disk(cut_at=int(10 ** rng.uniform(0, 2.9)))
        asyncio.run(serve_until_the_cut(disk, now / "shield.db", policies, load))
        after = folder / str(i)
        disk.after_power_cut(after, rng.choice(get_args(Loss)), rng)
        disk.unregister()
        now = after
    return load, now


async def finish(path: Path, policies: LoadedPolicies, load: Load) -> None:
    """Ask for everything once more, with the power on."""
    engine = Engine(SqliteDatabase(path), policies)
    await engine.start()
    await prepare(engine)
    assert await send(engine, load, load.again()) == []
    while any(load.decisions(stream) < 10 for stream in load.streams):
        assert await send(engine, load, load.next()) == []
    await engine.stop()


def test_what_was_answered_survives_every_power_cut(tmp_path: Path) -> None:
    load, folder = survive_cuts(tmp_path, cuts=CUTS, seed=1)
    asyncio.run(finish(folder / "shield.db", LoadedPolicies(), load))
    assert len(load.answered) > 5 * CUTS
    check_log(str(folder / "shield.db"), load)


def test_without_syncs_a_power_cut_would_lose_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = SqliteConnection.script

    def unsynced(self: SqliteConnection, sql: str) -> None:
        script(self, sql.replace("synchronous = FULL", "synchronous = OFF"))

    monkeypatch.setattr(SqliteConnection, "script", unsynced)
    try:
        load, _ = survive_cuts(tmp_path, cuts=15, seed=2)
        lost = bool(load.problems)
    except (StoreError, Refusal):
        lost = True  # no database is left, or one that is malformed
    assert lost


async def fail_a_sync(disk: Disk, path: Path, policies: LoadedPolicies, load: Load) -> None:
    """Let a commit fail, and stop before anything works again."""
    engine = Engine(SqliteDatabase(path, vfs=disk.name), policies)
    await engine.start()
    await prepare(engine)
    assert await send(engine, load, load.next()) == []

    def fail(file: DiskFile) -> None:
        file.forget()  # the system tells of the failure once, and counts the pages as written
        raise apsw.IOError("disk I/O error")

    disk.syncing = fail
    refused = await send(engine, load, load.next())
    assert {refusal.kind for refusal in refused} == {"unavailable"}
    await engine.stop()
    disk.syncing = lambda file: None


async def ask_again(disk: Disk, path: Path, policies: LoadedPolicies, load: Load) -> None:
    """Get everything answered, and cut the power."""
    engine = Engine(SqliteDatabase(path, vfs=disk.name), policies)
    await engine.start()
    await prepare(engine)
    assert await send(engine, load, list(load.flying.values())) == []
    disk.dead = True
    await engine.stop()


@pytest.mark.parametrize("seed", range(3))
def test_an_answer_after_a_failed_sync_survives_a_power_cut(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    load, policies, disk = Load(rng), LoadedPolicies(), Disk()
    (before := tmp_path / "before").mkdir()
    asyncio.run(fail_a_sync(disk, before / "shield.db", policies, load))
    asyncio.run(ask_again(disk, before / "shield.db", policies, load))
    disk.after_power_cut(after := tmp_path / "after", "all", rng)
    disk.unregister()
    asyncio.run(finish(after / "shield.db", policies, load))
    check_log(str(after / "shield.db"), load)
