"""make_many_policy makes policies for three groups or more, and refuses too many states."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield._version import __version__
from fairshield.base.counts import GroupCount
from fairshield.base.errors import InvalidValueError, MemoryLimitError, argument, called
from fairshield.policy import Policy, Specification
from fairshield.policy.many import ManyLayout, StateDecisions
from fairshield.policy.many.kernels import sums_of
from fairshield.policy.many.layout import largest_horizon
from fairshield.policy.rows import code_type
from fairshield.synthesis import reference
from fairshield.synthesis.exact.making import with_least_cost
from fairshield.synthesis.exact.many_kernels import Room, Step, back_up
from fairshield.synthesis.memory import available_bytes, human
from fairshield.synthesis.options import Options
from fairshield.synthesis.problem import Problem, make_problem, without_floor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_STATES = 10**9
"""States of a table that two processors solve in about twenty seconds."""
_MOST_NUMBERS = 2**60
"""States that have a number."""
_MOST_REFERENCE = 200_000
_WORTH_A_THREAD = 100_000
"""States of a layer below which another thread costs more than it brings."""
_PAIRS_AT_ONCE = 1 << 20
_FIXED = 4_000_000


class ManySolution(NamedTuple):
    """ManySolution holds the cost to go at the start, and the decisions if asked for."""

    value: float
    codes: NDArray[Any] | None


# Limits -------------------------------------------------------------------------------------


def check_options(spec: Specification, options: Options) -> None:
    """Refuse options that exist for two groups only."""
    for asked, what in (
        (options.method == "long", "method='long' has certificates for two groups: use 'exact'"),
        (
            options.endgame is not None,
            f"{called('endgame')} is for long policies, which are for two groups: leave it out",
        ),
        (bool(spec.further), "further plans periods, which are for two groups: leave it out"),
        (spec.terminal is not None, "terminal is for two groups: leave it out"),
        (
            options.best_effort,
            "best_effort is for two groups: loosen the bound or set "
            f"{called('min_support')} instead, where "
            "fairness cannot be guaranteed",
        ),
        (options.backend == "cuda", "backend='cuda' is for two groups: use 'cpu'"),
    ):
        if asked:
            raise InvalidValueError(f"{len(spec.groups)} groups are declared, and {what}")


def needed_bytes(layout: ManyLayout, n_levels: int, *, record: bool) -> int:
    """Peak memory of a synthesis: two layers of values, the codes, which pairs are fair."""
    last, codes = layout.horizon, layout.n_groups * np.dtype(code_type(n_levels)).itemsize
    counters = (last + 1) * (last + 2) // 2
    pairs = layout.n_groups * (layout.n_groups - 1) // 2
    values = 8 * (layout.states_of(last) + layout.states_of(max(last - 1, 0)))
    return _FIXED + values + pairs * counters**2 + (codes * layout.n_states if record else 0)


def check_size(layout: ManyLayout, n_levels: int, *, record: bool, insist: bool) -> None:
    """Raise :class:`MemoryLimitError` if the table is too large; ``insist`` checks memory only."""
    states, groups = layout.n_states, layout.n_groups
    # The number of states may be too large for a float.
    what = f"a window of {layout.horizon} decisions and {groups} groups has {Decimal(states):.3g}"
    what += " states"
    if states > (_MOST_NUMBERS if insist else MOST_STATES):
        most = largest_horizon(groups, layout.labelled, MOST_STATES)
        raise MemoryLimitError(
            f"{what}, more than the {Decimal(MOST_STATES):.0e} that are solved in seconds: shorten "
            f"the window to at most {most} decisions, "
            + (
                "or join groups"
                if insist
                else f"join groups, or insist with {argument('method', 'exact')}"
            )
        )
    need, have = needed_bytes(layout, n_levels, record=record), available_bytes()
    if need > have:
        most = _largest_in(have, layout, n_levels, record=record)
        raise MemoryLimitError(
            f"{what} and needs about {human(need)}, and {human(have)} are available: shorten the "
            f"window to at most {most} decisions, join groups, or use fewer cost levels"
        )


def _largest_in(have: int, layout: ManyLayout, n_levels: int, *, record: bool) -> int:
    horizon = 0
    while horizon < layout.horizon:
        longer = replace(layout, horizon=horizon + 1)
        if needed_bytes(longer, n_levels, record=record) > have:
            break
        horizon += 1
    return horizon


# Solving ------------------------------------------------------------------------------------


def solve(problem: Problem, options: Options, *, record: bool) -> ManySolution:
    """Least expected cost of ``problem``, and the decisions that attain it."""
    layout = ManyLayout(problem.horizon, len(problem.start), problem.spec.labelled)
    if options.backend == "reference":
        if layout.n_states > _MOST_REFERENCE:
            raise InvalidValueError(
                f"the reference backend goes up to {_MOST_REFERENCE} states, {problem.horizon} "
                f"decisions and {layout.n_groups} groups have {layout.n_states}: use 'cpu'"
            )
        return _solved_by_recursion(problem, layout)
    check_size(layout, problem.n_levels, record=record, insist=True)
    induction = _ManyInduction(problem, layout, record, options.n_threads)
    with ThreadPoolExecutor(options.n_threads) as pool:
        for t in range(layout.horizon, -1, -1):
            induction.back_up(pool, t)
            if options.progress is not None:
                options.progress(1.0 - layout.states_before(t) / layout.n_states)
    value = without_floor(float(induction.values[0]))
    return ManySolution(value, induction.codes if record else None)


def _solved_by_recursion(problem: Problem, layout: ManyLayout) -> ManySolution:
    """What :mod:`fairshield.synthesis.reference` says of every state."""
    v, start = reference.cost_to_go(problem), reference.start_of(problem)
    groups = range(layout.n_groups)
    codes = np.zeros((layout.n_groups, layout.n_states), code_type(problem.n_levels))
    here = {start}
    for t in range(layout.horizon + 1):
        for s in here:
            number = layout.place(*s)
            if v(s) == math.inf:
                codes[:, number] = np.iinfo(codes.dtype).min
            elif t < layout.horizon:
                codes[:, number] = [reference.code_of(problem, v, s, g) for g in groups]
        stay = {s.unchanged() for s in here} if layout.labelled else set()
        here = stay | {s.after(g, y) for s in here for g in groups for y in (False, True)}
    return ManySolution(v(start), codes)


class _ManyInduction:
    """_ManyInduction holds costs to go of one layer, and the decisions of all layers after it."""

    def __init__(self, problem: Problem, layout: ManyLayout, record: bool, threads: int) -> None:
        self.problem, self.layout, self.threads = problem, layout, threads
        self.values, self.spare = np.empty(0), np.empty(layout.states_of(layout.horizon))
        shape = (layout.n_groups, layout.n_states if record else 0)
        self.codes = np.empty(shape, code_type(problem.n_levels))
        self.dead = int(np.iinfo(code_type(problem.n_levels)).min)
        self.fair = fair_pairs(problem)
        kinds = layout.kinds
        self.rooms = [
            Room(np.empty(kinds, np.int64), np.empty(kinds, np.int64)) for _ in range(threads)
        ]

    def back_up(self, pool: ThreadPoolExecutor, t: int) -> None:
        """Compute the next layer towards the start."""
        problem, size = self.problem, self.layout.states_of(t)
        i = t if 0 < t < len(problem.weights) else 0
        step = Step(
            problem.sorted_weights[i], problem.sorted_costs[i], float(problem.stay[i]), problem.tie
        )
        fair = self.fair if problem.spec.required(t) else self.fair[:0]
        work = partial(
            back_up, self.values, self.spare[:size], t, t == problem.horizon, self.layout.terms,
            step, self.layout.labelled, fair, self.codes, self.dead,
            self.layout.states_before(t),
        )  # fmt: skip
        parts = max(1, min(self.threads, size // _WORTH_A_THREAD))
        edges = [self._block_start(t, size * part // parts) for part in range(parts)] + [size]
        others = [
            pool.submit(work, begin, end, room)
            for (begin, end), room in zip(pairwise(edges[1:]), self.rooms[1:], strict=False)
        ]
        work(edges[0], edges[1], self.rooms[0])
        for other in others:
            other.result()
        before = self.values
        self.values = self.spare[:size]
        self.spare = before if len(before) else np.empty(self.layout.states_of(max(t - 1, 0)))

    def _block_start(self, t: int, state: int) -> int:
        sums, terms = self.rooms[0].sums, self.layout.terms
        sums_of(terms, t, state, sums)
        return state - int(terms[1, sums[0]] + terms[2, sums[1]])


def fair_pairs(problem: Problem) -> NDArray[np.bool_]:
    """``(pairs, counters, counters)``: whether a pair of groups is fair.

    The axes are the pair, the number of the second group's counters, and that of the first's.
    Counters ``(n, k)`` since the start have number ``n (n + 1) / 2 + k``.
    """
    seen = np.repeat(np.arange(problem.horizon + 1), np.arange(1, problem.horizon + 2))
    accepted = np.arange(len(seen)) - seen * (seen + 1) // 2
    pairs = list(combinations(problem.start, 2))
    fair = np.empty((len(pairs), len(seen), len(seen)), np.bool_)
    rows = max(_PAIRS_AT_ONCE // len(seen), 1)
    for i, (a, b) in enumerate(pairs):
        if (a, b) in pairs[:i]:
            fair[i] = fair[pairs.index((a, b))]
            continue
        for first in range(0, len(seen), rows):
            part = slice(first, first + rows)
            fair[i, part] = problem.spec.prop.holds_array(
                GroupCount(seen + a.seen, accepted + a.accepted),
                GroupCount(seen[part, None] + b.seen, accepted[part, None] + b.accepted),
            )
    return fair


# From a specification to a policy -----------------------------------------------------------


def make_many_policy(spec: Specification, options: Options) -> Policy:
    """The cheapest policy for three groups or more."""
    check_options(spec, options)
    layout = ManyLayout(spec.horizon, len(spec.groups), spec.labelled)
    check_size(layout, spec.n_levels, record=True, insist=options.method == "exact")
    problem = make_problem(spec)
    value, codes = solve(problem, options, record=True)
    assert codes is not None  # ``record`` asked for them
    decisions = StateDecisions(
        layout=layout, codes=codes, edges=np.array(problem.table.edges), ranks=problem.ranks
    )
    table = f"an exact table for {spec.horizon} decisions and {layout.n_groups} groups has "
    policy = Policy(
        spec,
        decisions,
        value,
        least_cost=value,
        reason="asked for" if options.method == "exact" else f"{table}{layout.n_states:.2g} states",
        version=__version__,
    )
    return with_least_cost(policy, options)
