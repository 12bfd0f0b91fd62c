r"""evaluate computes exactly what a policy costs, and which group it overrules when.

The distribution over counter states is pushed forward through the policy's own decisions, so the
answer is right for any policy and any input model, also one the policy was not made for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.compiler import jit
from fairshield.base.counts import Counts, is_whole
from fairshield.base.errors import InvalidValueError, check_kind
from fairshield.base.renamed import Renamed
from fairshield.base.types import Progress
from fairshield.base.words import summary
from fairshield.inputs import Inputs
from fairshield.policy import Policy
from fairshield.policy.counted import CountedLayout
from fairshield.policy.counted.lookups import CountedTables
from fairshield.policy.jitable import accepted_by, answer, number_after
from fairshield.policy.many import ManyLayout
from fairshield.policy.many.kernels import Walk, begin, counters_of, enter_row, go_on

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Evaluation holds expectations over one window, or over a part of it.

    Attributes
    ----------
    expected_cost_by_position
        ``(decisions,)``: expected cost of each decision.
    overruled
        ``(decisions, G)``: probability that the decision at this position overrules somebody of
        this group.
    """

    expected_cost_by_position: Floats
    overruled: Floats

    cost = Renamed("expected_cost")
    cost_by_position = Renamed("expected_cost_by_position")

    __repr__ = summary

    def __str__(self) -> str:
        horizon, people = len(self.expected_cost_by_position), float(self.overruled.sum())
        cost = f"expected cost {self.expected_cost:.6g}"
        return f"{horizon:,} decisions: {cost}, {people:.4g} overruled"

    @property
    def expected_cost(self) -> float:
        """Expected cost of all these decisions."""
        return float(self.expected_cost_by_position.sum())


def evaluate(
    policy: Policy,
    inputs: Inputs | None = None,
    *,
    counts: Counts | None = None,
    decided: int = 0,
    decisions: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Exact expectations of ``policy`` if requests follow ``inputs`` (default: its own).

    Parameters
    ----------
    counts, decided
        Counters, start included, and the number of decisions that led to them; default: the start.
    decisions
        How many decisions are evaluated; default: all that are left of the window.
    progress
        Called with the share of the work done after each layer of states.
    """
    check_kind(policy, Policy, "evaluate needs a policy for one window: make one with synthesize")
    if not policy.decisions.tabled:
        raise InvalidValueError(
            f"exact expectations need a table of all decisions, this policy is {policy.method}: "
            "simulate it instead"
        )
    inputs = policy.inputs if inputs is None else inputs
    if inputs.groups != policy.groups:
        raise InvalidValueError(f"the inputs have groups {inputs.groups}, not {policy.groups}")
    before = np.array(policy.position(counts or policy.start, decided), np.int64)
    left = policy.horizon - decided
    decisions = left if decisions is None else decisions
    if not is_whole(decisions) or not 0 <= decisions <= left:
        raise InvalidValueError(
            f"decisions must be a whole number up to the {left} that are left of the window after "
            f"{decided}, got {decisions!r}"
        )
    table = inputs.table(policy.horizon)
    relevant = table.relevance(policy.prop.counting.outcome)
    levels = policy.decisions.levels_of(table.levels)
    cost = np.zeros(decisions)
    overruled = np.zeros((decisions, len(policy.groups)))
    counting, n_groups = policy.prop.counting, len(policy.groups)
    # Numbers of states do not depend on the horizon.
    layout: ManyLayout | CountedLayout = CountedLayout(policy.horizon, n_groups, counting)
    if counting.of_people:
        layout = ManyLayout(decisions, n_groups, policy.labelled)
    layers = np.zeros((2, layout.states_of(decisions)))
    layers[0, 0] = 1.0
    for t in range(decisions):
        known = (
            policy.decisions.tables, table.probs, relevant, table.levels, levels,
            cost, overruled, layers, Walk.over(layout), t, decided, before, before.copy(),
        )  # fmt: skip
        if counting.of_people:
            _push_forward(*known)
        else:
            _push_counted(*known, layout.layer(t), layout.states_before(t + 1))
        if progress is not None:
            progress(layout.states_before(t + 2) / layout.states_before(decisions + 1))
    return Evaluation(cost, overruled)


@jit()
def _push_forward(
    tables: Any, probs: Floats, relevant: Floats, costs: Floats, levels: Any,
    cost: Floats, overruled: Floats, layers: Floats, walk: Walk, t: int, decided: int,
    before: Ints, at_all: Ints,
) -> None:  # fmt: skip
    """From layer ``t`` to the next, row after row of numbered states.

    States are counted from ``before``, the counters after ``decided`` decisions; ``at_all`` is
    room for the counters from the start.
    """
    position = decided + t
    i = position if len(probs) > 1 else 0
    here, after = layers[t % 2], layers[1 - t % 2]
    at, state, end = walk.at, 0, begin(walk, t)
    while state < end:
        enter_row(walk, tables.labelled, t)
        for k in range(at[0] + 1):
            mass = here[state + k]
            if mass == 0.0:
                continue
            # Empties the buffer, which the layer after next uses again.
            here[state + k] = 0.0
            at[1] = k
            for j in range(len(at)):
                at_all[j] = before[j] + at[j]
            for g in range(probs.shape[1]):
                code = answer(tables, position, at_all, g)[2]
                reject, accept = walk.after[2 * g] + k, walk.after[2 * g + 1] + k
                for r in range(2):
                    for c in range(len(costs)):
                        p = mass * probs[i, g, r, c]
                        taken = accepted_by(tables, code, position, g, r == 1, levels[c])
                        if taken != (r == 1):
                            cost[t] += p * costs[c]
                            overruled[t, g] += p
                        z = relevant[i, g, r, c]
                        after[accept if taken else reject] += p * z
                        if z < 1.0:
                            # The state of the next layer with the same counters.
                            after[state + k] += p * (1.0 - z)
        state += at[0] + 1
        go_on(walk.sums, 1)


@jit()
def _push_counted(
    tables: CountedTables, probs: Floats, told: Floats, costs: Floats, levels: Any,
    cost: Floats, overruled: Floats, layers: Floats, walk: Walk, t: int, decided: int,
    before: Ints, at_all: Ints, layer: int, earlier: int,
) -> None:  # fmt: skip
    """:func:`_push_forward` where decisions are counted; ``earlier`` states precede the next."""
    position = decided + t
    i = position if len(probs) > 1 else 0
    here, after = layers[t % 2], layers[1 - t % 2]
    at, state, end = walk.at, 0, begin(walk, layer)
    while state < end:
        length = walk.sums[1] + 1
        counters_of(walk.sums, at)
        for k in range(length):
            mass = here[state + k]
            if mass == 0.0:
                continue
            # Empties the buffer, which the layer after next uses again.
            here[state + k] = 0.0
            at[1] = k
            for j in range(len(at)):
                at_all[j] = before[j] + at[j]
            for g in range(probs.shape[1]):
                code = answer(tables, position, at_all, g)[2]
                for r in range(2):
                    for c in range(len(costs)):
                        p = mass * probs[i, g, r, c]
                        taken = accepted_by(tables, code, position, g, r == 1, levels[c])
                        if taken != (r == 1):
                            cost[t] += p * costs[c]
                            overruled[t, g] += p
                        for z in range(2):
                            chance = told[i, g, r, c] if z else 1.0 - told[i, g, r, c]
                            if chance > 0.0:
                                gain = 2 * np.int64(taken) + z
                                number = number_after(tables, t, at, g, gain) - earlier
                                after[number] += p * chance
        state += length
        go_on(walk.sums, 1)
