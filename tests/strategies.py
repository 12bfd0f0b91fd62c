"""Strategies for random specifications, input models, windows and streams of requests.

Examples are small: faults of counters show at a horizon of a few decisions, and a person can
follow a small example.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

import fairshield as fs
from fairshield.base.counts import At
from fairshield.policy import Specification, lookups
from fairshield.policy.decisions import Decisions
from fairshield.policy.many import StateDecisions
from fairshield.policy.many import lookups as many_lookups
from fairshield.policy.row_decisions import RowDecisions
from fairshield.synthesis import Options, make_policy
from fairshield.synthesis.problem import Problem, make_problem
from fairshield.synthesis.reference import Position

GROUPS = ("a", "b")
THREE = ("a", "b", "c")


# Properties of a user's own -----------------------------------------------------------------


@dataclass(frozen=True)
class Quota(fs.Property, kind="tests-quota"):
    """As many accepted in one group as in the other, up to ``most``."""

    most: int

    def fair(self, a: Any, b: Any) -> Any:
        return abs(a.accepted - b.accepted) <= self.most


@dataclass(frozen=True)
class NotThatMany(fs.Property, kind="tests-not-that-many"):
    """Any number of people is accepted but ``total``: fair states with a hole among them."""

    total: int

    def fair(self, a: Any, b: Any) -> Any:
        return a.accepted + b.accepted != self.total


@dataclass(frozen=True)
class NotThatManyQualified(NotThatMany, kind="tests-not-that-many-qualified"):
    """The same, counting only people with outcome 1."""

    relevant_outcome: ClassVar[bool | None] = True


@dataclass(frozen=True)
class Branching(fs.Property, kind="tests-branching"):
    """The leading group is ahead by at most ``most``; its ``if`` cannot be asked about arrays."""

    most: int

    def fair(self, a: Any, b: Any) -> Any:
        if a.accepted > b.accepted:
            return a.accepted - b.accepted <= self.most
        return b.accepted - a.accepted <= self.most


# Properties ---------------------------------------------------------------------------------

AWKWARD = [Fraction(1, 10), Fraction(1, 3), Fraction("0.1234567"), Fraction(0), Fraction(1)]
bounds = st.sampled_from(AWKWARD) | st.fractions(0, 1, max_denominator=12)
supports = st.sampled_from([0, 0, 0, 1, 2, 3])
options = st.fixed_dictionaries(
    {"min_support": supports, "undefined": st.sampled_from(["bias-0", "rate-0"])}
)


def _bounded(cls: type, **fixed: Any) -> st.SearchStrategy[fs.Property]:
    return st.builds(lambda bound, given: cls(bound, **fixed, **given), bounds, options)


@st.composite
def bounded_rates(draw: st.DrawFn) -> fs.BoundedRates:
    """Intervals of every width, with the default support or one of their own."""
    lower, upper = sorted(draw(st.lists(bounds, min_size=2, max_size=2, unique=True)))
    given = draw(options)
    if draw(st.booleans()):
        del given["min_support"]
    return fs.BoundedRates(lower, upper, **given)


two_sided = {
    fs.DemographicParity: _bounded(fs.DemographicParity),
    fs.ShareParity: _bounded(fs.ShareParity),
    fs.DisparateImpact: _bounded(fs.DisparateImpact),
    fs.BoundedRates: bounded_rates(),
    Quota: st.builds(Quota, st.integers(0, 2), min_support=supports),
    NotThatMany: st.builds(NotThatMany, st.integers(0, 3), min_support=supports),
    Branching: st.builds(Branching, st.integers(0, 2), min_support=supports),
}
one_sided = st.builds(
    lambda bound, given: fs.DisparateImpact(bound, two_sided=False, **given),
    st.fractions(0, 3, max_denominator=6),
    options,
)
labelled = {
    fs.EqualOpportunity: _bounded(fs.EqualOpportunity),
    fs.PredictiveEquality: _bounded(fs.PredictiveEquality),
    NotThatManyQualified: st.builds(NotThatManyQualified, st.integers(0, 3)),
}
linear_properties = st.one_of(
    *(two_sided[cls] for cls in two_sided if issubclass(cls, fs.LinearProperty)),
    one_sided,
    labelled[fs.EqualOpportunity],
)
plain_properties = st.one_of(*two_sided.values(), one_sided)
labelled_properties = st.one_of(*labelled.values())
symmetric_properties = st.one_of(*two_sided.values(), *labelled.values())
properties = plain_properties | labelled_properties
# At these horizons most unfair counters cannot become fair any more, so that an early checkpoint
# forbids nothing new.  For these properties it does.
mendable_properties = st.one_of(
    two_sided[NotThatMany],
    two_sided[Quota],
    labelled[NotThatManyQualified],
    st.builds(fs.DemographicParity, st.fractions("1/4", "2/3", max_denominator=7)),
)


# Input models -------------------------------------------------------------------------------

# Hypothesis shrinks examples towards the first values, so the simplest ones come first.
LEVELS = (1.0, 0.25, 2.5, 0.0)
CHANCES = (0.5, 0.25, 1.0, 0.0)


@st.composite
def input_models(
    draw: st.DrawFn,
    max_levels: int = 2,
    binned: bool = False,
    groups: tuple[str, ...] = GROUPS,
) -> fs.InputModel:
    """One or several cost levels, impossible requests and groups, outcomes certain or not."""
    levels = sorted(draw(st.sets(st.sampled_from(LEVELS), min_size=1, max_size=max_levels)))
    n = 2 * len(groups) * len(levels)
    weight = st.sampled_from([1, 1, 2, 3, 4, 0])
    weights = np.array(draw(st.lists(weight, min_size=n, max_size=n)), float)
    weights = weights.reshape(len(groups), 2, len(levels))
    absent = draw(st.sampled_from([None] * 8 + [0, 1]))
    if absent is not None:
        weights[absent] = 0.0
    if not weights.any():
        weights[:] = 1.0
    probs = weights / weights.sum()
    cells = list(product(groups, (False, True), levels))
    table = {cell: float(p) for cell, p in zip(cells, probs.reshape(-1), strict=True)}
    model = fs.InputModel.from_table(table, outcomes=draw(_outcomes(tuple(levels), groups)))
    if not binned or draw(st.booleans()):
        return model
    edges = [*levels[1:], np.inf]
    middle = [(low + high) / 2 for low, high in zip(levels, edges, strict=True)]
    return fs.InputModel(model.groups, model.levels, model.probs, model.outcomes, middle)


@st.composite
def _outcomes(
    draw: st.DrawFn, levels: tuple[float, ...], groups: tuple[str, ...]
) -> dict[Any, float]:
    """P(outcome = 1) by group, by (group, proposed) or by (group, proposed, cost)."""
    keys = draw(
        st.sampled_from(
            [
                list(groups),
                list(product(groups, (False, True))),
                list(product(groups, (False, True), levels)),
            ]
        )
    )
    return {key: draw(st.sampled_from(CHANCES)) for key in keys}


@st.composite
def finely_priced_models(draw: st.DrawFn) -> fs.InputModel:
    """More cost levels than a kernel goes through one by one, some of them nearly alike."""
    n = draw(st.sampled_from([31, 32, 33, 40, 130]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    levels = np.unique(np.round(rng.exponential(1.0, 2 * n), draw(st.integers(2, 12))))[:n]
    weights = rng.integers(0, 3, (2, 2, len(levels))).astype(float)
    outcomes = rng.choice(CHANCES, weights.shape)
    return fs.InputModel(GROUPS, levels, weights / weights.sum(), outcomes)


def schedules(
    max_levels: int = 2, groups: tuple[str, ...] = GROUPS
) -> st.SearchStrategy[fs.InputSchedule]:
    """Input models that change after a step or a few."""
    part = st.tuples(input_models(max_levels, binned=True, groups=groups), st.integers(1, 3))
    return st.lists(part, min_size=1, max_size=3).map(fs.InputSchedule)


# Specifications -----------------------------------------------------------------------------


class Spec(NamedTuple):
    """The arguments of one synthesis."""

    prop: fs.Property
    inputs: fs.InputModel | fs.InputSchedule
    horizon: int
    start: fs.Counts
    checkpoints: tuple[int, ...]
    further: int = 0
    terminal: fs.Property | None = None
    ceiling: float | None = None

    def synthesize(self, **options: Any) -> fs.Policy:
        """The policy; raises if there is none."""
        if self.ceiling is not None:
            return make_policy(self.problem().spec, Options(**options))
        return fs.synthesize(
            self.prop,
            self.inputs,
            horizon=self.horizon,
            start=self.start,
            checkpoints=self.checkpoints,
            further=self.further,
            terminal=self.terminal,
            **options,
        )

    def feasible_policy(self, **options: Any) -> fs.Policy:
        """The policy; examples without one are rejected."""
        try:
            return self.synthesize(**options)
        except fs.InfeasibleError:
            reject()

    def problem(self) -> Problem:
        """The numbers behind it."""
        return make_problem(
            Specification.of(
                self.prop, self.inputs, horizon=self.horizon, start=self.start,
                checkpoints=self.checkpoints, ceiling=self.ceiling,
            )
        )  # fmt: skip


@st.composite
def starts(draw: st.DrawFn, most: int = 5, groups: tuple[str, ...] = GROUPS) -> fs.Counts:
    """Counters before the window; often none."""
    if draw(st.booleans()):
        return fs.Counts.zero(groups)
    seen = {g: draw(st.integers(0, most)) for g in groups}
    return fs.Counts({g: (n, draw(st.integers(0, n))) for g, n in seen.items()})


@st.composite
def plans(draw: st.DrawFn) -> Spec:
    """Specifications that look beyond their horizon, often to a certificate at the end."""
    rates = st.one_of(
        *(
            st.builds(
                kind, st.fractions("1/8", "1/2", max_denominator=8), min_support=st.integers(0, 2)
            )
            for kind in (fs.DemographicParity, fs.EqualOpportunity, fs.PredictiveEquality)
        )
    )
    spec = draw(specs(rates, horizons=(1, 4), max_levels=2, checkpointed=False))
    further = draw(st.integers(0, 4))
    points = draw(st.sets(st.integers(1, spec.horizon + further), max_size=2))
    terminal = draw(st.sampled_from([None, fs.spec.Sustained(spec.prop)]))
    return spec._replace(checkpoints=tuple(points), further=further, terminal=terminal)


def _checkpoints(horizon: int) -> st.SearchStrategy[tuple[int, ...]]:
    """At least one that is not the end, if there is room."""
    points = st.sets(st.integers(1, max(horizon - 1, 1)), min_size=1, max_size=2)
    return points.map(lambda chosen: tuple(sorted(chosen)))


@st.composite
def specs(
    draw: st.DrawFn,
    props: st.SearchStrategy[fs.Property] = properties,
    horizons: tuple[int, int] = (1, 5),
    max_levels: int = 2,
    scheduled: bool = True,
    checkpointed: bool | None = None,
    from_start: bool = True,
    models: st.SearchStrategy[Any] | None = None,
    groups: tuple[str, ...] = GROUPS,
) -> Spec:
    """Everything :func:`fairshield.synthesize` can be asked for.

    ``checkpointed``: always, never, or (``None``) now and then.
    """
    horizon = draw(st.integers(*horizons))
    if models is None:
        models = input_models(max_levels, binned=True, groups=groups)
        if scheduled:
            models = models | schedules(max_levels, groups)
    if checkpointed is None:
        checkpointed = draw(st.booleans())
    return Spec(
        draw(props),
        draw(models),
        horizon,
        draw(starts(groups=groups)) if from_start else fs.Counts.zero(groups),
        draw(_checkpoints(horizon)) if checkpointed else (),
    )


@st.composite
def contested_models(draw: st.DrawFn) -> fs.InputModel:
    """Proposals favour one group, and some people are much cheaper to overrule than others."""
    cheap = draw(st.sampled_from([0.1, 0.25]))
    levels = [cheap, 1.0, 2.5][: draw(st.integers(2, 3))]
    share, skew = (draw(st.sampled_from([0.5, 0.8, 0.95])) for _ in "ab")
    table = {
        (g, r, c): (share if g == "a" else 1 - share) * (skew if r == (g == "a") else 1 - skew)
        for g, r, c in product(GROUPS, (False, True), levels)
    }
    given = {key: p / len(levels) for key, p in table.items()}
    outcomes = {g: draw(st.sampled_from([0.5, 0.25, 1.0])) for g in GROUPS}
    return fs.InputModel.from_table(given, outcomes=outcomes)


def contested_specs(
    horizons: tuple[int, int] = (7, 9), props: st.SearchStrategy[fs.Property] | None = None
) -> st.SearchStrategy[Spec]:
    """Where it pays to overrule cheap people early; in shorter windows that is rare."""
    loose = st.fractions("1/5", "1/2", max_denominator=10)
    kinds = (fs.DemographicParity, fs.EqualOpportunity, fs.PredictiveEquality)
    moderate = st.one_of(*(st.builds(kind, loose) for kind in kinds))
    ratio = st.builds(fs.DisparateImpact, st.fractions("1/2", "4/5", max_denominator=10))
    part = st.tuples(contested_models(), st.integers(1, 6))
    changing = st.lists(part, min_size=2, max_size=2).map(fs.InputSchedule)
    return specs(
        moderate | ratio if props is None else props,
        horizons,
        checkpointed=False,
        models=contested_models() | changing,
    )


# Streams ------------------------------------------------------------------------------------

COSTS = (0.0, 0.1, 0.25, 0.3, 1.0, 2.5, 3.0, 1e9)
"""Model levels, costs between them, and costs above all of them."""


class Request(NamedTuple):
    """One arrival, with the outcome that will be revealed."""

    group: str
    proposed: bool
    cost: float
    outcome: bool


requests = st.builds(
    Request, st.sampled_from(GROUPS), st.booleans(), st.sampled_from(COSTS), st.booleans()
)


def streams(length: int) -> st.SearchStrategy[list[Request]]:
    """Requests of a whole window."""
    return st.lists(requests, min_size=length, max_size=length)


def run(shield: fs.Shield, stream: list[Request]) -> list[fs.Decision]:
    """Decide the stream, revealing outcomes where the property wants them."""
    decisions = []
    for request in stream:
        decision = shield.decide(request.group, proposed=request.proposed, cost=request.cost)
        if shield.policy.labelled:
            shield.observe(decision, outcome=request.outcome)
        decisions.append(decision)
    return decisions


def positions(horizon: int, labelled: bool) -> Iterator[Position]:
    """Every counter state of a window."""
    for t in range(horizon + 1):
        for n_a in range(t + 1):
            for n_b in range(0 if labelled else t - n_a, t - n_a + 1):
                for k_a, k_b in product(range(n_a + 1), range(n_b + 1)):
                    yield Position(t, (n_a, k_a, n_b, k_b))


def code_at(decisions: Decisions, t: int, at: At, group: int) -> int:
    """Cost levels worth overruling: ``+`` accepts, ``-`` rejects; 0 if there is nothing to say."""
    if isinstance(decisions, StateDecisions):
        return many_lookups.code_of(decisions._views, t, at, group)
    assert isinstance(decisions, RowDecisions)
    tables = decisions._views
    lost = tables.salvaging and not decisions.feasible(t, at)
    return lookups.code_of(tables, tables.salvage if lost else tables.rows, t, at, group)


def with_rows(policy: fs.Policy, **changed: np.ndarray) -> fs.Policy:
    """The policy with some of its tables replaced."""
    return with_decisions(policy, rows=replace(policy.decisions.rows, **changed))


def with_spec(policy: fs.Policy, **changed: Any) -> fs.Policy:
    """The policy with another specification than its decisions were made for."""
    return replace(policy, spec=replace(policy.spec, **changed))


def with_decisions(policy: fs.Policy, **changed: Any) -> fs.Policy:
    """The policy with some fields of its decisions replaced."""
    return replace(policy, decisions=replace(policy.decisions, **changed))


def follow(shield: fs.Run, request: Request) -> fs.Decision:
    """Decide one request, revealing its outcome where the property wants it."""
    decision = shield.decide(request.group, proposed=request.proposed, cost=request.cost)
    if shield.policy.labelled:
        shield.observe(decision, outcome=request.outcome)
    return decision


def relevant(prop: fs.Property) -> bool:
    """An outcome with which a person counts."""
    return prop.relevant_outcome is not False
