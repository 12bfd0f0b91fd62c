"""Files that say of themselves what they do not keep: found out, or at least told apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Spec, properties, specs

import fairshield as fs
from fairshield.analysis.verify.claim import implies
from fairshield.periodic import (
    Dynamic,
    ExactPeriodic,
    OptimalPeriodic,
    PeriodicPolicy,
    Perpetual,
    StaticBounded,
    StaticFair,
    load_policy,
)
from fairshield.policy.artifact import read_artifact, write_artifact
from fairshield.spec import NoRequirement, can_bind

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
THREE = fs.InputModel.agnostic({"a": 0.4, "b": 0.3, "c": 0.3})
PARITY, LOOSE = fs.DemographicParity("0.1"), fs.DemographicParity("0.9")
FREE = NoRequirement()
Change = Callable[[dict[str, Any]], None]


def forged(policy: Any, path: Path, change: Change) -> Any:
    """The policy of a file whose header was changed, with a digest that fits."""
    policy.save(path)
    data, arrays = read_artifact(path)
    change(data)
    write_artifact(path, data, {name: array.copy() for name, array in arrays.items()})
    return load_policy(path)


WINDOWS: dict[str, Callable[[fs.Property], fs.Policy]] = {
    "plain": lambda prop: fs.synthesize(prop, EVEN, horizon=10),
    "checkpointed": lambda prop: fs.synthesize(prop, EVEN, horizon=10, checkpoints=[4]),
    "three groups": lambda prop: fs.synthesize(prop, THREE, horizon=8),
    "begun": lambda prop: fs.synthesize(
        prop, EVEN, horizon=10, start=fs.Counts({"a": (4, 2), "b": (4, 2)})
    ),
}
PERIODIC: dict[str, Callable[[fs.Property], PeriodicPolicy]] = {
    "exact": lambda prop: ExactPeriodic(prop, EVEN, 4, periods=2),
    "optimal": lambda prop: OptimalPeriodic(prop, EVEN, 4, periods=2),
    "static-fair": lambda prop: StaticFair(prop, EVEN, 4),
    "static-bounded": lambda prop: StaticBounded(prop, EVEN, 20),
    "dynamic": lambda prop: Dynamic(prop, EVEN, 4),
    "perpetual": lambda prop: Perpetual(prop, EVEN, 4),
}


def renamed(data: dict[str, Any]) -> None:
    """Tables made for anything, called demographic parity, with an end that asks nothing."""
    data["property"], data["terminal"] = PARITY.to_dict(), data["property"]


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("made_for", [FREE, LOOSE], ids=str)
def test_tables_that_do_not_keep_the_property_they_name_are_refuted(
    kind: str, made_for: fs.Property, tmp_path: Path
) -> None:
    policy = forged(WINDOWS[kind](made_for), tmp_path / "f.shield", renamed)
    assert (policy.prop, policy.terminal) == (PARITY, made_for)
    found = fs.verify(policy)
    assert (found.verdict, bool(found), found.holds) == ("violated", False, False)
    assert found.counterexample is not None
    assert found.counterexample.violated == str(PARITY)


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("made_for", [FREE, LOOSE], ids=str)
def test_a_file_for_another_property_is_refuted_by_whoever_says_what_must_hold(
    kind: str, made_for: fs.Property, tmp_path: Path
) -> None:
    path = tmp_path / "f.shield"
    WINDOWS[kind](made_for).save(path)
    found = fs.verify(fs.Policy.load(path), prop=PARITY)
    assert found.claim.asked == PARITY
    assert str(made_for) in str(found.claim)
    assert found.verdict == "violated"
    assert found.counterexample is not None
    assert found.counterexample.violated == str(PARITY)


def test_a_long_policy_is_refuted_by_whoever_says_what_must_hold(tmp_path: Path) -> None:
    for made_for in (FREE, LOOSE, fs.DemographicParity("0.2")):
        policy = fs.synthesize(made_for, EVEN, horizon=2000, method="long")
        policy.save(tmp_path / "f.shield")
        assert fs.verify(fs.Policy.load(tmp_path / "f.shield"), prop=PARITY).verdict == "violated"
    looser = fs.verify(policy, prop=fs.DemographicParity("0.3"))
    assert (looser.verdict, looser.exhaustive) == ("kept", False)
    assert looser.rests_on is not None
    # No theorem about differences of rates speaks of shares, and some windows prove nothing.
    other = fs.verify(policy, prop=fs.ShareParity("0.99", min_support=900))
    assert other.verdict in ("violated", "inconclusive")
    assert not other


@pytest.mark.parametrize("made_for", [FREE, LOOSE, fs.DemographicParity("0.11")], ids=str)
def test_a_long_file_under_another_name_is_refused_or_decides_by_that_name(
    made_for: fs.Property, tmp_path: Path
) -> None:
    policy = fs.synthesize(made_for, EVEN, horizon=500, method="long")
    with pytest.raises(fs.ArtifactError, match="which has no certificate"):
        forged(policy, tmp_path / "f.shield", renamed)

    def only_renamed(data: dict[str, Any]) -> None:
        data["property"] = PARITY.to_dict()

    try:
        named = forged(policy, tmp_path / "f.shield", only_renamed)
    except fs.ArtifactError:
        return
    # What is feasible is worked out from the property it names; only prices are another's.
    assert fs.verify(named, prop=PARITY).verdict == "kept"


@pytest.mark.parametrize("end", [FREE, LOOSE], ids=str)
@pytest.mark.parametrize("kind", ["exact", "optimal", "static-fair", "static-bounded"])
def test_the_end_of_stored_tables_is_compared(kind: str, end: fs.Property, tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["policy"]["terminal"] = end.to_dict()

    with pytest.raises(fs.ArtifactError, match="at the end"):
        forged(PERIODIC[kind](fs.DemographicParity("0.3")), tmp_path / "f.shield", change)


@pytest.mark.parametrize("kind", ["exact", "optimal", "static-fair"])
def test_stored_tables_that_do_not_keep_what_they_name_are_refuted(
    kind: str, tmp_path: Path
) -> None:
    def change(data: dict[str, Any]) -> None:
        for part in (data["periodic"], data["policy"]):
            part["property"] = PARITY.to_dict()

    policy = forged(PERIODIC[kind](LOOSE), tmp_path / "f.shield", change)
    assert fs.verify(policy).verdict == "violated"


@pytest.mark.parametrize("kind", PERIODIC)
def test_a_periodic_file_for_another_property_is_refuted_by_whoever_says_what_must_hold(
    kind: str, tmp_path: Path
) -> None:
    PERIODIC[kind](LOOSE).save(tmp_path / "f.shield")
    policy = load_policy(tmp_path / "f.shield")
    found = fs.verify(policy, prop=PARITY)
    assert found.verdict == "violated"
    assert found.counterexample is not None
    assert not PARITY.holds(found.counterexample.counts)


def test_certificates_for_another_property_cover_nothing_asked() -> None:
    policy = Perpetual(fs.DemographicParity("0.5"), EVEN, 3)
    assert fs.verify(policy).rests_on == policy.theorem
    looser = fs.verify(policy, prop=fs.DemographicParity("0.6"))
    assert (looser.verdict, looser.rests_on) == ("kept", policy.theorem)
    other = fs.verify(policy, prop=fs.ShareParity("0.9", min_support=1000))
    assert (other.verdict, other.rests_on) == ("inconclusive", None)


def _set(**changes: Any) -> Change:
    return lambda data: data.update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set(checkpoints=[3, 2]), "checkpoints must rise"),
        (_set(checkpoints=["2"]), "from 1 to the horizon 10, got '2'"),
        (_set(checkpoints=[0]), "from 1 to the horizon 10, got 0"),
        (_set(further=-1), "further must be a whole number of at least 0, got -1"),
        (_set(terminal=fs.EqualOpportunity("0.1").to_dict()), "must count the same people"),
    ],
)
def test_a_window_that_nobody_asked_for_is_refused(
    change: Change, message: str, tmp_path: Path
) -> None:
    with pytest.raises(fs.ArtifactError, match=message):
        forged(WINDOWS["plain"](PARITY), tmp_path / "f.shield", change)


def test_a_forged_risk_promises_nothing_that_is_kept(tmp_path: Path) -> None:
    start = fs.Counts({"a": (5, 5), "b": (5, 0)})
    policy = fs.synthesize(PARITY, EVEN, horizon=4, start=start, best_effort=True)
    calm = forged(policy, tmp_path / "f.shield", _set(risk=0.0))
    assert calm.risk == 0.0
    assert fs.verify(calm).verdict == "violated"
    for risk in (-0.1, 1.1, float("inf")):
        with pytest.raises((fs.ArtifactError, ValueError)):
            forged(policy, tmp_path / "f.shield", _set(risk=risk))


def test_what_was_verified_is_told() -> None:
    start = fs.Counts({"a": (4, 2), "b": (6, 3)})
    policy = fs.synthesize(PARITY, EVEN, horizon=10, start=start, checkpoints=[5])
    found = fs.verify(policy)
    for words in ("parity ≤ 1/10", "after 5 and 10 decisions", "2 of 4 in a and 3 of 6 in b"):
        assert words in str(found)
    assert found.to_dict()["claim"] == {
        "property": str(PARITY), "asked": None, "terminal": None, "due": [5, 10], "further": 0,
        "risk": 0.0,
        "start": [["a", 4, 2], ["b", 6, 3]], "periodic": None, "periods": None,
        "asked_periods": None, "in_support": False,
    }  # fmt: skip
    planned = fs.synthesize(PARITY, EVEN, horizon=6, further=6, terminal=fs.spec.Sustained(PARITY))
    told = str(fs.verify(planned))
    assert "after 6 decisions (and 6 more are planned)" in told
    assert "certificate" not in told  # it is due at the end of the plan, which is not looked at
    ended = fs.synthesize(PARITY, EVEN, horizon=6, terminal=fs.spec.Sustained(PARITY))
    assert "at the end" in str(fs.verify(ended))
    start = fs.Counts({"a": (5, 5), "b": (5, 0)})
    effort = fs.synthesize(PARITY, EVEN, horizon=4, start=start, best_effort=True)
    assert "said to be violated with probability" in str(fs.verify(effort))


def test_other_people_cannot_be_judged() -> None:
    with pytest.raises(fs.InvalidValueError, match="counts other people than the policy"):
        fs.verify(WINDOWS["plain"](PARITY), prop=fs.EqualOpportunity("0.1"))
    with pytest.raises(fs.InvalidValueError, match="counts other people than the policy"):
        fs.verify(PERIODIC["dynamic"](PARITY), prop=fs.EqualOpportunity("0.1"))
    with pytest.raises(fs.InvalidValueError, match="prop is a property"):
        fs.verify(WINDOWS["plain"](PARITY), prop="demographic parity")  # type: ignore[arg-type]


@given(specs(horizons=(1, 5), max_levels=1), st.data())
def test_a_property_that_is_implied_is_never_refuted(spec: Spec, data: st.DataObject) -> None:
    policy = spec.feasible_policy()
    same = properties.filter(lambda p: p.relevant_outcome == spec.prop.relevant_outcome)
    asked = data.draw(same)
    found = fs.verify(policy, prop=asked)
    if implies(policy.prop, asked):
        assert found.holds
    if found.holds:
        assert found.can_bind == can_bind(asked, policy.start, policy.due)
