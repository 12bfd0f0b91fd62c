"""What a caller got wrong is said in a sentence: the value, the rule, and what to do instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import fairshield as fs
from fairshield.analysis.simulate import simulate
from fairshield.fairlearn import property_of
from fairshield.runtime.evaluate import evaluate

PROP = fs.DemographicParity("0.25")
INPUTS = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})


@cache
def policy() -> fs.Policy:
    return fs.synthesize(PROP, INPUTS, horizon=6)


def shield() -> fs.Shield:
    return fs.Shield(policy())


def stream() -> fs.Run:
    return fs.Run(policy())


def monitor() -> fs.Monitor:
    return fs.Monitor(PROP)


FRAME = pd.DataFrame({"group": list("abab"), "proposed": [1, 0, 1, 0], "score": [0.1, 0.9] * 2})
WORDS = pd.Series(["high", None, "low", 3.0], dtype=object)
GROUPS = ["a", "b", "a", "b"]
X, Y = np.array([[0.0], [1.0], [2.0], [3.0]] * 5), np.array([0, 1, 0, 1] * 5)


def fitted(**options: Any) -> Any:
    made = fs.ShieldedClassifier(LogisticRegression(), PROP, horizon=6, cv=None, **options)
    return made.fit(X, Y, sensitive_features=GROUPS * 5)


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    # Properties
    "a bound in words": (lambda: fs.DemographicParity("ten percent"), "'ten percent'"),
    "no bound": (lambda: fs.DemographicParity(None), "None"),
    "a bound of several": (lambda: fs.DemographicParity([0.1]), r"\[0.1\]"),
    "a bound that is no number": (lambda: fs.DemographicParity(float("nan")), "nan"),
    "a bound below 0": (lambda: fs.DemographicParity(-0.1), "-0.1"),
    "support in words": (lambda: fs.DemographicParity("0.1", min_support="5"), "'5'"),
    "counts that are a list": (lambda: PROP.holds([(3, 1), (3, 2)]), "Counts"),
    "counts that are nothing": (lambda: PROP.verdict(None), "Counts"),
    "counts with words": (lambda: fs.Counts({"a": ("3", 1), "b": (1, 1)}), "'3'"),
    "counts from a list": (lambda: fs.Counts([("a", 3, 1)]), "Counts"),
    "counts from nothing": (lambda: fs.Counts(None), "None"),
    # Input models
    "shares as a list": (lambda: fs.InputModel.agnostic([0.5, 0.5]), r"\[0.5, 0.5\]"),
    "a share in words": (lambda: fs.InputModel.agnostic({"a": "half", "b": 0.5}), "'half'"),
    "shares and a cost of nothing": (
        lambda: fs.InputModel.agnostic({"a": 0.5, "b": 0.5}, cost=None), "None"),
    "a table that is a list": (lambda: fs.InputModel.from_table([("a", True, 1.0)]), "table"),
    "a table of nothing": (lambda: fs.InputModel.from_table(None), "None"),
    "estimated from nothing": (lambda: fs.InputModel.estimate(None, None), "None"),
    "estimated from words": (lambda: fs.InputModel.estimate("abab", [1, 0, 1, 0]), "'abab'"),
    "proposals in words": (
        lambda: fs.InputModel.estimate(GROUPS, ["yes", "no", "perhaps", "no"]), "'perhaps'"),
    "costs of objects": (lambda: fs.InputModel.estimate(GROUPS, [1, 0, 1, 0], WORDS), "'high'"),
    "smoothing in words": (
        lambda: fs.InputModel.estimate(GROUPS, [1, 0, 1, 0], smoothing="much"), "'much'"),
    "names that are a number": (lambda: fs.InputModel.estimate(GROUPS, [1] * 4, names=2), "2"),
    "scores of objects": (lambda: fs.InputModel.from_scores(WORDS, GROUPS), "'high'"),
    "scores of nothing": (lambda: fs.InputModel.from_scores(None, GROUPS), "None"),
    "scores of hundreds": (
        lambda: fs.InputModel.from_scores([640, 700, 555, 610], GROUPS), "640.*threshold="),
    "scores below 0": (
        lambda: fs.InputModel.from_scores([-2.0, 1.5, 0.3, 1.0], GROUPS), "-2.0.*threshold="),
    "a threshold in words": (
        lambda: fs.InputModel.from_scores([0.1] * 4, GROUPS, threshold="high"), "'high'"),
    "records that are numbers": (lambda: fs.InputModel.from_records([1, 2]), "record"),
    "a rule of scores that is a threshold": (
        lambda: fs.InputModel.from_records([], scores=640), "ScoreRule.*640"),
    "a schedule of numbers": (lambda: fs.InputSchedule([1, 2]), "1"),
    # Synthesis
    "a property in words": (lambda: fs.synthesize("dp", INPUTS, horizon=4), "'dp'|str"),
    "inputs as a mapping": (lambda: fs.synthesize(PROP, {"a": 0.5}, horizon=4), "InputModel|dict"),
    "a horizon in words": (lambda: fs.synthesize(PROP, INPUTS, horizon="4"), "'4'"),
    "a horizon of half": (lambda: fs.synthesize(PROP, INPUTS, horizon=4.5), "4.5"),
    "a horizon below 0": (lambda: fs.synthesize(PROP, INPUTS, horizon=-4), "-4"),
    "no horizon": (lambda: fs.synthesize(PROP, INPUTS, horizon=None), "None"),
    "a start as a mapping": (
        lambda: fs.synthesize(PROP, INPUTS, horizon=4, start={"a": 1}), "a"),
    "a start of a list": (lambda: fs.synthesize(PROP, INPUTS, horizon=4, start=[1, 2]), "start"),
    "one checkpoint": (lambda: fs.synthesize(PROP, INPUTS, horizon=4, checkpoints=2), "2"),
    "spread in words": (lambda: fs.synthesize(PROP, INPUTS, horizon=4, spread="wide"), "'wide'"),
    "threads in words": (lambda: fs.synthesize(PROP, INPUTS, horizon=4, threads="2"), "'2'"),
    "an unknown method": (lambda: fs.synthesize(PROP, INPUTS, horizon=4, method="fast"), "'fast'"),
    "an unknown backend": (lambda: fs.synthesize(PROP, INPUTS, horizon=4, backend="gpu"), "'gpu'"),
    "bounds in one word": (
        lambda: fs.pareto(fs.DemographicParity, INPUTS, horizons=[4], bounds="0.1"), "'0.1'"),
    "bounds of nothing": (
        lambda: fs.pareto(fs.DemographicParity, INPUTS, horizons=[4], bounds=None), "None"),
    "one horizon": (
        lambda: fs.pareto(fs.DemographicParity, INPUTS, horizons=4, bounds=["0.1"]), "4"),
    "a property for its maker": (
        lambda: fs.pareto(PROP, INPUTS, horizons=[4], bounds=["0.1"]), "Parity"),
    # Shields and streams
    "a policy by its name": (lambda: fs.Shield("loans.shield"), "str"),
    "a stream of a property": (lambda: fs.Run(PROP), "DemographicParity"),
    "a stream of nothing": (lambda: fs.Run(None), "None"),
    "a cost in words": (lambda: shield().decide("a", proposed=True, cost="dear"), "'dear'"),
    "a cost of nothing": (lambda: shield().decide("a", proposed=True, cost=None), "None"),
    "a cost below 0": (lambda: shield().decide("a", proposed=True, cost=-1), "-1"),
    "a cost without end": (lambda: shield().decide("a", proposed=True, cost=10**400), "1000"),
    "a cost of several": (lambda: shield().decide("a", proposed=True, cost=[1.0]), r"\[1.0\]"),
    "a cost as an array": (
        lambda: shield().decide("a", proposed=True, cost=np.array([1.0, 2.0])), "array"),
    "a proposal of nothing": (lambda: shield().decide("a", proposed=None), "None"),
    "a proposal as an array": (lambda: shield().decide("a", proposed=np.array([1, 0])), "array"),
    "a proposal not available": (lambda: shield().decide("a", proposed=pd.NA), "NA"),
    "a proposal between": (lambda: shield().decide("a", proposed=0.7), "0.7"),
    "a group of several": (lambda: shield().decide(["a"], proposed=True), r"\['a'\]"),
    "a group as an array": (lambda: shield().decide(np.array(["a", "b"]), proposed=1), "array"),
    "a group not available": (lambda: stream().decide(pd.NA, proposed=True), "missing"),
    "groups in one word": (lambda: shield().decide_many("ab", [True, True]), "'ab'"),
    "groups in a mapping": (lambda: shield().decide_many({"a": 1}, [True]), "{'a': 1}"),
    "groups of nothing": (lambda: stream().decide_many(None, [True]), "None"),
    "proposals of nothing": (lambda: shield().decide_many(["a"], None), "None"),
    "one proposal for two": (lambda: shield().decide_many(["a", "b"], True), "proposed"),
    "costs in words": (lambda: shield().decide_many(["a"], [1], ["dear"]), "'dear'"),
    "costs of nothing": (lambda: shield().decide_many(["a", "b"], [1, 1], [None, 1]), "None"),
    "costs that are no numbers": (lambda: shield().decide_many(["a"], [1], [np.nan]), "nan"),
    "an outcome not awaited": (lambda: shield().observe(None, outcome=True), "None"),
    "advice that is none": (lambda: shield().record(True, final=True), "True"),
    "requests of numbers": (lambda: list(stream().decide_each([1, 2])), "1"),
    "unseen by a number": (lambda: fs.Run(policy(), unseen=3), "3"),
    "unseen as a list": (lambda: fs.Run(policy(), unseen=["a"]), r"\['a'\]"),
    "counts resumed from a list": (lambda: fs.Shield(policy(), counts=[1, 2]), "counts"),
    "decided in words": (
        lambda: fs.Shield(policy(), counts=policy().start, decided="2"), "'2'"),
    "a state that is none": (lambda: fs.step(policy(), 3, "a", proposed=True), "3"),
    "a period in words": (lambda: fs.PerpetualShield(PROP, INPUTS, period="10"), "'10'"),
    "a loaded number": (lambda: fs.Policy.load(3), "3"),
    # Reports
    "windows in words": (lambda: simulate(policy(), n_windows="9", rng=RNG()), "'9'"),
    "windows below 1": (lambda: simulate(policy(), n_windows=-1, rng=RNG()), "-1"),
    "a seed for a generator": (lambda: simulate(policy(), n_windows=5, rng=0), "Generator"),
    "a property simulated": (lambda: simulate(PROP, n_windows=5, rng=RNG()), "Parity"),
    "a property verified": (lambda: fs.verify(PROP), "Parity"),
    "a property evaluated": (lambda: evaluate(PROP), "Parity"),
    "an audit of numbers": (lambda: fs.audit(PROP, [1, 2]), "record"),
    "an audit for a policy": (lambda: fs.audit(policy(), []), "Policy"),
    "a monitor of words": (lambda: fs.Monitor("dp"), "'dp'|str"),
    "a monitor's horizon in words": (lambda: fs.Monitor(PROP, horizon="9"), "'9'"),
    "watched without a decision": (lambda: monitor().observe("a", accepted=None), "None"),
    "watched at a price in words": (
        lambda: monitor().observe("a", accepted=1, cost="dear"), "'dear'"),
    "watched in a list": (lambda: monitor().observe(["a"], accepted=1), r"\['a'\]"),
    "watched many of one": (lambda: monitor().observe_many("a", [1]), "'a'"),
    "explained nothing": (lambda: fs.explain(policy(), None), "None"),
    # Frames and libraries
    "a list as a frame": (lambda: fs.shield_frame([1, 2], policy()), "list"),
    "a frame without its column": (lambda: fs.shield_frame(FRAME, policy(), group="sex"), "'sex'"),
    "a frame and a number": (lambda: fs.shield_frame(FRAME, 3), "int"),
    "a column by number": (lambda: fs.shield_frame(FRAME, policy(), group=0), "0"),
    "scores of words": (
        lambda: fs.shield_frame(FRAME.assign(s=WORDS.fillna("x")), policy(), score="s"), "'high'"),
    "scores in hundreds": (
        lambda: fs.shield_frame(FRAME.assign(s=[640.0] * 4), policy(), score="s"),
        "640.*threshold="),
    "a frame's threshold in words": (
        lambda: fs.shield_frame(FRAME, policy(), score="score", threshold="high"), "'high'"),
    "an audited list": (lambda: fs.audit_frame([1], PROP), "list"),
    "an audited frame for a word": (
        lambda: fs.audit_frame(FRAME, "dp", accepted="proposed"), "str|'dp'"),
    "a classifier without rows": (
        lambda: fs.ShieldedClassifier(LogisticRegression(), PROP).fit(
            X, Y, sensitive_features=None), "sensitive_features"),
    "a classifier of numbers": (
        lambda: fs.ShieldedClassifier(LinearRegression(), PROP, horizon=6, cv=None,
                                      predict_method="predict_proba").fit(
            X, Y, sensitive_features=GROUPS * 5), "LinearRegression"),
    "a threshold as text": (lambda: fitted(threshold="0.5"), "'0.5'"),
    "bins in words": (lambda: fitted(bins="10"), "'10'"),
    "a constraint by number": (lambda: property_of(3), "int"),
}  # fmt: skip


def RNG() -> np.random.Generator:  # noqa: N802
    return np.random.default_rng(0)


FOREIGN = re.compile(
    r"' object |numba|ufunc|truth value of an|has no attribute|could not convert|float\(\) argument"
)
"""How Python, numpy and numba speak of what a user never named."""


@pytest.mark.parametrize("what", CALLS)
def test_a_wrong_type_is_a_sentence_that_names_it(what: str) -> None:
    call, named = CALLS[what]
    with pytest.raises(fs.FairshieldError) as caught:
        call()
    said = str(caught.value)
    assert re.search(named, said), said
    assert not FOREIGN.search(said), said


# Properties of a user's own -----------------------------------------------------------------


@dataclass(frozen=True)
class Divides(fs.Property):
    def fair(self, a: Any, b: Any) -> Any:
        return abs(a.accepted / a.seen - b.accepted / b.seen) <= 0.1


@dataclass(frozen=True)
class Measures(fs.Property):
    def fair(self, a: Any, b: Any) -> Any:
        return a.accepted - b.accepted


@dataclass(frozen=True)
class Forgets(fs.Property):
    def fair(self, a: Any, b: Any) -> Any:
        """Returns nothing."""


@dataclass(frozen=True)
class Fails(fs.Property):
    def fair(self, a: Any, b: Any) -> Any:
        return {(0, 0): True}[a.seen, b.seen]


@pytest.mark.parametrize(
    ("prop", "what", "state"),
    [
        (Divides(), "raised ZeroDivisionError", "0 accepted of 0"),
        (Measures(), "returned 0 \\(int\\)", "0 accepted of"),
        (Forgets(), "returned None", "0 accepted of"),
        (Fails(), "raised KeyError", "0 accepted of"),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, fs.Property) else "",
)
def test_a_property_that_gives_no_answer_is_told_so(
    prop: fs.Property, what: str, state: str
) -> None:
    match = f"{type(prop).__name__}.fair {what}.* for .*{state}.*must return True or False"
    with pytest.raises(fs.InvalidValueError, match=match):
        fs.synthesize(prop, INPUTS, horizon=4)
    with pytest.raises(fs.InvalidValueError, match=match):
        prop.holds(fs.Counts({"a": (0, 0), "b": (1, 0)}))


# What reads as what is meant ----------------------------------------------------------------


@pytest.mark.parametrize("cost", ["0.3", 0.3, np.float32(0.3), np.array(0.3)])
def test_a_cost_is_read_as_the_number_that_it_is(cost: Any) -> None:
    one = fs.Shield(policy()).decide("a", proposed=True, cost=cost)
    assert (one.cost, type(one.cost)) == (float(cost), float)
    stepped = fs.step(policy(), fs.State.initial(policy()), "a", proposed=True, cost=cost)[1]
    advised = fs.Shield(policy()).advise("a", proposed=True, cost=cost)
    assert one == stepped == advised
    shield().decide_many(["a"], [True], [cost])


def test_scores_of_any_size_are_read_with_a_threshold() -> None:
    scores = [640, 700, 555, 610]
    model = fs.InputModel.from_scores(scores, GROUPS, threshold=620, smoothing=0.0)
    assert model.probs[:, 1].sum() == pytest.approx(0.5)
    frame = FRAME.assign(s=scores)
    decided = fs.shield_frame(frame, policy(), score="s", threshold=620)
    report = fs.audit_frame(decided, PROP, score="s", threshold=620)
    assert report.overruled == decided["overruled"].sum()
    assert report.paid == pytest.approx(decided["paid"].sum())
    with pytest.raises(fs.InvalidValueError, match="threshold="):
        fs.audit_frame(decided, PROP, score="s")


def test_a_log_may_be_a_list_of_mappings() -> None:
    log = [{"group": "a", "accepted": True}, {"group": "b", "accepted": False}]
    assert fs.audit(PROP, log).violations[0].line == 2
    requests = [{"group": g, "proposed": True} for g in GROUPS]
    assert fs.InputModel.from_records(requests).groups == ("a", "b")
