"""Functions that turn numbers into the text of cells; all rounding is done here."""

from __future__ import annotations

import math

from fairshield_experiments.results.parts import MISSING as MISSING
from fairshield_experiments.results.statistics import Estimate, wilson


def number(value: float | None, decimals: int = 2) -> str:
    """A number that is not an estimate.

    >>> number(43131, 0), number(None), number(-0.001)
    ('43131', '–', '0.00')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    text = f"{value:.{decimals}f}"
    # Not "-0.00".
    return text.removeprefix("-") if float(text) == 0 else text


def estimate(found: Estimate | None, decimals: int = 2) -> str:
    """A value and its standard error.

    >>> estimate(Estimate(1.234, 0.108, 30)), estimate(Estimate(1.2, math.nan, 1)), estimate(None)
    ('1.23 ± 0.11', '1.20 ± –', '–')
    """
    if found is None or not math.isfinite(found.value):
        return MISSING
    return f"{number(found.value, decimals)} ± {number(found.error, decimals)}"


def share(found: Estimate | None, decimals: int = 1) -> str:
    """A percentage; one that never or always occurred with its 95 % confidence bound.

    A standard error of 0 would be misleading there.

    >>> share(Estimate(0.0, 0.0, 420, clusters=140)), share(Estimate(95.71, 1.4, 420))
    ('0.0 (≤ 2.7)', '95.7 ± 1.4')
    """
    if found is None or not math.isfinite(found.value):
        return MISSING
    if found.value not in (0.0, 100.0):
        return estimate(found, decimals)
    low, high = wilson(found.value / 100, found.clusters or found.n)
    bound, sign = (high, "≤") if found.value == 0 else (low, "≥")
    return f"{number(found.value, decimals)} ({sign} {number(100 * bound, decimals)})"


def ratio(value: float | None) -> str:
    """A ratio, as text.

    >>> ratio(12.3), ratio(0.44), ratio(None)
    ('12×', '0.44×', '–')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:.2g}×" if value < 10 else f"{value:.0f}×"
