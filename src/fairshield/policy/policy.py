"""Policy: the decisions of a shield for one window, and the specification they were made from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import At, Counts, Group, in_words
from fairshield.base.errors import ArtifactError
from fairshield.base.renamed import Renamed
from fairshield.base.words import summary
from fairshield.inputs import Inputs, inputs_from_dict
from fairshield.policy.artifact import read_artifact, write_artifact
from fairshield.policy.decisions import Decisions
from fairshield.policy.specification import Specification
from fairshield.policy.structure import broken
from fairshield.spec import Property, property_from_dict

_TABLE = "exact"
NEVER = 1e-300
"""The risk of a policy that is fair unless what has probability 0 comes."""
TRUSTS = "fair only on sequences to which the input model gives a positive probability"
"""What people read of a policy that trusts the support of its input model."""
_KINDS = {
    _TABLE: ("fairshield.policy.row_decisions", "RowDecisions"),
    "many": ("fairshield.policy.many", "StateDecisions"),
    "counted": ("fairshield.policy.counted", "CountedDecisions"),
    "long": ("fairshield.policy.long", "PriceDecisions"),
}
"""Decisions by their name in files, loaded when a file has them."""


@final
@dataclass(frozen=True, eq=False)
class Policy:
    """Policy holds a shield's decisions for one window, and the specification they come from.

    Made by :func:`fairshield.synthesize`, used by :class:`fairshield.Shield`.

    Attributes
    ----------
    spec
        What the policy keeps: the arguments of the synthesis.
    decisions
        What to do in every state.
    expected_cost
        Of one window and the ``further`` decisions, if the input model is right.  With a
        ``ceiling`` it is that of the decisions up to the first checkpoint.
    least_cost
        The same without ``spread``: what the cheapest fair shield costs.  Of a long policy both
        are one estimate.
    risk
        Probability of violation, if the input model is right; 0 means guaranteed.  1e-300 stands
        for the probability 0 of what the input model alone rules out.
    reason
        Why the policy was made by the method it was made by.
    version
        Of the library that made it.
    """

    spec: Specification
    decisions: Decisions
    expected_cost: float
    least_cost: float = float("nan")
    risk: float = 0.0
    reason: str = ""
    version: str = ""

    layout = Renamed("decisions.layout")
    reader = Renamed("decisions")
    rows = Renamed("decisions.rows")
    salvage = Renamed("decisions.salvage")
    cost_tables = Renamed("decisions.cost_tables")
    stored_as = Renamed("decisions.stored_as")
    check_window = Renamed("check")
    start_counts = Renamed("start.values", lambda it: lambda: tuple(it.start.values()))

    # What it was made from ------------------------------------------------------------------

    @property
    def prop(self) -> Property:
        """What must hold."""
        return self.spec.prop

    @property
    def inputs(self) -> Inputs:
        """What was expected."""
        return self.spec.inputs

    @property
    def horizon(self) -> int:
        """Number of decisions in the window."""
        return self.spec.horizon

    @property
    def start(self) -> Counts:
        """Counters before the first decision."""
        return self.spec.start

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """Other numbers of decisions after which the property must hold."""
        return self.spec.checkpoints

    @property
    def further(self) -> int:
        """Decisions planned for beyond the horizon."""
        return self.spec.further

    @property
    def terminal(self) -> Property | None:
        """What must hold at the end of the plan besides the property."""
        return self.spec.terminal

    @property
    def spread(self) -> float:
        """By how much the planned price of overruling rises over the window."""
        return self.spec.spread

    @property
    def groups(self) -> tuple[Group, ...]:
        """The names of the groups; the first is the paper's group a."""
        return self.spec.groups

    @property
    def labelled(self) -> bool:
        """Whether decisions must be followed by their outcome."""
        return self.spec.labelled

    @property
    def due(self) -> tuple[int, ...]:
        """Numbers of decisions after which the property must hold, the horizon last."""
        return self.spec.due

    def required(self, decided: int) -> tuple[Property, ...]:
        """What must hold after so many decisions; at the end of the plan ``terminal`` as well."""
        return self.spec.required(decided)

    def keeps(self, counts: Counts, decided: int) -> bool:
        """Whether these counters, start included, satisfy what is required after so many decisions.

        It is true where nothing is required then.
        """
        return self.spec.keeps(counts, decided)

    @property
    def can_bind(self) -> bool:
        """Whether the property binds some counters of the window; if not, nothing is promised."""
        return self.spec.can_bind

    @property
    def fair_in_support(self) -> bool:
        """Whether windows end fair only on sequences that the input model holds possible.

        Such a policy was made with ``trust_support``.  It guarantees nothing of other sequences.
        """
        return self.spec.trusting and 0.0 < self.risk <= NEVER

    def since_start(self, counts: Counts) -> At:
        """``(n_a, k_a, n_b, k_b, …)`` since the start of the window."""
        return self.spec.since_start(counts)

    def position(self, counts: Counts, decided: int) -> At:
        """:meth:`since_start`, checked to be what ``decided`` decisions can lead to."""
        return self.spec.position(counts, decided)

    # What it decides ------------------------------------------------------------------------

    @property
    def method(self) -> Literal["exact", "long"]:
        """``"exact"`` for a table of all decisions, ``"long"`` for prices (docs/long.md)."""
        return self.decisions.method

    @property
    def edges(self) -> NDArray[np.float64]:
        """``(K,)``: upper edge of each cost level."""
        return self.decisions.edges

    @property
    def ranks(self) -> NDArray[np.int64]:
        """``(steps, groups, 2, K)``: how many levels are cheaper to overrule."""
        return self.decisions.ranks

    @property
    def nbytes(self) -> int:
        """Size of the decision tables."""
        return self.decisions.nbytes

    def guarantees(self, counts: Counts, decided: int) -> bool:
        """Whether fairness is still guaranteed after ``decided`` decisions with these counters."""
        return self.feasible(decided, self.position(counts, decided))

    def feasible(self, t: int, at: At) -> bool:
        """:meth:`guarantees` for counters since the start.

        The tables must say so, and a property that is due now is tested on the counters themselves.
        """
        # A table that trusts the support has no certain states but those that are over and fair.
        over = self.spec.trusting and t == self.horizon
        feasible = over or self.decisions.feasible(t, at)
        return feasible and self.keeps(self.start.plus(at), t)

    def planned(self, t: int, at: At) -> int:
        """How many of the next decisions after ``t`` can be looked up without another synthesis."""
        return self.decisions.planned(t, at)

    def check(self) -> None:
        """Refuse arrays that do not fit the specification, the cost levels or each other."""
        if not 0.0 <= self.risk <= 1.0:
            raise broken(f"the risk is {self.risk!r}, not a probability")
        self.decisions.check(self.spec)

    # Files ----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the policy to ``path``, atomically; returns its SHA-256 digest."""
        return write_artifact(path, *self.to_artifact())

    def to_artifact(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header and arrays of a file; :meth:`from_artifact` is the inverse."""
        kind = self.decisions.stored_as
        data = self.spec.to_dict() | {
            "expected_cost": self.expected_cost,
            "least_cost": self.least_cost,
            "library": self.version,
        }
        if kind != _TABLE:
            data |= {"method": kind, "reason": self.reason}
        more, arrays = self.decisions.stored(self.risk)
        return data | more, arrays | {"edges": self.edges, "ranks": self.ranks}

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Policy:
        """Read a policy, checking its digest; the tables stay on disk until used."""
        data, arrays = read_artifact(path)
        if "periodic" in data:
            raise ArtifactError(
                f"{os.fspath(path)} is a periodic policy: load it with PeriodicPolicy.load"
            )
        with reading(path):
            return Policy.from_artifact(data, arrays)

    @staticmethod
    def from_artifact(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Policy:
        """The policy that :meth:`to_artifact` described, its tables checked."""
        spec = _specification(data)
        policy = Policy(
            spec,
            _kind(data.get("method", _TABLE)).restored(spec, data, arrays),
            expected_cost=data["expected_cost"],
            least_cost=data["least_cost"],
            risk=data.get("risk", 0.0),
            reason=str(data.get("reason", "")),
            version=data["library"],
        )
        policy.check()
        return policy

    __repr__ = summary

    def __str__(self) -> str:
        return (
            f"{self.prop} over {self.horizon} decisions, groups {in_words(self.groups)}, "
            f"expected cost {self.expected_cost:.6g}"
            + self._caveat()
            + ("" if self.method == "exact" else f", {self.method} method")
            + ("" if self.can_bind else ", vacuous: it can never bind")
        )

    def _caveat(self) -> str:
        if self.fair_in_support:
            return f", {TRUSTS}"
        return f", violated with probability {self.risk:.6g}" if self.risk else ""


def _specification(data: Mapping[str, Any]) -> Specification:
    inputs, terminal = inputs_from_dict(data["inputs"]), data["terminal"]
    return Specification(
        prop=property_from_dict(data["property"]),
        inputs=inputs,
        horizon=int(data["horizon"]),
        start=Counts({g: tuple(c) for g, c in zip(inputs.groups, data["start"], strict=True)}),
        checkpoints=tuple(data["checkpoints"]),
        further=int(data["further"]),
        terminal=None if terminal is None else property_from_dict(terminal),
        spread=data["spread"],
        ceiling=data.get("ceiling"),
        trust_support=data.get("trust_support", False),
    )


def _kind(method: str) -> type[Decisions]:
    if method not in _KINDS:
        raise ArtifactError(f"not a policy: unknown method {method!r}, perhaps of a later version")
    module, name = _KINDS[method]
    found: type[Decisions] = getattr(import_module(module), name)
    return found


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors about the content of a file into errors that name the file."""
    try:
        yield
    except ArtifactError as error:
        raise ArtifactError(f"{os.fspath(path)}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{os.fspath(path)}: not a policy: {error}") from error
