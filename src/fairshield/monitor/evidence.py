r"""How strongly the requests seen speak against an input model: a bet against it, round by round.

A request is a group, a proposal in it, a cost level, and perhaps an outcome.  Each of these four
*parts* has a bet of its own.  It predicts the next value from the values before it, by the rule of
Krichevsky and Trofimov: of d values, the one seen :math:`n_j` times out of n has the probability
:math:`(n_j + 1/2)/(n + d/2)`; and it is paid that over the model's own.  If the model is right,
the payment is 1 on average whatever happened before, so the capital

.. math::
    e = \prod_{i \le n} \frac{q_i(x_i)}{\theta_i(x_i)}, \qquad
    \prod_{i \le n} q_i(x_i) = \frac{\Gamma(d/2)}{\Gamma(n + d/2)}
    \prod_{j \le d} \frac{\Gamma(n_j + 1/2)}{\Gamma(1/2)}

is a martingale that begins at 1.  Half of the capital of each part is not put at stake: the
product of the :math:`(1 + e)/2` is the average over all choices of the parts that have changed.
Bets on proposals are kept by group, bets on costs by group and proposal, bets on outcomes by
group, proposal and cost level.

A change may come late, and requests from before it would hide it.  So a bet is placed over the
whole stream, and others begin anew every 512, 4,096 and 32,768 requests.  Each of the four has a
quarter of the capital; the b-th of those that begin anew has :math:`1/(b(b+1))` of its share, of
which all together make 1.  The total :math:`E_t` is again a martingale that begins at 1 (where the
model thinks some values impossible, a supermartingale: bets on them are lost), and by Ville's
inequality a right model is ever contradicted, :math:`E_t \ge 1/\alpha` at some time, with
probability at most :math:`\alpha`.

Only counts by cell are kept.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairshield.errors import InvalidValueError
from fairshield.inputs import InputModel, InputSchedule, InputTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Inputs = InputModel | InputSchedule

CHECK_EVERY = 64
"""Requests between two looks at the capital; fewer looks never make it less trustworthy."""
LENGTHS = (512, 4096, 32768)
"""After how many requests bets begin anew; multiples of :data:`CHECK_EVERY`."""
PARTS = ("groups", "proposals", "costs", "outcomes")
_IMPOSSIBLE = -1e300
_SMOOTHING = 1.0
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


class Cells(NamedTuple):
    """People by schedule part, group, proposal and cost level, the last being above the model's.

    ``told`` are those with a known outcome, ``positive`` those of them with outcome 1.  Each is
    ``(..., parts, groups, 2, levels + 1)``.
    """

    people: Ints
    told: Ints
    positive: Ints

    def minus(self, earlier: Cells) -> Cells:
        """What came since."""
        return Cells(*(now - then for now, then in zip(self, earlier, strict=True)))

    def at(self, where: Any) -> Cells:
        """Some of many."""
        return Cells(*(counts[where] for counts in self))


class Reading(NamedTuple):
    """The logarithm of the capital at some times, and which bets it is made of.

    ``total`` is ``(times,)``; ``bets`` ``(bets, times)``: the bet over the whole stream first;
    ``settled`` ``(lengths,)``: the bets of each length that are over, after the last time.
    """

    total: Floats
    bets: Floats
    settled: Floats


class Odds:
    """Logarithms of a model's probabilities, part by part."""

    def __init__(self, table: InputTable) -> None:
        probs = table.probs
        by_proposal, by_group = probs.sum(axis=3), probs.sum(axis=(2, 3))
        self.groups = _logs(by_group / by_group.sum(axis=1, keepdims=True))
        self.proposals = _logs(_conditional(by_proposal, by_group[..., None]))
        self.costs = _logs(_conditional(probs, by_proposal[..., None]))
        given = table.outcomes
        self.outcomes = None if given is None else (_logs(given), _logs(1.0 - given))

    def capital(self, cells: Cells) -> Floats:
        """``(4, ...)``: the logarithm of the capital of each part."""
        people, told, positive = (counts[..., :-1] for counts in cells)  # within the levels
        # A cost above all levels says as much of the group and the proposal as any other.
        anyone = cells.people.sum(axis=-1)
        proposals = anyone.sum(axis=-3)
        bets = [proposals.sum(axis=-1), proposals, people.sum(axis=-4)]
        stakes = [
            _weighed(anyone.sum(axis=-1), self.groups),
            _weighed(anyone, self.proposals),
            _weighed(people, self.costs),
        ]
        if self.outcomes is not None:
            negative = told - positive
            bets.append(np.stack((positive.sum(axis=-4), negative.sum(axis=-4)), axis=-1))
            of_yes, of_no = self.outcomes
            stakes.append(_weighed(positive, of_yes) + _weighed(negative, of_no))
        won = [mine - theirs for mine, theirs in zip(_predicted(bets), stakes, strict=True)]
        return np.stack([*won, *([np.zeros_like(won[0])] * (len(PARTS) - len(won)))])

    def log_e(self, cells: Cells) -> Floats:
        """The logarithm of the product of ``(1 + e)/2`` over the parts."""
        hedged: Floats = np.logaddexp(0.0, self.capital(cells)) - math.log(2.0)
        capped: Floats = np.minimum(hedged.sum(axis=0), -_IMPOSSIBLE)
        return capped


class Watch:
    """Counts requests, and bets that they do not follow a model.

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
        models = inputs.parts if isinstance(inputs, InputSchedule) else ((inputs, 1),)
        steps = [n for _, n in models]
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
        self.spent = [0.0] * self._width
        possible: NDArray[np.bool_] = np.zeros(self._shape, np.bool_)
        possible[..., :-1] = rows.probs > 0.0
        self._possible: list[bool] = possible.reshape(-1).tolist()
        self.decided = 0
        self._bases = [self.cells for _ in LENGTHS]
        self._settled = np.full(len(LENGTHS), -math.inf)
        self.contradicted_at: int | None = None
        self.since, self.diagnosis = self.cells, ""

    @property
    def cells(self) -> Cells:
        """Everybody counted so far."""
        lists = (self._people, self._told, self._positive)
        return Cells(*(np.array(counts, np.int64).reshape(self._shape) for counts in lists))

    # One at a time --------------------------------------------------------------------------

    def count(self, group: int, proposed: bool, cost: float, outcome: bool | None) -> bool:
        """Count one request; whether the model thought it possible."""
        cell: int = (group * 2 + proposed) * self._width + bisect_left(self._edges, cost)
        if len(self._firsts) > 1:
            at = self.decided if self.size is None else self.decided % self.size
            cell += self._block * (bisect_left(self._firsts, at + 1) - 1)
        self._people[cell] += 1
        self.spent[cell % self._width] += cost
        if outcome is not None:
            self._told[cell] += 1
            self._positive[cell] += outcome
        self.decided += 1
        return self._possible[cell]

    def check(self, possible: bool = True) -> float | None:
        """The logarithm of the capital, if the model is contradicted now and was not before."""
        now, reading, capital = self.cells, None, -math.inf
        if self.decided % CHECK_EVERY == 0:
            reading = self._read(np.array([self.decided]), Cells(*(c[None] for c in now)))
            capital = float(reading.total[0])
        if not possible:
            capital = math.inf
        news = self.contradicted_at is None and capital >= self._enough
        if news:
            self._note(now, self._bases)
        if reading is not None:
            self._settle(self.decided, now, reading.settled)
        return capital if news else None

    def look(self) -> float:
        """The logarithm of the capital now, without settling anything."""
        cells = Cells(*(c[None] for c in self.cells))
        # As of the next request: bets that end with the last one are settled.
        return float(self._read(np.array([self.decided + 1]), cells).total[0])

    # Many at once ---------------------------------------------------------------------------

    def count_many(
        self,
        groups: Ints,
        proposed: NDArray[np.bool_],
        costs: Floats,
        outcomes: NDArray[np.bool_] | None,
    ) -> tuple[int, float] | None:
        """Count requests; when they contradicted the model, and the logarithm of the capital."""
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
        # Once in the life of a watch: go back, and stop where it was contradicted.
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
        """Times of checks, the logarithm of the capital then, and the first impossible request.

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
        run = self._running(cell, outcomes, times - first)
        capital, bases = np.empty(0), None
        if len(times):
            checked = run.at(slice(0, -1))
            if note and times[-1] == last:
                bases = [self._base(j, times, checked).at(-1) for j in range(len(LENGTHS))]
            reading = self._read(times, checked)
            self._settle(int(times[-1]), run, reading.settled, times)
            capital = reading.total
        self._people, self._told, self._positive = (c[-1].reshape(-1).tolist() for c in run)
        # Added one after the other, as one at a time would.
        for level in np.unique(levels).tolist():
            paid = np.concatenate(([self.spent[level]], costs[levels == level]))
            self.spent[level] = float(np.add.accumulate(paid)[-1])
        self.decided = last
        if note:
            self._note(run.at(-1), bases or self._bases)
        return times, capital, (impossible[:1] + first + 1).tolist()

    def _running(self, cell: Ints, outcomes: NDArray[np.bool_] | None, ends: Ints) -> Cells:
        """Counters after ``ends`` further requests each, and after all."""
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
        )

    # Betting --------------------------------------------------------------------------------

    def _read(self, times: Ints, cells: Cells) -> Reading:
        """The capital at some times, the cells being those of the same times."""
        begun = [self._base(j, times, cells) for j in range(len(LENGTHS))]
        placed = [cells, *(cells.minus(base) for base in begun)]
        bets = self.odds.log_e(Cells(*(np.stack(counts) for counts in zip(*placed, strict=True))))
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
        return Reading(total - math.log(len(bets)), bets, settled)

    def _base(self, j: int, times: Ints, cells: Cells) -> Cells:
        """The cells when the bet of each time began."""
        begun = (times - 1) // LENGTHS[j] * LENGTHS[j]
        where = np.searchsorted(times, begun)
        earlier = begun < times[0]
        if earlier.all():
            return Cells(*(counts[None] for counts in self._bases[j]))
        axes = (..., *(None,) * len(self._shape))
        found = cells.at(where)
        pairs = zip(self._bases[j], found, strict=True)
        return Cells(*(np.where(earlier[axes], old, new) for old, new in pairs))

    def _settle(self, now: int, cells: Cells, settled: Floats, times: Ints | None = None) -> None:
        """Begin the bets anew that are over."""
        self._settled = settled
        for j, length in enumerate(LENGTHS):
            begun = now // length * length
            if times is None:
                if begun == now:
                    self._bases[j] = cells
            elif begun >= times[0]:
                self._bases[j] = cells.at(int(np.searchsorted(times, begun)))

    # What is wrong with the model -----------------------------------------------------------

    def _note(self, now: Cells, bases: list[Cells]) -> None:
        """Note when, and since when requests differ: where the strongest bet began."""
        self.contradicted_at = self.decided
        began = [Cells(*(np.zeros_like(c) for c in now)), *bases]
        bets = [float(self.odds.log_e(now.minus(base))) for base in began]
        self.since = began[int(np.argmax(bets))]
        self.diagnosis = self._differs(now.minus(self.since))

    def recent(self) -> Cells:
        """The cells that a revised model rests on."""
        return self.cells.minus(self.since)

    def revised(self) -> Inputs:
        """The model that the requests suggest: those since they began to differ, or all."""
        recent = self.recent()
        if not recent.people.sum():
            raise InvalidValueError(
                "no requests to revise the input model from: observe some first"
            )
        levels, edges, kept = self._seen_levels()
        models = (
            self.inputs.parts if isinstance(self.inputs, InputSchedule) else ((self.inputs, 0),)
        )
        parts = []
        for i, (model, steps) in enumerate(models):
            seen = recent.at(i).at((..., kept))
            # Of a part of the schedule that did not come nothing is known but what was expected.
            known = self._estimated(seen, levels, edges) if seen.people.any() else model
            parts.append((known, steps))
        return parts[0][0] if isinstance(self.inputs, InputModel) else InputSchedule(parts)

    def _estimated(self, seen: Cells, levels: Floats, edges: Floats) -> InputModel:
        """As :meth:`InputModel.estimate` would from the requests themselves."""
        extra = _SMOOTHING / len(levels)
        told = seen.told.any() or self.rows.outcomes is not None
        people = seen.people + extra
        outcomes = (seen.positive + extra / 2) / (seen.told + extra) if told else None
        return InputModel(self.inputs.groups, levels, people / people.sum(), outcomes, edges)

    def _seen_levels(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Mean costs, their edges, and which levels there are."""
        people = self.cells.people.sum(axis=(0, 1, 2))
        edges = np.append(self.rows.edges, math.inf)
        mean = np.divide(self.spent, people, out=np.append(self.rows.levels, 0.0), where=people > 0)
        kept = np.append(np.ones(len(edges) - 1, bool), people[-1] > 0)
        return np.minimum(mean, edges)[kept], edges[kept], kept

    def _differs(self, recent: Cells) -> str:
        """What differs most, in words."""
        part = PARTS[int(np.argmax(self.odds.capital(recent)))]
        if recent.people[..., -1].any():
            part = "costs"
        people = recent.people
        weight = people.sum(axis=(1, 2, 3)) / people.sum()
        expected = np.einsum("p,pgrl->grl", weight, self.rows.probs)
        return _DIFFERENCES[part](self, recent, expected)

    # Where it stands ------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """JSON-able data; :meth:`resume` takes it."""
        return {
            "decided": self.decided,
            "cells": _plain(self.cells),
            "spent": list(self.spent),
            "bases": [_plain(base) for base in self._bases],
            "settled": [None if s == -math.inf else s for s in self._settled.tolist()],
            "contradicted_at": self.contradicted_at,
            "since": _plain(self.since),
            "diagnosis": self.diagnosis,
        }

    def resume(self, data: dict[str, Any]) -> None:
        """Go on from what :meth:`state` returned."""
        self._people, self._told, self._positive = ([int(n) for n in c] for c in data["cells"])
        self.spent = [float(s) for s in data["spent"]]
        self._bases = [self._read_cells(base) for base in data["bases"]]
        self._settled = np.array([-math.inf if s is None else s for s in data["settled"]])
        self.decided, self.since = int(data["decided"]), self._read_cells(data["since"])
        self.contradicted_at, self.diagnosis = data["contradicted_at"], str(data["diagnosis"])
        if len(self._people) != math.prod(self._shape) or len(self._bases) != len(LENGTHS):
            raise ValueError("cells of another model")

    def _read_cells(self, lists: list[list[int]]) -> Cells:
        return Cells(*(np.array(counts, np.int64).reshape(self._shape) for counts in lists))


def _rows(rows: tuple[Any, ...], first: int, last: int | None) -> tuple[Any, Any, Any, Any]:
    groups, proposed, costs, outcomes = rows
    some = slice(first, last)
    told = None if outcomes is None else outcomes[some]
    return groups[some], proposed[some], costs[some], told


def _plain(cells: Cells) -> list[list[int]]:
    return [counts.reshape(-1).tolist() for counts in cells]


# Words --------------------------------------------------------------------------------------


def _groups_differ(watch: Watch, recent: Cells, expected: Floats) -> str:
    seen, said = recent.people.sum(axis=(0, 2, 3)), expected.sum(axis=(1, 2))
    shares = seen / seen.sum()
    g = int(np.argmax(np.abs(shares - said)))
    name = watch.inputs.groups[g]
    return f"group {name} is {shares[g]:.3g} of requests, the model says {said[g]:.3g}"


def _proposals_differ(watch: Watch, recent: Cells, expected: Floats) -> str:
    seen, said = recent.people.sum(axis=(0, 3)), expected.sum(axis=2)
    rates, model = _share(seen[:, 1], seen.sum(axis=1)), _share(said[:, 1], said.sum(axis=1))
    g = int(np.argmax(np.abs(rates - model)))
    return (
        f"{rates[g]:.3g} of group {watch.inputs.groups[g]} are proposed to be accepted, the model "
        f"says {model[g]:.3g}"
    )


def _costs_differ(watch: Watch, recent: Cells, expected: Floats) -> str:
    seen = recent.people.sum(axis=(0, 1, 2))
    shares, said = seen / seen.sum(), np.append(expected.sum(axis=(0, 1)), 0.0)
    level = len(seen) - 1 if seen[-1] else int(np.argmax(np.abs(shares - said)))
    edges = [0.0, *watch.rows.edges.tolist(), math.inf]
    most = "" if edges[level + 1] == math.inf else f" to {edges[level + 1]:.3g}"
    between = f"from {edges[level]:.3g}{most}" if edges[level] or not most else f"up{most}"
    return f"{shares[level]:.3g} of requests cost {between}, the model says {said[level]:.3g}"


def _outcomes_differ(watch: Watch, recent: Cells, expected: Floats) -> str:
    assert watch.rows.outcomes is not None
    told = recent.told[..., :-1]
    seen = recent.positive[..., :-1].sum(axis=(0, 2, 3))
    model = (told * watch.rows.outcomes).sum(axis=(0, 2, 3))
    people = told.sum(axis=(0, 2, 3))
    rates, said = _share(seen, people), _share(model, people)
    g = int(np.argmax(np.abs(rates - said)))
    return (
        f"{rates[g]:.3g} of group {watch.inputs.groups[g]} have outcome 1, the model says "
        f"{said[g]:.3g}"
    )


_DIFFERENCES = {
    "groups": _groups_differ,
    "proposals": _proposals_differ,
    "costs": _costs_differ,
    "outcomes": _outcomes_differ,
}


def _share(part: Any, whole: Any) -> Floats:
    share: Floats = part / np.maximum(whole, 1e-300)
    return share


# Numbers ------------------------------------------------------------------------------------


def _conditional(joint: Floats, given: Floats) -> Floats:
    """Probabilities given what came before; any will do for what does not happen."""
    even = np.full(joint.shape, 1.0 / joint.shape[-1])
    happens = np.broadcast_to(given, joint.shape) > 0.0
    found: Floats = np.divide(joint, given, out=even, where=happens)
    return found


def _logs(probs: Floats) -> Floats:
    # A finite number, because 0 times infinity is no number.
    logs: Floats = np.log(probs, out=np.full(probs.shape, _IMPOSSIBLE), where=probs > 0.0)
    return logs


def _weighed(counts: Ints, logs: Floats) -> Floats:
    """The log-likelihood of counts, whose last axes are those of ``logs``."""
    total: Floats = (counts * logs).sum(axis=tuple(range(-logs.ndim, 0)))
    return total


def _predicted(bets: list[Ints]) -> list[Floats]:
    """The logarithms of what Krichevsky and Trofimov predict for several counts.

    Values run along the last axis of each, times and the like along the first ones, which all
    have in common with the counts of groups; what lies between are bets that are won together.
    """
    shape, pieces = bets[0].shape[:-1], []
    for counts in bets:
        pieces.append(counts.reshape(*shape, -1) + 0.5)
        pieces.append(counts.sum(axis=-1).reshape(*shape, -1) + counts.shape[-1] / 2)
    ends = np.cumsum([piece.shape[-1] for piece in pieces])[:-1]
    logs = np.split(log_gamma(np.concatenate(pieces, axis=-1)), ends, axis=-1)
    found = []
    for counts, each, whole in zip(bets, logs[::2], logs[1::2], strict=True):
        d = counts.shape[-1]
        nobody = math.lgamma(d / 2) - d * math.lgamma(0.5)
        found.append(each.sum(axis=-1) - whole.sum(axis=-1) + whole.shape[-1] * nobody)
    return found


def log_gamma(x: NDArray[Any]) -> Floats:
    """The logarithm of the gamma function of positive numbers: Stirling's series, eight on.

    >>> bool(np.isclose(log_gamma(np.array([0.5]))[0], math.lgamma(0.5), atol=1e-12))
    True
    """
    y = x + 8.0
    steps = x * (x + 1) * (x + 2) * (x + 3) * (x + 4) * (x + 5) * (x + 6) * (x + 7)
    inverse = 1.0 / (y * y)
    series = _STIRLING[4] + np.zeros_like(y)
    for term in _STIRLING[3::-1]:
        series = series * inverse + term
    half_log_of_2_pi = 0.5 * math.log(2 * math.pi)
    result: Floats = (y - 0.5) * np.log(y) - y + half_log_of_2_pi + series / y - np.log(steps)
    return result
