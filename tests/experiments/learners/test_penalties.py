"""Each penalty is what its definition says, term by term."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairshield_experiments.learners import HSIC, DiffDP, PrejudiceRemover
from fairshield_experiments.learners.laftr import hits
from fairshield_experiments.learners.penalised import PenalisedLearner

PENALTIES = [DiffDP(), HSIC(), PrejudiceRemover()]

people = st.lists(
    st.tuples(st.floats(0.01, 0.99), st.sampled_from([0, 1])), min_size=4, max_size=12
).filter(lambda rows: {g for _, g in rows} == {0, 1})


def tensors(rows: list[tuple[float, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    s, g = zip(*rows, strict=True)
    return torch.tensor(s, dtype=torch.float64), torch.tensor(g, dtype=torch.float64)


@given(people, st.sampled_from([0.5, 1.0, 2.0]))
def test_hsic_is_the_double_sum(rows: list[tuple[float, int]], bandwidth: float) -> None:
    s, g = (np.array(column) for column in zip(*rows, strict=True))
    n = len(s)
    k, ell = (np.exp(-((v[:, None] - v[None, :]) ** 2) / (2 * bandwidth**2)) for v in (s, g))
    h = np.eye(n) - 1 / n
    expected = np.trace(k @ h @ ell @ h) / (n - 1) ** 2
    found = HSIC(bandwidth=bandwidth).penalty(*tensors(rows))
    assert float(found) == pytest.approx(expected, abs=1e-12)


@given(people)
def test_prejudice_is_n_times_the_mutual_information(rows: list[tuple[float, int]]) -> None:
    n = len(rows)
    joint = np.zeros((2, 2))
    for s, g in rows:
        joint[g] += np.array([1 - s, s]) / n
    product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    expected = n * (joint * np.log(joint / product)).sum()
    found = PrejudiceRemover().penalty(*tensors(rows))
    assert float(found) == pytest.approx(expected, abs=1e-9)


@given(people)
def test_diffdp_is_the_gap_of_means(rows: list[tuple[float, int]]) -> None:
    of_a, of_b = ([s for s, g in rows if g == group] for group in (0, 1))
    expected = abs(sum(of_a) / len(of_a) - sum(of_b) / len(of_b))
    assert float(DiffDP().penalty(*tensors(rows))) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("learner", PENALTIES, ids=lambda x: type(x).__name__)
class TestEveryPenalty:
    def test_zero_if_scores_are_constant(self, learner: PenalisedLearner) -> None:
        group = torch.tensor([0.0, 0, 1, 1, 1], dtype=torch.float64)
        assert abs(float(learner.penalty(torch.full_like(group, 0.3), group))) < 1e-12

    def test_zero_if_both_groups_have_the_same_scores(self, learner: PenalisedLearner) -> None:
        score = torch.tensor([0.1, 0.5, 0.8] * 2, dtype=torch.float64)
        group = torch.tensor([0.0] * 3 + [1.0] * 3, dtype=torch.float64)
        assert abs(float(learner.penalty(score, group))) < 1e-12

    @pytest.mark.parametrize("only", [0.0, 1.0])
    def test_a_batch_of_one_group_pulls_nowhere(
        self, learner: PenalisedLearner, only: float
    ) -> None:
        score = torch.tensor([0.1, 0.5, 0.8], dtype=torch.float64, requires_grad=True)
        value = learner.penalty(score, torch.full((3,), only, dtype=torch.float64))
        value.backward()
        assert abs(float(value.detach())) < 1e-12
        assert score.grad is not None
        assert score.grad.abs().max() < 1e-12

    def test_descent_brings_the_groups_together(self, learner: PenalisedLearner) -> None:
        score = torch.tensor([0.2, 0.3, 0.7, 0.9], requires_grad=True)
        learner.penalty(score, torch.tensor([0.0, 0, 1, 1])).backward()
        assert score.grad is not None
        assert (score.grad[:2] < 0).all()
        assert (score.grad[2:] > 0).all()

    def test_nothing_overflows_at_the_ends(self, learner: PenalisedLearner) -> None:
        score = torch.tensor([0.0, 0, 1, 1], requires_grad=True)
        value = learner.penalty(score, torch.tensor([0.0, 0, 1, 1]))
        value.backward()
        assert math.isfinite(float(value.detach()))
        assert score.grad is not None
        assert torch.isfinite(score.grad).all()


def test_the_adversary_earns_one_for_the_truth_and_nothing_for_a_constant() -> None:
    group = torch.tensor([0.0, 0, 0, 1])
    assert float(hits(group, group)) == 1
    assert float(hits(torch.full((4,), 0.7), group)) == pytest.approx(0)
    assert float(hits(1 - group, group)) == -1
