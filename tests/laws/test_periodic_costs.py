"""What periodic shields are expected to cost, computed over all inputs and compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise, product

import pytest

import fairshield as fs
from fairshield.inputs import Inputs
from fairshield.periodic.dynamic import Dynamic
from fairshield.periodic.exact import ExactPeriodic
from fairshield.periodic.perpetual import Perpetual
from fairshield.periodic.policy import PeriodicPolicy, WindowPolicy

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
SKEWED = fs.InputModel.from_table(
    {
        ("a", True, 0.25): 0.4, ("a", False, 1.0): 0.2,
        ("b", True, 1.0): 0.1, ("b", False, 0.25): 0.3,
    },
    outcomes={"a": 0.75, "b": 0.5},
)  # fmt: skip
CHANGING = fs.InputSchedule([(EVEN, 1), (SKEWED, 2)])
INPUTS = pytest.mark.parametrize("inputs", [EVEN, SKEWED, CHANGING], ids=["even", "skew", "change"])
TOLERANCE = 1e-9


# Expected costs by definition ---------------------------------------------------------------


def requests(inputs: Inputs, t: int) -> Iterator[tuple]:
    """Every request at a step, with its probability and the chance that its outcome is 1."""
    table = inputs.table(t + 1)
    i = min(t, len(table.probs) - 1)
    for g, r, c in product(range(2), range(2), range(len(table.levels))):
        if table.probs[i, g, r, c]:
            z = 1.0 if table.outcomes is None else float(table.outcomes[i, g, r, c])
            p, level = float(table.probs[i, g, r, c]), float(table.levels[c])
            yield inputs.groups[g], bool(r), level, p, z


def one_period(
    policy: PeriodicPolicy, window: WindowPolicy
) -> tuple[float, dict[fs.Counts, float]]:
    """Expected cost of a period, and with which probabilities it ends with which counters."""
    cost, here = 0.0, {fs.State(window.decided, window.counts): 1.0}
    for t in range(policy.period):
        after: dict[fs.State, float] = defaultdict(float)
        for (state, chance), (group, r, c, p, z) in product(
            here.items(), list(requests(policy.inputs, t))
        ):
            outcomes = {None: 1.0} if not policy.labelled else {True: z, False: 1.0 - z}
            for outcome, q in outcomes.items():
                if not q:
                    continue
                then, decision = fs.step(
                    window.policy, state, group, proposed=r, cost=c, outcome=outcome
                )
                cost += chance * p * q * decision.paid
                after[then] += chance * p * q
        here = after
    return cost, {state.counts: p for state, p in here.items()}


def costs(policy: PeriodicPolicy, periods: int) -> list[float]:
    """Expected cost of each of the first periods, for policies that plan from true counters."""
    spent, here = [], {policy.start: 1.0}
    for completed in range(periods):
        total, after = 0.0, defaultdict(float)
        for counts, chance in here.items():
            window = policy.window(counts, completed)
            assert window.counts == counts
            cost, ends = one_period(policy, window)
            total += chance * cost
            for end, p in ends.items():
                after[end] += chance * p
        spent.append(total)
        here = after
    return spent


def always_sure(policy: PeriodicPolicy, periods: int) -> bool:
    """Whether every period that a run can get into is guaranteed to end fair."""
    here = {policy.start}
    for completed in range(periods):
        windows = [policy.window(counts, completed) for counts in here]
        if any(window.policy.risk for window in windows):
            return False
        here = {end for window in windows for end in one_period(policy, window)[1]}
    return True


# Exact --------------------------------------------------------------------------------------


@INPUTS
@pytest.mark.parametrize(
    ("prop", "T", "m"),
    [
        (fs.DemographicParity("1/10"), 3, 3),
        (fs.DemographicParity("1/3"), 4, 2),
        (fs.EqualOpportunity("1/3"), 3, 2),
        (fs.ShareParity("1/2"), 3, 2),
    ],
    ids=str,
)
def test_an_exact_shield_costs_what_it_was_planned_to(
    prop: fs.Property, T: int, m: int, inputs: Inputs
) -> None:
    policy = ExactPeriodic(prop, inputs, T, periods=m)
    assert sum(costs(policy, m)) == pytest.approx(policy.tables.expected_cost, abs=TOLERANCE)


@INPUTS
@pytest.mark.parametrize(
    ("prop", "T", "m"),
    [
        (fs.DemographicParity("2/5"), 3, 3),
        (fs.DemographicParity("1/2"), 4, 2),
        (fs.DemographicParity("1/3"), 4, 2),
        (fs.EqualOpportunity("1/2"), 3, 2),
    ],
    ids=str,
)
def test_where_a_dynamic_shield_is_always_fair_an_exact_one_costs_no_more(
    prop: fs.Property, T: int, m: int, inputs: Inputs
) -> None:
    dynamic = Dynamic(prop, inputs, T)
    assert always_sure(dynamic, m)
    exact = ExactPeriodic(prop, inputs, T, periods=m).tables.expected_cost
    assert exact <= sum(costs(dynamic, m)) + TOLERANCE


def test_planning_for_all_periods_pays_in_some_places() -> None:
    """The law is not an equality in disguise: the first period is dearer, the sum cheaper."""
    prop = fs.DemographicParity("1/3")
    exact = costs(ExactPeriodic(prop, CHANGING, 3, periods=2), 2)
    dynamic = costs(Dynamic(prop, CHANGING, 3), 2)
    assert exact[0] > dynamic[0]
    assert sum(exact) < sum(dynamic) - 1e-3


# Perpetual ----------------------------------------------------------------------------------


def perpetual_costs(prop: fs.Property, inputs: Inputs, T: int, m: int, most: int) -> list[float]:
    """Expected cost of the first periods, by how many periods each plan covers."""
    return [sum(costs(Perpetual(prop, inputs, T, lookahead=n), m)) for n in range(1, most + 1)]


@INPUTS
@pytest.mark.parametrize(
    ("prop", "T", "m"),
    [
        (fs.DemographicParity("1/5"), 3, 3),
        (fs.DemographicParity("1/5"), 4, 2),
        (fs.EqualOpportunity("1/3"), 2, 2),
    ],
    ids=str,
)
def test_perpetual_shields_cost_no_less_than_exact_ones(
    prop: fs.Property, T: int, m: int, inputs: Inputs
) -> None:
    """An exact shield may end its last period as no perpetual one dares to."""
    least = ExactPeriodic(prop, inputs, T, periods=m).tables.expected_cost
    assert min(perpetual_costs(prop, inputs, T, m, 3)) >= least - TOLERANCE


@pytest.mark.parametrize(
    ("bound", "T", "m"),
    [("2/5", 2, 2), ("1/4", 3, 2), ("3/10", 3, 3), ("1/5", 4, 2), ("1/4", 5, 2)],
)
def test_looking_ahead_reaches_the_least_cost(bound: str, T: int, m: int) -> None:
    """Where the certificate at its end is what makes a plan dear, a longer plan is cheaper."""
    prop = fs.DemographicParity(bound)
    least = ExactPeriodic(prop, EVEN, T, periods=m).tables.expected_cost
    spent = perpetual_costs(prop, EVEN, T, m, m + 1)
    assert spent[0] > spent[1] + 1e-3
    assert all(later <= sooner + TOLERANCE for sooner, later in pairwise(spent))
    assert spent[-1] == pytest.approx(least, abs=TOLERANCE)


def test_plans_for_more_periods_may_spend_more_in_the_first_ones() -> None:
    """They are made for all the periods they cover, so this is no law."""
    spent = perpetual_costs(fs.DemographicParity("1/3"), SKEWED, 3, 2, 4)
    assert spent[3] > spent[1] + 1e-3


@INPUTS
@pytest.mark.parametrize("lookahead", [1, 2, 3, 4])
def test_a_whole_plan_with_a_certificate_costs_no_less_than_one_without(
    lookahead: int, inputs: Inputs
) -> None:
    prop = fs.DemographicParity("1/4")
    plan = Perpetual(prop, inputs, 3, lookahead=lookahead).plan(fs.Counts.zero(("a", "b")))
    exact = ExactPeriodic(prop, inputs, 3, periods=lookahead).tables
    assert plan.expected_cost >= exact.expected_cost - TOLERANCE


# Schedules ----------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [1, 2, 3, 5])
@pytest.mark.parametrize("times", [2, 3])
def test_a_schedule_begins_anew_in_each_period(period: int, times: int) -> None:
    whole = CHANGING.repeated(period, times)
    for t in range(period * times):
        assert list(requests(whole, t)) == list(requests(CHANGING, t % period))
