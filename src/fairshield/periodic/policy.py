"""Periodic policies: which policy decides each period, and under which condition it is fair.

A periodic policy is the artefact, shared by any number of :class:`PeriodicShield`; it remembers
nothing of a run.  Given the counters at the start of a period it names the :class:`Window` that
decides it.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from fairshield._version import __version__
from fairshield.artifact import read_artifact, write_artifact
from fairshield.counts import Counts, Group, in_words, is_whole
from fairshield.errors import ArtifactError, InvalidValueError, VacuousWarning
from fairshield.inputs import InputModel, InputSchedule, inputs_from_dict
from fairshield.periodic.conditions import Condition, Counters
from fairshield.policy import Policy, reading
from fairshield.spec import (
    Certificate,
    DifferenceOfRates,
    Property,
    can_ever_bind,
    property_from_dict,
)
from fairshield.synthesis import check_kinds, checked_start, make_policy, remaining_inputs
from fairshield.words import summary

Inputs = InputModel | InputSchedule

NOBODY = Counts({})
"""Counters of a run that begins with nobody seen, whatever its groups."""
NOTHING = Counters(0, 0, 0, 0)
TOO_SHORT = "its periods are too short to bind what it enforces"
"""Why a policy enforces nothing."""


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
        return dict(sorted(PeriodicPolicy._kinds.items()))

    def __post_init__(self) -> None:
        check_kinds(self.prop, self.inputs)
        if len(self.inputs.groups) > 2:
            raise InvalidValueError(
                f"periods are for two groups, and {len(self.inputs.groups)} are declared: "
                f"{in_words(self.inputs.groups)}; use one window (synthesize with a horizon), or "
                "join groups"
            )
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
    def theorem(self) -> str | None:
        """The theorem that applies, by its name in docs/guarantees.md; ``None``: none does."""
        return None if self.condition is None else self.condition.theorem

    @property
    def unconditional(self) -> bool:
        """Whether every period ends fair on every input sequence, without any condition."""
        return False

    @property
    def last(self) -> int | None:
        """How many periods there are; ``None``: no last one."""
        return None

    @cached_property
    def can_bind(self) -> bool:
        """Whether the property can ever bind a run; if not, nothing is promised."""
        return can_ever_bind(self.prop, self.start)

    @property
    def enforces(self) -> bool:
        """Whether what the policy of a period keeps can bind there; if not, all goes as proposed.

        A property that does not bind within a period may yet bind, and fail, at the end of one.
        """
        return self.can_bind

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

    def check_stored(self) -> None:
        """Refuse tables that were made for something else, as those of a changed file."""
        found = self.tables
        if found is None:
            return
        ends = tuple(range(self.period, found.horizon + 1, self.period))
        for what, ours, theirs in (
            ("groups {}", self.groups, found.groups),
            ("{} decisions", self.period * (self.last or 1), found.horizon),
            ("{}", self.enforced, found.prop),
            ("periods that end after {} decisions", ends, found.due),
            ("a start from {}", self.base(self.start), found.start),
            ("{} more decisions planned", 0, found.further),
            ("{} at the end", self.enforced, found.terminal or self.enforced),
        ):
            if ours != theirs:
                raise ArtifactError(
                    f"the stored tables are for {what.format(theirs)}, the periodic policy is for "
                    f"{what.format(ours)}: synthesise it again"
                )

    @property
    def enforced(self) -> Property:
        """What the policy of a period keeps."""
        return self.prop

    def base(self, start: Counts) -> Counts:
        """The counters that the policy of a period reckons from, if the period begins so."""
        return start

    def mend(self, counts: Counts, left: int) -> Policy:
        """What decides the rest of a period after a person has decided against its plan."""
        inputs = remaining_inputs(self.inputs, self.period - left)
        return best_effort(self.enforced, inputs, left, counts)

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

    def __getstate__(self) -> dict[str, Any]:
        # Plans are made again; only tables, as in a file, are worth taking along.
        kept = {f.name for f in fields(self)} | {"tables"}
        return {name: value for name, value in self.__dict__.items() if name in kept}

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

    __repr__ = summary

    def __str__(self) -> str:
        a, b = self.groups
        return (
            f"{self.prop} at the end of every {self.period} decisions, groups {a} and {b}, "
            f"{self.title}{self._caveat()}"
        )

    def _caveat(self) -> str:
        if not self.can_bind:
            return ", vacuous: it can never bind"
        return "" if self.enforces else f", enforces nothing: {TOO_SHORT}"


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
        made.check_stored()
    return made


# What several kinds need --------------------------------------------------------------------


def counters(counts: Counts) -> Counters:
    """Counters of both groups as numbers."""
    (n_a, k_a), (n_b, k_b) = counts.values()
    return Counters(n_a, k_a, n_b, k_b)


def difference_of_rates(prop: Property, title: str, grounds: str) -> DifferenceOfRates:
    """``prop``, if the theorem about such shields, which rests on ``grounds``, speaks of it."""
    if isinstance(prop, DifferenceOfRates):
        return prop
    raise InvalidValueError(
        f"{prop} is not a difference of rates: the guarantee of {title} shields rests on "
        f"{grounds} and says nothing about it. Use a Dynamic or an exact periodic shield, which "
        "work with any property"
    )


def so_far(counts: Counts) -> str:
    """Counters in words."""
    return " and ".join(
        f"{count.accepted} accepted of {count.seen} in {group}" for group, count in counts.items()
    )


def warn_if_vacuous(policy: PeriodicPolicy) -> None:
    """Warn that no run can ever be bound, when its first period is planned."""
    if not policy.can_bind:
        warnings.warn(
            f"{policy.prop} can never bind, however long the run, so the policy promises nothing: "
            "tighten the bound",
            VacuousWarning,
            stacklevel=3,
        )


def best_effort(prop: Property, inputs: Inputs, period: int, counts: Counts) -> Policy:
    """The policy for one period that is fair if that can be guaranteed, else as often as can be."""
    return make_policy(prop, inputs, horizon=period, start=counts, best_effort=True)


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
