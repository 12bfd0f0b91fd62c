"""Whole runs of many periods: drawn, recorded, decided and counted."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import fairshield as fs
from fairshield.periodic import ExactPeriodic, PeriodicPolicy, Run, StaticFair
from fairshield.periodic.compare import Mean, Row, Share, compare, make_policies
from fairshield.periodic.cumulative import compared_kinds
from fairshield.periodic.runs import Outcome, Streams, decide_runs, unshielded
from fairshield.records import Record

PARITY, OPPORTUNITY = fs.DemographicParity("0.25"), fs.EqualOpportunity("0.25")
MODEL = fs.InputModel.from_table(
    {
        ("a", True, 0.5): 0.1,
        ("a", False, 2.0): 0.25,
        ("b", True, 2.0): 0.4,
        ("b", False, 0.5): 0.25,
    },
    outcomes={"a": 0.4, "b": 0.7},
)
EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
PERIOD, PERIODS = 4, 3
KINDS = ("static-fair", "static-bounded", "dynamic", "exact", "perpetual", "optimal")
ALL_KINDS = tuple(compared_kinds())
START = fs.Counts({"a": (6, 3), "b": (8, 4)})


def drawn(prop: fs.Property, inputs: Any = MODEL, *, runs: int = 12, seed: int = 3) -> Streams:
    rng = np.random.default_rng(seed)
    return Streams.drawn(prop, inputs, period=PERIOD, periods=PERIODS, runs=runs, rng=rng)


def policy_of(kind: str, prop: fs.Property, start: fs.Counts | None = None) -> PeriodicPolicy:
    made = make_policies(prop, MODEL, period=PERIOD, periods=PERIODS, kinds=(kind,), start=start)
    return made[kind]


def step(shield: Run, streams: Streams, run: int, t: int) -> fs.Decision:
    """The shield's own answer to a request of the streams."""
    group = shield.policy.groups[streams.groups[run, t]]
    proposed, cost = bool(streams.proposed[run, t]), float(streams.costs[run, t])
    made = shield.decide(group, proposed=proposed, cost=cost)
    wanted = shield.prop.relevant_outcome
    if wanted is not None:
        shield.observe(made, outcome=streams.relevant[run, t] == wanted)
    return made


# Requests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("prop", [PARITY, OPPORTUNITY, fs.PredictiveEquality("0.25")], ids=str)
def test_drawn_requests_follow_the_input_model(prop: fs.Property) -> None:
    streams = drawn(prop, runs=3000)
    n = streams.groups.size
    for (g, _), (r, proposed), (c, cost) in itertools.product(
        enumerate("ab"), enumerate((False, True)), enumerate(MODEL.levels)
    ):
        here = (streams.groups == g) & (streams.proposed == proposed) & (streams.costs == cost)
        p = float(MODEL.probs[g, r, c])
        assert here.mean() == pytest.approx(p, abs=6 * math.sqrt(p * (1 - p) / n))
        if p and prop.relevant_outcome is not None:
            z = {"a": 0.4, "b": 0.7}["ab"[g]]
            z = z if prop.relevant_outcome else 1 - z
            error = math.sqrt(z * (1 - z) / here.sum())
            assert streams.relevant[here].mean() == pytest.approx(z, abs=6 * error)
    if prop.relevant_outcome is None:
        assert streams.relevant.all()


def test_every_period_follows_the_schedule_from_its_beginning() -> None:
    only = {g: fs.InputModel.agnostic({g: 1.0, o: 0.0}) for g, o in (("a", "b"), ("b", "a"))}
    model_b = fs.InputModel(("a", "b"), only["b"].levels, only["b"].probs[::-1])
    schedule = fs.InputSchedule([(only["a"], 1), (model_b, 2)])
    streams = drawn(PARITY, schedule, runs=5)
    assert (streams.groups == np.array([0, 1, 1, 1] * PERIODS)).all()


def test_the_same_generator_draws_the_same_runs() -> None:
    here, there, other = drawn(OPPORTUNITY), drawn(OPPORTUNITY), drawn(OPPORTUNITY, seed=4)
    for name in ("groups", "proposed", "costs", "relevant"):
        assert np.array_equal(getattr(here, name), getattr(there, name))
    assert not np.array_equal(here.groups, other.groups)
    assert (here.n_runs, here.length) == (12, PERIOD * PERIODS)


@pytest.mark.parametrize("change", [{"runs": 0}, {"periods": 0}, {"periods": 1.5}, {"runs": "x"}])
def test_there_must_be_something_to_draw(change: dict[str, Any]) -> None:
    arguments = {"period": 4, "periods": 2, "runs": 3, "rng": np.random.default_rng(0)} | change
    with pytest.raises(fs.InvalidValueError, match="a whole number of at least 1, got"):
        Streams.drawn(PARITY, MODEL, **arguments)


def test_properties_that_count_by_outcome_need_outcomes() -> None:
    blind = fs.InputModel.from_table({(g, r, 1.0): 0.25 for g in "ab" for r in (False, True)})
    with pytest.raises(fs.InvalidValueError, match="no outcome probabilities: give outcomes"):
        drawn(OPPORTUNITY, blind)


def test_recorded_requests_are_cut_into_runs_and_the_rest_is_dropped() -> None:
    rows = [("b", 1, 2, 0), ("a", 0, 1, 1), ("a", 1, 3, 1), ("b", 0, 1, 1), ("b", 1, 2, 0)]
    names = ("group", "proposed", "cost", "outcome")
    records = [Record(i, dict(zip(names, row, strict=True))) for i, row in enumerate(rows, 1)]
    streams = Streams.recorded(records, OPPORTUNITY, ("a", "b"), 2)
    assert streams.groups.tolist() == [[1, 0], [0, 1]]
    assert streams.proposed.tolist() == [[True, False], [True, False]]
    assert streams.costs.tolist() == [[2.0, 1.0], [3.0, 1.0]]
    assert streams.relevant.tolist() == [[False, True], [True, True]]
    everybody = Streams.recorded(records, PARITY, ("a", "b"), 5)
    assert everybody.relevant.all()
    assert (everybody.n_runs, everybody.length) == (1, 5)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ({"group": "z", "proposed": 1, "outcome": 1}, "line 1: unknown group 'z'"),
        ({"group": "a", "outcome": 1}, "line 1: no 'proposed'"),
        ({"group": "a", "proposed": 1}, "line 1: no 'outcome', and equal opportunity"),
        ({"group": "a", "proposed": 1, "outcome": 1, "cost": -1}, "line 1: cost"),
        ({"group": "a", "proposed": 1, "outcome": 1}, "1 recorded requests are too few"),
    ],
)
def test_records_that_cannot_be_used_are_named(line: dict[str, Any], sentence: str) -> None:
    with pytest.raises(fs.InvalidValueError, match=sentence):
        Streams.recorded([Record(1, line)], OPPORTUNITY, ("a", "b"), 2)


# Deciding -----------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [None, START], ids=["from nothing", "from counters"])
@pytest.mark.parametrize("prop", [PARITY, OPPORTUNITY], ids=str)
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_runs_are_decided_as_the_shield_decides(
    kind: str, prop: fs.Property, start: fs.Counts | None
) -> None:
    policy, streams = policy_of(kind, prop, start), drawn(prop)
    outcome = decide_runs(policy, streams)
    met = outcome.condition_met
    for run in range(streams.n_runs):
        shield = Run(policy)
        begins_well = shield.guarantee.held or shield.guarantee.broken_by != "start"
        for t in range(streams.length):
            assert outcome.accepted[run, t] == step(shield, streams, run, t).accepted
        assert outcome.ends[run, -1].tolist() == [n for c in shield.counts.values() for n in c]
        history = shield.state.history
        assert history.fair + history.exempt == outcome.fair[run].sum()
        assert history.largest_bias == pytest.approx(outcome.bias[run].max())
        if met is not None and begins_well:
            assert (history.broken_at is None) == met[run].all()
            if history.broken_at is not None:
                # Broken in the first period that does not meet the condition.
                first = int(np.argmin(met[run])) * PERIOD
                assert first <= history.broken_at <= first + PERIOD
    assert (met is None) == (policy.unconditional or policy.theorem is None)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_met_condition_keeps_its_promise(kind: str) -> None:
    policy = policy_of(kind, PARITY)
    outcome = decide_runs(policy, drawn(PARITY, runs=60))
    assert outcome.fair.shape == (60, PERIODS)
    if outcome.condition_met is None:
        assert outcome.fair.all() or policy.theorem is None
    else:
        # The theorems speak about runs all of whose periods have met the condition so far.
        so_far = np.logical_and.accumulate(outcome.condition_met, axis=1)
        assert outcome.fair[so_far].all()


def test_progress_rises_to_the_whole() -> None:
    shares: list[float] = []
    decide_runs(policy_of("dynamic", PARITY), drawn(PARITY), progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_runs_must_fit_the_policy() -> None:
    streams = drawn(PARITY)
    with pytest.raises(fs.InvalidValueError, match="not whole periods of 5: make their length"):
        decide_runs(StaticFair(PARITY, MODEL, 5), streams)
    with pytest.raises(fs.InvalidValueError, match="for 2 periods cannot decide 3: ask for at"):
        decide_runs(ExactPeriodic(PARITY, MODEL, PERIOD, periods=2), streams)


# Figures ------------------------------------------------------------------------------------

flags = st.booleans()
requests = st.tuples(st.integers(0, 1), flags, st.sampled_from([0.0, 0.5, 2.0]), flags, flags)


@settings(max_examples=examples(60))
@given(
    st.lists(st.lists(requests, min_size=6, max_size=6), min_size=1, max_size=4),
    st.sampled_from([1, 2, 3, 6]),
    st.sampled_from([START, fs.Counts.zero(("a", "b"))]),
    st.sampled_from([PARITY, OPPORTUNITY, fs.DisparateImpact("0.8")]),
)
def test_figures_are_those_of_a_recount(
    runs: list[list[Any]], period: int, start: fs.Counts, prop: fs.Property
) -> None:
    group, proposed, cost, relevant, accepted = (
        np.array([[request[i] for request in run] for run in runs]) for i in range(5)
    )
    if prop.relevant_outcome is None:
        relevant[:] = True
    streams = Streams(group.astype(np.int8), proposed, cost.astype(float), relevant)
    condition = StaticFair(PARITY, EVEN, 2).condition
    found = Outcome(prop, period, start, condition, streams, accepted)
    assert found.condition_met is not None
    for i, run in enumerate(runs):
        counts = start
        for p in range(6 // period):
            part = run[p * period : (p + 1) * period]
            before = counts
            for (g, _, _, _, y), counted in zip(part, relevant[i, p * period :], strict=False):
                if counted:
                    counts = counts.after("ab"[g], accepted=y)
            assert found.ends[i, p].tolist() == [n for c in counts.values() for n in c]
            assert found.fair[i, p] == prop.holds(counts)
            assert found.bias[i, p] == pytest.approx(prop.bias_of(counts), nan_ok=True)
            assert found.paid[i, p] == pytest.approx(sum(c for _, r, c, _, y in part if r != y))
            seen = [counts[g].seen - before[g].seen for g in "ab"]
            assert found.condition_met[i, p] == (seen[0] == seen[1])
        assert found.overruled[i].tolist() == [r != y for _, r, _, _, y in run]


def test_without_a_shield_proposals_are_followed() -> None:
    streams = drawn(PARITY)
    found = unshielded(policy_of("dynamic", PARITY), streams)
    assert np.array_equal(found.accepted, streams.proposed)
    assert not found.overruled.any()
    assert not found.paid.any()
    assert found.condition_met is None


def test_a_mean_has_the_error_known_from_textbooks() -> None:
    mean = Mean.of(np.array([1.0, 2.0, 3.0, 6.0]))
    assert mean.value == 3.0
    assert mean.error == pytest.approx(math.sqrt(14 / 3) / 2)
    assert Mean.of(np.array([5.0])) == Mean(5.0, None)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # Wilson's intervals of 3 of 4, 10 of 10 and 0 of 1.
        ([[1, 1], [1, 0], [1, 1], [1, 1]], (0.75, 0.30064, 0.95441)),
        ([[1]] * 10, (1.0, 0.72247, 1.0)),
        ([[0]], (0.0, 0.0, 0.79345)),
    ],
)
def test_a_share_is_of_runs_all_of_whose_periods_have_the_flag(
    rows: list[list[int]], expected: tuple[float, float, float]
) -> None:
    share = Share.of(np.array(rows, bool))
    assert (share.value, share.low, share.high) == pytest.approx(expected, abs=1e-5)


# Comparing ----------------------------------------------------------------------------------


def test_a_row_sums_up_its_outcome() -> None:
    outcome = decide_runs(policy_of("static-fair", PARITY), drawn(PARITY))
    row = Row.of("static-fair", "conditional", outcome)
    assert row.paid.value == pytest.approx(outcome.paid.sum() / 12)
    assert sum(mean.value for mean in row.paid_by_period) == pytest.approx(row.paid.value)
    assert row.overruled.value == pytest.approx(outcome.overruled.sum() / 12)
    assert row.largest_bias == outcome.bias.max()
    assert row.mean_largest_bias.value == pytest.approx(outcome.bias.max(axis=1).mean())
    assert row.to_dict()["fair"]["value"] == row.fair.value == outcome.fair.all(axis=1).mean()


@pytest.mark.parametrize(
    ("prop", "kinds"),
    [
        (PARITY, KINDS),
        (OPPORTUNITY, KINDS),
        (fs.DemographicParity(0), ("static-fair", "dynamic", "exact", "perpetual", "optimal")),
        (fs.DisparateImpact("0.8"), ("dynamic", "exact", "optimal")),
    ],
    ids=str,
)
def test_by_default_all_shields_that_the_property_allows_are_made(
    prop: fs.Property, kinds: tuple[str, ...]
) -> None:
    made = make_policies(prop, MODEL, period=PERIOD, periods=2, start=START)
    assert tuple(kind for kind in made if kind in KINDS) == kinds
    assert {policy.kind for policy in made.values()} <= {*PeriodicPolicy.kinds()}
    assert all(policy.start == START for policy in made.values())


def test_options_reach_the_policies_they_concern() -> None:
    made = make_policies(
        PARITY, MODEL, period=PERIOD, periods=7, kinds=ALL_KINDS, lookahead=3, bounds=("0.3", "0.5")
    )
    assert made["exact"].last == 7
    assert made["perpetual"].options() == {"lookahead": 3}
    assert made["inactive"].options() == {"fallback": "inactive"}
    assert made["static-bounded"].bounds == (Fraction(3, 10), Fraction(1, 2))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kinds": ("eternal",)}, "unknown kind 'eternal': choose from static-fair"),
        ({"periods": 0}, "periods must be a whole number of at least 1, got 0"),
        ({"periods": "x"}, "periods must be a whole number of at least 1, got 'x'"),
        ({"period": 0}, "period must be a whole number of at least 1, got 0"),
        ({"lookahead": 0}, "lookahead must be a whole number of periods"),
        ({"bounds": ("0", "1")}, "must rise by more than 0 and at most 1/4"),
    ],
)
def test_policies_that_cannot_be_made_are_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(fs.InvalidValueError, match=sentence):
        make_policies(PARITY, MODEL, **({"period": PERIOD, "periods": 2} | change))


def test_a_comparison_leaves_out_who_cannot_take_part() -> None:
    unfair = fs.Counts({"a": (10, 0), "b": (10, 10)})
    kinds = ("static-fair", "exact", "perpetual")
    policies = make_policies(
        PARITY, MODEL, period=PERIOD, periods=PERIODS, kinds=kinds, start=unfair
    )
    found = compare(policies, drawn(PARITY))
    assert [row.name for row in found.rows] == ["no shield", "static-fair"]
    assert set(found.left_out) == {"exact", "perpetual"}
    assert (found.length, found.periods, found.runs) == (PERIOD, PERIODS, 12)
    with pytest.raises(fs.InvalidValueError, match="no shields to compare: name at least one"):
        compare({}, drawn(PARITY))
