"""What a synthesis is said to need is what it takes, so that a refusal comes in time."""

from __future__ import annotations

import subprocess
import sys

import pytest

MEASURE = """
import re
import sys
from pathlib import Path
import numpy as np
import fairshield as fs
from fairshield.policy.layout import Layout
from fairshield.synthesis.memory import estimate_bytes

def resident(name):
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(name + r":\\s*(\\d+) kB", status)[1])

def forget_the_peak():
    # The compiler's would hide that of the synthesis.
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError as error:
        sys.exit(f"cannot reset the peak: {{error}}")

prop, horizon, levels = {prop}, {horizon}, {levels}
inputs = fs.InputModel(
    ("a", "b"), np.linspace(0.1, 1.0, levels), np.full((2, 2, levels), 0.25 / levels),
    np.full((2, 2, levels), 0.5),
)
fs.synthesize(prop, inputs, horizon=3, spread={spread})
forget_the_peak()
before = resident("VmRSS")
fs.synthesize(prop, inputs, horizon=horizon, spread={spread}, backend="cpu")
layout = Layout(horizon, prop.relevant_outcome is not None)
taken = resident("VmHWM") - before
print(taken, estimate_bytes(layout, levels, record=layout.horizon, spread={spread} != 1.0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("prop", "horizon", "levels", "spread"),
    [
        ('fs.DemographicParity("0.1")', 250, 1, 1.0),
        ('fs.DemographicParity("0.9")', 100, 10, 1.0),
        ('fs.EqualOpportunity("0.1")', 75, 1, 1.0),
        ('fs.EqualOpportunity("0.1")', 50, 1, 3.0),
    ],
)
def test_a_synthesis_takes_no_more_than_was_estimated(
    prop: str, horizon: int, levels: int, spread: float
) -> None:
    code = MEASURE.format(prop=prop, horizon=horizon, levels=levels, spread=spread)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if "cannot reset the peak" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    taken, estimated = map(int, done.stdout.split())
    # The allocator rounds, and keeps some of what it got.
    assert taken <= 1.1 * estimated + 4e6
