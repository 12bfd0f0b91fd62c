"""A policy for a long window: worked out as decisions come, near its end from an exact table."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import At, GroupCount
from fairshield.long.certificates import Certificates
from fairshield.long.rule import DIFFERENCE, FEW, KIND, Rule, rule_of, uncertified_end, unsupported
from fairshield.long.tables import Floats, Ints, Tables
from fairshield.policy import Policy
from fairshield.rows import FORCED, RowTable, no_rows
from fairshield.spec import Sustained
from fairshield.structure import broken

_KEPT_BYTES, _KEPT_STATES = 256_000_000, 10_000
"""Of endgames, one for each window near its end; and of certified counters of a few people."""
_NO_WAYS = np.empty((0, 5), np.int64)
MOST_DECISIONS = 10**15
_NEVER = 1 << 60
"""More people than there are."""


class Ladders(NamedTuple):
    """Value functions of all sides, see :mod:`fairshield.long.prices`.

    Attributes
    ----------
    grids
        ``(sides, 2)``: first excess, and distance of the points.
    values
        ``(sides, rungs, points)``: by decisions until the property has to hold, at the end of a
        window or, where it must hold at every moment, with enough people in both groups.
    holding
        ``(sides, rungs, points)``: by decisions left, where the property must hold at every
        moment; the last point is the bound.
    rates
        ``(sides,)``: cost per decision far from the end, where the property must hold at every
        moment; else 0.
    """

    grids: Floats
    values: NDArray[np.float32]
    holding: NDArray[np.float32]
    rates: Floats


class Endgame(NamedTuple):
    """The exact policy for the last decisions before a check, from the counters they began with."""

    begun: int
    at: At
    policy: Policy
    length: int
    labelled: bool

    def local(self, t: int, at: At) -> tuple[int, At] | None:
        """Decisions and counters since it began; ``None`` if they cannot have come about since."""
        n_a, k_a, n_b, k_b = at
        m_a, l_a, m_b, l_b = self.at
        n_a, k_a, n_b, k_b, steps = n_a - m_a, k_a - l_a, n_b - m_b, k_b - l_b, t - self.begun
        seen = n_a + n_b
        if not (0 <= k_a <= n_a and 0 <= k_b <= n_b and seen <= steps < self.length):
            return None
        if seen < steps and not self.labelled:
            return None
        return steps, (n_a, k_a, n_b, k_b)


class InEndgame(NamedTuple):
    """The endgame that decides, and decisions and counters since it began."""

    endgame: Endgame
    local: tuple[int, At]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LongPolicy(Policy):
    """What to do in a window too long for a table, see :mod:`fairshield.long.certificates`.

    Attributes
    ----------
    levels
        ``(2, 2, K)``: costs by group, proposal and cost level, cheapest first.
    weights, costs
        ``(2, 2, L)``: chances and costs, in as few levels as the prices need.
    tie
        The gain below which a proposal is kept.
    ladders
        Value functions of the excess, see :mod:`fairshield.long.prices`.
    opening
        ``(counters, 2)``: codes of the first people, by group and
        :func:`fairshield.long.price_kernels.place_of`.
    endgame
        Decisions before each check that are decided by an exact table, made from the counters
        when they begin.
    """

    method: ClassVar[Literal["exact", "long"]] = "long"
    stored_as: ClassVar[str] = "long"

    rows: RowTable = field(default_factory=no_rows)
    levels: NDArray[np.float64]
    weights: NDArray[np.float64]
    costs: NDArray[np.float64]
    tie: float
    ladders: Ladders
    opening: NDArray[np.int16]
    endgame: int

    @cached_property
    def rule(self) -> Rule:
        """The property in a few integers."""
        return rule_of(self.prop)

    @cached_property
    def certificates(self) -> Certificates:
        """Which counters are certified."""
        goes_on = len(self.due) > 1 or isinstance(self.terminal, Sustained)
        return Certificates(self.prop, self.rule, goes_on=goes_on)

    @cached_property
    def reader(self) -> LongReader:  # type: ignore[override]  # reads alike, without rows
        """Single look-ups."""
        return LongReader(self)

    @property
    def nbytes(self) -> int:
        """Size of what the policy stores."""
        stored = (*self.ladders, self.opening, self.levels, self.weights, self.costs)
        return sum(array.nbytes for array in stored)

    @cached_property
    def tables(self) -> Tables:
        """The arrays that the compiled functions read."""
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
        return self.due[min(bisect_right(self.due, t), len(self.due) - 1)]

    def in_endgame(self, t: int) -> bool:
        """Whether decision ``t`` is decided by an exact table."""
        return t >= self.next_check(t) - self.endgame

    def planned(self, t: int, at: At) -> int:
        """How many decisions can be made before an endgame has to be worked out."""
        if t >= self.horizon:
            return 0
        check = self.next_check(t)
        if not self.in_endgame(t):
            return check - self.endgame - t if self.endgame else check - t
        return 0 if self.reader.solved(t, at) is None else check - t

    def certified(self, t: int, at: At) -> bool:
        """Whether the counters after ``t`` decisions have a certificate for the next check."""
        a, b = self.start.plus(at).values()
        return self.certificates.certified(a, b, self.next_check(t) - t)

    def _stored(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        data = {
            "method": self.stored_as,
            "reason": self.reason,
            "endgame": self.endgame,
            "tie": self.tie,
            "risk": self.risk,
        }
        ladders = {f"ladder_{name}": array for name, array in self.ladders._asdict().items()}
        arrays: dict[str, NDArray[Any]] = {
            "levels": self.levels,
            "weights": self.weights,
            "costs": self.costs,
            "opening": self.opening,
        }
        return data, arrays | ladders

    @staticmethod
    def _restored(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        return {
            "levels": arrays["levels"],
            "weights": arrays["weights"],
            "costs": arrays["costs"],
            "opening": arrays["opening"],
            "reason": str(data["reason"]),
            "tie": float(data["tie"]),
            "endgame": int(data["endgame"]),
            "risk": float(data["risk"]),
            "ladders": Ladders(*(arrays[f"ladder_{name}"] for name in Ladders._fields)),
        }

    def check(self) -> None:
        """Refuse arrays that do not fit the property, the cost levels or each other."""
        against = unsupported(self.prop) or uncertified_end(self.prop, self.terminal)
        if against is None and len(self.due) > 1 and self.certificates.sustained is None:
            against = f"{self.prop} has no certificate that goes on after a checkpoint"
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
        if not 0 <= self.endgame <= self.horizon <= MOST_DECISIONS or self.ranks.min() < 0:
            raise broken(f"an endgame of {self.endgame} in a window of {self.horizon}")


class LongReader:
    """Looks up single states of a long policy."""

    def __init__(self, policy: LongPolicy) -> None:
        from fairshield.long import kernels

        self._policy, self.labelled = policy, policy.labelled
        self._kernels, self._tables = kernels, policy.tables
        (m_a, l_a), (m_b, l_b) = policy.start_counts()
        self._start = m_a, l_a, m_b, l_b
        numbers = policy.rule.numbers
        self._few = int(numbers[FEW]) if numbers[KIND] == DIFFERENCE else 0
        if m_a + m_b + policy.horizon > policy.rule.largest:
            # Beyond 64 bits every certificate is for integers of any size.
            self._few = _NEVER
        # With one check it is plain where its endgame begins.
        self._alone = policy.horizon if len(policy.due) == 1 else 0
        self._begins = self._alone - policy.endgame
        self._ways: dict[tuple[int, int], Ints] = {}
        self._known: dict[At, bool] = {}
        self._solved: OrderedDict[tuple[int, At], Endgame] = OrderedDict()
        self._last: Endgame | None = None
        self._held = 0
        self._lock = Lock()

    def look_up(self, t: int, at: At, group: int) -> tuple[bool, bool, int]:
        """See :meth:`fairshield.rows.RowReader.look_up`."""
        if t >= self._begins and (self._alone or self._policy.in_endgame(t)):
            endgame, local = self.endgame(t, at)
            return endgame.policy.reader.look_up(*local, group)
        n_a, k_a, n_b, k_b = at
        m_a, l_a, m_b, l_b = self._start
        n_a, k_a, n_b, k_b = n_a + m_a, k_a + l_a, n_b + m_b, k_b + l_b
        left = (self._alone or self._policy.next_check(t)) - t
        if n_a < self._few or n_b < self._few:
            return self._look_up_few(left, n_a, k_a, n_b, k_b, group)
        kernels = self._kernels
        found = kernels.answer(self._tables, _NO_WAYS, _NO_WAYS, n_a, k_a, n_b, k_b, left, group)
        can_reject, can_accept = found & kernels.CAN_REJECT > 0, found & kernels.CAN_ACCEPT > 0
        if can_reject is can_accept:
            return can_reject, can_accept, found >> kernels.ANSWER_BITS
        return can_reject, can_accept, FORCED if can_reject else -FORCED

    def _look_up_few(
        self, left: int, n_a: int, k_a: int, n_b: int, k_b: int, group: int
    ) -> tuple[bool, bool, int]:
        in_a = 1 - group
        m_a, m_b, then = n_a + in_a, n_b + group, left - 1
        can_reject = self._certified(m_a, k_a, m_b, k_b, then)
        can_accept = self._certified(m_a, k_a + in_a, m_b, k_b + group, then)
        if can_reject is not can_accept:
            return can_reject, can_accept, FORCED if can_reject else -FORCED
        code = self._kernels.code_at(self._tables, n_a, k_a, n_b, k_b, left, group)
        return can_reject, can_accept, code

    def _certified(self, n_a: int, k_a: int, n_b: int, k_b: int, left: int) -> bool:
        """Whether counters, start included, are certified; where time plays no part, remembered."""
        state, a, b = (n_a, k_a, n_b, k_b), GroupCount(n_a, k_a), GroupCount(n_b, k_b)
        if not self.labelled or min(n_a, n_b) + left < self._tables.binds_from:
            return self._policy.certificates.certified(a, b, left)
        found = self._known.get(state)
        if found is None:
            if len(self._known) >= _KEPT_STATES:
                self._known.clear()
            found = self._known[state] = self._policy.certificates.certified(a, b, left)
        return found

    def feasible(self, t: int, at: At) -> bool:
        """Whether fairness is guaranteed from this state, whatever comes."""
        policy = self._policy
        if not policy.keeps(policy.start.plus(at), t):
            return False
        if t == policy.horizon:
            return True
        if policy.in_endgame(t):
            endgame, local = self.endgame(t, at)
            return endgame.policy.reader.feasible(*local)
        return policy.certified(t, at)

    def stays(self, t: int, at: At) -> bool:
        """Whether it still is if the next decision leaves the counters as they are."""
        if not self._policy.in_endgame(t):
            (n_a, k_a, n_b, k_b), (m_a, l_a, m_b, l_b) = at, self._start
            left = self._policy.next_check(t) - t - 1
            return self._certified(n_a + m_a, k_a + l_a, n_b + m_b, k_b + l_b, left)
        endgame, (steps, local) = self.endgame(t, at)
        return endgame.policy.reader.feasible(steps + 1, local)

    # Many decisions -------------------------------------------------------------------------

    def decide_on(
        self, t: int, at: Ints, requests: Any, accepted: NDArray[np.bool_], begin: int, end: int
    ) -> int:
        """Decide requests ``begin … end - 1``, the first after ``t`` decisions, before an endgame.

        ``at``, the counters since the start, are updated.  Stops when a few people have become
        one more, and at once if both groups are few, which is for :meth:`look_up`; returns where.
        """
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
            self._tables, self._policy.ranks, self._kernels.Ways(*ways), totals,
            self._policy.next_check(t) - t, requests.groups, requests.proposed, requests.levels,
            requests.relevant, accepted, begin, end,
        )  # fmt: skip
        at[:] = totals - np.array(self._start)
        return done

    def _ways_of(self, seen: int, accepted: int) -> Ints:
        """What a few people leave the other group, as the kernels read it."""
        found = self._ways.get((seen, accepted))
        if found is None:
            lefts = self._policy.certificates.lefts(GroupCount(seen, accepted))
            ways = [
                (*lower.as_integer_ratio(), *upper.as_integer_ratio(), int(min(gap, _NEVER)))
                for (lower, upper), gap in lefts
            ]
            found = np.array(ways, np.int64).reshape(-1, 5)
            self._ways[seen, accepted] = found
        return found

    # Endgames -------------------------------------------------------------------------------

    def solved(self, t: int, at: At) -> InEndgame | None:
        """The endgame that decides here, if it has been worked out."""
        last = self._last
        if last is not None:
            local = last.local(t, at)
            if local is not None and _answers(last, local):
                return InEndgame(last, local)
        with self._lock:
            known = list(self._solved.values())
        for endgame in known:
            local = endgame.local(t, at)
            if local is not None and _answers(endgame, local):
                self._use(endgame)
                return InEndgame(endgame, local)
        return None

    def _use(self, endgame: Endgame) -> None:
        """Those used longest ago are the first to go."""
        self._last, key = endgame, (endgame.begun, endgame.at)
        with self._lock:
            if key in self._solved:
                self._solved.move_to_end(key)

    def endgame(self, t: int, at: At) -> InEndgame:
        """The endgame that decides here; solved if need be, which takes some milliseconds."""
        found = self.solved(t, at)
        if found is not None:
            return found
        from fairshield.long.endgame import solve

        solution = solve(self._policy, t, at)
        made = self._last = Endgame(t, at, solution, solution.horizon, self.labelled)
        with self._lock:
            if (t, at) not in self._solved:
                self._held += solution.nbytes
            self._solved[t, at] = made
            while self._held > _KEPT_BYTES and len(self._solved) > 1:
                _, oldest = self._solved.popitem(last=False)
                self._held -= oldest.policy.nbytes
        return InEndgame(made, (0, (0, 0, 0, 0)))


def _answers(endgame: Endgame, local: tuple[int, At]) -> bool:
    """Whether an endgame knows what to do here: the best, or at least what is least risky.

    So that what is decided depends on the counters alone, and not on what was solved before.
    """
    return endgame.policy.salvage is not None or endgame.policy.reader.feasible(*local)
