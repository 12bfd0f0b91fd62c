"""Rules of windows: how long they are, when something is due in them, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_audit import PERIODIC, WINDOW

import fairshield as fs
from fairshield.periodic import PeriodicPolicy
from fairshield.runtime.window_rule import WindowRule


@given(st.integers(1, 50), st.lists(st.integers(1, 50)))
def test_a_horizon_is_due_last_and_counters_begin_again(horizon: int, points: list[int]) -> None:
    points = [point for point in points if point < horizon]
    rule = WindowRule.of(horizon=horizon, checkpoints=points)
    assert rule.due == tuple(sorted({*points, horizon}))
    assert (rule.horizon, rule.period, rule.goes_on) == (horizon, None, False)
    assert (rule.noun, rule.first) == ("window", 0)


@given(st.integers(1, 50))
def test_counters_of_periods_go_on(period: int) -> None:
    rule = WindowRule.of(period=period)
    assert (rule.due, rule.horizon, rule.period) == ((period,), None, period)
    assert (rule.goes_on, rule.noun, rule.first) == (True, "period", 1)


def test_without_a_length_only_checkpoints_are_due() -> None:
    assert WindowRule.of().due == ()
    assert WindowRule.of(checkpoints=(5, 2, 5)).due == (2, 5)


@pytest.mark.parametrize("policy", [*PERIODIC, WINDOW])
def test_a_policy_says_the_rule_of_its_windows(policy: PeriodicPolicy) -> None:
    rule = policy.window_rule
    assert (rule.due, rule.length, rule.goes_on) == (policy.due, policy.length, policy.goes_on)
    assert rule.noun == policy.noun
    kind = {"period": policy.length} if policy.goes_on else {"horizon": policy.length}
    assert rule == WindowRule.of(**kind, checkpoints=policy.due[:-1])


@pytest.mark.parametrize("ask", [fs.Monitor, lambda prop, **given: fs.audit(prop, [], **given)])
def test_a_monitor_refuses_what_an_audit_refuses(ask: object) -> None:
    for given_, sentence in (
        ({"horizon": 3, "period": 3}, "a period of 3 goes with neither a horizon nor checkpoints"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
        ({"period": 2.5}, "period must be a whole number of at least 1, got 2.5"),
    ):
        with pytest.raises(fs.InvalidValueError, match=sentence):
            ask(fs.DemographicParity("0.1"), **given_)  # type: ignore[operator]
