"""What every kind of decisions must do alike: rows, numbered states, prices."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairshield as fs
from fairshield.base.counts import At, after
from fairshield.policy.decisions import Decisions
from fairshield.policy.long import PriceDecisions
from fairshield.policy.many import StateDecisions
from fairshield.policy.row_decisions import RowDecisions
from fairshield.policy.rows import FORCED

TWO = fs.InputModel.agnostic({"a": 0.4, "b": 0.6})
THREE = fs.InputModel.agnostic({"a": 0.3, "b": 0.3, "c": 0.4})
LEVELS = fs.InputModel.from_table(
    {(g, r, c): 0.125 for g in "ab" for r in (False, True) for c in (1.0, 2.0)}
)
LOST = fs.Counts({"a": (3, 3), "b": (3, 0)})
PARITY = fs.DemographicParity("0.3")


class Kind:
    """Decisions of one kind, which array to damage, and what then is said."""

    def __init__(
        self, kind: type[Decisions], make: Callable[[], fs.Policy], damage: Callable[[Any], Any]
    ) -> None:
        self.kind, self.make, self.damage = kind, cache(make), damage


def fewer_rows(decisions: RowDecisions) -> RowDecisions:
    return replace(decisions, rows=replace(decisions.rows, cuts=decisions.rows.cuts[:-1]))


def fewer_codes(decisions: StateDecisions) -> StateDecisions:
    return replace(decisions, codes=decisions.codes[:, :-1])


def fewer_levels(decisions: PriceDecisions) -> PriceDecisions:
    return replace(decisions, levels=decisions.levels[:, :1])


def made(prop: fs.Property, inputs: fs.InputModel, **how: Any) -> Callable[[], fs.Policy]:
    return lambda: fs.synthesize(prop, inputs, **how)


KINDS = {
    "rows": Kind(RowDecisions, made(PARITY, TWO, horizon=9), fewer_rows),
    "rows of two cost levels": Kind(RowDecisions, made(PARITY, LEVELS, horizon=7), fewer_rows),
    "rows by outcome": Kind(
        RowDecisions, made(fs.EqualOpportunity("0.4"), TWO, horizon=6), fewer_rows
    ),
    "salvage": Kind(
        RowDecisions, made(PARITY, TWO, horizon=6, start=LOST, best_effort=True), fewer_rows
    ),
    "states": Kind(StateDecisions, made(PARITY, THREE, horizon=6), fewer_codes),
    "states by outcome": Kind(
        StateDecisions, made(fs.EqualOpportunity("0.5"), THREE, horizon=4), fewer_codes
    ),
    "prices": Kind(
        PriceDecisions, made(PARITY, TWO, horizon=12, method="long", endgame=4), fewer_levels
    ),
    "prices by outcome": Kind(
        PriceDecisions,
        made(fs.EqualOpportunity("0.5"), TWO, horizon=7, method="long", endgame=2),
        fewer_levels,
    ),
}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture
def policy(kind: Kind) -> fs.Policy:
    return kind.make()


def reached(policy: fs.Policy) -> list[tuple[int, At]]:
    """Some states of every layer but the last."""
    rng, states = np.random.default_rng(1), []
    for t in range(policy.horizon):
        for _ in range(12):
            at = (0, 0) * len(policy.groups)
            for group, accepted in zip(
                rng.integers(0, len(policy.groups), t), rng.random(t) < 0.5, strict=True
            ):
                at = after(at, int(group), bool(accepted))
            states.append((t, at))
    return states


def test_they_are_of_their_kind(kind: Kind, policy: fs.Policy) -> None:
    assert type(policy.decisions) is kind.kind
    assert policy.method == policy.decisions.method
    assert (policy.decisions.n_states is None) == (policy.method == "long")


def test_a_look_up_says_which_successors_are_feasible(policy: fs.Policy) -> None:
    decisions = policy.decisions
    for (t, at), group in product(reached(policy), range(len(policy.groups))):
        can_reject, can_accept, code = decisions.look_up(t, at, group)
        for can, accepted in ((can_reject, False), (can_accept, True)):
            feasible = decisions.feasible(t + 1, after(at, group, accepted))
            # Where an endgame begins, its table knows more than the certificate before it.
            assert feasible if can else not feasible or decisions.n_states is None
        if can_reject != can_accept and decisions.feasible(t, at):
            assert code == (FORCED if can_reject else -FORCED)


def test_who_stays_is_where_no_counter_moves(policy: fs.Policy) -> None:
    if policy.labelled:
        for t, at in reached(policy):
            assert policy.decisions.stays(t, at) == policy.decisions.feasible(t + 1, at)


def test_a_batch_is_decided_one_by_one(policy: fs.Policy) -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        n = policy.horizon
        groups = np.array(policy.groups)[rng.integers(0, len(policy.groups), n)]
        proposed, costs = rng.random(n) < 0.5, rng.choice([0.5, 1.0, 2.0, 9.0], n)
        outcomes = rng.random(n) < 0.6 if policy.labelled else None
        together = fs.Shield(policy).decide_many(groups, proposed, costs, outcomes)
        shield = fs.Shield(policy)
        for i in range(n):
            cost = float(costs[i])
            decision = shield.decide(str(groups[i]), proposed=bool(proposed[i]), cost=cost)
            assert decision.accepted == together.accepted[i]
            if outcomes is not None:
                shield.observe(decision, outcome=bool(outcomes[i]))


def same(ours: fs.Policy, theirs: fs.Policy) -> None:
    for (t, at), group in product(reached(ours), range(len(ours.groups))):
        assert ours.decisions.look_up(t, at, group) == theirs.decisions.look_up(t, at, group)
    assert ours.nbytes == theirs.nbytes > 0
    assert (ours.risk, ours.expected_cost) == (theirs.risk, theirs.expected_cost)


def test_a_file_brings_them_back(policy: fs.Policy, tmp_path: Path) -> None:
    digest = policy.save(tmp_path / "kept.shield")
    loaded = fs.Policy.load(tmp_path / "kept.shield")
    same(policy, loaded)
    assert replace(loaded, reason=policy.reason).save(tmp_path / "again.shield") == digest


def test_another_process_gets_them_whole(policy: fs.Policy) -> None:
    policy.decisions.look_up(0, (0, 0) * len(policy.groups), 0)
    same(policy, pickle.loads(pickle.dumps(policy)))


def test_damaged_arrays_are_refused(kind: Kind, policy: fs.Policy) -> None:
    broken = replace(policy, decisions=kind.damage(policy.decisions))
    with pytest.raises(fs.ArtifactError, match="shape"):
        broken.check()
    with pytest.raises(fs.ArtifactError, match="ranks has shape"):
        replace(policy, decisions=replace(policy.decisions, ranks=policy.ranks[..., :0])).check()


def test_they_say_what_they_store(policy: fs.Policy) -> None:
    assert policy.decisions.describe()
    assert policy.decisions.in_words()
