"""Functions that list the settings of each experiment, as tasks of a sweep."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import Any

import pandas as pd

import fairshield as fs
from fairshield_experiments import learners as paper
from fairshield_experiments.baselines import BASELINES, simulate_baseline
from fairshield_experiments.data import ENVIRONMENTS, Dataset, load
from fairshield_experiments.departed import SHIELDS as PUBLISHED_SHIELDS
from fairshield_experiments.departed import simulate_departed
from fairshield_experiments.inputs import CROSS_FITTED, IN_SAMPLE, InputKind, priced
from fairshield_experiments.keys import identity, key_of, people_digest, versions
from fairshield_experiments.people import Scored
from fairshield_experiments.published_runs.departures import DEPARTURES, Departure, matters
from fairshield_experiments.resources import measure
from fairshield_experiments.simulate import PROPERTIES, Setting, paths, simulate
from fairshield_experiments.sweep.task import Frames, Task
from fairshield_experiments.training import cross_fit, train
from fairshield_experiments.trainings import train_again

PERIODIC = ("static-fair", "static-bounded", "dynamic", "inactive")
"""The paper's periodic shields; Dynamic is interpreted in two ways."""
MIN_SUPPORT = 10
MAIN = "ERM"
"""The learner of experiments that use only one."""
FIVE = ("ERM", "DiffDP", "HSIC", "LAFTR", "PR")
QUICK_LEARNERS = ("ERM", "DiffDP")
_QUICK: dict[str, Any] = {
    "environments": ("german-gender", "german-age"),
    "bounds": ("0.1", "0.2"),
    "period_bounds": ("0.1",),
    "runs": 10,
    "published_runs": 10,
    "period_runs": 5,
    "guaranteed_inputs": ("agnostic",),
    "folds": 2,
    "trainings": 2,
    "horizons": {"demographic-parity": (25, 50, 100, 150), "equal-opportunity": (25, 50, 75)},
}


@dataclass(frozen=True, kw_only=True)
class Extent:
    """Extent holds numbers of runs, horizons and classifiers.

    Attributes
    ----------
    learners
        By name; the periodic experiments and the baselines use :data:`MAIN`, if it is there.
    bounds, period_bounds
        Bounds for finite horizons, and for periodic shields.
    runs, period_runs
        Runs with finite horizons, and with periodic shields.
    published_runs
        Runs with finite horizons and all departures of the published runs; the published shares
        fit 50.
    guaranteed_inputs
        Input models of the shields that need no condition.
    folds
        Parts that the training part is divided into for out-of-fold scores.
    trainings
        How often each learner is trained; all experiments but ``trainings`` use the first one.
    horizons
        Horizons at which synthesis is measured, by property.
    """

    learners: Mapping[str, Any]
    environments: Sequence[str] = ENVIRONMENTS
    seed: int = 0
    bounds: Sequence[str] = ("0.05", "0.1", "0.15", "0.2")
    period_bounds: Sequence[str] = ("0.1", "0.15", "0.2")
    horizon: Mapping[str, int] = field(
        default_factory=lambda: {"demographic-parity": 100, "equal-opportunity": 75}
    )
    runs: int = 30
    published_runs: int = 50
    period_length: int = 50
    periods: int = 10
    period_runs: int = 20
    guaranteed_inputs: Sequence[InputKind] = IN_SAMPLE
    folds: int = 5
    trainings: int = 5
    horizons: Mapping[str, Sequence[int]] = field(
        default_factory=lambda: {
            "demographic-parity": (10, 25, 50, 75, 100, 150, 200, 300),
            "equal-opportunity": (10, 25, 50, 75, 100),
        }
    )


def make_extent(
    *,
    quick: bool = False,
    epochs: bool = False,
    seed: int = 0,
    environments: Sequence[str] | None = None,
    learners: Sequence[str] | None = None,
    own: Mapping[str, Any] | None = None,
) -> Extent:
    """The paper's extent, or a small part of it.

    ``own`` learners come after the paper's five, or in the place of one of the same name.  With
    ``epochs`` networks are trained for 150 epochs, as the paper says, and not for 150 steps.
    """
    own, quickly = own or {}, _QUICK if quick else {}
    known = [*FIVE, *(name for name in own if name not in FIVE)]
    names = learners or list(dict.fromkeys((*(QUICK_LEARNERS if quick else FIVE), *own)))
    _check_names("learner", names, known)
    wanted = environments or quickly.get("environments", ENVIRONMENTS)
    _check_names("environment", wanted, ENVIRONMENTS)
    made = {
        name: paper.as_learner(own[name]) if name in own else _of_paper(name, epochs)
        for name in names
    }
    return Extent(learners=made, seed=seed, **{**quickly, "environments": tuple(wanted)})


def _of_paper(name: str, epochs: bool) -> Any:
    try:
        learner: Any = paper.LEARNERS[name]
    except fs.MissingExtraError:
        raise fs.MissingExtraError(
            f"the paper's learners, such as {name}, need torch, which is not installed: "
            "pip install 'fairshield[experiments]', or run only your own (--learners)"
        ) from None
    return replace(learner, schedule=paper.Schedule(epochs=150)) if epochs else learner


def _check_names(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    for i, name in enumerate(names):
        if name not in known or name in names[:i]:
            problem = "repeated" if name in known else "unknown"
            raise fs.InvalidValueError(f"{problem} {what} {name!r}: choose from {', '.join(known)}")


# Tasks --------------------------------------------------------------------------------------


def perform(job: str, **arguments: Any) -> Frames:
    """Run the job that a task names; all sweeps call this function."""
    frames = _JOBS[job](**arguments)
    for frame in frames.values():
        frame["versions"] = versions()
    return frames


_loaded: Callable[[str], Dataset] = cache(load)
"""Environments by name; a process reads each of them once for all its tasks."""


def _train(environment: str, name: str, learner: Any, seed: int) -> Frames:
    trained = train(_loaded(environment), name, learner, seed=seed)
    metrics = pd.DataFrame(trained.rows())
    return {
        "metrics": metrics.assign(seed=seed),
        "scores": pd.DataFrame({"score": trained.scores}),
    }


def _cross_fit(environment: str, name: str, learner: Any, seed: int, folds: int) -> Frames:
    scores = cross_fit(_loaded(environment), name, learner, folds=folds, seed=seed)
    return {"scores": pd.DataFrame({"score": scores})}


def _train_again(
    environment: str, name: str, learner: Any, seed: int, settings: Sequence[Setting]
) -> Frames:
    return train_again(_loaded(environment), name, learner, settings, seed=seed)


_JOBS: dict[str, Callable[..., Frames]] = {
    "train": _train,
    "cross-fit": _cross_fit,
    "train-again": _train_again,
    "simulate": lambda settings, scored: {"runs": simulate(settings[0], scored)},
    "departed": lambda settings, scored: {"departed": simulate_departed(settings, scored)},
    "baseline": lambda settings, scored: {"runs": simulate_baseline(settings, scored)},
    "paths": lambda settings, scored: {"paths": paths(settings, scored)},
    "resources": lambda **arguments: {"resources": measure(**arguments)},
}


Model = tuple[str, str]
"""The environment and the learner of a classifier."""
NO_MODELS: Mapping[Model, Scored] = MappingProxyType({})


def model_tasks(extent: Extent) -> dict[Model, Task]:
    """Models to train."""
    return {
        (environment, name): Task(
            key=key_of("train", environment, name, identity(learner), extent.seed),
            title=f"train {name} on {environment}",
            arguments=_training_arguments(environment, name, extent) | {"job": "train"},
            weight=_training_weight(environment),
        )
        for environment, (name, learner) in product(extent.environments, extent.learners.items())
    }


def cross_fit_tasks(experiments: Sequence[str], extent: Extent) -> dict[Model, Task]:
    """Models whose training part gets out-of-fold scores: those of :data:`MAIN`."""
    if "inputs" not in experiments or MAIN not in extent.learners:
        return {}
    who = identity(extent.learners[MAIN])
    return {
        (environment, MAIN): Task(
            key=key_of("cross-fit", environment, MAIN, who, extent.seed, extent.folds),
            title=f"cross-fit {MAIN} on {environment}",
            arguments=_training_arguments(environment, MAIN, extent)
            | {"job": "cross-fit", "folds": extent.folds},
            weight=extent.folds * _training_weight(environment),
        )
        for environment in extent.environments
    }


def _training_arguments(environment: str, name: str, extent: Extent) -> dict[str, Any]:
    """Arguments of each job that trains."""
    return {
        "environment": environment,
        "name": name,
        "learner": extent.learners[name],
        "seed": extent.seed,
    }


def run_tasks(
    experiments: Sequence[str],
    extent: Extent,
    scored: Mapping[Model, Scored],
    cross_fitted: Mapping[Model, Scored] = NO_MODELS,
) -> list[Task]:
    """All simulations and measurements; settings whose model is missing are left out.

    ``cross_fitted`` are models with out-of-fold scores, which cross-fitted inputs need.
    """
    tasks: dict[str, Task] = {}
    digests, out_of_fold = (
        {at: people_digest(people) for at, people in models.items()}
        for models in (scored, cross_fitted)
    )

    def add(job: str, group: Sequence[Setting], weight: float) -> None:
        at = group[0].environment, group[0].learner
        own = group[0].inputs in CROSS_FITTED
        models, found = (cross_fitted, out_of_fold) if own else (scored, digests)
        if at in models:
            key = key_of(job, *(asdict(setting) for setting in group), found[at])
            arguments = {"job": job, "scored": models[at], "settings": group}
            # A setting that serves two experiments is simulated once.
            tasks[key] = Task(key, f"{job} {group[0]}", arguments, weight)

    def add_departed(settings: Sequence[Setting]) -> None:
        group = [s for s in settings if (s.environment, s.learner) in scored]
        if group:
            people = [scored[s.environment, s.learner] for s in group]
            found = [digests[s.environment, s.learner] for s in group]
            key = key_of("departed", *(asdict(setting) for setting in group), *found)
            arguments = {"job": "departed", "scored": people, "settings": group}
            tasks[key] = Task(key, f"departed {group[0]}", arguments, _departed_weight(group))

    for experiment in experiments:
        for setting in settings_of(experiment, extent):
            add("simulate", [setting], _weight(setting))
        for group in departed_settings_of(experiment, extent):
            add_departed(group)
    if "baselines" in experiments:
        for group in _baselines(extent):
            add("baseline", group, _BASELINE.get(group[0].shield, 1.0))
    if "paths" in experiments:
        for group in _single_runs(extent):
            add("paths", group, sum(map(_weight, group)))
    if "trainings" in experiments:
        tasks |= {task.key: task for at in scored for task in _again(*at, extent)}
    if "resources" in experiments:
        tasks |= {task.key: task for task in _measurements(extent)}
    return list(tasks.values())


# Settings -----------------------------------------------------------------------------------


def settings_of(experiment: str, extent: Extent) -> Iterator[Setting]:
    """What an experiment simulates, one setting at a time."""
    match experiment:
        case "finite":
            for undefined in ("bias-0", "rate-0"):
                yield from _finite(extent, undefined=undefined)
        case "periodic":
            for undefined in ("bias-0", "rate-0"):
                yield from _periodic(extent, PERIODIC, undefined=undefined)
        case "inputs":
            for inputs in ("learned", "confidence"):
                yield from _finite(extent, inputs=inputs)
                yield from _periodic(extent, PERIODIC[:3], inputs=inputs)
            if MAIN in extent.learners:
                yield from _cross_fitted(extent)
        case "support":
            yield from _finite(extent, min_support=MIN_SUPPORT)
        case "guaranteed":
            yield from _guaranteed(extent)


def _finite(extent: Extent, **changes: Any) -> Iterator[Setting]:
    for environment, learner, kind, bound in product(
        extent.environments, extent.learners, PROPERTIES, extent.bounds
    ):
        yield Setting(
            environment=environment,
            learner=learner,
            kind=kind,
            bound=bound,
            shield="finite-horizon",
            period_length=extent.horizon[kind],
            runs=extent.runs,
            seed=extent.seed,
            **changes,
        )


def _periodic(
    extent: Extent, shields: Sequence[str], bounds: Sequence[str] | None = None, **changes: Any
) -> Iterator[Setting]:
    for environment, kind, bound, shield in product(
        extent.environments, PROPERTIES, bounds or extent.period_bounds, shields
    ):
        yield Setting(
            environment=environment,
            learner=MAIN,
            kind=kind,
            bound=bound,
            shield=shield,
            period_length=extent.period_length,
            periods=extent.periods,
            runs=extent.period_runs,
            seed=extent.seed,
            **changes,
        )


def _cross_fitted(extent: Extent) -> Iterator[Setting]:
    """Settings with cross-fitted inputs; with periodic shields at the first bound alone."""
    only = replace(extent, learners={MAIN: extent.learners[MAIN]})
    for inputs in CROSS_FITTED:
        yield from _finite(only, inputs=inputs)
        yield from _periodic(only, PERIODIC[:3], extent.period_bounds[:1], inputs=inputs)


def _guaranteed(extent: Extent) -> Iterator[Setting]:
    """Settings of shields whose guarantee has no condition."""
    for inputs in extent.guaranteed_inputs:
        for setting in _periodic(extent, ("exact", "perpetual"), inputs=inputs):
            # With outcomes, a policy for 500 decisions would take 44 GB, and hours.
            if setting.shield == "perpetual" or setting.kind == "demographic-parity":
                yield setting
    # The least worst cost is searched, which takes as long as ten or twenty exact policies.
    for setting in _periodic(extent, ("optimal",), extent.period_bounds[:1]):
        if setting.kind == "demographic-parity":
            yield setting


def departed_settings_of(experiment: str, extent: Extent) -> Iterator[list[Setting]]:
    """What an experiment simulates as the published runs did: groups that differ in their learner.

    ``"ablation"`` has each departure alone, where it matters, and all on held-out people.
    """
    match experiment:
        case "as-published":
            yield from _departed(replace(extent, runs=extent.published_runs), DEPARTURES)
        case "ablation":
            for departure in DEPARTURES:
                yield from _departed(extent, (departure,), dynamic_bounds=("0.1",))
            held_out = tuple(name for name in DEPARTURES if name != "population")
            yield from _departed(extent, held_out, dynamic_bounds=("0.1",))


def _departed(
    extent: Extent,
    departures: tuple[Departure, ...],
    *,
    dynamic_bounds: Sequence[str] | None = None,
) -> Iterator[list[Setting]]:
    """Settings of the paper's shields; Dynamic is slow, and may have fewer bounds than others."""
    changes: dict[str, Any] = {"undefined": "rate-0", "departures": departures}
    groups: dict[tuple[str, ...], list[Setting]] = {}
    for setting in (
        *_finite(extent, **changes),
        *_periodic(extent, PUBLISHED_SHIELDS[1:], **changes),
    ):
        slow = setting.shield == "dynamic" and setting.bound not in (
            dynamic_bounds or extent.period_bounds
        )
        labelled = setting.kind == "equal-opportunity"
        if not slow and matters(departures, setting.shield, labelled=labelled):
            same = setting.environment, setting.kind, setting.bound, setting.shield
            groups.setdefault(same, []).append(setting)
    yield from groups.values()


def _baselines(extent: Extent) -> Iterator[list[Setting]]:
    """Settings of a baseline, which differ in their bound alone; the baseline ignores it."""
    for baseline, environment, kind in product(BASELINES, extent.environments, PROPERTIES):
        only = replace(extent, environments=[environment], learners={MAIN: None})
        yield [
            replace(setting, shield=baseline) for setting in _finite(only) if setting.kind == kind
        ]


def _single_runs(extent: Extent) -> Iterator[list[Setting]]:
    """Settings of one run of each periodic shield on one environment, at the first bound."""
    adult = [name for name in extent.environments if name.startswith("adult")]
    for environment, kind in product(adult or extent.environments[:1], PROPERTIES):
        only = replace(extent, environments=[environment], period_runs=1)
        yield [
            setting
            for setting in _periodic(only, (*PERIODIC[:3], "perpetual"), extent.period_bounds[:1])
            if setting.kind == kind
        ]


def _again(environment: str, name: str, extent: Extent) -> Iterator[Task]:
    """Trainings of a learner after the first, with the settings of the published utility losses.

    Each has a seed of its own for the split, the training and the people who come.
    """
    for number in range(1, extent.trainings):
        only = replace(
            extent,
            environments=[environment],
            learners={name: extent.learners[name]},
            bounds=extent.period_bounds[:1],
            seed=extent.seed + number,
        )
        settings = list(_finite(only, undefined="rate-0"))
        if name == MAIN:
            settings += _periodic(only, PERIODIC[:3], only.bounds, undefined="rate-0")
        arguments = _training_arguments(environment, name, only)
        told = [asdict(setting) for setting in settings]
        yield Task(
            key=key_of("train-again", environment, name, identity(only.learners[name]), told),
            title=f"train {name} on {environment} again, seed {only.seed}",
            arguments=arguments | {"job": "train-again", "settings": settings},
            weight=4 * _training_weight(environment) + sum(map(_weight, settings)),
        )


def _measurements(extent: Extent) -> Iterator[Task]:
    # Tasks of two kinds come first, so that two workers compile different code and share it.
    for levels, (kind, horizons) in product((1, 10), extent.horizons.items()):
        arguments = {"kind": kind, "levels": levels, "horizons": list(horizons)}
        yield Task(
            key=key_of("resources", arguments, platform.node()),
            title=f"measure synthesis, {kind}, {levels} cost levels",
            arguments={"job": "resources", **arguments},
            weight=20.0,
        )


# How long things take, relative to each other -----------------------------------------------

_TRAINING = {"german": 0.5, "compas": 2.0, "adult": 2.0, "bank": 2.0}
_BASELINE = {"exponentiated-gradient": 10.0}
_SHIELDS = {"optimal": 20.0, "exact": 2.0, "perpetual": 2.0, "dynamic": 0.5, "inactive": 0.5}


def _training_weight(environment: str) -> float:
    return _TRAINING.get(environment.split("-")[0], 1.0)


def _departed_weight(settings: Sequence[Setting]) -> float:
    slow = settings[0].kind == "equal-opportunity"
    if settings[0].shield == "dynamic":
        return 10.0 if slow else 0.5
    return 1.0 if slow else 0.2


def _weight(setting: Setting) -> float:
    weight = _SHIELDS.get(setting.shield, 0.05)
    weight *= 4 if setting.kind == "equal-opportunity" else 1
    return weight * (6 if priced(setting.inputs) else 1)
