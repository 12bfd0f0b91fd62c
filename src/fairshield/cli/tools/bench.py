"""``bench`` measures in a minute how fast this machine synthesises and decides."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from fairshield.base.counts import Group
from fairshield.inputs import InputModel
from fairshield.policy import Policy
from fairshield.runtime.shield import Shield
from fairshield.spec import DemographicParity, Property
from fairshield.synthesis import synthesize

_REPEATS = 3
_MIN_SECONDS = 0.2
"""Single decisions are timed for at least this long."""


@dataclass(frozen=True, kw_only=True)
class BenchRow:
    """BenchRow holds the measurements of one horizon and number of threads.

    ``seconds`` is the best of a few syntheses, policy included; ``decide_us`` the median time of
    one ``Shield.decide``, over whole windows.
    """

    horizon: int
    threads: int
    seconds: float
    states: int
    artifact_bytes: int
    decide_us: float

    @property
    def ns_per_state(self) -> float:
        """Time of the synthesis by the states it visits."""
        return self.seconds / self.states * 1e9


def bench(
    horizons: Sequence[int], threads: Sequence[int], *, prop: Property | None = None
) -> Iterator[BenchRow]:
    """Measure ``prop`` (default: demographic parity within 0.1), one row at a time."""
    prop = DemographicParity("0.1") if prop is None else prop
    inputs = InputModel.agnostic({"a": 0.5, "b": 0.5})
    synthesize(prop, inputs, horizon=8)  # compiles, or loads what was compiled
    for horizon in horizons:
        for n in threads:
            yield _row(prop, inputs, horizon, n)


def _row(prop: Property, inputs: InputModel, horizon: int, threads: int) -> BenchRow:
    def make() -> Policy:
        return synthesize(prop, inputs, horizon=horizon, threads=threads)

    policy = make()
    return BenchRow(
        horizon=horizon,
        threads=threads,
        seconds=min(_seconds(make) for _ in range(_REPEATS)),
        states=policy.decisions.n_states or 0,
        artifact_bytes=_size_on_disk(policy),
        decide_us=_decide_us(policy),
    )


def _seconds(work: Callable[[], object]) -> float:
    begin = perf_counter()
    work()
    return perf_counter() - begin


def _size_on_disk(policy: Policy) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.shield"
        policy.save(path)
        return path.stat().st_size


def _decide_us(policy: Policy) -> float:
    """Median over windows of the mean time of a decision."""
    rng = np.random.default_rng(0)
    groups = [policy.groups[i] for i in rng.integers(2, size=policy.horizon)]
    proposed = rng.integers(2, size=policy.horizon).astype(bool).tolist()
    windows: list[float] = []
    while sum(windows) < _MIN_SECONDS or len(windows) < _REPEATS:
        windows.append(_seconds(lambda: _decide_window(Shield(policy), groups, proposed)))
    return median(windows) / policy.horizon * 1e6


def _decide_window(shield: Shield, groups: list[Group], proposed: list[bool]) -> None:
    decide = shield.decide
    for group, said in zip(groups, proposed, strict=True):
        decide(group, proposed=said)
