r"""Evidence against an input model: requests are counted, and bets say how likely they are.

The evidence is the capital of the bets of :mod:`fairshield.monitor.bets`.  Requests may change
late, and a bet on all of them would hide that.  So one bet is placed over the whole stream, and
others begin anew every 512, 4,096 and 32,768 requests.  Each of the four has a quarter of the
capital; the b-th of those that begin anew has :math:`1/(b(b+1))` of its share, of
which all together make 1.  The total :math:`E_t` is again a martingale that begins at 1 (where the
model thinks some values impossible, a supermartingale: bets on them are lost), and by Ville's
inequality a right model is ever contradicted, :math:`E_t \ge 1/\alpha` at some time, with
probability at most :math:`\alpha`.

Counts by cell are kept, and no single request.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.base.errors import InvalidValueError
from fairshield.inputs import InputModel, Inputs, InputSchedule, InputTable
from fairshield.monitor.bets import PARTS, Cells, Floats, Ints, Odds, log_change
from fairshield.monitor.differences import DIFFERENCES

CHECK_EVERY = 64
"""Requests between two looks at the capital; fewer looks never make it less trustworthy."""
LENGTHS = (512, 4096, 32768)
"""After how many requests bets begin anew; multiples of :data:`CHECK_EVERY`."""
_SMOOTHING = 1.0


class Capital(NamedTuple):
    """Capital holds the logarithm of the capital at some times, and the bets it is made of.

    ``total`` is ``(times,)``; ``bets`` ``(bets, times)``: the bet over the whole stream first;
    ``settled`` ``(lengths,)``: the bets of each length that are over, after the last time.
    """

    total: Floats
    bets: Floats
    settled: Floats


class Watch:
    """Watch counts requests, and bets that they do not follow a model.

    Parameters
    ----------
    inputs
        The model; a schedule begins again with every window.
    size
        Decisions in a window or period; ``None``: there is one endless window.
    alpha
        How probable it may be that a right model is ever contradicted.
    """

    def __init__(self, inputs: Inputs, size: int | None, alpha: float) -> None:
        if not isinstance(inputs, (InputModel, InputSchedule)):
            raise InvalidValueError(
                f"inputs must be an InputModel or an InputSchedule, got {type(inputs).__name__}"
            )
        self.inputs, self.size, self._enough = inputs, size, -math.log(alpha)
        steps = [n for _, n in inputs.parts]
        self.table = table = inputs.table(sum(steps))
        firsts = np.cumsum([0, *steps[:-1]]) if len(table.probs) > 1 else np.zeros(1, np.int64)
        rows = InputTable(
            table.groups, table.levels, table.edges, table.probs[firsts],
            None if table.outcomes is None else table.outcomes[firsts],
        )  # fmt: skip
        self.rows, self.odds = rows, Odds(rows)
        self._firsts: list[int] = firsts.tolist()
        parts, groups, _, levels = rows.probs.shape
        self._shape = (parts, groups, 2, levels + 1)
        self._edges: list[float] = rows.edges.tolist()
        self._width = levels + 1
        self._block = groups * 2 * self._width
        n_cells = math.prod(self._shape)
        self._people, self._told, self._positive = ([0] * n_cells for _ in "abc")
        self._spent = [0.0] * n_cells
        possible: NDArray[np.bool_] = np.zeros(self._shape, np.bool_)
        possible[..., :-1] = rows.probs > 0.0
        self._possible: list[bool] = possible.reshape(-1).tolist()
        self.decided = 0
        self._bases = [self.cells for _ in LENGTHS]
        self._earlier = list(self._bases)
        self._settled = np.full(len(LENGTHS), -math.inf)
        self.contradicted_at: int | None = None
        self.since, self.diagnosis = self.cells, ""

    @property
    def cells(self) -> Cells:
        """Everybody counted so far."""
        return self._read_cells([self._people, self._told, self._positive, self._spent])

    # One at a time --------------------------------------------------------------------------

    def count(self, group: int, proposed: bool, cost: float, outcome: bool | None) -> bool:
        """Count one request; returns whether the model thought it possible."""
        cell: int = (group * 2 + proposed) * self._width + bisect_left(self._edges, cost)
        if len(self._firsts) > 1:
            at = self.decided if self.size is None else self.decided % self.size
            cell += self._block * (bisect_left(self._firsts, at + 1) - 1)
        self._people[cell] += 1
        self._spent[cell] += cost
        if outcome is not None:
            self._told[cell] += 1
            self._positive[cell] += outcome
        self.decided += 1
        return self._possible[cell]

    def check(self, possible: bool = True) -> float | None:
        """The logarithm of the capital, if the model is contradicted now and was not before."""
        now, reading, capital = self.cells, None, -math.inf
        if self.decided % CHECK_EVERY == 0:
            reading = self._read(np.array([self.decided]), Cells._make(c[None] for c in now))
            capital = float(reading.total[0])
        if not possible:
            capital = math.inf
        if reading is not None:
            self._settle(self.decided, now, reading.settled)
        contradicts = self.contradicted_at is None and capital >= self._enough
        if contradicts:
            self._note(now)
        return capital if contradicts else None

    def look(self) -> float:
        """The logarithm of the capital now, without settling anything."""
        cells = Cells._make(c[None] for c in self.cells)
        # Read one request later, at which bets that end with the last request are settled already.
        return float(self._read(np.array([self.decided + 1]), cells).total[0])

    # Many at once ---------------------------------------------------------------------------

    def count_many(
        self,
        groups: Ints,
        proposed: NDArray[np.bool_],
        costs: Floats,
        outcomes: NDArray[np.bool_] | None,
    ) -> tuple[int, float] | None:
        """Count requests; returns when they contradicted the model, and the log capital then."""
        rows = (groups, proposed, costs, outcomes)
        if self.contradicted_at is not None:
            self._advance(*rows)
            return None
        before, first = self.state(), self.decided
        times, capital, impossible = self._advance(*rows)
        enough = times[capital >= self._enough]
        found: int = min([*enough[:1].tolist(), *impossible], default=0)
        if not found:
            return None
        # This happens once in a stream: count again, and stop at the contradicting request.
        self.resume(before)
        self._advance(*_rows(rows, 0, found - first), note=True)
        self._advance(*_rows(rows, found - first, None))
        return found, math.inf if found in impossible else float(capital[times == found][0])

    def _advance(
        self,
        groups: Ints,
        proposed: NDArray[np.bool_],
        costs: Floats,
        outcomes: NDArray[np.bool_] | None,
        note: bool = False,
    ) -> tuple[Ints, Floats, list[int]]:
        """Count requests; returns times of checks, log capital then, the first impossible request.

        With ``note``, the model is taken to be contradicted by the last request.
        """
        first, last = self.decided, self.decided + len(groups)
        levels = np.searchsorted(self.rows.edges, costs, side="left")
        cell = (groups * 2 + proposed) * self._width + levels
        if len(self._firsts) > 1:
            at = np.arange(first, last)
            at = at if self.size is None else at % self.size
            cell += self._block * (np.searchsorted(self._firsts, at, side="right") - 1)
        impossible = np.flatnonzero(~np.array(self._possible)[cell])
        times = np.arange(first // CHECK_EVERY + 1, last // CHECK_EVERY + 1) * CHECK_EVERY
        run = self._running(cell, costs, outcomes, times - first)
        capital = np.empty(0)
        if len(times):
            reading = self._read(times, run.at(slice(0, -1)))
            self._settle(int(times[-1]), run, reading.settled, times)
            capital = reading.total
        self._hold(_plain(run.at(-1)))
        self.decided = last
        if note:
            self._note(run.at(-1))
        return times, capital, (impossible[:1] + first + 1).tolist()

    def _running(
        self, cell: Ints, costs: Floats, outcomes: NDArray[np.bool_] | None, ends: Ints
    ) -> Cells:
        """Cells after each of ``ends`` further requests, and after all of them."""
        n_cells = math.prod(self._shape)
        stretch = np.searchsorted(ends, np.arange(len(cell)), side="right")
        place = stretch * n_cells + cell
        size = (len(ends) + 1) * n_cells

        def summed(which: Ints, before: list[int]) -> Ints:
            gained = np.bincount(which, minlength=size).reshape(len(ends) + 1, n_cells)
            total: Ints = np.cumsum(gained, axis=0) + np.array(before)
            return total.reshape(-1, *self._shape)

        nobody = place[:0]
        return Cells(
            summed(place, self._people),
            summed(nobody if outcomes is None else place, self._told),
            summed(nobody if outcomes is None else place[outcomes], self._positive),
            self._spending(cell, costs, ends).reshape(-1, *self._shape),
        )

    def _spending(self, cell: Ints, costs: Floats, ends: Ints) -> Floats:
        """``(ends + 1, cells)``: sums of costs, added in the same order as by :meth:`count`."""
        spent = np.tile(self._spent, (len(ends) + 1, 1))
        order = np.argsort(cell, kind="stable")
        found, firsts = np.unique(cell[order], return_index=True)
        for c, rows in zip(found.tolist(), np.split(order, firsts[1:]), strict=False):
            paid = np.add.accumulate(np.concatenate((spent[-1:, c], costs[rows])))
            spent[:, c] = paid[np.append(np.searchsorted(rows, ends), len(rows))]
        return spent

    # Betting --------------------------------------------------------------------------------

    def _read(self, times: Ints, cells: Cells) -> Capital:
        """The capital at ``times``; ``cells`` are the counts at these times."""
        begun = [self._base(j, times, cells) for j in range(len(LENGTHS))]
        placed = [cells, *(cells.minus(base) for base in begun)]
        bets = self.odds.log_e(
            Cells._make(np.stack(counts) for counts in zip(*placed, strict=True))
        )
        total, settled = bets[0], np.empty(len(LENGTHS))
        for j, length in enumerate(LENGTHS):
            number = (times - 1) // length + 1.0
            share = bets[j + 1] - np.log(number * (number + 1))
            ends = times % length == 0
            over = np.logaddexp.accumulate(np.concatenate((self._settled[j : j + 1], share[ends])))
            settled[j] = over[-1]
            before = over[np.cumsum(ends) - ends]
            mine = np.logaddexp(np.logaddexp(before, share), -np.log(number + 1))
            total = np.logaddexp(total, mine)
        return Capital(total - math.log(len(bets)), bets, settled)

    def _base(self, j: int, times: Ints, cells: Cells) -> Cells:
        """The cells at the beginning of the bet that is under way at each time."""
        begun = (times - 1) // LENGTHS[j] * LENGTHS[j]
        where = np.searchsorted(times, begun)
        earlier = begun < times[0]
        if earlier.all():
            return Cells._make(counts[None] for counts in self._bases[j])
        axes = (..., *(None,) * len(self._shape))
        found = cells.at(where)
        pairs = zip(self._bases[j], found, strict=True)
        return Cells._make(np.where(earlier[axes], old, new) for old, new in pairs)

    def _settle(self, now: int, cells: Cells, settled: Floats, times: Ints | None = None) -> None:
        """Start new bets in place of those that have ended by ``now``."""
        self._settled = settled
        for j, length in enumerate(LENGTHS):
            begun = now // length * length
            if times is None:
                if begun == now:
                    self._earlier[j], self._bases[j] = self._bases[j], cells
            elif begun >= times[0]:
                self._earlier[j] = self._bases[j]
                if begun - length >= times[0]:
                    self._earlier[j] = cells.at(int(np.searchsorted(times, begun - length)))
                self._bases[j] = cells.at(int(np.searchsorted(times, begun)))

    # What is wrong with the model -----------------------------------------------------------

    def _note(self, now: Cells) -> None:
        """Note that the model is contradicted now, and when the strongest bet against it began."""
        self.contradicted_at = self.decided
        began = [self.since, *self._earlier, *self._bases]
        began = [base for base in began if now.minus(base).people.any()]
        bets = [float(self.odds.log_e(now.minus(base))) for base in began]
        self.since = began[int(np.argmax(bets))]
        self.diagnosis = self._differs(now.minus(self.since))

    def recent(self) -> Cells:
        """The cells from which a revised model is estimated.

        Until the model is contradicted, these are all cells; from then on, those since requests
        began to differ from the model, or since they clearly changed once more.  Such a change is
        seen at the starts of bets only.
        """
        everybody = self.cells.minus(self.since)
        if self.contradicted_at is None:
            return everybody
        later = [base.minus(self.since) for base in (*self._earlier, *self._bases)]
        pairs = [(base, everybody.minus(base)) for base in later]
        splits = [pair for pair in pairs if all(cells.people.sum() > 0 for cells in pair)]
        changes = [self._enough, *(log_change(before, since) for before, since in splits)]
        return [everybody, *(since for _, since in splits)][int(np.argmax(changes))]

    def revised(self) -> Inputs:
        """The model that the requests suggest, see :meth:`recent`."""
        recent = self.recent()
        if not recent.people.sum():
            raise InvalidValueError(
                "no requests to revise the input model from: observe some first"
            )
        levels, edges, kept = self._seen_levels(recent)

        def estimated(part: int, model: InputModel) -> InputModel:
            seen = recent.at(part).at((..., kept))
            # A part of the schedule without requests keeps its model.
            return self._estimated(seen, levels, edges) if seen.people.any() else model

        return self.inputs.mapped(estimated)

    def _estimated(self, seen: Cells, levels: Floats, edges: Floats) -> InputModel:
        """As :meth:`InputModel.estimate` would from the requests themselves."""
        extra = _SMOOTHING / len(levels)
        told = seen.told.any() or self.rows.outcomes is not None
        people = seen.people + extra
        outcomes = (seen.positive + extra / 2) / (seen.told + extra) if told else None
        return InputModel(self.inputs.groups, levels, people / people.sum(), outcomes, edges)

    def _seen_levels(self, recent: Cells) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Mean costs of the levels, their edges, and which levels occur or were in the model."""
        people, spent = (c.sum(axis=(0, 1, 2)) for c in (recent.people, recent.spent))
        edges = np.append(self.rows.edges, math.inf)
        mean = np.divide(spent, people, out=np.append(self.rows.levels, 0.0), where=people > 0)
        kept = np.append(np.ones(len(edges) - 1, bool), people[-1] > 0)
        return np.minimum(mean, edges)[kept], edges[kept], kept

    def _differs(self, recent: Cells) -> str:
        """Return what differs most, in words."""
        part = PARTS[int(np.argmax(self.odds.capital(recent)))]
        if recent.people[..., -1].any():
            part = "costs"
        people = recent.people
        weight = people.sum(axis=(1, 2, 3)) / people.sum()
        expected = np.einsum("p,pgrl->grl", weight, self.rows.probs)
        return DIFFERENCES[part](self, recent, expected)

    # Saving and resuming --------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """JSON-able data; :meth:`resume` takes it."""
        return {
            "decided": self.decided,
            "cells": _plain(self.cells),
            "bases": [_plain(base) for base in self._bases],
            "earlier": [_plain(base) for base in self._earlier],
            "settled": [None if s == -math.inf else s for s in self._settled.tolist()],
            "contradicted_at": self.contradicted_at,
            "since": _plain(self.since),
            "diagnosis": self.diagnosis,
        }

    def resume(self, data: dict[str, Any]) -> None:
        """Go on from what :meth:`state` returned."""
        self._hold(data["cells"])
        self._bases = [self._read_cells(base) for base in data["bases"]]
        self._earlier = [self._read_cells(base) for base in data["earlier"]]
        self._settled = np.array([-math.inf if s is None else s for s in data["settled"]])
        self.decided, self.since = int(data["decided"]), self._read_cells(data["since"])
        self.contradicted_at, self.diagnosis = data["contradicted_at"], str(data["diagnosis"])
        if len(self._people) != math.prod(self._shape) or len(self._bases) != len(LENGTHS):
            raise ValueError("cells of another model")

    def _hold(self, lists: list[list[Any]]) -> None:
        people, told, positive, spent = lists
        self._people, self._told, self._positive = (
            list(map(int, c)) for c in (people, told, positive)
        )
        self._spent = list(map(float, spent))

    def _read_cells(self, lists: list[list[Any]]) -> Cells:
        people, told, positive = (np.array(c, np.int64).reshape(self._shape) for c in lists[:3])
        return Cells(people, told, positive, np.array(lists[3], float).reshape(self._shape))


def _rows(rows: tuple[Any, ...], first: int, last: int | None) -> tuple[Any, Any, Any, Any]:
    groups, proposed, costs, outcomes = rows
    some = slice(first, last)
    told = None if outcomes is None else outcomes[some]
    return groups[some], proposed[some], costs[some], told


def _plain(cells: Cells) -> list[list[Any]]:
    return [counts.reshape(-1).tolist() for counts in cells]
