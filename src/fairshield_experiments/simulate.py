"""``simulate`` runs one setting: the same people with and without a shield, many times."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import fairshield as fs
from fairshield.periodic import (
    Dynamic,
    ExactPeriodic,
    OptimalPeriodic,
    Outcome,
    PeriodicPolicy,
    Perpetual,
    StaticBounded,
    StaticFair,
    Streams,
    decide_runs,
)
from fairshield_experiments.inputs import CROSS_FITTED, GROUPS, InputKind, input_model, priced
from fairshield_experiments.people import People, Scored
from fairshield_experiments.published_runs.departures import Departure, named

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
PropertyKind = Literal["demographic-parity", "equal-opportunity"]
PROPERTIES: dict[PropertyKind, Callable[..., fs.Property]] = {
    "demographic-parity": fs.DemographicParity,
    "equal-opportunity": fs.EqualOpportunity,
}
COUNTERS = ("n_a", "k_a", "n_b", "k_b")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Setting says what is simulated.

    Attributes
    ----------
    kind, bound
        Of the property; the bound as text, because it is exact.
    undefined
        What becomes of a rate without people: ``"bias-0"`` is the paper's text, ``"rate-0"`` what
        the published runs did.
    shield
        One of :data:`SHIELDS`; ``"dynamic"`` makes a best effort where fairness cannot be
        guaranteed, ``"inactive"`` does not intervene where the paper's assumption fails.
    period_length, periods
        Decisions in a period, and periods in a run; a finite horizon is one period.
    runs, seed
        How many, drawn how.
    departures
        Those of the published runs from the paper's text; none: the text, as the library has it.
    """

    environment: str
    learner: str
    kind: PropertyKind
    bound: str
    shield: str
    inputs: InputKind = "agnostic"
    undefined: Literal["bias-0", "rate-0"] = "bias-0"
    min_support: int = 0
    period_length: int
    periods: int = 1
    runs: int
    seed: int = 0
    departures: tuple[Departure, ...] = ()

    @property
    def length(self) -> int:
        """Decisions in a run."""
        return self.period_length * self.periods

    @property
    def prop(self) -> fs.Property:
        """What must hold at the end of every period."""
        make = PROPERTIES[self.kind]
        return make(self.bound, min_support=self.min_support, undefined=self.undefined)

    def __str__(self) -> str:
        words = [self.environment, self.learner, f"{self.kind} {self.bound}", self.shield]
        words += [self.inputs, self.undefined]
        words += [f"min_support {self.min_support}"] * bool(self.min_support)
        words += [named(self.departures)] * bool(self.departures)
        return ", ".join(words)

    def columns(self) -> dict[str, Any]:
        """What every row says of its setting."""
        said = asdict(self) | {"bound": float(Fraction(self.bound)), "version": fs.__version__}
        said["departures"] = named(self.departures)
        del said["runs"]
        return {"property": said.pop("kind"), **said}


def draw(setting: Setting, people: int) -> Ints:
    """``(runs, length)``: who of ``people`` comes, in order; within a run nobody comes twice.

    Run i of an environment is the same for every classifier, shield, property and bound, and a
    shorter run is the beginning of a longer one.
    """
    if setting.length > people:
        raise fs.InvalidValueError(
            f"runs of {setting.length} decisions cannot be drawn without replacement from {people} "
            f"held-out people of {setting.environment}: shorten the runs"
        )
    return np.array([distinct(rng, people, setting.length) for rng in generators(setting)])


def generators(setting: Setting, *more: int) -> Iterator[np.random.Generator]:
    """A generator of random numbers for each run; they depend on environment and seed alone."""
    name = int.from_bytes(hashlib.sha256(setting.environment.encode()).digest()[:4], "little")
    for run in range(setting.runs):
        yield np.random.default_rng([setting.seed, name, run, *more])


def distinct(rng: np.random.Generator, people: int, length: int) -> Ints:
    """The first ``length`` different people of a random sequence: any order is equally likely."""
    state, size = rng.bit_generator.state, length
    while True:
        drawn = rng.integers(people, size=size)
        _, first = np.unique(drawn, return_index=True)
        if len(first) >= length:
            return drawn[np.sort(first)[:length]]
        rng.bit_generator.state = state  # draw the same sequence again, and longer
        size *= 2


def streams(setting: Setting, people: People) -> Streams:
    """The requests of people who come in the rows of :func:`draw`'s order."""
    labelled = setting.prop.relevant_outcome is not None
    return Streams(
        people.group,
        people.proposed,
        people.confidence if priced(setting.inputs) else np.ones(people.score.shape),
        people.target == setting.prop.relevant_outcome
        if labelled
        else np.ones(people.score.shape, bool),
    )


def make_policy(setting: Setting, training: People) -> PeriodicPolicy:
    """The policy of a setting; its input model is made from the training part."""
    if setting.shield not in _MAKERS:
        raise fs.InvalidValueError(
            f"unknown shield {setting.shield!r}: choose from {', '.join(SHIELDS)}"
        )
    return _MAKERS[setting.shield](setting, input_model(setting.inputs, training), training)


def _static_bounded(setting: Setting, inputs: fs.InputModel, training: People) -> PeriodicPolicy:
    bounds = welfare_bounds(setting.bound, training)
    return StaticBounded(setting.prop, inputs, setting.period_length, bounds=bounds)


def _optimal(setting: Setting, inputs: fs.InputModel, _: People) -> PeriodicPolicy:
    return OptimalPeriodic(setting.prop, inputs, setting.period_length, periods=setting.periods)


def _perpetual(setting: Setting, inputs: fs.InputModel, _: People) -> PeriodicPolicy:
    # With outcomes, looking two periods ahead takes ten to thirty times as long, and in 60 runs of
    # four settings the costs differed by 3 % at most.
    lookahead = 2 if setting.prop.relevant_outcome is None else 1
    return Perpetual(setting.prop, inputs, setting.period_length, lookahead=lookahead)


_MAKERS: dict[str, Callable[[Setting, fs.InputModel, People], PeriodicPolicy]] = {
    "finite-horizon": lambda s, inputs, _: ExactPeriodic(s.prop, inputs, s.period_length, 1),
    "static-fair": lambda s, inputs, _: StaticFair(s.prop, inputs, s.period_length),
    "static-bounded": _static_bounded,
    "dynamic": lambda s, inputs, _: Dynamic(s.prop, inputs, s.period_length),
    "inactive": lambda s, inputs, _: Dynamic(s.prop, inputs, s.period_length, fallback="inactive"),
    "exact": lambda s, inputs, _: ExactPeriodic(s.prop, inputs, s.period_length, periods=s.periods),
    "optimal": _optimal,
    "perpetual": _perpetual,
}
SHIELDS = tuple(_MAKERS)


def welfare_bounds(bound: str, training: People) -> tuple[Fraction, Fraction]:
    """Bounds of a Static-BW shield around the share of people with outcome 1.

    As in the published runs, also for equal opportunity.
    """
    width = Fraction(bound)
    middle = Fraction(int(training.target.sum()), len(training))
    lower = min(max(Fraction(0), middle - width / 2), 1 - width)
    return lower, lower + width


def policy_of(setting: Setting, scored: Scored) -> PeriodicPolicy:
    """The policy of a setting, its input model made of scores of the kind that it asks for."""
    if setting.inputs in CROSS_FITTED and not scored.cross_fitted:
        raise fs.InvalidValueError(
            f"the input model {setting.inputs!r} needs out-of-fold scores of the training part, "
            f"which those of {scored.learner} on {scored.environment} are not: give "
            "scored.with_out_of_fold(cross_fit(...))"
        )
    return make_policy(setting, scored.training)


def expected_cost(setting: Setting, policy: PeriodicPolicy) -> float:
    """What a period is expected to cost, where one table decides each period; else NaN."""
    tables = policy.tables
    if tables is None or tables.horizon != setting.period_length:
        return math.nan
    return tables.expected_cost


def outcomes(
    setting: Setting, scored: Scored, policy: PeriodicPolicy
) -> tuple[People, Outcome, Outcome]:
    """The people of all runs, ``(runs, length)``, and their outcomes with and without a shield."""
    people = scored.held_out.take(draw(setting, len(scored.held_out)))
    requests = streams(setting, people)
    shielded = decide_runs(policy, requests)
    return people, shielded, unshielded(setting, requests, requests.proposed)


def unshielded(setting: Setting, requests: Streams, accepted: NDArray[np.bool_]) -> Outcome:
    """The outcome of decisions that were made without a shield."""
    nobody = fs.Counts.zero(GROUPS)
    return Outcome(setting.prop, setting.period_length, nobody, None, requests, accepted)


def simulate(setting: Setting, scored: Scored) -> pd.DataFrame:
    """A row for every run and period."""
    policy = policy_of(setting, scored)
    people, decided, free = outcomes(setting, scored, policy)
    return rows(setting, people, decided, free, expected=expected_cost(setting, policy))


def rows(
    setting: Setting,
    people: People,
    decided: Outcome,
    free: Outcome,
    *,
    expected: float = math.nan,
) -> pd.DataFrame:
    """What happened, one row for every run and period.

    ``decided`` are the final decisions, ``free`` those of the classifier on its own; ``expected``
    is what a period was expected to cost.
    """
    runs, periods = decided.fair.shape
    overruled = decided.accepted != free.accepted
    measures: dict[str, Any] = {
        "run": np.repeat(np.arange(runs), periods),
        "period": np.tile(np.arange(1, periods + 1), runs),
        "bias": decided.bias,
        "bias_unshielded": free.bias,
        "fair": decided.fair,
        "fair_unshielded": free.fair,
        "condition": _flags(decided.condition_met, decided.fair.shape),
        "condition_published": _flags(_as_published(setting, decided), decided.fair.shape),
        "correct": _by_period(decided.accepted == people.target, periods),
        "correct_unshielded": _by_period(free.accepted == people.target, periods),
        "overruled": _by_period(overruled, periods),
        "cost": _by_period(np.where(overruled, decided.streams.costs, 0.0), periods),
        "expected": np.full((runs, periods), expected),
        "margin": _by_period(np.where(overruled, people.confidence, 0.0), periods),
    }
    measures |= {name: decided.ends[..., i] for i, name in enumerate(COUNTERS)}
    measures = {name: np.asarray(x).reshape(-1) for name, x in measures.items()}
    frame = pd.DataFrame(setting.columns() | measures)
    return frame.astype({"condition": "boolean", "condition_published": "boolean"})


def _by_period(values: NDArray[Any], periods: int) -> NDArray[Any]:
    return np.asarray(values.reshape(len(values), periods, -1).sum(axis=2))


def _flags(flags: NDArray[np.bool_] | None, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.full(shape, None, object) if flags is None else flags.astype(object)


def _as_published(setting: Setting, outcome: Outcome) -> NDArray[np.bool_] | None:
    """Whether the condition was met, as the published table measured it.

    Static-BW: more people of each group than the theorem asks for at least; Dynamic: fairness at
    the end of the period could be guaranteed when it began, and for equal opportunity, as it began,
    ``k_a = 0`` or ``n_b <= k_a n_a``.
    """
    if (setting.shield, setting.kind) == ("dynamic", "equal-opportunity"):
        n_a, k_a, n_b, _ = np.moveaxis(outcome.ends - outcome.gained, -1, 0)
        return np.asarray((k_a == 0) | (n_b <= k_a * n_a))
    if setting.shield == "static-bounded":
        least = -(-1 // Fraction(setting.bound))
        gained = outcome.gained
        return np.asarray((gained[..., 0] > least) & (gained[..., 2] > least))
    if setting.shield == "dynamic":
        return outcome.guaranteed
    # A shield that goes inactive does not compute whether the period could have been fair.
    return None if setting.shield == "inactive" else outcome.condition_met


def paths(settings: Sequence[Setting], scored: Scored, run: int = 0) -> pd.DataFrame:
    """The running bias of one run, decision by decision: without a shield, and with several."""
    found: dict[str, tuple[Setting, Outcome]] = {}
    for setting in settings:
        _, decided, free = outcomes(setting, scored, policy_of(setting, scored))
        found |= {"none": (setting, free), setting.shield: (setting, decided)}
    frames = []
    for shield, (setting, outcome) in found.items():
        said = setting.columns() | {"shield": shield, "run": run}
        decision = np.arange(1, setting.length + 1)
        bias = running_bias(outcome, run)
        frames.append(pd.DataFrame(said | {"decision": decision, "bias": bias}))
    return pd.concat(frames, ignore_index=True)


def running_bias(outcome: Outcome, run: int) -> Floats:
    """``(decisions,)``: from the beginning of the run."""
    counts = []
    for group in (0, 1):
        mine = outcome.streams.relevant[run] & (outcome.streams.groups[run] == group)
        counts.append(fs.GroupCount(np.cumsum(mine), np.cumsum(mine & outcome.accepted[run])))
    return np.asarray(outcome.prop.bias(*counts), dtype=np.float64)
