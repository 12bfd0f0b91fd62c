"""A monitor: what it concludes, what it does not, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import fairshield as fs
from fairshield.monitor import Saving

PARITY = fs.DemographicParity("0.1")
EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
SKEWED = fs.InputModel.agnostic({"a": 0.2, "b": 0.8})


def drawn(model: fs.InputModel, n: int, seed: int = 0) -> tuple[Any, Any]:
    """Groups and proposals."""
    found = model.table(1).draw(np.random.default_rng(seed).random(n), None)
    return np.array(model.groups)[found.groups], found.proposed


def biased(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Decisions that favour group b."""
    rng = np.random.default_rng(seed)
    groups = np.array(["a", "b"])[rng.integers(0, 2, n)]
    return groups, rng.random(n) < np.where(groups == "b", 0.7, 0.3)


# Conclusions --------------------------------------------------------------------------------


def test_unfair_decisions_raise_one_alarm_for_bias() -> None:
    monitor = fs.Monitor(PARITY)
    monitor.observe_many(*biased(4000))
    (alarm,) = monitor.alarms
    assert (alarm.kind, alarm.groups) == ("bias", monitor.groups)
    assert "unfair beyond chance" in alarm.message
    (pair,) = monitor.report().pairs
    assert pair.bias is not None
    assert pair.bias.lower > 0.1


def test_fair_decisions_raise_none() -> None:
    rng = np.random.default_rng(1)
    monitor = fs.Monitor(PARITY, inputs=EVEN)
    groups, proposed = drawn(EVEN, 20_000)
    monitor.observe_many(groups, rng.random(20_000) < 0.4, proposed)
    assert monitor.alarms == ()
    assert monitor.report()


def test_nothing_is_concluded_about_small_groups() -> None:
    monitor = fs.Monitor(fs.DemographicParity("0.01"), min_group_size=500)
    monitor.observe_many(["a"] * 5000 + ["b"] * 499, [1] * 5000 + [0] * 499)
    report = monitor.report()
    assert not report.alarms
    assert not report.quiet  # as it stands, it does not hold
    assert report.groups[1].rate is None
    assert report.pairs[0].bias is None
    assert "rate of b    0 of 499: too few to say" in str(report)
    monitor.observe_many(["b"] * 400, [0] * 400)
    assert [alarm.kind for alarm in monitor.alarms] == ["bias"]


def test_min_support_raises_the_minimum_group_size() -> None:
    assert fs.Monitor(fs.DemographicParity("0.1", min_support=40)).least == 40
    assert fs.Monitor(fs.DemographicParity("0.1", min_support=40), min_group_size=50).least == 50


def test_known_groups_have_narrower_intervals_than_those_met_on_the_way() -> None:
    declared, met = fs.Monitor(PARITY, groups=("a", "b")), fs.Monitor(PARITY)
    for monitor in (declared, met):
        monitor.observe_many(*biased(1000))
    widths = [
        [g.rate.upper - g.rate.lower for g in m.report().groups if g.rate is not None]
        for m in (declared, met)
    ]
    assert sum(widths[0]) < sum(widths[1])


def test_a_property_of_ones_own_has_windows_but_no_interval() -> None:
    from strategies import Quota  # noqa: PLC0415

    monitor = fs.Monitor(Quota(1), horizon=10)
    monitor.observe_many(*biased(500))
    report = monitor.report()
    assert report.pairs[0].bias is None
    assert report.unfair > 0
    assert {alarm.kind for alarm in report.alarms} == {"violation"}


def test_share_parity_looks_at_the_accepted() -> None:
    monitor = fs.Monitor(fs.ShareParity("0.1"), groups=("a", "b"))
    monitor.observe_many(["a", "b"] * 2000, [1, 0] * 500 + [1, 1] * 1500)
    bias = monitor.report().pairs[0].bias
    assert bias is not None
    assert bias.estimate == pytest.approx(500 / 3500)
    assert bias.lower < 500 / 3500 < bias.upper


# The input model ----------------------------------------------------------------------------


def test_a_wrong_model_is_told_with_what_it_costs() -> None:
    monitor = fs.Monitor(PARITY, horizon=20, inputs=SKEWED)
    groups, proposed = drawn(EVEN, 2000)
    monitor.observe_many(groups, proposed)
    (alarm,) = [alarm for alarm in monitor.alarms if alarm.kind == "model"]
    assert alarm.at <= 300
    assert "of requests, the model says 0." in alarm.message
    saving = monitor.saving()
    assert isinstance(saving, Saving)
    assert saving.then == pytest.approx(saving.policy.expected_cost)
    assert saving.saved > 0
    assert "is expected per window (saves" in str(saving)
    assert set(saving.to_dict()) == {"now", "then", "saved", "risk_now", "risk_then", "inputs"}
    assert saving.risk_now == saving.risk_then == 0.0
    report = monitor.report()
    assert report.contradicted_at == alarm.at
    assert "CONTRADICTED" in str(report)


def test_a_right_model_saves_nothing_to_speak_of() -> None:
    policy = fs.synthesize(PARITY, EVEN, horizon=20)
    monitor = fs.Monitor(PARITY, shadow=policy)
    monitor.observe_many(*drawn(EVEN, 3000))
    saving = monitor.saving()
    assert 0.0 <= saving.saved < 0.02 * saving.now
    assert [alarm for alarm in monitor.alarms if alarm.kind == "model"] == []


@pytest.mark.parametrize("kind", ["dynamic", "long"])
def test_savings_of_other_policies(kind: str) -> None:
    if kind == "dynamic":
        monitor = fs.Monitor(PARITY, shadow=fs.DynamicShield(PARITY, SKEWED, period=10).policy)
    else:
        policy = fs.synthesize(PARITY, SKEWED, horizon=40, method="long")
        monitor = fs.Monitor(PARITY, shadow=policy)
    monitor.observe_many(*drawn(EVEN, 300))
    saving = monitor.saving()
    assert saving.now > 0
    assert saving.then > 0
    assert ("first period" in str(saving)) == (kind == "dynamic")


def test_a_saving_of_best_effort_tells_the_risks_too() -> None:
    prop, start = fs.DemographicParity("0.3"), fs.Counts({"a": (3, 3), "b": (3, 0)})
    policy = fs.synthesize(prop, SKEWED, horizon=6, start=start, best_effort=True)
    assert policy.risk > 0.0
    monitor = fs.Monitor(prop, shadow=policy)
    monitor.observe_many(*drawn(EVEN, 700))
    saving = monitor.saving()
    assert isinstance(saving.policy, fs.Policy)
    assert saving.risk_then == pytest.approx(saving.policy.risk, abs=0.05)
    assert saving.risk_now >= saving.risk_then - 0.05
    assert "of windows are unfair" in str(saving)


def test_a_revised_model_is_the_one_estimated_from_the_requests() -> None:
    costs = np.array([0.1, 0.4, 0.9])[np.arange(300) % 3]
    groups, proposed = drawn(EVEN, 300)
    outcomes = np.arange(300) % 2 == 0
    model = fs.InputModel.estimate(groups, proposed, costs, outcomes)
    monitor = fs.Monitor(PARITY, inputs=model)
    monitor.observe_many(groups, proposed, None, costs, outcomes)
    revised = monitor.revised_inputs()
    assert isinstance(revised, fs.InputModel)
    assert revised.levels == pytest.approx(model.levels)
    assert revised.probs == pytest.approx(model.probs)
    assert revised.outcomes == pytest.approx(model.outcomes)


def test_a_schedule_is_revised_part_by_part() -> None:
    schedule = fs.InputSchedule([(EVEN, 4), (SKEWED, 4), (EVEN, 2)])
    monitor = fs.Monitor(PARITY, horizon=8, inputs=schedule)
    monitor.observe_many(["a", "b"] * 80, [True, False] * 80)
    revised = monitor.revised_inputs()
    assert isinstance(revised, fs.InputSchedule)
    assert [steps for _, steps in revised.parts] == [4, 4, 2]
    assert revised.parts[1][0].probs.sum((1, 2)) == pytest.approx([0.5, 0.5])
    assert revised.parts[2][0] is EVEN


# Reports ------------------------------------------------------------------------------------


def test_a_report_is_plain_data_and_a_table() -> None:
    policy = fs.synthesize(PARITY, EVEN, horizon=20)
    monitor = fs.Monitor(PARITY, shadow=policy)
    monitor.observe_many(*biased(200))
    report = monitor.report()
    data = report.to_dict()
    assert data["decisions"] == 200
    assert data["windows"]["over"] == 10
    assert data["shadow"]["unfair"] == 0
    assert data["shadow"]["unfair_without"] == report.unfair > 0
    assert data["quiet"] is False is bool(report)
    text = str(report)
    for word in ("rate of a", "bias", "windows", "input model", "shield", "alarms"):
        assert word in text
    assert str(report.alarms[0]).startswith("violation after ")


def test_observations_say_where_they_stand() -> None:
    monitor = fs.Monitor(PARITY, period=2)
    seen = [monitor.observe(g, accepted="yes", proposed=0, cost=2) for g in (1, 2, 1)]
    assert [(o.at, o.window) for o in seen] == [(1, 0), (2, 0), (3, 1)]
    report = monitor.report()
    assert (report.overruled, report.paid) == (3, 6.0)
    assert report.noun == "period"
    assert monitor.decided == 3


def test_people_count_once_their_outcome_is_known() -> None:
    monitor = fs.Monitor(fs.EqualOpportunity("0.1"))
    with pytest.raises(fs.InvalidValueError, match="once its outcome is known"):
        monitor.observe("a", accepted=True)
    with pytest.raises(fs.InvalidValueError, match="once its outcome is known"):
        monitor.observe_many(["a"], [True])
    monitor.observe("a", accepted=True, outcome=1)
    monitor.observe("a", accepted=True, outcome=0)
    assert monitor.counts == fs.Counts({"a": (1, 1)})


# Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"horizon": 0}, "horizon must be a whole number of at least 1"),
        ({"period": 1.5}, "period must be a whole number"),
        ({"horizon": 5, "period": 5}, "leave out one of the two"),
        ({"confidence": 95}, "confidence must lie between 0 and 1"),
        ({"min_group_size": -1}, "min_group_size must be"),
        ({"keep": 0}, "keep must be"),
        ({"groups": ["a"]}, "at least two"),
        ({"groups": ["a", "a"]}, "each once"),
        ({"groups": ["b", "a"], "inputs": EVEN}, "the same groups in the same order"),
        ({"inputs": 0.5}, "inputs must be an InputModel"),
        ({"shadow": 0.5}, "shadow must be a policy"),
    ],
)
def test_what_means_nothing_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(fs.InvalidValueError, match=words):
        fs.Monitor(PARITY, **options)


def test_a_monitor_needs_a_property() -> None:
    with pytest.raises(fs.InvalidValueError, match="prop must be a property"):
        fs.Monitor("demographic-parity")  # type: ignore[arg-type]


def test_a_shadow_must_fit() -> None:
    policy = fs.synthesize(PARITY, EVEN, horizon=4)
    with pytest.raises(fs.InvalidValueError, match="the monitor watches"):
        fs.Monitor(fs.DemographicParity("0.2"), shadow=policy)
    for options in ({"horizon": 5}, {"period": 4}, {"start": fs.Counts.zero(("b", "a"))}):
        if "start" in options:
            fs.Monitor(PARITY, shadow=policy, **options)  # equal as counters
            continue
        with pytest.raises(fs.InvalidValueError, match="is not the shadow policy's"):
            fs.Monitor(PARITY, shadow=policy, **options)


def test_a_shadow_with_checkpoints_is_refused() -> None:
    policy = fs.synthesize(fs.DemographicParity("0.5"), EVEN, horizon=8, checkpoints=(4,))
    with pytest.raises(fs.InvalidValueError, match=r"checkpoints after \[4\] decisions"):
        fs.Monitor(policy.prop, shadow=policy)


def test_a_state_is_of_one_shadow_policy_only() -> None:
    plain = fs.synthesize(PARITY, EVEN, horizon=6)
    other = fs.synthesize(PARITY, EVEN, horizon=6, terminal=fs.DemographicParity("0.01"))
    assert str(plain) == str(other)
    state = fs.Monitor(PARITY, shadow=plain).state
    fs.Monitor(PARITY, shadow=fs.synthesize(PARITY, EVEN, horizon=6), state=state)
    with pytest.raises(fs.InvalidValueError, match="belongs to another monitor"):
        fs.Monitor(PARITY, shadow=other, state=state)


def test_groups_that_were_named_are_all_there_are() -> None:
    monitor = fs.Monitor(PARITY, groups=("a", "b"))
    with pytest.raises(fs.UnknownGroupError, match="unknown group 'c'"):
        monitor.observe("c", accepted=True)
    with pytest.raises(fs.UnknownGroupError, match="unknown group 'c'"):
        monitor.observe_many(["a", "c"], [True, True])
    assert monitor.decided == 0
    with pytest.raises(fs.InvalidValueError, match="finite"):
        monitor.observe("a", accepted=True, cost=-1.0)
    with pytest.raises(fs.InvalidValueError, match="group name"):
        fs.Monitor(PARITY).observe(1.5, accepted=True)  # type: ignore[arg-type]


def test_a_state_of_another_monitor_is_refused() -> None:
    state = fs.Monitor(PARITY, horizon=5).state
    with pytest.raises(fs.InvalidValueError, match="belongs to another monitor"):
        fs.Monitor(PARITY, horizon=6, state=state)
    with pytest.raises(fs.InvalidValueError, match="version"):
        fs.Monitor(PARITY, horizon=5, state={**state, "version": 9})
    for broken in ({}, {**state, "tally": None}, {**state, "decided": None}):
        with pytest.raises(fs.InvalidValueError, match="state"):
            fs.Monitor(PARITY, horizon=5, state=broken)


def test_what_cannot_be_said_is_refused() -> None:
    with pytest.raises(fs.InvalidValueError, match="watches none"):
        fs.Monitor(PARITY).revised_inputs()
    monitor = fs.Monitor(PARITY, inputs=EVEN)
    monitor.observe("a", accepted=True)
    with pytest.raises(fs.InvalidValueError, match="a saving is that of a policy"):
        monitor.saving()


def test_monitoring_needs_no_compiler() -> None:
    code = """
import sys, fairshield as fs
assert "fairshield.monitor" not in sys.modules
model = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
monitor = fs.Monitor(fs.DemographicParity("0.1"), horizon=10, inputs=model)
monitor.observe("a", accepted=True)
monitor.observe_many(["a", "b"] * 200, [1, 0] * 200)
assert str(monitor.report()) and monitor.alarms
assert "numba" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_endless_window_is_judged_once_when_it_ends() -> None:
    monitor = fs.Monitor(fs.DemographicParity("0.1"))
    assert monitor.end() == ()
    monitor.observe_many(["a", "b"], [True, False])
    (alarm,) = monitor.end()
    assert (alarm.kind, alarm.at, alarm.window) == ("violation", 2, 0)
    assert monitor.end() == ()
    report = monitor.report()
    assert (report.windows, report.unfair, report.quiet) == (1, 1, False)


def test_what_bound_nothing_is_not_called_fair() -> None:
    monitor = fs.Monitor(fs.DemographicParity("0.1", min_support=30), horizon=80)
    monitor.observe_many(["a"] * 60 + ["b"] * 20, [1] * 40 + [0] * 20 + [1] * 5 + [0] * 15)
    report = monitor.report()
    assert (report.verdict, report.windows, report.unfair, report.exempt) == ("exempt", 1, 0, 1)
    assert not report.alarms
    assert not report.quiet
    (window,) = report.recent
    assert (window.verdict, window.bias) == ("exempt", 0.0)
    assert window.measured == report.largest_measured == pytest.approx(40 / 60 - 5 / 20)
    told = str(report)
    assert "EXEMPT: demographic parity ≤ 1/10 for groups of at least 30 bound nothing" in told
    assert "1 exempt, largest bias 0; a bias of 0.4167 was measured below support" in told
    assert "fair:" not in told


def test_a_ratio_is_named_as_one() -> None:
    monitor = fs.Monitor(fs.DisparateImpact("0.8"), horizon=100)
    monitor.observe_many(["a"] * 50 + ["b"] * 50, [1] * 20 + [0] * 30 + [1] * 40 + [0] * 10)
    (alarm,) = monitor.alarms
    assert "impact ratio 0.5 of a to b where at least 0.8 is asked" in alarm.message
    report = monitor.report()
    assert "impact ratio 0.5 of a to b" in str(report)
    assert report.to_dict()["pairs"][0]["finding"]["measure"] == "impact ratio"


def test_one_window_that_bound_is_enough() -> None:
    monitor = fs.Monitor(PARITY, horizon=4)
    monitor.observe_many([*"aaaa", *"abab"], [1, 0, 1, 0, 1, 1, 1, 1])
    report = monitor.report()
    assert (report.verdict, report.windows, report.exempt, report.quiet) == ("fair", 2, 1, True)
    assert "held in the 1 of 2 windows that it bound" in str(report)


def test_a_shadow_counts_windows_that_bind_nothing() -> None:
    policy = fs.synthesize(PARITY, EVEN, horizon=4)
    monitor = fs.Monitor(PARITY, shadow=policy)
    monitor.observe_many([*"aaaa", *"abab"], [1, 0, 1, 0, 1, 1, 1, 1])
    state = monitor.state
    # Earlier versions stored totals, and the window in progress instead of the run.
    earlier = {
        "totals": [8, 2, 0.0, 2, 0], "exempt": 1, "untold": 0, "overruled": [0, 0],
        "run": [0, [[0, 0], [0, 0]]],
    }  # fmt: skip
    for known in (state, {**state, "shadow": earlier}):
        shadow = fs.Monitor(PARITY, shadow=policy, state=known).report().shadow
        assert shadow is not None
        assert (shadow.windows, shadow.unfair, shadow.exempt) == (2, 0, 1)
        assert "1 exempt" in str(shadow)
    del earlier["exempt"], earlier["untold"]
    state["shadow"] = earlier
    shadow = fs.Monitor(PARITY, shadow=policy, state=state).report().shadow
    assert shadow is not None
    assert (shadow.unfair, shadow.exempt, shadow.untold) == (0, 0, 2)
    assert "2 fair or exempt" in str(shadow)


def saved_before_exempt_windows_were_counted(monitor: fs.Monitor) -> Any:
    state = json.loads(json.dumps(monitor.state))
    for key in ("exempt", "untold", "worst_measured"):
        del state["tally"][key]
    for window in state["tally"]["recent"]:
        del window["measured"], window["exempt"]
    return state


def test_windows_of_which_an_older_state_tells_nothing_are_not_said_to_be_fair() -> None:
    settings: Any = {"horizon": 4, "groups": ("a", "b"), "keep": 2}
    monitor = fs.Monitor(PARITY, **settings)
    monitor.observe_many([*"aaaa" * 10, *"abab" * 2], [1] * 48)
    old = saved_before_exempt_windows_were_counted(monitor)
    resumed = fs.Monitor(PARITY, **settings, state=old)
    report = resumed.report()
    assert (report.windows, report.exempt, report.untold) == (12, 0, 10)
    assert report.verdict == "fair"
    assert "held in the 2 of 12 windows that it is known to have bound" in str(report)
    assert "10 fair or exempt, which an earlier version did not tell apart" in str(report)
    assert report.to_dict()["windows"]["untold"] == 10
    resumed.observe_many([*"aaaa"], [1] * 4)
    again = fs.Monitor(PARITY, **settings, state=json.loads(json.dumps(resumed.state))).report()
    assert (again.windows, again.exempt, again.untold) == (13, 1, 10)


def test_if_no_window_is_known_to_have_bound_nothing_is_fair() -> None:
    settings: Any = {"horizon": 4, "groups": ("a", "b"), "keep": 2}
    monitor = fs.Monitor(PARITY, **settings)
    monitor.observe_many([*"abab" * 3, *"aaaa" * 2], [1] * 20)
    old = saved_before_exempt_windows_were_counted(monitor)
    report = fs.Monitor(PARITY, **settings, state=old).report()
    assert (report.verdict, report.exempt, report.untold, report.quiet) == ("exempt", 2, 3, False)
    assert "is not known to have bound in any of 5 windows" in str(report)


@pytest.mark.parametrize(
    ("accepted", "said"), [([1, 0] * 4, "UNFAIR as it stands"), ([1] * 8, "fair as it stands")]
)
def test_an_endless_window_is_said_to_be_what_its_verdict_is(accepted: Any, said: str) -> None:
    monitor = fs.Monitor(PARITY, groups=("a", "b"))
    monitor.observe_many([*"abababab"], accepted)
    report = monitor.report()
    assert report.verdict in said.lower()
    assert dict(report.facts())["verdict"].startswith(f"{said}; no window is over")


def lender(rejected: bool | None) -> fs.Monitor:
    """Equally good people, of whom more of b are accepted; outcomes of the accepted are known.

    The rejected have ``rejected`` for an outcome, or none.
    """
    rng = np.random.default_rng(0)
    groups = np.where(rng.random(1000) < 0.5, "a", "b")
    good = rng.random(1000) < 0.7
    accepted = rng.random(1000) < np.where(groups == "b", 0.6, 0.3)
    monitor = fs.Monitor(fs.EqualOpportunity("0.1"))
    monitor.expect_many(groups, accepted)
    told = accepted if rejected is None else np.ones(1000, bool)
    outcomes = np.where(accepted, good, bool(rejected))
    monitor.observe_many(groups[told], accepted[told], outcomes=outcomes[told])
    monitor.end()
    return monitor


@pytest.mark.parametrize(
    ("rejected", "words"),
    [(None, "of nobody rejected is known"), (False, "nobody rejected counts")],
)
def test_outcomes_of_the_accepted_alone_are_not_called_fair(
    rejected: bool | None, words: str
) -> None:
    monitor = lender(rejected)
    report = monitor.report()
    assert not report.alarms  # every rate is 1
    assert not report.quiet
    assert report.doubt is not None
    assert words in report.doubt
    assert "INCONCLUSIVE" in str(report)
    assert "fair" not in str(report).replace("0 unfair", "")
    assert report.to_dict()["outcomes"]["doubt"] == report.doubt
    again = fs.Monitor(fs.EqualOpportunity("0.1"), state=monitor.state)
    assert again.report().doubt == report.doubt


def test_somebody_expected_is_of_a_group_that_was_named() -> None:
    with pytest.raises(fs.UnknownGroupError):
        fs.Monitor(fs.EqualOpportunity("0.1"), groups="ab").expect("c", accepted=True)


def test_an_unfinished_window_does_not_have_to_be_fair() -> None:
    for length in ({"horizon": 3}, {"period": 3}):
        monitor = fs.Monitor(fs.DemographicParity("0.1"), **length)
        monitor.observe_many(["a", "b"], [True, False])
        assert monitor.end() == ()
        assert monitor.report().windows == 0


def test_a_property_with_a_first_group_needs_to_know_which_it_is() -> None:
    prop = fs.DisparateImpact("1.2", two_sided=False)
    with pytest.raises(fs.InvalidValueError, match=r"groups=\('first', 'second'\)"):
        fs.Monitor(prop)
    with pytest.raises(fs.InvalidValueError, match="compares two groups, got 3"):
        fs.Monitor(prop, groups=("a", "b", "c"))
    for groups, alarms in ((("a", "b"), 0), (("b", "a"), 1)):
        monitor = fs.Monitor(prop, groups=groups)
        monitor.observe_many(["b", "a"], [True, False])
        assert len(monitor.end()) == alarms
