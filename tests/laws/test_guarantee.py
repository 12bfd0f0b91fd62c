"""Whatever comes, a shielded window ends fair.  The one promise everything else serves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    COSTS,
    GROUPS,
    Branching,
    NotThatMany,
    NotThatManyQualified,
    Quota,
    Request,
    Spec,
    mendable_properties,
    run,
    specs,
    streams,
)

import fairshield as fs

EVERY_KIND = [
    fs.DemographicParity("0.1"),
    fs.DemographicParity("1/3", min_support=2),
    fs.DemographicParity("0.2", undefined="rate-0"),
    fs.DisparateImpact("0.8"),
    fs.DisparateImpact("1/2", min_support=2, undefined="rate-0"),
    fs.DisparateImpact("1.25", two_sided=False),
    fs.ShareParity("0.1"),
    fs.ShareParity("1/3", min_support=1),
    fs.BoundedRates("0.3", "0.7"),
    fs.BoundedRates("0", "1/2", min_support=0),
    Quota(1),
    NotThatMany(3),
    Branching(1),
    fs.EqualOpportunity("0.1"),
    fs.EqualOpportunity("1/3", min_support=2),
    fs.EqualOpportunity("0.25", undefined="rate-0"),
    fs.PredictiveEquality("0.1"),
    NotThatManyQualified(2),
]
every_kind = pytest.mark.parametrize("prop", EVERY_KIND, ids=repr)

SKEWED = fs.InputModel.from_table(
    {
        ("a", True, 0.25): 0.4, ("a", False, 1.0): 0.2,
        ("b", True, 1.0): 0.0, ("b", False, 0.25): 0.4,
    },
    outcomes={"a": 0.9, ("b", True): 0.0, ("b", False): 0.5},
)  # fmt: skip


# Random windows -----------------------------------------------------------------------------


@given(specs(), st.data())
def test_every_stream_ends_fair(spec: Spec, data: st.DataObject) -> None:
    shield = fs.Shield(spec.feasible_policy())
    run(shield, data.draw(streams(spec.horizon)))
    assert spec.prop.holds(shield.counts)


@given(specs(mendable_properties, horizons=(3, 7), checkpointed=False), st.data())
def test_every_stream_is_fair_at_every_checkpoint(spec: Spec, data: st.DataObject) -> None:
    points = data.draw(st.sets(st.integers(1, spec.horizon), min_size=1))
    spec = spec._replace(checkpoints=tuple(points))
    shield = fs.Shield(spec.feasible_policy())
    for request in data.draw(streams(spec.horizon)):
        run(shield, [request])
        if shield.decided in points:
            assert spec.prop.holds(shield.counts)


@given(specs(), st.data())
def test_the_guarantee_is_never_out_of_sight(spec: Spec, data: st.DataObject) -> None:
    shield = fs.Shield(spec.feasible_policy())
    assert shield.guaranteed
    for request in data.draw(streams(spec.horizon)):
        (decision,) = run(shield, [request])
        assert decision.guaranteed
        assert shield.guaranteed


@given(specs(horizons=(1, 4)), st.data())
def test_groups_the_model_thinks_impossible_are_guaranteed_as_well(
    spec: Spec, data: st.DataObject
) -> None:
    table = {("a", r, 1.0): 0.5 for r in (False, True)} | {("b", True, 1.0): 0.0}
    only_a = fs.InputModel.from_table(table, outcomes={"a": 1.0, "b": 0.0})
    shield = fs.Shield(spec._replace(inputs=only_a).feasible_policy())
    run(shield, data.draw(streams(spec.horizon)))
    assert spec.prop.holds(shield.counts)


# All windows --------------------------------------------------------------------------------


def reachable(policy: fs.Policy) -> list[set[fs.State]]:
    """States after each number of decisions, over all requests, costs and outcomes."""
    outcomes = (False, True) if policy.labelled else (None,)
    arrivals = list(product(policy.groups, (False, True), COSTS, outcomes))
    layers = [{fs.State.initial(policy)}]
    for _ in range(policy.horizon):
        after = {
            fs.step(policy, state, g, proposed=r, cost=c, outcome=z)[0]
            for state in layers[-1]
            for g, r, c, z in arrivals
        }
        layers.append(after)
    return layers


@every_kind
@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5])
def test_all_sequences_end_fair(prop: fs.Property, horizon: int) -> None:
    policy = fs.synthesize(prop, SKEWED, horizon=horizon)
    for state in reachable(policy)[horizon]:
        assert prop.holds(state.counts)


@every_kind
def test_all_sequences_are_fair_at_all_checkpoints(prop: fs.Property) -> None:
    layers = reachable(fs.synthesize(prop, SKEWED, horizon=5, checkpoints=(3, 4)))
    for t in (3, 4, 5):
        assert all(prop.holds(state.counts) for state in layers[t])


@given(specs(horizons=(1, 4)))
def test_all_sequences_of_a_random_specification_end_fair(spec: Spec) -> None:
    layers = reachable(spec.feasible_policy())
    for t in {*spec.checkpoints, spec.horizon}:
        assert all(spec.prop.holds(state.counts) for state in layers[t])


# Adversaries --------------------------------------------------------------------------------

Adversary = Callable[[fs.Shield, int], Request]


def starve(shield: fs.Shield, cost: int) -> Request:
    """One group alone, all proposed for acceptance; the other arrives last and is rejected."""
    last = shield.remaining == 1
    return Request("b" if last else "a", not last, cost, outcome=True)


def starve_the_other(shield: fs.Shield, cost: int) -> Request:
    last = shield.remaining == 1
    return Request("a" if last else "b", last, cost, outcome=True)


def alternate(shield: fs.Shield, cost: int) -> Request:
    """Turn about: a is always proposed, b never."""
    a = shield.decided % 2 == 0
    return Request("a" if a else "b", a, cost, outcome=shield.decided % 3 != 0)


def follow_the_bias(shield: fs.Shield, cost: int) -> Request:
    """Propose to accept where the rate is higher, to reject where it is lower."""
    rate = {g: n.accepted / max(n.seen, 1) for g, n in shield.counts.items()}
    group = min(GROUPS, key=lambda g: shield.counts[g].seen)
    return Request(group, rate[group] >= max(rate.values()), cost, outcome=True)


def look_ahead(shield: fs.Shield, cost: int) -> Request:
    """The request after which the shield's own answer leaves the largest bias."""
    state = fs.State(shield.decided, shield.counts)
    policy = shield.policy

    def damage(request: Request) -> float:
        after, _ = fs.step(
            policy, state, request.group, proposed=request.proposed, cost=request.cost,
            outcome=request.outcome,
        )  # fmt: skip
        return policy.prop.bias_of(after.counts)

    choices = [Request(g, r, cost, z) for g, r, z in product(GROUPS, (0, 1), (False, True))]
    return max(choices, key=damage)


ADVERSARIES = [starve, starve_the_other, alternate, follow_the_bias, look_ahead]


@every_kind
@pytest.mark.parametrize("cost", [0.0, 0.25, 1e9])
@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_no_adversary_wins(prop: fs.Property, adversary: Adversary, cost: int) -> None:
    shield = fs.Shield(policy_for(prop))
    while shield.remaining:
        run(shield, [adversary(shield, cost)])
        if shield.decided == 9:
            assert prop.holds(shield.counts)
    assert prop.holds(shield.counts)


_POLICIES: dict[fs.Property, fs.Policy] = {}


def policy_for(prop: fs.Property) -> fs.Policy:
    """Eighteen decisions, with a checkpoint after nine."""
    if prop not in _POLICIES:
        _POLICIES[prop] = fs.synthesize(prop, SKEWED, horizon=18, checkpoints=(9,))
    return _POLICIES[prop]


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_without_a_shield_every_adversary_wins(adversary: Adversary) -> None:
    prop = fs.DemographicParity("0.1")
    unshielded = fs.Shield(fs.synthesize(fs.DemographicParity(1), SKEWED, horizon=18))
    while unshielded.remaining:
        run(unshielded, [adversary(unshielded, 1.0)])
    assert not prop.holds(unshielded.counts)
