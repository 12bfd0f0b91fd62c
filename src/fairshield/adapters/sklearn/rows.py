"""Rows as scikit-learn passes them: labels, outcomes, and the group of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from fairshield.adapters.scorer import Array
from fairshield.base.counts import Group, is_whole
from fairshield.base.errors import InvalidValueError
from fairshield.base.groups import Coded, Places, Unseen, places_among
from fairshield.base.intersections import groups_of
from fairshield.inputs.columns import check_known, column

Names = Array | Coded
"""The group of each row."""


def binary_labels(y: Any) -> Array:
    """The labels as an array; raises unless there are two classes."""
    if y is None:
        raise InvalidValueError(
            "ShieldedClassifier requires y to be passed, but the target y is None"
        )
    labels: Array = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    kind = type_of_target(labels, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise InvalidValueError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )
    return labels


def two_classes(estimator: Any, y: Array) -> Array:
    """The classes of a fitted estimator; raises unless there are two."""
    classes = np.asarray(getattr(estimator, "classes_", np.unique(y)))
    if len(classes) != 2:
        raise InvalidValueError(
            f"a shield accepts or rejects, so y needs two classes, got {len(classes)} class: "
            f"{classes.tolist()}"
        )
    return classes


def outcomes_among(classes: Array, labels: ArrayLike, n: int) -> Array:
    """Outcomes as an array; raises unless there are ``n``, each one of the ``classes``."""
    given = column(labels, "outcomes")
    if len(given) != n:
        raise InvalidValueError(f"outcomes has {len(given)} entries, X has {n} rows")
    check_known(given, "outcomes")
    strange = np.flatnonzero(~np.isin(given, classes))
    if len(strange):
        (first,) = given[strange[:1]].tolist()
        raise InvalidValueError(
            f"outcomes[{strange[0]}] is {first!r}, which is none of the labels {classes.tolist()}"
        )
    return given


def groups_of_rows(X: Any, sensitive_features: Any, group_of: Any, n: int) -> Names:
    """The groups of the ``n`` rows of ``X``; without ``sensitive_features`` by ``group_of``."""
    if sensitive_features is not None:
        found = sensitive_features
    elif group_of is None:
        raise _no_groups()
    else:
        found = group_of(X) if callable(group_of) else _taken(X, group_of)
    groups = groups_of(found)
    if len(groups) != n:
        raise InvalidValueError(f"sensitive_features has {len(groups)} entries, X has {n} rows")
    _check_index(X, sensitive_features)
    if isinstance(groups, Coded):
        return groups
    if groups.dtype.kind == "f" and (groups == np.floor(groups)).all():
        return groups.astype(np.int64)  # numbers of groups in a matrix of numbers
    return groups


def places_of(known: tuple[Group, ...], unseen: Unseen, groups: Names) -> Places:
    """The place of each person's group among those known; -1 for those who are followed."""
    return unseen.placed(places_among(known, groups), groups, known, "sensitive_features")


def _check_index(X: Any, sensitive_features: Any) -> None:
    """Raise if the pandas index of the groups differs from that of ``X``."""
    ours: Any = getattr(X, "index", None)
    table = isinstance(sensitive_features, Mapping)
    for found in sensitive_features.values() if table else [sensitive_features]:
        theirs: Any = getattr(found, "index", None)
        # Lists and tuples have a method of this name.
        if hasattr(ours, "equals") and hasattr(theirs, "equals") and not ours.equals(theirs):
            raise InvalidValueError(
                "sensitive_features has another index than X, and rows are paired by position: "
                "align it, as in sensitive_features.loc[X.index], or, where the order is right, "
                "reset_index(drop=True) on both"
            )


def _taken(X: Any, which: Any) -> dict[Any, Any]:
    """Columns of ``X`` by name or number."""
    wanted = list(which) if isinstance(which, (list, tuple)) else [which]
    if hasattr(X, "columns"):
        names = list(getattr(X, "column_names", X.columns))
        return {w: X[_named(w, names)] for w in wanted}
    table = np.asarray(X)
    columns = table.shape[1] if table.ndim == 2 else 0
    for w in wanted:
        if not is_whole(w) or not -columns <= w < columns:
            raise InvalidValueError(
                f"group_of names column {w!r} of an array, which has columns 0 to {columns - 1}: "
                "give one of these numbers, or a function of X"
            )
    return {w: table[:, w] for w in wanted}


def _named(wanted: Any, names: list[Any]) -> Any:
    if wanted in names:
        return wanted
    if is_whole(wanted) and -len(names) <= wanted < len(names):
        return names[wanted]
    raise InvalidValueError(f"group_of names column {wanted!r}, X has {names}")


def _no_groups() -> InvalidValueError:
    how = (
        "a scorer, as of scoring='accuracy', predicts from X alone, whatever metadata is routed: "
        "leave out scoring=, for score is the accuracy and gets the groups, or use group_of="
        if sklearn.get_config()["enable_metadata_routing"]
        else "pipelines, cross-validation and searches pass them on after "
        "sklearn.set_config(enable_metadata_routing=True), and scorers, as of "
        "scoring='accuracy', take them from X alone"
    )
    return InvalidValueError(
        "no groups: pass sensitive_features=, one entry per row of X, or name their column of X "
        f"with group_of=; {how}"
    )
