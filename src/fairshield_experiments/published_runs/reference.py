r"""The published decisions as a recursion, written to be read; kernels are tested against it.

A value has ``t`` decisions left.  Where the outcome says who counts, the table has values of
:math:`(t, c, (g, d))`: counters c, and one last person of group g with decision d whose outcome is
open.  It averages both outcomes,

.. math::
    V(t, c, (g, d)) = \tfrac12 W(t, c) + \tfrac12 W(t, c \oplus (g, d)), \qquad
    W(t, c) = \sum_{g, r} \tfrac{p_g}{2} \min_d \bigl[ \mathrm{price} \cdot 1\{d \ne r\}
              + V(t - 1, c, (g, d)) \bigr],

and is infinite if either is.  Where everybody counts, there is nobody open, and :math:`V(t, c)` is
:math:`W(t, c)`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from fairshield_experiments.published_runs.window import TIE, At, Window

Open = tuple[int, int] | None
"""Group and decision of the last person, if the outcome is open."""
Entry = tuple[int, At, Open]


def after(at: At, person: tuple[int, int]) -> At:
    """The counters with one more person who counts, of a group and with a decision."""
    group, accepted = person
    n_a, k_a, n_b, k_b = at
    if group == 0:
        return n_a + 1, k_a + accepted, n_b, k_b
    return n_a, k_a, n_b + 1, k_b + accepted


def bias(at: At) -> Fraction:
    """Difference of the rates; a group without people has rate 0."""
    n_a, k_a, n_b, k_b = at
    return abs(Fraction(k_a, max(n_a, 1)) - Fraction(k_b, max(n_b, 1)))


class Reference:
    """Reference holds the table of one window and decides by it."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._values: dict[Entry, float] = {}
        self._stored: dict[Entry, float] = {}
        self._fill()

    # Values ---------------------------------------------------------------------------------

    def value(self, t: int, at: At, last: Open) -> float:
        """Least expected cost of the ``t`` decisions that are left."""
        entry = t, at, last
        if entry not in self._values:
            self._values[entry] = self._value(t, at, last)
        return self._values[entry]

    def _value(self, t: int, at: At, last: Open) -> float:
        if last is None:
            return self._settled(t, at)
        if t == 0 and self._window.last_apart:
            return 0.0 if self._ends_apart(at, last) else math.inf
        return 0.5 * self._settled(t, at) + 0.5 * self._settled(t, after(at, last))

    def _settled(self, t: int, at: At) -> float:
        """Value of counters when nobody is open."""
        if t == 0:
            return 0.0 if self._ends(at) else math.inf
        total, price = 0.0, self._window.table_price
        for group, share in enumerate(self._window.shares):
            reject, accept = self.successors(t, at, group)
            if reject == accept == math.inf:
                return math.inf
            total += share / 2 * (min(reject, price + accept) + min(accept, price + reject))
        return total

    def successors(self, t: int, at: At, group: int) -> tuple[float, float]:
        """Values after rejecting and after accepting somebody."""
        reject, accept = (self.value(*self._entry(t - 1, at, (group, d))) for d in (0, 1))
        return reject, accept

    def _entry(self, t: int, at: At, person: tuple[int, int]) -> Entry:
        return (t, at, person) if self._window.labelled else (t, after(at, person), None)

    # The end --------------------------------------------------------------------------------

    def _total(self, at: At) -> At:
        n_a, k_a, n_b, k_b = (x + y for x, y in zip(self._window.history, at, strict=True))
        return n_a, k_a, n_b, k_b

    def _fair(self, at: At) -> bool:
        total = self._total(at)
        if self._window.undefined == "bias-0" and not (total[0] and total[2]):
            return True
        return self._within(total)

    def _within(self, total: At) -> bool:
        """Whether the bias is at most the bound; an empty group has rate 0."""
        if "judging" not in self._window.departures:
            return bias(total) <= self._window.bound
        n_a, k_a, n_b, k_b = total
        return abs(k_a / max(n_a, 1) - k_b / max(n_b, 1)) <= float(self._window.bound)

    def _in_bounds(self, at: At) -> bool:
        welfare = self._window.welfare
        assert welfare is not None
        n_a, k_a, n_b, k_b = at
        rates = Fraction(k_a, max(n_a, 1)), Fraction(k_b, max(n_b, 1))
        return all(welfare.lower <= rate <= welfare.upper for rate in rates)

    def _balanced(self, at: At) -> bool:
        assert self._window.welfare is not None
        return min(at[0], at[2]) >= self._window.welfare.least

    def _ends(self, at: At) -> bool:
        if self._window.welfare is None:
            return self._fair(at)
        return not self._balanced(at) or self._in_bounds(at)

    def _ends_apart(self, at: At, last: tuple[int, int]) -> bool:
        """N and rates without the last person, and the bias for both of their outcomes."""
        if not self._balanced(at):
            return True
        return self._in_bounds(at) and self._fair(at) and self._fair(after(at, last))

    # What is stored, and what is read -------------------------------------------------------

    def _fill(self) -> None:
        """Store what a depth-first recursion visits."""
        visited: set[Entry] = set()
        waiting: list[tuple[int, At]] = [(self._window.horizon, (0, 0, 0, 0))]
        done: set[tuple[int, At]] = set()
        while waiting:
            t, at = waiting.pop()
            if (t, at) in done or t == 0:
                continue
            done.add((t, at))
            for group in (0, 1):
                for decision in (0, 1):
                    entry = self._entry(t - 1, at, (group, decision))
                    visited.add(entry)
                    waiting += [(t - 1, x) for x in self._settled_from(entry)]
                if self.successors(t, at, group) == (math.inf, math.inf):
                    break
        for entry in visited:
            self._store(entry)

    def _settled_from(self, entry: Entry) -> list[At]:
        """Counters without anybody open that the value of an entry is made of, as far as needed."""
        t, at, last = entry
        if last is None:
            return [at]
        if t and self._settled(t, at) == math.inf:
            return [at]
        return [at, after(at, last)]

    def _store(self, entry: Entry) -> None:
        value = self.value(*entry)
        far = bias(self._total(entry[1])) > Fraction(101, 100) * self._window.bound
        if value != 0 and not (value == math.inf and far):
            self._stored[entry] = value

    def read(self, t: int, at: At, last: Open) -> float:
        """The value, or what an entry that is missing is read as."""
        entry = t, at, last
        if "missing-entries" not in self._window.departures:
            return self.value(*entry)
        if entry in self._stored:
            return self._stored[entry]
        return 0.0 if self._within(self._total(at)) else math.inf

    # Decisions ------------------------------------------------------------------------------

    def worth(self, left: int, at: At, person: tuple[int, int], score: float) -> float:
        """What a decision on a person is worth when ``left`` are left after it.

        ``score`` is the chance that they count, of one who is not quite certain.
        """
        if not self._window.labelled:
            return self.read(left, after(at, person), None)
        if "person-twice" not in self._window.departures:
            return self.read(left, at, person)
        _, accepted = person
        counted = score if accepted else 1.0 - score
        twice = self.read(left, after(at, person), person)
        once = self.read(left, at, person)
        return counted * twice + (1.0 - counted) * once

    def accepts(
        self, left: int, at: At, group: int, *, proposed: bool, price: float, score: float
    ) -> bool:
        """The decision; two infinite worths keep the proposal."""
        reject, accept = (self.worth(left, at, (group, d), score) for d in (0, 1))
        keep, other = (accept, reject) if proposed else (reject, accept)
        return proposed if keep <= price + other + TIE else not proposed
