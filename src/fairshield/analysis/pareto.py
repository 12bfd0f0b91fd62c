r"""``pareto`` computes what each bound costs: the least expected cost by bound and horizon.

For each bound :math:`\kappa` and horizon :math:`T` it computes the value :math:`v_0` of the
cheapest fair shield, without making the shield, and the probability that a window ends unfair if
every proposal is followed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Counts, Group, GroupCount, in_words
from fairshield.base.errors import InfeasibleError, InvalidValueError, shown
from fairshield.base.renamed import Renamed
from fairshield.base.types import Progress
from fairshield.base.words import summary
from fairshield.inputs import Inputs
from fairshield.inputs.arrivals import chance_of_both
from fairshield.policy import Specification
from fairshield.policy.layout import layout_of
from fairshield.spec import Number, Property, exact
from fairshield.synthesis import MOST_STATES, Options, least_cost, make_policy

Floats = NDArray[np.float64]
Factory = Callable[[Fraction], Property]
_NOTHING = 1e-9
"""Expected costs below this count as 0."""
_MOST_ENDS = 20_000_000
"""Final counters of a window up to which the probability of an unfair end is summed."""
_MOST_CARRIED = 200_000_000
"""Cells of all steps up to which the probability of enough people is worked out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    r"""Trade holds what one bound costs over one horizon.

    Attributes
    ----------
    expected_cost
        Of one window under the cheapest fair shield; infinite if no shield is fair.
    overruled
        People it is expected to overrule; ``None`` if that was not worked out.
    unfair_unshielded
        Probability that a window ends unfair without a shield; ``None`` if not worked out.
    exempt
        Probability that the property bounds nothing at the end of a window, with or without a
        shield; ``None`` if not worked out.
    balanced
        Probability that both groups have the :math:`N = \lceil 1/\kappa \rceil` relevant people
        that a Static-BW shield needs in every period, if its welfare bounds are as far apart as
        the bound allows; ``None`` if the property is no difference of rates, the bound is 0, or
        it was not worked out.
    exact
        Whether the cost is exact; of a long window it is an estimate.
    """

    bound: Fraction
    horizon: int
    expected_cost: float
    overruled: float | None
    unfair_unshielded: float | None
    exempt: float | None
    exact: bool
    balanced: float | None = None

    unfair = Renamed("unfair_unshielded")
    cost_per_decision = Renamed("expected_cost_per_decision")

    @property
    def expected_cost_per_decision(self) -> float:
        """Expected cost by the decisions of the window."""
        return self.expected_cost / self.horizon

    @property
    def free(self) -> bool:
        """Whether the expected cost is 0, so that a shield need not intervene."""
        return self.expected_cost <= _NOTHING

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; the bound is exact, as text."""
        cost = self.expected_cost if math.isfinite(self.expected_cost) else None
        return {
            "bound": str(self.bound),
            "horizon": self.horizon,
            "expected_cost": cost,
            "overruled": self.overruled,
            "unfair_without_shield": self.unfair_unshielded,
            "exempt": self.exempt,
            "balanced": self.balanced,
            "exact": self.exact,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Pareto:
    """Pareto holds one :class:`Trade` for each horizon and bound, in order.

    ``kind`` is the property's, ``groups`` are those of the input model.
    """

    kind: str
    groups: tuple[Group, ...]
    rows: tuple[Trade, ...]

    __repr__ = summary

    def __str__(self) -> str:
        lines = [f"{self.kind.replace('-', ' ')}, groups {in_words(self.groups)}"]
        for horizon in self.horizons:
            costs = (f"{row.bound} costs {row.expected_cost:.4g}" for row in self.of(horizon))
            lines.append(f"{horizon:,} decisions: {', '.join(costs)}")
        return "\n".join(lines)

    @property
    def horizons(self) -> tuple[int, ...]:
        """In the order in which they were asked for."""
        return tuple(dict.fromkeys(row.horizon for row in self.rows))

    def of(self, horizon: int) -> tuple[Trade, ...]:
        """The rows of one horizon, by bound."""
        return tuple(row for row in self.rows if row.horizon == horizon)

    def knee(self, horizon: int) -> Trade | None:
        """The bound at which the curve bends most: furthest below the line between its ends.

        A property of the picture: it says where a tighter bound begins to cost more than before,
        not which bound is right.  ``None`` if the curve has no such place.
        """
        rows = [row for row in self.of(horizon) if math.isfinite(row.expected_cost)]
        if len(rows) < 3:
            return None
        x = np.array([float(row.bound) for row in rows])
        y = np.array([row.expected_cost for row in rows])
        reach, height = x[-1] - x[0], y[0] - y[-1]
        if not reach or not height:
            return None
        below = 1 - (x - x[0]) / reach - (y - y[-1]) / height
        if height < 0:
            below = (x - x[0]) / reach - (y - y[0]) / -height
        best = int(below.argmax())
        return rows[best] if below[best] > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        knees = {horizon: self.knee(horizon) for horizon in self.horizons}
        return {
            "property": self.kind,
            "groups": list(self.groups),
            "rows": [row.to_dict() for row in self.rows],
            "knees": [[h, None if knee is None else str(knee.bound)] for h, knee in knees.items()],
        }


def pareto(
    prop: Factory,
    inputs: Inputs,
    *,
    bounds: Iterable[Number],
    horizons: Iterable[int],
    start: Counts | None = None,
    interventions: bool = False,
    progress: Progress | None = None,
) -> Pareto:
    """The least expected cost for each of ``bounds`` and ``horizons``.

    Parameters
    ----------
    prop
        The property by its bound: a class such as ``DemographicParity``, or any function.
    inputs
        What to expect.
    bounds, horizons
        Each with each.
    start
        Counters before the first decision; default: nobody seen.
    interventions
        Whether to compute the expected number of people overruled.  With several costs this takes
        a synthesis and an evaluation for each row; with one cost for everybody it follows from the
        expected cost and is always computed.
    progress
        Called with the share of work done.

    Examples
    --------
    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> found = fs.pareto(fs.DemographicParity, inputs, bounds=["0.1", "0.3", "1"], horizons=[20])
    >>> chances = [round(row.unfair_unshielded, 3) for row in found.rows]
    >>> [(str(r.bound), round(r.expected_cost, 3), p) for r, p in zip(found.rows, chances)]
    [('1/10', 2.587, 0.655), ('3/10', 0.398, 0.19), ('1', 0.0, 0.0)]
    """
    if not callable(prop):
        raise InvalidValueError(
            f"prop makes a property of a bound, as the class DemographicParity does, got "
            f"{shown(prop)}: give its class, and its bounds with bounds="
        )
    for name, given in (("bounds", bounds), ("horizons", horizons)):
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InvalidValueError(
                f"{name} are a collection, as in {name}=[{given!r}], got {shown(given)}"
            )
    wanted = sorted({exact(bound, "bound") for bound in bounds})
    lengths = list(dict.fromkeys(horizons))
    if not wanted or not lengths:
        raise InvalidValueError("no bounds or no horizons: give at least one of each")
    rows: list[Trade] = []
    for horizon in lengths:
        for bound in wanted:
            spec = Specification.of(prop(bound), inputs, horizon=horizon, start=start)
            rows.append(_trade(spec, bound, interventions))
            if progress is not None:
                progress(len(rows) / (len(wanted) * len(lengths)))
    return Pareto(kind=prop(wanted[0]).kind, groups=inputs.groups, rows=tuple(rows))


def _trade(spec: Specification, bound: Fraction, interventions: bool) -> Trade:
    two = len(spec.groups) == 2
    # For three groups or more there is no long policy; synthesis refuses a table that is too large.
    few = not two or layout_of(spec.horizon, spec.labelled).n_states <= MOST_STATES
    if two and few:
        cost = least_cost(spec)
    else:
        try:
            cost = make_policy(spec).expected_cost
        except InfeasibleError:
            cost = math.inf
    return Trade(
        bound=bound,
        horizon=spec.horizon,
        expected_cost=cost,
        overruled=_overruled(spec, cost, interventions and few),
        unfair_unshielded=unfair_unshielded(spec),
        exempt=exempt_share(spec),
        balanced=balanced_share(spec),
        exact=few,
    )


def _overruled(spec: Specification, cost: float, worked_out: bool) -> float | None:
    levels = spec.inputs.table(spec.horizon).levels
    if cost == math.inf:
        return None
    if len(levels) == 1 and levels[0] > 0:
        return float(cost / levels[0])
    if not worked_out:
        return None
    from fairshield.runtime.evaluate import evaluate

    policy = make_policy(spec, Options(method="exact"))
    return float(evaluate(policy).overruled.sum())


# Windows without a shield -------------------------------------------------------------------


def unfair_unshielded(spec: Specification) -> float | None:
    r"""Probability that a window ends unfair if every proposal is followed.

    With requests alike at every step, :math:`n_a` and :math:`n_b` are multinomial and, given
    them, :math:`k_a` and :math:`k_b` are independent binomials, of which those that are fair are
    an interval (:meth:`Property.fair_interval`).  ``None`` where requests change over the window,
    with more than two groups, where decisions are counted instead of people, or where there are
    too many ends to add up.
    """
    if _too_many_ends(spec):
        return None
    prop, cells = spec.prop, _cells(spec)
    share = cells.sum(axis=1)
    rate = np.divide(cells[:, 1], share, out=np.zeros(2), where=share > 0)
    a, b = spec.start.values()
    fair, factorials = 0.0, _factorials(spec.horizon)
    for n_a, n_b, weight in _arrivals(spec, share):
        of_a, of_b = (_binomial(factorials, n, p) for n, p in zip((n_a, n_b), rate, strict=True))
        k_a = np.arange(n_a + 1) + a.accepted
        found = prop.fair_interval(n_a + a.seen, n_b + b.seen, accepted=k_a, along=1)
        if found is None:
            k_b = np.arange(n_b + 1) + b.accepted
            holds = prop.holds_array(
                GroupCount(np.asarray(n_a + a.seen), k_a[:, None]),
                GroupCount(np.asarray(n_b + b.seen), k_b[None]),
            )
            inside = holds @ of_b
        else:
            sums = np.concatenate(([0.0], np.cumsum(of_b)))
            low, high = (np.clip(edge - b.accepted, 0, n_b + 1) for edge in found)
            inside = sums[high] - sums[low]
        fair += weight * float(of_a @ inside)
    return min(max(1.0 - fair, 0.0), 1.0)


def exempt_share(spec: Specification) -> float | None:
    """Probability that so few people come that the property bounds nothing at the horizon.

    The same whatever is decided; ``None`` where :func:`unfair_unshielded` is.
    """
    if _too_many_ends(spec):
        return None
    came = list(_arrivals(spec, _cells(spec).sum(axis=1)))
    n_a, n_b, weight = (np.array(column) for column in zip(*came, strict=True))
    a, b = spec.start.values()
    bound = spec.prop.binds_array(
        GroupCount(n_a + a.seen, a.accepted), GroupCount(n_b + b.seen, b.accepted)
    )
    return float(np.clip(weight[~bound].sum(), 0.0, 1.0))


def balanced_share(spec: Specification) -> float | None:
    """Probability that both groups have enough people in the window for welfare bounds.

    These are as far apart as the bound of a difference of rates; see :attr:`Trade.balanced`.
    """
    difference = spec.prop.difference
    people = spec.prop.counting.of_people and len(spec.groups) == 2
    if difference is None or not difference.bound or not people:
        return None
    least = math.ceil(1 / difference.bound)
    if 2 * least <= spec.horizon and spec.horizon * (least + 1) ** 2 > _MOST_CARRIED:
        return None
    return chance_of_both(spec.inputs, spec.prop.relevant_outcome, spec.horizon, least)


def _too_many_ends(spec: Specification) -> bool:
    horizon = spec.horizon
    pairs = (horizon + 1) * (horizon + 2) // 2 if spec.labelled else horizon + 1
    simple = spec.inputs.steady and len(spec.groups) == 2 and spec.prop.counting.of_people
    return not simple or pairs * (horizon + 1) > _MOST_ENDS


def _cells(spec: Specification) -> Floats:
    """``(groups, proposals)``: probability that the next person is relevant, at every step."""
    table = spec.inputs.table(spec.horizon)
    cells: Floats = (table.probs * table.relevance(spec.prop.counting.outcome))[0].sum(axis=2)
    return cells


def _arrivals(spec: Specification, share: Floats) -> Iterator[tuple[int, int, float]]:
    """Yield numbers of relevant people of both groups, and the probability of these numbers."""
    horizon, factorials = spec.horizon, _factorials(spec.horizon)
    for n_a in range(horizon + 1):
        for n_b in range(0 if spec.labelled else horizon - n_a, horizon - n_a + 1):
            weight = _multinomial(factorials, (n_a, n_b, horizon - n_a - n_b), share)
            if weight > 0.0:
                yield n_a, n_b, weight


def _factorials(horizon: int) -> Floats:
    """Logarithms of the factorials up to that of ``horizon``."""
    return np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, horizon + 1)))))


def _multinomial(factorials: Floats, counts: tuple[int, ...], share: Floats) -> float:
    """Probability of these numbers of people, the last being those who do not count."""
    chances = (*share.tolist(), max(1.0 - float(share.sum()), 0.0))
    logarithm = float(factorials[sum(counts)])
    for n, p in zip(counts, chances, strict=True):
        if n:
            # Where everybody is relevant, rounding may leave a tiny probability of others.
            if p <= 1e-15:
                return 0.0
            logarithm += n * math.log(p) - float(factorials[n])
    return math.exp(logarithm)


def _binomial(factorials: Floats, n: int, p: float) -> Floats:
    """``(n + 1,)``: probability of each number of acceptances."""
    k = np.arange(n + 1)
    if p <= 0.0 or p >= 1.0:
        return np.asarray(k == (n if p >= 1.0 else 0), np.float64)
    logarithms = factorials[n] - factorials[k] - factorials[n - k]
    return np.asarray(np.exp(logarithms + k * math.log(p) + (n - k) * math.log1p(-p)))
