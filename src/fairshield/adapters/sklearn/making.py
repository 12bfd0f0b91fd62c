"""Functions that make a score rule, an input model and a policy of parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairshield.adapters.scorer import Array, Scorer
from fairshield.adapters.sklearn.rows import Names, places_of
from fairshield.base.counts import Group
from fairshield.base.errors import InvalidValueError
from fairshield.base.groups import Unseen
from fairshield.inputs import InputModel
from fairshield.periodic import PeriodicPolicy
from fairshield.policy import Policy
from fairshield.records import ScoreCost, ScoreRule
from fairshield.spec import Property
from fairshield.synthesis import synthesize

WINDOW = "window"
_GIVEN = ("prop", "inputs", "horizon", "period")
"""Arguments that are parameters of a classifier by themselves."""


def check_kind_of(shield: str, prop: Any, options: Mapping[str, Any] | None) -> None:
    """Raise for parameters that are wrong whatever the data, before anything is trained."""
    if not isinstance(prop, Property):
        raise InvalidValueError(
            f"prop must be a property, such as fairshield.DemographicParity('0.1'), got {prop!r}"
        )
    makers = _makers()
    if shield not in makers:
        raise InvalidValueError(f"shield must be one of {', '.join(makers)}, got {shield!r}")
    takes = inspect.signature(makers[shield]).parameters
    known = [name for name in takes if name not in _GIVEN]
    strange = [name for name in options or () if name not in known]
    if strange:
        raise InvalidValueError(
            f"shield_options has {strange[0]!r}, which the shield {shield!r} does not take: it "
            f"takes {', '.join(known) or 'none'}"
        )
    for name in known:
        if takes[name].default is inspect.Parameter.empty and name not in (options or {}):
            raise InvalidValueError(
                f"the shield {shield!r} needs {name}, as in shield_options={{{name!r}: 10}}"
            )


def score_rule(threshold: Any, cost: ScoreCost, positive: Any) -> ScoreRule:
    """The rule of these parameters; with ``"auto"`` it has no threshold yet."""
    auto = isinstance(threshold, str) and threshold == "auto"
    if not auto and not isinstance(threshold, (int, float, np.number)):
        raise InvalidValueError(f"threshold must be 'auto' or a number, got {threshold!r}")
    return ScoreRule(threshold=None if auto else threshold, cost=cost, positive=positive)


def priced(scorer: Scorer) -> Scorer:
    """The scorer; at a constant price if its scores are labels, which have no confidence."""
    if scorer.method != "predict":
        return scorer
    return replace(scorer, rule=replace(scorer.rule, cost="constant"))


def estimated(
    scorer: Scorer,
    scores: Array,
    groups: Names,
    outcomes: Array | None,
    *,
    names: Sequence[Group] | None,
    unseen: Unseen,
    bins: int | None,
) -> InputModel:
    """The input model of these people; with ``names``, of people who count under one of them."""
    if names is not None:
        declared = tuple(names)
        numbers = places_of(declared, unseen.among(declared), groups)
        known = numbers >= 0
        groups = np.array(declared, object)[numbers[known]]
        scores, outcomes = scores[known], None if outcomes is None else outcomes[known]
    proposed, costs = scorer.proposals(scores)
    levels = None if scorer.rule.cost == "constant" else bins
    return InputModel.estimate(groups, proposed, costs, outcomes, bins=levels, names=names)


def make_policy_of(
    shield: str,
    prop: Property,
    inputs: InputModel,
    horizon: int,
    options: Mapping[str, Any] | None,
) -> Policy | PeriodicPolicy:
    """The policy of the kind ``shield``, with ``options`` as further arguments."""
    if shield == WINDOW:
        return synthesize(prop, inputs, horizon=horizon, **(options or {}))
    return PeriodicPolicy.kinds()[shield](prop, inputs, horizon, **(options or {}))


def _makers() -> dict[str, Callable[..., Any]]:
    return {WINDOW: synthesize, **PeriodicPolicy.kinds()}
