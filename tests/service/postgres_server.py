"""A PostgreSQL server that tests create, start, kill and remove."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
from ports import free_port

_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = on
max_connections = 60
shared_buffers = 32MB
"""


def programs() -> Path | None:
    """The folder of ``initdb`` and ``postgres``, or ``None`` if they are not installed."""
    on_path = shutil.which("initdb")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: p.parts[-3])
    return Path(on_path).parent if on_path else found[-1].parent if found else None


class Cluster:
    """A server with its own data folder on a port of the loopback interface.

    Parameters
    ----------
    folder
        An empty folder, which the server will own.
    """

    def __init__(self, folder: Path) -> None:
        bin = programs()
        assert bin is not None
        self.folder, self.port, self._bin = folder, free_port(), bin
        self._user = _unprivileged()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count()
        if self._user is not None:
            account = pwd.getpwnam(self._user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        self._call(
            "initdb", "--auth=trust", "--username=tests", "--encoding=UTF8", "--locale=C",
            "--no-sync", "-D", str(folder / "data"),
        )  # fmt: skip
        with (folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(f"{_SETTINGS}port = {self.port}\n")

    def address(self, database: str = "postgres") -> str:
        """How to connect to a database."""
        return f"postgresql://tests:s3cret@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server, and wait until it answers; after a crash it recovers first."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self.folder / "data"],
                stdout=log, stderr=log, **self._as_user(),
            )  # fmt: skip
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            try:
                self.run("SELECT 1")
                return
            except (OSError, asyncpg.PostgresError):
                assert self._process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        """Stop the server; clients lose their connections."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End all its processes at once, as a crash of the machine would."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)  # so that it has no more children
        children = _children(self._process.pid)
        os.kill(self._process.pid, signal.SIGKILL)
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._end(signal.SIGKILL)
        while any(Path(f"/proc/{child}").exists() for child in children):
            time.sleep(0.01)

    def run(self, *statements: str, database: str = "postgres") -> list[Any]:
        """Run statements; the rows of the last one."""

        async def work() -> list[Any]:
            connection = await asyncpg.connect(self.address(database), timeout=5)
            try:
                for statement in statements[:-1]:
                    await connection.execute(statement)
                return [tuple(row) for row in await connection.fetch(statements[-1])]
            finally:
                await connection.close()

        return asyncio.run(work())

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The address of a new, empty database."""
        name = f"tests_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE template0")
        yield self.address(name)
        self.run(f"DROP DATABASE {name} WITH (FORCE)")

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def _call(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._bin / program, *arguments], capture_output=True, text=True, **self._as_user()
        )
        assert done.returncode == 0, done.stderr

    def _as_user(self) -> dict[str, Any]:
        """How to run a program of the server, which refuses to be run by root."""
        where = {"cwd": self.folder}
        if self._user is None:
            return where
        return {**where, "user": self._user, "group": self._user, "extra_groups": ()}


@contextlib.contextmanager
def running() -> Iterator[Cluster]:
    """A server, for as long as the context lasts."""
    folder = Path(tempfile.mkdtemp(prefix="fairshield-postgres-"))
    try:
        cluster = Cluster(folder)
        cluster.start()
        yield cluster
        cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged() -> str | None:
    """Another user, if this one is root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


def _children(parent: int) -> list[int]:
    return [
        int(stat.parent.name)
        for stat in Path("/proc").glob("[0-9]*/stat")
        if (text := _read(stat)) and int(text.rpartition(")")[2].split()[1]) == parent
    ]


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has ended
        return ""
