"""``fairshield keys``: a token is shown once, kept as a hash, and works while the service runs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner, Result
from client_kit import command, plain_policy, served

import fairshield as fs
from fairshield.cli.app import app
from fairshield.cli.keys import SCOPES
from fairshield.client import errors
from fairshield.service.store import open_database
from fairshield.wire.messages import Scope

TOKEN = re.compile(r"fsk_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "shield.db"


@pytest.fixture
def keys(db: Path) -> Callable[..., Result]:
    """``fairshield keys`` inside this process."""

    def run(verb: str, *arguments: Any) -> Result:
        words = ["keys", verb, "--db", str(db), *map(str, arguments)]
        return CliRunner().invoke(app, words)

    return run


def test_scopes_are_the_services() -> None:
    assert get_args(Scope) == SCOPES


def test_a_token_is_all_that_is_printed_and_only_a_hash_is_kept(keys: Any, db: Path) -> None:
    made = keys("create", "--name", "ops", "--scope", "admin")
    assert made.exit_code == 0
    token = made.stdout.strip()
    assert TOKEN.fullmatch(token)
    assert token not in made.stderr
    assert "shown this once" in made.stderr
    assert f"created {db}" in made.stderr
    assert "created" not in keys("create", "--name", "x", "--scope", "read").stderr
    secret = token.split("_", 2)[2]  # which may contain underscores itself
    everything = b"".join(file.read_bytes() for file in db.parent.iterdir())
    assert secret.encode() not in everything
    listed = keys("list", "--json").stdout
    assert secret not in listed
    assert secret not in keys("list").stdout


def test_keys_are_listed_and_revoked(keys: Any) -> None:
    made = json.loads(
        keys(
            "create", "--name", "scoring", "--scope", "decide", "--scope", "read", "--stream",
            "loans", "--json",
        ).stdout
    )  # fmt: skip
    assert made["id"] == TOKEN.fullmatch(made["token"])[1]  # type: ignore[index]
    keys("create", "--name", "ops", "--scope", "admin")
    one, other = json.loads(keys("list", "--json").stdout)
    assert (one["name"], one["scopes"], one["stream"]) == ("scoring", ["decide", "read"], "loans")
    assert (other["name"], other["stream"], other["revoked"]) == ("ops", None, None)
    assert keys("revoke", made["id"]).exit_code == 0
    one, other = json.loads(keys("list", "--json").stdout)
    assert one["revoked"]
    assert other["revoked"] is None
    last = keys("revoke", other["id"], "--json")
    assert json.loads(last.stdout) == {"revoked": other["id"], "left": 0}
    assert "answers nobody" in last.stderr


def test_mistakes_are_one_sentence(keys: Any, db: Path) -> None:
    assert "there is no database" in keys("list").stderr
    assert not db.exists(), "a list makes no database"
    assert keys("create", "--name", "x").exit_code == 2
    assert keys("create", "--name", "x", "--scope", "all").exit_code == 2
    wrong = keys("create", "--name", "x", "--scope", "read", "--stream", "no spaces")
    assert (wrong.exit_code, "no name of a stream" in wrong.stderr) == (2, True)
    early = keys("create", "--name", "x", "--scope", "read", "--stream", "later")
    assert "no stream 'later' yet" in early.stderr
    unknown = keys("revoke", "0" * 12)
    assert (unknown.exit_code, "in force" in unknown.stderr) == (2, True)
    db.write_bytes(b"not a database" * 100)
    assert keys("list").exit_code == 2


def test_a_name_cannot_play_with_the_terminal(keys: Any) -> None:
    keys("create", "--name", "x\x1b[2Jy", "--scope", "read")
    assert "\x1b" not in keys("list").stdout


def test_a_key_is_revoked_once(keys: Any, db: Path) -> None:
    id = json.loads(keys("create", "--name", "x", "--scope", "read", "--json").stdout)["id"]
    assert keys("revoke", id).exit_code == 0
    assert keys("revoke", id).exit_code == 2
    database = open_database(str(db))
    connection = database.connect()
    assert len(connection.access_keys()) == 1
    connection.close()
    database.close()


def test_keys_come_and_go_while_the_service_runs(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        with fs.Client(service.url) as anybody:
            anybody.create_stream("loans", plain_policy())
            made = command(
                "keys", "create", "--db", service.db, "--name", "x", "--scope", "decide", "--json"
            )
            key = json.loads(made.stdout)
            _until(lambda: _refused(anybody))
        with fs.Client(service.url, token=key["token"]) as client:
            assert client.stream("loans").decide("a", proposed=True).guaranteed
            assert command("keys", "revoke", "--db", service.db, key["id"]).returncode == 0
            _until(lambda: _refused(client))


def _refused(client: fs.Client) -> bool:
    try:
        client.stream("loans").decide("a", proposed=True)
    except errors.UnauthorizedError:
        return True
    return False


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(100):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError
