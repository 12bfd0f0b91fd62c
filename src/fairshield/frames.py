"""Frames: decisions on a table of requests, as columns beside them.

pandas, polars, Arrow and whatever else narwhals can read; the rows are decided by
:class:`~fairshield.Stream`, and a frame of the same kind comes back.  Needs the extra ``frames``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Group
from fairshield.errors import (
    FairshieldError,
    InvalidValueError,
    MissingExtraError,
    check_kind,
)
from fairshield.groups import Coded, Unseen, cross
from fairshield.inputs import InputModel, InputSchedule
from fairshield.inputs.columns import costs_of, flags, numbers, threshold_for, unknown_outcomes
from fairshield.outcomes import warn_of_outcomes
from fairshield.periodic import PeriodicPolicy, PeriodicShield, load_policy
from fairshield.policy import Policy
from fairshield.records import Record, as_flag
from fairshield.runtime.audit import audit
from fairshield.runtime.report import AuditReport
from fairshield.spec import Property
from fairshield.stream import Answers, AnyPolicy, Stream
from fairshield.synthesis import synthesize

if find_spec("narwhals") is None:
    raise MissingExtraError("frames need narwhals: pip install 'fairshield[frames]'")

import narwhals.stable.v1 as nw
from narwhals.exceptions import DuplicateError

Frame = TypeVar("Frame")
Decider = Stream | AnyPolicy | Property | str | os.PathLike[str]
"""Who decides: a stream that goes on, a policy or its file, or a property to make one for."""
Columns = str | Sequence[str]

ADDED: dict[str, Any] = {
    "accepted": nw.Boolean,
    "overruled": nw.Boolean,
    "paid": nw.Float64,
    "window": nw.Int64,
    "position": nw.Int64,
    "reason": nw.String,
}
"""What a decision adds to its row; ``reason`` only if asked for."""
_COMPARED = 32
"""Up to so many distinct values a column is compared with each, which frames do fast."""
_LEVELS = 10


def shield_frame(
    frame: Frame,
    policy: Decider,
    *,
    group: Columns = "group",
    proposed: str | None = None,
    cost: str | None = None,
    outcome: str = "outcome",
    score: str | None = None,
    threshold: float | None = None,
    order_by: Columns | None = None,
    horizon: int | None = None,
    inputs: InputModel | InputSchedule | None = None,
    unseen: Unseen | str | Mapping[Group, Group] | None = None,
    reasons: bool = False,
    prefix: str = "",
) -> Frame:
    """The frame with a decision on every row: ``accepted, overruled, paid, window, position``.

    Rows are decided in order of arrival, window after window, by the rule of
    :meth:`fairshield.Stream.decide_many`: all of them or, on an error, none.

    Parameters
    ----------
    frame
        A DataFrame of pandas, polars or anything else that narwhals reads, an Arrow table or
        record batch; a frame of the same kind comes back.  A LazyFrame of polars is collected, and
        what comes back is lazy again.  A reader of record batches becomes one that decides as it
        is read, see :func:`shield_batches`.  Anything else that exports an Arrow stream comes back
        as a table.
    policy
        A policy, periodic or not, or the file of one; a :class:`~fairshield.Stream`, which goes
        on where it stands, so that a frame may be decided in chunks; or a property, for which a
        policy is made with ``horizon``.
    group
        The column of groups; of several, the :func:`~fairshield.intersection`.
    proposed
        The column of proposals, true or false however written; default ``"proposed"``.
    cost
        The column of what overruling costs; default: ``"cost"`` if there is one, else 1 each.
    outcome
        The column of outcomes, read only if the property counts by outcome.
    score, threshold
        Instead of ``proposed``: accept where the score is at least the threshold, default 0.5 of
        scores between 0 and 1, while others need one.
        Overruling costs ``|score - threshold|``, unless there is a column of costs.
    order_by
        Columns to decide in the order of, ties as they stand; rows keep their places.
    horizon, inputs
        For a property: decisions in a window, and the input model.  Without one it is estimated
        from this very frame, which then knows more about its own future than anybody would have:
        what the decisions cost is flattered, whether they are fair does not depend on it.
    unseen
        What happens to people of other groups, see :class:`~fairshield.Unseen`.
    reasons
        Say why, of each that was overruled or is of an unseen group, in a column ``reason``.
    prefix
        Before the names of the columns that are added; no column is overwritten.

    Raises
    ------
    InvalidValueError
        If a column is not there, would be overwritten, or holds what cannot be read; the message
        names column and row.
    UnknownGroupError
        If the policy does not know somebody's group; nobody was decided.

    Examples
    --------
    >>> import fairshield as fs, polars as pl
    >>> frame = pl.DataFrame({"group": list("aabb"), "proposed": [1, 1, 0, 0]})
    >>> decided = fs.shield_frame(frame, fs.DemographicParity("0.1"), horizon=4)
    >>> decided["accepted"].to_list(), decided["overruled"].to_list()
    ([True, True, True, True], [False, False, True, True])
    """
    reading = _Reading(group, proposed, cost, outcome, score, threshold, order_by)
    if _is_reader(frame):
        _check_streamed(policy, horizon, inputs)
        reader: Frame = _decided_reader(frame, _stream(policy, unseen), reading, reasons, prefix)
        return reader
    opened, closed = _opened(frame)
    added = _added(opened.columns, reasons, prefix)
    if isinstance(policy, Property):
        policy = _made(policy, horizon, inputs, opened, reading)
    else:
        _check_unused(horizon, inputs)
    answers = _decide(opened, _stream(policy, unseen), reading, reasons)
    columns = [
        nw.new_series(name, answers[key], ADDED[key], backend=opened.implementation)
        for key, name in added.items()
    ]
    decided: Frame = closed(opened.with_columns(*columns))
    return decided


def shield_batches(
    batches: Any,
    policy: Stream | AnyPolicy | str | os.PathLike[str],
    *,
    group: Columns = "group",
    proposed: str | None = None,
    cost: str | None = None,
    outcome: str = "outcome",
    score: str | None = None,
    threshold: float | None = None,
    unseen: Unseen | str | Mapping[Group, Group] | None = None,
    reasons: bool = False,
    prefix: str = "",
) -> Any:
    """A reader of decided record batches, each decided when it is read: tables of any length.

    ``batches`` is a ``pyarrow.RecordBatchReader`` or anything else that exports an Arrow stream;
    what comes back is a ``pyarrow.RecordBatchReader``.  The other parameters are those of
    :func:`shield_frame`.

    Examples
    --------
    >>> import fairshield as fs, pyarrow as pa
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> policy = fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=4)
    >>> table = pa.table({"group": list("aabb") * 2, "proposed": [True, True, False, False] * 2})
    >>> reader = shield_batches(table.to_reader(max_chunksize=3), policy)
    >>> [batch["window"].to_pylist() for batch in reader]
    [[0, 0, 0], [0, 1, 1], [1, 1]]
    """
    _check_streamed(policy, None, None)
    reading = _Reading(group, proposed, cost, outcome, score, threshold, None)
    pa = _pyarrow()
    reader = batches if _is_reader(batches) else pa.RecordBatchReader.from_stream(batches)
    return _decided_reader(reader, _stream(policy, unseen), reading, reasons, prefix)


def audit_frame(
    frame: Any,
    prop: Property | AnyPolicy,
    *,
    group: Columns = "group",
    accepted: str = "accepted",
    proposed: str | None = None,
    cost: str | None = None,
    outcome: str = "outcome",
    score: str | None = None,
    threshold: float | None = None,
    date: str = "date",
    order_by: Columns | None = None,
    **options: Any,
) -> AuditReport:
    """:func:`fairshield.audit` of the decisions in a frame; lines are rows, counted from 1.

    Given a policy, every request is decided again.  Columns ``proposed``, ``cost``, ``outcome``
    and ``date`` are read if they are there, and must be if they have other names; without
    proposals nobody counts as overruled.  ``score`` and ``threshold`` say what was proposed and at
    what cost, as in :func:`shield_frame`.  ``options`` are those of :func:`fairshield.audit`, with
    ``by="quarter"`` for one.

    Examples
    --------
    >>> import fairshield as fs, polars as pl
    >>> frame = pl.DataFrame({"group": list("ab"), "accepted": [True, False]})
    >>> audit_frame(frame, fs.DemographicParity("0.1")).violations[0].line
    2
    """
    opened, _ = _opened(frame)
    if isinstance(prop, Policy):
        options["policy"], prop = prop, prop.prop
    elif isinstance(prop, PeriodicPolicy):
        options["shield"], prop = PeriodicShield(prop), prop.prop
    reading = _Reading(group, proposed, cost, outcome, score, threshold, order_by)
    if proposed is None and score is None and "proposed" in opened.columns:
        proposed = "proposed"
    cost = _cost_column(opened, cost)
    columns: dict[str, list[Any]] = {
        "group": _groups(opened, group).tolist(),
        "accepted": _flags(_column(opened, accepted, "accepted")).tolist(),
    }
    if score is not None:
        columns |= dict(zip(("proposed", "cost"), map(list, reading.requests(opened)), strict=True))
    if proposed is not None:
        columns["proposed"] = _flags(_column(opened, proposed, "proposed")).tolist()
    if cost is not None:
        columns["cost"] = _numbers(_column(opened, cost, "cost")).tolist()
    if outcome in opened.columns or outcome != "outcome":
        columns["outcome"] = _known(_column(opened, outcome, "outcome"))
    if date in opened.columns or date != "date" or options.get("by") is not None:
        columns["date"] = _known(_column(opened, date, "date"))
    order = _order(opened, order_by)
    rows = range(len(opened)) if order is None else order.tolist()
    records = (Record(i + 1, {name: values[i] for name, values in columns.items()}) for i in rows)
    return audit(prop, records, **options)


# Who decides --------------------------------------------------------------------------------


def _stream(policy: Decider, unseen: Unseen | str | Mapping[Group, Group] | None) -> Stream:
    if isinstance(policy, Stream):
        if unseen is not None:
            raise InvalidValueError(
                f"unseen={unseen!r} beside a Stream, which has a rule of its own "
                f"({policy.unseen}): give it to the Stream"
            )
        return policy
    if isinstance(policy, str | os.PathLike):
        policy = load_policy(policy)
    if not isinstance(policy, Policy | PeriodicPolicy):
        raise InvalidValueError(
            "policy must be a policy or its file, a Stream or a property, got "
            f"{type(policy).__name__}"
        )
    return Stream(policy, unseen=Unseen.of("refuse" if unseen is None else unseen))


def _check_unused(horizon: int | None, inputs: object) -> None:
    if horizon is not None or inputs is not None:
        raise InvalidValueError(
            "horizon and inputs are for a property; a policy or stream has its own: leave them out"
        )


def _check_streamed(policy: Decider, horizon: int | None, inputs: object) -> None:
    if isinstance(policy, Property):
        raise InvalidValueError(
            "batches are decided as they are read, and a property needs a policy first: make one "
            "with fairshield.synthesize"
        )
    _check_unused(horizon, inputs)


def _made(
    prop: Property,
    horizon: int | None,
    inputs: InputModel | InputSchedule | None,
    frame: nw.DataFrame[Any],
    reading: _Reading,
) -> Policy:
    """A policy for a property, from this frame where nothing else is known."""
    if horizon is None:
        raise InvalidValueError(
            f"{prop} must hold after how many decisions? Say so with horizon=, or give a policy"
        )
    if inputs is None:
        inputs = reading.estimate(frame, labelled=prop.relevant_outcome is not None)
    return synthesize(prop, inputs, horizon=horizon)


# Reading columns ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reading:
    """Which columns say what."""

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
            said = _flags(_column(frame, self.proposed or "proposed", "proposed"))
            price = np.ones(len(said))
        else:
            score = _numbers(_column(frame, self.score, "score"))
            _check_finite(score, self.score)
            bar = threshold_for(score, self.threshold, self.score)
            said, price = score >= bar, np.abs(score - bar)
        name = _cost_column(frame, self.cost)
        if name is not None:
            given = _numbers(_column(frame, name, "cost"))
            price = costs_of(given, len(given), name)
        return said, price

    def outcomes(self, frame: nw.DataFrame[Any], *, labelled: bool) -> NDArray[np.bool_] | None:
        """Outcomes, if anybody needs them."""
        if not labelled:
            return None
        told = _column(frame, self.outcome, "outcome")
        if told.null_count():
            row = int(np.flatnonzero(told.is_null().to_numpy())[0])
            raise unknown_outcomes(f"{told.name}[{row}]", told.null_count(), len(told))
        return _flags(told)

    def estimate(self, frame: nw.DataFrame[Any], *, labelled: bool) -> InputModel:
        """An input model of these very rows."""
        who = _groups(frame, self.group)
        names = [who.names[code] for code in who.used()]
        if len(names) < 2 or None in names:
            raise InvalidValueError(
                f"{_words(self.group)} holds the groups {names[:5]}, and a policy is made for two "
                "or more that have names: give inputs= that names them, and say with unseen= what "
                "happens to others"
            )
        said, price = self.requests(frame)
        bins = None if len(np.unique(price)) <= _LEVELS else _LEVELS
        known = self.outcomes(frame, labelled=labelled)
        return InputModel.estimate(who, said, price, known, bins=bins)


def _decide(
    frame: nw.DataFrame[Any], stream: Stream, reading: _Reading, reasons: bool
) -> dict[str, Any]:
    """The columns that are added, by what they say."""
    who = _groups(frame, reading.group)
    _check_groups(who, stream, _words(reading.group))
    said, price = reading.requests(frame)
    known = reading.outcomes(frame, labelled=stream.policy.labelled)
    if known is not None:
        relevant = stream.policy.prop.relevant_outcome
        warn_of_outcomes(
            who.names, who.codes, said, known,
            relevant=relevant, whose="by what was proposed", stacklevel=4,
        )  # fmt: skip
    order = _order(frame, reading.order_by)
    if order is None:
        answers = stream.decide_many(who, said, price, known, reasons=reasons)
    else:
        later = None if known is None else known[order]
        answers = _replaced(
            stream.decide_many(who[order], said[order], price[order], later, reasons=reasons), order
        )
    return dict(zip(ADDED, answers, strict=True))


def _replaced(answers: Answers, order: NDArray[Any]) -> Answers:
    """Each answer in the place of its row."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    accepted, overruled, paid, window, position, why = answers
    if why is not None:
        why = tuple(why[place] for place in places.tolist())
    return Answers(
        accepted[places], overruled[places], paid[places], window[places], position[places], why
    )


def _column(frame: nw.DataFrame[Any], name: str, role: str) -> nw.Series[Any]:
    if name not in frame.columns:
        raise InvalidValueError(
            f"the frame has no column {name!r}, only {frame.columns}: name the one to read with "
            f"{role}="
        )
    return frame[name]


def _groups(frame: nw.DataFrame[Any], group: Columns) -> Coded:
    check_kind(group, str | Sequence, "group names the column of groups, or several")
    names = [group] if isinstance(group, str) else list(group)
    parts = [_coded(_column(frame, name, "group")) for name in names]
    return parts[0] if len(parts) == 1 else cross(parts)


def _coded(series: nw.Series[Any]) -> Coded:
    """The values of a column in order of nothing, and the row of each; missing ones are ``None``.

    Comparing whole columns is what frames do fastest, categories and dictionaries above all.
    """
    # NaN, which polars does not count as missing, differs from itself.
    values = [value for value in series.unique().drop_nulls().to_list() if value == value]
    if len(values) > _COMPARED or len(set(map(type, values))) > 1:
        # Of mixed types, which not every kind of frame compares as Python does.
        missing = series.is_null().to_list()
        told = zip(series.to_list(), missing, strict=True)
        return Coded.of(None if gone or value != value else value for value, gone in told)
    codes = np.full(len(series), len(values), np.int8)
    for code, value in enumerate(values):
        codes[_truth(series == value)] = code
    return Coded((*values, None), codes)


def _truth(series: nw.Series[Any]) -> NDArray[np.bool_]:
    return np.asarray(series.fill_null(False).to_numpy(), np.bool_)


def _cost_column(frame: nw.DataFrame[Any], named: str | None) -> str | None:
    """The column of costs, if there is one."""
    return "cost" if named is None and "cost" in frame.columns else named


def _check_groups(who: Coded, stream: Stream, name: str) -> None:
    """Raise for the first person whom the policy neither knows nor has a rule for."""
    known = stream.policy.groups
    stream.unseen.placed(who.among(known), who, known, name)


def _check_present(series: nw.Series[Any]) -> None:
    if series.null_count():
        row = int(np.flatnonzero(series.is_null().to_numpy())[0])
        raise InvalidValueError(
            f"{series.name}[{row}] is missing: fill it, or leave the row out before deciding"
        )


def _flags(series: nw.Series[Any]) -> NDArray[np.bool_]:
    _check_present(series)
    if series.dtype == nw.Boolean or series.dtype.is_numeric():
        return flags(series.to_numpy(), series.name, len(series))
    words = _coded(series)
    meaning = np.zeros(len(words.names), np.bool_)
    for code in words.used():
        try:
            meaning[code] = as_flag(words.names[code])
        except FairshieldError as error:
            row = int(np.flatnonzero(words.codes == code)[0])
            raise InvalidValueError(f"{series.name}[{row}]: {error}") from None
    read: NDArray[np.bool_] = meaning[words.codes]
    return read


def _numbers(series: nw.Series[Any]) -> NDArray[np.float64]:
    _check_present(series)
    return numbers(series.to_numpy(), series.name)


def _check_finite(score: NDArray[np.float64], name: str) -> None:
    wrong = np.flatnonzero(~np.isfinite(score))
    if len(wrong):
        raise InvalidValueError(
            f"{name}[{wrong[0]}] is {score[wrong[0]]}: a score must be a finite number"
        )


def _known(series: nw.Series[Any]) -> list[Any]:
    """Values as written, ``None`` where they are not known."""
    missing = series.is_null().to_list()
    return [None if m else value for value, m in zip(series.to_list(), missing, strict=True)]


def _order(frame: nw.DataFrame[Any], order_by: Columns | None) -> NDArray[Any] | None:
    """Rows in order of arrival."""
    if order_by is None:
        return None
    names = [order_by] if isinstance(order_by, str) else list(order_by)
    for name in names:
        _check_present(_column(frame, name, "order_by"))
    row = "row"
    while row in names:
        row += "_"
    rows = frame.select(names).with_row_index(row).sort(*names, row)[row]
    return np.asarray(rows.to_numpy(), np.intp)


def _words(group: Columns) -> str:
    return group if isinstance(group, str) else "×".join(group)


def _added(columns: Iterable[str], reasons: bool, prefix: str) -> dict[str, str]:
    """Names of the columns that are added, none of which may be there."""
    added = {key: prefix + key for key in ADDED if reasons or key != "reason"}
    there = [name for name in added.values() if name in set(columns)]
    if there:
        raise InvalidValueError(
            f"the frame has a column {there[0]!r}, which the decisions would overwrite: rename it, "
            "or have theirs begin with something else with prefix="
        )
    return added


# Kinds of frames ----------------------------------------------------------------------------


def _opened(frame: Any) -> tuple[nw.DataFrame[Any], Any]:
    """A frame to read, and how to make one of the same kind of it."""
    try:
        return nw.from_native(frame, eager_only=True), nw.to_native
    except TypeError:
        pass
    except DuplicateError:
        # Arrow's columns are values, and their names elsewhere.
        _check_distinct(getattr(frame, "column_names", None) or frame.columns)
        raise
    lazy = nw.from_native(frame, pass_through=True)
    if isinstance(lazy, nw.LazyFrame):
        if not lazy.implementation.is_polars():
            raise InvalidValueError(
                f"rows of {type(frame).__name__} come in no order: collect it, sorted, and decide "
                "that"
            )
        return lazy.collect(), lambda decided: decided.lazy().to_native()
    if not hasattr(frame, "__arrow_c_stream__"):
        raise InvalidValueError(
            f"{type(frame).__name__} is no frame: need pandas, polars, pyarrow or what else "
            "narwhals reads or exports an Arrow stream"
        )
    pa = _pyarrow()
    arrow = pa.table(frame)
    _check_distinct(arrow.column_names)
    table = nw.from_native(arrow, eager_only=True)
    if isinstance(frame, pa.RecordBatch):
        return table, lambda decided: _one_batch(decided.to_native())
    return table, nw.to_native


def _check_distinct(names: Iterable[Any]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise InvalidValueError(
                f"the frame has two columns {name!r}: rename one, or leave it out"
            )
        seen.add(name)


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError("Arrow streams need pyarrow: pip install pyarrow") from None
    return pa


def _is_reader(frame: Any) -> bool:
    return type(frame).__name__ == "RecordBatchReader" and hasattr(frame, "read_next_batch")


def _one_batch(table: Any) -> Any:
    pa = _pyarrow()
    whole = [
        column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(whole, schema=table.schema)


def _decided_reader(
    reader: Any, stream: Stream, reading: _Reading, reasons: bool, prefix: str
) -> Any:
    if reading.order_by is not None:
        raise InvalidValueError(
            "batches are decided as they are read, which order_by cannot change: sort them first"
        )
    pa = _pyarrow()
    types = {nw.Boolean: pa.bool_(), nw.Float64: pa.float64(), nw.Int64: pa.int64(),
             nw.String: pa.string()}  # fmt: skip
    _check_distinct(reader.schema.names)
    added = _added(reader.schema.names, reasons, prefix)
    schema = reader.schema
    for key, name in added.items():
        schema = schema.append(pa.field(name, types[ADDED[key]]))

    def decided() -> Iterator[Any]:
        for batch in reader:
            opened = nw.from_native(pa.Table.from_batches([batch]), eager_only=True)
            answers = _decide(opened, stream, reading, reasons)
            columns = [pa.array(answers[key], types[ADDED[key]]) for key in added]
            yield pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, decided())
