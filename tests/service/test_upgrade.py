"""Databases of earlier and later releases."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from pathlib import Path

import apsw
import pytest
from engines import Artifacts, ask, many, opened, stream
from faults_kit import Load, audited, check_log, prepare, send

from fairshield.service.engine.engine import Engine
from fairshield.service.log.snapshots import WindowRow
from fairshield.service.store import SqliteDatabase, StoreError
from fairshield.service.store.base import Migration
from fairshield.service.store.policies import LoadedPolicies

NEW = ("verdict", "measured_bias", "measured_bias_unshielded")
NEW_IN_TALLIES = ("whole", "window_verdict", "window_unshielded")


def downgrade(path: Path) -> None:
    """Make of a database what the release with the first version of the schema would have left."""
    db = apsw.Connection(str(path))
    for number, window, snapshot in list(
        db.execute("SELECT stream, window, snapshot FROM windows")
    ):
        data = json.loads(snapshot)
        for name in NEW_IN_TALLIES:
            del data["tally"][name]
        db.execute(
            "UPDATE windows SET snapshot = ?, fair = fair OR verdict = 'exempt' "
            "WHERE stream = ? AND window = ?",
            (json.dumps(data), number, window),
        )
    for name in NEW:
        db.execute(f"ALTER TABLE windows DROP COLUMN {name}")
    db.execute("DROP TABLE monitors; DROP TABLE access_keys")
    db.execute("DELETE FROM migrations WHERE version > 1")
    db.close()


def version(path: Path) -> int:
    db = apsw.Connection(str(path))
    found: int = db.execute("SELECT max(version) FROM migrations").fetchone()[0]
    db.close()
    return found


async def serve(database: SqliteDatabase, load: Load, rounds: int) -> None:
    engine = Engine(database, LoadedPolicies())
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
    asyncio.run(serve(SqliteDatabase(path), load, 10))
    downgrade(path)
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


def ends(path: Path) -> list[WindowRow]:
    connection = SqliteDatabase(path).connect()
    found = [end for number, _ in connection.streams() for end in connection.windows(number)]
    connection.close()
    return found


def test_ends_of_windows_are_told_as_if_it_had_been_served_by_this_version(
    tmp_path: Path,
) -> None:
    path, load = tmp_path / "shield.db", Load(random.Random(9))
    asyncio.run(serve(SqliteDatabase(path), load, 40))
    right = ends(path)
    assert {end.verdict for end in right} >= {"fair"}
    assert len(right) > 5
    downgrade(path)
    assert migrated(path)
    assert {end.verdict for end in ends(path)} == {None}
    assert audited(str(path)).all_findings == ()
    asyncio.run(serve(SqliteDatabase(path), load, 0))
    assert ends(path) == right
    assert audited(str(path)).all_findings == ()


@pytest.mark.parametrize("policy", ["window", "perpetual"])
@pytest.mark.parametrize("before", [3, 12, 13, 30])
@pytest.mark.parametrize("after", [0, 1, 24])
async def test_ends_are_told_wherever_the_upgrade_finds_a_stream(
    tmp_path: Path, artifacts: Artifacts, policy: str, before: int, after: int
) -> None:
    people, found = [("ab"[i % 2], i % 3 == 0) for i in range(before + after)], []
    for name, upgraded in (("old", True), ("new", False)):
        path = tmp_path / f"{name}.db"
        async with opened(str(path), artifacts, stream(artifacts, policy)) as engine:
            await ask(engine, policy, many(*people[:before]))
        if upgraded:
            downgrade(path)
        for batch in (people[before:], []):  # and once more, to load what was stored meanwhile
            async with opened(str(path), artifacts) as engine:
                if batch:
                    await ask(engine, policy, many(*batch))
                await engine.query(policy, lambda live: live.seq)
        found.append(ends(path))
    assert found[0] == found[1]


async def test_conditions_that_were_noted_with_the_next_plan_are_no_finding(
    tmp_path: Path, artifacts: Artifacts
) -> None:
    path = tmp_path / "shield.db"
    async with opened(str(path), artifacts, stream(artifacts, "dynamic")) as engine:
        await ask(engine, "dynamic", many(*[("ab"[i == 5], i == 3) for i in range(6)]))
    assert broken_at(path, forget=True) == [6]
    assert broken_at(path) == [None]
    assert audited(str(path)).all_findings == ()
    async with opened(str(path), artifacts) as engine:
        await ask(engine, "dynamic", many(*[("a", False)] * 6))
        state = await engine.query("dynamic", lambda live: live.run.state.history.broken_at)
    assert state == 6
    assert broken_at(path) == [None, 6]
    assert audited(str(path)).all_findings == ()


async def test_a_condition_that_was_noted_at_once_and_is_erased_is_a_finding(
    tmp_path: Path, artifacts: Artifacts
) -> None:
    path = tmp_path / "shield.db"
    async with opened(str(path), artifacts, stream(artifacts, "static")) as engine:
        await ask(engine, "static", many(*[(group, True) for group in "bbabab"]))
    assert broken_at(path, forget=True) == [6]
    (finding,) = audited(str(path)).all_findings
    assert "another snapshot" in finding


def broken_at(path: Path, *, forget: bool = False) -> list[int | None]:
    """When the condition was broken, as stored at the end of each period; and forget it."""
    db, found = apsw.Connection(str(path)), []
    for window, snapshot in list(db.execute("SELECT window, snapshot FROM windows")):
        data = json.loads(snapshot)
        found.append(data["shield"]["history"]["broken_at"])
        if forget:
            data["shield"]["history"] |= {"broken_at": None, "broken_by": None}
            written = json.dumps(data)
            db.execute("UPDATE windows SET snapshot = ? WHERE window = ?", (written, window))
    db.close()
    return found


def migrated(path: Path) -> list[Migration]:
    connection = SqliteDatabase(path).connect()
    applied = connection.migrate(SqliteDatabase(path).migrations())
    connection.close()
    return applied


def test_a_look_does_not_upgrade_and_says_what_does(old: tuple[Path, Load]) -> None:
    path, _load = old
    with pytest.raises(StoreError, match=r"schema version 1.*fairshield serve --db brings it up"):
        audited(str(path))
    assert version(path) == 1


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
