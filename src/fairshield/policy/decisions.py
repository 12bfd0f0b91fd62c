"""Decisions: the interface to what a policy decides in every state.

Four classes implement it: a table of rows
(:class:`fairshield.policy.row_decisions.RowDecisions`), a table of numbered states
(:class:`fairshield.policy.many.StateDecisions`), one of counted states
(:class:`fairshield.policy.counted.CountedDecisions`), and prices with certificates, which compute
each decision when it is asked for (:class:`fairshield.policy.long.PriceDecisions`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairshield.base.counts import At, Counts
from fairshield.policy.specification import Specification

Answer = tuple[bool, bool, int]
"""Whether rejecting and whether accepting keeps fairness guaranteed, and the code."""
Stored = tuple[dict[str, Any], dict[str, NDArray[Any]]]
"""Entries of a file's header, and arrays."""


class Stretch(NamedTuple):
    """Stretch holds consecutive decisions that one table makes.

    ``decided`` and ``at`` say where they begin, as the table counts: from the counters ``base``
    since the start of the window.  ``length`` is how many.
    """

    tables: Any
    decided: int
    at: At
    base: At
    length: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Decisions(ABC):
    """Decisions says what a policy decides in every state.

    A *code* says how many cost levels are worth overruling: positive for accepts that become
    rejects, negative for rejects that become accepts.  ``t`` is the number of decisions made,
    ``at`` the counters since the start of the window.

    Attributes
    ----------
    edges
        ``(K,)``: upper edge of each cost level.
    ranks
        ``(steps, groups, 2, K)``: by group, proposal and cost level, how many levels are cheaper to
        overrule; a level is overruled iff its rank is below the state's code.
    endgame
        How many decisions before each check get a table of their own when they begin; ``None``
        where one table decides all.
    """

    method: ClassVar[Literal["exact", "long"]] = "exact"
    """How they are made: by a table of all decisions, or as they come."""
    grounds: ClassVar[str] = "That is decided in whole numbers, without rounding."
    """On what the guarantee rests, in a sentence."""
    stored_as: ClassVar[str]
    """Their name in files."""

    by_level: ClassVar[bool] = False
    """Whether the code says of each proposal and cost level whether it is overruled."""

    edges: NDArray[np.float64]
    ranks: NDArray[np.int64]
    endgame: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Cached values are left out: they are computed again from the fields, and some hold locks.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def cost_tables(self) -> tuple[list[float], list[Any]]:
        """:attr:`edges` and :attr:`ranks` as lists, which single look-ups read faster."""
        return self.edges.tolist(), self.ranks.tolist()

    def levels_of(self, costs: ArrayLike) -> NDArray[np.int64]:
        """The level of each cost: the first with an edge not below it, or one past the last."""
        return np.searchsorted(self.edges, costs, side="left")

    @property
    @abstractmethod
    def labelled(self) -> bool:
        """Whether decisions must be followed by their outcome."""

    @property
    def salvages(self) -> bool:
        """Whether there are also decisions of least risk, for where fairness is not guaranteed."""
        return False

    # Look-ups -------------------------------------------------------------------------------

    @abstractmethod
    def look_up(self, t: int, at: At, group: int) -> Answer:
        """Whether rejecting and whether accepting keeps fairness guaranteed, and the code.

        The code is ``FORCED`` if only rejecting keeps it, and ``-FORCED`` if only accepting does.
        Where fairness cannot be guaranteed, a table of least risk may say otherwise.
        """

    @cached_property
    def answer(self) -> Callable[[int, At, int], Answer]:
        """A function that returns what :meth:`look_up` does, and is faster to call.

        A shield calls it once for each request.  Subclasses whose tables never change return a
        function that has them as arguments already.
        """
        return self.look_up

    def overrules(self, code: int, proposed: bool, level: int) -> bool:
        """Whether a code :attr:`by_level` overrules this proposal at this cost level."""
        raise NotImplementedError("the code says how many cost levels are overruled")

    @abstractmethod
    def feasible(self, t: int, at: At) -> bool:
        """Whether fairness is guaranteed from this state, whatever comes."""

    def stays(self, t: int, at: At) -> bool:
        """Whether fairness stays guaranteed if the next decision leaves the counters unchanged."""
        return self.feasible(t + 1, at)

    @abstractmethod
    def planned(self, t: int, at: At) -> int:
        """How many of the next decisions after ``t`` can be looked up without another synthesis."""

    @property
    @abstractmethod
    def n_states(self) -> int | None:
        """Counter states that have their decisions in a table; ``None`` if there is no table."""

    @property
    def tabled(self) -> bool:
        """Whether one table has the decisions of all states, so that one can go through them."""
        return self.n_states is not None

    @property
    @abstractmethod
    def tables(self) -> Any:
        """The arrays that compiled functions read."""

    # Many at once ---------------------------------------------------------------------------

    def stretch(self, t: int, at: At) -> Stretch | None:
        """The next decisions that one table makes; ``None``: :meth:`decide_on` makes the next."""
        return Stretch(self.tables, t, at, (0,) * len(at), self.planned(t, at))

    def decide_on(
        self, t: int, at: NDArray[np.int64], requests: Any, accepted: NDArray[np.bool_], begin: int
    ) -> int:
        """Decide requests from ``begin`` on that no table decides, after ``t`` decisions.

        ``at``, the counters since the start, are updated.  Returns where it stopped; what it has
        not decided is for :meth:`look_up`.
        """
        return begin

    # What is still to be paid ---------------------------------------------------------------

    def estimate(self, counts: Counts, decided: int) -> float | None:
        """What the decisions up to the next check are reckoned to cost; ``None``: solve it.

        Infinite where fairness is not guaranteed.
        """
        return None

    def rest(self, spec: Specification, counts: Counts, decided: int) -> Specification:
        """The specification whose least cost is the cost still to be expected.

        ``decided`` decisions have led to ``counts``.  By default it is all that is left of the
        window; long policies solve the decisions up to the next moment at which something is due.
        """
        return spec.rest(counts, decided)

    # Files ----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Size of what is stored."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Numbers about what is stored, as JSON-able data."""

    @abstractmethod
    def in_words(self) -> str:
        """A description of what is stored."""

    @abstractmethod
    def stored(self, risk: float) -> Stored:
        """What a file stores of the decisions besides edges and ranks; see :meth:`restored`.

        The ``risk`` of the policy is included where it can be positive.
        """

    @classmethod
    @abstractmethod
    def restored(
        cls, spec: Specification, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> Decisions:
        """The decisions that :meth:`stored` described."""

    @abstractmethod
    def check(self, spec: Specification) -> None:
        """Refuse arrays that do not fit the specification, the cost levels or each other."""
