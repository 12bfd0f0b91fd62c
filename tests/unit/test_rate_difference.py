"""RateDifference: its words, what it refuses, and what refuses it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fairshield as fs
from fairshield.monitor import Monitor
from fairshield.periodic.runs import Streams, decide_runs
from fairshield.policy.counted import CountedDecisions
from fairshield.runtime.evaluate import evaluate
from fairshield.runtime.ledger import Ledger
from fairshield.service.policies.jobs import check_people
from fairshield.spec import NoRequirement, property_from_dict

PARITY = fs.RateDifference("0.2", {("accept", 1): 1}, {"accept": 1})
WEIGHTED = fs.RateDifference("0.2", "accept=2", "accept=2, reject")
ACCURACY = fs.RateDifference("0.1", "accept 1, reject 0", "accept, reject")
BOTH = pytest.mark.parametrize("prop", [PARITY, WEIGHTED], ids=["outcomes", "no outcomes"])
INPUTS = fs.InputModel.agnostic({"a": 0.4, "b": 0.6}, outcomes={"a": 0.5, "b": 0.6})
START = fs.Counts({"a": (20, 12), "b": (25, 14)})


@pytest.mark.parametrize(
    ("numerator", "denominator", "why"),
    [
        ("accept", "accept 1", "numerator counts 'accept 0' 1 times and the denominator 0 times"),
        ("accept", "accept", "always 1"),
        ("accept=2", "accept=2, reject=2", "multiples of 2: divide them by it"),
        ("hire", "accept", "knows no 'hire': say 'accept' or 'reject'"),
        ("accept 2", "accept", "knows no 'accept 2'"),
        ("accept, accept 1", "accept", "names 'accept 1' twice"),
        ("accept=-1", "accept", "must be a whole number from 0 to 100, got -1"),
        ("accept=1.5", "accept", "must be a whole number from 0 to 100, got '1.5'"),
        ({"accept": True}, "accept", "must be a whole number from 0 to 100, got True"),
        ({}, "accept", "counts nobody"),
        (["accept"], "accept", "is a text such as 'accept 1, reject 0'"),
    ],
)
def test_what_is_no_rate_is_refused_with_the_reason(
    numerator: Any, denominator: Any, why: str
) -> None:
    with pytest.raises(fs.InvalidValueError, match=why):
        fs.RateDifference("0.1", numerator, denominator)


def test_it_says_what_it_counts() -> None:
    assert str(PARITY) == "difference of rates (accept 1 of accept) ≤ 1/5"
    assert PARITY.requirement(("a", "b")) == (
        "The ratio of people accepted with outcome 1 to people accepted differs between groups a "
        "and b by at most 0.2 (exactly 1/5)."
    )
    assert (
        "twice the people accepted to twice the people accepted and people rejected"
        in WEIGHTED.promise("a", "b")
    )
    assert (
        "people accepted with outcome 1 and people rejected with outcome 0 to people differs"
        in (ACCURACY.requirement("ab"))
    )


def test_of_rejections_the_group_with_more_of_them_is_ahead() -> None:
    accepted, rejected = (
        fs.RateDifference("0.2", f"{word} 1", "accept 1, reject 1") for word in ("accept", "reject")
    )
    counts = fs.Counts({"a": (10, 8), "b": (10, 5)})
    a, b = counts.values()
    assert accepted.lead(a, b) > 0 > rejected.lead(a, b)
    assert accepted.finding(counts).pair == rejected.finding(counts).pair[::-1]
    assert accepted.finding(counts).value == rejected.finding(counts).value


@BOTH
def test_what_asks_nothing_counts_alike(prop: fs.RateDifference) -> None:
    free = NoRequirement.like(prop)
    assert free.counting == prop.counting
    assert property_from_dict(free.to_dict()) == free
    policy = fs.synthesize(free, INPUTS, horizon=4)
    shield = fs.Shield(policy)
    for group, proposed in (("a", True), ("b", False), ("a", True), ("b", True)):
        decision = shield.decide(group, proposed=proposed)
        assert decision.accepted == proposed
        if policy.labelled:
            shield.observe(decision, outcome=True)
    assert shield.counts == fs.Counts(
        {"a": (2, 2), "b": (1, 1)} if policy.labelled else {"a": (4, 4), "b": (3, 2)}
    )


def test_a_tighter_bound_of_the_same_rate_implies_a_looser_one() -> None:
    looser = fs.RateDifference("0.3", PARITY.numerator, PARITY.denominator)
    assert PARITY.implies(looser)
    assert not looser.implies(PARITY)
    assert not PARITY.implies(fs.RateDifference("0.3", "accept 0", "accept"))


# What works ---------------------------------------------------------------------------------


def test_nothing_can_be_promised_about_what_outcomes_alone_decide() -> None:
    with pytest.raises(fs.InfeasibleError):
        fs.synthesize(ACCURACY, INPUTS, horizon=10)
    effort = fs.synthesize(ACCURACY, INPUTS, horizon=10, best_effort=True)
    assert 0 < effort.risk < 1
    followed = fs.simulate(effort, n_windows=4000, rng=np.random.default_rng(0))
    assert followed.n_unfair < followed.n_unfair_unshielded


def test_tables_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    policy = fs.synthesize(ACCURACY, INPUTS, horizon=6, best_effort=True)
    decisions = policy.decisions
    assert isinstance(decisions, CountedDecisions)
    assert decisions.salvage is not None
    for wrong in (
        {"masks": decisions.masks[:, 1:]},
        {"masks": decisions.masks.astype(np.float64)},
        {"salvage": decisions.salvage[:1]},
        {"edges": np.arange(31.0)},
    ):
        path = tmp_path / "wrong.shield"
        replace(policy, decisions=replace(decisions, **wrong)).save(path)
        with pytest.raises(fs.ArtifactError, match=r"expected|needs"):
            fs.Policy.load(path)


def test_expectations_are_those_of_the_plan() -> None:
    for prop in (PARITY, WEIGHTED):
        policy = fs.synthesize(prop, INPUTS, horizon=8, start=START)
        assert evaluate(policy).expected_cost == pytest.approx(policy.expected_cost)


def test_an_audit_needs_no_outcome_that_changes_nothing() -> None:
    policy = fs.synthesize(PARITY, INPUTS, horizon=6, start=START)
    shield, log = fs.Shield(policy), list[dict[str, Any]]()
    for group, proposed, good in zip("ababab", (1, 0, 1, 1, 0, 1), (1, 0, 0, 1, 1, 0), strict=True):
        decision = shield.decide(group, proposed=bool(proposed))
        shield.observe(decision, outcome=bool(good))
        told = {"outcome": good} if decision.accepted else {}
        log.append({"group": group, "proposed": proposed, "accepted": decision.accepted} | told)
    found = fs.audit(PARITY, log, policy=policy)
    assert found.windows[0].counts == shield.counts
    assert found.difference is None
    assert found.coverage is None  # outcomes of people rejected change nothing
    with pytest.raises(fs.InvalidValueError, match="no 'outcome' of somebody who was rejected"):
        fs.audit(ACCURACY, log)


def test_trades_leave_out_what_they_would_add_up_over_people() -> None:
    found = fs.pareto(
        lambda bound: fs.RateDifference(bound, "accept=2", "accept=2, reject"), INPUTS,
        bounds=["0.2", "0.5"], horizons=[6],
    )  # fmt: skip
    assert [row.unfair_unshielded for row in found.rows] == [None, None]
    assert found.rows[0].expected_cost > found.rows[1].expected_cost > 0


@BOTH
def test_periodic_shields_are_compared(prop: fs.RateDifference) -> None:
    policies = {
        "static-fair": fs.StaticFairShield(prop, INPUTS, period=4, start=START).policy,
        "dynamic": fs.DynamicShield(prop, INPUTS, period=4, start=START).policy,
        "exact": fs.ExactPeriodicShield(prop, INPUTS, period=4, periods=2, start=START).policy,
    }
    rng = np.random.default_rng(0)
    streams = Streams.drawn(prop, INPUTS, period=4, periods=2, runs=6, rng=rng)
    for name, policy in policies.items():
        found = decide_runs(policy, streams)
        for run in range(streams.n_runs):
            one = fs.Run(policy)
            for i in range(streams.length):
                group = "ab"[int(streams.groups[run, i])]
                decision = one.decide(group, proposed=bool(streams.proposed[run, i]))
                assert decision.accepted == found.accepted[run, i]
                if policy.labelled:
                    one.observe(decision, outcome=bool(streams.relevant[run, i]))
            assert one.counts == fs.Counts(
                dict(zip("ab", map(tuple, found.ends[run, -1].reshape(2, 2).tolist()), strict=True))
            )
        assert found.fair.all() or name == "static-fair"


@BOTH
def test_frames_are_decided_as_by_a_run(prop: fs.RateDifference) -> None:
    frame = pd.DataFrame(
        {"group": list("ab") * 8, "proposed": [1, 0, 0, 1] * 4, "outcome": [1, 1, 0, 0] * 4}
    )
    policy = fs.synthesize(prop, INPUTS, horizon=8)
    found, run = fs.shield_frame(frame, policy), fs.Run(policy)
    for row in found.to_dict("records"):
        decision = run.decide(row["group"], proposed=row["proposed"])
        assert decision.accepted == row["accepted"]
        if policy.labelled:
            run.observe(decision, outcome=row["outcome"])


# What counts people -------------------------------------------------------------------------


@BOTH
def test_what_counts_people_refuses_it(prop: fs.RateDifference) -> None:
    classifier = fs.ShieldedClassifier(LogisticRegression(), prop, horizon=4)
    x, y, groups = pd.DataFrame({"x": list(range(40))}), [0, 0, 1, 1] * 10, list("ab") * 20
    for attempt in (
        lambda: Ledger(prop, START),
        lambda: Monitor(prop, groups=("a", "b")),
        lambda: classifier.fit(x, y, sensitive_features=groups),
    ):
        with pytest.raises(fs.InvalidValueError, match="counts decisions, not people"):
            attempt()
    with pytest.raises(fs.InvalidValueError, match="streams count people"):
        check_people(prop)
