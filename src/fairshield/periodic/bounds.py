"""Welfare bounds for Static-BW shields: around the proposals' rate, or the cheapest ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from fairshield.base.errors import InvalidValueError
from fairshield.inputs import Inputs
from fairshield.policy import Specification
from fairshield.policy.layout import layout_of
from fairshield.spec import BoundedRates, DifferenceOfRates
from fairshield.synthesis import MOST_STATES, least_cost


def centred(prop: DifferenceOfRates, inputs: Inputs, period: int) -> tuple[Fraction, Fraction]:
    """Bounds as far apart as the property allows, around the expected rate of the proposals.

    The centre is the expected share of proposed acceptances among relevant people, to the nearest
    hundredth; bounds that would leave [0, 1] are moved inside.
    """
    table = inputs.table(period)
    weights = table.probs * table.relevance(prop.relevant_outcome)
    proposed = float(weights[:, :, 1].sum() / max(float(weights.sum()), 1e-300))
    middle = Fraction(round(100 * proposed), 100)
    lower = min(max(middle - prop.bound / 2, Fraction(0)), 1 - prop.bound)
    return lower, lower + prop.bound


def cheapest(prop: DifferenceOfRates, inputs: Inputs, period: int) -> tuple[Fraction, Fraction]:
    """Bounds exactly as far apart as the property allows, of least expected cost.

    As the lower bound moves, the allowed numbers of acceptances change only where it, or the upper
    bound, is a fraction with a denominator of at most ``period``.  There they are widest, so these
    are all the candidates.  Among equally cheap ones the most central is taken.
    """
    if layout_of(period, prop.relevant_outcome is not None).n_states > MOST_STATES:
        raise InvalidValueError(
            f"the cheapest bounds for {period} decisions are too many to try: give bounds, or "
            "leave them out to have them centred around the expected rate"
        )
    best = (math.inf, Fraction(0), Fraction(0))
    for lower in candidates(prop.bound, period):
        bounded = BoundedRates(lower, lower + prop.bound, outcome=prop.relevant_outcome)
        cost = least_cost(Specification.of(bounded, inputs, horizon=period))
        key = (float(np.round(cost, 9)), abs(lower + prop.bound / 2 - Fraction(1, 2)), lower)
        best = min(best, key)
    return best[2], best[2] + prop.bound


def candidates(bound: Fraction, period: int) -> list[Fraction]:
    """Lower bounds at which the widest ranges of acceptances are allowed."""
    least = math.ceil(1 / bound)
    fractions = {Fraction(k, n) for n in range(least, period + 1) for k in range(n + 1)}
    lowers = fractions | {f - bound for f in fractions} | {Fraction(0), 1 - bound}
    return sorted(f for f in lowers if 0 <= f <= 1 - bound)
