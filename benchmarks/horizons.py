"""Time, memory and expected cost by horizon, drawn for the README.

``python -m benchmarks.horizons`` measures exact tables on this machine and long policies, takes
exact tables on a GPU from ``cuda.json`` where that was measured, and writes ``horizons.json`` and
the picture.  ``--draw`` draws what was measured before.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import fairshield as fs
from benchmarks.long import DP, biased
from benchmarks.measure import HERE, peak_megabytes
from fairshield.analysis.simulate import simulate
from fairshield.reports.plots import BLUE, GREY, INK, ORANGE

GAP = 0.28
EXACT = (10, 20, 50, 100, 200, 300, 400, 500)
LONG = (150, 300, 1000, 3000, 10**4, 10**5, 10**6)
GREEN = "#009E73"
PICTURE = HERE.parent / "docs" / "images" / "horizons.png"


def measured(horizon: int, method: Literal["exact", "long"]) -> dict[str, float]:
    """Seconds until the first decision, peak memory in bytes, and expected cost."""
    inputs = biased(GAP)

    def make() -> fs.Policy:
        return fs.synthesize(DP, inputs, horizon=horizon, method=method)

    make()
    begin = time.perf_counter()
    make()
    seconds = time.perf_counter() - begin
    tracemalloc.start()
    policy = make()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    if policy.method != "long" and horizon >= 100:
        # Tables with rows of varying length are allocated for the worst case; little of it is used.
        peak = int(1e6 * peak_megabytes('fs.DemographicParity("0.1")', horizon))
    point = {"horizon": horizon, "seconds": seconds, "bytes": peak, "cost": policy.expected_cost}
    if policy.method == "long":
        windows = max(min(2_000_000 // horizon, 400), 4)
        runs = simulate(policy, n_windows=windows, rng=np.random.default_rng(horizon))
        assert runs.n_unfair == 0
        point |= {"cost": runs.mean_paid, "error": runs.paid_error, "windows": windows}
    return point


def measure() -> dict[str, Any]:
    """Measure all points of the picture."""
    found: dict[str, Any] = {"exact": [], "long": []}
    series: tuple[tuple[Literal["exact", "long"], tuple[int, ...]], ...]
    series = (("exact", EXACT), ("long", LONG))
    for method, horizons in series:
        for horizon in horizons:
            found[method].append(measured(horizon, method))
            print(method, found[method][-1], flush=True)
    return found


def draw(points: dict[str, Any], path: Path) -> None:
    """Draw three panels on logarithmic axes."""
    device = HERE / "cuda.json"
    series = [
        ("exact, two cores", points["exact"], BLUE, "o"),
        ("long", points["long"], ORANGE, "s"),
    ]
    if device.exists():
        recorded = json.loads(device.read_text())
        name = f"exact, {recorded['device'].removeprefix('NVIDIA ')}"
        series.insert(1, (name, recorded["policies"], GREEN, "^"))
    with mpl.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(11, 3.8), layout="constrained")
        panels = figure.subplots(1, 3)
        for panel, key, title in zip(
            panels,
            ("seconds", "bytes", "cost"),
            ("seconds to make the policy", "megabytes at the peak", "cost of a window"),
            strict=True,
        ):
            for name, found, colour, marker in series:
                known = [p for p in found if key in p]
                scale = 1e-6 if key == "bytes" else 1.0
                panel.loglog(
                    [p["horizon"] for p in known], [scale * p[key] for p in known],
                    color=colour, marker=marker, ms=5, lw=1.6, label=name,
                )  # fmt: skip
            panel.set_title(title, loc="left", color=INK)
            panel.set_xlabel("decisions in the window")
            panel.grid(color=GREY, alpha=0.25, lw=0.6)
        panels[2].legend(frameon=False, loc="upper left")
        figure.savefig(path, dpi=150)


def main() -> None:
    """Measure unless told to draw only."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.horizons")
    parser.add_argument("--draw", action="store_true", help="draw what was measured before")
    stored = HERE / "horizons.json"
    if not parser.parse_args().draw:
        stored.write_text(json.dumps(measure(), indent=1) + "\n")
    draw(json.loads(stored.read_text()), PICTURE)


if __name__ == "__main__":
    main()
