"""The verifier of periodic policies against brute force, and on tampered tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from strategies import with_decisions

import fairshield as fs
from fairshield.analysis.verify import Verification
from fairshield.periodic import (
    Dynamic,
    ExactPeriodic,
    PeriodicPolicy,
    Perpetual,
    Run,
    RunState,
    StaticBounded,
    StaticFair,
)
from fairshield.policy.layout import layer_rows
from fairshield.policy.rows import RowTable
from fairshield.records import read_records

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
PARITY, OPPORTUNITY = fs.DemographicParity("0.25"), fs.EqualOpportunity("0.4")
START = fs.Counts({"a": (6, 3), "b": (8, 4)})
CONDITIONAL = {
    "static-fair": lambda prop, start: StaticFair(prop, EVEN, 3, start=start),
    "static-bounded": lambda prop, start: StaticBounded(prop, EVEN, 3, start=start),
    "dynamic": lambda prop, start: Dynamic(prop, EVEN, 3, start=start),
    "inactive": lambda prop, start: Dynamic(prop, EVEN, 3, start=start, fallback="inactive"),
}


def check_counterexample(policy: PeriodicPolicy, found: Verification) -> None:
    """It is what the shield does, unfair at the end of a period, and audits see it."""
    example = found.counterexample
    assert example is not None
    shield = Run(policy)
    for n, line in enumerate(example.decisions):
        if n and n % policy.period == 0:
            assert shield.holds(), "an earlier period was unfair already"
        made = shield.decide(line.group, proposed=line.proposed, cost=line.cost)
        assert (made.accepted, made.overruled) == (line.accepted, line.overruled)
        if policy.labelled:
            assert line.outcome is not None
            shield.observe(made, outcome=line.outcome)
    assert len(example.decisions) == shield.completed * policy.period
    assert shield.counts == example.counts
    assert not shield.holds()
    log = read_records(example.to_jsonl().splitlines(), "jsonl")
    report = fs.audit(policy.prop, log, policy=policy)
    assert not report.holds
    assert report.difference is None
    assert report.violations[0].line == len(example.decisions)
    assert (report.violations[0].counts, report.violations[0].bias) == (
        example.counts,
        example.bias,
    )


# Brute force --------------------------------------------------------------------------------


def successors(policy: PeriodicPolicy, state: RunState) -> Iterator[RunState]:
    """What every request and outcome lead to."""
    outcomes = (False, True) if policy.labelled else (None,)
    for group, proposed, cost, outcome in product("ab", (False, True), (0.5, 9.0), outcomes):
        shield = Run(policy, state=state)
        made = shield.decide(group, proposed=proposed, cost=cost)
        if outcome is not None:
            shield.observe(made, outcome=outcome)
        yield shield.state


def first_unfair_period(policy: PeriodicPolicy, periods: int) -> int | None:
    """The first of so many periods that can end unfair."""
    # As many plans as there are starts, not as there are requests.
    policy.__dict__["window"] = cache(policy.window)
    here = {(): Run(policy).state}
    for period in range(periods):
        for _ in range(policy.period):
            after = (next_ for state in here.values() for next_ in successors(policy, state))
            # Counters, and those at the start of the period, say how a run goes on.
            here = {(str(s.start), str(s.counts)): s for s in after}  # type: ignore[misc]
        if not all(policy.prop.holds(state.counts) for state in here.values()):
            return period
    return None


@pytest.mark.parametrize("start", [fs.Counts.zero(("a", "b")), START], ids=["nobody", "some"])
@pytest.mark.parametrize("prop", [PARITY, OPPORTUNITY], ids=str)
@pytest.mark.parametrize("kind", CONDITIONAL)
def test_exploration_finds_what_brute_force_finds(
    kind: str, prop: fs.Property, start: fs.Counts
) -> None:
    policy = CONDITIONAL[kind](prop, start)
    unfair = first_unfair_period(CONDITIONAL[kind](prop, start), 2)
    found = fs.verify(policy, periods=2)
    assert found.holds == (unfair is None)
    if unfair is not None:
        check_counterexample(policy, found)
        assert found.counterexample is not None
        assert len(found.counterexample.decisions) == (unfair + 1) * policy.period


# Promises -----------------------------------------------------------------------------------


@pytest.mark.parametrize("prop", [PARITY, OPPORTUNITY, fs.PredictiveEquality("0.3")], ids=str)
def test_promises_without_condition_are_confirmed(prop: fs.Property) -> None:
    for policy in (
        ExactPeriodic(prop, EVEN, 4, periods=3),
        ExactPeriodic(prop, EVEN, 4, periods=2, start=START),
        Perpetual(prop, EVEN, 4, lookahead=2),
        Perpetual(prop, EVEN, 4, lookahead=1, start=START),
    ):
        found = fs.verify(policy)
        assert found.holds
        assert found.counterexample is None
        assert found.states > 0


def test_a_static_promise_breaks_in_the_second_period_only_with_its_condition() -> None:
    policy = StaticFair(PARITY, EVEN, 5)
    assert fs.verify(policy, periods=1).holds
    found = fs.verify(policy, periods=2)
    check_counterexample(policy, found)
    shield = Run(policy)
    assert found.counterexample is not None
    for line in found.counterexample.decisions:
        shield.decide(line.group, proposed=line.proposed, cost=line.cost)
    assert not shield.guarantee.held


def test_counterexamples_lead_through_several_periods() -> None:
    """A Dynamic shield whose property no theorem covers, from counters it cannot mend."""
    policy = Dynamic(fs.DisparateImpact("0.8"), EVEN, 4)
    found = fs.verify(policy, periods=3)
    check_counterexample(policy, found)
    assert found.counterexample is not None
    assert len(found.counterexample.decisions) > 4


def test_progress_rises_to_the_whole() -> None:
    for policy, periods in (
        (Dynamic(PARITY, EVEN, 3), 2),
        (ExactPeriodic(PARITY, EVEN, 3, periods=2), None),
        (Perpetual(PARITY, EVEN, 3), None),
        (Perpetual(PARITY, EVEN, 3), 2),
    ):
        shares: list[float] = []
        assert fs.verify(policy, periods=periods, progress=shares.append).holds
        assert shares == sorted(shares)
        assert shares[-1] == 1.0


def test_an_exact_policy_is_verified_for_all_its_periods() -> None:
    with pytest.raises(fs.InvalidValueError, match="for all its 2 periods, not for 1"):
        fs.verify(ExactPeriodic(PARITY, EVEN, 3, periods=2), periods=1)


# Tampered tables ----------------------------------------------------------------------------


def credulous(policy: fs.Policy) -> fs.Policy:
    """The policy with tables that call every state feasible and keep every proposal."""
    cuts, starts = np.array(policy.decisions.rows.cuts), policy.decisions.layout.layer_starts
    for t in range(policy.horizon + 1):
        states = layer_rows(t, policy.labelled).states
        cuts[starts[t] : starts[t + 1]] = np.stack([0 * states, states] * 3, axis=1)
    empty = np.empty(0, np.int64)
    return with_decisions(policy, rows=RowTable(cuts, empty, empty, np.empty(0, np.int8)))


def with_tables(policy: PeriodicPolicy, tables: fs.Policy) -> PeriodicPolicy:
    """The policy as if loaded with these tables."""
    policy.__dict__["tables"] = tables
    return policy


@pytest.mark.parametrize("prop", [PARITY, OPPORTUNITY], ids=str)
def test_an_exact_policy_with_corrupted_tables_is_refuted(prop: fs.Property) -> None:
    policy = ExactPeriodic(prop, EVEN, 4, periods=2)
    found = fs.verify(with_tables(policy, credulous(policy.tables)))
    assert not found.holds
    check_counterexample(policy, found)


def test_one_flipped_row_is_found() -> None:
    """Whatever row claims too much, the verifier sees it where it is reached."""
    policy = ExactPeriodic(PARITY, EVEN, 4, periods=2)
    honest, wrong = policy.tables, credulous(policy.tables)
    refuted = 0
    layout = honest.decisions.layout
    for row in range(layout.rows_before(4), layout.n_rows):
        cuts = np.array(honest.decisions.rows.cuts)
        cuts[row] = wrong.decisions.rows.cuts[row]
        tables = with_decisions(honest, rows=replace(honest.decisions.rows, cuts=cuts))
        found = fs.verify(with_tables(policy, tables))
        refuted += not found.holds
        if not found.holds:
            check_counterexample(policy, found)
    assert refuted


@pytest.mark.parametrize(
    ("made", "tables"),
    [
        (ExactPeriodic(PARITY, EVEN, 4, periods=2), {"period": 2, "periods": 4}),
        (ExactPeriodic(PARITY, EVEN, 2, periods=4), {"period": 4, "periods": 2}),
        (ExactPeriodic(PARITY, EVEN, 4, periods=3), {"period": 4, "periods": 2}),
        (ExactPeriodic(fs.DemographicParity("0.1"), EVEN, 4, periods=2), {}),
        (ExactPeriodic(PARITY, EVEN, 4, periods=2, start=START), {}),
        (ExactPeriodic(OPPORTUNITY, EVEN, 4, periods=2), {}),
    ],
)
def test_tables_of_another_promise_are_refused(
    made: PeriodicPolicy, tables: dict[str, Any]
) -> None:
    options = {"period": 4, "periods": 2} | tables
    other = ExactPeriodic(PARITY, EVEN, options["period"], periods=options["periods"]).tables
    policy = with_tables(made, other)
    with pytest.raises(fs.ArtifactError, match="synthesise it again"):
        fs.verify(policy)


def test_a_static_table_of_another_length_is_refused() -> None:
    for period in (3, 5):
        policy = with_tables(StaticFair(PARITY, EVEN, period), StaticFair(PARITY, EVEN, 4).tables)
        with pytest.raises(fs.ArtifactError, match=f"for 4 decisions, .* for {period}"):
            fs.verify(policy)
