"""Outcomes that are known of the accepted alone, or were filled in, wherever they are read."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import fairshield as fs
from fairshield.periodic.runs import Streams
from fairshield.records import Record

EQUAL = fs.EqualOpportunity("0.1")
PAGE = "late-outcomes.md"
_RNG = np.random.default_rng(0)
GROUPS = np.where(_RNG.random(1000) < 0.5, "a", "b")
ACCEPTED = _RNG.random(1000) < np.where(GROUPS == "b", 0.6, 0.3)
GOOD = _RNG.random(1000) < 0.7


def records(rejected: Any, *, good: Any = GOOD) -> list[Record]:
    """Equally good people; the rejected have ``rejected`` for an outcome."""
    rows = zip(GROUPS.tolist(), ACCEPTED.tolist(), good.tolist(), strict=True)
    return [
        Record(i, {"group": g, "proposed": y, "accepted": y, "outcome": z if y else rejected})
        for i, (g, y, z) in enumerate(rows, 1)
    ]


def everybody() -> list[Record]:
    """The same people, the outcomes of all of whom are known."""
    told = records(None)
    return [r._replace(fields=r.fields | {"outcome": bool(GOOD[i])}) for i, r in enumerate(told)]


def test_an_audit_says_what_is_the_matter_with_rejected_people() -> None:
    with pytest.raises(fs.InvalidValueError, match="of somebody who was rejected") as caught:
        fs.audit(EQUAL, records(None))
    assert "do not fill them in" in str(caught.value)
    assert PAGE in str(caught.value)


def test_an_audit_of_outcomes_that_were_filled_in_is_not_true() -> None:
    report = fs.audit(EQUAL, records(False))
    assert report.holds  # every rate is 1
    assert not report
    assert report.doubt is not None
    assert "nobody rejected counts" in report.doubt
    assert report.to_dict()["doubt"] == report.doubt
    known = fs.audit(EQUAL, everybody())
    assert known.doubt is None
    assert not known.holds


def test_a_monitor_that_awaits_somebody_is_quiet_all_the_same() -> None:
    monitor = fs.Monitor(fs.EqualOpportunity("0.5"), groups=("a", "b"))
    last = int(np.flatnonzero(~ACCEPTED)[-1])
    known = np.arange(1000) != last
    monitor.expect_many(GROUPS, ACCEPTED)
    monitor.observe_many(GROUPS[known], ACCEPTED[known], outcomes=GOOD[known])
    monitor.end()
    report = monitor.report()
    assert (report.coverage.unknown, report.doubt, report.quiet) == (1, None, True)


def test_a_tiny_log_is_given_the_benefit_of_the_doubt() -> None:
    few = [Record(i, {"group": g, "accepted": y, "outcome": y}) for i, (g, y) in
           enumerate([("a", 1), ("b", 1), ("a", 0), ("b", 0)])]  # fmt: skip
    assert fs.audit(EQUAL, few)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_do_not_advise_to_fill_in(kind: str) -> None:
    library = pytest.importorskip(kind)
    outcome = [bool(z) if y else None for y, z in zip(ACCEPTED, GOOD, strict=True)]
    columns = {"group": GROUPS.tolist(), "proposed": ACCEPTED.tolist(), "outcome": outcome}
    frame = library.DataFrame(columns)
    with pytest.raises(fs.InvalidValueError, match="do not fill them in") as caught:
        fs.shield_frame(frame, EQUAL, horizon=20)
    assert f"as {int((~ACCEPTED).sum())} of 1,000 are" in str(caught.value)
    filled = library.DataFrame(columns | {"outcome": (ACCEPTED & GOOD).tolist()})
    with pytest.warns(fs.OutcomesWarning, match="nobody rejected counts"):
        fs.shield_frame(filled, EQUAL, horizon=20)
    audited = library.DataFrame(columns | {"accepted": ACCEPTED.tolist()})
    with pytest.raises(fs.InvalidValueError, match=PAGE):
        fs.audit_frame(audited, EQUAL)
    done = filled.assign(accepted=ACCEPTED) if kind == "pandas" else filled.with_columns(
        library.Series("accepted", ACCEPTED)
    )  # fmt: skip
    assert not fs.audit_frame(done, EQUAL)
    complete = library.DataFrame(columns | {"outcome": GOOD.tolist()})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fs.shield_frame(complete, EQUAL, horizon=20)


def test_an_input_model_tells_why_it_has_no_outcomes() -> None:
    inputs = fs.InputModel.from_records(records(None))
    fs.synthesize(fs.DemographicParity("0.1"), inputs, horizon=10)
    for wanted in (inputs, fs.InputSchedule([(inputs, 5), (inputs, 5)])):
        with pytest.raises(fs.InvalidValueError, match="of nobody rejected is known") as caught:
            fs.synthesize(EQUAL, wanted, horizon=10)
        assert PAGE in str(caught.value)
        assert "outcomes=" not in str(caught.value)  # which goes with shares, not with records
    without = [r._replace(fields=r.fields | {"outcome": None}) for r in records(None)]
    unlabelled = fs.InputModel.from_records(without)
    with pytest.raises(fs.InvalidValueError, match="no outcome probabilities") as caught:
        fs.synthesize(EQUAL, unlabelled, horizon=10)
    assert PAGE not in str(caught.value)


def test_an_input_model_of_outcomes_that_were_filled_in_is_warned_of() -> None:
    with pytest.warns(fs.OutcomesWarning, match="filled in"):
        fs.InputModel.from_records(records(False))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fs.InputModel.from_records(everybody()).outcomes is not None


def test_recorded_streams_are_warned_of() -> None:
    with pytest.warns(fs.OutcomesWarning, match="filled in"):
        Streams.recorded(records(False), EQUAL, ("a", "b"), 100)
    with pytest.raises(fs.InvalidValueError, match=PAGE):
        Streams.recorded(records(None), EQUAL, ("a", "b"), 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Streams.recorded(records(False), fs.DemographicParity("0.1"), ("a", "b"), 100)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_arrays_with_unknown_outcomes_are_refused(missing: Any) -> None:
    outcomes = [bool(z) if y else missing for y, z in zip(ACCEPTED, GOOD, strict=True)]
    model = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    policy = fs.synthesize(EQUAL, model, horizon=1000, method="long")
    stream, monitor = fs.Run(policy), fs.Monitor(EQUAL)
    for read in (
        lambda: fs.InputModel.estimate(GROUPS, ACCEPTED, None, outcomes),
        lambda: fs.Shield(policy).decide_many(GROUPS, ACCEPTED, 1.0, outcomes),
        lambda: stream.decide_many(GROUPS, ACCEPTED, 1.0, outcomes),
        lambda: monitor.observe_many(GROUPS, ACCEPTED, outcomes=outcomes),
    ):
        with pytest.raises(fs.InvalidValueError, match=PAGE):
            read()


def test_fairlearn_metrics_refuse_unknown_outcomes() -> None:
    theirs = pytest.importorskip("fairshield.fairlearn")
    truth = np.where(ACCEPTED, GOOD.astype(float), np.nan)
    options = {"sensitive_features": GROUPS, "horizon": 100}
    with pytest.raises(fs.InvalidValueError, match=PAGE):
        theirs.window_disparity(truth, ACCEPTED.astype(float), prop=EQUAL, **options)
    parity, filled = fs.DemographicParity("0.1"), (ACCEPTED & GOOD).astype(float)
    with pytest.warns(fs.OutcomesWarning, match="nobody rejected counts"):
        theirs.window_disparity(filled, ACCEPTED.astype(float), prop=EQUAL, **options)
    assert theirs.window_disparity(truth, ACCEPTED.astype(float), prop=parity, **options) > 0


def test_a_shielded_classifier_refuses_unknown_outcomes() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    X = np.column_stack([GOOD + _RNG.normal(size=1000), _RNG.normal(size=1000)])
    model = fs.ShieldedClassifier(linear.LogisticRegression(), EQUAL, horizon=20)
    model.fit(X, GOOD.astype(int), sensitive_features=GROUPS)
    truth = np.where(ACCEPTED, GOOD.astype(float), np.nan)
    with pytest.raises(fs.InvalidValueError, match=PAGE):
        model.predict(X, sensitive_features=GROUPS, outcomes=truth)


def test_a_log_of_accepted_people_alone_shows_nothing() -> None:
    alone = [r for r in everybody() if r.fields["accepted"]]
    report = fs.audit(EQUAL, alone)
    assert report.holds
    assert not report
    assert "may have been left out" in str(report.doubt)
    monitor = fs.Monitor(EQUAL, groups=("a", "b"))
    for r in alone:
        monitor.observe(r.group(), accepted=True, outcome=r.flag("outcome"))
    monitor.end()
    assert not monitor.report().quiet
    assert fs.audit(EQUAL, alone[:20]).doubt is None
