"""All periodic shields on the same runs: how fair, under which conditions, at what cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.counts import Counts, is_whole
from fairshield.errors import InfeasibleError, InvalidValueError, MemoryLimitError
from fairshield.inputs import InputModel, InputSchedule
from fairshield.periodic.dynamic import Dynamic
from fairshield.periodic.exact import ExactPeriodic
from fairshield.periodic.perpetual import Perpetual
from fairshield.periodic.policy import NOBODY, PeriodicPolicy
from fairshield.periodic.runs import Outcome, Streams, decide_runs, unshielded
from fairshield.periodic.static import StaticBounded, StaticFair
from fairshield.runtime.report import plain_number
from fairshield.spec import DifferenceOfRates, Property

Inputs = InputModel | InputSchedule
Progress = Callable[..., None]
Floats = NDArray[np.float64]
_Z = 1.959963984540054
"""Normal quantile of the 95 % intervals."""

KINDS = ("static-fair", "static-bounded", "dynamic", "exact", "perpetual")


@dataclass(frozen=True)
class Mean:
    """A mean over runs and its standard error, which one run does not have."""

    value: float
    error: float | None

    @staticmethod
    def of(values: NDArray[Any]) -> Mean:
        """Of one number per run."""
        n = len(values)
        error = float(values.std(ddof=1) / math.sqrt(n)) if n > 1 else None
        return Mean(float(values.mean()), error)


@dataclass(frozen=True)
class Share:
    """A share of runs and its 95 % interval (Wilson's, which is honest at 0 and 1)."""

    value: float
    low: float
    high: float

    @staticmethod
    def of(flags: NDArray[Any]) -> Share:
        """Of runs all of whose periods have the flag: ``(runs, periods)``."""
        n, p = len(flags), float(np.all(flags, axis=1).mean())
        centre, width = (p + _Z**2 / (2 * n)), _Z * math.sqrt(p * (1 - p) / n + (_Z / (2 * n)) ** 2)
        scale = 1 + _Z**2 / n
        # At 0 and 1 an end of the interval is the share itself, up to rounding.
        return Share(p, min((centre - width) / scale, p), max((centre + width) / scale, p))


@dataclass(frozen=True)
class Row:
    """One shield on all runs.

    Attributes
    ----------
    fair
        Share of runs that were fair at the end of every period.
    condition, promise
        Share of runs in which every period met the theorem's condition; without a condition the
        promise says why: ``"none needed"``, ``"no theorem"``, ``"no shield"``.
    overruled
        People overruled in a run.
    cost, cost_by_period
        Of a run, and of each of its periods.
    worst_bias, largest_bias
        The largest bias at the end of a period: mean over runs, and the largest of all.
    overruled_at
        People overruled in all runs, by position in the period.
    """

    name: str
    fair: Share
    condition: Share | None
    promise: str
    overruled: Mean
    cost: Mean
    cost_by_period: tuple[Mean, ...]
    worst_bias: Mean
    largest_bias: float
    overruled_at: tuple[int, ...]

    @staticmethod
    def of(name: str, promise: str, outcome: Outcome) -> Row:
        """The figures of an outcome."""
        met, worst = outcome.condition_met, outcome.bias.max(axis=1)
        return Row(
            name,
            Share.of(outcome.fair),
            None if met is None else Share.of(met),
            promise,
            Mean.of(outcome.overruled.sum(axis=1)),
            Mean.of(outcome.costs.sum(axis=1)),
            tuple(Mean.of(costs) for costs in outcome.costs.T),
            Mean.of(worst),
            float(worst.max()),
            tuple(outcome.overruled.reshape(-1, outcome.period).sum(axis=0).tolist()),
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        return {**asdict(self), "largest_bias": plain_number(self.largest_bias)}


@dataclass(frozen=True)
class PeriodicComparison:
    """What :func:`compare` found.

    Attributes
    ----------
    rows
        No shield first, then the shields.
    left_out
        Shields that could not take part, and why.
    exempt_ends, exempt_runs
        Ends of periods at which the property bound nothing, of all runs; and runs of which it
        bound no end.  Who came decides that, so that they are the same for all shields.
    """

    prop: str
    limit: float
    period: int
    periods: int
    runs: int
    rows: tuple[Row, ...]
    left_out: Mapping[str, str]
    exempt_ends: int
    exempt_runs: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-able data."""
        return {
            "property": self.prop,
            "limit": self.limit,
            "period": self.period,
            "periods": self.periods,
            "runs": self.runs,
            "exempt_ends": self.exempt_ends,
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
    lookahead: int = 2,
    bounds: Any = "centred",
    start: Counts | None = None,
) -> dict[str, PeriodicPolicy]:
    """Periodic policies by kind; by default all that ``prop`` allows."""
    if not is_whole(periods) or periods < 1:
        raise InvalidValueError(f"periods must be a whole number of at least 1, got {periods!r}")
    common: dict[str, Any] = {
        "prop": prop, "inputs": inputs, "period": period, "start": start or NOBODY
    }  # fmt: skip
    makers: dict[str, Callable[[], PeriodicPolicy]] = {
        "static-fair": lambda: StaticFair(**common),
        "static-bounded": lambda: StaticBounded(**common, bounds=bounds),
        "dynamic": lambda: Dynamic(**common),
        "inactive": lambda: Dynamic(**common, fallback="inactive"),
        "exact": lambda: ExactPeriodic(**common, periods=periods),
        "perpetual": lambda: Perpetual(**common, lookahead=lookahead),
    }
    kinds = _allowed(prop) if kinds is None else kinds
    for i, kind in enumerate(kinds):
        if kind not in makers or kind in kinds[:i]:
            what = "repeated" if kind in makers else "unknown"
            raise InvalidValueError(f"{what} kind {kind!r}: choose from {', '.join(makers)}")
    return {kind: makers[kind]() for kind in kinds}


def _allowed(prop: Property) -> tuple[str, ...]:
    if not isinstance(prop, DifferenceOfRates):
        return ("dynamic", "exact")
    # Welfare bounds may not be farther apart than the bound, and not equal.
    return tuple(kind for kind in KINDS if prop.bound or kind != "static-bounded")


def _promise(policy: PeriodicPolicy) -> str:
    if policy.unconditional:
        return "none needed"
    return "no theorem" if policy.condition is None else "conditional"


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
    for i, (name, policy) in enumerate(policies.items()):

        def report(share: float, i: int = i, name: str = name) -> None:
            if progress is not None:
                progress((i + share) / len(policies), name)

        report(0.0)
        try:
            outcome = decide_runs(policy, streams, progress=report)
            rows.append(Row.of(name, _promise(policy), outcome))
        except (InfeasibleError, MemoryLimitError) as error:
            left_out[name] = str(error)
    return PeriodicComparison(
        prop=str(first.prop),
        limit=first.prop.limit,
        period=first.period,
        periods=streams.length // first.period,
        runs=streams.n_runs,
        rows=tuple(rows),
        left_out=left_out,
        exempt_ends=int((~free.bound).sum()),
        exempt_runs=int((~free.bound).all(axis=1).sum()),
    )
