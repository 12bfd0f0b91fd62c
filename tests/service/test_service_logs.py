"""No line of the log names a group or a key, whatever happens."""

from __future__ import annotations

import contextlib
import json
import logging
import re
from datetime import datetime, timedelta
from pathlib import Path

import apsw
import pytest
from live_server import LiveServer, PolicyFile, exchange, files, populate, program, raw, serving
from test_access import add_key

from fairshield.service.server.logs import JsonFormatter, PlainFormatter, placed

pytestmark = pytest.mark.slow

__all__ = ["files"]

_GROUPS = ("alpha", "beta", "omega")
_FAILING = """
from fairshield.service.log.live import LiveStream
from fairshield.service.history import views

def broken(self, items, by):
    raise KeyError(items[0].group)

def failing(*arguments, **options):
    raise RuntimeError("omega")

{}
"""


def use(server: LiveServer, token: str) -> None:
    """Good requests and bad ones, of everybody who could be in a log."""
    bearer = f"Bearer {token}"
    for group in (*_GROUPS, {"omega": 1}):
        body = {"group": group, "proposed": True}
        for name in ("plain", "periods", "labelled", "human", "over", "closed", "omega"):
            for path in ("decisions", "decisions:batch"):
                sent = {"decisions": [body] * 2} if "batch" in path else body
                request = raw(
                    "POST", f"/v1/streams/{name}/{path}", sent, key=f"{path}-{str(group)[:5]}",
                    Authorization=bearer,
                )  # fmt: skip
                exchange(server, request)
                exchange(server, request.replace(b"true", b"null"))
                exchange(server, request.replace(b"true", b"tru "))
                exchange(server, request.replace(b"proposed", b"my-omega"))
                exchange(server, request.replace(b"Bearer fsk_", b"Bearer fsk-"))
                exchange(server, request.replace(b"HTTP/1.1", b"HTTP/1.x"))
    for path in ("series", "decisions/1/explanation", "outlook", "log", "omega", "state?omega=1"):
        exchange(server, raw("GET", f"/v1/streams/plain/{path}", Authorization=bearer))
    spec = {"property": "demographic-parity", "bound": "0", "horizon": 3,
            "groups": {"omega": 0.5, "alpha": 0.5}}  # fmt: skip
    exchange(server, raw("POST", "/v1/policies", spec, Authorization=bearer))
    with contextlib.suppress(ConnectionError), server.connect() as connection:
        connection.sendall(raw("GET", "/omega", Authorization=bearer)[:-2])


def told(server: LiveServer, token: str) -> list[str]:
    """Lines that name what they must not."""
    secrets = (*_GROUPS, token.split("_", 2)[2])
    return [line for line in server.output.splitlines() if any(s in line for s in secrets)]


@pytest.mark.parametrize("form", ["plain", "json"])
def test_nobody_is_named_when_requests_succeed_or_are_refused(
    files: dict[str, PolicyFile], tmp_path: Path, form: str
) -> None:
    token = add_key(tmp_path / "shield.db", "admin")
    options = ("--rate", "0", "--log-level", "debug", "--log-format", form)
    with serving(tmp_path, *options, token=token) as server:
        populate(server, files)
        use(server, token)
        assert server.stop() == 0
        assert told(server, token) == []
        assert "stopped" in server.output
        if form == "json":
            lines = [line for line in server.output.splitlines() if line.startswith("{")]
            assert all({"time", "level", "message"} <= set(json.loads(line)) for line in lines)
            times = [datetime.fromisoformat(json.loads(line)["time"]) for line in lines]
            assert all(time.utcoffset() == timedelta(0) for time in times)


def test_nobody_is_named_when_the_service_fails(
    files: dict[str, PolicyFile], tmp_path: Path
) -> None:
    token = add_key(tmp_path / "shield.db", "admin")
    with serving(tmp_path, "--rate", "0", token=token) as server:
        populate(server, files)
        assert server.stop() == 0
        server.program = program("rate=0").replace(
            'logs.set_up("debug")',
            'logs.set_up("debug")'
            + _FAILING.format("LiveStream.decide = broken; views.series = failing"),
        )
        server.start()
        use(server, token)
        assert exchange(server, raw("GET", "/livez")) is not None
        server.stop()
        assert "KeyError" in server.output
        assert "RuntimeError" in server.output
        assert re.search(r"live\.py:\d+ in|<string>:\d+ in broken", server.output)
        assert told(server, token) == []


def test_nobody_is_named_when_a_log_was_changed(
    files: dict[str, PolicyFile], tmp_path: Path
) -> None:
    token = add_key(tmp_path / "shield.db", "admin")
    with serving(tmp_path, "--rate", "0", "--log-level", "debug", token=token) as server:
        populate(server, files)
        assert server.stop() == 0
        database = apsw.Connection(str(server.database))
        database.execute("DROP TRIGGER entries_stay")
        database.execute(
            "UPDATE entries SET line = replace(line, 'alpha', 'omega') "
            "WHERE seq = 3 AND stream = (SELECT id FROM streams WHERE name = 'plain')"
        )
        database.close()
        server.start()
        answer = exchange(
            server, raw("GET", "/v1/streams/plain/state", Authorization=f"Bearer {token}")
        )
        assert answer is not None
        assert answer.json()["type"] == "/problems/log-broken"
        use(server, token)
        assert "stream plain: its log does not replay" in server.output
        assert told(server, token) == []


def test_an_error_is_told_by_kind_and_place() -> None:
    try:
        try:
            raise KeyError("omega")
        except KeyError as error:
            raise ValueError("omega") from error
    except ValueError as error:
        text = placed(error)
        record = logging.LogRecord("x", logging.ERROR, "", 1, "it failed", (), None)
        record.exc_info = (type(error), error, error.__traceback__)
    assert "omega" not in text
    assert text.startswith("ValueError\n")
    assert "after KeyError" in text
    assert "test_service_logs.py" in text
    for formatter in (PlainFormatter(), JsonFormatter()):
        record.exc_text = None
        assert "omega" not in formatter.format(record)
        assert "ValueError" in formatter.format(record)
