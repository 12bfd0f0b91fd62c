"""FrameColumns reads columns of a frame as arrays: groups, proposals, costs, outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from fairshield.base.errors import FairshieldError, InvalidValueError, check_kind
from fairshield.base.groups import Coded
from fairshield.base.intersections import cross
from fairshield.inputs import InputModel
from fairshield.inputs.columns import costs_of, flags, numbers, unknown_outcomes
from fairshield.records import SCORE_LEVELS, ScoreRule, as_flag

Columns = str | Sequence[str]
_COMPARED = 32
"""Distinct values up to which a whole column is compared with each value, which is fast."""


@dataclass(frozen=True)
class FrameColumns:
    """FrameColumns says which columns of a frame are read, and for what."""

    group: Columns
    proposed: str | None
    cost: str | None
    outcome: str
    score: str | None
    threshold: float | None
    order_by: Columns | None

    def __post_init__(self) -> None:
        if self.score is not None and self.proposed is not None:
            raise InvalidValueError(
                f"proposed={self.proposed!r} and score={self.score!r}: the score says what is "
                "proposed; leave one of them out, and give the price of overruling with cost="
            )
        if self.threshold is not None and self.score is None:
            raise InvalidValueError(
                f"threshold={self.threshold!r} is for a score: name its column with score="
            )

    def requests(self, frame: nw.DataFrame[Any]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Proposals and costs."""
        if self.score is None:
            said = flags_of(column_of(frame, self.proposed or "proposed", "proposed"))
            price = np.ones(len(said))
        else:
            scores = numbers_of(column_of(frame, self.score, "score"))
            said, price = ScoreRule(threshold=self.threshold).many(scores, self.score)
        name = cost_column(frame, self.cost)
        if name is not None:
            given = numbers_of(column_of(frame, name, "cost"))
            price = costs_of(given, len(given), name)
        return said, price

    def outcomes(self, frame: nw.DataFrame[Any], *, labelled: bool) -> NDArray[np.bool_] | None:
        """Outcomes of the rows; ``None`` if the property does not count by outcome."""
        if not labelled:
            return None
        told = column_of(frame, self.outcome, "outcome")
        if told.null_count():
            row = int(np.flatnonzero(told.is_null().to_numpy())[0])
            raise unknown_outcomes(f"{told.name}[{row}]", told.null_count(), len(told))
        return flags_of(told)

    def estimate(self, frame: nw.DataFrame[Any], *, labelled: bool) -> InputModel:
        """The input model estimated from the rows of the frame."""
        who = groups_of_frame(frame, self.group)
        names = [who.names[code] for code in who.used()]
        if len(names) < 2 or None in names:
            raise InvalidValueError(
                f"{words_of(self.group)} holds the groups {names[:5]}, and a policy is made for "
                "two or more that have names: give inputs= that names them, and say with unseen= "
                "what happens to others"
            )
        said, price = self.requests(frame)
        bins = None if len(np.unique(price)) <= SCORE_LEVELS else SCORE_LEVELS
        known = self.outcomes(frame, labelled=labelled)
        return InputModel.estimate(who, said, price, known, bins=bins)


def column_of(frame: nw.DataFrame[Any], name: str, role: str) -> nw.Series[Any]:
    """The column ``name``; ``role`` is the argument that names it."""
    if name not in frame.columns:
        raise InvalidValueError(
            f"the frame has no column {name!r}, only {frame.columns}: name the one to read with "
            f"{role}="
        )
    return frame[name]


def groups_of_frame(frame: nw.DataFrame[Any], group: Columns) -> Coded:
    """The group of each row; of several columns, the intersection."""
    check_kind(group, str | Sequence, "group names the column of groups, or several")
    names = [group] if isinstance(group, str) else list(group)
    parts = [coded(column_of(frame, name, "group")) for name in names]
    return parts[0] if len(parts) == 1 else cross(parts)


def coded(series: nw.Series[Any]) -> Coded:
    """The distinct values of a column, in any order, and which of them each row has.

    Missing values are ``None``.  Whole columns are compared where possible, because frames do that
    fastest, with categories and dictionaries above all.
    """
    # NaN, which polars does not count as missing, differs from itself.
    values = [value for value in series.unique().drop_nulls().to_list() if value == value]
    if len(values) > _COMPARED or len(set(map(type, values))) > 1:
        # Not every kind of frame compares values of mixed types as Python does.
        missing = series.is_null().to_list()
        told = zip(series.to_list(), missing, strict=True)
        return Coded.of(None if gone or value != value else value for value, gone in told)
    codes = np.full(len(series), len(values), np.int8)
    for code, value in enumerate(values):
        codes[_truth(series == value)] = code
    return Coded((*values, None), codes)


def _truth(series: nw.Series[Any]) -> NDArray[np.bool_]:
    return np.asarray(series.fill_null(False).to_numpy(), np.bool_)


def cost_column(frame: nw.DataFrame[Any], named: str | None) -> str | None:
    """The column of costs, if there is one."""
    return "cost" if named is None and "cost" in frame.columns else named


def check_present(series: nw.Series[Any]) -> None:
    """Raise for the first row that has no value."""
    if series.null_count():
        row = int(np.flatnonzero(series.is_null().to_numpy())[0])
        raise InvalidValueError(
            f"{series.name}[{row}] is missing: fill it, or leave the row out before deciding"
        )


def flags_of(series: nw.Series[Any]) -> NDArray[np.bool_]:
    """Decisions or outcomes, however they are written."""
    check_present(series)
    if series.dtype == nw.Boolean or series.dtype.is_numeric():
        return flags(series.to_numpy(), series.name, len(series))
    words = coded(series)
    meaning = np.zeros(len(words.names), np.bool_)
    for code in words.used():
        try:
            meaning[code] = as_flag(words.names[code])
        except FairshieldError as error:
            row = int(np.flatnonzero(words.codes == code)[0])
            raise InvalidValueError(f"{series.name}[{row}]: {error}") from None
    read: NDArray[np.bool_] = meaning[words.codes]
    return read


def numbers_of(series: nw.Series[Any]) -> NDArray[np.float64]:
    """A column of numbers, none of them missing."""
    check_present(series)
    return numbers(series.to_numpy(), series.name)


def known_values(series: nw.Series[Any]) -> list[Any]:
    """Values as written, ``None`` where they are not known."""
    missing = series.is_null().to_list()
    return [None if m else value for value, m in zip(series.to_list(), missing, strict=True)]


def order_of_arrival(frame: nw.DataFrame[Any], order_by: Columns | None) -> NDArray[Any] | None:
    """Rows in order of arrival."""
    if order_by is None:
        return None
    names = [order_by] if isinstance(order_by, str) else list(order_by)
    for name in names:
        check_present(column_of(frame, name, "order_by"))
    row = "row"
    while row in names:
        row += "_"
    rows = frame.select(names).with_row_index(row).sort(*names, row)[row]
    return np.asarray(rows.to_numpy(), np.intp)


def words_of(group: Columns) -> str:
    """The columns of groups as a message names them."""
    return group if isinstance(group, str) else "×".join(group)
