"""A file is served by one process at a time, with an SQLite that keeps its promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from fairshield.service.store import SqliteDatabase, StoreError, open_database
from fairshield.service.store.sqlite import check_version

HOLDER = """
import sys
from fairshield.service.store import open_database
database = open_database(sys.argv[1], serving=True)
print("serving", flush=True)
sys.stdin.read()
"""
SECOND = """
import sys
from fairshield.service.store import StoreError, open_database
try:
    open_database(sys.argv[1], serving=True)
except StoreError as error:
    print(error)
"""


def test_a_second_server_is_refused_and_told_by_whom(tmp_path: Path) -> None:
    path = tmp_path / "shield.db"
    first = open_database(str(path), serving=True)
    with pytest.raises(StoreError, match=f"served by process {os.getpid()}: stop it first"):
        open_database(str(path), serving=True)
    first.close()
    open_database(str(path), serving=True).close()


def test_a_server_in_another_process_is_refused_too(tmp_path: Path) -> None:
    path = str(tmp_path / "shield.db")
    first = open_database(path, serving=True)
    told = subprocess.run(
        [sys.executable, "-c", SECOND, path], capture_output=True, text=True, check=True
    )
    assert f"served by process {os.getpid()}" in told.stdout
    assert "use PostgreSQL" in told.stdout
    first.close()


def test_a_server_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "shield.db")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], **pipes) as holder:  # type: ignore[call-overload]
        assert holder.stdout.readline() == b"serving\n"
        with pytest.raises(StoreError, match=f"served by process {holder.pid}"):
            open_database(path, serving=True)
        holder.kill()
        holder.wait()
        open_database(path, serving=True).close()


def test_others_may_look_at_what_is_served(tmp_path: Path) -> None:
    path = str(tmp_path / "shield.db")
    first = open_database(path, serving=True)
    writer = first.connect()
    writer.migrate(first.migrations())
    reader = open_database(path, read_only=True).connect()
    assert reader.streams() == []
    with pytest.raises(StoreError, match="readonly"):
        reader.insert_stream("loans")
    reader.close()
    writer.close()
    first.close()


@pytest.mark.parametrize("version", ["3.40.1", "3.51.2", "3.7.17", "3.51"])
def test_an_sqlite_that_can_lose_commits_is_refused(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    with pytest.raises(StoreError, match=r"3\.51\.3 or later is needed: pip install"):
        SqliteDatabase(tmp_path / "shield.db")


@pytest.mark.parametrize("version", ["3.51.3", "3.52.0", "4.0.0"])
def test_later_ones_are_taken(version: str) -> None:
    check_version(version)
