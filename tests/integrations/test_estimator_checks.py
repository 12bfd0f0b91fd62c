"""scikit-learn's own checks of every estimator, and why some of them cannot hold here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import fairshield as fs
from fairshield.sklearn import ShieldedClassifier

ORDER = "a decision depends on those before it in the window: that is what a shield is"
UNSHIELDED = "predict_proba and decision_function are the estimator's, predict is the shield's"
GROUPS = "with half of all labels overruled for parity, accuracy may be below the check's 83 %"
FAILING = {
    "check_methods_sample_order_invariance": ORDER,
    "check_methods_subset_invariance": ORDER,
    "check_classifiers_train": UNSHIELDED,
}
"""Every exception, with its reason; none where the bound leaves nothing to overrule."""


def groups_in(X: Any) -> NDArray[np.int64]:
    """Two groups by the first feature, whatever the checks hand over."""
    table = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    first = table.reshape(len(table), -1)[:, 0]
    return (np.real(np.asarray(first, complex)) > 0.5).astype(np.int64)


def shielded(estimator: Any, bound: str, **options: Any) -> ShieldedClassifier:
    prop = fs.DemographicParity(bound)
    return ShieldedClassifier(
        estimator, prop, horizon=10, group_of=groups_in, names=(0, 1), **options
    )


def expected_failures(estimator: ShieldedClassifier) -> dict[str, str]:
    return FAILING if estimator.prop.bound < 1 else {}


@parametrize_with_checks(
    [
        shielded(LogisticRegression(), "1"),
        shielded(LogisticRegression(), "0.1"),
        shielded(LinearSVC(), "1"),
        shielded(LogisticRegression(), "0.25", shield="perpetual", cv=3),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_finds_an_estimator(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
