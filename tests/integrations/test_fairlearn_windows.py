"""Fairlearn's metrics, frames and constraints beside ours."""

from __future__ import annotations

import subprocess
import sys
import warnings
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn import reductions
from fairlearn.metrics import MetricFrame, count, demographic_parity_difference, selection_rate
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import fairshield as fs
from fairshield.fairlearn import (
    constraint_of,
    metric_frame,
    property_of,
    unfair_windows,
    window_disparity,
)
from fairshield_experiments.fairlearn_windows import compare, loans, plot

PROP = fs.DemographicParity("0.25")


def stream(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    return rng.integers(0, 2, n), (rng.random(n) < 0.3 + 0.3 * (sex == "m")).astype(int), sex


@given(st.integers(0, 1000), st.integers(1, 9), st.sampled_from(["dp", "eo", "fpr"]))
def test_unfair_windows_are_those_that_the_property_refuses(
    seed: int, horizon: int, kind: str
) -> None:
    y, predicted, sex = stream(40, seed)
    prop = {
        "dp": PROP, "eo": fs.EqualOpportunity("0.25"), "fpr": fs.PredictiveEquality("0.25"),
    }[kind]  # fmt: skip
    verdicts, biases = [], []
    for begin in range(0, 40 - horizon + 1, horizon):
        here = np.arange(begin, begin + horizon)
        if prop.relevant_outcome is not None:
            here = here[y[here] == prop.relevant_outcome]
        counts = fs.Counts(
            {
                g: (int((sex[here] == g).sum()), int(predicted[here][sex[here] == g].sum()))
                for g in "fm"
            }
        )
        verdicts.append(prop.holds(counts))
        biases.append(prop.bias_of(counts))
    options = {"sensitive_features": sex, "prop": prop, "horizon": horizon}
    assert unfair_windows(y, predicted, **options) == pytest.approx(1 - np.mean(verdicts))
    assert window_disparity(y, predicted, **options) == max(biases)


def test_the_disparity_of_one_window_is_fairlearns() -> None:
    y, predicted, sex = stream(60)
    ours = window_disparity(y, predicted, sensitive_features=sex, prop=PROP, horizon=60)
    assert ours == pytest.approx(
        demographic_parity_difference(y, predicted, sensitive_features=sex)
    )


def test_they_are_metrics_of_a_metric_frame() -> None:
    y, predicted, sex = stream(80)
    region = np.where(np.arange(80) < 40, "north", "south")
    metric = partial(unfair_windows, prop=PROP, horizon=10)
    metric.__name__ = "unfair"
    frame = MetricFrame(
        metrics=metric,
        y_true=y, y_pred=predicted, sensitive_features=region,
        sample_params={"sensitive_features": sex},
    )  # fmt: skip
    north = unfair_windows(
        y[:40], predicted[:40], sensitive_features=sex[:40], prop=PROP, horizon=10
    )
    assert frame.by_group["north"] == north
    # Compared with nobody, whoever is left is treated fairly.
    alone = unfair_windows(y, predicted, sensitive_features=["f"] * 80, prop=PROP, horizon=10)
    assert alone == 0.0


@pytest.mark.parametrize("frame_of", [np.asarray, list, lambda x: pd.Series(x, name="sex")])
def test_a_metric_frame_by_window_has_every_window(frame_of: Any) -> None:
    y, predicted, sex = stream(57)
    frame = metric_frame(
        {"rate": selection_rate, "n": count}, y, predicted, sensitive_features=frame_of(sex),
        horizon=10,
    )  # fmt: skip
    assert frame.by_group["n"].sum() == 50
    assert len(frame.difference()) == 5
    biased = frame.difference()["rate"].to_numpy(dtype=float)
    verdict = unfair_windows(y, predicted, sensitive_features=sex, prop=PROP, horizon=10)
    assert verdict == pytest.approx((biased > 0.25).mean())


def test_its_pictures_are_pandas_own() -> None:
    y, predicted, sex = stream(40)
    frame = metric_frame(selection_rate, y, predicted, sensitive_features=sex, horizon=20)
    axes = frame.by_group.unstack().plot.bar()
    assert len(axes.patches) == 4


def test_labels_may_be_words_and_groups_several_columns() -> None:
    y, predicted, sex = stream(40)
    words = np.array(["no", "yes"])
    kwargs = {"prop": fs.EqualOpportunity("0.25"), "horizon": 10}
    assert unfair_windows(
        words[y], words[predicted], sensitive_features=sex, pos_label="yes", **kwargs
    ) == unfair_windows(y, predicted, sensitive_features=sex, **kwargs)
    table = pd.DataFrame({"sex": sex, "same": np.where(sex == "f", 1, 2)})
    assert unfair_windows(y, predicted, sensitive_features=table, **kwargs) == unfair_windows(
        y, predicted, sensitive_features=sex, **kwargs
    )


def test_rows_must_make_a_window() -> None:
    options = {"sensitive_features": ["f", "m"], "prop": PROP}
    with pytest.raises(fs.InvalidValueError, match="2 rows are less than one window of 3"):
        unfair_windows([0, 1], [0, 1], horizon=3, **options)
    with pytest.raises(fs.InvalidValueError, match="horizon must be"):
        unfair_windows([0, 1], [0, 1], horizon=0, **options)
    with pytest.raises(fs.InvalidValueError, match="y_true has 1 entries, y_pred has 2"):
        unfair_windows([0], [0, 1], horizon=1, **options)


# Constraints --------------------------------------------------------------------------------


rates = st.lists(
    st.tuples(st.integers(1, 20), st.integers(0, 20)).map(lambda n: (n[0], min(n))),
    min_size=2, max_size=4,
)  # fmt: skip


def against_all(counts: fs.Counts, eps: Fraction, ratio: Fraction) -> bool:
    """What Fairlearn's moments bound: each group's rate beside the rate of all."""
    seen = sum(c.seen for c in counts.values())
    all_ = Fraction(sum(c.accepted for c in counts.values()), seen)
    each = [Fraction(c.accepted, c.seen) for c in counts.values()]
    return all(ratio * r - all_ <= eps and ratio * all_ - r <= eps for r in each)


@given(rates, st.fractions(0, 1, max_denominator=20))
def test_translations_are_at_least_as_strict(groups: list, bound: Fraction) -> None:
    counts = fs.Counts(dict(enumerate(groups)))
    one = Fraction(1)
    if property_of(reductions.DemographicParity(difference_bound=float(bound))).holds(counts):
        assert against_all(counts, Fraction(str(float(bound))), one)
    if fs.DemographicParity(bound).holds(counts):
        assert against_all(counts, bound, one)
    if against_all(counts, bound / 2, one):
        assert fs.DemographicParity(bound).holds(counts)
    if fs.DisparateImpact(bound).holds(counts):
        assert against_all(counts, Fraction(0), bound)
    if against_all(counts, Fraction(0), bound):
        assert fs.DisparateImpact(bound**2).holds(counts)


@pytest.mark.parametrize(
    ("constraint", "prop"),
    [
        (reductions.DemographicParity(difference_bound=0.05), fs.DemographicParity("0.05")),
        (reductions.DemographicParity(), fs.DemographicParity("0.01")),
        (reductions.TruePositiveRateParity(difference_bound=0.2), fs.EqualOpportunity("0.2")),
        (reductions.FalsePositiveRateParity(difference_bound=0.2), fs.PredictiveEquality("0.2")),
        (reductions.DemographicParity(ratio_bound=0.8), fs.DisparateImpact("0.8")),
    ],
)
def test_constraints_have_properties(constraint: Any, prop: fs.Property) -> None:
    assert property_of(constraint) == prop
    assert type(constraint_of(prop)) is type(constraint)


def test_names_of_constraints_need_a_bound() -> None:
    assert property_of("false_negative_rate_parity", "0.1") == fs.EqualOpportunity("0.1")
    assert property_of("true_negative_rate_parity", "0.1") == fs.PredictiveEquality("0.1")
    with pytest.raises(fs.InvalidValueError, match="give a bound"):
        property_of("demographic_parity")


@pytest.mark.parametrize(
    "constraint",
    [
        "equalized_odds",
        reductions.EqualizedOdds(difference_bound=0.1),
        reductions.ErrorRateParity(difference_bound=0.1),
        reductions.TruePositiveRateParity(ratio_bound=0.8),
        object(),
    ],
)
def test_what_has_no_counterpart_is_said(constraint: Any) -> None:
    with pytest.raises(fs.InvalidValueError, match="no property here stands for"):
        property_of(constraint)


@pytest.mark.parametrize(
    "prop", [fs.BoundedRates("0.2", "0.6"), fs.DisparateImpact("0.8", two_sided=False)]
)
def test_what_fairlearn_lacks_is_said(prop: fs.Property) -> None:
    with pytest.raises(fs.InvalidValueError, match="Fairlearn has no constraint"):
        constraint_of(prop)


# The comparison -----------------------------------------------------------------------------


def test_the_shield_alone_has_no_unfair_windows(tmp_path: Any) -> None:
    found = compare(
        loans(400), loans(400, seed=1), prop=fs.DemographicParity("0.2"), horizon=20, windows=10,
        streams=2,
    )  # fmt: skip
    unfair = found.groupby("method")["unfair"].max()
    assert unfair["ShieldedClassifier"] == 0.0
    assert (unfair.drop("ShieldedClassifier") > 0.0).all()
    plot({"loans": found}, tmp_path / "picture.png", title="loans")
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_fairlearn_is_asked_for_if_missing() -> None:
    code = """
import sys; sys.modules["fairlearn"] = None
try:
    import fairshield.fairlearn
except ImportError as error:
    assert "pip install 'fairshield[fairlearn]'" in str(error), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_a_mixture_of_fairlearns_can_be_shielded() -> None:
    people = loans(300)
    mixture = reductions.ExponentiatedGradient(
        LogisticRegression(), constraint_of(PROP), max_iter=3
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Fairlearn's own
        mixture.fit(people.features, people.label, sensitive_features=people.group)
        clf = fs.ShieldedClassifier(mixture, PROP, horizon=10, prefit=True)
        clf.fit(people.features, people.label, sensitive_features=people.group)
        report = clf.report(people.features, sensitive_features=people.group)
    assert report.all_fair
