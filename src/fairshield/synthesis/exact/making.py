"""make_row_policy makes policies for two groups as tables of rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fairshield._version import __version__
from fairshield.base.counts import so_far
from fairshield.base.errors import InfeasibleError, InvalidValueError, argument, called
from fairshield.base.types import Progress
from fairshield.policy import Policy, Specification
from fairshield.policy.layout import layout_of
from fairshield.policy.policy import NEVER
from fairshield.policy.row_decisions import RowDecisions
from fairshield.policy.rows import BARE_WIDTH, RowTable
from fairshield.synthesis.cuda.device import check_device_memory
from fairshield.synthesis.memory import check_memory, check_policy_memory
from fairshield.synthesis.options import Backend, Options
from fairshield.synthesis.problem import Problem, make_problem
from fairshield.synthesis.solving import solve, solve_best_effort


def make_row_policy(spec: Specification, options: Options, reason: str) -> Policy:
    """The policy of least expected cost; with ``best_effort``, of least risk where none is fair."""
    if options.endgame is not None and options.method == "exact":
        raise InvalidValueError(
            f"{argument('endgame', options.endgame)} is for long policies, and "
            f"{argument('method', 'exact')} makes a table: leave one of them out"
        )
    problem = make_problem(spec)
    if spec.trusting:
        return _trusting_policy(problem, options, reason)
    # Only the result of the first half shows whether a best effort is needed.
    first, second = options.progress, None
    if options.best_effort:
        first, second = _halves(options.progress)
    value, rows, _ = solve(problem, replace(options, progress=first), record=spec.horizon)
    assert rows is not None  # ``record`` asked for them
    salvage, risk = None, 0.0
    if value == math.inf and options.best_effort:
        effort = solve_best_effort(problem, options.backend, second)
        salvage, (risk, value) = effort.rows, effort.start
    decisions = RowDecisions(
        layout=layout_of(spec.horizon, spec.labelled),
        rows=rows,
        salvage=salvage,
        edges=np.array(problem.table.edges),
        ranks=problem.ranks,
    )
    policy = Policy(
        spec, decisions, value, least_cost=value, risk=risk, reason=reason, version=__version__
    )
    return with_least_cost(policy, options)


def _trusting_policy(problem: Problem, options: Options, reason: str) -> Policy:
    """The cheapest policy that is fair on every sequence that the input model holds possible.

    No state of its tables is certain, since nothing is guaranteed of other sequences.
    """
    spec = problem.spec
    effort = solve_best_effort(problem, options.backend, options.progress)
    salvage, (risk, value) = effort.rows, effort.start
    if risk and not options.best_effort:
        raise InfeasibleError(
            f"{spec.prop} cannot be guaranteed over {spec.plan_length} decisions starting from "
            f"{so_far(spec.start)}: some order of arrivals that the input model holds possible "
            "defeats every shield. Loosen the bound, or set "
            f"{called('min_support')} so that the property binds only once each group has enough "
            "people"
        )
    layout = layout_of(spec.horizon, spec.labelled)
    nothing = RowTable(
        np.zeros((layout.n_rows, BARE_WIDTH), salvage.cuts.dtype), np.empty(0, np.int64),
        np.full(layout.n_rows, -1, np.int64), np.empty(0, salvage.dense_codes.dtype),
    )  # fmt: skip
    decisions = RowDecisions(
        layout=layout,
        rows=nothing,
        salvage=salvage,
        edges=np.array(problem.table.edges),
        ranks=problem.ranks,
    )
    # Only what has probability 0 has so small a risk; products of many others might round to it.
    risk = max(risk, 2 * NEVER) if risk else NEVER
    policy = Policy(
        spec, decisions, value, least_cost=value, risk=risk, reason=reason, version=__version__
    )
    return with_least_cost(policy, options)


def with_least_cost(policy: Policy, options: Options) -> Policy:
    """The policy, with its true expected cost and the least one if it has ``spread``."""
    spec = policy.spec
    if policy.expected_cost == math.inf:
        raise InfeasibleError(
            f"{spec.prop} cannot be guaranteed over {spec.plan_length} decisions starting from "
            f"{so_far(spec.start, spec.prop.counting.taken)}: some order of arrivals defeats every "
            f"shield. Loosen the bound, set {called('min_support')} so that the property binds "
            "only once each group has enough people, lengthen the horizon, or drop early "
            "checkpoints"
        )
    if spec.spread == 1.0:
        return policy
    from fairshield.runtime.evaluate import evaluate

    plain = make_problem(replace(spec, spread=1.0))
    if policy.decisions.salvages:
        least = solve_best_effort(plain, options.backend).start.cost
    else:
        least = solve(plain, replace(options, progress=None)).value
    return replace(policy, expected_cost=evaluate(policy).expected_cost, least_cost=least)


def check_fits(spec: Specification, backend: Backend) -> None:
    """Raise :class:`MemoryLimitError` if the tables would not fit where they are made or kept."""
    layout, n_levels = layout_of(spec.plan_length, spec.labelled), spec.n_levels
    if backend == "cuda":
        check_device_memory(layout, n_levels, record=spec.horizon)
        check_policy_memory(layout_of(spec.horizon, spec.labelled), n_levels)
    else:
        check_memory(layout, n_levels, record=spec.horizon, spread=spec.spread != 1.0)


def _halves(progress: Progress | None) -> tuple[Progress | None, Progress | None]:
    """Callbacks for the first and the second half of the work."""
    if progress is None:
        return None, None
    return lambda share: progress(0.5 * share), lambda share: progress(0.5 + 0.5 * share)
