"""``fairshield tail``: a line an entry, whatever happens to the service."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from client_kit import Served, command, plain_policy, served

import fairshield as fs
from fairshield.cli.tail import sentence

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("tail")) as running:
        yield running


@pytest.fixture(scope="module")
def loans(service: Served) -> str:
    """A closed stream, with people who were overruled."""
    with fs.Client(service.url) as client:
        stream = client.create_stream("loans", plain_policy(), human=True)
        stream.decide_many(["a"] * 10 + ["b"] * 9, [True] * 10 + [False] * 9)
        stream.override(19, accepted=False, note="seen \x1b[31min person")
        stream.close()
    return "loans"


def following(*arguments: object, **streams: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fairshield", "tail", *map(str, arguments)],
        text=True,
        **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams),
    )


def test_a_closed_stream_is_told_to_its_end(service: Served, loans: str) -> None:
    shown = command("tail", loans, "--url", service.url, "--after", -1)
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    assert len(lines) == 22
    assert "stream created" in lines[0]
    assert "#1 " in lines[1]
    assert "accepted  kept" in lines[1]
    assert any("overruled: rejecting could no longer be guaranteed fair" in x for x in lines)
    assert "by a person" in lines[20]
    assert lines[21].endswith("stream closed")
    assert "\x1b" not in shown.stdout
    assert len(command("tail", loans, "--url", service.url).stdout.splitlines()) == 10


def test_json_lines_are_the_log(service: Served, loans: str) -> None:
    shown = command("tail", loans, "--url", service.url, "--after", 0, "--json")
    with fs.Client(service.url) as client:
        log = [{"line": e.line, "receipt": e.receipt} for e in client.stream(loans).log(after=0)]
    assert [json.loads(line) for line in shown.stdout.splitlines()] == log


def test_only_those_who_were_overruled(service: Served, loans: str) -> None:
    shown = command("tail", loans, "--url", service.url, "--after", 0, "--overruled")
    with fs.Client(service.url) as client:
        overruled = list(client.stream(loans).decisions(overruled=True))
    assert overruled
    assert len(shown.stdout.splitlines()) == len(overruled)
    assert all("overruled" in line for line in shown.stdout.splitlines())


def test_colours_are_for_terminals(service: Served, loans: str) -> None:
    for wanted, plain in ((True, ""), (False, "1")):
        main, side = pty.openpty()
        running = following(
            loans, "--url", service.url, "--overruled", stdout=side,
            env=os.environ | {"NO_COLOR": plain},
        )  # fmt: skip
        os.close(side)
        shown = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            shown += part
        os.close(main)
        running.communicate(timeout=30)
        assert b"overruled" in shown
        assert (b"\x1b[" in shown) is wanted


def test_mistakes_are_one_sentence(service: Served, loans: str) -> None:
    for arguments, words in (
        (("nobody", "--url", service.url), "no stream 'nobody'"),
        ((loans, "--url", "http://127.0.0.1:9"), "no answer after 5 attempts"),
        ((loans, "--url", "127.0.0.1"), "address of a service"),
    ):
        shown = command("tail", *arguments)
        assert (shown.returncode, shown.stdout) == (2, "")
        assert words in shown.stderr
        assert shown.stderr.count("\n") == 1


def test_the_key_may_come_from_the_environment(tmp_path: Path) -> None:
    made = command(
        "keys", "create", "--db", tmp_path / "shield.db", "--name", "x", "--scope", "admin"
    )
    token = made.stdout.strip()
    with served(tmp_path) as service, fs.Client(service.url, token=token) as client:
        client.create_stream("loans", plain_policy()).close()
        arguments = ("tail", "loans", "--url", service.url, "--after", "-1")
        assert "wants a key" in command(*arguments).stderr
        assert len(command(*arguments, FAIRSHIELD_TOKEN=token).stdout.splitlines()) == 2
        assert len(command(*arguments, "--token", token).stdout.splitlines()) == 2


def test_a_tail_survives_a_restart_and_ends_with_an_interrupt(tmp_path: Path) -> None:
    with served(tmp_path) as service, fs.Client(service.url) as client:
        stream = client.create_stream("loans", plain_policy())
        stream.decide("a", proposed=True)
        running = following("loans", "--url", service.url, "--after", 0)
        assert running.stdout is not None
        assert running.stderr is not None
        assert "#1 " in running.stdout.readline()
        for end in (service.kill, service.stop):
            end()
            assert running.stderr.readline() == f"waiting for the service at {service.url} …\n"
            service.start()
            made = stream.decide("b", proposed=True)
            assert f"#{made.n} " in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
        assert (running.returncode, out, err) == (130, "", "Interrupted.\n")


def test_what_people_wrote_cannot_play_with_the_terminal() -> None:
    line = {
        "kind": "override", "at": "2026-01-01T00:00:00Z", "n": 3, "accepted": True,
        "note": "x\x1b]0;y\x07\r\nz", "guaranteed": False,
    }  # fmt: skip
    shown = sentence(line)
    assert "\x1b]" not in shown
    assert "\n" not in shown
    assert "no longer guaranteed" in shown
    assert sentence({"kind": "new\x1b", "at": "now"}) == "now  new\N{REPLACEMENT CHARACTER}"
