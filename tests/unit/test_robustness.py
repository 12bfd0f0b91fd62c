"""What a user gets wrong is noticed before anything is counted, written or crashed."""

from __future__ import annotations

import math
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import with_decisions

import fairshield as fs
from fairshield.analysis.explain import explain

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})


def shield(prop: fs.Property | None = None) -> fs.Shield:
    return fs.Shield(fs.synthesize(prop or fs.DemographicParity("0.2"), EVEN, horizon=6))


@pytest.mark.parametrize("word", ["reject", "0", 0, np.False_, "no"])
def test_a_proposal_may_be_written_as_in_a_file(word: Any) -> None:
    assert shield().decide("a", proposed=word).proposed is False


@pytest.mark.parametrize("word", [None, math.nan, "maybe", 2])
def test_a_proposal_that_is_neither_yes_nor_no_is_refused(word: Any) -> None:
    one = shield()
    for call in (one.decide, one.advise):
        with pytest.raises(fs.InvalidValueError, match="accept/reject"):
            call("a", proposed=word)
    assert one.decided == 0


def test_an_unknown_outcome_is_not_taken_for_a_no() -> None:
    one = shield(fs.EqualOpportunity("0.2"))
    decision = one.decide("a", proposed=True)
    with pytest.raises(fs.InvalidValueError):
        one.observe(decision, outcome=None)  # type: ignore[arg-type]
    assert one.pending == decision
    one.observe(decision, outcome="no")
    assert one.counts["a"].seen == 0


def test_a_human_decision_in_words_counts_as_said() -> None:
    one = shield()
    one.record(one.advise("a", proposed=True), final="reject")
    assert one.counts["a"] == (1, 0)


def test_advice_of_another_shield_is_refused() -> None:
    one, other = shield(), shield()
    one.decide("a", proposed=True)
    other.decide("b", proposed=True)
    with pytest.raises(fs.InvalidValueError, match="ask this shield"):
        one.record(other.advise("a", proposed=True), final=True)


@pytest.mark.parametrize("cost", ["dear", None, -1.0, math.nan])
def test_a_cost_that_is_no_price_is_refused(cost: Any) -> None:
    one = shield()
    with pytest.raises(fs.InvalidValueError, match="cost must be a finite number"):
        one.decide("a", proposed=True, cost=cost)
    assert one.decided == 0


def test_outcomes_may_be_given_for_the_requests_of_the_table_alone() -> None:
    table = {("a", True, 1.0): 0.25, ("a", False, 2.0): 0.25, ("b", True, 1.0): 0.5}
    model = fs.InputModel.from_table(table, outcomes=dict.fromkeys(table, 0.3))
    assert model.outcomes is not None
    assert model.outcomes[0, 1, 0] == 0.3
    with pytest.raises(fs.InvalidValueError, match="no P"):
        fs.InputModel.from_table(table, outcomes={("a", True, 1.0): 0.3})
    with pytest.raises(fs.InvalidValueError, match="keyed by"):
        fs.InputModel.from_table(table, outcomes={("a", True, 1.0, "x"): 0.3})


def test_a_guarantee_is_reported_with_its_conditions() -> None:
    assert str(fs.DemographicParity("0.1", min_support=50)).endswith("for groups of at least 50")
    assert "rate 0" in str(fs.DemographicParity("0.1", undefined="rate-0"))


def test_saving_follows_links_and_spares_what_is_no_file(tmp_path: Path) -> None:
    policy = shield().policy
    target, link = tmp_path / "real.shield", tmp_path / "link.shield"
    link.symlink_to(target)
    policy.save(link)
    assert link.is_symlink()
    assert fs.Policy.load(target).horizon == policy.horizon
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(fs.ArtifactError, match="not a regular file"):
        policy.save(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        policy.save(tmp_path / "missing" / "x.shield")


def test_a_file_whose_tables_cannot_be_read_is_refused_on_loading(tmp_path: Path) -> None:
    table = {(g, r, c): 0.125 for g in "ab" for r in (False, True) for c in (1.0, 2.0)}
    policy = fs.synthesize(fs.DemographicParity("0.2"), fs.InputModel.from_table(table), horizon=4)
    starts = np.where(policy.decisions.rows.dense_starts >= 0, 10**12, -1)
    broken = with_decisions(policy, rows=replace(policy.decisions.rows, dense_starts=starts))
    broken.save(tmp_path / "x.shield")
    with pytest.raises(fs.ArtifactError, match="too late"):
        fs.Policy.load(tmp_path / "x.shield")


@given(st.sampled_from([0.3, 0.7, 1.0, 1.2]), st.sampled_from([1.0, 4.0]), st.integers(0, 2**12))
def test_the_numbers_of_an_explanation_imply_the_decision(
    cost: float, spread: float, bits: int
) -> None:
    policy = fs.synthesize(fs.DemographicParity("0.2"), EVEN, horizon=6, spread=spread)
    one = fs.Shield(policy)
    for i in range(6):
        group, proposed = "ab"[bits >> 2 * i & 1], bool(bits >> (2 * i + 1) & 1)
        why = explain(policy, one.decide(group, proposed=proposed, cost=cost))
        keep, flip = why.if_rejected, why.if_accepted
        if proposed:
            keep, flip = flip, keep
        worth = flip + why.planned_cost < keep - 1e-9 or (keep == math.inf and flip < math.inf)
        assert why.decision.overruled == worth, str(why)
