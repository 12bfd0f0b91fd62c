"""Synthesis on a CUDA device: ``python -m benchmarks.cuda`` measures and writes ``cuda.json``.

Where there is no device, the report shows what was recorded there.  Kernels are compiled before
anything is timed; every time is the median of five whole solutions, and a policy is in the host's
memory when the clock stops.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import fairshield as fs
from benchmarks.measure import HERE, TEN_LEVELS, UNIFORM, Figure
from fairshield.policy import Specification
from fairshield.synthesis.cuda import solver as cuda
from fairshield.synthesis.cuda.device import missing, require_device
from fairshield.synthesis.problem import Problem, make_problem

RECORDED = HERE / "cuda.json"
DP, EQ_OPP = fs.DemographicParity("0.1"), fs.EqualOpportunity("0.1")
LOANS = fs.InputModel.from_table(
    {
        ("a", True, 1.0): 0.325 * 0.36,
        ("a", False, 1.0): 0.325 * 0.64,
        ("b", True, 1.0): 0.675 * 0.64,
        ("b", False, 1.0): 0.675 * 0.36,
    }
)
TARGETS = {500: 0.010, 1000: 0.100, 1500: 0.450}
"""Seconds for values; a policy may take three times as long."""
SERIES = (20, 50, 100, 200, 300, 500, 700, 1000, 1500)


def on_a_device() -> Iterator[Figure]:
    """Figures measured here if there is a device, else those recorded."""
    if missing() is None:
        yield from measured()
    elif RECORDED.exists():
        for figure in json.loads(RECORDED.read_text())["figures"]:
            yield Figure(**figure)


def measured() -> Iterator[Figure]:
    """Measure all figures on the device of this machine."""
    for horizon, most in TARGETS.items():
        problem = _problem(DP, LOANS, horizon)
        yield _figure(f"CUDA, DP values, T = {horizon}", problem, None, most)
        yield _figure(f"CUDA, DP policy on the host, T = {horizon}", problem, horizon, 3 * most)
    yield _figure("CUDA, EqOpp values, T = 200", _problem(EQ_OPP, UNIFORM, 200), None, 1.0)
    ten = _problem(DP, TEN_LEVELS, 500)
    yield _figure("CUDA, ten cost levels, values, T = 500", ten, None, None)
    yield _figure("CUDA, ten cost levels, policy on the host, T = 500", ten, 500, None)


def cross_over() -> Iterator[tuple[str, int, float, float]]:
    """Seconds of a whole policy on the processors and on the device, by horizon."""
    for prop, horizons in ((DP, range(50, 401, 50)), (EQ_OPP, range(20, 101, 20))):
        for horizon in horizons:
            spec: dict[str, Any] = {"prop": prop, "inputs": UNIFORM, "horizon": horizon}
            seconds = [
                _median(lambda b=backend, s=spec: fs.synthesize(backend=b, **s))
                for backend in ("cpu", "cuda")
            ]
            yield prop.kind, horizon, seconds[0], seconds[1]


def policies() -> Iterator[dict[str, float]]:
    """Seconds, bytes on the device and expected cost of whole policies, for the picture."""
    import cupy

    pool = cupy.get_default_memory_pool()
    for horizon in SERIES:
        pool.free_all_blocks()
        problem = _problem(DP, LOANS, horizon)
        seconds = _median(lambda p=problem, t=horizon: cuda.solve(p, record=t, progress=None), 3)
        cost = cuda.solve(problem, record=None, progress=None).value
        yield {"horizon": horizon, "seconds": seconds, "bytes": pool.total_bytes(), "cost": cost}


def _problem(prop: fs.Property, inputs: fs.InputModel, horizon: int) -> Problem:
    return make_problem(Specification.of(prop, inputs, horizon=horizon))


def _figure(name: str, problem: Problem, record: int | None, most: float | None) -> Figure:
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    seconds = _median(lambda: cuda.solve(problem, record=record, progress=None))
    peak = pool.total_bytes() / 1e9
    return Figure(
        name,
        f"{seconds * 1e3:.1f} ms",
        "" if most is None else f"≤ {most * 1e3:.0f} ms",
        most is None or seconds <= most,
        f"{peak:.2f} GB of device memory",
    )


def _median(run: Callable[[], Any], repeats: int = 5) -> float:
    run()
    return statistics.median(_seconds(run) for _ in range(repeats))


def _seconds(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def main() -> None:
    """Measure on the device, and write the figures to the file named, or to ``cuda.json``."""
    require_device()
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    figures = []
    for figure in measured():
        print(figure.name, figure.measured, figure.target, figure.baseline, flush=True)
        figures.append(asdict(figure))
    series = []
    for point in policies():
        print(point, flush=True)
        series.append(point)
    compared = []
    for kind, horizon, processors, device in cross_over():
        print(
            f"{kind} T = {horizon}: {processors * 1e3:.1f} ms, on the device {device * 1e3:.1f} ms"
        )
        compared.append({"property": kind, "horizon": horizon, "cpu": processors, "cuda": device})
    data = {"device": name, "figures": figures, "policies": series, "cross_over": compared}
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDED
    target.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
