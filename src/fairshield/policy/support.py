"""Support says which requests and outcomes an input model gives a positive probability.

A guarantee holds for all others as well, unless a specification trusts the support of its model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.inputs import InputTable

Flags = NDArray[np.bool_]


class Support:
    """Support holds, by step, group, proposal and cost level, who may come.

    Attributes
    ----------
    counted
        ``(steps, G, 2, K + 1)``: whether such a person may come and count.  The level after the
        last one stands for costs above all levels, which a model gives probability 0.
    uncounted
        The same: whether such a person may come and not count, as the outcome shows.
    """

    def __init__(self, table: InputTable, relevant_outcome: bool | None) -> None:
        comes, relevance = table.probs > 0.0, table.relevance(relevant_outcome)
        above = ((0, 0), (0, 0), (0, 0), (0, 1))
        self.counted: Flags = np.pad(comes & (relevance > 0.0), above)
        self.uncounted: Flags = np.pad(comes & (relevance < 1.0), above)
        self._labelled, self._levels = relevant_outcome is not None, len(table.levels)

    @property
    def arrives(self) -> Flags:
        """``(steps, G)``: whether somebody of the group may come and count."""
        return np.asarray(self.counted.any(axis=(2, 3)), np.bool_)

    @property
    def rests(self) -> Flags:
        """``(steps,)``: whether somebody may come who does not count."""
        return np.asarray(self.uncounted.any(axis=(1, 2, 3)), np.bool_)

    @property
    def binding(self) -> bool:
        """Whether some request or outcome matters to fairness that has probability 0.

        If none does, a shield that trusts the support is a shield that does not.
        """
        if not self.arrives.all():
            return True
        idle = self.uncounted & ~self.counted
        return self._labelled and bool(idle.any() or not self.rests.all())

    def has(self, steps: Any, groups: Any, proposed: Any, levels: Any, relevant: Any) -> Any:
        """Whether requests and outcomes have a positive probability, one or arrays of them.

        ``relevant`` says who counted, as the outcome shows; ``None``: not known yet.
        """
        at = (steps if len(self.counted) > 1 else np.zeros_like(steps), groups,
              np.asarray(proposed, np.int64), np.minimum(levels, self._levels))  # fmt: skip
        counted, uncounted = self.counted[at], self.uncounted[at]
        if relevant is None:
            return counted | uncounted
        return np.where(relevant, counted, uncounted)
