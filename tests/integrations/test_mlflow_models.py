"""A classifier and its policy as one model of MLflow: logged, loaded, served."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import lightgbm
import mlflow
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ports import free_port
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import fairshield as fs
import fairshield.mlflow
from fairshield.periodic import Dynamic

xgboost = pytest.importorskip("xgboost")  # which is there for one platform

pytestmark = [
    # MLflow compares the columns of an example with a range, which pandas 3 warns of.
    pytest.mark.filterwarnings("ignore:Operation with range is deprecated"),
]

PEOPLE = 64
HORIZON = 8


@pytest.fixture(autouse=True, scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """MLflow's own file store, in a folder of the tests."""
    uri = (tmp_path_factory.mktemp("mlflow") / "mlruns").as_uri()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        patch.setenv("MLFLOW_TRACKING_URI", uri)  # of the servers that are started, too
        before = mlflow.get_tracking_uri(), mlflow.get_registry_uri()
        mlflow.set_tracking_uri(uri)
        mlflow.set_registry_uri(uri)
        yield uri
        mlflow.set_tracking_uri(before[0])
        mlflow.set_registry_uri(before[1])


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    sex = rng.choice(["women", "men"], PEOPLE)
    income = rng.normal(size=PEOPLE) + 1.2 * (sex == "men")
    return pd.DataFrame(
        {
            "income": income,
            "debt": rng.normal(size=PEOPLE),
            "sex": sex,
            "age": rng.choice(["old", "young"], PEOPLE),
            "price": rng.integers(1, 4, PEOPLE).astype(float),
            "repaid": rng.integers(0, 2, PEOPLE).astype(bool),
        },
        index=pd.RangeIndex(100, 100 + PEOPLE),
    )


@pytest.fixture(scope="module")
def classifier(people: pd.DataFrame) -> LogisticRegression:
    return LogisticRegression().fit(people[["income", "debt"]], people.income > people.debt)


@pytest.fixture(scope="module")
def inputs() -> fs.InputModel:
    return fs.InputModel.agnostic({"women": 0.5, "men": 0.5})


@pytest.fixture(scope="module")
def policy(inputs: fs.InputModel) -> fs.Policy:
    return fs.synthesize(fs.DemographicParity("0.25"), inputs, horizon=HORIZON)


@pytest.fixture(scope="module")
def logged(classifier: Any, policy: fs.Policy, people: pd.DataFrame) -> Any:
    with mlflow.start_run():
        return fairshield.mlflow.log_model(
            classifier, policy, name="loans", group="sex", input_example=people.head(3),
            registered_model_name="loans",
        )  # fmt: skip


@pytest.fixture(scope="module")
def proposed(classifier: Any, people: pd.DataFrame) -> Any:
    return classifier.predict(people[["income", "debt"]])


def assert_told(frame: pd.DataFrame, answers: fs.Batch, proposed: Any) -> None:
    """A frame that says what a stream said."""
    for name in ("accepted", "overruled", "paid", "window", "position"):
        assert (frame[name].to_numpy() == getattr(answers, name)).all(), name
    assert (frame.proposed.to_numpy() == np.asarray(proposed)).all()
    assert tuple(frame.reason) == answers.reasons


# Round trips --------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["runs", "model", "version", "alias", "folder"])
def test_a_logged_model_decides_like_a_stream_wherever_it_is_loaded_from(
    where: str, logged: Any, policy: fs.Policy, people: pd.DataFrame, proposed: Any
) -> None:
    mlflow.MlflowClient().set_registered_model_alias("loans", "champion", "1")
    uri = {
        "runs": f"runs:/{logged.run_id}/loans",
        "model": logged.model_uri,
        "version": "models:/loans/1",
        "alias": "models:/loans@champion",
        "folder": mlflow.artifacts.download_artifacts(logged.model_uri),
    }[where]
    served = mlflow.pyfunc.load_model(uri)
    told = served.predict(people)
    answers = fs.Run(policy).decide_many(people.sex, proposed, reasons=True)
    assert_told(told, answers, proposed)
    assert told.index.equals(people.index)
    assert told.overruled.any(), "otherwise the classifier alone would do"
    assert_told(fairshield.mlflow.load_model(uri).predict(people), answers, proposed)


def test_the_policy_is_an_artifact_beside_the_classifier_and_nothing_of_it_is_pickled(
    logged: Any, policy: fs.Policy, tmp_path: Path
) -> None:
    found = {a.path for a in mlflow.artifacts.list_artifacts(logged.model_uri)}
    assert {"MLmodel", "data", "requirements.txt", "input_example.json"} <= found
    folder = Path(mlflow.artifacts.download_artifacts(logged.model_uri)) / "data" / "shield"
    assert {p.name for p in folder.iterdir()} == {"model", "policy.shield", "shield.json"}
    assert fs.Policy.load(folder / "policy.shield").horizon == HORIZON
    digest = policy.save(tmp_path / "again.shield")
    assert logged.metadata["fairshield.digest"] == digest
    assert logged.flavors["fairshield"]["digest"] == digest
    assert json.loads((folder / "shield.json").read_text("utf-8"))["digest"] == digest


def test_run_model_and_version_say_what_is_enforced(logged: Any, policy: fs.Policy) -> None:
    run = mlflow.get_run(logged.run_id).data
    client = mlflow.MlflowClient()
    expected = {
        "fairshield.property": "demographic parity ≤ 1/4",
        "fairshield.kind": "demographic-parity",
        "fairshield.bound": "1/4",
        "fairshield.horizon": "8",
        "fairshield.groups": "women, men",
        "fairshield.digest": logged.metadata["fairshield.digest"],
        "fairshield.version": fs.__version__,
    }
    assert expected.items() <= run.tags.items()
    assert run.metrics == {"fairshield.expected_cost": policy.expected_cost}
    model = client.get_logged_model(logged.model_id)
    assert expected.items() <= model.params.items()
    assert expected.items() <= model.tags.items()
    assert [m.value for m in model.metrics] == [policy.expected_cost]
    assert client.get_model_version("loans", "1").tags == expected


def test_the_environment_names_this_library_and_what_the_classifier_needs(logged: Any) -> None:
    listed = Path(mlflow.artifacts.download_artifacts(logged.model_uri), "requirements.txt")
    lines = listed.read_text("utf-8").splitlines()
    assert f"fairshield[mlflow,synthesis]=={fs.__version__}" in lines
    assert any(line.startswith("scikit-learn==") for line in lines)


def test_several_models_go_into_one_run_and_a_run_is_not_needed(
    classifier: Any, policy: fs.Policy, inputs: fs.InputModel, people: pd.DataFrame, tmp_path: Path
) -> None:
    other = fs.synthesize(fs.DemographicParity("0.5"), inputs, horizon=4)
    other.save(tmp_path / "other.shield")
    with mlflow.start_run() as run:
        fairshield.mlflow.log_model(classifier, policy, name="one", group="sex")
        last = fairshield.mlflow.log_model(
            classifier, tmp_path / "other.shield", name="two", group="sex"
        )
    assert mlflow.get_run(run.info.run_id).data.tags["fairshield.bound"] == "1/2"
    assert last.metadata["fairshield.digest"] == other.save(tmp_path / "again.shield")
    alone = fairshield.mlflow.log_model(classifier, policy, group="sex", metadata={"for": "bank"})
    assert alone.run_id is None
    assert alone.metadata["for"] == "bank"
    assert len(mlflow.pyfunc.load_model(alone.model_uri).predict(people)) == PEOPLE


# Streams ------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 20), max_size=6))
def test_frames_of_any_size_are_one_stream(
    policy: fs.Policy, classifier: Any, people: pd.DataFrame, sizes: list[int]
) -> None:
    reading = fairshield.mlflow.ModelReading(group=("sex",), features=("income", "debt"))
    model = fairshield.mlflow.ShieldedModel(classifier, policy, reading)
    ends = np.minimum(np.cumsum([0, *sizes]), PEOPLE)
    parts = [model.predict(people.iloc[i:j]) for i, j in pairwise(ends)]
    whole = model.predict(people.iloc[: ends[-1]], {"stream": "new"})
    assert model.stream.completed * HORIZON + model.stream.position == ends[-1]
    if parts:
        pd.testing.assert_frame_equal(pd.concat(parts), whole)


def test_a_new_stream_leaves_the_served_one_as_it_is(logged: Any, people: pd.DataFrame) -> None:
    served = mlflow.pyfunc.load_model(logged.model_uri)
    first = served.predict(people.head(5))
    alone = served.predict(people.head(5), params={"stream": "new", "reasons": False})
    pd.testing.assert_frame_equal(first.drop(columns="reason"), alone.drop(columns="reason"))
    assert alone.reason.isna().all()
    model = served.unwrap_python_model()
    assert model is served.get_raw_model()
    assert model.stream.position == 5
    assert served.predict(people.head(5)).window.tolist() == [0, 0, 0, 1, 1]


def test_threads_share_one_stream_and_every_window_is_fair(
    logged: Any, policy: fs.Policy, people: pd.DataFrame
) -> None:
    served = mlflow.pyfunc.load_model(logged.model_uri)
    parts = [people.iloc[i : i + 3] for i in range(0, PEOPLE - 4, 3)] * 4
    with ThreadPoolExecutor(8) as pool:
        told = pd.concat(list(pool.map(served.predict, parts)))
    told["sex"] = pd.concat(parts).sex.to_numpy()
    at = told.window * HORIZON + told.position
    assert sorted(at) == list(range(len(told)))
    for _, window in told[told.window < len(told) // HORIZON].groupby("window"):
        counts = {
            g: (int((window.sex == g).sum()), int(window.accepted[window.sex == g].sum()))
            for g in policy.groups
        }
        assert policy.prop.holds(fs.Counts(counts))


# Policies and columns -----------------------------------------------------------------------


def test_a_periodic_policy_is_served_period_after_period(
    classifier: Any, inputs: fs.InputModel, people: pd.DataFrame, proposed: Any
) -> None:
    periodic = Dynamic(fs.DemographicParity("0.25"), inputs, HORIZON)
    with mlflow.start_run() as run:
        info = fairshield.mlflow.log_model(classifier, periodic, group="sex")
    told = mlflow.pyfunc.load_model(info.model_uri).predict(people)
    assert_told(told, fs.Run(periodic).decide_many(people.sex, proposed, reasons=True), proposed)
    tags = mlflow.get_run(run.info.run_id).data.tags
    assert (tags["fairshield.periodic"], tags["fairshield.period"]) == ("dynamic", "8")


def test_a_property_that_counts_by_outcome_reads_it_from_a_column(
    classifier: Any, inputs: fs.InputModel, people: pd.DataFrame, proposed: Any, tmp_path: Path
) -> None:
    labelled = fs.synthesize(fs.EqualOpportunity("0.25"), inputs, horizon=5)
    with pytest.raises(fs.InvalidValueError, match="counts by outcome: name the column"):
        fairshield.mlflow.save_model(classifier, labelled, tmp_path / "no", group="sex")
    fairshield.mlflow.save_model(
        classifier, labelled, tmp_path / "yes", group="sex", outcome="repaid"
    )
    served = mlflow.pyfunc.load_model(str(tmp_path / "yes"))
    answers = fs.Run(labelled).decide_many(people.sex, proposed, 1.0, people.repaid, reasons=True)
    assert_told(served.predict(people), answers, proposed)
    with pytest.raises(mlflow.MlflowException, match="no column 'repaid', which holds the outcome"):
        served.predict(people.drop(columns="repaid"))


@pytest.mark.parametrize("unseen", ["follow", "map:women", {"other": "men"}])
def test_unseen_groups_follow_the_rule_the_model_was_saved_with(
    unseen: Any, classifier: Any, policy: fs.Policy, people: pd.DataFrame, proposed: Any,
    tmp_path: Path,
) -> None:  # fmt: skip
    fairshield.mlflow.save_model(classifier, policy, tmp_path / "model", group="sex", unseen=unseen)
    mixed = people.assign(sex=people.sex.where(people.age == "old", "other"))
    stream = fs.Run(policy, unseen=unseen)
    answers = stream.decide_many(mixed.sex, proposed, reasons=True)
    model = fairshield.mlflow.load_model(str(tmp_path / "model"))
    assert_told(model.predict(mixed), answers, proposed)
    assert model.stream.followed == stream.followed


def test_several_sensitive_columns_are_intersected(
    classifier: Any, people: pd.DataFrame, proposed: Any, tmp_path: Path
) -> None:
    crossed = fs.intersection(people.sex, people.age)
    a, b = "women × old", "men × young"
    policy = fs.synthesize(
        fs.DemographicParity("0.25"), fs.InputModel.agnostic({a: 0.5, b: 0.5}), horizon=6
    )
    fairshield.mlflow.save_model(
        classifier, policy, tmp_path / "model", group=["sex", "age"], unseen="follow"
    )
    answers = fs.Run(policy, unseen="follow").decide_many(crossed, proposed, reasons=True)
    assert_told(
        mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(people), answers, proposed
    )


def test_costs_come_from_a_column_or_from_the_score(
    classifier: Any, people: pd.DataFrame, proposed: Any, tmp_path: Path
) -> None:
    scores = classifier.predict_proba(people[["income", "debt"]])[:, 1]
    for cost, prices in (("price", people.price), ("confidence", np.abs(scores - 0.5)), (2, 2.0)):
        made = np.broadcast_to(prices, PEOPLE)
        inputs = fs.InputModel.estimate(people.sex, proposed, made, bins=4)
        policy = fs.synthesize(fs.DemographicParity("0.25"), inputs, horizon=HORIZON)
        folder = tmp_path / str(cost)
        fairshield.mlflow.save_model(classifier, policy, folder, group="sex", cost=cost)
        told = mlflow.pyfunc.load_model(str(folder)).predict(people)
        answers = fs.Run(policy).decide_many(people.sex, proposed, made, reasons=True)
        assert_told(told, answers, proposed)
        assert told.cost.to_numpy() == pytest.approx(made)


def test_the_group_may_be_a_feature(
    policy: fs.Policy, people: pd.DataFrame, tmp_path: Path
) -> None:
    frame = people.assign(woman=(people.sex == "women").astype(int))
    known = frame[["income", "woman"]]
    classifier = LogisticRegression().fit(known, people.repaid)
    renamed = fs.synthesize(policy.prop, fs.InputModel.agnostic({0: 0.5, 1: 0.5}), horizon=HORIZON)
    for features in (None, ["income", "woman"]):
        folder = tmp_path / str(features is None)
        fairshield.mlflow.save_model(classifier, renamed, folder, group="woman", features=features)
        told = fairshield.mlflow.load_model(str(folder)).predict(frame)
        assert (told.proposed == classifier.predict(known)).all()


# Classifiers --------------------------------------------------------------------------------


class Rule:
    """A classifier of one's own."""

    def __init__(self, answers: dict[bool, Any]) -> None:
        self.answers = answers

    def predict(self, frame: pd.DataFrame) -> Any:
        return [self.answers[bool(v)] for v in frame["income"] > 0]


class Custom(mlflow.pyfunc.PythonModel):
    def predict(self, context: Any, model_input: pd.DataFrame) -> Any:
        return model_input["income"] > 0


def boosted(kind: str, people: pd.DataFrame) -> tuple[Any, Any]:
    """A fitted model, and what it proposes."""
    X, y = people[["income", "debt"]], people.income > people.debt
    small: dict[str, Any] = {"n_estimators": 5, "n_jobs": 1}
    if kind == "xgboost":
        made = xgboost.XGBClassifier(**small).fit(X, y)
        return made, made.predict_proba(X)[:, 1] >= 0.5
    if kind == "lightgbm":
        made = lightgbm.LGBMClassifier(**small, verbose=-1, min_child_samples=2).fit(X, y)
        return made, made.predict_proba(X)[:, 1] >= 0.5
    if kind == "xgboost booster":
        data = xgboost.DMatrix(X, y)
        made = xgboost.train({"objective": "binary:logistic", "nthread": 1}, data, 5)
        return made, made.predict(data) >= 0.5
    made = lightgbm.train(
        {"objective": "binary", "verbose": -1, "num_threads": 1, "min_data_in_leaf": 2},
        lightgbm.Dataset(X, y), 5,
    )  # fmt: skip
    return made, made.predict(X) >= 0.5


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "xgboost booster", "lightgbm booster"])
def test_boosted_trees_are_saved_by_their_own_flavour(
    kind: str, policy: fs.Policy, people: pd.DataFrame, tmp_path: Path
) -> None:
    model, proposed = boosted(kind, people)
    fairshield.mlflow.save_model(
        model, policy, tmp_path / "model", group="sex", features=["income", "debt"]
    )
    inner = mlflow.models.Model.load(str(tmp_path / "model" / "data" / "shield" / "model"))
    assert kind.split()[0] in inner.flavors
    told = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(people)
    assert_told(told, fs.Run(policy).decide_many(people.sex, proposed, reasons=True), proposed)


@pytest.mark.parametrize("kind", ["decision_function", "flags", "words", "scores", "python model"])
def test_whatever_predicts_can_be_shielded(
    kind: str, policy: fs.Policy, people: pd.DataFrame, tmp_path: Path
) -> None:
    rich = (people.income > 0).to_numpy()
    X = people[["income", "debt"]]
    model, proposed, options = {
        "decision_function": (LinearSVC().fit(X, rich), None, {}),
        "flags": (Rule({True: 1, False: 0}), rich, {}),
        "words": (Rule({True: "good", False: "bad"}), rich, {"positive": "good"}),
        "scores": (Rule({True: 0.4, False: 0.3}), rich, {"threshold": 0.35}),
        "python model": (Custom(), rich, {}),
    }[kind]
    if proposed is None:
        proposed = model.predict(X)
    fairshield.mlflow.save_model(model, policy, tmp_path / "model", group="sex", **options)
    told = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(people)
    assert_told(told, fs.Run(policy).decide_many(people.sex, proposed, reasons=True), proposed)


def test_a_model_that_mlflow_has_is_shielded_by_its_uri(
    classifier: Any, policy: fs.Policy, people: pd.DataFrame, proposed: Any, tmp_path: Path
) -> None:
    X = people[["income", "debt"]]
    plain = mlflow.sklearn.log_model(
        classifier, name="plain", signature=mlflow.models.infer_signature(X),
        serialization_format="cloudpickle", pip_requirements=["scikit-learn"],
    )  # fmt: skip
    loaded = mlflow.pyfunc.load_model(plain.model_uri)
    answers = fs.Run(policy).decide_many(people.sex, proposed, reasons=True)
    for i, model in enumerate((plain.model_uri, loaded)):
        for method in ("auto", "predict"):
            folder = tmp_path / f"{i}{method}"
            fairshield.mlflow.save_model(model, policy, folder, group="sex", predict_method=method)
            shielded = fairshield.mlflow.load_model(str(folder))
            assert shielded.reading.features == ("income", "debt")
            assert hasattr(shielded.model, "predict_proba") == (method == "auto")
            assert_told(shielded.predict(people), answers, proposed)
    with pytest.raises(fs.InvalidValueError, match="is not a shielded model: its flavours are"):
        fairshield.mlflow.load_model(plain.model_uri)


@pytest.mark.parametrize("positive", ["good", "bad"])
def test_the_label_that_means_acceptance_can_be_named(
    positive: str, policy: fs.Policy, people: pd.DataFrame
) -> None:
    X = people[["income", "debt"]]
    labels = np.where(people.income > 0, "good", "bad")
    for made in (LogisticRegression(), LinearSVC()):
        classifier = made.fit(X, labels)
        reading = fairshield.mlflow.ModelReading(
            group=("sex",), features=("income", "debt"), positive=positive
        )
        told = fairshield.mlflow.ShieldedModel(classifier, policy, reading).predict(people)
        assert (told.proposed.to_numpy() == (classifier.predict(X) == positive)).all()


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_text_is_taken_for_acceptance_by_the_alphabet_and_with_a_warning(
    method: Any, policy: fs.Policy, people: pd.DataFrame
) -> None:
    X = people[["income"]]
    words = LogisticRegression().fit(X, np.where(people.income > 0, "approve", "deny"))
    reading = fairshield.mlflow.ModelReading(
        group=("sex",), features=("income",), predict_method=method
    )
    with pytest.warns(UserWarning, match="'deny' is taken for acceptance.*positive='deny'"):
        shielded = fairshield.mlflow.ShieldedModel(words, policy, reading)
    assert (shielded.predict(people).proposed.to_numpy() == (words.predict(X) == "deny")).all()


def test_words_of_version_0_1_are_read_and_warned_of() -> None:
    current = fairshield.mlflow.ModelReading(
        group=("sex",), predict_method="predict", cost="confidence"
    )
    with pytest.warns(DeprecationWarning, match=r"Reading is called .*ModelReading"):
        old_name: Any = fairshield.mlflow.Reading
    with pytest.warns(DeprecationWarning, match="score='predict' is called predict_method"):
        assert old_name(group=("sex",), score="predict", cost="confidence") == current
    with pytest.warns(DeprecationWarning, match="cost='margin' is called cost='confidence'"):
        assert old_name(group=("sex",), predict_method="predict", cost="margin") == current


@pytest.mark.parametrize(
    ("cost", "new"),
    [
        ("margin", {"cost": "confidence"}),
        ("price", {"cost": "price"}),
        ("confidence", {"cost_column": "confidence"}),  # any other word was a column
        (2.0, {"cost": 2.0}),
    ],
)
def test_a_reading_saved_by_version_0_1_means_what_it_meant(
    cost: Any, new: dict[str, Any], people: pd.DataFrame
) -> None:
    saved = {
        "group": ["sex"], "features": None, "score": "decision_function", "threshold": None,
        "positive": None, "cost": cost, "outcome": None,
        "unseen": {"kind": "refuse", "to": None, "names": []},
    }  # fmt: skip
    read = fairshield.mlflow.ModelReading.from_dict(saved)
    expected = fairshield.mlflow.ModelReading(
        group=("sex",), predict_method="decision_function", **new
    )
    frame = people.assign(confidence=3.0)
    far = np.full(len(frame), 0.25)
    assert read.predict_method == expected.predict_method
    assert read.seen_by_model(frame).columns.equals(expected.seen_by_model(frame).columns)
    assert (read.costs(frame, far) == expected.costs(frame, far)).all()


# Mistakes -----------------------------------------------------------------------------------


def test_a_policy_file_that_was_changed_or_exchanged_is_refused(
    classifier: Any, policy: fs.Policy, inputs: fs.InputModel, tmp_path: Path
) -> None:
    fairshield.mlflow.save_model(classifier, policy, tmp_path / "model", group="sex")
    file = tmp_path / "model" / "data" / "shield" / "policy.shield"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(fs.ArtifactError, match="does not match its SHA-256 digest"):
        mlflow.pyfunc.load_model(str(tmp_path / "model"))
    fs.synthesize(fs.DemographicParity("0.5"), inputs, horizon=HORIZON).save(file)
    with pytest.raises(fs.ArtifactError, match="not the policy the model was saved with"):
        fairshield.mlflow.load_model(str(tmp_path / "model"))


def test_faults_of_a_frame_are_told_and_nothing_is_decided(
    logged: Any, people: pd.DataFrame
) -> None:
    served = mlflow.pyfunc.load_model(logged.model_uri)
    for frame, params, said in (
        (people.drop(columns="sex"), None, r"Model is missing inputs \['sex'\]"),
        (people.assign(income="much"), None, "Incompatible input types for column income"),
        (people.assign(sex="x"), None, "unknown group 'x': this policy knows 'women', 'men'"),
        (people, {"stream": "old"}, "stream must be 'continue' or 'new', got 'old'"),
        (people, {"stream": 3}, "Failed to validate type and shape for 'stream'"),
    ):
        with pytest.raises(mlflow.MlflowException, match=said):
            served.predict(frame, params=params)
    assert served.unwrap_python_model().stream.position == 0


def test_what_cannot_be_shielded_is_refused_before_anything_is_saved(
    classifier: Any, policy: fs.Policy, people: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "model"
    words = LogisticRegression().fit(people[["income"]], np.where(people.income > 0, "good", "bad"))
    for model, options, said in (
        (object(), {}, "a model needs predict"),
        (classifier, {"group": []}, "group names no column"),
        (classifier, {"predict_method": "guess"}, "predict_method must be .*auto.* predict_proba"),
        (Rule({}), {"predict_method": "predict_proba"}, "Rule has no predict_proba"),
        (classifier, {"threshold": float("nan")}, "threshold must be a finite number"),
        (classifier, {"unseen": "map:nobody"}, "unknown group 'nobody'"),
        (classifier, {"threshold": 1.5}, "threshold must be between 0 and 1.*got 1.5"),
        (classifier, {"cost": -1.0}, "cost must be finite and at least 0.*got -1.0"),
        (classifier, {"cost": float("nan")}, "cost must be finite"),
        (words, {"positive": "fine"}, r"labels are \['bad', 'good'\]: name the one that means"),
    ):
        with pytest.raises(fs.FairshieldError, match=said):
            fairshield.mlflow.save_model(model, policy, path, **({"group": "sex"} | options))
        assert not path.exists()


def test_what_is_no_policy_or_has_no_groups_is_refused(
    classifier: Any, policy: fs.Policy, tmp_path: Path
) -> None:
    prop: Any = fs.DemographicParity("0.1")
    with pytest.raises(fs.InvalidValueError, match=r"got DemographicParity: make one with"):
        fairshield.mlflow.save_model(classifier, prop, tmp_path / "model", group="sex")
    with pytest.raises(fs.InvalidValueError, match="policy must be a policy"):
        fairshield.mlflow.log_model(classifier, prop, group="sex")
    with pytest.raises(fs.InvalidValueError, match="group="):
        fairshield.mlflow.log_model(classifier, policy)


def test_answers_of_a_classifier_that_mean_nothing_are_refused(
    policy: fs.Policy, people: pd.DataFrame
) -> None:
    def predicted(answers: dict[bool, Any], **options: Any) -> Any:
        reading = fairshield.mlflow.ModelReading(group=("sex",), **options)
        return fairshield.mlflow.ShieldedModel(Rule(answers), policy, reading).predict(people)

    with pytest.raises(fs.InvalidValueError, match="predict gave nan for row"):
        predicted({True: 0.4, False: float("nan")})
    with pytest.raises(fs.InvalidValueError, match="one score or label a row"):
        predicted({True: (1, 2, 3), False: (1, 2, 3)})
    with pytest.raises(fs.InvalidValueError, match=r"predictions\[\d+\]"):
        predicted({True: "good", False: "bad"})
    three = LogisticRegression().fit(people[["income"]], np.arange(PEOPLE) % 3)
    reading = fairshield.mlflow.ModelReading(group=("sex",), features=("income",))
    with pytest.raises(fs.InvalidValueError, match=r"labels are \[0, 1, 2\]: name the one"):
        fairshield.mlflow.ShieldedModel(three, policy, reading).predict(people)
    with pytest.raises(fs.InvalidValueError, match="a data frame with named columns, got ndarray"):
        fairshield.mlflow.ShieldedModel(Rule({}), policy, reading).predict(np.zeros((2, 2)))


@pytest.mark.parametrize("missing", ["mlflow", "pandas"])
def test_without_its_extra_the_module_says_what_to_install(missing: str) -> None:
    code = f"""
import sys; sys.modules[{missing!r}] = None
import fairshield as fs
try:
    import fairshield.mlflow
except ImportError as error:
    assert isinstance(error, fs.FairshieldError)
    said = "fairshield.mlflow needs {missing}: pip install 'fairshield[mlflow]'"
    assert str(error) == said, error
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Served -------------------------------------------------------------------------------------


@pytest.fixture
def server(logged: Any, tmp_path: Path) -> Iterator[str]:
    """``mlflow models serve`` with the logged model; its address."""
    port = free_port()
    command = [
        sys.executable, "-m", "mlflow", "models", "serve", "-m", logged.model_uri, "-p", str(port),
        "-h", "127.0.0.1", "--env-manager", "local", "-w", "1",
    ]  # fmt: skip
    # The server starts uvicorn by its name.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    log = tmp_path / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env={**os.environ, "PATH": path},
            start_new_session=True,
        )  # fmt: skip
        url = f"http://127.0.0.1:{port}"
        try:
            wait_for(f"{url}/ping", process, log)
            yield url
        finally:
            os.killpg(process.pid, 15)
            process.wait(30)


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError(log.read_text("utf-8"))


@pytest.mark.slow
def test_mlflows_own_server_goes_on_in_the_stream_from_request_to_request(
    server: str, policy: fs.Policy, people: pd.DataFrame, proposed: Any
) -> None:
    def post(rows: pd.DataFrame, **more: Any) -> httpx.Response:
        split = json.loads(rows.to_json(orient="split", double_precision=15))
        return httpx.post(
            f"{server}/invocations", json={"dataframe_split": split, **more}, timeout=60
        )

    answers = fs.Run(policy).decide_many(people.sex, proposed, reasons=True)
    parts = []
    for rows in (people.iloc[:5], people.iloc[5:30]):
        said = post(rows)
        assert said.status_code == 200, said.text
        parts += said.json()["predictions"]
        alone = post(rows, params={"stream": "new"}).json()["predictions"]
        assert (alone[0]["window"], alone[0]["position"]) == (0, 0)
        refused = post(rows.assign(sex="x"))
        assert refused.status_code == 400
        assert "unknown group 'x': this policy knows 'women', 'men'" in refused.json()["message"]
    told = pd.DataFrame(parts)
    for name in ("accepted", "overruled", "paid", "window", "position"):
        assert told[name].tolist() == getattr(answers, name)[:30].tolist(), name
    assert tuple(person["reason"] for person in parts) == answers.reasons[:30]


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_labels_are_compared_with_the_classes(
    people: pd.DataFrame, policy: fs.Policy, method: Any
) -> None:
    X = people[["income", "debt"]]
    labels = np.where(people["income"] > people["income"].median(), 2, 1)
    model = LogisticRegression().fit(X, labels)
    options = {"group": ("sex",), "features": ("income", "debt"), "predict_method": method}
    for positive, accepted in ((None, 2), (np.int64(1), 1)):
        reading = fairshield.mlflow.ModelReading(positive=positive, **options)
        told = fairshield.mlflow.ShieldedModel(model, policy, reading).predict(people)
        assert (told["proposed"] == (model.predict(X) == accepted)).all()
        assert (
            fairshield.mlflow.ModelReading.from_dict(json.loads(json.dumps(reading.to_dict())))
            == reading
        )


@pytest.mark.parametrize(
    ("answer", "proposals"), [([-1, 1], [False, True]), ([0, 1], [False, True])]
)
def test_predictions_without_classes_are_labels_or_probabilities(
    people: pd.DataFrame, policy: fs.Policy, answer: list[int], proposals: list[bool]
) -> None:
    class Rule:
        def __init__(self, answer: list[float]) -> None:
            self.answer = answer

        def predict(self, frame: pd.DataFrame) -> Any:
            return np.array(self.answer)

    reading = fairshield.mlflow.ModelReading(group=("sex",))
    two = people.head(2)
    told = fairshield.mlflow.ShieldedModel(Rule(answer), policy, reading).predict(two)
    assert told["proposed"].tolist() == [False, True]
    with pytest.raises(fs.InvalidValueError, match="predict gave 2 for row 1"):
        fairshield.mlflow.ShieldedModel(Rule([1, 2]), policy, reading).predict(two)
