"""Decides many runs of many periods at once, to compare periodic policies on the same requests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Counts, is_whole
from fairshield.base.errors import InvalidValueError
from fairshield.base.renamed import Renamed
from fairshield.base.types import Progress
from fairshield.inputs import Inputs
from fairshield.inputs.recorded import request_of
from fairshield.periodic.conditions import Condition, Counters
from fairshield.periodic.policy import PeriodicPolicy, WindowPolicy
from fairshield.records import Record
from fairshield.runtime.judging import Judged, judged
from fairshield.runtime.requests import Requests
from fairshield.spec import Property
from fairshield.spec.outcomes import OutcomeTally
from fairshield.synthesis import processors

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Streams:
    """Streams holds the requests of many runs as arrays ``(runs, decisions)``.

    ``groups`` are 0 and 1; ``relevant`` says who has the outcome that the property tells people
    apart by, or is true of all.
    """

    groups: NDArray[np.int8]
    proposed: Flags
    costs: Floats
    relevant: Flags

    @property
    def n_runs(self) -> int:
        """How many runs."""
        return len(self.groups)

    @property
    def length(self) -> int:
        """Decisions in each."""
        return int(self.groups.shape[1])

    @staticmethod
    def drawn(
        prop: Property,
        inputs: Inputs,
        *,
        period: int,
        periods: int,
        runs: int,
        rng: np.random.Generator,
    ) -> Streams:
        """Random requests that follow ``inputs``, each period like the first."""
        for name, number in (("periods", periods), ("runs", runs)):
            if not is_whole(number) or number < 1:
                raise InvalidValueError(
                    f"{name} must be a whole number of at least 1, got {number!r}"
                )
        length = period * periods
        table = inputs.repeated(period, periods).table(length)
        drawn = table.draw(rng.random((runs, length)), prop.counting.outcome)
        relevant = np.ones((runs, length), bool)
        if prop.counting.labelled:
            relevant = rng.random((runs, length)) < drawn.relevance
        return Streams(drawn.groups, drawn.proposed, table.levels[drawn.levels], relevant)

    @staticmethod
    def adverse(inputs: Inputs, *, period: int, periods: int) -> Streams:
        """Histories after which a period may be dear, whatever the input model thinks of them.

        Only one group comes, or nearly, or first one and then the other; the same is proposed for
        everybody, or for everybody of a group, or by turns.  Overruling costs the most it can.
        """
        shape = periods, period
        decision = np.arange(periods * period).reshape(shape)
        last = decision % period == period - 1
        early = decision < (periods // 2) * period
        none = np.zeros(shape, bool)
        arrivals = [who ^ turned for who in (none, last, early) for turned in (False, True)]
        arrivals.append(decision % 2 == 1)
        cases = [
            (who, proposed)
            for who in arrivals
            for proposed in (none, ~none, decision % 4 < 2, who, ~who)
        ]
        groups, proposed = (np.array(x).reshape(len(cases), -1) for x in zip(*cases, strict=True))
        most = float(inputs.table(1).levels.max())
        everybody = np.ones(groups.shape, bool)
        return Streams(groups.astype(np.int8), proposed, np.full(groups.shape, most), everybody)

    @staticmethod
    def recorded(
        records: Iterable[Record], prop: Property, groups: tuple[Any, ...], length: int
    ) -> Streams:
        """Recorded requests, cut into runs of ``length`` decisions; the rest is dropped."""
        rows = [_request(record, prop, groups) for record in records]
        _warn_of_outcomes(rows, prop, groups)
        runs = len(rows) // length
        if not runs:
            raise InvalidValueError(
                f"{len(rows)} recorded requests are too few for one run of {length} decisions: "
                "record more, or compare fewer or shorter periods"
            )
        columns = zip(*rows[: runs * length], strict=True)
        group, proposed, cost, relevant = (np.array(x).reshape(runs, length) for x in columns)
        return Streams(group.astype(np.int8), proposed, cost.astype(np.float64), relevant)


def _warn_of_outcomes(
    rows: Iterable[tuple[int, bool, float, bool]], prop: Property, groups: tuple[Any, ...]
) -> None:
    counting = prop.counting
    if counting.outcome is None or not counting.awaits(False):
        return
    told = OutcomeTally()
    for group, proposed, _, relevant in rows:
        told.know(groups[group], proposed, relevant == counting.outcome)
    told.coverage(relevant=counting.outcome).warn("by what was proposed", stacklevel=3)


def _request(
    record: Record, prop: Property, groups: tuple[Any, ...]
) -> tuple[int, bool, float, bool]:
    group, proposed, cost, outcome = request_of(record, groups, prop)
    if group not in groups:
        raise InvalidValueError(
            f"line {record.line}: unknown group {group!r}, expected {groups[0]!r} or {groups[1]!r}"
        )
    told = outcome == prop.counting.outcome
    return groups.index(group), bool(proposed), cost, told


@dataclass(frozen=True, eq=False)
class Outcome:
    """Outcome holds the decisions of all runs under one policy, or under none.

    Attributes
    ----------
    length
        Decisions in a period.
    accepted
        ``(runs, decisions)``: the final decisions.
    guaranteed
        ``(runs, periods)``: whether a period was certain to end fair when it began, as a
        :class:`~fairshield.Run` says it; ``None`` without a shield.
    expected
        ``(runs, periods)``: what a period was expected to cost when it began, not a number where
        that is not known; ``None`` if it was not asked for, or without a shield.
    """

    prop: Property
    length: int
    start: Counts
    condition: Condition | None
    streams: Streams
    accepted: Flags
    guaranteed: Flags | None = None
    expected: Floats | None = None

    period = Renamed("length")
    costs = Renamed("paid")
    planned = Renamed("guaranteed")

    @cached_property
    def gained(self) -> Ints:
        """``(runs, periods, 4)``: ``n_a, k_a, n_b, k_b`` of each period."""
        streams, counting = self.streams, self.prop.counting
        running = counting.gained(streams.groups, self.accepted, streams.relevant, 2)
        return np.diff(running[:, :: self.length], axis=1)

    @cached_property
    def ends(self) -> Ints:
        """``(runs, periods, 4)``: counters at the end of each period, from the beginning."""
        totals: Ints = np.cumsum(self.gained, axis=1) + np.array(self.start.numbers())
        return totals

    @property
    def n_periods(self) -> int:
        """Periods of each run."""
        return self.streams.length // self.length

    @cached_property
    def _judged(self) -> Judged:
        return judged(self.prop, self.ends.reshape(-1, self.n_periods, 2, 2))

    @property
    def fair(self) -> Flags:
        """``(runs, periods)``: whether the property held at the end of the period."""
        return self._judged.holds

    @property
    def bound(self) -> Flags:
        """``(runs, periods)``: whether the property bound at the end of the period."""
        return self._judged.binds

    @property
    def bias(self) -> Floats:
        """``(runs, periods)``: at the end of the period."""
        return self._judged.bias

    @cached_property
    def condition_met(self) -> Flags | None:
        """``(runs, periods)``: whether the period met the theorem's condition, if it has one."""
        if self.condition is None:
            return None
        # Python integers, as the products of four counters may not fit 64 bits.
        start, gained = (
            Counters(*np.moveaxis(x.astype(object), -1, 0))
            for x in (self.ends - self.gained, self.gained)
        )
        return np.asarray(self.condition.certain(start, gained, 0), dtype=bool)

    @cached_property
    def overruled(self) -> Flags:
        """``(runs, decisions)``: who was overruled."""
        return np.asarray(self.accepted != self.streams.proposed)

    @cached_property
    def paid(self) -> Floats:
        """``(runs, periods)``: what overruling cost."""
        paid = np.where(self.overruled, self.streams.costs, 0.0)
        return np.asarray(paid.reshape(-1, self.n_periods, self.length).sum(axis=2))


def unshielded(policy: PeriodicPolicy, streams: Streams) -> Outcome:
    """The outcome if all proposals are followed."""
    return Outcome(policy.prop, policy.length, policy.start, None, streams, streams.proposed.copy())


def decide_runs(
    policy: PeriodicPolicy,
    streams: Streams,
    *,
    expected: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Decide every run by ``policy``: the first period of all runs, then the second, and so on.

    Runs that begin a period with the same counters share its plan; plans are made in as many
    threads as this process has processors.  With ``expected`` the outcome says what each period was
    expected to cost, which takes milliseconds for each plan.
    """
    if not policy.goes_on:
        raise InvalidValueError("windows that begin anew are not periods of one run: use simulate")
    if streams.length % policy.length:
        raise InvalidValueError(
            f"runs of {streams.length} decisions are not whole periods of {policy.length}: make "
            "their length a multiple of the period"
        )
    periods = streams.length // policy.length
    if policy.last is not None and periods > policy.last:
        raise InvalidValueError(
            f"a policy for {policy.last} periods cannot decide {periods}: ask for at most "
            f"{policy.last}, or make it for {periods}"
        )
    before = np.array(policy.start.numbers())
    outcome = Outcome(
        policy.prop, policy.length, policy.start, policy.condition, streams,
        np.zeros(streams.proposed.shape, bool), np.zeros((streams.n_runs, periods), bool),
        np.full((streams.n_runs, periods), np.nan) if expected else None,
    )  # fmt: skip
    totals = np.broadcast_to(before, (streams.n_runs, 4)).copy()
    with ThreadPoolExecutor(processors()) as pool:
        for i in range(periods):
            starts, which = np.unique(totals, axis=0, return_inverse=True)
            job = _job(policy, outcome, i, starts, which.reshape(-1), totals)
            for done, _ in enumerate(pool.map(job, range(len(starts))), 1):
                if progress is not None:
                    progress((i + done / len(starts)) / periods)
    return outcome


def _job(
    policy: PeriodicPolicy, outcome: Outcome, period: int, starts: Ints, which: Ints, totals: Ints
) -> Callable[[int], None]:
    """Plan the period from one of ``starts``, and decide it in every run that begins with it."""
    order = np.argsort(which, kind="stable")
    edges = np.searchsorted(which[order], np.arange(len(starts) + 1))
    columns = slice(period * policy.length, (period + 1) * policy.length)
    assert outcome.guaranteed is not None
    guaranteed = outcome.guaranteed

    def job(number: int) -> None:
        n_a, k_a, n_b, k_b = starts[number].tolist()
        a, b = policy.groups
        start = Counts({a: (n_a, k_a), b: (n_b, k_b)})
        window = policy.window(start, period)
        runs = order[edges[number] : edges[number + 1]]
        kept = window.policy.guarantees(window.counts, window.decided)
        guaranteed[runs, period] = kept and policy.about_run(start, window.policy)
        if outcome.expected is not None:
            cost = policy.cost_of(window)
            outcome.expected[runs, period] = math.nan if cost is None else cost
        accepted, gained = _decide(window, outcome.streams, runs, columns)
        outcome.accepted[runs, columns] = accepted
        totals[runs] += gained

    return job


def _decide(
    window: WindowPolicy, streams: Streams, runs: Ints, columns: slice
) -> tuple[Flags, Ints]:
    """Decisions of some runs in one period, and the counters gained, from the same counters."""
    from fairshield.runtime.compiled import decide_batches

    policy, costs = window.policy, streams.costs[runs, columns]
    levels = policy.decisions.levels_of(costs).astype(np.int32)
    begin = policy.since_start(window.counts)
    requests = Requests(
        streams.groups[runs, columns], streams.proposed[runs, columns], levels, costs,
        streams.relevant[runs, columns],
    )  # fmt: skip
    accepted, at = decide_batches(policy, window.decided, begin, requests)
    return accepted, at - np.array(begin)
