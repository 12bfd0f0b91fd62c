"""``verdict`` says whether our number agrees with a published one."""

from __future__ import annotations

import math

from fairshield_experiments.results.parts import Verdict
from fairshield_experiments.results.published import Published
from fairshield_experiments.results.statistics import Estimate


def verdict(number: Published, ours: Estimate | None) -> Verdict:
    """How ours compares.

    ``"agrees"``: within two standard errors of ours and half a unit of the published last digit.
    ``"close"``: within 10 % of the published value, or within 2 points where it is a percentage.
    ``"better"``: less time or memory.
    """
    if ours is None or not math.isfinite(ours.value):
        return "not run"
    away = abs(ours.value - number.value)
    error = ours.error if math.isfinite(ours.error) else 0.0
    # Both are decimals in floating point: rounding errors must not decide a tie.
    slack = 1e-9 * max(1.0, abs(number.value))
    if away <= 2 * error + number.digit / 2 + slack:
        return "agrees"
    if away <= 0.1 * abs(number.value) + slack or (number.unit == "%" and away <= 2 + slack):
        return "close"
    if number.unit in ("s", "MB") and ours.value < number.value:
        return "better"
    return "differs"
