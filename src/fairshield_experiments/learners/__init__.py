"""Learners make the classifiers whose decisions are shielded: the paper's, or a user's.

``LEARNERS`` has the five by name, with the paper's hyper-parameters.  torch is loaded when one of
them is first asked for; scikit-learn's classifiers do without.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import fairshield as fs
from fairshield_experiments.learners.base import Classifier, Examples, Learner

if TYPE_CHECKING:
    from fairshield_experiments.learners.diffdp import DiffDP
    from fairshield_experiments.learners.erm import ERM
    from fairshield_experiments.learners.hsic import HSIC
    from fairshield_experiments.learners.laftr import LAFTR
    from fairshield_experiments.learners.network import Schedule
    from fairshield_experiments.learners.paper import LEARNERS
    from fairshield_experiments.learners.prejudice_remover import PrejudiceRemover
    from fairshield_experiments.learners.sklearn import SklearnLearner, as_learner

_HOMES = {
    "DiffDP": "diffdp",
    "ERM": "erm",
    "HSIC": "hsic",
    "LAFTR": "laftr",
    "LEARNERS": "paper",
    "PrejudiceRemover": "prejudice_remover",
    "Schedule": "network",
    "SklearnLearner": "sklearn",
    "as_learner": "sklearn",
}
"""Loaded when first asked for, from these modules."""

__all__ = [
    "ERM",
    "HSIC",
    "LAFTR",
    "LEARNERS",
    "Classifier",
    "DiffDP",
    "Examples",
    "Learner",
    "PrejudiceRemover",
    "Schedule",
    "SklearnLearner",
    "as_learner",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "sklearn"):
            raise
        raise fs.MissingExtraError(
            f"{name} needs {error.name}, which is not installed: "
            "pip install 'fairshield[experiments]'"
        ) from None


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
