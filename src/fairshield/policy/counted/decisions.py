"""CountedDecisions: decisions of a property that counts decisions, a mask for each state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import At
from fairshield.policy.counted.layout import CountedLayout
from fairshield.policy.counted.lookups import CountedTables, feasible, look_up, overrules
from fairshield.policy.decisions import Answer, Decisions, Stored
from fairshield.policy.specification import Specification
from fairshield.policy.structure import broken, check_costs

MASK_TYPES = ("int8", "int16", "int32", "int64")
MOST_LEVELS = 30
"""Cost levels that fit into a mask of 64 bits, with one bit to spare."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedDecisions(Decisions):
    """CountedDecisions is a table by state number, see :class:`CountedLayout`.

    Attributes
    ----------
    layout
        How states are numbered.
    masks
        ``(groups, states)``: which proposals are overruled at which cost levels; the least value of
        the type marks a state from which fairness cannot be guaranteed.
    salvage
        The same for these states, of least risk; ``None`` if nothing is to be salvaged.
    """

    stored_as: ClassVar[str] = "counted"
    by_level: ClassVar[bool] = True

    layout: CountedLayout
    masks: NDArray[Any]
    salvage: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        for table in (self.masks, self.salvage):
            if table is not None:
                table.flags.writeable = False

    @cached_property
    def labelled(self) -> bool:
        return self.layout.counting.labelled

    @property
    def salvages(self) -> bool:
        return self.salvage is not None

    @property
    def n_states(self) -> int:
        return self.layout.n_states

    @cached_property
    def tables(self) -> CountedTables:
        terms = self.layout.terms
        salvage = self.masks[:, :0] if self.salvage is None else self.salvage
        return CountedTables(
            labelled=self.layout.counting.labelled,
            terms=terms.reshape(-1),
            width=terms.shape[1],
            starts=self.layout.starts,
            gains=np.array(self.layout.counting.gains, np.int64).reshape(-1),
            masks=np.ascontiguousarray(self.masks).reshape(-1),
            states=self.layout.n_states,
            dead=int(np.iinfo(self.masks.dtype).min),
            salvaging=self.salvage is not None,
            salvage=np.ascontiguousarray(salvage).reshape(-1),
            levels=len(self.edges) + 1,
        )

    @cached_property
    def _views(self) -> CountedTables:
        """:attr:`tables` for single look-ups, which read memory views faster."""
        tables = self.tables
        return tables._replace(
            terms=tables.terms.data, starts=tables.starts.data, gains=tables.gains.data,
            masks=tables.masks.data, salvage=tables.salvage.data,
        )  # fmt: skip

    # Look-ups -------------------------------------------------------------------------------

    def look_up(self, t: int, at: At, group: int) -> Answer:
        return look_up(self._views, t, at, group)

    def overrules(self, code: int, proposed: bool, level: int) -> bool:
        return overrules(code, len(self.edges) + 1, proposed, level)

    def feasible(self, t: int, at: At) -> bool:
        return feasible(self._views, t, at)

    def stays(self, t: int, at: At) -> bool:
        # What rejecting and accepting may lead to includes what leaves the counters as they are.
        return True

    def planned(self, t: int, at: At) -> int:
        return self.layout.horizon - t

    # Files ----------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        return int(self.masks.nbytes + (0 if self.salvage is None else self.salvage.nbytes))

    def describe(self) -> dict[str, Any]:
        return {"states": self.layout.n_states, "groups": self.layout.n_groups}

    def in_words(self) -> str:
        return f"{self.layout.n_states:,} states of counted decisions"

    def stored(self, risk: float) -> Stored:
        salvage = {} if self.salvage is None else {"salvage": self.salvage}
        return {"risk": risk}, {"masks": self.masks, **salvage}

    @classmethod
    def restored(
        cls, spec: Specification, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> CountedDecisions:
        return cls(
            layout=CountedLayout(spec.horizon, len(spec.groups), spec.prop.counting),
            masks=arrays["masks"], salvage=arrays.get("salvage"), edges=arrays["edges"],
            ranks=arrays["ranks"],
        )  # fmt: skip

    def check(self, spec: Specification) -> None:
        layout = CountedLayout(spec.horizon, len(spec.groups), spec.prop.counting)
        shape = (layout.n_groups, layout.n_states)
        named = {"masks": self.masks, "salvage": self.salvage}
        for name, table in named.items():
            if table is None:
                continue
            if table.dtype.name not in MASK_TYPES:
                raise broken(f"{name} has type {table.dtype}, expected one of {MASK_TYPES}")
            if table.shape != shape:
                raise broken(
                    f"{name} has shape {table.shape}, a horizon of {spec.horizon} needs {shape}"
                )
        if len(self.edges) > MOST_LEVELS:
            raise broken(f"{len(self.edges)} cost levels, expected at most {MOST_LEVELS}")
        check_costs(spec.horizon, layout.n_groups, self.edges, self.ranks)


def mask_type(n_levels: int) -> type[np.signedinteger[Any]]:
    """The smallest type for masks of so many cost levels, and one value to spare."""
    types: tuple[type[np.signedinteger[Any]], ...] = (np.int8, np.int16, np.int32, np.int64)
    return next(t for t in types if 2 * (n_levels + 1) < np.iinfo(t).bits)
