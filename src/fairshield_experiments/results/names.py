"""Names of environments, learners, shields and properties, in order, and their titles."""

from __future__ import annotations

from typing import Literal

Undefined = Literal["bias-0", "rate-0"]

ENVIRONMENTS = {
    "adult-race": "Adult (race)",
    "adult-gender": "Adult (gender)",
    "bank-age": "Bank (age)",
    "compas-gender": "COMPAS (gender)",
    "compas-race": "COMPAS (race)",
    "german-gender": "German (gender)",
    "german-age": "German (age)",
}

LEARNERS = ("ERM", "DiffDP", "HSIC", "LAFTR", "PR")
"""The paper's learners; others that were run come after them."""

METRICS = {
    "accuracy": "accuracy",
    "ap": "average precision",
    "auc": "area under the curve",
    "f1": "F1",
    "dp": "DP",
    "eqopp": "EqOpp",
}

MEASURES = {
    **METRICS,
    "numeric": "numeric features",
    "categorical": "categorical features",
    "y0": "target 0",
    "y1": "target 1",
    "ga": "group a",
    "gb": "group b",
    "parity": "statistical parity",
}

PROPERTIES = {"demographic-parity": "DP", "equal-opportunity": "EqOpp"}

UNDEFINED: dict[Undefined, str] = {
    "rate-0": "rate 0 (published runs)",
    "bias-0": "bias 0 (text)",
}
"""What a group without relevant people counts as: its rate is 0, or there is no bias."""

SHIELDS = {
    "none": "no shield",
    "finite-horizon": "FinHzn",
    "static-fair": "Static-Fair",
    "static-bounded": "Static-BW",
    "inactive": "Dynamic (inactive)",
    "dynamic": "Dynamic (best effort)",
    "exact": "Exact",
    "perpetual": "Perpetual",
    "optimal": "Optimal",
    "logistic-regression": "LogisticRegression",
    "threshold-optimizer": "ThresholdOptimizer",
    "exponentiated-gradient": "ExponentiatedGradient",
}

PERIODIC = ("static-fair", "static-bounded", "dynamic", "inactive")
"""The paper's periodic shields; Dynamic is interpreted in two ways."""

INPUTS = {"agnostic": "agnostic", "learned": "learned", "confidence": "confidence"}
CROSS_FITTED = {"learned-cross-fitted": "learned", "confidence-cross-fitted": "confidence"}
"""Input models made of out-of-fold scores, and the same made of scores of the training part."""

BOUNDS = (0.05, 0.1, 0.15, 0.2)
PERIODIC_BOUNDS = (0.1, 0.15, 0.2)
