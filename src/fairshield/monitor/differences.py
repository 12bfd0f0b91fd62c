"""Sentences that say in what requests differ most from their input model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fairshield.monitor.bets import Cells, Floats

if TYPE_CHECKING:
    from fairshield.monitor.evidence import Watch


def _groups_differ(watch: Watch, recent: Cells, expected: Floats) -> str:
    seen, said = recent.people.sum(axis=(0, 2, 3)), expected.sum(axis=(1, 2))
    shares = seen / seen.sum()
    g = int(np.argmax(np.abs(shares - said)))
    name = watch.inputs.groups[g]
    return f"group {name} is {shares[g]:.3g} of requests, the model says {said[g]:.3g}"


def _proposals_differ(watch: Watch, recent: Cells, expected: Floats) -> str:
    seen, said = recent.people.sum(axis=(0, 3)), expected.sum(axis=2)
    rates, model = _share(seen[:, 1], seen.sum(axis=1)), _share(said[:, 1], said.sum(axis=1))
    g = int(np.argmax(np.abs(rates - model)))
    return (
        f"{rates[g]:.3g} of group {watch.inputs.groups[g]} are proposed to be accepted, the model "
        f"says {model[g]:.3g}"
    )


def _costs_differ(watch: Watch, recent: Cells, expected: Floats) -> str:
    seen = recent.people.sum(axis=(0, 1, 2))
    shares, said = seen / seen.sum(), np.append(expected.sum(axis=(0, 1)), 0.0)
    level = len(seen) - 1 if seen[-1] else int(np.argmax(np.abs(shares - said)))
    edges = [0.0, *watch.rows.edges.tolist(), math.inf]
    most = "" if edges[level + 1] == math.inf else f" to {edges[level + 1]:.3g}"
    between = f"from {edges[level]:.3g}{most}" if edges[level] or not most else f"up{most}"
    return f"{shares[level]:.3g} of requests cost {between}, the model says {said[level]:.3g}"


def _outcomes_differ(watch: Watch, recent: Cells, expected: Floats) -> str:
    assert watch.rows.outcomes is not None
    told = recent.told[..., :-1]
    seen = recent.positive[..., :-1].sum(axis=(0, 2, 3))
    model = (told * watch.rows.outcomes).sum(axis=(0, 2, 3))
    people = told.sum(axis=(0, 2, 3))
    rates, said = _share(seen, people), _share(model, people)
    g = int(np.argmax(np.abs(rates - said)))
    return (
        f"{rates[g]:.3g} of group {watch.inputs.groups[g]} have outcome 1, the model says "
        f"{said[g]:.3g}"
    )


DIFFERENCES = {
    "groups": _groups_differ,
    "proposals": _proposals_differ,
    "costs": _costs_differ,
    "outcomes": _outcomes_differ,
}


def _share(part: Any, whole: Any) -> Floats:
    share: Floats = part / np.maximum(whole, 1e-300)
    return share
