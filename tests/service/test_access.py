"""Who may do what: keys, scopes, limits, and names by which the service is called."""

from __future__ import annotations

import hmac
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from live_server import (
    PATIENCE,
    LiveServer,
    PolicyFile,
    exchange,
    files,
    live,
    populate,
    raw,
    serving,
    wait_for,
)

from fairshield.service.api.base import Endpoint
from fairshield.service.api.endpoints import ENDPOINTS
from fairshield.service.store import open_database
from fairshield.service.web.access import Access, RateLimit, new_key
from fairshield.wire.problems import Refusal

__all__ = ["files", "live"]

_NOW = datetime(2030, 1, 1, tzinfo=UTC).isoformat()
_KEYS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "admin": (("admin",), None),
    "decide": (("decide",), None),
    "read": (("read",), None),
    "plain": (("decide", "read"), "plain"),
    "plain-admin": (("admin",), "plain"),
    "revoked": (("admin",), None),
}


def add_key(path: Path, name: str) -> str:
    """Create a key as ``fairshield keys`` does, beside a server that may be running."""
    scopes, stream = _KEYS[name]
    token, row = new_key(name, scopes, stream, _NOW)
    database = open_database(str(path))
    connection = database.connect()
    connection.migrate(database.migrations())
    connection.begin()
    connection.put_key(row)
    if name == "revoked":
        connection.revoke_key(row.id, _NOW)
    connection.commit()
    connection.close()
    database.close()
    return token


Keyed = tuple[LiveServer, dict[str, str]]


@pytest.fixture(scope="module")
def keyed(
    files: dict[str, PolicyFile], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Keyed]:
    """A server with keys of every sort."""
    folder = tmp_path_factory.mktemp("keyed")
    tokens = {name: add_key(folder / "shield.db", name) for name in _KEYS}
    with serving(folder, "--rate", "0", "--log-level", "debug", token=tokens["admin"]) as server:
        populate(server, files)
        yield server, tokens


def asked(server: LiveServer, endpoint: Endpoint, token: str | None, name: str = "plain") -> int:
    """The status of a request to an endpoint; whatever it asks, it may be nonsense."""
    path = endpoint.path.format(name=name, n=1, policy="0" * 64)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    address = server.address + path
    with httpx.stream(endpoint.method, address, headers=headers, timeout=PATIENCE) as answer:
        return answer.status_code


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: f"{e.method} {e.path}")
def test_every_endpoint_wants_its_scope(keyed: Keyed, endpoint: Endpoint) -> None:
    server, tokens = keyed
    if endpoint.path.endswith("/close"):
        return  # it needs no body, so it would do it
    wrong = tokens["admin"][:-5] + "xxxxx"
    for token in (None, "nonsense", wrong, tokens["revoked"], f"fsk_{'0' * 12}_{'x' * 43}"):
        assert asked(server, endpoint, token) == 401
    allowed = {
        "admin": True,
        "decide": endpoint.scope == "decide",
        "read": endpoint.scope == "read",
        "plain": endpoint.scope != "admin" and (endpoint.filtered or "{name}" in endpoint.path),
        "plain-admin": endpoint.filtered or "{name}" in endpoint.path,
    }
    for name, allow in allowed.items():
        assert (asked(server, endpoint, tokens[name]) != 403) is allow, name
    if "{name}" in endpoint.path:
        for other in ("periods", "nobody"):
            assert asked(server, endpoint, tokens["plain"], other) == 403
            assert asked(server, endpoint, tokens["plain-admin"], other) == 403


def test_closing_wants_an_administrator(keyed: Keyed) -> None:
    server, tokens = keyed
    for name in ("decide", "read", "plain"):
        with server.client(tokens[name]) as client:
            assert client.post("/v1/streams/plain/close").status_code == 403


def test_a_key_for_one_stream_sees_that_stream_alone(keyed: Keyed) -> None:
    server, tokens = keyed
    with server.client(tokens["plain"]) as client:
        streams = client.get("/v1/streams").json()["streams"]
        assert [stream["name"] for stream in streams] == ["plain"]
        for path in ("/metrics", "/v1/policies"):
            assert client.get(path).status_code == 403
        with client.stream("GET", "/v1/events") as events:
            data = next(line for line in events.iter_lines() if line.startswith("data:"))
    assert [stream["name"] for stream in json.loads(data[5:])["streams"]] == ["plain"]


def test_what_says_nothing_of_streams_wants_no_key(keyed: Keyed) -> None:
    server, _ = keyed
    for path, status in (("/livez", 200), ("/readyz", 200), ("/openapi.json", 200),
                         ("/metrics", 401)):  # fmt: skip
        answer = exchange(server, raw("GET", path))
        assert answer is not None
        assert answer.status == status


def test_a_refused_key_says_what_is_wanted(keyed: Keyed) -> None:
    server, tokens = keyed
    answer = exchange(server, raw("GET", "/v1/streams"))
    assert answer is not None
    assert answer.headers["www-authenticate"].startswith("Bearer")
    with server.client(tokens["read"]) as client:
        refused = client.post("/v1/streams/plain/close").json()
    assert "'admin'" in refused["detail"]


def test_the_log_names_the_key_that_decided(keyed: Keyed) -> None:
    server, tokens = keyed
    with server.client(tokens["plain"]) as client:
        client.post(
            "/v1/streams/plain/decisions",
            json={"group": "alpha", "proposed": True},
            headers={"idempotency-key": "whose"},
        ).raise_for_status()
        entries = client.get("/v1/streams/plain/log").json()["entries"]
    made = next(entry["line"] for entry in entries if entry["line"].get("key") == "whose")
    assert made["actor"] == tokens["plain"].split("_")[1]


def test_a_revoked_key_is_refused_soon_and_a_new_one_accepted(keyed: Keyed) -> None:
    server, _ = keyed
    token = add_key(server.database, "read")
    with server.client(token) as client:
        wait_for(lambda: client.get("/v1/streams").status_code == 200, "a new key never works")
        database = open_database(str(server.database))
        connection = database.connect()
        connection.begin()
        assert connection.revoke_key(token.split("_")[1], _NOW)
        connection.commit()
        connection.close()
        refused = wait_for(
            lambda: client.get("/v1/streams").status_code == 401, "it still works", seconds=30
        )
    assert refused


def test_events_end_when_their_key_is_revoked(keyed: Keyed) -> None:
    server, _ = keyed
    token = add_key(server.database, "read")
    with server.client(token) as client:
        wait_for(lambda: client.get("/v1/streams").status_code == 200, "a new key never works")
        with client.stream("GET", "/v1/events", timeout=20) as events:
            lines = events.iter_lines()
            assert any(line.startswith("event: update") for line in lines)
            connection = open_database(str(server.database)).connect()
            connection.begin()
            assert connection.revoke_key(token.split("_")[1], _NOW)
            connection.commit()
            connection.close()
            assert 'data: "the key has been revoked"' in list(lines)


def test_secrets_are_neither_stored_nor_told(keyed: Keyed) -> None:
    server, tokens = keyed
    stored = b"".join(path.read_bytes() for path in server.folder.iterdir())
    for token in tokens.values():
        secret = token.split("_", 2)[2]
        assert secret.encode() not in stored
        assert secret not in server.output


def test_a_cookie_is_a_key_but_not_for_pages_of_others(keyed: Keyed) -> None:
    server, tokens = keyed
    cookie = f"other=1; fairshield_key={tokens['read']}"
    mine = exchange(server, raw("GET", "/v1/streams", Cookie=cookie))
    assert mine is not None
    assert mine.status == 200
    foreign = exchange(server, raw("GET", "/v1/streams", Cookie=cookie, Origin="http://evil.test"))
    assert foreign is not None
    assert foreign.status == 403


def test_a_service_without_keys_wants_one_as_soon_as_there_is_one(
    files: dict[str, PolicyFile], tmp_path: Path
) -> None:
    with serving(tmp_path) as server, server.client() as client:
        assert client.get("/v1/streams").status_code == 200
        add_key(server.database, "read")
        wait_for(lambda: client.get("/v1/streams").status_code == 401, "it wants no key")


# Without a server ---------------------------------------------------------------------------


def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    token, row = new_key("a", ["read"], None, _NOW)
    access = Access([row])
    compared: list[tuple[int, int]] = []

    def digest(a: bytes, b: bytes) -> bool:
        compared.append((len(a), len(b)))
        return a == b

    monkeypatch.setattr(hmac, "compare_digest", digest)
    assert access.caller(token).actor == row.id
    other = "B" if token.endswith("A") else "A"
    for wrong in (token[:-1] + other, "fsk_" + "0" * 12 + "_" + "x" * 43, "nonsense", ""):
        with pytest.raises(Refusal, match="unknown or has been revoked"):
            access.caller(wrong)
    assert compared == [(32, 32)] * 5


def test_an_unknown_key_with_the_empty_secret_is_nobody() -> None:
    with pytest.raises(Refusal):
        Access(required=True).caller("")


def test_a_rate_is_a_burst_and_then_a_pace() -> None:
    now = [0.0]
    limit = RateLimit(8.0, clock=lambda: now[0])
    for _ in range(8):
        limit.check("a")
    limit.check("b")
    with pytest.raises(Refusal) as refused:
        limit.check("a")
    assert refused.value.status == 429
    assert refused.value.retry_after == 1
    for _ in range(50):
        now[0] += 0.125
        limit.check("a")
        with pytest.raises(Refusal):
            limit.check("a")


def test_a_rate_below_one_lets_one_through() -> None:
    now = [0.0]
    limit = RateLimit(0.25, clock=lambda: now[0])
    limit.check("a")
    with pytest.raises(Refusal) as refused:
        limit.check("a")
    assert refused.value.retry_after == 4
    now[0] += 4
    limit.check("a")


# Limits, by a server ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def strict(
    files: dict[str, PolicyFile], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    """A server with low limits."""
    folder = tmp_path_factory.mktemp("strict")
    with serving(folder, "--rate", "3", "--max-body", "1", "--max-upload", "2") as server:
        yield server


def test_too_many_requests_are_told_to_wait(strict: LiveServer) -> None:
    def refused() -> httpx.Response | None:
        answer = client.get("/v1/streams")
        return answer if answer.status_code == 429 else None

    with strict.client() as client:
        answer = wait_for(refused, "nobody is refused")
        assert answer.headers["retry-after"] == "1"
        assert answer.json()["type"] == "/problems/too-many-requests"
        wait_for(lambda: client.get("/v1/streams").status_code == 200, "it refuses for ever")


@pytest.mark.parametrize("upload", [False, True])
@pytest.mark.parametrize("chunked", [False, True])
def test_too_large_requests_are_refused(strict: LiveServer, upload: bool, chunked: bool) -> None:
    size = (3 if upload else 1) << 20
    content = b"x" * (size + 1)
    kind = "application/octet-stream" if upload else "application/json"

    def parts() -> Iterator[bytes]:
        for begin in range(0, len(content), 1 << 16):
            yield content[begin : begin + (1 << 16)]

    def sent() -> httpx.Response | None:
        with strict.client() as client:
            answer = client.post(
                "/v1/policies", content=parts() if chunked else content,
                headers={"content-type": kind},
            )  # fmt: skip
        return None if answer.status_code == 429 else answer

    answer = wait_for(sent, "the rate is never kept")
    assert answer.status_code == 413
    assert f"{size - upload * (1 << 20):,}" in answer.json()["detail"]


# Names and origins --------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:80", "LOCALHOST", "127.1.2.3", "[::1]:9"])
def test_local_names_are_answered(live: LiveServer, host: str) -> None:
    answer = exchange(live, raw("GET", "/v1/streams").replace(b"127.0.0.1", host.encode()))
    assert answer is not None
    assert answer.status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil", "10.0.0.1", "", "[::2]", "x:y"],
)
@pytest.mark.parametrize("path", ["/v1/streams", "/", "/metrics"])
def test_other_names_are_not(live: LiveServer, host: str, path: str) -> None:
    answer = exchange(live, raw("GET", path).replace(b"127.0.0.1", host.encode()))
    assert answer is not None
    assert answer.status == 403


def test_pages_of_other_origins_get_nothing(live: LiveServer) -> None:
    before = live.receipts()
    body = {"group": "alpha", "proposed": True}
    for origin in ("http://evil.example", "null", "https://127.0.0.1.evil", "file://"):
        request = raw("POST", "/v1/streams/plain/decisions", body, key="x", Origin=origin)
        answer = exchange(live, request)
        assert answer is not None
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers
    preflight = exchange(
        live,
        raw("OPTIONS", "/v1/streams", Origin="http://evil.example",
            Access_Control_Request_Method="POST"),
    )  # fmt: skip
    assert preflight is not None
    assert preflight.status == 405
    assert "access-control-allow-origin" not in preflight.headers
    assert live.receipts() == before


# Other machines -----------------------------------------------------------------------------


def serve(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "fairshield", "serve", "--db", str(path), "--port", "0"]
    return subprocess.run([*arguments, *options], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_machines_are_not_served_without_keys(tmp_path: Path, host: str) -> None:
    path = tmp_path / "shield.db"
    for _ in range(2):
        refused = serve(path, "--host", host)
        assert refused.returncode == 2
        assert "fairshield keys create" in refused.stderr
        add_key(path, "revoked")  # which is as good as none


def test_other_machines_are_served_with_keys(tmp_path: Path) -> None:
    token = add_key(tmp_path / "shield.db", "read")
    with serving(tmp_path, "--host", "0.0.0.0") as server:
        assert "No access keys" not in server.output
        for given, status in ((token, 200), ("x", 401)):
            request = raw("GET", "/v1/streams", Authorization=f"Bearer {given}")
            answer = exchange(server, request.replace(b"127.0.0.1", b"shields.example"))
            assert answer is not None
            assert answer.status == status
