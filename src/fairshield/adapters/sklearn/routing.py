"""Metadata routing and method checks that scikit-learn asks of a meta-estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sklearn
from sklearn.utils.metadata_routing import process_routing


def estimator_has(name: str) -> Callable[[Any], bool]:
    """A check for ``available_if``: whether the estimator inside has a method of this name."""

    def check(outer: Any) -> bool:
        getattr(getattr(outer, "estimator_", outer.estimator), name)
        return True

    return check


def routed(outer: Any, sensitive_features: Any, fit_params: dict[str, Any]) -> dict[str, Any]:
    """The part of ``fit_params`` that the ``fit`` of the inner estimator receives."""
    if not sklearn.get_config()["enable_metadata_routing"]:
        return fit_params
    found = process_routing(outer, "fit", sensitive_features=sensitive_features, **fit_params)
    return dict(found.estimator.fit)
