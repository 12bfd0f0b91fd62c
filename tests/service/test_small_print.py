"""What is easy to get wrong: the order of groups, infinite biases, old entries, closed streams."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from engines import Artifacts, ask, check_log, one, opened, overrule, refused, reloaded, stream
from live_server import serving, settled

import fairshield as fs
from fairshield.service.engine.commands import Close
from fairshield.service.log.reports import report_of, state_of
from fairshield.service.policies.jobs import check_groups
from fairshield.service.store import Connection
from fairshield.service.store.sqlite import SqliteDatabase
from fairshield.wire.messages import StreamRequest

ONE_SIDED = {
    "property": "disparate-impact", "bound": "0.5", "two_sided": False, "horizon": 8,
    "groups": {"w": 0.4, "m": 0.6},
}  # fmt: skip


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with serving(tmp_path_factory.mktemp("small-print")) as server, server.client() as client:
        yield client


# Policies ---------------------------------------------------------------------------------------


def test_the_group_that_is_named_first_stays_first(client: httpx.Client) -> None:
    made = settled(client, client.post("/v1/policies", json=ONE_SIDED).json()["id"])
    inputs = fs.InputModel.agnostic({"w": 0.4, "m": 0.6})
    prop = fs.DisparateImpact("0.5", two_sided=False)
    ours = fs.synthesize(prop, inputs, horizon=8)
    assert made["words"] == str(ours)
    turned = ONE_SIDED | {"groups": {"m": 0.6, "w": 0.4}}
    assert client.post("/v1/policies", json=turned).json()["id"] != made["id"]


@pytest.mark.parametrize("name", ["a\x00", "\x1b[2J", "x" * 201])
def test_groups_that_cannot_be_named_are_refused(client: httpx.Client, name: str) -> None:
    spec = ONE_SIDED | {"groups": {name: 0.5, "b": 0.5}}
    answer = client.post("/v1/policies", json=spec)
    assert answer.status_code == 422
    assert "printable" in answer.json()["detail"]
    with pytest.raises(fs.InvalidValueError, match="printable"):
        check_groups((name, "b"))


def test_a_small_file_of_a_policy_with_huge_plans_is_refused(
    client: httpx.Client, tmp_path: Path
) -> None:
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    path = tmp_path / "huge.shield"
    fs.periodic.Dynamic(fs.ShareParity("0.1"), inputs, 20_000).save(path)
    answer = client.post(
        "/v1/policies", content=path.read_bytes(),
        headers={"content-type": "application/octet-stream"},
    )  # fmt: skip
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/too-costly")


# Exports ----------------------------------------------------------------------------------------


def test_no_text_of_an_export_is_a_formula(client: httpx.Client) -> None:
    spec = {"property": "demographic-parity", "bound": "0.2", "horizon": 6}
    groups = {"=1+1": 0.5, "b": 0.5}
    made = settled(client, client.post("/v1/policies", json=spec | {"groups": groups}).json()["id"])
    body = {"name": "sheet", "policy": made["digest"], "human": True}
    assert client.post("/v1/streams", json=body).status_code == 201
    person = {"group": "=1+1", "proposed": True}
    done = client.post(
        "/v1/streams/sheet/decisions", json=person, headers={"idempotency-key": "@SUM(A1)"}
    ).json()
    client.post(
        "/v1/streams/sheet/decisions/1/override",
        json={"accepted": not done["accepted"], "note": "-2+3"},
        headers={"idempotency-key": "plain"},
    )
    lines = client.get("/v1/streams/sheet/log.csv").text.splitlines()
    assert "'=1+1" in lines[2]
    assert "'@SUM(A1)" in lines[2]
    assert "'-2+3" in lines[3]
    header = lines[0].split(",")
    assert lines[3].split(",")[header.index("guaranteed")] in ("true", "false")
    stored = client.get("/v1/streams/sheet/log.jsonl").text
    exact = [json.loads(line) for line in stored.splitlines()]
    assert (exact[1]["group"], exact[2]["note"]) == ("=1+1", "-2+3")


def test_the_head_of_an_endless_answer_is_not_asked_for(client: httpx.Client) -> None:
    assert client.head("/v1/events").status_code == 405
    assert client.head("/v1/streams").status_code == 200


# Files ------------------------------------------------------------------------------------------


def test_files_are_their_owners_alone(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "shield.db", serving=True)
    connection = database.connect()
    connection.migrate(database.migrations())
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert set(modes) == {"shield.db", "shield.db-wal", "shield.db-shm", "shield.db.lock"}
    assert set(modes.values()) == {0o600}
    connection.close()
    database.close()


# Streams ----------------------------------------------------------------------------------------


async def test_an_infinite_bias_is_stored_and_read_again(
    address: str, artifacts: Artifacts, tmp_path: Path
) -> None:
    prop = fs.DisparateImpact("0.5", two_sided=False)
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    digest = fs.synthesize(prop, inputs, horizon=4).save(tmp_path / "one-sided.shield")
    content = (tmp_path / "one-sided.shield").read_bytes()
    async with opened(address, artifacts) as engine:
        await engine.write(lambda c: c.put_artifact(digest, content))
        await engine.create(StreamRequest("s", digest, human=True))
        for n, group in enumerate("abab", 1):
            decided = await ask(engine, "s", one(group, group == "a"), f"k{n}")
            if n < 4 and decided["accepted"] != (group == "a"):
                await ask(engine, "s", overrule(n, group == "a"))
        state = await engine.query("s", state_of)
        assert state.worst_bias is None
        await check_log(engine, "s")
    async with opened(address, artifacts) as engine:
        assert await engine.query("s", state_of) == state
        assert (await ask(engine, "s", one("a", True), "k1"))["n"] == 1


async def test_an_old_entry_that_was_changed_answers_nobody(
    tmp_path: Path, artifacts: Artifacts
) -> None:
    database = SqliteDatabase(tmp_path / "shield.db")
    streams = stream(artifacts, "window", "changed"), stream(artifacts, "window", "other")
    async with opened(database, artifacts, *streams) as engine:
        for n in range(30):
            await ask(engine, "changed", one("ab"[n % 2]), f"k{n}")

        def change(connection: Connection) -> None:
            connection.run("DROP TRIGGER entries_stay")
            line = "replace(line, '\"accepted\":true', '\"accepted\":false')"
            connection.run(f"UPDATE entries SET line = {line} WHERE stream = 1 AND seq = 1")

        await engine.write(change)
        both = await asyncio.gather(
            refused(engine, "changed", one("a"), "k0"), refused(engine, "other", one("a"), "k0")
        )
        assert both == ["log-broken", "answered"]
        assert engine.status == "ready"


@pytest.mark.parametrize("policy", ["window", "perpetual"])
async def test_nothing_is_promised_of_a_window_that_was_closed(
    address: str, artifacts: Artifacts, policy: str
) -> None:
    async with opened(address, artifacts, stream(artifacts, policy, "s")) as engine:
        for _ in range(3):
            await ask(engine, "s", one("a", True))
        await ask(engine, "s", Close())
        report = await engine.query("s", report_of)
        assert report.status == "finished"
        assert "closed after 3 of" in report.words
        assert "nothing is promised" in report.words
        assert "certain" not in report.words
        live = await reloaded(engine, "s")
        assert report_of(live) == report
