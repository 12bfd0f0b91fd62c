"""Checks of the groups and numbers of an input model; each raises where a rule is broken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairshield.base.counts import Group, group_name
from fairshield.base.errors import InvalidValueError
from fairshield.records import as_cost, as_flag, as_number

Floats = NDArray[np.float64]
Outcomes = Mapping[Any, float]
"""P(outcome = 1), keyed by group, (group, proposed) or (group, proposed, cost)."""

MOST_GROUPS = 100
_SUM_TOLERANCE = 1e-9
_LEAST_COST, _MOST_COST = 1e-30, 1e30


def check_groups(groups: tuple[Group, ...], source: str, remedy: str) -> None:
    """Refuse fewer than two groups, too many, and one that is named twice."""
    if len(groups) < 2:
        raise InvalidValueError(
            f"{source} {len(groups)} groups {list(groups)}, need at least two: {remedy}"
        )
    if len(groups) > MOST_GROUPS:
        raise InvalidValueError(
            f"{source} {len(groups)} groups, at most {MOST_GROUPS} can be counted apart: join some "
            f"of {list(groups[:5])} …"
        )
    twice = [g for i, g in enumerate(groups) if g in groups[:i]]
    if twice:
        raise InvalidValueError(f"{source} group {twice[0]!r} twice, in {list(groups)}")


def frozen(values: ArrayLike) -> Floats:
    """A read-only copy as an array of floats."""
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


def check_levels(levels: Floats, edges: Floats) -> None:
    """Refuse levels that do not rise, and an edge that is not between its level and the next."""
    if levels.ndim != 1 or not len(levels) or edges.shape != levels.shape:
        raise InvalidValueError("an input model needs at least one cost level, each with an edge")
    for level in levels.tolist():
        if as_cost(level) and not _LEAST_COST <= level <= _MOST_COST:
            raise InvalidValueError(
                f"the cost {level:g} lies outside {_LEAST_COST:g} … {_MOST_COST:g}: choose another "
                "unit, so that sums of costs keep their precision"
            )
    if not (np.diff(levels) > 0).all() or not (np.diff(edges) > 0).all():
        raise InvalidValueError(f"cost levels and edges must rise, got {levels.tolist()}")
    if (edges < levels).any() or (edges[:-1] >= levels[1:]).any():
        raise InvalidValueError(
            f"the edge of a cost level lies between it and the next level, got edges "
            f"{edges.tolist()} for levels {levels.tolist()}"
        )


def check_probs(probs: Floats, groups: tuple[Group, ...], n_levels: int) -> None:
    """Refuse probabilities that are negative or not finite, or whose sum is not 1."""
    shape = (len(groups), 2, n_levels)
    if probs.shape != shape:
        raise InvalidValueError(
            f"probs must have shape {shape}: group, proposal, cost level; got {probs.shape}"
        )
    bad = np.argwhere(~(probs >= 0.0) | ~np.isfinite(probs))
    if len(bad):
        g, r, level = bad[0]
        raise InvalidValueError(
            f"probability of ({groups[g]!r}, {bool(r)}, cost level {level}) is "
            f"{probs[g, r, level]}: probabilities are finite and at least 0"
        )
    total = float(probs.sum())
    if abs(total - 1.0) > _SUM_TOLERANCE:
        raise InvalidValueError(
            f"probabilities sum to {total:.12g}, they must sum to 1: add what is missing or divide "
            "each by the sum"
        )


def check_outcomes(outcomes: Floats, shape: tuple[int, ...]) -> None:
    """Refuse outcomes that are not a probability for each request."""
    if outcomes.shape != shape:
        raise InvalidValueError(f"outcomes must have shape {shape}, got {outcomes.shape}")
    if not ((outcomes >= 0.0) & (outcomes <= 1.0)).all():
        bad = outcomes[~((outcomes >= 0.0) & (outcomes <= 1.0))][0]
        raise InvalidValueError(f"P(outcome = 1) must lie between 0 and 1, got {bad}")


def checked_key(key: Any) -> tuple[Group, bool, float]:
    """A key ``(group, proposed, cost)`` of a table."""
    try:
        group, proposed, cost = key
    except (TypeError, ValueError):
        raise InvalidValueError(
            f"a table maps (group, proposed, cost) to a probability, got the key {key!r}"
        ) from None
    return group_name(group), as_flag(proposed), as_cost(cost)


def outcome_array(
    outcomes: Outcomes, groups: tuple[Group, ...], levels: Floats, probs: Floats
) -> Floats:
    """P(outcome = 1) for every request; the most specific key wins.

    Requests of probability zero may be left out: they get the probability 0.5.
    """
    array = np.full(probs.shape, np.nan)
    keys = {key: key if isinstance(key, tuple) else (key,) for key in outcomes}
    for key in sorted(keys, key=lambda k: len(keys[k])):
        array[_cells(keys[key], groups, levels)] = _probability(outcomes[key], key)
    missing = np.argwhere(np.isnan(array) & (probs > 0.0))
    if len(missing):
        g, r, level = missing[0]
        raise InvalidValueError(
            f"no P(outcome = 1) for ({groups[g]!r}, {bool(r)}, {levels[level]:g}): give one per "
            "group, or per (group, proposed), or per (group, proposed, cost)"
        )
    return np.where(np.isnan(array), 0.5, array)


def _cells(key: tuple[Any, ...], groups: tuple[Group, ...], levels: Floats) -> tuple[int, ...]:
    """The index of a key of ``outcomes``: group, then proposal and cost level if it has them."""
    if not 1 <= len(key) <= 3:
        raise InvalidValueError(
            f"outcomes are keyed by group, (group, proposed) or (group, proposed, cost), got {key}"
        )
    if key[0] not in groups:
        raise InvalidValueError(f"outcomes name group {key[0]!r}, the model has {groups}")
    where = [groups.index(key[0])]
    if len(key) > 1:
        where.append(int(as_flag(key[1])))
    if len(key) == 3:
        at = np.flatnonzero(levels == as_cost(key[2]))
        if not len(at):
            raise InvalidValueError(f"outcomes name cost {key[2]}, the model has {levels.tolist()}")
        where.append(int(at[0]))
    return tuple(where)


def _probability(value: Any, key: Any) -> float:
    p = as_number(value, f"P(outcome = 1) of {key!r}")
    if not 0.0 <= p <= 1.0:
        raise InvalidValueError(
            f"P(outcome = 1) of {key!r} must lie between 0 and 1, got {value!r}"
        )
    return p
