"""Figures of periodic shields: planning at the start of a period, whole runs, costs."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator

import numpy as np

import fairshield as fs
from benchmarks.measure import SKEWED, UNIFORM, Figure, in_new_process
from fairshield.periodic.closed import worst_cost_for_ever
from fairshield.periodic.compare import compare, make_policies
from fairshield.periodic.dynamic import Dynamic
from fairshield.periodic.perpetual import Perpetual
from fairshield.periodic.policy import PeriodicPolicy
from fairshield.periodic.runs import Outcome, Streams, decide_runs

DP, EQ_OPP = fs.DemographicParity("0.1"), fs.EqualOpportunity("0.1")
PERIOD, PERIODS = 50, 10


def starts(prop: fs.Property, inputs: fs.InputModel, periods: int, runs: int) -> list[fs.Counts]:
    """Counters of runs with a Dynamic shield after so many periods."""
    rng = np.random.default_rng(1)
    policy = Dynamic(prop, inputs, PERIOD)
    streams = Streams.drawn(prop, inputs, period=PERIOD, periods=periods, runs=runs, rng=rng)
    ends = decide_runs(policy, streams).ends[:, -1].tolist()
    return [fs.Counts({"a": (n_a, k_a), "b": (n_b, k_b)}) for n_a, k_a, n_b, k_b in ends]


def planning_times(policy: PeriodicPolicy, counts: list[fs.Counts]) -> tuple[float, float]:
    """Median and 99th percentile of planning a period, in milliseconds."""
    policy.window(counts[0], 1)
    times = []
    for start in counts:
        begin = time.perf_counter()
        policy.window(start, 1)
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times), float(np.quantile(times, 0.99))


def period_starts() -> Iterator[Figure]:
    """Figures of planning a period, from counters that occur in runs."""
    dynamic = Dynamic(DP, SKEWED, PERIOD)
    early, late = starts(DP, SKEWED, 1, 150), starts(DP, SKEWED, 40, 25) * 16
    median, tail = planning_times(dynamic, early)
    later, _ = planning_times(dynamic, late)
    yield Figure(
        "Dynamic, DP T = 50, re-synthesis",
        f"{median:.2f} ms, p99 {tail:.2f} ms",
        "≤ 1 ms, p99 ≤ 3 ms",
        median <= 1.0 and tail <= 3.0,
        f"after 40 periods {later:.2f} ms",
    )
    labelled = fs.InputModel.agnostic({"a": 0.325, "b": 0.675})
    median, tail = planning_times(
        Dynamic(EQ_OPP, labelled, PERIOD), starts(EQ_OPP, labelled, 3, 60)
    )
    yield Figure(
        "Dynamic, EqOpp T = 50, re-synthesis",
        f"{median:.1f} ms, p99 {tail:.1f} ms",
        "≤ 10 ms",
        median <= 10.0,
    )
    median, tail = planning_times(Perpetual(DP, SKEWED, PERIOD), early[:200])
    later, _ = planning_times(Perpetual(DP, SKEWED, PERIOD), late[:200])
    yield Figure(
        "Perpetual, DP T = 50, lookahead 2, a period",
        f"{median:.1f} ms, p99 {tail:.1f} ms",
        "≤ 60 ms",
        median <= 60.0,
        f"after 40 periods {later:.1f} ms",
    )


EXACT = """
import time, fairshield as fs
from benchmarks.measure import SKEWED
def resident(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024
def make():
    checkpoints = range(50, 500, 50)
    return fs.synthesize(fs.DemographicParity("0.1"), SKEWED, horizon=500, checkpoints=checkpoints)
fs.synthesize(fs.DemographicParity("0.1"), SKEWED, horizon=260)
begin = time.perf_counter()
policy = make()
print(time.perf_counter() - begin, resident("VmHWM"), policy.expected_cost)
"""


def exact_periodic() -> Iterator[Figure]:
    """Figures of planning all decisions of ten periods at once."""
    seconds, peak, cost = min(tuple(map(float, in_new_process(EXACT).split())) for _ in range(3))
    yield Figure(
        "Exact, DP T = 50 × 10 periods, synthesis",
        f"{seconds:.2f} s, process {peak:.0f} MB",
        "≤ 4 s, ≤ 1 GB",
        seconds <= 4 and peak <= 1000,
        f"expected cost {cost:.4f}",
    )


def periodic_runs() -> Iterator[Figure]:
    """Figures of a thousand runs of ten periods with all shields, and their costs."""
    rng = np.random.default_rng(0)
    streams = Streams.drawn(DP, SKEWED, period=PERIOD, periods=PERIODS, runs=1000, rng=rng)
    policies = make_policies(DP, SKEWED, period=PERIOD, periods=PERIODS)
    outcomes: dict[str, Outcome] = {}
    taken: dict[str, float] = {}
    for name, policy in policies.items():
        begin = time.perf_counter()
        outcomes[name] = decide_runs(policy, streams, progress=_Progress(name))
        taken[name] = time.perf_counter() - begin
    total = sum(taken.values())
    yield Figure(
        "1000 runs × 10 periods × 50, all shields, DP",
        f"{total:.0f} s",
        "≤ 60 s",
        total <= 60,
        ", ".join(f"{name} {seconds:.1f} s" for name, seconds in taken.items()),
    )
    costs = {name: outcome.paid.sum(axis=1) for name, outcome in outcomes.items()}
    ratio, error = _ratio(costs["perpetual"], costs["dynamic"])
    yield Figure(
        "cost of Perpetual against Dynamic, 1000 runs",
        f"{ratio:.4f} ± {error:.4f}×",
        "≤ 1.05×",
        ratio <= 1.05,
        ", ".join(
            f"{name} {cost.mean():.3f} ± {cost.std(ddof=1) / np.sqrt(len(cost)):.3f}"
            for name, cost in costs.items()
        ),
    )
    fair = {name: 100 * outcome.fair.all(axis=1).mean() for name, outcome in outcomes.items()}
    yield Figure(
        "Exact and Perpetual fair at every period end, 1000 runs",
        f"{fair['exact']:.1f} % and {fair['perpetual']:.1f} %",
        "100 %",
        bool(min(fair["exact"], fair["perpetual"]) == 100),
        ", ".join(f"{name} {share:.1f} %" for name, share in fair.items()),
    )


def _ratio(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Ratio of means over the same runs, and its standard error (delta method)."""
    ratio = ours.mean() / theirs.mean()
    residuals = ours - ratio * theirs
    return float(ratio), float(residuals.std(ddof=1) / np.sqrt(len(ours)) / theirs.mean())


class _Progress:
    """_Progress prints each tenth of the work to standard error."""

    def __init__(self, name: str) -> None:
        self._name, self._shown = name, -1

    def __call__(self, share: float) -> None:
        if int(10 * share) > self._shown:
            self._shown = int(10 * share)
            end = "\n" if self._shown == 10 else "\r"
            print(f"  {self._name}: {10 * self._shown} %", end=end, file=sys.stderr, flush=True)


def certificates() -> Iterator[Figure]:
    """Figures of how many counters have a certificate, of those that can be kept fair."""
    for bound, least in (("0.1", 0.98), ("0.2", 1.0)):
        prop, ahead, people = fs.DemographicParity(bound), 70, 30
        total = people + ahead
        always = fs.synthesize(prop, SKEWED, horizon=total, checkpoints=range(1, total))
        sustained = fs.spec.Sustained(prop)
        fair = kept = certified = 0
        for at in _counters(people):
            counts = fs.Counts({"a": at[:2], "b": at[2:]})
            if prop.holds(counts):
                fair += 1
                kept += always.guarantees(counts, at[0] + at[2])
                certified += sustained.holds(counts)
        yield Figure(
            f"certified, of counters of ≤ {people} people that can be kept fair, κ = {bound}",
            f"{certified:,} of {kept:,}",
            f"≥ {least:.0%}",
            certified >= least * kept,
            f"{fair:,} are fair",
        )


def _counters(people: int) -> Iterator[tuple[int, int, int, int]]:
    for t in range(1, people + 1):
        for n_a in range(t + 1):
            for k_a in range(n_a + 1):
                for k_b in range(t - n_a + 1):
                    yield n_a, k_a, t - n_a, k_b


def dearest_periods() -> Iterator[Figure]:
    """Figures of the dearest period: that of the optimal shield, and those found of the others."""
    for name, inputs in (("even", UNIFORM), ("biased", SKEWED)):
        policies = make_policies(DP, inputs, period=PERIOD, periods=PERIODS)
        rng = np.random.default_rng(2)
        streams = Streams.drawn(DP, inputs, period=PERIOD, periods=PERIODS, runs=1, rng=rng)
        rows = compare(policies, streams).rows[1:]
        found = {row.name: row.dearest_period or 0.0 for row in rows}
        worst = found["optimal"]
        fair = {kind: found[kind] for kind in ("exact", "dynamic", "perpetual")}
        yield Figure(
            f"dearest period, DP T = 50 × 10, {name} inputs: optimal",
            f"{worst:.3f}; " + ", ".join(f"{k} ≥ {v / worst:.2f}×" for k, v in fair.items()),
            "never above any of them",
            worst <= min(fair.values()) + 1e-9,
            f"static-fair {found['static-fair']:.3f}, static-bounded "
            f"{found['static-bounded']:.3f}, which do not keep the property",
        )


OPTIMAL = """
import sys, time, fairshield as fs
from benchmarks.measure import SKEWED
from fairshield.periodic import OptimalPeriodic
def resident(field):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024
prop, period, periods, even = {prop}, {period}, {periods}, {even}
inputs = fs.InputModel.agnostic({{"a": 0.5, "b": 0.5}}) if even else SKEWED
OptimalPeriodic(prop, inputs, 5, periods=3).outlook()
begin = time.perf_counter()
policy = OptimalPeriodic(prop, inputs, period, periods=periods)
policy.outlook()
print(time.perf_counter() - begin, resident("VmHWM"), policy.worst_period_cost)
"""


def optimal_periodic() -> Iterator[Figure]:
    """Figures of searching the least worst cost, and making the policy that has it."""
    tasks = (
        ("Optimal, DP T = 50 × 10 periods, κ = 0.1", 'fs.DemographicParity("0.1")', 50, 10, 60),
        ("Optimal, DP T = 10 × 12 periods, κ = 0.2", 'fs.DemographicParity("0.2")', 10, 12, 1),
    )
    for name, prop, period, periods, most in tasks:
        for even in (True, False):
            code = OPTIMAL.format(prop=prop, period=period, periods=periods, even=even)
            runs = [tuple(map(float, in_new_process(code).split())) for _ in range(2)]
            seconds, peak, worst = min(runs)
            yield Figure(
                f"{name}, {'even' if even else 'biased'}",
                f"{seconds:.2f} s, process {peak:.0f} MB",
                f"≤ {most} s, ≤ 2 GB",
                seconds <= most and peak <= 2000,
                f"worst period {worst:.4f}",
            )


FOR_EVER = (
    (5, "0.2", (0.5, 0.5, 0.5), 0, 16),
    (10, "0.1", (0.5, 0.5, 0.5), 0, 28),
    (10, "0.15", (0.5, 0.5, 0.5), 0, 20),
    (10, "0.2", (0.5, 0.5, 0.5), 0, 12),
    (10, "0.3", (0.5, 0.5, 0.5), 0, 10),
    (10, "0.2", (0.3, 0.5, 0.5), 0, 15),
    (10, "0.2", (0.5, 0.6, 0.4), 0, 15),
    (10, "0.2", (0.5, 0.7, 0.3), 0, 15),
    (10, "0.2", (0.3, 0.7, 0.4), 0, 20),
    (10, "0.2", (0.5, 0.5, 0.5), 5, 15),
    (10, "0.2", (0.5, 0.5, 0.5), 20, 20),
)
"""Period, bound, the share of group a and of each group's proposals that accept, ``min_support``,
and the periods that are swept."""


def for_ever() -> Iterator[Figure]:
    """Bounds on the least worst cost of a period where there is no last one."""
    for period, bound, (share, a, b), support, periods in FOR_EVER:
        parts = {"a": (share, a), "b": (1 - share, b)}
        inputs = fs.InputModel.from_table(
            {
                (g, r, 1.0): p * (q if r else 1 - q)
                for g, (p, q) in parts.items()
                for r in (False, True)
            }
        )
        prop = fs.DemographicParity(bound, min_support=support)
        begin = time.perf_counter()
        found = worst_cost_for_ever(prop, inputs, period=period, periods=periods)
        seconds = time.perf_counter() - begin
        yield Figure(
            f"For ever, T = {period}, κ = {bound}, a {share:g}, accepts {a:g} and {b:g}, "
            f"min_support {support}, m = {periods}",
            f"{found.lower:.4f} to {found.upper:.4f}",
            "reported",
            True,
            f"{seconds:.0f} s",
        )
