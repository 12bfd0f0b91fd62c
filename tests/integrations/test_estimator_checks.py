"""scikit-learn's own checks of every estimator, and why some of them cannot hold here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import fairshield as fs
from fairshield.sklearn import ShieldedClassifier

pytestmark = pytest.mark.slow

ORDER = "a decision depends on those before it in the window: that is what a shield is"
UNSHIELDED = "predict_proba and decision_function are the estimator's, predict is the shield's"
FAILING = {
    "check_methods_sample_order_invariance": ORDER,
    "check_methods_subset_invariance": ORDER,
    "check_classifiers_classes": UNSHIELDED,
    "check_classifiers_train": UNSHIELDED,
}
"""Every exception, with its reason; none where the bound leaves nothing to overrule."""


@dataclass(frozen=True)
class FirstFeature:
    """Two groups by the first feature, whatever the checks hand over."""

    def __call__(self, X: Any) -> NDArray[np.int64]:
        table = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        if table.dtype == object or not table.size:
            return np.arange(len(table)) % 2
        first = table.reshape(len(table), -1)[:, 0]
        return (np.real(first) > 0.5).astype(np.int64)


def shielded(estimator: Any, bound: str, **options: Any) -> ShieldedClassifier:
    common = {"horizon": 10, "group_of": FirstFeature(), "names": (0, 1), "cv": None}
    return ShieldedClassifier(estimator, fs.DemographicParity(bound), **{**common, **options})


def expected_failures(estimator: ShieldedClassifier) -> dict[str, str]:
    return FAILING if estimator.prop.bound < 1 else {}


@pytest.fixture
def drawn_alike() -> None:
    """The same draws in every run: one check takes a permutation from numpy's global generator.

    With a few permutations nobody is overruled in another place, and an expected failure passes.
    """
    np.random.seed(0)  # noqa: NPY002  (it is the global generator that the check draws from)


@pytest.mark.usefixtures("drawn_alike")
# Some checks have labels of text, and it matters to none which of them is acceptance.
@pytest.mark.filterwarnings("ignore:labels are text:UserWarning")
@parametrize_with_checks(
    [
        shielded(LogisticRegression(), "1", cv=3),
        shielded(LinearSVC(), "0.1"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_finds_an_estimator(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
