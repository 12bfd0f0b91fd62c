"""Endgames: exact policies for the last decisions before a check of a long window."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

from fairshield.base.counts import At
from fairshield.policy.policy import Policy
from fairshield.policy.specification import Specification

Solver = Callable[[Specification], Policy]
"""Makes the cheapest policy of a specification, by rows, and where none is fair a best effort."""

_KEPT_BYTES = 256_000_000
"""Of endgames, one for each window near its end."""
_solvers: list[Solver] = []


def provide_solver(solver: Solver) -> None:
    """Set the function that solves endgames: this module cannot import the synthesis it needs."""
    _solvers[:] = [solver]


class Endgame(NamedTuple):
    """Endgame is the exact policy for the last decisions before a check, from given counters."""

    begun: int
    at: At
    policy: Policy
    length: int
    labelled: bool

    def local(self, t: int, at: At) -> tuple[int, At] | None:
        """Decisions and counters since the endgame began; ``None`` if they cannot follow it."""
        n_a, k_a, n_b, k_b = at
        m_a, l_a, m_b, l_b = self.at
        n_a, k_a, n_b, k_b, steps = n_a - m_a, k_a - l_a, n_b - m_b, k_b - l_b, t - self.begun
        seen = n_a + n_b
        if not (0 <= k_a <= n_a and 0 <= k_b <= n_b and seen <= steps < self.length):
            return None
        if seen < steps and not self.labelled:
            return None
        return steps, (n_a, k_a, n_b, k_b)

    def answers(self, t: int, at: At) -> bool:
        """Whether the endgame has a decision at these counters: the cheapest fair, or least risky.

        So what is decided depends on the counters alone, and not on which endgames are cached.
        """
        decisions = self.policy.decisions
        return decisions.salvages or decisions.feasible(t, at)


class InEndgame(NamedTuple):
    """InEndgame holds the endgame that decides, and decisions and counters since it began."""

    endgame: Endgame
    local: tuple[int, At]


class Endgames:
    """Endgames caches solved endgames and drops those used longest ago."""

    def __init__(self) -> None:
        self._solved: OrderedDict[tuple[int, At], Endgame] = OrderedDict()
        self._last: Endgame | None = None
        self._held = 0
        self._lock = Lock()

    def solved(self, t: int, at: At) -> InEndgame | None:
        """The endgame that decides here, if it has been solved."""
        last = self._last
        if last is not None:
            local = last.local(t, at)
            if local is not None and last.answers(*local):
                return InEndgame(last, local)
        with self._lock:
            known = list(self._solved.values())
        for endgame in known:
            local = endgame.local(t, at)
            if local is not None and endgame.answers(*local):
                self._use(endgame)
                return InEndgame(endgame, local)
        return None

    def solve(self, t: int, at: At, spec: Specification) -> InEndgame:
        """Solve the endgame that begins here, which takes some milliseconds."""
        (solver,) = _solvers
        solution = solver(spec)
        made = self._last = Endgame(t, at, solution, solution.horizon, solution.labelled)
        with self._lock:
            if (t, at) not in self._solved:
                self._held += solution.nbytes
            self._solved[t, at] = made
            while self._held > _KEPT_BYTES and len(self._solved) > 1:
                _, oldest = self._solved.popitem(last=False)
                self._held -= oldest.policy.nbytes
        return InEndgame(made, (0, (0, 0, 0, 0)))

    def _use(self, endgame: Endgame) -> None:
        self._last, key = endgame, (endgame.begun, endgame.at)
        with self._lock:
            if key in self._solved:
                self._solved.move_to_end(key)
