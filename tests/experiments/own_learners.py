"""Learners of a user for the command line, which worker processes can import."""

from __future__ import annotations

from sklearn.linear_model import LogisticRegression

from fairshield_experiments.learners import Classifier, Examples

logistic = LogisticRegression(max_iter=200)


def make_logistic() -> LogisticRegression:
    return LogisticRegression(C=0.1, max_iter=200)


class Raising:
    """Raising raises an error whatever it is fitted to."""

    def fit(self, examples: Examples, *, seed: int) -> Classifier:
        raise RuntimeError("this learner never learned anything")

    def __repr__(self) -> str:
        return "Raising()"


raising = Raising()
