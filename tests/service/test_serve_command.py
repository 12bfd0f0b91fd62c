"""``fairshield serve`` says where it is, or in one sentence why it is not."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from live_server import exchange, raw, serving

from fairshield.service.store import open_database
from fairshield.service.store.sqlite import SqliteDatabase


def serve(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fairshield", "serve", *options], capture_output=True, text=True,
        timeout=60, env={**os.environ, **environment},
    )  # fmt: skip


def complaint(ran: subprocess.CompletedProcess[str]) -> str:
    """The one sentence of a server that does not start."""
    assert ran.returncode == 2, ran
    assert "Traceback" not in ran.stderr
    assert "Serving" not in ran.stdout
    return ran.stderr


def test_it_says_where_it_is_and_that_there_are_no_keys(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert f"Dashboard: {server.address}/" in server.output
        assert "No access keys" in server.output
        assert server.stop(signal.SIGINT) == 0


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = complaint(serve("--db", str(tmp_path / "x.db"), "--port", str(port)))
    assert f"127.0.0.1:{port}" in said
    assert "--port" in said


def test_a_file_that_another_server_serves(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        said = complaint(serve("--db", str(server.database), "--port", "0"))
        assert f"process {server.process.pid}" in said
        answer = exchange(server, raw("GET", "/readyz"))
        assert answer is not None
        assert answer.status == 200


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(b"these are not the pages of a database" * 100)
    said = complaint(serve("--db", str(path), "--port", "0"))
    assert "not a database" in said
    assert str(path) in said


def test_a_postgresql_that_is_not_there() -> None:
    said = complaint(serve("--db", "postgresql://me:secret@127.0.0.1:9/shields", "--port", "0"))
    assert said.count("127.0.0.1:9/shields") == 1
    assert "secret" not in said


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    said = complaint(serve("--db", str(tmp_path / "nowhere" / "x.db"), "--port", "0"))
    assert "nowhere is not a folder" in said


def test_a_host_that_is_not_here(tmp_path: Path) -> None:
    said = complaint(serve("--db", str(tmp_path / "x.db"), "--host", "127.0.0.1.example"))
    assert "--host 127.0.0.1.example is no address" in said
    assert "keys" not in said


@pytest.mark.parametrize(
    "option", [("--port", "70000"), ("--rate", "-1"), ("--max-body", "0"), ("--log-level", "loud")]
)
def test_options_out_of_range(tmp_path: Path, option: tuple[str, str]) -> None:
    assert option[0] in complaint(serve("--db", str(tmp_path / "x.db"), *option))


def test_an_old_sqlite(tmp_path: Path) -> None:
    code = (
        "import apsw; apsw.sqlite_lib_version = lambda: '3.40.1'\n"
        "import sys; from fairshield.cli import main\n"
        f"sys.argv = ['fairshield', 'serve', '--db', {str(tmp_path / 'x.db')!r}]; main()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install --upgrade apsw" in complaint(ran)


def test_packages_that_are_missing(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules[{!r}] = None; from fairshield.cli import main\n"
        f"sys.argv = ['fairshield', 'serve', '--otel', '--db', {str(tmp_path / 'x.db')!r}]; main()"
    )
    for name, extra in (("uvicorn", "service"), ("opentelemetry", "otel")):
        ran = subprocess.run(
            [sys.executable, "-c", code.format(name)], capture_output=True, text=True, timeout=60
        )
        assert f"pip install 'fairshield[{extra}]'" in complaint(ran)


def test_a_collector_that_is_not_there_does_no_harm(tmp_path: Path) -> None:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    with serving(tmp_path, environment=environment) as server:
        answer = exchange(server, raw("GET", "/v1/streams"))
        assert answer is not None
        assert answer.status == 200
        assert server.stop() == 0


def test_passwords_are_not_shown() -> None:
    for address in ("postgresql://me:secret@host:5/db?password=secret", "postgresql://:secret@h/d"):
        assert "secret" not in open_database(address).address
    assert SqliteDatabase("a:b@c.db").address == "a:b@c.db"
