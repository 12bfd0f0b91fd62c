"""Thousands of windows at once, with and without the shield, on the same requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.compiler import jit
from fairshield.counts import GroupCount, is_whole
from fairshield.errors import InvalidValueError, check_kind
from fairshield.inputs import InputModel, InputSchedule
from fairshield.long import LongPolicy
from fairshield.many import ManyPolicy
from fairshield.policy import Policy
from fairshield.runtime.compiled import (
    PolicyTables,
    count_up_to,
    decide_batches,
    tables,
    verdict,
)
from fairshield.runtime.requests import Requests
from fairshield.spec import Finding, Property, widest_finding
from fairshield.words import summary

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_WINDOWS_AT_ONCE, _DECISIONS_AT_ONCE = 4096, 1 << 22
_BATCH = 1 << 18
"""Decisions of which the counters after each are held at once."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """What happened in each window.

    Attributes
    ----------
    costs, overruled
        ``(windows,)``: cost paid, people overruled.
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

    costs: Floats
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

    __repr__ = summary

    def __str__(self) -> str:
        n = int(self.exempt.sum())
        exempt = f", {n:,} exempt, as nothing bound" if n else ""
        return (
            f"{self.n_windows:,} windows of {len(self.overruled_at):,} decisions: "
            f"{self.unfair_windows:,} unfair, {self.unfair_windows_unshielded:,} without the "
            f"shield{exempt}; {self.overruled_share:.1%} overruled, mean cost {self.mean_cost:.4g}"
        )

    @property
    def n_windows(self) -> int:
        """Windows simulated."""
        return len(self.costs)

    @property
    def unfair_windows(self) -> int:
        """Windows in which the shielded decisions were unfair; 0 if fairness is guaranteed."""
        return int((~self.fair).sum())

    @property
    def unfair_windows_unshielded(self) -> int:
        """Windows in which the proposals, all followed, would have been unfair."""
        return int((~self.fair_unshielded).sum())

    @property
    def exempt_windows(self) -> int:
        """Windows in which the property bound nothing; they are not unfair, nor fair."""
        return int(self.exempt.sum())

    @property
    def overruled_share(self) -> float:
        """Share of decisions overruled."""
        return float(self.overruled.mean() / len(self.overruled_at))

    @property
    def mean_cost(self) -> float:
        """Mean cost of a window."""
        return float(self.costs.mean())

    @property
    def cost_error(self) -> float:
        """Standard error of :attr:`mean_cost`."""
        return (
            float(self.costs.std(ddof=1) / np.sqrt(self.n_windows)) if self.n_windows > 1 else 0.0
        )


def simulate(
    policy: Policy,
    *,
    n_windows: int,
    rng: np.random.Generator,
    inputs: InputModel | InputSchedule | None = None,
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
    simulate_some = _simulate_tables
    if isinstance(policy, (LongPolicy, ManyPolicy)):
        simulate_some = _simulate_batches
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
    fair = [_fair(policy, ends[i]) for i in (0, 1)]
    bias = [_bias(policy, ends[i][:, -1]) for i in (0, 1)]
    widest = [_widest(policy, ends[i]) for i in (0, 1)]
    paths += np.array([n for count in policy.start_counts() for n in count])
    return Simulation(
        costs, overruled, fair[0], fair[1], _exempt(policy, ends[0]), bias[0], bias[1], widest[0],
        widest[1], at, paths[0], paths[1],
    )  # fmt: skip


def _simulate_tables(
    policy: Policy, draw: _Sampler, requests: Floats, outcomes: Floats, *out: Any
) -> None:
    _simulate(
        tables(policy), requests, outcomes, draw.cumulative, draw.relevant, draw.costs,
        draw.levels, *out,
    )  # fmt: skip


def _simulate_batches(
    policy: Policy, draw: _Sampler, requests: Floats, outcomes: Floats, stops: Ints, paid: Floats,
    overruled: Ints, ends: Ints, overruled_at: Ints, paths: Ints,
) -> None:  # fmt: skip
    """Some windows at a time, as requests; each of a long policy has its own endgame."""
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
    groups, proposed, level, chance = draw.table.draw(requests, policy.prop.relevant_outcome)
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
        counters = asked.gained(final, len(policy.groups))
        ends[i] = counters[:, stops]
        paths[i] = counters[: paths.shape[1]]


class _Sampler:
    """Cells ``(group, proposal, level)`` of an input model, flattened for drawing."""

    def __init__(self, policy: Policy, inputs: InputModel | InputSchedule) -> None:
        table = self.table = inputs.table(policy.horizon)
        steps = len(table.probs)
        self.cumulative = table.cumulative()
        self.costs = table.levels
        self.levels = np.searchsorted(policy.edges, table.levels, side="left")
        relevant = table.relevance(policy.prop.relevant_outcome)
        self.relevant = relevant.reshape(steps, -1)


def _counters(policy: Policy, gained: Ints) -> list[GroupCount[Any]]:
    return [
        GroupCount(gained[..., 2 * g] + of.seen, gained[..., 2 * g + 1] + of.accepted)
        for g, of in enumerate(policy.start_counts())
    ]


def _fair(policy: Policy, ends: Ints) -> NDArray[np.bool_]:
    prop: Property = policy.prop
    return np.asarray(prop.holds_array(*_counters(policy, ends)).all(axis=1))


def _exempt(policy: Policy, ends: Ints) -> NDArray[np.bool_]:
    bound: NDArray[np.bool_] = policy.prop.binds_array(*_counters(policy, ends)).any(axis=1)
    return ~bound


def _widest(policy: Policy, ends: Ints) -> Finding:
    before = np.array(policy.start_counts())
    counters = ends.reshape(-1, len(policy.groups), 2) + before
    found = widest_finding(policy.prop, policy.groups, counters)
    assert found is not None, "there is at least one window"
    return found


def _bias(policy: Policy, gained: Ints) -> Floats:
    return policy.prop.bias_array(*_counters(policy, gained))


@jit()
def _simulate(
    tables: PolicyTables, requests: Floats, outcomes: Floats, cumulative: Floats, relevant: Floats,
    costs: Floats, levels: Any, stops: Any, paid: Floats, overruled: Any, ends: Any,
    overruled_at: Any, paths: Any,
) -> None:  # fmt: skip
    n_levels = len(costs)
    for window in range(len(requests)):
        # Not literals, for which the rule would be compiled another time.
        n_a = k_a = n_b = k_b = free_a = free_b = np.int64(0)
        stop = 0
        for t in range(requests.shape[1]):
            i = t if len(cumulative) > 1 else 0
            cell = min(count_up_to(cumulative[i], requests[window, t]), cumulative.shape[1] - 1)
            g, r, c = cell // (2 * n_levels), cell // n_levels % 2, cell % n_levels
            accept: Any = np.int64(verdict(tables, t, n_a, k_a, n_b, k_b, g, r == 1, levels[c]))
            if accept != r:
                paid[window] += costs[c]
                overruled[window] += 1
                overruled_at[t, g] += 1
            if not tables.labelled or outcomes[window, t] < relevant[i, cell]:
                if g == 0:
                    n_a, k_a, free_a = n_a + 1, k_a + accept, free_a + r
                else:
                    n_b, k_b, free_b = n_b + 1, k_b + accept, free_b + r
            if t + 1 == stops[stop]:
                _write(ends[0, window, stop], n_a, k_a, n_b, k_b)
                _write(ends[1, window, stop], n_a, free_a, n_b, free_b)
                stop = min(stop + 1, len(stops) - 1)
            if window < paths.shape[1]:
                _write(paths[0, window, t + 1], n_a, k_a, n_b, k_b)
                _write(paths[1, window, t + 1], n_a, free_a, n_b, free_b)


@jit()
def _write(out: Any, n_a: int, k_a: int, n_b: int, k_b: int) -> None:
    out[0], out[1], out[2], out[3] = n_a, k_a, n_b, k_b
