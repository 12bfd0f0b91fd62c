"""Simulations, comparisons and trade-offs say how much of them nothing bound."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import fairshield as fs
from fairshield.analysis.pareto import exempt_share
from fairshield.analysis.simulate import simulate
from fairshield.cli.app import app
from fairshield.periodic.compare import compare, make_policies
from fairshield.periodic.runs import Streams
from fairshield.spec import widest_finding

SKEWED = fs.InputModel.agnostic({"a": 0.25, "b": 0.75})


def policy_of(prop: fs.Property, horizon: int, **options: Any) -> fs.Policy:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.VacuousWarning)
        return fs.synthesize(prop, SKEWED, horizon=horizon, **options)


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 6), st.sampled_from([(), (4,), (3, 7)]))
def test_a_simulation_calls_exempt_what_an_audit_would(support, points):
    prop = fs.DemographicParity("0.4", min_support=support)
    policy = policy_of(prop, 8, checkpoints=points)
    rng = np.random.default_rng(support)
    found = simulate(policy, n_windows=40, rng=rng, keep=40)
    for counters, fair in (
        (found.counters, found.fair),
        (found.counters_unshielded, found.fair_unshielded),
    ):
        for window, path in enumerate(counters):
            at = [fs.Counts({"a": tuple(c[:2]), "b": tuple(c[2:])}) for c in path.tolist()]
            said = {prop.verdict(at[n]) for n in (*points, 8)}
            assert found.exempt[window] == (said == {"exempt"})
            assert fair[window] == ("unfair" not in said)
    assert found.n_exempt == found.exempt.sum()


counters_of = st.lists(
    st.lists(
        st.integers(0, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
        min_size=3,
        max_size=3,
    ),
    min_size=1,
    max_size=6,
)


@given(st.sampled_from(["0", "0.3", "1"]), st.integers(0, 4), counters_of)
def test_the_widest_of_many_is_the_worst_one_by_one(bound, support, counters):
    groups = ("a", "b", "c")
    for prop in (
        fs.DemographicParity(bound, min_support=support),
        fs.DisparateImpact(bound, min_support=support),
    ):
        each = [prop.finding(fs.Counts(dict(zip(groups, c, strict=True)))) for c in counters]
        found = widest_finding(prop, groups, np.array(counters))
        assert found is not None
        assert found.order()[0] == min(f.order() for f in each)[0]
        assert found.bias == pytest.approx(-min(f.order() for f in each)[1])
    assert widest_finding(prop, groups, np.zeros((0, 3, 2), int)) is None


@pytest.mark.parametrize("support", [0, 3])
def test_the_share_of_exempt_windows_is_what_a_simulation_finds(support):
    for prop in (
        fs.DemographicParity("0.3", min_support=support),
        fs.EqualOpportunity("0.3", min_support=support),
    ):
        policy = policy_of(prop, 10)
        share = exempt_share(policy.spec)
        found = simulate(policy, n_windows=20_000, rng=np.random.default_rng(1))
        assert share == pytest.approx(found.exempt.mean(), abs=0.02)


def test_a_trade_off_has_the_share_of_windows_that_bind_nobody():
    found = fs.pareto(
        lambda bound: fs.DemographicParity(bound, min_support=6),
        SKEWED, bounds=["0.1", "1"], horizons=[8],
    )  # fmt: skip
    assert [row.exempt for row in found.rows] == [pytest.approx(1.0)] * 2
    loose = fs.pareto(fs.DemographicParity, SKEWED, bounds=["0.1", "1"], horizons=[8])
    # Nobody of a, or nobody of b; and a bound of 1 cannot be exceeded.
    assert loose.rows[0].exempt == pytest.approx(0.25**8 + 0.75**8)
    assert loose.rows[1].exempt == pytest.approx(1.0)


def test_a_comparison_counts_ends_that_bound_nothing():
    prop = fs.DemographicParity("0.3", min_support=6)
    policies = make_policies(prop, SKEWED, period=8, periods=4, kinds=("dynamic",))
    streams = Streams.drawn(
        prop, SKEWED, period=8, periods=4, runs=20, rng=np.random.default_rng(0)
    )
    found = compare(policies, streams)
    mine = (streams.groups == 0).reshape(20, 4, 8).sum(axis=2).cumsum(axis=1)
    exempt = (mine < 6) | (np.arange(8, 33, 8) - mine < 6)
    assert (found.exempt, found.exempt_runs) == (exempt.sum(), exempt.all(axis=1).sum())
    assert 0 < found.exempt < 80


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(part) for part in arguments])


def test_the_commands_say_so(tmp_path):
    policy_of(fs.DisparateImpact("0.8", min_support=3), 8).save(tmp_path / "some.shield")
    policy_of(fs.DemographicParity("0.1", min_support=7), 8).save(tmp_path / "none.shield")
    some = run("simulate", tmp_path / "some.shield", "--windows", 500).stdout
    data = json.loads(run("simulate", tmp_path / "some.shield", "--windows", 500, "--json").stdout)
    assert 0 < data["exempt_windows"] < 500
    assert f"{data['exempt_windows']} (" in some.split("exempt windows")[1].splitlines()[0]
    assert "widest impact ratio" in some
    assert "bias" not in some
    none = run("simulate", tmp_path / "none.shield", "--windows", 50).stdout
    assert "All windows are exempt: the property bound nothing" in none
    options = ("--horizon", 8, "--groups", "a=0.25,b=0.75", "--bounds", "0.1,0.3")
    assert "binds nobody" in run("pareto", *options, "--min-support", 7).stdout
    assert "nothing to do" not in run("pareto", *options, "--min-support", 7).stdout
    compared = ("compare", "--property", "demographic-parity", "--bound", "0.1", "--period", 8)
    few = ("--periods", 2, "--runs", 5, "--groups", "a=0.5,b=0.5", "--shields", "dynamic")
    said = run(*compared, *few, "--min-support", 50).stdout
    assert "Of 10 ends of periods 10 were exempt" in said
    assert "100.0%" not in said


def test_reports_in_which_everything_bound_are_not_cluttered(tmp_path):
    fs.synthesize(fs.DemographicParity("0.3"), SKEWED, horizon=60).save(tmp_path / "p.shield")
    assert "exempt" not in run("simulate", tmp_path / "p.shield", "--windows", 50).stdout
    options = ("--horizon", 60, "--groups", "a=0.5,b=0.5", "--bounds", "0.1,0.3")
    assert "exempt" not in run("pareto", *options).stdout
