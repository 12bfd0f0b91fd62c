"""A request that is sent again, whenever and by whomever, gets its old answer and counts once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from live_server import (
    Answer,
    Answers,
    LiveServer,
    PolicyFile,
    exchange,
    files,
    populate,
    raw,
    serving,
)

__all__ = ["files"]

_PERSON = {"group": "beta", "proposed": True, "cost": 0.25}
_MANY = {"decisions": [_PERSON, {"group": "alpha", "proposed": False}, _PERSON]}
_LABELLED = {"decisions": [{**_PERSON, "outcome": True}, {**_PERSON, "outcome": False}]}


def captured() -> list[bytes]:
    """Requests of every sort that adds to a log, as somebody on the wire sees them."""
    return [
        raw("POST", "/v1/streams/plain/decisions", _PERSON, key="one"),
        raw("POST", "/v1/streams/plain/decisions:batch", _MANY, key="many"),
        raw("POST", "/v1/streams/periods/decisions", _PERSON, key="one"),
        raw("POST", "/v1/streams/periods/decisions:batch", _MANY, key="many"),
        raw("POST", "/v1/streams/labelled/outcomes", {"decision": 5, "outcome": True}, key="truth"),
        raw("POST", "/v1/streams/labelled/decisions:batch", _LABELLED, key="many"),
        raw("POST", "/v1/streams/human/decisions", _PERSON, key="one"),
        raw("POST", "/v1/streams/human/decisions/5/override",
            {"accepted": True, "note": "seen in person"}, key="over"),
    ]  # fmt: skip


def bodies(answers: Sequence[Answer | None]) -> list[tuple[int, bytes]]:
    return [(-1, b"") if answer is None else (answer.status, answer.body) for answer in answers]


Replayed = tuple[LiveServer, list[tuple[int, bytes]]]


@contextlib.contextmanager
def replayed(folder: Path, files: dict[str, PolicyFile]) -> Iterator[Replayed]:
    """A server that has answered the captured requests, and its answers."""
    with serving(folder, "--rate", "0") as server:
        populate(server, files)
        answers = bodies([exchange(server, request) for request in captured()])
        assert [status for status, _ in answers] == [200] * len(answers), answers
        yield server, answers


@pytest.fixture(scope="module")
def first(
    files: dict[str, PolicyFile], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Replayed]:
    """A server for all tests that leave its streams open."""
    with replayed(tmp_path_factory.mktemp("replays"), files) as found:
        yield found


def test_the_same_answers_on_one_connection(first: Replayed) -> None:
    server, expected = first
    before = server.receipts()
    with server.connect() as connection:
        answers = Answers(connection)
        connection.sendall(b"".join(captured()))
        assert bodies([answers.next() for _ in captured()]) == expected
        connection.sendall(b"".join(reversed(captured())))
        assert bodies([answers.next() for _ in captured()]) == expected[::-1]
    assert server.receipts() == before


def test_the_same_answers_to_many_at_once(first: Replayed) -> None:
    server, expected = first
    before = server.receipts()
    with ThreadPoolExecutor(16) as pool:
        again = list(pool.map(lambda request: exchange(server, request), captured() * 16))
    assert bodies(again) == expected * 16
    assert server.receipts() == before


@pytest.mark.slow
def test_the_same_answers_after_crashes(first: Replayed) -> None:
    server, expected = first
    before = server.receipts()
    for _ in range(2):
        server.kill()
        server.start()
        assert bodies([exchange(server, request) for request in captured()]) == expected
    assert server.receipts() == before


def test_the_same_answer_after_later_decisions_and_the_end_of_the_window(first: Replayed) -> None:
    server, expected = first
    for i in range(30):
        answer = exchange(
            server, raw("POST", "/v1/streams/plain/decisions", _PERSON, key=f"later-{i}")
        )
        assert answer is not None
        assert answer.status == 200
    before = server.receipts()
    assert bodies([exchange(server, request) for request in captured()]) == expected
    assert server.receipts() == before


@pytest.mark.parametrize("number", range(len(captured())))
def test_another_request_with_the_same_key_is_refused(first: Replayed, number: int) -> None:
    server, _ = first
    before = server.receipts()
    request = captured()[number]
    # Of the same length, so that headers stay as they are.
    changes = [
        (b'"group": "beta"', b'"group":"alpha"'), (b"true", b"null"), (b"0.25", b"0.75"),
        (b'"outcome": true', b'"outcome":false'), (b"in person", b"on screen"),
    ]  # fmt: skip
    others = [request.replace(a, b, 1) for a, b in changes if a in request]
    found = [exchange(server, other) for other in others]
    statuses = [answer.status for answer in found if answer is not None]
    assert 409 in statuses
    assert set(statuses) <= {409, 422}
    assert server.receipts() == before


def test_a_key_belongs_to_one_kind_of_request(first: Replayed) -> None:
    server, _ = first
    for path, body, key in (
        ("plain/decisions", _PERSON, "many"),
        ("plain/decisions:batch", _MANY, "one"),
        ("labelled/outcomes", {"decision": 5, "outcome": True}, "many"),
        ("human/decisions/5/override", {"accepted": True}, "one"),
    ):
        answer = exchange(server, raw("POST", f"/v1/streams/{path}", body, key=key))
        assert answer is not None
        assert answer.json()["type"] == "/problems/key-reused"


def test_equal_requests_at_once_are_one_decision(first: Replayed) -> None:
    server, _ = first
    for i in range(20):
        name = ("plain", "periods")[i % 2]
        before = server.receipts()[name][0]
        request = raw("POST", f"/v1/streams/{name}/decisions", _PERSON, key=f"race-{i}")
        with ThreadPoolExecutor(12) as pool:
            answers = bodies(list(pool.map(lambda r: exchange(server, r), [request] * 12)))
        assert len(set(answers)) == 1
        assert answers[0][0] == 200
        assert server.receipts()[name][0] == before + 1


def test_the_same_answers_after_the_stream_is_closed(
    files: dict[str, PolicyFile], tmp_path: Path
) -> None:
    with replayed(tmp_path, files) as (server, expected):
        with server.client() as client:
            for name in ("plain", "periods", "labelled", "human"):
                assert client.post(f"/v1/streams/{name}/close").status_code == 200
        before = server.receipts()
        assert bodies([exchange(server, request) for request in captured()]) == expected
        new = exchange(server, raw("POST", "/v1/streams/plain/decisions", _PERSON, key="new"))
        assert new is not None
        assert new.json()["type"] == "/problems/stream-closed"
        assert server.receipts() == before
