"""A promise that can never bind is called vacuous, wherever it is made, shown or verified."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from strategies import Spec, specs

import fairshield as fs
from fairshield.periodic import (
    Dynamic,
    DynamicShield,
    ExactPeriodic,
    OptimalPeriodic,
    PeriodicPolicy,
    Perpetual,
    PerpetualShield,
    Run,
    StaticBounded,
    StaticFair,
)
from fairshield.spec import NoRequirement, can_bind

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
THREE = fs.InputModel.agnostic({"a": 0.4, "b": 0.3, "c": 0.3})


def rare(support: int, bound: str = "0.1") -> fs.DemographicParity:
    return fs.DemographicParity(bound, min_support=support)


VACUOUS: dict[str, Callable[[], fs.Policy]] = {
    "support": lambda: fs.synthesize(rare(6), EVEN, horizon=10),
    "one decision": lambda: fs.synthesize(rare(0), EVEN, horizon=1),
    "bound": lambda: fs.synthesize(fs.DemographicParity(1), EVEN, horizon=10),
    "nothing": lambda: fs.synthesize(NoRequirement(), EVEN, horizon=10),
    "outcomes": lambda: fs.synthesize(fs.EqualOpportunity("0.1", min_support=6), EVEN, horizon=10),
    "groups": lambda: fs.synthesize(rare(5), THREE, horizon=8),
    "long": lambda: fs.synthesize(rare(501), EVEN, horizon=1000, method="long"),
    "weaker end": lambda: fs.synthesize(rare(6), EVEN, horizon=10, terminal=rare(7)),
}
BINDING: dict[str, Callable[[], fs.Policy]] = {
    "support": lambda: fs.synthesize(rare(5), EVEN, horizon=10),
    "start": lambda: fs.synthesize(
        rare(6), EVEN, horizon=10, start=fs.Counts({"a": (2, 1), "b": (0, 0)})
    ),
    "groups": lambda: fs.synthesize(rare(4), THREE, horizon=8),
    "long": lambda: fs.synthesize(rare(50), EVEN, horizon=1000, method="long"),
    "stronger end": lambda: fs.synthesize(rare(6), EVEN, horizon=10, terminal=rare(5)),
}


@pytest.mark.parametrize("case", VACUOUS)
def test_a_policy_that_never_binds_is_called_vacuous(case: str) -> None:
    with pytest.warns(fs.VacuousWarning, match="can never bind in .* promises nothing"):
        policy = VACUOUS[case]()
    assert not policy.can_bind
    assert "vacuous: it can never bind" in str(policy)
    found = fs.verify(policy)
    assert found.holds
    assert (found.verdict, bool(found), found.can_bind) == ("vacuous", False, False)
    assert "vacuous: it can never bind" in str(found)
    assert "guarantee holds" not in str(found)


@pytest.mark.parametrize("case", BINDING)
def test_a_policy_that_may_bind_is_made_without_a_warning(case: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy = BINDING[case]()
    assert policy.can_bind
    assert "vacuous" not in str(policy)
    assert fs.verify(policy)


def test_part_of_a_window_that_cannot_bind_is_no_reason_to_warn() -> None:
    """Endgames and periods are planned from counters that may leave nothing to bind."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shield = fs.Shield(BINDING["long"]())
        shield.decide_many(["a"] * 1000, proposed=[True] * 1000)
        periods = PerpetualShield(rare(30), EVEN, period=4)
        dynamic = DynamicShield(rare(30), EVEN, period=4)
        for i in range(12):
            periods.decide("ab"[i % 2], proposed=True)
            dynamic.decide("ab"[i % 2], proposed=True)
    assert shield.remaining == 0


@given(specs(horizons=(1, 6), max_levels=1))
def test_a_vacuous_specification_is_never_said_to_hold(spec: Spec) -> None:
    policy = spec.feasible_policy()
    found = fs.verify(policy)
    binds = can_bind(spec.prop, spec.start, {*spec.checkpoints, spec.horizon})
    assert policy.can_bind == found.can_bind == bool(found) == binds
    assert ("guarantee holds" in str(found)) == binds


# Periods --------------------------------------------------------------------------------------

NEVER: dict[str, Callable[[], PeriodicPolicy]] = {
    "exact": lambda: ExactPeriodic(rare(5), EVEN, 4, periods=2),
    "optimal": lambda: OptimalPeriodic(rare(5), EVEN, 4, periods=2),
    "static-fair": lambda: StaticFair(fs.DemographicParity(1), EVEN, 4),
    "dynamic": lambda: Dynamic(fs.DemographicParity(1), EVEN, 4),
    "perpetual": lambda: Perpetual(fs.DemographicParity(1), EVEN, 4),
}
IDLE: dict[str, Callable[[], PeriodicPolicy]] = {
    "static-fair": lambda: StaticFair(rare(3), EVEN, 4),
    "static-bounded": lambda: StaticBounded(fs.DemographicParity("0.2"), EVEN, 8),
}
EVENTUALLY: dict[str, Callable[[], PeriodicPolicy]] = {
    "exact": lambda: ExactPeriodic(rare(4), EVEN, 4, periods=2),
    "optimal": lambda: OptimalPeriodic(rare(4), EVEN, 4, periods=2),
    "static-fair": lambda: StaticFair(rare(2), EVEN, 4),
    "static-bounded": lambda: StaticBounded(fs.DemographicParity("0.2"), EVEN, 10),
    "dynamic": lambda: Dynamic(rare(1000), EVEN, 4),
    "perpetual": lambda: Perpetual(rare(1000), EVEN, 4),
}


@pytest.mark.parametrize("kind", NEVER)
def test_periods_that_never_bind_are_called_vacuous(kind: str) -> None:
    policy = NEVER[kind]()
    assert not policy.can_bind
    assert "vacuous: it can never bind" in str(policy)
    with pytest.warns(fs.VacuousWarning, match="can never bind"):
        policy.outlook()


@pytest.mark.parametrize("kind", EVENTUALLY)
def test_counters_that_grow_for_ever_bind_eventually(kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy = EVENTUALLY[kind]()
        policy.outlook()
    assert policy.can_bind
    assert "vacuous" not in str(policy)


@pytest.mark.parametrize("kind", EVENTUALLY)
def test_what_binds_in_a_period_is_enforced(kind: str) -> None:
    assert EVENTUALLY[kind]().enforces


@pytest.mark.filterwarnings("ignore::fairshield.VacuousWarning")
@pytest.mark.parametrize("kind", IDLE)
def test_periods_too_short_to_enforce_anything_may_end_unfair(kind: str) -> None:
    """The property of the run binds and fails, so it is not vacuous."""
    policy = IDLE[kind]()
    shield = Run(policy)
    for i in range(8 * policy.period):
        assert not shield.decide("ab"[i % 2], proposed=i % 2 == 0).overruled
    assert shield.guarantee.unfair_at is not None
    assert (policy.can_bind, policy.enforces) == (True, False)
    assert str(policy).endswith("its periods are too short to bind what it enforces")
    assert "vacuous" not in str(policy)


@pytest.mark.filterwarnings("ignore::fairshield.VacuousWarning")
@pytest.mark.parametrize("kind", NEVER)
def test_a_run_that_nothing_can_bind_is_promised_nothing(kind: str) -> None:
    shield = Run(NEVER[kind]())
    for i in range(9):
        said = shield.guarantee
        assert not said.can_bind
        assert not said.to_dict()["can_bind"]
        assert "can never bind" in said.now()
        for word in ("certain to hold", "holds", "theorem"):
            assert word not in str(said)
        if said.over:
            assert "2 exempt" in str(said)
            break
        shield.decide("ab"[i % 2], proposed=True)


@pytest.mark.filterwarnings("ignore::fairshield.VacuousWarning")
def test_a_last_period_that_bound_nothing_is_not_said_to_hold() -> None:
    """Of 8 people 4 may be of either group, and here they are not."""
    shield = Run(EVENTUALLY["exact"]())
    shield.decide_many(["a"] * 8, [True] * 8)
    assert shield.guarantee.verdict == "exempt"
    assert "bound nothing at the end of the last period" in str(shield.guarantee)
    for group, said in (("b", "holds"), ("a", "bound nothing")):
        other = Run(EVENTUALLY["exact"]())
        other.decide_many(["a"] * 4 + [group] * 4, [True] * 8)
        assert f"{said} at the end of the last period" in str(other.guarantee)


@pytest.mark.slow
def test_certificates_count_where_nothing_binds_yet() -> None:
    found = fs.verify(EVENTUALLY["perpetual"]())
    assert (found.verdict, found.exhaustive) == ("kept", False)
    assert "later periods rest on a theorem (perpetual shields are always fair)" in str(found)


def test_periods_in_which_nothing_can_bind_show_nothing() -> None:
    found = fs.verify(EVENTUALLY["dynamic"](), periods=2)
    assert (found.verdict, found.holds) == ("vacuous", True)
    assert "not in these periods" in str(found)
    for kind in ("exact", "dynamic", "perpetual"):
        assert fs.verify(NEVER[kind]()).verdict == "vacuous"


@pytest.mark.parametrize(
    ("policy", "verdict", "words"),
    [
        (ExactPeriodic(rare(0), EVEN, 4, periods=2), ("kept", True, None), "all that can be"),
        (
            Perpetual(rare(0), EVEN, 4),
            ("kept", False, "perpetual shields are always fair"),
            "no violation in the first plan",
        ),
        (
            Dynamic(rare(0, "0.5"), EVEN, 4),
            ("inconclusive", False, None),
            "nothing is shown about later periods",
        ),
    ],
    ids=lambda x: getattr(x, "kind", None),
)
def test_what_was_looked_at_and_what_rests_on_a_theorem(
    policy: PeriodicPolicy, verdict: tuple[Any, ...], words: str
) -> None:
    found = fs.verify(policy)
    assert (found.verdict, found.exhaustive, found.rests_on) == verdict
    assert words in found.result
    assert ("not exhaustive: no violation in " in found.result) == (not found.exhaustive)
    told = found.to_dict()
    assert (told["verdict"], told["exhaustive"], told["rests_on"]) == verdict


@pytest.mark.parametrize("periods", [1, 2])
def test_whoever_asks_about_some_periods_is_answered_about_these(periods: int) -> None:
    policy = Dynamic(rare(0, "0.5"), EVEN, 4)
    found = fs.verify(policy, periods=periods)
    assert (found.verdict, found.exhaustive, found.rests_on) == ("kept", False, None)
    asked = "the first period" if periods == 1 else "the first 2 periods"
    assert f"{asked}, groups" in str(found.claim)
    assert "all that was asked about; nothing is shown about later periods" in found.result
    assert found.to_dict()["claim"]["asked_periods"] == periods


def test_a_theorem_covers_more_than_the_periods_asked_about() -> None:
    found = fs.verify(Perpetual(rare(0), EVEN, 4), periods=1)
    assert (found.verdict, found.claim.asked_periods) == ("kept", None)
    assert "asked about" not in found.result
    other = fs.DemographicParity("0.05", min_support=8)
    uncovered = fs.verify(Perpetual(rare(0), EVEN, 4), prop=other, periods=1)
    assert (uncovered.rests_on, uncovered.claim.asked_periods) == (None, 1)
