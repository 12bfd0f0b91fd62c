"""Exact periodic shields: the least expected cost of a number of periods, planned at once."""

from __future__ import annotations

from dataclasses import dataclass

from fairshield.base.types import Progress
from fairshield.periodic.planned import Planned
from fairshield.policy import Policy
from fairshield.synthesis import synthesize


@dataclass(frozen=True, eq=False, repr=False)
class ExactPeriodic(Planned):
    """ExactPeriodic is the cheapest policy for a number of periods, all of which end fair.

    Parameters
    ----------
    periods
        The number of periods.
    """

    kind = "exact"
    title = "exact periodic"
    order = 4

    def made(self, progress: Progress | None) -> Policy:
        total = self.period * self.periods
        return synthesize(
            self.prop, self.inputs.repeated(self.period, self.periods), horizon=total,
            start=self.start, checkpoints=range(self.period, total, self.period), progress=progress,
        )  # fmt: skip

    @property
    def theorem(self) -> str:
        return "exact periodic shields are always fair"
