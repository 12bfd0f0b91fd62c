"""Databases of earlier and later releases."""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path

import apsw
import pytest
from faults_kit import Load, audited, check_log, prepare, send

from fairshield.service.engine import Engine
from fairshield.service.shelf import Shelf
from fairshield.service.store import SqliteDatabase, StoreError
from fairshield.service.store.base import Migration


class Older(SqliteDatabase):
    """The database of a release that knew the first version of the schema only."""

    def migrations(self) -> list[Migration]:
        return super().migrations()[:1]


async def serve(database: SqliteDatabase, load: Load, rounds: int) -> None:
    engine = Engine(database, Shelf())
    await engine.start()
    await prepare(engine)
    assert await send(engine, load, load.again()) == []
    for _ in range(rounds):
        assert await send(engine, load, load.next()) == []
    await engine.stop()


@pytest.fixture
def old(tmp_path: Path) -> tuple[Path, Load]:
    """A database with the first version of the schema, and what was answered from it."""
    path, load = tmp_path / "shield.db", Load(random.Random(8))
    asyncio.run(serve(Older(path), load, 10))
    return path, load


def test_an_older_database_is_served_with_nothing_lost(old: tuple[Path, Load]) -> None:
    path, load = old
    answered = dict(load.answered)
    asyncio.run(serve(SqliteDatabase(path), load, 10))
    assert answered.items() < load.answered.items()
    check_log(str(path), load)
    connection = SqliteDatabase(path).connect()
    assert connection.access_keys() == []
    assert connection.migrate(SqliteDatabase(path).migrations()) == []
    connection.close()


def test_a_look_does_not_upgrade_and_says_what_does(old: tuple[Path, Load]) -> None:
    path, load = old
    with pytest.raises(StoreError, match=r"schema version 1.*fairshield serve --db brings it up"):
        audited(str(path))
    asyncio.run(serve(Older(path), load, 1))


def test_an_upgrade_that_fails_changes_nothing(old: tuple[Path, Load], tmp_path: Path) -> None:
    path, load = old
    database = SqliteDatabase(path)
    connection = database.connect()
    broken = Migration(2, "0002_broken", "CREATE TABLE half (id); CREATE TABLE half (id)")
    with pytest.raises(StoreError, match="half"):
        connection.migrate([*database.migrations()[:1], broken])
    assert connection.rows("SELECT name FROM sqlite_schema WHERE name = 'half'") == []
    connection.close()
    asyncio.run(serve(database, load, 1))
    check_log(str(path), load)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("INSERT INTO migrations VALUES (99, 'x')", "schema version 99, this library knows"),
        ("UPDATE migrations SET checksum = 'x' WHERE version = 1", "made by other statements"),
    ],
)
def test_a_newer_or_altered_schema_is_refused(
    old: tuple[Path, Load], tmp_path: Path, change: str, message: str
) -> None:
    path, load = old
    before = shutil.copy(path, tmp_path / "before.db")
    db = apsw.Connection(str(path))
    db.execute(change)
    db.close()
    with pytest.raises(StoreError, match=message):
        asyncio.run(serve(SqliteDatabase(path), load, 1))
    with pytest.raises(StoreError, match=message):
        audited(str(path))
    asyncio.run(serve(SqliteDatabase(before), load, 1))


def test_another_database_is_not_audited(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "other.db"))
    db.execute("CREATE TABLE something (id)")
    db.close()
    with pytest.raises(StoreError, match="not a database of fairshield serve"):
        audited(str(tmp_path / "other.db"))
    with pytest.raises(StoreError, match="does not exist"):
        audited(str(tmp_path / "none.db"))
