"""``simulate_departed`` runs settings as the published runs did, with some or all departures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import fairshield as fs
from fairshield.periodic import Outcome
from fairshield_experiments.data import load
from fairshield_experiments.people import People, Scored
from fairshield_experiments.published_runs.decide import Crowd, Tables
from fairshield_experiments.published_runs.window import Welfare, Window
from fairshield_experiments.simulate import (
    Setting,
    distinct,
    draw,
    generators,
    make_policy,
    rows,
    streams,
    unshielded,
    welfare_bounds,
)

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
SHARE = 0.6
"""Of all people, whom a published run draws from."""
SHIELDS = ("finite-horizon", "static-fair", "static-bounded", "dynamic")
"""The paper's shields."""
_WHOLE = {"adult-race": "adult-gender"}
"""Environments that leave people of their data set out, and one that has them all."""


def simulate_departed(settings: Sequence[Setting], scored: Sequence[Scored]) -> pd.DataFrame:
    """Rows of settings that differ in their learner alone, each with the scores of its own.

    They have their people and their tables in common.
    """
    people, tables = who_comes(settings[0], scored[0]), Tables()
    return pd.concat(
        [
            _simulate(setting, own, _population(setting, own).take(people), tables)
            for setting, own in zip(settings, scored, strict=True)
        ],
        ignore_index=True,
    )


def _simulate(setting: Setting, scored: Scored, people: People, tables: Tables) -> pd.DataFrame:
    requests = streams(setting, people)
    policy = make_policy(setting, scored.training)
    crowd = Crowd(requests.groups, requests.proposed, people.score, requests.relevant)
    accepted, feasible = tables.decide(
        window_of(setting, scored), crowd, dynamic=setting.shield == "dynamic"
    )
    free = unshielded(setting, requests, requests.proposed)
    decided = replace(free, condition=policy.condition, accepted=accepted, guaranteed=feasible)
    frame = rows(setting, people, decided, free)
    if "judging" in setting.departures:
        for column, outcome in (("fair", decided), ("fair_unshielded", free)):
            frame[column] = judged(setting, outcome).reshape(-1)
    return frame


def window_of(setting: Setting, scored: Scored) -> Window:
    """What the shield of a setting is made for, in every period."""
    if setting.shield not in SHIELDS or setting.inputs != "agnostic" or setting.min_support:
        raise fs.InvalidValueError(
            f"the published runs had no {setting}: choose a shield of {', '.join(SHIELDS)}, "
            "agnostic inputs and no minimum support"
        )
    return Window(
        labelled=setting.prop.relevant_outcome is not None,
        horizon=setting.period_length,
        bound=Fraction(setting.bound),
        share=float((scored.training.group == 0).mean()),
        undefined=setting.undefined,
        welfare=_welfare(setting, scored) if setting.shield == "static-bounded" else None,
        departures=setting.departures,
    )


def _welfare(setting: Setting, scored: Scored) -> Welfare:
    width = Fraction(setting.bound)
    if "static-bounds" not in setting.departures:
        lower, upper = welfare_bounds(setting.bound, scored.training)
        return Welfare(lower, upper, ceil(1 / width))
    return published_welfare(base_rate(scored), width)


def published_welfare(rate: Fraction, width: Fraction) -> Welfare:
    """Bounds around a base rate, and N from the bounds as float32 has them.

    >>> published_welfare(Fraction(7, 10), Fraction(1, 5)).least
    6
    """
    lower = max(Fraction(0), rate - width / 2)
    low, high = np.float32(lower), np.float32(lower + width)
    return Welfare(lower, lower + width, ceil(np.float32(1) / (high - low)))


def base_rate(scored: Scored) -> Fraction:
    """Share of outcome 1 among all people of the data set."""
    if (whole := _WHOLE.get(scored.environment)) is not None:
        target = load(whole).target
    else:
        target = everybody(scored).target
    return Fraction(int(target.sum()), len(target))


def judged(setting: Setting, outcome: Outcome) -> Flags:
    """Whether the property held at the end of each period, as the published runs saw it."""
    bound = float(setting.bound)
    if setting.periods == 1:
        return np.asarray(np.round(outcome.bias / bound, 2) <= 1)
    return np.asarray(outcome.bias <= bound)


# Who comes ----------------------------------------------------------------------------------


def who_comes(setting: Setting, scored: Scored) -> Ints:
    """``(runs, length)``: who of the population comes, in order."""
    people = _population(setting, scored)
    if "population" in setting.departures:
        return np.array([*_fresh(setting, people.target)])
    return draw(setting, len(people))


def _population(setting: Setting, scored: Scored) -> People:
    return everybody(scored) if "population" in setting.departures else scored.held_out


def everybody(scored: Scored) -> People:
    """The people who train a classifier and those held out."""
    return People(
        *(
            np.concatenate((getattr(scored.training, name), getattr(scored.held_out, name)))
            for name in ("group", "target", "score")
        )
    )


def _fresh(setting: Setting, target: NDArray[np.bool_]) -> Iterator[Ints]:
    """Who comes in each run: shuffled anew in each period, from a population of the run's own."""
    labels = [np.flatnonzero(target == label) for label in (False, True)]
    for rng in generators(setting, round(100 * SHARE)):
        population = np.concatenate(
            [rng.permutation(same)[: round(SHARE * len(same))] for same in labels]
        )
        if setting.period_length > len(population):
            raise fs.InvalidValueError(
                f"windows of {setting.period_length} decisions cannot be drawn from "
                f"{len(population)} people of {setting.environment}: shorten them"
            )
        yield np.concatenate(
            [
                population[distinct(rng, len(population), setting.period_length)]
                for _ in range(setting.periods)
            ]
        )
