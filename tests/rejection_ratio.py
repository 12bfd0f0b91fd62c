"""RejectionRatio is a property of a user, in one file: the skeleton of docs/properties.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import fairshield as fs


@dataclass(frozen=True)
class RejectionRatio(fs.LinearProperty, kind="tests-rejection-ratio"):
    """Each group is rejected at most ``most`` times as often as the other."""

    most: int

    # What is decided: (n_a - k_a) n_b <= most (n_b - k_b) n_a, and with a and b exchanged.
    def inequalities(self, n_a: Any, n_b: Any) -> Any:
        room = (self.most - 1) * n_a * n_b
        return (-n_b, self.most * n_a, room), (self.most * n_b, -n_a, room)

    @property
    def coefficient(self) -> int:
        return self.most

    # What is measured
    def bias(self, a: Any, b: Any) -> Any:
        least = max(self.min_support, 1)
        one, other = (1.0 - g.accepted / np.maximum(g.seen, 1) for g in (a, b))
        supported = (a.seen >= least) & (b.seen >= least)
        return np.where(supported, _ratio(np.maximum(one, other), np.minimum(one, other)), 0.0)

    @property
    def limit(self) -> float:
        return float(self.most)

    def bias_within(self, a: Any, b: Any, share: Any) -> tuple[float, float]:
        low, high = [1.0 - g.upper for g in (a, b)], [1.0 - g.lower for g in (a, b)]
        least = max(_ratio(low[0], high[1]), _ratio(low[1], high[0]))
        most = max(_ratio(high[0], low[1]), _ratio(high[1], low[0]))
        return max(1.0, float(least)), float(most)

    # Words and pictures
    def words(self) -> str:
        return f"rejection ratio ≤ {self.most}"

    def measured(self, a: Any, b: Any) -> fs.Measured:
        ratio = float(self._whatever_support().bias(a, b))
        turned = a.accepted * b.seen > b.accepted * a.seen
        asked = f"at most {self.most}"
        return fs.Measured("rejection ratio", ratio, asked, self.limit, turned, "of {} to {}")

    def requirement(self, groups: Any) -> str:
        return f"Of {len(groups)} groups, none is rejected {self.most} times as often as another."

    def promise(self, a: str, b: str) -> str:
        return f"“{a}” and “{b}” are rejected at most {self.most} times as often as the other"

    def formula(self) -> str:
        return f"1 - k_a/n_a ≤ {self.most} · (1 - k_b/n_b) and the same of b"


def _ratio(high: Any, low: Any) -> Any:
    """How many times ``low`` is ``high``; 1 if both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.divide(high, low)
    return np.where(np.isnan(ratio), 1.0, ratio)
