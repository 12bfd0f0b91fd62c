"""Policies from others: files that lie are refused, and jobs outlive the process."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from live_server import (
    LiveServer,
    PolicyFile,
    exchange,
    files,
    live,
    raw,
    serving,
    settled,
    wait_for,
)

import fairshield as fs

__all__ = ["files", "live"]

_HEAD, _PREFIX = 16, 48
_LONG = {"property": "equal-opportunity", "bound": "0.2", "horizon": 80,
         "groups": {"a": 0.5, "b": 0.5}}  # fmt: skip
"""It takes a moment."""


def forged(
    content: bytes,
    change: Callable[[dict[str, Any]], Any] | None = None,
    tables: Callable[[bytes], bytes] | None = None,
) -> bytes:
    """A file with another header or other tables, and a digest that fits them."""
    length = struct.unpack("<I", content[12:16])[0]
    header, rest = content[_PREFIX : _PREFIX + length], content[_PREFIX + length :]
    if change is not None:
        data = json.loads(header)
        changed = change(data)
        text = json.dumps(data if changed is None else changed).encode()
        header = text.ljust(-(-(_PREFIX + len(text)) // 64) * 64 - _PREFIX)
    if tables is not None:
        rest = tables(rest)
    head = content[:12] + struct.pack("<I", len(header))
    return head + hashlib.sha256(head + header + rest).digest() + header + rest


def post(client: httpx.Client, content: bytes) -> httpx.Response:
    octets = {"content-type": "application/octet-stream"}
    return client.post("/v1/policies", content=content, headers=octets)


def is_refused(client: httpx.Client, content: bytes) -> str:
    """Why a file is refused, at once or after it was looked at."""
    answer = post(client, content)
    if answer.status_code == 422:
        detail: str = answer.json()["detail"]
        assert "/tmp" not in detail
        return detail
    assert answer.status_code in (200, 202), answer.text
    found = settled(client, answer.json()["id"])
    assert found["status"] == "refused", found
    refused = client.post("/v1/streams", json={"name": "trap", "policy": found["digest"]})
    assert refused.json()["type"] == "/problems/policy-not-ready"
    error: str = found["error"]
    return error


def test_a_forgery_that_changes_nothing_is_the_same_policy(
    live: LiveServer, files: dict[str, PolicyFile]
) -> None:
    for file in files.values():
        with live.client() as client:
            answer = post(client, forged(file.content))
        assert answer.status_code == 200
        assert answer.json()["digest"] == file.digest


def test_a_file_that_was_cut_or_changed_anywhere_is_refused(
    live: LiveServer, files: dict[str, PolicyFile]
) -> None:
    rng = random.Random(1)
    with live.client() as client:
        for file in files.values():
            content = file.content
            for _ in range(25):
                at = rng.randrange(len(content))
                changed = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
                for spoilt in (content[:at], changed, content + b"\0"):
                    assert is_refused(client, spoilt)


def test_a_rate_that_counts_decisions_is_refused_by_name(live: LiveServer, tmp_path: Path) -> None:
    prop = fs.RateDifference("0.2", "accept 1", "accept")
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5}, outcomes={"a": 0.5, "b": 0.5})
    kinds = fs.synthesize(prop, inputs, horizon=4), fs.DynamicShield(prop, inputs, period=4).policy
    words = {"property": "rate-difference", "bound": "0.2", "numerator": "accept 1",
             "denominator": "accept", "groups": {"a": 0.5, "b": 0.5}}  # fmt: skip
    with live.client() as client:
        for policy in kinds:
            policy.save(tmp_path / "it.shield")
            why = is_refused(client, (tmp_path / "it.shield").read_bytes())
            assert "streams count people" in why
        for window in ({"horizon": 4}, {"periodic": "dynamic", "period": 4}):
            answer = client.post("/v1/policies", json=words | window)
            assert answer.status_code == 422
            assert "streams count people" in answer.json()["detail"]


def _array(**changes: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        for entry in data["arrays"]:
            entry.update(changes)

    return change


def _set(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data.update(changes)


def _deep(data: dict[str, Any]) -> Any:
    nested: Any = 1
    for _ in range(900):
        nested = [nested]
    return nested


LIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "path as a name": _array(name="../../../etc/passwd"),
    "huge shape": _array(shape=[10**15]),
    "huge and empty": _array(shape=[0, 10**18]),
    "more than memory": _array(shape=[2**62, 2**62]),
    "negative shape": _array(shape=[-1]),
    "negative offset": _array(offset=-4096),
    "offset beyond the end": _array(offset=2**40),
    "endless offset": _array(offset=10**30),
    "objects": _array(type="|O"),
    "type of strings": _array(type="<U8"),
    "no arrays": _set(arrays=[]),
    "arrays are a word": _set(arrays="all"),
    "not an object": lambda data: [data],
    "a word": lambda data: "policy",
    "deep": _deep,
    "no facts": lambda data: {"arrays": data["arrays"]},
    "huge horizon": _set(horizon=10**9),
    "horizon in words": _set(horizon="ten"),
    "negative horizon": _set(horizon=-1),
    "endless bound": _set(property={"kind": "demographic-parity", "bound": "1e999999999"}),
    "module as a property": _set(property={"kind": "os.system", "bound": "0.1"}),
    "bound too small": _set(property={"kind": "demographic-parity", "bound": "0"}),
    "bound too small, and nothing at the end": _set(
        property={"kind": "demographic-parity", "bound": "0"},
        terminal={"kind": "none", "outcome": None},
    ),
    "other people at the end": _set(terminal={"kind": "equal-opportunity", "bound": "0.5"}),
    "checkpoints in words": _set(checkpoints=["two"]),
    "checkpoints that fall": _set(checkpoints=[3, 2]),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_lies_is_refused(
    live: LiveServer, files: dict[str, PolicyFile], lie: str
) -> None:
    before = sorted(path.name for path in live.folder.iterdir())
    with live.client() as client:
        assert is_refused(client, forged(files["plain"].content, LIES[lie]))
        assert client.get("/readyz").status_code == 200
    assert sorted(path.name for path in live.folder.iterdir()) == before


@pytest.mark.parametrize("kind", ["plain", "labelled"])
@pytest.mark.parametrize("seed", range(6))
def test_tables_that_break_the_guarantee_are_refused(
    live: LiveServer, files: dict[str, PolicyFile], kind: str, seed: int
) -> None:
    rng = random.Random(seed)

    def tables(content: bytes) -> bytes:
        if seed == 0:
            return bytes(len(content))
        if seed == 1:
            return b"\xff" * len(content)
        begin = rng.randrange(len(content) // 2)
        spoilt = rng.randbytes(len(content) // 4)
        return content[:begin] + spoilt + content[begin + len(spoilt) :]

    with live.client() as client:
        assert is_refused(client, forged(files[kind].content, tables=tables))


# Specifications -----------------------------------------------------------------------------


def specify(client: httpx.Client, **changes: Any) -> httpx.Response:
    spec = {"property": "demographic-parity", "bound": "0.2", "horizon": 10,
            "groups": {"a": 0.5, "b": 0.5}}  # fmt: skip
    return client.post("/v1/policies", json={**spec, **changes})


def test_a_specification_becomes_a_policy_and_a_stream(live: LiveServer) -> None:
    with live.client() as client:
        answer = specify(client)
        assert answer.status_code == 202
        found = settled(client, answer.json()["id"])
        assert found["status"] == "ready"
        even = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
        verified = fs.verify(fs.synthesize(fs.DemographicParity("0.2"), even, horizon=10))
        assert (verified.verdict, found["verification"]) == ("kept", str(verified))
        again = specify(client)
        assert again.status_code == 200
        assert again.json()["digest"] == found["digest"]
        made = client.post("/v1/streams", json={"name": "made", "policy": found["digest"]})
        assert made.status_code == 201


def test_a_policy_that_never_binds_says_so(live: LiveServer) -> None:
    with live.client() as client:
        found = settled(client, specify(client, min_support=6).json()["id"])
        assert found["status"] == "ready"
        assert "vacuous: it can never bind" in found["words"]
        assert "vacuous" in found["verification"]
        assert "holds" not in found["verification"]


def test_files_of_the_server_are_not_read_for_others(live: LiveServer) -> None:
    with live.client() as client:
        for path in ("/etc/passwd", "shield.db", "-", "../x.csv"):
            answer = specify(client, inputs=path)
            assert answer.status_code == 422
            assert "does not read" in answer.json()["detail"]


def test_streams_are_for_two_groups(live: LiveServer, tmp_path: Path) -> None:
    groups = {"a": 0.3, "b": 0.3, "c": 0.4}
    policy = fs.synthesize(fs.DemographicParity("0.2"), fs.InputModel.agnostic(groups), horizon=6)
    policy.save(tmp_path / "three.shield")
    periodic = {"property": "demographic-parity", "bound": "0.2", "groups": groups,
                "periodic": "dynamic", "period": 5}  # fmt: skip
    with live.client() as client:
        for answer in (
            specify(client, groups=groups),
            client.post("/v1/policies", json=periodic),
            post(client, (tmp_path / "three.shield").read_bytes()),
        ):
            assert answer.status_code == 422, answer.text
            assert "two groups" in answer.json()["detail"]
            assert "a, b and c" in answer.json()["detail"]


@pytest.mark.parametrize(
    "changes",
    [
        {"horizon": 100_000, "method": "exact"},
        {"horizon": 2**31},
        {"horizon": 100_000, "spread": 1.5},
        {"property": "share-parity", "horizon": 5_000},
        {"property": "share-parity", "horizon": None, "periodic": "dynamic", "period": 50_000},
        {"horizon": None, "periodic": "optimal", "period": 50, "periods": 100},
    ],
)
def test_what_would_take_hours_is_refused_at_once(
    live: LiveServer, changes: dict[str, Any]
) -> None:
    with live.client() as client:
        spec = {"property": "demographic-parity", "bound": "0.2", "horizon": 10,
                "groups": {"a": 0.5, "b": 0.5}, **changes}  # fmt: skip
        spec = {name: value for name, value in spec.items() if value is not None}
        decisions = spec.get("horizon", spec.get("period")) * spec.get("periods", 1)
        answer = client.post("/v1/policies", json=spec)
    assert answer.status_code == 422
    assert answer.json()["type"] == "/problems/too-costly"
    assert answer.json()["detail"] == (
        f"{decisions} decisions at once are more than this service plans for others: shorten "
        "them, or synthesise the policy where there is time for it and upload the file"
    )


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_policy_is_made_although_the_server_ends(tmp_path: Path, how: signal.Signals) -> None:
    with serving(tmp_path) as server:
        with server.client() as client:
            answer = client.post("/v1/policies", json=_LONG)
            assert answer.status_code == 202
            assert answer.json()["status"] == "synthesising"
        code = server.stop(how)
        assert code == (0 if how == signal.SIGTERM else -signal.SIGKILL)
        server.start()
        with server.client() as client:
            found = settled(client, answer.json()["id"])
            assert found["status"] == "ready"
            again = client.post("/v1/policies", json=_LONG)
            assert again.json()["digest"] == found["digest"]


def test_a_policy_tells_how_far_it_is(tmp_path: Path) -> None:
    with serving(tmp_path) as server, server.client() as client:
        spec = {**_LONG, "horizon": 200}
        which = client.post("/v1/policies", json=spec).json()["id"]
        seen = wait_for(
            lambda: client.get(f"/v1/policies/{which}").json()["progress"], "it makes no progress"
        )
        assert 0 < seen <= 1
        # Decisions are made meanwhile.
        answer = exchange(server, raw("GET", "/readyz"))
        assert answer is not None
        assert answer.status == 200
        assert server.stop() == 0
