"""Train a classifier with its shield, and let it predict."""

import sys

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression

import fairshield as fs

rng = np.random.default_rng(0)
sex = rng.choice(["f", "m"], 200)
X = rng.normal(size=(200, 1)) + (sex == "m")[:, None]
clf = fs.ShieldedClassifier(
    LogisticRegression(), fs.DemographicParity("0.2"), horizon=20,
    shield_options={"backend": "reference"}, bins=2, cv=None,
)  # fmt: skip
clf.fit(X, X[:, 0] > 0.5, sensitive_features=sex)
assert clf.report(X, sensitive_features=sex).unfair == 0
sys.stdout.write(f"scikit-learn {sklearn.__version__}")
