"""A server that is told to stop answers what it has taken, and ends; nothing answered is lost."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from live_server import (
    Answers,
    LiveServer,
    PolicyFile,
    exchange,
    files,
    populate,
    raw,
    serving,
    wait_for,
)

pytestmark = pytest.mark.slow

__all__ = ["files"]

_CLIENTS = 8
_NAMES = ("plain", "periods")


def request_of(key: str) -> bytes:
    number = int(key.rsplit("-", 1)[1])
    group = ("alpha", "beta")[number % 2]
    body = {"group": group, "proposed": number % 3 == 0}
    return raw("POST", f"/v1/streams/{_NAMES[number % 2]}/decisions", body, key=key)


class Load:
    """Clients that decide without a pause until they are not answered any more."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        self.answered: dict[str, bytes] = {}
        self.unanswered: list[str] = []
        self.others: list[int] = []
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(_CLIENTS)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join()

    def _run(self, who: int) -> None:
        with contextlib.suppress(ConnectionError), self.server.connect() as connection:
            answers = Answers(connection)
            for number in range(1_000_000):
                key = f"load-{who}-{number}"
                self.unanswered.append(key)
                connection.sendall(request_of(key))
                answer = answers.next()
                if answer is None:
                    return
                self.unanswered.remove(key)
                if answer.status == 200:
                    self.answered[key] = answer.body
                else:
                    self.others.append(answer.status)


def open_events(server: LiveServer) -> Callable[[], bytes]:
    """Begin to read events of all streams; what there is until they end."""
    connection = server.connect()
    connection.sendall(raw("GET", "/v1/events"))
    assert b"200 OK" in connection.recv(1 << 16)

    def rest() -> bytes:
        with connection:
            parts = []
            while data := connection.recv(1 << 16):
                parts.append(data)
            return b"".join(parts)

    return rest


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_nothing_that_was_answered_is_lost_by_stopping(
    files: dict[str, PolicyFile], tmp_path: Path, how: signal.Signals
) -> None:
    with serving(tmp_path, "--rate", "0") as server:
        populate(server, files)
        events = open_events(server)
        poll = server.connect()
        poll.sendall(raw("GET", "/v1/streams/closed/log?after=6&wait=60"))
        with Load(server) as load:
            wait_for(lambda: len(load.answered) > 500, "nobody is answered")
            assert server.stop(how) == 0
        assert events().endswith(b"0\r\n\r\n"), "events are cut off in the middle"
        waited = Answers(poll).next()
        poll.close()
        assert waited is not None
        assert waited.json()["entries"] == []
        assert set(load.others) <= {503}
        server.start()
        for key, body in load.answered.items():
            answer = exchange(server, request_of(key))
            assert answer is not None
            assert (answer.status, answer.body) == (200, body)
        for key in load.unanswered:
            answer = exchange(server, request_of(key))
            assert answer is not None
            assert answer.status == 200
        made = sum(seq for name, (seq, _) in server.receipts().items() if name in _NAMES)
        assert made == len(load.answered) + len(load.unanswered) + 5 * len(_NAMES)
        assert server.stop() == 0


def test_a_second_signal_does_not_wait_for_clients(
    files: dict[str, PolicyFile], tmp_path: Path
) -> None:
    with serving(tmp_path) as server:
        populate(server, files)
        with server.connect() as connection:
            half = raw("POST", "/v1/streams/plain/decisions", {"group": "alpha"}, key="k")[:-3]
            connection.sendall(half)
            # Answered on the same loop: the half request has been seen by then.
            assert exchange(server, raw("GET", "/livez")) is not None
            server.process.send_signal(signal.SIGTERM)
            wait_for(lambda: not reachable(server), "it goes on listening")
            assert server.process.poll() is None
            begun = time.monotonic()
            assert server.stop(signal.SIGTERM) == 0
            assert time.monotonic() - begun < 9, "it has waited for the whole grace"


def reachable(server: LiveServer) -> bool:
    try:
        server.connect().close()
    except ConnectionError:
        return False
    return True
