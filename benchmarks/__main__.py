"""Measure all published figures, print a table, write ``results.json`` and ``results.md``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numba
import numpy as np

import fairshield as fs
from benchmarks import cuda
from benchmarks.classifier import shielded_classifier
from benchmarks.experiments import reproduction, simulated_runs
from benchmarks.frames import frames
from benchmarks.groups import three_groups
from benchmarks.long import exact_values, long_against_exact, long_anytime, long_windows
from benchmarks.measure import (
    HERE,
    TEN_LEVELS,
    UNIFORM,
    Baseline,
    Figure,
    best_of,
    in_new_process,
    peak_megabytes,
    side_by_side,
)
from benchmarks.periodic import (
    certificates,
    dearest_periods,
    exact_periodic,
    for_ever,
    optimal_periodic,
    period_starts,
    periodic_runs,
)
from benchmarks.service import durable_decisions, open_streams, postgres_decisions, restart
from fairshield.analysis.simulate import simulate
from fairshield.policy import Specification
from fairshield.synthesis.exact.solver import solve
from fairshield.synthesis.problem import make_problem

DP, EQ_OPP = fs.DemographicParity("0.1"), fs.EqualOpportunity("0.1")


def values(prop: fs.Property, inputs: fs.InputModel, horizon: int, threads: int) -> None:
    """Compute the cost to go, without a policy."""
    problem = make_problem(Specification.of(prop, inputs, horizon=horizon))
    solve(problem, record=None, threads=threads, progress=None)


def synthesis_speed() -> Iterator[Figure]:
    """Figures of synthesis on one thread, on two, and beside the memoised recursion."""
    seconds = best_of(lambda: values(DP, UNIFORM, 200, 1), 15)
    per_state = seconds * 1e9 / (200**4 / 24)
    yield Figure(
        "DP values, T = 200, one thread",
        f"{per_state:.2f} ns per state ({seconds * 1e3:.1f} ms)",
        "≤ 0.9 ns per state",
        per_state <= 0.9,
    )
    one, two = side_by_side(
        lambda: values(DP, UNIFORM, 300, 1), lambda: values(DP, UNIFORM, 300, 2), repeats=9
    )
    yield Figure(
        "DP values, T = 300, two threads",
        f"{one / two:.2f}× faster ({two * 1e3:.0f} ms)",
        "≥ 1.6×",
        one / two >= 1.6,
        f"one thread {one * 1e3:.0f} ms",
    )


def against_recursion() -> Iterator[Figure]:
    """Figures of values and of synthesis beside a memoised recursion in C."""
    baseline, threads = Baseline(), len(os.sched_getaffinity(0))
    for horizon, least in ((100, (80, 40)), (200, (150, 75))):
        rounds = [
            (
                baseline.seconds(horizon),
                best_of(partial(values, DP, UNIFORM, horizon, threads), 10),
                best_of(partial(fs.synthesize, DP, UNIFORM, horizon=horizon), 10),
            )
            for _ in range(3)
        ]
        seconds, ours, whole = (min(column) for column in zip(*rounds, strict=True))
        for what, time_taken, target in (
            ("values only", ours, least[0]),
            ("whole synthesize, policy included", whole, least[1]),
        ):
            ratio = seconds / time_taken
            yield Figure(
                f"DP T = {horizon}, {what}, {threads} threads",
                f"{ratio:.0f}× faster ({time_taken * 1e3:.2f} ms)",
                f"≥ {target}×",
                ratio >= target,
                f"recursion in C {seconds * 1e3:.0f} ms",
            )


def equal_opportunity() -> Iterator[Figure]:
    """Figures of time and memory for a property with five counters."""
    seconds = best_of(lambda: fs.synthesize(EQ_OPP, UNIFORM, horizon=75), 15)
    alone = best_of(lambda: values(EQ_OPP, UNIFORM, 75, 1), 9)
    yield Figure(
        "EqOpp T = 75, whole synthesize",
        f"{seconds * 1e3:.1f} ms",
        "≤ 25 ms",
        seconds <= 0.025,
        f"values, one thread {alone * 1e3:.1f} ms",
    )
    peak = peak_megabytes('fs.EqualOpportunity("0.1")', 75)
    yield Figure("EqOpp T = 75, peak extra memory", f"{peak:.1f} MB", "≤ 32 MB", peak <= 32)


def cost_levels() -> Iterator[Figure]:
    """Figures of ten cost levels beside one."""
    for horizon in (100, 200):
        one, ten = side_by_side(
            partial(values, DP, UNIFORM, horizon, 1),
            partial(values, DP, TEN_LEVELS, horizon, 1),
            repeats=7,
        )
        yield Figure(
            f"ten cost levels, values, T = {horizon}",
            f"{ten / one:.2f}× the time ({ten * 1e3:.1f} ms)",
            "≤ 1.5×",
            ten <= 1.5 * one,
            f"one level {one * 1e3:.1f} ms",
        )


def artefact_size() -> Iterator[Figure]:
    """Figures of the size of policy files."""
    with tempfile.TemporaryDirectory() as folder:
        for horizon, most in ((100, 2), (200, 16)):
            path = Path(folder) / "policy.shield"
            fs.synthesize(DP, UNIFORM, horizon=horizon).save(path)
            size = path.stat().st_size / 1e6
            yield Figure(
                f"artefact, DP, one cost, T = {horizon}",
                f"{size:.2f} MB",
                f"≤ {most} MB",
                size <= most,
            )


def decisions() -> Iterator[Figure]:
    """Figures of decisions one at a time, in batches, and simulated."""
    policy = fs.synthesize(DP, UNIFORM, horizon=100)
    rng = np.random.default_rng(0)
    samples = []
    for _ in range(300):
        shield = fs.Shield(policy)
        groups, proposals = rng.choice(["a", "b"], 100).tolist(), (rng.random(100) < 0.5).tolist()
        for group, proposed in zip(groups, proposals, strict=True):
            begin = time.perf_counter_ns()
            shield.decide(group, proposed=proposed, cost=1.0)
            samples.append(time.perf_counter_ns() - begin)
    median = statistics.median(samples) / 1e3
    yield Figure("Shield.decide, median", f"{median:.2f} µs", "≤ 2 µs", median <= 2.0)
    long = fs.synthesize(DP, UNIFORM, horizon=300)
    groups, proposed = rng.choice(["a", "b"], 300), rng.random(300) < 0.5

    def run_windows() -> None:
        for _ in range(1000):
            fs.Shield(long).decide_many(groups, proposed)

    rate = 1000 * 300 / best_of(run_windows, 5) / 1e6
    yield Figure("decide_many, windows of 300", f"{rate:.1f} M/s", "≥ 10 M/s", rate >= 10)
    seconds = best_of(lambda: simulate(policy, n_windows=20_000, rng=rng), 5)
    rate = 2e6 / seconds / 1e6
    yield Figure("simulate, one core", f"{rate:.1f} M decisions/s", "≥ 10 M/s", rate >= 10)


def verification() -> Iterator[Figure]:
    """Figures of checking every reachable state."""
    policy = fs.synthesize(DP, UNIFORM, horizon=100)
    seconds = best_of(lambda: fs.verify(policy), 3)
    yield Figure("verify, DP T = 100", f"{seconds:.2f} s", "≤ 2 s", seconds <= 2)


FIRST = """
import time; begin = time.perf_counter()
import fairshield as fs
inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=100)
print(time.perf_counter() - begin)
"""
IMPORT = """
import time, numpy; begin = time.perf_counter()
import fairshield
print(time.perf_counter() - begin)
"""


def start_up() -> Iterator[Figure]:
    """Figures of importing, and of the first synthesis with and without compiled code."""
    seconds = min(float(in_new_process(IMPORT)) for _ in range(5))
    yield Figure(
        "import fairshield, beyond numpy", f"{seconds * 1e3:.0f} ms", "≤ 100 ms", seconds <= 0.1
    )
    with tempfile.TemporaryDirectory() as cache:
        cold = float(in_new_process(FIRST, NUMBA_CACHE_DIR=cache))
        warm = min(float(in_new_process(FIRST, NUMBA_CACHE_DIR=cache)) for _ in range(3))
    yield Figure("first synthesis, compiling", f"{cold:.1f} s", "≤ 10 s", cold <= 10)
    yield Figure("first synthesis of a later process", f"{warm:.2f} s", "≤ 1 s", warm <= 1)


def cuda_device() -> Iterator[Figure]:
    """Figures measured on a CUDA device, or recorded on one earlier."""
    yield from cuda.on_a_device()


SECTIONS = (
    synthesis_speed,
    against_recursion,
    equal_opportunity,
    cost_levels,
    cuda_device,
    artefact_size,
    decisions,
    shielded_classifier,
    frames,
    verification,
    three_groups,
    period_starts,
    exact_periodic,
    optimal_periodic,
    dearest_periods,
    for_ever,
    periodic_runs,
    certificates,
    exact_values,
    long_windows,
    long_against_exact,
    long_anytime,
    start_up,
    durable_decisions,
    postgres_decisions,
    open_streams,
    restart,
    simulated_runs,
    reproduction,
)


def machine() -> str:
    """A description of the machine that the figures were measured on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].split(":")[1].strip() if names else cpu
    cores = len(os.sched_getaffinity(0))
    return (
        f"{cpu}, {cores} cores; Python {platform.python_version()}, numpy {np.__version__}, "
        f"numba {numba.__version__}, fairshield {fs.__version__}"
    )


def report(figures: list[Figure]) -> str:
    """The table of figures, in Markdown."""
    lines = [
        "# Benchmark results",
        "",
        f"`python -m benchmarks` on {machine()}.",
        "",
        "| figure | measured | target | reached | beside it, in the same run |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {f.name} | {f.measured} | {f.target} | {'yes' if f.reached else 'no'} | {f.baseline} |"
        for f in figures
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the sections named on the command line, or all of them and write the results."""
    names = {section.__name__: section for section in SECTIONS}
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks")
    parser.add_argument("section", nargs="*", choices=[*names, []], help="default: all, and write")
    chosen = parser.parse_args().section
    figures = []
    for section in [names[name] for name in chosen] or SECTIONS:
        for figure in section():
            mark = "ok " if figure.reached else "MISS"
            print(
                f"{mark:4} {figure.name}: {figure.measured}  [{figure.target}]  {figure.baseline}"
            )
            figures.append(figure)
    if not chosen:
        data = {"machine": machine(), "figures": [asdict(figure) for figure in figures]}
        (HERE / "results.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
        (HERE / "results.md").write_text(report(figures))


if __name__ == "__main__":
    main()
