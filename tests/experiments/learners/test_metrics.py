"""Metrics are scikit-learn's; their errors are what weights say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

import fairshield as fs
from fairshield_experiments.learners.metrics import METRICS, measure
from fairshield_experiments.people import People

rows = st.lists(
    st.tuples(
        st.sampled_from([0, 1]), st.booleans(), st.sampled_from([0.1, 0.3, 0.5, 0.6, 0.7, 0.9])
    ),
    min_size=1,
    max_size=25,
)


def people(drawn: list[tuple[int, bool, float]]) -> People:
    group, target, score = zip(*drawn, strict=True)
    return People(np.array(group, np.int8), np.array(target), np.array(score))


def some(n: int, seed: int = 0, *, decimals: int = 2) -> People:
    rng = np.random.default_rng(seed)
    group = (rng.random(n) < 0.7).astype(np.int8)
    target = rng.random(n) < 0.3 + 0.2 * group
    score = 1 / (1 + np.exp(-rng.normal(size=n) - target - 0.9 * group + 0.5))
    return People(group, target, score.round(decimals))


def weighted(p: People, w: np.ndarray) -> dict[str, float]:
    """The metrics by scikit-learn, people counting ``w`` times."""

    def rate(who: np.ndarray) -> float:
        return float(np.average(p.proposed[who], weights=w[who]))

    a, b = p.group == 0, p.group == 1
    return {
        "accuracy": sk.accuracy_score(p.target, p.proposed, sample_weight=w),
        "ap": sk.average_precision_score(p.target, p.score, sample_weight=w),
        "auc": sk.roc_auc_score(p.target, p.score, sample_weight=w),
        "f1": sk.f1_score(p.target, p.proposed, sample_weight=w),
        "dp": abs(rate(a) - rate(b)),
        "eqopp": abs(rate(a & p.target) - rate(b & p.target)),
    }


@given(rows)
def test_values_are_scikit_learns_where_those_are_defined(
    drawn: list[tuple[int, bool, float]],
) -> None:
    p = people(drawn)
    found = measure(p)
    assert tuple(found) == METRICS
    kinds = set(zip(p.group.tolist(), p.target.tolist(), strict=True))
    if {(0, True), (1, True)} <= kinds and not p.target.all():
        for name, expected in weighted(p, np.ones(len(p))).items():
            assert found[name].value == pytest.approx(expected, abs=1e-12), name


@given(rows)
def test_what_is_undefined_is_nan_and_never_an_exception(
    drawn: list[tuple[int, bool, float]],
) -> None:
    p = people(drawn)
    found = measure(p)
    positive = [bool((p.target & (p.group == g)).any()) for g in (0, 1)]
    defined = {
        "accuracy": True,
        "ap": bool(p.target.any()),
        "auc": 0 < p.target.sum() < len(p),
        "f1": bool(p.target.any() or p.proposed.any()),
        "dp": len(set(p.group.tolist())) == 2,
        "eqopp": all(positive),
    }
    for name, metric in found.items():
        assert math.isnan(metric.value) != defined[name], name
        assert math.isnan(metric.error) != defined[name], name


@pytest.mark.parametrize("decimals", [1, 6])
def test_errors_are_the_length_of_the_gradient_in_the_weights(decimals: int) -> None:
    p = some(60, decimals=decimals)
    step = 1e-5
    gradient: dict[str, list[float]] = {name: [] for name in METRICS}
    for i in range(len(p)):
        up, down = np.ones(len(p)), np.ones(len(p))
        up[i] += step
        down[i] -= step
        above, below = weighted(p, up), weighted(p, down)
        for name in METRICS:
            gradient[name].append((above[name] - below[name]) / (2 * step))
    for name, metric in measure(p).items():
        assert metric.error == pytest.approx(np.linalg.norm(gradient[name]), rel=1e-5), name


def test_errors_are_the_spread_over_samples() -> None:
    found = [measure(some(400, seed)) for seed in range(300)]
    for name in METRICS:
        spread = np.std([f[name].value for f in found])
        claimed = np.mean([f[name].error for f in found])
        # 300 samples give a spread to within 4 %, and an absolute value narrows it a little.
        assert claimed == pytest.approx(spread, rel=0.15), name


def test_nobody_has_no_metrics() -> None:
    with pytest.raises(fs.InvalidValueError, match="got none"):
        measure(some(5).__class__(np.zeros(0, np.int8), np.zeros(0, bool), np.zeros(0)))
