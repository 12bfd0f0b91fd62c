"""What earlier versions have written is still read, and goes on as it would have then."""

from __future__ import annotations

import gzip
import json
import math
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from old_files import (
    FILES,
    audit_facts,
    columns_of,
    exported_facts,
    file_digest,
    gone_on,
    loaded,
    log_facts,
    monitor_facts,
    monitor_of,
    new_stream,
    policies_of,
    policy_facts,
    repeated,
    resumed_run,
    run_command,
    run_facts,
    service_facts,
    serving,
    state_of,
    streams_of,
    whole_windows,
)

VERSIONS = sorted(path.name for path in FILES.iterdir())


def found(pattern: str) -> Any:
    """A parameter for each file of each version."""
    paths = [path for version in VERSIONS for path in sorted((FILES / version).glob(pattern))]
    names = [f"{path.relative_to(FILES).parts[0]}-{path.stem}" for path in paths]
    return pytest.mark.parametrize("path", paths, ids=names)


def told(path: Path) -> Any:
    """What was written about a file."""
    return json.loads(path.with_suffix(".json").read_text())


CORRECTED = ["streams.best-effort.guarantee.unconditional: False, was True"]
"""What 0.1 said of a database and was wrong: a best effort promises nothing of every sequence."""


def check(now: dict[str, Any], then: dict[str, Any], corrected: Sequence[str] = ()) -> None:
    """All that was known then is so now but for ``corrected``; floats may differ in last digits."""
    found = [
        line for name, value in json.loads(json.dumps(now)).items() if name in then
        for line in differences(value, then[name], name)
    ]  # fmt: skip
    assert found == [*corrected]


def differences(now: Any, then: Any, where: str) -> list[str]:
    """Where two pieces of JSON differ; what is only in the newer one is no difference."""
    if isinstance(then, dict) and isinstance(now, dict):
        return [
            line for key in then
            for line in differences(now.get(key, "nothing"), then[key], f"{where}.{key}")
        ]  # fmt: skip
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        pairs = enumerate(zip(now, then, strict=True))
        return [line for i, pair in pairs for line in differences(*pair, f"{where}[{i}]")]
    if isinstance(then, float) and isinstance(now, float):
        same = math.isclose(now, then, rel_tol=1e-9, abs_tol=1e-12)
        return [] if same else [f"{where}: {now!r}, was {then!r}"]
    return [] if (now, type(now)) == (then, type(then)) else [f"{where}: {now!r}, was {then!r}"]


def test_there_are_files_of_every_sort() -> None:
    assert VERSIONS
    for version in VERSIONS:
        for sort in ("policies/*.shield", "states/*.json", "monitors/*.json", "logs/*.json"):
            assert len(list((FILES / version).glob(sort))) >= 10
        assert (FILES / version / "service/shield.db.gz").exists()


def test_a_difference_is_found_wherever_it_is() -> None:
    then = {"a": [1, {"b": 0.5}], "c": True}
    assert differences({"a": [1, {"b": 0.5 + 1e-13, "new": 1}], "c": True}, then, "x") == []
    for other in (
        {"a": [1, {"b": 0.5001}], "c": True}, {"a": [1, {"b": 0.5}], "c": 1}, {"a": [1], "c": True},
        {"a": [1, {"b": 0.5}]}, {"a": [2, {"b": 0.5}], "c": True}, None,
    ):  # fmt: skip
        assert len(differences(other, then, "x")) == 1


# Policies -----------------------------------------------------------------------------------


@found("policies/*.shield")
def test_a_policy_says_and_decides_the_same(path: Path) -> None:
    then = told(path)
    assert file_digest(path) == then["file"], "the file itself has changed"
    check(policy_facts(loaded(path), then["requests"]), then)


@found("policies/*.shield")
def test_a_policy_decides_many_at_once_as_it_did_one_by_one(path: Path) -> None:
    then, policy = told(path), loaded(path)
    columns = columns_of(then["requests"], labelled=policy.labelled)
    answers = new_stream(policy).decide_many(*columns)
    rows = zip(answers.window, answers.position, answers.accepted, strict=True)
    assert [[int(w), int(p), bool(a)] for w, p, a in rows] == [d[:3] for d in then["decisions"]]


@found("policies/*.shield")
def test_a_policy_that_is_saved_again_is_the_same(path: Path, tmp_path: Path) -> None:
    again = tmp_path / path.name
    loaded(path).save(again)
    then = told(path)
    check(policy_facts(loaded(again), then["requests"]), then)


# States -------------------------------------------------------------------------------------


@found("states/*.json")
def test_an_interrupted_run_goes_on(path: Path) -> None:
    then = told(path)
    policy = loaded(path.parent.parent / "policies" / then["policy"])
    run = resumed_run(policy, then["state"])
    assert run.state == state_of(then["state"])
    now = run_facts(run, then["requests"])
    assert state_of(now.pop("then")) == state_of(then["then"])
    check(now, then)


@found("monitors/*.json")
def test_a_monitor_goes_on(path: Path) -> None:
    then = told(path)
    policy = loaded(path.parent.parent / "policies" / then["policy"])
    monitor = monitor_of(policy, then["how"], then["state"])
    assert monitor.state == monitor_of(policy, then["how"], monitor.state).state
    check(monitor_facts(monitor, then["requests"]), then)


# Logs ---------------------------------------------------------------------------------------


@pytest.fixture
def copied(path: Path, tmp_path: Path) -> Path:
    """The folder of the file, where everything may be changed; policies are beside it."""
    for name in (path.parent.name, "policies"):
        shutil.copytree(path.parent.parent / name, tmp_path / name)
    return tmp_path / path.parent.name


@found("logs/*.json")
def test_commands_say_the_same_of_a_log(path: Path, copied: Path) -> None:
    then = told(path)
    check(log_facts(copied, then["log"], then["policy"], then["unseen"]), then)


@found("logs/*.json")
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_an_interrupted_log_is_completed(path: Path, copied: Path, share: float) -> None:
    then = told(path)
    log = copied / then["log"]
    whole = log.read_bytes()
    log.write_bytes(whole[: int(share * len(whole))])
    again = ["--resume", log.name, "-o", log.name, "--unseen", then["unseen"]]
    assert run_command(copied, "run", then["policy"], then["requests"], *again) == (0, "")
    assert log.read_bytes() == whole


# The service --------------------------------------------------------------------------------


@pytest.fixture
def database(path: Path, tmp_path: Path) -> Path:
    """A copy of a database."""
    copy = tmp_path / "shield.db"
    copy.write_bytes(gzip.decompress(path.with_suffix(".db.gz").read_bytes()))
    return copy


@pytest.fixture
def client(path: Path, database: Path) -> Iterator[httpx.Client]:
    """A service over the copy."""
    with serving(database, told(path)["token"]) as client:
        yield client


@found("service/shield.json")
def test_a_database_is_served_with_nothing_lost(
    path: Path, database: Path, client: httpx.Client, tmp_path: Path
) -> None:
    then = told(path)
    assert streams_of(client) == sorted(then["streams"])
    assert len(policies_of(client)) == len(then["policies"])
    check(service_facts(client, database), then, CORRECTED)
    assert repeated(client, then["asked"]) == [answer for *_, answer in then["asked"]]
    check(service_facts(client, database), then, CORRECTED)
    shown = run_command(
        tmp_path, "tail", "closed", "--url", client.base_url, "--token", then["token"],
        "--after", "-1", "--json",
    )  # fmt: skip
    receipts = [json.loads(line)["receipt"] for line in shown[1].splitlines()]
    closed = then["streams"]["closed"]
    assert (shown[0], len(receipts), receipts[-1]) == (0, closed["entries"], closed["last_hash"])


@found("service/shield.json")
def test_windows_that_end_after_an_upgrade_pass_the_audit(
    database: Path, client: httpx.Client
) -> None:
    decided = {name: whole_windows(client, name) for name in streams_of(client)}
    assert sum(decided.values()) >= 3
    found = {s["stream"]: s["findings"] for s in audit_facts(database)[1]["streams"]}
    assert [f for name in decided for f in found[name] if "snapshot" in f] == []


@found("service/shield.json")
def test_every_stream_of_a_database_goes_on(
    path: Path, database: Path, client: httpx.Client
) -> None:
    then = told(path)
    check({"exported": exported_facts(client, path.parent.parent / "policies")}, then)
    check({"then": gone_on(client, database)}, then)


@found("service/reviewed.db.gz")
@pytest.mark.parametrize("damaged", [False, True])
def test_a_checkpoint_that_a_person_broke_is_judged_again(
    path: Path, tmp_path: Path, damaged: bool
) -> None:
    """The version that wrote it took the first window for fair, and every total after it."""
    database = tmp_path / "shield.db"
    database.write_bytes(gzip.decompress(path.read_bytes()))
    if damaged:  # the end of the last window, from which nothing is read
        db = sqlite3.connect(database)
        with db:
            db.execute("UPDATE windows SET snapshot = '{broken' WHERE window = 1")
        db.close()
    before = audit_facts(database)[1]["streams"][0]
    assert (before["fair"], before["unfair"], len(before["findings"])) == (1, 1, 1 + damaged)
    assert before["findings"][0].endswith("it was guaranteed until a person overrode a decision")
    with serving(database) as client:
        assert client.get("/v1/streams/s").json()["status"] == "violated"
        ends = client.get("/v1/streams/s/windows").json()["windows"]
        assert [end["verdict"] for end in ends] == ["unfair", "fair"]
        assert whole_windows(client, "s")
    after = audit_facts(database)[1]["streams"][0]
    assert (after["fair"] > before["fair"], after["unfair"]) == (True, 1)
    assert after["findings"] == before["findings"][:1]
