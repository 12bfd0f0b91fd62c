"""Outcomes in records: all of them, or the reason why they cannot be used."""

from __future__ import annotations

from collections.abc import Sequence

from fairshield.errors import InvalidValueError, argument
from fairshield.outcomes import ADVICE, OutcomeTally
from fairshield.records import Record


def recorded_outcomes(
    records: Sequence[Record], proposed: Sequence[bool]
) -> tuple[list[bool] | None, str]:
    """The outcome of every record; or ``None``, and why there is none.

    Who was accepted is read from the records, or taken to be as ``proposed``.
    """
    told, outcomes = OutcomeTally(), list[bool]()
    for record, said in zip(records, proposed, strict=True):
        outcome = None if record.missing("outcome") else record.flag("outcome")
        told.add(record.group(), _accepted(record, said), outcome)
        if outcome is not None:
            outcomes.append(outcome)
    coverage = told.coverage(relevant=True)
    if not coverage.unknown:
        coverage.warn("outcomes of the records", stacklevel=3)
        return outcomes, ""
    if not outcomes:
        where = argument("columns", {"outcome": "COLUMN"})
        return None, f"the records have no 'outcome': add it, or say where it is with {where}"
    why = f"of {len(records):,} records {coverage.unknown:,} have no outcome"
    return None, "; ".join(filter(None, (why, coverage.doubt, ADVICE)))


def _accepted(record: Record, proposed: bool) -> bool:
    # Nobody promised that a column of this name, which no estimate needs, can be read.
    try:
        return proposed if record.missing("accepted") else record.flag("accepted")
    except InvalidValueError:
        return proposed
