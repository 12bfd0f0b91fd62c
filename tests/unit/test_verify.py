"""The verifier against brute force, on honest policies and on tampered ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    Branching,
    NotThatMany,
    Spec,
    labelled_properties,
    plain_properties,
    specs,
    with_decisions,
    with_rows,
    with_spec,
)

import fairshield as fs
from fairshield.analysis.verify.reach import usable_costs
from fairshield.policy.layout import layer_rows
from fairshield.policy.rows import CUTS_WIDTH, RowTable
from fairshield.records import read_records
from fairshield.spec import NoRequirement

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})


# Brute force --------------------------------------------------------------------------------


def costs_of(policy: fs.Policy) -> list[float]:
    """Costs at, between and above the edges of all levels."""
    finite = [e for e in policy.edges.tolist() if e < math.inf]
    return sorted({0.0, 1e9, *finite, *(math.nextafter(e, math.inf) for e in finite)})


def successors(policy: fs.Policy, state: fs.State) -> Iterator[tuple[fs.State, fs.Decision]]:
    """What every request and outcome lead to, one ``step`` at a time."""
    outcomes = (False, True) if policy.labelled else (None,)
    for group, proposed, cost, outcome in product(
        policy.groups, (False, True), costs_of(policy), outcomes
    ):
        yield fs.step(policy, state, group, proposed=proposed, cost=cost, outcome=outcome)


def layers(policy: fs.Policy) -> Iterator[set[fs.State]]:
    """The reachable states after 0, 1, 2, … decisions."""
    here = {fs.State.initial(policy)}
    yield here
    for _ in range(policy.horizon):
        here = {after for state in here for after, _ in successors(policy, state)}
        yield here


def is_kept(policy: fs.Policy, state: fs.State) -> bool:
    """Whether what must hold after so many decisions does."""
    end = state.decided == policy.horizon
    if end and policy.terminal is not None and not policy.terminal.holds(state.counts):
        return False
    return policy.prop.holds(state.counts) or not (end or state.decided in policy.checkpoints)


def first_violation(policy: fs.Policy) -> int | None:
    """After how many decisions something can first be violated that must hold."""
    for t, states in enumerate(layers(policy)):
        if not all(is_kept(policy, s) for s in states):
            return t
    return None


def first_violation_of_sequences(policy: fs.Policy) -> int | None:
    """The same over whole sequences of requests, none of them merged."""
    found: set[int] = set()

    def walk(state: fs.State) -> None:
        if not is_kept(policy, state):
            found.add(state.decided)
        if state.decided < policy.horizon:
            for after, _ in successors(policy, state):
                walk(after)

    walk(fs.State.initial(policy))
    return min(found, default=None)


def check_counterexample(policy: fs.Policy, result: fs.Verification) -> None:
    """It is what the shield really does, it is unfair, it is shortest, and audits see it."""
    found = result.counterexample
    assert found is not None
    shield = fs.Shield(policy)
    for line in found.decisions:
        decision = shield.decide(line.group, proposed=line.proposed, cost=line.cost)
        assert (decision.accepted, decision.overruled) == (line.accepted, line.overruled)
        if policy.labelled:
            assert line.outcome is not None
            shield.observe(decision, outcome=line.outcome)
    assert shield.counts == found.counts
    assert not is_kept(policy, fs.State(len(found.decisions), shield.counts))
    assert not shield.guaranteed
    if policy.prop.holds(shield.counts):
        assert found.violated == str(policy.terminal)
        return
    assert found.violated == str(policy.prop)
    log = found.to_jsonl().splitlines()
    report = fs.audit(policy.prop, read_records(log, "jsonl"), policy=policy)
    assert not report.holds
    assert report.difference is None
    assert report.violations[0].line == len(found.decisions)
    assert report.violations[0].counts == found.counts
    assert report.violations[0].bias == found.bias


def check_result(policy: fs.Policy, shortest: int | None) -> None:
    """The verifier says what brute force says."""
    result = fs.verify(policy)
    assert result.holds == (shortest is None)
    if result.holds:
        assert result.counterexample is None
    else:
        check_counterexample(policy, result)
        assert len(result.counterexample.decisions) == shortest


# Honest policies ----------------------------------------------------------------------------


@given(specs(horizons=(1, 7), max_levels=3), st.sampled_from([1.0, 1.0, 3.0]))
def test_every_synthesised_policy_is_confirmed(spec: Spec, spread: float) -> None:
    assert fs.verify(spec.feasible_policy(spread=spread)).holds


@given(specs(max_levels=3))
def test_exactly_the_reachable_states_are_looked_at(spec: Spec) -> None:
    policy = spec.feasible_policy()
    reachable = list(layers(policy))
    transitions = {
        (state, decision.group, decision.accepted)
        for states in reachable[:-1]
        for state in states
        for _, decision in successors(policy, state)
    }
    result = fs.verify(policy)
    assert result.states == sum(map(len, reachable))
    assert result.transitions == len(transitions)


@pytest.mark.parametrize("prop", [fs.DemographicParity("0.2"), fs.EqualOpportunity("0.2")])
def test_dense_policies_of_the_reference_are_confirmed(prop: fs.Property) -> None:
    policy = fs.synthesize(prop, EVEN, horizon=5, backend="reference")
    assert fs.verify(policy).states == fs.verify(fs.synthesize(prop, EVEN, horizon=5)).states


@pytest.mark.parametrize(
    ("prop", "horizon"),
    [
        (fs.DemographicParity("0.1"), 40),
        (fs.DisparateImpact("0.8", min_support=10), 30),
        (fs.BoundedRates("0.25", "0.75"), 30),
        (fs.ShareParity("0.1", min_support=12), 30),
        (NotThatMany(5), 12),
        (Branching(2), 12),
        (fs.EqualOpportunity("0.1"), 20),
        (fs.PredictiveEquality("0.2"), 15),
    ],
    ids=str,
)
def test_longer_windows_are_confirmed(prop: fs.Property, horizon: int) -> None:
    policy = fs.synthesize(prop, EVEN, horizon=horizon)
    assert fs.verify(policy).holds


def test_a_policy_from_a_file_is_confirmed(tmp_path: Any, plain_policy: fs.Policy) -> None:
    plain_policy.save(tmp_path / "a.shield")
    assert fs.verify(fs.Policy.load(tmp_path / "a.shield")) == fs.verify(plain_policy)


def test_counters_beyond_64_bit_products_are_decided_exactly() -> None:
    half = 10**12
    start = fs.Counts({"a": (2 * half, half), "b": (2 * half, half)})
    policy = fs.synthesize(fs.DemographicParity("0.1"), EVEN, horizon=4, start=start)
    assert fs.verify(policy).holds
    even = fs.DemographicParity(0)
    assert not fs.verify(with_spec(policy, prop=even)).holds


def test_progress_rises_to_one(plain_policy: fs.Policy) -> None:
    shares: list[float] = []
    fs.verify(plain_policy, progress=shares.append)
    assert len(shares) == plain_policy.horizon
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


# Policies that break their promise ----------------------------------------------------------


def test_the_earliest_checkpoint_is_reported() -> None:
    policy = fs.synthesize(fs.DemographicParity(1), EVEN, horizon=6)
    broken = with_spec(policy, prop=fs.DemographicParity("0.5"), checkpoints=(2, 4))
    result = fs.verify(broken)
    assert len(result.counterexample.decisions) == 2
    check_counterexample(broken, result)


def test_a_state_marked_infeasible_is_no_violation_while_the_property_holds() -> None:
    policy = fs.synthesize(fs.DemographicParity(1), EVEN, horizon=4)
    rows = policy.decisions.rows
    lost = with_decisions(policy, rows=RowTable(np.zeros_like(rows.cuts), *arrays_of(rows)[1:]))
    assert not fs.Shield(lost).guaranteed
    assert fs.verify(lost).holds


def test_a_policy_that_follows_every_proposal_is_refuted() -> None:
    policy = fs.synthesize(fs.DemographicParity("0.25"), EVEN, horizon=4)
    rows = policy.decisions.rows
    lost = with_decisions(policy, rows=RowTable(np.zeros_like(rows.cuts), *arrays_of(rows)[1:]))
    check_result(lost, 4)


def test_a_violation_that_only_the_lower_of_two_costs_leads_to_is_found() -> None:
    levels, edges = [1.0, 2.0], [1.0, math.inf]
    inputs = fs.InputModel(("a", "b"), levels, np.full((2, 2, 2), 0.125), edges=edges)
    policy = fs.synthesize(fs.DemographicParity(1), inputs, horizon=2)
    # Proposals to accept are overruled, but not those of cost level 0.
    codes = np.ones_like(policy.decisions.rows.dense_codes)
    ranks = np.broadcast_to(np.array([1, 0]), policy.ranks.shape).copy()
    broken = with_rows(with_decisions(policy, ranks=ranks), dense_codes=codes)
    check_result(with_spec(broken, prop=fs.DemographicParity("0.5")), 2)


def test_a_verification_is_as_true_as_its_guarantee(plain_policy: fs.Policy) -> None:
    confirmed = fs.verify(plain_policy)
    refuted = fs.verify(with_spec(plain_policy, prop=fs.DemographicParity(0)))
    assert confirmed
    assert not refuted
    assert "holds" in str(confirmed)
    assert "violated: 6 decisions lead to" in str(refuted)
    assert refuted.to_dict()["counterexample"]["limit"] == 0.0
    assert confirmed.to_dict()["counterexample"] is None


def test_an_infinite_bias_is_null_in_json() -> None:
    policy = fs.synthesize(fs.DemographicParity(1), EVEN, horizon=2)
    result = fs.verify(with_spec(policy, prop=fs.DisparateImpact(2, two_sided=False)))
    assert result.counterexample.bias == math.inf
    assert result.to_dict()["counterexample"]["bias"] is None


# Tampering ----------------------------------------------------------------------------------


def arrays_of(rows: RowTable) -> list[np.ndarray]:
    return [rows.cuts, rows.dense_rows, rows.dense_starts, rows.dense_codes]


def dense_rows(policy: fs.Policy) -> np.ndarray:
    """Numbers of the rows stored state by state."""
    if policy.decisions.rows.cuts.shape[1] == CUTS_WIDTH:
        return policy.decisions.rows.dense_rows
    return np.flatnonzero(policy.decisions.rows.dense_starts >= 0)


def row_lengths(policy: fs.Policy) -> np.ndarray:
    """States of every row."""
    every = [layer_rows(t, policy.labelled).states for t in range(policy.horizon + 1)]
    return np.concatenate(every)


@st.composite
def changed_cut(draw: st.DrawFn, policy: fs.Policy) -> fs.Policy:
    """Another feasible interval, or another cut, in one row; the codes of dense rows stay put."""
    cuts = policy.decisions.rows.cuts.copy()
    row = draw(st.integers(0, len(cuts) - 1))
    most = int(row_lengths(policy)[row])
    narrow = row in dense_rows(policy)
    ends = st.integers(int(cuts[row, 0]), int(cuts[row, 1])) if narrow else st.integers(0, most)
    lo, hi = sorted((draw(ends), draw(ends)))
    cuts[row, :2] = lo, hi
    if cuts.shape[1] == CUTS_WIDTH and not narrow:
        cuts[row, 2:] = draw(st.lists(st.integers(0, most), min_size=4, max_size=4))
    return with_rows(policy, cuts=cuts)


@st.composite
def widened(draw: st.DrawFn, policy: fs.Policy) -> fs.Policy:
    """Everything from some row on is called feasible."""
    cuts = policy.decisions.rows.cuts.copy()
    first = draw(st.integers(0, len(cuts) - 1))
    cuts[first:, 0], cuts[first:, 1] = 0, row_lengths(policy)[first:]
    if cuts.shape[1] == CUTS_WIDTH:
        cuts[first:, 2:] = 0
    rows, starts = policy.decisions.rows.dense_rows, policy.decisions.rows.dense_starts.copy()
    if cuts.shape[1] == CUTS_WIDTH:
        rows, starts = rows[rows < first], starts[rows < first]
    else:
        starts[first:] = -1
    return with_rows(policy, cuts=cuts, dense_rows=rows, dense_starts=starts)


@st.composite
def changed_codes(draw: st.DrawFn, policy: fs.Policy) -> fs.Policy:
    """Other codes in dense rows, also those that mean not feasible."""
    codes = policy.decisions.rows.dense_codes.copy()
    least = int(np.iinfo(codes.dtype).min)
    for _ in range(draw(st.integers(1, 5)) if len(codes) else 0):
        levels = len(policy.edges)
        value = draw(st.sampled_from([least, *range(-levels, levels + 1)]))
        codes[draw(st.integers(0, len(codes) - 1))] = value
    return with_rows(policy, dense_codes=codes)


@st.composite
def changed_property(draw: st.DrawFn, policy: fs.Policy) -> fs.Policy:
    """A property that the policy was not made for, perhaps a tighter bound."""
    if policy.labelled:
        return with_spec(policy, prop=draw(labelled_properties), terminal=None)
    return with_spec(policy, prop=draw(plain_properties))


@st.composite
def changed_ranks(draw: st.DrawFn, policy: fs.Policy) -> fs.Policy:
    """Other cost levels are overruled."""
    n = policy.ranks.size
    ranks = draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    return with_decisions(policy, ranks=np.array(ranks).reshape(policy.ranks.shape))


@st.composite
def changed_window(draw: st.DrawFn, policy: fs.Policy) -> fs.Policy:
    """Another start, or more checkpoints than were planned for."""
    points = draw(st.sets(st.integers(1, policy.horizon), max_size=3))
    seen = {g: draw(st.integers(0, 3)) for g in policy.groups}
    start = fs.Counts({g: (n, draw(st.integers(0, n))) for g, n in seen.items()})
    return with_spec(policy, start=start, checkpoints=tuple(sorted(points)))


@st.composite
def changed_end(draw: st.DrawFn, policy: fs.Policy) -> fs.Policy:
    """Something else that is said to hold at the end, often nothing."""
    outcome = policy.prop.relevant_outcome
    others = plain_properties if outcome is None else labelled_properties
    same = others.filter(lambda prop: prop.relevant_outcome == outcome)
    return with_spec(policy, terminal=draw(st.just(NoRequirement(outcome)) | same))


TAMPERING = (
    changed_cut, widened, changed_codes, changed_property, changed_ranks, changed_window,
    changed_end,
)  # fmt: skip


@st.composite
def tampered(draw: st.DrawFn, policy: fs.Policy) -> fs.Policy:
    """Readable tables that say something else."""
    for tamper in draw(st.lists(st.sampled_from(TAMPERING), min_size=1, max_size=3)):
        policy = draw(tamper(policy))
    return policy


@given(specs(max_levels=2), st.data())
def test_tampered_policies_are_judged_as_brute_force_judges_them(
    spec: Spec, data: st.DataObject
) -> None:
    policy = data.draw(tampered(spec.feasible_policy()))
    check_result(policy, first_violation(policy))


@given(specs(max_levels=1, horizons=(1, 3)), st.data())
def test_tampered_policies_are_judged_as_all_their_sequences_are(
    spec: Spec, data: st.DataObject
) -> None:
    policy = data.draw(tampered(spec.feasible_policy()))
    check_result(policy, first_violation_of_sequences(policy))


@given(
    st.fractions(0, 1, max_denominator=10),
    st.fractions(0, 1, max_denominator=10),
    st.booleans(),
    st.integers(1, 6),
)
def test_a_tighter_bound_than_planned_is_refuted_unless_it_holds_anyway(
    planned: Any, claimed: Any, labelled: bool, horizon: int
) -> None:
    cls = fs.EqualOpportunity if labelled else fs.DemographicParity
    policy = fs.synthesize(cls(planned), EVEN, horizon=horizon)
    claim = with_spec(policy, prop=cls(claimed))
    if claimed >= planned:
        assert fs.verify(claim).holds
    else:
        check_result(claim, first_violation(claim))


@st.composite
def scrambled(draw: st.DrawFn, policy: fs.Policy) -> fs.Policy:
    """Tables with arbitrary numbers in a few places."""
    cuts, dense_rows, dense_starts, codes = (a.copy() for a in arrays_of(policy.decisions.rows))
    for _ in range(draw(st.integers(1, 4))):
        array = draw(
            st.sampled_from([a for a in (cuts, dense_rows, dense_starts, codes) if a.size])
        )
        info = np.iinfo(array.dtype)
        near = st.integers(max(-2, info.min), min(len(cuts) + 2, info.max))
        value = draw(near | st.integers(info.min, info.max))
        array.reshape(-1)[draw(st.integers(0, array.size - 1))] = value
    return with_decisions(policy, rows=RowTable(cuts, dense_rows, dense_starts, codes))


@given(specs(horizons=(1, 4)), st.data())
def test_scrambled_tables_are_refused_or_judged_never_misread(
    spec: Spec, data: st.DataObject
) -> None:
    policy = data.draw(scrambled(spec.feasible_policy()))
    try:
        fs.verify(policy)
    except fs.ArtifactError:
        return
    check_result(policy, first_violation(policy))


# Costs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edges", "costs"),
    [
        ([1.0], {0: 1.0, 1: 2.0}),
        ([0.0], {0: 0.0, 1: 1.0}),
        ([math.inf], {0: 1.0}),
        ([0.5, math.inf], {0: 0.5, 1: 1.5}),
        ([2.0, 2.0], {0: 2.0, 2: 3.0}),
        ([1e300, math.inf], {0: 1e300, 1: math.nextafter(1e300, math.inf)}),
        ([math.nextafter(math.inf, 0)], {0: math.nextafter(math.inf, 0)}),
    ],
)
def test_every_level_that_a_cost_falls_into_has_such_a_cost(
    edges: list[float], costs: dict[int, float]
) -> None:
    assert dict(usable_costs(edges)) == costs
