"""Draw a picture."""

import sys
from pathlib import Path

import numpy as np

import fairshield as fs
from fairshield.reports.plots import Comparison, DrawnWindows, plot_running_bias

prop, steps = fs.DemographicParity("0.2"), np.arange(11)
counters = np.stack([steps, steps // 2, steps, steps // 3], axis=-1)[None]
side = DrawnWindows(prop=prop, counters=counters, unfair=0, windows=1)
picture = Comparison(
    title="one window",
    groups=("a", "b"),
    before=side,
    after=side,
    overruled_at=np.zeros(10, np.int64),
    notes=("nobody is overruled",),
)
plot_running_bias([picture], Path("bias.png"))
sys.stdout.write(f"a picture of {Path('bias.png').stat().st_size} bytes")
