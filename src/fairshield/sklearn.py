"""A classifier of scikit-learn and its shield, as one classifier.

``fit`` trains the classifier, estimates from its scores what the shield may expect, and
synthesises the policy; ``predict`` lets the shield decide the rows in their order.  Needs the
extra ``sklearn``.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairshield.counts import Group, is_whole
from fairshield.errors import InvalidValueError, MissingExtraError
from fairshield.groups import Coded, Places, Unseen, groups_of, places_among
from fairshield.inputs import InputModel
from fairshield.inputs.columns import check_known, column, threshold_for
from fairshield.outcomes import ADVICE
from fairshield.periodic import PeriodicPolicy
from fairshield.policy import Policy
from fairshield.spec import DemographicParity, Property
from fairshield.stream import Answers, Stream
from fairshield.synthesis import synthesize
from fairshield.windows import ShieldReport, Tally

if find_spec("sklearn") is None:
    raise MissingExtraError(
        "ShieldedClassifier needs scikit-learn, which is not installed: "
        "pip install 'fairshield[sklearn]'"
    )

import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_predict
from sklearn.utils import assert_all_finite, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

WINDOW = "window"
METHODS = ("predict_proba", "decision_function", "predict")
_MOST_PERIODS = 20
_THRESHOLDS = {"decision_function": 0.0, "predict": 0.5}

PredictMethod = Literal["auto", "predict_proba", "decision_function", "predict"]
Array = NDArray[Any]
Names = Array | Coded
"""The group of each row."""


def _estimator_has(name: str) -> Callable[[Any], bool]:
    def check(self: ShieldedClassifier) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), name)
        return True

    return check


class ShieldedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A binary classifier whose decisions a shield corrects, so that every window ends fair.

    Rows are people in order of arrival.  Every ``horizon`` of them are a window, and at the end of
    every window the property holds: on any rows in any order, whatever the classifier proposes.
    What the shield expects, the input model, is estimated in ``fit``; where it is wrong, more is
    overruled than necessary, and every window is fair all the same.

    Parameters
    ----------
    estimator
        Any classifier of two classes with ``predict_proba``, ``decision_function`` or
        ``predict``.
    prop
        What must hold; ``None`` is ``DemographicParity("0.1")``.
    horizon
        Decisions in a window, or in a period of a periodic shield.
    shield
        ``"window"``: each window is fair by itself.  ``"perpetual"``, ``"dynamic"``, ``"exact"``,
        ``"static-bounded"`` or ``"static-fair"``: everything decided so far is fair at the end of
        every period, under the conditions in docs/periods.md.
    shield_options
        More arguments of :func:`fairshield.synthesize`, or of the periodic policy, as in
        ``{"spread": 3}`` or ``{"periods": 10}``.
    prefit
        The estimator is fitted already.  The rows given to ``fit`` then serve the input model
        alone; take rows that the estimator was not trained on.
    threshold
        Scores of ``positive`` from here on propose acceptance; ``"auto"`` is 0.5 for
        probabilities, which lie between 0 and 1, and 0 for ``decision_function``.
    predict_method
        Where scores come from; ``"auto"`` takes the first that the estimator has of
        ``predict_proba``, ``decision_function`` and ``predict``.
    positive
        The label that means acceptance; ``None`` is the second of ``classes_``, which are sorted:
        1 of 0 and 1, ``"deny"`` of ``"approve"`` and ``"deny"``.  Where labels are text, ``fit``
        warns unless one is named.
    cost
        Price of overruling: ``"confidence"``, the distance of the score from the threshold, or
        ``"constant"``, 1, as always with ``predict``.
    bins
        Cost levels of the input model.
    unseen
        What happens to people of groups that ``fit`` did not see: ``"refuse"``, ``"follow"``,
        ``"map:GROUP"``, a mapping, or an :class:`fairshield.Unseen`.
    names
        The groups, in order; needed where the rows given to ``fit`` may lack one.
    group_of
        Where groups are to be found in ``X`` if ``sensitive_features`` is not passed: a column's
        name or number, a list of them, or a function of ``X``.
    cv
        Folds or splitter for the scores of the input model, each row scored by an estimator that
        was trained without it; ``None`` saves those trainings and takes the scores of rows that
        the estimator was trained on, of which most are too sure of themselves.  Ignored with
        ``prefit``.

    Attributes
    ----------
    estimator_
        The fitted classifier.
    policy_
        What the shield decides by.
    stream_
        Where :meth:`partial_predict` stands, a :class:`fairshield.Stream`.
    report_
        What the shield does on the rows given to ``fit``, a :class:`fairshield.ShieldReport`; of
        a periodic shield, which plans every period anew, in the first 20 periods.
    stream_report_
        What :meth:`partial_predict` has done since ``fit`` or :meth:`reset_stream`.
    classes_
        The two labels, as the estimator has them.
    positive_
        The one that means acceptance.
    n_features_in_, feature_names_in_
        Those of the estimator, if it has them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import fairshield as fs
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 4000)
    >>> X = rng.normal(size=(4000, 2)) + (sex == "m")[:, None]
    >>> y = X[:, 0] + rng.normal(size=4000) > 0.5
    >>> clf = fs.ShieldedClassifier(LogisticRegression(), fs.DemographicParity("0.1"), horizon=100)
    >>> clf = clf.fit(X[:2000], y[:2000], sensitive_features=sex[:2000])
    >>> accepted = clf.predict(X[2000:], sensitive_features=sex[2000:])
    >>> report = clf.report(X[2000:], sensitive_features=sex[2000:])
    >>> report.windows, report.unfair, report.unfair_unshielded
    (20, 0, 20)
    """

    # Without them there is nothing to shield, so nobody should have to ask for them.
    __metadata_request__fit: ClassVar = {"sensitive_features": True}
    __metadata_request__predict: ClassVar = {"sensitive_features": True, "outcomes": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True, "outcomes": True}

    def __init__(
        self,
        estimator: Any,
        prop: Property | None = None,
        *,
        horizon: int = 100,
        shield: str = WINDOW,
        shield_options: Mapping[str, Any] | None = None,
        prefit: bool = False,
        threshold: float | Literal["auto"] = "auto",
        predict_method: PredictMethod = "auto",
        positive: Any = None,
        cost: Literal["confidence", "constant"] = "confidence",
        bins: int | None = 10,
        unseen: Unseen | str | Mapping[Group, Group] = "refuse",
        names: Sequence[Group] | None = None,
        group_of: Any = None,
        cv: Any = 5,
    ) -> None:
        self.estimator = estimator
        self.prop = prop
        self.horizon = horizon
        self.shield = shield
        self.shield_options = shield_options
        self.prefit = prefit
        self.threshold = threshold
        self.predict_method = predict_method
        self.positive = positive
        self.cost = cost
        self.bins = bins
        self.unseen = unseen
        self.names = names
        self.group_of = group_of
        self.cv = cv

    # Fitting --------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: ArrayLike, *, sensitive_features: Any = None, **fit_params: Any
    ) -> ShieldedClassifier:
        """Train the classifier, estimate the input model, synthesise the policy.

        Parameters
        ----------
        X, y
            Rows and labels.  For a property that counts by outcome, ``y`` are the outcomes.
        sensitive_features
            Each row's group; a table of several columns stands for their intersection.  Rows are
            paired by position: of pandas, with the index of ``X``.
        fit_params
            For the estimator's ``fit``; with metadata routing, what it requests.
        """
        # As they are now: setting a parameter later changes nothing before the next fit.
        self._prop = DemographicParity("0.1") if self.prop is None else self.prop
        self._unseen = Unseen.of(self.unseen)
        self._check_parameters()
        labels = _labels(y)
        X, labels = indexable(X, labels)
        groups = self._groups(X, sensitive_features, len(labels))
        to_estimator = self._routed(sensitive_features, fit_params)
        if self.prefit:
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
        else:
            self.estimator_ = clone(self.estimator).fit(X, labels, **to_estimator)
        self.classes_ = self._two_classes(labels)
        self.positive_ = self.classes_[self._positive_place()]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        if self.cv is None or self.prefit:
            response = self._response(X)
        else:
            response = self._out_of_fold(X, labels, fit_params, to_estimator)
        scores = self._scores(response)
        self._threshold, self._constant = self._chosen_threshold(scores), self._is_constant()
        outcomes = self._outcomes(labels, len(groups)) if self._labelled else None
        self.policy_ = self._policy(self._inputs(scores, groups, outcomes))
        self.report_ = self._fit_report(scores, groups, outcomes)
        return self.reset_stream()

    def _routed(self, sensitive_features: Any, fit_params: dict[str, Any]) -> dict[str, Any]:
        if not sklearn.get_config()["enable_metadata_routing"]:
            return fit_params
        routed = process_routing(self, "fit", sensitive_features=sensitive_features, **fit_params)
        return dict(routed.estimator.fit)

    def _two_classes(self, y: Array) -> Array:
        classes = np.asarray(getattr(self.estimator_, "classes_", np.unique(y)))
        if len(classes) != 2:
            raise InvalidValueError(
                f"a shield accepts or rejects, so y needs two classes, got {len(classes)} class: "
                f"{classes.tolist()}"
            )
        return classes

    def _positive_place(self) -> int:
        """Where the label that means acceptance is among the classes."""
        known: list[Any] = self.classes_.tolist()
        rejected, accepted = known
        if self.positive is None:
            if isinstance(accepted, str):
                warnings.warn(
                    f"labels are text: {accepted!r} is taken for acceptance and {rejected!r} for "
                    f"rejection; say which it is, as in positive={accepted!r}",
                    UserWarning,
                    stacklevel=3,
                )
            return 1
        if self.positive not in known:
            raise InvalidValueError(
                f"positive is {self.positive!r}, the labels are {known}: name the one that means "
                "acceptance"
            )
        return known.index(self.positive)

    def _out_of_fold(
        self, X: Any, y: Array, fit_params: dict[str, Any], to_estimator: dict[str, Any]
    ) -> Array:
        """Each row's response of an estimator that was trained without it."""
        # Requests are routed anew there; an estimator that asked for the groups asks again.
        also = {k: v for k, v in to_estimator.items() if k == "sensitive_features"}
        return np.asarray(
            cross_val_predict(
                self.estimator, X, y, cv=self.cv, method=self._method,
                params={**fit_params, **also} or None,
            )
        )  # fmt: skip

    def _inputs(self, scores: Array, groups: Names, outcomes: Array | None) -> InputModel:
        if self.names is not None:
            groups, known = self._among_names(groups)
            scores, outcomes = scores[known], None if outcomes is None else outcomes[known]
        accept = scores >= self._threshold
        constant = self._constant
        return InputModel.estimate(
            groups,
            accept,
            None if constant else np.abs(scores - self._threshold),
            outcomes,
            bins=None if constant else self.bins,
            names=self.names,
        )

    def _among_names(self, groups: Names) -> tuple[Array, Array]:
        """Groups of those who count, by the names they count under, and who they are."""
        names = tuple(self.names or ())
        numbers = _places(names, self._unseen.among(names), groups)
        known = numbers >= 0
        return np.array(names, object)[numbers[known]], known

    def _policy(self, inputs: InputModel) -> Policy | PeriodicPolicy:
        options = dict(self.shield_options or {})
        if self.shield == WINDOW:
            return synthesize(self._prop, inputs, horizon=self.horizon, **options)
        return PeriodicPolicy.kinds()[self.shield](self._prop, inputs, self.horizon, **options)

    def _check_parameters(self) -> None:
        """Raise for what can be told to be wrong before anything is trained."""
        if not isinstance(self._prop, Property):
            raise InvalidValueError(
                "prop must be a property, such as fairshield.DemographicParity('0.1'), got "
                f"{self.prop!r}"
            )
        makers: dict[str, Callable[..., Any]] = {WINDOW: synthesize, **PeriodicPolicy.kinds()}
        if self.shield not in makers:
            raise InvalidValueError(
                f"shield must be one of {', '.join(makers)}, got {self.shield!r}"
            )
        options = dict(self.shield_options or {})
        taken = ("prop", "inputs", "horizon", "period")  # given by parameters of their own
        known = [n for n in inspect.signature(makers[self.shield]).parameters if n not in taken]
        strange = [name for name in options if name not in known]
        if strange:
            raise InvalidValueError(
                f"shield_options has {strange[0]!r}, which the shield {self.shield!r} does not "
                f"take: it takes {', '.join(known) or 'none'}"
            )
        if self.shield == "exact" and "periods" not in options:
            raise InvalidValueError(
                "an exact periodic shield needs the number of periods: "
                "shield_options={'periods': 10}"
            )

    def _fit_report(self, scores: Array, groups: Names, outcomes: Array | None) -> ShieldReport:
        periods = None
        if isinstance(self.policy_, PeriodicPolicy):
            periods = min(self.policy_.last or _MOST_PERIODS, _MOST_PERIODS)
        here = slice(None if periods is None else periods * self.horizon)
        known = None if outcomes is None else outcomes[here]
        stream, tally = self._new_stream(), Tally(self.policy_)
        self._decide(stream, scores[here], groups[here], known, tally=tally)
        return tally.report()

    # Predicting -----------------------------------------------------------------------------

    def predict(
        self, X: Any, *, sensitive_features: Any = None, outcomes: ArrayLike | None = None
    ) -> Array:
        """Labels of rows in order of arrival, the first of them the first of a window.

        Changes nothing: the same rows get the same labels again, and threads may share a fitted
        classifier.  ``outcomes``, the true labels, are needed by properties that count by
        outcome, and by them alone: they are counted after each decision.
        """
        answers = self.decide(X, sensitive_features=sensitive_features, outcomes=outcomes)
        return self._labels_of(answers)

    def decide(
        self,
        X: Any,
        *,
        sensitive_features: Any = None,
        outcomes: ArrayLike | None = None,
        reasons: bool = False,
    ) -> Answers:
        """What :meth:`predict` decides, with whom it overrules, at what price, in which window."""
        asked = self._asked(X, sensitive_features, outcomes)
        return self._decide(self._new_stream(), *asked, reasons=reasons)

    def report(
        self, X: Any, *, sensitive_features: Any = None, outcomes: ArrayLike | None = None
    ) -> ShieldReport:
        """What :meth:`predict` does on these rows."""
        tally = Tally(self.policy_)
        asked = self._asked(X, sensitive_features, outcomes)
        self._decide(self._new_stream(), *asked, tally=tally)
        return tally.report()

    def partial_predict(
        self, X: Any, *, sensitive_features: Any = None, outcomes: ArrayLike | None = None
    ) -> Array:
        """:meth:`predict` that goes on where the last call stopped, in the midst of a window.

        Changes ``stream_`` and ``stream_report_``; threads that share a stream take turns by a
        lock of their own.  On an error nothing is counted.
        """
        asked = self._asked(X, sensitive_features, outcomes)
        answers = self._decide(self.stream_, *asked, tally=self._tally)
        self.stream_report_ = self._tally.report()
        return self._labels_of(answers)

    def reset_stream(self) -> ShieldedClassifier:
        """Let :meth:`partial_predict` begin with a new window."""
        self.stream_, self._tally = self._new_stream(), Tally(self.policy_)
        self.stream_report_ = self._tally.report()
        return self

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
        outcomes: ArrayLike | None = None,
    ) -> float:
        """Accuracy of the shielded decisions; ``y`` are the outcomes if none are passed."""
        if outcomes is None and self._labelled:
            outcomes = y
        predicted = self.predict(X, sensitive_features=sensitive_features, outcomes=outcomes)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    @available_if(_estimator_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """The estimator's probabilities, which no shield has seen."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    @available_if(_estimator_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """The estimator's scores, which no shield has seen."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(X))

    def _labels_of(self, answers: Answers) -> Array:
        return self.classes_[np.where(answers.accepted, self._accepts, 1 - self._accepts)]

    def _new_stream(self) -> Stream:
        return Stream(self.policy_, unseen=self._unseen)

    def _asked(
        self, X: Any, sensitive_features: Any, outcomes: ArrayLike | None
    ) -> tuple[Array, Names, Array | None]:
        """Scores, groups and outcomes of the rows."""
        check_is_fitted(self)
        scores = self._scores(self._response(X))
        groups = self._groups(X, sensitive_features, len(scores))
        if not self._labelled:
            return scores, groups, None
        if outcomes is None:
            raise InvalidValueError(
                f"{self._prop} counts people by their outcome, so decisions need it: pass the "
                "true labels as outcomes=, as score does with y; where an outcome comes after its "
                "decision but before the next, use stream_.decide and stream_.observe; "
                f"{ADVICE}"
            )
        return scores, groups, self._outcomes(outcomes, len(scores))

    def _decide(
        self,
        stream: Stream,
        scores: Array,
        groups: Names,
        outcomes: Array | None,
        *,
        reasons: bool = False,
        tally: Tally | None = None,
    ) -> Answers:
        proposed = scores >= self._threshold
        costs = 1.0 if self._constant else np.abs(scores - self._threshold)
        numbers = _places(self.policy_.groups, stream.unseen, groups)
        answers = stream.decide_many(groups, proposed, costs, outcomes, reasons=reasons)
        if tally is not None:
            counts = self._prop.relevant_outcome
            relevant = None if outcomes is None else outcomes == counts
            tally.add(numbers, proposed, answers.accepted, answers.paid, relevant)
        return answers

    # What the parameters mean ---------------------------------------------------------------

    @property
    def _labelled(self) -> bool:
        return self._prop.relevant_outcome is not None

    def _is_constant(self) -> bool:
        if self.cost not in ("confidence", "constant"):
            raise InvalidValueError(f"cost must be 'confidence' or 'constant', got {self.cost!r}")
        return self.cost == "constant" or self._method == "predict"

    @property
    def _method(self) -> str:
        if self.predict_method == "auto":
            for name in METHODS:
                if hasattr(self.estimator_, name):
                    return name
        elif self.predict_method not in METHODS:
            raise InvalidValueError(
                f"predict_method must be 'auto' or one of {', '.join(METHODS)}, got "
                f"{self.predict_method!r}"
            )
        elif hasattr(self.estimator_, self.predict_method):
            return self.predict_method
        wanted = self.predict_method if self.predict_method != "auto" else ", ".join(METHODS)
        raise InvalidValueError(
            f"{type(self.estimator_).__name__} has no {wanted}: set predict_method to one that it "
            "has"
        )

    def _chosen_threshold(self, scores: Array) -> float:
        method = self._method
        if self.threshold == "auto":
            fixed = _THRESHOLDS.get(method)
            return threshold_for(scores, None, method) if fixed is None else fixed
        low, high = (0.0, 1.0) if method == "predict_proba" else (-math.inf, math.inf)
        if not isinstance(self.threshold, (int, float, np.number)) or not (
            low <= self.threshold <= high and math.isfinite(self.threshold)
        ):
            rule = "between 0 and 1, as probabilities are" if low == 0.0 else "a finite number"
            raise InvalidValueError(
                f"threshold must be 'auto' or {rule}, got {self.threshold!r} for {method}"
            )
        return float(self.threshold)

    @property
    def _accepts(self) -> int:
        """The place of the label that means acceptance."""
        return int(self.classes_[1] == self.positive_)

    def _response(self, X: Any) -> Array:
        return np.asarray(getattr(self.estimator_, self._method)(X))

    def _scores(self, response: Array) -> Array:
        if self._method == "predict":
            return np.asarray(response == self.positive_, np.float64)
        if response.ndim == 2:
            scores = np.asarray(response[:, self._accepts], np.float64)
        else:
            scores = np.asarray(response if self._accepts else -response, np.float64)
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores))[0])
            raise InvalidValueError(
                f"{self._method} gave {scores[row]} for row {row}: scores must be finite numbers"
            )
        return scores

    def _groups(self, X: Any, sensitive_features: Any, n: int) -> Names:
        """The groups of the ``n`` rows of ``X``."""
        if sensitive_features is not None:
            found = sensitive_features
        elif self.group_of is None:
            raise _no_groups()
        else:
            found = self.group_of(X) if callable(self.group_of) else _taken(X, self.group_of)
        groups = groups_of(found)
        if len(groups) != n:
            raise InvalidValueError(f"sensitive_features has {len(groups)} entries, X has {n} rows")
        _check_index(X, sensitive_features)
        if isinstance(groups, Coded):
            return groups
        if groups.dtype.kind == "f" and (groups == np.floor(groups)).all():
            return groups.astype(np.int64)  # numbers of groups in a matrix of numbers
        return groups

    def _outcomes(self, labels: ArrayLike, n: int) -> Array:
        given = column(labels, "outcomes")
        if len(given) != n:
            raise InvalidValueError(f"outcomes has {len(given)} entries, X has {n} rows")
        check_known(given, "outcomes")
        positive = given == self.positive_
        strange = np.flatnonzero(~np.isin(given, self.classes_))
        if len(strange):
            (first,) = given[strange[:1]].tolist()
            raise InvalidValueError(
                f"outcomes[{strange[0]}] is {first!r}, which is none of the labels "
                f"{self.classes_.tolist()}"
            )
        return np.asarray(positive)

    # What scikit-learn asks -----------------------------------------------------------------

    def get_metadata_routing(self) -> Any:
        """What this classifier requests, and what it hands to its estimator's ``fit``."""
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=to_fit)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.non_deterministic = inner.non_deterministic
        return tags


def _no_groups() -> InvalidValueError:
    how = (
        "a scorer, as of scoring='accuracy', predicts from X alone, whatever metadata is routed: "
        "leave out scoring=, for score is the accuracy and gets the groups, or use group_of="
        if sklearn.get_config()["enable_metadata_routing"]
        else "pipelines, cross-validation and searches pass them on after "
        "sklearn.set_config(enable_metadata_routing=True), and scorers, as of "
        "scoring='accuracy', take them from X alone"
    )
    return InvalidValueError(
        "no groups: pass sensitive_features=, one entry per row of X, or name their column of X "
        f"with group_of=; {how}"
    )


def _labels(y: Any) -> Array:
    if y is None:
        raise InvalidValueError(
            "ShieldedClassifier requires y to be passed, but the target y is None"
        )
    labels: Array = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    kind = type_of_target(labels, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise InvalidValueError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )
    return labels


def _check_index(X: Any, sensitive_features: Any) -> None:
    """Raise where pandas would pair other rows than their positions do."""
    ours: Any = getattr(X, "index", None)
    table = isinstance(sensitive_features, Mapping)
    for found in sensitive_features.values() if table else [sensitive_features]:
        theirs: Any = getattr(found, "index", None)
        # Lists and tuples have a method of this name.
        if hasattr(ours, "equals") and hasattr(theirs, "equals") and not ours.equals(theirs):
            raise InvalidValueError(
                "sensitive_features has another index than X, and rows are paired by position: "
                "align it, as in sensitive_features.loc[X.index], or, where the order is right, "
                "reset_index(drop=True) on both"
            )


def _taken(X: Any, which: Any) -> dict[Any, Any]:
    """Columns of ``X`` by name or number."""
    wanted = list(which) if isinstance(which, (list, tuple)) else [which]
    if hasattr(X, "columns"):
        names = list(getattr(X, "column_names", X.columns))
        return {w: X[_named(w, names)] for w in wanted}
    table = np.asarray(X)
    columns = table.shape[1] if table.ndim == 2 else 0
    for w in wanted:
        if not is_whole(w) or not -columns <= w < columns:
            raise InvalidValueError(
                f"group_of names column {w!r} of an array, which has columns 0 to {columns - 1}: "
                "give one of these numbers, or a function of X"
            )
    return {w: table[:, w] for w in wanted}


def _named(wanted: Any, names: list[Any]) -> Any:
    if wanted in names:
        return wanted
    if is_whole(wanted) and -len(names) <= wanted < len(names):
        return names[wanted]
    raise InvalidValueError(f"group_of names column {wanted!r}, X has {names}")


def _places(known: tuple[Group, ...], unseen: Unseen, groups: Names) -> Places:
    """The place of each person's group among those known; -1 for those who are followed."""
    return unseen.placed(places_among(known, groups), groups, known, "sensitive_features")
