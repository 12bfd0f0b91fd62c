"""Functions that turn frames of any library into those of narwhals, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import narwhals.stable.v1 as nw
from narwhals.exceptions import DuplicateError

from fairshield.base.errors import InvalidValueError, MissingExtraError


def opened_frame(frame: Any) -> tuple[nw.DataFrame[Any], Any]:
    """A narwhals frame of ``frame``, and a function that turns a result into the same kind."""
    try:
        return nw.from_native(frame, eager_only=True), nw.to_native
    except TypeError:
        pass
    except DuplicateError:
        # Arrow's ``columns`` are the values; their names are in ``column_names``.
        check_distinct(getattr(frame, "column_names", None) or frame.columns)
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
    pa = pyarrow()
    arrow = pa.table(frame)
    check_distinct(arrow.column_names)
    table = nw.from_native(arrow, eager_only=True)
    if isinstance(frame, pa.RecordBatch):
        return table, lambda decided: _one_batch(decided.to_native())
    return table, nw.to_native


def check_distinct(names: Iterable[Any]) -> None:
    """Raise for a name that two columns have."""
    seen = set()
    for name in names:
        if name in seen:
            raise InvalidValueError(
                f"the frame has two columns {name!r}: rename one, or leave it out"
            )
        seen.add(name)


def pyarrow() -> Any:
    """The module pyarrow, which only Arrow streams need; an error if it is not installed."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError("Arrow streams need pyarrow: pip install pyarrow") from None
    return pa


def is_reader(frame: Any) -> bool:
    """Whether a frame is a reader of record batches."""
    return type(frame).__name__ == "RecordBatchReader" and hasattr(frame, "read_next_batch")


def _one_batch(table: Any) -> Any:
    pa = pyarrow()
    whole = [
        column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(whole, schema=table.schema)
