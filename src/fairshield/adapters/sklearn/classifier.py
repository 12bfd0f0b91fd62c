"""ShieldedClassifier is a classifier of scikit-learn together with its shield.

``fit`` trains the classifier, estimates from its scores what the shield may expect, and
synthesises the policy; ``predict`` lets the shield decide the rows in their order.  Needs the
extra ``sklearn``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_predict
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fairshield.adapters.scorer import Array, PredictMethod, Scorer
from fairshield.adapters.sklearn import making
from fairshield.adapters.sklearn.routing import estimator_has, routed
from fairshield.adapters.sklearn.rows import (
    Names,
    binary_labels,
    groups_of_rows,
    outcomes_among,
    places_of,
    two_classes,
)
from fairshield.base.counts import Group
from fairshield.base.errors import InvalidValueError
from fairshield.base.groups import Unseen
from fairshield.periodic import Run
from fairshield.periodic.windows import ShieldReport, Tally
from fairshield.records import ScoreCost
from fairshield.runtime.shield import Batch
from fairshield.spec import DemographicParity, Property
from fairshield.spec.outcomes import ADVICE

_MOST_PERIODS = 20


class ShieldedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """ShieldedClassifier corrects a binary classifier, so that every window ends fair.

    Rows are people in order of arrival.  Every ``horizon`` of them are a window, and at the end of
    every window the property holds: on any rows in any order, whatever the classifier proposes.
    The input model, which says what the shield expects, is estimated in ``fit``.  Where it is
    wrong, the shield overrules more people than necessary; every window is fair all the same.

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
        ``"window"``: each window is fair by itself.  The name of a kind of period, such as
        ``"perpetual"``, of those in ``PeriodicPolicy.kinds()``: everything decided so far is fair
        at the end of every period, under the conditions in docs/periods.md.
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
        was trained without it.  ``None`` saves those trainings and takes the scores of rows that
        the estimator was trained on; most estimators are overconfident there.  Ignored with
        ``prefit``.

    Attributes
    ----------
    estimator_
        The fitted classifier.
    policy_
        What the shield decides by.
    stream_
        Where :meth:`partial_predict` stands, a :class:`fairshield.Run`.
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

    # Requested by default: without groups and outcomes there is nothing to shield.
    __metadata_request__fit: ClassVar = {"sensitive_features": True}
    __metadata_request__predict: ClassVar = {"sensitive_features": True, "outcomes": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True, "outcomes": True}

    def __init__(
        self,
        estimator: Any,
        prop: Property | None = None,
        *,
        horizon: int = 100,
        shield: str = making.WINDOW,
        shield_options: Mapping[str, Any] | None = None,
        prefit: bool = False,
        threshold: float | Literal["auto"] = "auto",
        predict_method: PredictMethod = "auto",
        positive: Any = None,
        cost: ScoreCost = "confidence",
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
        # Kept as they are now: a parameter that is set later takes effect at the next fit.
        self._prop = DemographicParity("0.1") if self.prop is None else self.prop
        self._unseen = Unseen.of(self.unseen)
        making.check_kind_of(self.shield, self._prop, self.shield_options)
        X, labels = indexable(X, binary_labels(y))
        groups = groups_of_rows(X, sensitive_features, self.group_of, len(labels))
        to_estimator = routed(self, sensitive_features, fit_params)
        if self.prefit:
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
        else:
            self.estimator_ = clone(self.estimator).fit(X, labels, **to_estimator)
        self.classes_ = two_classes(self.estimator_, labels)
        rule = making.score_rule(self.threshold, self.cost, self.positive)
        scorer = Scorer.of(self.estimator_, rule, self.predict_method, self.classes_)
        self.positive_ = self.classes_[scorer.place]
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        if self.cv is None or self.prefit:
            answers = scorer.ask(self.estimator_, X)
        else:
            # cross_val_predict routes metadata itself; an estimator may want the groups there, too.
            also = {k: v for k, v in to_estimator.items() if k == "sensitive_features"}
            answers = cross_val_predict(
                self.estimator, X, labels, cv=self.cv, method=scorer.method,
                params={**fit_params, **also} or None,
            )  # fmt: skip
        scores = scorer.scores(np.asarray(answers))
        self._scorer = making.priced(scorer.fixed(scores))
        outcomes = self._outcomes(labels, len(groups)) if self._labelled else None
        inputs = making.estimated(
            self._scorer, scores, groups, outcomes, names=self.names, unseen=self._unseen,
            bins=self.bins,
        )  # fmt: skip
        self.policy_ = making.make_policy_of(
            self.shield, self._prop, inputs, self.horizon, self.shield_options
        )
        self.report_ = self._fit_report(scores, groups, outcomes)
        return self.reset_stream()

    def _fit_report(self, scores: Array, groups: Names, outcomes: Array | None) -> ShieldReport:
        stream, tally = self._new_stream(), Tally(self.policy_)
        periods = stream.policy.last
        if stream.policy.largest_plan:  # each period is planned anew, which is slow
            periods = min(periods or _MOST_PERIODS, _MOST_PERIODS)
        here = slice(None if periods is None else periods * self.horizon)
        known = None if outcomes is None else outcomes[here]
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
    ) -> Batch:
        """Return the decisions of :meth:`predict`, with whom it overrules, price and window."""
        asked = self._asked(X, sensitive_features, outcomes)
        return self._decide(self._new_stream(), *asked, reasons=reasons)

    def report(
        self, X: Any, *, sensitive_features: Any = None, outcomes: ArrayLike | None = None
    ) -> ShieldReport:
        """Return a report on what :meth:`predict` does on these rows."""
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

    @available_if(estimator_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """The estimator's probabilities, before the shield."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    @available_if(estimator_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """The estimator's scores, before the shield."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(X))

    def _labels_of(self, answers: Batch) -> Array:
        return self.classes_[np.where(answers.accepted, self._scorer.place, 1 - self._scorer.place)]

    def _new_stream(self) -> Run:
        return Run(self.policy_, unseen=self._unseen)

    def _asked(
        self, X: Any, sensitive_features: Any, outcomes: ArrayLike | None
    ) -> tuple[Array, Names, Array | None]:
        """Scores, groups and outcomes of the rows."""
        check_is_fitted(self)
        scores = self._scorer.scores(self._scorer.ask(self.estimator_, X))
        groups = groups_of_rows(X, sensitive_features, self.group_of, len(scores))
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

    def _outcomes(self, labels: ArrayLike, n: int) -> Array:
        return np.asarray(outcomes_among(self.classes_, labels, n) == self.positive_)

    @property
    def _labelled(self) -> bool:
        return self._prop.relevant_outcome is not None

    def _decide(
        self,
        stream: Run,
        scores: Array,
        groups: Names,
        outcomes: Array | None,
        *,
        reasons: bool = False,
        tally: Tally | None = None,
    ) -> Batch:
        proposed, costs = self._scorer.proposals(scores)
        numbers = places_of(self.policy_.groups, stream.unseen, groups)
        answers = stream.decide_many(groups, proposed, costs, outcomes, reasons=reasons)
        if tally is not None:
            counts = self._prop.relevant_outcome
            relevant = None if outcomes is None else outcomes == counts
            tally.add(numbers, proposed, answers.accepted, answers.paid, relevant)
        return answers

    # Interface to scikit-learn --------------------------------------------------------------

    def get_metadata_routing(self) -> Any:
        """The metadata that this classifier requests, and passes to its estimator's ``fit``."""
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
