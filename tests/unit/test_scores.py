"""What a score proposes and costs is one rule, for one score and for many."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairshield as fs
from fairshield.records import Record, ScoreRule

numbers = st.floats(-1e6, 1e6)
costs = st.sampled_from(["confidence", "constant"])


@given(st.lists(numbers, max_size=20), numbers, costs)
def test_one_score_and_many_are_read_alike(
    scores: list[float], threshold: float, cost: Any
) -> None:
    rule = ScoreRule(threshold=threshold, cost=cost)
    proposed, prices = rule.many(np.array(scores, np.float64))
    assert list(zip(proposed.tolist(), prices.tolist(), strict=True)) == [
        rule.one(score) for score in scores
    ]


@given(st.floats(0, 1), costs)
def test_probabilities_propose_from_one_half_on(score: float, cost: Any) -> None:
    assert ScoreRule(cost=cost).one(score) == ScoreRule(threshold=0.5, cost=cost).one(score)


@given(st.integers(0, 100), st.integers(-1000, 1000))
def test_records_and_input_models_read_scores_by_the_rule(percent: int, limit: int) -> None:
    score, threshold = percent / 100, limit / 100
    rule = ScoreRule(threshold=threshold)
    proposed, price = rule.one(score)
    record = Record(1, {"score": score}).proposing(rule)
    assert (record.flag("proposed"), record.cost()) == (proposed, price)
    model = fs.InputModel.from_scores(
        [score, score], ["a", "b"], threshold=threshold, bins=None, smoothing=0.0
    )
    assert model.levels.tolist() == [price]
    assert model.probs[:, int(proposed), 0].sum() == 1.0


@pytest.mark.parametrize("cost", [{}, {"cost": ""}, {"cost": None}])
def test_an_empty_cost_is_that_of_the_score(cost: dict[str, Any]) -> None:
    record = Record(1, {"score": 0.8, **cost}).proposing(ScoreRule(threshold=0.3))
    assert (record.flag("proposed"), record.cost()) == (True, 0.5)
    assert Record(1, {"score": 0.8, "cost": 2}).proposing(ScoreRule()).cost() == 2.0


@pytest.mark.parametrize("score", [1.5, -0.1, 640])
def test_what_is_no_probability_needs_a_threshold(score: float) -> None:
    for read in (lambda: ScoreRule().one(score), lambda: ScoreRule().many(np.array([0.5, score]))):
        with pytest.raises(fs.InvalidValueError, match=r"outside 0 to 1.*threshold="):
            read()


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_is_finite(score: float) -> None:
    rule = ScoreRule(threshold=0.0)
    for read in (lambda: rule.one(score), lambda: rule.many(np.array([0.5, score]))):
        with pytest.raises(fs.InvalidValueError, match=r"inf|nan"):
            read()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"threshold": "high"}, "threshold must be a number, got 'high'"),
        ({"threshold": math.nan}, "threshold must be a finite number, got nan"),
        ({"cost": "margin"}, "cost must be 'confidence' or 'constant', got 'margin'"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(fs.InvalidValueError, match=said):
        ScoreRule(**options)


def test_of_two_labels_the_second_means_acceptance_and_words_are_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ScoreRule().settled([0, 1]).positive == 1
        assert ScoreRule(positive="approve").settled(["approve", "deny"]).positive == "approve"
    with pytest.warns(UserWarning, match="'deny' is taken for acceptance.*positive='deny'"):
        assert ScoreRule().settled(["approve", "deny"]).positive == "deny"
    for rule, labels in ((ScoreRule(positive="x"), [0, 1]), (ScoreRule(), [0, 1, 2])):
        with pytest.raises(fs.InvalidValueError, match="name the one that means acceptance"):
            rule.settled(labels)
