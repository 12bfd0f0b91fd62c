"""PeriodicPolicy: what is due in a window, what carries over, and which policy decides next.

A kind is the artefact, shared by any number of :class:`~fairshield.Run`; it remembers nothing of a
run.  Given the counters at the start of a window it names what decides it, a :class:`WindowPolicy`.
:class:`~fairshield.periodic.repeated.Repeated` begins with the same counters again and again; the
kinds in :mod:`fairshield.periodic.cumulative` count on from the beginning of the run.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from fairshield.base.counts import Counts, Group, in_words
from fairshield.base.errors import ArtifactError
from fairshield.base.types import Progress
from fairshield.base.words import summary
from fairshield.inputs import Inputs
from fairshield.periodic.conditions import Condition
from fairshield.policy import Policy, reading
from fairshield.policy.artifact import read_artifact
from fairshield.policy.support import Support
from fairshield.runtime.window_rule import Noun, WindowRule
from fairshield.spec import Certificate, Property, can_ever_bind

if TYPE_CHECKING:
    from fairshield.periodic.cumulative import CumulativePolicy

VACUOUS = "vacuous: the property can never bind, so nothing is promised"
"""What people read of the guarantee of such a property."""


class WindowPolicy(NamedTuple):
    """WindowPolicy is the policy of one window of a run, and where in its window that begins."""

    policy: Policy
    counts: Counts
    decided: int


class PeriodicPolicy(ABC):
    """PeriodicPolicy decides every window of a run; the property must hold at the end of each.

    Attributes
    ----------
    prop
        What must hold.
    inputs
        What to expect in each window; decides the cost, never the guarantee.
    start
        Counters before the first decision.
    length
        Decisions in a window.
    """

    _stored: ClassVar[dict[str, type[CumulativePolicy]]] = {}
    """Kinds that have files of their own, by their name there."""
    kind: ClassVar[str] = ""
    title: ClassVar[str] = ""
    goes_on: ClassVar[bool] = True
    """Whether counters go on from one window to the next, or each begins anew."""
    plans_in_tables: ClassVar[bool] = False
    """Whether plans are made as tables however long they are, and never by the long method."""

    if TYPE_CHECKING:  # dataclass fields of some kinds, properties of others

        @property
        def prop(self) -> Property: ...
        @property
        def inputs(self) -> Inputs: ...
        @property
        def start(self) -> Counts: ...

    @property
    @abstractmethod
    def length(self) -> int:
        """Decisions in a window."""

    @property
    def due(self) -> tuple[int, ...]:
        """Numbers of decisions of a window after which the property must hold, its end last."""
        return (self.length,)

    @property
    def window_rule(self) -> WindowRule:
        """The length of windows, what is due in them, and whether counters go on."""
        return WindowRule(self.length, self.due[:-1], self.goes_on)

    @property
    def noun(self) -> Noun:
        """What one window of a run is called."""
        return self.window_rule.noun

    @abstractmethod
    def window(self, counts: Counts, completed: int) -> WindowPolicy:
        """Return the policy of the window that begins with these counters."""

    @property
    def window_policy(self) -> Policy | None:
        """The policy that decides each window by itself; ``None``: what is decided needs the run.

        What is known of one window, such as where its policy is expected to intervene, is then
        known of every window.
        """
        return None

    @property
    def largest_plan(self) -> int:
        """The most decisions that are planned at once during a run; 0: windows need no planning.

        Then tables have all decisions, except those at the end of a long window.
        """
        return 0

    def outlook(self, progress: Progress | None = None) -> tuple[float, int]:
        """Plan the first window: the expected cost of its plan, and how many windows that covers.

        Raises an error if the policy promises what cannot be guaranteed.  ``progress`` is called
        with the share of work done, by kinds whose first plan takes long.
        """
        plan = self.window(self.start, 0).policy
        return plan.expected_cost, (plan.horizon + plan.further) // self.length

    def cost_of(self, window: WindowPolicy) -> float | None:
        """What a window is expected to cost from its beginning; ``None`` of long ones."""
        policy, begun, decided = window
        if not policy.decisions.tabled:
            return None
        if policy.horizon == self.length and not policy.further:
            return policy.expected_cost
        # Imported here because it loads numba, which nothing else in this module needs.
        from fairshield.runtime.evaluate import evaluate

        found = evaluate(policy, counts=begun, decided=decided, decisions=self.length)
        return found.expected_cost

    @property
    def worst_period_cost(self) -> float | None:
        """The most that a window is expected to cost, whatever came before; ``None``: not known."""
        return None

    # From window to window ------------------------------------------------------------------

    def carried(self, ended: Counts) -> Counts:
        """The counters that the next window begins with, if the last one ended with ``ended``."""
        return ended if self.goes_on else self.start

    @abstractmethod
    def begins_with(self, counts: Counts, completed: int) -> bool:
        """Whether a window can begin with these counters after so many windows."""

    def keeps(self, counts: Counts, position: int) -> bool:
        """Whether counters satisfy what is due after so many decisions of a window."""
        return position not in self.due or self.prop.holds(counts)

    def whole_plan(self) -> Policy | None:
        """The plan whose verification shows this policy fair; ``None``: periods are explored.

        It has all periods of a policy that has a last one.  Otherwise it has the first periods, and
        :attr:`theorem` covers those after it.
        """
        return None

    @property
    def last(self) -> int | None:
        """How many windows there are; ``None`` if there is no last one."""
        return None

    @property
    def mends(self) -> bool:
        """Whether this kind has a :meth:`mend`; if not, the plan of a window decides all of it."""
        return type(self).mend is not PeriodicPolicy.mend

    def mend(self, counts: Counts, left: int) -> Policy:
        """The policy for the rest of a window, after a person has decided against its plan."""
        raise NotImplementedError(f"{self.title} shields go on with the plan they have")

    def base(self, start: Counts) -> Counts:
        """The counters that the policy of a window begins with, if the run's are ``start``.

        A kind whose policies know nothing of earlier windows has nobody seen here.
        """
        return start

    def about_run(self, start: Counts, policy: Policy) -> bool:
        """Whether ``policy`` keeps the run's property, of all that the run has counted.

        If not, what it guarantees of the window that begins with ``start`` is about that window.
        """
        return self.base(start) == start and policy.prop == self.prop

    # What is guaranteed ---------------------------------------------------------------------

    @property
    def condition(self) -> Condition | None:
        """What the theorem assumes; ``None`` if it assumes nothing, or there is no theorem."""
        return None

    @property
    def theorem(self) -> str | None:
        """The theorem that applies, by its name in docs/guarantees.md; ``None`` if none does."""
        return None if self.condition is None else self.condition.theorem

    def no_theorem(self, prop: str) -> str:
        """The sentence that no theorem speaks of ``prop``, for policies without one."""
        return f"No theorem about {self.title} shields speaks of {prop}."

    @property
    def support(self) -> Support | None:
        """The requests that must be the only ones to come, if :attr:`condition` says so."""
        return None

    @property
    def stands(self) -> bool:
        """Whether a run has something to report besides its window in progress.

        Its counters go on, or what was trusted never to come may have come.
        """
        return self.goes_on or self.support is not None

    @property
    def unconditional(self) -> bool:
        """Whether every window ends fair on every input sequence, without any condition."""
        return False

    @cached_property
    def can_bind(self) -> bool:
        """Whether the property can ever bind a run; if not, nothing is promised."""
        return can_ever_bind(self.prop, self.start)

    @property
    def enforces(self) -> bool:
        """Whether :attr:`enforced` can bind in a window; if not, no proposal is ever overruled.

        It may differ from :attr:`can_bind`: the run's property may bind, and fail, all the same.
        """
        return self.can_bind

    @property
    def enforced(self) -> Property:
        """The property that the policy of a window keeps."""
        return self.prop

    def admits(self, start: Counts) -> bool:
        """Whether the theorem applies to runs that begin with these counters."""
        return True

    @property
    def attainable(self) -> bool:
        """Whether any window can meet the condition; one that is too short, for example, cannot."""
        return True

    def certificate(self, counts: Counts) -> Certificate | None:
        """The certificate held with these counters, if this policy works with certificates."""
        return None

    @property
    def groups(self) -> tuple[Group, ...]:
        """The names of the groups; the first is the paper's group a."""
        return self.inputs.groups

    @property
    def labelled(self) -> bool:
        """Whether decisions must be followed by their outcome."""
        return self.prop.counting.labelled

    # What people and files read -------------------------------------------------------------

    @abstractmethod
    def terms(self) -> dict[str, Any]:
        """The kind and the length of windows, by the names of a specification file."""

    def options(self) -> dict[str, Any]:
        """The options that only this kind has, as JSON-able data."""
        return {}

    @abstractmethod
    def summary_data(self) -> dict[str, Any]:
        """Return what ``synthesize --json`` prints of the policy."""

    def detail_data(self) -> dict[str, Any]:
        """Return what ``inspect --json`` prints besides :meth:`summary_data`."""
        return {
            "groups": list(self.groups),
            "inputs": self.inputs.to_dict(),
            "start": [[group, *count] for group, count in self.start.items()],
        }

    @abstractmethod
    def lines(self) -> list[tuple[str, str]]:
        """Return what ``inspect`` prints: a name and a value for each line."""

    @abstractmethod
    def cost_line(self) -> str:
        """Return the line of expected cost, and say if no guarantee is bought with it."""

    def _group_lines(self) -> list[tuple[str, str]]:
        needs = "group, proposed, cost" + (", outcome" if self.labelled else "")
        return [("groups", in_words(self.groups)), ("needs", needs)]

    def _start_line(self) -> tuple[str, str]:
        if not any(count.seen for count in self.start.values()):
            return "start", "nobody seen"
        told = (f"{g} {c.accepted} of {c.seen} accepted" for g, c in self.start.items())
        return "start", ", ".join(told)

    __repr__ = summary

    # Files ----------------------------------------------------------------------------------

    @abstractmethod
    def check_stored(self) -> None:
        """Refuse tables that were made for another policy, as in a file that was changed."""

    @property
    @abstractmethod
    def tables(self) -> Policy | None:
        """The policy that is saved in the file, if one serves all windows.

        Unlike :attr:`window_policy` it may keep another property than the run's, or have several
        windows.
        """

    @property
    def artefact(self) -> Policy | PeriodicPolicy:
        """The object that :meth:`save` writes and :func:`load_policy` reads."""
        return self

    @abstractmethod
    def remade(self, inputs: Inputs) -> PeriodicPolicy:
        """The same policy made again for another input model."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Everything but tables, as JSON-able data."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A digest of what was asked for: the same for a policy that is made again."""

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the policy to ``path``, atomically; returns its SHA-256 digest."""

    @staticmethod
    def kinds() -> dict[str, type[CumulativePolicy]]:
        """Kinds that have a file format, by their name in files and on the command line."""
        return dict(sorted(PeriodicPolicy._stored.items()))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> PeriodicPolicy:
        """Read a periodic policy, checking its digest."""
        found = load_policy(path)
        if isinstance(found, Policy):
            raise ArtifactError(
                f"{os.fspath(path)} is a policy for one window: load it with Policy.load"
            )
        return found


def load_policy(path: str | os.PathLike[str]) -> Policy | PeriodicPolicy:
    """The policy in a file, for one window or periodic."""
    data, arrays = read_artifact(path)
    with reading(path):
        if "periodic" not in data:
            return Policy.from_artifact(data, arrays)
        kind = data["periodic"]["kind"]
        if kind not in PeriodicPolicy.kinds():
            raise ArtifactError(f"not a policy: unknown kind {kind!r}, perhaps of a later version")
        return PeriodicPolicy._stored[kind].restored(data, arrays)
