"""The command as others run it: pipes, signals, full disks, missing extras, start-up."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import pytest

from fairshield import __version__
from fairshield.cli.app import app

Process = Callable[..., Any]
SPEC = ("--property", "demographic-parity", "--bound", "0.1", "--groups", "a=0.5,b=0.5")
REQUEST = b'{"group": "a", "proposed": true}\n'


# Pipes --------------------------------------------------------------------------------------


def test_each_decision_is_written_before_the_next_request_is_read(
    process: Process, plain: Path
) -> None:
    with process("run", plain) as running:
        for _ in range(8):
            running.stdin.write(REQUEST)
            running.stdin.flush()
            assert b'"accepted": true' in running.stdout.readline()
        running.stdin.close()
        assert running.stdout.read() == b""
    assert running.returncode == 0


def test_standard_input_closed_in_the_middle_of_a_line_loses_nothing(
    process: Process, plain: Path
) -> None:
    out, err = process("run", plain).communicate(REQUEST * 3 + REQUEST[:15])
    assert out.count(b"\n") == 3
    assert err.startswith(b"Error: line 4: ")
    assert b"the input ends in the middle of this line" in err


def test_a_reader_that_goes_away_is_no_reason_to_complain(process: Process, plain: Path) -> None:
    with process("run", plain) as running:
        running.stdout.close()
        running.stdin.write(REQUEST * 10)
        running.stdin.close()
        assert running.stderr.read() == b""
    assert running.returncode == 128 + signal.SIGPIPE


def test_closed_standard_streams_are_survived(process: Process, plain: Path) -> None:
    for closed, code in (("<&-", 2), (">&-", 0), ("2>&-", 0)):
        running = process("run", plain, shell=f'exec "$@" {closed}')
        _, err = running.communicate(None if code else REQUEST)
        assert running.returncode == code
        assert b"Traceback" not in err


# Terminals ----------------------------------------------------------------------------------


IMPATIENT = """
import fairshield.cli, fairshield.cli.output
fairshield.cli.output._PATIENCE = 0.0
fairshield.cli.main()
"""
"""The command, with a progress bar at once."""


def at_terminal(*arguments: Any, printed: Path | None) -> str:
    """What a command shows on a terminal; what it prints goes to ``printed``, or there as well."""
    ours, theirs = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # the terminal is closed
            while piece := os.read(ours, 1 << 16):
                shown.append(piece)

    with ExitStack() as stack:
        out = theirs if printed is None else stack.enter_context(printed.open("wb"))
        reader = threading.Thread(target=read)
        reader.start()
        words = [sys.executable, "-c", IMPATIENT, *map(str, arguments)]
        environment = os.environ | {"TERM": "xterm"}
        subprocess.run(words, stdin=theirs, stdout=out, stderr=theirs, env=environment, check=True)
        os.close(theirs)
        reader.join()
        os.close(ours)
    return b"".join(shown).decode()


@pytest.mark.slow
def test_a_long_file_shows_a_bar_beside_what_is_printed(plain: Path, tmp_path: Path) -> None:
    requests, log, said = (tmp_path / name for name in ("r.jsonl", "log.jsonl", "said"))
    requests.write_bytes(REQUEST * 60_000)
    assert "deciding" in at_terminal("run", plain, requests, printed=log)
    assert log.read_bytes().count(b"\n") == 60_000
    assert "deciding" in at_terminal("run", plain, requests, "-o", said, printed=None)
    assert said.read_bytes() == log.read_bytes()
    assert "explaining" in at_terminal("explain", plain, log, "--line", 59_999, printed=said)
    assert said.read_text().startswith("line 59999")


def test_lines_on_a_terminal_are_not_mixed_with_a_bar(plain: Path, tmp_path: Path) -> None:
    requests = tmp_path / "r.jsonl"
    requests.write_bytes(REQUEST * 20_000)
    shown = at_terminal("run", plain, requests, printed=None)
    assert shown.count('"accepted"') == 20_000
    assert "deciding" not in shown


# Signals ------------------------------------------------------------------------------------


def test_interrupting_a_run_is_one_line_and_exit_130(process: Process, plain: Path) -> None:
    with process("run", plain) as running:
        running.stdin.write(REQUEST)
        running.stdin.flush()
        running.stdout.readline()
        running.send_signal(signal.SIGINT)
        assert running.stderr.read() == b"Interrupted.\n"
    assert running.returncode == 130


INTERRUPTED_HALFWAY = """
import contextlib, importlib, os, signal, sys

@contextlib.contextmanager
def interrupting(label):
    def update(share, label=None):
        if share > 0.5:
            os.kill(os.getpid(), signal.SIGINT)
    yield update

import fairshield.cli
command = importlib.import_module("fairshield.cli.synthesize")
command.progress_bar = interrupting
fairshield.cli.main()
"""


def test_interrupting_a_synthesis_writes_no_file_and_keeps_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "x.shield"
    target.write_bytes(b"old")
    arguments = ["synthesize", *SPEC, "--horizon", "60", "-o", str(target)]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_HALFWAY, *arguments], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"Interrupted.\n")
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x.shield"]


# Disks --------------------------------------------------------------------------------------


SMALL_FILES_ONLY = 'ulimit -f 4; exec "$@"'
"""No file above 2 or 4 kB, depending on the shell's blocks."""


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 kB, where one may be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def _check_refused(running: Any, folder: Path, reason: bytes) -> None:
    out, err = running.communicate()
    assert (running.returncode, out) == (2, b"")
    assert err.startswith(b"Error: ")
    assert err.count(b"\n") == 1
    assert reason in err
    assert os.listdir(folder) == [], "half a policy was left behind"


def test_a_full_disk_while_saving_leaves_nothing_behind(process: Process, tiny_disk: Path) -> None:
    running = process("synthesize", *SPEC, "--horizon", 60, "-o", tiny_disk / "x.shield")
    _check_refused(running, tiny_disk, b"No space left on device")


def test_a_failing_write_while_saving_leaves_nothing_behind(
    process: Process, tmp_path: Path
) -> None:
    target = tmp_path / "x.shield"
    limited = process("synthesize", *SPEC, "--horizon", 60, "-o", target, shell=SMALL_FILES_ONLY)
    _check_refused(limited, tmp_path, b"File too large")


def test_a_disk_that_fills_up_during_a_run_keeps_what_fitted(
    process: Process, command: Any, plain: Path, tmp_path: Path, jsonl: str
) -> None:
    (tmp_path / "requests.jsonl").write_text(jsonl)
    log, arguments = tmp_path / "log.jsonl", ("run", plain, tmp_path / "requests.jsonl")
    running = process(*arguments, "-o", log, shell=SMALL_FILES_ONLY)
    _, err = running.communicate()
    assert running.returncode == 2
    assert b"File too large" in err
    assert log.stat().st_size <= 4096
    assert command(*arguments, "-o", log, "--resume", log).exit_code == 0
    assert log.read_text() == command(*arguments).stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [("--help",), ("inspect",), ("run",), ("run", "--help")])
def test_output_that_cannot_be_written_is_one_sentence(
    process: Process, plain: Path, arguments: tuple[str, ...]
) -> None:
    named = arguments if "--help" in arguments else (*arguments, plain)
    with open("/dev/full", "wb") as full:
        running = process(*named, stdout=full)
        _, err = running.communicate(REQUEST)
    assert running.returncode == 2
    assert err == b"Error: No space left on device\n"


# Start-up -----------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_the_extra_one_sentence_says_what_to_install(missing: str) -> None:
    script = f"import sys; sys.modules[{missing!r}] = None; import fairshield.cli as c; c.main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    expected = f"The fairshield command needs {missing}: pip install 'fairshield[cli]'\n"
    assert done.stderr.decode() == expected


NEW_KEY = ["keys", "create", "--name", "x", "--scope", "read"]


@pytest.mark.parametrize(
    ("command", "missing", "extra"),
    [
        (["serve"], "starlette", "service"),
        (["serve"], "uvicorn", "service"),
        (NEW_KEY, "apsw", "service"),
        (NEW_KEY, "msgspec", "service"),
        (["tail", "loans"], "httpx", "client"),
        (["tail", "loans"], "msgspec", "client"),
    ],
)
def test_without_the_extra_of_a_command_one_sentence_says_what_to_install(
    command: list[str], missing: str, extra: str, tmp_path: Path
) -> None:
    script = f"import sys; sys.modules[{missing!r}] = None; import fairshield.cli as c; c.main()"
    database = ["--db", str(tmp_path / "x.db")] if extra == "service" else []
    done = subprocess.run(
        [sys.executable, "-c", script, *command, *database], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    said = done.stderr.decode()
    assert said.startswith("Error: fairshield")
    assert missing in said
    assert said.endswith(f"pip install 'fairshield[{extra}]'\n")
    assert said.count("\n") == 1
    assert os.listdir(tmp_path) == []


HEAVY = {
    "numba", "matplotlib", "rich", "httpx", "msgspec", "starlette", "uvicorn", "apsw", "asyncpg",
}  # fmt: skip
COMMANDS = [
    [],
    *([name] for name in app.commands),
    *(
        [name, inner]
        for name, command in app.commands.items()
        if isinstance(command, click.Group)
        for inner in command.commands
    ),
]


@pytest.mark.parametrize("page", COMMANDS, ids=str)
def test_help_loads_neither_compiler_nor_pictures_nor_service(page: list[str]) -> None:
    script = (
        "import sys; from fairshield.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"sys.exit(bool({HEAVY} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *page, "--help"], capture_output=True, check=False
    )
    assert done.stdout.startswith(b"Usage: fairshield")
    assert done.returncode == 0, "an expensive module was imported"


def test_deciding_loads_no_compiler(plain: Path) -> None:
    script = (
        "import sys; from fairshield.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "sys.exit('numba' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "run", str(plain)],
        input=REQUEST,
        capture_output=True,
        check=False,
    )
    assert b'"accepted": true' in done.stdout
    assert done.returncode == 0


def test_the_version_is_the_librarys(process: Process) -> None:
    out, _ = process("--version").communicate()
    assert out.decode() == f"fairshield {__version__}\n"
