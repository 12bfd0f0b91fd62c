"""Classes that make a run of each kind of period from a property and an input model.

``state`` and ``unseen`` of each are those of :class:`~fairshield.Run`.
"""

from __future__ import annotations

from fairshield.base.counts import Counts, Group
from fairshield.base.groups import Unseen
from fairshield.inputs import Inputs
from fairshield.periodic.course import State
from fairshield.periodic.cumulative import NOBODY
from fairshield.periodic.dynamic import Dynamic, Fallback
from fairshield.periodic.exact import ExactPeriodic
from fairshield.periodic.optimal import OptimalPeriodic
from fairshield.periodic.perpetual import Perpetual
from fairshield.periodic.run import Run
from fairshield.periodic.static import Bounds, StaticBounded, StaticFair
from fairshield.spec import Property


class StaticFairShield(Run):
    """StaticFairShield repeats the cheapest policy for one period (the paper's Static-Fair).

    Every period by itself is fair, and the reasons of its decisions are about the period.  All
    periods together are fair if in each of them both groups have equally many relevant people.

    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> shield = StaticFairShield(fs.DemographicParity("0.1"), inputs, period=4)
    >>> [shield.decide(g, proposed=g == "a").accepted for g in "aabb"]
    [True, True, True, True]
    >>> shield.guarantee.held, shield.holds()
    (True, True)
    """

    def __init__(
        self,
        prop: Property,
        inputs: Inputs,
        *,
        period: int,
        start: Counts | None = None,
        state: State | None = None,
        unseen: Unseen | str | dict[Group, Group] = "refuse",
    ) -> None:
        policy = StaticFair(prop, inputs, period, start=start or NOBODY)
        super().__init__(policy, state=state, unseen=unseen)


class StaticBoundedShield(Run):
    """StaticBoundedShield keeps rates between bounds in each period (the paper's Static-BW).

    Fair at the end of every period if in each of them both groups have at least
    ``ceil(1 / (u - l))`` relevant people.  ``bounds`` is ``(l, u)``, ``"centred"`` around the
    expected rate of the proposals, or ``"cheapest"``, found by a search over all bounds.

    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> shield = StaticBoundedShield(fs.DemographicParity("0.2"), inputs, period=20)
    >>> shield.policy.bounds, shield.policy.condition.least
    ((Fraction(2, 5), Fraction(3, 5)), 5)
    """

    def __init__(
        self,
        prop: Property,
        inputs: Inputs,
        *,
        period: int,
        bounds: Bounds = "centred",
        start: Counts | None = None,
        state: State | None = None,
        unseen: Unseen | str | dict[Group, Group] = "refuse",
    ) -> None:
        policy = StaticBounded(prop, inputs, period, bounds=bounds, start=start or NOBODY)
        super().__init__(policy, state=state, unseen=unseen)


class DynamicShield(Run):
    """DynamicShield makes a new policy for each period from its start (the paper's Dynamic).

    ``fallback`` says what to do in a period that cannot be guaranteed to end fair:
    ``"best-effort"`` makes a violation as improbable as can be, at the least cost; ``"inactive"``
    keeps all proposals, as the paper does whenever its condition is not met.

    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> shield = DynamicShield(fs.DemographicParity("0.1"), inputs, period=4)
    >>> [shield.decide(g, proposed=g == "a").accepted for g in "aabbbbba"]
    [True, True, True, True, True, True, True, True]
    >>> shield.completed, shield.holds()
    (2, True)
    """

    def __init__(
        self,
        prop: Property,
        inputs: Inputs,
        *,
        period: int,
        fallback: Fallback = "best-effort",
        start: Counts | None = None,
        state: State | None = None,
        unseen: Unseen | str | dict[Group, Group] = "refuse",
    ) -> None:
        policy = Dynamic(prop, inputs, period, fallback=fallback, start=start or NOBODY)
        super().__init__(policy, state=state, unseen=unseen)


class ExactPeriodicShield(Run):
    """ExactPeriodicShield is the cheapest shield that always ends ``periods`` periods fair.

    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> shield = ExactPeriodicShield(fs.DemographicParity("0.1"), inputs, period=4, periods=3)
    >>> round(shield.policy.tables.expected_cost, 4)
    5.4789
    """

    def __init__(
        self,
        prop: Property,
        inputs: Inputs,
        *,
        period: int,
        periods: int,
        start: Counts | None = None,
        state: State | None = None,
        unseen: Unseen | str | dict[Group, Group] = "refuse",
    ) -> None:
        policy = ExactPeriodic(prop, inputs, period, periods=periods, start=start or NOBODY)
        super().__init__(policy, state=state, unseen=unseen)


class OptimalPeriodicShield(Run):
    """OptimalPeriodicShield minimises what the dearest of ``periods`` periods costs (the paper's).

    All periods end fair.  What a period is expected to cost depends on what came before; the worst
    of these expectations is the least that a fair shield can have.

    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> shield = OptimalPeriodicShield(fs.DemographicParity("0.2"), inputs, period=10, periods=3)
    >>> round(shield.policy.worst_period_cost, 4)
    1.6565
    """

    def __init__(
        self,
        prop: Property,
        inputs: Inputs,
        *,
        period: int,
        periods: int,
        start: Counts | None = None,
        state: State | None = None,
        unseen: Unseen | str | dict[Group, Group] = "refuse",
    ) -> None:
        policy = OptimalPeriodic(prop, inputs, period, periods=periods, start=start or NOBODY)
        super().__init__(policy, state=state, unseen=unseen)


class PerpetualShield(Run):
    """PerpetualShield ends every period fair, for ever, on every input sequence.

    Each period is the beginning of the cheapest plan over ``lookahead`` periods that ends with a
    certificate: corridors for the two rates that can be kept whoever arrives.

    >>> import fairshield as fs
    >>> inputs = fs.InputModel.agnostic({"a": 0.5, "b": 0.5})
    >>> shield = PerpetualShield(fs.DemographicParity("0.1"), inputs, period=4)
    >>> [shield.decide(g, proposed=g == "a").accepted for g in "aabbbbba"]
    [True, True, True, True, True, True, True, True]
    >>> print(shield.guarantee.certificate)
    a in [1, 1], b in [9/10, 1]
    """

    def __init__(
        self,
        prop: Property,
        inputs: Inputs,
        *,
        period: int,
        lookahead: int = 2,
        start: Counts | None = None,
        state: State | None = None,
        unseen: Unseen | str | dict[Group, Group] = "refuse",
    ) -> None:
        policy = Perpetual(prop, inputs, period, lookahead=lookahead, start=start or NOBODY)
        super().__init__(policy, state=state, unseen=unseen)
