"""Policy: the decisions of a shield for one window, and where they came from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fairshield.artifact import read_artifact, write_artifact
from fairshield.counts import At, Counts, Group, GroupCount, in_words, is_whole
from fairshield.errors import ArtifactError, InvalidValueError, check_kind
from fairshield.inputs import InputModel, InputSchedule, inputs_from_dict
from fairshield.layout import Layout, layout_of
from fairshield.rows import RowReader, RowTable, SalvagingReader
from fairshield.spec import Property, both, can_bind, property_from_dict
from fairshield.structure import broken, check_tables
from fairshield.words import summary

_SALVAGE = "salvage_"
"""What the names of the salvage table's arrays begin with in a file."""
_METHODS = ("fairshield.long", "fairshield.many")
"""Modules that define kinds of policies, which are known once they are loaded."""


@dataclass(frozen=True, eq=False)
class Policy:
    """A shield's decisions for one window, and the specification they were made from.

    Made by :func:`fairshield.synthesize`, used by :class:`fairshield.Shield`.

    Attributes
    ----------
    prop, inputs, horizon, start, checkpoints, further, terminal, spread
        The arguments of the synthesis.
    expected_cost
        Of one window and what was planned further, if the input model is right.
    least_cost
        The same without ``spread``: what the cheapest fair shield costs.  Of a long policy both
        are one estimate.
    edges
        ``(K,)``: upper edge of each cost level.
    ranks
        ``(steps, 2, 2, K)``: by group, proposal and cost level, how many levels are cheaper to
        overrule; a level is overruled iff its rank is below the state's code.
    rows
        The decisions where fairness can be guaranteed.
    salvage
        The decisions where it cannot, made to violate the property with the least probability;
        ``None`` if it can from the start.
    risk
        Probability of violation, if the input model is right; 0 means guaranteed.
    reason
        Why the policy was made by the method it was made by.
    """

    method: ClassVar[Literal["exact", "long"]] = "exact"
    """A table of all decisions is ``exact``; of ``long`` ones see :mod:`fairshield.long`."""
    stored_as: ClassVar[str] = "exact"
    """The kind in files: that of the method, or ``many`` for a table of three groups or more."""
    _methods: ClassVar[dict[str, type[Policy]]] = {}

    prop: Property
    inputs: InputModel | InputSchedule
    horizon: int
    start: Counts
    checkpoints: tuple[int, ...]
    expected_cost: float
    edges: NDArray[np.float64]
    ranks: NDArray[np.int64]
    rows: RowTable
    further: int = 0
    terminal: Property | None = None
    spread: float = 1.0
    least_cost: float = field(default=float("nan"))
    version: str = ""
    salvage: RowTable | None = None
    risk: float = 0.0
    reason: str = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Policy._methods[cls.stored_as] = cls

    def __getstate__(self) -> dict[str, Any]:
        # What was worked out from the fields is worked out again, and some of it holds locks.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def groups(self) -> tuple[Group, ...]:
        """The names of the groups; the first is the paper's group a."""
        return self.inputs.groups

    @property
    def labelled(self) -> bool:
        """Whether decisions must be followed by their outcome."""
        return self.prop.relevant_outcome is not None

    @cached_property
    def due(self) -> tuple[int, ...]:
        """Numbers of decisions after which the property must hold, the horizon last."""
        return (*(c for c in self.checkpoints if c < self.horizon), self.horizon)

    def required(self, decided: int) -> tuple[Property, ...]:
        """What must hold after so many decisions; at the end of the plan ``terminal`` as well."""
        if decided not in self.due:
            return ()
        if decided < self.horizon + self.further:
            return (self.prop,)
        return both(self.prop, self.terminal)

    def keeps(self, counts: Counts, decided: int) -> bool:
        """Whether these counters, start included, satisfy what is required after so many decisions.

        Where nothing is due, they do.
        """
        return all(prop.holds(counts) for prop in self.required(decided))

    @cached_property
    def can_bind(self) -> bool:
        """Whether what must hold binds some counters of a window; if not, nothing is promised."""
        return any(
            can_bind(prop, self.start, [decided])
            for decided in reversed(self.due)
            for prop in self.required(decided)
        )

    @cached_property
    def layout(self) -> Layout:
        """How states map to rows."""
        return layout_of(self.horizon, self.labelled)

    @cached_property
    def reader(self) -> RowReader:
        """Single look-ups."""
        if self.salvage is None:
            return RowReader(self.layout, self.rows)
        return SalvagingReader(self.layout, self.rows, self.salvage, len(self.edges))

    @cached_property
    def cost_tables(self) -> tuple[list[float], list[Any]]:
        """:attr:`edges` and :attr:`ranks` as lists, which single look-ups read faster."""
        return self.edges.tolist(), self.ranks.tolist()

    @property
    def nbytes(self) -> int:
        """Size of the decision tables."""
        return self.rows.nbytes + (0 if self.salvage is None else self.salvage.nbytes)

    def start_counts(self) -> tuple[GroupCount[int], ...]:
        """Counters before the first decision, in the order of the groups."""
        return tuple(self.start[group] for group in self.groups)

    def since_start(self, counts: Counts) -> At:
        """``(n_a, k_a, n_b, k_b, …)`` since the start of the window."""
        check_kind(counts, Counts, "counts must be Counts of people seen and accepted by group")
        gained = []
        for group in self.groups:
            now, then = counts[group], self.start[group]
            seen, accepted = now.seen - then.seen, now.accepted - then.accepted
            if not 0 <= accepted <= seen:
                raise InvalidValueError(
                    f"group {group!r} has {now.accepted} accepted of {now.seen}, which does not "
                    f"continue the policy's start of {then.accepted} of {then.seen}"
                )
            gained += [seen, accepted]
        return tuple(gained)

    def position(self, counts: Counts, decided: int) -> At:
        """:meth:`since_start`, checked to be what ``decided`` decisions can lead to."""
        at = self.since_start(counts)
        seen = sum(at[::2])
        fits = is_whole(decided) and (seen <= decided if self.labelled else seen == decided)
        if not fits or decided > self.horizon:
            raise InvalidValueError(
                f"{seen} people counted since the start do not fit {decided!r} decisions of a "
                f"window of {self.horizon}"
            )
        return at

    def guarantees(self, counts: Counts, decided: int) -> bool:
        """Whether fairness is still guaranteed after ``decided`` decisions with these counters."""
        return self.feasible(decided, self.position(counts, decided))

    def feasible(self, t: int, at: At) -> bool:
        """:meth:`guarantees` for counters since the start: the tables say so, and what is due.

        What must hold now is asked of the counters themselves, whatever the tables claim.
        """
        return self.reader.feasible(t, at) and self.keeps(self.start.plus(at), t)

    def planned(self, t: int, at: At) -> int:
        """How many decisions, from the counters after ``t``, can be looked up at once."""
        return self.horizon - t

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the policy to ``path``, atomically; returns its SHA-256 digest."""
        return write_artifact(path, *self.to_artifact())

    def to_artifact(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header and arrays of a file; :meth:`from_artifact` is the inverse."""
        data = {
            "property": self.prop.to_dict(),
            "inputs": self.inputs.to_dict(),
            "horizon": self.horizon,
            "start": [list(self.start[g]) for g in self.groups],
            "checkpoints": list(self.checkpoints),
            "further": self.further,
            "terminal": None if self.terminal is None else self.terminal.to_dict(),
            "spread": self.spread,
            "expected_cost": self.expected_cost,
            "least_cost": self.least_cost,
            "library": self.version,
        }
        more, arrays = self._stored()
        return data | more, arrays | {"edges": self.edges, "ranks": self.ranks}

    def _stored(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What the method adds to header and arrays; :meth:`_restored` is the inverse."""
        if self.salvage is None:
            return {}, _arrays(self.rows)
        salvage = {_SALVAGE + name: array for name, array in _arrays(self.salvage).items()}
        return {"risk": self.risk}, _arrays(self.rows) | salvage

    @staticmethod
    def _restored(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        return {
            "rows": _table(arrays),
            "salvage": _table(arrays, _SALVAGE) if "risk" in data else None,
            "risk": data.get("risk", 0.0),
        }

    def check_window(self) -> None:
        """Refuse a window, a start or an end that no synthesis was ever asked for."""
        if not is_whole(self.horizon) or self.horizon < 1:
            raise broken(f"the horizon is {self.horizon!r}, not a whole number of at least 1")
        if not is_whole(self.further) or self.further < 0:
            raise broken(f"further is {self.further!r}, not a whole number of at least 0")
        most, points = self.horizon + self.further, self.checkpoints
        for point in points:
            if not is_whole(point) or not 1 <= point <= most:
                raise broken(f"checkpoint {point!r} does not lie in 1 … {most}")
        if list(points) != sorted(set(points)):
            raise broken(f"checkpoints must rise, got {list(points)}")
        if tuple(self.start) != self.groups:
            raise broken(f"counters start for groups {tuple(self.start)}, not {self.groups}")
        terminal = self.terminal
        if terminal is not None and terminal.relevant_outcome != self.prop.relevant_outcome:
            raise broken(f"at the end {terminal} must hold, which counts others than {self.prop}")
        if not 0.0 <= self.risk <= 1.0:
            raise broken(f"the risk is {self.risk!r}, not a probability")

    def check(self) -> None:
        """Refuse arrays that do not fit the horizon, the cost levels or each other."""
        check_tables(self.layout, self.rows, self.edges, self.ranks, self.salvage)

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
        prop, inputs = property_from_dict(data["property"]), inputs_from_dict(data["inputs"])
        terminal, method = data["terminal"], data.get("method", Policy.stored_as)
        for module in _METHODS:
            import_module(module)
        made = ({Policy.stored_as: Policy} | Policy._methods).get(method)
        if made is None:
            raise ArtifactError(
                f"not a policy: unknown method {method!r}, perhaps of a later version"
            )
        policy = made(
            prop=prop,
            inputs=inputs,
            horizon=int(data["horizon"]),
            start=Counts({g: tuple(c) for g, c in zip(inputs.groups, data["start"], strict=True)}),
            checkpoints=tuple(data["checkpoints"]),
            further=int(data["further"]),
            terminal=None if terminal is None else property_from_dict(terminal),
            expected_cost=data["expected_cost"],
            edges=arrays["edges"],
            ranks=arrays["ranks"],
            spread=data["spread"],
            least_cost=data["least_cost"],
            version=data["library"],
            **made._restored(data, arrays),
        )
        policy.check_window()
        policy.check()
        return policy

    __repr__ = summary

    def __str__(self) -> str:
        return (
            f"{self.prop} over {self.horizon} decisions, groups {in_words(self.groups)}, "
            f"expected cost {self.expected_cost:.6g}"
            + (f", violated with probability {self.risk:.6g}" if self.risk else "")
            + ("" if self.method == Policy.method else f", {self.method} method")
            + ("" if self.can_bind else ", vacuous: it can never bind")
        )


def _arrays(table: RowTable) -> dict[str, NDArray[Any]]:
    return {f.name: getattr(table, f.name) for f in fields(table)}


def _table(arrays: Mapping[str, NDArray[Any]], prefix: str = "") -> RowTable:
    return RowTable(**{f.name: arrays[prefix + f.name] for f in fields(RowTable)})


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors in what a file says, as errors that name the file."""
    try:
        yield
    except ArtifactError as error:
        raise ArtifactError(f"{os.fspath(path)}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{os.fspath(path)}: not a policy: {error}") from error
