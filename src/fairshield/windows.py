"""Windows, counted: how each one ended, and what a stream of decisions did in all of them.

Knows arrays and counters, not who decided: the same count describes a shield, the classifier
without it, and any other method on the same people.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Counts, Group, GroupCount
from fairshield.periodic import PeriodicPolicy
from fairshield.policy import Policy
from fairshield.spec import Finding, Property, Verdict, verdict_of, widest_finding
from fairshield.words import summary

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def count_windows(window: Ints, group: Ints, accepted: Flags, shape: tuple[int, int]) -> Ints:
    """``(windows, groups, 2)``: people seen and accepted, from one entry per person.

    >>> at, who = np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> count_windows(at, who, np.array([True, False, True]), (2, 2)).tolist()
    [[[1, 1], [1, 0]], [[0, 0], [1, 1]]]
    """
    cell, cells = window * shape[1] + group, shape[0] * shape[1]
    seen = np.bincount(cell, minlength=cells)
    taken = np.bincount(cell[accepted], minlength=cells)
    return np.stack((seen, taken), axis=1).reshape(*shape, 2)


def fair_windows(prop: Property, counters: Ints) -> Flags:
    """``(windows,)``: whether the property holds for these counters, decided in integers."""
    return prop.holds_array(*_by_group(counters))


def bound_windows(prop: Property, counters: Ints) -> Flags:
    """``(windows,)``: whether the property asks anything of these counters."""
    return prop.binds_array(*_by_group(counters))


def window_biases(prop: Property, counters: Ints) -> NDArray[np.float64]:
    """``(windows,)``: the largest bias of any two groups."""
    return prop.bias_array(*_by_group(counters))


def _by_group(counters: Ints) -> list[GroupCount[Ints]]:
    return [GroupCount(*np.moveaxis(of_one, -1, 0)) for of_one in np.moveaxis(counters, 1, 0)]


@dataclass(frozen=True, slots=True)
class GroupReport:
    """One group's decisions, of everybody whatever their outcome."""

    group: Group
    decisions: int
    proposed: int
    accepted: int
    overruled: int

    @property
    def rate(self) -> float:
        """Share accepted; NaN of nobody."""
        return self.accepted / self.decisions if self.decisions else math.nan

    @property
    def proposed_rate(self) -> float:
        """Share that the classifier would have accepted; NaN of nobody."""
        return self.proposed / self.decisions if self.decisions else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class ShieldReport:
    """What a shield did on a stream of people; prints as a short table.

    Attributes
    ----------
    prop, limit
        The property in words, and the largest bias that is fair.
    horizon
        Decisions in a window or period.
    decisions, windows
        Decisions made, and windows or periods that they completed.
    unfair, unfair_unshielded
        Windows in which the property did not hold when it had to, at the end or at a checkpoint:
        with the shield, and had all proposals been followed.  The window in progress counts once
        a checkpoint fails.
    bound, exempt
        Windows in which the property bound when it had to hold, the one in progress once a
        checkpoint did; and completed windows in which it bound nothing.  Who came decides that,
        so that both are the same without the shield.
    largest_bias, largest_bias_unshielded
        Of any two groups that have support, at the end of any completed window or at a checkpoint;
        0 if there is none.
    widest, widest_unshielded
        The widest pair at any of these moments, with what was measured of it, also below support;
        ``None`` before the first.
    overruled, cost
        Proposals overruled, and what that cost.
    expected_cost
        Per window, as the policy expects; of a periodic policy, per period of its first plan.
    groups
        The same by group.
    followed
        People of unseen groups, whose proposals were followed and who are not counted.
    """

    prop: str
    limit: float
    horizon: int
    decisions: int
    windows: int
    unfair: int
    unfair_unshielded: int
    largest_bias: float
    largest_bias_unshielded: float
    overruled: int
    cost: float
    expected_cost: float
    groups: tuple[GroupReport, ...]
    bound: int
    exempt: int
    widest: Finding | None
    widest_unshielded: Finding | None
    followed: int = 0

    @property
    def verdict(self) -> Verdict:
        """``"unfair"`` if a window is, ``"fair"`` if none is and some bound, else ``"exempt"``."""
        return verdict_of(unfair=self.unfair, fair=self.bound)

    @property
    def all_fair(self) -> bool:
        """Whether no window was unfair so far; also true where nothing bound."""
        return not self.unfair

    @property
    def overruled_share(self) -> float:
        """Share of decisions overruled; 0 of none."""
        return self.overruled / self.decisions if self.decisions else 0.0

    @property
    def cost_per_window(self) -> float:
        """Cost of as many decisions as a window has, on average; 0 of none."""
        return self.cost / self.decisions * self.horizon if self.decisions else 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; a bias or cost that is infinite or unknown becomes ``None``."""
        data = asdict(self)
        finite = {k: None if v != v or v in (math.inf, -math.inf) else v for k, v in data.items()}
        return {
            **finite,
            "groups": [asdict(group) for group in self.groups],
            "widest": None if self.widest is None else self.widest.to_dict(),
            "widest_unshielded": None
            if self.widest_unshielded is None
            else self.widest_unshielded.to_dict(),
            "verdict": self.verdict,
            "all_fair": self.all_fair,
            "overruled_share": self.overruled_share,
        }

    __repr__ = summary

    def __str__(self) -> str:
        lines = [
            f"{self.prop}, every {self.horizon} decisions",
            f"{self.decisions} decisions, {self.windows} windows: {self.unfair} unfair, "
            f"{self.unfair_unshielded} without the shield{self._exempt()}",
            f"overruled {self.overruled} ({self.overruled_share:.1%}), cost per window "
            f"{self.cost_per_window:.4g}, expected {self.expected_cost:.4g}",
        ]
        if self.widest is not None:
            lines += [f"widest: {self.widest}", f"without the shield: {self.widest_unshielded}"]
        lines += [
            f"{g.group}: {g.decisions} {'person' if g.decisions == 1 else 'people'}, accepted "
            f"{g.rate:.1%}, proposed {g.proposed_rate:.1%}, overruled {g.overruled}"
            for g in self.groups
        ]
        if self.followed:
            lines.append(f"{self.followed} of unseen groups, followed and not counted")
        return "\n".join(lines)

    def _exempt(self) -> str:
        if not self.exempt:
            return ""
        if not self.bound:
            return "; all exempt: the property bound nothing"
        return f"; {self.exempt} exempt, where the property bound nothing"


@dataclass(eq=False)
class Tally:
    """Adds up decisions, in any number of pieces, into a :class:`ShieldReport`.

    Parameters
    ----------
    policy
        Whose decisions are counted.  Windows begin anew with its start; where it is periodic,
        counters go on.
    """

    policy: Policy | PeriodicPolicy
    decisions: int = 0
    followed: int = 0
    cost: float = 0.0
    unfair: list[int] = field(default_factory=lambda: [0, 0])
    largest: list[float] = field(default_factory=lambda: [0.0, 0.0])
    bound: int = 0
    widest: list[Finding | None] = field(default_factory=lambda: [None, None])

    def __post_init__(self) -> None:
        n = len(self.policy.groups)
        self.open = np.zeros((2, n, 2), np.int64)
        """Counters of the window in progress, with the shield and without."""
        self.failed = [False, False]
        """Whether a checkpoint of the window in progress failed already."""
        self.binding = False
        """Whether the property bound at a checkpoint of the window in progress."""
        self.by_group = np.zeros((n, 4), np.int64)

    @property
    def running(self) -> bool:
        """Whether counters go on from one window to the next."""
        return isinstance(self.policy, PeriodicPolicy)

    @property
    def horizon(self) -> int:
        """Decisions in a window or period."""
        policy = self.policy
        return policy.period if isinstance(policy, PeriodicPolicy) else policy.horizon

    @property
    def due(self) -> Ints:
        """Numbers of decisions of a window after which the property must hold, its end last."""
        policy = self.policy
        ends = (policy.period,) if isinstance(policy, PeriodicPolicy) else policy.due
        return np.array(ends, np.int64)

    def add(
        self,
        group: NDArray[Any],
        proposed: Flags,
        accepted: Flags,
        paid: NDArray[np.float64],
        relevant: Flags | None = None,
    ) -> Tally:
        """Count decisions in order; ``group`` is -1 for those who are followed, not counted."""
        known = np.flatnonzero(group >= 0)
        self.followed += len(group) - len(known)
        group, proposed, accepted = group[known].astype(np.int64), proposed[known], accepted[known]
        self.cost += float(paid.sum())
        self._add_to_groups(group, proposed, accepted)
        first, due = self.decisions, self.due
        self.decisions += len(known)
        window, position = np.divmod(first + np.arange(len(known)), self.horizon)
        begun = first // self.horizon
        n_windows = self.decisions // self.horizon - begun + 1
        # A stretch goes from one time when the property must hold to the next.
        stretch = (window - begun) * len(due) + np.searchsorted(due, position, side="right")
        shape = n_windows * len(due), len(self.policy.groups)
        ends = (begun + np.arange(n_windows))[:, None] * self.horizon + due
        passed = (first < ends) & (ends <= self.decisions)
        counted = slice(None) if relevant is None else relevant[known]
        for side, taken in enumerate((accepted, proposed)):
            counters = count_windows(stretch[counted], group[counted], taken[counted], shape)
            self._close(side, counters.reshape(n_windows, len(due), *counters.shape[1:]), passed)
        return self

    def report(self) -> ShieldReport:
        """Everything so far."""
        policy = self.policy
        if isinstance(policy, PeriodicPolicy):
            cost, periods = policy.outlook()
            expected = cost / periods
        else:
            expected = policy.expected_cost
        rows = zip(policy.groups, self.by_group.tolist(), strict=True)
        return ShieldReport(
            prop=str(policy.prop),
            limit=policy.prop.limit,
            horizon=self.horizon,
            decisions=self.decisions,
            windows=self.decisions // self.horizon,
            unfair=self.unfair[0],
            unfair_unshielded=self.unfair[1],
            largest_bias=self.largest[0],
            largest_bias_unshielded=self.largest[1],
            overruled=int(self.by_group[:, 3].sum()),
            cost=self.cost,
            expected_cost=expected,
            groups=tuple(GroupReport(name, *row) for name, row in rows),
            bound=self.bound,
            exempt=self.decisions // self.horizon - (self.bound - self.binding),
            widest=self.widest[0],
            widest_unshielded=self.widest[1],
            followed=self.followed,
        )

    def _add_to_groups(self, group: Ints, proposed: Flags, accepted: Flags) -> None:
        n = len(self.by_group)
        everybody = np.ones(len(group), np.bool_)
        for column, those in enumerate((everybody, proposed, accepted, proposed != accepted)):
            self.by_group[:, column] += np.bincount(group[those], minlength=n)

    def _close(self, side: int, counters: Ints, passed: Flags) -> None:
        """Judge where the property had to hold, ``passed``; ``(windows, due, groups, 2)``.

        The last counters are of the window in progress.
        """
        counters[0, 0] += self.open[side]
        counters = counters.cumsum(axis=0 if self.running else 1)
        self.open[side] = counters[-1, -1]
        ends = counters[passed] + _start(self.policy)
        if not len(ends):
            return
        prop, groups = self.policy.prop, self.policy.groups
        failed = _new_windows(~fair_windows(prop, ends), passed, self.failed[side])
        self.unfair[side] += failed.more
        self.failed[side] = failed.in_progress
        if side == 0:  # who came is the same without the shield
            bound = _new_windows(bound_windows(prop, ends), passed, self.binding)
            self.bound += bound.more
            self.binding = bound.in_progress
        self.largest[side] = max(self.largest[side], float(window_biases(prop, ends).max()))
        found = [self.widest[side], widest_finding(prop, groups, ends)]
        known = [finding for finding in found if finding is not None]
        self.widest[side] = min(known, key=Finding.order)


class _Windows(NamedTuple):
    """How many windows are counted anew, and whether the one in progress has been."""

    more: int
    in_progress: bool


def _new_windows(at_ends: Flags, passed: Flags, before: bool) -> _Windows:
    """Windows with a moment ``(windows, due)`` of ``passed`` at which something was so.

    ``before`` says that the first of them was counted already; the last is in progress.
    """
    so = np.zeros(passed.shape, np.bool_)
    so[passed] = at_ends
    some = np.logical_or.reduce(so, axis=1).tolist()
    more = sum(some) - (before and some[0])
    return _Windows(more, some[-1] or (before and len(some) == 1))


def _start(policy: Policy | PeriodicPolicy) -> Ints:
    start: Counts = policy.start
    return np.array([start[group] for group in policy.groups], np.int64)
