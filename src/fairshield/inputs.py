r"""What we expect to see: a distribution over (group, proposal, cost[, outcome]).

The input model is the paper's :math:`\theta`.  It weighs costs and nothing else: if it is wrong
the shield costs more than it had to, and is as fair as before, because the guarantee is made for
every group, proposal and outcome, also those of probability zero.

Costs come in *levels*, each with a representative cost and an upper edge.  A request whose cost
lies between two levels is treated as the next level whose edge is not below it; a cost above the
last edge is overruled only if fairness forces it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairshield.counts import Group, group_name
from fairshield.errors import InvalidValueError
from fairshield.records import Record, as_cost, as_flag, read_records

Floats = NDArray[np.float64]
Outcomes = Mapping[Any, float]
"""P(outcome = 1), keyed by group, (group, proposed) or (group, proposed, cost)."""

_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True)
class InputTable:
    """The numbers behind an input model, one row per time step (or a single one for all).

    ``levels`` and ``edges``: ``(K,)``; ``probs`` and ``outcomes``: ``(steps, 2, 2, K)``, indexed
    by step, group, proposal, cost level.  ``outcomes`` is ``None`` if the model has none.
    """

    groups: tuple[Group, ...]
    levels: Floats
    edges: Floats
    probs: Floats
    outcomes: Floats | None


@dataclass(frozen=True, eq=False)
class InputModel:
    """Distribution of requests, the same at every step.

    Made by :meth:`agnostic`, :meth:`from_table`, :meth:`estimate`, :meth:`from_scores` or
    :meth:`from_csv`.

    Attributes
    ----------
    groups
        Two names; the first is the paper's group a.
    levels, edges
        ``(K,)``: representative cost and upper edge of each cost level, rising.
    probs
        ``(2, 2, K)``: probability by group, proposal, cost level; sums to 1.
    outcomes
        ``(2, 2, K)``: P(outcome = 1) given the request, or ``None`` if unknown.
    """

    groups: tuple[Group, ...]
    levels: Floats
    probs: Floats
    outcomes: Floats | None = None
    edges: Floats | None = None

    def __post_init__(self) -> None:
        groups = tuple(group_name(g) for g in self.groups)
        if len(groups) != 2 or groups[0] == groups[1]:
            raise InvalidValueError(f"an input model needs two different groups, got {groups}")
        levels = _frozen(self.levels)
        edges = levels if self.edges is None else _frozen(self.edges)
        probs = _frozen(self.probs)
        _check_levels(levels, edges)
        _check_probs(probs, groups, len(levels))
        outcomes = None
        if self.outcomes is not None:
            outcomes = _frozen(self.outcomes)
            _check_outcomes(outcomes, probs.shape)
        for name, value in (
            ("groups", groups),
            ("levels", levels),
            ("edges", edges),
            ("probs", probs),
            ("outcomes", outcomes),
        ):
            object.__setattr__(self, name, value)

    # Ways to make one -----------------------------------------------------------------------

    @classmethod
    def agnostic(
        cls,
        shares: Mapping[Any, float],
        *,
        cost: float = 1.0,
        outcomes: Outcomes | None = None,
    ) -> InputModel:
        """Either proposal equally likely in each group, one cost: knows only the group shares.

        Outcomes, if not given, are as likely as not.

        >>> InputModel.agnostic({"a": 0.325, "b": 0.675}).probs[:, :, 0]
        array([[0.1625, 0.1625],
               [0.3375, 0.3375]])
        """
        groups = tuple(shares)
        table = {(g, r, cost): shares[g] / 2 for g in groups for r in (False, True)}
        return cls.from_table(table, outcomes=outcomes or dict.fromkeys(groups, 0.5))

    @classmethod
    def from_table(
        cls,
        table: Mapping[tuple[Any, bool, float], float],
        *,
        outcomes: Outcomes | None = None,
    ) -> InputModel:
        """From explicit probabilities ``{(group, proposed, cost): probability}``.

        Groups keep the order in which they first appear.
        """
        rows = [(*_checked_key(key), float(p)) for key, p in table.items()]
        groups = tuple(dict.fromkeys(g for g, _, _, _ in rows))
        if len(groups) != 2:
            raise InvalidValueError(
                f"the table names {len(groups)} groups {list(groups)}, need exactly two: give a "
                "group that may appear but is not expected probability 0"
            )
        levels = np.unique([c for _, _, c, _ in rows])
        probs = np.zeros((2, 2, len(levels)))
        for g, r, c, p in rows:
            probs[groups.index(g), int(r), np.searchsorted(levels, c)] += p
        given = None if outcomes is None else _outcome_array(outcomes, groups, levels)
        return cls(groups=groups, levels=levels, probs=probs, outcomes=given)

    @classmethod
    def estimate(
        cls,
        groups: ArrayLike,
        proposed: ArrayLike,
        costs: ArrayLike | None = None,
        outcomes: ArrayLike | None = None,
        *,
        bins: int | None = None,
        smoothing: float = 1.0,
        names: Sequence[Any] | None = None,
    ) -> InputModel:
        """From recorded requests, as arrays, lists or pandas, polars or Arrow columns.

        Parameters
        ----------
        groups, proposed, costs, outcomes
            One entry per request; ``costs`` defaults to 1, ``outcomes`` to unknown.
        bins
            Equal-width cost bins, each represented by its mean cost; ``None`` keeps every
            distinct cost as a level of its own.
        smoothing
            Imaginary people added to each (group, proposal), spread evenly over its cost levels;
            half of them have outcome 1.
        names
            The two groups, in order; needed if the records show only one of them.
        """
        who = [group_name(g) for g in _column(groups, "groups").tolist()]
        if not who:
            raise InvalidValueError("no records to estimate from: give at least one request")
        said = _flags(proposed, "proposed", len(who))
        price = _costs(costs, len(who))
        two = (
            tuple(map(group_name, names)) if names is not None else tuple(sorted(set(who), key=str))
        )
        if len(two) != 2:
            raise InvalidValueError(
                f"the records show {len(two)} groups {list(two)[:5]}, need exactly two: name them "
                "with names=(first, second)"
            )
        strangers = sorted(set(map(str, who)) - set(map(str, two)))
        if strangers:
            raise InvalidValueError(f"records of groups {strangers} that are not among {two}")
        if not 0.0 <= smoothing < math.inf:
            raise InvalidValueError(f"smoothing must be a finite number >= 0, got {smoothing!r}")
        group = np.array([two.index(g) for g in who])
        levels, edges, level = _cost_levels(price, bins)
        cells = (2, 2, len(levels))
        people = np.zeros(cells)
        np.add.at(people, (group, said, level), 1.0)
        people += smoothing / len(levels)
        given = None
        if outcomes is not None:
            positive = np.zeros(cells)
            np.add.at(positive, (group, said, level), _flags(outcomes, "outcomes", len(who)))
            positive += smoothing / len(levels) / 2
            seen = people > 0
            given = np.divide(positive, people, out=np.full(cells, 0.5), where=seen)
        return cls(
            groups=two, levels=levels, probs=people / people.sum(), outcomes=given, edges=edges
        )

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        groups: ArrayLike,
        outcomes: ArrayLike | None = None,
        *,
        threshold: float = 0.5,
        cost: Literal["confidence", "constant"] = "confidence",
        bins: int | None = 10,
        smoothing: float = 1.0,
        names: Sequence[Any] | None = None,
    ) -> InputModel:
        """From a classifier's scores: accept where ``score >= threshold``.

        ``cost="confidence"`` prices overruling at ``|score - threshold|``, in ``bins`` cost levels
        (``None``: every distinct cost); ``cost="constant"`` at 1.  The other parameters are those
        of :meth:`estimate`.
        """
        score = _column(scores, "scores").astype(np.float64)
        if not np.isfinite(score).all():
            bad = int(np.flatnonzero(~np.isfinite(score))[0])
            raise InvalidValueError(f"scores[{bad}] is {score[bad]}: scores must be finite")
        if cost not in ("confidence", "constant"):
            raise InvalidValueError(f"cost must be 'confidence' or 'constant', got {cost!r}")
        constant = cost == "constant"
        return cls.estimate(
            groups,
            score >= threshold,
            None if constant else np.abs(score - threshold),
            outcomes,
            bins=None if constant else bins,
            smoothing=smoothing,
            names=names,
        )

    @classmethod
    def from_csv(cls, path: str | Path, **options: Any) -> InputModel:
        """From a CSV with columns ``group``, ``proposed`` and, if present, ``cost``, ``outcome``.

        ``options`` are those of :meth:`estimate`.
        """
        with Path(path).open(newline="", encoding="utf-8") as lines:
            records = list(read_records(lines, "csv"))
        return cls.from_records(records, **options)

    @classmethod
    def from_records(cls, records: Sequence[Record], **options: Any) -> InputModel:
        """From records with fields ``group``, ``proposed`` and perhaps ``cost``, ``outcome``."""
        if not records:
            raise InvalidValueError("no records to estimate from: give at least one request")
        labelled = not any(r.missing("outcome") for r in records)
        return cls.estimate(
            [r.group() for r in records],
            [r.flag("proposed") for r in records],
            [r.cost() for r in records],
            [r.flag("outcome") for r in records] if labelled else None,
            **options,
        )

    # What others ask ------------------------------------------------------------------------

    def table(self, horizon: int) -> InputTable:
        """The same numbers at every step."""
        assert self.edges is not None  # set in __post_init__
        given = None if self.outcomes is None else self.outcomes[None]
        return InputTable(self.groups, self.levels, self.edges, self.probs[None], given)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; :func:`inputs_from_dict` is the inverse, exact to the bit."""
        assert self.edges is not None
        return {
            "groups": list(self.groups),
            "levels": self.levels.tolist(),
            "edges": [None if e == math.inf else e for e in self.edges.tolist()],
            "probs": self.probs.tolist(),
            "outcomes": None if self.outcomes is None else self.outcomes.tolist(),
        }

    def __str__(self) -> str:
        shares = ", ".join(
            f"{g} {share:.3g}" for g, share in zip(self.groups, self.probs.sum((1, 2)), strict=True)
        )
        n = len(self.levels)
        return f"{shares}; " + (f"cost {self.levels[0]:g}" if n == 1 else f"{n} cost levels")


@dataclass(frozen=True, eq=False)
class InputSchedule:
    """An input model that changes over the window: ``(model, number of steps)`` in order.

    The last model also covers whatever steps remain.

    >>> morning = InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> evening = InputModel.agnostic({"a": 0.1, "b": 0.9})
    >>> InputSchedule([(morning, 60), (evening, 40)]).table(100).probs.shape
    (100, 2, 2, 1)
    """

    parts: Sequence[tuple[InputModel, int]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise InvalidValueError("a schedule needs at least one (model, steps) pair")
        for model, steps in self.parts:
            if model.groups != self.groups:
                raise InvalidValueError(
                    f"models of a schedule must name the same groups in the same order, got "
                    f"{self.groups} and {model.groups}"
                )
            if steps < 1:
                raise InvalidValueError(f"a part of a schedule lasts at least 1 step, got {steps}")

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of all its models."""
        return self.parts[0][0].groups

    def table(self, horizon: int) -> InputTable:
        """One row per step; the levels are those of all models together."""
        models = [model for model, steps in self.parts for _ in range(steps)][:horizon]
        models += [self.parts[-1][0]] * (horizon - len(models))
        widest: dict[float, float] = {}
        for model, _ in self.parts:
            assert model.edges is not None
            for level, edge in zip(model.levels.tolist(), model.edges.tolist(), strict=True):
                widest[level] = max(edge, widest.get(level, edge))
        levels = np.array(sorted(widest))
        edges = np.array([widest[level] for level in levels.tolist()])
        # Where a level of one model lies in the cell of another's, the cell ends halfway to it.
        overlap = edges[:-1] >= levels[1:]
        edges[:-1][overlap] = ((levels[:-1] + levels[1:]) / 2)[overlap]
        probs = np.zeros((horizon, 2, 2, len(levels)))
        labelled = all(model.outcomes is not None for model, _ in self.parts)
        outcomes = np.full(probs.shape, 0.5) if labelled else None
        for t, model in enumerate(models):
            at = np.searchsorted(levels, model.levels)
            probs[t][:, :, at] = model.probs
            if outcomes is not None and model.outcomes is not None:
                outcomes[t][:, :, at] = model.outcomes
        return InputTable(self.groups, levels, edges, probs, outcomes)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; :func:`inputs_from_dict` is the inverse."""
        return {"schedule": [[model.to_dict(), steps] for model, steps in self.parts]}

    def __str__(self) -> str:
        return " then ".join(f"{model} ({steps} steps)" for model, steps in self.parts)


def inputs_from_dict(data: Mapping[str, Any]) -> InputModel | InputSchedule:
    """The input model that ``to_dict`` described."""
    if "schedule" in data:
        parts = [(inputs_from_dict(model), int(steps)) for model, steps in data["schedule"]]
        return InputSchedule([(m, n) for m, n in parts if isinstance(m, InputModel)])
    return InputModel(
        groups=tuple(data["groups"]),
        levels=np.array(data["levels"]),
        probs=np.array(data["probs"]),
        outcomes=None if data["outcomes"] is None else np.array(data["outcomes"]),
        edges=np.array([math.inf if e is None else e for e in data["edges"]]),
    )


# Checks and small tools ---------------------------------------------------------------------


def _frozen(values: ArrayLike) -> Floats:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


def _check_levels(levels: Floats, edges: Floats) -> None:
    if levels.ndim != 1 or not len(levels) or edges.shape != levels.shape:
        raise InvalidValueError("an input model needs at least one cost level, each with an edge")
    for level in levels.tolist():
        as_cost(level)
    if not (np.diff(levels) > 0).all() or not (np.diff(edges) > 0).all():
        raise InvalidValueError(f"cost levels and edges must rise, got {levels.tolist()}")
    if (edges < levels).any() or (edges[:-1] >= levels[1:]).any():
        raise InvalidValueError(
            f"the edge of a cost level lies between it and the next level, got edges "
            f"{edges.tolist()} for levels {levels.tolist()}"
        )


def _check_probs(probs: Floats, groups: tuple[Group, ...], n_levels: int) -> None:
    if probs.shape != (2, 2, n_levels):
        raise InvalidValueError(
            f"probs must have shape (2, 2, {n_levels}): group, proposal, cost level; "
            f"got {probs.shape}"
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


def _check_outcomes(outcomes: Floats, shape: tuple[int, ...]) -> None:
    if outcomes.shape != shape:
        raise InvalidValueError(f"outcomes must have shape {shape}, got {outcomes.shape}")
    if not ((outcomes >= 0.0) & (outcomes <= 1.0)).all():
        bad = outcomes[~((outcomes >= 0.0) & (outcomes <= 1.0))][0]
        raise InvalidValueError(f"P(outcome = 1) must lie between 0 and 1, got {bad}")


def _checked_key(key: Any) -> tuple[Group, bool, float]:
    try:
        group, proposed, cost = key
    except (TypeError, ValueError):
        raise InvalidValueError(
            f"a table maps (group, proposed, cost) to a probability, got the key {key!r}"
        ) from None
    return group_name(group), as_flag(proposed), as_cost(cost)


def _outcome_array(outcomes: Outcomes, groups: tuple[Group, ...], levels: Floats) -> Floats:
    """P(outcome = 1) for every request; the most specific key wins."""
    array = np.full((2, 2, len(levels)), np.nan)
    by_length = sorted(
        outcomes.items(), key=lambda kv: len(kv[0]) if isinstance(kv[0], tuple) else 1
    )
    for key, p in by_length:
        group, *rest = key if isinstance(key, tuple) else (key,)
        if group not in groups:
            raise InvalidValueError(f"outcomes name group {group!r}, the model has {groups}")
        where: tuple[Any, ...] = (groups.index(group),)
        if rest:
            where += (int(as_flag(rest[0])),)
        if len(rest) == 2:
            at = np.flatnonzero(levels == as_cost(rest[1]))
            if not len(at):
                raise InvalidValueError(
                    f"outcomes name cost {rest[1]}, the model has {levels.tolist()}"
                )
            where += (int(at[0]),)
        array[where] = float(p)
    if np.isnan(array).any():
        g, r, level = np.argwhere(np.isnan(array))[0]
        raise InvalidValueError(
            f"no P(outcome = 1) for ({groups[g]!r}, {bool(r)}, {levels[level]:g}): give one per "
            "group, or per (group, proposed), or per (group, proposed, cost)"
        )
    return array


def _column(values: ArrayLike, name: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise InvalidValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    return array


def _flags(values: ArrayLike, name: str, length: int) -> NDArray[np.int64]:
    column = _column(values, name)
    _check_length(column, name, length)
    if column.dtype == bool:
        return column.astype(np.int64)
    flags = np.empty(length, np.int64)
    for i, value in enumerate(column.tolist()):
        try:
            flags[i] = as_flag(value)
        except InvalidValueError as error:
            raise InvalidValueError(f"{name}[{i}]: {error}") from None
    return flags


def _costs(values: ArrayLike | None, length: int) -> Floats:
    if values is None:
        return np.ones(length)
    column = _column(values, "costs")
    _check_length(column, "costs", length)
    costs = column.astype(np.float64)
    bad = np.flatnonzero(~((costs >= 0.0) & (costs < math.inf)))
    if len(bad):
        raise InvalidValueError(
            f"costs[{bad[0]}] is {costs[bad[0]]}: a cost must be finite and at least 0"
        )
    return costs


def _check_length(column: NDArray[Any], name: str, length: int) -> None:
    if len(column) != length:
        raise InvalidValueError(f"{name} has {len(column)} entries, groups has {length}")


def _cost_levels(costs: Floats, bins: int | None) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Levels, upper edges, and the level of each cost."""
    top = float(costs.max())
    if bins is None or top == 0.0:
        levels, level = np.unique(costs, return_inverse=True)
        return levels, levels, level
    if not isinstance(bins, int) or bins < 1:
        raise InvalidValueError(f"bins must be a whole number of at least 1, or None, got {bins!r}")
    cuts = np.linspace(0.0, top, bins + 1)[1:-1]
    used, level = np.unique(np.searchsorted(cuts, costs, side="left"), return_inverse=True)
    levels = np.bincount(level, weights=costs) / np.bincount(level)
    edges = np.append(cuts, math.inf)[used]
    edges[-1] = math.inf
    return levels, np.maximum(edges, levels), level
