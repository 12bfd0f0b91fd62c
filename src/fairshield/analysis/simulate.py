"""``simulate`` decides thousands of random windows at once, with and without the shield.

Both decide the same requests.  Whether a policy is fair on requests that the input model thinks
impossible is the subject of :mod:`fairshield.analysis.verify`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.compiler import jit
from fairshield.base.counts import is_whole
from fairshield.base.errors import InvalidValueError, check_kind
from fairshield.base.renamed import Renamed
from fairshield.base.words import summary
from fairshield.inputs import Inputs
from fairshield.policy import Policy
from fairshield.policy.jitable import accepted_by, answer, count, count_up_to
from fairshield.runtime.compiled import decide_batches
from fairshield.runtime.judging import judged
from fairshield.runtime.requests import Requests
from fairshield.spec import Finding, widest_finding

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_WINDOWS_AT_ONCE, _DECISIONS_AT_ONCE = 4096, 1 << 22
_BATCH = 1 << 18
"""Decisions in one batch: the counters after each of them are in memory at once."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulation holds what happened in each simulated window.

    Attributes
    ----------
    paid, overruled
        ``(windows,)``: what overruling cost, people overruled.
    fair, fair_unshielded
        ``(windows,)``: whether the property held at the horizon and at every checkpoint.
    exempt
        ``(windows,)``: whether the property bound nothing whenever it had to hold; who came
        decides that, so that it is the same with and without the shield.
    bias, bias_unshielded
        ``(windows,)``: at the horizon; 0 below support.
    widest, widest_unshielded
        The widest pair of groups at any horizon or checkpoint, and what was measured of it.
    overruled_at
        ``(horizon, G)``: people overruled by position in the window and group.
    counters, counters_unshielded
        ``(kept windows, horizon + 1, 2 G)``: running ``n_a, k_a, n_b, k_b, …``, start included.
    """

    paid: Floats
    overruled: Ints
    fair: NDArray[np.bool_]
    fair_unshielded: NDArray[np.bool_]
    exempt: NDArray[np.bool_]
    bias: Floats
    bias_unshielded: Floats
    widest: Finding
    widest_unshielded: Finding
    overruled_at: Ints
    counters: Ints
    counters_unshielded: Ints

    costs = Renamed("paid")
    mean_cost = Renamed("mean_paid")
    cost_error = Renamed("paid_error")
    unfair_windows = Renamed("n_unfair")
    unfair_windows_unshielded = Renamed("n_unfair_unshielded")
    exempt_windows = Renamed("n_exempt")

    __repr__ = summary

    def __str__(self) -> str:
        n = self.n_exempt
        exempt = f", {n:,} exempt, as nothing bound" if n else ""
        return (
            f"{self.n_windows:,} windows of {len(self.overruled_at):,} decisions: "
            f"{self.n_unfair:,} unfair, {self.n_unfair_unshielded:,} without the "
            f"shield{exempt}; {self.overruled_share:.1%} overruled, mean cost {self.mean_paid:.4g}"
        )

    @property
    def n_windows(self) -> int:
        """Windows simulated."""
        return len(self.paid)

    @property
    def n_unfair(self) -> int:
        """Windows in which the shielded decisions were unfair; 0 if fairness is guaranteed."""
        return int((~self.fair).sum())

    @property
    def n_unfair_unshielded(self) -> int:
        """Windows in which the proposals, all followed, would have been unfair."""
        return int((~self.fair_unshielded).sum())

    @property
    def n_exempt(self) -> int:
        """Windows in which the property bound nothing; they are not unfair, nor fair."""
        return int(self.exempt.sum())

    @property
    def overruled_share(self) -> float:
        """Share of decisions overruled."""
        return float(self.overruled.mean() / len(self.overruled_at))

    @property
    def mean_paid(self) -> float:
        """What overruling cost in a window, on average."""
        return float(self.paid.mean())

    @property
    def paid_error(self) -> float:
        """Standard error of :attr:`mean_paid`."""
        return float(self.paid.std(ddof=1) / np.sqrt(self.n_windows)) if self.n_windows > 1 else 0.0


def simulate(
    policy: Policy,
    *,
    n_windows: int,
    rng: np.random.Generator,
    inputs: Inputs | None = None,
    keep: int = 0,
) -> Simulation:
    """Draw requests from ``inputs`` (default: the policy's own model) and decide them.

    The first ``keep`` windows also record their running counters.
    """
    check_kind(policy, Policy, "simulate needs a policy for one window: make one with synthesize")
    check_kind(rng, np.random.Generator, "rng must be a Generator, as numpy.random.default_rng(0)")
    if not is_whole(n_windows) or n_windows < 1:
        raise InvalidValueError(
            f"n_windows must be a whole number of at least 1, got {n_windows!r}"
        )
    inputs = policy.inputs if inputs is None else inputs
    if inputs.groups != policy.groups:
        raise InvalidValueError(f"the inputs have groups {inputs.groups}, not {policy.groups}")
    simulate_some = _simulate_tables if policy.decisions.tabled else _simulate_batches
    draw = _Sampler(policy, inputs)
    horizon, stops = policy.horizon, np.array(policy.due)
    costs, overruled = np.zeros(n_windows), np.zeros(n_windows, np.int64)
    width = 2 * len(policy.groups)
    ends = np.zeros((2, n_windows, len(stops), width), np.int64)
    at = np.zeros((horizon, len(policy.groups)), np.int64)
    keep = min(keep, n_windows)
    paths = np.zeros((2, keep, horizon + 1, width), np.int64)
    at_once = max(min(_WINDOWS_AT_ONCE, _DECISIONS_AT_ONCE // horizon), 1)
    for first in range(0, n_windows, at_once):
        last = min(first + at_once, n_windows)
        requests = rng.random((last - first, horizon))
        outcomes = rng.random((last - first if policy.labelled else 0, horizon))
        kept = paths[:, first : max(first, min(last, keep))]
        simulate_some(
            policy, draw, requests, outcomes, stops, costs[first:last], overruled[first:last],
            ends[:, first:last], at, kept,
        )  # fmt: skip
    start = np.array(policy.start.numbers())
    ends += start
    paths += start
    # With the shield and without, at each moment when the property is due.
    due = [side.reshape(n_windows, len(stops), -1, 2) for side in ends]
    said = [judged(policy.prop, counters) for counters in due]
    (fair, unshielded), (end, end_unshielded) = (
        (one.holds.all(axis=1) for one in said), (one.bias[:, -1] for one in said)
    )  # fmt: skip
    return Simulation(
        costs, overruled, fair, unshielded, ~said[0].binds.any(axis=1), end, end_unshielded,
        _widest(policy, due[0]), _widest(policy, due[1]), at, paths[0], paths[1],
    )  # fmt: skip


def _simulate_tables(
    policy: Policy, draw: _Sampler, requests: Floats, outcomes: Floats, *out: Any
) -> None:
    at = np.zeros((2, 2 * len(policy.groups)), np.int64)
    _simulate(
        policy.decisions.tables, requests, outcomes, draw.cumulative, draw.relevant, draw.costs,
        draw.levels, at, *out,
    )  # fmt: skip


def _simulate_batches(
    policy: Policy, draw: _Sampler, requests: Floats, outcomes: Floats, stops: Ints, paid: Floats,
    overruled: Ints, ends: Ints, overruled_at: Ints, paths: Ints,
) -> None:  # fmt: skip
    """Simulate long policies some windows at a time: each window solves its own endgame."""
    few = max(_BATCH // policy.horizon, 1)
    for first in range(0, len(requests), few):
        part = slice(first, first + few)
        _simulate_batch(
            policy, draw, requests[part], outcomes[part], stops, paid[part], overruled[part],
            ends[:, part], overruled_at, paths[:, part],
        )  # fmt: skip


def _simulate_batch(
    policy: Policy, draw: _Sampler, requests: Floats, outcomes: Floats, stops: Ints, paid: Floats,
    overruled: Ints, ends: Ints, overruled_at: Ints, paths: Ints,
) -> None:  # fmt: skip
    groups, proposed, level, chance = draw.table.draw(requests, policy.prop.counting.outcome)
    relevant = outcomes < chance if policy.labelled else np.ones(requests.shape, bool)
    levels, costs = draw.levels[level].astype(np.int32), draw.costs[level]
    asked = Requests(groups, proposed, levels, costs, relevant)
    nobody = (0, 0) * len(policy.groups)
    accepted, _ = decide_batches(policy, 0, nobody, asked)
    differ = accepted != proposed
    paid[:], overruled[:] = np.where(differ, costs, 0.0).sum(axis=1), differ.sum(axis=1)
    for g in range(len(policy.groups)):
        overruled_at[:, g] += (differ & (groups == g)).sum(axis=0)
    for i, final in enumerate((accepted, proposed)):
        counters = asked.gained(final, policy.prop.counting, len(policy.groups))
        ends[i] = counters[:, stops]
        paths[i] = counters[: paths.shape[1]]


class _Sampler:
    """_Sampler holds the cells ``(group, proposal, level)`` of an input model, for drawing."""

    def __init__(self, policy: Policy, inputs: Inputs) -> None:
        table = self.table = inputs.table(policy.horizon)
        steps = len(table.probs)
        self.cumulative = table.cumulative()
        self.costs = table.levels
        self.levels = policy.decisions.levels_of(table.levels)
        relevant = table.relevance(policy.prop.counting.outcome)
        self.relevant = relevant.reshape(steps, -1)


def _widest(policy: Policy, counters: Ints) -> Finding:
    found = widest_finding(policy.prop, policy.groups, counters.reshape(-1, len(policy.groups), 2))
    assert found is not None, "there is at least one window"
    return found


@jit()
def _simulate(
    tables: Any, requests: Floats, outcomes: Floats, cumulative: Floats, relevant: Floats,
    costs: Floats, levels: Any, at: Any, stops: Any, paid: Floats, overruled: Any, ends: Any,
    overruled_at: Any, paths: Any,
) -> None:  # fmt: skip
    """Simulate some windows; ``at`` has room for the counters with and without the shield."""
    n_levels, shielded, unshielded = len(costs), at[0], at[1]
    for window in range(len(requests)):
        at[:] = 0
        stop = 0
        for t in range(requests.shape[1]):
            i = t if len(cumulative) > 1 else 0
            cell = min(count_up_to(cumulative[i], requests[window, t]), cumulative.shape[1] - 1)
            g, r, c = cell // (2 * n_levels), cell // n_levels % 2, cell % n_levels
            code = answer(tables, t, shielded, g)[2]
            accept: Any = np.int64(accepted_by(tables, code, t, g, r == 1, levels[c]))
            if accept != r:
                paid[window] += costs[c]
                overruled[window] += 1
                overruled_at[t, g] += 1
            told = not tables.labelled or outcomes[window, t] < relevant[i, cell]
            count(tables, shielded, g, accept, told)
            count(tables, unshielded, g, r, told)
            if t + 1 == stops[stop]:
                _write(ends, window, stop, at)
                stop = min(stop + 1, len(stops) - 1)
            if window < paths.shape[1]:
                _write(paths, window, t + 1, at)


@jit()
def _write(into: Any, window: int, place: int, at: Any) -> None:
    """``into[:, window, place] = at``, whose check of shapes takes seconds to compile."""
    for i in range(at.shape[0]):
        for j in range(at.shape[1]):
            into[i, window, place, j] = at[i, j]
