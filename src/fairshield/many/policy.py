"""A policy for three groups or more: one code for every state and group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import At, after
from fairshield.many.layout import ManyLayout
from fairshield.policy import Policy
from fairshield.rows import FORCED, RowTable, no_rows
from fairshield.structure import broken, check_costs

CODE_TYPES = ("int8", "int16", "int32")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ManyPolicy(Policy):
    """The decisions of a shield for three groups or more.

    Attributes
    ----------
    codes
        ``(groups, states)``: how many cost levels are worth overruling, as in
        :mod:`fairshield.rows`, by group and the number of the state; the least value of the type
        marks a state from which fairness cannot be guaranteed.
    """

    stored_as: ClassVar[str] = "many"

    rows: RowTable = field(default_factory=no_rows)
    codes: NDArray[Any]

    def __post_init__(self) -> None:
        self.codes.flags.writeable = False

    @cached_property
    def layout(self) -> ManyLayout:  # type: ignore[override]  # states, not rows
        """How states are numbered."""
        return ManyLayout(self.horizon, len(self.groups), self.labelled)

    @cached_property
    def reader(self) -> ManyReader:  # type: ignore[override]  # reads alike, without rows
        """Single look-ups."""
        return ManyReader(self.layout, self.codes)

    @property
    def nbytes(self) -> int:
        """Size of the decision table."""
        return int(self.codes.nbytes)

    def _stored(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"method": self.stored_as, "reason": self.reason}, {"codes": self.codes}

    @staticmethod
    def _restored(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        return {"codes": arrays["codes"], "reason": str(data["reason"])}

    def check(self) -> None:
        """Refuse codes that do not fit the horizon, the groups or the cost levels."""
        if self.codes.dtype.name not in CODE_TYPES:
            raise broken(f"codes has type {self.codes.dtype}, expected {' or '.join(CODE_TYPES)}")
        shape = (len(self.groups), self.layout.n_states)
        if self.codes.shape != shape:
            raise broken(
                f"codes has shape {self.codes.shape}, a horizon of {self.horizon} needs {shape}"
            )
        check_costs(self.horizon, len(self.groups), self.edges, self.ranks)


class ManyReader:
    """Looks up single states; plain Python, no compiler needed."""

    def __init__(self, layout: ManyLayout, codes: NDArray[Any]) -> None:
        self.labelled = layout.labelled
        self._place = layout.place
        self._codes = [of_group.data for of_group in codes]
        self._dead = int(np.iinfo(codes.dtype).min)

    def look_up(self, t: int, at: At, group: int) -> tuple[bool, bool, int]:
        """See :meth:`fairshield.rows.RowReader.look_up`."""
        can_reject, can_accept = (self.feasible(t + 1, after(at, group, y)) for y in (False, True))
        if can_reject is can_accept:
            return can_reject, can_accept, self.code(t, at, group)
        return can_reject, can_accept, FORCED if can_reject else -FORCED

    def feasible(self, t: int, at: At) -> bool:
        """Whether fairness can be guaranteed from this state, whatever comes."""
        return bool(self._codes[0][self._place(t, at)] != self._dead)

    def stays(self, t: int, at: At) -> bool:
        """Whether it still can be if the next decision leaves the counters as they are."""
        return self.feasible(t + 1, at)

    def code(self, t: int, at: At, group: int) -> int:
        """Cost levels worth overruling: ``+`` accepts, ``-`` rejects; 0 if not feasible."""
        code = int(self._codes[group][self._place(t, at)])
        return 0 if code == self._dead else code
