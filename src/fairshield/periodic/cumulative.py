"""CumulativePolicy: kinds of periods that keep a property of all decisions since the run began."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from fairshield._version import __version__
from fairshield.base.counts import Counts, in_words, is_whole
from fairshield.base.errors import ArtifactError, InvalidValueError, VacuousWarning
from fairshield.inputs import Inputs, inputs_from_dict
from fairshield.periodic.conditions import Counters
from fairshield.periodic.policy import VACUOUS, PeriodicPolicy
from fairshield.policy import Policy, Specification
from fairshield.policy.artifact import write_artifact
from fairshield.policy.specification import check_subject, started
from fairshield.spec import DifferenceOfRates, Property, property_from_dict
from fairshield.synthesis import Options, make_policy

NOBODY = Counts({})
"""Counters of a run that begins with nobody seen, whatever its groups."""
NOTHING = Counters(0, 0, 0, 0)
TOO_SHORT = "its periods are too short to bind what it enforces"
"""Why a policy enforces nothing."""
MOST_TOLD = 5_000
"""Decisions of a period up to which the probability of a condition is a matter of a second."""


@dataclass(frozen=True, eq=False, repr=False)
class CumulativePolicy(PeriodicPolicy):
    """CumulativePolicy decides every period, for a property of the counters since the run began.

    Attributes
    ----------
    prop, inputs, start
        As of every :class:`~fairshield.PeriodicPolicy`; by default nobody is seen before.
    period
        Decisions in a period.
    """

    order: ClassVar[int] = 100
    """Where comparisons and pictures show the kind: by this number, then by name."""
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Further shields of the kind that comparisons offer: their names, and their options."""

    prop: Property
    inputs: Inputs
    period: int
    start: Counts = field(default=NOBODY, kw_only=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.kind:
            PeriodicPolicy._stored[cls.kind] = cls

    def __post_init__(self) -> None:
        check_subject(self.prop, self.inputs)
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
        object.__setattr__(self, "start", started(self.inputs, self.start or None))

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """The fields that this kind adds, which are its options in specification files."""
        shared = {f.name for f in fields(CumulativePolicy)}
        return tuple(f.name for f in fields(cls) if f.name not in shared)

    @classmethod
    def needed_names(cls) -> tuple[str, ...]:
        """Those of :meth:`option_names` that have no default."""
        without = {f.name for f in fields(cls) if f.default is f.default_factory is MISSING}
        return tuple(name for name in cls.option_names() if name in without)

    @classmethod
    def compared_by_default(cls, prop: Property) -> bool:
        """Whether a comparison that names no kinds includes this one for such a property."""
        return True

    @property
    def length(self) -> int:
        return self.period

    @property
    def largest_plan(self) -> int:
        return self.period

    def begins_with(self, counts: Counts, completed: int) -> bool:
        return self.prop.counting.fits(_seen(counts) - _seen(self.start), completed * self.period)

    @property
    def attainable(self) -> bool:
        condition = self.condition
        if condition is None or condition.known_at_start:
            return True
        return condition.possible(counters(self.start), NOTHING, self.period)

    def condition_probability(self, periods: int = 1) -> float | None:
        """Probability that so many periods meet :attr:`condition`, if the input model is right.

        It is computed, not simulated, and no shield can
        change it.  ``None`` where there is no condition, or what is decided matters as well.
        """
        if self.condition is None:
            return None
        return self.condition.probability(self.inputs, self.period, periods)

    def _told_probability(self) -> float | None:
        """:meth:`condition_probability` of one period, unless that takes more than a moment."""
        return self.condition_probability() if self.period <= MOST_TOLD else None

    @property
    def tables(self) -> Policy | None:
        return None

    def check_stored(self) -> None:
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

    def mend(self, counts: Counts, left: int) -> Policy:
        inputs = self.inputs.after(self.period - left, left)
        return best_effort(self.enforced, inputs, left, counts)

    def remade(self, inputs: Inputs) -> CumulativePolicy:
        return replace(self, inputs=inputs)

    def terms(self) -> dict[str, Any]:
        return {"periodic": self.kind, "period": self.period}

    def summary_data(self) -> dict[str, Any]:
        cost, periods = self.outlook()
        plan = self.window(self.start, 0).policy
        return {
            "property": self.prop.to_dict(),
            "guarantee": f"{self.prop} after every {self.period} decisions ({self.kind})",
            "periodic": self.kind,
            "period": self.period,
            **self.options(),
            "expected_cost": cost,
            "expected_cost_of_periods": periods,
            "risk": plan.risk,
            "can_bind": self.can_bind,
            "enforces": self.enforces,
            "method": plan.method,
            "reason": plan.reason,
        }

    def detail_data(self) -> dict[str, Any]:
        return super().detail_data() | {
            "outcomes_needed": self.labelled,
            "unconditional": self.unconditional,
            "condition": None if self.condition is None else self.condition.words,
            "condition_probability": self._told_probability(),
            "fingerprint": self.fingerprint,
        }

    def lines(self) -> list[tuple[str, str]]:
        cost, periods = self.outlook()
        plan = self.window(self.start, 0).policy
        first = "the first period" if periods == 1 else f"the first {periods} periods"
        risk = f"the first period ends unfair with probability {plan.risk:.3g}"
        return [
            ("property", f"{self.prop} after every {self.period} decisions"),
            *self._caveat_lines(),
            ("shield", ", ".join([self.kind, *self._option_words()])),
            ("condition", self._condition_words()),
            *self._probability_lines(),
            *self._group_lines(),
            ("expected cost", f"{cost:.6g} in {first}"),
            ("plans", plan.method + (f": {plan.reason}" if plan.reason else "")),
            *([("risk", risk)] if plan.risk else []),
            ("input model", str(self.inputs)),
            self._start_line(),
        ]

    def _caveat_lines(self) -> list[tuple[str, str]]:
        if not self.can_bind:
            return [("guarantee", VACUOUS)]
        return [] if self.enforces else [("enforces", f"nothing: {TOO_SHORT}")]

    def _option_words(self) -> list[str]:
        return [
            f"{key} {value if not isinstance(value, list) else ' to '.join(value)}"
            for key, value in self.options().items()
        ]

    def _condition_words(self) -> str:
        if self.unconditional:
            return "none: fair on every sequence of requests"
        if self.condition is None:
            return "no theorem speaks of this property"
        words = f"fair if in every period {self.condition.words}"
        impossible = f", which {self.period} decisions do not allow: nothing is promised"
        return words if self.attainable else words + impossible

    def _probability_lines(self) -> list[tuple[str, str]]:
        one = self._told_probability()
        if one is None:
            return []
        told = f"in a period with probability {one:.4g}, in ten with {one**10:.3g}"
        return [("is met", f"{told}, if people come as the input model says")]

    def cost_line(self) -> str:
        cost, periods = self.outlook()
        risk = self.window(self.start, 0).policy.risk
        told = f"expected cost {cost:.4f} in "
        told += "the first period" if periods == 1 else f"{periods} periods"
        if risk:
            told += f", which ends unfair with probability {risk:.3g}"
        if not self.can_bind:
            return told + ", vacuous"
        return told if self.enforces else told + ", enforces nothing"

    def to_dict(self) -> dict[str, Any]:
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
        text = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __getstate__(self) -> dict[str, Any]:
        # Cached plans are left out and made again; tables are kept, as in a file.
        kept = {f.name for f in fields(self)} | {"tables"}
        return {name: value for name, value in self.__dict__.items() if name in kept}

    def save(self, path: str | os.PathLike[str]) -> str:
        data, arrays = ({}, {}) if self.tables is None else self.tables.to_artifact()
        facts = {"periodic": self.to_dict(), "library": __version__, "policy": data or None}
        return write_artifact(path, facts, arrays)

    @classmethod
    def restored(
        cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> CumulativePolicy:
        """The policy of this kind that :meth:`save` described."""
        facts = data["periodic"]
        inputs = inputs_from_dict(facts["inputs"])
        start = Counts({g: tuple(c) for g, c in zip(inputs.groups, facts["start"], strict=True)})
        made = cls(
            property_from_dict(facts["property"]), inputs, facts["period"], start=start,
            **facts["options"],
        )  # fmt: skip
        if data["policy"] is not None:
            # Fills the cached property ``tables``, as if they had just been made.
            made.__dict__["tables"] = Policy.from_artifact(data["policy"], arrays)
            made.check_stored()
        return made

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


# All kinds ----------------------------------------------------------------------------------


class Compared(NamedTuple):
    """Compared is a shield that comparisons offer: its kind and options.

    ``variant`` says that it is a variant of another.
    """

    kind: type[CumulativePolicy]
    options: Mapping[str, Any]
    variant: bool


def compared_kinds() -> dict[str, Compared]:
    """The shields that comparisons offer, by name: every kind, followed by its variants."""
    kinds, found = PeriodicPolicy.kinds(), dict[str, Compared]()
    for name, kind in sorted(kinds.items(), key=lambda pair: (pair[1].order, pair[0])):
        found[name] = Compared(kind, {}, variant=False)
        for variant, options in kind.variants.items():
            found[variant] = Compared(kind, options, variant=True)
    return found


# What several kinds need --------------------------------------------------------------------


def counters(counts: Counts) -> Counters:
    """Counters of both groups as numbers."""
    return Counters(*counts.numbers())


def _seen(counts: Counts) -> int:
    return sum(count.seen for count in counts.values())


def difference_of_rates(prop: Property, title: str, grounds: str) -> DifferenceOfRates:
    """``prop`` as a difference of rates; raises if it is none, which the theorem needs."""
    if prop.difference is not None:
        return prop.difference
    what = (
        "is not a difference of rates"
        if prop.additive is None
        else ("is a difference of rates whose denominators are not people")
    )
    raise _says_nothing(f"{prop} {what}", title, grounds)


def additive_difference(prop: Property, title: str, grounds: str) -> DifferenceOfRates:
    """``prop`` as a difference of rates with any additive counters; raises if it is none."""
    if prop.additive is not None:
        return prop.additive
    raise _says_nothing(f"{prop} is not a difference of rates", title, grounds)


def _says_nothing(what: str, title: str, grounds: str) -> InvalidValueError:
    return InvalidValueError(
        f"{what}: the guarantee of {title} shields rests on {grounds} and says nothing about it. "
        "Use a Dynamic or an exact periodic shield, which work with any property"
    )


def warn_if_vacuous(policy: CumulativePolicy) -> None:
    """Warn if the property can never bind a run; called when its first period is planned."""
    if not policy.can_bind:
        warnings.warn(
            f"{policy.prop} can never bind, however long the run, so the policy promises nothing: "
            "tighten the bound",
            VacuousWarning,
            stacklevel=3,
        )


def best_effort(prop: Property, inputs: Inputs, period: int, counts: Counts) -> Policy:
    """The policy for one period that is fair if that can be guaranteed, else of least risk."""
    spec = Specification.of(prop, inputs, horizon=period, start=counts)
    return make_policy(spec, Options(best_effort=True))
