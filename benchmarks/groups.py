"""Figures of three groups: how long a table takes, and how large it is."""

from __future__ import annotations

from collections.abc import Iterator

import fairshield as fs
from benchmarks.measure import Figure, best_of, peak_megabytes

DP = fs.DemographicParity("0.1")
THREE = fs.InputModel.agnostic({"a": 0.3, "b": 0.3, "c": 0.4})


def three_groups() -> Iterator[Figure]:
    """Figures of synthesis and verification of a window of thirty decisions."""
    seconds = best_of(lambda: fs.synthesize(DP, THREE, horizon=30), 5)
    policy = fs.synthesize(DP, THREE, horizon=30)
    states = policy.decisions.n_states
    yield Figure(
        "three groups, DP T = 30, whole synthesize",
        f"{seconds * 1e3:.0f} ms, {states / seconds / 1e6:.0f} M states/s",
        "≤ 5 s",
        seconds <= 5,
        f"{states:,} states, policy {policy.nbytes / 1e6:.1f} MB",
    )
    peak = peak_megabytes('fs.DemographicParity("0.1")', 30, tuple("abc"))
    yield Figure("three groups, DP T = 30, peak extra memory", f"{peak:.0f} MB", "", True)
    seconds = best_of(lambda: fs.verify(policy), 3)
    yield Figure("three groups, DP T = 30, verify", f"{seconds:.2f} s", "≤ 5 s", seconds <= 5)
