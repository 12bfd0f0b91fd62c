"""Specification: what a policy has to keep, over which window, and which inputs it expects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairshield.base.counts import At, Counts, Group, is_whole, unknown_group
from fairshield.base.errors import InvalidValueError, check_kind
from fairshield.inputs import InputModel, Inputs, InputSchedule
from fairshield.policy.support import Support
from fairshield.records import as_number
from fairshield.spec import Property, both, can_bind

_MOST_SEEN = 10**15


@dataclass(frozen=True, eq=False, kw_only=True)
class Specification:
    """Specification holds everything about a window except how its policy is made.

    The constructor takes complete fields of the exact types and refuses others.  :meth:`of` takes
    a user's arguments, converts them and fills in defaults.

    Attributes
    ----------
    prop
        What must hold.
    inputs
        What to expect; decides the cost, never the guarantee.
    horizon
        Number of decisions in the window.
    start
        Counters before the first decision, by group in the order of the input model.
    checkpoints
        Other numbers of decisions after which the property must hold, rising.
    further
        Decisions planned for beyond the horizon, which then is a checkpoint.
    terminal
        What must hold at the end of the plan besides ``prop``.
    spread, risen
        The planned price of overruling rises linearly over the window, from ``risen`` times itself
        to ``spread`` times itself.  Only what is left of a window has risen by more than 1.
    ceiling
        With a ceiling, costs are counted afresh from each checkpoint, and no checkpoint is passed
        with counters from which the decisions up to the next cost more, expectedly.  ``None``: the
        cost of the whole plan counts.
    trust_support
        Whether requests and outcomes to which ``inputs`` gives probability 0 are trusted never to
        come.  Then nothing is promised of sequences that have one.
    """

    prop: Property
    inputs: Inputs
    horizon: int
    start: Counts
    checkpoints: tuple[int, ...] = ()
    further: int = 0
    terminal: Property | None = None
    spread: float = 1.0
    risen: float = 1.0
    ceiling: float | None = None
    trust_support: bool = False

    @classmethod
    def of(
        cls,
        prop: Property,
        inputs: Inputs,
        *,
        horizon: int,
        start: Mapping[Group, tuple[int, int]] | None = None,
        checkpoints: Iterable[int] = (),
        further: int = 0,
        terminal: Property | None = None,
        spread: float = 1.0,
        ceiling: float | None = None,
        trust_support: bool = False,
    ) -> Specification:
        """The specification of a user's arguments: ``ceiling``, and those of :func:`synthesize`."""
        check_subject(prop, inputs)
        _check_window(horizon, further)
        return cls(
            prop=prop,
            inputs=inputs,
            horizon=int(horizon),
            start=started(inputs, start),
            checkpoints=_in_order(checkpoints, int(horizon), int(further)),
            further=int(further),
            terminal=_more_than(prop, terminal),
            spread=float(as_number(spread, "spread")),
            ceiling=None if ceiling is None else float(as_number(ceiling, "ceiling")),
            trust_support=trust_support,
        )

    def __post_init__(self) -> None:
        check_subject(self.prop, self.inputs)
        _check_window(self.horizon, self.further)
        if tuple(self.start) != self.groups:
            raise InvalidValueError(
                f"counters start for groups {tuple(self.start)}, not {self.groups}"
            )
        _check_points(self.checkpoints, self.plan_length)
        _check_terminal(self.prop, self.terminal)
        _check_spread(self.spread, self.further)
        if self.trust_support is not True and self.trust_support is not False:
            raise InvalidValueError(
                f"trust_support must be true or false, got {self.trust_support!r}: true takes "
                "requests of probability 0 in the input model for impossible"
            )
        self._check_ceiling()
        asked = "a ceiling" if self.ceiling is not None else "trust_support"
        if (self.ceiling is not None or self.trust_support) and not self.prop.counting.of_people:
            raise InvalidValueError(
                f"{asked} is for properties that count people, and {self.prop} counts decisions: "
                "leave it out"
            )

    def _check_ceiling(self) -> None:
        ceiling = self.ceiling
        if ceiling is None:
            return
        if not as_number(ceiling, "ceiling") >= 0.0:
            raise InvalidValueError(
                f"ceiling must be a cost of at least 0, got {ceiling!r}: it is the most that may "
                "be expected between two checkpoints"
            )
        if self.spread != 1.0 or self.further or self.trust_support or len(self.groups) > 2:
            raise InvalidValueError(
                f"a ceiling of {ceiling!r} is for two groups (now {len(self.groups)}), without "
                f"spread (now {self.spread!r}), further decisions (now {self.further}) and trusted "
                f"support (now {self.trust_support}): leave the ceiling out"
            )

    @property
    def groups(self) -> tuple[Group, ...]:
        """The names of the groups; the first is the paper's group a."""
        return self.inputs.groups

    @property
    def labelled(self) -> bool:
        """Whether decisions must be followed by their outcome."""
        return self.prop.counting.labelled

    @property
    def plan_length(self) -> int:
        """Decisions of the whole plan."""
        return self.horizon + self.further

    @property
    def n_levels(self) -> int:
        """How many cost levels are told apart."""
        return len(self.inputs.table(1).levels)

    @cached_property
    def due(self) -> tuple[int, ...]:
        """Numbers of decisions after which the property must hold, the horizon last."""
        return (*(c for c in self.checkpoints if c < self.horizon), self.horizon)

    @cached_property
    def _due_in_plan(self) -> frozenset[int]:
        """:attr:`due`, and what is due in the ``further`` decisions."""
        return frozenset((*self.checkpoints, self.horizon, self.plan_length))

    def required(self, decided: int) -> tuple[Property, ...]:
        """What must hold after so many decisions; at the end of the plan ``terminal`` as well."""
        if decided not in self._due_in_plan:
            return ()
        return (self.prop,) if decided < self.plan_length else both(self.prop, self.terminal)

    def keeps(self, counts: Counts, decided: int) -> bool:
        """Whether these counters, start included, satisfy what is required after so many decisions.

        It is true where nothing is required then.
        """
        return all(prop.holds(counts) for prop in self.required(decided))

    @cached_property
    def can_bind(self) -> bool:
        """Whether the property binds some counters of the window; if not, nothing is promised."""
        return any(
            can_bind(prop, self.start, [decided])
            for decided in reversed(self.due)
            for prop in self.required(decided)
        )

    @cached_property
    def support(self) -> Support:
        """The requests and outcomes that the input model gives a positive probability."""
        return Support(self.inputs.table(self.plan_length), self.prop.relevant_outcome)

    @cached_property
    def trusting(self) -> bool:
        """Whether what is promised depends on :attr:`trust_support`.

        It does not where all who matter to fairness have a positive probability at every step.
        """
        return self.trust_support and self.support.binding

    @property
    def rise(self) -> NDArray[np.float64] | None:
        """``(horizon,)``: the factors of the planned prices; ``None`` if they are all 1."""
        if self.spread == self.risen == 1.0:
            return None
        return np.linspace(self.risen, self.spread, self.horizon)

    def to_dict(self) -> dict[str, Any]:
        """What was asked for, as JSON-able data; a ceiling and trusted support if there are any."""
        trust = {"trust_support": True} if self.trust_support else {}
        ceiling = {} if self.ceiling is None else {"ceiling": self.ceiling}
        return {
            "property": self.prop.to_dict(),
            "inputs": self.inputs.to_dict(),
            "horizon": self.horizon,
            "start": [list(count) for count in self.start.values()],
            "checkpoints": list(self.checkpoints),
            "further": self.further,
            "terminal": None if self.terminal is None else self.terminal.to_dict(),
            "spread": self.spread,
            **ceiling,
            **trust,
        }

    # Counters -------------------------------------------------------------------------------

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
        fits = is_whole(decided) and self.prop.counting.fits(seen, decided)
        if not fits or decided > self.horizon:
            raise InvalidValueError(
                f"{seen} people counted since the start do not fit {decided!r} decisions of a "
                f"window of {self.horizon}"
            )
        return at

    # Parts ----------------------------------------------------------------------------------

    def rest(self, counts: Counts, decided: int) -> Specification:
        """The specification of the plan's rest, after ``decided`` decisions led to ``counts``."""
        left = self.horizon - decided
        rise = self.rise
        return replace(
            self,
            inputs=self.inputs.after(decided, self.plan_length - decided),
            # At the horizon, the ``further`` decisions are left.
            horizon=left or self.further,
            further=self.further if left else 0,
            start=counts,
            checkpoints=tuple(c - decided for c in self.checkpoints if c > decided),
            risen=1.0 if rise is None else float(rise[decided]),
        )

    def upto(self, decided: int, terminal: Property | None) -> Specification:
        """The specification of the first ``decided`` decisions, with ``terminal`` at their end."""
        return replace(self, horizon=decided, further=0, checkpoints=(), terminal=terminal)


def check_subject(prop: object, inputs: object) -> None:
    """Raise if ``prop`` is no property or ``inputs`` no input model."""
    if not isinstance(prop, Property):
        raise InvalidValueError(
            f"prop is a property such as DemographicParity('0.1'), got {prop!r}"
        )
    if not isinstance(inputs, (InputModel, InputSchedule)):
        raise InvalidValueError(
            f"inputs is an InputModel or an InputSchedule, got {type(inputs).__name__}: see "
            "InputModel.agnostic"
        )
    prop.check_groups(len(inputs.groups))


def started(inputs: Inputs, start: Mapping[Group, tuple[int, int]] | None) -> Counts:
    """Start counters in the order of the groups of ``inputs``; ``None`` means nobody seen."""
    if start is None:
        return Counts.zero(inputs.groups)
    if not isinstance(start, Mapping):
        raise InvalidValueError(
            f"start maps groups to (seen, accepted), as in Counts({{'a': (10, 8), ...}}), got "
            f"{start!r}"
        )
    start = Counts(start)
    for group in start:
        if group not in inputs.groups:
            raise unknown_group(group, inputs.groups)
    for group in inputs.groups:
        if group not in start:
            raise InvalidValueError(
                f"start has no counters for group {group!r}: give (0, 0) for none"
            )
        if start[group].seen > _MOST_SEEN:
            raise InvalidValueError(
                f"start counts {start[group].seen} people, at most {_MOST_SEEN}"
            )
    return Counts({g: start[g] for g in inputs.groups})


def _check_window(horizon: int, further: int) -> None:
    if not is_whole(horizon) or horizon < 1:
        raise InvalidValueError(
            f"horizon must be a whole number of at least 1, got {horizon!r}: it is the number of "
            "decisions after which the property must hold"
        )
    if not is_whole(further) or further < 0:
        raise InvalidValueError(
            f"further must be a whole number of at least 0, got {further!r}: it is the number of "
            "decisions to plan for beyond the horizon"
        )


def _in_order(checkpoints: Iterable[int], horizon: int, further: int) -> tuple[int, ...]:
    """Checkpoints in rising order; the horizon is one of them only if the plan goes on."""
    if not isinstance(checkpoints, Iterable):
        raise InvalidValueError(f"checkpoints are a collection such as (50,), got {checkpoints!r}")
    points = tuple(checkpoints)
    for point in points:
        _check_point(point, horizon + further)
    due = {int(point) for point in points} | ({horizon} if further else set())
    return tuple(sorted(due - {horizon + further}))


def _check_points(points: tuple[int, ...], most: int) -> None:
    for point in points:
        _check_point(point, most)
    if list(points) != sorted(set(points)):
        raise InvalidValueError(f"checkpoints must rise, got {list(points)}")


def _check_point(point: int, most: int) -> None:
    if not is_whole(point) or not 1 <= point <= most:
        raise InvalidValueError(
            f"checkpoints must be whole numbers from 1 to the horizon {most}, got {point!r}"
        )


def _check_terminal(prop: Property, terminal: Property | None) -> None:
    if terminal is None:
        return
    if not isinstance(terminal, Property):
        raise InvalidValueError(
            f"terminal is a property such as Sustained(prop), or None, got {terminal!r}"
        )
    if terminal.counting != prop.counting:
        raise InvalidValueError(
            f"terminal {terminal} must count the same people as {prop}: those with the same "
            "outcome, or everybody"
        )


def _more_than(prop: Property, terminal: Property | None) -> Property | None:
    """``terminal``; ``None`` if it requires no more than ``prop``."""
    _check_terminal(prop, terminal)
    return terminal if terminal is not None and terminal != prop and terminal.demands else None


def _check_spread(spread: float, further: int) -> None:
    if not 1.0 <= as_number(spread, "spread") < math.inf:
        raise InvalidValueError(
            f"spread must be a finite number of at least 1 (1: do not spread), got {spread!r}"
        )
    if spread != 1.0 and further:
        raise InvalidValueError(
            f"spread {spread!r} is for one window, and further={further} plans beyond it: "
            "leave one of them out"
        )
