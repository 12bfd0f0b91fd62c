"""Metrics of windows for Fairlearn, and translations between its constraints and properties.

Fairlearn measures a whole population and bounds expectations; a shield bounds every window.  This
module has metrics of windows in Fairlearn's signature, its ``MetricFrame`` by window, and functions
that turn its constraints into properties of this library and back.  Needs the extra ``fairlearn``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairshield.base.counts import is_whole, name_order
from fairshield.base.errors import InvalidValueError
from fairshield.base.extras import check_installed
from fairshield.base.groups import Coded
from fairshield.base.intersections import groups_of
from fairshield.inputs.columns import check_known, column
from fairshield.runtime.judging import Ints, count_windows, judged
from fairshield.spec import (
    DemographicParity,
    DifferenceOfRates,
    DisparateImpact,
    EqualOpportunity,
    PredictiveEquality,
    Property,
)
from fairshield.spec.outcomes import warn_of_outcomes

check_installed("fairshield.fairlearn", "fairlearn", extra="fairlearn")

from fairlearn import reductions
from fairlearn.metrics import MetricFrame

_MOMENTS: dict[type, type[DifferenceOfRates]] = {
    reductions.DemographicParity: DemographicParity,
    reductions.TruePositiveRateParity: EqualOpportunity,
    reductions.FalsePositiveRateParity: PredictiveEquality,
}
_WORDS: dict[str, Callable[[Any], Property]] = {
    "demographic_parity": DemographicParity,
    "selection_rate_parity": DemographicParity,
    "true_positive_rate_parity": EqualOpportunity,
    "false_negative_rate_parity": EqualOpportunity,  # 1 minus the rate: the same differences
    "false_positive_rate_parity": PredictiveEquality,
    "true_negative_rate_parity": PredictiveEquality,
}


def _differing(theirs: type, prop: DifferenceOfRates) -> Any:
    return theirs(difference_bound=float(prop.bound / 2))


def _of_ratio(prop: DisparateImpact) -> Any:
    """Fairlearn's constraint on a ratio; ``None`` for a one-sided property or a bound of 0."""
    if not prop.two_sided or not prop.bound:
        return None
    return reductions.DemographicParity(ratio_bound=math.sqrt(prop.bound))


_CONSTRAINTS: dict[type, Callable[[Any], Any]] = {
    DisparateImpact: _of_ratio,
    **{ours: partial(_differing, theirs) for theirs, ours in _MOMENTS.items()},
}


# Metrics ------------------------------------------------------------------------------------


def unfair_windows(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    prop: Property,
    horizon: int,
    pos_label: Any = 1,
) -> float:
    """Share of windows, ``horizon`` rows each, at whose end the property does not hold.

    Rows are in order of arrival; a last window that is not complete is left out.  The share is of
    all complete windows, also of those in which the property bounds nothing: see
    :func:`exempt_windows`.

    Examples
    --------
    >>> prop = DemographicParity("0.1")
    >>> unfair_windows([0] * 8, [1, 1, 1, 1, 1, 1, 0, 0],
    ...                sensitive_features=list("abababab"), prop=prop, horizon=4)
    0.0
    >>> unfair_windows([0] * 8, [1, 1, 1, 1, 1, 0, 1, 0],
    ...                sensitive_features=list("abababab"), prop=prop, horizon=4)
    0.5
    """
    counters = _counters(y_true, y_pred, sensitive_features, prop, horizon, pos_label)
    return float(1.0 - judged(prop, counters).holds.mean())


def exempt_windows(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    prop: Property,
    horizon: int,
    pos_label: Any = 1,
) -> float:
    """Share of windows at whose end the property bounds nothing, which are neither fair nor unfair.

    Examples
    --------
    >>> prop = DemographicParity("0.1", min_support=2)
    >>> exempt_windows([0] * 8, [1] * 8,
    ...                sensitive_features=list("ababaaab"), prop=prop, horizon=4)
    0.5
    """
    counters = _counters(y_true, y_pred, sensitive_features, prop, horizon, pos_label)
    return float(1.0 - judged(prop, counters).binds.mean())


def window_disparity(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    prop: Property,
    horizon: int,
    pos_label: Any = 1,
) -> float:
    """The largest bias at the end of any window; fair means at most ``prop.limit``.

    Groups below the support of ``prop`` have no bias: pass a property without ``min_support`` to
    measure them as well.

    ``demographic_parity_difference`` measures all rows at once; this function measures each window,
    with any property, and returns the worst.
    """
    counters = _counters(y_true, y_pred, sensitive_features, prop, horizon, pos_label)
    return float(judged(prop, counters).bias.max())


def metric_frame(
    metrics: Callable[..., Any] | dict[str, Callable[..., Any]],
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    horizon: int,
    **options: Any,
) -> MetricFrame:
    """Fairlearn's ``MetricFrame`` by group, with the window as a control feature.

    ``frame.by_group`` has a row for every window and group, ``frame.difference()`` one for every
    window.  A last window that is not complete is left out.  ``options`` are those of
    ``MetricFrame``, except for control features.
    """
    n = _complete(len(np.asarray(y_true)), horizon)
    rows = getattr(sensitive_features, "iloc", sensitive_features)  # pandas indexes by label else
    return MetricFrame(
        metrics=metrics,
        y_true=np.asarray(y_true)[:n],
        y_pred=np.asarray(y_pred)[:n],
        sensitive_features=rows[:n],
        control_features={"window": np.arange(n) // horizon},
        **options,
    )


def _counters(
    y_true: ArrayLike, y_pred: ArrayLike, sensitive_features: Any, prop: Property, horizon: int,
    pos_label: Any,
) -> Ints:  # fmt: skip
    """``(windows, groups, 2)``: people who count, and accepted among them."""
    accepted = column(y_pred, "y_pred") == pos_label
    names, group = _numbered(groups_of(sensitive_features))
    truth = column(y_true, "y_true")
    if prop.relevant_outcome is not None:
        check_known(truth, "y_true")
    outcome = truth == pos_label
    for name, given in (("sensitive_features", group), ("y_true", outcome)):
        if len(given) != len(accepted):
            raise InvalidValueError(
                f"{name} has {len(given)} entries, y_pred has {len(accepted)}: one per row in each"
            )
    n = _complete(len(accepted), horizon)
    counts = np.arange(len(accepted)) < n
    if prop.relevant_outcome is not None:
        warn_of_outcomes(
            names, group, accepted, outcome,
            relevant=prop.relevant_outcome, whose="by y_pred", stacklevel=4,
        )  # fmt: skip
        counts &= outcome == prop.relevant_outcome
    here = np.flatnonzero(counts)
    # Where only one group occurs, as in a slice of the rows, an empty second group is added.
    shape = n // horizon, max(len(names), 2)
    return count_windows(here // horizon, group[here], accepted[here], shape)


def _numbered(groups: NDArray[Any] | Coded) -> tuple[list[Any], Ints]:
    names = sorted(dict.fromkeys(groups.tolist()), key=name_order)
    number = {name: i for i, name in enumerate(names)}
    return names, np.array([number[name] for name in groups.tolist()], np.int64)


def _complete(n: int, horizon: int) -> int:
    """How many of ``n`` rows are in complete windows."""
    if not is_whole(horizon) or horizon < 1:
        raise InvalidValueError(f"horizon must be a whole number of at least 1, got {horizon!r}")
    if n < horizon:
        raise InvalidValueError(
            f"{n} rows are less than one window of {horizon}: give more rows, or a shorter horizon"
        )
    return n // horizon * horizon


# Constraints --------------------------------------------------------------------------------


def property_of(constraint: Any, bound: Any = None) -> Property:
    r"""Our property for one of Fairlearn's constraints, at least as strict.

    Fairlearn compares each group's rate with the rate of all, we compare groups with each other.
    The rate of all lies between those of the groups, so if groups differ by at most
    :math:`\epsilon`, each differs from all by at most :math:`\epsilon`.  The same
    argument holds for ratios.

    Parameters
    ----------
    constraint
        A moment of ``fairlearn.reductions``, or the name of a constraint of
        ``ThresholdOptimizer``.
    bound
        For a name, which has none.

    Examples
    --------
    >>> from fairlearn import reductions
    >>> print(property_of(reductions.DemographicParity(difference_bound=0.05)))
    demographic parity ≤ 1/20
    >>> print(property_of(reductions.DemographicParity(ratio_bound=0.8)))
    disparate impact ≥ 4/5
    >>> print(property_of("true_positive_rate_parity", "0.1"))
    equal opportunity ≤ 1/10
    """
    if isinstance(constraint, str):
        if constraint in _WORDS and bound is None:
            raise InvalidValueError(
                f"{constraint!r} asks for equal rates, which no window of people can promise: "
                "give a bound, as in property_of('demographic_parity', '0.1')"
            )
        ours = _WORDS.get(constraint)
    else:
        ours, bound = _MOMENTS.get(type(constraint)), getattr(constraint, "eps", None)
        if ours is not None and constraint.ratio < 1.0:
            ours, bound = (DisparateImpact if ours is DemographicParity else None), constraint.ratio
    if ours is None:
        name = constraint if isinstance(constraint, str) else type(constraint).__name__
        raise InvalidValueError(
            f"no property here stands for {name}: known are {', '.join(_WORDS)} and, in "
            "fairlearn.reductions, DemographicParity, TruePositiveRateParity and "
            "FalsePositiveRateParity with a difference bound, and DemographicParity with a ratio "
            "bound"
        )
    return ours(bound)


def constraint_of(prop: Property) -> reductions.UtilityParity:
    r"""Fairlearn's constraint for one of our properties, at least as strict in expectation.

    If each group's rate differs from the rate of all by at most :math:`\kappa/2`, two groups
    differ by at most :math:`\kappa`; ratios of at least :math:`\sqrt\kappa` to the rate of all
    make ratios of at least :math:`\kappa`.  ``min_support`` and ``undefined`` have no counterpart.

    >>> constraint_of(DemographicParity("0.1")).eps
    0.05
    """
    make = _CONSTRAINTS.get(type(prop))
    found = None if make is None else make(prop)
    if found is not None:
        return found
    raise InvalidValueError(
        f"Fairlearn has no constraint for {prop}: it has them for demographic parity, equal "
        "opportunity, predictive equality and two-sided disparate impact above 0"
    )
