"""Streams between two windows: digests of their logs, from which a replay may begin."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec


class Tally(msgspec.Struct):
    """What is counted beside the shield, since the beginning of the stream or of its window.

    ``proposed`` counts, by group, the relevant people whom the classifier would have accepted;
    ``overruled`` what the shield decided otherwise than proposed, ``overridden`` what a person
    decided otherwise than the shield.
    """

    proposed: list[int]
    overruled_by_group: list[int]
    overruled: int = 0
    overridden: int = 0
    cost_paid: float = 0.0
    window_overruled: int = 0
    window_cost: float = 0.0
    completed: int = 0
    fair: int = 0
    unshielded_fair: int = 0
    worst_bias: float | None = 0.0
    """``None``: infinite, which JSON lacks."""

    @property
    def largest_bias(self) -> float:
        """The largest bias at the end of a window."""
        return math.inf if self.worst_bias is None else self.worst_bias

    def copy(self) -> Tally:
        """The same, to be counted on separately."""
        lists = {"proposed": [*self.proposed], "overruled_by_group": [*self.overruled_by_group]}
        return msgspec.structs.replace(self, **lists)


class Snapshot(msgspec.Struct, frozen=True):
    """A stream between two windows: where a replay may begin instead of at entry 0.

    ``shield`` is the state of a periodic shield; a window begins with nothing.
    """

    seq: int
    hash: str
    n: int
    window: int
    tally: Tally
    shield: dict[str, Any] | None = None


class WindowRow(NamedTuple):
    """The end of a window or period; a digest of the log, made again with it."""

    stream: int
    window: int
    seq: int
    n: int
    at: str
    fair: bool
    bias: float | None
    bias_unshielded: float | None
    overruled: int
    cost_paid: float
    snapshot: bytes
