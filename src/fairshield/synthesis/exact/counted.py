"""make_counted_policy makes policies for properties that count decisions, as tables of masks."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield._version import __version__
from fairshield.base.counts import GroupCount
from fairshield.base.errors import InvalidValueError, MemoryLimitError, argument, called
from fairshield.policy import Policy, Specification
from fairshield.policy.counted import CountedDecisions, CountedLayout
from fairshield.policy.counted.decisions import MOST_LEVELS, mask_type
from fairshield.policy.counted.layout import largest_horizon
from fairshield.policy.many.kernels import counters_in, sums_of
from fairshield.synthesis import reference
from fairshield.synthesis.exact.counted_kernels import Place, Step, back_up, back_up_risk
from fairshield.synthesis.exact.making import with_least_cost
from fairshield.synthesis.memory import available_bytes, human
from fairshield.synthesis.options import Options
from fairshield.synthesis.problem import LEAST_RELEVANCE, Problem, make_problem, without_floor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_STATES = 3 * 10**8
"""States of a table that two processors solve in about ten seconds."""
_MOST_REFERENCE = 200_000
_WORTH_A_THREAD = 20_000
"""States of a layer below which another thread costs more than it brings."""
_AT_ONCE = 1 << 18
_FIXED = 4_000_000


class CountedSolution(NamedTuple):
    """CountedSolution holds the cost to go at the start, and the masks if asked for."""

    value: float
    masks: NDArray[Any] | None


class CountedEffort(NamedTuple):
    """CountedEffort holds risk and cost at the start, and the masks of least risk."""

    risk: float
    cost: float
    masks: NDArray[Any]


# Limits -------------------------------------------------------------------------------------


def check_options(spec: Specification, options: Options) -> None:
    """Refuse options that exist only for properties that count people."""
    for asked, what in (
        (options.method == "long", f"{argument('method', 'long')} has certificates of people"),
        (options.endgame is not None, f"{called('endgame')} is for long policies, of people"),
        (bool(spec.further), f"further={spec.further} plans periods of people counted"),
        (spec.spread != 1.0, f"{called('spread')} is for properties that count people"),
        (options.backend == "cuda", f"{argument('backend', 'cuda')} counts people"),
    ):
        if asked:
            raise InvalidValueError(f"{what}, and {spec.prop} counts decisions: leave it out")
    if spec.n_levels > MOST_LEVELS:
        raise InvalidValueError(
            f"the input model has {spec.n_levels} cost levels, and {spec.prop} counts decisions, "
            f"for which at most {MOST_LEVELS} can be told apart: estimate it with "
            f"{argument('bins', 10)}"
        )


def check_size(layout: CountedLayout, n_levels: int, *, record: bool, effort: bool) -> None:
    """Raise :class:`MemoryLimitError` if the table is too large for time or memory."""
    most = largest_horizon(layout.n_groups, layout.counting, MOST_STATES)
    if layout.horizon > most:
        raise MemoryLimitError(
            f"a window of {layout.horizon} decisions has more than the {MOST_STATES:.0e} states of "
            "counted decisions that are solved in seconds: shorten the window to at most "
            f"{most} decisions, or use smaller weights"
        )
    states = layout.n_states
    what = f"a window of {layout.horizon} decisions has {states:.3g} states of counted decisions"
    last = layout.states_of(layout.horizon)
    size = layout.n_groups * np.dtype(mask_type(n_levels)).itemsize * states * (1 + effort)
    need = _FIXED + (33 if effort else 17) * last + (size if record else 0)
    have = available_bytes()
    if need > have:
        raise MemoryLimitError(
            f"{what} and needs about {human(need)}, and {human(have)} are available: shorten the "
            "window, or use fewer cost levels"
        )


# Solving ------------------------------------------------------------------------------------


def solve(problem: Problem, options: Options, *, record: bool) -> CountedSolution:
    """Least expected cost of ``problem``, and the decisions that attain it."""
    layout = _layout(problem)
    if options.backend == "reference":
        _check_reference(layout)
        v = reference.cost_to_go(problem)
        masks = _by_recursion(problem, layout, partial(_mask_or_dead, problem, v))
        return CountedSolution(v(reference.start_of(problem)), masks)
    check_size(layout, problem.n_levels, record=record, effort=False)
    induction = _Induction(problem, layout, options.n_threads)
    masks = induction.masks(record=record)
    dead = int(np.iinfo(masks.dtype).min)
    after = np.empty(0)
    with ThreadPoolExecutor(options.n_threads) as pool:
        for t in range(layout.horizon, -1, -1):
            values = np.zeros(layout.states_of(t))
            first = layout.states_before(t)
            if t < layout.horizon:
                work = partial(
                    back_up, after, values, layout.layer(t), layout.terms, induction.gains,
                    induction.steady_start(t + 1), induction.step(t), masks, dead, first,
                )  # fmt: skip
                induction.over(pool, t, work)
            elif record:
                masks[:, first:] = 0
            unfair = induction.unfair(t)
            values[unfair] = np.inf
            if record:
                masks[:, first + np.flatnonzero(unfair)] = dead
            after = values
            if options.progress is not None:
                options.progress(1.0 - first / layout.n_states)
    return CountedSolution(without_floor(float(after[0])), masks if record else None)


def solve_best_effort(problem: Problem, options: Options) -> CountedEffort:
    """Decisions of least risk, and of least cost among these."""
    layout = _layout(problem)
    if options.backend == "reference":
        _check_reference(layout)
        prospect, mask = reference.least_risk_counted(problem)
        start = prospect(reference.start_of(problem))
        return CountedEffort(
            *start, _by_recursion(problem, layout, partial(_mask_or_none, problem, mask))
        )
    check_size(layout, problem.n_levels, record=True, effort=True)
    induction = _Induction(problem, layout, options.n_threads)
    masks = induction.masks(record=True)
    risks, costs = np.empty(0), np.empty(0)
    with ThreadPoolExecutor(options.n_threads) as pool:
        for t in range(layout.horizon, -1, -1):
            risk, cost = np.zeros(layout.states_of(t)), np.zeros(layout.states_of(t))
            first = layout.states_before(t)
            if t < layout.horizon:
                work = partial(
                    back_up_risk, risks, costs, risk, cost, layout.layer(t), layout.terms,
                    induction.gains, induction.steady_start(t + 1), induction.step(t), masks, first,
                )  # fmt: skip
                induction.over(pool, t, work)
            else:
                masks[:, first:] = 0
            unfair = induction.unfair(t)
            risk[unfair], cost[unfair] = 1.0, 0.0
            masks[:, first + np.flatnonzero(unfair)] = 0
            risks, costs = risk, cost
            if options.progress is not None:
                options.progress(1.0 - first / layout.n_states)
    return CountedEffort(float(risks[0]), float(costs[0]), masks)


def _layout(problem: Problem) -> CountedLayout:
    return CountedLayout(problem.horizon, len(problem.start), problem.spec.prop.counting)


def _check_reference(layout: CountedLayout) -> None:
    if layout.n_states > _MOST_REFERENCE:
        raise InvalidValueError(
            f"the reference backend goes up to {_MOST_REFERENCE} states, {layout.horizon} "
            f"decisions have {layout.n_states}: use 'cpu'"
        )


class _Induction:
    """_Induction holds what the layers of an induction have in common."""

    def __init__(self, problem: Problem, layout: CountedLayout, threads: int) -> None:
        self.problem, self.layout, self.threads = problem, layout, threads
        self.gains = np.array(layout.counting.gains, np.int64).reshape(-1)
        counters = 2 * layout.n_groups
        self.places = [
            Place(*(np.zeros(n, np.int64) for n in (layout.kinds, counters, 2 * counters)))
            for _ in range(threads)
        ]
        relevance = problem.relevance
        self.told = np.maximum(relevance, LEAST_RELEVANCE)
        self.untold = np.maximum(1.0 - relevance, LEAST_RELEVANCE)

    def masks(self, *, record: bool) -> NDArray[Any]:
        """Room for the masks of all states, or of none."""
        states = self.layout.n_states if record else 0
        return np.empty((self.layout.n_groups, states), mask_type(self.problem.n_levels))

    def step(self, t: int) -> Step:
        """What arrives after ``t`` decisions."""
        problem, i = self.problem, t if len(self.problem.weights) > 1 else 0
        return Step(
            problem.weights[i], problem.costs[i], self.told[i], self.untold[i], problem.tie,
            reference.SAME_RISK,
        )  # fmt: skip

    def steady_start(self, t: int) -> int:
        """The number of layer ``t``'s first state, where counters alone number the states."""
        return self.layout.states_before(t) if self.layout.counting.steady else 0

    def over(self, pool: ThreadPoolExecutor, t: int, work: Any) -> None:
        """Do ``work`` on all rows of layer ``t``, in some threads."""
        size = self.layout.states_of(t)
        parts = max(1, min(self.threads, size // _WORTH_A_THREAD))
        edges = [self._row_start(t, size * part // parts) for part in range(parts)] + [size]
        others = [
            pool.submit(work, begin, end, place)
            for (begin, end), place in zip(pairwise(edges[1:]), self.places[1:], strict=False)
        ]
        work(edges[0], edges[1], self.places[0])
        for other in others:
            other.result()

    def _row_start(self, t: int, state: int) -> int:
        sums = self.places[0].sums
        sums_of(self.layout.terms, self.layout.layer(t), state, sums)
        return state - int(sums[0])

    def unfair(self, t: int) -> NDArray[np.bool_]:
        """Which states of layer ``t`` violate what is required then."""
        size, required = self.layout.states_of(t), self.problem.spec.required(t)
        found = np.zeros(size, np.bool_)
        if not required:
            return found
        sums = np.zeros(self.layout.kinds, np.int64)
        for first in range(0, size, _AT_ONCE):
            states = np.arange(first, min(first + _AT_ONCE, size))
            at = np.empty((len(states), 2 * self.layout.n_groups), np.int64)
            counters_in(self.layout.terms, self.layout.layer(t), states, sums, at)
            counts = [
                GroupCount(at[:, 2 * g] + of.seen, at[:, 2 * g + 1] + of.accepted)
                for g, of in enumerate(self.problem.start)
            ]
            for prop in required:
                found[states] |= ~prop.holds_array(*counts)
        return found


def _mask_or_dead(problem: Problem, v: Any, s: reference.Position, group: int) -> int:
    if v(s) == math.inf:
        return int(np.iinfo(mask_type(problem.n_levels)).min)
    return reference.mask_of(problem, v, s, group) if s.t < problem.horizon else 0


def _mask_or_none(problem: Problem, mask: Any, s: reference.Position, group: int) -> int:
    over = s.t == problem.horizon or not reference.is_fair(problem, s)
    found: int = 0 if over else mask(s, group)
    return found


def _by_recursion(problem: Problem, layout: CountedLayout, mask: Any) -> NDArray[Any]:
    """What :mod:`fairshield.synthesis.reference` says of every state that can be reached."""
    groups = range(layout.n_groups)
    masks = np.zeros((layout.n_groups, layout.n_states), mask_type(problem.n_levels))
    here = {reference.start_of(problem)}
    for _ in range(layout.horizon + 1):
        for s in here:
            masks[:, layout.place(*s)] = [mask(s, g) for g in groups]
        here = {
            after for s in here for g in groups for y in (False, True)
            for after in reference.possible(problem, s, g, y)
        }  # fmt: skip
    return masks


# From a specification to a policy -----------------------------------------------------------


def make_counted_policy(spec: Specification, options: Options) -> Policy:
    """The cheapest policy; with ``best_effort``, of least risk where none is fair."""
    check_options(spec, options)
    problem = make_problem(spec)
    value, masks = solve(problem, options, record=True)
    assert masks is not None  # ``record`` asked for them
    salvage, risk = None, 0.0
    if value == math.inf and options.best_effort:
        risk, value, salvage = solve_best_effort(problem, options)
    layout = _layout(problem)
    decisions = CountedDecisions(
        layout=layout, masks=masks, salvage=salvage, edges=np.array(problem.table.edges),
        ranks=problem.ranks,
    )  # fmt: skip
    table = f"an exact table for {spec.horizon} decisions has {layout.n_states:.2g} states"
    policy = Policy(
        spec, decisions, value, least_cost=value, risk=risk,
        reason="asked for" if options.method == "exact" else table, version=__version__,
    )  # fmt: skip
    return with_least_cost(policy, options)
