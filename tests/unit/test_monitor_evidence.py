"""Bets against an input model: fair if it is right, won if it is not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import input_models

import fairshield as fs
from fairshield.monitor import evidence
from fairshield.monitor.bets import log_gamma
from fairshield.monitor.evidence import CHECK_EVERY, LENGTHS, Watch

EVEN = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
PRICED = fs.InputModel.from_table(
    {
        ("a", False, 0.5): 0.2,
        ("a", True, 2.0): 0.1,
        ("b", False, 0.5): 0.3,
        ("b", True, 0.5): 0.1,
        ("b", True, 2.0): 0.3,
    },
    outcomes={"a": 0.25, "b": 0.5},
)


@pytest.fixture
def soon() -> Iterator[None]:
    """Looks at every request, and bets that begin anew after two and after three."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "CHECK_EVERY", 1)
        patch.setattr(evidence, "LENGTHS", (2, 3))
        yield


def possible(model: fs.InputModel, labelled: bool) -> list[tuple[float, tuple[Any, ...]]]:
    """Every request that may come, with its probability."""
    found = []
    for g, r, c in product(range(2), (False, True), range(len(model.levels))):
        p, cost = float(model.probs[g, int(r), c]), float(model.levels[c])
        if not labelled:
            found.append((p, (g, r, cost, None)))
        else:
            assert model.outcomes is not None
            z = float(model.outcomes[g, int(r), c])
            found += [(p * z, (g, r, cost, True)), (p * (1 - z), (g, r, cost, False))]
    return [(p, request) for p, request in found if p > 0.0]


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("model", "labelled", "length"),
    [(EVEN, False, 5), (EVEN, True, 3), (PRICED, False, 4), (PRICED, True, 3)],
)
def test_against_a_right_model_the_capital_is_at_most_one_on_average(
    model: fs.InputModel, labelled: bool, length: int
) -> None:
    expected = 0.0
    for sequence in product(possible(model, labelled), repeat=length):
        watch, probability = Watch(model, None, 0.05), 1.0
        for p, request in sequence:
            probability *= p
            assert watch.count(*request)
            watch.check()
        expected += probability * math.exp(watch.look())
    # A bet is also placed on what the model thinks impossible, and lost if the model is right.
    assert expected <= 1.0 + 1e-9
    if model is EVEN:
        assert expected == pytest.approx(1.0, rel=1e-9)


@pytest.mark.usefixtures("soon")
def test_so_it_is_against_a_schedule() -> None:
    schedule = fs.InputSchedule([(EVEN, 1), (fs.InputModel.agnostic({"a": 0.2, "b": 0.8}), 1)])
    table, expected = schedule.table(2), 0.0
    for sequence in product(product(range(2), (False, True)), repeat=4):
        watch, probability = Watch(schedule, 2, 0.05), 1.0
        for t, (g, r) in enumerate(sequence):
            probability *= float(table.probs[t % 2, g, int(r), 0])
            watch.count(g, r, 1.0, None)
            watch.check()
        expected += probability * math.exp(watch.look())
    assert expected == pytest.approx(1.0, rel=1e-9)


@settings(max_examples=examples(25))
@given(input_models(max_levels=2), st.integers(1, 2))
def test_the_capital_of_every_part_is_at_most_one_on_average(
    model: fs.InputModel, length: int
) -> None:
    expected = np.zeros(4)
    for sequence in product(possible(model, labelled=True), repeat=length):
        watch, probability = Watch(model, None, 0.05), 1.0
        for p, request in sequence:
            probability *= p
            watch.count(*request)
        expected += probability * np.exp(watch.odds.capital(watch.cells))
    assert (expected <= 1.0 + 1e-9).all()
    assert model.outcomes is not None
    if (model.probs > 0.0).all() and ((model.outcomes > 0.0) & (model.outcomes < 1.0)).all():
        assert expected == pytest.approx(np.ones(4), rel=1e-9)


def test_a_right_model_is_seldom_contradicted_however_often_one_looks() -> None:
    rng, alpha, streams = np.random.default_rng(3), 0.2, 300
    contradicted = 0
    for _ in range(streams):
        drawn = PRICED.table(1).draw(rng.random(1280), True)
        outcomes = rng.random(1280) < drawn.relevance
        watch = Watch(PRICED, None, alpha)
        costs = PRICED.levels[drawn.levels]
        watch.count_many(drawn.groups.astype(int), drawn.proposed, costs, outcomes)
        contradicted += watch.contradicted_at is not None
    assert contradicted / streams <= alpha


CHANGED = {
    "groups": fs.InputModel.agnostic({"a": 0.7, "b": 0.3}),
    "proposals": fs.InputModel.from_table(
        {(g, r, 1.0): 0.35 if r else 0.15 for g in "ab" for r in (False, True)}
    ),
}


@pytest.mark.parametrize("before", [0, 5000])
@pytest.mark.parametrize("part", CHANGED)
def test_a_change_is_noticed_and_named_early_and_late(part: str, before: int) -> None:
    rng = np.random.default_rng(5)
    watch = Watch(EVEN, None, 0.05)
    for model, n in ((EVEN, before), (CHANGED[part], 1000)):
        drawn = model.table(1).draw(rng.random(n), None)
        watch.count_many(drawn.groups.astype(int), drawn.proposed, np.ones(n), None)
    assert watch.contradicted_at is not None
    assert before < watch.contradicted_at <= before + 1000
    words = {"groups": "of requests, the model says 0.5", "proposals": "proposed to be accepted"}
    assert words[part] in watch.diagnosis
    revised = watch.revised()
    assert isinstance(revised, fs.InputModel)
    assert np.abs(revised.probs - CHANGED[part].probs).max() < 0.1


def test_costs_of_a_revised_model_are_as_recent_as_its_probabilities() -> None:
    table = {(g, r, c): 0.125 for g in "ab" for r in (False, True) for c in (0.25, 1.0)}
    model = fs.InputModel.from_table(table)
    model = fs.InputModel(model.groups, model.levels, model.probs, None, np.array([0.5, np.inf]))
    watch, n = Watch(model, None, 0.05), 32_768
    drawn = model.table(1).draw(np.random.default_rng(2).random(n + 2048), None)
    costs = model.levels[drawn.levels].copy()
    costs[n:] = 20.0
    watch.count_many(drawn.groups.astype(int), drawn.proposed, costs, None)
    revised = watch.revised()
    assert isinstance(revised, fs.InputModel)
    assert revised.levels == pytest.approx([0.25, 20.0])


@pytest.mark.usefixtures("soon")
def test_bets_that_are_over_contradict_a_model_too() -> None:
    for wrong in product(range(2), repeat=6):
        watch = Watch(EVEN, None, 0.9)
        for g in wrong:
            watch.count(g, True, 1.0, None)
            watch.check()
        assert (watch.diagnosis != "") == (watch.contradicted_at is not None)
        assert watch.recent().people.any()


@pytest.mark.parametrize("later", [2000, 60_000, 62_600])
def test_a_revised_model_forgets_what_changed_once_more(later: int) -> None:
    rng, watch = np.random.default_rng(4), Watch(EVEN, None, 0.05)
    for share, n in ((0.7, 3000), (0.1, later)):
        groups, proposed = rng.integers(0, 2, n), rng.random(n) < share
        watch.count_many(groups, proposed, np.ones(n), None)
    revised = watch.revised()
    assert isinstance(revised, fs.InputModel)
    # Of bets that go back so far and no further, some requests from before may remain.
    assert revised.probs[:, 1].sum() < (0.12 if later > 2000 else 0.35)


def test_after_one_change_a_revised_model_rests_on_all_requests_since() -> None:
    rng, watch, n = np.random.default_rng(6), Watch(EVEN, None, 0.05), 40_000
    watch.count_many(rng.integers(0, 2, n), rng.random(n) < 0.7, np.ones(n), None)
    assert watch.recent().people.sum() == n


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ((0, True, 0.5, None), "0.5 of group a are proposed to be accepted"),
        ((1, True, 2.5, None), "cost from 2"),
    ],
)
def test_what_the_model_thinks_impossible_contradicts_it_at_once(
    request_: tuple[Any, ...], words: str
) -> None:
    table = {("a", False, 0.5): 0.5, ("b", False, 2.0): 0.25, ("b", True, 2.0): 0.25}
    model = fs.InputModel.from_table(table)
    watch = Watch(model, None, 0.05)
    assert watch.count(0, False, 0.5, None)
    assert watch.check() is None
    possible = watch.count(*request_)
    assert not possible
    assert watch.check(possible) == math.inf
    assert words in watch.diagnosis
    again = Watch(model, None, 0.05)
    g, r, c, _ = request_
    found = again.count_many(
        np.array([0, g, 0]), np.array([False, r, False]), np.array([0.5, c, 0.5]), None
    )
    assert found == (2, math.inf)
    assert again.diagnosis == watch.diagnosis
    revised = again.revised()
    assert isinstance(revised, fs.InputModel)
    assert revised.levels[-1] == max(c, 2.0)


def test_costs_and_outcomes_are_named_too() -> None:
    rng, n = np.random.default_rng(0), 2000
    drawn = PRICED.table(1).draw(rng.random(n), True)
    group, costs = drawn.groups.astype(int), PRICED.levels[drawn.levels]
    watch = Watch(PRICED, None, 0.05)
    watch.count_many(group, drawn.proposed, costs, np.ones(n, bool))
    assert "have outcome 1, the model says" in watch.diagnosis
    even = fs.InputModel.from_table(
        {(g, r, c): 0.125 for g in "ab" for r in (False, True) for c in (0.5, 2.0)}
    )
    watch = Watch(even, None, 0.05)
    drawn = even.table(1).draw(rng.random(n), None)
    costs = np.where(rng.random(n) < 0.8, 0.5, 2.0)
    watch.count_many(drawn.groups.astype(int), drawn.proposed, costs, None)
    assert "cost" in watch.diagnosis
    assert "the model says 0.5" in watch.diagnosis


def test_bets_begin_anew_where_there_is_a_check() -> None:
    assert all(length % CHECK_EVERY == 0 for length in LENGTHS)


@given(st.integers(0, 10**9))
def test_log_gamma_is_right(n: int) -> None:
    for x in (n + 0.5, n + 1.0):
        assert log_gamma(np.array([x]))[0] == pytest.approx(math.lgamma(x), rel=1e-12, abs=1e-11)


def test_a_watch_needs_a_model_and_requests() -> None:
    with pytest.raises(fs.InvalidValueError, match="inputs must be an InputModel"):
        Watch(0.5, None, 0.05)  # type: ignore[arg-type]
    with pytest.raises(fs.InvalidValueError, match="observe some first"):
        Watch(EVEN, None, 0.05).revised()
