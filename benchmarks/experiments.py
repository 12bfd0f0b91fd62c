"""Figures of the paper's experiments: simulation, training, the whole reproduction."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Figure, best_of
from fairshield_experiments.people import People, Scored
from fairshield_experiments.simulate import Setting, simulate


def simulated_runs() -> Iterator[Figure]:
    """Figures of simulating the rows of a setting, from drawing people to counting."""
    rng, n = np.random.default_rng(0), 20_000
    group = (rng.random(n) > 0.325).astype(np.int8)
    people = People(group, rng.random(n) < 0.5, np.clip(rng.beta(2, 2, n) + 0.1 * group, 0, 1))
    scored = Scored(environment="made-up", learner="ERM", training=people, held_out=people)
    setting = Setting(
        environment="made-up", learner="ERM", kind="demographic-parity", bound="0.1",
        shield="finite-horizon", period_length=100, runs=3000,
    )  # fmt: skip
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        seconds = best_of(lambda: simulate(setting, scored), 5)
    finally:
        os.sched_setaffinity(0, cores)
    speed = setting.runs * setting.length / seconds / 1e6
    yield Figure(
        "experiment, DP, T = 100, shield included, one core",
        f"{speed:.1f} million decisions per second",
        "≥ 1 million",
        speed >= 1,
    )


def reproduction() -> Iterator[Figure]:
    """Figures of ``fairshield reproduce``, where ``FAIRSHIELD_DATA`` is set."""
    if "FAIRSHIELD_DATA" not in os.environ:
        return
    seconds, _ = _reproduce("--quick")
    yield Figure("fairshield reproduce --quick", f"{seconds:.0f} s", "≤ 60 s", seconds <= 60)
    seconds, said = _reproduce("all")
    training = said["stages"]["training"]
    yield Figure(
        "training of 35 models, and of 7 of them in 5 folds",
        f"{training:.0f} s",
        "≤ 6 min",
        training <= 360,
    )
    yield Figure(
        "fairshield reproduce all",
        f"{seconds / 60:.1f} min, {said['runs']:,} runs",
        "≤ 15 min",
        seconds <= 900,
    )


def _reproduce(what: str) -> tuple[float, dict[str, Any]]:
    """Seconds that the command takes, and what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "fairshield", "reproduce", what, "--json"]
        begin = time.perf_counter()
        done = subprocess.run(
            [*command, "--output", folder], check=True, capture_output=True, text=True
        )
        return time.perf_counter() - begin, json.loads(done.stdout)
