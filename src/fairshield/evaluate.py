r"""What a policy costs, and whom it burdens, computed exactly rather than sampled.

The distribution over counter states is pushed forward through the policy's own decisions, so the
answer is right for any policy and any input model, also one the policy was not made for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.codes import accepts
from fairshield.compiler import jit
from fairshield.errors import InvalidValueError, check_kind
from fairshield.inputs import InputModel, InputSchedule
from fairshield.layout import Layout
from fairshield.many import ManyPolicy
from fairshield.many import kernels as many
from fairshield.policy import Policy
from fairshield.runtime.compiled import PolicyTables, look_up, many_tables, tables
from fairshield.words import summary

Floats = NDArray[np.float64]
Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Expectations over one window.

    Attributes
    ----------
    cost_by_position
        ``(horizon,)``: expected cost of each decision.
    overruled
        ``(horizon, G)``: probability that the decision at this position overrules somebody of
        this group.
    """

    cost_by_position: Floats
    overruled: Floats

    __repr__ = summary

    def __str__(self) -> str:
        horizon, expected = len(self.cost_by_position), float(self.overruled.sum())
        return f"{horizon:,} decisions: expected cost {self.cost:.6g}, {expected:.4g} overruled"

    @property
    def cost(self) -> float:
        """Expected cost of the window."""
        return float(self.cost_by_position.sum())


def evaluate(
    policy: Policy,
    inputs: InputModel | InputSchedule | None = None,
    *,
    progress: Progress | None = None,
) -> Evaluation:
    """Exact expectations of ``policy`` if requests follow ``inputs`` (default: its own).

    ``progress`` is called with the share of the work done after each layer of states.
    """
    check_kind(policy, Policy, "evaluate needs a policy for one window: make one with synthesize")
    if policy.method != Policy.method:
        raise InvalidValueError(
            f"exact expectations need a table of all decisions, this policy is {policy.method}: "
            "simulate it instead"
        )
    inputs = policy.inputs if inputs is None else inputs
    if inputs.groups != policy.groups:
        raise InvalidValueError(f"the inputs have groups {inputs.groups}, not {policy.groups}")
    table = inputs.table(policy.horizon)
    relevant = table.relevance(policy.prop.relevant_outcome)
    levels = np.searchsorted(policy.edges, table.levels, side="left")
    cost = np.zeros(policy.horizon)
    overruled = np.zeros((policy.horizon, len(policy.groups)))
    push = _pusher(policy, table.probs, relevant, table.levels, levels, cost, overruled)
    for t in range(policy.horizon):
        push(t)
        if progress is not None:
            layout = policy.layout
            progress(replace(layout, horizon=t + 1).n_states / layout.n_states)
    return Evaluation(cost, overruled)


def _pusher(policy: Policy, *arrays: Any) -> Callable[[int], None]:
    """What pushes the distribution from layer ``t`` to the next; two layers are held."""
    if isinstance(policy, ManyPolicy):
        layers = np.zeros((2, policy.layout.states_of(policy.horizon)))
        sums = np.zeros(policy.layout.kinds, np.int64)
        at = np.zeros(2 * len(policy.groups), np.int64)
        push = partial(_push_forward_many, many_tables(policy), *arrays, layers, sums, at)
    else:
        starts = _block_starts(policy.layout)
        layers = np.zeros((2, int(starts[-1])))
        push = partial(_push_forward, tables(policy), policy.horizon, starts, *arrays, layers)
    layers[0, 0] = 1.0
    return push


def _block_starts(layout: Layout) -> NDArray[np.int64]:
    """Where the states of each ``n_a`` begin in a layer, and the end."""
    n_a = np.arange(layout.horizon + 1)
    most_b = layout.horizon - n_a
    pairs = (most_b + 1) * (most_b + 2) // 2 if layout.labelled else most_b + 1
    return np.concatenate(([0], np.cumsum((n_a + 1) * pairs)))


@jit()
def _place(labelled: bool, horizon: int, at: Any, n_a: int, k_a: int, n_b: int, k_b: int) -> int:
    """Where a state stands in a layer."""
    if labelled:
        return at[n_a] + (n_a + 1) * (n_b * (n_b + 1) // 2) + k_a * (n_b + 1) + k_b
    return at[n_a] + k_a * (horizon - n_a + 1) + k_b


@jit()
def _push_forward(
    tables: PolicyTables, horizon: int, at: Any, probs: Floats, relevant: Floats, costs: Floats,
    levels: Any, cost: Floats, overruled: Floats, layers: Floats, t: int,
) -> None:  # fmt: skip
    """From layer ``t`` to the next."""
    here, after = layers[t % 2], layers[1 - t % 2]
    labelled = tables.labelled
    i = t if len(probs) > 1 else 0
    for n_a in range(t + 1):
        for n_b in range(0 if labelled else t - n_a, t - n_a + 1):
            for k_a in range(n_a + 1):
                row = _place(labelled, horizon, at, n_a, k_a, n_b, np.int64(0))
                for k_b in range(n_b + 1):
                    mass = here[row + k_b]
                    if mass == 0.0:
                        continue
                    # Leaves the buffer empty for the layer after next.
                    here[row + k_b] = 0.0
                    for g in range(2):
                        code = look_up(tables, t, n_a, k_a, n_b, k_b, g)
                        m_a, m_b = n_a + 1 - g, n_b + g
                        reject = _place(labelled, horizon, at, m_a, k_a, m_b, k_b)
                        accept = _place(labelled, horizon, at, m_a, k_a + 1 - g, m_b, k_b + g)
                        for r in range(2):
                            for c in range(len(costs)):
                                p = mass * probs[i, g, r, c]
                                taken = accepts(tables.ranks, code, t, g, r == 1, levels[c])
                                if taken != (r == 1):
                                    cost[t] += p * costs[c]
                                    overruled[t, g] += p
                                z = relevant[i, g, r, c]
                                after[accept if taken else reject] += p * z
                                if z < 1.0:
                                    after[row + k_b] += p * (1.0 - z)


@jit()
def _push_forward_many(
    tables: many.ManyTables, probs: Floats, relevant: Floats, costs: Floats,
    levels: Any, cost: Floats, overruled: Floats, layers: Floats, sums: Any, at: Any,
    t: int,
) -> None:  # fmt: skip
    """:func:`_push_forward` for several groups, states in the order of their numbers."""
    terms, labelled = tables.terms, tables.labelled
    i = t if len(probs) > 1 else 0
    here, after = layers[t % 2], layers[1 - t % 2]
    sums[:] = 0
    sums[-1] = t
    kinds = len(sums)
    for state in range(terms[kinds, t + 1] - terms[kinds, t]):
        mass = here[state]
        if mass > 0.0:
            here[state] = 0.0
            many.counters_of(sums, at)
            for g in range(probs.shape[1]):
                code = many.look_up(tables, t, at, g)
                at[2 * g] += 1
                reject = many.place(terms, labelled, t + 1, at) - terms[kinds, t + 1]
                at[2 * g + 1] += 1
                accept = many.place(terms, labelled, t + 1, at) - terms[kinds, t + 1]
                at[2 * g] -= 1
                at[2 * g + 1] -= 1
                for r in range(2):
                    for c in range(len(costs)):
                        p = mass * probs[i, g, r, c]
                        taken = accepts(tables.ranks, code, t, g, r == 1, levels[c])
                        if taken != (r == 1):
                            cost[t] += p * costs[c]
                            overruled[t, g] += p
                        z = relevant[i, g, r, c]
                        after[accept if taken else reject] += p * z
                        if z < 1.0:
                            # The same place in the next layer.
                            after[state] += p * (1.0 - z)
        many.go_on(sums, 0)
