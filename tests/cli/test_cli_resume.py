"""An interrupted run, wherever it was interrupted, goes on as if nothing had happened."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from effort import examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

FORMATS = ("jsonl", "csv")


@pytest.fixture(params=FORMATS)
def stream(request: pytest.FixtureRequest, tmp_path: Path, jsonl: str, csv_text: str) -> Path:
    """The requests as a file, in either format; fields with line ends and quotes among them."""
    text = jsonl if request.param == "jsonl" else csv_text
    awkward = json.dumps('p"3\n,')[1:-1] if request.param == "jsonl" else '"p""3\n,"'
    path = tmp_path / f"requests.{request.param}"
    path.write_text(text.replace("p3", awkward))
    return path


@pytest.fixture
def whole(command: Any, plain: Path, stream: Path) -> bytes:
    """The output of a run that was not interrupted."""
    return bytes(command("run", plain, stream).stdout_bytes)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(0, 1))
@example(0.0)
@example(1.0)
def test_resuming_from_any_prefix_gives_the_whole(
    command: Any, plain: Path, stream: Path, whole: bytes, share: float
) -> None:
    log = stream.with_name(f"log{stream.suffix}")
    log.write_bytes(whole[: int(share * len(whole))])
    result = command("run", plain, stream, "--resume", log, "-o", log)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert log.read_bytes() == whole


def test_resuming_at_every_byte_of_a_line_gives_the_whole(
    command: Any, plain: Path, stream: Path, whole: bytes
) -> None:
    log = stream.with_name(f"log{stream.suffix}")
    second, awkward = (whole.index(mark) for mark in (b"p1", b"p4"))
    for cut in range(second, awkward + 1):
        log.write_bytes(whole[:cut])
        assert command("run", plain, stream, "--resume", log, "-o", log).exit_code == 0
        assert log.read_bytes() == whole


def test_without_output_file_only_what_is_missing_is_printed(
    command: Any, plain: Path, stream: Path, whole: bytes
) -> None:
    log = stream.with_name(f"log{stream.suffix}")
    cut = whole.index(b"p9") + 7
    log.write_bytes(whole[:cut])
    result = command("run", plain, stream, "--resume", log)
    assert "ends in an unfinished line; it is decided again" in result.stderr
    kept = whole[:cut].rindex(b"\n") + 1
    assert result.stdout_bytes == whole[kept:]
    assert log.read_bytes() == whole[:cut]


def test_a_file_to_begin_may_also_be_continued(
    command: Any, plain: Path, stream: Path, whole: bytes
) -> None:
    log = stream.with_name(f"log{stream.suffix}")
    for _ in range(2):
        assert command("run", plain, stream, "--resume", log, "-o", log).exit_code == 0
        assert log.read_bytes() == whole


def test_a_run_killed_in_the_middle_is_resumed_exactly(
    command: Any,
    process: Callable[..., Any],
    plain: Path,
    tmp_path: Path,
    jsonl: str,
) -> None:
    (tmp_path / "requests.jsonl").write_text(jsonl)
    log = tmp_path / "log.jsonl"
    with process("run", plain, "-o", log) as running:
        running.stdin.write("".join(jsonl.splitlines(keepends=True)[:17]).encode())
        running.stdin.write(b'{"group": "a", "pro')
        running.stdin.flush()
        _wait_for(lambda: log.exists() and log.read_bytes().count(b"\n") == 17)
        running.send_signal(signal.SIGKILL)
    assert running.returncode == -signal.SIGKILL
    result = command("run", plain, tmp_path / "requests.jsonl", "--resume", log, "-o", log)
    assert result.exit_code == 0
    assert log.read_text() == command("run", plain, stdin=jsonl).stdout


def test_output_appended_by_the_shell_is_continued_in_place(
    process: Callable[..., Any], command: Any, plain: Path, stream: Path, whole: bytes
) -> None:
    log = stream.with_name(f"log{stream.suffix}")
    log.write_bytes(whole[: len(whole) // 2])
    with log.open("ab") as appended:
        running = process("run", plain, stream, "--resume", log, stdout=appended)
        running.communicate()
    assert running.returncode == 0
    assert log.read_bytes() == whole


def _wait_for(condition: Callable[[], bool], seconds: float = 150.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.01)


# Mistakes -----------------------------------------------------------------------------------


def _changed(text: str, line: int, **fields: Any) -> str:
    lines = text.splitlines()
    lines[line] = json.dumps(json.loads(lines[line]) | fields)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"group": "b"}, "line 1 of the earlier output answers group b"),
        ({"proposed": True}, "resuming needs the same stream again, from its beginning"),
        ({"cost": 77}, "answers group a, proposed reject, cost 77"),
        ({"accepted": True}, "which is not this policy's decision"),
        ({"accepted": "perhaps"}, "the earlier output: line 1: accepted"),
        ({"group": "z"}, "line 1 of the earlier output answers group z"),
    ],
)
def test_the_output_of_another_run_is_refused(
    command: Any, plain: Path, tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    requests = '{"group": "a", "proposed": false, "cost": 1}\n' * 4
    log = tmp_path / "log.jsonl"
    log.write_text(_changed(command("run", plain, stdin=requests).stdout, 0, **change) + '{"tor')
    before = log.read_bytes()
    result = command("run", plain, "--resume", log, "-o", log, stdin=requests)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert log.read_bytes() == before, "a file that is not ours was changed"


def test_a_stream_that_is_too_short_is_refused(
    command: Any, plain: Path, tmp_path: Path, jsonl: str
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(command("run", plain, stdin=jsonl).stdout)
    half = "".join(jsonl.splitlines(keepends=True)[:20])
    result = command("run", plain, "--resume", log, stdin=half)
    assert result.exit_code == 2
    assert "the input ends after 20 requests, the earlier output goes on" in result.stderr


def test_columns_must_stay_the_same(
    command: Any, plain: Path, tmp_path: Path, csv_text: str
) -> None:
    log = tmp_path / "log.csv"
    lines = command("run", plain, "--format", "csv", stdin=csv_text).stdout.splitlines(
        keepends=True
    )
    log.write_text("".join(lines[:9]))
    result = command("run", plain, "--resume", log, "-o", log, "--explain", stdin=csv_text)
    assert result.exit_code == 2
    assert "resume with the same options" in result.stderr
    assert log.read_text() == "".join(lines[:9])


def test_a_file_with_decisions_is_never_written_over(
    command: Any, plain: Path, tmp_path: Path, jsonl: str
) -> None:
    log, other = tmp_path / "log.jsonl", tmp_path / "other.jsonl"
    assert command("run", plain, "-o", log, stdin=jsonl).exit_code == 0
    other.write_bytes(log.read_bytes())
    before = log.read_bytes()
    for more in ([], ["--resume", other]):
        result = command("run", plain, "-o", log, *more, stdin=jsonl)
        assert result.exit_code == 2
        assert f"continue it with --resume {log}" in result.stderr
    assert log.read_bytes() == before


def test_a_file_to_resume_from_must_exist(command: Any, plain: Path, tmp_path: Path) -> None:
    result = command("run", plain, "--resume", tmp_path / "nowhere.jsonl", stdin="")
    assert result.exit_code == 2
    assert "nowhere.jsonl: No such file" in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_link_to_the_log_is_the_log(
    command: Any, plain: Path, stream: Path, whole: bytes
) -> None:
    log, link = stream.with_name(f"log{stream.suffix}"), stream.with_name(f"link{stream.suffix}")
    log.write_bytes(whole[:-5])
    link.symlink_to(log)
    assert command("run", plain, stream, "--resume", log, "-o", link).exit_code == 0
    assert log.read_bytes() == whole
