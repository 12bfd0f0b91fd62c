"""InputModel: a distribution of requests, the same at every step, and the ways to make one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairshield.base.counts import Group, group_name, name_order
from fairshield.base.errors import InvalidValueError, argument, check_kind
from fairshield.base.groups import Coded, group_column
from fairshield.base.words import summary
from fairshield.inputs.checks import (
    Floats,
    Outcomes,
    check_groups,
    check_levels,
    check_outcomes,
    check_probs,
    checked_key,
    frozen,
    outcome_array,
)
from fairshield.inputs.columns import (
    column,
    cost_levels,
    costs_of,
    flags,
    numbers,
    outcomes_of,
)
from fairshield.inputs.recorded import recorded_outcomes, request_of
from fairshield.records import SCORE_LEVELS, Record, ScoreCost, ScoreRule, as_number
from fairshield.records.reading import Reading


class Drawn(NamedTuple):
    """Drawn holds random requests as arrays: group, proposal, cost level, chance to count."""

    groups: NDArray[np.int8]
    proposed: NDArray[np.bool_]
    levels: NDArray[np.int64]
    relevance: Floats


@dataclass(frozen=True)
class InputTable:
    """InputTable holds the numbers of an input model, one row per step or one for all steps.

    ``levels`` and ``edges``: ``(K,)``; ``probs`` and ``outcomes``: ``(steps, G, 2, K)``, indexed
    by step, group, proposal, cost level.  ``outcomes`` is ``None`` if the model has none.
    """

    groups: tuple[Group, ...]
    levels: Floats
    edges: Floats
    probs: Floats
    outcomes: Floats | None
    why_none: str = ""
    """Why the model has no outcomes, if that is known."""

    def relevance(self, outcome: bool | None) -> Floats:
        """Probability of ``outcome`` by step, group, proposal and level; 1 if none matters."""
        if outcome is None:
            return np.ones_like(self.probs)
        if self.outcomes is None:
            given = argument("outcomes", {"GROUP": "P(outcome = 1)"})
            raise InvalidValueError(
                "a property that counts people by their outcome needs an input model with "
                "outcomes, and the input model has no outcome probabilities: "
                + (self.why_none or f"give {given}, or estimate with outcomes")
            )
        return self.outcomes if outcome else 1.0 - self.outcomes

    def cumulative(self) -> Floats:
        """``(steps, 2 G K)``: cells by group, proposal and level, added up, for drawing."""
        sums: Floats = np.cumsum(self.probs.reshape(len(self.probs), -1), axis=1)
        return sums / sums[:, -1:]

    def draw(self, chances: Floats, outcome: bool | None) -> Drawn:
        """The requests that uniform random numbers stand for, one step per last index."""
        cumulative, steps = self.cumulative(), len(self.probs)
        if steps == 1:
            cells = np.searchsorted(cumulative[0], chances, side="right")
        else:
            cells = np.empty(chances.shape, np.int64)
            for t in range(chances.shape[-1]):
                cells[..., t] = np.searchsorted(cumulative[t], chances[..., t], side="right")
        cells = np.minimum(cells, cumulative.shape[1] - 1)
        step = np.arange(chances.shape[-1]) if steps > 1 else 0
        n = len(self.levels)
        return Drawn(
            (cells // (2 * n)).astype(np.int8),
            cells // n % 2 == 1,
            cells % n,
            self.relevance(outcome).reshape(steps, -1)[step, cells],
        )


@dataclass(frozen=True, eq=False)
class InputModel:
    """InputModel is a distribution of requests, the same at every step.

    Made by :meth:`agnostic`, :meth:`from_table`, :meth:`estimate`, :meth:`from_scores`,
    :meth:`from_csv` or :meth:`from_records`.

    Attributes
    ----------
    groups
        Two names or more; the first is the paper's group a.
    levels, edges
        ``(K,)``: representative cost and upper edge of each cost level, rising.
    probs
        ``(G, 2, K)``: probability by group, proposal, cost level; sums to 1.
    outcomes
        ``(G, 2, K)``: P(outcome = 1) given the request, or ``None`` if unknown.
    why_none
        Why outcomes are unknown, where the records told them of some people only.
    """

    steady: ClassVar[bool] = True
    """Whether the distribution is the same at every step."""

    groups: tuple[Group, ...]
    levels: Floats
    probs: Floats
    outcomes: Floats | None = None
    edges: Floats | None = None
    why_none: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        groups = tuple(group_name(g) for g in self.groups)
        check_groups(groups, "an input model names", "give the others probability 0")
        levels = frozen(self.levels)
        edges = levels if self.edges is None else frozen(self.edges)
        probs = frozen(self.probs)
        check_levels(levels, edges)
        check_probs(probs, groups, len(levels))
        outcomes = None
        if self.outcomes is not None:
            outcomes = frozen(self.outcomes)
            check_outcomes(outcomes, probs.shape)
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
        """A model of group shares only: proposals are equally likely and there is one cost.

        Outcomes, if not given, have probability 0.5.

        >>> InputModel.agnostic({"a": 0.325, "b": 0.675}).probs[:, :, 0]
        array([[0.1625, 0.1625],
               [0.3375, 0.3375]])
        """
        if not isinstance(shares, Mapping):
            raise InvalidValueError(f"shares map groups to probabilities, got {shares!r}")
        parts = {g: as_number(p, f"the share of {g!r}") for g, p in shares.items()}
        for group, share in parts.items():
            if not 0.0 <= share <= 1.0:
                raise InvalidValueError(f"the share of {group!r} must be 0 to 1, got {share!r}")
        table = {(g, r, cost): p / 2 for g, p in parts.items() for r in (False, True)}
        return cls.from_table(table, outcomes=outcomes or dict.fromkeys(parts, 0.5))

    @classmethod
    def from_table(
        cls,
        table: Mapping[tuple[Any, bool, float], float],
        *,
        outcomes: Outcomes | None = None,
    ) -> InputModel:
        """Make a model from explicit probabilities ``{(group, proposed, cost): probability}``.

        Groups keep the order in which they first appear.
        """
        check_kind(table, Mapping, "a table maps (group, proposed, cost) to a probability")
        rows = [
            (*checked_key(key), as_number(p, f"the probability of {key!r}"))
            for key, p in table.items()
        ]
        groups = tuple(dict.fromkeys(g for g, _, _, _ in rows))
        check_groups(
            groups, "the table names",
            "give a group that may appear but is not expected probability 0",
        )  # fmt: skip
        levels = np.unique([c for _, _, c, _ in rows])
        probs = np.zeros((len(groups), 2, len(levels)))
        for g, r, c, p in rows:
            probs[groups.index(g), int(r), np.searchsorted(levels, c)] += p
        given = None if outcomes is None else outcome_array(outcomes, groups, levels, probs)
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
        """Estimate a model from recorded requests: arrays, lists, pandas, polars or Arrow columns.

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
            The groups, in order; needed if the records show only one of them, and to have those
            in the model that they do not show.
        """
        if names is not None:
            check_kind(names, Iterable, "names lists the groups, as in names=('a', 'b')")
        asked = group_column(groups)
        who = asked if isinstance(asked, Coded) else Coded.of(asked.tolist())
        if not len(who):
            raise InvalidValueError("no records to estimate from: give at least one request")
        shown = [group_name(who.names[code]) for code in who.used()]
        said = flags(proposed, "proposed", len(who)).astype(np.int64)
        price = costs_of(costs, len(who))
        known = tuple(sorted(shown, key=name_order) if names is None else map(group_name, names))
        source = "the records show" if names is None else "names lists"
        check_groups(known, source, f"name them with {argument('names', ('first', 'second'))}")
        strangers = [g for g in shown if g not in known]
        if strangers:
            raise InvalidValueError(
                f"records of groups {strangers[:5]} that are not among the names {known}"
            )
        smoothing = as_number(smoothing, "smoothing")
        if not 0.0 <= smoothing < math.inf:
            raise InvalidValueError(f"smoothing must be a finite number >= 0, got {smoothing!r}")
        group = who.among(known)
        levels, edges, level = cost_levels(price, bins)
        cells = (len(known), 2, len(levels))
        people = np.zeros(cells)
        np.add.at(people, (group, said, level), 1.0)
        people += smoothing / len(levels)
        given = None
        if outcomes is not None:
            positive = np.zeros(cells)
            np.add.at(positive, (group, said, level), outcomes_of(outcomes, len(who)))
            positive += smoothing / len(levels) / 2
            seen = people > 0
            given = np.divide(positive, people, out=np.full(cells, 0.5), where=seen)
        return cls(
            groups=known, levels=levels, probs=people / people.sum(), outcomes=given, edges=edges
        )

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        groups: ArrayLike,
        outcomes: ArrayLike | None = None,
        *,
        threshold: float | None = None,
        cost: ScoreCost = "confidence",
        bins: int | None = SCORE_LEVELS,
        smoothing: float = 1.0,
        names: Sequence[Any] | None = None,
    ) -> InputModel:
        """Estimate a model from a classifier's scores, which accept where ``score >= threshold``.

        The threshold of probabilities is 0.5 unless you say otherwise; scores beyond 0 and 1 need
        one.
        ``cost="confidence"`` prices overruling at ``|score - threshold|``, in ``bins`` cost levels
        (``None``: every distinct cost); ``cost="constant"`` at 1.  The other parameters are those
        of :meth:`estimate`.
        """
        rule = ScoreRule(threshold=threshold, cost=cost)
        proposed, costs = rule.many(numbers(column(scores, "scores"), "scores"))
        bins = None if cost == "constant" else bins
        return cls.estimate(
            groups, proposed, costs, outcomes, bins=bins, smoothing=smoothing, names=names
        )

    @classmethod
    def from_csv(
        cls, path: str | Path, *, reading: Reading | None = None, scores: ScoreRule | None = None,
        **options: Any,
    ) -> InputModel:  # fmt: skip
        """Estimate a model from a CSV with columns ``group``, ``proposed``, ``cost``, ``outcome``.

        The last two may be missing, and a ``score`` may take the place of ``proposed``.
        ``reading`` says how it is written, where that cannot be seen from its header; ``scores``
        how scores are read, by default with its threshold; ``options`` are those of
        :meth:`estimate`.
        """
        written = replace(reading or Reading(), format="csv")
        rule = ScoreRule(threshold=written.threshold) if scores is None else scores
        with replace(written, threshold=None).open(path) as records:
            return cls.from_records(records, scores=rule, **options)

    @classmethod
    def from_records(
        cls,
        records: Iterable[Record | Mapping[str, Any]],
        *,
        scores: ScoreRule | None = None,
        **options: Any,
    ) -> InputModel:
        """Estimate a model from records with ``group``, ``proposed``, ``cost``, ``outcome``.

        The last two may be missing.  The model has outcomes if all records have.  An
        :class:`~fairshield.OutcomesWarning` says that those of the rejected look filled in, because
        they would make the expected costs wrong.

        Records with a ``score`` instead of ``proposed`` are read by the rule ``scores``, as by
        :meth:`from_scores`; those with a cost keep it.  ``options`` are those of :meth:`estimate`.
        """
        rule = ScoreRule() if scores is None else scores
        check_kind(rule, ScoreRule, "scores is a ScoreRule, as in ScoreRule(threshold=640)")
        given = list(Record.each(records))
        if not given:
            raise InvalidValueError("no records to estimate from: give at least one request")
        found = [record.proposing(rule) for record in given]
        if any(record is not own for record, own in zip(found, given, strict=True)):
            one_level = {"bins": None} if rule.cost == "constant" else {}
            options = {"bins": SCORE_LEVELS} | options | one_level
        requests = [request_of(record) for record in found]
        groups, proposed, costs, _ = zip(*requests, strict=True)
        outcomes, why = recorded_outcomes(found, requests)
        model = cls.estimate(groups, proposed, costs, outcomes, **options)
        return replace(model, why_none=why)

    # What other modules call ----------------------------------------------------------------

    def table(self, horizon: int) -> InputTable:
        """The table of this model: one row that serves every step."""
        assert self.edges is not None  # set in __post_init__
        given = None if self.outcomes is None else self.outcomes[None]
        rows = self.probs[None]
        return InputTable(self.groups, self.levels, self.edges, rows, given, self.why_none)

    def average(self, horizon: int) -> InputModel:
        """The mean distribution over a window: this model."""
        return self

    @property
    def parts(self) -> tuple[tuple[InputModel, int], ...]:
        """The model as a schedule of one part, ``(model, number of steps)``, for all steps."""
        return ((self, 1),)

    def mapped(self, change: Callable[[int, InputModel], InputModel]) -> InputModel:
        """The model that ``change`` returns for part number 0 and this model."""
        return change(0, self)

    def after(self, steps: int, left: int) -> InputModel:
        """The distribution of the ``left`` steps after the first ``steps``: this model."""
        return self

    def repeated(self, length: int, times: int) -> InputModel:
        """The distribution over several periods of this length: this model."""
        return self

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

    __repr__ = summary

    def __str__(self) -> str:
        shares = ", ".join(
            f"{g} {share:.3g}" for g, share in zip(self.groups, self.probs.sum((1, 2)), strict=True)
        )
        n = len(self.levels)
        return f"{shares}; " + (f"cost {self.levels[0]:g}" if n == 1 else f"{n} cost levels")
