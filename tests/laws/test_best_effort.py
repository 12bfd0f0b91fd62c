"""Where fairness cannot be guaranteed: the least probability of violation, then the least cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    COSTS,
    GROUPS,
    NotThatMany,
    NotThatManyQualified,
    Spec,
    bounds,
    code_at,
    contested_models,
    finely_priced_models,
    options,
    positions,
    run,
    specs,
    streams,
    with_decisions,
)

import fairshield as fs
from fairshield.analysis.simulate import simulate
from fairshield.runtime import compiled
from fairshield.runtime.evaluate import evaluate
from fairshield.runtime.step import verdict
from fairshield.synthesis import memory
from fairshield.synthesis.problem import Problem
from fairshield.synthesis.reference import SAME_RISK, Position, is_fair

START = Position(0, (0, 0, 0, 0))

# Properties of which few starts can be sure.
tight = st.fractions(0, "1/8", max_denominator=12)
rates = st.builds(lambda low: fs.BoundedRates(low, low + Fraction(1, 3), min_support=0), tight)
hard_plain = st.one_of(
    st.builds(fs.DemographicParity, tight),
    st.builds(fs.ShareParity, tight),
    rates,
    st.builds(NotThatMany, st.integers(0, 3)),
)
hard_labelled = st.one_of(
    st.builds(fs.EqualOpportunity, tight),
    st.builds(fs.PredictiveEquality, tight),
    st.builds(NotThatManyQualified, st.integers(0, 3)),
)
hard = hard_plain | hard_labelled
TOLERANCE = {"rel": 1e-9, "abs": 1e-8}
"""Ties within 1e-12 of risk and 1e-9 of the largest cost are not sought."""


@pytest.fixture(scope="module")
def unlucky(even: fs.InputModel) -> fs.Policy:
    """Two people seen in one group, so that each of the next moves its rate by far."""
    start = fs.Counts({"a": (2, 1), "b": (98, 49)})
    return fs.synthesize(
        fs.DemographicParity("0.05"), even, horizon=20, start=start, best_effort=True
    )


def requests_of(policy: fs.Policy) -> Iterator[tuple[int, bool, float]]:
    return product((0, 1), (False, True), (*policy.edges[policy.edges < np.inf].tolist(), *COSTS))


# Against definitions ------------------------------------------------------------------------


class Prospect(NamedTuple):
    lost: bool
    risk: float
    cost: float


def prospect_of_traces(problem: Problem) -> Prospect:
    """Best effort over whole traces; everything is looked up afresh in the definition.

    A decision on somebody who cannot count changes no probability, so that its cost decides, if
    there is no guarantee to be kept.
    """
    table, relevant = problem.table, problem.spec.prop.relevant_outcome
    outcomes = (None,) if relevant is None else (False, True)
    points = {*problem.spec.checkpoints, problem.layout.horizon}

    def chance(z: bool | None, *cell: int) -> float:
        if z is None:
            return 1.0
        assert table.outcomes is not None
        return float(table.outcomes[cell] if z else 1.0 - table.outcomes[cell])

    def v(t: int, s: Position) -> Prospect:
        if t in points and not is_fair(problem, s):
            return Prospect(True, 1.0, 0.0)
        if t == problem.layout.horizon:
            return Prospect(False, 0.0, 0.0)
        i = t if len(table.probs) > 1 else 0
        risk = cost = 0.0
        then = {
            (g, y, z): v(t + 1, s.after(g, y == 1) if z == relevant else s.unchanged())
            for g, y, z in product((0, 1), (0, 1), outcomes)
        }
        safe = {
            (g, y): not any(then[g, y, z].lost for z in outcomes)
            for g, y in product((0, 1), (0, 1))
        }
        lost = not all(safe[g, 0] or safe[g, 1] for g in (0, 1))
        for g in (0, 1):
            after = [{z: then[g, y, z] for z in outcomes} for y in (0, 1)]
            counted = [after[y][relevant] for y in (0, 1)]
            for r, level in product((0, 1), range(len(table.levels))):
                z_chances = {z: chance(z, i, g, r, level) for z in outcomes}
                expected = [
                    Prospect(
                        counted[y].lost,
                        sum(p * after[y][z].risk for z, p in z_chances.items()),
                        sum(p * after[y][z].cost for z, p in z_chances.items())
                        + table.levels[level] * (y != r),
                    )
                    for y in (0, 1)
                ]
                gap = abs(expected[0].risk - expected[1].risk)
                matters = not lost or z_chances[relevant] > SAME_RISK
                by_risk = (counted[0].lost != counted[1].lost and matters) or gap > SAME_RISK
                best = min((0, 1), key=lambda y: counted[y][:2] if by_risk else expected[y].cost)
                weight = float(table.probs[i, g, r, level])
                risk += weight * expected[best].risk
                cost += weight * expected[best].cost
        return Prospect(lost, risk, cost)

    return v(0, START)


@settings(max_examples=examples(60))
@given(
    specs(hard_plain, horizons=(1, 4), max_levels=1)
    | specs(hard_plain, horizons=(1, 3), max_levels=2)
    | specs(hard_labelled, horizons=(1, 3), max_levels=1)
    | specs(hard_labelled, horizons=(1, 2), max_levels=2)
)
def test_risk_and_cost_are_the_least_over_all_decisions_on_all_traces(spec: Spec) -> None:
    least = prospect_of_traces(spec.problem())
    for backend in ("cpu", "reference"):
        policy = spec.synthesize(best_effort=True, backend=backend)
        assert (policy.decisions.salvage is not None) == least.lost
        assert policy.risk == pytest.approx(least.risk, **TOLERANCE)
        assert policy.expected_cost == pytest.approx(least.cost, **TOLERANCE)


def some_cannot_count(chance: float = 0.0) -> Spec:
    """Proposals to reject b never count, or hardly ever."""
    cells = [(g, r, 1.0) for g in GROUPS for r in (False, True)]
    outcomes = {(g, r, c): 0.5 if g == "a" or r else chance for g, r, c in cells}
    inputs = fs.InputModel.from_table(dict.fromkeys(cells, 0.25), outcomes=outcomes)
    return Spec(fs.EqualOpportunity(0), inputs, 2, fs.Counts({"a": (1, 1), "b": (1, 0)}), ())


@pytest.mark.parametrize("chance", [0.0, 1e-50, 1e-13])
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_nothing_is_paid_for_people_who_cannot_count(backend: Any, chance: float) -> None:
    spec = some_cannot_count(chance)
    policy = spec.synthesize(best_effort=True, backend=backend)
    assert (policy.risk, policy.expected_cost) == pytest.approx((0.9375, 0.28125), rel=1e-12)
    assert carried_out(policy, spec.problem()) == pytest.approx((0.9375, 0.28125), rel=1e-12)


def test_a_table_of_before_decides_as_before() -> None:
    spec = some_cannot_count()
    policy = spec.synthesize(best_effort=True)
    salvage, everybody = policy.decisions.salvage, 2
    assert salvage is not None
    codes = np.clip(salvage.dense_codes, -everybody, everybody)
    before = with_decisions(policy, salvage=replace(salvage, dense_codes=codes))
    assert carried_out(before, spec.problem()) == pytest.approx((0.9375, 0.59375), rel=1e-12)


def can_be_sure(problem: Problem, s: Position) -> bool:
    """Whether fairness can be guaranteed: for every group by some decision, for every outcome."""
    if s.t in (*problem.spec.checkpoints, problem.horizon) and not is_fair(problem, s):
        return False
    if s.t == problem.horizon:
        return True
    if problem.spec.labelled and not can_be_sure(problem, s.unchanged()):
        return False
    return all(any(can_be_sure(problem, s.after(g, y)) for y in (False, True)) for g in (0, 1))


def keeping(problem: Problem, s: Position, group: int, chance: float) -> list[int]:
    """Decisions that give up no guarantee.

    One that there is binds for everybody.  One that there is only after this decision binds for
    those who may count.
    """
    sure = [y for y in (0, 1) if can_be_sure(problem, s.after(group, y == 1))]
    binds = can_be_sure(problem, s) or chance > SAME_RISK
    return sure if sure and binds else [0, 1]


def either(problem: Problem, s: Position, group: int, chance: float) -> list[int]:
    """All decisions, as a rule like :func:`keeping`."""
    return [0, 1]


def risks_and_costs(problem: Problem, s: Position, rule: Any) -> Any:
    """Probability of violation and cost of every deterministic policy for two decisions.

    ``rule`` says which decisions it may make.
    """
    if s.t in problem.spec.checkpoints and not is_fair(problem, s):
        return np.ones(1), np.zeros(1)
    if s.t == problem.horizon:
        return np.full(1, float(not is_fair(problem, s))), np.zeros(1)
    cells = list(product((0, 1), (0, 1)))
    i = s.t if len(problem.table.probs) > 1 else 0
    probs, chances = (
        problem.table.probs[i],
        problem.table.relevance(problem.spec.prop.relevant_outcome)[i],
    )
    after = {key: risks_and_costs(problem, s.after(key[0], key[1] == 1), rule) for key in cells}
    rests = risks_and_costs(problem, s.unchanged(), rule) if problem.spec.labelled else after[0, 0]
    after |= {"stays": rests}
    axes = {key: n for n, key in enumerate(after)}
    found = []
    for answers in product(*(rule(problem, s, g, chances[g, r, 0]) for g, r in cells)):
        total = [np.zeros((1,) * len(axes)) for _ in range(2)]
        for (g, r), y in zip(cells, answers, strict=True):
            price = problem.table.levels[0] * (y != r)
            total[1] = total[1] + probs[g, r, 0] * price
            z = chances[g, r, 0]
            for key, chance in (((g, y), z), ("stays", 1.0 - z)):
                shape = [1] * len(axes)
                shape[axes[key]] = -1
                for n, part in enumerate(after[key]):
                    total[n] = total[n] + probs[g, r, 0] * chance * part.reshape(shape)
        found.append([x.reshape(-1) for x in np.broadcast_arrays(*total)])
    pairs = np.stack([np.concatenate(part) for part in zip(*found, strict=True)])
    return tuple(np.unique(np.round(pairs, 14), axis=1))


uniform = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
askew = fs.InputModel.from_table(
    {("a", False, 1.0): 0.1, ("a", True, 1.0): 0.4, ("b", False, 1.0): 0.3, ("b", True, 1.0): 0.2}
)
gaps = fs.InputModel.from_table({("a", True, 1.0): 0.5, ("b", False, 1.0): 0.5})
"""Half of the requests have probability zero."""
only_a = fs.InputModel.from_table(
    {("a", False, 1.0): 0.5, ("a", True, 1.0): 0.5, ("b", False, 1.0): 0.0}
)
some = st.sampled_from([uniform, askew, gaps, only_a])


@st.composite
def partly_counted(draw: st.DrawFn) -> fs.InputModel:
    """Some never count, some hardly ever, some always."""
    given = draw(some)
    chances = st.sampled_from([0.5, 0.0, 1.0, 1e-50])
    outcomes = np.array([draw(chances) for _ in range(4)]).reshape(2, 2, 1)
    return fs.InputModel(given.groups, given.levels, given.probs, outcomes)


def assert_least(spec: Spec, policy: fs.Policy) -> None:
    """No policy at all violates less often; none that keeps guarantees costs less at that risk."""
    problem = spec.problem()
    every, _ = risks_and_costs(problem, START, either)
    risk, cost = risks_and_costs(problem, START, keeping)
    assert policy.risk == pytest.approx(every.min(), abs=1e-12)
    assert policy.expected_cost == pytest.approx(
        cost[risk <= every.min() + 1e-12].min(), **TOLERANCE
    )


@settings(max_examples=examples(100))
@given(
    specs(hard_plain, horizons=(1, 2), models=some)
    | specs(hard_labelled, horizons=(1, 2), models=partly_counted())
)
def test_no_deterministic_policy_violates_less_often_or_as_often_for_less(spec: Spec) -> None:
    for backend in ("cpu", "reference"):
        assert_least(spec, spec.synthesize(best_effort=True, backend=backend))


def reached_guarantee() -> Spec:
    """If a is accepted and counts, fairness is guaranteed, as long as everybody of b is accepted.

    Nobody of b whose rejection is proposed is expected to count.
    """
    outcomes = np.array([[0.0, 0.5], [0.0, 0.5]]).reshape(2, 2, 1)
    inputs = fs.InputModel(uniform.groups, uniform.levels, uniform.probs, outcomes)
    start = fs.Counts({"a": (2, 0), "b": (4, 1)})
    return Spec(fs.EqualOpportunity("1/8"), inputs, 2, start, ())


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_guarantee_once_reached_is_paid_for_whoever_is_expected_to_count(backend: Any) -> None:
    spec = reached_guarantee()
    policy = spec.synthesize(best_effort=True, backend=backend)
    assert_least(spec, policy)
    assert (policy.risk, policy.expected_cost) == pytest.approx((0.765625, 0.0625), rel=1e-12)
    risk, cost = risks_and_costs(spec.problem(), START, either)
    trusting_the_model = cost[risk == risk.min()].min()
    assert trusting_the_model == pytest.approx(0.03125)
    shield = fs.Shield(policy)
    counts = shield.decide("a", proposed=True)
    shield.observe(counts, outcome=True)
    rejected = shield.decide("b", proposed=False, cost=1e9)
    assert (rejected.accepted, rejected.why, rejected.guaranteed) == (True, fs.Why.FORCED, True)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_the_way_to_a_guarantee_is_taken_although_the_model_sees_no_risk(backend: Any) -> None:
    # Two are accepted, which must not stay so.  Says the model, everybody counts: who rejects the
    # first can still accept the second.
    inputs = fs.InputModel(uniform.groups, uniform.levels, uniform.probs, np.ones((2, 2, 1)))
    start = fs.Counts({"a": (1, 1), "b": (1, 1)})
    spec = Spec(NotThatManyQualified(2), inputs, 2, start, ())
    policy = spec.synthesize(best_effort=True, backend=backend)
    assert_least(spec, policy)
    assert 0.0 < policy.risk < 1e-200
    assert policy.expected_cost == pytest.approx(0.5, rel=1e-12)
    risk, cost = risks_and_costs(spec.problem(), START, either)
    trusting_the_model = cost[risk == risk.min()].min()
    assert trusting_the_model == pytest.approx(0.25)
    assert fs.Shield(policy).decide("a", proposed=False, cost=1e9).accepted


@settings(max_examples=examples(50))
@given(
    specs(hard, horizons=(1, 6), max_levels=3)
    | specs(hard_plain, horizons=(7, 9), max_levels=2)
    | specs(hard, horizons=(2, 5), models=finely_priced_models())
    | specs(hard, horizons=(5, 7), models=contested_models())
)
def test_the_kernel_decides_as_the_reference_does(spec: Spec) -> None:
    policy, reference = (spec.synthesize(best_effort=True, backend=b) for b in ("cpu", "reference"))
    assert policy.risk == pytest.approx(reference.risk, rel=1e-12)
    assert policy.expected_cost == pytest.approx(reference.expected_cost, rel=1e-12, abs=1e-25)
    for s in positions(spec.horizon, policy.labelled):
        assert policy.decisions.feasible(*s) == reference.decisions.feasible(*s)
        for g in (0, 1) if s.t < spec.horizon else ():
            assert code_at(policy.decisions, *s, g) == code_at(reference.decisions, *s, g)


# What the decisions bring about -------------------------------------------------------------


def carried_out(policy: fs.Policy, problem: Problem) -> tuple[float, float]:
    """Probability of violation, and expected cost up to it, of the decisions as deployed."""
    table, relevant = problem.table, policy.prop.relevant_outcome
    here: dict[Position, float] = {START: 1.0}
    violated = cost = 0.0
    for t in range(policy.horizon):
        i = t if len(table.probs) > 1 else 0
        after: defaultdict[Position, float] = defaultdict(float)
        for (s, mass), g, r in product(here.items(), (0, 1), (False, True)):
            for level, price in enumerate(table.levels.tolist()):
                p = mass * float(table.probs[i, g, int(r), level])
                accepted, _ = verdict(policy, *s, g, r, price)
                cost += p * price * (accepted != r)
                z = 1.0
                if relevant is not None:
                    assert table.outcomes is not None
                    positive = float(table.outcomes[i, g, int(r), level])
                    z = positive if relevant else 1.0 - positive
                after[s.after(g, accepted)] += p * z
                if relevant is not None:
                    after[s.unchanged()] += p * (1.0 - z)
        here = {s: p for s, p in after.items() if p > 0.0}
        if t + 1 in (*policy.checkpoints, policy.horizon):
            fair = {s: p for s, p in here.items() if is_fair(problem, s)}
            violated, here = violated + sum(here.values()) - sum(fair.values()), fair
    return violated, cost


@given(specs(hard, horizons=(1, 5)))
def test_the_decisions_bring_what_was_promised(spec: Spec) -> None:
    policy = spec.synthesize(best_effort=True)
    risk, cost = carried_out(policy, spec.problem())
    assert policy.risk == pytest.approx(risk, **TOLERANCE)
    assert policy.expected_cost == pytest.approx(cost, **TOLERANCE)
    if not spec.checkpoints:
        assert evaluate(policy).expected_cost == pytest.approx(cost, **TOLERANCE)


def test_windows_are_violated_as_often_as_promised(unlucky: fs.Policy) -> None:
    n = 100_000
    result = simulate(unlucky, n_windows=n, rng=np.random.default_rng(5))
    error = (unlucky.risk * (1 - unlucky.risk) / n) ** 0.5
    assert unlucky.risk > 0.001
    assert result.n_unfair / n == pytest.approx(unlucky.risk, abs=5 * error)
    assert result.mean_paid == pytest.approx(unlucky.expected_cost, abs=5 * result.paid_error)
    assert result.n_unfair_unshielded > 0.5 * n


# Laws ---------------------------------------------------------------------------------------


@given(spec=specs() | specs(hard))
def test_where_fairness_can_be_guaranteed_nothing_changes(
    spec: Spec, tmp_path_factory: pytest.TempPathFactory
) -> None:
    policy = spec.synthesize(best_effort=True)
    path = tmp_path_factory.mktemp("effort") / "policy.shield"
    try:
        digest = spec.synthesize().save(path)
    except fs.InfeasibleError:
        assert policy.risk > 0.0
        assert policy.decisions.salvage is not None
        assert not policy.guarantees(policy.start, 0)
        assert not fs.verify(policy)
    else:
        assert policy.risk == 0.0
        assert policy.decisions.salvage is None
        assert policy.save(path) == digest


@given(
    st.sampled_from([fs.DemographicParity, fs.EqualOpportunity, fs.ShareParity]),
    st.tuples(bounds, bounds),
    options,
    specs(),
)
def test_a_looser_bound_never_raises_the_risk(
    kind: Any, pair: tuple[Fraction, Fraction], given: Any, spec: Spec
) -> None:
    low, high = sorted(pair)
    loose, strict = (
        spec._replace(prop=kind(bound, **given)).synthesize(best_effort=True).risk
        for bound in (high, low)
    )
    assert loose <= strict + 1e-11
    assert loose == 0.0 or strict > 0.0


@settings(max_examples=examples(50))
@given(specs(hard, max_levels=3) | specs(hard_plain, horizons=(6, 8)))
def test_compiled_decisions_are_those_of_the_python_rule(spec: Spec) -> None:
    for backend in ("cpu", "reference"):
        policy = spec.synthesize(best_effort=True, backend=backend)
        tables = policy.decisions.tables
        for s in positions(spec.horizon - 1, policy.labelled):
            for g, r, cost in requests_of(policy):
                level = int(np.searchsorted(policy.edges, cost))
                accepted, _ = verdict(policy, *s, g, r, cost)
                assert compiled.verdict(tables, s.t, np.array(s.at), g, r, level) == accepted


@given(spec=specs(hard, max_levels=3), data=st.data())
def test_a_saved_policy_decides_the_same(
    spec: Spec, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    policy = spec.synthesize(best_effort=True)
    path = tmp_path_factory.mktemp("effort") / "policy.shield"
    policy.save(path)
    loaded = fs.Policy.load(path)
    assert (loaded.risk, loaded.expected_cost) == (policy.risk, policy.expected_cost)
    assert loaded.nbytes == policy.nbytes
    stream = data.draw(streams(spec.horizon))
    ours, theirs, together = (fs.Shield(p) for p in (policy, loaded, loaded))
    decisions = run(ours, stream)
    assert decisions == run(theirs, stream)
    groups, proposed, costs, outcomes = zip(*stream, strict=True)
    batch = together.decide_many(groups, proposed, costs, outcomes=outcomes)
    assert batch.accepted.tolist() == [d.accepted for d in decisions]


@given(specs(hard), st.data())
def test_a_guarantee_is_claimed_only_where_there_is_one(spec: Spec, data: st.DataObject) -> None:
    policy = spec.synthesize(best_effort=True)
    shield = fs.Shield(policy)
    for request in data.draw(streams(spec.horizon)):
        (decision,) = run(shield, [request])
        assert decision.guaranteed == (decision.why is not fs.Why.LOST)
        assert shield.guaranteed >= decision.guaranteed
        assert shield.guaranteed == policy.guarantees(shield.counts, shield.decided)
    assert shield.guaranteed == spec.prop.holds(shield.counts)


@given(specs(hard), st.data())
def test_without_a_salvage_table_a_lost_proposal_is_kept(spec: Spec, data: st.DataObject) -> None:
    policy = spec.feasible_policy()
    shield = fs.Shield(policy)
    for request in data.draw(streams(spec.horizon)):
        group = GROUPS.index(request.group)
        at = policy.position(shield.counts, shield.decided)
        lost = not any(policy.decisions.look_up(shield.decided, at, group)[:2])
        advice = shield.advise(request.group, proposed=request.proposed, cost=request.cost)
        assert not (lost and advice.overruled)
        final = shield.record(advice, final=data.draw(st.booleans()))
        if policy.labelled:
            shield.observe(final, outcome=request.outcome)


@given(specs(hard, checkpointed=False))
def test_spreading_costs_money_and_no_risk(spec: Spec) -> None:
    plain = spec.synthesize(best_effort=True)
    spread = spec.synthesize(best_effort=True, spread=3.0)
    assert spread.risk == pytest.approx(plain.risk, abs=1e-11)
    assert spread.least_cost == pytest.approx(plain.expected_cost, **TOLERANCE)
    assert spread.expected_cost >= plain.expected_cost - 1e-8


# Examples -----------------------------------------------------------------------------------


def test_a_hopeless_window_is_left_alone(even: fs.InputModel) -> None:
    start = fs.Counts({"a": (90, 0), "b": (90, 90)})
    policy = fs.synthesize(
        fs.DemographicParity("0.1"), even, horizon=6, start=start, best_effort=True
    )
    assert (policy.risk, policy.expected_cost) == (1.0, 0.0)
    assert policy.decisions.salvage is not None
    assert not policy.decisions.salvage.n_dense


def test_a_risk_is_avoided_at_any_cost_and_said_so(unlucky: fs.Policy) -> None:
    shield = fs.Shield(unlucky)
    decisions = [shield.decide("a", proposed=True, cost=1e9) for _ in range(3)]
    overruled = next(d for d in decisions if d.overruled)
    assert overruled.why is fs.Why.LOST
    assert overruled.reason == (
        "overruled: fairness can no longer be guaranteed from these counters, and accepting is "
        "riskier or dearer"
    )
    assert not overruled.guaranteed
    assert str(unlucky).endswith(f"violated with probability {unlucky.risk:.6g}")


def test_policies_with_and_without_salvage_share_compiled_code(
    unlucky: fs.Policy, plain_policy: fs.Policy
) -> None:
    fs.Shield(plain_policy).decide_many(["a"], [True])
    before = len(compiled.decide_stream.signatures)
    fs.Shield(unlucky).decide_many(["a"], [True])
    assert len(compiled.decide_stream.signatures) == before


def test_a_salvage_table_that_cannot_be_read_is_refused(unlucky: fs.Policy) -> None:
    salvage = unlucky.decisions.salvage
    assert salvage is not None
    wide = with_decisions(unlucky, salvage=unlucky.decisions.rows)
    with pytest.raises(fs.ArtifactError, match="salvage table have 6 columns"):
        fs.verify(wide)
    short = with_decisions(unlucky, salvage=replace(salvage, dense_codes=salvage.dense_codes[:3]))
    with pytest.raises(fs.ArtifactError, match="of 3 codes"):
        fs.verify(short)


def test_half_a_salvage_table_is_not_a_policy(unlucky: fs.Policy, tmp_path: Path) -> None:
    path = tmp_path / "policy.shield"
    unlucky.save(path)
    data, arrays = fs.policy.artifact.read_artifact(path)
    del arrays["salvage_cuts"]
    fs.policy.artifact.write_artifact(path, data, arrays)
    with pytest.raises(fs.ArtifactError, match="not a policy"):
        fs.Policy.load(path)


def test_tables_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = Spec(fs.DemographicParity("0"), uniform, 40, fs.Counts({"a": (2, 1), "b": (97, 49)}), ())
    need = memory.salvage_bytes(fs.policy.layout.Layout(40, False), 1)
    monkeypatch.setattr(memory, "_NOT_WORTH_ASKING", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: need - 1)
    with pytest.raises(fs.MemoryLimitError, match="horizon 40 needs about"):
        spec.synthesize(best_effort=True)


def test_progress_goes_on_with_the_best_effort() -> None:
    spec = Spec(fs.DemographicParity("0"), uniform, 40, fs.Counts({"a": (2, 1), "b": (97, 49)}), ())
    shares: list[float] = []
    spec.synthesize(best_effort=True, progress=shares.append)
    assert any(0.5 < share < 1.0 for share in shares)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
