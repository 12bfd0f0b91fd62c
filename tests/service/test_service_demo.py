"""The demonstration shows what it is meant to show."""

from __future__ import annotations

import itertools
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_kit import PATIENCE, WebServer, make_policies, populate, serving
from live_server import wait_for

from fairshield.base.errors import InvalidValueError
from fairshield.service.server.demo import SCENARIOS, DemoStream, check_own

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with serving(tmp_path_factory.mktemp("demo"), "--demo") as running:
        yield running


def streams(server: WebServer) -> dict[str, Any]:
    return {stream["name"]: stream for stream in server.get("/v1/streams")["streams"]}


def test_the_first_page_answers_before_anything_is_ready(server: WebServer) -> None:
    with server.client() as client:
        answer = client.get("/")
    assert answer.status_code == 200
    assert "Demonstration" in answer.text


def test_three_streams_end_fair_where_their_twins_do_not(server: WebServer) -> None:
    def fed() -> dict[str, Any] | None:
        found = streams(server)
        enough = len(found) == 3 and all(s["state"]["decisions"] > 400 for s in found.values())
        return found if enough else None

    found = wait_for(fed, "the streams are not fed", seconds=2 * PATIENCE)
    assert set(found) == {"loans", "triage", "benefits"}
    assert [found[s]["labelled"] for s in ("loans", "triage", "benefits")] == [False, True, False]
    assert found["benefits"]["kind"] == "perpetual"
    for stream in found.values():
        state = stream["state"]
        assert stream["status"] == "guaranteed"
        assert state["windows_fair"] == state["windows_completed"] >= 5
        assert state["windows_unshielded_fair"] <= state["windows_completed"] / 2


def test_decisions_keep_coming(server: WebServer) -> None:
    def fed() -> dict[str, int] | None:
        found = {name: s["state"]["decisions"] for name, s in streams(server).items()}
        return found if len(found) == 3 else None

    before = wait_for(fed, "there are no streams", seconds=2 * PATIENCE)
    wait_for(
        lambda: all(s["state"]["decisions"] > before[n] + 3 for n, s in streams(server).items()),
        "nothing is decided any more",
    )


def test_it_ends_when_interrupted(tmp_path: Path) -> None:
    with serving(tmp_path, "--demo") as interrupted:
        assert interrupted.stop(signal.SIGINT) == 0
    assert "Traceback" not in (tmp_path / "server.log").read_text()


def test_it_ends_when_told_and_leaves_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, "--demo") as own:
        before = set(Path(tempfile.gettempdir()).glob("fairshield-demo-*"))
        assert own.stop() == 0
    gone = {path for path in before if not path.exists()}
    assert gone  # others may be those of other servers
    assert "Traceback" not in (tmp_path / "server.log").read_text()


def test_a_database_with_other_streams_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with serving(tmp_path, "--db", str(path)) as other:
        populate(other, make_policies(tmp_path), ("credit", "empty"))
        assert other.stop() == 0
    before = path.read_bytes()
    with pytest.raises(InvalidValueError, match=r"credit, empty.*--db"):
        check_own(str(path))
    assert path.read_bytes() == before


def test_a_database_that_is_new_or_its_own_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    check_own(str(path))
    assert not path.exists()
    with serving(tmp_path, "--demo", "--db", str(path)) as own:
        wait_for(lambda: len(streams(own)) == 3, "the streams are not made", seconds=2 * PATIENCE)
        check_own(str(path))
        assert own.stop() == 0
    check_own(str(path))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_seed_says_who_comes(scenario: DemoStream) -> None:
    def some() -> list[Any]:
        return list(itertools.islice(scenario.people(np.random.default_rng(7)), 50))

    assert some() == some()
    assert {person.group for person in some()} == set(scenario.groups)
