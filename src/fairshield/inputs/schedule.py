"""InputSchedule: an input model that changes over the window; and input models in files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fairshield.base.counts import Group, is_whole
from fairshield.base.errors import InvalidValueError
from fairshield.base.words import summary
from fairshield.inputs.model import InputModel, InputTable


@dataclass(frozen=True, eq=False)
class InputSchedule:
    """InputSchedule is an input model that changes over the window.

    It is made of pairs ``(model, number of steps)`` in order.  The last model also covers whatever
    steps remain.

    >>> morning = InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> evening = InputModel.agnostic({"a": 0.1, "b": 0.9})
    >>> InputSchedule([(morning, 60), (evening, 40)]).table(100).probs.shape
    (100, 2, 2, 1)
    """

    steady: ClassVar[bool] = False
    """Whether the distribution is the same at every step."""

    parts: Sequence[tuple[InputModel, int]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise InvalidValueError("a schedule needs at least one (model, steps) pair")
        for part in self.parts:
            try:
                model, steps = part
            except (TypeError, ValueError):
                raise InvalidValueError(
                    f"a part of a schedule is a pair (model, steps), got {part!r}"
                ) from None
            if model.groups != self.groups:
                raise InvalidValueError(
                    f"models of a schedule must name the same groups in the same order, got "
                    f"{self.groups} and {model.groups}"
                )
            if not is_whole(steps) or steps < 1:
                raise InvalidValueError(
                    f"a part of a schedule lasts a whole number of steps, at least 1, got {steps!r}"
                )

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of all its models."""
        return self.parts[0][0].groups

    def table(self, horizon: int) -> InputTable:
        """One row per step; the levels are those of all models together."""
        lengths = self._lengths(horizon)
        table = self._by_part()
        outcomes = None if table.outcomes is None else np.repeat(table.outcomes, lengths, axis=0)
        return replace(table, probs=np.repeat(table.probs, lengths, axis=0), outcomes=outcomes)

    def average(self, horizon: int) -> InputModel:
        """The mean distribution over a window, as a model that is the same at every step."""
        table, lengths = self._by_part(), np.array(self._lengths(horizon)) / horizon
        people = table.probs * lengths[:, None, None, None]
        probs, outcomes = people.sum(axis=0), None
        if table.outcomes is not None:
            positive = (people * table.outcomes).sum(axis=0)
            outcomes = np.divide(positive, probs, out=np.full(probs.shape, 0.5), where=probs > 0)
        return InputModel(self.groups, table.levels, probs, outcomes, table.edges)

    def after(self, steps: int, left: int) -> InputSchedule:
        """The schedule of the ``left`` steps after the first ``steps``, with the same cost levels.

        >>> day = InputSchedule([(InputModel.agnostic({"a": 0.5, "b": 0.5}, cost=3.0), 60),
        ...                      (InputModel.agnostic({"a": 0.1, "b": 0.9}), 40)])
        >>> day.after(60, 40).table(40).levels
        array([1., 3.])
        """
        if steps == 0:
            return self
        parts, skip = [], steps
        for model, length in self.parts:
            if length > skip:
                parts.append((model, length - skip))
            skip = max(skip - length, 0)
        *before, (last, _) = parts or self.parts[-1:]
        # Models beyond the last step only add their cost levels to the table.
        levels = ((model, 1) for model, _ in self.parts)
        return InputSchedule([*before, (last, left), *levels])

    def mapped(self, change: Callable[[int, InputModel], InputModel]) -> InputSchedule:
        """The schedule of the models that ``change`` returns for each part's number and model."""
        return InputSchedule([(change(i, model), n) for i, (model, n) in enumerate(self.parts)])

    def repeated(self, length: int, times: int) -> InputSchedule:
        """The schedule of several periods of this length, each like the first."""
        if times == 1:
            return self
        lengths = zip(self.parts, self._lengths(length), strict=True)
        period = [(model, steps) for (model, _), steps in lengths if steps]
        return InputSchedule(period * times)

    def _lengths(self, horizon: int) -> list[int]:
        """Steps of each part within the window; the last covers whatever remains."""
        lengths, left = [], horizon
        for _, steps in self.parts:
            lengths.append(min(steps, left))
            left -= lengths[-1]
        lengths[-1] += left
        return lengths

    def _by_part(self) -> InputTable:
        """One row per part."""
        widest: dict[float, float] = {}
        for model, _ in self.parts:
            assert model.edges is not None
            for level, edge in zip(model.levels.tolist(), model.edges.tolist(), strict=True):
                widest[level] = max(edge, widest.get(level, edge))
        levels = np.array(sorted(widest))
        edges = np.array([widest[level] for level in levels.tolist()])
        # Where a level of one model lies below the edge of another's, the edge moves halfway to it.
        overlap = edges[:-1] >= levels[1:]
        edges[:-1][overlap] = ((levels[:-1] + levels[1:]) / 2)[overlap]
        probs = np.zeros((len(self.parts), len(self.groups), 2, len(levels)))
        labelled = all(model.outcomes is not None for model, _ in self.parts)
        outcomes = np.full(probs.shape, 0.5) if labelled else None
        for i, (model, _) in enumerate(self.parts):
            at = np.searchsorted(levels, model.levels)
            probs[i][:, :, at] = model.probs
            if outcomes is not None and model.outcomes is not None:
                outcomes[i][:, :, at] = model.outcomes
        why = next((model.why_none for model, _ in self.parts if model.why_none), "")
        return InputTable(self.groups, levels, edges, probs, outcomes, why)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; :func:`inputs_from_dict` is the inverse."""
        return {"schedule": [[model.to_dict(), steps] for model, steps in self.parts]}

    __repr__ = summary

    def __str__(self) -> str:
        return " then ".join(f"{model} ({steps} steps)" for model, steps in self.parts)


Inputs = InputModel | InputSchedule
"""What is expected to come, the same at every step or not."""


def inputs_from_dict(data: Mapping[str, Any]) -> Inputs:
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
