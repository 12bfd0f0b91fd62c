"""Departures of the published runs: each is pinned by an example, and none of them is the text."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import scored

import fairshield as fs
from fairshield_experiments.departed import (
    SHIELDS,
    base_rate,
    everybody,
    judged,
    published_welfare,
    simulate_departed,
    who_comes,
    window_of,
)
from fairshield_experiments.experiments import Extent, departed_settings_of
from fairshield_experiments.people import People
from fairshield_experiments.published_runs.decide import Crowd, Table, Tables
from fairshield_experiments.published_runs.departures import (
    AS_PUBLISHED,
    DEPARTURES,
    WORDS,
    checked,
    matters,
    named,
)
from fairshield_experiments.published_runs.reference import Reference, after
from fairshield_experiments.published_runs.window import Welfare, Window, towards_half
from fairshield_experiments.simulate import Setting, outcomes, policy_of, simulate, streams

KINDS = ("demographic-parity", "equal-opportunity")
HALF = Fraction(1, 2)


def window(**changes: Any) -> Window:
    chosen: dict[str, Any] = {"labelled": False, "horizon": 2, "bound": HALF, "share": 0.5}
    return Window(**chosen | changes)


def setting(**changes: Any) -> Setting:
    chosen: dict[str, Any] = {
        "environment": "made-up",
        "learner": "ERM",
        "kind": "demographic-parity",
        "bound": "0.2",
        "shield": "finite-horizon",
        "undefined": "rate-0",
        "period_length": 14,
        "runs": 8,
    }
    periods = 1 if changes.get("shield", "finite-horizon") == "finite-horizon" else 3
    return Setting(**chosen | {"periods": periods} | changes)


def decided(window: Window, *people: tuple[int, float, bool]) -> list[bool]:
    """The decisions on people of a group, a score and an outcome, who come one by one."""
    group, score, relevant = (np.array([x]) for x in zip(*people, strict=True))
    crowd = Crowd(group.astype(np.int8), score >= 0.5, score.astype(float), relevant)
    found: list[bool] = Table(window).decide(crowd)[0].tolist()
    return found


# The reference is what the kernels compute --------------------------------------------------


@st.composite
def windows(draw: st.DrawFn) -> Window:
    labelled = draw(st.booleans())
    n = st.integers(0, 4)
    seen = draw(st.tuples(n, n))
    welfare = None
    if draw(st.booleans()):
        lower = Fraction(draw(st.integers(0, 6)), 10)
        upper = lower + Fraction(draw(st.integers(1, 4)), 10)
        welfare = Welfare(lower, upper, draw(st.integers(1, 3)))
    return Window(
        labelled=labelled,
        horizon=draw(st.integers(1, 5 if labelled else 7)),
        bound=Fraction(draw(st.integers(1, 6)), 10),
        share=draw(st.floats(0.1, 0.9)),
        undefined=draw(st.sampled_from(["bias-0", "rate-0"])),
        history=(
            seen[0],
            draw(st.integers(0, seen[0])),
            seen[1],
            draw(st.integers(0, seen[1])),
        ),
        welfare=welfare,
        departures=checked(draw(st.sets(st.sampled_from(DEPARTURES)))),
    )


def crowd_of(window: Window, seed: int, runs: int = 12) -> Crowd:
    rng = np.random.default_rng(seed)
    shape = runs, window.horizon
    score = rng.random(shape).round(3)
    relevant = rng.random(shape) < 0.6 if window.labelled else np.ones(shape, bool)
    return Crowd((rng.random(shape) < 0.5).astype(np.int8), score >= 0.5, score, relevant)


@settings(max_examples=examples(150), deadline=None)
@given(windows(), st.integers(0, 2**32))
def test_compiled_decisions_are_those_of_the_recursion(window: Window, seed: int) -> None:
    crowd, reference = crowd_of(window, seed), Reference(window)
    found = Table(window).decide(crowd)
    prices, chances = window.prices(crowd.score), towards_half(crowd.score)
    for run in range(len(found)):
        at = (0, 0, 0, 0)
        for step in range(window.horizon):
            group = int(crowd.group[run, step])
            expected = reference.accepts(
                window.horizon - 1 - step,
                at,
                group,
                proposed=bool(crowd.proposed[run, step]),
                price=prices[run, step],
                score=chances[run, step],
            )
            assert found[run, step] == expected
            if crowd.relevant[run, step]:
                at = after(at, (group, int(expected)))


# No switch is the text ----------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None)
@given(
    st.sampled_from(SHIELDS),
    st.sampled_from(KINDS),
    st.sampled_from(["bias-0", "rate-0"]),
    st.sampled_from(["0.1", "0.2", "0.35"]),
    st.integers(0, 2**16),
    st.floats(0.1, 0.9),
)
def test_without_departures_decisions_are_those_of_the_library(
    shield: str, kind: Any, undefined: Any, bound: str, seed: int, share: float
) -> None:
    chosen = setting(shield=shield, kind=kind, undefined=undefined, bound=bound)
    world = scored(seed, n=120, share=share)
    people, library, _ = outcomes(chosen, world, policy_of(chosen, world))
    requests = streams(chosen, people)
    crowd = Crowd(requests.groups, requests.proposed, people.score, requests.relevant)
    accepted, feasible = Tables().decide(
        window_of(chosen, world), crowd, dynamic=shield == "dynamic"
    )
    assert library.guaranteed is not None
    for run in range(chosen.runs):
        for period in range(chosen.periods):
            columns = slice(period * chosen.period_length, (period + 1) * chosen.period_length)
            if shield == "dynamic":
                assert feasible[run, period] == library.guaranteed[run, period]
                if not feasible[run, period]:
                    break  # the library makes a best effort, after which the runs part
            assert (accepted[run, columns] == library.accepted[run, columns]).all()


@pytest.mark.parametrize(("shield", "kind"), list(product(SHIELDS, KINDS)))
def test_what_does_not_matter_changes_nothing(shield: str, kind: Any) -> None:
    world = scored(3, n=120, share=0.4)
    labelled = kind == "equal-opportunity"
    text = setting(shield=shield, kind=kind)
    base = simulate_departed([text], [world]).drop(columns="departures")
    changed = set()
    for departure in DEPARTURES:
        one = replace(text, departures=(departure,))
        found = simulate_departed([one], [world]).drop(columns="departures")
        if not found.equals(base):
            changed.add(departure)
    # What matters need not show in few runs; what does not matter never shows.
    assert changed <= {d for d in DEPARTURES if matters((d,), shield, labelled=labelled)}
    assert "population" in changed


# A: two prices ------------------------------------------------------------------------------


def test_unsure_people_are_overruled_early() -> None:
    # After accepting somebody of a at first, whoever is next is forced with chance 1/2, so that
    # the value is price/2; after rejecting them, it is price/4: a person of b must be rejected.
    text, published = window(), window(departures=("prices",))
    assert Reference(text).successors(2, (0, 0, 0, 0), 0) == (1 / 4, 1 / 2)
    assert Reference(published).successors(2, (0, 0, 0, 0), 0) == (1 / 16, 1 / 8)
    # Kept if 1/8 <= |score - 1/2| + 1/16.
    for score, kept in ((0.55, False), (0.57, True)):
        assert decided(text, (0, score, True), (0, 0.9, True))[0] is True
        assert decided(published, (0, score, True), (0, 0.9, True))[0] is kept


# B: the person counts twice -----------------------------------------------------------------


def test_a_decision_passes_only_if_it_could_be_repeated() -> None:
    # b has 9 of 20, a 3 of 6.  Accepted, a has 4/7, which is .121 away; again, 5/8, which is .175
    # away.  Rejected, a has 3/7; again, 3/8, which is .075 away.
    text = window(
        labelled=True, horizon=1, bound=Fraction(3, 20), history=(6, 3, 20, 9),
    )  # fmt: skip
    twice = replace(text, departures=("person-twice",))
    assert decided(text, (0, 0.9, True)) == [True]
    assert decided(twice, (0, 0.9, True)) == [False]
    assert Reference(twice).worth(0, (0, 0, 0, 0), (0, 1), 0.9) == math.inf
    assert Reference(twice).worth(0, (0, 0, 0, 0), (0, 0), 0.9) == 0


def test_the_chances_of_a_rejected_person_are_exchanged() -> None:
    # With one decision left, accepting makes a bias of 1, or 1/2 if one of the group was rejected.
    # W(1, nobody) = 1/2; W(1, one or two of a rejected) = 1/4, because only b is forced then.
    reference = Reference(window(labelled=True, departures=("person-twice",)))
    assert reference.value(1, (0, 0, 0, 0), (0, 0)) == 3 / 8
    assert reference.value(1, (1, 0, 0, 0), (0, 0)) == 1 / 4
    worth = reference.worth(1, (0, 0, 0, 0), (0, 0), 0.8)
    assert worth == pytest.approx(0.2 * 1 / 4 + 0.8 * 3 / 8)
    text = Reference(window(labelled=True))
    assert text.worth(1, (0, 0, 0, 0), (0, 0), 0.8) == 3 / 8


def test_no_score_is_a_certainty() -> None:
    # With weight 0, what is infinite would be no number.
    assert towards_half(np.array([0.0, 1.0])).tolist() == [1e-8, 1 - 1e-8]


# C: who comes -------------------------------------------------------------------------------


def test_a_run_draws_from_six_tenths_of_all_people() -> None:
    world = scored(0, n=50)
    people = everybody(world)
    assert len(people) == 100
    chosen = setting(
        shield="static-fair", period_length=50, periods=40, runs=5, departures=("population",)
    )
    who = who_comes(chosen, world)
    assert who.shape == (5, 2000)
    for run in who:
        assert all(len({*run[i : i + 50].tolist()}) == 50 for i in range(0, 2000, 50))
        came = np.unique(run)  # 40 windows of 50 of 60 people: nobody of them stays away
        for label in (False, True):
            same = np.flatnonzero(people.target == label)
            assert len(np.intersect1d(came, same)) == round(0.6 * len(same))
    assert len({tuple(np.unique(run)) for run in who}) == 5
    assert (who < 50).any()  # who trained the classifier


def test_a_window_longer_than_the_population_is_refused() -> None:
    long = setting(period_length=61, departures=("population",))
    with pytest.raises(fs.InvalidValueError, match=r"61 decisions .* 60 people of made-up"):
        who_comes(long, scored(0, n=50))


# D: missing entries -------------------------------------------------------------------------


def test_a_zero_is_read_as_infinite_where_the_counters_are_unfair() -> None:
    # One person is too few for Static-BW to require anything, so all values are 0.
    text = window(
        horizon=1, bound=Fraction(1, 5), welfare=Welfare(Fraction(1, 5), Fraction(2, 5), 5)
    )
    missing = replace(text, departures=("missing-entries",))
    assert Reference(text).read(0, (1, 1, 0, 0), None) == 0
    assert Reference(missing).read(0, (1, 1, 0, 0), None) == math.inf
    assert Reference(missing).read(0, (1, 0, 0, 0), None) == 0
    assert decided(text, (0, 0.9, True)) == [True]
    assert decided(missing, (0, 0.9, True)) == [False]


def test_what_was_never_visited_is_read_as_free_where_it_is_fair() -> None:
    # Before the first decision nobody counts, so a table never has one person and one more open.
    # Two of b rejected, the last of whom is open: an acceptance in a is forced by neither.
    twice = window(labelled=True, horizon=2, departures=("person-twice",))
    missing = replace(twice, departures=("person-twice", "missing-entries"))
    assert Reference(twice).read(1, (0, 0, 1, 0), (1, 0)) == 1 / 4
    assert Reference(missing).read(1, (0, 0, 1, 0), (1, 0)) == 0
    assert Reference(missing).read(1, (0, 0, 1, 1), (1, 1)) == math.inf
    # The same counters before one decision less are visited.
    longer = replace(missing, horizon=3)
    assert Reference(longer).read(1, (0, 0, 1, 0), (1, 0)) == 1 / 4


# E: bounds of Static-BW ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ones", "people", "expected"),
    [
        (11208, 45222, {"0.1": 11, "0.15": 7, "0.2": 5}),  # Adult
        (4640, 41188, {"0.1": 10, "0.15": 7, "0.2": 5}),  # Bank
        (2809, 6172, {"0.1": 10, "0.15": 7, "0.2": 6}),  # COMPAS
        (700, 1000, {"0.1": 10, "0.15": 7, "0.2": 6}),  # German
    ],
)
def test_n_is_rounded_up_from_float32(ones: int, people: int, expected: dict[str, int]) -> None:
    for bound, least in expected.items():
        found = published_welfare(Fraction(ones, people), Fraction(bound))
        assert found.least == least
        assert found.upper - found.lower == Fraction(bound)


def test_the_base_rate_is_that_of_all_people() -> None:
    world = scored(0, n=50, rate=0.9)
    target = everybody(world).target
    chosen = setting(shield="static-bounded", departures=("static-bounds",))
    welfare = window_of(chosen, world).welfare
    assert welfare is not None
    assert base_rate(world) == Fraction(int(target.sum()), 100)
    assert (welfare.lower + welfare.upper) / 2 == base_rate(world)


def test_the_end_test_leaves_the_last_person_out() -> None:
    # One of two accepted in each group: right without the last person, whatever their outcome.
    # With them, a would have 2/3 or 1/3, outside of the bounds.
    text = window(
        labelled=True, horizon=5, bound=Fraction(1, 5),
        welfare=Welfare(Fraction(2, 5), Fraction(3, 5), 2),
    )  # fmt: skip
    apart = replace(text, departures=("static-bounds",))
    balanced = (2, 1, 2, 1)
    for last in ((0, 0), (0, 1)):
        assert Reference(text).value(0, balanced, last) == math.inf
        assert Reference(apart).value(0, balanced, last) == 0
    # Too few without the last person: nothing is required.
    assert Reference(apart).value(0, (1, 1, 2, 1), (0, 1)) == 0
    assert Reference(text).value(0, (1, 1, 2, 1), (0, 1)) == math.inf


def test_the_end_test_wants_a_small_bias_for_both_outcomes() -> None:
    apart = window(
        labelled=True, horizon=5, bound=Fraction(1, 10),
        welfare=Welfare(Fraction(2, 5), Fraction(3, 5), 2), departures=("static-bounds",),
    )  # fmt: skip
    # 2/3 or 1/3 is more than .1 from 1/2.
    assert Reference(apart).value(0, (2, 1, 2, 1), (0, 1)) == math.inf


# F: judging ---------------------------------------------------------------------------------


def test_ties_are_judged_in_floating_point() -> None:
    # 8/10 - 7/10 is the bound exactly, and more than 0.1 as floats have it.
    chosen = setting(kind="demographic-parity", bound="0.1", shield="static-fair", periods=1)
    assert 8 / 10 - 7 / 10 > 0.1
    tied = (10, 8, 10, 7)
    text = window(horizon=1, bound=Fraction(1, 10), history=tied)
    assert Reference(text)._fair((0, 0, 0, 0))
    assert not Reference(replace(text, departures=("judging",)))._fair((0, 0, 0, 0))
    assert chosen.prop.bias(fs.GroupCount(10, 8), fs.GroupCount(10, 7)) > 0.1


def test_at_a_finite_horizon_the_bias_is_rounded() -> None:
    class Found:
        bias = np.array([[0.1004], [0.1006]])

    finite = setting(bound="0.1", period_length=1)
    assert judged(finite, Found).tolist() == [[True], [False]]  # type: ignore[arg-type]
    periodic = setting(bound="0.1", shield="static-fair")
    assert judged(periodic, Found).tolist() == [[False], [False]]  # type: ignore[arg-type]


# Settings -----------------------------------------------------------------------------------


def test_rows_are_those_of_a_simulation_and_name_the_departures() -> None:
    world = scored(0, n=100)
    text = setting(shield="static-bounded")
    frame = simulate_departed([replace(text, departures=DEPARTURES)], [world])
    plain = simulate(text, world)
    assert list(frame.columns) == list(plain.columns)
    assert (frame.dtypes == plain.dtypes).all()
    assert set(frame["departures"]) == {AS_PUBLISHED}
    assert set(plain["departures"]) == {""}


def test_learners_of_a_group_decide_about_the_same_people() -> None:
    world = scored(0, n=100)

    def better(people: People) -> People:
        return replace(people, score=np.clip(people.score + 0.05, 0, 1))

    other = replace(
        world, learner="PR", training=better(world.training), held_out=better(world.held_out)
    )
    ours = setting(departures=DEPARTURES, kind="equal-opportunity")
    both = [ours, replace(ours, learner="PR")]
    frame = simulate_departed(both, [world, other])
    alone = simulate_departed(both[1:], [other])
    second = frame[frame["learner"] == "PR"].reset_index(drop=True)
    assert second.equals(alone)
    counts = frame.groupby("learner")[["n_a", "n_b"]].sum()
    assert (counts.loc["ERM"] == counts.loc["PR"]).all()


@pytest.mark.parametrize(
    "changes", [{"shield": "perpetual"}, {"inputs": "learned"}, {"min_support": 3}]
)
def test_what_was_not_published_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(fs.InvalidValueError, match="the published runs had no made-up"):
        window_of(setting(**changes), scored(0, n=50))


def test_departures_have_names_and_words() -> None:
    assert set(WORDS) == set(DEPARTURES)
    assert named(checked([AS_PUBLISHED])) == AS_PUBLISHED
    assert named(checked(["judging", "prices"])) == "prices+judging"
    with pytest.raises(fs.InvalidValueError, match="unknown departure 'luck': choose from as-pub"):
        checked(["luck"])


def test_experiments_run_all_departures_and_each_alone() -> None:
    extent = Extent(learners={"ERM": None, "PR": None}, environments=("german-age",))
    whole = [*departed_settings_of("as-published", extent)]
    assert {s.departures for group in whole for s in group} == {DEPARTURES}
    assert {s.undefined for group in whole for s in group} == {"rate-0"}
    finite = [group for group in whole if group[0].shield == "finite-horizon"]
    assert all([s.learner for s in group] == ["ERM", "PR"] for group in finite)
    assert len(finite) == 2 * 4  # properties, bounds
    assert len(whole) - len(finite) == 2 * 3 * 3  # properties, bounds, shields
    alone = [group[0] for group in departed_settings_of("ablation", extent)]
    held_out = {d for d in DEPARTURES if d != "population"}
    assert {s.departures for s in alone} == {*((d,) for d in DEPARTURES), checked(held_out)}
    assert {s.bound for s in alone if s.shield == "dynamic"} == {"0.1"}
    assert {s.shield for s in alone if s.departures == ("static-bounds",)} == {"static-bounded"}
    assert {s.kind for s in alone if s.departures == ("person-twice",)} == {KINDS[1]}
    assert not [*departed_settings_of("finite", extent)]
