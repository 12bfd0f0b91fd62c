"""Numbers that are known up to an interval."""

from __future__ import annotations

from typing import NamedTuple


class Interval(NamedTuple):
    """Interval is an observed value, and the two numbers between which the true one lies."""

    lower: float
    estimate: float
    upper: float

    def __str__(self) -> str:
        return f"{self.estimate:.4g} [{self.lower:.4g}, {self.upper:.4g}]"
