"""StateDecisions: decisions for three groups or more, with one code for each state and group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import At
from fairshield.policy.decisions import Answer, Decisions, Stored
from fairshield.policy.many.layout import ManyLayout
from fairshield.policy.many.lookups import NOBODY, StateTables, look_up, number_of
from fairshield.policy.specification import Specification
from fairshield.policy.structure import broken, check_costs

CODE_TYPES = ("int8", "int16", "int32")


@dataclass(frozen=True, eq=False, kw_only=True)
class StateDecisions(Decisions):
    """StateDecisions is a table by state number, see :mod:`fairshield.policy.many.layout`.

    Attributes
    ----------
    layout
        How states are numbered.
    codes
        ``(groups, states)``: how many cost levels are worth overruling; the least value of the type
        marks a state from which fairness cannot be guaranteed.
    """

    stored_as: ClassVar[str] = "many"

    layout: ManyLayout
    codes: NDArray[Any]

    def __post_init__(self) -> None:
        self.codes.flags.writeable = False

    @cached_property
    def labelled(self) -> bool:
        return self.layout.labelled

    @property
    def n_states(self) -> int:
        return self.layout.n_states

    @cached_property
    def tables(self) -> StateTables:
        terms = self.layout.terms
        return StateTables(
            labelled=self.layout.labelled,
            terms=terms.reshape(-1),
            width=terms.shape[1],
            codes=np.ascontiguousarray(self.codes).reshape(-1),
            states=self.layout.n_states,
            dead=int(np.iinfo(self.codes.dtype).min),
            ranks=np.broadcast_to(self.ranks, self.ranks.shape),
        )

    @cached_property
    def _views(self) -> StateTables:
        """:attr:`tables` for single look-ups, which read memory views faster."""
        tables = self.tables
        return tables._replace(terms=tables.terms.data, codes=tables.codes.data)

    # Look-ups -------------------------------------------------------------------------------

    def look_up(self, t: int, at: At, group: int) -> Answer:
        return look_up(self._views, t, at, group)

    def feasible(self, t: int, at: At) -> bool:
        tables = self._views
        number = number_of(tables.terms, tables.width, tables.labelled, t, at, NOBODY, 0)
        return bool(tables.codes[number] != tables.dead)

    def planned(self, t: int, at: At) -> int:
        return self.layout.horizon - t

    # Files ----------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes)

    def describe(self) -> dict[str, Any]:
        return {"states": self.layout.n_states, "groups": self.layout.n_groups}

    def in_words(self) -> str:
        return f"{self.layout.n_states:,} states, {self.layout.n_groups} groups"

    def stored(self, risk: float) -> Stored:
        return {}, {"codes": self.codes}

    @classmethod
    def restored(
        cls, spec: Specification, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> StateDecisions:
        layout = ManyLayout(spec.horizon, len(spec.groups), spec.labelled)
        return cls(
            layout=layout, codes=arrays["codes"], edges=arrays["edges"], ranks=arrays["ranks"]
        )

    def check(self, spec: Specification) -> None:
        if self.codes.dtype.name not in CODE_TYPES:
            raise broken(f"codes has type {self.codes.dtype}, expected {' or '.join(CODE_TYPES)}")
        layout = ManyLayout(spec.horizon, len(spec.groups), spec.labelled)
        shape = (layout.n_groups, layout.n_states)
        if self.codes.shape != shape:
            raise broken(
                f"codes has shape {self.codes.shape}, a horizon of {spec.horizon} needs {shape}"
            )
        check_costs(spec.horizon, layout.n_groups, self.edges, self.ranks)
