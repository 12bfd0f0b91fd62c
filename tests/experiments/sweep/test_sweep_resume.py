"""A sweep that is killed goes on where it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from sweep_work import simulate, simulations

from fairshield_experiments.sweep.journal import Journal
from fairshield_experiments.sweep.run import run_sweep
from fairshield_experiments.sweep.workers import InProcess

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
TASKS = 16


def start(journal: Path, log: Path, processes: int, pause: float) -> subprocess.Popen[str]:
    arguments = [journal, log, processes, TASKS, pause]
    return subprocess.Popen(
        [sys.executable, HERE / "sweep_script.py", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(sweep: subprocess.Popen[str], done: int) -> None:
    assert sweep.stdout is not None
    for line in sweep.stdout:
        if int(line) >= done:
            return
    raise AssertionError(sweep.communicate()[1])


def executed(log: Path) -> list[int]:
    return [int(line.split()[0]) for line in log.read_text().splitlines()]


@pytest.mark.parametrize("processes", [0, 2])
def test_a_killed_sweep_ends_like_one_that_was_not(processes: int, tmp_path: Path) -> None:
    journal, log = tmp_path / "journal", tmp_path / "log"
    tasks = simulations(range(TASKS))
    number = {task.key: n for n, task in enumerate(tasks)}
    before: set[int] = set()
    for done in (1, 9):
        with start(journal, log, processes, pause=0.05) as sweep:
            wait_until(sweep, done)
            sweep.kill()
        assert not before & set(executed(log))
        with Journal(journal) as opened:
            before = {number[key] for key in opened.finished()}
        assert len(before) >= done
        log.rename(tmp_path / f"log {done}")
        log.write_text("")
    with start(journal, log, processes, pause=0.0) as sweep:
        _, errors = sweep.communicate()
        assert sweep.returncode == 0, errors

    assert Counter(executed(log)) == Counter(set(range(TASKS)) - before)
    times = Counter(n for file in tmp_path.glob("log*") for n in executed(file))
    assert set(times) == set(range(TASKS))
    # A process loses what it is doing, and what it has done and nobody has recorded.
    assert times.total() <= TASKS + 2 * (2 * processes or 1)
    with Journal(journal) as killed, Journal(tmp_path / "whole") as whole:
        run_sweep(simulate, tasks, whole, InProcess())
        for name in ("rows", "even"):
            keys = [task.key for task in tasks]
            pd.testing.assert_frame_equal(killed.collect(name, keys), whole.collect(name, keys))


def test_an_interrupt_stops_everything_at_once_and_keeps_what_is_recorded(tmp_path: Path) -> None:
    journal, log = tmp_path / "journal", tmp_path / "log"
    with Journal(journal) as opened:
        run_sweep(simulate, simulations(range(3)), opened, InProcess())
    with start(journal, log, 2, pause=600) as sweep:
        wait_until(sweep, 3)
        while not log.exists() or len(log.read_text().splitlines()) < 2:
            assert sweep.poll() is None
            time.sleep(0.01)
        sweep.send_signal(signal.SIGINT)
        _, errors = sweep.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    for line in log.read_text().splitlines():
        with pytest.raises(ProcessLookupError):
            os.kill(int(line.split()[1]), 0)
    with Journal(journal) as opened:
        assert len(opened.finished()) == 3
        assert opened.failures() == ()
