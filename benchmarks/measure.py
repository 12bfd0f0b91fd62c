"""Functions that measure time (repeated, side by side, the best) and resident memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fairshield as fs

HERE = Path(__file__).parent
UNIFORM = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
SKEWED = fs.InputModel.from_table(
    {
        ("a", True, 1.0): 0.2,
        ("a", False, 1.0): 0.125,
        ("b", True, 1.0): 0.4,
        ("b", False, 1.0): 0.275,
    }
)
TEN_LEVELS = fs.InputModel.from_table(
    {(g, r, 0.05 * (i + 1)): 0.025 for g in "ab" for r in (False, True) for i in range(10)}
)


@dataclass(frozen=True)
class Figure:
    """One line of the report."""

    name: str
    measured: str
    target: str
    reached: bool
    baseline: str = ""


def best_of(run: Callable[[], Any], repeats: int) -> float:
    """The least seconds of ``repeats`` runs, which other load on the machine disturbs least."""
    run()
    return min(_timed(run) for _ in range(repeats))


def side_by_side(*runs: Callable[[], Any], repeats: int) -> list[float]:
    """:func:`best_of` for several functions in turn, so that other load affects all alike."""
    for run in runs:
        run()
    rounds = [[_timed(run) for run in runs] for _ in range(repeats)]
    return [min(column) for column in zip(*rounds, strict=True)]


def _timed(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


class Baseline:
    """The memoised recursion of ``baseline.c``, compiled here."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._program = Path(self._folder.name) / "baseline"
        compiler = os.environ.get("CC", "cc")
        source = HERE / "baseline.c"
        subprocess.run([compiler, "-O2", "-o", self._program, source, "-lm"], check=True)

    def seconds(self, horizon: int) -> float:
        """Time of one synthesis with uniform inputs; its value is checked against ours."""
        inputs = [f"{g} {r} 1 .25" for g in (0, 1) for r in (0, 1)]
        command = [str(self._program), str(horizon), "1", "10", *" ".join(inputs).split()]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        value, seconds = map(float, out.split())
        ours = fs.synthesize(fs.DemographicParity("0.1"), UNIFORM, horizon=horizon).expected_cost
        assert abs(value - ours) <= 1e-12 * ours, (value, ours)
        return seconds


def in_new_process(code: str, **environment: str) -> str:
    """The output of ``code``, run by a new interpreter."""
    env = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env
    )
    return done.stdout.strip()


PEAK = """
import fairshield as fs
from fairshield.synthesis.exact import solver
def resident(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024
inputs = fs.InputModel.agnostic(dict.fromkeys({groups}, 1 / len({groups})))
# Load the compiled code first, that of the threads too: it is not the tables' memory.
worth, solver._WORTH_A_THREAD = solver._WORTH_A_THREAD, 1
fs.synthesize({prop}, inputs, horizon=20)
solver._WORTH_A_THREAD = worth
before = resident("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
policy = fs.synthesize({prop}, inputs, horizon={horizon})
print(resident("VmHWM") - before)
"""


def peak_megabytes(prop: str, horizon: int, groups: tuple[str, ...] = ("a", "b")) -> float:
    """Most resident memory that a synthesis adds to that of the process (Linux)."""
    return float(in_new_process(PEAK.format(prop=prop, horizon=horizon, groups=groups)))
