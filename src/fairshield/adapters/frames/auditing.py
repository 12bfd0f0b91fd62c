"""``audit_frame`` audits the decisions in a frame."""

from __future__ import annotations

from typing import Any

from fairshield.adapters.frames.columns import (
    Columns,
    FrameColumns,
    column_of,
    cost_column,
    flags_of,
    groups_of_frame,
    known_values,
    numbers_of,
    order_of_arrival,
)
from fairshield.adapters.frames.native import opened_frame
from fairshield.analysis.report import AuditReport
from fairshield.base.errors import check_kind
from fairshield.periodic import PeriodicPolicy
from fairshield.periodic.audit import audit
from fairshield.policy import Policy
from fairshield.records import Record
from fairshield.spec import Property


def audit_frame(
    frame: Any,
    prop: Property | Policy | PeriodicPolicy,
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
    opened, _ = opened_frame(frame)
    check_kind(
        prop, Property | Policy | PeriodicPolicy,
        "audit_frame asks whether a property held: give it one, or the policy that decided",
    )  # fmt: skip
    if not isinstance(prop, Property):
        options["policy"], prop = prop, prop.prop
    reading = FrameColumns(group, proposed, cost, outcome, score, threshold, order_by)
    if proposed is None and score is None and "proposed" in opened.columns:
        proposed = "proposed"
    cost = cost_column(opened, cost)
    columns: dict[str, list[Any]] = {
        "group": groups_of_frame(opened, group).tolist(),
        "accepted": flags_of(column_of(opened, accepted, "accepted")).tolist(),
    }
    if score is not None:
        columns |= dict(zip(("proposed", "cost"), map(list, reading.requests(opened)), strict=True))
    if proposed is not None:
        columns["proposed"] = flags_of(column_of(opened, proposed, "proposed")).tolist()
    if cost is not None:
        columns["cost"] = numbers_of(column_of(opened, cost, "cost")).tolist()
    if outcome in opened.columns or outcome != "outcome":
        columns["outcome"] = known_values(column_of(opened, outcome, "outcome"))
    if date in opened.columns or date != "date" or options.get("by") is not None:
        columns["date"] = known_values(column_of(opened, date, "date"))
    order = order_of_arrival(opened, order_by)
    rows = range(len(opened)) if order is None else order.tolist()
    records = (Record(i + 1, {name: values[i] for name, values in columns.items()}) for i in rows)
    return audit(prop, records, **options)
