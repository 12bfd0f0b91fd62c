"""compare decides the same runs with every periodic shield: how fair, at what cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import Counts, is_whole
from fairshield.base.errors import InfeasibleError, InvalidValueError, MemoryLimitError
from fairshield.base.plain import plain_number, with_keys
from fairshield.base.renamed import Renamed
from fairshield.inputs import Inputs
from fairshield.periodic.cumulative import MOST_TOLD, NOBODY, Compared, compared_kinds
from fairshield.periodic.policy import PeriodicPolicy
from fairshield.periodic.runs import Outcome, Streams, decide_runs, unshielded
from fairshield.spec import Property

Progress = Callable[..., None]
Floats = NDArray[np.float64]
_Z = 1.959963984540054
"""Normal quantile of the 95 % intervals."""

_PLAIN = {"paid": "cost", "paid_by_period": "cost_by_period", "mean_largest_bias": "worst_bias"}


@dataclass(frozen=True)
class Mean:
    """Mean is a mean over runs and its standard error, which one run does not have."""

    value: float
    error: float | None

    @staticmethod
    def of(values: NDArray[Any]) -> Mean:
        """Return the mean of one number per run."""
        n = len(values)
        error = float(values.std(ddof=1) / math.sqrt(n)) if n > 1 else None
        return Mean(float(values.mean()), error)


@dataclass(frozen=True)
class Share:
    """Share is a share of runs and its 95 % interval (Wilson's, which is valid at 0 and 1)."""

    value: float
    low: float
    high: float

    @staticmethod
    def of(flags: NDArray[Any]) -> Share:
        """Return the share of runs all of whose periods have the flag: ``(runs, periods)``."""
        n, p = len(flags), float(np.all(flags, axis=1).mean())
        centre, width = (p + _Z**2 / (2 * n)), _Z * math.sqrt(p * (1 - p) / n + (_Z / (2 * n)) ** 2)
        scale = 1 + _Z**2 / n
        # At 0 and 1 one end of Wilson's interval equals the share; rounding must not separate them.
        return Share(p, min((centre - width) / scale, p), max((centre + width) / scale, p))


@dataclass(frozen=True)
class Row:
    """Row holds the results of one shield on all runs.

    Attributes
    ----------
    fair
        Share of runs that were fair at the end of every period.
    condition, promise
        Share of runs in which every period met the theorem's condition; without a condition the
        promise says why: ``"none needed"``, ``"no theorem"``, ``"no shield"``.
    condition_expected
        Probability that a run is one of these, if people come as the input model says; ``None``
        without a condition, if what is decided matters to it, or where a period is so long that it
        takes more than a moment.
    overruled
        People overruled in a run.
    paid, paid_by_period
        What overruling cost in a run, and in each of its periods.
    dearest_period
        The most that a period is expected to cost, whatever came before; ``None`` without a shield,
        or where nothing is known of single periods.
    dearest_is_known
        Whether that is the most there is; otherwise it is the most that was found after the
        :meth:`~fairshield.periodic.Streams.adverse` histories.
    mean_largest_bias, largest_bias
        The largest bias at the end of a period: mean over runs, and the largest of all.
    overruled_at
        People overruled in all runs, by position in the period.
    """

    name: str
    fair: Share
    condition: Share | None
    promise: str
    overruled: Mean
    paid: Mean
    paid_by_period: tuple[Mean, ...]
    dearest_period: float | None
    dearest_is_known: bool
    mean_largest_bias: Mean
    largest_bias: float
    overruled_at: tuple[int, ...]
    condition_expected: float | None = None

    cost = Renamed("paid")
    cost_by_period = Renamed("paid_by_period")
    worst_bias = Renamed("mean_largest_bias")

    @staticmethod
    def of(
        name: str,
        promise: str,
        outcome: Outcome,
        *,
        expected: float | None = None,
        dearest: float | None = None,
        known: bool = False,
    ) -> Row:
        """Return the figures of an outcome.

        ``expected`` is :attr:`condition_expected`, ``dearest`` :attr:`dearest_period` and ``known``
        :attr:`dearest_is_known`.
        """
        met, largest = outcome.condition_met, outcome.bias.max(axis=1)
        return Row(
            name,
            Share.of(outcome.fair),
            None if met is None else Share.of(met),
            promise,
            Mean.of(outcome.overruled.sum(axis=1)),
            Mean.of(outcome.paid.sum(axis=1)),
            tuple(Mean.of(paid) for paid in outcome.paid.T),
            dearest,
            known,
            Mean.of(largest),
            float(largest.max()),
            tuple(outcome.overruled.reshape(-1, outcome.length).sum(axis=0).tolist()),
            expected,
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data; what was paid is called ``cost`` there, the mean bias ``worst_bias``."""
        plain = {**asdict(self), "largest_bias": plain_number(self.largest_bias)}
        return with_keys(plain, _PLAIN)


@dataclass(frozen=True)
class PeriodicComparison:
    """PeriodicComparison holds what :func:`compare` found.

    Attributes
    ----------
    rows
        No shield first, then the shields.
    left_out
        Shields that could not take part, and why.
    length, periods, runs
        Decisions in a period, periods in a run, and runs.
    exempt, exempt_runs
        Ends of periods at which the property bound nothing, of all runs; and runs of which it
        bound no end.  Who came decides that, so that they are the same for all shields.
    """

    prop: str
    limit: float
    length: int
    periods: int
    runs: int
    rows: tuple[Row, ...]
    left_out: Mapping[str, str]
    exempt: int
    exempt_runs: int

    period = Renamed("length")
    exempt_ends = Renamed("exempt")

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        return {
            "property": self.prop,
            "limit": self.limit,
            "period": self.length,
            "periods": self.periods,
            "runs": self.runs,
            "exempt_ends": self.exempt,
            "exempt_runs": self.exempt_runs,
            "shields": [row.to_dict() for row in self.rows],
            "left_out": dict(self.left_out),
        }


def make_policies(
    prop: Property,
    inputs: Inputs,
    *,
    period: int,
    periods: int,
    kinds: tuple[str, ...] | None = None,
    start: Counts | None = None,
    **options: Any,
) -> dict[str, PeriodicPolicy]:
    """Periodic policies by kind; by default all that ``prop`` allows.

    ``options`` are those of any kinds, such as ``lookahead`` and ``bounds``; each policy gets those
    that its kind has.
    """
    if not is_whole(periods) or periods < 1:
        raise InvalidValueError(f"periods must be a whole number of at least 1, got {periods!r}")
    offered = compared_kinds()
    takes = dict.fromkeys(name for one in offered.values() for name in one.kind.option_names())
    for name in options:
        if name not in takes:
            raise InvalidValueError(f"unknown option {name!r}: choose from {', '.join(takes)}")
    if kinds is None:
        kinds = tuple(
            name for name, one in offered.items()
            if not one.variant and one.kind.compared_by_default(prop)
        )  # fmt: skip
    for i, kind in enumerate(kinds):
        if kind not in offered or kind in kinds[:i]:
            what = "repeated" if kind in offered else "unknown"
            raise InvalidValueError(f"{what} kind {kind!r}: choose from {', '.join(offered)}")
    options["periods"] = periods
    return {
        kind: _made(offered[kind], prop, inputs, period, start or NOBODY, options) for kind in kinds
    }


def _made(
    what: Compared, prop: Property, inputs: Inputs, period: int, start: Counts,
    options: Mapping[str, Any],
) -> PeriodicPolicy:  # fmt: skip
    own = {name: options[name] for name in what.kind.option_names() if name in options}
    return what.kind(prop, inputs, period, start=start, **{**own, **what.options})


def _dearest(policy: PeriodicPolicy, adverse: Streams) -> float | None:
    """The most that a period is expected to cost after one of these histories."""
    expected = decide_runs(policy, adverse, expected=True).expected
    assert expected is not None  # it was asked for
    return None if np.isnan(expected).any() else float(expected.max())


def _promise(policy: PeriodicPolicy) -> str:
    if policy.unconditional:
        return "none needed"
    return "no theorem" if policy.condition is None else "conditional"


def _expected(policy: PeriodicPolicy, periods: int) -> float | None:
    if policy.condition is None or policy.length > MOST_TOLD:
        return None
    return policy.condition.probability(policy.inputs, policy.length, periods)


def compare(
    policies: Mapping[str, PeriodicPolicy], streams: Streams, *, progress: Progress | None = None
) -> PeriodicComparison:
    """Decide the same runs with every policy.

    ``progress`` is called with the share of work done and what is being done.
    """
    if not policies:
        raise InvalidValueError("no shields to compare: name at least one")
    first = next(iter(policies.values()))
    free = unshielded(first, streams)
    rows, left_out = [Row.of("no shield", "no shield", free)], {}
    periods = streams.length // first.length
    adverse = Streams.adverse(first.inputs, period=first.length, periods=periods)
    for i, (name, policy) in enumerate(policies.items()):

        def report(share: float, i: int = i, name: str = name) -> None:
            if progress is not None:
                progress((i + share) / len(policies), name)

        report(0.0)
        try:
            outcome = decide_runs(policy, streams, progress=report)
            known = policy.worst_period_cost
            rows.append(
                Row.of(
                    name, _promise(policy), outcome, expected=_expected(policy, periods),
                    dearest=_dearest(policy, adverse) if known is None else known,
                    known=known is not None,
                )
            )  # fmt: skip
        except (InfeasibleError, MemoryLimitError) as error:
            left_out[name] = str(error)
    return PeriodicComparison(
        prop=str(first.prop),
        limit=first.prop.limit,
        length=first.length,
        periods=periods,
        runs=streams.n_runs,
        rows=tuple(rows),
        left_out=left_out,
        exempt=int((~free.bound).sum()),
        exempt_runs=int((~free.bound).all(axis=1).sum()),
    )
