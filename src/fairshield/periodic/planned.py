"""Planned: kinds whose decisions are planned at once for all periods of a run."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fairshield.base.counts import Counts, is_whole, so_far
from fairshield.base.errors import InfeasibleError, InvalidValueError, called
from fairshield.base.types import Progress
from fairshield.periodic.cumulative import CumulativePolicy, best_effort
from fairshield.periodic.policy import WindowPolicy
from fairshield.policy import Policy
from fairshield.spec import can_bind


@dataclass(frozen=True, eq=False, repr=False)
class Planned(CumulativePolicy):
    """Planned decides a number of periods by one policy for all of them.

    Parameters
    ----------
    periods
        The number of periods.
    """

    periods: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_whole(self.periods) or self.periods < 1:
            raise InvalidValueError(
                f"periods must be a whole number of at least 1, got {self.periods!r}: plan for as "
                "many periods as there will be, or use a perpetual shield"
            )
        object.__setattr__(self, "periods", int(self.periods))

    @abstractmethod
    def made(self, progress: Progress | None) -> Policy:
        """Make the policy of all periods."""

    @cached_property
    def tables(self) -> Policy:
        """The policy of all periods."""
        return self.synthesize()

    def synthesize(self, progress: Progress | None = None) -> Policy:
        """The policy of all periods, made with a progress report."""
        try:
            policy = self.made(progress)
        except InfeasibleError:
            taken = self.prop.counting.taken
            raise InfeasibleError(
                f"{self.prop} cannot be guaranteed at the end of each of {self.periods} periods of "
                f"{self.period} decisions, starting from {so_far(self.start, taken)}: some order "
                f"of arrivals defeats every shield. Loosen the bound, set {called('min_support')}, "
                "lengthen the period, or use a Dynamic shield, which does what can be done"
            ) from None
        self.__dict__["tables"] = policy  # fills the cached property
        return policy

    @property
    def largest_plan(self) -> int:
        return 0 if "tables" in self.__dict__ else self.period * self.periods

    def outlook(self, progress: Progress | None = None) -> tuple[float, int]:
        if "tables" not in self.__dict__:
            self.synthesize(progress)
        return super().outlook()

    def whole_plan(self) -> Policy:
        return self.tables

    @property
    def unconditional(self) -> bool:
        return True

    @property
    def last(self) -> int:
        return self.periods

    @cached_property
    def can_bind(self) -> bool:
        ends = [self.period * n for n in range(1, self.periods + 1)]
        return can_bind(self.prop, self.start, ends)

    def window(self, counts: Counts, completed: int) -> WindowPolicy:
        decided = completed * self.period
        if self.tables.guarantees(counts, decided):
            return WindowPolicy(self.tables, counts, decided)
        # Only a person who decided against advice leads here, or a state of no run.
        return WindowPolicy(best_effort(self.prop, self.inputs, self.period, counts), counts, 0)

    def options(self) -> dict[str, Any]:
        return {"periods": self.periods}
