"""A user's columns (arrays, lists, pandas, polars, Arrow) as checked numpy arrays."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairshield.base.counts import is_whole
from fairshield.base.errors import InvalidValueError, shown
from fairshield.base.groups import is_missing
from fairshield.records import as_flag
from fairshield.spec.outcomes import ADVICE

Floats = NDArray[np.float64]


def column(values: ArrayLike, name: str) -> NDArray[Any]:
    """One-dimensional ``values``."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidValueError(
            f"{name} must be one-dimensional, with one entry per person, got {shown(values)}"
        ) from None
    if array.ndim != 1:
        raise InvalidValueError(
            f"{name} must be one-dimensional, got "
            + (f"shape {array.shape}" if array.ndim else shown(values))
        )
    return array


def flags(values: ArrayLike, name: str, length: int) -> NDArray[np.bool_]:
    """A column of ``length`` decisions or outcomes as truth values, see ``as_flag``."""
    given = column(values, name)
    _check_length(given, name, length)
    if given.dtype == np.bool_:
        return given
    if given.dtype.kind in "iuf":
        yes = given == 1
        if (yes | (given == 0)).all():
            return np.asarray(yes)
    read = np.empty(length, np.bool_)
    # Elements of the list itself: numpy would make text of [1.0, "no"], and "1.0" is no flag.
    for i, value in enumerate(values if isinstance(values, list | tuple) else given.tolist()):
        try:
            read[i] = as_flag(value)
        except InvalidValueError as error:
            raise InvalidValueError(f"{name}[{i}]: {error}") from None
    return read


def outcomes_of(values: ArrayLike, length: int) -> NDArray[np.bool_]:
    """``length`` outcomes, all of them known."""
    given = column(values, "outcomes")
    check_known(given, "outcomes")
    return flags(given, "outcomes", length)


def check_known(outcomes: NDArray[Any], name: str) -> None:
    """Refuse outcomes that are not known."""
    if outcomes.dtype.kind not in "fO":
        return
    missing = [i for i, value in enumerate(outcomes.tolist()) if is_missing(value)]
    if missing:
        raise unknown_outcomes(f"{name}[{missing[0]}]", len(missing), len(outcomes))


def unknown_outcomes(first: str, missing: int, people: int) -> InvalidValueError:
    """The error for ``missing`` unknown outcomes; ``first`` names the first of them."""
    return InvalidValueError(
        f"{first} is missing, as {missing:,} of {people:,} are, and people are counted by it: "
        f"{ADVICE}"
    )


def numbers(values: NDArray[Any], name: str) -> Floats:
    """``values`` as floating-point numbers."""
    if values.dtype != object:  # in an array of objects None would become NaN
        with contextlib.suppress(TypeError, ValueError):
            return values.astype(np.float64)
    for i, value in enumerate(values.reshape(-1).tolist()):
        if not _is_number(value):
            where = f"{name}[{i}]" if values.ndim else name
            raise InvalidValueError(f"{where} is {value!r}: {name} must be numbers")
    return values.astype(np.float64)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def costs_of(values: ArrayLike | None, length: int, name: str = "costs") -> Floats:
    """An array of ``length`` costs; a single number serves for all, and ``None`` means 1."""
    if values is None:
        values = 1.0
    if type(values) is float and 0.0 <= values < math.inf:  # as by default
        return np.full(length, values)
    costs = numbers(np.asarray(values), name)
    if costs.ndim:
        _check_length(column(costs, name), name, length)
    (wrong,) = (~((costs >= 0.0) & (costs < math.inf))).reshape(-1).nonzero()
    if len(wrong):
        bad = costs.reshape(-1)[wrong[0]]
        raise InvalidValueError(
            f"{name}[{wrong[0]}] is {bad}: a cost must be finite and at least 0"
        )
    return costs if costs.ndim else np.full(length, costs)


def _check_length(given: NDArray[Any], name: str, length: int) -> None:
    if len(given) != length:
        raise InvalidValueError(
            f"{name} has {len(given)} entries, groups has {length}: give one for every person"
        )


def cost_levels(costs: Floats, bins: int | None) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Levels, upper edges, and the level of each cost."""
    top = float(costs.max())
    if bins is not None and (not is_whole(bins) or bins < 1):
        raise InvalidValueError(f"bins must be a whole number of at least 1, or None, got {bins!r}")
    if bins is None or top == 0.0:
        levels, level = np.unique(costs, return_inverse=True)
        return levels, levels, level
    cuts = np.linspace(0.0, top, bins + 1)[1:-1]
    used, level = np.unique(np.searchsorted(cuts, costs, side="left"), return_inverse=True)
    levels = np.bincount(level, weights=costs) / np.bincount(level)
    edges = np.append(cuts, math.inf)[used]
    edges[-1] = math.inf
    return levels, np.maximum(edges, levels), level
