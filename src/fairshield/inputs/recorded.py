"""Requests and outcomes of records, or why their outcomes cannot be used."""

from __future__ import annotations

from collections.abc import Sequence

from fairshield.base.counts import Group
from fairshield.base.errors import InvalidValueError, argument
from fairshield.records import Record, Request
from fairshield.spec import Property
from fairshield.spec.outcomes import ADVICE, OutcomeTally


def request_of(
    record: Record,
    groups: tuple[Group, ...] = (),
    prop: Property | None = None,
    *,
    empty: Group | None = None,
) -> Request:
    """The request of a record, with its outcome where ``prop`` counts by outcome.

    The other arguments are those of :meth:`Request.of`.
    """
    labelled = prop is not None and prop.counting.labelled
    request = Request.of(record, groups, empty=empty, labelled=labelled)
    if labelled and request.outcome is None:
        raise InvalidValueError(
            f"line {record.line}: no 'outcome', and {prop} counts people by it: add it to the "
            "record; where it becomes known only later, a service takes it later (fairshield "
            f"serve); {ADVICE}"
        )
    return request


def recorded_outcomes(
    records: Sequence[Record], requests: Sequence[Request]
) -> tuple[list[bool] | None, str]:
    """The outcomes of all records, if all are known; else ``None``, and why there are none.

    Decisions are read from the records; where a record has none, the proposal is taken for it.
    """
    told, outcomes = OutcomeTally(), list[bool]()
    for record, request in zip(records, requests, strict=True):
        outcome = None if record.missing("outcome") else record.flag("outcome")
        told.add(request.group, _accepted(record, bool(request.proposed)), outcome)
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
    # No estimate needs ``accepted``, so a column of this name in another format is no error.
    try:
        return proposed if record.missing("accepted") else record.flag("accepted")
    except InvalidValueError:
        return proposed
