"""Request: group, proposal, cost and outcome of one person who is to be decided on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fairshield.base.counts import Group, group_name
from fairshield.base.errors import InvalidValueError
from fairshield.records.records import Record
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
    def of(cls, given: Asked) -> Request:
        """Make a request from a mapping with these keys, a record, or a tuple in this order."""
        if isinstance(given, cls):
            return given
        fields = given.fields if isinstance(given, Record) else given
        if isinstance(fields, Mapping):
            missing = [key for key in ("group", "proposed") if key not in fields]
            if missing:
                raise InvalidValueError(f"no {missing[0]!r} in the request {fields!r}")
            cost = fields.get("cost")
            return cls(
                fields["group"], fields["proposed"], 1.0 if cost is None else cost,
                fields.get("outcome"),
            )  # fmt: skip
        if isinstance(fields, tuple) and 2 <= len(fields) <= 4:
            return cls(*fields)
        raise InvalidValueError(
            "a request is a mapping with 'group', 'proposed' and perhaps 'cost' and 'outcome', or "
            f"a tuple of these, got {fields!r}"
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
