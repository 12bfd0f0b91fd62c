"""Figures of long windows: cost beside the exact optimum, time and memory."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import fairshield as fs
from benchmarks.measure import Figure, best_of, in_new_process
from fairshield.analysis.simulate import simulate
from fairshield.policy import Specification
from fairshield.policy.long import PriceDecisions
from fairshield.runtime.compiled import decide_batch
from fairshield.runtime.requests import Requests
from fairshield.synthesis import least_cost

DP = fs.DemographicParity("0.1")
GAPS = (0.285, 0.14, 0.04)
SHARE = 0.325
QUALIFIED = (0.5, 0.6)
RUNS = 2000
MILLION = 10**6


def biased(gap: float, *, levels: int = 1) -> fs.InputModel:
    """Input model with acceptance rates ``gap`` apart around one half.

    With one level all costs are 1.  With several, costs go from 0 to 0.5 like the confidence of a
    classifier, which is lower for the proposal that it makes more rarely.
    """
    table = {}
    for group, share, rate in (("a", SHARE, 0.5 - gap / 2), ("b", 1 - SHARE, 0.5 + gap / 2)):
        for proposed, chance in ((True, rate), (False, 1 - rate)):
            weights = np.exp(-np.arange(levels) * (0.15 if proposed == (rate > 0.5) else 0.35))
            for i, weight in enumerate(weights / weights.sum()):
                cost = 1.0 if levels == 1 else 0.5 * (i + 0.5) / levels
                table[group, proposed, cost] = share * chance * float(weight)
    return fs.InputModel.from_table(table)


def with_outcomes(inputs: fs.InputModel, qualified: tuple[float, float]) -> fs.InputModel:
    """The same input model, with this share of relevant people in each group."""
    outcomes = np.empty_like(inputs.probs)
    outcomes[0], outcomes[1] = qualified
    return fs.InputModel(inputs.groups, inputs.levels, inputs.probs, outcomes, inputs.edges)


class Estimate(NamedTuple):
    """A mean over windows and its standard error."""

    mean: float
    error: float


def long_cost(policy: fs.Policy, inputs: fs.InputModel, runs: int, seed: int) -> Estimate:
    """Estimate of the cost of windows: paid before the endgame, then exactly expected.

    The amount by which the proposals alone exceed the bound is a control variate: it explains most
    of the variance, and its mean is known from many more draws.
    """
    rng, first = np.random.default_rng(seed), policy.horizon - policy.decisions.endgame
    table = inputs.table(1)
    total, alone = np.empty(runs), np.empty(runs)
    for run in range(runs):
        group, proposed, level, _ = table.draw(rng.random(first), None)
        costs = table.levels[level]
        asked = Requests(group, proposed, level.astype(np.int32), costs, np.ones(first, bool))
        accepted, at = decide_batch(policy, 0, (0, 0, 0, 0), asked)
        rest = policy.decisions.endgame_at(first, at).endgame.policy.expected_cost
        total[run] = costs[accepted != proposed].sum() + rest
        seen = np.bincount(group * 2 + proposed, minlength=4)
        alone[run] = _excess(seen[None])[0]
    shares = table.probs[0].sum(axis=2).ravel()
    expected = _excess(rng.multinomial(first, shares, size=2_000_000)).mean()
    spread = alone.var()
    slope = np.cov(total, alone)[0, 1] / spread if spread > 0 else 0.0
    adjusted = total - slope * (alone - expected)
    return Estimate(float(adjusted.mean()), float(adjusted.std(ddof=1) / math.sqrt(runs)))


def _excess(seen: NDArray[np.int64]) -> NDArray[np.float64]:
    """People of group a by whom the proposals come near to exceeding the bound, or exceed it."""
    reject_a, accept_a, reject_b, accept_b = seen.T
    n_a, n_b = reject_a + accept_a, reject_b + accept_b
    gap = np.abs(accept_a / np.maximum(n_a, 1) - accept_b / np.maximum(n_b, 1))
    return np.maximum(gap - 0.09, 0.0) * n_a


def long_against_exact() -> Iterator[Figure]:
    """Figures of the expected cost of long windows beside the least possible."""
    for horizon in (200, 300, 1000):
        for levels in (1, 10):
            for gap in GAPS:
                inputs = biased(gap, levels=levels)
                exact = least_cost(Specification.of(DP, inputs, horizon=horizon))
                policy = fs.synthesize(DP, inputs, horizon=horizon, method="long")
                assert isinstance(policy.decisions, PriceDecisions)
                runs = RUNS if gap > 0.1 else 3 * RUNS
                found = long_cost(policy, inputs, runs, seed=horizon)
                ratio, error = found.mean / exact, found.error / exact
                costs = "cost 1" if levels == 1 else f"{levels} costs"
                yield Figure(
                    f"long against exact, DP T = {horizon}, gap {gap}, {costs}",
                    f"{ratio:.4f} ± {error:.4f}× ({found.mean:.4g})",
                    "≤ 1.03×",
                    ratio <= 1.03,
                    f"exact {exact:.4g}; {runs} windows",
                )


def long_anytime() -> Iterator[Figure]:
    """Figures for properties that must hold at every moment, by simulation."""
    cases: tuple[tuple[str, fs.Property, int], ...] = (
        ("EqOpp", fs.EqualOpportunity("0.1"), 150),
        ("EqOpp from 20 people on", fs.EqualOpportunity("0.1", min_support=20), 150),
        ("rates in [0.4, 0.6]", fs.BoundedRates("0.4", "0.6"), 300),
    )
    for name, prop, horizon in cases:
        for levels in (1, 10):
            for gap in GAPS:
                inputs = biased(gap, levels=levels)
                if prop.relevant_outcome is not None:
                    inputs = with_outcomes(inputs, QUALIFIED)
                exact = least_cost(Specification.of(prop, inputs, horizon=horizon))
                policy = fs.synthesize(prop, inputs, horizon=horizon, method="long", endgame=20)
                rng = np.random.default_rng(horizon)
                found = simulate(policy, n_windows=RUNS // 2, rng=rng)
                ratio, error = found.mean_paid / exact, found.paid_error / exact
                costs = "cost 1" if levels == 1 else f"{levels} costs"
                yield Figure(
                    f"long against exact, {name}, T = {horizon}, gap {gap}, {costs}",
                    f"{ratio:.3f} ± {error:.3f}× ({found.mean_paid:.4g})",
                    "≤ 1.1×",
                    ratio <= 1.1 and found.n_unfair == 0,
                    f"exact {exact:.4g}; {RUNS // 2} windows",
                )


MEMORY = """
import numpy as np, tracemalloc
import fairshield as fs
from benchmarks.long import DP, biased
small = fs.synthesize(DP, biased(0.285), horizon=2000, method="long")
fs.Shield(small).decide_many(["a", "b"] * 1000, [True, False] * 1000)
del small
tracemalloc.start()
policy = fs.synthesize(DP, biased(0.285), horizon=10**6)
shield = fs.Shield(policy)
rng = np.random.default_rng(0)
for _ in range(1000):
    groups = np.where(rng.random(1000) < 0.325, "a", "b")
    shield.decide_many(groups, rng.random(1000) < 0.5)
assert shield.remaining == 0 and DP.holds(shield.counts)
print(tracemalloc.get_traced_memory()[1] / 1e6, policy.nbytes / 1e6)
"""


def long_windows() -> Iterator[Figure]:
    """Figures of a window of a million decisions: latency, batches, memory."""
    policy = fs.synthesize(DP, biased(0.285), horizon=MILLION)
    assert isinstance(policy.decisions, PriceDecisions)
    rng = np.random.default_rng(1)
    groups = np.where(rng.random(MILLION) < SHARE, "a", "b")
    proposed = rng.random(MILLION) < np.where(groups == "a", 0.3575, 0.6425)
    before, inside, solve = _latencies(policy, groups, proposed)
    yield Figure(
        "long, T = 10⁶, one decision before the endgame", f"{before:.2f} µs", "≤ 5 µs", before <= 5
    )
    yield Figure(
        "long, T = 10⁶, one decision in the endgame",
        f"{inside:.2f} µs; solved in {solve:.1f} ms",
        "≤ 5 µs; ≤ 50 ms",
        inside <= 5 and solve <= 50,
    )
    seconds = best_of(lambda: fs.Shield(policy).decide_many(groups, proposed), 5)
    yield Figure("long, 10⁶ decisions, batch", f"{seconds:.2f} s", "≤ 2 s", seconds <= 2)
    peak, held = map(float, in_new_process(MEMORY).split())
    yield Figure(
        "long, T = 10⁶, memory at the peak, endgame included",
        f"{peak:.0f} MB",
        "≤ 50 MB",
        peak <= 50,
        f"policy {held:.1f} MB",
    )


def _latencies(
    policy: fs.Policy, groups: NDArray[np.str_], proposed: NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Median microseconds before and in the endgame, and milliseconds of solving it."""
    people, said = groups.tolist(), proposed.tolist()
    first = policy.horizon - policy.decisions.endgame
    before: list[int] = []
    inside: list[int] = []
    solving: list[float] = []
    for turn in range(20):
        shield = fs.Shield(policy)
        # Other people each time, so that a new endgame is solved.
        skipped = first - 5000 - turn
        shield.decide_many(groups[turn : turn + skipped], proposed[turn : turn + skipped])
        for i in range(policy.horizon - skipped):
            begin = time.perf_counter_ns()
            shield.decide(people[i], proposed=said[i])
            took = time.perf_counter_ns() - begin
            place = skipped + i
            if place == first:
                solving.append(took / 1e6)
            else:
                (before if place < first else inside).append(took)
    return statistics.median(before) / 1e3, statistics.median(inside) / 1e3, max(solving[1:])


def exact_values() -> Iterator[Figure]:
    """Figures of the exact value at a large horizon."""
    inputs = biased(0.285)
    seconds = best_of(lambda: least_cost(Specification.of(DP, inputs, horizon=500)), 3)
    yield Figure(
        "exact DP values, T = 500, two cores", f"{seconds:.2f} s", "≤ 1.5 s", seconds <= 1.5
    )
