"""PriceDecisions: decisions of a long window, each computed when asked for, the last by table."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import At, Counts, GroupCount
from fairshield.base.words import human_size
from fairshield.policy.decisions import Answer, Decisions, Stored, Stretch
from fairshield.policy.long.certificates import Certificates
from fairshield.policy.long.endgames import Endgames, InEndgame
from fairshield.policy.long.tables import Ints, Ladders, Tables
from fairshield.policy.rows import FORCED
from fairshield.policy.specification import Specification
from fairshield.policy.structure import broken
from fairshield.spec.rules import Rule

_KEPT_STATES = 10_000
"""Certified counters of a few people that are remembered."""
_NO_WAYS = np.empty(0, np.int64)
MOST_DECISIONS = 10**15
_NEVER = 1 << 60
"""More people than there are."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PriceDecisions(Decisions):
    """PriceDecisions computes decisions of windows too long for a table.

    Which are feasible: :mod:`fairshield.policy.long.certificates`; which are worth their cost:
    :mod:`fairshield.policy.long.prices`.

    Attributes
    ----------
    spec
        What must hold when, which says which counters are certified.
    levels
        ``(2, 2, K)``: costs by group, proposal and cost level, cheapest first.
    weights, costs
        ``(2, 2, L)``: chances and costs, in as few levels as the prices need.
    tie
        The gain below which a proposal is kept.
    ladders
        Value functions of the excess, see :mod:`fairshield.policy.long.prices`.
    opening
        ``(counters, 2)``: codes of the first people, by group and
        :func:`fairshield.policy.long.price_kernels.place_of`.
    endgame
        Decisions before each check that are decided by an exact table, made from the counters
        when they begin.
    """

    method: ClassVar[Literal["exact", "long"]] = "long"
    grounds: ClassVar[str] = (
        "Decisions are worked out as they come, and only such are made from which the property can "
        "still be kept whoever arrives; that is decided in whole numbers."
    )
    stored_as: ClassVar[str] = "long"

    spec: Specification
    levels: NDArray[np.float64]
    weights: NDArray[np.float64]
    costs: NDArray[np.float64]
    tie: float
    ladders: Ladders
    opening: NDArray[np.int16]
    endgame: int

    @cached_property
    def labelled(self) -> bool:
        return self.spec.labelled

    @cached_property
    def rule(self) -> Rule:
        """The integers of the property that certificates compute with."""
        return self.spec.prop.rule()

    @cached_property
    def certificates(self) -> Certificates:
        """Which counters are certified."""
        goes_on = len(self.spec.due) > 1 or self._lasts
        return Certificates(self.spec.prop, self.rule, goes_on=goes_on)

    @property
    def _lasts(self) -> bool:
        """Whether the end requires a certificate that the property can be kept for ever."""
        return self.spec.terminal is not None and self.spec.terminal.lasting

    @property
    def n_states(self) -> None:
        return None

    @cached_property
    def tables(self) -> Tables:
        return Tables(
            rule=self.rule.numbers,
            binds_from=self.certificates.binds_from,
            tie=self.tie,
            sides=np.concatenate((self.rule.sides, self.ladders.grids), axis=1),
            levels=np.ascontiguousarray(self.levels),
            weights=np.ascontiguousarray(self.weights),
            costs=np.ascontiguousarray(self.costs),
            totals=self.weights.sum(axis=2),
            ladder=np.ascontiguousarray(self.ladders.values),
            holding=np.ascontiguousarray(self.ladders.holding),
            opening=np.ascontiguousarray(self.opening),
        )

    def next_check(self, t: int) -> int:
        """The first number of decisions after ``t`` at which the property must hold."""
        due = self.spec.due
        return due[min(bisect_right(due, t), len(due) - 1)]

    def in_endgame(self, t: int) -> bool:
        """Whether decision ``t`` is decided by an exact table."""
        return t >= self.next_check(t) - self.endgame

    def planned(self, t: int, at: At) -> int:
        if t >= self.spec.horizon:
            return 0
        check = self.next_check(t)
        if not self.in_endgame(t):
            return check - self.endgame - t if self.endgame else check - t
        return 0 if self._endgames.solved(t, at) is None else check - t

    def certified(self, t: int, at: At) -> bool:
        """Whether the counters after ``t`` decisions have a certificate for the next check."""
        a, b = self.spec.start.plus(at).values()
        return self.certificates.certified(a, b, self.next_check(t) - t)

    # Look-ups -------------------------------------------------------------------------------

    @cached_property
    def _kernels(self) -> Any:
        from fairshield.policy.long import kernels

        return kernels

    @cached_property
    def _start(self) -> At:
        return self.spec.start.numbers()

    @cached_property
    def _few(self) -> int:
        """A group of fewer people is *few*, and its certificates need integers of any size."""
        if sum(self._start[::2]) + self.spec.horizon > self.rule.largest:
            return _NEVER
        return self.certificates.few

    @cached_property
    def _only_check(self) -> int | None:
        """The end of the window, if nothing is due before it; ``None``: there are more checks."""
        return self.spec.horizon if len(self.spec.due) == 1 else None

    @cached_property
    def _known(self) -> dict[At, bool]:
        """Which counters, start included, are certified: those that were asked for."""
        return {}

    def look_up(self, t: int, at: At, group: int) -> Answer:
        check = self._only_check
        if check is None:
            check = self.next_check(t)
        if t >= check - self.endgame:
            endgame, local = self.endgame_at(t, at)
            return endgame.policy.decisions.look_up(*local, group)
        n_a, k_a, n_b, k_b = at
        m_a, l_a, m_b, l_b = self._start
        n_a, k_a, n_b, k_b = n_a + m_a, k_a + l_a, n_b + m_b, k_b + l_b
        left, kernels = check - t, self._kernels
        few = n_a < self._few or n_b < self._few
        if few:
            m_a, m_b = n_a + 1 - group, n_b + group
            can_reject = self._certified(m_a, k_a, m_b, k_b, left - 1)
            can_accept = self._certified(m_a, k_a + 1 - group, m_b, k_b + group, left - 1)
        else:
            found = kernels.answer(self.tables, _NO_WAYS, _NO_WAYS, n_a, k_a, n_b, k_b, left, group)
            can_reject, can_accept = found & kernels.CAN_REJECT > 0, found & kernels.CAN_ACCEPT > 0
        if can_reject is not can_accept:
            code = FORCED if can_reject else -FORCED
        elif few:
            code = kernels.code_at(self.tables, n_a, k_a, n_b, k_b, left, group)
        else:
            code = found >> kernels.ANSWER_BITS
        return can_reject, can_accept, code

    def _certified(self, n_a: int, k_a: int, n_b: int, k_b: int, left: int) -> bool:
        """Whether counters, start included, are certified; cached where time does not matter."""
        state, a, b = (n_a, k_a, n_b, k_b), GroupCount(n_a, k_a), GroupCount(n_b, k_b)
        if not self.spec.labelled or min(n_a, n_b) + left < self.tables.binds_from:
            return self.certificates.certified(a, b, left)
        found = self._known.get(state)
        if found is None:
            if len(self._known) >= _KEPT_STATES:
                self._known.clear()
            found = self._known[state] = self.certificates.certified(a, b, left)
        return found

    def feasible(self, t: int, at: At) -> bool:
        if not self.spec.keeps(self.spec.start.plus(at), t):
            return False
        if t == self.spec.horizon:
            return True
        if self.in_endgame(t):
            endgame, local = self.endgame_at(t, at)
            return endgame.policy.decisions.feasible(*local)
        return self.certified(t, at)

    def stays(self, t: int, at: At) -> bool:
        if not self.in_endgame(t):
            (n_a, k_a, n_b, k_b), (m_a, l_a, m_b, l_b) = at, self._start
            left = self.next_check(t) - t - 1
            return self._certified(n_a + m_a, k_a + l_a, n_b + m_b, k_b + l_b, left)
        endgame, local = self.endgame_at(t, at)
        return endgame.policy.decisions.stays(*local)

    # Endgames -------------------------------------------------------------------------------

    @cached_property
    def _endgames(self) -> Endgames:
        return Endgames()

    def endgame_at(self, t: int, at: At) -> InEndgame:
        """The endgame that decides here; one that is not solved yet takes some milliseconds."""
        found = self._endgames.solved(t, at)
        return self._endgames.solve(t, at, self._endgame_spec(t, at)) if found is None else found

    def _endgame_spec(self, t: int, at: At) -> Specification:
        """The specification of the decisions from here to the next check.

        Where the window goes on after the check, it must end with a certificate.
        """
        check, terminal = self.next_check(t), self.spec.terminal
        if check < self.spec.horizon or self._lasts:
            terminal = self.certificates.sustained
        return self.spec.rest(self.spec.start.plus(at), t).upto(check - t, terminal)

    # What is still to be paid ---------------------------------------------------------------

    def estimate(self, counts: Counts, decided: int) -> float | None:
        # Exact within an endgame; before it, an estimate from the prices.
        at = self.spec.position(counts, decided)
        if not self.feasible(decided, at):
            return math.inf
        if decided < self.spec.horizon and self.in_endgame(decided):
            return None
        return self.expected_from(decided, at)

    def expected_from(self, t: int, at: At) -> float:
        """Return roughly what the decisions up to the next check are expected to cost."""
        left = self.next_check(t) - t
        if self.rule.anytime:
            return float(self.ladders.rates.sum()) * left
        from fairshield.policy.long.price_kernels import expected

        counters = (n + m for n, m in zip(at, self._start, strict=True))
        return float(expected(self.tables, *counters, left))

    def rest(self, spec: Specification, counts: Counts, decided: int) -> Specification:
        return self._endgame_spec(decided, spec.since_start(counts))

    # Many decisions -------------------------------------------------------------------------

    def stretch(self, t: int, at: At) -> Stretch | None:
        if not self.in_endgame(t):
            return None
        endgame, local = self.endgame_at(t, at)
        left = self.next_check(t) - t
        return Stretch(endgame.policy.decisions.tables, *local, endgame.at, left)

    def decide_on(
        self, t: int, at: Ints, requests: Any, accepted: NDArray[np.bool_], begin: int
    ) -> int:
        # Return before an endgame begins, once a group of few people has grown by one, and at
        # once if both groups are few.
        end = min(len(accepted), begin + self.planned(t, tuple(at.tolist())))
        totals = at + np.array(self._start)
        n_a, k_a, n_b, k_b = totals.tolist()
        ways = [_NO_WAYS] * 3
        if n_a < self._few or n_b < self._few:
            if n_a < self._few and n_b < self._few:
                return begin
            seen, taken = (n_a, k_a) if n_a < self._few else (n_b, k_b)
            after = ((seen, taken), (seen + 1, taken), (seen + 1, taken + 1))
            ways = [self._ways_of(*count) for count in after]
        done: int = self._kernels.decide_on(
            self.tables, self.ranks, self._kernels.Ways(*ways), totals,
            self.next_check(t) - t, requests.groups, requests.proposed, requests.levels,
            requests.relevant, accepted, begin, end,
        )  # fmt: skip
        at[:] = totals - np.array(self._start)
        return done

    @cached_property
    def _ways_of(self) -> Callable[[int, int], Ints]:
        """The corridors that a group of few people leaves the other, as arrays for the kernels."""
        ways = self.certificates.ways
        return lru_cache(_KEPT_STATES)(lambda *count: np.array(ways(*count), np.int64))

    # Files ----------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        stored = (*self.ladders, self.opening, self.levels, self.weights, self.costs)
        return sum(array.nbytes for array in stored)

    def describe(self) -> dict[str, Any]:
        return {"endgame": self.endgame}

    def in_words(self) -> str:
        size = human_size(self.nbytes)
        return f"prices of {size}; the last {self.endgame} decisions are solved when they come"

    def stored(self, risk: float) -> Stored:
        data = {"endgame": self.endgame, "tie": self.tie, "risk": risk}
        ladders = {f"ladder_{name}": array for name, array in self.ladders._asdict().items()}
        arrays: dict[str, NDArray[Any]] = {
            "levels": self.levels,
            "weights": self.weights,
            "costs": self.costs,
            "opening": self.opening,
        }
        return data, arrays | ladders

    @classmethod
    def restored(
        cls, spec: Specification, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> PriceDecisions:
        return cls(
            spec=spec,
            edges=arrays["edges"],
            ranks=arrays["ranks"],
            levels=arrays["levels"],
            weights=arrays["weights"],
            costs=arrays["costs"],
            opening=arrays["opening"],
            tie=float(data["tie"]),
            endgame=int(data["endgame"]),
            ladders=Ladders(*(arrays[f"ladder_{name}"] for name in Ladders._fields)),
        )

    def check(self, spec: Specification) -> None:
        if spec is not self.spec:
            raise broken("its prices are those of another specification")
        against = spec.prop.uncertified or spec.prop.uncertified_end(spec.terminal)
        if against is None and len(spec.due) > 1 and self.certificates.sustained is None:
            against = f"{spec.prop} has no certificate that goes on after a checkpoint"
        if against is not None:
            raise broken(against)
        levels, sides = len(self.edges), len(self.rule.sides)
        cells, few = (2, 2, levels), (2, 2, self.costs.shape[-1])
        for name, array, shape in (
            ("levels", self.levels, cells),
            ("weights", self.weights, few),
            ("costs", self.costs, few),
            ("ranks", self.ranks, (1, *cells)),
            ("ladder_grids", self.ladders.grids, (sides, 2)),
            ("ladder_rates", self.ladders.rates, (sides,)),
        ):
            if array.shape != shape or not np.isfinite(array).all():
                raise broken(f"{name} has shape {array.shape}, expected numbers of shape {shape}")
        least = (0, 2) if self.rule.anytime else (2, 0)
        for name, values, rungs in zip(
            ("values", "holding"), (self.ladders.values, self.ladders.holding), least, strict=True
        ):
            shape = values.shape
            if len(shape) != 3 or shape[0] != sides or shape[1] < rungs or shape[2] < 2:
                raise broken(f"ladder_{name} has shape {shape}, for {sides} sides")
            if np.isnan(values).any():
                raise broken(f"ladder_{name} has values that are not numbers")
        if not (self.ladders.grids[:, 1] > 0).all():
            raise broken("a ladder has points out of order")
        opening = self.opening
        if opening.ndim != 2 or opening.shape[1] != 2:
            raise broken(f"opening has shape {opening.shape}, expected two codes by counters")
        if opening.size and max(opening.max(), -int(opening.min())) > levels:
            raise broken(f"opening has codes beyond {levels} cost levels")
        if not 0 <= self.endgame <= spec.horizon <= MOST_DECISIONS or self.ranks.min() < 0:
            raise broken(f"an endgame of {self.endgame} in a window of {spec.horizon}")
