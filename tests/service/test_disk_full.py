"""The disk is full, or fails to sync: nothing is answered until it works again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from faults_kit import Load, check_log, prepare, send
from faulty_disk import Disk, DiskFile

from fairshield.service.engine.engine import Engine
from fairshield.service.store import Connection, SqliteDatabase
from fairshield.service.store.policies import LoadedPolicies
from fairshield.wire.problems import Refusal


class Counting(SqliteDatabase):
    """A database that counts its connections."""

    connections = 0

    def connect(self) -> Connection:
        self.connections += 1
        return super().connect()


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.unregister()


def full() -> None:
    raise apsw.FullError("database or disk is full")


async def until_ready(engine: Engine) -> None:
    while engine.status != "ready":
        await asyncio.sleep(0.01)


async def all_again(engine: Engine, load: Load) -> None:
    """Retry until everything is answered."""
    while await send(engine, load, load.again(20)):
        await until_ready(engine)


async def fill_up(disk: Disk, database: Counting, policies: LoadedPolicies, load: Load) -> None:
    engine = Engine(database, policies)
    await engine.start()
    await prepare(engine)
    for _ in range(5):
        for _ in range(4):
            assert await send(engine, load, load.next()) == []
        opened, asked = database.connections, load.next()
        disk.writing = full
        refused = await send(engine, load, asked)
        assert len(refused) == len(asked)
        assert {refusal.kind for refusal in refused} == {"unavailable"}
        assert all(refusal.retry_after for refusal in refused)
        with pytest.raises(Refusal, match="nothing is known to be recorded"):
            await engine.write(lambda connection: connection.put_artifact("x", b"x"))
        disk.writing = lambda: None
        await all_again(engine, load)
        assert database.connections > opened
    await engine.stop()


def test_a_full_disk_is_refused_and_survived(disk: Disk, tmp_path: Path) -> None:
    path, load = tmp_path / "shield.db", Load(random.Random(3))
    database = Counting(path, serving=True, vfs=disk.name)
    asyncio.run(fill_up(disk, database, LoadedPolicies(), load))
    check_log(str(path), load)


async def fail_syncs(disk: Disk, database: Counting, policies: LoadedPolicies, load: Load) -> None:
    engine = Engine(database, policies)
    await engine.start()
    await prepare(engine)
    failed: list[DiskFile] = []
    synced: list[DiskFile] = []

    def fail(file: DiskFile) -> None:
        failed.append(file)
        raise apsw.IOError("disk I/O error")

    for _ in range(5):
        for _ in range(4):
            assert await send(engine, load, load.next()) == []
        failed.clear()
        synced.clear()
        opened, asked = database.connections, load.next()
        disk.syncing = fail
        refused = await send(engine, load, asked)
        assert {refusal.kind for refusal in refused} == {"unavailable"}
        disk.syncing = synced.append
        await until_ready(engine)
        assert await send(engine, load, load.next()) == []
        await all_again(engine, load)
        assert database.connections > opened
        assert not {id(file) for file in failed} & {id(file) for file in synced}
    assert engine.figures.failures >= 5
    await engine.stop()


def test_a_failed_sync_is_never_tried_again_on_its_connection(disk: Disk, tmp_path: Path) -> None:
    path, load = tmp_path / "shield.db", Load(random.Random(4))
    database = Counting(path, serving=True, vfs=disk.name)
    asyncio.run(fail_syncs(disk, database, LoadedPolicies(), load))
    check_log(str(path), load)
