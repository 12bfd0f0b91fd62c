"""Periodic policies: which policy decides each period, and under which condition it is fair.

A periodic policy is the artefact, shared by any number of :class:`PeriodicShield`; it remembers
nothing of a run.  Given the counters at the start of a period it names the :class:`Window` that
decides it.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

from numpy.typing import NDArray

from fairshield._version import __version__
from fairshield.artifact import read_artifact, write_artifact
from fairshield.counts import Counts, Group, is_whole
from fairshield.errors import ArtifactError, InfeasibleError, InvalidValueError
from fairshield.inputs import InputModel, InputSchedule, inputs_from_dict
from fairshield.periodic import bounds as welfare
from fairshield.periodic.conditions import (
    Balanced,
    Condition,
    Counters,
    EnoughHistory,
    EqualDenominators,
    balanced_from,
)
from fairshield.policy import Policy, reading
from fairshield.spec import (
    BoundedRates,
    Certificate,
    DifferenceOfRates,
    Number,
    Property,
    Sustained,
    exact,
    property_from_dict,
)
from fairshield.synthesis import checked_start, synthesize

Inputs = InputModel | InputSchedule
Fallback = Literal["best-effort", "inactive"]
Bounds = tuple[Number, Number] | Literal["centred", "cheapest"]
Progress = Callable[[float], None]


NOBODY = Counts({})
"""Counters of a run that begins with nobody seen, whatever its groups."""


class Window(NamedTuple):
    """What decides one period: a policy, and where in its window the period begins."""

    policy: Policy
    counts: Counts
    decided: int


@dataclass(frozen=True, eq=False)
class PeriodicPolicy(ABC):
    """What to do in every period, for a property that must hold at the end of each.

    Attributes
    ----------
    prop
        What must hold, of the counters since the beginning of the run.
    inputs
        What to expect in each period; decides the cost, never the guarantee.
    period
        Decisions in a period.
    start
        Counters before the first decision; default: nobody seen.
    """

    kind: ClassVar[str] = ""
    title: ClassVar[str] = ""
    _kinds: ClassVar[dict[str, type[PeriodicPolicy]]] = {}

    prop: Property
    inputs: Inputs
    period: int
    start: Counts = field(default=NOBODY, kw_only=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.kind:
            PeriodicPolicy._kinds[cls.kind] = cls

    @staticmethod
    def kinds() -> dict[str, type[PeriodicPolicy]]:
        """Every kind of periodic policy by its name in files and on the command line."""
        return dict(PeriodicPolicy._kinds)

    def __post_init__(self) -> None:
        if not is_whole(self.period) or self.period < 1:
            raise InvalidValueError(
                f"period must be a whole number of at least 1, got {self.period!r}: it is the "
                "number of decisions after which the property must hold again and again"
            )
        object.__setattr__(self, "period", int(self.period))
        object.__setattr__(self, "start", checked_start(self.inputs, self.start or None))

    @abstractmethod
    def window(self, counts: Counts, completed: int) -> Window:
        """What decides the period that begins with these counters."""

    @property
    def condition(self) -> Condition | None:
        """What the theorem assumes; ``None`` if it assumes nothing, or there is no theorem."""
        return None

    @property
    def unconditional(self) -> bool:
        """Whether every period ends fair on every input sequence, without any condition."""
        return False

    @property
    def last(self) -> int | None:
        """How many periods there are; ``None``: no last one."""
        return None

    def admits(self, start: Counts) -> bool:
        """Whether the theorem speaks about runs that begin with these counters."""
        return True

    @property
    def attainable(self) -> bool:
        """Whether any period can meet the condition; not if it is too short, say."""
        condition = self.condition
        if condition is None or condition.known_at_start:
            return True
        return condition.possible(counters(self.start), NOTHING, self.period)

    def outlook(self) -> tuple[float, int]:
        """Expected cost of the first plan of a run, and how many periods it covers."""
        plan = self.window(self.start, 0).policy
        return plan.expected_cost, (plan.horizon + plan.further) // self.period

    def certificate(self, counts: Counts) -> Certificate | None:
        """The certificate held with these counters, if this policy works with certificates."""
        return None

    @property
    def groups(self) -> tuple[Group, ...]:
        """The two group names; the first is the paper's group a."""
        return self.inputs.groups

    @property
    def labelled(self) -> bool:
        """Whether decisions must be followed by their outcome."""
        return self.prop.relevant_outcome is not None

    # Words and files ------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """What sets this policy apart from others of its kind, as JSON-able data."""
        return {}

    @property
    def tables(self) -> Policy | None:
        """The policy that is saved along, if one serves all periods."""
        return None

    def check_tables(self) -> None:
        """Refuse tables that were made for something else, as those of a changed file."""
        found = self.tables
        if found is None:
            return
        start, ends = self._counted_from, tuple(range(self.period, found.horizon + 1, self.period))
        for what, ours, theirs in (
            ("groups {}", self.groups, found.groups),
            ("{} decisions", self.period * (self.last or 1), found.horizon),
            ("{}", self._enforced, found.prop),
            ("periods that end after {} decisions", ends, found.due),
            ("a start from {}", start, found.start),
        ):
            if ours != theirs:
                raise ArtifactError(
                    f"the stored tables are for {what.format(theirs)}, the periodic policy is for "
                    f"{what.format(ours)}: synthesise it again"
                )

    @property
    def _enforced(self) -> Property:
        """What the tables satisfy."""
        return self.prop

    @property
    def _counted_from(self) -> Counts:
        """The counters that the tables begin with."""
        return self.start

    def to_dict(self) -> dict[str, Any]:
        """Everything but tables, as JSON-able data."""
        return {
            "kind": self.kind,
            "property": self.prop.to_dict(),
            "inputs": self.inputs.to_dict(),
            "period": self.period,
            "start": [list(self.start[g]) for g in self.groups],
            "options": self.options(),
        }

    @cached_property
    def fingerprint(self) -> str:
        """A digest of :meth:`to_dict`."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the policy to ``path``, atomically; returns its SHA-256 digest."""
        data, arrays = ({}, {}) if self.tables is None else self.tables.to_artifact()
        facts = {"periodic": self.to_dict(), "library": __version__, "policy": data or None}
        return write_artifact(path, facts, arrays)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> PeriodicPolicy:
        """Read a periodic policy, checking its digest."""
        found = load_policy(path)
        if not isinstance(found, PeriodicPolicy):
            raise ArtifactError(
                f"{os.fspath(path)} is a policy for one window: load it with Policy.load"
            )
        return found

    def __str__(self) -> str:
        a, b = self.groups
        return (
            f"{self.prop} at the end of every {self.period} decisions, groups {a} and {b}, "
            f"{self.title}"
        )


def load_policy(path: str | os.PathLike[str]) -> Policy | PeriodicPolicy:
    """The policy in a file, for one window or periodic."""
    data, arrays = read_artifact(path)
    with reading(path):
        if "periodic" in data:
            return _from_artifact(data, arrays)
        return Policy.from_artifact(data, arrays)


def _from_artifact(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> PeriodicPolicy:
    facts = data["periodic"]
    cls = PeriodicPolicy._kinds.get(facts["kind"])
    if cls is None:
        raise ArtifactError(
            f"not a policy: unknown kind {facts['kind']!r}, perhaps of a later version"
        )
    inputs = inputs_from_dict(facts["inputs"])
    start = Counts({g: tuple(c) for g, c in zip(inputs.groups, facts["start"], strict=True)})
    made = cls(
        property_from_dict(facts["property"]), inputs, facts["period"], start=start,
        **facts["options"],
    )  # fmt: skip
    if data["policy"] is not None:
        # As if it had just been made: the cached property is found in the instance.
        made.__dict__["tables"] = Policy.from_artifact(data["policy"], arrays)
        made.check_tables()
    return made


# The five -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Static(PeriodicPolicy):
    """One policy, begun anew in each period."""

    def __post_init__(self) -> None:
        super().__post_init__()
        difference_of_rates(self.prop, self.title)

    @cached_property
    def tables(self) -> Policy:
        """The policy of every period."""
        return synthesize(self._enforced, self.inputs, horizon=self.period)

    @property
    def _counted_from(self) -> Counts:
        return Counts.zero(self.groups)

    def admits(self, start: Counts) -> bool:
        # The counters before the first period count as another one.
        if not any(count.seen for count in start.values()):
            return True
        assert self.condition is not None
        as_period = self.condition.certain(NOTHING, counters(start), 0)
        return bool(as_period) and self._enforced.holds(start)

    def window(self, counts: Counts, completed: int) -> Window:
        return Window(self.tables, self.tables.start, 0)


@dataclass(frozen=True, eq=False)
class StaticFair(_Static):
    """The cheapest policy for one period, repeated (the paper's Static-Fair)."""

    kind = "static-fair"
    title = "Static-Fair"

    @cached_property
    def condition(self) -> Condition:
        return EqualDenominators(difference_of_rates(self.prop, self.title))


@dataclass(frozen=True, eq=False)
class StaticBounded(_Static):
    """Each group's rate kept between bounds in each period (the paper's Static-BW).

    Parameters
    ----------
    bounds
        Two rates at most the property's bound apart; ``"centred"``: around the rate that the
        proposals are expected to have; ``"cheapest"``: those of least expected cost.
    """

    kind = "static-bounded"
    title = "Static-BW"

    bounds: Any = "centred"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "bounds", self._checked_bounds())

    def _checked_bounds(self) -> tuple[Fraction, Fraction]:
        prop = difference_of_rates(self.prop, self.title)
        if prop.bound == 0:
            raise InvalidValueError(
                f"{prop} leaves no room between welfare bounds: {self.title} needs a bound above 0"
            )
        if self.bounds in ("centred", "cheapest"):
            choose = welfare.centred if self.bounds == "centred" else welfare.cheapest
            return choose(prop, self.inputs, self.period)
        try:
            lower, upper = (exact(end, "a welfare bound", most=1) for end in self.bounds)
        except (TypeError, ValueError) as error:
            raise InvalidValueError(
                f"bounds must be two rates, 'centred' or 'cheapest', got {self.bounds!r} ({error})"
            ) from None
        if not lower < upper <= lower + prop.bound:
            raise InvalidValueError(
                f"bounds must rise by more than 0 and at most {prop.bound}, so that rates inside "
                f"them satisfy {prop}, got {lower} and {upper}"
            )
        return lower, upper

    @cached_property
    def condition(self) -> Balanced:
        return Balanced(balanced_from(*self.bounds))

    @property
    def _enforced(self) -> Property:
        lower, upper = self.bounds
        least, outcome = self.condition.least, self.prop.relevant_outcome
        return BoundedRates(lower, upper, outcome=outcome, min_support=least)

    def options(self) -> dict[str, Any]:
        return {"bounds": [str(end) for end in self.bounds]}


@dataclass(frozen=True, eq=False)
class Dynamic(PeriodicPolicy):
    """A new policy for each period, from the counters at its start (the paper's Dynamic).

    Parameters
    ----------
    fallback
        What to do in a period that cannot be guaranteed to end fair: ``"best-effort"`` makes a
        violation as improbable as can be, at the least cost; ``"inactive"`` does not intervene, as
        in the paper, and also wherever the paper's condition is not met.
    """

    kind = "dynamic"
    title = "Dynamic"

    fallback: Fallback = "best-effort"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fallback not in ("best-effort", "inactive"):
            raise InvalidValueError(
                f"fallback must be 'best-effort' or 'inactive', got {self.fallback!r}"
            )

    @cached_property
    def condition(self) -> Condition | None:
        if isinstance(self.prop, DifferenceOfRates):
            return EnoughHistory(self.prop, self.period)
        return None

    def admits(self, start: Counts) -> bool:
        condition = self.condition
        return condition is None or bool(condition.certain(counters(start), NOTHING, self.period))

    @cached_property
    def _first(self) -> Policy:
        return self._planned(self.start)

    def window(self, counts: Counts, completed: int) -> Window:
        policy = self._first if counts == self.start else self._planned(counts)
        return Window(policy, counts, 0)

    def _planned(self, counts: Counts) -> Policy:
        if self.fallback == "best-effort":
            return best_effort(self.prop, self.inputs, self.period, counts)
        condition = self.condition
        if condition is None or condition.certain(counters(counts), NOTHING, self.period):
            try:
                return synthesize(self.prop, self.inputs, horizon=self.period, start=counts)
            except InfeasibleError:
                pass  # a condition met by unfair counters proves nothing
        return inactive(self.prop, self.inputs, self.period, counts)

    def options(self) -> dict[str, Any]:
        return {"fallback": self.fallback}


@dataclass(frozen=True, eq=False)
class ExactPeriodic(PeriodicPolicy):
    """The cheapest policy for a number of periods, all of which end fair.

    Parameters
    ----------
    periods
        How many.
    """

    kind = "exact"
    title = "exact periodic"

    periods: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_whole(self.periods) or self.periods < 1:
            raise InvalidValueError(
                f"periods must be a whole number of at least 1, got {self.periods!r}: plan for as "
                "many periods as there will be, or use a perpetual shield"
            )
        object.__setattr__(self, "periods", int(self.periods))

    @cached_property
    def tables(self) -> Policy:
        """The policy of all periods."""
        return self.synthesize()

    def synthesize(self, progress: Progress | None = None) -> Policy:
        """The policy of all periods, made with a progress report."""
        total = self.period * self.periods
        made = synthesize(
            self.prop, repeated(self.inputs, self.period, self.periods), horizon=total,
            start=self.start, checkpoints=range(self.period, total, self.period), progress=progress,
        )  # fmt: skip
        self.__dict__["tables"] = made  # where the cached property looks for it
        return made

    @property
    def unconditional(self) -> bool:
        return True

    @property
    def last(self) -> int:
        return self.periods

    def window(self, counts: Counts, completed: int) -> Window:
        decided = completed * self.period
        if self.tables.guarantees(counts, decided):
            return Window(self.tables, counts, decided)
        # Only a person who decided against advice leads here.
        return Window(best_effort(self.prop, self.inputs, self.period, counts), counts, 0)

    def options(self) -> dict[str, Any]:
        return {"periods": self.periods}


@dataclass(frozen=True, eq=False)
class Perpetual(PeriodicPolicy):
    """Each period as the beginning of a plan that ends with a certificate; no last period.

    Parameters
    ----------
    lookahead
        Periods that a plan covers.
    """

    kind = "perpetual"
    title = "perpetual"

    lookahead: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        difference_of_rates(self.prop, self.title)
        if not is_whole(self.lookahead) or self.lookahead < 1:
            raise InvalidValueError(
                f"lookahead must be a whole number of periods, at least 1, got {self.lookahead!r}"
            )
        object.__setattr__(self, "lookahead", int(self.lookahead))

    @cached_property
    def sustained(self) -> Sustained:
        """What holds at the end of each plan."""
        return Sustained(self.prop)

    @property
    def unconditional(self) -> bool:
        return True

    def certificate(self, counts: Counts) -> Certificate | None:
        return self.sustained.certificate(counts)

    @cached_property
    def _first(self) -> Policy:
        return self.plan(self.start)

    def window(self, counts: Counts, completed: int) -> Window:
        try:
            policy = self._first if counts == self.start else self.plan(counts)
        except InfeasibleError:
            if counts == self.start:
                raise
            # Only a person who decided against advice leads here.
            policy = best_effort(self.prop, self.inputs, self.period, counts)
        return Window(policy, counts, 0)

    def plan(self, counts: Counts, *, recorded: int = 1) -> Policy:
        """The cheapest plan from these counters, with the decisions of its first periods."""
        total, horizon = self.lookahead * self.period, recorded * self.period
        return synthesize(
            self.prop, repeated(self.inputs, self.period, self.lookahead), horizon=horizon,
            further=total - horizon, start=counts, terminal=self.sustained,
            checkpoints=range(self.period, total, self.period),
        )  # fmt: skip

    def options(self) -> dict[str, Any]:
        return {"lookahead": self.lookahead}


# What they share ----------------------------------------------------------------------------

NOTHING = Counters(0, 0, 0, 0)


def counters(counts: Counts) -> Counters:
    """Counters of both groups as numbers."""
    (n_a, k_a), (n_b, k_b) = counts.values()
    return Counters(n_a, k_a, n_b, k_b)


def difference_of_rates(prop: Property, title: str) -> DifferenceOfRates:
    """``prop``, if the theorems about such shields speak of it."""
    if isinstance(prop, DifferenceOfRates):
        return prop
    raise InvalidValueError(
        f"{prop} is not a difference of rates: the guarantee of {title} shields rests on adding up "
        "rates over periods, which says nothing about it. Use a Dynamic or an exact periodic "
        "shield, which work with any property"
    )


def best_effort(prop: Property, inputs: Inputs, period: int, counts: Counts) -> Policy:
    """The policy for one period that is fair if that can be guaranteed, else as often as can be."""
    return synthesize(prop, inputs, horizon=period, start=counts, best_effort=True)


def inactive(prop: Property, inputs: Inputs, period: int, counts: Counts) -> Policy:
    """A policy for one period that keeps every proposal."""
    never = property_from_dict({**prop.to_dict(), "min_support": 10**17})
    return synthesize(never, inputs, horizon=period, start=counts)


def repeated(inputs: Inputs, period: int, times: int) -> Inputs:
    """What to expect over several periods, if each is like the first."""
    if isinstance(inputs, InputModel) or times == 1:
        return inputs
    parts, left = [], period
    for model, steps in inputs.parts:
        parts.append((model, min(steps, left)))
        left -= min(steps, left)
        if not left:
            break
    else:
        model, steps = parts[-1]
        parts[-1] = (model, steps + left)
    return InputSchedule(parts * times)
