"""RowDecisions: decisions for two groups as a table of rows, with a table of least risk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import At
from fairshield.policy.decisions import Answer, Decisions, Stored
from fairshield.policy.layout import Layout, layout_of
from fairshield.policy.lookups import Codes, RowTables, feasible, look_up
from fairshield.policy.rows import BARE_WIDTH, CUTS_WIDTH, RowTable
from fairshield.policy.specification import Specification
from fairshield.policy.structure import check_tables

_SALVAGE = "salvage_"
"""What the names of the salvage table's arrays begin with in a file."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RowDecisions(Decisions):
    """RowDecisions is a table of all decisions for two groups, see :mod:`fairshield.policy.rows`.

    Attributes
    ----------
    layout
        How states map to rows.
    rows
        The decisions where fairness can be guaranteed.
    salvage
        The decisions where fairness cannot be guaranteed, which violate the property with the
        least probability; ``None`` if it can be guaranteed from the start.  With K cost levels a
        code of K + 1 overrules at every cost.  A code of K + 2 overrules nobody, also where only
        the other decision leads to a state from which fairness can be guaranteed.
    """

    stored_as: ClassVar[str] = "exact"

    layout: Layout
    rows: RowTable
    salvage: RowTable | None = None

    @cached_property
    def labelled(self) -> bool:
        return self.layout.labelled

    @property
    def salvages(self) -> bool:
        return self.salvage is not None

    @property
    def n_states(self) -> int:
        return self.layout.n_states

    @cached_property
    def tables(self) -> RowTables:
        salvage = _no_salvage(self.rows) if self.salvage is None else self.salvage
        rows = _codes(self.rows)
        return RowTables(
            labelled=self.layout.labelled,
            starts=self.layout.layer_starts,
            regular=rows.mark >= 0 and not self.layout.labelled and self.salvage is None,
            rows=rows,
            salvaging=self.salvage is not None,
            salvage=_codes(salvage),
            nobody=len(self.edges) + 2,
            # Read-only like the arrays of a loaded policy, so that both have the same numba type.
            ranks=np.broadcast_to(self.ranks, self.ranks.shape),
        )

    @cached_property
    def _views(self) -> RowTables:
        """:attr:`tables` for single look-ups, which read memory views and lists faster."""
        tables = self.tables
        return tables._replace(
            starts=tables.starts.tolist(), rows=_views(tables.rows), salvage=_views(tables.salvage)
        )

    # Look-ups -------------------------------------------------------------------------------

    def look_up(self, t: int, at: At, group: int) -> Answer:
        return look_up(self._views, t, at, group)

    @cached_property
    def answer(self) -> Callable[[int, At, int], Answer]:
        return partial(look_up, self._views)

    def feasible(self, t: int, at: At) -> bool:
        return feasible(self._views, t, at)

    def planned(self, t: int, at: At) -> int:
        return self.layout.horizon - t

    # Files ----------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + (0 if self.salvage is None else self.salvage.nbytes)

    def describe(self) -> dict[str, Any]:
        return {"rows": len(self.rows.cuts), "dense_rows": self.rows.n_dense}

    def in_words(self) -> str:
        return f"{len(self.rows.cuts):,} rows, {self.rows.n_dense:,} of them dense"

    def stored(self, risk: float) -> Stored:
        if self.salvage is None:
            return {}, _arrays(self.rows)
        salvage = {_SALVAGE + name: array for name, array in _arrays(self.salvage).items()}
        return {"risk": risk}, _arrays(self.rows) | salvage

    @classmethod
    def restored(
        cls, spec: Specification, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> RowDecisions:
        return cls(
            layout=layout_of(spec.horizon, spec.labelled),
            rows=_table(arrays),
            salvage=_table(arrays, _SALVAGE) if "risk" in data else None,
            edges=arrays["edges"],
            ranks=arrays["ranks"],
        )

    def check(self, spec: Specification) -> None:
        layout = layout_of(spec.horizon, spec.labelled)
        check_tables(layout, self.rows, self.edges, self.ranks, self.salvage)


def _arrays(table: RowTable) -> dict[str, NDArray[Any]]:
    return {f.name: getattr(table, f.name) for f in fields(table)}


def _table(arrays: Mapping[str, NDArray[Any]], prefix: str = "") -> RowTable:
    return RowTable(**{f.name: arrays[prefix + f.name] for f in fields(RowTable)})


def _no_salvage(rows: RowTable) -> RowTable:
    """An empty salvage table of the same types, so that one compiled version serves both."""
    none = np.empty(0, np.int64)
    cuts = np.empty((0, BARE_WIDTH), rows.cuts.dtype)
    return RowTable(cuts, none, none, np.empty(0, rows.dense_codes.dtype))


def _codes(table: RowTable) -> Codes:
    width = table.cuts.shape[-1]
    return Codes(
        cuts=np.ascontiguousarray(table.cuts).reshape(-1),
        width=width,
        mark=int(np.iinfo(table.cuts.dtype).max) if width == CUTS_WIDTH else -1,
        dense_rows=table.dense_rows,
        dense_starts=table.dense_starts,
        dense_codes=table.dense_codes,
        dead=int(np.iinfo(table.dense_codes.dtype).min),
    )


def _views(codes: Codes) -> Codes:
    return codes._replace(
        cuts=codes.cuts.data,
        dense_rows=codes.dense_rows.data,
        dense_starts=codes.dense_starts.data,
        dense_codes=codes.dense_codes.data,
    )
