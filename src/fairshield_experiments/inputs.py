"""``input_model`` makes input models from the people that a classifier was fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

import fairshield as fs
from fairshield_experiments.people import People

InputKind = Literal[
    "agnostic", "learned", "confidence", "learned-cross-fitted", "confidence-cross-fitted"
]
INPUTS: tuple[InputKind, ...] = get_args(InputKind)
CROSS_FITTED: Mapping[InputKind, InputKind] = MappingProxyType(
    {"learned-cross-fitted": "learned", "confidence-cross-fitted": "confidence"}
)
"""Input models made of out-of-fold scores, and the same made of scores of the training part."""
IN_SAMPLE = tuple(kind for kind in INPUTS if kind not in CROSS_FITTED)
"""Input models made of the scores that classifiers give to whom they were fitted to."""
GROUPS = ("a", "b")
"""The paper's names of the groups; a data set says whom they stand for."""
BINS = 10
"""Cost levels of the model with confidence costs."""


def input_model(kind: InputKind, training: People) -> fs.InputModel:
    r"""The distribution :math:`\theta` that a shield is made for.

    ``"agnostic"`` is the paper's, :math:`\theta(g, r, 1) = p_g / 2`: it knows the shares of the
    groups and nothing of the classifier; an outcome is as likely as not.  ``"learned"`` counts
    proposals and outcomes as well, at cost 1.  ``"confidence"`` also prices overruling at the
    distance of the score from the threshold, in :data:`BINS` levels.  A cross-fitted model is made
    in the same way, of people with out-of-fold scores.
    """
    if kind == "agnostic":
        share = float((training.group == 0).mean())
        return fs.InputModel.agnostic({"a": share, "b": 1.0 - share})
    if kind not in INPUTS:
        raise fs.InvalidValueError(f"unknown input model {kind!r}: choose from {', '.join(INPUTS)}")
    confident = priced(kind)
    return fs.InputModel.estimate(
        [GROUPS[g] for g in training.group.tolist()],
        training.proposed,
        training.confidence if confident else None,
        training.target,
        bins=BINS if confident else None,
        names=GROUPS,
    )


def priced(kind: InputKind) -> bool:
    """Whether overruling costs the confidence of the classifier, and not 1."""
    return CROSS_FITTED.get(kind, kind) == "confidence"
