"""What holds of runs of all kinds of windows and periods."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pytest

import fairshield as fs
from fairshield.periodic import PeriodicPolicy, Repeated, Streams, decide_runs, kind_of
from fairshield.periodic.compare import make_policies
from fairshield.periodic.cumulative import compared_kinds

GROUPS = ("a", "b")
COSTS = (0.25, 1.0)
SKEWED = {
    ("a", True, 0.25): 0.4, ("a", False, 1.0): 0.2,
    ("b", True, 1.0): 0.1, ("b", False, 0.25): 0.3,
}  # fmt: skip
OUTCOMES = {"a": 0.75, "b": 0.5}
LENGTH = 6


class Person(NamedTuple):
    group: Any
    proposed: bool
    cost: float
    outcome: bool


def made(kind: str, names: tuple[Any, Any] = GROUPS) -> PeriodicPolicy:
    """A policy of this kind, whose groups have these names."""
    called = dict(zip(GROUPS, names, strict=True))
    inputs = fs.InputModel.from_table(
        {(called[g], r, c): p for (g, r, c), p in SKEWED.items()},
        outcomes={called[g]: share for g, share in OUTCOMES.items()},
    )
    prop: fs.Property = fs.DemographicParity("1/2")
    if kind.startswith("labelled"):
        prop = fs.EqualOpportunity("1/2")
    kind = kind.removeprefix("labelled-")
    if kind == "repeated":
        return Repeated(fs.synthesize(prop, inputs, horizon=LENGTH, checkpoints=[3, 5]))
    if kind not in compared_kinds():
        pytest.fail(f"no policy of the kind {kind!r} can be made here: say how in made()")
    return make_policies(prop, inputs, period=LENGTH, periods=3, kinds=(kind,))[kind]


KINDS = ("repeated", *PeriodicPolicy.kinds())
ALL = (*KINDS, *(f"labelled-{kind}" for kind in KINDS))


@pytest.fixture(params=ALL)
def policy(request: pytest.FixtureRequest) -> PeriodicPolicy:
    return made(request.param)


def people(n: int, names: tuple[Any, Any] = GROUPS) -> list[Person]:
    """Both groups, both proposals, cheap and dear, now one group for a while and then the other."""
    return [Person(names[(i * i // 3) % 2], i % 3 != 0, COSTS[i % 2], i % 4 > 0) for i in range(n)]


def lopsided(n: int) -> list[Person]:
    """All but one of every six of the same group, so that the other one stays small."""
    return [Person(GROUPS[i % 6 == 5], i % 6 == 3, 1.0, True) for i in range(n)]


def decide(run: fs.Run, person: Person) -> fs.Decision:
    decision = run.decide(person.group, proposed=person.proposed, cost=person.cost)
    if run.policy.labelled:
        run.observe(decision, outcome=person.outcome)
    return decision


def columns(run: fs.Run, some: list[Person]) -> fs.Batch:
    groups, proposed, costs, outcomes = map(list, zip(*some, strict=True))
    return run.decide_many(groups, proposed, costs, outcomes if run.policy.labelled else None)


def through_json(run: fs.Run) -> Any:
    return json.loads(json.dumps(run.state.to_dict()))


def test_numbers_of_a_run_add_up(policy: PeriodicPolicy) -> None:
    run = fs.Run(policy)
    for n, person in enumerate(people(3 * LENGTH)):
        assert (run.completed, run.position) == divmod(n, policy.length)
        assert (run.decided, run.remaining) == (n, policy.length - run.position)
        assert 0 <= run.planned <= run.remaining
        run.plan()
        assert run.planned > 0
        decision = decide(run, person)
        assert (decision.window, decision.position) == divmod(n, policy.length)
    assert run.completed == 3
    assert run.over == (policy.last == 3)
    report, past = run.guarantee, run.state.history
    assert (report.fair, report.exempt) == (past.fair, past.exempt)
    assert report.fair + report.exempt + report.unfair == 3


def test_a_run_that_is_resumed_after_any_decision_goes_on_the_same(policy: PeriodicPolicy) -> None:
    steady = fs.Run(policy, unseen="follow")
    for n, person in enumerate(people(2 * LENGTH + 3)):
        resumed = fs.Run(policy, state=through_json(steady), unseen="follow")
        assert (resumed.guarantee, resumed.guaranteed) == (steady.guarantee, steady.guaranteed)
        assert decide(resumed, person) == decide(steady, person)
        if n % 5 == 0:
            assert resumed.decide("z", proposed=True) == steady.decide("z", proposed=True)
        assert resumed.state == steady.state
        assert str(resumed) == str(steady)


def test_who_asks_what_is_guaranteed_changes_nothing(policy: PeriodicPolicy) -> None:
    for some in (people(3 * LENGTH), lopsided(3 * LENGTH)):
        run, asked = fs.Run(policy), fs.Run(policy)
        for person in some:
            state = asked.state
            assert state == run.state
            _ = asked.guarantee, asked.guaranteed
            asked.plan()
            assert asked.state == state
            assert decide(asked, person) == decide(run, person)


def test_who_has_all_plans_never_waits_for_one(policy: PeriodicPolicy) -> None:
    run = fs.Run(policy)
    run.plan()
    for person in people(3 * LENGTH):
        assert run.planned > 0 or policy.largest_plan
        decide(run, person)
    assert (run.planned == 0) == bool(run.over or policy.largest_plan)


def test_many_at_once_are_decided_as_one_by_one(policy: PeriodicPolicy) -> None:
    some = people(3 * LENGTH - 1)
    for first in range(0, len(some), 4):
        single, batch = fs.Run(policy), fs.Run(policy)
        expected = [decide(single, person) for person in some]
        parts = [columns(batch, part) for part in (some[:first], some[first:]) if part]
        rows = [row for part in parts for row in zip(*(c.tolist() for c in part[:5]), strict=True)]
        assert rows == [(d.accepted, d.overruled, d.paid, d.window, d.position) for d in expected]
        assert batch.state == single.state
        assert batch.guarantee == single.guarantee


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("names", [("x", "y"), (1, 0), ("b", "a")])
def test_names_of_groups_do_not_matter(kind: str, names: tuple[Any, Any]) -> None:
    ours, theirs = fs.Run(made(kind)), fs.Run(made(kind, names))
    for mine, yours in zip(people(2 * LENGTH), people(2 * LENGTH, names), strict=True):
        expected = decide(ours, mine)._replace(group=yours.group)
        assert decide(theirs, yours) == expected
    assert list(ours.counts.values()) == list(theirs.counts.values())


def test_decisions_are_explained_in_their_window_and_in_the_next(policy: PeriodicPolicy) -> None:
    run = fs.Run(policy)
    made: list[fs.Decision] = []
    for person in people(2 * LENGTH):
        made.append(decide(run, person))
        for decision in made[-LENGTH:]:
            why = run.explain(decision)
            assert why.decision == decision
            assert f"Decision {decision.position + 1}, group {decision.group}" in str(why)


def test_people_of_unseen_groups_change_nothing_for_others(policy: PeriodicPolicy) -> None:
    run, twin = fs.Run(policy, unseen="follow"), fs.Run(policy)
    for n, person in enumerate(people(2 * LENGTH)):
        stranger = run.decide("z", proposed=n % 2 == 0)
        assert (stranger.why, stranger.accepted) == (fs.Why.UNSEEN, n % 2 == 0)
        assert decide(run, person) == decide(twin, person)
        with pytest.raises(fs.UnknownGroupError):
            twin.decide("z", proposed=True)
    assert (run.counts, run.decided) == (twin.counts, twin.decided)
    assert run.followed == {"z": (2 * LENGTH, LENGTH)}
    assert fs.Run(policy, state=run.state, unseen="follow").followed == run.followed


def test_a_kind_says_what_carries_over(policy: PeriodicPolicy) -> None:
    run = fs.Run(policy)
    for person in people(LENGTH):
        before = run.counts
        decide(run, person)
    ends = before.after(person.group, accepted=True), before.after(person.group, accepted=False)
    reached = {policy.carried(counts) for counts in (before, *ends)}
    assert run.counts in reached
    assert policy.begins_with(run.counts, 1)


@pytest.mark.parametrize("kind", [kind for kind in ALL if not kind.endswith("repeated")])
def test_runs_decided_at_once_are_guaranteed_as_one_by_one(kind: str) -> None:
    policy = made(kind)
    for some in (people(3 * LENGTH), lopsided(3 * LENGTH)):
        run, promised, accepted = fs.Run(policy), [], []
        for person in some:
            if not run.position:
                promised.append(run.guaranteed)
            accepted.append(decide(run, person).accepted)
        outcome = decide_runs(policy, streams_of(policy, some))
        assert outcome.accepted.tolist() == [accepted]
        assert outcome.guaranteed is not None
        assert outcome.guaranteed.tolist() == [promised]


def streams_of(policy: PeriodicPolicy, some: list[Person]) -> Streams:
    """One run of these people."""
    relevant = [not policy.labelled or person.outcome for person in some]
    groups = [GROUPS.index(person.group) for person in some]
    return Streams(
        np.array([groups], np.int8), np.array([[person.proposed for person in some]]),
        np.array([[person.cost for person in some]]), np.array([relevant]),
    )  # fmt: skip


# Windows one after the other ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["repeated", "labelled-repeated"])
def test_a_repeated_policy_decides_as_one_shield_after_the_other(kind: str) -> None:
    policy = made(kind).artefact
    assert isinstance(policy, fs.Policy)
    run, some = fs.Run(policy), people(3 * LENGTH)
    for window in range(3):
        shield = fs.Shield(policy)
        for n, person in enumerate(some[window * LENGTH : (window + 1) * LENGTH]):
            assert (run.counts, run.guaranteed) == (shield.counts, shield.guaranteed)
            final = person.proposed if n == 2 else None  # a person decides
            ours, theirs = (_asked(it, policy, person, final) for it in (run, shield))
            assert ours == theirs._replace(window=window)
    assert run.guarantee.completed == 3


def _asked(
    shield: fs.Run | fs.Shield, policy: fs.Policy, person: Person, final: bool | None
) -> fs.Decision:
    if final is None:
        decision = shield.decide(person.group, proposed=person.proposed, cost=person.cost)
    else:
        advice = shield.advise(person.group, proposed=person.proposed, cost=person.cost)
        decision = shield.record(advice, final=final)
    if policy.labelled:
        shield.observe(decision, outcome=person.outcome)
    return decision


def test_a_person_at_the_end_of_a_window_is_told_how_it_ended() -> None:
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    policy = fs.synthesize(fs.DemographicParity("0"), inputs, horizon=2)
    run = fs.Run(policy)
    run.decide("a", proposed=True)
    decision = run.record(run.advise("b", proposed=True), final=False)
    assert not decision.guaranteed
    assert (run.completed, run.guarantee.unfair) == (1, 1)
    assert run.guaranteed


def test_a_plain_policy_is_repeated() -> None:
    policy = made("repeated").artefact
    kind = kind_of(policy)
    assert (kind.kind, kind.noun, kind.length, kind.due) == ("window", "window", LENGTH, (3, 5, 6))
    assert kind.terms() == {"horizon": LENGTH}
    assert kind_of(kind) is kind
    assert kind.artefact is policy
