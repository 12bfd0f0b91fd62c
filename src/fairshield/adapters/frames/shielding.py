"""``shield_frame`` and ``shield_batches`` decide tables of requests and add the decisions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from fairshield.adapters.frames.columns import (
    Columns,
    FrameColumns,
    groups_of_frame,
    order_of_arrival,
    words_of,
)
from fairshield.adapters.frames.native import check_distinct, is_reader, opened_frame, pyarrow
from fairshield.base.counts import Group
from fairshield.base.errors import InvalidValueError
from fairshield.base.groups import Coded, Unseen
from fairshield.inputs import Inputs
from fairshield.periodic import PeriodicPolicy, Run, load_policy
from fairshield.policy import Policy
from fairshield.runtime.shield import Batch
from fairshield.spec import Property
from fairshield.spec.outcomes import warn_of_outcomes
from fairshield.synthesis import synthesize

Frame = TypeVar("Frame")
Policies = Run | Policy | PeriodicPolicy | str | os.PathLike[str]
"""Who decides: a run that goes on, or a policy or its file."""
Decider = Policies | Property
"""Who decides: a run that goes on, a policy or its file, or a property to make one for."""

ADDED: dict[str, Any] = {
    "accepted": nw.Boolean,
    "overruled": nw.Boolean,
    "paid": nw.Float64,
    "window": nw.Int64,
    "position": nw.Int64,
    "reason": nw.String,
}
"""Columns that decisions add to a frame, and their types; ``reason`` only if asked for."""
_FIELDS = {"reasons": "reason"}
"""Columns that are called otherwise than the field of :class:`Batch` they come from."""


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
    inputs: Inputs | None = None,
    unseen: Unseen | str | Mapping[Group, Group] | None = None,
    reasons: bool = False,
    prefix: str = "",
) -> Frame:
    """The frame with a decision on every row: ``accepted, overruled, paid, window, position``.

    Rows are decided in order of arrival, window after window, by the rule of
    :meth:`fairshield.Run.decide_many`: all of them or, on an error, none.

    Parameters
    ----------
    frame
        A DataFrame of pandas, polars or anything else that narwhals reads, an Arrow table or
        record batch; a frame of the same kind comes back.  A LazyFrame of polars is collected, and
        what comes back is lazy again.  A reader of record batches becomes one that decides as it
        is read, see :func:`shield_batches`.  Anything else that exports an Arrow stream comes back
        as a table.
    policy
        A policy, periodic or not, or the file of one; a :class:`~fairshield.Run`, which goes
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
        For a property: decisions in a window, and the input model.  Without an input model, one is
        estimated from this very frame.  It then knows the requests that are to be decided, so the
        cost is lower than it would be on new requests; the decisions are fair all the same.
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
    reading = FrameColumns(group, proposed, cost, outcome, score, threshold, order_by)
    if is_reader(frame):
        run = _run_of(_checked_policy(policy, horizon, inputs), unseen)
        reader: Frame = _decided_reader(frame, run, reading, reasons, prefix)
        return reader
    opened, closed = opened_frame(frame)
    added = _added(opened.columns, reasons, prefix)
    if isinstance(policy, Property):
        policy = _made(policy, horizon, inputs, opened, reading)
    else:
        _check_unused(horizon, inputs)
    answers = _decide(opened, _run_of(policy, unseen), reading, reasons)
    columns = [
        nw.new_series(name, answers[key], ADDED[key], backend=opened.implementation)
        for key, name in added.items()
    ]
    decided: Frame = closed(opened.with_columns(*columns))
    return decided


def shield_batches(
    batches: Any,
    policy: Policies,
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
    policy = _checked_policy(policy, None, None)
    reading = FrameColumns(group, proposed, cost, outcome, score, threshold, None)
    pa = pyarrow()
    reader = batches if is_reader(batches) else pa.RecordBatchReader.from_stream(batches)
    return _decided_reader(reader, _run_of(policy, unseen), reading, reasons, prefix)


# The run that decides -----------------------------------------------------------------------


def _run_of(policy: Policies, unseen: Unseen | str | Mapping[Group, Group] | None) -> Run:
    if isinstance(policy, Run):
        if unseen is not None:
            raise InvalidValueError(
                f"unseen={unseen!r} beside a Run, which has a rule of its own "
                f"({policy.unseen}): give it to the Run"
            )
        return policy
    if isinstance(policy, str | os.PathLike):
        policy = load_policy(policy)
    return Run(policy, unseen=Unseen.of("refuse" if unseen is None else unseen))


def _check_unused(horizon: int | None, inputs: object) -> None:
    if horizon is not None or inputs is not None:
        raise InvalidValueError(
            "horizon and inputs are for a property; a policy or run has its own: leave them out"
        )


def _checked_policy(policy: Decider, horizon: int | None, inputs: object) -> Policies:
    """What decides batches as they are read, which is no property."""
    if isinstance(policy, Property):
        raise InvalidValueError(
            "batches are decided as they are read, and a property needs a policy first: make one "
            "with fairshield.synthesize"
        )
    _check_unused(horizon, inputs)
    return policy


def _made(
    prop: Property,
    horizon: int | None,
    inputs: Inputs | None,
    frame: nw.DataFrame[Any],
    reading: FrameColumns,
) -> Policy:
    """A policy for ``prop``; without ``inputs``, the input model is estimated from the frame."""
    if horizon is None:
        raise InvalidValueError(
            f"{prop} must hold after how many decisions? Say so with horizon=, or give a policy"
        )
    if inputs is None:
        inputs = reading.estimate(frame, labelled=prop.counting.labelled)
    return synthesize(prop, inputs, horizon=horizon)


def _decide(
    frame: nw.DataFrame[Any], run: Run, reading: FrameColumns, reasons: bool
) -> dict[str, Any]:
    """The columns that are added, by their names in :data:`ADDED`."""
    who = groups_of_frame(frame, reading.group)
    _check_groups(who, run, words_of(reading.group))
    said, price = reading.requests(frame)
    known = reading.outcomes(frame, labelled=run.policy.labelled)
    counting = run.policy.prop.counting
    if known is not None and counting.outcome is not None and counting.awaits(False):
        warn_of_outcomes(
            who.names, who.codes, said, known,
            relevant=counting.outcome, whose="by what was proposed", stacklevel=4,
        )  # fmt: skip
    order = order_of_arrival(frame, reading.order_by)
    if order is None:
        answers = run.decide_many(who, said, price, known, reasons=reasons)
    else:
        later = None if known is None else known[order]
        answers = _replaced(
            run.decide_many(who[order], said[order], price[order], later, reasons=reasons), order
        )
    return {_FIELDS.get(name, name): values for name, values in answers._asdict().items()}


def _replaced(answers: Batch, order: NDArray[Any]) -> Batch:
    """The answers in the order of the rows; ``answers`` are in the order of arrival."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    accepted, overruled, paid, window, position, why = answers
    if why is not None:
        why = tuple(why[place] for place in places.tolist())
    return Batch(
        accepted[places], overruled[places], paid[places], window[places], position[places], why
    )


def _check_groups(who: Coded, run: Run, name: str) -> None:
    """Raise for the first group that neither the policy nor the rule for unseen groups has."""
    known = run.policy.groups
    run.unseen.placed(who.among(known), who, known, name)


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


def _decided_reader(
    reader: Any, run: Run, reading: FrameColumns, reasons: bool, prefix: str
) -> Any:
    if reading.order_by is not None:
        raise InvalidValueError(
            "batches are decided as they are read, which order_by cannot change: sort them first"
        )
    pa = pyarrow()
    types = {nw.Boolean: pa.bool_(), nw.Float64: pa.float64(), nw.Int64: pa.int64(),
             nw.String: pa.string()}  # fmt: skip
    check_distinct(reader.schema.names)
    added = _added(reader.schema.names, reasons, prefix)
    schema = reader.schema
    for key, name in added.items():
        schema = schema.append(pa.field(name, types[ADDED[key]]))

    def decided() -> Iterator[Any]:
        for batch in reader:
            opened = nw.from_native(pa.Table.from_batches([batch]), eager_only=True)
            answers = _decide(opened, run, reading, reasons)
            columns = [pa.array(answers[key], types[ADDED[key]]) for key in added]
            yield pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, decided())
