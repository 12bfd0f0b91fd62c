"""Figures of the time that a shield adds to a classifier of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn.linear_model import LogisticRegression

import fairshield as fs
from benchmarks.measure import Figure, side_by_side
from fairshield.sklearn import ShieldedClassifier


def shielded_classifier() -> Iterator[Figure]:
    """Figures of ``predict`` beside that of the inner logistic regression, per row."""
    rng = np.random.default_rng(0)
    group = rng.choice(["f", "m"], 1_000_000)
    X = rng.normal(size=(len(group), 10)) + 0.3 * (group == "m")[:, None]
    y = X[:, 0] + rng.normal(size=len(group)) > 0.3
    few = slice(10_000)
    clf = ShieldedClassifier(LogisticRegression(), fs.DemographicParity("0.1"), horizon=100)
    clf.fit(X[few], y[few], sensitive_features=group[few])
    for rows in (100_000, 1_000_000):
        here = slice(rows)
        alone, shielded = side_by_side(
            partial(clf.estimator_.predict_proba, X[here]),
            partial(clf.predict, X[here], sensitive_features=group[here]),
            repeats=5,
        )
        added = (shielded - alone) / rows * 1e6
        yield Figure(
            f"ShieldedClassifier.predict, {rows:,} rows, beyond the classifier",
            f"{added:.2f} µs per row",
            "≤ 2 µs per row",
            added <= 2.0,
            f"logistic regression {alone / rows * 1e6:.3f} µs per row",
        )
