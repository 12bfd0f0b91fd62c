"""ShieldedClassifier: what it promises, where it is used, and what it says when misused."""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import cache
from itertools import pairwise
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import fairshield as fs
from fairshield.sklearn import ShieldedClassifier

PROP = fs.DemographicParity("0.2")
HORIZON = 12
Array = NDArray[Any]


def people(n: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Features, labels and groups; the groups differ in what they are likely to get."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n, p=[0.4, 0.6])
    X = rng.normal(size=(n, 3)) + 0.9 * (sex == "m")[:, None]
    return X, (X[:, 0] + rng.normal(size=n) > 0.7).astype(int), sex


TRAIN, TEST = people(300), people(250, seed=1)


@cache
def fitted(prop: fs.Property = PROP, **options: Any) -> ShieldedClassifier:
    X, y, sex = TRAIN
    made = ShieldedClassifier(LogisticRegression(), prop, horizon=HORIZON, **options)
    return made.fit(X, y, sensitive_features=sex)


def unfair(labels: Array, sex: Array, counted: Array | None = None, prop: Any = PROP) -> int:
    """Complete windows that are unfair, counted with Python's own integers."""
    found = 0
    for begin in range(0, len(labels) - HORIZON + 1, HORIZON):
        here = slice(begin, begin + HORIZON)
        who = np.ones(HORIZON, bool) if counted is None else counted[here]
        counts = {
            g: (
                int(((sex[here] == g) & who).sum()),
                int((labels[here][(sex[here] == g) & who] == 1).sum()),
            )
            for g in ("f", "m")
        }
        found += not prop.holds(fs.Counts(counts))
    return found


# The guarantee ------------------------------------------------------------------------------


@settings(max_examples=examples(40))
@given(st.integers(0, 2**32 - 1), st.integers(HORIZON, 5 * HORIZON), st.floats(-3, 3))
def test_every_complete_window_is_fair_on_any_rows(seed: int, n: int, shift: float) -> None:
    X, _, sex = people(n, seed)
    labels = fitted().predict(X + shift, sensitive_features=sex)
    assert unfair(labels, sex) == 0


def test_the_classifier_alone_is_not_fair() -> None:
    X, _, sex = TEST
    assert unfair(fitted().estimator_.predict(X), sex) > 0


@pytest.mark.parametrize(
    "estimator",
    [GaussianNB(), LinearSVC(), RidgeClassifier(), RandomForestClassifier(10, random_state=0)],
    ids=lambda e: type(e).__name__,
)
def test_any_classifier_will_do(estimator: Any) -> None:
    X, y, sex = TRAIN
    clf = ShieldedClassifier(estimator, PROP, horizon=HORIZON)
    labels = clf.fit(X, y, sensitive_features=sex).predict(TEST[0], sensitive_features=TEST[2])
    assert unfair(labels, TEST[2]) == 0
    assert set(labels) <= {0, 1}


def test_boosted_trees_of_other_libraries_will_do() -> None:
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    X, y, sex = TRAIN
    columns = [f"x{i}" for i in range(3)]  # LightGBM warns about rows without names
    for estimator in (
        xgboost.XGBClassifier(n_estimators=5, n_jobs=1),
        lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1),
    ):
        clf = ShieldedClassifier(estimator, PROP, horizon=HORIZON, cv=2)
        clf.fit(pd.DataFrame(X, columns=columns), y, sensitive_features=sex)
        rows = pd.DataFrame(TEST[0], columns=columns)
        labels = clf.predict(rows, sensitive_features=TEST[2])
        assert unfair(labels, TEST[2]) == 0
        assert clf.n_features_in_ == 3


def test_equal_opportunity_counts_the_outcomes_it_is_given() -> None:
    X, y, sex = TEST
    prop = fs.EqualOpportunity("0.25")
    clf = fitted(prop)
    labels = clf.predict(X, sensitive_features=sex, outcomes=y)
    assert unfair(labels, sex, y == 1, prop) == 0
    assert clf.score(X, y, sensitive_features=sex) == (labels == y).mean()
    with pytest.raises(fs.InvalidValueError, match=r"outcomes=.*stream_\.observe"):
        clf.predict(X, sensitive_features=sex)
    with pytest.raises(fs.InvalidValueError, match=r"outcomes\[0\] is 7"):
        clf.predict(X, sensitive_features=sex, outcomes=y + 7)


# State --------------------------------------------------------------------------------------


def test_predict_changes_nothing() -> None:
    X, _, sex = TEST
    clf = fitted()
    clf.reset_stream()
    first = clf.predict(X, sensitive_features=sex)
    assert (clf.predict(X, sensitive_features=sex) == first).all()
    assert clf.stream_.completed == clf.stream_.position == 0


@settings(max_examples=examples(30))
@given(st.lists(st.integers(0, 250), max_size=5))
def test_pieces_are_decided_as_the_whole_is(cuts: list[int]) -> None:
    X, _, sex = TEST
    clf = fitted()
    clf.reset_stream()
    ends = [0, *sorted(cuts), len(X)]
    pieces = [
        clf.partial_predict(X[a:b], sensitive_features=sex[a:b]) for a, b in pairwise(ends) if a < b
    ]
    assert (np.concatenate(pieces) == clf.predict(X, sensitive_features=sex)).all()
    whole = clf.report(X, sensitive_features=sex)
    assert _same(clf.stream_report_, whole)


def _same(one: fs.ShieldReport, other: fs.ShieldReport) -> bool:
    left, right = one.to_dict(), other.to_dict()
    cost = left.pop("cost"), right.pop("cost")
    return left == right and cost[0] == pytest.approx(cost[1])


def test_a_piece_with_a_mistake_is_not_counted() -> None:
    X, _, sex = TEST
    clf = fitted()
    clf.reset_stream()
    clf.partial_predict(X[:5], sensitive_features=sex[:5])
    with pytest.raises(fs.UnknownGroupError):
        clf.partial_predict(X[5:8], sensitive_features=["f", "m", "x"])
    assert clf.stream_.position == clf.stream_report_.decisions == 5


@pytest.mark.parametrize("shield", ["window", "dynamic"])
def test_a_report_counts_what_was_decided(shield: str) -> None:
    X, _, sex = TEST
    clf = fitted(shield=shield)
    answers = clf.decide(X, sensitive_features=sex, reasons=True)
    report = clf.report(X, sensitive_features=sex)
    assert report.decisions == 250
    assert report.windows == 250 // HORIZON
    assert (
        report.overruled == answers.overruled.sum() == sum(r is not None for r in answers.reasons)
    )
    assert report.paid == pytest.approx(answers.paid.sum())
    assert [g.accepted for g in report.groups] == [
        answers.accepted[sex == g].sum() for g in ("f", "m")
    ]
    assert report.all_fair
    assert report.unfair_unshielded > 0
    assert report.largest_bias <= report.limit + 1e-12 < report.largest_bias_unshielded
    assert f"{report.overruled} (" in str(report)
    if shield == "window":
        proposed = (clf.predict_proba(X)[:, 1] >= 0.5).astype(int)
        assert report.unfair_unshielded == unfair(proposed, sex)


def test_it_survives_pickling_in_the_midst_of_a_window() -> None:
    X, _, sex = TEST
    clf = fitted()
    clf.reset_stream()
    clf.partial_predict(X[:7], sensitive_features=sex[:7])
    again = pickle.loads(pickle.dumps(clf))
    for rest in (clf, again):
        rest.last = rest.partial_predict(X[7:], sensitive_features=sex[7:])
    assert (clf.last == again.last).all()
    assert again.stream_report_ == clf.stream_report_


def test_joblib_takes_it_to_other_processes(tmp_path: Any) -> None:
    joblib.dump(fitted(), tmp_path / "clf.joblib")
    again = joblib.load(tmp_path / "clf.joblib")
    X, _, sex = TEST
    assert (
        again.predict(X, sensitive_features=sex) == fitted().predict(X, sensitive_features=sex)
    ).all()


# Parameters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shield", "options"),
    [
        ("static-fair", None),
        ("static-bounded", {"bounds": ("0.3", "0.5")}),
        ("dynamic", {"fallback": "best-effort"}),
        ("exact", {"periods": 3}),
        ("optimal", {"periods": 3}),
        ("perpetual", {"lookahead": 1}),
    ],
)
def test_periodic_shields_go_by_name(shield: str, options: dict[str, Any] | None) -> None:
    X, y, sex = TRAIN
    clf = ShieldedClassifier(
        LogisticRegression(), fs.DemographicParity("0.3"), horizon=10, shield=shield,
        shield_options=options, cv=None,
    ).fit(X, y, sensitive_features=sex)  # fmt: skip
    assert clf.policy_.kind == shield
    report = clf.report(X[:30], sensitive_features=sex[:30])
    assert report.windows == 3
    if shield in ("exact", "optimal", "perpetual"):
        assert report.all_fair


def test_options_reach_the_synthesis() -> None:
    assert fitted(shield_options=None).policy_.method == "exact"
    X, y, sex = TRAIN
    clf = ShieldedClassifier(LogisticRegression(), shield_options={"method": "long"})
    assert clf.fit(X, y, sensitive_features=sex).policy_.method == "long"
    assert clf.policy_.prop == fs.DemographicParity("0.1")
    assert clf.policy_.horizon == 100


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shield": "yearly"}, "shield must be one of window, dynamic"),
        ({"shield": "exact"}, "needs periods, as in"),
        ({"cost": "free"}, "cost must be"),
        ({"predict_method": "guess"}, "predict_method must be"),
        ({"predict_method": "transform"}, "predict_method must be"),
        ({"horizon": 0}, "horizon must be"),
        ({"bins": 0}, "bins must be"),
        ({"unseen": "ignore"}, "unseen must be"),
        ({"prop": "demographic-parity"}, "prop must be a property.*got 'demographic-parity'"),
        ({"prop": 0.1}, "prop must be a property.*got 0.1"),
        ({"positive": "yes"}, r"positive is 'yes', the labels are \[0, 1\]"),
        ({"threshold": 1.5}, "threshold must be between 0 and 1.*got 1.5"),
        ({"threshold": float("nan")}, "threshold must be"),
        ({"threshold": "high"}, "threshold must be"),
        ({"shield_options": {"sped": 3}}, "shield_options has 'sped'.*it takes .*spread"),
        ({"shield": "exact", "shield_options": {"period": 3}}, "shield_options has 'period'"),
    ],
)
def test_mistakes_are_named_with_their_remedy(options: dict[str, Any], said: str) -> None:
    X, y, sex = TRAIN
    given = {"prop": PROP, "horizon": HORIZON, **options}
    clf = ShieldedClassifier(LogisticRegression(), **given)
    with pytest.raises(fs.InvalidValueError, match=said):
        clf.fit(X, y, sensitive_features=sex)


def test_groups_are_needed_one_per_row() -> None:
    X, y, sex = TRAIN
    clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON)
    with pytest.raises(fs.InvalidValueError, match="pass sensitive_features="):
        clf.fit(X, y)
    with pytest.raises(fs.InvalidValueError, match="299 entries, X has 300 rows"):
        clf.fit(X, y, sensitive_features=sex[1:])
    with pytest.raises(NotFittedError):
        clf.predict(X, sensitive_features=sex)
    with pytest.raises(fs.InvalidValueError, match="249 entries, X has 250 rows"):
        fitted().predict(TEST[0], sensitive_features=TEST[2][1:])
    with pytest.raises(fs.InvalidValueError, match="LinearSVC has no predict_proba"):
        ShieldedClassifier(LinearSVC(), PROP, predict_method="predict_proba").fit(
            X, y, sensitive_features=sex
        )


def test_a_fitted_classifier_is_taken_as_it_is() -> None:
    X, y, sex = TRAIN
    model = LogisticRegression().fit(X, y)
    clf = ShieldedClassifier(model, PROP, horizon=HORIZON, prefit=True)
    clf.fit(TEST[0], TEST[1], sensitive_features=TEST[2])
    assert clf.estimator_ is model
    frozen = ShieldedClassifier(FrozenEstimator(model), PROP, horizon=HORIZON)
    frozen = sklearn.clone(frozen).fit(TEST[0], TEST[1], sensitive_features=TEST[2])
    assert (
        frozen.predict(X, sensitive_features=sex) == clf.predict(X, sensitive_features=sex)
    ).all()
    with pytest.raises(NotFittedError):
        sklearn.clone(clf).fit(X, y, sensitive_features=sex)


def test_thresholds_and_prices_are_those_asked_for() -> None:
    X, _, sex = TEST
    scores = fitted().predict_proba(X)[:, 1]
    strict = fitted(fs.DemographicParity("1"), threshold=0.8, cost="constant")
    assert (strict.predict(X, sensitive_features=sex) == (scores >= 0.8)).all()
    answers = fitted(cost="constant").decide(X, sensitive_features=sex)
    assert set(answers.paid) == {0.0, 1.0}
    said = fitted(predict_method="predict").decide(X, sensitive_features=sex)
    assert set(said.paid) == {0.0, 1.0}
    margin = fitted(predict_method="decision_function").decide(X, sensitive_features=sex)
    distance = np.abs(fitted().decision_function(X))
    assert (margin.paid[margin.overruled] == distance[margin.overruled]).all()


def test_out_of_fold_scores_are_less_sure_of_themselves() -> None:
    X, y, sex = TRAIN
    forest = RandomForestClassifier(20, random_state=0)
    seen, unseen = (
        ShieldedClassifier(forest, PROP, horizon=HORIZON, cv=cv)
        .fit(X, y, sensitive_features=sex)
        .policy_.inputs
        for cv in (None, 3)
    )
    mean = [float((m.probs.sum(axis=(0, 1)) * m.levels).sum()) for m in (seen, unseen)]
    assert mean[1] < mean[0]


def test_labels_keep_their_names() -> None:
    X, y, sex = TRAIN
    words = np.array(["deny", "grant"])[y]
    clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON, positive="grant")
    clf.fit(X, words, sensitive_features=sex)
    assert clf.classes_.tolist() == ["deny", "grant"]
    labels = clf.predict(TEST[0], sensitive_features=TEST[2])
    assert (labels == "grant").tolist() == fitted().predict(
        TEST[0], sensitive_features=TEST[2]
    ).astype(bool).tolist()


def test_text_is_taken_for_acceptance_by_the_alphabet_and_with_a_warning() -> None:
    X, y, sex = TRAIN
    words = np.array(["deny", "approve"])[y]
    clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON, cv=None)
    with pytest.warns(UserWarning, match="'deny' is taken for acceptance.*positive='deny'"):
        clf.fit(X, words, sensitive_features=sex)
    assert clf.positive_ == "deny"


@pytest.mark.parametrize("prop", [PROP, fs.EqualOpportunity("0.2", min_support=2)], ids=str)
@pytest.mark.parametrize("method", ["predict_proba", "decision_function", "predict"])
def test_which_label_means_acceptance_is_said_and_not_guessed(method: str, prop: Any) -> None:
    options: dict[str, Any] = {"horizon": HORIZON, "cv": None, "predict_method": method}
    X, y, sex = TRAIN
    numbers = ShieldedClassifier(LogisticRegression(), prop, **options)
    numbers.fit(X, y, sensitive_features=sex)
    words = np.array(["deny", "approve"])
    named = ShieldedClassifier(LogisticRegression(), prop, positive="approve", **options)
    named.fit(X, words[y], sensitive_features=sex)
    assert (named.classes_.tolist(), named.positive_) == (["approve", "deny"], "approve")
    X, y, sex = TEST
    known = {"outcomes": y} if numbers._labelled else {}
    told = {"outcomes": words[y]} if known else {}
    labels = named.predict(X, sensitive_features=sex, **told)
    assert labels.tolist() == words[numbers.predict(X, sensitive_features=sex, **known)].tolist()
    report = named.report(X, sensitive_features=sex, **told)
    expected = numbers.report(X, sensitive_features=sex, **known)
    assert (report.groups, report.unfair) == (expected.groups, 0)
    assert named.score(X, words[y], sensitive_features=sex) == numbers.score(
        X, y, sensitive_features=sex
    )


# Groups -------------------------------------------------------------------------------------


def test_an_index_that_pairs_other_rows_is_refused() -> None:
    X, y, sex = (pd.DataFrame(TEST[0]), TEST[1], pd.Series(TEST[2]))
    clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON, cv=None)
    clf.fit(X, y, sensitive_features=sex)
    moved = sex.sample(frac=1, random_state=0)
    for given_as in (moved, moved.to_frame(), {"sex": moved}):
        for call in (clf.predict, clf.partial_predict, clf.decide, clf.report):
            with pytest.raises(fs.InvalidValueError, match=r"another index.*reset_index"):
                call(X, sensitive_features=given_as)
        for call in (clf.fit, clf.score):
            with pytest.raises(fs.InvalidValueError, match="another index"):
                call(X, y, sensitive_features=given_as)
    expected = clf.predict(X, sensitive_features=sex)
    for given_as in (sex, moved.loc[X.index], sex.tolist(), moved.sort_index().to_numpy()):
        assert (clf.predict(X, sensitive_features=given_as) == expected).all()


@pytest.mark.parametrize("group", ["x", None, float("nan")])
def test_who_has_no_known_group_is_named_by_row(group: Any) -> None:
    X, _, sex = TEST
    strange = sex.astype(object)
    strange[7:9] = group
    with pytest.raises(fs.UnknownGroupError, match=r"sensitive_features\[7\]: .*unseen="):
        fitted().predict(X, sensitive_features=strange)


def test_groups_that_do_not_arrive_are_asked_for_by_every_way_there_is() -> None:
    X, y, _ = TRAIN
    clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON)
    with pytest.raises(fs.InvalidValueError, match=r"group_of=.*enable_metadata_routing=True"):
        clf.fit(X, y)


@pytest.mark.parametrize("column", ["race", 9])
@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame])
def test_a_column_that_is_not_there_is_named(make: Any, column: Any) -> None:
    clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON, group_of=column)
    with pytest.raises(fs.InvalidValueError, match=f"group_of names column {column!r}"):
        clf.fit(make(TRAIN[0]), TRAIN[1])


def test_groups_come_in_any_container() -> None:
    X, _, sex = TEST
    expected = fitted().predict(X, sensitive_features=sex)
    for given_as in (
        sex.tolist(),
        pd.Series(sex),
        pd.Series(sex).astype("category"),
        pd.DataFrame({"sex": sex}),
        pl.Series(sex),
        pl.DataFrame({"sex": sex}),
        sex[:, None],
    ):
        assert (fitted().predict(X, sensitive_features=given_as) == expected).all()


def test_several_columns_are_intersected() -> None:
    X, y, sex = TRAIN
    age = np.where(sex == "f", "young", "old")  # two intersections only
    clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON)
    clf.fit(X, y, sensitive_features=pl.DataFrame({"sex": sex, "age": age}))
    assert clf.policy_.groups == ("f × young", "m × old")
    again = clf.fit(X, y, sensitive_features=pd.DataFrame({"sex": sex, "age": age}))
    assert again.policy_.groups == ("f × young", "m × old")


def test_unseen_groups_are_treated_as_said() -> None:
    X, _, sex = TEST
    strange = sex.astype(object)
    strange[::10] = "x"
    with pytest.raises(fs.UnknownGroupError, match="'x'"):
        fitted().predict(X, sensitive_features=strange)
    followed = fitted(unseen="follow")
    labels = followed.predict(X, sensitive_features=strange)
    assert (labels[::10] == followed.estimator_.predict(X[::10])).all()
    report = followed.report(X, sensitive_features=strange)
    assert (report.followed, report.decisions) == (25, 225)
    assert "25 of unseen groups" in str(report)
    mapped = fitted(unseen="map:f")
    as_f = np.where(strange == "x", "f", strange)
    assert (
        mapped.predict(X, sensitive_features=strange) == mapped.predict(X, sensitive_features=as_f)
    ).all()
    assert mapped.report(X, sensitive_features=strange) == mapped.report(X, sensitive_features=as_f)


def test_names_declare_groups_that_training_may_lack_or_have_too_many_of() -> None:
    X, y, sex = TRAIN
    only = sex == "m"
    clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON, names=("f", "m"))
    clf.fit(X[only], y[only], sensitive_features=sex[only])
    assert unfair(clf.predict(TEST[0], sensitive_features=TEST[2]), TEST[2]) == 0
    strange = np.where(np.arange(300) % 9 == 0, "x", sex)
    clf.set_params(unseen="follow").fit(X, y, sensitive_features=strange)
    assert clf.policy_.groups == ("f", "m")
    assert clf.report_.followed == 34


def test_groups_can_be_columns_of_the_rows() -> None:
    X, y, sex = TRAIN
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(group=(sex == "m").astype(int))
    expected = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON)
    expected = expected.fit(table, y, sensitive_features=table["group"])
    labels = expected.predict(table, sensitive_features=table["group"])
    for where in ("group", 3, ["group"], lambda rows: rows["group"]):
        clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON, group_of=where)
        assert (clf.fit(table, y).predict(table) == labels).all()
    clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON, group_of=3)
    matrix = table.to_numpy()
    assert (clf.fit(matrix, y).predict(matrix) == labels).all()
    assert clf.policy_.groups == (0, 1)


def test_three_groups_are_shielded_pair_by_pair() -> None:
    X, y, sex = TRAIN
    where = np.where(np.arange(300) % 3 == 0, "x", sex)
    prop = fs.DemographicParity("0.4")
    clf = ShieldedClassifier(LogisticRegression(), prop, horizon=HORIZON, cv=None)
    clf.fit(X, y, sensitive_features=where)
    assert clf.policy_.groups == ("f", "m", "x")
    assert clf.report_.windows == 300 // HORIZON
    assert clf.report_.all_fair
    assert clf.report_.unfair_unshielded > 0


# Inside scikit-learn ------------------------------------------------------------------------


@pytest.fixture
def routing() -> Any:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_a_pipeline_hands_groups_through(routing: None) -> None:
    X, y, sex = TRAIN
    pipe = make_pipeline(
        StandardScaler(), ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON)
    )
    pipe.fit(X, y, sensitive_features=sex)
    labels = pipe.predict(TEST[0], sensitive_features=TEST[2])
    assert unfair(labels, TEST[2]) == 0
    assert pipe.score(TEST[0], TEST[1], sensitive_features=TEST[2]) == (labels == TEST[1]).mean()


def test_a_pipeline_without_routing_takes_groups_by_step() -> None:
    X, y, sex = TRAIN
    clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON)
    pipe = make_pipeline(StandardScaler(), clf)
    pipe.fit(X, y, shieldedclassifier__sensitive_features=sex)
    assert unfair(pipe.predict(TEST[0], sensitive_features=TEST[2]), TEST[2]) == 0


def test_cross_validation_and_search_hand_groups_through(routing: None) -> None:
    X, y, sex = TRAIN
    clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON, cv=None)
    found = cross_validate(
        clf, X, y, cv=3, params={"sensitive_features": sex}, return_estimator=True
    )
    assert all(made.report_.all_fair for made in found["estimator"])
    search = GridSearchCV(
        clf,
        {"prop": [fs.DemographicParity(b) for b in ("0.1", "1")], "horizon": [6, 12]},
        cv=2,
    )
    search.fit(X, y, sensitive_features=sex)
    assert search.best_params_["prop"] == fs.DemographicParity("1")  # accuracy alone prefers it
    best = search.best_estimator_  # scikit-learn's search takes no metadata in predict
    assert best.predict(X, sensitive_features=sex).shape == y.shape


def test_a_scorer_by_name_gets_the_right_advice(routing: None) -> None:
    """scikit-learn hands a scorer's metadata to the metric, never to ``predict``."""
    X, y, sex = TRAIN
    clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON, cv=None)
    search = GridSearchCV(clf, {"horizon": [6]}, cv=2, scoring="accuracy", error_score="raise")
    with pytest.raises(fs.InvalidValueError, match=r"leave out scoring=.* or use group_of="):
        search.fit(X, y, sensitive_features=sex)
    with_groups = np.column_stack([X, sex == sex[0]])
    by_column = clf.set_params(group_of=X.shape[1])
    search = GridSearchCV(by_column, {"horizon": [6, 12]}, cv=2, scoring="accuracy")
    assert np.isfinite(search.fit(with_groups, y).cv_results_["mean_test_score"]).all()


class Hundreds(LogisticRegression):
    """A classifier whose probabilities are scores in hundreds."""

    def predict_proba(self, X: Any) -> Any:
        return 500.0 + 300.0 * super().predict_proba(X)


def test_probabilities_that_are_none_need_a_threshold() -> None:
    X, y, sex = TRAIN
    clf = ShieldedClassifier(Hundreds(), PROP, horizon=HORIZON, cv=None)
    with pytest.raises(fs.InvalidValueError, match=r"predict_proba\[0\] is .*threshold="):
        clf.fit(X, y, sensitive_features=sex)


def test_groups_go_by_another_name_if_asked(routing: None) -> None:
    X, y, sex = TRAIN
    clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON)
    clf.set_fit_request(sensitive_features="sex").set_predict_request(sensitive_features="sex")
    pipe = make_pipeline(StandardScaler(), clf).fit(X, y, sex=sex)
    assert unfair(pipe.predict(TEST[0], sex=TEST[2]), TEST[2]) == 0


@pytest.mark.parametrize("cv", [None, 2])
def test_the_estimator_gets_what_it_requests(routing: None, cv: int | None) -> None:
    X, y, sex = TRAIN
    weight = np.where(y == 1, 5.0, 1.0)
    inner = LogisticRegression().set_fit_request(sample_weight=True)
    clf = ShieldedClassifier(inner, PROP, horizon=HORIZON, cv=cv)
    clf.fit(X, y, sensitive_features=sex, sample_weight=weight)
    alone = LogisticRegression().fit(X, y, sample_weight=weight)
    assert (clf.estimator_.coef_ == alone.coef_).all()


def test_scorers_by_name_work_with_groups_in_the_rows() -> None:
    X, y, sex = TRAIN
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(group=(sex == "m").astype(int))
    clf = ShieldedClassifier(LogisticRegression(), PROP, horizon=HORIZON, group_of="group", cv=None)
    assert len(cross_val_score(clf, table, y, cv=2, scoring="balanced_accuracy")) == 2


def test_sample_weights_reach_the_score() -> None:
    X, y, sex = TEST
    clf = fitted()
    right = clf.predict(X, sensitive_features=sex) == y
    assert clf.score(X, y, right.astype(float), sensitive_features=sex) == 1.0


def test_scikit_learn_loads_with_the_first_use_and_is_asked_for_if_missing() -> None:
    code = """
import sys, fairshield as fs
assert "sklearn" not in sys.modules and "ShieldedClassifier" in dir(fs)
sys.modules["sklearn"] = None
try:
    fs.ShieldedClassifier
except ImportError as error:
    assert isinstance(error, fs.FairshieldError), error
    assert "pip install 'fairshield[sklearn]'" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_a_score_that_is_no_number_is_refused() -> None:
    class Lost(LogisticRegression):
        def predict_proba(self, X: Any) -> Any:
            scores = super().predict_proba(X)
            scores[3] = np.nan
            return scores

    X, y, sex = people(200)
    shielded = ShieldedClassifier(Lost(), PROP, horizon=HORIZON, cost="constant", cv=None)
    with pytest.raises(fs.InvalidValueError, match="predict_proba gave nan for row 3"):
        shielded.fit(X, y, sensitive_features=sex)


def test_a_parameter_set_after_fit_changes_nothing_before_the_next() -> None:
    X, _, sex = people(100, seed=1)
    shielded = fitted()
    before = shielded.predict(X, sensitive_features=sex)
    shielded.set_params(
        prop=fs.EqualOpportunity("0.1"), cost="constant", threshold=0.9, unseen="follow"
    )
    assert (shielded.predict(X, sensitive_features=sex) == before).all()
