"""Request: group, proposal, cost and outcome of one person who is to be decided on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fairshield.base.counts import Group, group_name
from fairshield.base.errors import InvalidValueError
from fairshield.records.records import Record, declared
from fairshield.records.values import Flag, as_cost, as_flag


class Request(NamedTuple):
    """Request holds group, proposal, cost and outcome of one person.

    ``outcome`` is ``None`` where it is not known, or where the property does not count by outcome.

    >>> Request.of({"group": "a", "proposed": True, "name": "Ada"})
    Request(group='a', proposed=True, cost=1.0, outcome=None)
    >>> Request.of(("a", True, 0.3)).cost
    0.3
    """

    group: Group
    proposed: Flag
    cost: float = 1.0
    outcome: Flag | None = None

    @classmethod
    def of(
        cls,
        given: Asked,
        groups: Iterable[Group] = (),
        *,
        line: int = 1,
        empty: Group | None = None,
        labelled: bool = True,
    ) -> Request:
        """Make a request from a mapping with these keys, a record, or a tuple in this order.

        A mapping is read as the record of this ``line``.  Of a record, fields that are absent or
        empty are not known, and the group is spelt as the one of ``groups`` that reads the same.
        ``empty`` is the group of those without one; ``None`` refuses them.  The outcome is not read
        unless ``labelled``.
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, tuple) and not isinstance(given, Record) and 2 <= len(given) <= 4:
            return cls(*given)
        record = Record(line, dict(given)) if isinstance(given, Mapping) else given
        if isinstance(record, Record):
            group = declared(record.group(empty=empty), groups)
            known = labelled and not record.missing("outcome")
            outcome = record.flag("outcome") if known else None
            return cls(group, record.flag("proposed"), record.cost(), outcome)
        raise InvalidValueError(
            "a request is a mapping with 'group', 'proposed' and perhaps 'cost' and 'outcome', or "
            f"a tuple of these, got {record!r}"
        )

    def values(self) -> tuple[Group, bool, float, bool | None]:
        """The checked fields: a group's name, the proposal, the cost and the outcome.

        >>> Request("a", "yes", "0.3").values()
        ('a', True, 0.3, None)
        """
        known = None if self.outcome is None else as_flag(self.outcome)
        return group_name(self.group), as_flag(self.proposed), as_cost(self.cost), known


Asked = Request | Record | Mapping[str, Any] | tuple[Any, ...]
"""What a request may be written as, see :meth:`Request.of`."""
