"""A run's account of its windows is that of a ledger and of an audit, also at checkpoints."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from effort import examples
from hypothesis import given, settings

import fairshield as fs
from fairshield.periodic import kind_of
from fairshield.runtime.ledger import Ledger

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
POLICIES = [
    fs.synthesize(fs.DemographicParity("0.3"), EVEN, horizon=6, checkpoints=[2, 4]),
    fs.synthesize(fs.DemographicParity("0.3", min_support=2), EVEN, horizon=5),
    fs.synthesize(fs.EqualOpportunity("0.4"), EVEN, horizon=5, checkpoints=[3]),
]
people = st.tuples(st.sampled_from("ab"), st.booleans(), st.booleans(), st.booleans())
crowds = st.lists(people, max_size=20)


def counted(policy: fs.Policy, decisions: list[tuple[str, bool, bool, bool]]) -> Ledger:
    """The ledger of who was proposed, accepted and turned out how."""
    due = kind_of(policy).due
    ledger = Ledger(policy.prop, policy.start, due=due)
    for group, proposed, accepted, outcome in decisions:
        relevant = policy.prop.relevant_outcome in (None, outcome)
        ledger.add("ab".index(group), proposed, accepted, 1.0, relevant)
    ledger.settle()
    return ledger


def check(run: fs.Run, ledger: Ledger) -> None:
    told, side = run.guarantee, ledger.shielded
    assert (told.fair, told.unfair, told.exempt) == (side.fair, side.unfair, side.exempt)
    assert (told.unfair_at, told.largest_bias) == (side.unfair_at, side.largest_bias)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@settings(max_examples=examples(60))
@given(crowd=crowds, pause=st.integers(0, 20))
def test_whatever_a_person_decides_a_run_and_a_ledger_agree(
    policy: fs.Policy, crowd: list[tuple[str, bool, bool, bool]], pause: int
) -> None:
    run = fs.Run(policy)
    for i, (group, proposed, final, outcome) in enumerate(crowd):
        decision = run.record(run.advise(group, proposed=proposed), final=final)
        if policy.labelled:
            run.observe(decision, outcome=outcome)
        if i == pause:
            run = fs.Run(policy, state=run.state.to_dict())
    check(run, counted(policy, crowd))


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@settings(max_examples=examples(60))
@given(crowd=crowds, cut=st.integers(0, 20))
def test_so_do_they_of_many_decisions_at_once(
    policy: fs.Policy, crowd: list[tuple[str, bool, bool, bool]], cut: int
) -> None:
    run, accepted = fs.Run(policy), []
    for part in (crowd[:cut], crowd[cut:]):
        groups, proposed, _, outcomes = zip(*part, strict=True) if part else ((), (), (), ())
        known = {"outcomes": list(outcomes)} if policy.labelled else {}
        accepted += run.decide_many(list(groups), list(proposed), **known).accepted.tolist()
    made = [(g, r, y, z) for (g, r, _, z), y in zip(crowd, accepted, strict=True)]
    check(run, counted(policy, made))


def test_a_window_whose_checkpoint_a_person_broke_did_not_end_fair() -> None:
    policy, run = POLICIES[0], fs.Run(POLICIES[0])
    decisions = [("a", True), ("b", False), ("a", False), ("b", True), ("a", True), ("b", True)]
    for group, final in decisions:
        run.record(run.advise(group, proposed=final), final=final)
    assert policy.prop.verdict(run.current.counts.plus((3, 2, 3, 2))) == "fair"
    assert "The first window ended unfair; largest bias 1" in str(run.guarantee)
    records = [{"group": group, "accepted": final} for group, final in decisions]
    report = fs.audit(policy.prop, records, horizon=6, checkpoints=(2, 4))
    assert report.verdict == "unfair"
