"""A hundred thousand requests that are not as they should be: each is refused, none does harm."""

from __future__ import annotations

import contextlib
import json
import random
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from live_server import Answers, LiveServer, exchange, files, live, raw

pytestmark = pytest.mark.slow

__all__ = ["files", "live"]

ALL = 100_000
_BREAKING = 10_000
"""Of these, such that end their connection."""
_AT_ONCE = 100
_GROWTH = 64 << 20
"""Bytes that the server may grow by; each request alone would leave more if it left anything."""

_GOOD = {"group": "alpha", "proposed": True, "cost": 0.5}
_VALUES = (
    "null", "1", "0", "-1", '"true"', "[]", "{}", "1.5", "NaN", "Infinity", "-Infinity", "1e400",
    "1e301", "-0.1", str(10**40), '"' + "x" * 201 + '"', "tru", '"\\ud800"', "'alpha'", "01",
    '"alpha" "beta"', "[" * 2_000 + "]" * 2_000, '{"a":' * 2_000 + "1" + "}" * 2_000, '"\x01"',
)  # fmt: skip
_RIGHT = {"cost": {"1", "0", "1.5", str(10**40)}, "note": {'"true"', '"' + "x" * 201 + '"'}}
"""Those that are allowed after all."""
_NAMES = (
    "..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%00", "nobody", "a" * 65, "-", ".", "%ff%fe",
    "plain%0a", "PLAIN", "plain%2fdecisions", "~", "%", "%zz", "plain;x=1", "*",
)  # fmt: skip
_KEYS = ("", "k" * 201, "two words", "caf\xe9", "tab\there", "\xff\xfe")
_TYPES = (
    "text/plain", "application/xml", "application/x-www-form-urlencoded", "application/jsonx", "",
    "multipart/form-data; boundary=x", "application/octet-stream", "*/*", "json",
)  # fmt: skip


# Bodies -------------------------------------------------------------------------------------


def body_with(rng: random.Random, good: dict[str, Any]) -> bytes:
    """A good message with one field spoilt."""
    field = rng.choice(list(good))
    value = rng.choice([v for v in _VALUES if v not in _RIGHT.get(field, ())])
    fields = [f'"{name}":{json.dumps(given)}' for name, given in good.items() if name != field]
    fields.insert(rng.randrange(len(fields) + 1), f'"{field}":{value}')
    return ("{" + ",".join(fields) + "}").encode()


def body_broken(rng: random.Random, good: dict[str, Any]) -> bytes:
    """A good message that is no longer JSON, or not the object that is due."""
    text = json.dumps(good).encode()
    cut = rng.randrange(1, len(text))
    return rng.choice(
        [
            text[:cut],
            text + text,
            b"\xef\xbb\xbf" + text,
            text.replace(b'"', b"'"),
            text[:cut] + b"\xff\x00" + text[cut:],
            b"[" + text + b"]",
            b'{"' + rng.randbytes(8) + b'":1}',
            rng.randbytes(rng.randrange(1, 80)),
            b"",
            b"null",
            b"\x00" * 40,
            text.replace(b":", b"=", 1),
            text[:-1] + b',"extra":1}',
            text[:-1] + b"," + text[1:],  # everything twice
            text[:-1] + b",}",
        ]
    )


def spoilt(rng: random.Random, good: dict[str, Any]) -> bytes:
    return rng.choice((body_with, body_broken))(rng, good)


# Requests on a connection that stays open ---------------------------------------------------


def decision(rng: random.Random) -> bytes:
    name = rng.choice(("plain", "labelled", "periods", "human"))
    return raw("POST", f"/v1/streams/{name}/decisions", spoilt(rng, _GOOD), key=f"k{rng.random()}")


def batch(rng: random.Random) -> bytes:
    items = [json.dumps(_GOOD).encode()] * rng.randrange(4)
    items.insert(rng.randrange(len(items) + 1), spoilt(rng, _GOOD) or b"-")
    body = b'{"decisions":[' + b",".join(items) + b"]}"
    body = rng.choice((body, b'{"decisions":[]}', b'{"decisions":{}}', body[:-2]))
    if b"gamma" not in body:
        body = body.replace(b"alpha", b"gamma")
    return raw("POST", "/v1/streams/plain/decisions:batch", body, key=f"k{rng.random()}")


def outcome(rng: random.Random) -> bytes:
    good = {"decision": 10**9, "outcome": True}
    return raw("POST", "/v1/streams/labelled/outcomes", spoilt(rng, good), key=f"k{rng.random()}")


def override(rng: random.Random) -> bytes:
    number = rng.choice((0, -1, 10**20, "one", "1.0", "%31e9", 5))
    body = spoilt(rng, {"accepted": True, "note": "so"})
    return raw("POST", f"/v1/streams/human/decisions/{number}/override", body, key="k")


def key(rng: random.Random) -> bytes:
    which = rng.choice((None, *_KEYS))
    if rng.random() < 0.2:
        return raw("POST", "/v1/streams/plain/decisions", _GOOD, key="a\r\nIdempotency-Key: b")
    encoded = "k" if which is None else which
    request = raw("POST", "/v1/streams/plain/decisions", _GOOD, key=encoded and "KEY")
    if which is None:
        return request.replace(b"Idempotency-Key: KEY\r\n", b"")
    return request.replace(b"KEY", which.encode("latin-1"))


def content_type(rng: random.Random) -> bytes:
    request = raw("POST", "/v1/streams/plain/decisions", _GOOD, key="k")
    return request.replace(b"application/json", rng.choice(_TYPES).encode())


def path(rng: random.Random) -> bytes:
    name = rng.choice(_NAMES)
    end = rng.choice(("", "/state", "/log", "/decisions/1", "/log.csv", "/../../../etc/passwd"))
    return raw("GET", f"/v1/streams/{name}{end}")


def elsewhere(rng: random.Random) -> bytes:
    at = rng.choice(
        ("/static/../app.py", "/static/%2e%2e/app.py", "/static/%00", "/static//etc/passwd",
         "/v2/streams", "/v1//streams", "/v1/streams/", "/v1", "/.git/config", "/admin",
         "/v1/policies/..%2f..%2fshield.db", "/v1/streams/plain/decisions/1/explanation/x")
    )  # fmt: skip
    return raw(rng.choice(("GET", "POST", "PUT")), at)


def query(rng: random.Random) -> bytes:
    asked = rng.choice(
        ("limit=0", "limit=-1", "limit=99999999999999999999", "after=x", "wait=61",
         "wait=NaN", "wait=-1", "unknown=1", "limit=1&limit=2", "limit", "&", "=", "%zz=1",
         "limit=%ff", "overruled=2", "overruled=maybe", "&".join(f"a{i}=1" for i in range(40)))
    )  # fmt: skip
    where = "decisions" if "overruled" in asked else "log"
    return raw("GET", f"/v1/streams/plain/{where}?{asked}")


def method(rng: random.Random) -> bytes:
    which = rng.choice(("DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND"))
    return raw(which, rng.choice(("/v1/streams/plain", "/v1/streams", "/livez", "/v1/policies")))


def stream(rng: random.Random) -> bytes:
    good = {"name": "new", "policy": "0" * 64, "windows": 1, "human": False}
    if rng.random() < 0.3:
        good["name"] = rng.choice(("../up", "a/b", "", ".", "x" * 65, "new\n", "n\u00fc"))
        return raw("POST", "/v1/streams", good)
    return raw("POST", "/v1/streams", spoilt(rng, good))


def specification(rng: random.Random) -> bytes:
    good = {"property": "demographic-parity", "bound": "0.1", "horizon": 10,
            "groups": {"a": 0.5, "b": 0.5}}  # fmt: skip
    bad: dict[str, Any] = {
        "property": rng.choice((None, 1, "nothing", ["demographic-parity"])),
        "bound": rng.choice(("1e999999999", "x", "-1", "1/0", None, [], "nan", 2)),
        "horizon": rng.choice((0, -1, 1.5, "ten", 10**9, 10**30, True, None)),
        "groups": rng.choice(({}, {"a": 1.0}, {"a": "x", "b": 1}, [], None, {"a": -1, "b": 2})),
        "inputs": rng.choice(("/etc/passwd", "-", "../x.csv", None)),
        "unknown": 1,
        "checkpoints": rng.choice((5, "x", {})),
        "start": rng.choice((1, {"a": 1}, {"c": [1, 1]}, {"a": [2, 3], "b": [0, 0]})),
    }
    field = rng.choice(list(bad))
    return raw("POST", "/v1/policies", {**good, field: bad[field]})


def artifact(rng: random.Random) -> bytes:
    content = rng.choice((b"", b"FSHIELD\n", b"PK\x03\x04")) + rng.randbytes(rng.randrange(200))
    request = raw("POST", "/v1/policies", content)
    return request.replace(b"application/json", b"application/octet-stream")


def origin(rng: random.Random) -> bytes:
    request = raw("POST", "/v1/streams/plain/decisions", _GOOD, key="k")
    host = rng.choice(
        (b"evil.example", b"127.0.0.1.evil.example", b"", b"localhost.evil", b"[::2]")
    )
    foreign = b"Host: 127.0.0.1\r\nOrigin: " + rng.choice((b"http://evil.example", b"null", b"x"))
    return request.replace(b"Host: 127.0.0.1", rng.choice((b"Host: " + host, foreign)))


KINDS: tuple[Callable[[random.Random], bytes], ...] = (
    decision, batch, outcome, override, key, content_type, path, elsewhere, query, method, stream,
    origin, specification, artifact,
)  # fmt: skip
_OFTEN = (10, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1, 1)


def requests(rng: random.Random) -> Iterator[bytes]:
    while True:
        yield rng.choices(KINDS, _OFTEN)[0](rng)


# Requests that end their connection ---------------------------------------------------------


def breaking(rng: random.Random) -> bytes:
    good = raw("POST", "/v1/streams/plain/decisions", _GOOD, key="k")
    length = re.findall(rb"Content-Length: \d+", good)[0]
    chunked = good.replace(length, b"Transfer-Encoding: chunked")
    head, _, body = chunked.partition(b"\r\n\r\n")
    cut = rng.randrange(1, len(good) - 1)
    return rng.choice(
        [
            rng.randbytes(rng.randrange(1, 300)),
            good.replace(b"POST ", rng.choice((b"P\x00ST ", b"FOO ", b" ", b"POST")), 1),
            good.replace(b"HTTP/1.1", rng.choice((b"HTTP/9.9", b"HTTX/1.1", b"", b"HTTP/1.1 x"))),
            good.replace(b"\r\n", b"\n\n\r", 1),
            good.replace(length, b"Content-Length: -5"),
            good.replace(length, b"Content-Length: 5e1"),
            good.replace(length, length + b"\r\nContent-Length: 51"),
            good.replace(length, length + b"\r\nTransfer-Encoding: chunked"),
            good.replace(length, b"Content-Length: 9000000"),
            good.replace(length, b"Content-Length: " + b"9" * 40),
            good.replace(b"Host:", b"Ho st:"),
            good.replace(b"Host: ", b"Host: \x00"),
            good.replace(b"Idempotency-Key: k", b"Idempotency-Key: a\rb"),
            head
            + b"\r\n\r\n"
            + rng.choice((b"zz\r\n", b"-1\r\n", b"ffffffffffffffffff\r\n"))
            + body,
            head + b"\r\n\r\n5\r\n" + body,
            head.replace(b"chunked", b"gzip, chunked, x") + b"\r\n\r\n",
            good[:cut],
            b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
            raw("GET", "/livez").replace(b"Host", b"X: " + b"y" * 400_000 + b"\r\nHost"),
            raw("GET", "/livez").replace(b"Host", b"X: y\r\n" * 200 + b"Host"),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(100),  # TLS
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ]
    )


# What must not happen -----------------------------------------------------------------------


def send_all(server: LiveServer, wanted: Iterator[bytes]) -> Counter[int]:
    """Send these, many at a time; how often each status was answered."""
    seen: Counter[int] = Counter()
    with server.connect() as connection:
        answers = Answers(connection)
        while sent := list(islice(wanted, _AT_ONCE)):
            connection.sendall(b"".join(sent))
            for request in sent:
                answer = answers.next()
                assert answer is not None, f"no answer to {request!r}"
                assert 400 <= answer.status < 500, f"{answer.status} to {request!r}"
                assert answer.headers["content-type"] == "application/problem+json", request
                seen[answer.status] += 1
    return seen


def resident(server: LiveServer) -> int:
    fields = Path(f"/proc/{server.process.pid}/statm").read_text().split()
    return int(fields[1]) * 4096


def snapshot(server: LiveServer) -> tuple[Any, ...]:
    with server.client() as client:
        policies = client.get("/v1/policies").json()
        names = sorted(stream["name"] for stream in client.get("/v1/streams").json()["streams"])
    return server.receipts(), policies, names


def test_malformed_requests_are_refused_and_change_nothing(live: LiveServer) -> None:
    before = snapshot(live)
    rng = random.Random(1)
    seen = send_all(live, islice(requests(rng), 20_000))
    size = resident(live)
    seen += send_all(live, islice(requests(rng), ALL - _BREAKING - 20_000))
    assert sum(seen.values()) == ALL - _BREAKING
    assert {400, 403, 404, 405, 415, 422} <= set(seen)
    for _ in range(_BREAKING):
        with live.connect() as connection:
            with contextlib.suppress(OSError):
                connection.sendall(breaking(rng))
                connection.shutdown(socket.SHUT_WR)
            answer = Answers(connection).next()
            assert answer is None or 400 <= answer.status < 500, answer
    assert snapshot(live) == before
    assert resident(live) - size < _GROWTH
    assert "Traceback" not in live.output
    answer = exchange(live, raw("GET", "/readyz"))
    assert answer is not None
    assert answer.status == 200


def test_a_request_before_garbage_is_answered_first(live: LiveServer) -> None:
    good = raw("GET", "/v1/streams/plain/state")
    with live.connect() as connection:
        connection.sendall(good + good + b"GARBAGE\r\n\r\n")
        answers = Answers(connection)
        found = [answers.next() for _ in range(4)]
    assert [answer and answer.status for answer in found] == [200, 200, 400, None]


def test_trailers_are_not_headers(live: LiveServer) -> None:
    body = json.dumps(_GOOD).encode()
    request = raw("POST", "/v1/streams/plain/decisions", Transfer_Encoding="chunked")
    request = request.replace(b"\r\n\r\n", b"\r\nContent-Type: application/json\r\n\r\n")
    request += b"%x\r\n%s\r\n0\r\nIdempotency-Key: late\r\n\r\n" % (len(body), body)
    answer = exchange(live, request)
    assert answer is not None
    assert answer.json()["type"] == "/problems/missing-key"
