"""Time and memory of synthesis against the horizon, in a process of its own.

``python -m fairshield_experiments.resources KIND LEVELS HORIZON ...`` prints one line of JSON for
each horizon.  They must rise: memory is by how much the process has grown since it began.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import cast

import pandas as pd

import fairshield as fs
from fairshield_experiments.simulate import PROPERTIES, PropertyKind

BOUND = "0.05"
_REPEATS = 3
_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in which the system counts the largest size of a process."""


def measure(kind: PropertyKind, levels: int, horizons: Sequence[int]) -> pd.DataFrame:
    """A row for each horizon: seconds of the best of three syntheses on one thread, megabytes.

    ``megabytes`` is what the process grew by, ``policy_megabytes`` what the policy takes.
    """
    command = [sys.executable, "-m", __name__, kind, str(levels), *map(str, horizons)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return pd.DataFrame([json.loads(line) for line in done.stdout.splitlines()])


def _inputs(levels: int) -> fs.InputModel:
    """Groups and proposals all equally likely, at costs 1, 2, ..."""
    costs = range(1, levels + 1)
    table = {
        (g, r, float(c)): 0.25 / levels for g in ("a", "b") for r in (False, True) for c in costs
    }
    return fs.InputModel.from_table(table, outcomes={"a": 0.5, "b": 0.5})


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT


def main(kind: PropertyKind, levels: int, horizons: Sequence[int]) -> None:
    """Measure in this process."""
    prop, inputs = PROPERTIES[kind](BOUND), _inputs(levels)
    fs.synthesize(prop, inputs, horizon=5)  # compiles, or loads what was compiled
    before = _peak()
    for horizon in horizons:
        times = []
        for _ in range(_REPEATS):
            begin = perf_counter()
            policy = fs.synthesize(prop, inputs, horizon=horizon, threads=1)
            times.append(perf_counter() - begin)
        row = {
            "property": kind,
            "levels": levels,
            "horizon": horizon,
            "seconds": min(times),
            "megabytes": (_peak() - before) / 1e6,
            "policy_megabytes": policy.nbytes / 1e6,
        }
        sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(cast(PropertyKind, sys.argv[1]), int(sys.argv[2]), [int(n) for n in sys.argv[3:]])
