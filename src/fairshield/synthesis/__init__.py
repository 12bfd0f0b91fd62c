"""From a specification to the cheapest policy that always meets it."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from fairshield._version import __version__
from fairshield.counts import Counts, Group, is_whole, so_far, unknown_group
from fairshield.errors import (
    InfeasibleError,
    InvalidValueError,
    MemoryLimitError,
    VacuousWarning,
    argument,
    called,
)
from fairshield.inputs import InputModel, InputSchedule
from fairshield.layout import Layout, layout_of
from fairshield.long import LongPolicy
from fairshield.policy import Policy
from fairshield.records import as_number
from fairshield.rows import RowTable
from fairshield.spec import NoRequirement, Property
from fairshield.synthesis import cuda, reference
from fairshield.synthesis.memory import check_memory, check_policy_memory, check_salvage_memory
from fairshield.synthesis.method import (
    MOST_ON_DEVICE,
    MOST_STATES,
    Method,
    chosen_method,
    obstacle_of,
)
from fairshield.synthesis.problem import Problem, make_problem, planned_rise

Backend = Literal["auto", "reference", "cpu", "cuda"]
Progress = Callable[[float], None]

_MOST_REFERENCE = 200
_MOST_SEEN = 10**15

__all__ = [
    "MOST_STATES",
    "Backend",
    "Method",
    "check_kinds",
    "checked_start",
    "cost_to_go",
    "least_cost",
    "make_policy",
    "planned_rise",
    "processors",
    "remaining_inputs",
    "synthesize",
]


def synthesize(
    prop: Property,
    inputs: InputModel | InputSchedule,
    *,
    horizon: int,
    start: Counts | None = None,
    checkpoints: Iterable[int] = (),
    further: int = 0,
    terminal: Property | None = None,
    spread: float = 1.0,
    best_effort: bool = False,
    method: Method = "auto",
    endgame: int | None = None,
    backend: Backend = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Policy:
    r"""The cheapest policy under which ``prop`` holds after ``horizon`` decisions, always.

    Parameters
    ----------
    prop
        What must hold.
    inputs
        What to expect; decides the cost, never the guarantee.
    horizon
        Number of decisions in the window.
    start
        Counters before the first decision, which the property counts in; default: nobody seen.
    checkpoints
        Other numbers of decisions after which the property must hold as well.
    further
        Plan for so many more decisions than ``horizon``: the policy is the beginning of the
        cheapest plan under which checkpoints beyond the horizon are met, too, and ``terminal``
        holds at its end.  Expected costs are those of the whole plan.
    terminal
        What must hold at the end of the plan besides ``prop``; the end of the plan is the horizon,
        or ``further`` decisions after it.
    spread
        Above 1, interventions are planned as if their price rose linearly over the window to
        ``spread`` times itself, so that they do not all fall on the last arrivals.  What that
        costs is ``policy.expected_cost - policy.least_cost``.
    best_effort
        Where no shield can guarantee the property from ``start``, make the policy that violates it
        with the least probability (``policy.risk``), at the least expected cost among those
        that give up no guarantee, instead of raising :class:`InfeasibleError`.  It changes nothing
        where one can.
    method
        ``"exact"`` makes a table of all decisions, of least expected cost.  ``"long"`` works
        decisions out as they come, in memory and time that do not depend on the horizon: the same
        guarantee, at nearly the least cost; see docs/long.md.  ``"auto"`` makes a table if that
        is a matter of seconds; ``policy.method`` and ``policy.reason`` say what it chose and why.
    endgame
        How many decisions before each check a long policy solves exactly, from the counters at
        hand; default: as many as take a few milliseconds.
    backend
        ``"cpu"`` is compiled, ``"cuda"`` runs on a CUDA device, ``"reference"`` is the paper's
        recursion for small horizons.  ``"auto"`` takes a device if there is one and the problem is
        large enough to be worth it.  Decisions are the same.
    threads
        Default: the processors this process may use.
    progress
        Called with the share of work done, between 0 and 1, some times per second.

    Raises
    ------
    InfeasibleError
        If no shield can guarantee the property from ``start``, unless ``best_effort``.
    MemoryLimitError
        If the tables would not fit into memory.
    MissingExtraError
        If the extra ``synthesis`` is not installed, unless ``backend`` is ``"reference"``; if
        ``backend`` is ``"cuda"`` and CuPy or a device is missing.

    Warns
    -----
    VacuousWarning
        If the property can never bind in such a window, as where ``min_support`` cannot be
        reached: the policy then promises nothing (``policy.can_bind``).

    Examples
    --------
    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> policy = fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=20)
    >>> round(policy.expected_cost, 6)
    2.587138
    """
    policy = make_policy(
        prop, inputs, horizon=horizon, start=start, checkpoints=checkpoints, further=further,
        terminal=terminal, spread=spread, best_effort=best_effort, method=method,
        endgame=endgame, backend=backend, threads=threads, progress=progress,
    )  # fmt: skip
    if not policy.can_bind:
        warnings.warn(
            f"{policy.prop} can never bind in {policy.horizon} decisions starting from "
            f"{so_far(policy.start)}, so the policy promises nothing: lower "
            f"{called('min_support')}, lengthen the horizon, or tighten the bound",
            VacuousWarning,
            stacklevel=2,
        )
    return policy


def make_policy(
    prop: Property,
    inputs: InputModel | InputSchedule,
    *,
    horizon: int,
    start: Counts | None = None,
    checkpoints: Iterable[int] = (),
    further: int = 0,
    terminal: Property | None = None,
    spread: float = 1.0,
    best_effort: bool = False,
    method: Method = "auto",
    endgame: int | None = None,
    backend: Backend = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Policy:
    """:func:`synthesize` for part of a run, which need not be able to bind by itself."""
    check_kinds(prop, inputs)
    horizon, further = _checked_horizon(horizon, further)
    planned = horizon + further
    start, points = checked_start(inputs, start), _checked_points(checkpoints, horizon, further)
    spread = _checked_spread(spread, further)
    _check_threads(threads)
    terminal = _checked_terminal(prop, terminal)
    _check_backend(backend, planned)
    if len(inputs.groups) > 2:
        from fairshield.synthesis import many

        many.check_options(
            len(inputs.groups), method=method, endgame=endgame, further=further, terminal=terminal,
            best_effort=best_effort, backend=backend,
        )  # fmt: skip
        return _with_least_cost(
            many.make_many_policy(
                prop, inputs, horizon, start, points, spread=spread, method=method,
                backend=backend, threads=processors() if threads is None else threads,
                progress=progress,
            ),
            backend, threads,
        )  # fmt: skip
    if best_effort and further:
        raise InvalidValueError(
            f"best_effort is for one window, and further={further} plans beyond it: leave one out"
        )
    layout, n_levels = layout_of(planned, prop.relevant_outcome is not None), _n_levels(inputs)
    backend = _chosen(backend, layout, n_levels, record=horizon)
    most = MOST_ON_DEVICE if backend == "cuda" else MOST_STATES
    obstacle = obstacle_of(
        prop, inputs, spread=spread, further=further, checkpoints=points, terminal=terminal
    )
    made_by, reason = chosen_method(method, layout, obstacle, most)
    if made_by == "exact":
        try:
            _check_fits(backend, layout, n_levels, record=horizon, spread=spread != 1.0)
        except MemoryLimitError as error:
            if obstacle is not None:
                without = "the long method, which needs no table, does not apply"
                raise MemoryLimitError(f"{error}; {without}: {obstacle}") from None
            if method == "exact":
                raise MemoryLimitError(f"{error}, or use {argument('method', 'long')}") from None
            made_by, reason = "long", str(error).split(":")[0]
    if made_by == "long":
        from fairshield.synthesis.long_plan import make_long_policy

        return make_long_policy(
            prop, inputs, horizon, start, points, terminal,
            endgame=endgame, best_effort=best_effort, reason=reason, progress=progress,
        )  # fmt: skip
    if endgame is not None and method == "exact":
        raise InvalidValueError(
            f"{argument('endgame', endgame)} is for long policies, and "
            f"{argument('method', 'exact')} makes a table: leave one of them out"
        )
    rise = planned_rise(spread, horizon)
    problem = make_problem(prop, inputs, planned, start, points, rise, terminal)
    # Whether there is a best effort to be made is known when the first half is done.
    first, second = (progress, None) if not best_effort else _halves(progress)
    value, rows = _solve(problem, backend, threads, first, record=horizon)
    assert rows is not None  # they were asked for
    effort = None
    if value == math.inf:
        if not best_effort:
            raise _infeasible(prop, planned, start)
        effort = _best_effort(problem, backend, second)
        value = effort.start.cost
    policy = Policy(
        prop=prop,
        inputs=inputs,
        horizon=horizon,
        start=start,
        checkpoints=points,
        further=further,
        terminal=terminal,
        expected_cost=value,
        least_cost=value,
        edges=np.array(problem.table.edges),
        ranks=problem.ranks,
        rows=rows,
        spread=spread,
        version=__version__,
        salvage=None if effort is None else effort.rows,
        risk=0.0 if effort is None else effort.start.risk,
        reason=reason,
    )
    return _with_least_cost(policy, backend, threads)


def _with_least_cost(policy: Policy, backend: Backend, threads: int | None) -> Policy:
    """What a policy with ``spread`` costs, and what one without it would."""
    if policy.expected_cost == math.inf:
        raise _infeasible(policy.prop, policy.horizon, policy.start)
    if policy.spread == 1.0:
        return policy
    from fairshield.evaluate import evaluate

    plain = make_problem(
        policy.prop, policy.inputs, policy.horizon, policy.start, policy.checkpoints,
        terminal=policy.terminal,
    )  # fmt: skip
    if policy.salvage is None:
        least, _ = _solve(plain, backend, threads, None, record=None)
    else:
        least = _best_effort(plain, backend).start.cost
    return replace(policy, expected_cost=evaluate(policy).cost, least_cost=least)


def least_cost(
    prop: Property, inputs: InputModel | InputSchedule, *, horizon: int, start: Counts
) -> float:
    """What the cheapest policy would be expected to cost, without making it; may be infinite."""
    problem = make_problem(prop, inputs, horizon, start, ())
    return _solve(problem, "auto", None, None, record=None)[0]


def cost_to_go(
    policy: Policy, counts: Counts, decided: int, *, threads: int | None = None
) -> float:
    """Least expected cost of the decisions left, from these counters; infinite if not feasible.

    Solved afresh, as the policy itself stores decisions and not costs.  For a policy with
    ``spread`` these are the risen costs it was planned with.
    """
    if isinstance(policy, LongPolicy):
        return _long_cost_to_go(policy, counts, decided)
    planned = policy.horizon + policy.further
    left = planned - decided
    if not 0 <= decided <= policy.horizon:
        raise InvalidValueError(f"{decided} decisions do not fit a window of {policy.horizon}")
    if not policy.keeps(counts, decided):
        return math.inf
    if left == 0:
        return 0.0
    inputs = remaining_inputs(policy.inputs, decided)
    earlier = tuple(c - decided for c in policy.checkpoints if c > decided)
    rise = planned_rise(policy.spread, policy.horizon)
    problem = make_problem(
        policy.prop, inputs, left, counts, earlier, None if rise is None else rise[decided:],
        policy.terminal,
    )  # fmt: skip
    return _solve(problem, "auto", threads, None, record=None)[0]


def _long_cost_to_go(policy: LongPolicy, counts: Counts, decided: int) -> float:
    """Exact in an endgame, up to its check; before, what the prices reckon with."""
    if not policy.guarantees(counts, decided):
        return math.inf
    if decided < policy.horizon and policy.in_endgame(decided):
        endgame, local = policy.reader.endgame(decided, policy.since_start(counts))
        return cost_to_go(endgame.policy, counts, local[0])
    from fairshield.synthesis.long_plan import expected_from

    return expected_from(policy, counts, decided)


def remaining_inputs(
    inputs: InputModel | InputSchedule, decided: int
) -> InputModel | InputSchedule:
    """What to expect once ``decided`` steps have passed."""
    if isinstance(inputs, InputModel):
        return inputs
    parts, skip = [], decided
    for model, steps in inputs.parts:
        if steps > skip:
            parts.append((model, steps - skip))
        skip = max(skip - steps, 0)
    return InputSchedule(parts or [(inputs.parts[-1][0], 1)])


def _solve(
    problem: Problem,
    backend: Backend,
    threads: int | None,
    progress: Progress | None,
    *,
    record: int | None,
) -> tuple[float, RowTable | None]:
    threads = processors() if threads is None else threads
    if len(problem.start) > 2:
        from fairshield.synthesis import many

        return many.solve(problem, record=False, threads=threads, backend=backend).value, None
    if backend == "reference":
        return reference.solve(problem, record)
    if _chosen(backend, problem.layout, problem.n_levels, record=record) == "cuda":
        solution = cuda.solve(problem, record=record, progress=progress)
        return solution.value, solution.rows
    from fairshield.synthesis import solver

    try:
        solution = solver.solve(problem, record=record, threads=threads, progress=progress)
    except MemoryError as error:
        raise MemoryLimitError(
            f"horizon {problem.horizon} needs more memory than there is ({error}): shorten "
            "the horizon, or use fewer cost levels"
        ) from None
    return solution.value, solution.rows


def _chosen(backend: Backend, layout: Layout, n_levels: int, *, record: int | None) -> Backend:
    """``"auto"`` made up its mind."""
    if backend == "auto":
        return "cuda" if cuda.pays(layout, n_levels, record=record) else "cpu"
    if backend == "cuda":
        cuda.require_device()
    return backend


def _check_fits(
    backend: Backend, layout: Layout, n_levels: int, *, record: int, spread: bool
) -> None:
    """Raise :class:`MemoryLimitError` if the tables would not fit where they are made or kept."""
    if backend == "cuda":
        cuda.check_device_memory(layout, n_levels, record=record)
        check_policy_memory(layout_of(record, layout.labelled), n_levels)
    else:
        check_memory(layout, n_levels, record=record, spread=spread)


def _halves(progress: Progress | None) -> tuple[Progress | None, Progress | None]:
    """Callbacks for the first and the second half of the work."""
    if progress is None:
        return None, None
    return lambda share: progress(0.5 * share), lambda share: progress(0.5 + 0.5 * share)


def _best_effort(
    problem: Problem, backend: Backend, progress: Progress | None = None
) -> reference.BestEffort:
    if backend == "reference":
        return reference.solve_best_effort(problem)
    from fairshield.synthesis import best_effort

    check_salvage_memory(problem.layout, problem.n_levels)
    return best_effort.solve(problem, progress)


def processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # where processes cannot be tied to processors


def _checked_horizon(horizon: int, further: int) -> tuple[int, int]:
    if not is_whole(horizon) or horizon < 1:
        raise InvalidValueError(
            f"horizon must be a whole number of at least 1, got {horizon!r}: it is the number of "
            "decisions after which the property must hold"
        )
    if not is_whole(further) or further < 0:
        raise InvalidValueError(
            f"further must be a whole number of at least 0, got {further!r}: it is the number of "
            "decisions to plan for beyond the horizon"
        )
    return int(horizon), int(further)


def checked_start(
    inputs: InputModel | InputSchedule, start: Mapping[Group, tuple[int, int]] | None
) -> Counts:
    """Counters of the groups of ``inputs``, in their order; ``None``: nobody seen."""
    if start is None:
        return Counts.zero(inputs.groups)
    if not isinstance(start, Mapping):
        raise InvalidValueError(
            f"start maps groups to (seen, accepted), as in Counts({{'a': (10, 8), ...}}), got "
            f"{start!r}"
        )
    start = Counts(start)
    for group in start:
        if group not in inputs.groups:
            raise unknown_group(group, inputs.groups)
    for group in inputs.groups:
        if group not in start:
            raise InvalidValueError(
                f"start has no counters for group {group!r}: give (0, 0) for none"
            )
        if start[group].seen > _MOST_SEEN:
            raise InvalidValueError(
                f"start counts {start[group].seen} people, at most {_MOST_SEEN}"
            )
    return Counts({g: start[g] for g in inputs.groups})


def _checked_points(checkpoints: Iterable[int], horizon: int, further: int) -> tuple[int, ...]:
    """Checkpoints in order, that at the horizon only if the plan goes on."""
    if not isinstance(checkpoints, Iterable):
        raise InvalidValueError(f"checkpoints are a collection such as (50,), got {checkpoints!r}")
    points, most = set(), horizon + further
    for point in checkpoints:
        if not is_whole(point) or not 1 <= point <= most:
            raise InvalidValueError(
                f"checkpoints must be whole numbers from 1 to the horizon {most}, got {point!r}"
            )
        points.add(int(point))
    if further:
        points.add(horizon)
    return tuple(sorted(points - {most}))


def _check_threads(threads: int | None) -> None:
    if threads is not None and (not is_whole(threads) or threads < 1):
        raise InvalidValueError(
            f"threads must be a whole number of at least 1, or None for all processors, got "
            f"{threads!r}"
        )


def _checked_spread(spread: float, further: int) -> float:
    if not 1.0 <= as_number(spread, "spread") < math.inf:
        raise InvalidValueError(
            f"spread must be a finite number of at least 1 (1: do not spread), got {spread!r}"
        )
    if spread != 1.0 and further:
        raise InvalidValueError(
            f"spread {spread!r} is for one window, and further={further} plans beyond it: "
            "leave one of them out"
        )
    return float(spread)


def _checked_terminal(prop: Property, terminal: Property | None) -> Property | None:
    """What must hold at the end besides ``prop``; ``None`` if that is nothing more."""
    if terminal is None or terminal == prop:
        return None
    if not isinstance(terminal, Property):
        raise InvalidValueError(
            f"terminal is a property such as Sustained(prop), or None, got {terminal!r}"
        )
    if terminal.relevant_outcome != prop.relevant_outcome:
        raise InvalidValueError(
            f"terminal {terminal} must count the same people as {prop}: those with the same "
            "outcome, or everybody"
        )
    return None if isinstance(terminal, NoRequirement) else terminal


def check_kinds(prop: object, inputs: object) -> None:
    """Refuse what is neither a property nor an input model."""
    if not isinstance(prop, Property):
        raise InvalidValueError(
            f"prop is a property such as DemographicParity('0.1'), got {prop!r}"
        )
    if not isinstance(inputs, (InputModel, InputSchedule)):
        raise InvalidValueError(
            f"inputs is an InputModel or an InputSchedule, got {type(inputs).__name__}: see "
            "InputModel.agnostic"
        )
    prop.check_groups(len(inputs.groups))


def _check_backend(backend: str, horizon: int) -> None:
    if backend == "reference" and horizon > _MOST_REFERENCE:
        raise InvalidValueError(
            f"the reference backend goes up to horizon {_MOST_REFERENCE}, got {horizon}: use 'cpu'"
        )
    if backend not in ("auto", "reference", "cpu", "cuda"):
        raise InvalidValueError(
            f"backend must be 'auto', 'cpu', 'cuda' or 'reference', got {backend!r}"
        )


def _n_levels(inputs: InputModel | InputSchedule) -> int:
    return len(inputs.table(1).levels)


def _infeasible(prop: Property, horizon: int, start: Counts) -> InfeasibleError:
    return InfeasibleError(
        f"{prop} cannot be guaranteed over {horizon} decisions starting from {so_far(start)}: "
        "some order of arrivals defeats every shield. Loosen the bound, set "
        f"{called('min_support')} so that the property binds only once each group has enough "
        "people, lengthen the horizon, or drop early checkpoints"
    )
