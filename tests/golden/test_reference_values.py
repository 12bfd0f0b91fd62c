"""Optimal costs that were worked out independently of this code.

Uniform inputs: probability 1/4 for each group and proposal, cost 1, outcomes even, bound 1/10; a
group without relevant people makes the counters fair.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest

import fairshield as fs

# From a separate implementation of the paper's recursion, in double precision.
DEMOGRAPHIC_PARITY = {
    20: 2.587137694601552,
    50: 1.4405657261,
    100: 1.0022878355,
    200: 0.5791671703,
    300: 0.3323467156,
}
EQUAL_OPPORTUNITY = {25: 11.2973608605, 50: 18.1078003955, 75: 21.1106967209}


def exact_cost(horizon: int) -> Fraction | None:
    """The recursion in rationals, with nothing of the library in it."""
    quarter = Fraction(1, 4)

    def cheapest(keep: Fraction | None, flip: Fraction | None) -> Fraction | None:
        known = [x for x in (keep, None if flip is None else flip + 1) if x is not None]
        return min(known, default=None)

    @cache
    def v(n_a: int, k_a: int, n_b: int, k_b: int) -> Fraction | None:
        if n_a + n_b == horizon:
            fair = 10 * abs(k_a * n_b - k_b * n_a) <= n_a * n_b
            return Fraction(0) if fair else None
        total = Fraction(0)
        for reject, accept in (
            (v(n_a + 1, k_a, n_b, k_b), v(n_a + 1, k_a + 1, n_b, k_b)),
            (v(n_a, k_a, n_b + 1, k_b), v(n_a, k_a, n_b + 1, k_b + 1)),
        ):
            proposals = cheapest(reject, accept), cheapest(accept, reject)
            for cost in proposals:
                if cost is None:
                    return None
                total += quarter * cost
        return total

    return v(0, 0, 0, 0)


@pytest.mark.parametrize(("horizon", "cost"), DEMOGRAPHIC_PARITY.items())
def test_demographic_parity(horizon: int, cost: float, even: fs.InputModel) -> None:
    policy = fs.synthesize(fs.DemographicParity("0.1"), even, horizon=horizon)
    assert policy.expected_cost == pytest.approx(cost, rel=1e-10)


@pytest.mark.parametrize(("horizon", "cost"), EQUAL_OPPORTUNITY.items())
def test_equal_opportunity(horizon: int, cost: float, even: fs.InputModel) -> None:
    policy = fs.synthesize(fs.EqualOpportunity("0.1"), even, horizon=horizon)
    assert policy.expected_cost == pytest.approx(cost, rel=1e-10)


def test_twenty_decisions_in_rationals(even: fs.InputModel) -> None:
    exact = Fraction(177786748617, 68719476736)
    assert exact_cost(20) == exact
    policy = fs.synthesize(fs.DemographicParity("0.1"), even, horizon=20)
    assert policy.expected_cost == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("horizon", range(1, 13))
def test_short_windows_in_rationals(horizon: int, even: fs.InputModel) -> None:
    exact = exact_cost(horizon)
    assert exact is not None
    for backend in ("cpu", "reference"):
        policy = fs.synthesize(fs.DemographicParity("0.1"), even, horizon=horizon, backend=backend)
        assert policy.expected_cost == pytest.approx(float(exact), rel=1e-14)
