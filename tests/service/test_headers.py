"""Every answer, whatever it is, carries the headers that keep browsers safe."""

from __future__ import annotations

import pytest
from live_server import LiveServer, exchange, files, live, raw

from fairshield.service.dashboard.assets import address, assets
from fairshield.service.web.http import SAFE_HEADERS

__all__ = ["files", "live"]

_POST = raw("POST", "/v1/streams/plain/decisions", {"group": "alpha", "proposed": True}, key="k")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (raw("GET", "/"), 200),
        (raw("GET", "/livez"), 200),
        (raw("GET", "/v1/streams"), 200),
        (raw("GET", "/openapi.json"), 200),
        (raw("GET", "/metrics"), 200),
        (raw("GET", "/v1/streams/plain/log.csv"), 200),
        (raw("GET", "/v1/streams/plain/events"), 200),
        (raw("GET", "/nowhere"), 404),
        (raw("GET", "/static/nothing.js"), 404),
        (raw("GET", "/static/../app.py"), 404),
        (raw("DELETE", "/v1/streams"), 405),
        (raw("POST", "/static/x"), 405),
        (_POST.replace(b"true", b"nul "), 400),
        (_POST.replace(b"true", b"null"), 422),
        (_POST.replace(b"application/json", b"text/plain"), 415),
        (_POST.replace(b"Host: 127.0.0.1", b"Host: evil"), 403),
        (_POST.replace(b"HTTP/1.1", b"HTTP/7.7"), 400),
        (_POST.replace(b"Host", b"X: y\r\n" * 101 + b"Host"), 431),
        (raw("POST", "/v1/policies", b"x").replace(b"Length: 1", b"Length: 99999999"), 413),
    ],
    ids=lambda value: None if isinstance(value, int) else value.split(b" HTTP")[0].decode(),
)
def test_every_answer_has_them(live: LiveServer, request_: bytes, status: int) -> None:
    answer = exchange(live, request_)
    assert answer is not None
    assert answer.status == status
    for name, value in SAFE_HEADERS:
        assert answer.headers[name.decode()] == value.decode()
    assert "server" not in answer.headers


def test_files_have_them(live: LiveServer) -> None:
    for name in assets():
        answer = exchange(live, raw("GET", address(name)))
        assert answer is not None
        assert answer.status == 200
        for name, value in SAFE_HEADERS:
            assert answer.headers[name.decode()] == value.decode()


def test_scripts_come_from_the_service_alone() -> None:
    policy = dict(SAFE_HEADERS)[b"content-security-policy"].decode()
    assert policy.startswith("default-src 'self'")
    assert "unsafe" not in policy
    assert "http" not in policy
