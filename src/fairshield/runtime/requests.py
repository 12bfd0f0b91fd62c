"""Requests: a user's columns of requests, checked and turned into arrays of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairshield.base.counts import unknown_group
from fairshield.base.errors import InvalidValueError
from fairshield.base.groups import Coded, group_column, places_among
from fairshield.inputs.columns import costs_of, flags, outcomes_of
from fairshield.policy import Policy
from fairshield.spec import Counting

Ints = NDArray[np.int64]


class Requests(NamedTuple):
    """Requests holds requests as arrays: the group's number, the cost level.

    The level is one past the last if the cost is above all levels.  Who is ``relevant`` has the
    outcome of :attr:`fairshield.spec.Counting.outcome`, or no outcome matters.
    """

    groups: NDArray[np.int8]
    proposed: NDArray[np.bool_]
    levels: NDArray[np.int32]
    costs: NDArray[np.float64]
    relevant: NDArray[np.bool_]

    def part(self, here: slice | int) -> Requests:
        """The requests of a slice, or of one row."""
        return self._each(lambda column: column[here])

    def in_rows(self, here: slice, length: int) -> Requests:
        """The requests of a slice, with so many in each row."""
        return self._each(lambda column: column[here].reshape(-1, length))

    def _each(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Requests:
        return Requests(
            change(self.groups), change(self.proposed), change(self.levels), change(self.costs),
            change(self.relevant),
        )  # fmt: skip

    def gained(self, accepted: NDArray[np.bool_], counting: Counting, n_groups: int = 2) -> Ints:
        """``(…, n + 1, 2 G)``: counters ``n_a, k_a, …`` before each decision, and after all."""
        return counting.gained(self.groups, accepted, self.relevant, n_groups)


def encode_requests(
    policy: Policy,
    groups: Any,
    proposed: ArrayLike,
    costs: ArrayLike | float,
    outcomes: ArrayLike | None,
) -> Requests:
    """Check requests and encode them, so that every error comes before the first decision."""
    group = _group_numbers(policy, group_column(groups))
    n = len(group)
    said, price = flags(proposed, "proposed", n), costs_of(costs, n)
    relevant = np.ones(n, np.bool_)
    if policy.labelled:
        if outcomes is None:
            raise InvalidValueError(f"{policy.prop} needs outcomes=, one per request")
        relevant = policy.prop.counting.told(outcomes_of(outcomes, n))
    levels = policy.decisions.levels_of(price).astype(np.int32)
    return Requests(group, said, levels, price, relevant)


def _group_numbers(policy: Policy, groups: NDArray[Any] | Coded) -> NDArray[np.int8]:
    numbers = places_among(policy.groups, groups)
    if numbers.min(initial=0) < 0:
        raise unknown_group(groups[numbers < 0].tolist()[0], policy.groups)
    return numbers.astype(np.int8)
