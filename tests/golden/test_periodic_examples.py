"""The paper's examples about periodic shields: traces that are fair apart and unfair together."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import pytest

import fairshield as fs
from fairshield.periodic.conditions import Counters, EnoughHistory

DEAR = 1e9
"""A price above any that a shield would pay: proposals are overruled only where they must be."""


class Trace(NamedTuple):
    """A period, by its counters."""

    n_a: int
    k_a: int
    n_b: int
    k_b: int

    @property
    def bias(self) -> Fraction:
        return abs(Fraction(self.k_a, self.n_a) - Fraction(self.k_b, self.n_b))

    @property
    def length(self) -> int:
        return self.n_a + self.n_b

    def joined(self, other: Trace) -> Trace:
        return Trace(*(x + y for x, y in zip(self, other, strict=True)))


Person = tuple[str, bool]


def kept_order(policy: fs.Policy, trace: Trace) -> list[Person] | None:
    """The people of a trace in an order in which the policy overrules none, if there is one."""
    people: dict[Person, int] = {
        ("a", True): trace.k_a, ("a", False): trace.n_a - trace.k_a,
        ("b", True): trace.k_b, ("b", False): trace.n_b - trace.k_b,
    }  # fmt: skip
    dead: set[fs.State] = set()

    def order_from(state: fs.State) -> list[Person] | None:
        if state.decided == trace.length:
            return []
        if state in dead:
            return None
        for (group, accepted), number in people.items():
            if not number:
                continue
            after, decision = fs.step(policy, state, group, proposed=accepted, cost=DEAR)
            if decision.overruled:
                continue
            people[group, accepted] -= 1
            rest = order_from(after)
            people[group, accepted] += 1
            if rest is not None:
                return [(group, accepted), *rest]
        dead.add(state)
        return None

    return order_from(fs.State.initial(policy))


def drive(first: Trace, second: Trace, bound: Fraction) -> fs.Run:
    """A Static-Fair shield that has been led through both traces and overruled nobody."""
    inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    shield = fs.StaticFairShield(fs.DemographicParity(bound), inputs, period=first.length)
    for trace in (first, second):
        people = kept_order(shield.policy.tables, trace)
        assert people is not None
        for group, proposed in people:
            assert not shield.decide(group, proposed=proposed, cost=DEAR).overruled
    whole = first.joined(second)
    assert shield.counts == fs.Counts({"a": (whole.n_a, whole.k_a), "b": (whole.n_b, whole.k_b)})
    return shield


def assert_unfair_in_the_end(shield: fs.Run) -> None:
    report = shield.guarantee
    assert not shield.holds()
    assert (report.completed, report.fair, report.unfair) == (2, 1, 1)
    assert report.unfair_at == 2 * shield.policy.length
    assert not report.held


# Example counter-example-periodic-naive-bis -------------------------------------------------


@pytest.mark.parametrize("T", [3, 4, 5, 10, 20])
def test_two_fair_periods_can_be_as_unfair_as_can_be(T: int) -> None:
    # The text gives the second trace n_a = n_b = T, which is twice its length.  With n_a = T - 1
    # and n_b = 1, all of them accepted, the two together have the bias stated.
    first, second = Trace(1, 0, T - 1, 0), Trace(T - 1, T - 1, 1, 1)
    assert first.bias == second.bias == 0
    assert first.joined(second).bias == 1 - Fraction(2, T)
    assert_unfair_in_the_end(drive(first, second, bound=(1 - Fraction(2, T)) / 2))


# The family (T, K) --------------------------------------------------------------------------


def family(T: int, K: int) -> tuple[Trace, Trace]:
    """One accepted of each group, then all but one of each."""
    return Trace(K, 1, T - K, 1), Trace(T - K, T - K - 1, K, K - 1)


def test_the_biases_of_the_family_are_as_stated() -> None:
    for T in range(3, 60):
        for K in range(1, (T + 1) // 2):
            first, second = family(T, K)
            assert first.bias == second.bias == Fraction(T - 2 * K, (T - K) * K)
            assert first.joined(second).bias == Fraction(T - 2 * K, T)


@pytest.mark.parametrize("small", [Fraction(1, 10), Fraction(1, 100)])
def test_the_family_goes_from_nearly_no_bias_to_nearly_all(small: Fraction) -> None:
    K = math.ceil(2 / small)
    first, second = family(math.ceil(2 * K / small), K)
    assert max(first.bias, second.bias) < small
    assert first.joined(second).bias >= 1 - small


@pytest.mark.parametrize(("T", "K"), [(8, 2), (12, 3), (20, 4)])
def test_a_static_fair_shield_follows_the_family(T: int, K: int) -> None:
    first, second = family(T, K)
    shield = drive(first, second, bound=first.bias)
    assert_unfair_in_the_end(shield)
    assert shield.guarantee.largest_bias == pytest.approx(1 - 2 * K / T)


# The tight family ---------------------------------------------------------------------------


def odd(T: int) -> tuple[Trace, Trace]:
    """Traces of 2 T + 1 people for an even T."""
    return Trace(T + 1, T // 2 + 1, T, T // 2), Trace(T, T // 2, T + 1, T // 2)


def level(T: int) -> tuple[Trace, Trace]:
    """Traces of 2 T people."""
    return Trace(T + 1, 2, T - 1, 1), Trace(T - 1, 1, T + 1, 1)


@pytest.mark.parametrize("T", [2, 4, 6, 50, 1000])
def test_nearly_balanced_odd_periods_add_up_to_more_bias(T: int) -> None:
    first, second = odd(T)
    assert first.bias == second.bias == Fraction(1, 2 * (T + 1))
    assert first.joined(second).bias == Fraction(1, 2 * T + 1) > first.bias


@pytest.mark.parametrize("bound", ["1/6", "0.15", "0.1", "0.033", "0.01"])
def test_every_bound_has_such_periods_on_both_sides(bound: str) -> None:
    # The text rounds (1 - 2 kappa) / (2 kappa) to integers, but its traces need even ones.
    at = (1 - 2 * Fraction(bound)) / (2 * Fraction(bound))
    above, below = 2 * math.ceil(at / 2), 2 * math.floor(at / 2)
    tight, loose = odd(above)[0].bias, odd(below)[0].bias
    assert tight <= Fraction(bound) <= loose
    for T, kappa in ((above, tight), (below, loose)):
        first, second = odd(T)
        assert min(*first[::2], *second[::2]) >= (first.length - 1) // 2
        assert max(first.bias, second.bias) <= kappa < first.joined(second).bias


@pytest.mark.parametrize("T", range(3, 40))
def test_nearly_balanced_even_periods_add_up_to_more_bias_for_one_length(T: int) -> None:
    first, second = level(T)
    assert first.bias == Fraction(T - 3, T * T - 1)
    assert second.bias == Fraction(2, T * T - 1)
    # The text repeats the odd case, 1/(2T + 1).  The sums are 3 and 2 accepted of 2 T each, and
    # exceed the bias of both parts only for ten people a period.
    assert first.joined(second).bias == Fraction(1, 2 * T)
    assert (first.joined(second).bias > max(first.bias, second.bias)) == (T == 5)


@pytest.mark.parametrize(
    ("first", "second"), [odd(2), odd(4), odd(6), level(5)], ids=["5", "9", "13", "10"]
)
def test_no_shield_gets_into_nearly_balanced_periods(
    even: fs.InputModel, first: Trace, second: Trace
) -> None:
    # The family is tight as to traces.  At a bound as tight as its own bias a shield that has to
    # be ready for every arrival cannot let either of its traces happen, in whatever order.
    bound = max(first.bias, second.bias)
    assert bound < first.joined(second).bias
    policy = fs.synthesize(fs.DemographicParity(bound), even, horizon=first.length)
    assert kept_order(policy, first) is None
    assert kept_order(policy, second) is None


# Example buffered ---------------------------------------------------------------------------

BUFFERED = fs.Counts({"a": (2, 1), "b": (98, 49)})


def test_buffered_history_is_enough_for_a_tenth(even: fs.InputModel) -> None:
    # The text calls it impossible; b may move away from 1/2 in time (test_paper_examples).  The
    # condition of the theorem is sufficient, not necessary: 1/2 + 1/198 exceeds 1/10.
    prop = fs.DemographicParity("0.1")
    shield = fs.DynamicShield(prop, even, period=100, start=BUFFERED)
    assert shield.guarantee.guaranteed
    assert not shield.guarantee.held
    start, nothing = Counters(2, 1, 98, 49), Counters(0, 0, 0, 0)
    assert not EnoughHistory(prop, 100).certain(start, nothing, 100)


def test_buffered_history_is_not_enough_for_a_twentieth(even: fs.InputModel) -> None:
    prop = fs.DemographicParity("0.05")
    with pytest.raises(fs.InfeasibleError):
        fs.synthesize(prop, even, horizon=100, start=BUFFERED)
    report = fs.DynamicShield(prop, even, period=100, start=BUFFERED).guarantee
    assert not report.guaranteed
    assert report.risk is not None
    assert 0 < report.risk < 1e-9
    assert report.broken_by == "start"


# Example bounded-acc-rates ------------------------------------------------------------------


def test_bounds_that_no_rate_of_two_people_meets(even: fs.InputModel) -> None:
    with pytest.raises(fs.InfeasibleError):
        fs.synthesize(fs.BoundedRates("0.2", "0.4", min_support=0), even, horizon=2)


def test_static_bw_does_not_ask_for_them(even: fs.InputModel) -> None:
    """Five people of each group never come in a period of two: the shield has nothing to do."""
    prop = fs.DemographicParity("0.2")
    shield = fs.StaticBoundedShield(prop, even, period=2, bounds=("0.2", "0.4"))
    assert shield.policy.tables.expected_cost == 0.0
    assert not shield.guarantee.held
